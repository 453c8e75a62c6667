"""Wrapped estimators: their seeds, the predictor used when none is named, and the path of a fitted selector."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.utils.validation import assert_all_finite, has_fit_parameter

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.target import Target
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.dual import solve_svm_dual
from zeronorm.solvers.svm.tall import TallSolution, solve_linear_loss

LARGEST_KERNEL_PROBLEM = 5000
# Samples of two overlapping classes, with fewer features, from which on LIBSVM takes seconds to minutes. Up to here a
# kernel matrix of theirs stays in the cache, and the machine is found in a fraction of the time.
LARGEST_FOR_LIBSVM = 500
# Samples of two classes up to which a Gaussian machine is found before scikit-learn has checked them for LIBSVM.
LARGEST_CURVED = 100


@contextmanager
def quiet_inside(*kinds: type[Warning], starting: str = "") -> Iterator[None]:
    """Keep back warnings of a fit inside another one, which judges the same and can name a remedy that works.

    Warning filters are global to the process, so threads leave them to the caller.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        for kind in kinds:
            warnings.filterwarnings("ignore", starting, kind)
        yield


# -- Seeds for the random parts of wrapped estimators --


def seeded_clone(
    estimator: Any, seeds: np.random.SeedSequence | np.random.Generator, unset: list[str] | None = None
) -> Any:
    """A clone whose unset ``random_state`` parameters, also the nested ones, are fixed by ``seeds``.

    A ``random_state`` the user has chosen stays as it is. Who clones often gives the names of the
    ``unset`` parameters, which take longer to find than a small model to fit.
    """
    fresh = clone(estimator)
    unset = unset_random_states(fresh) if unset is None else unset
    if unset:
        fresh.set_params(**dict(zip(unset, _draw(seeds, len(unset)), strict=True)))
    return fresh


def fresh_copy(estimator: Any) -> Any:
    """A copy of an estimator that has not been fitted, to be fitted."""
    return copy.copy(estimator) if isinstance(estimator, OnStandardized) else copy.deepcopy(estimator)


def unset_random_states(estimator: Any) -> list[str]:
    """Names of the ``random_state`` parameters that are None."""
    params = estimator.get_params(deep=True)
    is_random = (name for name in params if name == "random_state" or name.endswith("__random_state"))
    return sorted(name for name in is_random if params[name] is None)


def _draw(seeds: np.random.SeedSequence | np.random.Generator, count: int) -> list[int]:
    if isinstance(seeds, np.random.SeedSequence):
        return [int(word) >> 1 for word in seeds.generate_state(count)]
    return [int(word) for word in seeds.integers(0, 2**31 - 1, size=count)]


