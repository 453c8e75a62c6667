"""Logistic machines on subsets of the features: the columns in memory, and exact fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines.logistic_exchanges.kernels import fit_logistic

FIT_TOLERANCE = 1e-6  # expected relative gain at which Newton's method takes its last step
FIT_STEPS = 200


@dataclass(frozen=True, eq=False)
class SubsetFit:
    """The machines on one subset.

    ``coef`` has one row per machine: the weights in the order of the sorted ``columns``, then the bias.
    """

    columns: IntArray
    coef: FloatArray
    objective: float
    key: bytes

    @property
    def size(self) -> int:
        return int(self.columns.size)

    def start_on(self, columns: IntArray) -> FloatArray:
        """Weights for another sorted subset: those of the shared features, zero for the others."""
        coef = np.zeros((len(self.coef), columns.size + 1))
        coef[:, -1] = self.coef[:, -1]
        if columns.size and self.size:
            place = np.minimum(np.searchsorted(columns, self.columns), columns.size - 1)
            shared = columns[place] == self.columns
            coef[:, place[shared]] = self.coef[:, :-1][:, shared]
        return coef


class LogisticSubsets:
    r"""Minimise :math:`\sum_c [\sum_i s_i \log(1 + e^{-y_{ic} f_c(x_i)}) + \tfrac{\lambda}{2} \|w_c\|^2]` on subsets.

    Columns that were needed stay in memory, one per row, until ``forget``.
    """

    def __init__(self, design: Design, signs: FloatArray, weight: FloatArray, ridge: float) -> None:
        self.design = design
        self.signs = np.ascontiguousarray(signs.T)
        self.weight = np.ascontiguousarray(weight)
        self.ridge = float(ridge)
        self.n_steps = 0
        self.all_converged = True
        self._place = np.full(design.n_features, -1, dtype=np.intp)
        self._stored = np.empty((0, design.n_samples))
        self.n_stored = 0
        self._floor: dict[bytes, float] = {}

    # -- columns --------------------------------------------------------------------------------

    def rows(self, columns: IntArray) -> FloatArray:
        """Columns of the data, one per row."""
        places = self._places(columns)
        return self._stored[places]

    def rows_and_ones(self, columns: IntArray) -> FloatArray:
        """Columns of the data, one per row, and ones in the last row, for the bias."""
        rows = np.empty((columns.size + 1, self.design.n_samples))
        places = self._places(columns)
        np.take(self._stored, places, axis=0, out=rows[:-1], mode="clip")
        rows[-1] = 1.0
        return rows

    def forget(self, keep: IntArray) -> None:
        """Drop all stored columns but these."""
        self._stored = self.rows(keep)
        self._place[:] = -1
        self._place[keep] = np.arange(keep.size)
        self.n_stored = keep.size

    def _places(self, columns: IntArray) -> IntArray:
        """Rows of the store that hold these columns, after reading those that are missing."""
        places = self._place[columns]
        if columns.size and places.min() < 0:
            self._load(columns[places < 0])
            places = self._place[columns]
        return places

    def _load(self, missing: IntArray) -> None:
        start, end = self.n_stored, self.n_stored + missing.size
        if end > len(self._stored):
            grown = np.empty((max(end, 3 * len(self._stored) // 2), self.design.n_samples))
            grown[:start] = self._stored[:start]
            self._stored = grown
        self._stored[start:end] = self.design.block(missing).T
        self._place[missing] = np.arange(start, end)
        self.n_stored = end

    # -- fits -----------------------------------------------------------------------------------

    def fit(self, columns: IntArray) -> SubsetFit:
        """Fit on a sorted subset."""
        fit = self.fit_below(np.inf, columns, np.zeros((len(self.signs), columns.size + 1)))
        assert fit is not None
        return fit

    def fit_below(self, goal: float, columns: IntArray, start: FloatArray) -> SubsetFit | None:
        """Fit on a sorted subset from the weights ``start``, which are overwritten.

        None, mostly after a step or two, when the objective stays above ``goal``.
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
        """Negative first and second derivative of the loss by the decision values, (machines, samples)."""
        margins = (fit.coef @ own) * self.signs
        wrong = 1.0 / (1.0 + np.exp(np.minimum(margins, 700.0)))
        return self.weight * self.signs * wrong, self.weight * wrong * (1.0 - wrong)
