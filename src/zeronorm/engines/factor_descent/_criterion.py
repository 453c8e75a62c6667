"""A criterion as a function of the squared scaling factors of the features, and projected gradient descent on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
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
from zeronorm.design._dense import DenseDesign
from zeronorm.engines._sparse_paths import first_copies
from zeronorm.solvers._geometry import project_on_simplex
from zeronorm.solvers._status import UnsolvableError
from zeronorm.solvers.linear._working_set import SUFFICIENT

CONSTANT = -3.0  # score of constant features, below all others
COPY = -2.5  # score of copies of other features, below all features that took part
IN_MEMORY_BYTES = 64 << 20  # bytes; smaller data are standardised once and stored, instead of in each product


class ScaledCriterion:
    r"""G(K(σ²)) and its gradient in σ², with the models started from their last solutions.

    .. math:: \frac{\partial G}{\partial \sigma_k^2} = x_k^\top M x_k, \qquad
        M = \frac{\partial G}{\partial (\text{Gram matrix})} \text{ by the chain rule through the kernel.}
    """

    def __init__(
        self, design: Design, kernel: ScaledKernel, criterion: Criterion, target: FloatArray
    ) -> None:
        if 8 * design.n_samples * design.n_features <= IN_MEMORY_BYTES and not design.is_sparse:
            design = DenseDesign(design.block(slice(None)))
        self.design, self.kernel, self.criterion, self.target = design, kernel, criterion, target
        self.gram: FloatArray = np.empty((0, 0))
        self.K: FloatArray = np.empty((0, 0))
        self.last: CriterionValue | None = None
        self._squared_norms: FloatArray | None = None

    def __call__(self, scale_sq: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient; infinite where a hard margin does not exist with these factors."""
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
        """The value when each of the given features in turn is removed and the models are retrained."""
        gram = self.design.gram(scale_sq)
        warm = None if self.last is None else self.last.warm
        values = np.empty(columns.size)
        for index, k in enumerate(columns):
            x = self.design.block(np.array([k]))[:, 0]
            K = self.kernel.matrix(gram - scale_sq[k] * np.outer(x, x))
            try:
                values[index] = self.criterion.evaluate(K, self.target, warm).value
            except UnsolvableError:  # no hard margin without the feature
                values[index] = np.inf
        return values

    def take(self, columns: IntArray) -> ScaledCriterion:
        """The same function on some of the features, with the current models."""
        narrowed = ScaledCriterion(self.design.take(columns), self.kernel, self.criterion, self.target)
        narrowed.last = self.last
        return narrowed

    @property
    def converged(self) -> bool:
        """Whether the models of the last evaluation converged."""
        return self.last is None or self.last.converged

    def _slopes(self, found: CriterionValue) -> FloatArray:
        if isinstance(self.kernel, LinearKernel) and found.factored is not None:
            return self._factored_slopes(found.factored)
        return self.design.gram_adjoint(self.kernel.pullback(self.gram, self.K, found.gradient))

    def _factored_slopes(self, M: FactoredMatrix) -> FloatArray:
        """x'Mx of all features, from products with a few vectors."""
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

    Features with a factor of zero have scores below zero and are ordered by their gradient; features at the largest
    factor allowed are ordered by their gradient too.
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
    """Mask of factors up to ``zero_tol`` times the largest; squared factors are compared with its square."""
    return np.asarray(scale_sq <= zero_tol**2 * scale_sq.max(initial=0.0))


def varying_columns(design: Design) -> IntArray:
    """The features that are not constant; a constant feature needs no factor."""
    return np.flatnonzero(~design.column_stats().is_constant(design.dtype))


def distinct_columns(design: Design, kernel: ScaledKernel) -> tuple[IntArray, IntArray]:
    """The features that vary, each once, and for each feature the first one that is its copy.

    The descent starts from equal factors, so copies would keep equal factors. Sign and shift of a column do not matter
    for kernels of differences and for linear models with a bias; a shift matters for a polynomial kernel.
    """
    representative = first_copies(design, shifted=not isinstance(kernel, PolynomialKernel))
    return np.intersect1d(np.unique(representative), varying_columns(design)), representative


# -- The kernel from the parameters of a scaling method --


def chosen_kernel(selector: Any, design: Design) -> ScaledKernel:
    """The kernel from the parameters ``kernel``, ``gamma``, ``degree`` and ``coef0``."""
    return make_kernel(
        selector.kernel,
        gamma=selector.gamma,
        degree=int(selector.degree),
        coef0=float(selector.coef0),
        design=design,
    )


# -- Descent over non-negative scaling factors of bounded size, by spectral projected gradients --


Evaluate = Callable[[FloatArray], tuple[float, FloatArray]]

MEMORY = 10  # a step may increase the value, but not above all of the last ten values
SHORTEST = 1e-10  # fraction of a step below which the line search fails
RESTING = 50  # iterations over which the decrease of the value is measured
# Fraction of the tolerance: with a smaller relative decrease over these iterations the descent ends.
REST_SHARE = 1e-3
NO_DECREASE = (
    "the line search found no decrease: the criterion has a kink there. Change C or choose another criterion."
)


