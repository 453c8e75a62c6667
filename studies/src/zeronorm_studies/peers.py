"""Models of other libraries with their usual tuning, as selectors that choose their features and their predictor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import RFE, f_classif, f_regression
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, RidgeCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm.selection import SelectionPath

FloatArray = NDArray[np.float64]
Choice = tuple[
    NDArray[np.bool_], Any
]  # the mask of the selected features, and the unfitted predictor for them
Task = Literal["classification", "regression"]
SIZES = (5, 10, 20, 50)  # at which rankings are compared
COSTS = np.logspace(-3, 2, 11)
ALPHAS = np.geomspace(1e-2, 1e4, 13)
ONE_AT_A_TIME = 100  # features; scikit-learn's RFE removes tenths of more
FOLDS = 5


class OwnChoice(BaseEstimator):  # type: ignore[misc]
    """A model of another library that chooses its features, or keeps all, and the predictor that goes with them.

    It is known by its name, so that the journal does not depend on the version of Python.
    """

    def __init__(self, name: str, task: Task = "classification") -> None:
        self.name = name
        self.task = task

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the features and the predictor."""
        choose = (CLASSIFIERS if self.task == "classification" else REGRESSORS)[self.name]
        mask, self.predictor_ = choose(X, y)
        if not mask.any():
            self.predictor_ = (DummyRegressor if is_regressor(self.predictor_) else DummyClassifier)()
        self.scores_ = mask.astype(float)
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """Mask of the chosen features."""
        return np.asarray(self.scores_ > 0.0)


class Ranking(BaseEstimator):  # type: ignore[misc]
    """A ranking of another library, by its name, on standardised columns."""

    def __init__(self, name: str, task: Task = "classification") -> None:
        self.name = name
        self.task = task

    def fit(self, X: Any, y: Any) -> Self:
        """Rank the features."""
        rank = (RANKINGS if self.task == "classification" else RANKINGS_OF_NUMBERS)[self.name]
        found = rank(StandardScaler().fit_transform(X), y)
        self.path_ = found if isinstance(found, SelectionPath) else SelectionPath.from_scores(found)
        return self


