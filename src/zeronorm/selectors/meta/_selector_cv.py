"""Choice of the number of features by cross-validation along the path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.registry import Registered, get_method, register
from zeronorm.resampling._folds import FoldPlan, FoldTask, run_tasks, smallest_size
from zeronorm.resampling._metrics import as_metric, scoring_metric
from zeronorm.resampling._seeds import unset_random_states
from zeronorm.resampling._size_rules import SizeRule, choose_sizes, standard_errors
from zeronorm.resampling._splits import Split, make_splits
from zeronorm.resampling.predictors._default import default_estimator
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector, SplittingSelector
from zeronorm.selectors._wrapping import MetaSelector

LENGTH_OF_DEFAULT_GRID = 20
BALANCED = (
    "balanced_accuracy"  # with rare classes the share of right predictions is highest without any feature
)


@register(
    "selector-cv",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Breiman et al. 1984 (one-standard-error rule)",
    cost="one fit of the selector for each fold and one on all data, and a predictor for each fold and size",
    oracle="the rules by hand, and data in which a leak between folds would show",
    avoid="an unbiased error: its scores were used to choose the size; use evaluate for that",
    test_params=({}, {"selector": Registered("fisher"), "cv": 2, "sizes": None}),
)
class SelectorCV(MetaSelector, SplittingSelector):
    r"""Choose the number of features of any selector by cross-validation along its path.

    In each fold the selector is fitted once, on the training samples; its path gives a subset for every
    size, a predictor is fitted on it and scored on the test samples. The curve of mean scores is smoothed by local
    lines over similar sizes. With :math:`\hat s_k` the smoothed score of size k, :math:`k^*` the best size and
    :math:`\hat\sigma` the standard error of the mean over the folds (the root mean square over all sizes),

    .. math:: k(t) = \min\{k : \hat s_k \ge \hat s_{k^*} - t \hat\sigma\}

    is the smallest size within t standard errors of the best. ``rule="all"`` takes the best size, ``"recommended"`` the
    geometric mean of k(t) over t from 0 to 1, and ``"fewest"`` over t from ½ to 1½, since k(t) of a single t changes
    with the folds. At least 4 % of the range of the curve take the place of :math:`\hat\sigma`.

    The selector is then fitted on all data and cut at that size. The scores in ``cv_results_`` have been used to choose
    the size, so they are optimistic: evaluate the result on other data, for instance with ``evaluate``.

    Parameters
    ----------
    selector
        None: ``FisherScore()``, which needs no parameters; give ``FisherScore(task="regression")`` for a real target.
    n_features_to_select
        None: cross-validation chooses it.
    estimator
        It also scores the subsets. None: a linear support vector machine on standardised columns scores them
        (ridge regression for regression), and there is no ``predict``. Its class weights are balanced if ``scoring``
        is a balanced metric, as by default.
    cv
        A number of folds is shuffled.
    scoring
        A ``Metric`` or its name is possible too; the sign of a loss is changed so that greater is better. None: the
        balanced accuracy of classes, R² of a real target; with an ``estimator`` its own ``score``.
    sizes
        None: twenty, equally spaced on a logarithmic scale up to all features.
    n_jobs
        The folds are divided among them.
    random_state
        It determines the folds, and every ``random_state`` of the selector inside that is not set.

    Attributes
    ----------
    sizes_ : dict
        Number of features by each rule: "fewest", "recommended", "all".
    cv_results_ : dict
        ``size``, ``scores`` (folds by sizes), ``mean``, ``std``, ``standard_error``, ``selected`` (per fold and
        size) and ``splits``.
    selector_ : selector
        The selector fitted on all data.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FisherScore, SelectorCV
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = SelectorCV(FisherScore(), sizes=[1, 2, 4, 8], random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        selector: Any = None,
        *,
        n_features_to_select: int | float | None = None,
        estimator: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: SizeRule = "recommended",
        sizes: Sequence[int] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.selector = selector
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.sizes = sizes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _wrapped(self) -> Any:
        return get_method("fisher").cls() if self.selector is None else self.selector

    def _holder_of_adjust(self) -> Any:
        return self  # the wrapped selector gets all columns and sets its covariates apart itself

    def _select(self, problem: Problem) -> SelectionPath:
        seed = int(problem.rng.integers(2**31))
        target = problem.target.labels()
        self.selector_, path = self._wrapped_path(
            problem.design, target, np.random.default_rng(seed), problem.sample_groups
        )
        sizes = self._sizes_to_try(path)
        splits = make_splits(
            self.cv,
            target,
            problem.sample_groups,
            target=problem.target,
            seed=seed,
        )
        scores, selected, all_converged = self._score_folds(problem, target, splits, sizes, seed)
        self.sizes_ = {rule: int(sizes[at]) for rule, at in choose_sizes(sizes, scores).items()}
        self.cv_results_ = summary(sizes, scores, selected, splits)
        return replace(
            path,
            selected_size=self.sizes_[self.rule],
            converged=path.converged and all_converged,
            remedy=f"{type(self._innermost()).__name__} inside it stopped early; there, "
            f"{path.remedy or 'raise max_iter or loosen tol.'}",
        )

    def _sizes_to_try(self, path: SelectionPath) -> NDArray[np.intp]:
        p = path.n_candidates
        if self.sizes is None:
            start = smallest_size(path)
            grid = np.geomspace(start, p, min(LENGTH_OF_DEFAULT_GRID, p - start + 1))
            return np.unique(np.round(grid).astype(np.intp))
        if max(self.sizes) > p:
            raise parameter_error(self, "sizes", f"a list of counts up to the {p} features of X")
        return np.unique(np.asarray(self.sizes, dtype=np.intp))

    def _score_folds(
        self, problem: Problem, target: NDArray[Any], splits: list[Split], sizes: NDArray[np.intp], seed: int
    ) -> tuple[FloatArray, list[list[NDArray[np.intp]]], bool]:
        """Scores (greater is better) and subsets of all sizes in all folds, and whether all fits converged."""
        design = problem.design
        X = design if isinstance(self._wrapped(), BaseSelector) else design.block(slice(None))
        plan = plan_of_sizes(self, problem, X, target, sizes, seed)
        metric = plan.metrics[0]
        selector = self._wrapped()
        unset = unset_random_states(selector)
        tasks = [FoldTask("", selector, unset, split, str(split.index)) for split in splits]
        found = run_tasks(
            plan,
            tasks,
            n_jobs=self.n_jobs,
            progress=problem.progress,
            description="Cross-validating",
        )
        results = [found[task.key]["sizes"] for task in tasks]
        scores = [[metric.score(result["metrics"][metric.name]) for result in row] for row in results]
        selected = [[np.asarray(result["selected"], dtype=np.intp) for result in row] for row in results]
        all_converged = all(found[task.key]["converged"] for task in tasks)
        return np.asarray(scores, dtype=np.float64), selected, all_converged


def plan_of_sizes(
    chooser: Any, problem: Problem, X: Any, target: NDArray[Any], sizes: NDArray[np.intp], seed: int
) -> FoldPlan:
    """The plan for scoring the sizes, from ``estimator``, ``scoring`` and ``sizes`` of the selector ``chooser``."""
    predictor, scoring = chooser.estimator, chooser.scoring
    if predictor is None and scoring is None and "balanced_error_rate" in problem.target.metrics:
        scoring = BALANCED
    if predictor is None:
        metric = None if scoring is None else as_metric(scoring, "scoring")
        predictor = default_estimator(problem.target, n_samples=problem.n_samples, metric=metric)
    return FoldPlan(
        X=X,
        y=target,
        groups=problem.sample_groups,
        sizes=tuple(int(size) for size in sizes),
        estimator=predictor,
        unset_in_estimator=unset_random_states(predictor),
        metrics=(scoring_metric(scoring, predictor),),
        seed=seed,
        is_strict=True,
        lifts_sizes=chooser.sizes is None,
    )


def summary(
    sizes: NDArray[np.intp],
    scores: FloatArray,
    selected: list[list[NDArray[np.intp]]],
    splits: list[Split],
    n_folds: int | None = None,
) -> dict[str, Any]:
    """The contents of ``cv_results_``; ``n_folds``: see `choose_sizes`."""
    return {
        "size": sizes,
        "scores": scores,
        "mean": scores.mean(axis=0),
        "std": scores.std(axis=0, ddof=min(1, len(scores) - 1)),
        "standard_error": standard_errors(scores, n_folds),
        "selected": selected,
        "splits": [(split.train, split.test) for split in splits],
    }
