"""Linear estimators of scikit-learn whose solution is updated as features are removed, instead of refitted.

Each model gives the weights and intercepts that the estimator would have if it were trained to full precision. If
that accuracy is not reached, the estimator itself is fitted in that round.
"""

from __future__ import annotations

import numbers
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines.elimination._estimator import Predictions, Refits, Rounds, stand_in
from zeronorm.engines.elimination._linear import LinearModels
from zeronorm.engines.elimination._logistic_model import Logistic
from zeronorm.engines.elimination._loop import Elimination
from zeronorm.engines.elimination._margin_models import PenalisedHinge, SquaredHinge
from zeronorm.engines.elimination._one_by_one import OneByOne
from zeronorm.engines.elimination._smooth_models import (
    Columns,
    KnownModel,
    LeastSquares,
    without,
)
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Binary, Multiclass, Real, Target
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, Way, svm_loss
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._tracked_set import TrackedSets

TOLERANCE = 1e-8  # tolerance of the solvers below, in units of the margin
LARGEST = 2**28  # entries of X; larger data are not copied
SETTINGS: dict[str, Any] = {"tol": TOLERANCE, "max_iter": 200_000}
MOST_SAMPLES = 2000  # with more, a model on the Gram matrix has no advantage
# Samples per feature from which a linear system in the features is cheaper than the estimator itself.
TALL = 4
MOST_FREE = 200  # samples on the margin of a hinge loss; with more, refitting is faster
MOST_UNKNOWNS = 1500  # unknowns of Newton's method, whose inverse Hessian has this many rows
SIGNIFICANT = ~np.int64(
    2**17 - 1
)  # mask of the bits of a number; weights that agree in these are tied, such as those of identical columns
HALF_OF_LAST = np.int64(2**16)  # half of the last bit in that mask, for rounding
PRECISION = 1e-6  # relative error of weights that changes neither predictions nor the order, except for ties
AT_BOUND = 1e-9  # a dual variable within this share of its range from a bound counts as at the bound


# -- SVC and SVR with a linear kernel --


class SupportVectors(KnownModel):
    """SVMs, one per pair of classes (or one for regression), each on its own samples.

    On many samples they are solved in the weights, on fewer in the dual. There the columns are in reverse order, so
    that ties are broken as scikit-learn does.
    """

    def __init__(self, problems: list[Problem], C: float, epsilon: float | None, *, is_tall: bool) -> None:
        super().__init__(problems[0].n_features)
        self.problems, self.is_tall, self.last_column = problems, is_tall, self.active.size - 1
        loss = svm_loss("hinge", epsilon)
        self.linear = [LinearProblem.of(problem.around_zero(), loss, C) for problem in problems]

    @cached_property
    def models(self) -> list[LinearModels] | list[PackedModel]:
        pairs = list(zip(self.problems, self.linear, strict=True))
        if self.is_tall:
            return [LinearModels(*pair, tol=TOLERANCE, only_way=Way.PRIMAL) for pair in pairs]
        return [PackedModel(*pair, **SETTINGS) for pair in pairs]

    def train(self) -> bool:
        if self.is_tall and min(problem.n_samples for problem in self.problems) < TALL * self.active.size:
            return False
        worst = Status.CONVERGED if self.is_tall else Status.STALLED
        weights = []
        for model in self.models:
            model.status = Status.CONVERGED
            model.train()
            if model.status > worst:
                return False
            weights.append(model.weights()[:, 0])
        self.weights = np.stack(weights)[:, :: 1 if self.is_tall else -1]
        return True

    @property
    def intercept(self) -> FloatArray:  # type: ignore[override]
        """The intercepts of the last training, computed on demand: the ranking does not need them."""
        settled = [_settled_bias(model) for model in self.models]
        return np.array(settled) + self.problems[0].target.midrange

    def remove(self, features: IntArray) -> None:
        super().remove(features)
        for model in self.models:
            model.remove(features if self.is_tall else np.sort(self.last_column - features))

    def one_by_one(self, n_stop: int) -> Rounds | None:
        """All rounds with the exact shortcuts of ``OneByOne``; None where these are not accurate."""
        record, p = Elimination(self.problems[0]), self.active.size
        OneByOne(self.problems[0], self.linear[0], **SETTINGS, tie_share=0.0).eliminate(record, n_stop + 1)
        if record.status > Status.STALLED or record.n_eliminated != p - n_stop:
            return None
        rounds, eliminated = Rounds.of_all(p), self.last_column - record.eliminated
        rounds.values = record.scores[::-1].copy()
        rounds.eliminated = eliminated.tolist()
        rounds.support[eliminated] = False
        rounds.ranking[eliminated] = np.arange(p - n_stop + 1, 1, -1)
        rounds.sizes = list(range(p, n_stop, -1))
        return rounds


