"""A design whose columns stay in files, one file or several side by side."""

from __future__ import annotations

import bisect
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._messages import OptionError
from zeronorm._types import FloatArray
from zeronorm.design._backend import Backend
from zeronorm.design._base import Design
from zeronorm.design._blocks import SMALLEST_BLOCK_BYTES, column_slices, is_tall
from zeronorm.design._dense import DenseDesign
from zeronorm.design._index import Index, as_index, as_selector, compose, is_consecutive, spans_of
from zeronorm.design._stats import ColumnStats, StatsAccumulator
from zeronorm.execution import (
    Part,
    available_threads,
    long_vector,
    memory_for,
    one_thread_for_products,
    opened,
    work_in_turn,
)

DEFAULT_MEMORY_BUDGET = 512 << 20
_MOST_WORKERS = 6  # threads, of which one reads while the others compute; more would wait for the disk
BYTES_WORTH_A_THREAD = 8 << 20  # memory budget from which on reading ahead in a thread saves time
# Largest block, in bytes as float64, of a file stored by column: large enough that threads seldom wait for each other,
# small enough for the processor cache. Blocks of files stored by row are wider, since each needs a piece of every row.
_MOST_AT_ONCE = 64 << 20
_CONVERTED_BYTES = 4 << 20
_LARGEST_GAP = 1 << 16  # bytes; smaller gaps between wanted values are read, not skipped


