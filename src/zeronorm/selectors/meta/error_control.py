"""What selectors have in common that limit false selections."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design
from zeronorm.selectors.meta.base import MetaSelector
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem

FloatArray = NDArray[np.float64]


class ErrorControlSelector(MetaSelector):
    """A selector that may, rightly, select nothing at all.

    ``path_`` still answers every size; ``support_`` is empty when no feature passes.
    """

    def _store(self, path: SelectionPath, problem: Problem) -> None:
        super()._store(path, problem)
        if problem.n_features_to_select is None and path.own_size == 0:
            self.support_ = np.zeros(path.n_features, dtype=bool)
            self.ranking_ = path.ranking() + 1
            self.n_features_ = 0

    def _retrain(self, X: Any, y: NDArray[Any], problem: Problem, routed: Any) -> None:
        if getattr(self, "estimator", None) is not None and not self.support_.any():
            raise ValueError(
                f"{type(self).__name__} selected no feature at level {getattr(self, 'level', None)}, so "
                "'estimator' has nothing to learn from. Raise the level, set n_features_to_select, or use "
                "estimator=None to accept an empty selection."
            )
        super()._retrain(X, y, problem, routed)

    def _refuse_column_settings(self) -> None:
        """Extra columns are mixed with the real ones, so column settings inside would name the wrong ones."""
        for name in ("feature_groups", "always_keep"):
            if getattr(self._innermost(), name, None) is not None:
                raise ValueError(
                    f"{type(self).__name__} adds columns to the data, so the wrapped selector cannot have "
                    f"'{name}'. Set it to None."
                )

    def _fit_shuffled(
        self, design: Design, target: NDArray[Any], rng: np.random.Generator
    ) -> tuple[SelectionPath, FloatArray, NDArray[np.intp]]:
        """Fit on the columns in random order; the scores and places of the columns in their own order.

        Ties go to the column that stands first, which must not favour the real columns.
        """
        shuffle = rng.permutation(design.n_features)
        _, path = self._wrapped_path(design.take(shuffle), target, rng)
        scores, position = np.empty(shuffle.size), np.empty(shuffle.size, dtype=np.intp)
        scores[shuffle], position[shuffle] = path.feature_scores(), path.position()
        return path, scores, position
