"""A centred and scaled view of a design that is itself a design."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from zeronorm._threads import Part, available_threads, run_in_threads
from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import Design
from zeronorm.design._column_kernels import centre_and_scale_columns, centre_columns, centre_rows
from zeronorm.design._dense import DenseDesign
from zeronorm.design._index import Index, as_selector, compose
from zeronorm.design._stats import ColumnStats, read_only

# Up to these means, in units of the scale, a product of the raw data is corrected for the means afterwards.
_LARGEST_SPARSE_MEAN = 1e4
_LARGEST_DENSE_MEAN = 10.0
_BAND_ENTRIES = 1 << 18
_MOST_KEPT_BYTES = 32 << 20  # of a matrix of samples by samples
# From this number of features on, vectors of length n_features take noticeable memory: factors, and means and scales of
# a selection, are computed for the columns in use and not kept.
WIDE = 1 << 20
_NUMBERS_WORTH_A_KERNEL = 1 << 15
# From this number of products on, wide data are multiplied in single precision: 0.05 instead of 0.1 s.
_PAIRS_WORTH_SINGLE = 1 << 32
_WIDE_SHAPE = 4


class StandardizedDesign(Design):
    r"""The view :math:`(X - \mathbf 1 m^\top) \operatorname{diag}(1/s)`, which is never copied as a whole.

    Blocks of dense data are centred as they are used, because correcting a product afterwards loses digits
    if means are large compared with deviations; products with vectors are corrected if no mean is large.
    Sparse data keep their zeros: products are corrected by terms of rank one. Data on a device are centred
    there.

    Parameters
    ----------
    base : the design that is standardised
    mean, scale : vectors of length ``n_features``; the scales are positive
    zero_columns : mask of columns that are exactly zero in this view, for constant columns
    unit_variance : whether mean and scale were computed from the same samples, so that the norms are known
    """

    def __init__(
        self,
        base: Design,
        mean: ArrayLike,
        scale: ArrayLike,
        *,
        zero_columns: ArrayLike | None = None,
        unit_variance: bool = False,
    ) -> None:
        means, scales = _per_column(mean, base, "mean"), _per_column(scale, base, "scale")
        if scales.min(initial=1.0) <= 0.0:
            raise ValueError("The 'scale' of every column must be positive; give constant columns scale 1.")
        zero = np.zeros(base.n_features, bool) if zero_columns is None else np.asarray(zero_columns, bool)
        self._look_at(base, _Moments(means, scales, zero), unit_variance)

    def _look_at(self, base: Design, moments: _Moments, unit_variance: bool) -> None:
        super().__init__(base.shape, base.dtype, base.feature_names)
        self.base = base
        self.is_sparse = base.is_sparse
        self.is_on_disk = base.is_on_disk
        self._moments = moments
        self._known_finite = base._known_finite
        self._unit_variance = unit_variance
        self._plain_gram: FloatArray | None = None

    @property
    def mean(self) -> FloatArray:
        return self._moments.mean

    @property
    def scale(self) -> FloatArray:
        return self._moments.scale

    @property
    def zero_columns(self) -> NDArray[np.bool_]:
        """Mask of the columns that are zero in this view."""
        return self._moments.zero

    @property
    def has_unit_variance(self) -> bool:
        """Whether mean and scale were computed from the same samples."""
        return self._unit_variance

    @property
    def _factor(self) -> FloatArray:
        return self._moments.factor

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plain_gram": None}

    def release(self) -> None:
        self._plain_gram = None
        self.base.release()

    @functools.cached_property
    def _inner(self) -> Design | None:
        return self.base._affine(self.mean, self._factor) if self._has_affine else None

    @property
    def _has_affine(self) -> bool:
        return self.base._has_affine

    def _affine(self, shift: FloatArray, factor: FloatArray) -> Design | None:
        """Return the design that also multiplies columns by ``factor``; None if there is a shift too."""
        return (
            None
            if shift.any() or not self._has_affine
            else self.base._affine(self.mean, self._factor * factor)
        )

    def _fused(self) -> Design:
        return self if self._inner is None else self._inner

    def _in_memory_elsewhere(self, *, for_gram: bool = False) -> Design | None:
        base = self.base._in_memory_elsewhere(for_gram=for_gram)
        if base is None or base is self.base:
            return None if base is None else self
        return StandardizedDesign(base, self.mean, self.scale, zero_columns=self.zero_columns)

    def _take(self, columns: Index) -> StandardizedDesign:
        return _view(self.base._take(columns), self._moments.take(columns), self._unit_variance)

    def _take_rows(self, rows: Index) -> StandardizedDesign:
        return _view(self.base._take_rows(rows), self._moments)

    @property
    def _order(self) -> Literal["C", "F"]:
        return self.base._order

    @property
    def _in_one_array(self) -> bool:
        return self.base._in_one_array

    def _outer_square_parts(self, side: int, depth: int) -> list[range]:
        return self.base._outer_square_parts(side, depth)

    def _sources(self) -> Iterator[tuple[slice, Design]]:
        for columns, source in self.base._sources():
            yield columns, self._view_of(columns, source)

    def _from_sources(self, work: Callable[[slice, Design], Part]) -> Iterator[Part]:
        return self.base._from_sources(lambda columns, source: work(columns, self._view_of(columns, source)))

    def _view_of(self, columns: slice, source: Design) -> Design:
        if source is self.base:
            return self
        return _view(source, self._moments.take(range(columns.start, columns.stop)))

    @property
    def _is_summed_in_threads(self) -> bool:
        return self.base._is_summed_in_threads

    def _scratch_width(self) -> int:
        return self.base._scratch_width()

    def _block_width(self) -> int:
        return self.base._block_width()

    def _fill(self, columns: Index, out: FloatArray) -> None:
        here = self._moments.take(columns)
        if not self._fill_in_one_pass(columns, here, out):
            self.base._fill(columns, out)
            out -= here.mean
            out *= here.factor

    def _fill_scaled(self, columns: Index, out: FloatArray, scale: FloatArray) -> None:
        base = self.base
        if isinstance(base, DenseDesign) and self._is_worth_a_kernel(out) and out.flags.f_contiguous:
            view = base._view(columns)
            if view.flags.f_contiguous:
                here = self._moments.take(columns)
                centre_and_scale_columns(read_only(view.T), here.mean, here.factor, read_only(scale), out.T)
                return
        super()._fill_scaled(columns, out, scale)

    def _is_worth_a_kernel(self, out: FloatArray) -> bool:
        return out.size >= _NUMBERS_WORTH_A_KERNEL and self.base.dtype.kind == "f"

    def _fill_in_one_pass(self, columns: Index, here: _Moments, out: FloatArray) -> bool:
        """Read, centre and scale the columns in one pass; False if their memory order is not that of ``out``."""
        base = self.base
        if not isinstance(base, DenseDesign) or not self._is_worth_a_kernel(out):
            return False
        view = base._view(columns)
        if view.flags.f_contiguous and out.flags.f_contiguous:
            centre_columns(read_only(view.T), here.mean, here.factor, out.T)
        elif view.flags.c_contiguous and out.flags.c_contiguous:
            centre_rows(read_only(view), here.mean, here.factor, out)
        else:
            return False
        return True

    @property
    def _product_type(self) -> DTypeLike:
        """Single precision for wide data in single precision whose columns have unit variance.

        Their products lose no more than the rounding of the data. Data with many samples are excluded: their Gram
        matrix is singular up to rounding errors.
        """
        n, p = self.shape
        is_single = self.dtype == np.float32 and self._unit_variance and not self.is_sparse
        is_worth_it = p >= _WIDE_SHAPE * n and n * n * p >= _PAIRS_WORTH_SINGLE
        return np.float32 if is_single and is_worth_it else np.float64

    def stored_columns(self, columns: IntArray) -> tuple[Any, FloatArray] | None:
        found = self.base.stored_columns(columns) if self._correctable else None
        if found is None:
            return None
        stored, shift = found
        factor = self._factor[columns]
        stored.data *= np.repeat(factor, np.diff(stored.indptr))
        return stored, (shift + self.mean[columns]) * factor

    # Products of the raw data, corrected for the means

    @functools.cached_property
    def _largest_mean(self) -> float:
        """The largest mean in units of the scale: a correction increases rounding errors by this factor."""
        found = [0.0]

        def look(columns: slice) -> None:
            here = self._moments.piece(columns)
            found.append(float(np.abs(here.mean * here.factor).max()))

        self._in_pieces(look)
        return max(found)

    def _in_pieces(self, work: Callable[[slice], None]) -> None:
        """Call ``work`` for slices of all columns, in several threads if there are many."""
        pieces = [(piece,) for piece in self._moments.slices()]
        run_in_threads(work, pieces, available_threads() if len(pieces) > 1 else 1)

    @property
    def _correctable(self) -> bool:
        """Whether the data are sparse and no mean is so large that the correction would lose most digits."""
        return self.is_sparse and self._largest_mean <= _LARGEST_SPARSE_MEAN

    @property
    def _vectors_correctable(self) -> bool:
        """Whether products with vectors are corrected, which saves dense data a pass if it loses no digits.

        On a device it saves several passes, so larger means are allowed.
        """
        limit = _LARGEST_DENSE_MEAN if self._inner is None else _LARGEST_SPARSE_MEAN
        return self._correctable or self._largest_mean <= limit

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        """Return the Gram matrix; that of equal scales is kept if it is small, since methods need it repeatedly."""
        if not self.n_features or 8 * self.n_samples**2 > _MOST_KEPT_BYTES:
            return self._scaled_gram(scale_sq)
        factor = 1.0 if scale_sq is None else float(scale_sq[0])
        # The last value is compared first: it usually shows at once that the scales differ.
        if scale_sq is not None and not (scale_sq[-1] == factor and bool(np.all(scale_sq == factor))):
            return self._scaled_gram(scale_sq)
        if self._plain_gram is None:
            self._plain_gram = self._scaled_gram(None)
        return factor * self._plain_gram

    def _scaled_gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if self._inner is not None:
            return self._inner._gram(scale_sq)
        if not self._correctable:
            return super()._gram(scale_sq)
        weight = self._factor**2 if scale_sq is None else self._factor**2 * scale_sq
        side = 0.5 * float((weight * self.mean) @ self.mean) - self.base.dot(weight * self.mean)
        product = self.base.gram(weight)
        for rows in _bands(self.n_samples):
            product[rows] += side[rows, None] + side
        return product

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        if self._inner is not None:
            return self._inner._cross_gram(other, scale_sq)
        right = other if isinstance(other, StandardizedDesign) else _unchanged(other)
        if not (self._correctable and right._correctable):
            return super()._cross_gram(other, scale_sq)
        weight = self._factor * right._factor
        weight = weight if scale_sq is None else weight * scale_sq
        own_side = self.base.dot(weight * right.mean)
        other_side = right.base.dot(weight * self.mean)
        product: FloatArray = self.base.cross_gram(right.base, weight)
        product += float((weight * self.mean) @ right.mean)
        return product - own_side[:, None] - other_side

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        if self._inner is not None:
            return self._inner._gram_adjoint(M)
        if not self._correctable:
            return super()._gram_adjoint(M)
        cross = self.base.transpose_dot(M.sum(axis=0) + M.sum(axis=1))
        corrected = self.base.gram_adjoint(M) - self.mean * cross + self.mean**2 * M.sum()
        return np.asarray(corrected * self._factor**2)

    def eigen(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.base.eigen(matrix)

    def by_descending_value(self, values: FloatArray) -> tuple[IntArray, FloatArray]:
        return self.base.by_descending_value(values)

    def _dot(self, w: FloatArray) -> FloatArray:
        if not self._vectors_correctable:
            return super()._dot(w) if self._inner is None else self._inner._dot(w)
        weighted = _scale_rows(self._factor, w)
        return np.asarray(self.base.dot(weighted) - self.mean @ weighted)

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        if not self._vectors_correctable:
            return super()._transpose_dot(V) if self._inner is None else self._inner._transpose_dot(V)
        product = np.require(self.base.transpose_dot(V), requirements="W")
        total = -V.sum(axis=0)

        def correct(columns: slice) -> None:
            here = self._moments.piece(columns)
            for row, negative in zip(np.atleast_2d(product[columns].T), np.atleast_1d(total), strict=True):
                row += here.mean * negative
                row *= here.factor

        self._in_pieces(correct)
        return product

    def _largest_products(self, V: FloatArray) -> FloatArray:
        return super()._largest_products(V) if self._inner is None else self._inner._largest_products(V)

    def _sandwich(self, d: FloatArray) -> FloatArray:
        if self._inner is not None:
            return self._inner._sandwich(d)
        if not self._correctable:
            return super()._sandwich(d)
        side = 0.5 * d.sum() * self.mean - self.base.transpose_dot(d)
        product = self.base.sandwich(d)
        for rows in _bands(self.n_features):
            correction = np.outer(side[rows], self.mean)
            # In place: a sum of both would hold a third matrix with NumPy on Python 3.14.
            correction += np.outer(self.mean[rows], side)
            product[rows] += correction
            product[rows] *= np.outer(self._factor[rows], self._factor)
        return product

    def squared_norms(self) -> FloatArray:
        if self._unit_variance:
            if not self.zero_columns.any():
                return np.broadcast_to(float(self.n_samples), self.n_features)  # takes no memory
            return np.where(self.zero_columns, 0.0, float(self.n_samples))
        if not self.is_sparse or self.n_samples == 0:
            return super().squared_norms() if self._inner is None else self._inner.squared_norms()
        stats = self.column_stats()
        return self.n_samples * (stats.variance + stats.mean**2)

    def column_stats(self, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnStats:
        return self.base.column_stats(y, sample_weight).affine(self.mean, self._factor)


class _Moments:
    """Means, scales and factors of columns; for many columns the factors are computed when they are needed."""

    def __init__(
        self,
        mean: FloatArray,
        scale: FloatArray,
        zero: NDArray[np.bool_],
        factor: FloatArray | None = None,
    ) -> None:
        self._mean, self._scale, self.zero = mean, scale, zero
        is_wide = factor is None and zero.size >= WIDE
        self._factor = _inverse(scale, zero) if factor is None and not is_wide else factor

    @property
    def mean(self) -> FloatArray:
        return self._mean

    @property
    def scale(self) -> FloatArray:
        return self._scale

    @property
    def factor(self) -> FloatArray:
        """One over the scale; zero for the columns of ``zero_columns``."""
        return _inverse(self.scale, self.zero) if self._factor is None else self._factor

    def take(self, columns: Index) -> _Moments:
        if len(columns) >= WIDE and not isinstance(columns, range):
            return _SomeMoments(self, columns)
        chosen = as_selector(columns)
        factor = None if self._factor is None else self._factor[chosen]
        return _Moments(self._mean[chosen], self._scale[chosen], self.zero[chosen], factor)

    def slices(self) -> Iterator[slice]:
        """Yield slices of all columns in order, each of limited length."""
        for start in range(0, self.zero.size, _BAND_ENTRIES):
            yield slice(start, min(start + _BAND_ENTRIES, self.zero.size))

    def piece(self, columns: slice) -> _Moments:
        """Return the moments of one of these slices."""
        if columns.stop - columns.start == self.zero.size:
            return self
        return self.take(range(columns.start, columns.stop))


class _SomeMoments(_Moments):
    """Means, scales and factors of a selection of many columns, computed when they are needed."""

    def __init__(self, whole: _Moments, columns: NDArray[np.intp]) -> None:
        self._whole, self._columns = whole, columns
        self.zero = whole.zero[columns]
        self._factor = None

    @property
    def mean(self) -> FloatArray:
        return self._whole.mean[self._columns]

    @property
    def scale(self) -> FloatArray:
        return self._whole.scale[self._columns]

    def take(self, columns: Index) -> _Moments:
        return self._whole.take(compose(self._columns, columns))


def _inverse(scale: FloatArray, zero: NDArray[np.bool_]) -> FloatArray:
    return np.where(zero, 0.0, 1.0 / scale)


def _view(base: Design, moments: _Moments, unit_variance: bool = False) -> StandardizedDesign:
    """Return a view without checking its moments."""
    part = StandardizedDesign.__new__(StandardizedDesign)
    part._look_at(base, moments, unit_variance)
    return part


def _bands(n: int) -> Iterator[slice]:
    """Slices of the rows of a square matrix that are changed at a time, so that no second matrix is needed."""
    height = max(1, _BAND_ENTRIES // max(1, n))
    return (slice(start, min(start + height, n)) for start in range(0, n, height))


def _per_column(values: ArrayLike, base: Design, name: str) -> FloatArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (base.n_features,):
        raise ValueError(f"'{name}' must have length {base.n_features}. Got shape {vector.shape} instead.")
    return vector


def _scale_rows(factor: FloatArray, rows: FloatArray) -> FloatArray:
    return np.asarray((factor * rows.T).T)


def _unchanged(design: Design) -> StandardizedDesign:
    return StandardizedDesign(design, np.zeros(design.n_features), np.ones(design.n_features))
