r"""The residuals of all columns after a regression on a few others, computed as they are used."""

from __future__ import annotations

import numpy as np

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design._base import Design
from zeronorm.design._index import Index, as_selector

EXPLAINED = 1e-10  # share of its variance below which what remains of a column is rounding


class ResidualDesign(Design):
    r"""The columns :math:`x_k - Z b_k` of a design: only Z and the coefficients are stored beside it.

    Columns that are ``explained``, up to rounding, are exactly zero.
    """

    def __init__(
        self, design: Design, regressors: FloatArray, coefficients: FloatArray, explained: BoolArray
    ) -> None:
        self.design, self.regressors, self.coefficients = design, regressors, coefficients
        self.explained = explained
        super().__init__(design.shape, np.dtype(np.float64), design.feature_names)

    @classmethod
    def of(cls, design: Design, basis: FloatArray, weight: FloatArray | None = None) -> ResidualDesign:
        """The residuals of a weighted regression on ``basis``, whose columns are uncorrelated and of variance one."""
        total = len(basis) if weight is None else float(weight.sum())
        weighted = basis if weight is None else weight[:, None] * basis
        coefficients = design.transpose_dot(weighted).T / total
        variance = design.column_stats(sample_weight=weight).variance
        left = variance - (coefficients**2).sum(axis=0)
        return cls(design, basis, coefficients, left <= EXPLAINED * variance)

    def _take(self, columns: Index) -> ResidualDesign:
        chosen = as_selector(columns)
        part = self.design.take(np.asarray(columns))
        return ResidualDesign(part, self.regressors, self.coefficients[:, chosen], self.explained[chosen])

    def _take_rows(self, rows: Index) -> ResidualDesign:
        part = self.design.take_rows(np.asarray(rows))
        return ResidualDesign(part, self.regressors[as_selector(rows)], self.coefficients, self.explained)

    def _fill(self, columns: Index, out: FloatArray) -> None:
        self.design.block(np.asarray(columns), out)
        out -= self.regressors @ self.coefficients[:, as_selector(columns)]
        out[:, self.explained[as_selector(columns)]] = 0.0
