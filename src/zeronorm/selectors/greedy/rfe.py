"""Recursive feature elimination with a support vector machine."""

from __future__ import annotations

import numbers
from typing import Any, Literal

from zeronorm.selectors.base import WeightedSelector
from zeronorm.selectors.greedy.elimination import Elimination, check_step, eliminate
from zeronorm.selectors.greedy.gram_machines import GramMachines
from zeronorm.selectors.greedy.tall_machines import TallMachines
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register
from zeronorm.solvers.linear_svm import prefers_gram
from zeronorm.solvers.status import Status

FEW_SAMPLES = 500


@register(
    "rfe",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Guyon et al. 2002; Lal et al. 2006, algorithm 1",
    test_params=({}, {"task": "regression", "step": 0.5}, {"loss": "squared", "step": 2}),
)
class RFE(WeightedSelector):
    r"""Recursive feature elimination with a linear support vector machine.

    Train, remove the feature with the smallest

    .. math:: c_k = \sum_c w_{ck}^2, \qquad w_c = X^\top (\alpha_c^* \circ y_c),

    and repeat. The sum is over the machines of one class against the rest (one machine for two classes or
    for regression). With feature groups, the group with the smallest :math:`\sum_{k \in g} |w_k|` leaves as
    a whole.

    Removing one feature at a time is exact and fast: the Gram matrix is down-dated, each training starts
    from the last solution, and only features whose weight can be the smallest by a proven bound are looked at.
    The default tolerance is tight because the order depends on it.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for half of the features.
    step : features (or groups) removed per round: a count, or a fraction of what is left.
    C : cost of errors; ``numpy.inf`` for a hard margin. When the features that are left no longer separate
        the classes, the rest is ordered by the last weights.
    loss : "hinge" (for regression: ε-insensitive) or "squared", i.e. (C/2) Σ ξ².
    epsilon : half-width of the insensitive tube in regression.
    task : "classification" or "regression".
    standardize : scale columns to mean 0 and variance 1 first; constant columns rank last.
    tol : largest violation of the optimality conditions.
    max_iter : iterations of the solver per training.
    estimator, feature_groups, always_keep, verbose : as in all selectors.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        step: int | float = 1,
        C: float = 1.0,
        loss: Literal["hinge", "squared"] = "hinge",
        epsilon: float = 0.1,
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.task = task
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_parameters()
        settings: dict[str, Any] = {"C": self.C, "loss": self.loss, "epsilon": self.epsilon, "tol": self.tol}
        record = Elimination(problem)
        stop_at = smallest_gram_size(*problem.design.shape)
        if problem.n_features >= stop_at:
            machines = GramMachines(problem, max_iter=self.max_iter, **settings)
            one_by_one = isinstance(self.step, numbers.Integral) and self.step == 1
            if one_by_one and problem.feature_groups is None:
                machines.eliminate_one_by_one(record, stop_at)
            else:
                eliminate(machines, record, self.step, stop_at)
        if stop_at > 1 and record.status is not Status.UNBOUNDED:
            eliminate(TallMachines(problem, record.alive, **settings), record, self.step)
        return record.path()

    def _check_parameters(self) -> None:
        check_step(self.step, "RFE")
        if self.loss not in ("hinge", "squared"):
            raise ValueError(
                f"The 'loss' parameter of RFE must be 'hinge' or 'squared'. Got {self.loss!r} instead."
            )
        for name, value in (("C", self.C), ("tol", self.tol)):
            if not value > 0:
                raise ValueError(f"The '{name}' parameter of RFE must be positive. Got {value!r} instead.")
        if self.epsilon < 0:
            raise ValueError(
                f"The 'epsilon' parameter of RFE must not be negative. Got {self.epsilon!r} instead."
            )


def smallest_gram_size(n_samples: int, n_features: int) -> int:
    """The number of features down to which machines are trained on the n×n Gram matrix.

    Below, the p×p way is cheaper; for few samples the Gram matrix costs nothing and is kept to the end.
    """
    if n_samples < FEW_SAMPLES:
        return 1
    if not prefers_gram((n_samples, n_features)):
        return n_features + 1
    low, high = 1, n_features
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if prefers_gram((n_samples, middle)) else (middle + 1, high)
    return low
