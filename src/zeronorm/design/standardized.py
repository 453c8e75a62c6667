"""A centred and scaled view of a design that is itself a design."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import Array, Design
from .index import Index, as_selector
from .stats import ColumnStats


class StandardizedDesign(Design):
    r"""The view :math:`(X - \mathbf 1 m^\top) \operatorname{diag}(1/s)`, of which no copy is ever made.

    Blocks of dense data are centred as they are used, because correcting products afterwards cancels
    when means are large against deviations. Sparse data keep their zeros: products are corrected by
    terms of rank one.

    Parameters
    ----------
    base : the design to look at
    mean, scale : vectors of length ``n_features``; the scales are positive
    zero_columns : mask of columns that are zero in this view whatever their data, for constant columns
    """

    def __init__(
        self, base: Design, mean: ArrayLike, scale: ArrayLike, *, zero_columns: ArrayLike | None = None
    ) -> None:
        super().__init__(base.shape, base.dtype, base.feature_names)
        self.base = base
        self.is_sparse = base.is_sparse
        self.mean = _per_column(mean, base, "mean")
        self.scale = _per_column(scale, base, "scale")
        if self.scale.min(initial=1.0) <= 0.0:
            raise ValueError("The 'scale' of every column must be positive; give constant columns scale 1.")
        self.zero_columns: NDArray[np.bool_] = (
            np.zeros(base.n_features, dtype=bool) if zero_columns is None else np.asarray(zero_columns, bool)
        )
        self._factor = np.where(self.zero_columns, 0.0, 1.0 / self.scale)

    def _take(self, columns: Index) -> StandardizedDesign:
        chosen = as_selector(columns)
        zero_columns = self.zero_columns[chosen]
        return StandardizedDesign(
            self.base._take(columns), self.mean[chosen], self.scale[chosen], zero_columns=zero_columns
        )

    def _take_rows(self, rows: Index) -> StandardizedDesign:
        base = self.base._take_rows(rows)
        return StandardizedDesign(base, self.mean, self.scale, zero_columns=self.zero_columns)

    @property
    def _order(self) -> Literal["C", "F"]:
        return self.base._order

    def _fill(self, columns: Index, out: Array) -> None:
        chosen = as_selector(columns)
        self.base._fill(columns, out)
        out -= self.mean[chosen]
        out *= self._factor[chosen]

    def column_stats(self, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnStats:
        return self.base.column_stats(y, sample_weight).affine(self.mean, self._factor)


def _per_column(values: ArrayLike, base: Design, name: str) -> Array:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (base.n_features,):
        raise ValueError(f"'{name}' must have length {base.n_features}. Got shape {vector.shape} instead.")
    return vector