class Region(ABC):
    """The feasible set of the factors."""

    @abstractmethod
    def project(self, point: FloatArray) -> FloatArray:
        """Project a point on the region."""

    @abstractmethod
    def lowest(self, slope: FloatArray) -> float:
        """The smallest inner product of a point of the region with ``slope``."""


@dataclass(frozen=True)
class ConstantSum(Region):
    """Non-negative factors with a fixed sum."""

    total: float

    def project(self, point: FloatArray) -> FloatArray:
        return self.total * project_on_simplex(point / self.total)

    def lowest(self, slope: FloatArray) -> float:
        return self.total * float(slope.min())


@dataclass(frozen=True)
class UnitBox(Region):
    """Each factor between 0 and 1."""

    def project(self, point: FloatArray) -> FloatArray:
        return np.clip(point, 0.0, 1.0)

    def lowest(self, slope: FloatArray) -> float:
        return float(np.minimum(slope, 0.0).sum())


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a descent; ``gap`` is the decrease that the gradient still predicts, relative to the value."""

    point: FloatArray
    value: float
    slope: FloatArray
    gap: float
    n_iter: int
    converged: bool
    remedy: str


def descend(evaluate: Evaluate, start: FloatArray, region: Region, *, tol: float, max_iter: int) -> Descent:
    r"""Follow the projected gradient with steps of Barzilai and Borwein (Birgin, Martínez & Raydan 2000).

    The descent ends where the gradient g predicts a decrease of at most a fraction ``tol`` of the value,

    .. math:: g^\top x - \min_{s} g^\top s \le \mathrm{tol}\,|f(x)|, \qquad s \text{ in the region},

    which for a convex criterion bounds the distance from the smallest value. It also ends where the value no longer
    decreases, because at a kink of the criterion the gradient does not become small.

    Parameters
    ----------
    evaluate : value and gradient at a point; the value is infinite at points that are not allowed.
    start : projected on the region first; its value must be finite.
    """
    state = _State(evaluate, region.project(start), region)
    remedy = ""
    while not state.is_stationary(tol) and not state.is_at_rest(tol):
        if state.n_iter >= max_iter:
            remedy = "raise max_iter or loosen tol."
            break
        if not state.step():
            remedy = NO_DECREASE
            break
    return Descent(state.x, state.value, state.slope, state.gap, state.n_iter, remedy == "", remedy)


class _State:
    """The current point and the length of the next step."""

    def __init__(self, evaluate: Evaluate, x: FloatArray, region: Region) -> None:
        self.evaluate, self.region, self.x = evaluate, region, x
        self.value, self.slope = evaluate(x)
        steepest = float(np.abs(self.slope).max(initial=0.0))
        self.unit_length = 1.0 / steepest if steepest > 0.0 else 1.0
        self.length = self.unit_length
        self.recent: deque[float] = deque([self.value], maxlen=MEMORY)
        self.lowest: deque[float] = deque([self.value], maxlen=RESTING + 1)
        self.n_iter = 0

    @property
    def gap(self) -> float:
        promised = float(self.slope @ self.x) - self.region.lowest(self.slope)
        return promised / max(abs(self.value), np.finfo(float).tiny)

    def is_stationary(self, tol: float) -> bool:
        return self.gap <= tol

    def is_at_rest(self, tol: float) -> bool:
        if len(self.lowest) <= RESTING:
            return False
        return self.lowest[0] - self.lowest[-1] <= REST_SHARE * tol * abs(self.lowest[-1])

    def step(self) -> bool:
        """Take one step; False when no decrease is found."""
        self.n_iter += 1
        if self._search(self.length):
            return True
        # The last curvature may be misleading: try again with the short first step length.
        return self.length != self.unit_length and self._search(self.unit_length)

    def _search(self, length: float) -> bool:
        direction = self.region.project(self.x - length * self.slope) - self.x
        descent = float(self.slope @ direction)
        if descent >= 0.0:
            return False
        reference, fraction = max(self.recent), 1.0
        while fraction >= SHORTEST:
            x = self.x + fraction * direction
            value, slope = self.evaluate(x)
            if value <= reference + SUFFICIENT * fraction * descent:
                self._move(x, value, slope)
                return True
            excess = value - self.value - fraction * descent
            parabola = -0.5 * fraction**2 * descent / excess if np.isfinite(excess) and excess > 0.0 else 0.0
            fraction = min(max(parabola, 0.1 * fraction), 0.5 * fraction)
        return False

    def _move(self, x: FloatArray, value: float, slope: FloatArray) -> None:
        moved, turned = x - self.x, slope - self.slope
        curvature = float(moved @ turned)
        longest, shortest = 1e10 * self.unit_length, 1e-10 * self.unit_length
        length = float(moved @ moved) / curvature if curvature > 0.0 else 10.0 * self.length
        self.length = min(max(length, shortest), longest)
        self.x, self.value, self.slope = x, value, slope
        self.recent.append(value)
        self.lowest.append(min(value, self.lowest[-1]))
