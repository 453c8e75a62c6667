"""Multiclass support vector machines (SVMs): one for every pair of classes, and a vote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.resampling.predictors._standardized import OnStandardized, unchecked_parameters
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import solve_svm_dual
from zeronorm.solvers.svm._tall import TallSolution, solve_linear_loss

# Number of samples of two overlapping classes, with fewer features, from which on LIBSVM takes seconds to minutes. Up
# to this number the kernel matrix stays in the cache, and LIBSVM takes a fraction of that time.
LARGEST_FOR_LIBSVM = 500
# Number of samples of two classes up to which solving a Gaussian SVM is faster than the checks of scikit-learn.
LARGEST_NONLINEAR = 100
FEW_LABELS = 1 << 13


class _PairModel(SVC):  # type: ignore[misc]
    """``SVC`` (one SVM for every pair of classes, and a vote) that avoids LIBSVM where LIBSVM is slow.

    With few samples the checks of scikit-learn take ten times longer than the solution. With more samples than
    features LIBSVM may be slow: for 1300 samples and 480 features that hardly separate the classes it takes half a
    minute, an interior-point method a fifth of a second.
    """

    def fit(self, X: Any, y: Any) -> Self:
        y = np.asarray(y)
        self.classes_, members = _members_of_classes(y)
        self.pairs_ = self._solve(X, y, members)
        if self.pairs_ is None:
            with unchecked_parameters():
                super().fit(X, y)
        else:
            self.intercept_ = self.pairs_.bias
        return self

    def _solve(
        self, X: FloatArray, y: NDArray[Any], members: tuple[IntArray, ...]
    ) -> _Pairs | NonlinearPairs | None:
        """The SVMs of all pairs of classes; None leaves the fit, and errors about the data, to LIBSVM."""
        n_classes, is_linear = self.classes_.size, self.kernel == "linear"
        known = is_linear or (
            self.kernel == "rbf" and (self.gamma == "scale" or isinstance(self.gamma, float))
        )
        known = known and self.class_weight in (None, "balanced")
        known = known and self.decision_function_shape == "ovr" and not self.break_ties
        if not known or self.probability is True or n_classes < 2 or not _are_labels(y) or len(X) != len(y):
            return None
        largest = sum(sorted(rows.size for rows in members)[-2:])
        is_large = largest > LARGEST_FOR_LIBSVM
        if not is_linear and largest > LARGEST_NONLINEAR:
            return None
        if is_large and (n_classes > 2 or largest <= X.shape[1]):
            return None
        X = X.astype(np.float64, copy=False)
        if is_large:
            solution = self._solve_tall(X, y == self.classes_[1], members)
            return (
                _Pairs(solution.weights[None], np.atleast_1d(solution.bias)) if solution.converged else None
            )
        costs = self._costs(members)
        return (
            _solve_pairs(X, members, costs) if is_linear else _solve_nonlinear(X, members, costs, self.gamma)
        )

    def _costs(self, members: tuple[IntArray, ...]) -> FloatArray:
        """C of each class: with balanced weights C n / (q n_c), so that the costs of all q classes have one sum."""
        n_classes = len(members)
        if self.class_weight is None:
            return np.full(n_classes, float(self.C))
        counts = np.asarray([rows.size for rows in members])
        return np.asarray(float(self.C) * (counts.sum() / (n_classes * counts)))

    def _solve_tall(
        self, X: FloatArray, is_second: NDArray[np.bool_], members: tuple[IntArray, ...]
    ) -> TallSolution:
        first, second = self._costs(members)
        costs = np.where(is_second, second, first)
        problem = BoxDual.classification(np.where(is_second, 1.0, -1.0), costs, squared=False)
        return solve_linear_loss(as_design(np.ascontiguousarray(X)), problem, beyond=False)

    @property
    def coef_(self) -> Any:
        """The weights of the features, one row for each pair of classes."""
        return self.pairs_.weights if isinstance(self.pairs_, _Pairs) else super().coef_

    def decision_function(self, X: Any) -> Any:
        if self.pairs_ is None:
            return super().decision_function(X)
        values = self.pairs_.values(X)
        if self.classes_.size == 2:
            return values[:, 0]
        votes, confidence = _votes(values, self.classes_.size)
        return votes + confidence / (3.0 * (np.abs(confidence) + 1.0))

    def predict(self, X: Any) -> Any:
        if self.pairs_ is None:
            return super().predict(X)
        values = self.pairs_.values(X)
        if self.classes_.size == 2:
            return self.classes_[(values[:, 0] >= 0.0).astype(int)]
        return self.classes_[_votes(values, self.classes_.size)[0].argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Linear SVMs of pairs of classes, one row of weights each, in the order 0-1, 0-2, ..., 1-2, ..."""

    weights: FloatArray
    bias: FloatArray

    def values(self, X: FloatArray) -> FloatArray:
        """The decision values of all pairs, one column each."""
        return np.asarray(X @ self.weights.T + self.bias)


@dataclass(frozen=True, eq=False)
class NonlinearPairs:
    """Gaussian SVMs of pairs of classes: support vectors, weights by pair, bias, and γ of the kernel."""

    support: FloatArray
    weights: FloatArray
    bias: FloatArray
    gamma: float

    def values(self, X: FloatArray) -> FloatArray:
        """The decision values of all pairs, one column each."""
        return np.asarray(_gaussian(X, self.support, self.gamma) @ self.weights.T + self.bias)


