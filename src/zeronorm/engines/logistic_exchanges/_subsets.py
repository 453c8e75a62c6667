"""Linear models on subsets of the features: the columns in memory, and exact fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._base import SMALL_COPY_BYTES
from zeronorm.engines.logistic_exchanges._candidates import Candidates, SparseCandidates
from zeronorm.engines.logistic_exchanges._kernels import expand_models, fit_logistic

FIT_TOLERANCE = 1e-6  # expected relative gain at which Newton's method takes its last step
FIT_STEPS = 200
BLOCK_BYTES = 1 << 22  # bytes of columns that are read at a time
COLLINEAR = 1e-9  # least share of the curvature of a feature that the others may leave unexplained


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


@dataclass(frozen=True, eq=False)
class Expansion:
    """Second-order expansion of the loss at a fit.

    ``residuals`` are negative derivatives by the decision values, one row per model; ``weighted`` are the columns of
    the fit times the second derivatives, one row per column, and ``inverses`` the inverse Hessians of the objective in
    the coefficients. ``bends`` gives the second derivative of the loss in the weight of each candidate, by model.
    """

    residuals: FloatArray
    weighted: FloatArray
    inverses: FloatArray
    bends: Callable[[Candidates | SparseCandidates], FloatArray]


class Subsets(ABC):
    """A loss of linear models plus half of the squared weights times ``ridge``, minimised on subsets.

    Columns that were used are kept in memory, one per row, until ``forget``.
    """

    n_models = 1

    def __init__(self, design: Design, weight: FloatArray, ridge: float) -> None:
        self.design = design
        self.weight = np.ascontiguousarray(weight)
        self.ridge = float(ridge)
        self.n_steps = 0
        self.all_converged = True
        self._row_of = np.full(design.n_features, -1, dtype=np.intp)
        self._stored = np.empty((0, design.n_samples))
        self.n_stored = 0
        self._floor: dict[bytes, float] = {}

    @property
    def information(self) -> float:
        """The number of samples, or of events, that the loss counts; a weight of two counts as two."""
        return float(self.weight.sum())

    @abstractmethod
    def part(self, n_samples: int) -> Self:
        """The same objective on a subsample with equally many samples per class, weighted to the same total."""

    @abstractmethod
    def expand(self, fit: SubsetFit, own: FloatArray) -> Expansion:
        """The second-order expansion at a fit; ``own`` holds its columns and ones."""

    @abstractmethod
    def residuals(self, fit: SubsetFit, own: FloatArray) -> FloatArray:
        """Negative derivatives of the loss by the decision values, of shape (models, samples)."""

    @abstractmethod
    def _minimise(self, rows: FloatArray, start: FloatArray, goal: float) -> tuple[float, int]:
        """The minimum and the number of steps to it, negative if it was not reached; infinity if above ``goal``.

        ``start`` becomes the weights.
        """

    def _drawn(self, classes: NDArray[np.intp], n_samples: int) -> tuple[IntArray, FloatArray]:
        """Rows with equally many samples per class, and weights that keep the total of each class."""
        n_classes = int(classes.max()) + 1
        rng = np.random.default_rng(0)
        factor = np.zeros(classes.size)
        for members in (np.flatnonzero(classes == c) for c in range(n_classes)):
            chosen = rng.choice(members, min(members.size, max(1, n_samples // n_classes)), replace=False)
            factor[chosen] = self.weight[members].sum() / self.weight[chosen].sum()
        rows = np.flatnonzero(factor)
        return rows, self.weight[rows] * factor[rows]

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
        fit = self.fit_below(np.inf, columns, np.zeros((self.n_models, columns.size + 1)))
        assert fit is not None
        return fit

    def fit_below(self, goal: float, columns: IntArray, start: FloatArray) -> SubsetFit | None:
        """Fit on a sorted subset from the weights ``start``, which are overwritten.

        Returns None, mostly after one or two steps, when the objective will stay above ``goal``.
        """
        key = columns.tobytes()
        if self._floor.get(key, -np.inf) >= goal:
            return None
        objective, steps = self._minimise(self.rows_and_ones(columns), start, goal)
        self.n_steps += abs(steps)
        self._floor[key] = goal if np.isinf(objective) else objective
        if objective >= goal:
            return None
        self.all_converged &= steps >= 0
        return SubsetFit(columns, start, float(objective), key)


class LogisticSubsets(Subsets):
    r"""Minimise :math:`\sum_c [\sum_i s_i \log(1 + e^{-y_{ic} f_c(x_i)}) + \tfrac{\lambda}{2} \|w_c\|^2]`."""

    def __init__(self, design: Design, signs: FloatArray, weight: FloatArray, ridge: float) -> None:
        super().__init__(design, weight, ridge)
        self.signs = np.ascontiguousarray(signs.T)
        self.n_models = len(self.signs)

    def part(self, n_samples: int) -> LogisticSubsets:
        rows, weight = self._drawn(np.unique(self.signs, axis=1, return_inverse=True)[1].ravel(), n_samples)
        return LogisticSubsets(self.design.take_rows(rows), self.signs[:, rows].T, weight, self.ridge)

    def _minimise(self, rows: FloatArray, start: FloatArray, goal: float) -> tuple[float, int]:
        found: tuple[float, int] = fit_logistic(
            rows, self.signs, self.weight, self.ridge, start, FIT_TOLERANCE, FIT_STEPS, goal
        )
        return found

    def residuals(self, fit: SubsetFit, own: FloatArray) -> FloatArray:
        margins = (fit.coef @ own) * self.signs
        return np.asarray(self.weight * self.signs * (1.0 / (1.0 + np.exp(np.minimum(margins, 700.0)))))

    def expand(self, fit: SubsetFit, own: FloatArray) -> Expansion:
        n_models, (size, n) = len(fit.coef), own.shape
        residuals, curvatures = np.empty((n_models, n)), np.empty((n_models, n))
        weighted, inverses = np.empty((n_models, size, n)), np.empty((n_models, size, size))
        usable = expand_models(
            own,
            self.signs,
            self.weight,
            self.ridge,
            fit.coef,
            COLLINEAR,
            residuals,
            curvatures,
            weighted,
            inverses,
        )
        if not usable:
            inverses = pseudo_inverses(weighted @ own.T, self.ridge, fit.size)
        return Expansion(residuals, weighted, inverses, lambda c: c.square_products(curvatures))


def pseudo_inverses(hessians: FloatArray, ridge: float, size: int) -> FloatArray:
    """Inverse Hessians of the objective from those of the loss, which are overwritten; the bias is not penalised."""
    penalised = np.arange(size)
    hessians[:, penalised, penalised] += ridge
    return np.asarray(np.linalg.pinv(hessians, rcond=1e-15, hermitian=True), dtype=np.float64)