def generator_from(random_state: Any) -> np.random.Generator:
    """A NumPy generator from anything scikit-learn accepts as ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    return np.random.default_rng(random_state)


# -- Sample groups for selectors that split the samples they get --


def group_params(selector: Any, groups: Any) -> dict[str, Any]:
    """The labels of the samples, for ``fit`` of a selector that keeps groups together, also by its own splitter."""
    if groups is None:
        return {}
    has_group_splitter = "Group" in type(getattr(selector, "cv", None)).__name__
    return {"groups": groups} if has_group_splitter or has_fit_parameter(selector, "groups") else {}


# -- The predictor that judges a selected subset when the user names none --


def gaussian_estimator(target: Target | type[Target], *, is_sparse: bool = False) -> Any:
    """The predictor of the target with a Gaussian kernel, whose width follows the columns."""
    return PREDICTORS[target.predictors["gaussian"]](0, is_sparse)


def default_estimator(target: Target | type[Target], *, n_samples: int, is_sparse: bool = False) -> Any:
    """The linear predictor of the target.

    Everything is fitted on the training part. Sparse columns are scaled but not centred. With many
    samples no kernel matrix is needed.
    """
    return PREDICTORS[target.predictors["linear"]](n_samples, is_sparse)


def _gaussian_svm(n_samples: int, is_sparse: bool) -> Any:
    if not is_sparse:
        return StandardizedSVC(random_state=0)
    return make_pipeline(StandardScaler(with_mean=False), SVC(random_state=0))


def _gaussian_svr(n_samples: int, is_sparse: bool) -> Any:
    """The target is standardised as well: epsilon has its unit."""
    pipeline = make_pipeline(StandardScaler(with_mean=not is_sparse), SVR())
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())


def _linear_svm(n_samples: int, is_sparse: bool) -> Any:
    if n_samples > LARGEST_KERNEL_PROBLEM:
        machine = LinearSVC(dual="auto", random_state=0)
    elif is_sparse:
        machine = SVC(kernel="linear", random_state=0)
    else:
        return StandardizedSVC(kernel="linear", random_state=0)
    return make_pipeline(StandardScaler(with_mean=not is_sparse), machine)


def _ridge(n_samples: int, is_sparse: bool) -> Any:
    return make_pipeline(StandardScaler(with_mean=False), Ridge()) if is_sparse else StandardizedRidge()


# What targets name, from the number of samples and whether the columns are sparse; each standardises its columns.
PREDICTORS: dict[str, Callable[[int, bool], Any]] = {
    "gaussian svm": _gaussian_svm,
    "gaussian svr": _gaussian_svr,
    "linear svm": _linear_svm,
    "ridge": _ridge,
}


class OnStandardized:
    """Fit and predict on columns of mean zero and variance one.

    A pipeline with ``StandardScaler`` does the same, but checks the same numbers six times: with few samples and
    features that takes longer than the predictor.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Take the means and scales of the columns, then fit the predictor."""
        X, means, scales = standardized_columns(_as_floats(X))
        assert_all_finite(X)
        return self.fit_standardized(X, means, scales, y)

    def fit_standardized(self, X: FloatArray, means: FloatArray, scales: FloatArray, y: Any) -> Self:
        """Fit the predictor on finite columns that these means and scales have standardised."""
        self.mean_, self.scale_ = means, scales
        super().fit(X, y)  # type: ignore[misc]
        return self

    def predict_standardized(self, X: FloatArray) -> Any:
        """Predictions of samples that are standardised already, and finite."""
        return super().predict(X)  # type: ignore[misc]

    def predict(self, X: Any) -> Any:
        """Predictions of the standardised samples."""
        return super().predict(self._standardized(X))  # type: ignore[misc]

    def _standardized(self, X: Any) -> NDArray[Any]:
        X = _as_floats(X)
        if X.shape[1:] != self.mean_.shape:  # one column would fit any number of means
            raise ValueError(
                f"{type(self).__name__} was fitted on {self.mean_.size} features. Got X of shape {X.shape} instead."
            )
        assert_all_finite(X, input_name="X")
        return np.asarray((X - self.mean_) / self.scale_)


def _unchecked_parameters() -> AbstractContextManager[None]:
    """The parameters are those of default_estimator: to check them at each fit takes a sixth of a small one."""
    return cast("AbstractContextManager[None]", config_context(skip_parameter_validation=True))


def standardized_columns(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The columns with mean zero and variance one, their means and scales; constant columns have a scale of one."""
    n, means = len(X), X.mean(axis=0)
    centred = X - means
    variance = (centred**2).sum(axis=0) / n - centred.mean(axis=0) ** 2
    rounding = np.finfo(X.dtype).eps * n
    # What rounding alone may give counts as constant.
    constant = variance <= rounding * variance + (rounding * means) ** 2
    scales = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance))).astype(X.dtype)
    return centred / scales, means, scales


class _PairMachine(SVC):  # type: ignore[misc]
    """The same machine: every two classes apart, and a vote between them, without LIBSVM where that takes longer.

    With few samples the checks of scikit-learn take ten times longer than the solution. With many, and more of them
    than features, LIBSVM takes half a minute for 1300 samples and 480 features that hardly tell the classes apart, an
    interior point method a fifth of a second.
    """

    def fit(self, X: Any, y: Any) -> Self:
        y = np.asarray(y)
        self.classes_, members = _members_of_classes(y)
        self.pairs_ = self._solve(X, y, members)
        if self.pairs_ is None:
            with _unchecked_parameters():
                super().fit(X, y)
        else:
            self.intercept_ = self.pairs_.bias
        return self

    def _solve(
        self, X: FloatArray, y: NDArray[Any], members: tuple[IntArray, ...]
    ) -> _Pairs | CurvedPairs | None:
        """The machines of all pairs of classes; None leaves them, and what is wrong with the data, to LIBSVM."""
        n_classes, is_linear = self.classes_.size, self.kernel == "linear"
        known = is_linear or (self.kernel == "rbf" and self.gamma == "scale")
        known = known and self.class_weight is None
        known = known and self.decision_function_shape == "ovr" and not self.break_ties
        if not known or self.probability is True or n_classes < 2 or not _are_labels(y) or len(X) != len(y):
            return None
        largest = sum(sorted(rows.size for rows in members)[-2:])
        is_large = largest > LARGEST_FOR_LIBSVM
        if not is_linear and largest > LARGEST_CURVED:
            return None
        if is_large and (n_classes > 2 or largest <= X.shape[1]):
            return None
        X = X.astype(np.float64, copy=False)
        if is_large:
            solution = self._solve_tall(X, y == self.classes_[1])
            return (
                _Pairs(solution.weights[None], np.atleast_1d(solution.bias)) if solution.converged else None
            )
        return (
            _solve_pairs(X, members, float(self.C)) if is_linear else _solve_curved(X, members, float(self.C))
        )

    def _solve_tall(self, X: FloatArray, is_second: NDArray[np.bool_]) -> TallSolution:
        prices = np.full(is_second.size, float(self.C))
        problem = BoxDual.classification(np.where(is_second, 1.0, -1.0), prices, squared=False)
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
    """Linear machines between two classes each, one row of weights for each, in the order 0-1, 0-2, ..., 1-2, ..."""

    weights: FloatArray
    bias: FloatArray

    def values(self, X: FloatArray) -> FloatArray:
        """The decision values of all pairs, one column each."""
        return np.asarray(X @ self.weights.T + self.bias)


