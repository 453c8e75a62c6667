"""A table that is ready for a selector, with everything that was decided about it in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

TaskName = Literal["classification", "regression"]


@dataclass(frozen=True)
class Table:
    """Features, target and what is known about them.

    Parameters
    ----------
    X : samples by features, float, dense or CSR.
    y : labels or real targets.
    task : "classification" or "regression".
    feature_names : one name per column of X, as in the file; encoded levels are called "column=level".
        Names may repeat.
    source_columns : for each column of X, its place in the file (levels of one column share it).
    target_name : the column or variable that holds the target.
    feature_groups : a group code per column when levels of one column belong together, else None.
    sample_groups : one label per sample when samples belong together (patients, batches), else None.
    sample_ids : names of the samples, else None.
    id_columns : columns that look like identifiers; those of text are not in X, and the notes say so.
    notes : what was inferred, encoded, filled in or set aside, in words.
    source : where the data come from.
    """

    X: Any
    y: NDArray[Any]
    task: TaskName
    feature_names: NDArray[Any]
    source_columns: NDArray[np.intp]
    target_name: str
    feature_groups: NDArray[np.intp] | None = None
    sample_groups: NDArray[Any] | None = None
    sample_ids: NDArray[Any] | None = None
    id_columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def class_counts(self) -> dict[str, int]:
        """Samples per class; empty for regression."""
        if self.task == "regression":
            return {}
        classes, counts = np.unique(self.y, return_counts=True)
        return {str(c): int(n) for c, n in zip(classes, counts, strict=True)}
