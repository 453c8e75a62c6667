"""Users' files, known data sets by name, and the synthetic problems of the papers."""

from zeronorm.datasets._assemble import build_table, read_table
from zeronorm.datasets._catalogue import known_names, load_dataset
from zeronorm.datasets._encoding import read_feature_groups
from zeronorm.datasets._generators import (
    SyntheticData,
    append_probes,
    make_linear_toy,
    make_nonlinear_toy,
    make_polynomial_toy,
    make_reusable_features,
    make_twonorm,
)
from zeronorm.datasets._nonlinear import NonlinearProblem, nonlinear_problems
from zeronorm.datasets._table import DataError, Table
from zeronorm.datasets._table_options import TableOptions

__all__ = [
    "DataError",
    "NonlinearProblem",
    "SyntheticData",
    "Table",
    "TableOptions",
    "append_probes",
    "build_table",
    "known_names",
    "load_dataset",
    "make_linear_toy",
    "make_nonlinear_toy",
    "make_polynomial_toy",
    "make_reusable_features",
    "make_twonorm",
    "nonlinear_problems",
    "read_feature_groups",
    "read_table",
]
