"""Predictors that score subsets, and distributions over features, for several studies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from zeronorm import OptimalFeatureWeighting
from zeronorm.evaluation import Metric
from zeronorm.models import OFWClassifier
from zeronorm.transformers import EdgeFeatures
from zeronorm_studies.study import Data, Sample, Trial, sample_of, second_part_of

COSTS = (0.01, 0.1, 1.0, 10.0)


def linear_model(C: float = 1.0) -> Any:
    """Standardisation and a linear support vector machine."""
    return make_pipeline(StandardScaler(), SVC(kernel="linear", C=C))


def tuned_linear_model(costs: tuple[float, ...] = COSTS, cv: int = 3) -> Any:
    """The same with its cost chosen by cross-validation inside the training set."""
    return GridSearchCV(linear_model(), {"svc__C": list(costs)}, cv=cv)


class CommonScale(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Centre the columns and divide all by one number, such that squared lengths of samples have mean one.

    For columns in one unit, such as intensities of a spectrum: large ones stay large. Sparse columns are not centred.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means and the scale."""
        self.mean_ = 0.0 if sp.issparse(X) else np.mean(X, axis=0)
        squares = X.power(2).sum() if sp.issparse(X) else np.sum((X - self.mean_) ** 2)
        self.scale_ = float(np.sqrt(squares / X.shape[0])) or 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Centred and scaled columns."""
        return (X / self.scale_).tocsr() if sp.issparse(X) else (X - self.mean_) / self.scale_


def as_dense(X: Any) -> Any:
    """Sparse columns made dense: standardisation fills them anyway."""
    return X.toarray() if sp.issparse(X) else X


def tuned_squared_hinge_model(costs: tuple[float, ...] = (0.01, 0.1, 1.0), cv: int = 3) -> Any:
    """A linear SVM with squared hinge loss, which is fast on thousands of samples."""
    model = make_pipeline(
        FunctionTransformer(as_dense, accept_sparse=True),
        StandardScaler(),
        LinearSVC(dual="auto", random_state=0, max_iter=10_000),
    )
    return GridSearchCV(model, {"linearsvc__C": list(costs)}, cv=cv)


def tuned_ridge() -> Any:
    """Standardisation and ridge regression whose penalty is chosen by leaving samples out."""
    return make_pipeline(StandardScaler(), RidgeCV(alphas=np.geomspace(1e-2, 1e4, 13)))


def rbf_model(C: float = 1.0, gamma: float | str = "scale") -> Any:
    """Standardisation and a support vector machine with a Gaussian kernel."""
    return make_pipeline(StandardScaler(), SVC(kernel="rbf", C=C, gamma=gamma))


class GaussianSVC(SVC):  # type: ignore[misc]
    """A support vector machine with the kernel exp(-2 w ‖x - x'‖² / D), D the mean squared distance of two samples.

    Distances do not depend on the means of the columns, so sparse columns stay as they are. On centred columns ``w=1``
    is ``gamma="scale"`` of scikit-learn; on others that is too wide, since it counts differences between the means of
    columns as variance.
    """

    def __init__(self, C: float = 1.0, *, width: float = 1.0, class_weight: Any = None) -> None:
        super().__init__(C=C, class_weight=class_weight)
        self.width = width

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Set gamma from the distances, then train."""
        distance_sq = mean_squared_distance(X)
        self.gamma = 2.0 * self.width / distance_sq if distance_sq > 0.0 else 1.0
        super().fit(X, y, sample_weight)
        return self


def mean_squared_distance(X: Any) -> float:
    """Mean squared distance of two samples drawn with replacement: twice the sum of the variances of the columns."""
    variance = StandardScaler(with_mean=not sp.issparse(X)).fit(X).var_
    return float(2.0 * variance.sum())


def polynomial_model(C: float = 1.0, degree: int = 2) -> Any:
    """Standardisation and a support vector machine with the kernel (1 + x·x'/p)^degree."""
    return make_pipeline(StandardScaler(), SVC(kernel="poly", C=C, degree=degree, coef0=1.0, gamma="auto"))


# -- Choosing a selector by cross-validation inside the training set --


class BestOfSelectors(BaseEstimator):  # type: ignore[misc]
    """Fit several ``SelectorCV`` on the same inner folds and keep the one with the best mean score.

    Nothing but the data given to ``fit`` is used, so that the error of the whole, measured on other data, includes
    the cost of the choice.

    Parameters
    ----------
    selectors : pairs of a name and a ``SelectorCV``; they must share folds and scoring.
    """

    def __init__(self, selectors: list[tuple[str, Any]]) -> None:
        self.selectors = selectors

    def fit(self, X: Any, y: Any) -> Self:
        """Fit all, keep one; ties go to the earlier."""
        fitted = {name: clone(selector).fit(X, y) for name, selector in self.selectors}
        self.scores_ = {name: _score_at_choice(selector) for name, selector in fitted.items()}
        self.chosen_ = max(self.scores_, key=lambda name: self.scores_[name])
        self.selector_ = fitted[self.chosen_]
        self.path_ = self.selector_.path_
        self.converged_ = self.selector_.converged_
        return self

    def get_support(self) -> Any:
        """Mask of the selected features."""
        return self.selector_.get_support()


def _score_at_choice(selector: Any) -> float:
    results = selector.cv_results_
    index = int(np.flatnonzero(np.asarray(results["size"]) == selector.path_.selected_size)[0])
    return float(np.asarray(results["scores"])[:, index].mean())


# -- Metrics of a learned distribution over features: its weights, and the errors of classifiers drawn from it --


FIRST_SHARE = 0.01
"""Share of a run in which the distribution is still nearly uniform."""


def weight_metric(name: str, index: int) -> Metric:
    """The weight of one feature."""
    return Metric(name, partial(_weight_of, index), response="model", greater_is_better=True)


def _weight_of(index: int, model: Any, X: Any, y: Any) -> float:
    distribution = _distribution(model)
    # A tree has no distribution over features; the share of a feature in its splits is the closest equivalent.
    weights = (
        distribution.weights_ if hasattr(distribution, "weights_") else distribution.feature_importances_
    )
    return float(weights[index])


def energy_before(model: Any, X: Any, y: Any) -> float:
    """Mean training error of the subsets drawn at the start of the run."""
    history = _distribution(model).history_
    counts = np.diff(history.steps, prepend=0)
    first = history.steps <= max(1, FIRST_SHARE * history.steps[-1])
    return float(np.average(history.mean_error[first], weights=counts[first]))


def energy_after(model: Any, X: Any, y: Any) -> float:
    """Mean training error of the subsets drawn in the last part of the run."""
    return float(_distribution(model).history_.mean_error[-1])


def mean_energy(model: Any, X: Any, y: Any) -> float:
    """Mean training error of all subsets drawn: the mean error of a distribution that is not learned."""
    history = _distribution(model).history_
    return float(np.average(history.mean_error, weights=np.diff(history.steps, prepend=0)))


def mean_voter_error(model: Any, X: Any, y: Any) -> float:
    """Mean test error of classifiers, each trained on all samples with the features of one draw."""
    errors = []
    for voter, subset in zip(model.estimators_, model.subsets_, strict=True):
        predicted = model.classes_[voter.predict(X[:, subset])]
        errors.append(np.mean(predicted != y))
    return float(np.mean(errors))


ENERGY_BEFORE = Metric("energy_before", energy_before, response="model")
ENERGY_AFTER = Metric("energy_after", energy_after, response="model")
MEAN_ENERGY = Metric("mean_energy", mean_energy, response="model")
VOTER_ERROR = Metric("voter_error", mean_voter_error, response="model")


def voters(settings: dict[str, Any], n_estimators: int, estimator: Any, size: int | None = None) -> Any:
    """Classifiers on features drawn from the distribution that is learned with ``settings``."""
    return OFWClassifier(
        OptimalFeatureWeighting(**settings),
        n_estimators=n_estimators,
        estimator=estimator,
        subset_size=size,
        random_state=0,
    )


def not_learned(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings under which the distribution stays uniform: one step of negligible length."""
    return {**settings, "max_iter": 1, "step_size": 1e-9, "step_offset": 1.0, "noise": 0.0}


def _distribution(model: Any) -> Any:
    return getattr(model, "selector_", model)


# -- Edge features of the image experiments of Gadat and Younes (2007) --

# The paper does not say which detectors it has. Of ten kinds (with and without sign; blurs 0-1, 0-2, 1-2, 1-3 and 2-3)
# this one has the lowest error of a linear SVM in three folds of the training digits and nearly the lowest of the
# training faces (2.5 %, and 0.10 where the lowest is 0.09).
DETECTORS: dict[str, Any] = {"blurs": (1, 2), "signed": True}
PLAIN_DETECTORS: dict[str, Any] = {"blurs": (0, 1), "signed": False}


def edges_of_parts(
    first: Sample, second: Sample, shape: tuple[int, int], detectors: dict[str, Any] = DETECTORS
) -> Trial:
    """Binary edge detectors that are not rare among the training images."""
    (X, y), (X_test, y_test) = first, second
    edges = EdgeFeatures(shape, **detectors, min_frequency=0.01).fit(X)
    stacked = np.vstack([edges.transform(X), edges.transform(X_test)]).astype(np.float32)
    n = len(y)
    return Trial(stacked, np.concatenate([y, y_test]), np.arange(n), np.arange(n, n + len(y_test)))


@cache
def usps_trial(are_plain: bool = False) -> Trial:
    detectors = PLAIN_DETECTORS if are_plain else DETECTORS
    return edges_of_parts(sample_of("usps"), second_part_of("usps"), (16, 16), detectors)


@cache
def faces_trial() -> Trial:
    name = "mit_cbcl_faces"
    return edges_of_parts(sample_of(name), second_part_of(name), (19, 19))


@cache
def digits_trial(n_classes: int) -> Trial:
    """Small embedded digits for quick versions."""
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    half = min(300, len(y) // 2)
    return edges_of_parts((X[:half], y[:half]), (X[half : 2 * half], y[half : 2 * half]), (8, 8))


def one_split(label: str, make: Callable[[], Trial], version: int = 1) -> Data:
    """The published training and test set."""

    def draw(trial: int) -> Trial:
        return make()

    return Data(label, draw, 1, version=version)
