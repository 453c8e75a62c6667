"""Targets with one class per sample: two classes, or more."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import setting
from zeronorm._types import FloatArray, written
from zeronorm.selection.target._base import Target

MOST_CLASSES = 20  # a column of a table with more distinct whole numbers is not taken as labels


class NotLabelsError(ValueError):
    """Raised for values that scikit-learn does not accept as labels."""


class Labels(Target):
    """One class per sample: ``values`` are codes 0, 1, … of the sorted ``classes``."""

    task = "classification"
    estimator_type = "classifier"
    has_classes = True
    is_stratified = True
    metrics = ("error_rate", "balanced_error_rate")
    scoring = "accuracy"
    predictors: ClassVar = {"linear": "linear svm", "gaussian": "gaussian svm"}
    baseline = "most frequent class"
    smooth_loss = "logistic"

    @classmethod
    def encode(cls, y: NDArray[Any], owner: str) -> Labels:
        try:
            classes, codes = _classes_of(y)
        except ValueError as error:
            raise NotLabelsError(str(error)) from error
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs samples of at least two classes in y. Got one class only: {written(classes[0])}."
            )
        return (Binary if len(classes) == 2 else Multiclass)(codes, classes)

    @classmethod
    def of(cls, y: NDArray[Any]) -> Labels:
        classes, codes = np.unique(y, return_inverse=True)
        return (Binary if len(classes) <= 2 else Multiclass)(codes, classes)

    @classmethod
    def recognised(cls, y: NDArray[Any]) -> str | None:
        if y.dtype.names:
            return None
        if y.dtype.kind not in "iuf":
            return f"holds text, so the task is {cls.task}."
        distinct = np.unique(y)
        if np.any(distinct != np.round(distinct)) or len(distinct) > min(MOST_CLASSES, len(y) // 2):
            return None
        found = f"holds {len(distinct)} whole numbers"
        return f"{found}, so the task is taken as {cls.task} ({setting('task', 'regression')} for numbers)."

    def labels(self) -> NDArray[Any]:
        return self.values if self.classes is None else np.asarray(self.classes[self.values])

    def columns(self) -> FloatArray:
        return np.where(self.values[:, None] == np.arange(self.n_classes)[None, :], 1.0, -1.0)

    @classmethod
    def check_folds(cls, y: NDArray[Any], n_folds: int) -> None:
        fewest = int(np.unique(y, return_counts=True)[1].min())
        if fewest < n_folds:
            warnings.warn(
                f"The smallest class has {fewest} samples for {n_folds} folds, so some folds are without it. Leave the "
                "class out, or use fewer folds ('cv').",
                UserWarning,
                stacklevel=3,
            )

    @classmethod
    def described(cls, n_classes: int) -> str:
        return f"a classification with {n_classes} classes" if n_classes else "a classification"


class Binary(Labels):
    """Two classes."""

    kind = "binary"

    def columns(self) -> FloatArray:
        """One column: -1 and, for the second class, +1."""
        return np.where(self.values == 1, 1.0, -1.0)[:, None]


class Multiclass(Labels):
    """More than two classes."""

    kind = "multiclass"

    def model_columns(self, multi_class: str) -> tuple[FloatArray, NDArray[np.bool_]]:
        """With "one_vs_one" one model for each pair of classes, +1 for the second; otherwise as in ``columns``."""
        if multi_class != "one_vs_one":
            return super().model_columns(multi_class)
        pairs = np.asarray(list(combinations(range(self.n_classes), 2)))
        is_second = self.values[:, None] == pairs[:, 1]
        return np.where(is_second, 1.0, -1.0), is_second | (self.values[:, None] == pairs[:, 0])


def _classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct labels and the code of each sample; an error or a warning where y does not look like labels."""
    from sklearn.utils.multiclass import check_classification_targets

    if y.ndim != 1 or y.dtype.kind not in "biuU":
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if 2 * classes.size > y.size:  # scikit-learn warns of so many classes
        check_classification_targets(y)
    return classes, codes
