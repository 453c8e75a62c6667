"""The only code that touches the data: one interface, one file per home of the data."""

from zeronorm.design.base import Design, register_backend
from zeronorm.design.chunked import DataFileError
from zeronorm.design.convert import as_design, check_container, contiguous, has_own_backend
from zeronorm.design.dense import DenseDesign
from zeronorm.design.packing import pack
from zeronorm.design.sparse import SparseDesign
from zeronorm.design.standardized import StandardizedDesign
from zeronorm.design.stats import ColumnStats, is_constant_range, require_finite, require_finite_stats

__all__ = [
    "ColumnStats",
    "DataFileError",
    "DenseDesign",
    "Design",
    "SparseDesign",
    "StandardizedDesign",
    "as_design",
    "check_container",
    "contiguous",
    "has_own_backend",
    "is_constant_range",
    "pack",
    "register_backend",
    "require_finite",
    "require_finite_stats",
]
