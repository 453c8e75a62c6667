"""Logistic regression and Cox models with as few features as possible: best subsets, and concave penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.special import gammaln

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._cox_scores import weights_of
from zeronorm.engines._sparse_paths import entry_scores, scatter_columns, without_copies
from zeronorm.engines.logistic_exchanges._cox import CoxSubsets
from zeronorm.engines.logistic_exchanges._splicing import best_subsets
from zeronorm.engines.logistic_exchanges._subsets import LogisticSubsets, SubsetFit, Subsets
from zeronorm.execution import one_thread_for_products
from zeronorm.registry import register
from zeronorm.selection._kinds import POSITIVE, exceptions
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import TimeToEvent
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers.l1_smooth._coupled import CoupledModels
from zeronorm.solvers.l1_smooth._cox import CoupledCox
from zeronorm.solvers.l1_smooth._logistic import CoupledLogistic

Penalty = Literal["l0", "log", "scad", "mcp", "l0.5"]

LARGEST_SIZE = 100  # searched for, unless the user asks for more with max_features
GRID_END = 1e-2  # smallest penalty on the grid, relative to the largest
REWEIGHTED_ENOUGH = 1e-4  # relative change of the factors


@register(
    "zeronorm-logistic",
    family="sparsity",
    tasks=("binary", "multiclass", "survival"),
    reference="Lal et al. 2006, Table 1 (an empty entry there); splicing: Zhu et al. 2020",
    cost="n p for each of about ten passes per selected feature, mostly over a copy in bytes, and many small fits",
    oracle="exhaustive search of all subsets of up to 15 features, and abess",
    avoid="hundreds of features to be kept; a list that must be stable",
    test_params=({}, {"penalty": "mcp", "n_alphas": 3, "max_reweightings": 2}, {"task": "survival"}),
)
class ZeroNormLogistic(WeightedSelector):
    r"""Logistic regression with the zero-norm: the best subset of each size, or a concave approximation.

    ``penalty="l0"`` looks, for every size k, for the subset of k features with the smallest loss

    .. math:: \min_{w, b}\ \sum_i s_i \log(1 + e^{-y_i (w \cdot x_i + b)}) + \tfrac{\lambda}{2} \|w\|_2^2
              \quad \text{subject to} \quad \|w\|_0 = k,

    where a tiny ridge λ keeps the weights finite when a subset separates the classes. A beam search goes up and down
    the sizes and improves the best subsets by splicing (several features exchanged at once) and by swaps. It finds the
    optimum in almost all problems that are small enough to try all subsets; for large problems, like any search of this
    kind, it gives no guarantee. From 100,000 samples on, the wide search uses 25,000 of them, and a narrow search in
    all samples starts with its result; losses are always those of all samples.

    The other penalties are concave functions of :math:`|w_k|` between ℓ0 and ℓ1, added to the mean loss:

    .. math:: \text{log}: \lambda\epsilon \log(1 + |w|/\epsilon), \qquad
              \text{l0.5}: 2\lambda\sqrt{\epsilon}(\sqrt{\epsilon + |w|} - \sqrt\epsilon), \qquad
              \text{SCAD and MCP with shapes 3.7 and 3}.

    They are minimised through a sequence of weighted ℓ1 problems, each of which lowers the objective, for a
    grid of λ. Every support that appears is refitted without penalty, and the best of each size is kept.

    Several classes have one classifier for each class against the rest, all with the same features; their losses are
    summed. With ``task="survival"`` the loss is Cox's negative log partial likelihood, with Efron's ties and without
    b; numbers of samples are then numbers of events.

    Use ``"l0"`` for the smallest model that predicts well, when strong correlations mislead the LASSO, or to
    see what the best k features are. Prefer a penalty when hundreds of features are to be kept. Compared with
    FSV and AROM the loss is that of a probability model and needs no separability.

    Parameters
    ----------
    n_features_to_select
        None: the size with the smallest extended Bayesian information criterion.
    penalty
        "l0": best subsets. The others are smooth approximations of it.
    task
        "survival": Cox models of times to an event.
    max_features
        All other features follow by their single effects. None:
        ``n_features_to_select`` if it is given, else as many as the number of samples supports, at most 100.
    epsilon
        Here for both tasks: the width around zero of the penalties "log" and "l0.5".
    tol
        Largest violation of the optimality conditions, relative to the largest slope of the loss.
    always_keep
        Only subsets that contain these features are searched.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import ZeroNormLogistic
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = ZeroNormLogistic(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "logistic"

    _parameter_exceptions = exceptions(
        epsilon=(POSITIVE, "the width around zero of the penalty, not of the loss")
    )

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        penalty: Penalty = "l0",
        task: Literal["classification", "survival"] = "classification",
        ridge: float = 1e-6,
        max_features: int | None = None,
        n_alphas: int = 50,
        epsilon: float = 0.1,
        max_reweightings: int = 10,
        tol: float = 1e-7,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.penalty = penalty
        self.task = task
        self.ridge = ridge
        self.max_features = max_features
        self.n_alphas = n_alphas
        self.epsilon = epsilon
        self.max_reweightings = max_reweightings
        self.tol = tol
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        model = self._model(problem)
        largest = self._largest_size(problem, model.information)
        # The matrices are small: one thread is faster than several, and gives the same rounding everywhere.
        with one_thread_for_products():
            if self.penalty == "l0":
                return self._best_subsets(problem, model, largest)
            return self._reweighted(problem, model, largest)

    def _model(self, problem: Problem) -> Subsets:
        design = problem.with_basis()
        if isinstance(problem.target, TimeToEvent):
            return CoxSubsets(design, problem.target.values, weights_of(problem), self.ridge)
        return LogisticSubsets(design, problem.target.columns(), weights_of(problem), self.ridge)

    def _largest_size(self, problem: Problem, total_weight: float) -> int:
        p = problem.n_features
        if self.max_features is not None:
            return min(int(self.max_features), p)
        if problem.n_features_to_select is not None:
            return min(problem.n_features_to_select, LARGEST_SIZE)
        supported = total_weight / (np.log(max(p, 3)) * np.log(np.log(max(total_weight, 16.0))))
        return int(min(max(supported, 1.0), p, LARGEST_SIZE))

    # -- best subsets ---------------------------------------------------------------------------

    def _best_subsets(self, problem: Problem, model: Subsets, largest: int) -> SelectionPath:
        stats = problem.design.column_stats(sample_weight=problem.sample_weight)
        usable = ~stats.is_constant(problem.design.dtype)
        usable[problem.always_keep] = False
        eligible, free = np.flatnonzero(usable), _free_columns(problem)
        variance = np.where(usable, stats.variance, 1.0)
        # Covariates are in every subset, like features that are always kept, but are not counted.
        forced = np.concatenate([problem.always_keep, free])
        search = best_subsets(model, eligible, forced, np.append(variance, np.ones(free.size)))
        with problem.progress.task("Best subsets", largest) as advance:
            fits, n_passes = search.run(largest + free.size, advance)
        residuals = model.residuals(model.fit(free), model.rows_and_ones(free))
        slopes = np.abs(problem.design.transpose_dot(residuals.T)).sum(axis=1)
        supports = [_features_of(fit, problem) for fit in fits]
        # Features in smaller subsets come first; of those equal in this, features in more subsets.
        scores = entry_scores(
            supports, [1.0 / max(s.size, 0.5) for s in supports], slopes / np.sqrt(variance)
        )
        return self._path(problem, model, fits, scores, n_iter=n_passes, converged=model.all_converged)

    def _path(
        self,
        problem: Problem,
        model: Subsets,
        fits: list[SubsetFit],
        scores: FloatArray,
        **fields: Any,
    ) -> SelectionPath:
        visited = [fit for fit in fits if _features_of(fit, problem).size]
        subsets = [_features_of(fit, problem) for fit in visited]
        total = model.information
        criterion = [
            _extended_bic(fit, subset.size, problem.n_features, total)
            for fit, subset in zip(visited, subsets, strict=True)
        ]
        return SelectionPath.from_subsets(
            subsets,
            n_features=problem.n_features,
            tie_break=scores,
            scores=scores,
            objective=np.asarray([fit.objective for fit in visited]),
            selected_size=subsets[int(np.argmin(criterion))].size if visited else None,
            remedy="raise ridge, or max_reweightings, or loosen tol.",
            **fields,
        )

    # -- concave penalties ----------------------------------------------------------------------

    def _reweighted(self, problem: Problem, model: Subsets, largest: int) -> SelectionPath:
        merged, distinct = without_copies(problem)  # copies could share a weight in any way
        models: CoupledModels
        if isinstance(problem.target, TimeToEvent):
            models = CoupledCox(merged, "efron", self.tol)
        else:
            models = CoupledLogistic(merged, self.tol)
        penalties = models.largest_penalty * np.geomspace(1.0, GRID_END, int(self.n_alphas))
        # A sample with weight two counts as two samples.
        most: float = max(model.information, float(np.count_nonzero(model.weight)))
        fits: dict[bytes, SubsetFit] = {}
        supports, levels = [], []
        with problem.progress.task("Penalties", penalties.size) as advance:
            for penalty in penalties:
                self._solve_reweighted(models, float(penalty))
                support = distinct[models.support]
                if support.size and support.tobytes() not in fits and support.size <= most:
                    fits[support.tobytes()] = model.fit(np.concatenate([support, _free_columns(problem)]))
                supports.append(support)
                levels.append(float(penalty))
                advance(1)
                if support.size >= largest:
                    break
        slopes = scatter_columns(distinct, problem.n_features, models.first_gradients())
        scores = entry_scores(supports, levels, slopes)
        converged = models.all_converged and model.all_converged
        return self._path(
            problem, model, list(fits.values()), scores, n_iter=models.n_solved, converged=converged
        )

    def _solve_reweighted(self, models: CoupledModels, penalty: float) -> None:
        """Solve weighted ℓ1 problems until the factors converge, starting with equal factors."""
        factors = np.ones(models.n_features)
        for _ in range(int(self.max_reweightings)):
            models.solve(penalty * factors)
            before = factors
            factors = tangent_factors(self.penalty, models.absolute_weights(), penalty, self.epsilon)
            if np.abs(factors - before).max(initial=0.0) <= REWEIGHTED_ENOUGH:
                break


def _free_columns(problem: Problem) -> IntArray:
    """The positions of the covariates behind the features."""
    rank = 0 if problem.adjust is None else problem.adjust.rank
    return np.arange(problem.n_features, problem.n_features + rank)


def _features_of(fit: SubsetFit, problem: Problem) -> IntArray:
    """The features of a fit, without the covariates."""
    return fit.columns if problem.adjust is None else fit.columns[fit.columns < problem.n_features]


def _extended_bic(fit: SubsetFit, k: int, n_features: int, total_weight: float) -> float:
    """Extended BIC: twice the loss, plus log n per weight, plus twice the log number of subsets of this size."""
    n_subsets = gammaln(n_features + 1) - gammaln(k + 1) - gammaln(n_features - k + 1)
    return float(2.0 * fit.objective + fit.coef.size * np.log(total_weight) + 2.0 * n_subsets)


# -- Concave penalties between ℓ0 and ℓ1, and how they are minimised through ℓ1 --
#
# A penalty :math:`\lambda\,\rho(|w|)` that is concave on the positive axis lies below its tangents; the one at the
# last weights is a weighted ℓ1 norm with factors :math:`\rho'(|w_k|)`. Minimising that instead and repeating never
# increases the objective. All penalties here have the slope one at zero, so the first problem is the LASSO


SCAD_SHAPE = 3.7
MCP_SHAPE = 3.0
SMALLEST_FACTOR = 1e-4  # a weight is never without any penalty

Slope = Callable[[FloatArray, float, float], FloatArray]


def _log_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    return epsilon / (epsilon + w)


def _root_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    return np.sqrt(epsilon / (epsilon + w))


def _scad_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    beyond = (SCAD_SHAPE * penalty - w) / ((SCAD_SHAPE - 1.0) * penalty)
    return np.where(w <= penalty, 1.0, np.maximum(beyond, 0.0))


def _mcp_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    return np.maximum(1.0 - w / (MCP_SHAPE * penalty), 0.0)


SURROGATES: dict[str, Slope] = {
    "log": _log_slope,
    "l0.5": _root_slope,
    "scad": _scad_slope,
    "mcp": _mcp_slope,
}


def tangent_factors(name: str, w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    """Slopes of the penalty at the absolute weights ``w``, in units of ``penalty``; one where there is no penalty."""
    if penalty == 0.0:  # all gradients are zero
        return np.ones_like(w)
    return np.maximum(SURROGATES[name](w, penalty, epsilon), SMALLEST_FACTOR)
