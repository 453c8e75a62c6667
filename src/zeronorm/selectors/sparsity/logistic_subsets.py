"""Logistic machines on subsets of the features: exact fits, and predictions of what an exchange would gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design
from zeronorm.selectors.sparsity.logistic_kernels import fit_logistic

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

FIT_TOLERANCE = 1e-10  # expected relative gain at which Newton's method stops
FIT_STEPS = 200
COLLINEAR = 1e-9  # share of its curvature that must remain of a feature given the others


@dataclass(frozen=True, eq=False)
class SubsetFit:
    """The machines on one subset.

    ``coef`` has one row per machine: the weights in the order of the sorted ``columns``, then the bias.
    """

    columns: IntArray
    coef: FloatArray
    objective: float

    @property
    def size(self) -> int:
        return int(self.columns.size)

    @property
    def key(self) -> bytes:
        return self.columns.tobytes()


@dataclass(frozen=True, eq=False)
class Exchanges:
    """Predicted changes of the objective, from its quadratic model at a fit.

    ``loss[i]``: by leaving out the i-th feature of the fit; ``gain[j]``: by adding candidate j;
    ``swap_gain[j, i]``: by putting candidate j in the place of feature i, where asked for.
    """

    candidates: IntArray
    loss: FloatArray
    gain: FloatArray
    swap_gain: FloatArray | None


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
        self._load(columns)
        return self._stored[self._place[columns]]

    def forget(self, keep: IntArray) -> None:
        """Drop all stored columns but these."""
        self._stored = self.rows(keep)
        self._place[:] = -1
        self._place[keep] = np.arange(keep.size)
        self.n_stored = keep.size

    def _load(self, columns: IntArray) -> None:
        missing = columns[self._place[columns] < 0]
        if missing.size == 0:
            return
        start, end = self.n_stored, self.n_stored + missing.size
        if end > len(self._stored):
            grown = np.empty((max(end, 3 * len(self._stored) // 2), self.design.n_samples))
            grown[:start] = self._stored[:start]
            self._stored = grown
        self._stored[start:end] = self.design.block(missing).T
        self._place[missing] = np.arange(start, end)
        self.n_stored = end

    def _rows_and_ones(self, columns: IntArray) -> FloatArray:
        rows = np.ones((columns.size + 1, self.design.n_samples))
        rows[:-1] = self.rows(columns)
        return rows

    # -- fits -----------------------------------------------------------------------------------

    def fit(self, columns: IntArray, start: SubsetFit | None = None) -> SubsetFit:
        """Fit on a sorted subset, from the weights of ``start``."""
        fit = self.fit_below(np.inf, columns, start)
        assert fit is not None
        return fit

    def fit_below(self, goal: float, columns: IntArray, start: SubsetFit | None = None) -> SubsetFit | None:
        """Fit on a sorted subset; None, mostly after a step or two, when the objective stays above ``goal``."""
        key = columns.tobytes()
        if self._floor.get(key, -np.inf) >= goal:
            return None
        coef = np.zeros((len(self.signs), columns.size + 1))
        if start is not None:
            place = np.searchsorted(columns, start.columns)
            place[place == columns.size] = 0
            shared = np.flatnonzero(columns[place] == start.columns) if columns.size else place[:0]
            coef[:, place[shared]] = start.coef[:, shared]
            coef[:, -1] = start.coef[:, -1]
        rows = self._rows_and_ones(columns)
        objective, steps = fit_logistic(
            rows, self.signs, self.weight, self.ridge, coef, FIT_TOLERANCE, FIT_STEPS, goal
        )
        self.n_steps += abs(steps)
        self._floor[key] = goal if np.isinf(objective) else objective
        if objective >= goal:
            return None
        self.all_converged &= steps >= 0
        return SubsetFit(columns, coef, float(objective))

    # -- predictions ----------------------------------------------------------------------------

    def residuals(self, fit: SubsetFit) -> tuple[FloatArray, FloatArray]:
        """Negative first and second derivative of the loss by the decision values, (machines, samples)."""
        margins = (fit.coef @ self._rows_and_ones(fit.columns)) * self.signs
        wrong = 1.0 / (1.0 + np.exp(np.minimum(margins, 700.0)))
        return self.weight * self.signs * wrong, self.weight * wrong * (1.0 - wrong)

    def exchanges(self, fit: SubsetFit, candidates: IntArray, *, swaps: bool = True) -> Exchanges:
        """What removing, adding and swapping would change, summed over the machines."""
        own, others = self._rows_and_ones(fit.columns), self.rows(candidates)
        squares = others * others
        residuals, curvatures = self.residuals(fit)
        ridge = np.diag(np.append(np.full(fit.size, self.ridge), 0.0))
        swap_gain = np.zeros((candidates.size, fit.size)) if swaps else None
        result = Exchanges(candidates, np.zeros(fit.size), np.zeros(candidates.size), swap_gain)
        for w, residual, curvature in zip(fit.coef, residuals, curvatures, strict=True):
            weighted = own * curvature
            inverse = _inverse(weighted @ own.T + ridge)
            slope, bend = others @ residual, squares @ curvature + self.ridge
            _add_machine(result, w[:-1], inverse, others @ weighted.T, slope, bend)
        return result


def _add_machine(
    result: Exchanges,
    w: FloatArray,
    inverse: FloatArray,
    cross: FloatArray,
    slope: FloatArray,
    bend: FloatArray,
) -> None:
    """Add one machine.

    ``inverse`` belongs to the Hessian of the fit, ``cross`` holds its mixed derivatives with the candidates;
    ``slope`` and ``bend`` are the first (negative) and second derivatives by the weights of the candidates.
    """
    projection = cross @ inverse
    remaining = bend - np.einsum("ji,ji->j", projection, cross)
    result.gain[:] += _half_square_ratio(slope, remaining, COLLINEAR * bend)
    spread = np.diag(inverse)[:-1]
    loss = w**2 / (2.0 * spread)
    result.loss[:] += loss
    if result.swap_gain is None:
        return
    # Leaving out feature i moves the others along the i-th column of the inverse, which changes the slopes.
    own = projection[:, :-1]
    slope_without = slope[:, None] + own * (w / spread)
    remaining_without = np.maximum(remaining, 0.0)[:, None] + own**2 / spread
    result.swap_gain[:] += (
        _half_square_ratio(slope_without, remaining_without, COLLINEAR * bend[:, None]) - loss
    )


def _inverse(hessian: FloatArray) -> FloatArray:
    """The inverse, or, of a matrix that has none, the pseudo-inverse."""
    try:
        pivots = np.diag(np.linalg.cholesky(hessian)) ** 2
        if np.all(pivots > COLLINEAR * np.diag(hessian)):
            return np.asarray(np.linalg.inv(hessian), dtype=np.float64)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(hessian, rcond=1e-15, hermitian=True), dtype=np.float64)


def _half_square_ratio(slope: FloatArray, bend: FloatArray, floor: FloatArray) -> FloatArray:
    usable = bend > floor
    return np.where(usable, slope**2 / (2.0 * np.where(usable, bend, 1.0)), 0.0)