class PackedModel(OneByOne):
    """One model on data in memory whose remaining columns are contiguous."""

    def __init__(self, problem: Problem, linear: LinearProblem, **settings: Any) -> None:
        super().__init__(problem, linear, **settings)
        self.columns = Columns(self.design.block(slice(None)))
        self.sets = TrackedSets.room_for(1, 0)  # not tracked: several features may be removed at once
        self.dual = BoxDual(self.sample, self.sign[0], self.linear[0], self.upper[0], self.ridge)

    def weights(self) -> FloatArray:
        return self.columns.transpose_dot(self.v.T)

    def remove(self, features: IntArray) -> None:
        """Subtract the columns of features from the Gram matrix."""
        positions = np.searchsorted(self.active, features)
        x = self.columns.of(positions)
        self.columns.remove(positions)
        self.active = without(self.active, positions)
        self.inaccurate = self.downdating.is_due(features, self.active)
        if not self.inaccurate:
            self.K -= x @ x.T
        self._renew()


def _settled_bias(model: LinearModels | PackedModel) -> float:
    """The intercept; where no variable is free, the midpoint of the interval of optimal intercepts, as in LIBSVM."""
    if isinstance(model, PackedModel):
        dual, alpha, f = model.dual, model.alpha[0], model.f[0]
    else:
        found = model.solution.models[0]
        dual, alpha, f = found.problem, found.alpha, model.left.dot(found.weights)
    low, high = AT_BOUND * dual.upper, (1.0 - AT_BOUND) * dual.upper
    settled = np.where(alpha > high, dual.upper, np.where(alpha < low, 0.0, alpha))
    return float(dual.bias(settled, f))


# -- From an estimator to its model --


