"""A design held in an array of another library (torch, CuPy, …): all operations run on its device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._messages import OptionError
from zeronorm._types import FloatArray, IntArray
from zeronorm.design._backend import Backend
from zeronorm.design._base import SMALL_COPY_BYTES, Design
from zeronorm.design._devices import (
    block_bytes,
    device_of,
    difference_kernels_for,
    empty_on,
    full_single_precision,
    has_fast_double,
    has_own_memory,
    is_out_of_memory,
    kernels_for,
    namespace,
    on_device,
    on_host,
    pairwise_distances,
)
from zeronorm.design._index import MANY, Index, as_selector, compose
from zeronorm.design._stats import StatsAccumulator
from zeronorm.design._stats_kernels import CENTER_SAMPLES, LARGEST_VALUE
from zeronorm.execution import NotEnoughMemoryError

# Number of columns whose products are summed in single precision before the sum is added in double precision.
_SINGLE_SUM = 1024
# Data whose Gram matrix takes more multiplications than this stay on the device.
_HOST_WORK = 10**8
# With more samples than this, the device computes a Gram matrix faster than the host even for few features.
_HOST_SAMPLES = 512
# Eigenvalues of matrices up to this size are computed on the host.
_HOST_EIGEN = 400
# A Gram matrix is symmetric: the rows are cut into bands, and each is multiplied with itself and those below only.
_BANDS, _LEAST_BAND = 4, 128
# A pass over all rows or columns is faster than gathering this fraction of them.
_SCAN_ROWS, _SCAN_COLUMNS = 1 / 4, 1 / 8


@dataclass(frozen=True, eq=False)
class _DeviceBackend(Backend):
    """Data in an array of a device, which also sorts and computes eigenvalues."""

    array: Any = None

    def eigen(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        if len(matrix) <= _HOST_EIGEN:
            return super().eigen(matrix)
        try:
            values, vectors = namespace(self.array).linalg.eigh(on_device(matrix, self.array))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return super().eigen(matrix)
        return on_host(values), on_host(vectors)

    def by_descending_value(self, values: FloatArray) -> tuple[IntArray, FloatArray]:
        few = values.size < MANY or not has_own_memory(self.array)
        if few or np.isnan(values.min()):  # not all libraries sort NaN last
            return super().by_descending_value(values)
        xp = namespace(self.array)
        try:
            sent = on_device(values, self.array)
            order = xp.argsort(sent, descending=True, stable=True)
            descending = xp.take(sent, order)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return super().by_descending_value(values)
        # The caller keeps the order; a copy frees the page-locked memory.
        return on_host(order).copy(), on_host(descending)


class ArrayApiDesign(Design):
    """A two-dimensional array that follows the array API standard, on a GPU for instance.

    The data are neither copied nor moved: each operation reads them in blocks as large as the memory of the
    device allows; only results and requested blocks are copied to the host.

    Sums are in double precision. So are the products, unless the data are in single precision on a device
    that is slow in double precision: there Gram matrices are sums, in double precision, of products of a
    thousand columns in single precision.

    Parameters
    ----------
    array : the data
    rows, columns : the selected part, by default all
    """

    def __init__(
        self,
        array: Any,
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
    ) -> None:
        self._array = array
        self._rows: Index = range(array.shape[0]) if rows is None else rows
        self._columns: Index = range(array.shape[1]) if columns is None else columns
        self.backend = _DeviceBackend(transforms=True, array=array)
        single = array.dtype == namespace(array).float32
        dtype = np.dtype(np.float32 if single else np.float64)
        super().__init__((len(self._rows), len(self._columns)), dtype, feature_names)

    def _part(self, rows: Index, columns: Index) -> ArrayApiDesign:
        """Return other rows and columns of the stored array."""
        return ArrayApiDesign(self._array, rows=rows, columns=columns)

    def _take(self, columns: Index) -> ArrayApiDesign:
        return self._part(self._rows, compose(self._columns, columns))

    def _take_rows(self, rows: Index) -> ArrayApiDesign:
        return self._part(compose(self._rows, rows), self._columns)

    def in_memory(self, *, if_small: bool = False) -> Design:
        n, p = self.shape
        brings_gram = not if_small and n > _HOST_SAMPLES and has_own_memory(self._array)
        if 8 * n * p <= SMALL_COPY_BYTES and n * p * min(n, p) <= _HOST_WORK and not brings_gram:
            return super().in_memory(if_small=if_small)
        if isinstance(self._rows, range) and isinstance(self._columns, range):
            return self
        try:
            chosen = self._native(range(self.n_features))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return self  # the selection is copied block by block instead
        moved = ArrayApiDesign(chosen, self.feature_names)
        moved._known_finite = self._known_finite
        return moved if self.affine is None else moved._with(self.affine)

    # Blocks

    @property
    def _xp(self) -> Any:
        return namespace(self._array)

    @functools.cached_property
    def _affine_on_device(self) -> tuple[Any, Any]:
        assert self.affine is not None
        return self._to_device(self.affine.mean), self._to_device(self.affine.factor)

    def _to_device(self, values: NDArray[Any]) -> Any:
        return on_device(values, self._array)

    def _native(self, columns: Index) -> Any:
        """Columns in the stored type; a view of the data if the selection consists of ranges."""
        xp = self._xp
        part = _select(xp, self._array, compose(self._columns, columns), axis=1)
        return _select(xp, part, self._rows, axis=0)

    def _double(self, columns: range) -> Any:
        """Columns of this design in double precision; the result must not be changed."""
        centered = self._centered(columns)
        if self.affine is not None:
            centered *= self._affine_on_device[1][columns.start : columns.stop]
        return centered

    def _centered(self, columns: range) -> Any:
        """Columns in double precision minus the shift, not yet multiplied by the factor."""
        xp = self._xp
        block = self._native(columns)
        if self.affine is None:
            return xp.astype(block, xp.float64, copy=False)
        # The shift has double precision, and so has the result.
        return block - self._affine_on_device[0][columns.start : columns.stop]

    def _fill(self, columns: Index, out: FloatArray) -> None:
        if not out.size:
            return
        np.copyto(out, on_host(self._native(columns)))

    def _device_slices(self, n_rows: int, width: int | None = None) -> Iterator[range]:
        if width is None:
            row_bytes = 8 * max(1, n_rows)
            width = max(1, block_bytes(self._array, row_bytes * self.n_features) // row_bytes)
        for start in range(0, self.n_features, width):
            yield range(start, min(start + width, self.n_features))

    def _in_blocks(self, product: Callable[[range], Any]) -> list[Any]:
        """Call ``product`` for all columns, block by block; blocks are halved when memory runs out."""
        pending = list(self._device_slices(self.n_samples))[::-1]
        results = []
        while pending:
            columns = pending.pop()
            try:
                results.append(product(columns))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if len(columns) == 1:
                    raise _no_memory(self._array) from error
                half = len(columns) // 2
                pending += [columns[half:], columns[:half]]
        return results

    def _concatenated(self, product: Callable[[range], Any], shape: tuple[int, ...]) -> FloatArray:
        """Compute a product with one row for each column, block by block, and copy it to the host."""
        parts = self._in_blocks(product)
        if len(parts) == 1:
            return on_host(parts[0])
        return on_host(self._xp.concat(parts, axis=0)) if parts else np.zeros(shape)

    # Matrix products

    @functools.cached_property
    def _single_products(self) -> bool:
        return self.dtype == np.float32 and not has_fast_double(self._array)

    def _add_outer(self, left: Any, right: Any, total: Any) -> Any:
        """Return ``total + left right'`` for two blocks of columns, in the precision that is fast on the device."""
        xp = self._xp
        if not self._single_products:
            product = left @ right.T
            if total is None:
                return product
            total += product
            return total
        with full_single_precision(self._array):
            for start in range(0, left.shape[1], _SINGLE_SUM):
                part = slice(start, min(start + _SINGLE_SUM, left.shape[1]))
                single = [xp.astype(side[:, part], xp.float32, copy=False) for side in (left, right)]
                product = xp.astype(single[0] @ single[1].T, xp.float64)
                total = product if total is None else total + product
        return total

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if scale_sq is not None and np.count_nonzero(scale_sq) < self.n_features // 2:
            active = np.flatnonzero(scale_sq)
            return self.take(active)._gram(scale_sq[active])
        xp, n = self._xp, self.n_samples
        n_bands = _BANDS if n >= _BANDS * _LEAST_BAND and not self._single_products else 1
        bands = [slice(n * k // n_bands, n * (k + 1) // n_bands) for k in range(n_bands)]
        found = self._outer_sums(*self._sides_of_gram(scale_sq), bands)
        if found[0] is None:
            return np.zeros((n, n))
        upper = xp.zeros((n, n), dtype=xp.float64, device=device_of(self._array))
        for band, part in zip(bands, found, strict=True):
            upper[band, band.start :] = part
        return on_host(xp.triu(upper) + xp.triu(upper, k=1).T)

    def _sides_of_gram(self, scale_sq: FloatArray | None) -> tuple[Callable[[range], tuple[Any, Any]], Any]:
        """Return a function that gives the two factors for a block of columns, and weights for the left one or None."""
        xp, kernels = self._xp, kernels_for(self._array)
        scale: Any = None if scale_sq is None else self._to_device(scale_sq)
        if scale is None and self.affine is None:
            return lambda columns: (self._double(columns),) * 2, None
        if self.affine is not None:
            shift, factor = self._affine_on_device
        else:
            shift, factor = xp.zeros_like(scale), xp.ones_like(scale)
        scale = xp.ones_like(factor) if scale is None else scale
        if kernels is None or (scale_sq is not None and scale_sq.min(initial=0.0) < 0.0):
            # Weights on one factor alone save a pass over the data.
            return lambda columns: (self._centered(columns),) * 2, factor**2 * scale
        root = xp.sqrt(scale) * factor

        def sides(columns: range) -> tuple[Any, Any]:
            block, position = self._native(columns), slice(columns.start, columns.stop)
            return (kernels.centered(block, shift[position], root[position]),) * 2

        return sides, None

    def _outer_sums(
        self, sides: Callable[[range], tuple[Any, Any]], weight: Any, bands: list[slice]
    ) -> list[Any]:
        """Products of each band of left rows with the right rows from the start of that band on."""
        totals: list[Any] = [None] * len(bands)

        def add(columns: range) -> None:
            left, right = sides(columns)
            if weight is not None:
                left = left * weight[columns.start : columns.stop]
            # All products before any sum: if memory runs out here, the block is repeated in halves.
            products = [self._add_outer(left[band, :], right[band.start :, :], None) for band in bands]
            for k, product in enumerate(products):
                totals[k] = product if totals[k] is None else totals[k] + product

        self._in_blocks(add)
        return totals

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        def sides(columns: range) -> tuple[Any, Any]:
            return self._double(columns), self._other_block(other, columns)

        weight = None if scale_sq is None else self._to_device(scale_sq)
        found = self._outer_sums(sides, weight, [slice(0, self.n_samples)])[0]
        return np.zeros((self.n_samples, other.n_samples)) if found is None else on_host(found)

    def _other_block(self, other: Design, columns: range) -> Any:
        """Return a block of another design as an array on this device."""
        if isinstance(other, ArrayApiDesign) and device_of(other._array) == device_of(self._array):
            return other._double(columns)
        return self._to_device(other.block(as_selector(columns)))

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        xp = self._xp
        matrix = self._to_device(M)

        def adjoint(columns: range) -> Any:
            block = self._double(columns)
            if not self._single_products:
                return xp.sum(block * (matrix @ block), axis=0)
            with full_single_precision(self._array):
                product = xp.astype(matrix, xp.float32) @ xp.astype(block, xp.float32)
            return xp.sum(block * product, axis=0)

        return self._concatenated(adjoint, (self.n_features,))

    def _sandwich(self, d: FloatArray) -> FloatArray:
        total = None
        weight = self._to_device(d)
        row_bytes = 8 * max(1, self.n_features)
        height = max(1, block_bytes(self._array, row_bytes * self.n_samples) // row_bytes)
        for start in range(0, self.n_samples if self.n_features else 0, height):
            rows = range(start, min(start + height, self.n_samples))
            part = cast("ArrayApiDesign", self.take_rows(slice(rows.start, rows.stop)))
            block = part._double(range(self.n_features))
            total = self._add_outer((block * weight[rows.start : rows.stop, None]).T, block.T, total)
        if total is None:
            return np.zeros((self.n_features, self.n_features))
        return on_host((total + total.T) / 2.0)

    # Products with vectors

    def _dot(self, w: FloatArray) -> FloatArray:
        if self._scans_all_rows:
            whole = self._part(range(self._array.shape[0]), self._columns)
            return np.asarray(whole._dot(w)[self._rows])
        vectors = self._to_device(w)
        kernels = self._kernels(n_vectors=w.size // max(1, len(w)))
        if kernels is not None:
            return on_host(kernels.dot(self._native(range(self.n_features)), vectors))
        total: list[Any] = [None]

        def add(columns: range) -> None:
            part = self._double(columns) @ vectors[columns.start : columns.stop, ...]
            total[0] = part if total[0] is None else total[0] + part

        self._in_blocks(add)
        return np.zeros((self.n_samples, *w.shape[1:])) if total[0] is None else on_host(total[0])

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        if self._scans_all_rows:
            padded = np.zeros((self._array.shape[0], *V.shape[1:]))
            np.add.at(padded, self._rows, V)
            return self._part(range(self._array.shape[0]), self._columns)._transpose_dot(padded)
        if self._scans_all_columns:
            whole = self._part(self._rows, range(self._array.shape[1]))
            return np.asarray(whole._transpose_dot(V)[self._columns])
        vectors = self._to_device(V)
        kernels = self._kernels(n_vectors=V.size // max(1, len(V)))
        if kernels is not None:
            return on_host(kernels.transpose_dot(self._native(range(self.n_features)), vectors))
        return self._concatenated(
            lambda columns: self._double(columns).T @ vectors, (self.n_features, *V.shape[1:])
        )

    def _largest_products(self, V: FloatArray) -> FloatArray:
        xp, vectors = self._xp, self._to_device(V)
        return self._concatenated(
            lambda columns: xp.max(xp.abs(self._double(columns).T @ vectors), axis=1), (self.n_features,)
        )

    def _kernels(self, n_vectors: int = 1) -> Any:
        """Return kernels that read the data once; None if they cannot be used for this selection."""
        neighbours = isinstance(self._columns, range) and self._columns.step == 1
        if self.affine is not None or not neighbours or min(self.shape) == 0:
            return None
        kernels = kernels_for(self._array)
        return kernels if kernels is not None and kernels.suits(self._array, n_vectors) else None

    @property
    def _scans_all_rows(self) -> bool:
        """Whether to use all rows, with zeros for those not selected, instead of gathering the selected ones."""
        scattered = not isinstance(self._rows, range) and self.affine is None
        return scattered and self.n_samples >= _SCAN_ROWS * self._array.shape[0]

    @property
    def _scans_all_columns(self) -> bool:
        scattered = not isinstance(self._columns, range) and self.affine is None
        return scattered and self.n_features >= _SCAN_COLUMNS * self._array.shape[1]

    # Differences of samples

    def distances(self, scale: FloatArray, *, squared: bool = False) -> FloatArray | None:
        if 8 * self.n_samples**2 > block_bytes(self._array, 8 * self.n_samples**2):
            return None
        factor = self._to_device(scale)
        between = functools.partial(
            pairwise_distances, kernels=difference_kernels_for(self._array), squared=squared
        )
        total: list[Any] = [None]

        def add(columns: range) -> None:
            part = between(self._double(columns) * factor[columns.start : columns.stop])
            total[0] = part if total[0] is None else total[0] + part

        self._in_blocks(add)
        return None if total[0] is None else on_host(total[0])

    def difference_sums(self, first: IntArray, second: IntArray, weights: FloatArray) -> FloatArray | None:
        xp = self._xp
        kernels = self._kernels()
        if kernels is not None and difference_kernels_for(self._array) is not None:
            whole = self._part(range(self._array.shape[0]), self._columns)._native(range(self.n_features))
            rows = np.asarray(self._rows, dtype=np.int64)
            sides = (self._to_device(rows[first]), self._to_device(rows[second]), self._to_device(weights))
            return on_host(kernels.difference_sums(whole, *sides))
        at_once = max(1, min(len(first), self.n_samples))
        parts = [slice(start, min(start + at_once, len(first))) for start in range(0, len(first), at_once)]
        pairs = [
            (self._to_device(first[part]), self._to_device(second[part]), self._to_device(weights[part]))
            for part in parts
        ]

        def sums(columns: range) -> Any:
            block = self._double(columns)
            total = xp.zeros(len(columns), dtype=xp.float64, device=device_of(self._array))
            for left, right, weight in pairs:
                difference = xp.take(block, left, axis=0)
                difference -= xp.take(block, right, axis=0)
                total = total + weight @ xp.abs(difference)
            return total

        return self._concatenated(sums, (self.n_features,))

    # Statistics of the columns

    def _squared_norms(self) -> FloatArray:
        xp = self._xp

        def squares(columns: range) -> Any:
            block = self._double(columns)
            return xp.sum(block * block, axis=0)

        return self._concatenated(squares, (self.n_features,))

    def _surely_finite(self) -> bool:
        low, high = self._column_range()
        return bool(np.all(low >= -LARGEST_VALUE) and np.all(high <= LARGEST_VALUE))

    def _column_range(self) -> tuple[FloatArray, FloatArray]:
        xp = self._xp

        def extremes(columns: range) -> Any:
            block = self._native(columns)
            return xp.stack([xp.min(block, axis=0), xp.max(block, axis=0)], axis=1)

        found = self._concatenated(extremes, (self.n_features, 2)).astype(np.float64)
        low, high = found.T
        return low, high

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        if self.n_features:
            q, found = accumulator.weight.size, self._stats_by_class(accumulator)
            accumulator.put(slice(None), found[:q], found[q : 2 * q], *found[-4:])

    def _stats_by_class(self, classes: StatsAccumulator) -> FloatArray:
        """Compute the statistics of `ColumnStats`, one row each; `combine_classes` does the same on the host."""
        xp, total = self._xp, float(classes.weight.sum())
        present = np.flatnonzero(classes.weight)
        moments = []
        for c in present:
            members = np.flatnonzero((classes.codes == c) & (classes.row_weight > 0.0))
            moments.append(self._moments_of(members, classes.row_weight[members]))
        share = [float(classes.weight[c]) / total for c in present]
        low, high, overall = moments[0][0, :], moments[0][1, :], share[0] * moments[0][2, :]
        for part, found in zip(share[1:], moments[1:], strict=True):
            low, high = xp.minimum(low, found[0, :]), xp.maximum(high, found[1, :])
            overall = overall + part * found[2, :]
        constant = (low == high) & xp.isfinite(overall)
        variance, nothing = xp.zeros_like(overall), xp.zeros_like(overall)
        mean_of, variance_of = [nothing] * classes.weight.size, [nothing] * classes.weight.size
        for c, part, found in zip(present, share, moments, strict=True):
            deviation = found[2, :] - overall
            variance = variance + part * deviation * deviation + found[3, :] / total
            mean_of[c] = xp.where(constant, low, found[2, :])
            variance_of[c] = xp.where(constant, nothing, found[3, :] / float(classes.weight[c]))
        rest = [xp.where(constant, low, overall), xp.where(constant, nothing, variance), low, high]
        return on_host(xp.stack([*mean_of, *variance_of, *rest], axis=0))

    def _moments_of(self, members: NDArray[np.intp], weights: FloatArray) -> Any:
        """Minimum, maximum, mean and sum of squared deviations of each column over some rows, on the device.

        Moments are taken about the mean of the first samples, see `_stats_kernels`.
        """
        kernels = self._kernels()
        if kernels is None:
            return (self if members.size == self.n_samples else self._take_rows(members))._moments(weights)
        heaviest = np.argsort(-weights, kind="stable")
        rows = np.asarray(compose(self._rows, members[heaviest]), dtype=np.int64)
        whole = self._part(range(self._array.shape[0]), self._columns)._native(range(self.n_features))
        weight = self._to_device(weights[heaviest])
        return kernels.column_moments(whole, self._to_device(rows), weight, float(weights.sum()))

    def _moments(self, weights: FloatArray) -> Any:
        xp = self._xp
        weight, total = self._to_device(weights), float(weights.sum())
        heaviest = self._to_device(np.argsort(-weights, kind="stable")[:CENTER_SAMPLES])

        def moments(columns: range) -> Any:
            block = self._native(columns)
            low, high = xp.min(block, axis=0), xp.max(block, axis=0)
            center = xp.mean(xp.astype(xp.take(block, heaviest, axis=0), xp.float64), axis=0)
            deviation = block - center
            first = weight @ deviation
            deviation *= deviation
            sum_sq = weight @ deviation - first * first / total
            sum_sq = xp.where(sum_sq < 0.0, xp.zeros_like(sum_sq), sum_sq)
            found = (xp.astype(low, xp.float64), xp.astype(high, xp.float64), center + first / total, sum_sq)
            return xp.stack(found, axis=0)

        return xp.concat(self._in_blocks(moments), axis=1)


def values_of_columns(design: Design, function: Callable[[Any, Any, Any], Any]) -> FloatArray | None:
    """One value for each column, computed on the device that holds the data; None for data elsewhere.

    ``function`` takes the array namespace, a block of columns in double precision, which it must not change, and a
    function that copies NumPy arrays to the device.
    """
    if not isinstance(design, ArrayApiDesign):
        return None

    def values(columns: range) -> Any:
        return function(design._xp, design._double(columns), design._to_device)

    return design._concatenated(values, (design.n_features,))


def to_device(X: Any, device: str, *, feature_names: ArrayLike | None = None) -> ArrayApiDesign:
    """Copy data from memory or a file to a device, in blocks, and return their design.

    Parameters
    ----------
    X : data in any form that `as_design` takes, except sparse data.
    device : name of the device, such as "cuda" or "cuda:1".
    feature_names : names of the columns; None: those of X, if it has any.
    """
    from zeronorm.design._convert import as_design

    design = as_design(X, feature_names=feature_names)
    if design.is_sparse:
        raise OptionError(
            "needs dense data, and X is sparse; leave it out, or make X dense if it fits.",
            "device",
        )
    n_bytes = design.n_samples * design.n_features * design.dtype.itemsize
    try:
        array = empty_on(device, design.shape, design.dtype)
        for columns, block in design.iter_blocks():
            array[:, columns] = on_device(block.astype(design.dtype, copy=False), array)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise NotEnoughMemoryError(
            f"The data take {n_bytes / 2**30:.1f} GiB, more than is free on the device {device!r}; store them as "
            "float32, or leave the device out and compute on the processor."
        ) from error
    names = design.feature_names if feature_names is None else np.asarray(feature_names, dtype=object)
    moved = ArrayApiDesign(array, names)
    moved._known_finite = design._known_finite
    return moved


def from_array_api(X: Any, feature_names: NDArray[Any] | None = None) -> ArrayApiDesign:
    """Return the design of an array that follows the array API standard."""
    xp = namespace(X)
    if len(X.shape) != 2 or not xp.isdtype(X.dtype, ("bool", "real floating", "integral")):
        raise ValueError(
            "X must be two-dimensional, samples by features, and real. "
            f"Got {len(X.shape)} dimension(s) of type {X.dtype} instead."
        )
    if hasattr(X, "detach"):  # torch: no operation needs automatic differentiation
        X = X.detach()
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    return ArrayApiDesign(X, feature_names)


def _no_memory(array: Any) -> MemoryError:
    return MemoryError(
        f"The memory of the device {device_of(array)} does not suffice for one column of {array.shape[0]} "
        "samples and the result; free memory there, or move the data to the host."
    )


def _select(xp: Any, array: Any, index: Index, axis: int) -> Any:
    if len(index) == array.shape[axis] and isinstance(index, range) and index.step == 1:
        return array
    if isinstance(index, range):
        # The standard does not allow slices beyond the end.
        end = min(max(index.start, index.stop), array.shape[axis])
        chosen = slice(min(index.start, end), end, index.step)
        return array[chosen, :] if axis == 0 else array[:, chosen]
    positions = on_device(np.asarray(index, dtype=np.int64), array)
    return xp.take(array, positions, axis=axis)
