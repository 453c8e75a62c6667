"""Recursive feature elimination with the number of features chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, Self, cast

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import get_scorer, r2_score
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import Bunch, metadata_routing
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    process_routing,
)
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.validation import _check_method_params, column_or_1d

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines.elimination._estimator import (
    Predictions,
    Ranker,
    Rounds,
    eliminate_with_estimator,
    predicted_by,
)
from zeronorm.engines.elimination._known_models import KnownRanker
from zeronorm.execution import one_thread_for_little_work
from zeronorm.registry import register
from zeronorm.resampling._splits import possible_folds, require_two_classes
from zeronorm.selection._problem import warn_about_target_outliers
from zeronorm.selectors.greedy._rfe import EstimatorElimination, estimator_has

# Scorers that need only the predictions of an estimator.
FROM_PREDICTIONS = (
    "accuracy", "balanced_accuracy", "f1", "f1_macro", "f1_micro", "f1_weighted", "precision", "recall",
    "matthews_corrcoef", "r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error",
)  # fmt: skip
# Scorers of a regressor that use squared errors; None is its own score, R².
OF_SQUARES = (None, "r2", "neg_mean_squared_error", "neg_root_mean_squared_error")


@dataclass(frozen=True)
class FoldResult:
    """Scores and rankings of one fold, from all features to the fewest."""

    scores: list[float]
    rankings: IntArray
    sizes: list[int]


@register(
    "rfecv",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Guyon et al. 2002; scikit-learn's RFECV",
    cost="one elimination for each fold, and one on all data",
    oracle="scikit-learn's RFECV, and scikit-learn's own tests of it",
    avoid="a short list of features: it takes the best mean score; SelectorCV(rule='fewest') selects fewer",
    test_params=({"cv": 2}, {"cv": 2, "task": "regression", "step": 2}),
)
class RFECV(EstimatorElimination):
    r"""Recursive feature elimination; cross-validation chooses how many features are kept.

    In each fold the features are eliminated on the training samples, and every size on the way is scored on the test
    samples. The size with the largest mean score over the folds,

    .. math:: k^* = \arg\max_k \frac1J \sum_{j=1}^J s_j(k)

    (the smallest on ties), is then reached by an elimination on all data.

    It replaces the class of the same name in scikit-learn: the same parameters, the same folds, the same results,
    without refitting the estimators that ``RFE`` knows. The scores in ``cv_results_`` were used to choose the size, so
    they are optimistic: evaluate the result on other data, for instance with ``evaluate``. ``SelectorCV`` does the same
    for any selector.

    Parameters
    ----------
    estimator
        Here it also ranks the features, and is scored. None: a linear support vector machine on standardised
        columns, without ``predict``.
    step
        With an estimator, a fraction refers to the number of all features.
    cv
        None: five folds, as in scikit-learn.
    scoring
        None: accuracy, or R² for regression.
    n_features_to_select
        None: cross-validation chooses.
    task
        Used when ``estimator`` is None; otherwise the estimator determines the task.

    Attributes
    ----------
    cv_results_ : dict
        ``n_features`` (ascending), ``mean_test_score``, ``std_test_score`` and, for each fold k,
        ``split{k}_test_score``, ``split{k}_ranking`` and ``split{k}_support``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from zeronorm import RFECV
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = RFECV(SVC(kernel="linear"), cv=3).fit(X, y)
    >>> selector.n_features_, selector.get_support(indices=True).tolist()
    (2, [0, 1])
    """

    __metadata_request__fit = {"groups": metadata_routing.UNUSED}  # noqa: RUF012

    def __init__(
        self,
        estimator: Any = None,
        *,
        step: int | float = 1,
        min_features_to_select: int = 1,
        cv: Any = None,
        scoring: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        importance_getter: str | Callable[..., Any] = "auto",
        n_features_to_select: int | float | None = None,
        task: Literal["classification", "regression"] = "classification",
    ) -> None:
        self.estimator = estimator
        self.step = step
        self.min_features_to_select = min_features_to_select
        self.cv = cv
        self.scoring = scoring
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.importance_getter = importance_getter
        self.n_features_to_select = n_features_to_select
        self.task = task

    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> Self:
        """Choose the number of features and select them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features).
        y : labels of any type, or real targets for regression.
        groups : one label per sample, for the splitter; a number of folds keeps samples of one group together.
        **params : with metadata routing enabled, what the estimator, the splitter and the scorer request.
        """
        if groups is not None:
            params["groups"] = groups
        _raise_for_params(params, self, "fit", allow=["groups"])
        self._validate_params()
        X, y = self._read(X, y)
        routed = self._routed_to_parts(params)
        n_features = X.shape[1]
        fewest = self._fewest(n_features)
        fixed = self._requested_size(n_features)
        if self.estimator is None:
            X, y = self._checked_by_ourselves(X, y)
        elif self._follows_target_outliers() and self._scores_by_squares(y):
            warn_about_target_outliers(type(self).__name__, np.asarray(y, dtype=np.float64))
        pairs = self._folds(y, groups).split(X, y, **routed.splitter.split)
        results = self._over_folds(X, y, pairs, fewest, routed)
        sizes = np.array(results[0].sizes)[::-1]
        self.cv_results_ = _table(results, sizes)
        chosen = int(sizes[np.argmax(np.sum([r.scores for r in results], axis=0)[::-1])])
        self._eliminate_all(X, y, routed.estimator.fit, chosen if fixed is None else fixed)
        return self

    def _fit(self, X: Any, y: Any, fit_params: dict[str, Any], *, groups: Any = None, **_shared: Any) -> Self:
        return self.fit(X, y, groups, **fit_params)

    # -- parts of fit ---------------------------------------------------------------------------

    def _folds(self, y: Any, groups: Any) -> Any:
        """The folds of scikit-learn; where ``cv`` is a number, folds that keep groups together."""
        is_stratified = self._target_type().is_stratified
        is_number = self.cv is None or isinstance(self.cv, Integral)
        cv = possible_folds(5 if self.cv is None else self.cv, np.asarray(y), groups, is_stratified)
        if groups is None or not is_number or get_config()["enable_metadata_routing"]:
            return check_cv(cv, y, classifier=is_stratified)
        return (StratifiedGroupKFold if is_stratified else GroupKFold)(cv)

    def _fewest(self, n_features: int) -> int:
        fewest = self.min_features_to_select
        if fewest > n_features:
            warnings.warn(
                f"Found min_features_to_select={fewest} > n_features={n_features}. No feature is removed.",
                UserWarning,
                stacklevel=3,
            )
        return min(int(fewest), n_features)

    def _checked_by_ourselves(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Checked data for the built-in support vector machine, which does not check them itself."""
        problem = self._build_problem(as_design(X), column_or_1d(y, warn=True))
        self._is_misled_by_target(problem, None)
        return X, problem.target.labels()

    def _follows_target_outliers(self) -> bool:
        return self.n_features_to_select is None  # squared errors choose the number of features

    def _scores_by_squares(self, y: Any) -> bool:
        """Whether the scores of the given estimator use squared errors; how it is trained is not known."""
        target = np.asarray(y)
        is_number = target.ndim == 1 and target.dtype.kind in "fiu" and bool(np.isfinite(target).all())
        is_by_name = self.scoring is None or isinstance(self.scoring, str)
        return is_number and is_by_name and self.scoring in OF_SQUARES and is_regressor(self.estimator)

    def _working_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return SVC(kernel="linear") if self._target_type().has_classes else SVR(kernel="linear")

    def _over_folds(self, X: Any, y: Any, pairs: Any, fewest: int, routed: Any) -> list[FoldResult]:
        if effective_n_jobs(self.n_jobs) == 1:
            with one_thread_for_little_work(*X.shape):
                return [self._one_fold(X, y, train, test, fewest, routed) for train, test in pairs]
        return list(
            Parallel(n_jobs=self.n_jobs)(
                delayed(self._one_fold)(X, y, train, test, fewest, routed) for train, test in pairs
            )
        )

    def _one_fold(
        self, X: Any, y: Any, train: IntArray, test: IntArray, fewest: int, routed: Any
    ) -> FoldResult:
        model, scorer = self._working_estimator(), self._scorer()
        X_train, y_train = _safe_split(model, X, y, train)
        X_test, y_test = _safe_split(model, X, y, test, train)
        if self.estimator is None and self._target_type().has_classes:
            require_two_classes("RFECV", y_train)
        X_train, X_test = self._on_our_scale(X_train, X_test)
        fit_params = _check_method_params(X, params=routed.estimator.fit, indices=train)
        score_params = _check_method_params(X, params=routed.scorer.score, indices=test)
        ranker = self._scored_ranker(X_train, y_train, fit_params)
        score_all = None if score_params or np.ndim(y_test) > 1 else self._score_of_predictions()
        scores: list[float] = []
        predictions = Predictions(X_test, predicted_by(model, y_train))

        def note(features: IntArray) -> None:
            if score_all is None:
                score = scorer(ranker.fitted(), X_test[:, features], y_test, **score_params)
                scores.append(float(score))
            else:
                ranker.collect(predictions, features)

        rounds = self._rounds(ranker, X.shape[1], fewest, note)
        left = np.flatnonzero(rounds.support)
        ranker.importances(left)
        note(left)
        if score_all is not None:
            scores = score_all(y_test, predictions.columns()).tolist()
        return FoldResult(scores, rounds.rankings(), [*rounds.sizes, left.size])

    def _score_of_predictions(self) -> Callable[[Any, Any], FloatArray] | None:
        """Accuracy or R² of all sizes at once, because a scorer would check its input for every size."""
        usual = self._target_type().scoring
        return SCORES_OF_COLUMNS[usual] if self.scoring in (None, usual) else None

    def _rounds(self, ranker: Ranker, n_features: int, n_stop: int, note: Any = None) -> Rounds:
        return eliminate_with_estimator(
            ranker,
            n_features,
            n_stop=n_stop,
            step=self.step,
            lower_index_stays=self.estimator is None,
            on_round=note,
        )

    def _scored_ranker(self, X: Any, y: Any, fit_params: dict[str, Any]) -> Ranker:
        """Known models where the scorer needs only what they provide, else refits."""
        ranker = self._ranker(X, y, fit_params)
        if not isinstance(ranker, KnownRanker):
            return ranker
        asks_little = self.scoring is None or self.scoring in FROM_PREDICTIONS
        asks_itself = isinstance(self.scoring, str) and ranker.stands_in_as_itself
        return ranker if asks_little or asks_itself else ranker.refits

    def _on_our_scale(self, X_train: Any, X_test: Any) -> tuple[Any, Any]:
        """Columns for the built-in support vector machine: standardised by the training samples of the fold."""
        if self.estimator is not None:
            return X_train, X_test
        train, test = as_design(X_train), as_design(X_test)
        scaler = StandardScaler().fit(train.block(slice(None)))
        return scaler.transform(train.block(slice(None))), scaler.transform(test.block(slice(None)))

    def _eliminate_all(self, X: Any, y: Any, fit_params: dict[str, Any], size: int) -> None:
        if self.estimator is not None:
            self._eliminate(X, y, fit_params, size)
            return
        X, _ = self._on_our_scale(X, X)
        ranker = self._ranker(X, y, fit_params)
        rounds = self._rounds(ranker, X.shape[1], size)
        left = np.flatnonzero(rounds.support)
        self._store_rounds(rounds, ranker.importances(left), np.empty(0, dtype=np.intp), None)

    # -- scikit-learn protocols -----------------------------------------------------------------

    def _scorer(self) -> Any:
        if self.scoring is not None:
            return get_scorer(self.scoring)
        if self.estimator is not None:
            return get_scorer("accuracy" if is_classifier(self.estimator) else "r2")
        return get_scorer(self._target_type().scoring)

    def _routed_to_parts(self, params: dict[str, Any]) -> Any:
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **params)
        groups = params.get("groups")
        return Bunch(
            estimator=Bunch(fit={}), splitter=Bunch(split={"groups": groups}), scorer=Bunch(score={})
        )

    @available_if(estimator_has("predict"))
    def score(self, X: Any, y: Any, **score_params: Any) -> float:
        """The ``scoring`` of ``estimator_`` on the selected features."""
        _raise_for_params(score_params, self, "score")
        self._trained()
        params: dict[str, Any] = {}
        if get_config()["enable_metadata_routing"]:
            params = dict(process_routing(self, "score", **score_params).scorer.score)
        return cast("float", self._scorer()(self, X, y, **params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata to the estimator, the splitter and the scorer."""
        router = MetadataRouter(owner=self)
        fit = MethodMapping().add(caller="fit", callee="fit").add(caller="predict", callee="predict")
        router.add(estimator=self._working_estimator(), method_mapping=fit)
        router.add(
            splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split")
        )
        scored = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
        router.add(scorer=self._scorer(), method_mapping=scored)
        return router


def _accuracy_of_columns(y: Any, predicted: Any) -> FloatArray:
    return np.asarray((predicted == np.asarray(y)[:, None]).mean(axis=0))


def _r2_of_columns(y: Any, predicted: Any) -> FloatArray:
    y = np.asarray(y, dtype=np.float64)
    scale = float(((y - y.mean()) ** 2).sum())
    if y.size < 2 or scale == 0.0:  # scikit-learn defines R² in these cases
        return np.array([r2_score(y, column) for column in predicted.T])
    errors = predicted - y[:, None]
    return np.asarray(1.0 - np.einsum("ij,ij->j", errors, errors) / scale)


SCORES_OF_COLUMNS = {"accuracy": _accuracy_of_columns, "r2": _r2_of_columns}


def _table(results: list[FoldResult], sizes: IntArray) -> dict[str, NDArray[Any]]:
    scores: FloatArray = np.array([r.scores[::-1] for r in results])
    return {
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
        **{f"split{k}_test_score": s for k, s in enumerate(scores)},
        **{f"split{k}_ranking": r.rankings[::-1].copy() for k, r in enumerate(results)},
        **{f"split{k}_support": r.rankings[::-1] == 1 for k, r in enumerate(results)},
        "n_features": sizes,
    }
