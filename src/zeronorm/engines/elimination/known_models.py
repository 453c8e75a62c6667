"""Linear estimators of scikit-learn whose solution is followed as features leave, instead of being found anew.

Each model gives the weights and intercepts that the estimator would have if it were trained to the last digit. Where
that cannot be done to full accuracy, the round is left to the estimator itself.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines.elimination.gram import GramMachines
from zeronorm.engines.elimination.kernel import Refits, Rounds
from zeronorm.engines.elimination.linear import LogisticMachines
from zeronorm.engines.elimination.loop import Downdating, Elimination
from zeronorm.selection.problem import Problem
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.box_dual import BoxDual

TOLERANCE = 1e-8  # of the solvers below, in units of the margin
LARGEST = 2**28  # entries of X beyond which nothing is copied
MOST_SAMPLES = 2000  # beyond, a machine on the Gram matrix has no advantage
SIGNIFICANT_BITS = 2.0**36  # weights that agree in so many are tied: those of identical columns do
RESIDUAL = 1e-12  # of normal equations, relative to their terms
AT_BOUND = 1e-9  # share of its range by which a dual variable may miss a bound and be there
WORST_CONDITION = 1e8
WEAKEST_PENALTY = 1e-10  # relative to the sum of squares of X
DOWNDATES = 64  # removals after which an inverse is computed afresh
NEWTON_STEPS = 200


class KnownModel(ABC):
    """The exact solution on a shrinking set of features: one row of weights and one intercept per output."""

    weights: FloatArray
    intercept: FloatArray

    def __init__(self, n_features: int) -> None:
        self.alive: IntArray = np.arange(n_features)

    @abstractmethod
    def train(self) -> bool:
        """Solve on the features that are left; False where the solution is not accurate."""

    def remove(self, features: IntArray) -> None:
        """Take features out."""
        self.alive = self.alive[~np.isin(self.alive, features)]


# -- Least squares: Ridge, LinearRegression, RidgeClassifier --


class LeastSquares(KnownModel):
    r"""Closed form: the inverse of :math:`X^\top X + \lambda I` without some features is a Schur complement of it.

    With more features than samples, the n×n matrix :math:`X X^\top + \lambda I` is factored in every round.
    """

    def __init__(
        self, X: FloatArray, Y: FloatArray, penalty: float, sample_weight: FloatArray | None, intercept: bool
    ) -> None:
        super().__init__(X.shape[1])
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        self.x_mean = np.average(X, axis=0, weights=weight) if intercept else np.zeros(X.shape[1])
        self.y_mean = np.average(Y, axis=0, weights=weight) if intercept else np.zeros(Y.shape[1])
        root = np.sqrt(weight)[:, None]
        self.X, self.Y = root * (X - self.x_mean), root * (Y - self.y_mean)
        self.penalty = penalty
        self.normal: tuple[FloatArray, FloatArray] | None = None
        self.K: FloatArray | None = None
        self.inverse: FloatArray | None = None
        self.n_downdates = 0

    def train(self) -> bool:
        columns = self.X[:, self.alive]
        solve = self._in_samples if columns.shape[1] > columns.shape[0] else self._in_features
        found = solve(columns)
        if found is None:
            return False
        self.weights = found.T
        self.intercept = self.y_mean - self.weights @ self.x_mean[self.alive]
        return True

    def _in_samples(self, columns: FloatArray) -> FloatArray | None:
        if self.penalty <= WEAKEST_PENALTY * (self.X**2).sum():
            return None
        if self.K is None:
            self.K = columns @ columns.T
            self.downdating = Downdating(as_design(self.X))
            self.downdating.start(self.alive)
        system = self.K + self.penalty * np.eye(len(self.K))
        try:
            solution = cho_solve(cho_factor(system), self.Y)
        except LinAlgError:
            return None
        return np.asarray(columns.T @ solution) if _solves(system, solution, self.Y) else None

    def _in_features(self, columns: FloatArray) -> FloatArray | None:
        if self.normal is None:
            self.normal_of = self.alive
            self.normal = columns.T @ columns, columns.T @ self.Y
        place = np.searchsorted(self.normal_of, self.alive)
        system, right = self.normal[0][np.ix_(place, place)], self.normal[1][place]
        system.flat[:: len(system) + 1] += self.penalty
        for attempt in range(2):
            if self.inverse is None or len(self.inverse) != len(system) or self.n_downdates > DOWNDATES:
                try:
                    self.inverse = cho_solve(cho_factor(system), np.eye(len(system)))
                except LinAlgError:
                    return None
                self.n_downdates = 0
            solution = np.asarray(self.inverse @ right)
            solution += self.inverse @ (right - system @ solution)
            if _solves(system, solution, right) and _is_regular(system, self.inverse):
                return solution
            if attempt == 0:
                self.inverse = None
        return None

    def remove(self, features: IntArray) -> None:
        gone = np.isin(self.alive, features)
        if self.inverse is not None:
            stay = ~gone
            block = self.inverse[np.ix_(gone, gone)]
            cross = self.inverse[np.ix_(stay, gone)]
            try:
                self.inverse = self.inverse[np.ix_(stay, stay)] - cross @ np.linalg.solve(block, cross.T)
                self.n_downdates += 1
            except LinAlgError:
                self.inverse = None
        if self.K is not None:
            columns = self.X[:, features]
            self.K = self.K - columns @ columns.T
            if self.downdating.is_due(features, self.alive[~gone]):
                self.K = None
        super().remove(features)


def _solves(system: FloatArray, solution: FloatArray, right: FloatArray) -> bool:
    """Whether the residual is as small as rounding allows."""
    residual = np.abs(system @ solution - right).max()
    terms = np.abs(system).max() * np.abs(solution).max() + np.abs(right).max()
    return bool(np.isfinite(residual) and residual <= RESIDUAL * terms)


def _is_regular(system: FloatArray, inverse: FloatArray) -> bool:
    """Whether columns of unit length would be far from dependent (condition number in the 1-norm)."""
    scale = np.sqrt(np.diagonal(system))
    if not np.all(scale > 0.0):
        return False
    lengths = np.outer(scale, scale)
    condition = np.abs(system / lengths).sum(axis=0).max() * np.abs(inverse * lengths).sum(axis=0).max()
    return bool(condition < WORST_CONDITION)


# -- LinearSVC: squared hinge loss, the intercept penalised with the weights --


class SquaredHinge(KnownModel):
    r"""Newton's method on :math:`\tfrac12\|w\|^2 + \sum_i C_i \max(0, 1 - y_i f_i)^2`, from the last solution.

    The loss is quadratic while the same samples lie inside the margin: with few changes of that set, few systems are
    solved. In samples, w is a combination of rows and the system one of the kernel matrix.
    """

    def __init__(
        self, X: FloatArray, targets: FloatArray, cost: FloatArray, intercept_scaling: float
    ) -> None:
        super().__init__(X.shape[1])
        self.X, self.targets, self.cost = X, targets, cost
        self.scaling = intercept_scaling
        self.K: FloatArray | None = None
        self.downdating = Downdating(as_design(X))
        self.decision = np.zeros((targets.shape[1], len(X)))
        self.norm_sq = np.zeros(targets.shape[1])

    def train(self) -> bool:
        columns = np.column_stack([self.X[:, self.alive], np.full(len(self.X), self.scaling)])
        in_samples = columns.shape[1] > columns.shape[0]
        if in_samples and self.K is None:
            self.K = columns @ columns.T
            self.downdating.start(self.alive)
        weights = []
        for c in range(self.targets.shape[1]):
            found = self._newton(c, columns, self.K if in_samples else None)
            if found is None:
                return False
            weights.append(found)
        stacked = np.stack(weights)
        self.weights, self.intercept = stacked[:, :-1], stacked[:, -1] * self.scaling
        return True

    def _newton(self, c: int, columns: FloatArray, K: FloatArray | None) -> FloatArray | None:
        y = self.targets[:, c]
        # Signs of the last decision values tell which samples are inside; the rest starts from zero.
        inside = y * self.decision[c] < 1.0
        decision, weights = np.zeros(len(y)), np.zeros(columns.shape[1])
        objective = np.inf
        for _ in range(NEWTON_STEPS):
            target = self._minimiser(columns, K, y, inside)
            new_decision = columns @ target
            if np.array_equal(y * new_decision < 1.0, inside):
                self.decision[c] = new_decision
                return target
            length, step, change = 1.0, target - weights, new_decision - decision
            while length > 1e-12:
                trial, trial_decision = weights + length * step, decision + length * change
                value = self._objective(trial, trial_decision, y)
                if value < objective:
                    break
                length *= 0.5
            else:
                return None
            weights, decision, objective = trial, trial_decision, value
            inside = y * decision < 1.0
        return None

    def _minimiser(
        self, columns: FloatArray, K: FloatArray | None, y: FloatArray, inside: BoolArray
    ) -> FloatArray:
        rows, price = columns[inside], 2.0 * self.cost[inside]
        if K is None:
            system = np.eye(columns.shape[1]) + rows.T @ (price[:, None] * rows)
            return np.asarray(cho_solve(cho_factor(system), rows.T @ (price * y[inside])))
        system = K[np.ix_(inside, inside)]
        system.flat[:: len(system) + 1] += 1.0 / price
        return np.asarray(rows.T @ cho_solve(cho_factor(system), y[inside]))

    def _objective(self, weights: FloatArray, decision: FloatArray, y: FloatArray) -> float:
        return float(0.5 * weights @ weights + self.cost @ np.maximum(0.0, 1.0 - y * decision) ** 2)

    def remove(self, features: IntArray) -> None:
        super().remove(features)
        if self.K is not None:
            columns = self.X[:, features]
            self.K = None if self.downdating.is_due(features, self.alive) else self.K - columns @ columns.T


# -- SVC and SVR with a linear kernel, LogisticRegression for two classes --


class SupportVectors(KnownModel):
    """Machines in the dual, one per pair of classes (or one for regression), each on its own samples."""

    def __init__(self, problems: list[Problem], C: float, epsilon: float) -> None:
        super().__init__(problems[0].n_features)
        settings: dict[str, Any] = {"C": C, "loss": "hinge", "epsilon": epsilon, "tol": TOLERANCE}
        self.machines = [GramMachines(p, max_iter=200_000, tie_share=0.0, **settings) for p in problems]
        self.problems = problems

    def train(self) -> bool:
        weights, biases = [], []
        for machine in self.machines:
            machine.status = Status.CONVERGED
            machine.train()
            if machine.status > Status.STALLED:
                return False
            dual = BoxDual(
                machine.sample, machine.sign[0], machine.linear[0], machine.upper[0], machine.ridge
            )
            weights.append(machine.weights()[:, 0])
            # Where no variable is free the intercept may be anything in an interval, of which both take the middle.
            alpha, upper = machine.alpha[0], machine.upper[0]
            settled = np.where(
                alpha > (1.0 - AT_BOUND) * upper, upper, np.where(alpha < AT_BOUND * upper, 0.0, alpha)
            )
            biases.append(dual.bias(settled, machine.f[0]))
        self.weights, self.intercept = np.stack(weights), np.array(biases)
        return True

    def remove(self, features: IntArray) -> None:
        super().remove(features)
        for machine in self.machines:
            machine.remove(features)

    def one_by_one(self, n_stop: int) -> Rounds | None:
        """All rounds at once with the exact shortcuts of ``GramMachines``; None where they are not accurate."""
        record, machine, p = Elimination(self.problems[0]), self.machines[0], self.alive.size
        machine.eliminate_one_by_one(record, n_stop + 1)
        if record.status > Status.STALLED or record.n_eliminated != p - n_stop:
            return None
        rounds = Rounds(np.ones(p, dtype=bool), np.ones(p, dtype=np.intp), values=record.scores)
        eliminated = record.eliminated
        rounds.eliminated = eliminated.tolist()
        rounds.support[eliminated] = False
        rounds.ranking[eliminated] = np.arange(p - n_stop + 1, 1, -1)
        rounds.sizes = list(range(p, n_stop, -1))
        return rounds


class Logistic(KnownModel):
    """Newton's method on the Gram matrix, from the last solution."""

    def __init__(self, problem: Problem, C: float) -> None:
        super().__init__(problem.n_features)
        self.machines = LogisticMachines(problem, C=C, tol=TOLERANCE, max_iter=100)

    def train(self) -> bool:
        self.machines.status = Status.CONVERGED
        self.machines.train()
        self.weights, self.intercept = self.machines.weights().T, self.machines.bias.copy()
        return self.machines.status <= Status.STALLED

    def remove(self, features: IntArray) -> None:
        super().remove(features)
        self.machines.remove(features)