def known_model(estimator: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> KnownModel | None:
    """The model with the same weights as an estimator, or None if there is none here."""
    builder = BUILDERS.get(type(estimator))
    if builder is None or set(fit_params) - {"sample_weight"} or min(X.shape) < 2 or np.size(y) < 2:
        return None
    if X.shape[0] * X.shape[1] > LARGEST:
        return None
    estimator._validate_params()  # wrong settings raise the error of the estimator
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if not dense.flags.forc:  # C or Fortran order; either is fine
        dense = np.ascontiguousarray(dense)
    weight = fit_params.get("sample_weight")
    if weight is not None:
        weight = _check_sample_weight(weight, dense, dtype=np.float64)
        if not np.all(weight > 0.0):
            return None
    with np.errstate(over="ignore", invalid="ignore"):
        numbers_as_they_lie = dense.ravel(order="K")
        is_ordinary = bool(np.isfinite(np.vdot(numbers_as_they_lie, numbers_as_they_lie)))
    return builder(estimator, dense, np.asarray(y), weight) if is_ordinary else None


def _least_squares(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    penalty: Any = getattr(estimator, "alpha", 0.0)
    is_plain = isinstance(penalty, numbers.Real) and 0.0 <= float(penalty) < np.inf
    if not is_plain or getattr(estimator, "positive", False):
        return None
    if y.dtype.kind not in "fiu" or not np.all(np.isfinite(y)):
        return None
    targets = y.reshape(len(X), -1).astype(np.float64)
    minimum_norm = isinstance(estimator, LinearRegression)
    return LeastSquares(
        X, targets, float(penalty), weight, estimator.fit_intercept, minimum_norm=minimum_norm
    )


def _ridge_classifier(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    if not _are_labels(y):
        return None
    return _least_squares(estimator, X, _one_against_rest(y), _weights_of(estimator, y, weight))


def _linear_svc(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    plain = estimator.penalty == "l2" and estimator.multi_class == "ovr"
    if not plain or not estimator.fit_intercept or not _are_labels(y):
        return None
    cost = _costs(estimator, X, _weights_of(estimator, y, weight))
    if estimator.loss == "hinge":
        if estimator.dual is False or min(X.shape) > MOST_FREE:
            return None
        return PenalisedHinge(X, _one_against_rest(y), cost, float(estimator.intercept_scaling))
    return SquaredHinge(X, _one_against_rest(y), cost, float(estimator.intercept_scaling))


def _svc(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    if estimator.kernel != "linear" or getattr(estimator, "probability", False) is True:
        return None
    if not _are_labels(y):
        return None
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        return None  # scikit-learn raises the error
    weights = _weights_of(estimator, y, weight)
    pairs = []
    for first in range(classes.size):
        for second in range(first + 1, classes.size):
            rows = np.flatnonzero((codes == first) | (codes == second))
            pairs.append((rows, codes[rows] == second))
    is_tall = len(X) > MOST_SAMPLES
    problems = [
        _problem(X, rows, Binary(on.astype(np.intp)), weights, is_reversed=not is_tall) for rows, on in pairs
    ]
    return SupportVectors(problems, float(estimator.C), None, is_tall=is_tall)


def _svr(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    if estimator.kernel != "linear" or y.ndim != 1 or y.dtype.kind not in "fiu":
        return None
    is_tall = len(X) > MOST_SAMPLES
    problem = _problem(X, slice(None), Real.of(y), weight, is_reversed=not is_tall)
    return SupportVectors([problem], float(estimator.C), float(estimator.epsilon), is_tall=is_tall)


def _logistic(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    penalised = getattr(estimator, "penalty", "l2") in ("l2", "deprecated")
    ridge = not getattr(estimator, "l1_ratio", 0.0)
    if not (penalised and ridge and estimator.fit_intercept) or estimator.solver == "liblinear":
        return None
    if not np.isfinite(estimator.C) or not _are_labels(y):
        return None
    codes = _codes_of(y)
    if not codes.any():
        return None  # scikit-learn raises the error
    is_binary = int(codes.max()) == 1
    one_softmax = getattr(estimator, "multi_class", "auto") in ("auto", "deprecated", "multinomial")
    unknowns = min(X.shape) * (1 if is_binary else int(codes.max()) + 1)
    if unknowns > MOST_UNKNOWNS or not (is_binary or one_softmax):
        return None
    weights = _weights_of(estimator, y, weight)
    return Logistic(X, codes, float(estimator.C) * (np.ones(len(X)) if weights is None else weights))


BUILDERS: dict[type, Any] = {
    Ridge: _least_squares,
    LinearRegression: _least_squares,
    RidgeClassifier: _ridge_classifier,
    LinearSVC: _linear_svc,
    SVC: _svc,
    SVR: _svr,
    LogisticRegression: _logistic,
}


def _are_labels(y: Any) -> bool:
    """Whether y has one label per sample; scikit-learn's slower check is used only for unusual types."""
    is_plain = y.ndim == 1 and y.dtype.kind in "biuU"
    return is_plain or type_of_target(y) in (Binary.kind, Multiclass.kind)


def _two_labels(y: Any) -> tuple[Any, Any] | None:
    """The two labels in ascending order (equal if there is one), None for more; faster than sorting all labels."""
    other = y[y != y[0]]
    if other.size == 0:
        return y[0], y[0]
    return None if np.any(other != other[0]) else tuple(sorted((y[0], other[0])))


def _codes_of(y: Any) -> IntArray:
    """Index of the class of each sample in the sorted labels."""
    two = _two_labels(y) if y.ndim == 1 else None
    if two is None or two[0] == two[1]:
        return np.unique(y, return_inverse=True)[1]
    return np.asarray(y == two[1], dtype=np.intp)


def _one_against_rest(y: Any) -> FloatArray:
    """±1 targets, one column for two classes, one per class for more."""
    classes = np.unique(y)
    targets = np.where(y[:, None] == classes[None, :], 1.0, -1.0)
    return targets[:, 1:] if classes.size == 2 else targets


def _weights_of(estimator: Any, y: Any, weight: FloatArray | None) -> FloatArray | None:
    if estimator.class_weight is None:
        return weight
    by_class = compute_sample_weight(estimator.class_weight, y)
    return np.asarray(by_class if weight is None else by_class * weight, dtype=np.float64)


def _costs(estimator: Any, X: FloatArray, weight: FloatArray | None) -> FloatArray:
    """The cost C of an error of each sample."""
    cost = np.full(len(X), float(estimator.C))
    return cost if weight is None else cost * weight


def _problem(
    X: FloatArray, rows: IntArray | slice, target: Target, weight: FloatArray | None, *, is_reversed: bool
) -> Problem:
    """The problem on some samples, with all columns in order or in reverse order."""
    chosen = None if weight is None else weight[rows]
    if is_reversed:
        return Problem(as_design(np.asfortranarray(X[rows][:, ::-1])), target, sample_weight=chosen)
    return Problem(as_design(X, check_finite=False).take_rows(rows), target, sample_weight=chosen)


# -- Ranker of an elimination --


class KnownRanker:
    """Importances from a known model, or from the estimator itself in rounds where the model is not accurate."""

    def __init__(self, model: KnownModel, refits: Refits) -> None:
        self.model, self.refits = model, refits
        model.precision = PRECISION
        self.is_exact, self.is_usable = False, True
        # Other estimators are scored through an object that only predicts.
        self.stands_in_as_itself = not isinstance(refits.estimator, (SVC, SVR, RidgeClassifier))

    def importances(self, features: IntArray) -> FloatArray:
        if not self.is_usable:
            return self.refits.importances(features)
        if features.size < self.model.active.size:
            gone = np.ones(int(self.model.active[-1]) + 1, dtype=bool)
            gone[features] = False
            self.model.remove(self.model.active[gone[self.model.active]])
        if self.refits.verbose > 0:
            self.refits.announce(features)
        return self._importances()

    def _importances(self) -> FloatArray:
        """Squared weights of the remaining features."""
        self.is_exact = self.model.train()
        if not self.is_exact:
            return self.refits.importances(self.model.active)
        bits = (self.model.weights**2).sum(axis=0).view(np.int64)
        return np.asarray(((bits + HALF_OF_LAST) & SIGNIFICANT).view(np.float64))

    def one_by_one(self, n_stop: int) -> Rounds | None:
        """All rounds with one feature removed in each, with little overhead between two trainings."""
        model = self.model
        if isinstance(model, SupportVectors) and not model.is_tall:
            if len(model.problems) > 1:
                return None
            found = model.one_by_one(n_stop)
            self.is_usable = found is not None
            return found
        model.smallest_suffices = True
        p = model.active.size
        rounds = Rounds.of_all(p)
        for size in range(p, n_stop, -1):
            value = self._importances()
            index = int(np.argmin(value))
            feature = int(model.active[index])
            rounds.values[feature] = value[index]
            rounds.eliminated.append(feature)
            rounds.ranking[feature] = size - n_stop + 1
            rounds.support[feature] = False
            model.remove(model.active[index : index + 1])
        rounds.sizes = list(range(p, n_stop, -1))
        return rounds

    def fitted(self) -> Any:
        """The estimator of the last training; for SVMs an object with the same decision values."""
        if not self.is_exact:
            return self.refits.fitted()
        return stand_in(self.refits.estimator, self.refits.y, self.model.weights, self.model.intercept)

    def collect(self, predictions: Predictions, features: IntArray) -> None:
        """Add the predictions of the last model without the input checks of an estimator."""
        if self.is_exact:
            predictions.add_linear(features, self.model.weights, self.model.intercept)
        else:
            self.refits.collect(predictions, features)