class ChunkedDesign(Design):
    """Columns in files, read block by block as they are needed and never all at once.

    Each file holds all samples of some features; the columns of several files are concatenated. The next blocks are
    read while one is used. A Parquet file is decoded again in every pass over the data: for methods that make many
    passes, `pack` it first. If a file has changed or is gone, the next access raises `DataFileError`.

    Parameters
    ----------
    memory_budget : bytes that all blocks together may take
    """

    def __init__(
        self,
        files: Sequence[ColumnFile],
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        kept: _KeptColumns | None = None,
    ) -> None:
        self._files = tuple(files)
        self.memory_budget = memory_budget
        self._starts = np.concatenate([[0], np.cumsum([file.shape[1] for file in files])])
        self._rows: Index = range(files[0].shape[0]) if rows is None else rows
        self._columns: Index = range(int(self._starts[-1])) if columns is None else columns
        single = all(file.dtype == np.float32 for file in files)
        dtype = np.dtype(np.float32 if single else np.float64)
        super().__init__((len(self._rows), len(self._columns)), dtype, feature_names)
        self._known_finite = all(file.known_finite for file in files)
        self._kept = _KeptColumns() if kept is None else kept
        self.backend = Backend(
            is_on_disk=True,
            reads_ahead=memory_budget >= BYTES_WORTH_A_THREAD,
            order="C" if files[0].by_row else "F",
        )

    def release(self) -> None:
        super().release()
        self._kept.clear()

    def _take(self, columns: Index) -> ChunkedDesign:
        return self._part(self._rows, compose(self._columns, columns), self._kept)

    def _take_rows(self, rows: Index) -> ChunkedDesign:
        return self._part(compose(self._rows, rows), self._columns, None)

    def _part(self, rows: Index, columns: Index, kept: _KeptColumns | None) -> ChunkedDesign:
        budget = self.memory_budget
        return ChunkedDesign(self._files, rows=rows, columns=columns, memory_budget=budget, kept=kept)

    def in_memory(self, *, if_small: bool = False) -> Design:
        """Data that would take more than a quarter of the budget as float64 stay in the files."""
        is_large = 32 * self.n_samples * self.n_features > self.memory_budget
        return self if is_large else super().in_memory(if_small=if_small)

    def _block_width(self) -> int:
        """Columns per block: several blocks are in memory at once, and each may be transposed or converted."""
        data_bytes = self.n_samples * self.n_features * self.dtype.itemsize
        limit = min(self.memory_budget // 16, max(SMALLEST_BLOCK_BYTES, data_bytes // 32))
        if self.backend.order == "F":
            limit = min(limit, _MOST_AT_ONCE)
        width = max(1, limit // (8 * max(1, self.n_samples)))
        at_once = max(file.columns_at_once for file in self._files)
        return width - width % at_once if width > at_once else width

    def _fill(self, columns: Index, out: FloatArray) -> None:
        chosen = compose(self._columns, columns)
        kept = self._from_memory(chosen)
        if kept is not None:
            np.copyto(out, kept)
            return
        wanted = np.asarray(chosen, dtype=np.intp)
        file_of = np.searchsorted(self._starts, wanted, side="right") - 1
        for number in np.unique(file_of):
            file, here = self._files[number], np.flatnonzero(file_of == number)
            local = as_index(wanted[here] - self._starts[number], file.shape[1], "column")
            target = as_selector(as_index(here, out.shape[1], "column"))
            out[:, target] = file.read(self._rows, local)

    # Passes over all columns, in the stored type; kernels convert one value at a time

    def _from_parts(self, work: Callable[[slice, Design], Part], *, in_threads: bool) -> Iterator[Part]:
        self._keep_if_worth_it()
        if in_threads:
            yield from self._from_arrays(lambda columns, part: work(columns, _PartOfFiles(part)))
            return
        cuts = list(column_slices(self))
        ahead = self.backend.reads_ahead
        parts = work_in_turn(self._stored_type, lambda _, part: part, cuts, n_threads=0, ahead=ahead)
        for columns, part in zip(cuts, parts, strict=True):
            yield work(columns, _PartOfFiles(part))

    def _from_arrays(
        self, work: Callable[[slice, NDArray[Any]], Part], *, is_quick: bool = False
    ) -> Iterator[Part]:
        """Yield the results of ``work`` for all blocks of columns, in order.

        ``is_quick``: work that is faster than reading gets one more thread, since one of them waits for the disk.
        """
        n_threads = min(_MOST_WORKERS, available_threads()) + is_quick if self.backend.reads_ahead else 0
        if len(self._files) > 1 or self._kept.has(self._columns):
            slices = list(column_slices(self))
            return work_in_turn(self._stored_type, work, slices, n_threads=n_threads)
        file = self._files[0]

        def work_on(piece: tuple[slice, Index], found: NDArray[Any]) -> Part:
            columns, read = piece
            file.check(self._rows, read, found)
            if len(read) > columns.stop - columns.start:
                lines = np.asarray(self._columns[columns]) - read[0]
                found = np.take(found.T, lines, axis=0, mode="clip").T
            return work(columns, found.astype(self.dtype, copy=False))

        pieces = list(self._pieces_to_read())
        return work_in_turn(
            lambda piece: file.read_unchecked(self._rows, piece[1]), work_on, pieces, n_threads=n_threads
        )

    def _pieces_to_read(self) -> Iterator[tuple[slice, Index]]:
        """Yield pairs of a slice of the selected columns and the columns of the file to read for it.

        Columns between scattered selected ones are read too, unless the selected ones are few: reading on is faster
        than skipping. The thread that has read a piece picks its columns while the next thread reads.
        """
        chosen = self._columns
        if isinstance(chosen, range) or not self._is_read_through(chosen):
            for columns in column_slices(self):
                yield columns, chosen[columns]
            return
        width = max(1, min(self.memory_budget // 16, _MOST_AT_ONCE) // (8 * self.n_samples))
        begin, after = 0, int(chosen[0])
        while begin < chosen.size:
            first = after if chosen[begin] - after < width else int(chosen[begin])
            end = int(np.searchsorted(chosen, first + width))
            after = int(chosen[end - 1]) + 1
            yield slice(begin, end), range(first, after)
            begin = end

    def _is_read_through(self, chosen: NDArray[np.intp]) -> bool:
        file = self._files[0]
        has_all_rows = isinstance(self._rows, range) and self._rows == range(file.shape[0])
        if not (file.has_whole_columns and has_all_rows and chosen.size and file.shape[0]):
            return False
        between = (int(chosen[-1]) - int(chosen[0])) * file.shape[0] * file.dtype.itemsize
        return between <= _LARGEST_GAP * chosen.size and bool(np.all(chosen[1:] > chosen[:-1]))

    def _work_in_threads(self, work: Callable[[slice, DenseDesign], None]) -> None:
        """Call ``work`` for all blocks of columns, in several threads."""
        self._keep_if_worth_it()
        with one_thread_for_products():
            for _ in self._from_arrays(
                lambda columns, part: work(columns, _PartOfFiles(part)), is_quick=True
            ):
                pass

    def _stored_type(self, columns: slice) -> NDArray[Any]:
        wanted = self._columns[columns]
        kept = self._from_memory(wanted)
        if kept is not None:
            return kept
        if len(self._files) == 1:
            return self._files[0].read(self._rows, wanted).astype(self.dtype, copy=False)
        out = np.empty((self.n_samples, len(wanted)), dtype=self.dtype, order=self.backend.order)
        self._fill(range(columns.start, columns.stop), out)
        return out

    @property
    def _is_worth_keeping(self) -> bool:
        """Whether these are some, not all, columns and take at most half of the budget; they will be needed again."""
        n_bytes = self.n_samples * self.n_features * self.dtype.itemsize
        return 2 * n_bytes <= self.memory_budget and 0 < self.n_features < self._starts[-1]

    def _keep_if_worth_it(self) -> None:
        if not self._is_worth_keeping or self._kept.has(self._columns):
            return
        lines = np.empty((self.n_features, self.n_samples), dtype=self.dtype)

        def keep(columns: slice, part: NDArray[Any]) -> None:
            lines[columns] = part.T

        for _ in self._from_arrays(keep):
            pass
        self._kept.replace(np.asarray(self._columns, dtype=np.intp), lines)

    def _from_memory(self, wanted: Index) -> NDArray[Any] | None:
        """Return columns kept in memory, after checking that the files have not changed; None if some are not kept."""
        found = self._kept.find(wanted)
        if found is not None:
            for file in self._files:
                file.require_unchanged()
        return found

    def _surely_finite(self) -> bool:
        return all(self._from_parts(lambda _, part: part._surely_finite(), in_threads=False))

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        self._work_in_threads(lambda columns, part: part._accumulate_stats(accumulator, columns.start))

    def use_column_stats(
        self, use: Callable[[slice, ColumnStats], None], y: ArrayLike, sample_weight: ArrayLike | None
    ) -> None:
        """Call ``use`` with the statistics of all stored columns, block by block and in threads."""
        samples = StatsAccumulator((self.n_samples, 0), y, sample_weight)

        def collect(columns: slice, part: DenseDesign) -> None:
            accumulator = samples.for_columns(part.n_features)
            part._accumulate_stats(accumulator)
            use(columns, accumulator.result())

        self._work_in_threads(collect)

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        if is_tall(self):
            return super()._transpose_dot(V)
        n_vectors = math.prod(V.shape[1:])
        result = long_vector(self.n_features * n_vectors).reshape((self.n_features, *V.shape[1:]), order="F")

        def multiply(columns: slice, part: DenseDesign) -> None:
            result[columns] = part._transpose_dot(V)

        self._work_in_threads(multiply)
        return result


class _KeptColumns:
    """The columns of the last small selection that was read; all selections from one design share them.

    Methods that remove features read the remaining ones many times: these are scattered columns, for which nearly the
    whole file would be read each time.
    """

    def __init__(self) -> None:
        self.clear()

    def __reduce__(self) -> tuple[type[_KeptColumns], tuple[()]]:
        return _KeptColumns, ()  # they are not sent to other processes

    def clear(self) -> None:
        """Remove all kept columns."""
        nothing: tuple[NDArray[np.intp], NDArray[Any]] = (np.empty(0, dtype=np.intp), np.empty((0, 0)))
        self._columns_and_lines = nothing  # one assignment: other threads may read it

    def replace(self, columns: NDArray[np.intp], lines: NDArray[Any]) -> None:
        """Keep these columns, one in each line, instead of the previous ones."""
        if not np.all(columns[1:] > columns[:-1]):
            rising = np.argsort(columns, kind="stable")
            columns, lines = columns[rising], lines[rising]
        self._columns_and_lines = columns, lines

    def has(self, wanted: Index) -> bool:
        """Whether all these columns are kept."""
        return _positions(self._columns_and_lines[0], wanted) is not None

    def find(self, wanted: Index) -> NDArray[Any] | None:
        """Return the columns, each contiguous; None if some are not kept."""
        columns, lines = self._columns_and_lines
        positions = _positions(columns, wanted)
        return None if positions is None else lines[positions].T


def _positions(columns: NDArray[np.intp], wanted: Index) -> NDArray[np.intp] | None:
    """Positions of the wanted columns among sorted ones; None if some are missing."""
    if not columns.size or len(wanted) > columns.size:  # a range of all features is not turned into an array
        return None
    chosen = np.asarray(wanted, dtype=np.intp)
    positions = np.searchsorted(columns, chosen)
    np.minimum(positions, columns.size - 1, out=positions)
    return positions if np.array_equal(columns[positions], chosen) else None


class _PartOfFiles(DenseDesign):
    """Columns that were just read; converted blocks of them are small enough for the processor cache."""

    def __init__(self, array: NDArray[Any], **selection: Any) -> None:
        super().__init__(array, **selection)
        self.backend = replace(self.backend, is_part_of_file=True)

    def _block_width(self) -> int:
        return max(1, _CONVERTED_BYTES // (8 * max(1, self.n_samples)))


class DataFileError(RuntimeError):
    """A data file is damaged, or has changed or disappeared since it was opened."""


Stamp = tuple[int, int]


def stamp_of(path: Path) -> Stamp:
    """Size and time of the last change of a file, or of all files in a folder together."""
    try:
        if path.is_dir():
            found = [file.stat() for file in path.rglob("*")]
            return sum(file.st_size for file in found), max((file.st_mtime_ns for file in found), default=0)
        status = path.stat()
    except OSError as error:
        raise DataFileError(
            f"The file {path} is gone: it was there when it was opened; put it back."
        ) from error
    return status.st_size, status.st_mtime_ns


class ColumnFile(ABC):
    """One file with all samples of some features."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: list[str] | None
    by_row = False  # whether samples, not features, are contiguous
    columns_at_once = 1  # number of columns that are decoded together
    has_whole_columns = (
        False  # whether columns are stored as consecutive plain numbers, so that gaps are quick to read
    )
    known_finite = False  # whether the values were checked when they were written

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = stamp_of(path)

    def require_unchanged(self) -> None:
        """Raise an error if the file has changed since it was opened."""
        if stamp_of(self.path) != self._stamp:
            raise DataFileError(f"The file {self.path} has changed since it was opened; open it again.")

    @abstractmethod
    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        """Return the given rows and columns."""

    def read_unchecked(self, rows: Index, columns: Index) -> NDArray[Any]:
        """Return the given rows and columns without `check`, which another thread calls."""
        return self.read(rows, columns)

    def check(self, rows: Index, columns: Index, found: NDArray[Any]) -> None:  # noqa: B027 - most have no checksums
        """Raise an error if the values do not match their checksums."""

    def by_column(self, memory_budget: int, width: int) -> ColumnFile:
        """Return a file with the same data that can be read ``width`` columns at a time without repeated decoding."""
        return self

    def design(self, names: NDArray[Any] | None, memory_budget: int) -> Design | None:
        """Return a special design for this file alone; None if `ChunkedDesign` is to be used."""
        return None


class NpyFile(ColumnFile):
    """A two-dimensional array saved by ``numpy.save``; only its path is pickled.

    The file is not mapped into memory: truncating a mapped file would crash the process.
    """

    names = None

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        header = _numpy_header(path)
        if header.ndim != 2 or header.dtype.kind not in "fiub":
            raise ValueError(
                f"A NumPy file must hold a two-dimensional array of real numbers, samples by features. {path} "
                f"holds {header.ndim} dimension(s) of type {header.dtype}."
            )
        self.shape = cast("tuple[int, int]", header.shape)
        self.dtype = header.dtype
        self.by_row = bool(header.flags.c_contiguous)
        self.has_whole_columns = not self.by_row
        self._offset = int(header.offset)

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        self.require_unchanged()
        outer, inner = (rows, columns) if self.by_row else (columns, rows)
        found = read_lines(self, self._offset, self.shape[1 if self.by_row else 0], outer, inner)
        return found if self.by_row else found.T


def _numpy_header(path: Path) -> np.memmap[Any, Any]:
    """Return the array as a memory map, for its type, shape, order and offset; its values are not read."""
    try:
        header = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError) as error:
        if "mmap length" in str(error):
            raise ValueError(
                f"The file {path} is not complete: it is shorter than its header says; save it again."
            ) from error
        raise ValueError(
            f"The file {path} cannot be read as a NumPy file ({error}); save an array with numpy.save."
        ) from error
    if not isinstance(header, np.memmap):  # an archive of several arrays
        raise ValueError(f"The file {path} cannot be read as a NumPy file; save one array with numpy.save.")
    return header


def read_lines(file: ColumnFile, offset: int, length: int, outer: Index, inner: Index) -> NDArray[Any]:
    """Read some entries of some lines of a matrix that is stored line after line.

    Parameters
    ----------
    offset : position of the first value in the file, in bytes
    length : number of values in a line
    outer, inner : indices of the lines, and of the entries in each of them
    """
    out = memory_for((len(outer), len(inner)), file.dtype)
    with opened(file.path) as stream:
        if isinstance(inner, range) and inner == range(length) and is_consecutive(outer):
            _read_into(stream, file, offset + int(outer[0]) * length * out.itemsize if len(outer) else 0, out)
            return out
        if isinstance(inner, range) and inner == range(length):
            _read_scattered(stream, file, offset, outer, out)
            return out
        spans, pick = spans_of(inner, max(1, _LARGEST_GAP // out.itemsize))
        whole = np.empty(sum(stop - start for start, stop in spans), dtype=file.dtype)
        for line, target in zip(outer, out, strict=True):
            filled = 0
            into = target if pick is None else whole
            for start, stop in spans:
                position = offset + (int(line) * length + start) * out.itemsize
                _read_into(stream, file, position, into[filled : filled + stop - start])
                filled += stop - start
            if pick is not None:
                np.take(whole, pick, out=target)
    return out


def _read_scattered(stream: Any, file: ColumnFile, offset: int, outer: Index, out: NDArray[Any]) -> None:
    """Read whole lines that are not consecutive; small gaps between them are read too."""
    chosen = np.asarray(outer, dtype=np.intp)
    is_rising = bool(np.all(chosen[1:] > chosen[:-1]))
    if not is_rising:
        chosen, back = np.unique(chosen, return_inverse=True)
    line_bytes = max(1, out.shape[1] * out.itemsize)
    most = max(1, _CONVERTED_BYTES // line_bytes)
    between = memory_for((most, out.shape[1]), out.dtype)
    found = out if is_rising else np.empty((chosen.size, out.shape[1]), dtype=out.dtype)
    gap = _LARGEST_GAP // line_bytes
    begin, after = 0, -gap - most
    cuts = [*(np.flatnonzero(np.diff(chosen) > gap) + 1).tolist(), chosen.size]
    while begin < chosen.size:
        first = int(chosen[begin])
        # A piece close to the last one starts where that ended: without a gap the operating system reads ahead.
        first = after if first - after < min(gap, most) else first
        reach = int(np.searchsorted(chosen, first + most))
        end = min(reach, cuts[bisect.bisect_right(cuts, begin)])
        lines = chosen[begin:end] - first
        _read_into(stream, file, offset + first * line_bytes, between[: lines[-1] + 1])
        np.take(between, lines, axis=0, out=found[begin:end], mode="clip")
        begin, after = end, int(chosen[end - 1]) + 1
    if not is_rising:
        np.take(found, back, axis=0, out=out, mode="clip")


def _read_into(stream: Any, file: ColumnFile, offset: int, out: NDArray[Any]) -> None:
    """Fill a contiguous array with the bytes at ``offset`` of a file."""
    if not out.size:
        return
    stream.seek(offset)
    left = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    while len(left):
        n_read = stream.readinto(left)
        if not n_read:
            raise DataFileError(f"The file {file.path} has become shorter while it was read; open it again.")
        left = left[n_read:]


class ParquetFile(ColumnFile):
    """A Parquet file with one column for each feature; needs polars."""

    names: list[str]

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        polars = _polars()
        with self._explained(ValueError):
            frame = polars.scan_parquet(path)
            schema = frame.collect_schema()
            n_rows = frame.select(polars.len()).collect().item()
        for name, kind in schema.items():
            if not (kind.is_numeric() or kind == polars.Boolean):
                raise ValueError(
                    f"All columns of a Parquet file must be numeric. Column {name!r} of {path} has type {kind}; "
                    "encode it or leave it out."
                )
        self.names = schema.names()
        self.shape = (int(n_rows), len(self.names))
        single = all(kind == polars.Float32 for kind in schema.dtypes())
        self.dtype = np.dtype(np.float32 if single else np.float64)

    @contextmanager
    def _explained(self, kind: type[Exception]) -> Iterator[None]:
        polars = _polars()
        try:
            yield
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise kind(
                f"The file {self.path} cannot be read as a Parquet file ({reason}); write it again."
            ) from error

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        self.require_unchanged()
        polars = _polars()
        names = [self.names[column] for column in columns]
        out = np.empty((len(rows), len(names)), dtype=self.dtype, order="F")
        with self._explained(DataFileError):
            table = polars.read_parquet(self.path, columns=sorted(set(names)))
            for k, name in enumerate(names):
                out[:, k] = table.get_column(name).cast(polars.Float64).to_numpy()[as_selector(rows)]
        return out


def _annotated_file(path: Path) -> ColumnFile:
    from zeronorm.design._annotated import open_annotated

    return open_annotated(path)


FILE_TYPES: dict[str, Callable[[Path], ColumnFile]] = {
    ".npy": NpyFile,
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".h5ad": _annotated_file,
    ".zarr": _annotated_file,
}


def are_files(X: Any) -> bool:
    """Whether X is a path or a list of paths."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(path, (str, os.PathLike)) for path in X)
    return isinstance(X, (str, os.PathLike))


def open_files(X: Any, feature_names: NDArray[Any] | None = None, memory_budget: int | None = None) -> Design:
    """Return the design of the columns of one file, or of several files side by side."""
    memory_budget = DEFAULT_MEMORY_BUDGET if memory_budget is None else int(memory_budget)
    if memory_budget < 1:
        raise OptionError(
            f"must be a positive number of bytes. Got {memory_budget}.",
            "memory_budget",
        )
    files = [_open(Path(path)) for path in (X if isinstance(X, (list, tuple)) else [X])]
    for file in files[1:]:
        if file.shape[0] != files[0].shape[0]:
            raise ValueError(
                f"All files must hold the same samples. {files[0].path} has {files[0].shape[0]} rows and "
                f"{file.path} has {file.shape[0]}."
            )
    if feature_names is None and all(file.names is not None for file in files):
        feature_names = np.asarray([name for file in files for name in file.names or ()], dtype=object)
    own = files[0].design(feature_names, memory_budget) if len(files) == 1 else None
    if own is not None:
        return own
    width = ChunkedDesign(files, memory_budget=memory_budget)._block_width()
    files = [file.by_column(memory_budget, width) for file in files]
    return ChunkedDesign(files, feature_names, memory_budget=memory_budget)


def _open(path: Path) -> ColumnFile:
    if path.suffix not in FILE_TYPES:
        raise ValueError(
            f"The columns must be in files of type {', '.join(FILE_TYPES)}. Got {str(path)!r} instead; read "
            "other formats into an array first."
        )
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the path.")
    return FILE_TYPES[path.suffix](path)


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "Parquet files are read with polars, which is not installed; install zeronorm[app]."
        ) from error
    return polars
