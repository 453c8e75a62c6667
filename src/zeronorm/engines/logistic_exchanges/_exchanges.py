"""The predicted effect of exchanging features, from the quadratic model of the objective at a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.logistic_exchanges._candidates import Candidates, SparseCandidates
from zeronorm.engines.logistic_exchanges._subsets import COLLINEAR, SubsetFit, Subsets


def without(values: NDArray[Any], position: int) -> NDArray[Any]:
    """The values without one along the last axis; faster than np.delete for small arrays."""
    return np.concatenate([values[..., :position], values[..., position + 1 :]], axis=-1)


@dataclass(frozen=True, eq=False)
class Removals:
    """Predicted effect of removals; ``loss[i]`` is the change of the objective without the i-th feature."""

    loss: FloatArray
    inverses: FloatArray

    def start(self, fit: SubsetFit, i: int) -> FloatArray:
        """Predicted weights without the i-th feature."""
        scale = self.inverses[:, i, i, None]
        return without(fit.coef - self.inverses[:, i] * (fit.coef[:, i, None] / scale), i)


@dataclass(frozen=True, eq=False)
class Additions:
    """Predicted effect of additions; ``gain[j]`` is the gain by the j-th column, ``weight[:, j]`` its weights.

    The weights of the fit then move by ``-projection[:, j]`` times that.
    """

    columns: IntArray
    gain: FloatArray
    weight: FloatArray
    projection: FloatArray

    def start(self, fit: SubsetFit, j: int) -> FloatArray:
        """Predicted weights with the j-th column."""
        weight = self.weight[:, j, None]
        position = int(np.searchsorted(fit.columns, self.columns[j]))
        moved = fit.coef - weight * self.projection[:, j]
        return np.concatenate([moved[:, :position], weight, moved[:, position:]], axis=1)


class QuadraticModel:
    """Second-order expansion of the objective at a fit, summed over models."""

    def __init__(self, model: Subsets, fit: SubsetFit) -> None:
        self.fit = fit
        self.ridge = model.ridge
        self._expansion = model.expand(fit, model.rows_and_ones(fit.columns))
        self.inverses = self._expansion.inverses
        penalised = np.arange(fit.size)
        self.scale = self.inverses[:, penalised, penalised]

    def removals(self) -> Removals:
        return Removals((self.fit.coef[:, :-1] ** 2 / (2.0 * self.scale)).sum(axis=0), self.inverses)

    def additions(self, candidates: Candidates | SparseCandidates, count: int | None = None) -> Additions:
        """Predicted gains of the candidates outside the fit, or of the ``count`` with the largest gradients."""
        slopes = candidates.products(self._expansion.residuals)
        bends = self._expansion.bends(candidates) + self.ridge
        kept = np.flatnonzero(_outside(candidates.columns, self.fit.columns))
        if count is not None and count < kept.size:
            # A lower bound of the gain: correlation with the features of the fit only decreases the curvature.
            least = (slopes**2 / bends).sum(axis=0)[kept]
            kept = kept[np.argpartition(-least, count)[:count]]
        slopes, bends = slopes[:, kept], bends[:, kept]
        projection, remaining = self._project(candidates.take(kept), bends)
        floor = COLLINEAR * bends
        gain = _half_square_ratio(slopes, remaining, floor).sum(axis=0)
        weight = np.divide(slopes, remaining, out=np.zeros_like(slopes), where=remaining > floor)
        return Additions(candidates.columns[kept], gain, weight, projection)

    def swap_gains(self, candidates: Candidates | SparseCandidates) -> FloatArray:
        """Predicted gain [j, i] when candidate j outside the fit replaces feature i of the fit."""
        slopes = candidates.products(self._expansion.residuals)
        bends = self._expansion.bends(candidates) + self.ridge
        projection, remaining = self._project(candidates, bends)
        # Removing feature i moves the others along the i-th column of the inverse, which changes the gradients.
        own = projection[:, :, :-1]
        ratio = (self.fit.coef[:, :-1] / self.scale)[:, None, :]
        slope_without = slopes[:, :, None] + own * ratio
        remaining_without = np.maximum(remaining, 0.0)[:, :, None] + own**2 / self.scale[:, None, :]
        gains = _half_square_ratio(slope_without, remaining_without, COLLINEAR * bends[:, :, None])
        return np.asarray(gains.sum(axis=0) - self.removals().loss)

    def _project(
        self, candidates: Candidates | SparseCandidates, bends: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Regression coefficients of candidates on the features of the fit, and their remaining curvature."""
        cross = candidates.products(self._expansion.weighted)
        projection = cross @ self.inverses
        return projection, bends - np.einsum("cji,cji->cj", projection, cross)


def _outside(columns: IntArray, subset: IntArray) -> NDArray[np.bool_]:
    """Mask of the sorted columns that are not in the sorted subset."""
    if subset.size == 0:
        return np.ones(columns.size, dtype=bool)
    return np.asarray(subset[np.minimum(np.searchsorted(subset, columns), subset.size - 1)] != columns)


def _half_square_ratio(slope: FloatArray, bend: FloatArray, floor: FloatArray) -> FloatArray:
    usable = bend > floor
    return np.where(usable, slope**2 / (2.0 * np.where(usable, bend, 1.0)), 0.0)
