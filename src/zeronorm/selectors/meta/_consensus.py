"""Consensus: one ranking from several different selectors."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._cost import automatic_C
from zeronorm.engines._cox_scores import risk_sets_of
from zeronorm.engines._error_control import false_selection_bound
from zeronorm.engines._half_samples import half_samples
from zeronorm.engines._sparse_paths import distinct_columns, first_copies
from zeronorm.engines.elimination._smooth_models import least_missed_last
from zeronorm.engines.elimination._work import work_of_elimination
from zeronorm.registry import Registered, get_method, register
from zeronorm.resampling._fitted_path import fitted_path
from zeronorm.selection._covariates import Covariates, in_residual_deviations
from zeronorm.selection._kinds import count, exceptions, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection._shared import SharedValues
from zeronorm.selection.target import Labels, Real, TimeToEvent
from zeronorm.selectors._base import BaseSelector, SplittingSelector
from zeronorm.selectors._wrapping import fit_inside
from zeronorm.solvers.linear import prefers_gram, svm_loss

# Different methods for each kind of target: a filter, the zero norm, the ℓ1 norm, elimination. The methods for classes
# and the mean log rank were chosen among 70 combinations of seven methods on the data sets `TUNING` of the studies,
# those for a real target on two small data sets (boston, diabetes) and simulated problems. For times to an event the
# ℓ1 norm and elimination take ten to thirty times as long and, after the joint elimination, change the concordance of 5
# to 50 features by 0.011 at most (two data sets of 152 and 120 samples).
DEFAULT_METHODS = {
    Labels.task: ("fisher", "arom", "l1-svm", "rfe"),
    Real.task: ("fisher", "arom", "lasso", "rfe"),
    TimeToEvent.task: ("cox-score",),
}
ADJUSTED = {"l1-svm": "logistic-lasso"}  # what stands for a method that cannot have covariates
SHORTLIST = 100  # features that are ranked again jointly; 60 and 200 are nearly as good on the tuning data
# The C for the shortlist is found on the samples that also chose the shortlist, so it is too large: the penalty is
# multiplied by these factors, chosen on tuning data: among 0.3, 1, 3 and 10 for classes, among 3, 10, 30, 100, 300 and
# 1000 for a real target with no more samples than features.
PENALTY, PENALTY_OF_FEW = 3.0, 300.0
# Multiplications of one elimination from which on a tenth of the features is removed in each round instead of one, and
# models on tall data have the squared loss, for which Newton's method needs a quarter to an eighth of the time.
MUCH_WORK = 2e8


@register(
    "consensus",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Dwork et al. 2001 (rank aggregation); Saeys, Abeel & Van de Peer 2008",
    cost="the sum of its methods, times the number of halves if there are any",
    oracle="the aggregation by hand, and ridge regressions fitted again without each feature",
    avoid="a selection rule that must be simple to state",
    test_params=(
        {"selectors": [Registered("fisher"), Registered("shrunken-centroids")]},
        {"selectors": [Registered("fisher")], "n_subsamples": 4, "random_state": 0},
    ),
)
class Consensus(SplittingSelector):
    r"""Rank features by the agreement of several selectors.

    Each selector m ranks all features, on all samples or on each of B random halves of them. With
    :math:`r_{mb,j}` the rank of feature j (1 is best) features are ordered by

    - ``aggregation="log_rank"``: the smallest weighted mean of :math:`\log r_{mb,j}`. It favours top ranks:
      being first in one ranking outweighs being far behind in another;
    - ``"mean_rank"``: the smallest weighted mean of :math:`r_{mb,j}`, which is Borda's count;
    - ``"frequency"``: the largest ``frequencies_``, ties by mean log rank.

    The mean of several rankings reflects the value of each feature alone, not what it adds to the others: near copies
    get neighbouring ranks. So with ``refine=m`` the first m features are ranked again by backward elimination with
    ridge regression; the feature whose removal costs least is removed first. Without feature j the objective increases
    by :math:`\tfrac12 \|W_j\|^2 / (H^{-1})_{jj}`, with weights :math:`W = H^{-1}X^\top T` of the standardised features
    and :math:`H = X^\top X + \lambda I`. The penalty λ is three times the one with the best leave-one-out error. For a
    real target with no more samples than features it is 300 times that, since few samples estimate it poorly; near
    copies may then have neighbouring ranks. Times to an event are replaced by their martingale residuals, the first
    step towards Cox's model. Columns that are equal up to sign, shift and scale (1 - g and g, Fahrenheit
    and Celsius) carry the same information: the second one is ranked behind the first m.

    With ``weights="stability"`` the weight of a selector is the overlap of the sets of its q best features on
    different halves (mean share of common features, corrected for chance).

    With halves in complementary pairs ``false_selections(threshold)`` bounds the expected number of
    features whose frequency reaches the threshold although they belong to the first q of the consensus on
    half of the data with a probability below q/p (Shah & Samworth 2013). The halves must be independent: with
    ``groups`` in ``fit`` (several samples of each patient) they hold whole groups.

    Parameters
    ----------
    selectors
        None: fisher, arom and rfe, with l1-svm for classes and lasso for a real target; cox-score for times to an
        event.
    n_features_to_select
        None: half of the features.
    weights
        One number for each selector, "equal" or "stability", which needs ``n_subsamples`` of two or more.
    n_subsamples
        An even number. 0: all samples are ranked once.
    subset_size
        The number q above. None: the square root of the number of features.
    refine
        The number m above; 0 keeps the order of the aggregation. "auto": 100 for the default methods, 0 for
        ``aggregation="frequency"`` and for given selectors.
    task
        It must be the task of the selectors.
    n_jobs
        The selectors and halves are divided among them.
    random_state
        It determines the halves, and every ``random_state`` of the selectors inside that is not set.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features_in_,)
        Share of the halves on which the feature is among the first q of the consensus; without halves the share of
        the selectors that have it among their first q.
    mean_log_ranks_ : ndarray of shape (n_features_in_,)
        The weighted mean log rank of each feature.
    ranks_ : ndarray of shape (n_selectors, n_features_in_)
        Rank of each feature by each selector, 1 for the best; the mean over the halves if there are any.
    weights_ : ndarray of shape (n_selectors,)
        Weight of each selector; the weights add up to one.
    subset_size_ : int
        The number q of features in a subset.
    costs_ : list of float or None
        The C that each selector found; None for selectors that do not search for it. Empty if there are halves.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import Consensus, FisherScore, Relief
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = Consensus([FisherScore(), Relief()], n_features_to_select=2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(n_subsamples=(count(0), "0 ranks once, on all samples"))

    def __init__(
        self,
        selectors: Sequence[Any] | None = None,
        *,
        n_features_to_select: int | float | None = None,
        aggregation: Literal["log_rank", "mean_rank", "frequency"] = "log_rank",
        weights: Literal["equal", "stability"] | Sequence[float] = "equal",
        n_subsamples: int = 0,
        subset_size: int | None = None,
        refine: int | Literal["auto"] = "auto",
        task: Literal["classification", "regression", "survival"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.selectors = selectors
        self.n_features_to_select = n_features_to_select
        self.aggregation = aggregation
        self.weights = weights
        self.n_subsamples = n_subsamples
        self.subset_size = subset_size
        self.refine = refine
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        named = self._named_selectors(quick_elimination(problem))
        refuse_own_adjust(self, named)
        p = problem.n_features
        self.subset_size_ = max(1, round(p**0.5)) if self.subset_size is None else min(self.subset_size, p)
        parts = self._samples(problem)
        seeds = iter(problem.rng.spawn(len(named) * len(parts)))
        tasks = [
            (selector, rows, next(seeds), problem.shared.of_member(i))
            for rows in parts
            for i, (_, selector) in enumerate(named)
        ]
        target = problem.target.labels()
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        ranks = np.empty((len(parts), len(named), p), dtype=np.int32)
        stopped: dict[str, None] = {}  # selectors that did not converge, in order
        costs = []
        with problem.progress.task("Ranking", len(tasks)) as advance:
            data = problem.design, target, problem.sample_groups, problem.adjust
            fits = (delayed(_rank)(selector, *data, *rest) for selector, *rest in tasks)
            for i, (rank, has_converged, cost) in enumerate(parallel(fits)):
                ranks[divmod(i, len(named))] = rank
                costs.append(cost)
                if not has_converged:
                    stopped[named[i % len(named)][0]] = None
                advance(1)
        self.ranks_ = ranks[0] if len(parts) == 1 else ranks.mean(axis=0)
        self.costs_ = costs if len(parts) == 1 else []
        path = self._path(ranks, list(stopped))
        n_refined = min(self._length_of_shortlist(), p)
        return path if n_refined < 2 else refined(path, problem, n_refined)

    def _length_of_shortlist(self) -> int:
        if self.refine != "auto":
            return int(self.refine)
        return SHORTLIST if self.selectors is None and self.aggregation != "frequency" else 0

    def _path(self, ranks: NDArray[np.int32], stopped: list[str]) -> SelectionPath:
        """The path of the consensus; ``ranks`` by sample, selector and feature."""
        is_first = ranks <= self.subset_size_
        self.weights_ = self._weights(is_first)
        log_ranks = np.tensordot(np.log(ranks), self.weights_, axes=(1, 0))  # by sample and feature
        self.mean_log_ranks_ = log_ranks.mean(axis=0)
        self.frequencies_ = self._frequencies(is_first, log_ranks)
        if self.aggregation == "mean_rank":
            key = np.tensordot(ranks.mean(axis=0), self.weights_, axes=(0, 0))
            keys: tuple[FloatArray, ...] = (self.mean_log_ranks_, key)
        elif self.aggregation == "frequency":
            keys = (self.mean_log_ranks_, -self.frequencies_)
        else:
            keys = (-self.frequencies_, self.mean_log_ranks_)
        return SelectionPath(
            order=np.lexsort(keys),
            scores=-keys[-1],
            n_iter=ranks.shape[0] * ranks.shape[1],
            converged=not stopped,
            remedy=f"{' and '.join(stopped)} stopped early, so the ranking is approximate. Give 'selectors' "
            "without it or with a larger max_iter, or use one method alone.",
        )

    def _frequencies(self, is_first: NDArray[np.bool_], log_ranks: FloatArray) -> FloatArray:
        """Share of the halves whose consensus has a feature among its first q; without halves, of the selectors."""
        n_halves, _, p = is_first.shape
        if n_halves == 1:
            return np.asarray(np.tensordot(is_first[0], self.weights_, axes=(0, 0)))
        chosen = np.zeros(p)
        for row in log_ranks:
            chosen[np.argsort(row, kind="stable")[: self.subset_size_]] += 1.0
        return np.asarray(chosen / n_halves)

    def false_selections(self, threshold: float = 0.75) -> float:
        """Bound on the expected number of false features with a frequency of at least ``threshold``.

        Parameters
        ----------
        threshold : share of the halves, above one half.
        """
        check_is_fitted(self)
        if self.n_subsamples == 0:
            raise ValueError(
                "A bound on false selections needs frequencies on halves of the data. Set 'n_subsamples' of "
                "Consensus to 50 or more."
            )
        return false_selection_bound(self.subset_size_, self.n_features_in_, threshold)

    # -- selectors, samples and weights ---------------------------------------------------------

    def _named_selectors(self, elimination: dict[str, Any]) -> list[tuple[str, Any]]:
        if self.selectors is None:
            names = default_methods(self.task, is_adjusted=self.adjust is not None)
            return default_candidates(self.task, elimination, names)
        return named_selectors(self.selectors, self.task)

    def _check_parameters(self) -> None:
        if isinstance(self.weights, str) and self.weights == "stability" and self.n_subsamples < 2:
            raise parameter_error(self, "weights", "'equal' when 'n_subsamples' is below 2")

    def _samples(self, problem: Problem) -> list[IntArray | None]:
        if self.n_subsamples == 0:
            return [None]
        return list(half_samples(problem.target, problem.sample_groups, problem.rng, count=self.n_subsamples))

    def _weights(self, is_first: NDArray[np.bool_]) -> FloatArray:
        n_halves, n_selectors, p = is_first.shape
        if not isinstance(self.weights, str):
            given = np.asarray(self.weights, dtype=np.float64)
            if given.shape != (n_selectors,) or not np.all(given >= 0.0) or not 0.0 < given.sum() < np.inf:
                raise parameter_error(
                    self, "weights", f"'equal', 'stability' or {n_selectors} numbers from 0, not all 0"
                )
            return np.asarray(given / given.sum())
        if self.weights == "equal" or n_selectors == 1:
            return np.full(n_selectors, 1.0 / n_selectors)
        share = is_first.mean(axis=0)  # by selector and feature
        by_chance = self.subset_size_ / p
        # Nogueira, Sechidis & Brown 2018: one minus the variance of membership over that of random sets
        variance = (n_halves / (n_halves - 1) * share * (1 - share)).mean(axis=1)
        stability = np.clip(1.0 - variance / max(by_chance * (1 - by_chance), 1e-300), 0.0, 1.0)
        if not stability.any():
            return np.full(n_selectors, 1.0 / n_selectors)
        return np.asarray(stability / stability.sum())


def refined(path: SelectionPath, problem: Problem, n_refined: int) -> SelectionPath:
    """The path with its first features ranked again by a joint elimination; the scores stay with the ranks.

    Times to an event are replaced by martingale residuals: events minus expected events without any feature. In a
    ridge regression a column and its copy share one weight and would both be kept, so copies are ranked last.
    """
    if problem.target.kind == TimeToEvent.kind:
        problem = replace(problem, target=Real.of(null_residuals(problem)))
    first = path.order[:n_refined]
    standardized = problem.design.take(first).standardized(sample_weight=problem.sample_weight)
    if problem.adjust is not None:
        standardized = in_residual_deviations(standardized, problem.adjust)
    distinct = distinct_columns(first_copies(standardized))
    design = replace(problem, design=standardized.take(distinct)).residual_design()
    weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
    targets = problem.target.around_zero().columns()
    targets = problem.residuals(targets - np.average(targets, axis=0, weights=weight))
    cost = automatic_C(replace(problem, design=design)).raw
    are_few = not problem.target.has_classes and problem.n_samples <= problem.n_features
    factor = PENALTY_OF_FEW if are_few else PENALTY
    gradient = design.transpose_dot(weight[:, None] * targets)
    kept = distinct[least_missed_last(design.sandwich(weight), gradient, factor / cost)]
    order = path.order.copy()
    order[:n_refined] = first[np.concatenate([kept, np.setdiff1d(np.arange(n_refined), distinct)])]
    assert path.scores is not None
    scores = path.scores.copy()
    scores[order[:n_refined]] = path.scores[first]
    return replace(path, order=order, scores=scores)


def default_methods(task: str, *, is_adjusted: bool) -> tuple[str, ...]:
    """The names of the default methods; with covariates only those that can have them."""
    names: tuple[str, ...] = DEFAULT_METHODS[task]
    return tuple(ADJUSTED.get(name, name) for name in names) if is_adjusted else names


def refuse_own_adjust(selector: Any, named: Sequence[tuple[str, Any]]) -> None:
    """Raise an error for selectors in a list that have covariates of their own."""
    for name, member in named:
        if getattr(member, "adjust", None) is not None:
            raise ValueError(
                f"The selector {name!r} of {type(selector).__name__} has a parameter 'adjust' of its own. Set it on "
                f"{type(selector).__name__}, which adjusts all of its selectors."
            )


def null_residuals(problem: Problem) -> FloatArray:
    """The martingale residuals of a target of times to an event: events minus those expected without any feature."""
    sets = risk_sets_of(problem)
    return -sets.at(np.zeros(problem.n_samples)).gradient()


def quick_elimination(problem: Problem) -> dict[str, Any]:
    """Settings of RFE that limit the time of an elimination on large data."""
    if work_of_elimination(problem) <= MUCH_WORK:
        return {}
    loss = svm_loss("hinge", None if problem.target.has_classes else 0.0)
    if prefers_gram(problem.design.shape, loss):
        return {"step": 0.1}
    return {"step": 0.1, "loss": "squared"}


def member_names(consensus: Consensus) -> list[str]:
    """Names of the selectors of a consensus, in the order of its ``ranks_``."""
    return [name for name, _ in consensus._named_selectors({})]


def named_selectors(given: Sequence[Any], task: str) -> list[tuple[str, Any]]:
    """Names and selectors of a list that holds selectors, names of methods and pairs of both."""
    named = []
    for item in given:
        if isinstance(item, str):
            named += default_candidates(task, {}, (item,))
        else:
            named.append(item if isinstance(item, tuple) else (type(item).__name__, item))
    return named


def default_candidates(
    task: str, elimination: dict[str, Any], names: tuple[str, ...] | None = None
) -> list[tuple[str, Any]]:
    """Names and default selectors; RFE gets the settings ``elimination``."""
    candidates = []
    for name in DEFAULT_METHODS[task] if names is None else names:
        cls = get_method(name).cls
        known = cls().get_params(deep=False)
        settings: dict[str, Any] = {"task": task} if "task" in known else {}
        if name == "rfe":
            settings |= elimination
        candidates.append((name, cls(**settings)))
    return candidates


def _rank(
    selector: BaseEstimator,
    design: Design,
    target: NDArray[Any],
    groups: NDArray[Any] | None,
    adjust: Covariates | None,
    rows: IntArray | None,
    rng: np.random.Generator,
    shared: SharedValues,
) -> tuple[NDArray[np.int32], bool, float | None]:
    """Rank of every feature, 1 for the best; whether the selector converged; and the C it found."""
    if rows is not None:  # other rows share only the C
        design, target, shared = design.take_rows(rows), target[rows], SharedValues(shared.C)
        groups = None if groups is None else groups[rows]
        adjust = None if adjust is None else adjust.take(rows)
    fitted = fit_inside(selector, design, target, rng, groups, shared, adjust)
    path = fitted_path(fitted, design.n_features)
    return (path.position() + 1).astype(np.int32), path.converged, _C_found(fitted)


def _C_found(fitted: Any) -> float | None:
    is_open = isinstance(fitted, BaseSelector) and isinstance(getattr(fitted, "C", None), str)
    cost = getattr(fitted, "C_", None) if is_open else None
    return float(cost) if isinstance(cost, numbers.Real) else None
