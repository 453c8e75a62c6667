"""Automatic choice of the whole procedure inside ``fit``, so that cross-validation measures the error of all of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.design import in_one_piece
from zeronorm.engines.elimination._work import work_of_elimination
from zeronorm.engines.pipeline_choice._inner_folds import thinned, usual_folds, usual_repeats
from zeronorm.engines.pipeline_choice._nonlinear import (
    CLEARLY,
    CONSENSUS,
    PROMISING,
    RELIEF,
    Pipeline,
    is_searched,
    nonlinear_order,
    promising_pipeline,
    standard_errors_ahead,
)
from zeronorm.engines.pipeline_choice._units import STEP, ProblemInUnits, chosen_units, in_units
from zeronorm.execution import one_thread_for_products
from zeronorm.registry import get_method, register
from zeronorm.resampling._folds import FoldPlan, smallest_size
from zeronorm.resampling._scored_paths import Paths, score_paths
from zeronorm.resampling._size_rules import SizeRule, choose_sizes, smoothed
from zeronorm.resampling._splits import Split, make_splits
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors._ridge import StandardizedTunedRidge
from zeronorm.resampling.predictors._units import UNITS, InUnits, UnitsName
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, TargetOutlierWarning
from zeronorm.selection._shared import SharedValues
from zeronorm.selection.target import Labels, Real, TimeToEvent
from zeronorm.selectors._base import BaseSelector, SplittingSelector
from zeronorm.selectors.meta._consensus import (
    SHORTLIST,
    Consensus,
    default_candidates,
    default_methods,
    member_names,
    named_selectors,
    quick_elimination,
    refined,
)
from zeronorm.selectors.meta._selector_cv import plan_of_sizes, summary

# Up to this number of multiplications an elimination of one feature at a time takes less than one of a fifth
# (50 × 2000: 7 against 13 ms; 80 × 20,000: 268 against 70 ms).
WORK_OF_ONE_BY_ONE = 1e7
# The rankings of the linear candidate for classes, on all samples; those for other targets are the ones of `Consensus`.
# Mean balanced error of a linear support vector machine on 5 to 50 features of the data sets `TUNING` of the studies:
# with two classes 10.9 % (the four methods of `Consensus` with their joint elimination, mean ranks over the folds:
# 11.0 %; with it these two have 11.5 %), with several 21.9 % (23.9 %; 24.1 % without the joint elimination).
RANKINGS_OF_CLASSES = {"binary": ("arom", "zeronorm-svm"), "multiclass": ("arom", "rfe")}
NOT_REFINED = "binary"  # the kind of target without a joint elimination
# Left out of the consensus in repeats, where it takes up to half of the time.
SLOW_METHOD = "lasso"
# Up to this number of multiplications in an elimination one thread is used: with several, the many small products take
# much more processor time, most of it spent waiting.
WORK_OF_ONE_THREAD = 2e9
# The best C of the ℓ1 norm varies with the root of the number of samples: down to this fraction of the samples by less
# than one step of its path.
PART_OF_THE_SAME_COST = 0.25
LINEAR_COSTS = (1.0, 0.1, 0.01)  # C of the linear SVMs that are compared, the usual one first
SIZES_FOR_COSTS = 8  # they are compared at about so many of the sizes
FEW_COLUMNS = 50  # up to this number of columns every size is tried
# With more, every size up to 12, then each by this factor larger than the last.
EVERY_SIZE, NEXT_SIZE = 12, 1.28
LARGEST_DEFAULT_SIZE = 500
# Lower bound of R²: the error of a linear model far from its samples is unbounded.
WORST_SHARE = -1.0
SCORES_WITHOUT_FEATURES = {Real.kind: 0.0, TimeToEvent.kind: 0.5}  # R² and concordance
ROUNDING_SHARE = 1e-9  # with two folds a gain in only one of them is exactly one standard error


@dataclass(frozen=True)
class _Inner:
    """The folds of all repeats, the first repeat first, and what all of them share."""

    target: NDArray[Any]
    splits: list[Split]
    n_folds: int
    is_subsample: bool
    keeps_C: bool  # whether the folds use the C found on all samples
    seed: int
    known_C: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    """A pipeline with its scores (one row per fold, one column per size) and the subsets that were scored."""

    pipeline: Pipeline
    scores: FloatArray
    selected: list[list[IntArray]]


@register(
    "auto",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Breiman et al. 1984 (one-standard-error rule)",
    cost="five to forty rankings by each of two to four methods, and their scores: one to thirteen times a consensus",
    oracle="every method cross-validated alone with the same C gives the same scores",
    avoid="a selection rule that must be simple to state; too little time for several rankings by each of its methods",
    test_params=(
        {"selectors": ("fisher", "svm-weights"), "cv": 2, "random_state": 0},
        {"selectors": ("lasso", "random"), "cv": 2, "task": "regression", "random_state": 8},
    ),
)
class AutoSelector(SplittingSelector):
    r"""Choose the ranking, the predictor and the number of features by cross-validation inside ``fit``.

    The linear candidate ranks features by the consensus of a few methods (see `Consensus`). With two classes these are
    AROM and the zero-norm SVM, with several AROM and RFE with a joint elimination of the first features; for other
    targets the mean log ranks over all inner folds have a joint elimination too. Linear support vector machines with C
    of 1, 0.1 and 0.01 score its first k features, and the one with the best size is kept.

    For classes, relief by elimination (`Relief` with ``step``) and support vector machines with Gaussian kernels are
    tried too. With :math:`s_j` the score of the linear candidate at its best size in fold j and :math:`t_j` that of the
    best nonlinear one (which has the better mean in the first repeat), the nonlinear one replaces it if, over all
    repeats of J folds,

    .. math:: \bar d > 2 \hat\sigma / \sqrt{J}, \qquad d_j = t_j - s_j, \quad
        \hat\sigma^2 = \tfrac1{J-1}\sum_j (d_j - \bar d)^2.

    The number of features is chosen on the scores of all repeats of the folds; ``rule`` says how (see `SelectorCV`),
    and ``sizes_`` has the three nested choices. A feature that every inner fold selects is never left out of the chosen
    ones, and one that none selects is never among them.

    The C that a method finds on all samples is used in the folds too. On large data the choice is made on folds of a
    random subsample of 2000 to 5000 samples (with its own search for C where this is less than a quarter); the final
    ranking uses all samples.

    The scores were used to choose, so they are optimistic. The error of the whole procedure, choice included, comes
    from ``evaluate`` or ``zeronorm.select(method="auto")``.

    Parameters
    ----------
    selectors
        None: the candidates above; for times to an event the methods of `Consensus`, with Cox regression. A list of
        methods: the consensus of these, or the one among them that is better at its best size by more than one standard
        error. Methods that cannot handle the target (binary methods with more than two classes) are left out.
    n_features_to_select
        None: cross-validation chooses it.
    estimator
        It also scores the subsets of the consensus and of relief; no other predictor is tried. None, for a real
        target: ridge regression with a penalty chosen by leave-one-out scores them.
    cv
        None: five folds, three from 200 samples (or groups of samples) on; eight repeats of them below 100 samples,
        four below 1000. A number of folds is shuffled.
    scoring
        None: the balanced accuracy of classes; for a real target R², at least -1; for times to an event the
        concordance; with an ``estimator`` its own ``score``.
    units
        How samples are compared. "standardized": every column with mean 0 and variance 1. "common": all columns divided
        by one number. For values from zero on, "log": standardised logarithms, with the median of the positive values
        as unit; "root": standardised square roots. "rows": each sample divided by its length, for prediction by that of
        its selected features; "root rows": after square roots. "auto": "standardized", unless others predict the inner
        folds better by more than one standard error and one hundredth in a quick race; fewer than 100 samples are too
        few for more than "common" and "log". With ``selectors``, an ``estimator``, covariates or times to
        an event the columns are standardised.
    rule
        "all": the best size, beyond which features do not help. "recommended": the smallest size that is nearly as
        good, within about half a standard error. "fewest": the smallest within about one standard error. For a real
        target the smallest number is chosen if no number predicts better than the mean of the target by more than one
        standard error.
    sizes
        None: every size up to 12 (up to 50 columns, every size), then each about a quarter larger than the last, 500 at
        most.
    n_jobs
        The folds are divided among them.
    random_state
        It determines the folds, and every ``random_state`` of the selectors inside that is not set.

    Attributes
    ----------
    chosen_ : str
        Name of the ranking that was kept: "consensus", "relief", or a method of ``selectors``.
    predictor_ : estimator
        The unfitted predictor that goes with it.
    units_ : str
        The units that were used.
    sizes_ : dict
        Number of features by each rule: "fewest", "recommended", "all".
    frequencies_ : ndarray of shape (n_features_in_,)
        Share of the inner folds that select the feature, at the chosen size.
    selector_ : Consensus
        The methods, fitted on all samples; ``selector_.ranks_`` has their rankings.
    method_scores_ : dict
        Score of each candidate in each fold, at its best size: the consensus, and a nonlinear one that was better in
        the first repeat; or all methods of ``selectors`` and their consensus.
    cv_results_ : dict
        Sizes, scores and subsets of the candidate that was kept, as in ``SelectorCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import AutoSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = AutoSelector(random_state=1).fit(X, y)
    >>> selector.chosen_, selector.get_support(indices=True).tolist()
    ('consensus', [0, 1])
    """

    def __init__(
        self,
        selectors: Sequence[Any] | None = None,
        *,
        n_features_to_select: int | float | None = None,
        task: Literal["classification", "regression", "survival"] = "classification",
        estimator: Any = None,
        cv: Any = None,
        scoring: Any = None,
        units: Literal["auto"] | UnitsName = "auto",
        rule: SizeRule = "recommended",
        sizes: Sequence[int] | None = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.selectors = selectors
        self.n_features_to_select = n_features_to_select
        self.task = task
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.units = units
        self.rule = rule
        self.sizes = sizes
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def verdict(self) -> str:
        """The choice as text."""
        check_is_fitted(self, "method_scores_")
        if self.units_ == "standardized":
            return self._verdict_on_methods()
        how = (
            "chosen because it predicted the inner folds clearly better"
            if self.units == "auto"
            else "as given"
        )
        return f"All is done on the {UNITS[self.units_].text}, {how}. {self._verdict_on_methods()}"

    def _verdict_on_methods(self) -> str:
        if self.selectors is None:
            return self._verdict_on_pipelines()
        names = ", ".join(name for name in self.method_scores_ if name != CONSENSUS)
        n_methods = len(self.method_scores_) - (CONSENSUS in self.method_scores_)
        if n_methods == 1:
            return f"One method ({names}) was given."
        reason = (
            "No method was better than their consensus by more than one standard error."
            if self.chosen_ == CONSENSUS
            else f"{self.chosen_} was better than their consensus by more than one standard error."
        )
        return f"{n_methods} methods ({names}) were compared on the same inner folds. {reason}"

    def _verdict_on_pipelines(self) -> str:
        consensus = consensus_text(member_names(self.selector_), is_refined=bool(self.selector_.refine))
        ranking = "relief" if self.chosen_ == RELIEF else "the consensus"
        ahead = "by more than two standard errors: the classes depend on the features nonlinearly."
        chosen = self.predictor_.predictor if isinstance(self.predictor_, InUnits) else self.predictor_
        if getattr(chosen, "kernel", None) == "rbf" and self.estimator is None:
            return (
                f"A support vector machine with a Gaussian kernel on the features of {ranking} predicted the inner "
                f"folds better than a linear one on those of {consensus}, {ahead}"
            )
        if self.chosen_ == RELIEF:
            return (
                f"The features of relief predicted the inner folds better than those of {consensus}, {ahead}"
            )
        return f"The features are those of {consensus}; nothing else was clearly better on the inner folds."

    def _select(self, problem: Problem) -> SelectionPath:
        target, seed = problem.target.labels(), int(problem.rng.integers(2**31))
        inner = self._inner(problem, target, seed)
        view = self._in_units(problem, inner)
        problem, self.units_ = view.problem, view.units
        members = self._candidates(problem, view.standardize)
        self.selector_ = self._fitted(members, problem, target, np.arange(problem.n_samples), seed)
        if inner.keeps_C:
            inner = replace(inner, known_C=tuple(self.selector_.costs_))
        path = self.selector_.path_
        sizes = self._sizes_to_try(path.constrained(problem.feature_groups, problem.always_keep), problem)
        plan = self._plan(view, target, sizes, seed)
        choose = self._choose_pipeline if self.selectors is None else self._choose_method
        return choose(members, problem, inner, plan)

    def _plan(self, view: ProblemInUnits, target: NDArray[Any], sizes: IntArray, seed: int) -> FoldPlan:
        """The plan for scoring the sizes on samples as measured; the predictor knows the units."""
        problem = view.original
        plan = plan_of_sizes(self, problem, problem.with_covariates(), target, sizes, seed)
        if work_of_elimination(problem) <= WORK_OF_ONE_THREAD:
            plan = replace(plan, threads_per_task=1)
        if self.estimator is None and problem.target.kind == Real.kind:
            plan = replace(plan, estimator=StandardizedTunedRidge(), unset_in_estimator=[])
        return replace(plan, estimator=view.predictor(plan.estimator))

    def _in_units(self, problem: Problem, inner: _Inner) -> ProblemInUnits:
        """The problem in the given units, or in those of the best predictions on the inner folds."""
        is_open = problem.adjust is None and (problem.target.has_classes or problem.target.kind == Real.kind)
        if self.units not in ("auto", "standardized") and not is_open:
            raise parameter_error(
                self, "units", "'auto' or 'standardized' with covariates or times to an event"
            )
        if self.units != "auto":
            return in_units(problem, self.units)
        if self.selectors is not None or self.estimator is not None or not is_open:
            return ProblemInUnits(problem)
        plan = self._plan(ProblemInUnits(problem), inner.target, np.asarray([1]), inner.seed)
        elimination = get_method("rfe").cls(step=STEP, task=self.task)
        with _limited_threads(problem):
            return chosen_units(elimination, problem, inner.target, plan, inner.splits, inner.n_folds)

    def _inner(self, problem: Problem, target: NDArray[Any], seed: int) -> _Inner:
        groups = problem.sample_groups
        cv = usual_folds(problem.n_samples, groups) if self.cv is None else self.cv
        is_usual = self.selectors is None and isinstance(cv, int)
        repeats = usual_repeats(problem.n_samples, groups) if is_usual else 1
        splits = _repeated_splits(cv, problem, target, seed, repeats)
        used = thinned(splits, problem, seed) if self.selectors is None else splits
        is_small_part = used[0].train.size < PART_OF_THE_SAME_COST * splits[0].train.size
        return _Inner(
            target,
            used,
            n_folds=cv if is_usual else len(used),
            is_subsample=used is not splits,
            keeps_C=not is_small_part,
            seed=seed,
        )

    # -- the default candidates -----------------------------------------------------------------

    def _choose_pipeline(
        self, members: list[tuple[str, Any]], problem: Problem, inner: _Inner, plan: FoldPlan
    ) -> SelectionPath:
        """The path of the linear candidate, or of a nonlinear one that is clearly better."""
        n = inner.n_folds
        first, others = inner.splits[:n], inner.splits[n:]
        fits = self._rank_folds(members, problem, first, inner, inner.known_C)
        fits += self._quick_fits(members, problem, others, inner)
        ranked = [{CONSENSUS: self._constrained(fit.path_, problem)} for fit in fits]
        chosen = linear = self._best_linear(plan, ranked, inner.splits, problem)
        in_first = replace(linear, scores=linear.scores[:n], selected=linear.selected[:n])
        promising = self._nonlinear(plan, ranked[:n], first, in_first, problem, inner)
        self.method_scores_ = {CONSENSUS: _at_best(plan, linear.scores)}
        if promising is not None:
            better = self._better_ranking(promising, plan, ranked, problem, inner)
            kind = ", gaussian" if self.estimator is None else ""
            self.method_scores_[f"{better.pipeline.ranking}{kind}"] = _at_best(plan, better.scores)
            before, after = self.method_scores_.values()
            if standard_errors_ahead(after, before, n) > CLEARLY:
                chosen = better
        self.chosen_, self.predictor_ = chosen.pipeline.ranking, chosen.pipeline.predictor
        path = self._final_path(self.chosen_, fits, problem, inner)
        return self._sized(path, plan, inner, chosen.scores, chosen.selected, problem)

    def _best_linear(
        self, plan: FoldPlan, ranked: list[Paths], splits: list[Split], problem: Problem
    ) -> _Candidate:
        """The consensus with the linear predictor whose best size has the best mean score, among some of the sizes."""
        usual = plan.estimator
        predictors = [usual]
        inside = usual.predictor if isinstance(usual, InUnits) else usual
        if self.estimator is None and isinstance(inside, StandardizedSVC):
            name = "C" if inside is usual else "predictor__C"
            predictors += [clone(usual).set_params(**{name: C}) for C in LINEAR_COSTS[1:]]
        if len(predictors) > 1:
            some = replace(plan, sizes=plan.sizes[:: max(1, len(plan.sizes) // SIZES_FOR_COSTS)])
            best = [
                float(
                    _at_best(
                        some,
                        self._candidate(Pipeline(CONSENSUS, each), some, ranked, splits, problem).scores,
                    ).mean()
                )
                for each in predictors
            ]
            predictors = [predictors[int(np.argmax(best))]]
        return self._candidate(Pipeline(CONSENSUS, predictors[0]), plan, ranked, splits, problem)

    def _nonlinear(
        self,
        plan: FoldPlan,
        ranked: list[Paths],
        splits: list[Split],
        linear: _Candidate,
        problem: Problem,
        inner: _Inner,
    ) -> Pipeline | None:
        """A nonlinear pipeline with the better mean in the first repeat: relief, or one with a Gaussian SVM."""
        if problem.adjust is not None or not is_searched(problem, splits):
            return None
        orders = self._nonlinear_paths(problem, splits, inner)
        ranked = [{**paths, **order} for paths, order in zip(ranked, orders, strict=True)]
        known = _at_best(plan, linear.scores)
        usual = plan.estimator
        wrap = usual.around if isinstance(usual, InUnits) else None
        found: Pipeline | None = Pipeline(RELIEF, self.estimator)
        if self.estimator is None:
            found = promising_pipeline(plan, ranked, splits, known, self.n_jobs, wrap)
        if found is None:
            return None
        candidate = self._candidate(found, plan, ranked, splits, problem)
        return found if _at_best(plan, candidate.scores).mean() > known.mean() else None

    def _candidate(
        self, pipeline: Pipeline, plan: FoldPlan, ranked: list[Paths], splits: list[Split], problem: Problem
    ) -> _Candidate:
        unset = plan.unset_in_estimator if pipeline.predictor is plan.estimator else []
        own = replace(plan, estimator=pipeline.predictor, unset_in_estimator=unset)
        alone = [{pipeline.ranking: paths[pipeline.ranking]} for paths in ranked]
        return _Candidate(pipeline, *self._scored(own, alone, splits, problem)[pipeline.ranking])

    def _better_ranking(
        self, found: Pipeline, plan: FoldPlan, ranked: list[Paths], problem: Problem, inner: _Inner
    ) -> _Candidate:
        """A nonlinear pipeline over all repeats; with an own predictor for the ranking that it predicts better.

        The consensus is kept unless relief is better by more than one standard error.
        """
        of_relief = self._nonlinear_paths(problem, inner.splits, inner)
        relief = self._candidate(replace(found, ranking=RELIEF), plan, of_relief, inner.splits, problem)
        if self.estimator is not None:
            return relief
        consensus = self._candidate(replace(found, ranking=CONSENSUS), plan, ranked, inner.splits, problem)
        of_both = (_at_best(plan, each.scores) for each in (relief, consensus))
        ahead = standard_errors_ahead(next(of_both), next(of_both), inner.n_folds)
        return relief if ahead > PROMISING else consensus

    def _scored(
        self, plan: FoldPlan, ranked: list[Paths], splits: list[Split], problem: Problem
    ) -> dict[str, tuple[FloatArray, list[Any]]]:
        """Scores and subsets of each ranking."""
        ranked = [{name: path.beside(problem.covariates) for name, path in paths.items()} for paths in ranked]
        scores, selected = score_paths(plan, ranked, splits, self.n_jobs, problem.progress)
        if self.scoring is None and problem.target.kind == Real.kind:
            scores = {name: np.maximum(found, WORST_SHARE) for name, found in scores.items()}
        return {name: (found, selected[name]) for name, found in scores.items()}

    def _quick_fits(
        self, members: list[tuple[str, Any]], problem: Problem, splits: list[Split], inner: _Inner
    ) -> list[Consensus]:
        """The consensus of the quick methods in the other repeats of the folds."""
        is_quick = [name != SLOW_METHOD for name, _ in members]
        many = work_of_elimination(problem) > WORK_OF_ONE_BY_ONE
        quick = [
            (name, _quicker(selector) if many else selector)
            for name, selector in members
            if name != SLOW_METHOD
        ]
        known = tuple(C for C, keep in zip(inner.known_C, is_quick, strict=False) if keep)
        return self._rank_folds(quick, problem, splits, inner, known)

    def _nonlinear_paths(self, problem: Problem, splits: list[Split], inner: _Inner) -> list[Paths]:
        orders = Parallel(n_jobs=self.n_jobs)(
            delayed(nonlinear_order)(get_method(RELIEF).cls, problem, inner.target, split.train)
            for split in splits
        )
        return [{RELIEF: self._constrained(SelectionPath(order=order), problem)} for order in orders]

    def _final_path(
        self, ranking: str, fits: list[Consensus], problem: Problem, inner: _Inner
    ) -> SelectionPath:
        """The ranking on all samples; that of the consensus for other targets than classes is the mean over the folds.

        With classes it was no better than the ranking on all samples, which does not depend on the folds.
        """
        whole = self.selector_.path_
        if ranking == RELIEF:
            order = nonlinear_order(
                get_method(RELIEF).cls, problem, inner.target, np.arange(problem.n_samples)
            )
        elif inner.is_subsample or problem.target.has_classes:
            order = whole.order
        else:
            log_ranks = np.mean([fit.mean_log_ranks_ for fit in fits], axis=0)
            start = SelectionPath(order=np.argsort(log_ranks, kind="stable"), scores=-log_ranks)
            with _limited_threads(problem):
                order = refined(start, problem, min(SHORTLIST, log_ranks.size)).order
        return replace(whole, order=order.astype(np.intp), scores=None)

    def _sized(
        self,
        path: SelectionPath,
        plan: FoldPlan,
        inner: _Inner,
        scores: FloatArray,
        selected: list[list[IntArray]],
        problem: Problem,
    ) -> SelectionPath:
        """The path with the chosen number of features, supported by the folds."""
        sizes = np.asarray(plan.sizes, dtype=np.intp)
        without = SCORES_WITHOUT_FEATURES.get(problem.target.kind) if self.scoring is None else None
        at = choose_sizes(sizes, scores, n_folds=inner.n_folds, no_features=without)
        self.sizes_ = {rule: int(sizes[index]) for rule, index in at.items()}
        self.cv_results_ = summary(sizes, scores, selected, inner.splits, inner.n_folds)
        self.frequencies_ = _frequencies([row[at[self.rule]] for row in selected], path.n_features)
        size = self.sizes_[self.rule]
        path = replace(path, order=supported_order(path.order, size, self.frequencies_))
        path = self._constrained(replace(path, scores=self.frequencies_), problem)
        return replace(path, selected_size=size)

    # -- given methods --------------------------------------------------------------------------

    def _choose_method(
        self, members: list[tuple[str, Any]], problem: Problem, inner: _Inner, plan: FoldPlan
    ) -> SelectionPath:
        """The path of the consensus of the given methods, or of the one that is better by one standard error."""
        fits = self._rank_folds(members, problem, inner.splits, inner, inner.known_C)
        ranked = [self._paths(members, fit, problem) for fit in fits]
        found = self._scored(plan, ranked, inner.splits, problem)
        self.method_scores_ = {name: _at_best(plan, scores) for name, (scores, _) in found.items()}
        self.chosen_, self.predictor_ = choose_method(self.method_scores_), plan.estimator
        path = self._paths(members, self.selector_, problem)[self.chosen_]
        return self._sized(path, plan, inner, *found[self.chosen_], problem)

    # -- sizes and fits -------------------------------------------------------------------------

    def _sizes_to_try(self, path: SelectionPath, problem: Problem) -> IntArray:
        if problem.n_features_to_select is not None:
            return np.asarray([max(problem.n_features_to_select, smallest_size(path))], dtype=np.intp)
        if self.sizes is not None:
            if max(self.sizes) > path.n_features:
                raise parameter_error(
                    self, "sizes", f"a list of counts up to the {path.n_features} features of X"
                )
            return np.unique(np.asarray(self.sizes, dtype=np.intp))
        start = smallest_size(path)
        grid = usual_sizes(path.n_features)
        return np.unique(np.maximum(grid, start))

    def _fitted(
        self,
        members: list[tuple[str, Any]],
        problem: Problem,
        target: NDArray[Any],
        rows: IntArray,
        seed: int,
        known_C: tuple[float | None, ...] = (),
    ) -> Consensus:
        """The methods, fitted on some of the samples; a known C is used instead of a search for it."""
        consensus = Consensus(
            members,
            task=self.task,
            n_features_to_select=1.0,
            feature_groups=problem.feature_groups,
            always_keep=problem.always_keep if problem.always_keep.size else None,
            refine=SHORTLIST if self.selectors is None and problem.target.kind != NOT_REFINED else 0,
            random_state=seed,
        )
        groups = None if problem.sample_groups is None else problem.sample_groups[rows]
        covariates = None if problem.adjust is None else problem.adjust.columns[rows]
        # The path records what did not converge, and this selector warns.
        with (
            suppress_nested_warnings(ConvergenceWarning, TargetOutlierWarning),
            _limited_threads(problem),
        ):
            design = in_one_piece(problem.design.take_rows(rows))
            shared = SharedValues(members_C=known_C)
            return consensus._fit(
                design, target[rows], {}, groups=groups, shared=shared, covariates=covariates
            )

    def _constrained(self, path: SelectionPath, problem: Problem) -> SelectionPath:
        return path.constrained(problem.feature_groups, problem.always_keep)

    def _paths(self, members: list[tuple[str, Any]], fitted: Consensus, problem: Problem) -> Paths:
        """The path of each method and, if there are several, of their consensus."""
        orders = {name: np.argsort(ranks) for (name, _), ranks in zip(members, fitted.ranks_, strict=True)}
        if len(members) > 1:
            orders[CONSENSUS] = fitted.path_.order
        whole = replace(fitted.path_, scores=None)
        return {
            name: self._constrained(replace(whole, order=order.astype(np.intp)), problem)
            for name, order in orders.items()
        }

    def _rank_folds(
        self,
        members: list[tuple[str, Any]],
        problem: Problem,
        splits: list[Split],
        inner: _Inner,
        known_C: tuple[float | None, ...],
    ) -> list[Consensus]:
        """The consensus of the methods on the training samples of each fold."""

        def fitted(split: Split) -> Consensus:
            seed = inner.seed + 1 + split.index
            return self._fitted(members, problem, inner.target, split.train, seed, known_C)

        return list(Parallel(n_jobs=self.n_jobs)(delayed(fitted)(split) for split in splits))

    def _candidates(self, problem: Problem, standardize: bool) -> list[tuple[str, Any]]:
        """Names and unfitted selectors that support the target; columns with a common scale are not standardised."""
        found = []
        for name, selector in self._named_selectors(problem.target.kind, quick_elimination(problem)):
            tasks = selector._tasks() if isinstance(selector, BaseSelector) else (problem.target.kind,)
            if problem.target.kind in tasks:
                copy = self._configured(selector, problem)
                if not standardize and "standardize" in copy.get_params(deep=False):
                    copy.set_params(standardize=False)
                found.append((name, copy))
        if not found:
            raise ValueError(
                f"The 'selectors' parameter of AutoSelector holds no method for a {problem.target.kind} target. Got "
                f"{[name for name, _ in self._named_selectors()]}; add one that supports it."
            )
        return found

    def _named_selectors(
        self, kind: str | None = None, elimination: dict[str, Any] | None = None
    ) -> list[tuple[str, Any]]:
        """The given selectors, or those for a kind of target; None: for every kind that the task has."""
        if self.selectors is not None:
            return named_selectors(self.selectors, self.task)
        if kind is None:
            kinds = tuple(RANKINGS_OF_CLASSES) if self.task == Labels.task else (self.task,)
        else:
            kinds = (kind,)
        names = [names_of_candidates(each, is_adjusted=self.adjust is not None) for each in kinds]
        return default_candidates(self.task, elimination or {}, tuple(dict.fromkeys(chain(*names))))

    def _check_parameters(self) -> None:
        names = [] if self.selectors is None else [name for name, _ in self._named_selectors()]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise parameter_error(
                self,
                "selectors",
                "a list of different names",
                f"{written(repeated)} twice; give pairs (name, selector)",
            )

    def _configured(self, selector: Any, problem: Problem) -> Any:
        """A clone with the task and the column settings of this selector."""
        copy = clone(selector)
        known = copy.get_params(deep=False)
        if "task" in known:
            copy.set_params(task=self.task)
        for name in ("feature_groups", "always_keep"):
            if getattr(self, name) is None:
                continue
            if name not in known:
                raise ValueError(
                    f"The '{name}' parameter of AutoSelector needs methods that have it too; "
                    f"{type(copy).__name__} does not. Leave it out of 'selectors'."
                )
            copy.set_params(**{name: getattr(problem, name)})  # of the candidates, without the covariates
        return copy

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return all(get_tags(selector).input_tags.sparse for _, selector in self._named_selectors())

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return all(get_tags(selector).input_tags.allow_nan for _, selector in self._named_selectors())


def _limited_threads(problem: Problem) -> AbstractContextManager[None]:
    is_little = work_of_elimination(problem) <= WORK_OF_ONE_THREAD
    return one_thread_for_products() if is_little else nullcontext()


def _quicker(selector: Any) -> Any:
    """The selector, with an elimination that removes fifths of the features instead of one at a time."""
    return clone(selector).set_params(step=0.2) if "step" in selector.get_params(deep=False) else selector


def _repeated_splits(cv: Any, problem: Problem, target: NDArray[Any], seed: int, repeats: int) -> list[Split]:
    """The splits of all repeats, or of one where there are too few different ones."""
    settings: dict[str, Any] = {"target": problem.target, "seed": seed}
    try:
        return make_splits(cv, target, problem.sample_groups, repeats=repeats, **settings)
    except ValueError:
        if repeats == 1:
            raise
        return make_splits(cv, target, problem.sample_groups, **settings)


def consensus_text(names: Sequence[str], is_refined: bool = True) -> str:
    """The consensus of some methods, or the only method, with the joint elimination that may follow, as text."""
    methods = f"the consensus of {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{methods} with a joint elimination of the first features" if is_refined else methods


def names_of_candidates(kind: str, *, is_adjusted: bool = False) -> tuple[str, ...]:
    """Names of the methods whose consensus is the default linear candidate for a kind of target."""
    usual = RANKINGS_OF_CLASSES.get(kind)
    return default_methods(kind, is_adjusted=is_adjusted) if usual is None else usual


def usual_sizes(n_features: int, largest: int = LARGEST_DEFAULT_SIZE) -> IntArray:
    """The sizes that are tried: every one with few columns, otherwise nearly equally spaced on a logarithmic scale."""
    if n_features <= FEW_COLUMNS:
        return np.arange(1, min(n_features, largest) + 1)
    n_larger = int(np.log(largest / EVERY_SIZE) / np.log(NEXT_SIZE)) + 1
    larger = np.round(EVERY_SIZE * NEXT_SIZE ** np.arange(1, n_larger + 1))
    grid = np.concatenate([np.arange(1, EVERY_SIZE + 1), larger, [n_features, largest]]).astype(np.intp)
    return np.unique(grid[grid <= min(n_features, largest)])


def _at_best(plan: FoldPlan, scores: FloatArray) -> FloatArray:
    """The scores of each fold at the size with the best smoothed mean."""
    sizes = np.asarray(plan.sizes, dtype=np.intp)
    return scores[:, int(np.argmax(smoothed(sizes, scores.mean(axis=0))))]


def _frequencies(subsets: list[IntArray], n_features: int) -> FloatArray:
    """Share of the subsets that hold each feature."""
    return np.asarray(np.bincount(np.concatenate(subsets), minlength=n_features) / len(subsets))


def supported_order(order: IntArray, size: int, frequencies: FloatArray) -> IntArray:
    """The order with features that every fold selects among the first ``size``, and those that none selects behind.

    All others keep their order.
    """
    is_first = np.zeros(order.size, dtype=bool)
    is_first[order[:size]] = True
    missing = order[(frequencies[order] == 1.0) & ~is_first[order]]
    unsupported = order[(frequencies[order] == 0.0) & is_first[order]]
    if not missing.size and not unsupported.size:
        return order
    kept = order[:size][frequencies[order[:size]] > 0.0]
    others = order[size:][(frequencies[order[size:]] > 0.0) & (frequencies[order[size:]] < 1.0)]
    never = order[frequencies[order] == 0.0]
    # The least frequent of the first make room for those that every fold selects.
    n_kept = max(0, min(kept.size, size - missing.size))
    by_frequency = np.argsort(-frequencies[kept], kind="stable")
    stay, leave = kept[np.sort(by_frequency[:n_kept])], kept[np.sort(by_frequency[n_kept:])]
    return np.concatenate([stay, missing, leave, others, never])


def choose_method(scores: dict[str, FloatArray]) -> str:
    """The name of the best method if it beats the consensus by more than one standard error over the folds."""
    best = max(scores, key=lambda name: float(scores[name].mean()))
    if CONSENSUS not in scores or best == CONSENSUS:
        return best
    is_better = standard_errors_ahead(scores[best], scores[CONSENSUS]) > 1.0 + ROUNDING_SHARE
    return best if is_better else CONSENSUS
