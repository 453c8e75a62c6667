"""The predicted effect of exchanging features, from the quadratic model of the objective at a fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._base import SMALL_COPY_BYTES
from zeronorm.engines.logistic_exchanges._kernels import expand_models, fit_logistic

# -- Logistic regression on subsets of the features: columns in memory, and exact fits --


FIT_TOLERANCE = 1e-6  # expected relative gain at which Newton's method takes its last step
FIT_STEPS = 200
BLOCK_BYTES = 1 << 22  # bytes of columns that are read at a time
DENSE_BYTES = 1 << 23  # bytes of sparse candidates that are made dense; larger ones stay sparse


@dataclass(frozen=True, eq=False)
class SubsetFit:
    """The fitted models on one subset.

    ``coef`` has one row per model: the weights in the order of the sorted ``columns``, then the bias.
    """

    columns: IntArray
    coef: FloatArray
    objective: float
    key: bytes

    @property
    def size(self) -> int:
        return int(self.columns.size)

    def start_on(self, columns: IntArray) -> FloatArray:
        """Starting weights for another sorted subset: those of the shared features, zero for the others."""
        coef = np.zeros((len(self.coef), columns.size + 1))
        coef[:, -1] = self.coef[:, -1]
        if columns.size and self.size:
            position = np.minimum(np.searchsorted(columns, self.columns), columns.size - 1)
            shared = columns[position] == self.columns
            coef[:, position[shared]] = self.coef[:, :-1][:, shared]
        return coef


class LogisticSubsets:
    r"""Minimise :math:`\sum_c [\sum_i s_i \log(1 + e^{-y_{ic} f_c(x_i)}) + \tfrac{\lambda}{2} \|w_c\|^2]` on subsets.

    Columns that were used are kept in memory, one per row, until ``forget``.
    """

    def __init__(self, design: Design, signs: FloatArray, weight: FloatArray, ridge: float) -> None:
        self.design = design
        self.signs = np.ascontiguousarray(signs.T)
        self.weight = np.ascontiguousarray(weight)
        self.ridge = float(ridge)
        self.n_steps = 0
        self.all_converged = True
        self._row_of = np.full(design.n_features, -1, dtype=np.intp)
        self._stored = np.empty((0, design.n_samples))
        self.n_stored = 0
        self._floor: dict[bytes, float] = {}

    def part(self, n_samples: int) -> LogisticSubsets:
        """The same objective on a subsample with equally many samples per class, weighted to the same total."""
        classes = np.unique(self.signs, axis=1, return_inverse=True)[1].ravel()
        n_classes = int(classes.max()) + 1
        rng = np.random.default_rng(0)
        factor = np.zeros(classes.size)
        for members in (np.flatnonzero(classes == c) for c in range(n_classes)):
            chosen = rng.choice(members, min(members.size, max(1, n_samples // n_classes)), replace=False)
            factor[chosen] = self.weight[members].sum() / self.weight[chosen].sum()
        rows = np.flatnonzero(factor)
        part = self.design.take_rows(rows)
        return LogisticSubsets(part, self.signs[:, rows].T, self.weight[rows] * factor[rows], self.ridge)

    # -- columns --------------------------------------------------------------------------------

    def rows(self, columns: IntArray) -> FloatArray:
        """Columns of the data, one per row."""
        stored_rows = self._rows_of(columns)
        return self._stored[stored_rows]

    def rows_and_ones(self, columns: IntArray) -> FloatArray:
        """Columns of the data, one per row, and ones in the last row, for the bias."""
        rows = np.empty((columns.size + 1, self.design.n_samples))
        stored_rows = self._rows_of(columns)
        np.take(self._stored, stored_rows, axis=0, out=rows[:-1], mode="clip")
        rows[-1] = 1.0
        return rows

    def forget(self, keep: IntArray) -> None:
        """Drop all stored columns but these."""
        keep = keep[np.argsort(self._rows_of(keep), kind="stable")]
        # In this order a row never overwrites one that is still to be moved.
        for new, old in enumerate(self._row_of[keep].tolist()):
            self._stored[new] = self._stored[old]
        self._stored.resize((keep.size, self.design.n_samples), refcheck=False)
        self._row_of[:] = -1
        self._row_of[keep] = np.arange(keep.size)
        self.n_stored = keep.size

    def _rows_of(self, columns: IntArray) -> IntArray:
        """Rows of the store that hold these columns, after reading those that are missing."""
        stored_rows = self._row_of[columns]
        if columns.size and stored_rows.min() < 0:
            self._load(columns[stored_rows < 0])
            stored_rows = self._row_of[columns]
        return stored_rows

    def _load(self, missing: IntArray) -> None:
        start, end = self.n_stored, self.n_stored + missing.size
        if end > len(self._stored):
            # Long columns, which take long to compute anyway, get less spare memory. No view of the store is ever
            # returned, so it can be resized in place, without a second copy.
            spare = len(self._stored) // (2 if self._stored.nbytes <= SMALL_COPY_BYTES else 8)
            self._stored.resize((max(end, len(self._stored) + spare), self.design.n_samples), refcheck=False)
        # For data in files all columns are read in one pass.
        width = max(1, BLOCK_BYTES // (8 * self.design.n_samples)) if self.design.is_sparse else missing.size
        for first in range(0, missing.size, width):
            part = missing[first : first + width]
            self._stored[start + first : start + first + part.size] = self.design.block(part).T
        self._row_of[missing] = np.arange(start, end)
        self.n_stored = end

    # -- fits -----------------------------------------------------------------------------------

    def fit(self, columns: IntArray) -> SubsetFit:
        """Fit on a sorted subset."""
        fit = self.fit_below(np.inf, columns, np.zeros((len(self.signs), columns.size + 1)))
        assert fit is not None
        return fit

    def fit_below(self, goal: float, columns: IntArray, start: FloatArray) -> SubsetFit | None:
        """Fit on a sorted subset from the weights ``start``, which are overwritten.

        Returns None, mostly after one or two steps, when the objective will stay above ``goal``.
        """
        key = columns.tobytes()
        if self._floor.get(key, -np.inf) >= goal:
            return None
        objective, steps = fit_logistic(
            self.rows_and_ones(columns),
            self.signs,
            self.weight,
            self.ridge,
            start,
            FIT_TOLERANCE,
            FIT_STEPS,
            goal,
        )
        self.n_steps += abs(steps)
        self._floor[key] = goal if np.isinf(objective) else objective
        if objective >= goal:
            return None
        self.all_converged &= steps >= 0
        return SubsetFit(columns, start, float(objective), key)

    def residuals(self, fit: SubsetFit, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Negative first and second derivative of the loss by the decision values, of shape (models, samples)."""
        margins = (fit.coef @ own) * self.signs
        wrong = 1.0 / (1.0 + np.exp(np.minimum(margins, 700.0)))
        return self.weight * self.signs * wrong, self.weight * wrong * (1.0 - wrong)


