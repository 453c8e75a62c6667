"""A criterion as a function of the squared scaling factors of all features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria import (
    Criterion,
    CriterionValue,
    FactoredMatrix,
    LinearKernel,
    PolynomialKernel,
    ScaledKernel,
    make_kernel,
)
from zeronorm.design import Design
from zeronorm.design.dense import DenseDesign
from zeronorm.engines.sparse_paths import first_copies
from zeronorm.solvers.status import UnsolvableError

CONSTANT = -3.0  # score of constant features, below all others
COPY = -2.5  # score of copies of other features, below all that were given a chance
RESIDENT_BYTES = 64 << 20  # data up to here are standardised once and kept, instead of in each product


class ScaledCriterion:
    r"""G(K(σ²)) and its slopes in σ², with the machines started from their last solutions.

    .. math:: \frac{\partial G}{\partial \sigma_k^2} = x_k^\top M x_k, \qquad
        M = \frac{\partial G}{\partial K} \text{ pulled back through the kernel to the Gram matrix.}
    """

    def __init__(
        self, design: Design, kernel: ScaledKernel, criterion: Criterion, target: FloatArray
    ) -> None:
        if 8 * design.n_samples * design.n_features <= RESIDENT_BYTES and not design.is_sparse:
            design = DenseDesign(design.block(slice(None)))
        self.design, self.kernel, self.criterion, self.target = design, kernel, criterion, target
        self.gram: FloatArray = np.empty((0, 0))
        self.K: FloatArray = np.empty((0, 0))
        self.last: CriterionValue | None = None
        self._squared_norms: FloatArray | None = None

    def __call__(self, scale_sq: FloatArray) -> tuple[float, FloatArray]:
        """Value and slopes; infinite where features that a hard margin needs are scaled away."""
        gram = self.design.gram(scale_sq)
        K = self.kernel.matrix(gram)
        try:
            found = self.criterion.evaluate(K, self.target, None if self.last is None else self.last.warm)
        except UnsolvableError:
            if self.last is None:
                raise
            return np.inf, np.zeros(scale_sq.size)
        self.gram, self.K, self.last = gram, K, found
        return found.value, self._slopes(found)

    def without(self, columns: IntArray, scale_sq: FloatArray) -> FloatArray:
        """The value when one of the given features at a time is taken out and the machines are trained anew."""
        gram = self.design.gram(scale_sq)
        warm = None if self.last is None else self.last.warm
        values = np.empty(columns.size)
        for place, k in enumerate(columns):
            x = self.design.block(np.array([k]))[:, 0]
            K = self.kernel.matrix(gram - scale_sq[k] * np.outer(x, x))
            try:
                values[place] = self.criterion.evaluate(K, self.target, warm).value
            except UnsolvableError:  # a hard margin cannot do without the feature
                values[place] = np.inf
        return values

    def take(self, columns: IntArray) -> ScaledCriterion:
        """The same on some of the features, with the machines as they are."""
        narrowed = ScaledCriterion(self.design.take(columns), self.kernel, self.criterion, self.target)
        narrowed.last = self.last
        return narrowed

    @property
    def converged(self) -> bool:
        """Whether the machines of the last evaluation met their tolerance."""
        return self.last is None or self.last.converged

    def _slopes(self, found: CriterionValue) -> FloatArray:
        if isinstance(self.kernel, LinearKernel) and found.factored is not None:
            return self._factored_slopes(found.factored)
        return self.design.gram_adjoint(self.kernel.pullback(self.gram, self.K, found.gradient))

    def _factored_slopes(self, M: FactoredMatrix) -> FloatArray:
        """x'Mx of all features by products with a few vectors."""
        slopes = self.design.transpose_dot(M.vectors) ** 2 @ M.weights
        if np.all(M.diagonal == M.diagonal[0]):
            if self._squared_norms is None:
                self._squared_norms = self.design.squared_norms()
            return np.asarray(slopes + M.diagonal[0] * self._squared_norms)
        if self.design.is_sparse:
            return np.asarray(slopes + self.design.gram_adjoint(np.diag(M.diagonal)))
        for columns, block in self.design.iter_blocks():
            slopes[columns] += M.diagonal @ (block * block)
        return np.asarray(slopes)


def standing(scale_sq: FloatArray, slope: FloatArray, zero_tol: float, top: float = np.inf) -> FloatArray:
    """Scores that order features by their factors.

    Features without a factor have scores below zero and follow by how close they are to getting one; features at
    the largest factor allowed are ordered by how much they press on it.
    """
    steepest = float(np.abs(slope).max(initial=0.0))
    relative = slope / steepest if steepest > 0.0 else np.zeros_like(slope)
    score = scale_sq / max(float(scale_sq.max(initial=0.0)), np.finfo(float).tiny)
    zero = is_zero(scale_sq, zero_tol)
    score[zero] = -1.0 - relative[zero]
    at_top = scale_sq >= top
    score[at_top] += 1.0 - relative[at_top]
    return score


def is_zero(scale_sq: FloatArray, zero_tol: float) -> NDArray[np.bool_]:
    """Factors up to ``zero_tol`` times the largest; squares are compared with the square."""
    return np.asarray(scale_sq <= zero_tol**2 * scale_sq.max(initial=0.0))


def varying_columns(design: Design) -> IntArray:
    """The features that are not constant: a factor of a constant feature would only take up room."""
    return np.flatnonzero(~design.column_stats().is_constant(design.dtype))


def distinct_columns(design: Design, kernel: ScaledKernel) -> tuple[IntArray, IntArray]:
    """The features that vary, each once, and for each feature the first one that is its copy.

    Equal factors are where a descent starts, so copies would share theirs for ever. Kernels of differences and of
    machines with a bias see no sign and no shift; a polynomial sees a shift.
    """
    representative = first_copies(design, shifted=not isinstance(kernel, PolynomialKernel))
    return np.intersect1d(np.unique(representative), varying_columns(design)), representative


# -- The kernel that a scaling method was asked for --


def chosen_kernel(selector: Any, design: Design) -> ScaledKernel:
    """The kernel from the parameters ``kernel``, ``gamma``, ``degree`` and ``coef0``."""
    return make_kernel(
        selector.kernel,
        gamma=selector.gamma,
        degree=int(selector.degree),
        coef0=float(selector.coef0),
        design=design,
    )
