r"""Forward paths among features and dummies, stopped after a number of dummies.

Let :math:`A` be the entered columns, all of unit length, and :math:`y_A` the part of the target that they cannot
explain. Orthogonal matching pursuit enters the column with the largest :math:`|x_j^\top y_A|`. Least-angle regression
has a residual :math:`r` with :math:`|x_j^\top r| = b` for :math:`j \in A` and moves it towards :math:`y_A`,
:math:`r(\tau) = r + \tau (y_A - r)`; the bound falls as :math:`b (1 - \tau)`, and the next column is the one
that reaches it first,

.. math:: \frac{1 - \tau_j}{\tau_j} = \frac{|h_j|}{b - \operatorname{sign}(h_j)\, c_j},
          \qquad c_j = x_j^\top r, \quad h_j = x_j^\top y_A

(Efron, Hastie, Johnstone & Tibshirani 2004, in other symbols; no column leaves). A step needs one product
:math:`X^\top e` with the new direction :math:`e`; that of all experiments is one product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.engines._virtual_dummies import DummyPool
from zeronorm.selection._path import TIE_TOLERANCE

DEPENDENT = 1e-10  # share of its squared length below which a projected column counts as dependent
EXPLAINED = 1e-9  # share of its start below which the bound counts as zero
DUMMY = -1  # stands for a dummy in the list of entered columns


class DummyExperiment:
    """The path of one experiment, by orthogonal matching pursuit.

    Attributes
    ----------
    entered : positions of the entered features, or ``DUMMY``, in order.
    residuals, bounds : the residual and the bound when each of them entered.
    direction : the new direction, whose products with the features ``absorb`` expects.
    """

    def __init__(
        self, columns: FloatArray, products: FloatArray, target: FloatArray, pool: DummyPool
    ) -> None:
        self.columns, self.pool = columns, pool
        self.final = products.copy()
        self.free = np.where(np.einsum("ij,ij->j", columns, columns) > 0.5, 1.0, 0.0)
        self.residual, self.unexplained = target, target
        self.entered: list[int] = []
        self.residuals: list[FloatArray] = []
        self.bounds: list[float] = []
        self.n_dummies = 0
        self.is_exhausted = False
        self._basis = np.empty((target.size, 8), order="F")
        self._rank = 0
        self._dummies = np.empty((target.size, 0))
        self._open = np.empty(0, dtype=bool)
        self._add_dummies(pool.first)
        self._enter_largest()

    # -- one step ---------------------------------------------------------------------------------

    def absorb(self, cosines: FloatArray) -> None:
        """Take the products of the features with ``direction``, and let the next column enter."""
        _downdate(self.final, self.free, cosines, self._explained)
        if self._rank >= self.pool.distribution.dimension - 1:
            self.is_exhausted = True
            return
        self._step()

    def _step(self) -> None:
        self.residual = self.unexplained
        self._enter_largest()

    def _enter_largest(self) -> None:
        """Let the column with the largest product enter; hidden dummies with a larger one are drawn first."""
        sizes = np.where(self.free > 0.0, np.abs(self.final), 0.0)
        largest = float(sizes.max())
        feature = int(np.argmax(sizes >= largest * (1.0 - TIE_TOLERANCE)))
        self._add_dummies(self.pool.reveal(self.residual, largest))
        dummy_sizes = np.where(self._open, np.abs(self.residual @ self._dummies), 0.0)
        dummy = int(np.argmax(dummy_sizes)) if dummy_sizes.size else 0
        is_feature = not dummy_sizes.size or largest >= dummy_sizes[dummy]
        bound = largest if is_feature else float(dummy_sizes[dummy])
        self.residuals.append(self.residual)
        self.bounds.append(bound)
        if bound <= 0.0:
            self.is_exhausted = True
            return
        self._enter(feature if is_feature else None, dummy, bound)

    def _enter(self, feature: int | None, dummy: int, bound: float) -> None:
        """Let a feature, or a dummy if there is none, enter."""
        if feature is None:
            column = self._dummies[:, dummy]
            self._open[dummy] = False
            self.n_dummies += 1
            self.entered.append(DUMMY)
        else:
            column = self.columns[:, feature]
            self.free[feature] = 0.0
            self.entered.append(feature)
        self._extend_basis(column)
        self._explained = float(self.direction @ self.unexplained)
        self.unexplained = self.unexplained - self._explained * self.direction
        self.is_exhausted = bound <= EXPLAINED * self.bounds[0]

    def _extend_basis(self, column: FloatArray) -> None:
        basis = self._basis[:, : self._rank]
        for _ in range(2):  # twice: the first projection leaves a rounding error along the basis
            column = column - basis @ (basis.T @ column)
        self.direction = column / np.linalg.norm(column)
        if self._rank == self._basis.shape[1]:
            grown = np.empty((column.size, 2 * self._rank), order="F")
            grown[:, : self._rank] = basis
            self._basis = grown
        self._basis[:, self._rank] = self.direction
        self._rank += 1

    # -- dummies ----------------------------------------------------------------------------------

    def _add_dummies(self, found: FloatArray) -> None:
        if found.shape[1]:
            self._dummies = np.concatenate([self._dummies, found], axis=1)
            self._open = np.append(self._open, np.ones(found.shape[1], dtype=bool))


class LeastAngleExperiment(DummyExperiment):
    """The path of one experiment, by least-angle regression."""

    def __init__(
        self, columns: FloatArray, products: FloatArray, target: FloatArray, pool: DummyPool
    ) -> None:
        self.products = products.copy()
        super().__init__(columns, products, target, pool)

    def _step(self) -> None:
        bound = self.bounds[-1]
        ratio, feature = _first_to_reach(self.products, self.final, self.free, bound)
        dummy_ratio, dummy = self._first_dummy(0, bound)
        best = max(ratio, dummy_ratio)
        if best <= 0.0 and self.pool.n_hidden == 0:
            self.is_exhausted = True
            return
        tau = 1.0 / (1.0 + best)
        found = self.pool.reveal(
            self.residual + tau * (self.unexplained - self.residual), bound * (1.0 - tau)
        )
        if found.shape[1]:
            n_before = self._dummies.shape[1]
            self._add_dummies(found)
            new_ratio, new = self._first_dummy(n_before, bound)
            if new_ratio > dummy_ratio:
                dummy_ratio, dummy = new_ratio, new
        self._move(1.0 / (1.0 + max(ratio, dummy_ratio)))
        self._enter(feature if ratio >= dummy_ratio else None, dummy, self.bounds[-1])

    def _move(self, tau: float) -> None:
        self.residual = self.residual + tau * (self.unexplained - self.residual)
        self.products += tau * (self.final - self.products)
        self.residuals.append(self.residual)
        self.bounds.append(self.bounds[-1] * (1.0 - tau))

    def _first_dummy(self, start: int, bound: float) -> tuple[float, int]:
        """The largest ratio of the drawn dummies from ``start`` on, and which dummy has it."""
        if start == self._dummies.shape[1]:
            return 0.0, -1
        products, final = np.stack([self.residual, self.unexplained]) @ self._dummies[:, start:]
        ratio, found = _first_to_reach(products, final, self._open[start:].astype(np.float64), bound)
        return ratio, start + found


def advance(experiments: Iterable[DummyExperiment], columns: FloatArray, n_dummies: int) -> None:
    """Continue the paths until ``n_dummies`` dummies have entered each, or nothing is left to enter."""
    running = [one for one in experiments if one.n_dummies < n_dummies and not one.is_exhausted]
    while running:
        cosines = columns.T @ np.stack([one.direction for one in running], axis=1)
        for one, column in zip(running, np.ascontiguousarray(cosines.T), strict=True):
            one.absorb(column)
        running = [one for one in running if one.n_dummies < n_dummies and not one.is_exhausted]


@kernel
def _downdate(final: FloatArray, free: FloatArray, cosines: FloatArray, explained: float) -> None:
    """Update the products with the unexplained target, and the squared lengths of the projected columns."""
    for j in range(final.size):
        final[j] -= explained * cosines[j]
        if free[j] > 0.0:
            rest = free[j] - cosines[j] * cosines[j]
            free[j] = rest if rest > DEPENDENT else 0.0


@kernel
def _first_to_reach(
    products: FloatArray, final: FloatArray, free: FloatArray, bound: float
) -> tuple[float, int]:
    """The largest ratio :math:`(1 - \\tau) / \\tau` of the columns that are free to enter, and its position."""
    best, where = 0.0, -1
    for j in range(products.size):
        if free[j] > 0.0:
            gap = bound - products[j] if final[j] > 0.0 else bound + products[j]
            size = abs(final[j])
            if size > best * gap * (1.0 + TIE_TOLERANCE):
                best, where = size / max(gap, 1e-300), j
    return best, where
