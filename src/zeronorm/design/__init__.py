"""Access to the data: one interface, `Design`, and one module for each backend."""

from zeronorm.design._affine import Affine
from zeronorm.design._base import Design, register_backend
from zeronorm.design._chunked import DataFileError
from zeronorm.design._convert import as_design, check_container, contiguous, has_own_backend, in_memory
from zeronorm.design._dense import DenseDesign, in_one_piece
from zeronorm.design._finite import require_finite, require_finite_stats
from zeronorm.design._packing import pack
from zeronorm.design._products import column_range
from zeronorm.design._sparse import SparseDesign
from zeronorm.design._stats import ColumnStats, is_constant_range

__all__ = [
    "Affine",
    "ColumnStats",
    "DataFileError",
    "DenseDesign",
    "Design",
    "SparseDesign",
    "as_design",
    "check_container",
    "column_range",
    "contiguous",
    "has_own_backend",
    "in_memory",
    "in_one_piece",
    "is_constant_range",
    "pack",
    "register_backend",
    "require_finite",
    "require_finite_stats",
]
