"""Synthetic problems of the papers, one file per paper."""

from zeronorm.datasets.generators.gadat2007 import append_probes, make_reusable_features
from zeronorm.datasets.generators.huang2008 import make_twonorm
from zeronorm.datasets.generators.synthetic import SyntheticData
from zeronorm.datasets.generators.weston2003 import (
    make_linear_toy,
    make_nonlinear_toy,
    make_polynomial_toy,
)

# Names under which the command line offers them.
GENERATORS = {
    "linear-toy": make_linear_toy,
    "nonlinear-toy": make_nonlinear_toy,
    "polynomial-toy": make_polynomial_toy,
    "reusable-features": make_reusable_features,
    "twonorm-made": make_twonorm,
}

__all__ = [
    "GENERATORS",
    "SyntheticData",
    "append_probes",
    "make_linear_toy",
    "make_nonlinear_toy",
    "make_polynomial_toy",
    "make_reusable_features",
    "make_twonorm",
]