@dataclass(frozen=True, eq=False)
class CurvedPairs:
    """Gaussian machines between two classes each: support vectors, weights by pair, bias, and γ of the kernel."""

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


def _solve_pairs(X: FloatArray, members: tuple[IntArray, ...], C: float) -> _Pairs | None:
    """Linear machines of all pairs of classes, whose samples are given; None where one did not converge."""
    weights, bias = [], []
    for rows, labels in _pairs_of_classes(members):
        part = X[rows]
        solution = solve_svm_dual(part @ part.T, labels, C=C)
        if not solution.converged:
            return None
        weights.append(solution.dual_coef @ part)
        bias.append(solution.bias)
    return _Pairs(np.asarray(weights), np.asarray(bias))


def _solve_curved(X: FloatArray, members: tuple[IntArray, ...], C: float) -> CurvedPairs | None:
    """The same with a Gaussian kernel, whose width is the "scale" of scikit-learn."""
    variance = float(X.var())
    gamma = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    K = _gaussian(X, X, gamma)
    coefficients, bias = [], []
    for rows, labels in _pairs_of_classes(members):
        solution = solve_svm_dual(K[np.ix_(rows, rows)], labels, C=C)
        if not solution.converged:
            return None
        coefficients.append(np.zeros(len(X)))
        coefficients[-1][rows] = solution.dual_coef
        bias.append(solution.bias)
    used = np.any(coefficients, axis=0)
    return CurvedPairs(X[used], np.asarray(coefficients)[:, used], np.asarray(bias), gamma)


def _pairs_of_classes(members: tuple[IntArray, ...]) -> Iterator[tuple[IntArray, FloatArray]]:
    """Samples and labels of each pair: of two classes the second has positive values, of more the first of each."""
    sign = 1.0 if len(members) > 2 else -1.0
    for first, second in combinations(members, 2):
        yield np.concatenate([first, second]), sign * np.repeat([1.0, -1.0], [first.size, second.size])


FEW_LABELS = 1 << 13


def _members_of_classes(y: NDArray[Any]) -> tuple[NDArray[Any], tuple[IntArray, ...]]:
    """The classes and the samples of each; the last answer is kept for the other subsets of features."""
    if y.ndim == 1 and y.size <= FEW_LABELS and y.dtype.kind in "biufUS":
        return _members_in_memory(y.dtype.str, y.tobytes())
    classes = np.unique(y)
    return classes, tuple(np.flatnonzero(y == label) for label in classes)


@lru_cache(maxsize=1)
def _members_in_memory(dtype: str, labels: bytes) -> tuple[NDArray[Any], tuple[IntArray, ...]]:
    y = np.frombuffer(labels, dtype=dtype)
    classes = np.unique(y)
    classes.flags.writeable = False  # all that ask get the same
    return classes, tuple(np.flatnonzero(y == label) for label in classes)


def _are_labels(y: NDArray[Any]) -> bool:
    """Whether these are surely classes; scikit-learn has words for everything else."""
    if y.ndim != 1 or y.dtype.kind not in "biufUSO":
        return False
    if y.dtype.kind == "O":
        return all(isinstance(label, str) for label in y)
    return y.dtype.kind != "f" or bool(np.all(y == np.round(y)))


