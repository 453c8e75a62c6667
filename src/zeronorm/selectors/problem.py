"""Everything a selection method may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import ColumnStats, Design, require_finite
from zeronorm.selectors.progress import Progress

Task = Literal["binary", "multiclass", "multilabel", "regression"]


@dataclass(frozen=True)
class Problem:
    """Validated data and settings, handed to ``BaseSelector._select``.

    ``y`` holds class codes 0, 1, … for classification, real targets for regression and a 0/1
    matrix for multi-label problems. ``feature_groups`` is a group code per feature or None.
    ``n_features_to_select`` is what the user asked for, already a count, or None.
    """

    design: Design
    y: NDArray[Any]
    task: Task
    classes: NDArray[Any] | None = None
    sample_weight: NDArray[np.float64] | None = None
    feature_groups: NDArray[np.intp] | None = None
    always_keep: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_features_to_select: int | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    progress: Progress = field(default_factory=Progress)

    @property
    def n_samples(self) -> int:
        return int(self.design.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.design.shape[1])

    @property
    def n_classes(self) -> int:
        return 0 if self.classes is None else len(self.classes)

    @property
    def signs(self) -> NDArray[np.float64]:
        """The labels of a two-class problem as -1 and +1 (the second class is +1)."""
        return np.where(self.y == 1, 1.0, -1.0)

    def column_stats(self) -> ColumnStats:
        """Statistics of the columns by class; they also show whether all values are finite."""
        stats = self.design.column_stats(self.y, self.sample_weight)
        if not (np.all(np.isfinite(stats.minimum)) and np.all(np.isfinite(stats.mean))):
            require_finite(self.design)
        return stats

    def targets(self) -> NDArray[np.float64]:
        """One column per machine: ±1 (two classes), one-against-rest ±1 (more), or the real target."""
        if self.task == "regression":
            return np.asarray(self.y, dtype=np.float64).reshape(self.n_samples, -1)
        if self.task == "binary":
            return self.signs[:, None]
        if self.task == "multilabel":
            return np.where(self.y == 1, 1.0, -1.0)
        return np.where(self.y[:, None] == np.arange(self.n_classes)[None, :], 1.0, -1.0)

    def sample_costs(self, C: float) -> float | NDArray[np.float64]:
        """The cost C per sample: scaled by the sample weights where there are any."""
        return C if self.sample_weight is None else C * self.sample_weight