def _standardized(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _tuned(model: Any, name: str, X: Any, y: Any, costs: Any = COSTS) -> Any:
    """The pipeline with the C of the best balanced accuracy in five folds, fitted on all samples."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(_standardized(model), {name: costs}, cv=folds, scoring="balanced_accuracy")
    return search.fit(X, y).best_estimator_


def l1_logistic(X: Any, y: Any) -> Choice:
    """Logistic regression with the ℓ1 norm, one class against the rest, C by cross-validation."""
    model = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", class_weight="balanced", random_state=0, max_iter=300
    )
    found = _tuned(OneVsRestClassifier(model), "onevsrestclassifier__estimator__C", X, y)
    weights = np.vstack([each.coef_ for each in found[-1].estimators_])
    return np.any(weights != 0.0, axis=0), clone(found)


def svm_on_all(X: Any, y: Any) -> Choice:
    """A linear support vector machine on all features, C by cross-validation."""
    found = _tuned(SVC(kernel="linear", class_weight="balanced"), "svc__C", X, y)
    return np.ones(X.shape[1], dtype=bool), clone(found)


def elimination_order(X: Any, y: Any, model: Any = None) -> NDArray[np.intp]:
    """The features in the order of scikit-learn's RFE, the last removed first: tenths of many, one of few at a time."""
    model = SVC(kernel="linear", class_weight="balanced") if model is None else model
    left, removed = np.arange(X.shape[1]), []
    while left.size > ONE_AT_A_TIME:
        kept = max(ONE_AT_A_TIME, left.size - left.size // 10)
        stage = RFE(model, n_features_to_select=kept, step=left.size - kept).fit(X[:, left], y)
        removed.append(left[~stage.support_])
        left = left[stage.support_]
    last = RFE(model, n_features_to_select=1, step=1).fit(X[:, left], y)
    return np.concatenate([left[np.argsort(last.ranking_)], *removed[::-1]])


def rfe_with_cross_validation(X: Any, y: Any) -> Choice:
    """RFE with the number of features of the best balanced accuracy in five folds, as scikit-learn's RFECV."""
    p = X.shape[1]
    sizes = np.unique(np.r_[np.arange(1, min(p, ONE_AT_A_TIME) + 1), (p * 0.9 ** np.arange(60)).astype(int)])
    sizes = sizes[sizes > 0]
    model = _standardized(SVC(kernel="linear", class_weight="balanced"))
    scores = np.zeros(sizes.size)
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        order = elimination_order(StandardScaler().fit_transform(X[train]), y[train])
        for at, size in enumerate(sizes):
            columns = order[:size]
            fitted = model.fit(X[np.ix_(train, columns)], y[train])
            scores[at] += balanced_accuracy_score(y[test], fitted.predict(X[np.ix_(test, columns)]))
    mask = np.zeros(p, dtype=bool)
    mask[elimination_order(StandardScaler().fit_transform(X), y)[: sizes[scores.argmax()]]] = True
    return mask, clone(model)


def forest(X: Any, y: Any) -> Choice:
    """A random forest on all features."""
    model = RandomForestClassifier(500, class_weight="balanced_subsample", random_state=0)
    return np.ones(X.shape[1], dtype=bool), model


def _of_few_samples(y: Any) -> dict[str, Any]:
    """Settings of LightGBM whose leaves are small enough for few samples; its own are 20 samples a leaf."""
    return {"min_child_samples": max(2, min(20, len(y) // 20)), "random_state": 0, "n_jobs": 1, "verbose": -1}


def boosting(X: Any, y: Any) -> Choice:
    """Gradient boosting of LightGBM on all features."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(class_weight="balanced", **_of_few_samples(y))
    return np.ones(X.shape[1], dtype=bool), model


def lasso(X: Any, y: Any) -> Choice:
    """The Lasso, its penalty by cross-validation."""
    found = LassoCV(cv=FOLDS, max_iter=20_000).fit(StandardScaler().fit_transform(X), y)
    mask = np.asarray(found.coef_ != 0.0)
    return mask, _standardized(Lasso(alpha=found.alpha_, max_iter=20_000))


def ridge_on_all(X: Any, y: Any) -> Choice:
    """Ridge regression on all features, its penalty by leaving samples out."""
    return np.ones(X.shape[1], dtype=bool), _standardized(RidgeCV(alphas=ALPHAS))


def forest_of_numbers(X: Any, y: Any) -> Choice:
    """A random forest on all features."""
    return np.ones(X.shape[1], dtype=bool), RandomForestRegressor(500, random_state=0)


def boosting_of_numbers(X: Any, y: Any) -> Choice:
    """Gradient boosting of LightGBM on all features."""
    from lightgbm import LGBMRegressor

    return np.ones(X.shape[1], dtype=bool), LGBMRegressor(**_of_few_samples(y))


LOGISTIC, SVM, RFECV, LASSO, RIDGE = (
    "logistic ℓ1, cross-validated",
    "SVM, all features",
    "RFECV",
    "LassoCV",
    "RidgeCV, all features",
)
CLASSIFIERS: dict[str, Callable[[Any, Any], Choice]] = {
    LOGISTIC: l1_logistic,
    SVM: svm_on_all,
    RFECV: rfe_with_cross_validation,
    "random forest, all features": forest,
    "LightGBM, all features": boosting,
}
REGRESSORS: dict[str, Callable[[Any, Any], Choice]] = {
    LASSO: lasso,
    RIDGE: ridge_on_all,
    "random forest, all features": forest_of_numbers,
    "LightGBM, all features": boosting_of_numbers,
}


# -- Rankings at fixed numbers of features: bigger scores for better features --


def balanced_svm() -> Any:
    """The predictor of all rankings: a linear SVM with squared hinge loss, its C by the balanced accuracy."""
    model = _standardized(LinearSVC(class_weight="balanced", dual="auto", random_state=0, max_iter=5000))
    return GridSearchCV(model, {"linearsvc__C": [0.01, 0.1, 1.0]}, cv=3, scoring="balanced_accuracy")


def _scores_of(order: NDArray[np.intp]) -> FloatArray:
    scores = np.zeros(order.size)
    scores[order] = np.arange(order.size, 0, -1)
    return scores


def by_elimination(X: Any, y: Any) -> FloatArray:
    """RFE of a linear SVM."""
    return _scores_of(elimination_order(X, y))


def by_elimination_of_numbers(X: Any, y: Any) -> FloatArray:
    """RFE of linear support vector regression, of a standardised target."""
    return _scores_of(elimination_order(X, (y - y.mean()) / y.std(), SVR(kernel="linear")))


def by_correlation(X: Any, y: Any) -> FloatArray:
    """The F statistic of each feature and a real target."""
    return np.asarray(np.nan_to_num(f_regression(X, y)[0], posinf=np.finfo(float).max))


def by_relevance_and_redundancy(X: Any, y: Any) -> FloatArray:
    """mRMR: the F statistic over the mean absolute correlation with the features before (FCQ, Zhao et al. 2019)."""
    relevance = np.nan_to_num(f_classif(X, y)[0], posinf=np.finfo(float).max)
    p, order = X.shape[1], [int(relevance.argmax())]
    redundancy = np.zeros(p)
    while len(order) < min(p, max(SIZES)):
        redundancy += np.abs(X.T @ X[:, order[-1]]) / len(X)
        score = relevance / np.maximum(redundancy / len(order), 1e-3)
        score[order] = -1.0
        order.append(int(score.argmax()))
    others = np.setdiff1d(np.argsort(-relevance), order, assume_unique=True)
    return _scores_of(np.concatenate([order, others]))


def by_l1_norm(X: Any, y: Any) -> FloatArray:
    """The largest absolute weight of a linear SVM with the ℓ1 norm, its C by cross-validation."""
    model = LinearSVC(penalty="l1", dual=False, class_weight="balanced", random_state=0, max_iter=3000)
    search = GridSearchCV(model, {"C": COSTS[2:8]}, cv=3, scoring="balanced_accuracy").fit(X, y)
    return np.asarray(np.abs(search.best_estimator_.coef_).max(axis=0))


def by_lasso(X: Any, y: Any) -> FloatArray:
    """The absolute weights of the Lasso, its penalty by cross-validation."""
    return np.asarray(np.abs(LassoCV(cv=FOLDS, max_iter=20_000).fit(X, y).coef_))


def by_forest(X: Any, y: Any) -> FloatArray:
    """The importance in a random forest."""
    model = RandomForestClassifier(500, class_weight="balanced_subsample", random_state=0)
    return np.asarray(model.fit(X, y).feature_importances_)


def by_forest_of_numbers(X: Any, y: Any) -> FloatArray:
    """The importance in a random forest."""
    return np.asarray(RandomForestRegressor(500, random_state=0).fit(X, y).feature_importances_)


def by_best_subset(X: Any, y: Any) -> SelectionPath:
    """The best subset of each size that abess finds."""
    from abess.linear import LogisticRegression, MultinomialRegression

    codes = np.unique(y, return_inverse=True)[1]
    return _by_splicing(LogisticRegression if codes.max() == 1 else MultinomialRegression, X, codes)


def by_best_subset_of_numbers(X: Any, y: Any) -> SelectionPath:
    """The best subset of each size that abess finds."""
    from abess.linear import LinearRegression

    return _by_splicing(LinearRegression, X, y)


def _by_splicing(model: Any, X: Any, y: Any) -> SelectionPath:
    p, varying = (
        X.shape[1],
        np.flatnonzero(X.any(axis=0)),
    )  # constant columns are zero here, and abess refuses them
    subsets = [np.arange(p)]
    for size in SIZES:
        if size < varying.size:
            found = model(support_size=size).fit(X[:, varying], y)
            weights = np.abs(np.asarray(found.coef_).reshape(varying.size, -1)).max(axis=1)
            subsets.append(varying[np.argsort(-weights, kind="stable")[:size]])
    return SelectionPath.from_subsets(subsets, n_features=p)


RFE_NAME = "scikit-learn RFE"
RANKINGS: dict[str, Callable[[Any, Any], FloatArray | SelectionPath]] = {
    RFE_NAME: by_elimination,
    "scikit-learn ℓ1 LinearSVC": by_l1_norm,
    "mRMR": by_relevance_and_redundancy,
    "abess": by_best_subset,
    "random forest": by_forest,
}
RANKINGS_OF_NUMBERS: dict[str, Callable[[Any, Any], FloatArray | SelectionPath]] = {
    RFE_NAME: by_elimination_of_numbers,
    "scikit-learn LassoCV": by_lasso,
    "scikit-learn f_regression": by_correlation,
    "abess": by_best_subset_of_numbers,
    "random forest": by_forest_of_numbers,
}