# -- which estimator is which model --


def known_model(estimator: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> KnownModel | None:
    """The model of an estimator whose weights are determined by a problem solved here, or None."""
    builder = BUILDERS.get(type(estimator))
    if builder is None or set(fit_params) - {"sample_weight"} or min(X.shape) < 2 or np.size(y) < 2:
        return None
    if X.shape[0] * X.shape[1] > LARGEST:
        return None
    dense = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    weight = fit_params.get("sample_weight")
    if weight is not None:
        weight = _check_sample_weight(weight, dense, dtype=np.float64)
        if not np.all(weight > 0.0):
            return None
    with np.errstate(over="ignore", invalid="ignore"):
        is_ordinary = bool(np.isfinite((dense**2).sum()))
    return builder(estimator, dense, np.asarray(y), weight) if is_ordinary else None


def _least_squares(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    penalty: Any = getattr(estimator, "alpha", 0.0)
    is_plain = isinstance(penalty, numbers.Real) and 0.0 <= float(penalty) < np.inf
    if not is_plain or getattr(estimator, "positive", False):
        return None
    if y.dtype.kind not in "fiu" or not np.all(np.isfinite(y)):
        return None
    targets = y.reshape(len(X), -1).astype(np.float64)
    return LeastSquares(X, targets, float(penalty), weight, estimator.fit_intercept)


def _ridge_classifier(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    if type_of_target(y) not in ("binary", "multiclass"):
        return None
    return _least_squares(estimator, X, _one_against_rest(y), _weights_of(estimator, y, weight))


def _linear_svc(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    plain = estimator.penalty == "l2" and estimator.loss == "squared_hinge" and estimator.multi_class == "ovr"
    if not plain or not estimator.fit_intercept or type_of_target(y) not in ("binary", "multiclass"):
        return None
    cost = np.full(len(X), float(estimator.C))
    weights = _weights_of(estimator, y, weight)
    if weights is not None:
        cost = cost * weights
    return SquaredHinge(X, _one_against_rest(y), cost, float(estimator.intercept_scaling))


def _svc(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    if (
        estimator.kernel != "linear"
        or len(X) > MOST_SAMPLES
        or getattr(estimator, "probability", False) is True
    ):
        return None
    if type_of_target(y) not in ("binary", "multiclass"):
        return None
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        return None  # scikit-learn says what is wrong
    weights = _weights_of(estimator, y, weight)
    problems = []
    for first in range(classes.size):
        for second in range(first + 1, classes.size):
            rows = np.flatnonzero((codes == first) | (codes == second))
            pair = (codes[rows] == second).astype(np.intp)
            problems.append(_reversed_problem(X[rows], pair, None if weights is None else weights[rows]))
    return _Reversed(SupportVectors(problems, float(estimator.C), 0.1))


def _svr(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    if estimator.kernel != "linear" or len(X) > MOST_SAMPLES or y.ndim != 1 or y.dtype.kind not in "fiu":
        return None
    problem = _reversed_problem(X, y.astype(np.float64), weight, task="regression")
    return _Reversed(SupportVectors([problem], float(estimator.C), float(estimator.epsilon)))


def _logistic(estimator: Any, X: FloatArray, y: Any, weight: FloatArray | None) -> KnownModel | None:
    penalised = getattr(estimator, "penalty", "l2") in ("l2", "deprecated")
    ridge = not getattr(estimator, "l1_ratio", 0.0)
    if not (penalised and ridge and estimator.fit_intercept) or estimator.solver == "liblinear":
        return None
    if not np.isfinite(estimator.C) or type_of_target(y) != "binary":
        return None
    codes = np.unique(y, return_inverse=True)[1]
    if not codes.any():
        return None  # scikit-learn says what is wrong
    problem = Problem(as_design(X), codes, "binary", sample_weight=_weights_of(estimator, y, weight))
    return Logistic(problem, float(estimator.C))


BUILDERS: dict[type, Any] = {
    Ridge: _least_squares,
    LinearRegression: _least_squares,
    RidgeClassifier: _ridge_classifier,
    LinearSVC: _linear_svc,
    SVC: _svc,
    SVR: _svr,
    LogisticRegression: _logistic,
}


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


def _reversed_problem(X: FloatArray, y: Any, weight: FloatArray | None, task: Any = "binary") -> Problem:
    design = as_design(np.asfortranarray(X[:, ::-1]))
    return Problem(design, y, task, sample_weight=weight)


class _Reversed(KnownModel):
    """Machines on the columns in reverse: of equal weights theirs leaves last that scikit-learn's removes first."""

    def __init__(self, inner: SupportVectors) -> None:
        super().__init__(inner.alive.size)
        self.inner, self.last = inner, inner.alive.size - 1

    def train(self) -> bool:
        accurate = self.inner.train()
        if accurate:
            self.weights, self.intercept = self.inner.weights[:, ::-1], self.inner.intercept
        return accurate

    def remove(self, features: IntArray) -> None:
        super().remove(features)
        self.inner.remove(np.sort(self.last - features))

    def one_by_one(self, n_stop: int) -> Rounds | None:
        rounds = self.inner.one_by_one(n_stop)
        if rounds is None:
            return None
        rounds.support, rounds.ranking = rounds.support[::-1], rounds.ranking[::-1]
        rounds.values = rounds.values[::-1].copy()
        rounds.eliminated = [self.last - feature for feature in rounds.eliminated]
        return rounds


# -- as rankers of an elimination --


class KnownRanker:
    """Weights of a known model, or of the estimator itself in rounds where the model is not accurate."""

    def __init__(self, model: KnownModel, refits: Refits) -> None:
        self.model, self.refits = model, refits
        self.is_exact, self.is_usable = False, True
        # Others are scored through an object that only predicts.
        self.stands_in_as_itself = not isinstance(refits.estimator, (SVC, SVR, RidgeClassifier))

    def importances(self, features: IntArray) -> FloatArray:
        if not self.is_usable:
            return self.refits.importances(features)
        gone = self.model.alive[~np.isin(self.model.alive, features)]
        if gone.size:
            self.model.remove(gone)
        if self.refits.verbose > 0:
            self.refits.announce(features)
        self.is_exact = self.model.train()
        if not self.is_exact:
            return self.refits.importances(features)
        mantissa, exponent = np.frexp((self.model.weights**2).sum(axis=0))
        return np.asarray(np.ldexp(np.round(mantissa * SIGNIFICANT_BITS) / SIGNIFICANT_BITS, exponent))

    def one_by_one(self, n_stop: int) -> Rounds | None:
        """All rounds of one feature each, where the model has a shortcut for them."""
        if not isinstance(self.model, _Reversed) or len(self.model.inner.machines) > 1:
            return None
        rounds = self.model.one_by_one(n_stop)
        self.is_usable = rounds is not None
        return rounds

    def fitted(self) -> Any:
        """The estimator of the last training; machines are stood in for by one with the same decisions."""
        if not self.is_exact:
            return self.refits.fitted()
        return stand_in(self.refits.estimator, self.refits.y, self.model.weights, self.model.intercept)


def stand_in(estimator: Any, y: Any, weights: FloatArray, intercept: FloatArray) -> Any:
    """An object that predicts as the estimator with these weights does."""
    if isinstance(estimator, (Ridge, LinearRegression)):
        model = clone(estimator)
        flat = np.ndim(y) == 1
        model.coef_, model.intercept_ = (weights[0], float(intercept[0])) if flat else (weights, intercept)
    elif isinstance(estimator, (LogisticRegression, LinearSVC)):
        model = clone(estimator)
        model.coef_, model.intercept_, model.classes_ = weights, intercept, np.unique(y)
    elif isinstance(estimator, SVR):
        return LinearRegressor(weights[0], float(intercept[0]))
    else:
        return LinearVotes(weights, intercept, np.unique(y), pairwise=isinstance(estimator, SVC))
    model.n_features_in_ = weights.shape[1]
    return model


class LinearRegressor(RegressorMixin, BaseEstimator):
    """Predictions x·w + b."""

    def __init__(self, coef: Any = None, intercept: Any = None) -> None:
        self.coef, self.intercept = coef, intercept

    def predict(self, X: Any) -> FloatArray:
        """Values for the rows of X."""
        return np.asarray(X @ self.coef + self.intercept)


class LinearVotes(ClassifierMixin, BaseEstimator):
    """The class with the largest value, or with the most votes where each pair of classes has its own weights."""

    def __init__(self, coef: Any = None, intercept: Any = None, classes: Any = None, pairwise: bool = False):
        self.coef, self.intercept, self.classes, self.pairwise = coef, intercept, classes, pairwise
        self.classes_ = classes

    def decision_function(self, X: Any) -> FloatArray:
        """Values of the machines; one-dimensional for two classes."""
        values = np.asarray(X @ self.coef.T + self.intercept)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Any:
        """Classes of the rows of X."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return self.classes_[(values > 0.0).astype(int)]
        if not self.pairwise:
            return self.classes_[values.argmax(axis=1)]
        votes = np.zeros((len(values), len(self.classes_)))
        pairs = [(a, b) for a in range(votes.shape[1]) for b in range(a + 1, votes.shape[1])]
        for (first, second), value in zip(pairs, values.T, strict=True):
            votes[np.arange(len(votes)), np.where(value > 0.0, second, first)] += 1
        return self.classes_[votes.argmax(axis=1)]
