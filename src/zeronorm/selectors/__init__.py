"""Selection methods, one file each by family, and the classes that new methods derive from."""

from zeronorm.selectors._base import (
    BaseSelector,
    SplittingSelector,
    WeightedSelector,
    WeightedSplittingSelector,
)

__all__ = ["BaseSelector", "SplittingSelector", "WeightedSelector", "WeightedSplittingSelector"]
