"""Alternate between optimising the scaling factors and discarding features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria import (
    LinearKernel,
    PolynomialKernel,
    RadiusMargin,
    RBFKernel,
    ScaledKernel,
    Summed,
    Variance,
)
from zeronorm.criteria._base import with_ridge
from zeronorm.criteria._span import bordered_inverse, support_of
from zeronorm.engines.elimination._loop import count_to_remove
from zeronorm.engines.factor_descent._criterion import (
    ConstantSum,
    Descent,
    Region,
    ScaledCriterion,
    UnitBox,
    descend,
    is_zero,
    standing,
)
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Progress
from zeronorm.solvers._geometry import EnclosingSphere
from zeronorm.solvers.svm._dual import SvmDual

# -- Second derivatives of the radius/margin bound in every scaling factor, without a loop over features --
#
# Write s for the squared factor of one feature and K', K'' for the derivatives of the kernel matrix in s. On its
# support vectors the SVM is :math:`v = P y` with P the bordered inverse of the kernel matrix, so
#
# .. math:: W^2 = y^\top P y, \qquad (W^2)' = -v^\top K' v, \qquad (W^2)'' = 2 (K'v)^\top P (K'v) - v^\top K'' v .
#
# For the enclosing sphere with centre β and Q the bordered inverse on its support,
#
# .. math:: (R^2)' = \beta^\top \mathrm{diag} K' - \beta^\top K' \beta, \qquad
#     (R^2)'' = \beta^\top \mathrm{diag} K'' - \beta^\top K'' \beta + \tfrac12 g^\top Q g, \qquad
#     g = \mathrm{diag} K' - 2 K' \beta .
#
# Both hold as long as the sets of support vectors stay the same. A kernel must provide the products of K' and K''
# with given vectors, for a block of features at once


class KernelChange(Protocol):
    """Derivatives of the kernel matrix with respect to the squared factor of each feature of a block."""

    def times(self, v: FloatArray) -> FloatArray:
        """K' v, one column per feature."""

    def second_form(self, v: FloatArray) -> FloatArray:
        """v' K'' v for each feature."""

    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        """The diagonals of K' and K'', one column per feature."""


class PolynomialChange:
    r"""(γ G + c)^d with G' = x x'; the linear kernel is d = 1."""

    def __init__(self, kernel: PolynomialKernel, gram: FloatArray, block: FloatArray) -> None:
        base, d = kernel.gamma * gram + kernel.coef0, kernel.degree
        self.block = block
        self.first = d * kernel.gamma * base ** (d - 1)
        self.second = np.zeros_like(base) if d == 1 else d * (d - 1) * kernel.gamma**2 * base ** (d - 2)

    def times(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.block * (self.first @ (v[:, None] * self.block)))

    def second_form(self, v: FloatArray) -> FloatArray:
        squares = v[:, None] * self.block**2
        return np.asarray(np.einsum("ik,ik->k", squares, self.second @ squares))

    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.diagonal(self.first)[:, None] * self.block**2,
            np.diagonal(self.second)[:, None] * self.block**4,
        )


class RBFChange:
    r"""exp(-γ D) with D' the squared differences of one feature, multiplied out into powers of the feature."""

    def __init__(self, kernel: RBFKernel, K: FloatArray, block: FloatArray) -> None:
        self.gamma, self.K = kernel.gamma, K
        self.block = block - block.mean(axis=0)  # only differences matter; centred values lose fewer digits

    def _moments(self, v: FloatArray, power: int) -> FloatArray:
        return np.asarray(self.K @ (v[:, None] * self.block**power))

    def times(self, v: FloatArray) -> FloatArray:
        x = self.block
        total = x**2 * (self.K @ v)[:, None] - 2.0 * x * self._moments(v, 1) + self._moments(v, 2)
        return np.asarray(-self.gamma * total)

    def second_form(self, v: FloatArray) -> FloatArray:
        weighted = [v[:, None] * self.block**power for power in range(5)]
        fourth = (
            2.0 * weighted[4] * (self.K @ v)[:, None]
            - 8.0 * weighted[3] * self._moments(v, 1)
            + 6.0 * weighted[2] * self._moments(v, 2)
        )
        return np.asarray(self.gamma**2 * fourth.sum(axis=0))

    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        nothing = np.zeros_like(self.block)
        return nothing, nothing


