"""The interface between the data and everything else: a few block operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from zeronorm._threads import (
    Part,
    available_threads,
    one_thread,
    one_thread_for_products,
    require_memory,
    run_in_threads,
)
from zeronorm._types import FloatArray, IntArray
from zeronorm.design import _column_kernels as column_kernels
from zeronorm.design._index import Index, Selection, as_index, as_selector, by_descending_value, roots
from zeronorm.design._stats import ColumnStats, StatsAccumulator, is_surely_finite, require_finite_stats

if TYPE_CHECKING:
    from zeronorm.design._standardized import StandardizedDesign


SMALL_COPY_BYTES = 32 << 20  # up to this size one copy is cheaper than repeatedly gathering scattered columns

PRODUCTS_IN_MEMORY = 4_000_000  # products of columns with vectors that are held at a time (32 MB)
_PREFERRED_BLOCK_BYTES = 4 << 20
_LARGEST_BLOCK_BYTES = 32 << 20
_SMALLEST_BLOCK_BYTES = 1 << 18
_FEWEST_COLUMNS = 512  # with fewer, the threads of a product wait for each other
_BYTES_FILLED_BY_A_THREAD = 2 << 20
_DATA_FRACTION = 1 / 16  # of the data, for one block: a few blocks then take less than 0.3 of the data


Converter = Callable[[Any, "NDArray[Any] | None"], "Design"]
BACKENDS: list[tuple[Callable[[Any], bool], Converter]] = []


def register_backend(recognizes: Callable[[Any], bool]) -> Callable[[Converter], Converter]:
    """Decorator for a function of (data, feature names) that makes a `Design` of data that ``recognizes`` accepts."""

    def enter(converter: Converter) -> Converter:
        BACKENDS.append((recognizes, converter))
        return converter

    return enter


class Design(ABC):
    """A matrix of ``n_samples`` rows and ``n_features`` columns, reached only through block operations.

    All results are float64, whatever type the data are stored in. A backend must implement `_fill`, `_take` and
    `_take_rows`; every other operation has a blockwise default, which a backend may override with a faster one.
    """

    is_sparse: bool = False
    is_on_disk: bool = False

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], feature_names: NDArray[Any] | None = None
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.feature_names = feature_names
        self._known_finite = False

    @property
    def n_samples(self) -> int:
        return self.shape[0]

    @property
    def n_features(self) -> int:
        return self.shape[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_samples} samples, {self.n_features} features, {self.dtype})"

    # What a backend must provide

    @abstractmethod
    def _fill(self, columns: Index, out: FloatArray) -> None:
        """Write the columns, as float64, into ``out`` of shape (n_samples, len(columns))."""

    @abstractmethod
    def _take(self, columns: Index) -> Design:
        """Return the design of the selected columns."""

    @abstractmethod
    def _take_rows(self, rows: Index) -> Design:
        """Return the design of the selected rows."""

    # Selections

    def take(self, columns: Selection) -> Design:
        """Return the design of the selected columns, without a copy where possible."""
        index = as_index(columns, self.n_features, "column")
        if isinstance(index, range) and index == range(self.n_features):
            return self
        return self._passing_on(self._take(index))

    def take_rows(self, rows: Selection) -> Design:
        """Return the design of the selected rows, without a copy where possible."""
        return self._passing_on(self._take_rows(as_index(rows, self.n_samples, "row")))

    def _passing_on(self, part: Design) -> Design:
        """Return ``part`` after noting that it is finite if this design is known to be."""
        part._known_finite = self._known_finite
        return part

    def in_memory(self) -> Design:
        """Return the same data as one contiguous array, so that products need not gather rows or columns.

        The result is a dense array on the host; large data that are sparse, on a device or in files are not moved.
        """
        from zeronorm.design._dense import DenseDesign

        elsewhere = self._in_memory_elsewhere(for_gram=True)
        if elsewhere is not None:
            return self._passing_on(elsewhere)
        return self._passing_on(DenseDesign(self.block(slice(None)), self.feature_names))

    def _in_memory_elsewhere(self, *, for_gram: bool = False) -> Design | None:
        """Return a design that leaves the data in their backend; None if a dense copy on the host is better.

        Sparse data stay sparse unless a dense copy is small. ``for_gram``: the caller mostly needs Gram matrices.
        """
        return self if self.is_sparse and 8 * self.n_samples * self.n_features > SMALL_COPY_BYTES else None

    def in_one_piece(self) -> Design:
        """Return the same data, copied if they are a small scattered part of a larger array; otherwise unchanged."""
        return self

    def release(self) -> None:
        """Free memory kept for later passes over the data; a method calls this when it no longer needs the data."""
        return

    def _affine(self, shift: FloatArray, factor: FloatArray) -> Design | None:
        """Return the design of ``(x - shift) * factor`` if the backend computes it itself (on a device); else None."""
        return None

    @property
    def _has_affine(self) -> bool:
        """Whether `_affine` may return a design; if not, callers need not compute shift and factor."""
        return type(self)._affine is not Design._affine

    def _fused(self) -> Design:
        """Return the design that computes the products: this one, or one that the backend computes itself."""
        return self

    def _names_of(self, columns: Index) -> NDArray[Any] | None:
        return None if self.feature_names is None else self.feature_names[as_selector(columns)]

    # Blocks

    def block(self, columns: Selection, out: FloatArray | None = None) -> FloatArray:
        """Return the columns as a dense float64 array: a new Fortran-ordered one, or ``out`` filled."""
        index = as_index(columns, self.n_features, "column")
        if out is None:
            out = np.empty((self.n_samples, len(index)), order="F")
        self._fill(index, out)
        return out

    def stored_columns(self, columns: IntArray) -> tuple[Any, FloatArray] | None:
        """Return sparse columns as (S, shift), where S - shift is the block; None if the data are not sparse.

        S is a new CSC matrix, which the caller may change.
        """
        return None

    def iter_blocks(self, block_size: int | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """Yield all columns in order as pairs of a slice and a new dense Fortran-ordered block."""
        if block_size is not None and block_size < 1:
            raise ValueError(f"The 'block_size' parameter must be at least 1. Got {block_size} instead.")
        for columns in self._column_slices(block_size):
            yield columns, self.block(columns)

    def _block_width(self) -> int:
        data_bytes = self.n_samples * self.n_features * self.dtype.itemsize
        limit = min(_LARGEST_BLOCK_BYTES, max(_SMALLEST_BLOCK_BYTES, int(data_bytes * _DATA_FRACTION)))
        column_bytes = 8 * max(1, self.n_samples)
        wanted = max(_PREFERRED_BLOCK_BYTES, _FEWEST_COLUMNS * column_bytes)
        return max(1, min(wanted, limit) // column_bytes)

    def _column_slices(self, width: int | None = None) -> Iterator[slice]:
        width = self._block_width() if width is None else width
        for start in range(0, self.n_features, width):
            yield slice(start, min(start + width, self.n_features))

    @property
    def _order(self) -> Literal["C", "F"]:
        """The memory order in which blocks are cheapest to fill."""
        return "F"

    def _scratch_blocks(
        self, dtype: DTypeLike = np.float64, scale: FloatArray | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield contiguous blocks that share the same memory: each is valid, and may be changed, until the next.

        ``scale`` holds one factor for each column, in the type of the blocks.
        """
        n, memory = self.n_samples, np.empty(0, dtype=dtype)
        for outer, source in self._sources():
            width = min(source._scratch_width(), max(1, source.n_features))
            if memory.size < n * width:
                memory = np.empty(n * width, dtype=dtype)
            for columns in source._column_slices(width):
                m = columns.stop - columns.start
                scratch = memory[: n * m].reshape((n, m), order=self._order)
                position = slice(outer.start + columns.start, outer.start + columns.stop)
                chosen = range(columns.start, columns.stop)
                if scale is None:
                    source._fill(chosen, scratch)
                else:
                    source._fill_scaled(chosen, scratch, scale[position])
                yield position, scratch

    def _fill_scaled(self, columns: Index, out: FloatArray, scale: FloatArray) -> None:
        """Write the columns, each multiplied by its factor, into ``out``."""
        self._fill(columns, out)
        out *= scale

    def _sources(self) -> Iterator[tuple[slice, Design]]:
        """Yield all columns in order as designs in memory: this design, or blocks that are read from files."""
        yield slice(0, self.n_features), self

    def _from_sources(self, work: Callable[[slice, Design], Part]) -> Iterator[Part]:
        """Yield, in order, the result of ``work`` for each of the `_sources`; in threads if they come from files."""
        yield work(slice(0, self.n_features), self)

    @property
    def _is_summed_in_threads(self) -> bool:
        """Whether each thread that works on blocks of a file may hold a Gram matrix of its own."""
        return False

    def _scratch_width(self) -> int:
        return self._block_width()

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks that must not be changed; a backend whose memory can be used directly yields views."""
        return self._scratch_blocks()

    @property
    def _is_tall(self) -> bool:
        """Whether products with vectors are faster with blocks of rows than with blocks of columns."""
        return self.n_samples > 4 * self.n_features

    def _row_blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield C-ordered blocks of rows with all columns; the blocks share the same memory."""
        columns = range(self.n_features)
        for rows, block in self._scratch_rows():
            self.take_rows(rows)._fill(columns, block)
            yield rows, block

    def _scratch_rows(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield slices of rows, each with C-ordered memory for its block; all blocks share the same memory."""
        p = self.n_features
        height = max(1, self._block_width() * self.n_samples // max(1, p))
        memory = np.empty((min(height, self.n_samples), p))
        for start in range(0, self.n_samples, height):
            rows = slice(start, min(start + height, self.n_samples))
            yield rows, memory[: rows.stop - rows.start]

    def _scaled_rows(self, factors: FloatArray) -> Iterator[FloatArray]:
        """Yield the blocks of `_row_blocks` with each row multiplied by its factor."""
        for rows, block in self._row_blocks():
            block *= factors[rows, None]
            yield block

    def _surely_finite(self) -> bool:
        """Quick check that all values are finite and not too large; False means that a closer check is needed."""
        return all(is_surely_finite(block) for _, block in self._blocks())

    # Products

    def gram(self, scale_sq: ArrayLike | None = None) -> FloatArray:
        r"""Return :math:`X \operatorname{diag}(s) X^\top`, of shape (n, n)."""
        scale = None if scale_sq is None else _vector(scale_sq, self.n_features, "scale_sq")
        require_memory(
            2 * 8 * self.n_samples**2,
            f"The Gram matrix of {self.n_samples} samples",
            "use fewer samples, or a linear method that works without it.",
        )
        return self._gram(scale)

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if scale_sq is None:
            return self._gram_of_blocks(None)
        if np.count_nonzero(scale_sq) < self.n_features // 2:
            active = np.flatnonzero(scale_sq)
            return self.take(active)._gram(scale_sq[active])
        if scale_sq.min(initial=0.0) < 0.0:
            return self._gram(np.maximum(scale_sq, 0.0)) - self._gram(np.maximum(-scale_sq, 0.0))
        return self._gram_of_blocks(scale_sq)

    @property
    def _product_type(self) -> DTypeLike:
        """Floating-point type of the products in a Gram matrix; they are summed in double precision."""
        return np.float64

    def _gram_of_blocks(self, scale_sq: FloatArray | None) -> FloatArray:
        result, dtype = column_kernels.symmetric_accumulator(self.n_samples), self._product_type
        # Scales are divided by the largest one: otherwise products could leave the range of single precision.
        largest = 1.0 if scale_sq is None else float(scale_sq.max(initial=0.0)) or 1.0
        unit = 1.0 if dtype == np.float64 else largest

        def added(outer: slice, source: Design, total: FloatArray | None = None) -> FloatArray:
            total = column_kernels.symmetric_accumulator(self.n_samples) if total is None else total
            scale = None if scale_sq is None else np.sqrt(scale_sq[outer] / unit).astype(dtype, copy=False)
            source._add_gram(total, scale, dtype)
            return total

        if self._is_summed_in_threads:
            with one_thread_for_products():
                for part in self._from_sources(added):
                    result += part
        else:
            for outer, source in self._sources():
                added(outer, source, result)
        result *= unit
        return column_kernels.symmetric_result(result)

    def _add_gram(self, result: FloatArray, scale: FloatArray | None, dtype: DTypeLike) -> None:
        """Add the Gram matrix of data in memory to a symmetric accumulator."""
        if self._in_one_array and column_kernels.suits_tiles(*self.shape):
            self._add_gram_in_tiles(result, scale, dtype)
            return

        def add(part: range, accumulator: FloatArray) -> None:
            here = None if scale is None else scale[part.start : part.stop]
            for _, block in self._take(part)._scratch_blocks(dtype, here):
                column_kernels.add_outer_square(accumulator, block)

        with column_kernels.threads_for_outer_square(*self.shape):
            column_kernels.add_in_parts(result, add, self._outer_square_parts(*self.shape))

    def _add_gram_in_tiles(self, result: FloatArray, scale: FloatArray | None, dtype: DTypeLike) -> None:
        """Add the Gram matrix block by block; all threads fill a block of columns, then multiply it in tiles."""
        n, n_threads = self.n_samples, available_threads()
        width = min(self.n_features, max(1, _LARGEST_BLOCK_BYTES // (8 * n)))
        memory = np.empty(n * width, dtype=dtype)
        with one_thread():
            for columns in self._column_slices(width):
                n_columns = columns.stop - columns.start
                block = memory[: n * n_columns].reshape((n, n_columns), order=self._order)

                def fill(
                    first: int, last: int, block: FloatArray = block, start: int = columns.start
                ) -> None:
                    part = block[:, first:last]
                    self._fill(range(start + first, start + last), part)
                    if scale is not None:
                        part *= scale[start + first : start + last]

                n_parts = min(n_threads, 1 + 8 * block.size // _BYTES_FILLED_BY_A_THREAD)
                cuts = [n_columns * part // n_parts for part in range(n_parts + 1)]
                run_in_threads(fill, list(pairwise(cuts)), n_parts)
                column_kernels.add_outer_square_in_tiles(result, block, n_threads)

    def _outer_square_parts(self, side: int, depth: int) -> list[range]:
        """Parts of a sum of outer products, one per thread; a single part if threads must not share the data."""
        if not self._in_one_array:
            return [range(depth)]
        return column_kernels.outer_square_parts(side, depth)

    @property
    def _in_one_array(self) -> bool:
        """Whether the data are one array in memory, which several threads may read."""
        return False

    def cross_gram(self, other: Design, scale_sq: ArrayLike | None = None) -> FloatArray:
        r"""Return :math:`X \operatorname{diag}(s) Z^\top`, of shape (n, m), for the other design Z."""
        if other.n_features != self.n_features:
            raise ValueError(
                f"The two designs must have the same features. Got {self.n_features} and {other.n_features}."
            )
        scale = None if scale_sq is None else _vector(scale_sq, self.n_features, "scale_sq")
        return self._cross_gram(other, scale)

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        result = np.zeros((self.n_samples, other.n_samples), order="F")
        width = min(self._block_width(), other._block_width())
        for columns in self._column_slices(width):
            left, right = self.block(columns), other.block(columns)
            if scale_sq is not None:
                left *= scale_sq[columns]
            column_kernels.add_product(result, left, right)
        return result

    def gram_adjoint(self, M: ArrayLike) -> FloatArray:
        r"""Return the vector of :math:`x_k^\top M x_k`, the adjoint of `gram`; M need not be symmetric."""
        M = np.asarray(M, dtype=np.float64)
        if M.shape != (self.n_samples, self.n_samples):
            raise ValueError(f"M must have shape {(self.n_samples, self.n_samples)}. Got {M.shape} instead.")
        return self._gram_adjoint(M)

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        result = np.empty(self.n_features)
        for columns, block in self._blocks():
            product = (block.T @ M.T).T if block.flags.f_contiguous else M @ block
            result[columns] = column_kernels.column_products(block, product)
        return result

    def dot(self, w: ArrayLike) -> FloatArray:
        """Return ``X w`` for a vector, or for each column of a matrix ``w``."""
        return self._dot(_vectors(w, self.n_features, "w"))

    def _dot(self, w: FloatArray) -> FloatArray:
        result = np.zeros((self.n_samples, *w.shape[1:]))
        if self._is_tall:
            for rows, block in self._row_blocks():
                result[rows] = block @ w
            return result
        for columns, block in self._blocks():
            result += block @ w[columns]
        return result

    def transpose_dot(self, V: ArrayLike) -> FloatArray:
        """Return ``X' V`` for a vector, or for each column of a matrix ``V``."""
        return self._transpose_dot(_vectors(V, self.n_samples, "V"))

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        result = np.zeros((self.n_features, *V.shape[1:]))
        if self._is_tall:
            for rows, block in self._row_blocks():
                result += block.T @ V[rows]
            return result
        for columns, block in self._blocks():
            result[columns] = block.T @ V
        return result

    def largest_products(self, V: ArrayLike) -> FloatArray:
        """Return, for each column, its largest absolute product with a column of ``V``, without storing ``X' V``.

        Products of data in single precision are in single precision.
        """
        vectors = _vectors(V, self.n_samples, "V")
        return self._largest_products(vectors[:, None] if vectors.ndim == 1 else vectors)

    def _largest_products(self, V: FloatArray) -> FloatArray:
        result = np.empty(self.n_features)
        if self.is_sparse:
            for columns in self._column_slices(max(1, PRODUCTS_IN_MEMORY // V.shape[1])):
                result[columns] = np.abs(self.take(columns).transpose_dot(V)).max(axis=1)
            return result
        narrow = V.astype(np.float32 if self.dtype == np.float32 else np.float64)
        for columns, block in self._scratch_blocks(narrow.dtype):
            product = block.T @ narrow
            result[columns] = np.maximum(product.max(axis=1), -product.min(axis=1))
        return result

    def sandwich(self, d: ArrayLike) -> FloatArray:
        r"""Return :math:`X^\top \operatorname{diag}(d) X`, of shape (p, p), computed from blocks of rows."""
        weight = _vector(d, self.n_samples, "d")
        require_memory(
            2 * 8 * self.n_features**2,
            f"The matrix of products of {self.n_features} features",
            "select features with a filter first.",
        )
        return self._sandwich(weight)

    def _sandwich(self, d: FloatArray) -> FloatArray:
        if d.min(initial=0.0) < 0.0:
            return self._sandwich(np.maximum(d, 0.0)) - self._sandwich(np.maximum(-d, 0.0))
        result = column_kernels.symmetric_accumulator(self.n_features)
        root = np.sqrt(d)

        def add(part: range, accumulator: FloatArray) -> None:
            chosen = self if len(part) == self.n_samples else self._take_rows(part)
            for block in chosen._scaled_rows(root[part.start : part.stop]):
                column_kernels.add_outer_square(accumulator, block.T)

        column_kernels.add_in_parts(result, add, self._outer_square_parts(self.n_features, self.n_samples))
        return column_kernels.symmetric_result(result)

    def eigen(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, as ``eigh`` does."""
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    def by_descending_value(self, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the indices that sort the values in descending order, NaN last, and the sorted values."""
        return by_descending_value(values)

    # Differences of samples, which only some backends compute

    def distances(self, scale: FloatArray, *, squared: bool = False) -> FloatArray | None:
        r"""Return :math:`\sum_k s_k |x_{ik} - x_{jk}|` for all pairs of samples, or the sum of squares.

        None if compiled loops over blocks of columns on the host are faster. Values must not be missing.
        """
        return None

    def difference_sums(self, first: IntArray, second: IntArray, weights: FloatArray) -> FloatArray | None:
        r"""Return :math:`\sum_t w_t |x_{i_t k} - x_{j_t k}|` over pairs of samples, for every column.

        None if compiled loops over blocks of columns on the host are faster. Values must not be missing.
        """
        return None

    # Statistics of the columns

    def squared_norms(self) -> FloatArray:
        """Return the squared Euclidean norm of each column."""
        result = np.empty(self.n_features)
        for columns, block in self._blocks():
            result[columns] = column_kernels.column_products(block, block)
        return result

    def column_stats(self, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnStats:
        """Return counts, means, variances and ranges of the columns, overall and for each class.

        ``y`` holds class codes 0..q-1. Rows of zero weight do not count at all.
        """
        accumulator = StatsAccumulator(self.shape, y, sample_weight)
        self._accumulate_stats(accumulator)
        return accumulator.result()

    def use_column_stats(
        self, use: Callable[[slice, ColumnStats], None], y: ArrayLike, sample_weight: ArrayLike | None
    ) -> None:
        """Call ``use`` with the statistics of all columns, block by block and in threads if they come from files.

        This avoids keeping eight vectors of length ``n_features``.
        """
        use(slice(0, self.n_features), self.column_stats(y, sample_weight))

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        for columns, block in self._scratch_blocks():
            accumulator.add_dense(block, range(block.shape[1]), target=columns.start)

    def column_range(self) -> tuple[FloatArray, FloatArray]:
        """Return the minimum and the maximum of each column; NaN for columns that hold NaN."""
        stats = self.column_stats()
        missing = np.isnan(stats.mean)
        return np.where(missing, np.nan, stats.minimum), np.where(missing, np.nan, stats.maximum)

    def standardized(
        self,
        with_mean: bool = True,
        with_scale: bool = True,
        sample_weight: ArrayLike | None = None,
        *,
        common: bool = False,
    ) -> StandardizedDesign:
        """Return a view with columns of mean zero and population standard deviation one.

        With a ``common`` scale all columns are divided by one number instead, the root of the mean variance of those
        that are not constant. Columns that are constant up to rounding get scale 1 and, if centred, are exactly zero.
        """
        from zeronorm.design._standardized import StandardizedDesign

        stats = self.column_stats(sample_weight=sample_weight)
        require_finite_stats(self, stats)
        constant = stats.is_constant(self.dtype)
        mean = stats.mean if with_mean else np.zeros(self.n_features)
        scale = roots(stats.variance) if with_scale else np.ones(self.n_features)
        if common and not constant.all():
            # In units of the largest deviation: the squares of small or large deviations leave the range of numbers.
            largest = scale[~constant].max()
            scale[:] = largest * np.sqrt(np.mean((scale[~constant] / largest) ** 2))
        scale[constant] = 1.0
        return StandardizedDesign(
            self,
            mean,
            scale,
            zero_columns=constant if with_mean else None,
            unit_variance=with_mean and with_scale and sample_weight is None and not common,
        )


def _vector(values: ArrayLike, size: int, name: str) -> FloatArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"'{name}' must be a vector of length {size}. Got shape {vector.shape} instead.")
    return vector


def _vectors(values: ArrayLike, size: int, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2) or array.shape[0] != size:
        raise ValueError(
            f"'{name}' must have {size} rows and at most 2 axes. Got shape {array.shape} instead."
        )
    return array
