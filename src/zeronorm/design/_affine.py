"""Shift and scale of columns, which every design may have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design._index import Index, as_selector, compose
from zeronorm.execution import available_threads, run_in_threads

# From this number of columns on, vectors with one number for each take noticeable memory: factors, and the vectors of
# a selection, are computed for the columns in use and not kept.
WIDE = 1 << 20
_COLUMNS_AT_A_TIME = 1 << 18


class Affine:
    """The values of a design are ``(x - mean) * factor``, where x are the stored values; some columns are zero instead.

    ``factor`` is one over the scale, and zero for the columns that are zero.

    Parameters
    ----------
    mean, scale : one number for each column; the scales are positive
    zero_columns : mask of the columns that are exactly zero, such as constant columns that are centred
    unit_variance : whether mean and scale were computed from the same samples, so that the norms are known
    """

    mean: FloatArray
    scale: FloatArray
    factor: FloatArray

    def __init__(
        self,
        mean: FloatArray,
        scale: FloatArray,
        zero_columns: BoolArray,
        *,
        unit_variance: bool = False,
        factor: FloatArray | None = None,
    ) -> None:
        self.mean, self.scale, self.zero_columns = mean, scale, zero_columns
        self.has_unit_variance = unit_variance
        if zero_columns.size < WIDE:
            self.factor = np.where(zero_columns, 0.0, 1.0 / scale) if factor is None else factor

    @classmethod
    def checked(
        cls, n_features: int, mean: ArrayLike | None, scale: ArrayLike | None, zero_columns: ArrayLike | None
    ) -> Affine:
        """Create for columns whose vectors a caller gives; None: no shift, scale one, no zero columns."""
        means = np.zeros(n_features) if mean is None else _per_column(mean, n_features, "mean")
        scales = np.ones(n_features) if scale is None else _per_column(scale, n_features, "scale")
        if scales.min(initial=1.0) <= 0.0:
            raise ValueError("The 'scale' of every column must be positive; give constant columns scale 1.")
        zero = np.zeros(n_features, bool) if zero_columns is None else np.asarray(zero_columns, bool)
        return cls(means, scales, zero)

    def __getattr__(self, name: str) -> FloatArray:
        """The factors of many columns, which are computed at each use."""
        if name != "factor":
            raise AttributeError(name)
        return np.where(self.zero_columns, 0.0, 1.0 / self.scale)

    def take(self, columns: Index) -> Affine:
        """Return shift and scale of some columns."""
        if len(columns) >= WIDE and not isinstance(columns, range):
            return _SomeColumns(self, columns)
        chosen, factor = as_selector(columns), vars(self).get("factor")
        return Affine(
            self.mean[chosen],
            self.scale[chosen],
            self.zero_columns[chosen],
            unit_variance=self.has_unit_variance,
            factor=None if factor is None else factor[chosen],
        )

    def for_other_samples(self) -> Affine:
        """Return the same shift and scale for samples from which they were not computed."""
        if not self.has_unit_variance:
            return self
        return Affine(self.mean, self.scale, self.zero_columns, factor=vars(self).get("factor"))

    def then(self, other: Affine) -> Affine:
        """Return one shift and scale that do what these do, and then those of ``other``."""
        if np.any(other.mean[self.zero_columns & ~other.zero_columns]):
            raise ValueError("Columns of zeros cannot be shifted; give them the mean 0.")
        mean = np.where(self.zero_columns, self.mean, self.mean + self.scale * other.mean)
        zero = self.zero_columns | other.zero_columns
        return Affine(mean, self.scale * other.scale, zero, unit_variance=other.has_unit_variance)

    @functools.cached_property
    def largest_mean(self) -> float:
        """The largest mean in units of the scale: correcting a product for it increases rounding errors as much."""
        if self.zero_columns.size <= _COLUMNS_AT_A_TIME:
            return float(np.abs(self.mean * self.factor).max(initial=0.0))
        found = [0.0]

        def look(here: Affine, _columns: slice) -> None:
            found.append(float(np.abs(here.mean * here.factor).max()))

        self.in_pieces(look)
        return max(found)

    def in_pieces(self, work: Callable[[Affine, slice], None]) -> None:
        """Call ``work`` for the vectors of consecutive columns, in several threads if there are many."""
        p = self.zero_columns.size
        if p <= _COLUMNS_AT_A_TIME:
            if p:
                work(self, slice(0, p))
            return
        tasks = [
            (self.take(range(columns.start, columns.stop)), columns)
            for columns in slices(p, _COLUMNS_AT_A_TIME)
        ]
        run_in_threads(work, tasks, available_threads())


class _SomeColumns(Affine):
    """Shift and scale of a selection of many columns, computed when they are needed."""

    def __init__(self, whole: Affine, columns: Index) -> None:
        self._whole, self._columns = whole, columns
        self.zero_columns = whole.zero_columns[as_selector(columns)]
        self.has_unit_variance = whole.has_unit_variance

    @property
    def mean(self) -> FloatArray:  # type: ignore[override]
        return self._whole.mean[as_selector(self._columns)]

    @property
    def scale(self) -> FloatArray:  # type: ignore[override]
        return self._whole.scale[as_selector(self._columns)]

    def take(self, columns: Index) -> Affine:
        return self._whole.take(compose(self._columns, columns))


def slices(size: int, width: int) -> Iterator[slice]:
    """Yield consecutive slices of ``range(size)``."""
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def _per_column(values: ArrayLike, size: int, name: str) -> FloatArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"'{name}' must have length {size}. Got shape {vector.shape} instead.")
    return vector
