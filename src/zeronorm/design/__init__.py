"""The only code that touches the data: one interface, one file per home of the data."""

from .base import Design
from .convert import as_design
from .dense import DenseDesign
from .sparse import SparseDesign
from .standardized import StandardizedDesign
from .stats import ColumnStats

__all__ = ["ColumnStats", "DenseDesign", "Design", "SparseDesign", "StandardizedDesign", "as_design"]
