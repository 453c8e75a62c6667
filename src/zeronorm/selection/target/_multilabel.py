"""Multi-label targets: each sample belongs to any number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.selection.target._labels import Labels


class Multilabel(Labels):
    """A 0/1 matrix with one column per class."""

    kind = "multilabel"
    is_stratified = False

    @classmethod
    def fits(cls, y: Any) -> bool:
        """Whether y has several columns."""
        shape = np.asarray(y).shape
        return len(shape) == 2 and shape[1] > 1

    @classmethod
    def encode(cls, y: NDArray[Any], owner: str) -> Multilabel:
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)
        return cls.of(y)

    @classmethod
    def of(cls, y: NDArray[Any]) -> Multilabel:
        return cls(np.asarray(y, dtype=np.intp), np.arange(y.shape[1]))

    @classmethod
    def recognised(cls, y: NDArray[Any]) -> str | None:
        return None  # a single column of a table is never multi-label

    def labels(self) -> NDArray[Any]:
        return self.values

    def columns(self) -> FloatArray:
        return np.where(self.values == 1, 1.0, -1.0)
