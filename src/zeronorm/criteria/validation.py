"""The error of a support vector machine on samples that it was not trained on, made smooth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria.base import Criterion, CriterionValue, with_ridge
from zeronorm.criteria.margin import Margin
from zeronorm.criteria.span import bordered_inverse, support_of


@dataclass(frozen=True, eq=False)
class ValidationLoss(Criterion):
    r"""Share of validation samples on the wrong side, with a sigmoid in place of the step (Chapelle et al. 2002):

    .. math:: E = \frac1m \sum_{i \in V} \frac{1}{1 + \exp(a\, y_i f(x_i))},
        \qquad f(x_i) = \sum_{j \in T} v_j K_{ij} + b.

    The machine on the training samples T has squared slacks and solves :math:`H (v, b) = (y, 0)` on its support
    vectors, as in :class:`~zeronorm.criteria.span.Span`; the gradient follows the change of v and b and is exact
    as long as the set of support vectors stays the same.

    Parameters
    ----------
    train, valid : indices of the samples; both classes must be among the training samples.
    steepness : a, how closely the sigmoid follows the step.
    """

    train: IntArray
    valid: IntArray
    C: float = np.inf
    steepness: float = 5.0
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        T, V = self.train, self.valid
        dual = Margin(self.C, self.tol).solve(np.ascontiguousarray(K[np.ix_(T, T)]), y[T], warm)
        support = support_of(dual.alpha)
        S, v = T[support], dual.dual_coef[support]
        outputs = K[np.ix_(V, S)] @ v + dual.bias
        error = expit(-self.steepness * y[V] * outputs)
        per_output = -self.steepness * y[V] * error * (1.0 - error) / V.size

        # Outputs change with the kernel between the two sets, and with v and b through the training kernel.
        inverse = bordered_inverse(with_ridge(K[np.ix_(S, S)], self.C))
        through_machine = inverse @ np.append(K[np.ix_(S, V)] @ per_output, per_output.sum())
        gradient = np.zeros_like(K)
        gradient[np.ix_(V, S)] += np.outer(per_output, v)
        gradient[np.ix_(S, S)] -= np.outer(through_machine[:-1], v)
        gradient = 0.5 * (gradient + gradient.T)
        return CriterionValue(float(error.mean()), gradient, dual, dual.status.as_good_as_it_gets)


@dataclass(frozen=True, eq=False)
class CrossValidation(Criterion):
    """The mean validation error over several splits into training and validation samples."""

    folds: tuple[ValidationLoss, ...]

    @classmethod
    def from_splits(
        cls, splits: Iterable[tuple[IntArray, IntArray]], C: float, steepness: float, tol: float
    ) -> CrossValidation:
        """One fold for each pair of training and validation indices."""
        return cls(tuple(ValidationLoss(train, valid, C, steepness, tol) for train, valid in splits))

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        starts = [None] * len(self.folds) if warm is None else warm
        values = [fold.evaluate(K, y, start) for fold, start in zip(self.folds, starts, strict=True)]
        return CriterionValue(
            float(np.mean([value.value for value in values])),
            np.mean([value.gradient for value in values], axis=0),
            [value.warm for value in values],
            all(value.converged for value in values),
        )
