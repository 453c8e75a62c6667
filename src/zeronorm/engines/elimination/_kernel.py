"""Support vector machines with any kernel, and the value of each feature with the dual solution held fixed.

The value of a feature is |W² - W²(without it)| with W² = v'Kv, summed over models (Lal et al. 2006,
algorithm 2). Sources give the kernel matrix of any set of features, and what it would be without some of them.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria._kernels import LinearKernel, PolynomialKernel, RBFKernel, ScaledKernel
from zeronorm.design import Design, require_finite
from zeronorm.engines.elimination._loop import finite_gram, those_kept
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm._dual import DEFAULT_MAX_ITER, DualSolution, solve_svm_dual, solve_svr_dual

NO_SIMILARITY = 1e-9  # a kernel whose off-diagonal entries are all below this counts as diagonal
# Relative to the largest: with one below this, a kernel is not positive semi-definite.
NEGATIVE_EIGENVALUE = -1e-8
# Exponents γ‖x - z‖² above this are summed term by term: exp(±600) does not overflow, and below it the rounding
# error of a squared distance from a Gram matrix is far below one.
STEEPEST = 600.0

# -- How much a quadratic form of an RBF kernel changes when one feature is taken out --


@kernel
def rbf_removal(M: FloatArray, columns: FloatArray, gamma: float) -> FloatArray:
    r"""For each row x of ``columns`` the sum over pairs of :math:`M_{ij}\,(e^{\gamma (x_i - x_j)^2} - 1)`.

    Removing one feature from an RBF kernel multiplies K_ij by that exponential, so no kernel is recomputed. M is
    symmetric: each pair is visited once.
    """
    result = np.zeros(columns.shape[0])
    n = columns.shape[1]
    for k in range(columns.shape[0]):
        x = columns[k]
        total = 0.0
        for i in range(n):
            for j in range(i):
                difference = x[i] - x[j]
                total += M[i, j] * math.expm1(gamma * difference * difference)
        result[k] = 2.0 * total
    return result


@kernel
def rbf_from_rows(rows: FloatArray, gamma: float) -> FloatArray:
    """The RBF kernel from distances summed term by term, accurate for any scales of the columns."""
    n, p = rows.shape
    K = np.ones((n, n))
    for i in range(n):
        for j in range(i):
            distance_sq = 0.0
            for k in range(p):
                difference = rows[i, k] - rows[j, k]
                distance_sq += difference * difference
            K[i, j] = K[j, i] = math.exp(-gamma * distance_sq)
    return K


@kernel
def rbf_removal_from_rows(v: FloatArray, rows: FloatArray, gamma: float) -> FloatArray:
    r"""For each column k the sum over pairs of :math:`v_i v_j (e^{-\gamma D_{ij,-k}} - e^{-\gamma D_{ij}})`.

    The squared distance :math:`D_{ij,-k}` without a column is the sum of the terms before and after it: subtracting
    the term would cancel where it dominates, and dividing its factor out of the kernel would overflow.
    """
    n, p = rows.shape
    result = np.zeros(p)
    term, after = np.empty(p), np.empty(p + 1)
    after[p] = 0.0
    for i in range(n):
        for j in range(i):
            weight = 2.0 * v[i] * v[j]
            for k in range(p):
                difference = rows[i, k] - rows[j, k]
                term[k] = gamma * difference * difference
            for k in range(p - 1, -1, -1):
                after[k] = after[k + 1] + term[k]
            full, before = math.exp(-after[0]), 0.0
            for k in range(p):
                if term[k] < 1.0:
                    result[k] += weight * full * math.expm1(term[k])
                else:
                    result[k] += weight * (math.exp(-(before + after[k + 1])) - full)
                before += term[k]
    return result


class KernelSource(ABC):
    """The kernel matrix of any subset of the features, and its change when features are removed."""

    @abstractmethod
    def matrix(self, active: IntArray) -> FloatArray:
        """The kernel matrix K of the given features."""

    @abstractmethod
    def removal(self, active: IntArray, K: FloatArray, V: FloatArray, units: list[IntArray]) -> FloatArray:
        """v'Kv - v'K(without unit)v, one row per unit, one column per column v of V; units index ``active``."""

    def diagonal_removal(self, active: IntArray, beta: FloatArray, units: list[IntArray]) -> FloatArray:
        """The same for the sum of beta_i K_ii; zero for kernels with a constant diagonal."""
        return np.zeros(len(units))


class PolynomialSource(KernelSource):
    """(γ x·z + c)^d; the inner product of the removed features is subtracted exactly, by the binomial theorem."""

    def __init__(self, design: Design, kernel: PolynomialKernel) -> None:
        self.design, self.kernel = design, kernel
        self.gram: FloatArray | None = None

    def matrix(self, active: IntArray) -> FloatArray:
        self.gram = finite_gram(self.design.take(active))
        return self.kernel.matrix(self.gram)

    def removal(self, active: IntArray, K: FloatArray, V: FloatArray, units: list[IntArray]) -> FloatArray:
        assert self.gram is not None
        base = self.kernel.gamma * self.gram + self.kernel.coef0
        left = self.design.take(active)
        if all(unit.size == 1 for unit in units):
            return self._single(left, base, V)
        change = np.empty((len(units), V.shape[1]))
        for u, unit in enumerate(units):
            without = (base - self.kernel.gamma * left.take(unit).gram()) ** self.kernel.degree
            change[u] = np.einsum("ic,ij,jc->c", V, K - without, V)
        return change

    def diagonal_removal(self, active: IntArray, beta: FloatArray, units: list[IntArray]) -> FloatArray:
        assert self.gram is not None
        base = self.kernel.gamma * np.diagonal(self.gram) + self.kernel.coef0
        full = float(beta @ base**self.kernel.degree)
        change = np.empty(len(units))
        for u, unit in enumerate(units):
            square = (self.design.block(active[unit]) ** 2).sum(axis=1)
            change[u] = full - float(beta @ (base - self.kernel.gamma * square) ** self.kernel.degree)
        return change

    def _single(self, left: Design, base: FloatArray, V: FloatArray) -> FloatArray:
        degree = self.kernel.degree
        change = np.zeros((left.n_features, V.shape[1]))
        for columns, block in left.iter_blocks():
            for c in range(V.shape[1]):
                for m in range(1, degree + 1):
                    weighted = block**m * V[:, c : c + 1]
                    form = np.einsum("ik,ik->k", weighted, base ** (degree - m) @ weighted)
                    change[columns, c] -= math.comb(degree, m) * (-self.kernel.gamma) ** m * form
        return change


class RBFSource(KernelSource):
    """exp(-γ‖x - z‖²); the factor of the removed features is divided out."""

    def __init__(self, design: Design, gamma: float, *, rescale: bool) -> None:
        self.design, self.gamma, self.rescale = design, gamma, rescale
        stats = design.column_stats()
        with np.errstate(over="ignore"):
            self.range_sq = (stats.maximum - stats.minimum) ** 2

    def is_steep(self, active: IntArray) -> bool:
        """Whether factors of single features may overflow, or distances from a Gram matrix lose their digits."""
        return bool(self.width(active) * self.range_sq[active].sum() > STEEPEST)

    def rows(self, active: IntArray, support: IntArray | None = None) -> FloatArray:
        """The columns as one dense array, sample by sample."""
        design = self.design.take(active)
        chosen = design if support is None else design.take_rows(support)
        rows = np.ascontiguousarray(chosen.block(slice(None)), dtype=np.float64)
        if not np.all(np.isfinite(rows)):
            require_finite(design)
        return rows

    def width(self, active: IntArray) -> float:
        """γ; with ``rescale`` it grows as features are removed, so that γ times their number stays the same."""
        return self.gamma * self.design.n_features / active.size if self.rescale else self.gamma

    def matrix(self, active: IntArray) -> FloatArray:
        if self.is_steep(active):
            return rbf_from_rows(self.rows(active), self.width(active))
        return RBFKernel(self.width(active)).matrix(finite_gram(self.design.take(active)))

    def removal(self, active: IntArray, K: FloatArray, V: FloatArray, units: list[IntArray]) -> FloatArray:
        gamma = self.width(active)
        change = np.empty((len(units), V.shape[1]))
        single = all(unit.size == 1 for unit in units)
        for c in range(V.shape[1]):
            # Only support vectors contribute.
            support = np.flatnonzero(V[:, c])
            if self.is_steep(active):
                change[:, c] = self._steep_removal(active, support, V[support, c], units)
                continue
            M = K[np.ix_(support, support)] * np.outer(V[support, c], V[support, c])
            left = self.design.take(active).take_rows(support)
            if single:
                for columns, block in left.iter_blocks():
                    change[columns, c] = -rbf_removal(M, np.ascontiguousarray(block.T), gamma)
            else:
                for u, unit in enumerate(units):
                    factor = RBFKernel(gamma).matrix(left.take(unit).gram())
                    change[u, c] = float(np.sum(M - M / np.maximum(factor, np.finfo(float).tiny)))
        return change

    def _steep_removal(
        self, active: IntArray, support: IntArray, v: FloatArray, units: list[IntArray]
    ) -> FloatArray:
        rows, gamma = self.rows(active, support), self.width(active)
        if all(unit.size == 1 for unit in units):
            return -rbf_removal_from_rows(v, rows, gamma)[np.concatenate(units)]
        whole = v @ rbf_from_rows(rows, gamma) @ v
        rests = (np.delete(rows, unit, axis=1) for unit in units)
        return np.array([whole - v @ rbf_from_rows(np.ascontiguousarray(rest), gamma) @ v for rest in rests])


class CallableSource(KernelSource):
    """A function of two arrays; the kernel without a unit is computed from scratch."""

    def __init__(self, design: Design, function: Callable[[FloatArray, FloatArray], Any]) -> None:
        self.design, self.function = design, function

    def matrix(self, active: IntArray) -> FloatArray:
        columns = np.ascontiguousarray(self.design.block(active))
        K = np.asarray(self.function(columns, columns), dtype=np.float64)
        n = columns.shape[0]
        if K.shape != (n, n) or not np.all(np.isfinite(K)):
            raise ValueError(
                f"The 'kernel' function must return a finite matrix of shape {(n, n)}. Got shape {K.shape} instead."
            )
        return 0.5 * (K + K.T)

    def removal(self, active: IntArray, K: FloatArray, V: FloatArray, units: list[IntArray]) -> FloatArray:
        change = np.empty((len(units), V.shape[1]))
        for u, unit in enumerate(units):
            rest = np.delete(active, unit)
            without = self.matrix(rest) if rest.size else np.zeros_like(K)
            change[u] = np.einsum("ic,ij,jc->c", V, K - without, V)
        return change


class PiecesSource(KernelSource):
    """One given kernel matrix per feature, combined by sum or product."""

    def __init__(self, pieces: Any, combine: str, n_samples: int, n_features: int) -> None:
        self.pieces = np.asarray(pieces, dtype=np.float64)
        expected = (n_features, n_samples, n_samples)
        if self.pieces.shape != expected:
            raise ValueError(
                "The 'kernel_pieces' parameter must hold one samples × samples matrix per feature, shape "
                f"{expected}. Got shape {self.pieces.shape} instead."
            )
        if not np.all(np.isfinite(self.pieces)):
            raise ValueError("The 'kernel_pieces' parameter must be finite. Got NaN or infinity.")
        self.combine: Callable[..., Any] = np.sum if combine == "sum" else np.prod

    def matrix(self, active: IntArray) -> FloatArray:
        return np.asarray(self.combine(self.pieces[active], axis=0))

    def removal(self, active: IntArray, K: FloatArray, V: FloatArray, units: list[IntArray]) -> FloatArray:
        change = np.empty((len(units), V.shape[1]))
        for u, unit in enumerate(units):
            without = self.matrix(np.delete(active, unit))
            change[u] = np.einsum("ic,ij,jc->c", V, K - without, V)
        return change


def make_source(design: Design, kernel: ScaledKernel, *, rescale: bool = False) -> KernelSource:
    """The source of a linear, polynomial or RBF kernel."""
    if isinstance(kernel, LinearKernel):
        return PolynomialSource(design, PolynomialKernel(degree=1, gamma=1.0, coef0=0.0))
    if isinstance(kernel, PolynomialKernel):
        return PolynomialSource(design, kernel)
    assert isinstance(kernel, RBFKernel)
    return RBFSource(design, kernel.gamma, rescale=rescale)


# -- Support vector machines on such a kernel --


def warn_if_diagonal(K: FloatArray) -> None:
    """Warn when the kernel matrix is diagonal: then no feature can matter."""
    diagonal = np.abs(np.diagonal(K)).max()
    if np.abs(K - np.diag(np.diagonal(K))).max() <= NO_SIMILARITY * diagonal:
        warnings.warn(
            "The kernel matrix is diagonal: no two samples are similar, so the order of the features has no meaning. "
            "Decrease gamma.",
            UserWarning,
            stacklevel=2,
        )


class KernelModels:
    """SVMs on a kernel source, with the interface ``Models`` of the elimination loop."""

    def __init__(
        self,
        problem: Problem,
        source: KernelSource,
        *,
        C: float,
        loss: str,
        epsilon: float | None,
        tol: float,
        max_iter: int = DEFAULT_MAX_ITER,
        multi_class: str = "one_vs_rest",
    ) -> None:
        self.problem, self.source = problem, source
        self.targets, involved = problem.target.around_zero().model_columns(multi_class)
        self.costs = np.where(involved.T, problem.sample_costs(C), 0.0)
        self.squared, self.epsilon = loss == "squared", epsilon
        self.settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        self.active: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.is_psd = True
        self.K = np.empty((0, 0))
        self.V = np.zeros(self.targets.shape)
        self.duals: list[Any] = [None] * self.targets.shape[1]

    def continue_with(self, features: IntArray) -> None:
        """Continue with other features, from the dual variables of the samples."""
        self.active = features

    def train(self) -> None:
        self.K = np.ascontiguousarray(self.source.matrix(self.active))
        if self.n_iter == 0:
            warn_if_diagonal(self.K)
        trainable = self._definite()
        for c in range(self.targets.shape[1]):
            dual = self._solve(trainable, self.targets[:, c], self.costs[c], self.duals[c])
            self.status = max(self.status, dual.status)
            self.n_iter += dual.n_iter
            self.duals[c] = dual
            self.V[:, c] = dual.dual_coef

    def _solve(self, K: FloatArray, target: FloatArray, cost: FloatArray, start: Any) -> DualSolution:
        if self.epsilon is not None:
            return solve_svr_dual(
                K,
                target,
                C=cost,
                epsilon=self.epsilon,
                loss="squared_epsilon_insensitive" if self.squared else "epsilon_insensitive",
                warm_start=start,
                **self.settings,
            )
        return solve_svm_dual(
            K,
            target,
            C=cost,
            loss="squared_hinge" if self.squared else "hinge",
            warm_start=start,
            **self.settings,
        )

    def _definite(self) -> FloatArray:
        """The kernel for training; an indefinite one is shifted until the problem is convex.

        Features are valued by the kernel without the shift, to which no feature contributes.
        """
        if isinstance(self.source, (PolynomialSource, RBFSource)):
            return self.K
        eigenvalues = np.linalg.eigvalsh(self.K)
        if eigenvalues[0] >= NEGATIVE_EIGENVALUE * max(abs(eigenvalues[-1]), np.finfo(float).tiny):
            return self.K
        self.is_psd = False
        return np.asarray(self.K - eigenvalues[0] * np.eye(len(self.K)))

    def importance(self) -> FloatArray:
        """|W² - W²(without the feature)|, summed over models."""
        return self._value([np.array([i]) for i in range(self.active.size)])

    def group_importance(self, unit: IntArray) -> FloatArray:
        """|W² - W²(without the group)|, summed over models."""
        return self._value([np.flatnonzero(unit == u) for u in range(int(unit.max()) + 1)])

    def _value(self, units: list[IntArray]) -> FloatArray:
        return np.asarray(np.abs(self.source.removal(self.active, self.K, self.V, units)).sum(axis=1))

    def remove(self, features: IntArray) -> None:
        self.active = those_kept(self.active, features)
