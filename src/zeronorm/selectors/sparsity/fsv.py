"""Feature selection by concave minimisation: the zero-norm as a sum of exponentials, by linear programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.copies import first_copies
from zeronorm.engines.entry_order import relative
from zeronorm.registry import register
from zeronorm.selection.parameters import check_positive, warn_of_empty_answer
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import WeightedSelector
from zeronorm.solvers.l1_svm.dual import l1_svm_program
from zeronorm.solvers.l1_svm.program import L1Svm
from zeronorm.solvers.status import Status

ZERO_WEIGHT = 1e-9  # relative to the largest weight
LARGEST_ALPHA = 1e6


@register(
    "fsv",
    family="sparsity",
    tasks=("binary",),
    reference="Bradley & Mangasarian 1998; Lal et al. 2006, Algorithm 3",
    test_params=({}, {"sparsity": 0.2, "growth": 2.0}),
)
class FSV(WeightedSelector):
    r"""Feature selection concave: as few features as possible, by a sequence of linear programs.

    The zero-norm is replaced by :math:`\sum_k 1 - e^{-\alpha |w_k|}`. With ``sparsity=None`` the classes must be
    separated,

    .. math:: \min_{w, b}\ \sum_k 1 - e^{-\alpha |w_k|} \quad \text{subject to} \quad y_i (w \cdot x_i + b) \ge 1,

    else errors are allowed, averaged within each class:

    .. math:: \min_{w, b}\ (1 - \lambda) \sum_{c = \pm 1} \frac{1}{n_c} \sum_{y_i = c} \max(0, 1 - y_i(w \cdot x_i + b))
              + \lambda \sum_k 1 - e^{-\alpha |w_k|}.

    The concave part is replaced by its tangent at the last weights, which gives a linear program with the costs
    :math:`\alpha e^{-\alpha |w_k|}`; the first has equal costs and is the ℓ1 machine. The objective never increases,
    and the sequence ends after a few programs at a vertex that need not be the global optimum. Features
    are brought into the programs only when they can improve the solution.

    Features are ranked by how many of the programs they survive, then by their last weight; features that never
    have one, by how close they came to it in the first program. The weight of columns equal up
    to sign and shift goes to the first, the others rank last.

    Huang et al. (2008) print the exponent as 1 - α|w| inside the exponential; the formula above is the one of
    the original paper.

    Use it for the smallest set of features that separates two classes; with very few samples many such
    sets exist by chance.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for all features with a weight in the last program.
    alpha : steepness of the exponential.
    growth : factor by which ``alpha`` grows whenever the sequence has come to rest, until the support no
        longer changes; 1 keeps it.
    sparsity : λ between 0 and 1, or None for classes that can be separated.
    tol : largest change of a weight at rest.
    max_iter : most linear programs.
    standardize : centre and scale the columns first.
    estimator : fitted on the selected features when given; adds ``predict``.
    feature_groups, always_keep : whole groups and forced features, see the user guide.
    verbose : show progress.

    Attributes
    ----------
    coef_, intercept_ : weights and bias of the last program, of the columns as standardised.
    objective_ : the objective after each program, for the α in use.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        alpha: float = 5.0,
        growth: float = 1.0,
        sparsity: float | None = 0.05,
        tol: float = 1e-7,
        max_iter: int = 100,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.growth = growth
        self.sparsity = sparsity
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_parameters()
        price, rate = self._prices(problem)
        # The program could share a weight between copies in any way: it sees the first alone.
        distinct = np.unique(first_copies(problem.design))
        program = l1_svm_program(problem.design.take(distinct), problem.signs, C=price)
        machines: list[L1Svm] = []
        objectives: list[float] = []
        alpha, converged, rested = float(self.alpha), False, np.empty(0, dtype=np.intp)
        weights = np.zeros(problem.n_features)
        with problem.progress.task("Linear programs", int(self.max_iter)) as advance:
            for _ in range(int(self.max_iter)):
                machine = program.solve(rate * alpha * np.exp(-alpha * weights[distinct]))
                self._check_solution(machine)
                machine = _spread_out(machine, distinct, problem.n_features)
                moved = float(np.abs(np.abs(machine.weights) - weights).max(initial=0.0))
                weights = np.abs(machine.weights)
                machines.append(machine)
                objectives.append(_objective(machine, price, rate, alpha))
                advance(1)
                if moved > self.tol:
                    continue
                support = np.flatnonzero(weights)
                settled = np.array_equal(support, rested) or not support.size
                converged = self.growth == 1.0 or alpha >= LARGEST_ALPHA or settled
                if converged:
                    break
                alpha, rested = alpha * float(self.growth), support
        self.objective_ = np.asarray(objectives)
        self.coef_, self.intercept_ = machines[-1].weights, machines[-1].bias
        if not machines[-1].weights.any():
            warn_of_empty_answer(self, problem, "lower sparsity or alpha")
        return _path_of_programs(machines, converged)

    def _check_parameters(self) -> None:
        check_positive(self, "alpha", "tol", "max_iter")
        if not 1.0 <= self.growth < np.inf:
            raise ValueError(
                f"The 'growth' parameter of FSV must be a finite factor of at least 1. Got {self.growth!r} instead."
            )
        if self.sparsity is not None and not 0.0 < self.sparsity < 1.0:
            raise ValueError(
                "The 'sparsity' parameter of FSV must be between 0 and 1, or None for classes that can be "
                f"separated. Got {self.sparsity!r} instead."
            )

    def _prices(self, problem: Problem) -> tuple[FloatArray, float]:
        """Price of an error for each sample, and the factor of the penalty."""
        if self.sparsity is None:
            return np.full(problem.n_samples, np.inf), 1.0
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        class_total = np.bincount(problem.y, weights=weight)[problem.y]
        return (1.0 - float(self.sparsity)) * weight / class_total, float(self.sparsity)

    def _check_solution(self, machine: L1Svm) -> None:
        if machine.status is Status.INFEASIBLE:
            raise ValueError(
                "FSV with sparsity=None needs two classes that a linear machine can separate. These samples cannot be "
                "separated; give a 'sparsity' between 0 and 1."
            )
        if not machine.converged:
            raise RuntimeError(f"FSV: a linear program was not solved. {machine.status.describe()}")


def _spread_out(machine: L1Svm, distinct: IntArray, n_features: int) -> L1Svm:
    """The machine of some features as one of all."""
    weights, pull = np.zeros(n_features), np.zeros(n_features)
    weights[distinct], pull[distinct] = machine.weights, machine.pull
    return replace(machine, weights=weights, pull=pull)


def _objective(machine: L1Svm, price: FloatArray, rate: float, alpha: float) -> float:
    finite = np.isfinite(price)
    return float(
        price[finite] @ machine.slack[finite] - rate * np.expm1(-alpha * np.abs(machine.weights)).sum()
    )


def _path_of_programs(machines: list[L1Svm], converged: bool) -> SelectionPath:
    """Supports of all programs; a feature scores by the last program in which it has a weight."""
    scores = 0.5 * relative(np.abs(machines[0].pull))
    supports: list[IntArray] = []
    for level, machine in enumerate(machines, start=1):
        weight = np.abs(machine.weights)
        support = np.flatnonzero(relative(weight) > ZERO_WEIGHT)
        scores[support] = level + 0.5 * relative(weight[support])
        supports.append(support)
    return SelectionPath.from_subsets(
        [support for support in supports if support.size],
        n_features=scores.size,
        tie_break=scores,
        scores=scores,
        own_size=supports[-1].size,
        n_iter=len(machines),
        converged=converged,
        remedy="raise max_iter or loosen tol.",
    )
