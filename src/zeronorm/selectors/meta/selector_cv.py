"""The number of features, chosen by cross-validation along the path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import check_scoring

from zeronorm._types import FloatArray
from zeronorm.registry import Registered, register
from zeronorm.resampling.rows import take_columns
from zeronorm.resampling.scoring import default_estimator
from zeronorm.resampling.seeding import generator_from, seeded_clone
from zeronorm.resampling.splits import Split, make_splits
from zeronorm.selection.kinds import parameter_error
from zeronorm.selection.path import TIE_TOLERANCE, SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.wrapping import MetaSelector, labels_of

LENGTH_OF_DEFAULT_GRID = 20


@register(
    "selector-cv",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression"),
    reference="Breiman et al. 1984 (one-standard-error rule)",
    test_params={"selector": Registered("fisher"), "cv": 2, "sizes": None},
)
class SelectorCV(MetaSelector):
    r"""Choose the number of features of any selector by cross-validation along its path.

    In each fold the selector is fitted once, on the training part; its path gives a subset for every
    size, a predictor is fitted on it and scored on the test part. With :math:`\bar s_k` the mean
    score over J folds and :math:`\hat\sigma_k` its standard deviation, ``rule="best"`` takes the
    smallest size with the largest mean and ``rule="one_se"`` the smallest size with

    .. math:: \bar s_k \ge \bar s_{k^*} - \hat\sigma_{k^*} / \sqrt{J}, \qquad k^* = \arg\max_k \bar s_k .

    The selector is then fitted on all data and cut at that size. The scores in ``cv_results_`` have
    been used for a choice, so they flatter: judge the result on other data, e.g. with ``evaluate``.

    Parameters
    ----------
    n_features_to_select
        Overrides the choice; None cross-validates it.
    estimator
        Predictor that scores the subsets and, when given, is fitted on the chosen features. None scores with
        standardisation and a linear support vector machine (ridge regression for regression) and adds no
        ``predict``.
    cv
        Number of shuffled folds, a scikit-learn splitter, or pairs (training rows, test rows).
    scoring
        Name of a scikit-learn scorer or a scorer; None uses the estimator's ``score``. Greater is better, as
        scorers have it; losses come as ``make_scorer(loss, greater_is_better=False)``.
    sizes
        Sizes to try; None tries twenty, equally spaced on a logarithmic scale up to all features.
    n_jobs
        Processes over the folds.
    random_state
        Seed of the folds and of every unset ``random_state`` inside.

    Attributes
    ----------
    cv_results_ : dict
        ``size``, ``scores`` (folds by sizes), ``mean``, ``std``, ``standard_error``, ``selected`` (per fold and
        size) and ``splits``.
    selector_ : selector
        The selector fitted on all data.
    """

    def __init__(
        self,
        selector: Any,
        *,
        n_features_to_select: int | float | None = None,
        estimator: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: Literal["best", "one_se"] = "best",
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

    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Choose the size and select.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, or real targets for regression selectors.
        groups : one label per sample; samples of one group stay together in the folds.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        self._sample_groups = None if groups is None else np.asarray(groups)
        try:
            return self._fit(X, y, None, fit_params)
        finally:
            del self._sample_groups

    def _select(self, problem: Problem) -> SelectionPath:
        seed = int(problem.rng.integers(2**31))
        target = labels_of(problem)
        self.selector_, path = self._wrapped_path(problem.design, target, np.random.default_rng(seed))
        sizes = self._sizes_to_try(path)
        splits = make_splits(
            self.cv,
            target,
            self._sample_groups,
            classification=problem.task != "regression",
            seed=seed,
        )
        scores, selected = self._score_folds(problem, target, splits, sizes, seed)
        self.cv_results_ = _summary(sizes, scores, selected, splits)
        return replace(path, own_size=int(sizes[choose_size(scores, self.rule)]))

    def _sizes_to_try(self, path: SelectionPath) -> NDArray[np.intp]:
        p = path.n_features
        if self.sizes is None:
            start = _smallest_size(path)
            grid = np.geomspace(start, p, min(LENGTH_OF_DEFAULT_GRID, p - start + 1))
            return np.unique(np.round(grid).astype(np.intp))
        if max(self.sizes) > p:
            raise parameter_error(self, "sizes", f"a list of counts up to the {p} features of X")
        return np.unique(np.asarray(self.sizes, dtype=np.intp))

    def _score_folds(
        self, problem: Problem, target: NDArray[Any], splits: list[Split], sizes: NDArray[np.intp], seed: int
    ) -> tuple[FloatArray, list[list[NDArray[np.intp]]]]:
        predictor = self.estimator
        if predictor is None:
            predictor = default_estimator(self.task, n_samples=problem.n_samples)
        scorer = check_scoring(predictor, scoring=self.scoring)
        seeds = np.random.SeedSequence(seed).spawn(len(splits))
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        tasks = (
            delayed(self._score_fold)(problem, target, split, sizes, predictor, scorer, fold_seed)
            for split, fold_seed in zip(splits, seeds, strict=True)
        )
        scores, selected = [], []
        with problem.progress.task("Cross-validating", len(splits)) as advance:
            for fold_scores, fold_selected in parallel(tasks):
                scores.append(fold_scores)
                selected.append(fold_selected)
                advance(1)
        return np.asarray(scores, dtype=np.float64), selected

    def _score_fold(
        self,
        problem: Problem,
        target: NDArray[Any],
        split: Split,
        sizes: NDArray[np.intp],
        predictor: Any,
        scorer: Any,
        seed: np.random.SeedSequence,
    ) -> tuple[list[float], list[NDArray[np.intp]]]:
        train, test = problem.design.take_rows(split.train), problem.design.take_rows(split.test)
        rng = generator_from(seed)
        _, path = self._wrapped_path(train, target[split.train], rng)
        predictor = seeded_clone(predictor, rng)
        scores, subsets = [], []
        for size in sizes:
            columns = path.support(max(int(size), _smallest_size(path) if self.sizes is None else 1))
            model = clone(predictor).fit(take_columns(train, columns), target[split.train])
            score = float(scorer(model, take_columns(test, columns), target[split.test]))
            if not np.isfinite(score):
                raise ValueError(
                    f"The score of SelectorCV is {score} with {size} features on fold {split.index}, so sizes "
                    "cannot be compared. Use another 'scoring' or larger (stratified) test parts."
                )
            scores.append(score)
            subsets.append(columns)
        return scores, subsets


def choose_size(scores: FloatArray, rule: str) -> int:
    """Place of the chosen size in ascending sizes; ``scores`` has one row per fold, greater is better."""
    mean = scores.mean(axis=0)
    best = _first_at_least(mean, float(mean.max()))
    if rule == "best" or len(scores) < 2:
        return best
    return _first_at_least(mean, float(mean[best]) - float(_standard_error(scores)[best]))


def _first_at_least(mean: FloatArray, threshold: float) -> int:
    """The smallest size that reaches the threshold, up to rounding."""
    return int(np.flatnonzero(mean >= threshold - TIE_TOLERANCE * np.abs(mean).max())[0])


def _standard_error(scores: FloatArray) -> FloatArray:
    n_folds = len(scores)
    spread = scores.std(axis=0, ddof=1) if n_folds > 1 else np.zeros(scores.shape[1])
    return np.asarray(spread / np.sqrt(n_folds))


def _summary(
    sizes: NDArray[np.intp], scores: FloatArray, selected: list[list[NDArray[np.intp]]], splits: list[Split]
) -> dict[str, Any]:
    return {
        "size": sizes,
        "scores": scores,
        "mean": scores.mean(axis=0),
        "std": scores.std(axis=0, ddof=min(1, len(scores) - 1)),
        "standard_error": _standard_error(scores),
        "selected": selected,
        "splits": [(split.train, split.test) for split in splits],
    }


def _smallest_size(path: SelectionPath) -> int:
    """The smallest size the path can give: forced features and the first whole group must fit."""
    if path.groups is None:
        return max(1, int(path.always_keep.size))
    return int(path.sizes[0])
