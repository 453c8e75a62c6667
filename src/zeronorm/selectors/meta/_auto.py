"""Automatic choice of the method inside ``fit``, so that cross-validation measures the error of the whole procedure."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import product
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from zeronorm._threads import one_thread_for_products
from zeronorm._types import FloatArray, IntArray, written
from zeronorm.registry import register
from zeronorm.resampling._folds import FoldPlan, FoldTask, run_tasks, smallest_size
from zeronorm.resampling._splits import Split, make_splits
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.resampling.predictors._default import class_weight_for
from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors._ridge import StandardizedTunedRidge
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, Progress, TargetOutlierWarning
from zeronorm.selection._shared import SharedValues
from zeronorm.selection.target import Labels, Real
from zeronorm.selectors._base import BaseSelector, SplittingSelector
from zeronorm.selectors.meta._consensus import (
    DEFAULT_METHODS,
    SHORTLIST,
    Consensus,
    default_candidates,
    named_selectors,
    quick_elimination,
    work_of_elimination,
)
from zeronorm.selectors.meta._selector_cv import LENGTH_OF_DEFAULT_GRID, choose_size, plan_of_sizes, summary

CONSENSUS = "consensus"
# Methods that are compared but not part of the consensus: good where the others fail, otherwise often poor.
OUTSIDE = {Labels.task: ("relief",), Real.task: ("gram-schmidt",)}
# Chosen on the tuning data of the study "defaults": below 200 samples (eight data sets) the error was 0.4 points lower
# with five folds than with three; above (four data sets) it was 0.5 points lower with three.
FOLDS, FOLDS_OF_MANY, MANY = 5, 3, 200
MOST_DISTANCES = 1e11  # multiplications for the distances between all samples; beyond, relief is left out
MOST_SAMPLES_OF_A_KERNEL = 2000  # for the check of nonlinear structure
FEW_FEATURES = 50
# On large data the method and the number of features are chosen on a random subsample: on as many samples as an
# elimination with this number of multiplications allows, within these bounds.
WORK_OF_A_FOLD = 5e8
FEWEST_TO_CHOOSE, MOST_TO_CHOOSE = 2000, 5000
# Up to this number of multiplications in an elimination one thread is used: with several, the many small products take
# much more processor time, most of it spent waiting.
WORK_OF_ONE_THREAD = 2e9
FEW_OF_A_CLASS = 30  # classes up to this size are used completely
# The best C of the ℓ1 norm varies with the root of the number of samples: down to this fraction of the samples by less
# than one step of its path.
PART_OF_THE_SAME_COST = 0.25
CLEARLY = 3.0  # standard errors by which a nonlinear model must be better
WORTH_A_WARNING = 0.05  # smallest difference of the mean scores
NONLINEARITY_SIZES = 6  # of more sizes only every other one is tried
NONLINEARITY_BLOCKS = 3  # blocks of sizes; after each the check ends if a warning is no longer possible
LARGEST_DEFAULT_SIZE = 1000
# Lower bound of R²: the error of a linear model far from its samples is unbounded.
WORST_SHARE = -1.0
ROUNDING_SHARE = 1e-9  # with two folds a gain in only one of them is exactly one standard error


@register(
    "auto",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression"),
    reference="Breiman et al. 1984 (one-standard-error rule)",
    cost="four or six rankings by each of five methods and their scores: one to nine times a consensus",
    oracle="every method cross-validated alone with the same C gives the same scores",
    avoid="a selection rule that must be simple to state; too little time for several rankings by each of its methods",
    test_params=(
        {"selectors": ("fisher", "svm-weights"), "cv": 2, "random_state": 0},
        {"selectors": ("lasso", "random"), "cv": 2, "task": "regression", "random_state": 8},
    ),
)
class AutoSelector(SplittingSelector):
    r"""Choose the consensus of several methods, or one of them where it is clearly better.

    All methods rank the features in each of J folds; so does their consensus (see `Consensus`: the mean log ranks, and
    with the default candidates a joint elimination of the first features). With :math:`s_{mjk}` the score of the first
    k features of method m in fold j, and :math:`d_{mj}` the difference to the consensus of its mean over the sizes k,
    the method with the largest :math:`\bar d_m` replaces the consensus if

    .. math:: \bar d_m > \hat\sigma_m / \sqrt{J}, \qquad \hat\sigma_m^2 = \tfrac1{J-1}\sum_j (d_{mj} - \bar d_m)^2.

    The number of features is then chosen on the same scores, as in ``SelectorCV``. A fit takes J + 1 rankings by all
    methods and the time of scoring: one to nine times the consensus alone; two to ten times the slowest method where
    that takes a second or more; little more than one consensus from 100,000 samples on. The C that a method finds on
    all samples is used in the folds too. On large data the default methods are compared on folds of a random subsample
    of 2000 to 5000 samples (with its own search for C where this is less than a quarter); the final ranking uses all
    samples.

    Where the default linear SVM scores the subsets, the features of relief are also tried with an SVM with a Gaussian
    kernel. A warning is issued when this is clearly better: then no linear classifier separates the classes well.

    The scores were used to choose the method and the size, so they are optimistic. The error of the whole procedure,
    choice included, comes from ``evaluate`` or ``zeronorm.select(method="auto")``.

    Parameters
    ----------
    selectors
        None: the default methods of `Consensus` and, outside the consensus, relief for classes and gram-schmidt for a
        real target. Methods that cannot handle the target (binary methods with more than two classes) are left out.
    n_features_to_select
        None: cross-validation chooses it for every method.
    estimator
        It also scores the subsets; see ``SelectorCV``. None, for a real target: ridge regression with
        a penalty chosen by leave-one-out scores them.
    cv
        None: five folds, three from 200 samples (or groups of samples) on. A number of folds is shuffled.
    scoring
        None: the estimator's own ``score``; for a real target R², at least -1.
    rule
        It chooses the number of features; see ``SelectorCV``. With "one_se" and a real target the smallest number is
        chosen if no number predicts better than the mean of the target by more than one standard error.
    sizes
        None: twenty, equally spaced on a logarithmic scale up to all features, a thousand at most.
    n_jobs
        The folds are divided among them.
    random_state
        It determines the folds, and every ``random_state`` of the selectors inside that is not set.

    Attributes
    ----------
    chosen_ : str
        Name of the method that was kept, or "consensus".
    selector_ : Consensus
        The methods, fitted on all samples; ``selector_.ranks_`` has their rankings.
    method_scores_ : dict
        Score of each method in each fold, the mean over the sizes.
    method_sizes_ : dict
        Number of features that each method would select.
    cv_results_ : dict
        Sizes, scores and subsets of the method that was kept, as in ``SelectorCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import AutoSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = AutoSelector(cv=3, random_state=0).fit(X, y)
    >>> selector.chosen_, selector.get_support(indices=True).tolist()
    ('consensus', [0, 1])
    """

    def __init__(
        self,
        selectors: Sequence[Any] | None = None,
        *,
        n_features_to_select: int | float | None = None,
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: Literal["best", "one_se"] = "one_se",
        sizes: Sequence[int] | None = None,
        feature_groups: Any = None,
        always_keep: Any = None,
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
        self.rule = rule
        self.sizes = sizes
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def verdict(self) -> str:
        """The choice as text."""
        check_is_fitted(self, "method_scores_")
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

    def _select(self, problem: Problem) -> SelectionPath:
        target, seed = problem.target.labels(), int(problem.rng.integers(2**31))
        members = self._candidates(problem)
        cv = usual_folds(problem.n_samples, problem.sample_groups) if self.cv is None else self.cv
        splits = make_splits(cv, target, problem.sample_groups, target=problem.target, seed=seed)
        whole, splits = splits, thinned(splits, problem, seed) if self.selectors is None else splits
        every_row = np.arange(problem.n_samples)
        self.selector_ = self._fitted(members, problem, target, every_row, seed)
        paths = self._paths(members, self.selector_, problem)
        sizes = self._sizes_to_try(paths, problem.n_features_to_select)
        is_small_part = splits[0].train.size < PART_OF_THE_SAME_COST * whole[0].train.size
        known_C = () if is_small_part else tuple(self.selector_.costs_)
        ranked = self._rank_folds(members, problem, target, splits, seed, known_C)
        plan = plan_of_sizes(self, problem, problem.design, target, sizes, seed)
        if work_of_elimination(problem) <= WORK_OF_ONE_THREAD:
            plan = replace(plan, threads_per_task=1)
        is_real = not problem.target.has_classes
        if self.estimator is None and is_real:
            plan = replace(plan, estimator=StandardizedTunedRidge(), unset_in_estimator=[])
        scores, selected = self._score_folds(plan, ranked, splits, problem.progress)
        if self.scoring is None and is_real:
            scores = {name: np.maximum(found, WORST_SHARE) for name, found in scores.items()}
        self.method_scores_ = {name: found.mean(axis=1) for name, found in scores.items()}
        no_features = 0.0 if self.scoring is None and is_real else None
        at = {name: choose_size(found, self.rule, no_features) for name, found in scores.items()}
        self.method_sizes_ = {name: int(sizes[index]) for name, index in at.items()}
        self.chosen_ = choose_method(self.method_scores_)
        self.cv_results_ = summary(sizes, scores[self.chosen_], selected[self.chosen_], splits)
        is_small = problem.n_samples <= MOST_SAMPLES_OF_A_KERNEL
        if self.estimator is None and not is_real and "relief" in scores and is_small:
            self._warn_of_nonlinearity(plan, ranked, splits, scores[self.chosen_])
        return replace(paths[self.chosen_], selected_size=self.method_sizes_[self.chosen_])

    def _sizes_to_try(self, paths: dict[str, SelectionPath], fixed: int | None) -> IntArray:
        path = next(iter(paths.values()))
        if fixed is not None:
            return np.asarray([max(fixed, smallest_size(path))], dtype=np.intp)
        if self.sizes is not None:
            if max(self.sizes) > path.n_features:
                raise parameter_error(
                    self, "sizes", f"a list of counts up to the {path.n_features} features of X"
                )
            return np.unique(np.asarray(self.sizes, dtype=np.intp))
        start = max(smallest_size(found) for found in paths.values())
        stop = max(start, min(path.n_features, LARGEST_DEFAULT_SIZE))
        grid = np.geomspace(start, stop, min(LENGTH_OF_DEFAULT_GRID, stop - start + 1))
        return np.unique(np.round(grid).astype(np.intp))

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
            weights=self._weights(members),
            refine=SHORTLIST if self.selectors is None else 0,
            random_state=seed,
        )
        groups = None if problem.sample_groups is None else problem.sample_groups[rows]
        # The path records what did not converge, and this selector warns.
        with (
            suppress_nested_warnings(ConvergenceWarning, TargetOutlierWarning),
            _limited_threads(problem),
        ):
            design = problem.design.take_rows(rows).in_one_piece()
            return consensus._fit(
                design, target[rows], {}, groups=groups, shared=SharedValues(members_C=known_C)
            )

    def _weights(self, members: list[tuple[str, Any]]) -> list[float]:
        outside = OUTSIDE[self.task] if self.selectors is None else ()
        return [0.0 if name in outside else 1.0 for name, _ in members]

    def _paths(
        self, members: list[tuple[str, Any]], fitted: Consensus, problem: Problem
    ) -> dict[str, SelectionPath]:
        """The path of each method and, if there are several, of their consensus."""
        orders = {name: np.argsort(ranks) for (name, _), ranks in zip(members, fitted.ranks_, strict=True)}
        if len(members) > 1:
            orders[CONSENSUS] = fitted.path_.order
        whole = fitted.path_
        return {
            name: SelectionPath(
                order=order.astype(np.intp),
                n_iter=whole.n_iter,
                converged=whole.converged,
                remedy=whole.remedy,
            ).constrained(problem.feature_groups, problem.always_keep)
            for name, order in orders.items()
        }

    def _rank_folds(
        self,
        members: list[tuple[str, Any]],
        problem: Problem,
        target: NDArray[Any],
        splits: list[Split],
        seed: int,
        known_C: tuple[float | None, ...],
    ) -> list[dict[str, SelectionPath]]:
        """The paths of all methods on the training samples of each fold."""

        def ranked(split: Split) -> dict[str, SelectionPath]:
            fitted = self._fitted(members, problem, target, split.train, seed + 1 + split.index, known_C)
            return self._paths(members, fitted, problem)

        return list(Parallel(n_jobs=self.n_jobs)(delayed(ranked)(split) for split in splits))

    def _score_folds(
        self,
        plan: FoldPlan,
        ranked: list[dict[str, SelectionPath]],
        splits: list[Split],
        progress: Progress,
    ) -> tuple[dict[str, FloatArray], dict[str, list[Any]]]:
        """Scores (greater is better) and subsets of all methods: one row per fold, one column per size."""
        metric = plan.metrics[0]
        tasks, scored = [], []
        for split, paths in zip(splits, ranked, strict=True):
            seen: dict[bytes, tuple[str, int]] = {}
            scorers = first_to_name(paths, plan.sizes, seen)
            scored.append(scorers)
            columns = np.unique(np.frombuffer(b"".join(seen), dtype=np.intp))
            for name, path in paths.items():
                mine = tuple(size for at, size in enumerate(plan.sizes) if scorers[name][at] == (name, at))
                tasks.append(
                    FoldTask("", KnownPath(path), [], split, f"{name}\n{split.index}", mine, columns)
                )
        tasks = [task for task in tasks if task.sizes]
        results = run_tasks(
            plan, tasks, n_jobs=self.n_jobs, progress=progress, description="Cross-validating"
        )
        found = {
            (task.key, plan.sizes.index(size)): result
            for task in tasks
            for size, result in zip(task.sizes or (), results[task.key]["sizes"], strict=True)
        }
        scores, selected = {}, {}
        for name in ranked[0]:
            rows = [
                [found[f"{scorer}\n{split.index}", at] for scorer, at in scorers[name]]
                for split, scorers in zip(splits, scored, strict=True)
            ]
            scores[name] = np.asarray(
                [[metric.score(result["metrics"][metric.name]) for result in row] for row in rows],
                dtype=np.float64,
            )
            selected[name] = [
                [np.asarray(result["selected"], dtype=np.intp) for result in row] for row in rows
            ]
        return scores, selected

    def _warn_of_nonlinearity(
        self,
        plan: FoldPlan,
        ranked: list[dict[str, SelectionPath]],
        splits: list[Split],
        chosen: FloatArray,
    ) -> None:
        """Warn if a Gaussian SVM on few features of relief is clearly better than a linear one on those chosen."""
        few = [i for i, size in enumerate(plan.sizes) if size is not None and size <= FEW_FEATURES]
        few = few[:: 1 if len(few) <= NONLINEARITY_SIZES else 2]
        sizes = tuple(plan.sizes[i] for i in few)
        if not few or len(splits) < 2:
            return
        model = StandardizedSVC(class_weight=class_weight_for(plan.metrics[0]), random_state=0)
        nonlinear = replace(plan, sizes=sizes, estimator=model, unset_in_estimator=[])
        relief = [{"relief": paths["relief"]} for paths in ranked]
        linear = chosen[:, few]
        found = np.full(linear.shape, np.inf if self.scoring is not None else 1.0)  # largest possible scores
        at_once = effective_n_jobs(self.n_jobs)
        # Small sizes first: they have the most to gain and take the least time.
        blocks = [block for block in np.array_split(np.arange(len(few)), NONLINEARITY_BLOCKS) if block.size]
        for block, start in product(blocks, range(0, len(splits), at_once)):
            rows = slice(start, start + at_once)
            some = replace(nonlinear, sizes=sizes[block[0] : block[-1] + 1])
            scores, _ = self._score_folds(some, relief[rows], splits[rows], Progress())
            found[rows, block[0] : block[-1] + 1] = scores["relief"]
            if np.mean(found - linear) <= WORTH_A_WARNING:  # whatever the remaining scores are
                return
        gain = (found - linear).mean(axis=1)
        error = float(np.std(gain, ddof=1)) / np.sqrt(gain.size)
        if gain.mean() > max(CLEARLY * error, WORTH_A_WARNING):
            warnings.warn(
                f"AutoSelector found that a Gaussian SVM on the features of relief predicts better (mean score "
                f"{found.mean():.2f}) than a linear SVM on those it chose ({linear.mean():.2f}): no linear classifier "
                "separates the classes well. To score with a Gaussian SVM, set predictor='gaussian' in a whole run, or "
                "estimator=make_pipeline(StandardScaler(), SVC()) in AutoSelector.",
                UserWarning,
                stacklevel=4,
            )

    def _candidates(self, problem: Problem) -> list[tuple[str, Any]]:
        """Names and unfitted selectors that support the target."""
        found = []
        for name, selector in self._named_selectors(quick_elimination(problem)):
            tasks = selector._tasks() if isinstance(selector, BaseSelector) else (problem.target.kind,)
            if problem.target.kind in tasks:
                found.append((name, self._configured(selector)))
        if self.selectors is None:
            found = _with_possible_neighbors(found, problem)
        if not found:
            raise ValueError(
                f"The 'selectors' parameter of AutoSelector holds no method for a {problem.target.kind} target. Got "
                f"{[name for name, _ in self._named_selectors({})]}; add one that supports it."
            )
        return found

    def _named_selectors(self, elimination: dict[str, Any]) -> list[tuple[str, Any]]:
        if self.selectors is None:
            return default_candidates(self.task, elimination, names_of_candidates(self.task))
        return named_selectors(self.selectors, self.task)

    def _check_parameters(self) -> None:
        names = [] if self.selectors is None else [name for name, _ in self._named_selectors({})]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise parameter_error(
                self,
                "selectors",
                "a list of different names",
                f"{written(repeated)} twice; give pairs (name, selector)",
            )

    def _configured(self, selector: Any) -> Any:
        """A clone with the task and the column settings of this selector."""
        copy = clone(selector)
        known = copy.get_params(deep=False)
        if "task" in known:
            copy.set_params(task=self.task)
        for name in ("feature_groups", "always_keep"):
            value = getattr(self, name)
            if value is None:
                continue
            if name not in known:
                raise ValueError(
                    f"The '{name}' parameter of AutoSelector needs methods that have it too; "
                    f"{type(copy).__name__} does not. Leave it out of 'selectors'."
                )
            copy.set_params(**{name: value})
        return copy

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return all(get_tags(selector).input_tags.sparse for _, selector in self._named_selectors({}))

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return all(get_tags(selector).input_tags.allow_nan for _, selector in self._named_selectors({}))


def _limited_threads(problem: Problem) -> AbstractContextManager[None]:
    is_little = work_of_elimination(problem) <= WORK_OF_ONE_THREAD
    return one_thread_for_products() if is_little else nullcontext()


def usual_folds(n_samples: int, sample_groups: NDArray[Any] | None) -> int:
    """The default number of folds."""
    n_units = n_samples if sample_groups is None else np.unique(sample_groups).size
    return FOLDS_OF_MANY if n_units >= MANY else FOLDS


def names_of_candidates(task: str) -> tuple[str, ...]:
    """Names of the methods that are compared by default."""
    return (*DEFAULT_METHODS[task], *OUTSIDE[task])


def _with_possible_neighbors(members: list[tuple[str, Any]], problem: Problem) -> list[tuple[str, Any]]:
    """The methods with as many neighbours in relief as every class has in every fold; without relief if impossible."""
    n_neighbors = min(10, int(problem.target.strata_sizes().min()) // 2 - 1)
    if n_neighbors < 1 or float(problem.n_samples) ** 2 * problem.n_features > MOST_DISTANCES:
        return [(name, selector) for name, selector in members if name != "relief"]
    for name, selector in members:
        if name == "relief":
            selector.set_params(n_neighbors=n_neighbors)
    return members


def thinned(splits: list[Split], problem: Problem, seed: int) -> list[Split]:
    """The splits, reduced to a random subsample of each class if there are more samples than the choice needs."""
    n = problem.n_samples
    affordable = WORK_OF_A_FOLD * n / work_of_elimination(problem)
    share = max(FEWEST_TO_CHOOSE, min(MOST_TO_CHOOSE, affordable)) / n
    if share >= 1.0:
        return splits
    strata = problem.target.strata()
    kinds = np.zeros(n) if strata is None else strata
    rng = np.random.default_rng(seed)

    def subsample(rows: IntArray) -> IntArray:
        drawn = rng.permutation(rows)
        by_kind = (drawn[kinds[drawn] == kind] for kind in np.unique(kinds[rows]))
        return np.sort(
            np.concatenate([some[: max(FEW_OF_A_CLASS, round(share * some.size))] for some in by_kind])
        )

    return [Split(split.index, subsample(split.train), subsample(split.test)) for split in splits]


def first_to_name(
    paths: dict[str, SelectionPath],
    sizes: tuple[int | None, ...],
    seen: dict[bytes, tuple[str, int]] | None = None,
) -> dict[str, list[tuple[str, int]]]:
    """For each method and size, the method and the index of the size that selected the same features first.

    ``seen`` is filled with all subsets.
    """
    seen = {} if seen is None else seen
    return {
        name: [
            seen.setdefault(path.support(max(int(size or 0), smallest_size(path))).tobytes(), (name, at))
            for at, size in enumerate(sizes)
        ]
        for name, path in paths.items()
    }


class KnownPath(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit returns a known path."""

    def __init__(self, path: SelectionPath) -> None:
        self.path = path

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Set ``path_`` to the known path."""
        self.path_ = self.path
        return self


def choose_method(scores: dict[str, FloatArray]) -> str:
    """The name of the best method if it beats the consensus by more than one standard error over the folds."""
    best = max(scores, key=lambda name: float(scores[name].mean()))
    if CONSENSUS not in scores or best == CONSENSUS:
        return best
    difference = scores[best] - scores[CONSENSUS]
    error = float(np.std(difference, ddof=1)) / np.sqrt(difference.size) if difference.size > 1 else 0.0
    return best if float(difference.mean()) > (1.0 + ROUNDING_SHARE) * error else CONSENSUS
