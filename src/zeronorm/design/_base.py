"""The interface between the data and everything else: a few block operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import _gram as grams
from zeronorm.design import _products as products
from zeronorm.design._affine import Affine
from zeronorm.design._backend import Backend
from zeronorm.design._blocks import column_slices, fill, scratch_blocks, width_of
from zeronorm.design._finite import blocks_are_finite, require_finite_stats
from zeronorm.design._index import Index, Selection, as_index, as_selector, roots
from zeronorm.design._stats import ColumnStats, StatsAccumulator
from zeronorm.execution import Part, require_memory

SMALL_COPY_BYTES = 32 << 20  # up to this size one copy is cheaper than repeatedly gathering scattered columns


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

    All results are float64, whatever type the data are stored in. With ``affine``, which `standardized` and
    `transformed` set, the values are the stored ones shifted and scaled; no copy of them is made.

    A backend must implement `_fill`, `_take` and `_take_rows`; every other operation has a blockwise default, which a
    backend may override with a faster one. The methods of a backend are about the stored values and need not care about
    ``affine``, unless its ``backend`` record says that it transforms: its products then have to.
    """

    backend: Backend = Backend()

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], feature_names: NDArray[Any] | None = None
    ) -> None:
        self.shape = shape
        self.n_samples, self.n_features = shape
        self.dtype = dtype
        self.feature_names = feature_names
        self.affine: Affine | None = None
        self._stored: Design | None = None  # the same data without ``affine``, if there is one
        self._kept_gram: FloatArray | None = None
        self._known_finite = False

    @property
    def is_sparse(self) -> bool:
        """Whether zeros are not stored."""
        return self.backend.is_sparse

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_samples} samples, {self.n_features} features, {self.dtype})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept_gram": None}

    # What a backend must provide

    @abstractmethod
    def _fill(self, columns: Index, out: FloatArray) -> None:
        """Write the stored columns, as float64, into ``out`` of shape (n_samples, len(columns))."""

    @abstractmethod
    def _take(self, columns: Index) -> Design:
        """Return the design of the selected columns; `take` adds their names, shift and scale."""

    @abstractmethod
    def _take_rows(self, rows: Index) -> Design:
        """Return the design of the selected rows; `take_rows` adds names, shift and scale."""

    # Selections

    def take(self, columns: Selection) -> Design:
        """Return the design of the selected columns, without a copy where possible."""
        index = as_index(columns, self.n_features, "column")
        if isinstance(index, range) and index == range(self.n_features):
            return self
        part = (self._stored or self)._take(index)
        part.feature_names = None if self.feature_names is None else self.feature_names[as_selector(index)]
        part._known_finite = self._known_finite
        return part if self.affine is None else part._with(self.affine.take(index))

    def take_rows(self, rows: Selection) -> Design:
        """Return the design of the selected rows, without a copy where possible."""
        part = (self._stored or self)._take_rows(as_index(rows, self.n_samples, "row"))
        part.feature_names, part._known_finite = self.feature_names, self._known_finite
        return part if self.affine is None else part._with(self.affine.for_other_samples())

    def in_memory(self, *, if_small: bool = False) -> Design:
        """Return the same data as one contiguous array, so that products need not gather rows or columns.

        The result is a dense array on the host, by row with ``if_small`` and otherwise by column. Large data that are
        sparse, on a device or in files are not moved; ``if_small``: nor are other large data.
        """
        from zeronorm.design._dense import DenseDesign

        is_large = 8 * self.n_samples * self.n_features > SMALL_COPY_BYTES
        if is_large and (if_small or self.is_sparse):
            return self
        copied = DenseDesign(
            np.ascontiguousarray(self.block(slice(None))) if if_small else self.block(slice(None)),
            self.feature_names,
        )
        copied._known_finite = self._known_finite
        return copied

    def release(self) -> None:
        """Free memory kept for later passes over the data; a method calls this when it no longer needs the data."""
        self._kept_gram = None

    # Shift and scale

    def transformed(
        self,
        mean: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        *,
        zero_columns: ArrayLike | None = None,
    ) -> Self:
        """Return the view of ``(x - mean) / scale``, with one number for each column, by default 0 and 1.

        ``zero_columns`` is the mask of columns that are exactly zero in the view, such as centred constant columns.
        """
        affine = Affine.checked(self.n_features, mean, scale, zero_columns)
        return self._with(affine if self.affine is None else self.affine.then(affine))

    def _with(self, affine: Affine) -> Self:
        """Return the stored data with another shift and scale, which are not checked."""
        stored, view = self._stored or self, object.__new__(type(self))
        view.__dict__.update(stored.__dict__)
        view.affine, view._stored, view._kept_gram = affine, stored, None
        view._known_finite = self._known_finite
        return view

    def standardized(
        self,
        with_mean: bool = True,
        with_scale: bool = True,
        sample_weight: ArrayLike | None = None,
        *,
        common: bool = False,
    ) -> Self:
        """Return a view with columns of mean zero and population standard deviation one.

        With a ``common`` scale all columns are divided by one number instead, the root of the mean variance of those
        that are not constant. Columns that are constant up to rounding get scale 1 and, if centred, are exactly zero.
        """
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
        zero = constant if with_mean else np.zeros(self.n_features, bool)
        is_unit = with_mean and with_scale and sample_weight is None and not common
        affine = Affine(mean, scale, zero, unit_variance=is_unit)
        return self._with(affine if self.affine is None else self.affine.then(affine))

    # Blocks

    def block(self, columns: Selection, out: FloatArray | None = None) -> FloatArray:
        """Return the columns as a dense float64 array: a new Fortran-ordered one, or ``out`` filled."""
        index = as_index(columns, self.n_features, "column")
        if out is None:
            out = np.empty((self.n_samples, len(index)), order="F")
        fill(self, index, out)
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
        for columns in column_slices(self, block_size):
            yield columns, self.block(columns)

    def _block_width(self) -> int:
        """Number of columns of a block, unless a caller asks for another."""
        return width_of(*self.shape, self.dtype.itemsize)

    def _from_parts(self, work: Callable[[slice, Design], Part], *, in_threads: bool) -> Iterator[Part]:
        """Yield ``work(columns, part)`` for designs in memory that together hold all stored columns, in order."""
        yield work(slice(0, self.n_features), self)

    def _surely_finite(self) -> bool:
        """Quick check that all values are finite and not too large; False means that a closer check is needed."""
        return blocks_are_finite(self)

    # Products

    def gram(self, scale_sq: ArrayLike | None = None) -> FloatArray:
        r"""Return :math:`X \operatorname{diag}(s) X^\top`, of shape (n, n)."""
        scale = None if scale_sq is None else _vector(scale_sq, self.n_features, "scale_sq")
        n_bytes = 8 * self.n_samples**2
        if n_bytes > grams.MOST_KEPT_BYTES:
            remedy = "use fewer samples, or a linear method that works without it."
            require_memory(2 * n_bytes, f"The Gram matrix of {self.n_samples} samples", remedy)
        if self.affine is None:
            return self._gram(scale)
        # A small matrix of columns with one weight is kept, because methods need it repeatedly.
        factor = 1.0 if scale is None else grams.equal_value(scale)
        if factor is None or n_bytes > grams.MOST_KEPT_BYTES:
            return grams.gram_of_view(self, scale)
        if self._kept_gram is None:
            self._kept_gram = grams.gram_of_view(self, None)
        return factor * self._kept_gram

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        return grams.gram_of_blocks(self, scale_sq)

    def cross_gram(self, other: Design, scale_sq: ArrayLike | None = None) -> FloatArray:
        r"""Return :math:`X \operatorname{diag}(s) Z^\top`, of shape (n, m), for the other design Z."""
        if other.n_features != self.n_features:
            raise ValueError(
                f"The two designs must have the same features. Got {self.n_features} and {other.n_features}."
            )
        scale = None if scale_sq is None else _vector(scale_sq, self.n_features, "scale_sq")
        return products.cross_gram(self, other, scale)

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        return products.cross_gram_of_blocks(self, other, scale_sq)

    def gram_adjoint(self, M: ArrayLike) -> FloatArray:
        r"""Return the vector of :math:`x_k^\top M x_k`, the adjoint of `gram`; M need not be symmetric."""
        M = np.asarray(M, dtype=np.float64)
        if M.shape != (self.n_samples, self.n_samples):
            raise ValueError(f"M must have shape {(self.n_samples, self.n_samples)}. Got {M.shape} instead.")
        return products.gram_adjoint(self, M)

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        return products.gram_adjoint_of_blocks(self, M)

    def dot(self, w: ArrayLike) -> FloatArray:
        """Return ``X w`` for a vector, or for each column of a matrix ``w``."""
        return products.dot(self, _vectors(w, self.n_features, "w"))

    def _dot(self, w: FloatArray) -> FloatArray:
        return products.dot_of_blocks(self, w)

    def transpose_dot(self, V: ArrayLike) -> FloatArray:
        """Return ``X' V`` for a vector, or for each column of a matrix ``V``."""
        return products.transpose_dot(self, _vectors(V, self.n_samples, "V"))

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        return products.transpose_dot_of_blocks(self, V)

    def largest_products(self, V: ArrayLike) -> FloatArray:
        """Return, for each column, its largest absolute product with a column of ``V``, without storing ``X' V``.

        Products of data in single precision are in single precision.
        """
        vectors = _vectors(V, self.n_samples, "V")
        return products.largest_products(self, vectors[:, None] if vectors.ndim == 1 else vectors)

    def _largest_products(self, V: FloatArray) -> FloatArray:
        return products.largest_products_of_blocks(self, V)

    def sandwich(self, d: ArrayLike) -> FloatArray:
        r"""Return :math:`X^\top \operatorname{diag}(d) X`, of shape (p, p), computed from blocks of rows."""
        weight = _vector(d, self.n_samples, "d")
        require_memory(
            2 * 8 * self.n_features**2,
            f"The matrix of products of {self.n_features} features",
            "select features with a filter first.",
        )
        return products.sandwich(self, weight)

    def _sandwich(self, d: FloatArray) -> FloatArray:
        return products.sandwich_of_blocks(self, d)

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
        return products.squared_norms(self)

    def _squared_norms(self) -> FloatArray:
        return products.squared_norms_of_blocks(self)

    def column_stats(self, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnStats:
        """Return counts, means, variances and ranges of the columns, overall and for each class.

        ``y`` holds class codes 0..q-1. Rows of zero weight do not count at all.
        """
        accumulator = StatsAccumulator(self.shape, y, sample_weight)
        (self._stored or self)._accumulate_stats(accumulator)
        stats = accumulator.result()
        return stats if self.affine is None else stats.transformed(self.affine)

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        for columns, block in scratch_blocks(self):
            accumulator.add_dense(block, range(block.shape[1]), target=columns.start)

    def _column_range(self) -> tuple[FloatArray, FloatArray]:
        stats = self.column_stats()
        missing = np.isnan(stats.mean)
        return np.where(missing, np.nan, stats.minimum), np.where(missing, np.nan, stats.maximum)


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