def _gaussian(X: FloatArray, Z: FloatArray, gamma: float) -> FloatArray:
    """exp(-γ |x - z|²) for all pairs of rows."""
    squared = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2.0 * (X @ Z.T)
    return np.asarray(np.exp(-gamma * np.maximum(squared, 0.0)))


def _solve_pairs(X: FloatArray, members: tuple[IntArray, ...], C: FloatArray) -> _Pairs | None:
    """Linear SVMs of all pairs of classes, whose samples are given; None where one did not converge."""
    weights, bias = [], []
    for rows, labels, costs in _pairs_of_classes(members, C):
        part = X[rows]
        solution = solve_svm_dual(part @ part.T, labels, C=costs)
        if not solution.converged:
            return None
        weights.append(solution.dual_coef @ part)
        bias.append(solution.bias)
    return _Pairs(np.asarray(weights), np.asarray(bias))


def _usual_gamma(X: FloatArray) -> float:
    """γ="scale" of scikit-learn: one over the number of columns and the variance of all values."""
    variance = float(X.var())
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _solve_nonlinear(
    X: FloatArray, members: tuple[IntArray, ...], C: FloatArray, gamma: float | str
) -> NonlinearPairs | None:
    """Gaussian SVMs of all pairs of classes, γ given or usual; None where one did not converge."""
    gamma = _usual_gamma(X) if isinstance(gamma, str) else gamma
    K = _gaussian(X, X, gamma)
    coefficients, bias = [], []
    for rows, labels, costs in _pairs_of_classes(members, C):
        solution = solve_svm_dual(K[np.ix_(rows, rows)], labels, C=costs)
        if not solution.converged:
            return None
        coefficients.append(np.zeros(len(X)))
        coefficients[-1][rows] = solution.dual_coef
        bias.append(solution.bias)
    used = np.any(coefficients, axis=0)
    return NonlinearPairs(X[used], np.asarray(coefficients)[:, used], np.asarray(bias), gamma)


def _pairs_of_classes(
    members: tuple[IntArray, ...], C: FloatArray
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Samples, labels and costs of each pair; ``C`` has one cost per class.

    The label +1 is the second of two classes, but the first of a pair with more classes.
    """
    sign = 1.0 if len(members) > 2 else -1.0
    for first, second in combinations(range(len(members)), 2):
        sizes = [members[first].size, members[second].size]
        labels = sign * np.repeat([1.0, -1.0], sizes)
        yield np.concatenate([members[first], members[second]]), labels, np.repeat(C[[first, second]], sizes)


def _members_of_classes(y: NDArray[Any]) -> tuple[NDArray[Any], tuple[IntArray, ...]]:
    """The classes and the samples of each; the last result is cached for the other subsets of features."""
    if y.ndim == 1 and y.size <= FEW_LABELS and y.dtype.kind in "biufUS":
        return _members_in_memory(y.dtype.str, y.tobytes())
    classes = np.unique(y)
    return classes, tuple(np.flatnonzero(y == label) for label in classes)


@lru_cache(maxsize=1)
def _members_in_memory(dtype: str, labels: bytes) -> tuple[NDArray[Any], tuple[IntArray, ...]]:
    y = np.frombuffer(labels, dtype=dtype)
    classes = np.unique(y)
    classes.flags.writeable = False  # the cached arrays are shared
    return classes, tuple(np.flatnonzero(y == label) for label in classes)


def _are_labels(y: NDArray[Any]) -> bool:
    """Whether these are certainly class labels; everything else is left to the errors of scikit-learn."""
    if y.ndim != 1 or y.dtype.kind not in "biufUSO":
        return False
    if y.dtype.kind == "O":
        return all(isinstance(label, str) for label in y)
    return y.dtype.kind != "f" or bool(np.all(y == np.round(y)))


def _votes(values: FloatArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Number of pairs that each class wins, and the sum of its decision values; zero counts for the second class."""
    votes, confidence = np.zeros((2, len(values), n_classes))
    for value, (first, second) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        votes[:, first] += value > 0.0
        votes[:, second] += value <= 0.0
        confidence[:, first] += value
        confidence[:, second] -= value
    return votes, confidence


class StandardizedSVC(OnStandardized, _PairModel):
    """A support vector machine on standardised columns."""

    def decision_function(self, X: Any) -> Any:
        """Decision values of the standardised samples."""
        return super().decision_function(self._standardized(X))


class StandardizedGaussianSVC(StandardizedSVC):
    """A support vector machine with a Gaussian kernel, whose γ is a multiple of the usual one."""

    def __init__(
        self,
        *,
        C: float = 1.0,
        gamma_factor: float = 1.0,
        class_weight: Any = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(C=C, class_weight=class_weight, random_state=random_state)
        self.gamma_factor = gamma_factor

    def fit_standardized(self, X: FloatArray, means: FloatArray, scales: FloatArray, y: Any) -> Self:
        """Fit on standardised columns, with γ from their number."""
        self.gamma = self.gamma_factor * _usual_gamma(X)
        return super().fit_standardized(X, means, scales, y)
