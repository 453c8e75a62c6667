"""AROM in the space of ordered monomials, with the monomials written out or through kernels."""

from __future__ import annotations

from collections import Counter
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh

from zeronorm.design import Design, as_design
from zeronorm.selectors.greedy.monomials import MonomialDesign
from zeronorm.selectors.sparsity.machines import SOLVER_TOL, GramMachine, Part
from zeronorm.selectors.sparsity.rescaling import (
    COLLAPSED,
    UNFINISHED,
    multiplicative,
    rescale_until_sparse,
)
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm_dual import SvmDual, solve_svm_dual

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

BATCH = 1 << 22  # products held at a time
RANK_TOL = 1e-10  # eigenvalues of the kernel matrix below this fraction of the largest are rounding
NEEDS_SLACK = "KernelAROM with a hard margin (C=inf)"


class ExplicitSpace:
    """The monomials as columns, each standing for all orderings of its factors."""

    def __init__(
        self,
        X: FloatArray,
        signs: FloatArray,
        degree: int,
        *,
        C: float,
        zero_tol: float,
        tol: float,
        max_iter: int,
    ) -> None:
        design = MonomialDesign.of(as_design(X), degree)
        part = Part(signs, np.full(signs.size, C))
        machine = _OrderedMonomials(GramMachine([part], loss="squared"), orderings(design.factors))
        result = rescale_until_sparse(
            machine,
            design,
            np.arange(design.n_features),
            multiplicative,
            zero_tol=zero_tol,
            tol=tol,
            max_iter=max_iter,
        )
        if not result.iterates:
            result.status.check(NEEDS_SLACK)
        kept = np.isin(result.trained, result.alive)
        self._factors = design.factors[:, result.trained[kept]]
        self.weights: FloatArray = machine.inner.weights[kept, 0] if kept.any() else np.zeros(0)
        self.bias = float(machine.inner.bias[0])
        self.n_iter, self.converged, self.remedy = max(1, result.n_iter), result.converged, result.remedy
        self.monomials = [tuple(int(i) for i in column if i < X.shape[1]) for column in self._factors.T]

    def decide(self, X: FloatArray) -> FloatArray:
        padded = np.column_stack([X, np.ones(len(X))])
        return MonomialDesign(padded, self._factors).dot(self.weights) + self.bias


class _OrderedMonomials:
    """A machine whose columns stand for several equal coordinates, which are rescaled one by one."""

    settled = True

    def __init__(self, inner: GramMachine, n_orderings: FloatArray) -> None:
        self.inner = inner
        self.root = np.sqrt(n_orderings)

    @property
    def status(self) -> Status:
        return self.inner.status

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        return self.inner.train(design, scale * self.root) / self.root

    def keep(self, staying: BoolArray) -> None:
        self.root = self.root[staying]
        self.inner.keep(staying)


def orderings(factors: IntArray) -> FloatArray:
    """In how many orders the factors of each monomial can be written; the padding index is not one of them."""
    padding = int(factors.max())
    counts = np.empty(factors.shape[1])
    for j, column in enumerate(factors.T):
        powers = Counter(int(i) for i in column if i != padding)
        repeats = np.prod([factorial(power) for power in powers.values()])
        counts[j] = factorial(sum(powers.values())) / repeats
    return counts


class ImplicitSpace:
    """Kernels only; the scaling is a combination γ of the images of the training vectors."""

    def __init__(
        self, X: FloatArray, signs: FloatArray, degree: int, *, C: float, tol: float, max_iter: int
    ) -> None:
        self.X, self.degree = X, degree
        self.n_iter, self.converged, self.remedy = 0, False, UNFINISHED
        self.gamma: FloatArray | None = None  # the kernel as it is
        kernel = first = self.kernel(None, X, X)
        inverse = pinvh(first, rtol=RANK_TOL)
        gamma: FloatArray | None = None
        solution: SvmDual | None = None
        resting = False
        while True:
            found = _solve(kernel, signs, C, solution)
            if found.status is Status.UNBOUNDED and solution is not None:
                resting = True  # the projected kernel no longer separates: the machine before stands
                break
            found.status.check(NEEDS_SLACK)
            solution, self.gamma = found, gamma
            self.n_iter += 1
            if resting or self.n_iter >= max_iter:
                break
            v = solution.dual_coef
            gamma = v if gamma is None else inverse @ (kernel @ v)
            rescaled = self.kernel(gamma, X, X)
            resting = self._is_at_rest(kernel, rescaled, first, tol)
            kernel = rescaled
        self.dual_coef, self.bias = solution.dual_coef, solution.bias
        self.converged = resting and self.remedy == UNFINISHED

    def _is_at_rest(self, kernel: FloatArray, rescaled: FloatArray, first: FloatArray, tol: float) -> bool:
        if np.trace(rescaled) <= COLLAPSED**2 * np.trace(first):
            self.remedy = "all weights shrank to zero, no monomial is worth its price; raise C."
            return True
        return bool(np.abs(rescaled - kernel).max() <= tol * np.abs(kernel).max())

    def kernel(self, gamma: FloatArray | None, left: FloatArray, right: FloatArray) -> FloatArray:
        """The kernel rescaled by z = Σ γ_i φ(x_i)."""
        if gamma is None:
            return polynomial(left @ right.T, self.degree)
        return rescaled_kernel(self.X, gamma, left, right, self.degree)

    def decide(self, X: FloatArray) -> FloatArray:
        used = self.dual_coef != 0.0
        values = self.kernel(self.gamma, X, self.X[used]) @ self.dual_coef[used]
        return np.asarray(values + self.bias)


def _solve(kernel: FloatArray, signs: FloatArray, C: float, start: SvmDual | None) -> SvmDual:
    return solve_svm_dual(kernel, signs, C=C, loss="squared_hinge", warm_start=start, tol=SOLVER_TOL)


def polynomial(product: FloatArray, degree: int) -> FloatArray:
    """t + t² + … + t^degree, elementwise."""
    result = product.copy()
    for _ in range(degree - 1):
        result += 1.0
        result *= product
    return result


def rescaled_kernel(
    X: FloatArray, gamma: FloatArray, left: FloatArray, right: FloatArray, degree: int
) -> FloatArray:
    r""":math:`\sum_{ab} \gamma_a \gamma_b\, k(x_a * x, x_b * x')` for all pairs of rows of left and right.

    The inner products are :math:`\sum_l (x_{al} x_{bl}) (x_l x'_l)`: one matrix product of all pairs of
    training vectors with all pairs of rows.
    """
    used = gamma != 0.0
    X, gamma = X[used], gamma[used]
    first, second = np.triu_indices(len(X))
    pairs = X[first] * X[second]
    weight = gamma[first] * gamma[second] * np.where(first == second, 1.0, 2.0)
    result = np.empty((len(left), len(right)))
    height = max(1, BATCH // max(1, pairs.shape[0] * len(right)))
    for start in range(0, len(left), height):
        rows = left[start : start + height]
        products = (rows[:, None, :] * right[None, :, :]).reshape(-1, X.shape[1])
        values = polynomial(products @ pairs.T, degree) @ weight
        result[start : start + height] = values.reshape(len(rows), len(right))
    return result
