"""Which method, as part of what is fitted, so that the error of the whole can be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from zeronorm.registry import get_method, register
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.meta.selector_cv import SelectorCV
from zeronorm.selectors.wrapping import labels_of

# Unlike methods: a filter, elimination, and three kinds of sparsity.
ROSTER = ("fisher", "rfe", "lasso", "l1-svm", "zeronorm-svm")


@register(
    "auto",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression"),
    reference="Breiman et al. 1984 (one-standard-error rule)",
    test_params=(
        {"selectors": ("fisher", "svm-weights"), "cv": 2},
        {"selectors": ("lasso", "random"), "cv": 2, "task": "regression", "random_state": 8},
    ),
)
class AutoSelector(BaseSelector):
    r"""Choose one of several methods, and its number of features, by cross-validation.

    Each method gets its number of features from ``SelectorCV`` on the same folds. With :math:`\bar s_m` the mean
    score of method m at its chosen size over J folds and :math:`\hat\sigma_m` its standard deviation, the method
    with the fewest features is kept among those with

    .. math:: \bar s_m \ge \bar s_{m^*} - \hat\sigma_{m^*} / \sqrt{J}, \qquad m^* = \arg\max_m \bar s_m .

    The scores were used to choose, so they are too good. The error of the whole procedure, choice included, comes from
    ``evaluate`` or ``zeronorm.select(method="auto")``.

    Parameters
    ----------
    selectors
        None: fisher, rfe, lasso, l1-svm and zeronorm-svm. Methods that do not serve the target (binary methods
        with more classes) are left out.
    n_features_to_select
        None: cross-validation chooses it for every method.
    estimator
        It also scores the subsets; see ``SelectorCV``.
    cv
        A number of folds is shuffled.
    scoring
        None: the estimator's own ``score``.
    rule
        It chooses the number of features; see ``SelectorCV``.
    sizes
        None: twenty, equally spaced on a logarithmic scale up to all features.
    n_jobs
        They share the folds of each method.
    random_state
        It decides the folds, and every ``random_state`` inside that is not set.

    Attributes
    ----------
    chosen_ : str
        Name of the method that was chosen.
    selector_ : SelectorCV
        The fitted selector of that method.
    method_scores_ : dict
        For each method, its scores on the folds at its chosen number of features.
    method_sizes_ : dict
        For each method, its chosen number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import AutoSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = AutoSelector(["fisher", "golub"], sizes=[1, 2, 4, 8], random_state=0).fit(X, y)
    >>> selector.chosen_, selector.get_support(indices=True).tolist()
    ('fisher', [0, 1])
    """

    def __init__(
        self,
        selectors: Sequence[Any] | None = None,
        *,
        n_features_to_select: int | float | None = None,
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        cv: Any = 5,
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

    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Choose a method and a size, and select.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, or real targets with ``task="regression"``.
        groups : one label per sample; samples of one group stay together in the folds.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        self._sample_groups = None if groups is None else np.asarray(groups)
        try:
            return self._fit(X, y, None, fit_params)
        finally:
            del self._sample_groups

    def verdict(self) -> str:
        """The choice in words."""
        names = ", ".join(self.method_scores_)
        means = {name: float(scores.mean()) for name, scores in self.method_scores_.items()}
        best = max(means, key=lambda name: means[name])
        reason = (
            f"{best} has the best mean score."
            if best == self.chosen_
            else f"Of those within one standard error of the best ({best}), {self.chosen_} uses the fewest features."
        )
        return f"{len(means)} methods ({names}) were compared on the same inner folds. {reason}"

    def _select(self, problem: Problem) -> SelectionPath:
        target, seed = labels_of(problem), int(problem.rng.integers(2**31))
        fitted = {}
        for name, selector in self._candidates(problem):
            wrapped = self._with_size(selector, problem, seed)
            fitted[name] = wrapped.fit(problem.design, target, groups=self._sample_groups)
        self.method_scores_ = {name: _scores_at_choice(found) for name, found in fitted.items()}
        self.method_sizes_ = {name: int(found.n_features_) for name, found in fitted.items()}
        self.chosen_ = choose_method(self.method_scores_, self.method_sizes_)
        self.selector_ = fitted[self.chosen_]
        path: SelectionPath = self.selector_.path_
        return replace(path, own_size=int(self.selector_.n_features_))

    def _candidates(self, problem: Problem) -> list[tuple[str, Any]]:
        """Names and unfitted selectors that serve the target."""
        found = []
        for name, selector in self._named_selectors():
            tasks = selector._tasks() if isinstance(selector, BaseSelector) else (problem.task,)
            if problem.task in tasks:
                found.append((name, self._configured(selector)))
        if not found:
            raise ValueError(
                f"The 'selectors' parameter of AutoSelector holds no method for a {problem.task} target. Got "
                f"{[name for name, _ in self._named_selectors()]}; add one that serves it."
            )
        return found

    def _named_selectors(self) -> list[tuple[str, Any]]:
        given = ROSTER if self.selectors is None else self.selectors
        return [(item, get_method(item).cls()) if isinstance(item, str) else tuple(item) for item in given]

    def _configured(self, selector: Any) -> Any:
        """A clone with the task and the column settings of the whole."""
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

    def _with_size(self, selector: Any, problem: Problem, seed: int) -> SelectorCV:
        fixed = problem.n_features_to_select
        return SelectorCV(
            selector,
            estimator=self.estimator,
            cv=self.cv,
            scoring=self.scoring,
            rule=self.rule,
            sizes=self.sizes if fixed is None else [fixed],
            n_jobs=self.n_jobs,
            random_state=seed,
            verbose=self.verbose,
        )

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return all(get_tags(selector).input_tags.sparse for _, selector in self._named_selectors())

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return all(get_tags(selector).input_tags.allow_nan for _, selector in self._named_selectors())


def choose_method(scores: dict[str, Any], sizes: dict[str, int]) -> str:
    """The method with the fewest features among those within one standard error of the best mean score."""
    means = {name: float(np.mean(found)) for name, found in scores.items()}
    best = min(means, key=lambda name: (-means[name], sizes[name]))
    n_folds = len(scores[best])
    error = float(np.std(scores[best], ddof=1)) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    lowest = means[best] - error - 1e-12 * abs(means[best])
    near = [name for name in means if means[name] >= lowest]
    return min(near, key=lambda name: (sizes[name], -means[name]))


def _scores_at_choice(selector: SelectorCV) -> Any:
    results = selector.cv_results_
    place = int(np.flatnonzero(np.asarray(results["size"]) == selector.path_.own_size)[0])
    return np.asarray(results["scores"])[:, place]
