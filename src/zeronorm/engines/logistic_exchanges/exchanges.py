"""What an exchange of features would change, read from the quadratic model of the objective at a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.logistic_exchanges.kernels import expand_machines
from zeronorm.engines.logistic_exchanges.subsets import LogisticSubsets, SubsetFit

COLLINEAR = 1e-9  # share of its curvature that must remain of a feature given the others


class Candidates:
    """Features that may enter, sorted, with their values and the squares of these, one feature per row."""

    def __init__(self, model: LogisticSubsets, columns: IntArray) -> None:
        self.columns = columns
        self.values = model.rows(columns)
        self.squares = self.values * self.values


@dataclass(frozen=True, eq=False)
class Removals:
    """``loss[i]``: predicted change of the objective when the i-th feature of a fit leaves."""

    loss: FloatArray
    inverses: FloatArray

    def start(self, fit: SubsetFit, i: int) -> FloatArray:
        """Predicted weights without the i-th feature."""
        spread = self.inverses[:, i, i, None]
        return np.delete(fit.coef - self.inverses[:, i] * (fit.coef[:, i, None] / spread), i, axis=1)


@dataclass(frozen=True, eq=False)
class Additions:
    """``gain[j]``: predicted gain when the j-th of these columns enters, ``weight[:, j]`` its weights then.

    The weights of the fit then move by ``-projection[:, j]`` times that.
    """

    columns: IntArray
    gain: FloatArray
    weight: FloatArray
    projection: FloatArray

    def start(self, fit: SubsetFit, j: int) -> FloatArray:
        """Predicted weights with the j-th column."""
        weight = self.weight[:, j, None]
        place = int(np.searchsorted(fit.columns, self.columns[j]))
        moved = fit.coef - weight * self.projection[:, j]
        return np.concatenate([moved[:, :place], weight, moved[:, place:]], axis=1)


class QuadraticModel:
    """Second-order expansion of the objective at a fit; machines are summed."""

    def __init__(self, model: LogisticSubsets, fit: SubsetFit) -> None:
        own = model.rows_and_ones(fit.columns)
        n_machines, (size, n) = len(fit.coef), own.shape
        self.fit = fit
        self.ridge = model.ridge
        self.residuals, self.curvatures = np.empty((n_machines, n)), np.empty((n_machines, n))
        self.weighted = np.empty((n_machines, size, n))
        self.inverses = np.empty((n_machines, size, size))
        usable = expand_machines(
            own,
            model.signs,
            model.weight,
            model.ridge,
            fit.coef,
            COLLINEAR,
            self.residuals,
            self.curvatures,
            self.weighted,
            self.inverses,
        )
        if not usable:
            self.inverses = _pseudo_inverses(self.weighted @ own.T, model.ridge)
        penalised = np.arange(fit.size)
        self.spread = self.inverses[:, penalised, penalised]

    def removals(self) -> Removals:
        return Removals((self.fit.coef[:, :-1] ** 2 / (2.0 * self.spread)).sum(axis=0), self.inverses)

    def additions(self, candidates: Candidates, count: int | None = None) -> Additions:
        """What the candidates outside the fit would gain, or those ``count`` with the steepest slopes."""
        slopes = self.residuals @ candidates.values.T
        bends = self.curvatures @ candidates.squares.T + self.ridge
        kept = np.flatnonzero(_outside(candidates.columns, self.fit.columns))
        if count is not None and count < kept.size:
            # A lower bound of the gain: correlation with the features of the fit only lessens the bend.
            least = (slopes**2 / bends).sum(axis=0)[kept]
            kept = kept[np.argpartition(-least, count)[:count]]
        slopes, bends = slopes[:, kept], bends[:, kept]
        projection, remaining = self._project(candidates.values[kept], bends)
        floor = COLLINEAR * bends
        gain = _half_square_ratio(slopes, remaining, floor).sum(axis=0)
        weight = np.divide(slopes, remaining, out=np.zeros_like(slopes), where=remaining > floor)
        return Additions(candidates.columns[kept], gain, weight, projection)

    def swap_gains(self, candidates: Candidates) -> FloatArray:
        """Predicted gain by putting candidate j, none of the fit, in the place of feature i of the fit: [j, i]."""
        slopes = self.residuals @ candidates.values.T
        bends = self.curvatures @ candidates.squares.T + self.ridge
        projection, remaining = self._project(candidates.values, bends)
        # Leaving out feature i moves the others along the i-th column of the inverse, which changes the slopes.
        own = projection[:, :, :-1]
        ratio = (self.fit.coef[:, :-1] / self.spread)[:, None, :]
        slope_without = slopes[:, :, None] + own * ratio
        remaining_without = np.maximum(remaining, 0.0)[:, :, None] + own**2 / self.spread[:, None, :]
        gains = _half_square_ratio(slope_without, remaining_without, COLLINEAR * bends[:, :, None])
        return np.asarray(gains.sum(axis=0) - self.removals().loss)

    def _project(self, values: FloatArray, bends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of candidates on the features of the fit, and the curvature that is left of them."""
        cross = values @ self.weighted.transpose(0, 2, 1)
        projection = cross @ self.inverses
        return projection, bends - np.einsum("cji,cji->cj", projection, cross)


def _outside(columns: IntArray, subset: IntArray) -> NDArray[np.bool_]:
    """Which of the sorted columns are not in the sorted subset."""
    if subset.size == 0:
        return np.ones(columns.size, dtype=bool)
    return np.asarray(subset[np.minimum(np.searchsorted(subset, columns), subset.size - 1)] != columns)


def _pseudo_inverses(hessians: FloatArray, ridge: float) -> FloatArray:
    penalised = np.arange(hessians.shape[1] - 1)
    hessians[:, penalised, penalised] += ridge
    return np.asarray(np.linalg.pinv(hessians, rcond=1e-15, hermitian=True), dtype=np.float64)


def _half_square_ratio(slope: FloatArray, bend: FloatArray, floor: FloatArray) -> FloatArray:
    usable = bend > floor
    return np.where(usable, slope**2 / (2.0 * np.where(usable, bend, 1.0)), 0.0)