COLLINEAR = 1e-9  # least share of the curvature of a feature that the others may leave unexplained


class Candidates:
    """Sorted features that may enter, with their values and squared values, one feature per row."""

    def __init__(self, columns: IntArray, values: FloatArray) -> None:
        self.columns, self._values = columns, values

    @cached_property
    def _squares(self) -> FloatArray:
        return np.asarray(self._values * self._values)

    @classmethod
    def of(cls, model: LogisticSubsets, columns: IntArray) -> Candidates | SparseCandidates:
        """Read the candidates as a dense array, or as sparse columns where that would be large."""
        large = 8 * model.design.n_samples * columns.size > DENSE_BYTES
        stored = model.design.stored_columns(columns) if large else None
        if stored is not None:
            return SparseCandidates(columns, *stored)
        return cls(columns, model.rows(columns))

    def take(self, kept: IntArray) -> Candidates:
        return Candidates(self.columns[kept], self._values[kept])

    def products(self, vectors: FloatArray) -> FloatArray:
        """Products of each row vector with each feature; stacks of vectors give stacks of products, features first."""
        if vectors.ndim == 2:
            return np.asarray(vectors @ self._values.T)
        return np.asarray(self._values @ vectors.transpose(0, 2, 1))

    def square_products(self, vectors: FloatArray) -> FloatArray:
        """Products with the squared values."""
        return np.asarray(vectors @ self._squares.T)


class SparseCandidates:
    """Products with the sparse columns S minus their shift."""

    def __init__(self, columns: IntArray, stored: Any, shift: FloatArray) -> None:
        self.columns, self._stored, self._shift = columns, stored, shift

    def take(self, kept: IntArray) -> SparseCandidates:
        return SparseCandidates(self.columns[kept], self._stored[:, kept], self._shift[kept])

    def products(self, vectors: FloatArray) -> FloatArray:
        if vectors.ndim == 3:
            return np.stack([self.products(part).T for part in vectors])
        plain = (self._stored.T @ vectors.T).T
        return np.asarray(plain - np.outer(vectors.sum(axis=1), self._shift))

    def square_products(self, vectors: FloatArray) -> FloatArray:
        plain, squares = (self._stored.T @ vectors.T).T, (self._stored.power(2).T @ vectors.T).T
        total = vectors.sum(axis=1)
        return np.asarray(squares - 2.0 * self._shift * plain + np.outer(total, self._shift**2))


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

    def __init__(self, model: LogisticSubsets, fit: SubsetFit) -> None:
        own = model.rows_and_ones(fit.columns)
        n_models, (size, n) = len(fit.coef), own.shape
        self.fit = fit
        self.ridge = model.ridge
        self.residuals, self.curvatures = np.empty((n_models, n)), np.empty((n_models, n))
        self.weighted = np.empty((n_models, size, n))
        self.inverses = np.empty((n_models, size, size))
        usable = expand_models(
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
        self.scale = self.inverses[:, penalised, penalised]

    def removals(self) -> Removals:
        return Removals((self.fit.coef[:, :-1] ** 2 / (2.0 * self.scale)).sum(axis=0), self.inverses)

    def additions(self, candidates: Candidates | SparseCandidates, count: int | None = None) -> Additions:
        """Predicted gains of the candidates outside the fit, or of the ``count`` with the largest gradients."""
        slopes = candidates.products(self.residuals)
        bends = candidates.square_products(self.curvatures) + self.ridge
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
        slopes = candidates.products(self.residuals)
        bends = candidates.square_products(self.curvatures) + self.ridge
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
        cross = candidates.products(self.weighted)
        projection = cross @ self.inverses
        return projection, bends - np.einsum("cji,cji->cj", projection, cross)


def _outside(columns: IntArray, subset: IntArray) -> NDArray[np.bool_]:
    """Mask of the sorted columns that are not in the sorted subset."""
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