def kernel_change(kernel: ScaledKernel, gram: FloatArray, K: FloatArray, block: FloatArray) -> KernelChange:
    """The derivatives of a kernel for a block of features."""
    if isinstance(kernel, RBFKernel):
        return RBFChange(kernel, K, block)
    if isinstance(kernel, LinearKernel):
        kernel = PolynomialKernel(degree=1, gamma=1.0, coef0=0.0)
    assert isinstance(kernel, PolynomialKernel)
    return PolynomialChange(kernel, gram, block)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """A quantity with its first and second derivatives with respect to each squared factor."""

    value: float
    first: FloatArray
    second: FloatArray

    def __mul__(self, other: Derivatives) -> Derivatives:
        return Derivatives(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2.0 * self.first * other.first + self.value * other.second,
        )


def margin_derivatives(dual: SvmDual, K: FloatArray, C: float, change: KernelChange) -> Derivatives:
    """Derivatives of the inverse squared margin."""
    v = dual.dual_coef
    support = support_of(dual.alpha)
    P = bordered_inverse(with_ridge(K[np.ix_(support, support)], C))[:-1, :-1]
    moved = change.times(v)
    turned = moved[support]
    second = 2.0 * np.einsum("ik,ik->k", turned, P @ turned) - change.second_form(v)
    return Derivatives(2.0 * dual.objective, -v @ moved, second)


def variance_derivatives(value: float, change: KernelChange, n_samples: int) -> Derivatives:
    """Derivatives of the variance in feature space."""
    mean = np.full(n_samples, 1.0 / n_samples)
    first, second = change.diagonals()
    return Derivatives(
        value, mean @ first - mean @ change.times(mean), mean @ second - change.second_form(mean)
    )


def radius_derivatives(sphere: EnclosingSphere, K: FloatArray, C: float, change: KernelChange) -> Derivatives:
    """Derivatives of the squared radius of the enclosing sphere."""
    beta = sphere.beta
    support = support_of(beta)
    Q = bordered_inverse(with_ridge(K[np.ix_(support, support)], C))[:-1, :-1]
    first, second = change.diagonals()
    moved = change.times(beta)
    gradient = (first - 2.0 * moved)[support]
    bent = 0.5 * np.einsum("ik,ik->k", gradient, Q @ gradient)
    return Derivatives(
        sphere.radius_sq,
        beta @ first - beta @ moved,
        beta @ second - change.second_form(beta) + bent,
    )


# -- Rules for the value of each feature after the scaling factors have been optimised --


Worth = Callable[[ScaledCriterion, FloatArray], FloatArray]


def removal_value(objective: ScaledCriterion, scale_sq: FloatArray) -> FloatArray:
    """The value of the criterion when each feature in turn is removed and the models are retrained."""
    return objective.without(np.arange(scale_sq.size), scale_sq)


def curvature_saliency(objective: ScaledCriterion, scale_sq: FloatArray) -> FloatArray:
    r"""σ² ∂²(R²W²)/∂σ² at the given factors, summed over models.

    With s = σ² it is :math:`4 s^2\,\partial^2 (R^2W^2)/\partial s^2 + 2 s\,\partial (R^2W^2)/\partial s`.
    """
    objective(scale_sq)
    saliency = np.empty(scale_sq.size)
    for columns, block in objective.design.iter_blocks():
        change = kernel_change(objective.kernel, objective.gram, objective.K, block)
        s = scale_sq[columns]
        saliency[columns] = sum(
            4.0 * s**2 * bound.second + 2.0 * s * bound.first for bound in _bounds(objective, change)
        )
    return saliency


def _bounds(objective: ScaledCriterion, change: KernelChange) -> list[Derivatives]:
    """R²W² and its derivatives for each model."""
    assert isinstance(objective.criterion, Summed)
    assert isinstance(objective.criterion.criterion, RadiusMargin)
    assert objective.last is not None
    bound, K = objective.criterion.criterion, objective.K
    found = []
    for sphere, dual in objective.last.warm:
        if bound.scale == "radius":
            scale = radius_derivatives(sphere, K, bound.C, change)
        else:
            variance = Variance(bound.C).evaluate(K, objective.target[:, 0]).value
            scale = variance_derivatives(variance, change, K.shape[0])
        found.append(scale * margin_derivatives(dual, K, bound.C, change))
    return found


