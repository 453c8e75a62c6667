"""Two classifiers on the same test samples, fold by fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from zeronorm.evaluation.records import cells_by_method
from zeronorm.evaluation.significance.effects import EffectSize, error_difference


@dataclass(frozen=True)
class McNemar:
    """Result of one McNemar test; a small ``p_value`` says that a is better than b."""

    only_a: int
    only_b: int
    z: float
    p_value: float
    difference: EffectSize

    def decision(self, level: float = 0.05) -> int:
        """1 when a is significantly better, -1 when significantly worse, else 0."""
        return int(self.p_value < level) - int(self.p_value > 1 - level)


@dataclass(frozen=True)
class ScoreMatrix:
    """Sums over the folds of the decisions of row against column."""

    methods: tuple[str, ...]
    scores: NDArray[np.intp]
    error_rates: NDArray[np.float64]
    n_folds: int

    def with_errors(self) -> NDArray[np.float64]:
        """The scores with the test error rates on the diagonal."""
        table = self.scores.astype(np.float64)
        np.fill_diagonal(table, self.error_rates)
        return table


def mcnemar(truth: ArrayLike, a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> McNemar:
    r"""McNemar test of the predictions ``a`` against ``b``, one-sided and without continuity correction.

    With :math:`\nu_a` samples that only a gets wrong and :math:`\nu_b` that only b gets wrong,

    .. math:: z = \frac{\nu_b - \nu_a}{\sqrt{\nu_a + \nu_b}}, \qquad p = 1 - \Phi(z),

    and z = 0 when both are 0. The difference is of the error rates, a minus b.
    """
    truth, a, b = np.asarray(truth), np.asarray(a), np.asarray(b)
    if not truth.shape == a.shape == b.shape or truth.ndim != 1 or truth.size == 0:
        raise ValueError(
            "The truth and both predictions must be lists of the same length, not empty. "
            f"Got shapes {truth.shape}, {a.shape} and {b.shape}."
        )
    wrong_a, wrong_b = a != truth, b != truth
    only_a, only_b = int(np.sum(wrong_a & ~wrong_b)), int(np.sum(wrong_b & ~wrong_a))
    z = (only_b - only_a) / np.sqrt(only_a + only_b) if only_a + only_b else 0.0
    effect = error_difference(only_a, only_b, truth.size, confidence=confidence)
    return McNemar(only_a, only_b, float(z), float(stats.norm.sf(z)), effect)


def score_matrix(
    truth: Sequence[ArrayLike], predictions: Mapping[str, Sequence[ArrayLike]], *, level: float = 0.05
) -> ScoreMatrix:
    """All methods against each other: one test per fold, decisions summed over the folds.

    ``truth`` has the labels of each fold, ``predictions`` those of each method in the same folds.
    """
    methods = tuple(predictions)
    scores = np.zeros((len(methods), len(methods)), dtype=np.intp)
    for i, row in enumerate(methods):
        for j in range(i):
            folds = zip(truth, predictions[row], predictions[methods[j]], strict=True)
            scores[i, j] = sum(mcnemar(t, a, b).decision(level) for t, a, b in folds)
            scores[j, i] = -scores[i, j]
    pooled = np.concatenate([np.asarray(fold) for fold in truth])
    errors = [
        np.mean(np.concatenate([np.asarray(fold) for fold in predictions[name]]) != pooled)
        for name in methods
    ]
    return ScoreMatrix(methods, scores, np.asarray(errors, dtype=np.float64), len(truth))


def score_matrix_of_records(records: Any, *, size: int | None = None, level: float = 0.05) -> ScoreMatrix:
    """The score matrix of the records of ``evaluate`` at one size."""
    by_method = cells_by_method(records, size, ("truth", "predictions"))
    truth = [row["truth"] for row in next(iter(by_method.values()))]
    predictions = {name: [row["predictions"] for row in rows] for name, rows in by_method.items()}
    return score_matrix(truth, predictions, level=level)
