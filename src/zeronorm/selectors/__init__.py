"""Selection methods, one file per method in a folder per family, and the base classes of new methods."""

from zeronorm.selectors._base import (
    BaseSelector,
    SplittingSelector,
    WeightedSelector,
    WeightedSplittingSelector,
)

__all__ = ["BaseSelector", "SplittingSelector", "WeightedSelector", "WeightedSplittingSelector"]