def _votes(values: FloatArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """How many pairs each class has won, and the sum of its values in them; a value of zero is for the second."""
    votes, confidence = np.zeros((2, len(values), n_classes))
    for value, (first, second) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        votes[:, first] += value > 0.0
        votes[:, second] += value <= 0.0
        confidence[:, first] += value
        confidence[:, second] -= value
    return votes, confidence


class StandardizedSVC(OnStandardized, _PairMachine):
    """A support vector machine on standardised columns."""

    def decision_function(self, X: Any) -> Any:
        """Decision values of the standardised samples."""
        return super().decision_function(self._standardized(X))


class _QuickRidge(Ridge):  # type: ignore[misc]
    """Ridge regression that predicts checked samples without a check of its own."""

    def fit(self, X: Any, y: Any) -> Self:
        with _unchecked_parameters():
            super().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.coef_.T + self.intercept_


class StandardizedRidge(OnStandardized, _QuickRidge):
    """Ridge regression on standardised columns."""


RIDGE_PENALTIES = np.geomspace(1e-2, 1e4, 13)


class _PricedRidge(_QuickRidge):
    """Ridge regression with the penalty that predicts samples left out best; the columns are centred."""

    def fit(self, X: Any, y: Any) -> Self:
        X = X.astype(np.float64, copy=False)
        self.intercept_ = float(np.mean(y))
        target = y - self.intercept_
        is_tall = X.shape[0] > X.shape[1]
        values, vectors = np.linalg.eigh(X.T @ X if is_tall else X @ X.T)
        present = values > np.finfo(float).eps * X.shape[0] * max(values[-1], np.finfo(float).tiny)
        values, vectors = values[present], vectors[:, present]
        scores = X @ vectors / np.sqrt(values) if is_tall else vectors  # orthonormal, one row per sample
        pull = scores.T @ target
        kept = values[:, None] / (values[:, None] + RIDGE_PENALTIES)  # share of each direction, by penalty
        leverage = scores**2 @ kept + 1.0 / X.shape[0]
        left_out = (target[:, None] - scores @ (kept * pull[:, None])) / np.maximum(1.0 - leverage, 1e-9)
        self.alpha_ = float(RIDGE_PENALTIES[np.argmin(np.mean(left_out**2, axis=0))])
        along = pull / (values + self.alpha_)
        self.coef_ = vectors @ (np.sqrt(values) * along) if is_tall else X.T @ (vectors @ along)
        return self


class StandardizedPricedRidge(OnStandardized, _PricedRidge):
    """Ridge regression on standardised columns, whose penalty is chosen by leaving samples out."""


def _as_floats(X: Any) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(X)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


# -- The selection path of a fitted selector of any make --


def fitted_path(selector: Any, n_features: int) -> SelectionPath:
    """The path of a fitted selector: its own, its tuned best estimator's, or one made from its ranking.

    Selectors from elsewhere are read by ``ranking_`` (1 is best) or ``scores_`` (bigger is better);
    their own ``get_support`` gives the size at which they stop.
    """
    inner = _unwrapped(selector)
    path = getattr(inner, "path_", None)
    if not isinstance(path, SelectionPath):
        path = _foreign_path(inner)
    if path.n_features != n_features:
        raise ValueError(
            f"{type(selector).__name__} ranks {path.n_features} features, but X has {n_features}. Inside a "
            "pipeline, only steps that keep the columns may come before the selector."
        )
    return path


def own_support(selector: Any, path: SelectionPath) -> np.ndarray:
    """The features the fitted selector itself settles on."""
    inner = _unwrapped(selector)
    if hasattr(inner, "get_support"):
        return np.flatnonzero(inner.get_support())
    raise ValueError(f"{type(selector).__name__} does not choose a number of features itself; set 'sizes'.")


def _unwrapped(selector: Any) -> Any:
    """The selector inside searches and pipelines: the last step that has selected something."""
    while True:
        if hasattr(selector, "path_"):
            return selector
        if hasattr(selector, "best_estimator_"):
            selector = selector.best_estimator_
        elif hasattr(selector, "steps"):
            steps = [step for _, step in selector.steps if _selects(step)]
            if not steps:
                return selector
            selector = steps[-1]
        else:
            return selector


def _selects(step: Any) -> bool:
    return any(hasattr(step, name) for name in ("path_", "best_estimator_", "get_support"))


def _foreign_path(selector: Any) -> SelectionPath:
    own_size = int(selector.get_support().sum()) if hasattr(selector, "get_support") else None
    if hasattr(selector, "ranking_"):
        return SelectionPath.from_scores(-np.asarray(selector.ranking_, dtype=float), own_size=own_size)
    scores = getattr(selector, "scores_", None)
    if scores is not None:
        # An undefined score (a constant column in scikit-learn's F test) must not rank anywhere but last.
        undefined = np.isnan(scores)
        return SelectionPath.from_scores(
            np.where(undefined, -np.inf, scores), last=undefined, own_size=own_size
        )
    raise ValueError(
        f"{type(selector).__name__} has no path_, ranking_ or scores_ after fit, so subsets of other sizes "
        "cannot be derived from it. Use a selector of zeronorm or one that ranks all features."
    )
