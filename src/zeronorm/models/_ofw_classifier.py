"""A vote of classifiers trained on subsets of features drawn from a learned distribution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import check_cv
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from zeronorm._types import IntArray, written
from zeronorm.design import as_design, in_memory
from zeronorm.engines.weighting.learners import resolve_learner
from zeronorm.registry import register
from zeronorm.resampling._seeds import generator_from, seeded_clone
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._kinds import Kind, count, exceptions, list_of
from zeronorm.selectors.stochastic._ofw import OptimalFeatureWeighting

WEIGHTING = Kind(
    "feature weighting",
    "an OptimalFeatureWeighting",
    "OptimalFeatureWeighting",
    lambda value: isinstance(value, OptimalFeatureWeighting),
)


@register(
    "ofw-classifier",
    kind="model",
    family="stochastic",
    tasks=("binary", "multiclass"),
    reference="Gadat & Younes 2007, section 2.2",
    cost="OptimalFeatureWeighting, and one small fit for each voter",
    oracle="a count of the votes",
    avoid="a short list of features: it uses many",
    test_params=(
        {
            "selector": OptimalFeatureWeighting(max_iter=50, learner="centroid"),
            "n_estimators": 3,
            "random_state": 0,
        },
    ),
)
class OFWClassifier(CheckedParameters, ClassifierMixin, BaseEstimator):
    r"""Majority vote over random subsets of features, drawn by their learned weights.

    :class:`zeronorm.OptimalFeatureWeighting` learns a distribution P over the features. Then :math:`\omega^{(1)},
    \dots, \omega^{(m)}` are drawn from :math:`P^{\otimes k}`, one classifier is trained on all samples with the
    features of each, and

    .. math:: \hat y(x) = \arg\max_c \sum_{j=1}^{m} \mathbf 1\{A_{\omega^{(j)}}(x) = c\},

    with ties going to the lower class. Unlike the selector it uses many features; use it when prediction matters more
    than a short list.

    Parameters
    ----------
    selector
        It must be an OptimalFeatureWeighting. None: one with default settings.
    n_estimators
        An odd number avoids ties between two classes.
    estimator
        Here: the classifier that is trained on each subset and votes. None: the learner of the selector, one-vs-rest
        for learners of two classes.
    subset_size
        Here: the number of features of each classifier. None: as in the selector. Of several numbers, the best in
        cross-validation is used.
    cv
        Used to choose between several numbers in ``subset_size``.

    Attributes
    ----------
    selector_ : OptimalFeatureWeighting
        The fitted selector, with its ``weights_``.
    estimators_ : list of estimators
        The classifiers that vote.
    subsets_ : list of ndarray
        The features of each classifier.
    subset_size_ : int
        Number of features drawn for each classifier.
    classes_ : ndarray
        The classes.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.models import OFWClassifier
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> model = OFWClassifier(n_estimators=11, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_exceptions = exceptions(
        selector=(WEIGHTING, "the features of the voters are drawn from its weights"),
        subset_size=(count() | list_of(count()), "of several sizes the best in cross-validation is used"),
    )

    def __init__(
        self,
        selector: OptimalFeatureWeighting | None = None,
        *,
        n_estimators: int = 51,
        estimator: Any = None,
        subset_size: int | Sequence[int] | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.selector = selector
        self.n_estimators = n_estimators
        self.estimator = estimator
        self.subset_size = subset_size
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weights of the features, then train the voters."""
        self._validate_params()
        X, y = validate_data(
            self,
            in_memory(X, self),
            y,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_min_samples=2,
        )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check()
        rng = generator_from(self.random_state)
        base = OptimalFeatureWeighting() if self.selector is None else self.selector
        self.selector_ = seeded_clone(base, rng).fit(X, y)
        self._voter = self._make_voter(base, X)
        self.subset_size_ = self._resolve_size(X, codes, rng)
        self.subsets_ = self._draw_subsets(self.subset_size_, rng)
        self.estimators_ = self._train(X, codes, self.subsets_, rng)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of the votes of each class."""
        check_is_fitted(self)
        X = validate_data(
            self,
            in_memory(X, self),
            reset=False,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
        )
        return self._vote(X, self.estimators_, self.subsets_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the most votes."""
        shares = self.predict_proba(X)
        return cast("NDArray[Any]", self.classes_[np.argmax(shares, axis=1)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return cast("Tags", tags)

    # -- parts ----------------------------------------------------------------------------------

    def _check(self) -> None:
        if len(self.classes_) < 2:
            raise ValueError(
                f"OFWClassifier needs samples of at least two classes in y. Got one class: {written(self.classes_[0])}."
            )

    def _make_voter(self, base: OptimalFeatureWeighting, X: Any) -> Any:
        if self.estimator is not None:
            voter = clone(self.estimator)
        else:
            learner = resolve_learner(base.learner)
            voter = learner.as_estimator()
            if learner.is_binary and len(self.classes_) > 2:
                voter = OneVsRestClassifier(voter)
        if base.standardize == "common":
            affine = as_design(X).standardized(common=True).affine
            assert affine is not None
            common = float(affine.scale.max())
            units = FunctionTransformer(_divided, kw_args={"by": common})
            return make_pipeline(StandardScaler(with_std=False), units, voter)
        return make_pipeline(StandardScaler(), voter) if base.standardize else voter

    def _resolve_size(self, X: Any, codes: IntArray, rng: np.random.Generator) -> int:
        wanted = self.selector_.subset_size_ if self.subset_size is None else self.subset_size
        sizes = [wanted] if isinstance(wanted, (int, np.integer)) else list(wanted)
        if len(sizes) == 1:
            return int(sizes[0])
        accuracy = [self._cross_validate(X, codes, int(k), rng) for k in sizes]
        return int(sizes[int(np.argmax(accuracy))])

    def _cross_validate(self, X: Any, codes: IntArray, size: int, rng: np.random.Generator) -> float:
        """Mean accuracy of the vote with subsets of one size."""
        accuracy = []
        for train, test in check_cv(self.cv, codes, classifier=True).split(X, codes):
            subsets = self._draw_subsets(size, rng)
            voters = self._train(X[train], codes[train], subsets, rng)
            predicted = np.argmax(self._vote(X[test], voters, subsets), axis=1)
            accuracy.append(np.mean(predicted == codes[test]))
        return float(np.mean(accuracy))

    def _draw_subsets(self, size: int, rng: np.random.Generator) -> list[IntArray]:
        weights = self.selector_.weights_
        draws = rng.choice(weights.size, size=(self.n_estimators, size), p=weights / weights.sum())
        return [np.unique(row) for row in draws]

    def _train(
        self, X: Any, codes: IntArray, subsets: Iterable[IntArray], rng: np.random.Generator
    ) -> list[Any]:
        tasks = (delayed(_fit)(seeded_clone(self._voter, rng), _dense(X, s), codes) for s in subsets)
        return list(Parallel(n_jobs=self.n_jobs)(tasks))

    def _vote(self, X: Any, voters: Sequence[Any], subsets: Sequence[IntArray]) -> NDArray[np.float64]:
        votes = np.zeros((X.shape[0], len(self.classes_)))
        rows = np.arange(X.shape[0])
        for voter, subset in zip(voters, subsets, strict=True):
            votes[rows, voter.predict(_dense(X, subset))] += 1.0
        return votes / len(voters)


def _fit(voter: Any, X: NDArray[Any], codes: IntArray) -> Any:
    return voter.fit(X, codes)


def _dense(X: Any, columns: IntArray) -> NDArray[Any]:
    """The few columns of a voter as a dense array."""
    part = X[:, columns]
    return cast("NDArray[Any]", part.toarray() if hasattr(part, "toarray") else part)


def _divided(X: NDArray[Any], by: float) -> NDArray[Any]:
    return X / by