# Value of a feature, bigger is better. The third rule, the factor itself, needs no computation.
WORTH: dict[str, Worth] = {"removal": removal_value, "curvature": curvature_saliency}


@dataclass
class Discarding:
    """Rounds of optimising factors and discarding features, and their results.

    Parameters
    ----------
    rule, step : which features are discarded in each round and how many; without a step there is one round only.
    bounded : factors between 0 and 1 instead of a constant sum of squares.
    """

    rule: str
    step: int | float | None
    bounded: bool
    zero_tol: float
    tol: float
    max_iter: int
    eliminated: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_iter: int = 0
    remedy: str = ""
    first: Descent | None = None

    def run(self, objective: ScaledCriterion, progress: Progress) -> None:
        """Run all rounds, until one feature is left or no hard margin exists with fewer."""
        m = objective.design.n_features
        region: Region = UnitBox() if self.bounded else ConstantSum(float(m))
        active, start = np.arange(m), np.ones(m)
        with progress.task("Discarding features", m) as advance:
            while True:
                found = self._optimise(objective, start, region)
                ranked, n_out = self._ranked(objective, found)
                self.eliminated.extend(int(k) for k in active[ranked[:n_out]])
                advance(n_out)
                if n_out == active.size:
                    break
                kept = np.sort(ranked[n_out:])
                start = found.point[kept] if self.bounded else m * _shares(found.point[kept])
                objective = objective.take(kept)
                if not np.isfinite(objective(start)[0]):
                    self.eliminated.extend(int(k) for k in active[ranked[n_out:]])
                    break
                active = active[kept]

    def _optimise(self, objective: ScaledCriterion, start: FloatArray, region: Region) -> Descent:
        found = descend(objective, start, region, tol=self.tol, max_iter=self.max_iter)
        self.n_iter += found.n_iter
        self.remedy = self.remedy or found.remedy
        if not objective.converged:
            self.remedy = self.remedy or "the models did not meet their tolerance; lower C or standardize."
        self.first = self.first or found
        self.sizes.append(int(np.count_nonzero(~is_zero(found.point, self.zero_tol))))
        self.values.append(found.value)
        return found

    def _ranked(self, objective: ScaledCriterion, found: Descent) -> tuple[IntArray, int]:
        """Features, the worst first, and how many to discard: factors of zero first, then the lowest values."""
        score = standing(found.point, found.slope, self.zero_tol, top=1.0 if self.bounded else np.inf)
        by_scale = order_by_score(score)[::-1]
        zero = is_zero(found.point, self.zero_tol)[by_scale]
        gone, rest = by_scale[zero], by_scale[~zero]
        if self.rule in WORTH and rest.size > 1:
            columns = np.sort(rest)
            value = WORTH[self.rule](objective.take(columns), found.point[columns])
            rest = columns[order_by_score(value)[::-1]]
        n_out = rest.size
        if self.step is not None and rest.size > 1:
            n_out = min(count_to_remove(self.step, rest.size), rest.size - 1)
        return np.concatenate([gone, rest]), gone.size + n_out

    def path(self, varying: IntArray, scale: FloatArray) -> SelectionPath:
        """The path over all features; constant features and copies come last."""
        left_out = np.setdiff1d(np.arange(scale.size), varying)
        eliminated = varying[np.asarray(self.eliminated, dtype=np.intp)]
        return SelectionPath.from_elimination(
            np.concatenate([left_out[::-1], eliminated]),
            scale=scale,
            sizes=self.sizes,
            objective=np.asarray(self.values),
            selected_size=self.sizes[0],
            n_iter=self.n_iter,
            converged=self.remedy == "",
            remedy=self.remedy,
        )


def _shares(scale_sq: FloatArray) -> FloatArray:
    return np.asarray(scale_sq / scale_sq.sum())
