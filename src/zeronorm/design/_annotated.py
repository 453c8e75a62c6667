"""AnnData files, HDF5 (``.h5ad``) or Zarr: the matrix X stays on disk, dense or sparse, and is read in blocks.

Matrices stored by column, or in chunks of few columns, are read directly. A matrix stored by row is transposed
once, one band of consecutive rows at a time, into a temporary file in which every band is stored by column: a block
of columns is then one contiguous piece of each band. See `DenseBands` and `SparseBands`.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from zeronorm.design._base import Design
from zeronorm.design._chunked import ChunkedDesign, ColumnFile, DataFileError, read_lines
from zeronorm.design._finite import require_finite
from zeronorm.design._index import Index, as_selector, spans_of
from zeronorm.design._packing import full_disk_explained, is_running, require_room
from zeronorm.design._sparse import SparseDesign, SparseFileDesign, check_structure

BAND_FRACTION = 1 / 8  # of the memory budget, for the band of rows that is being transposed
MOST_DECODINGS = 2  # of one chunk per pass over the data; beyond that the matrix is transposed first
_FORMATS = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}


# -- HDF5 files and Zarr folders behind the same interface --


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open an HDF5 file or a Zarr folder for reading and yield its root group."""
    if path.is_dir():
        yield _package("zarr").open_group(_zarr_store(path), mode="r")
        return
    with _package("h5py").File(path, "r") as root:
        yield root


def _package(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise ImportError(
            f"AnnData files are read with {name}, which is not installed; install zeronorm[h5ad]."
        ) from error


def _zarr_store(path: Path) -> Any:
    """Return a store of zarr 2 or 3 for the folder; it raises an error for truncated Blosc chunks."""
    storage = _package("zarr").storage
    by_blosc = functools.cache(functools.partial(_is_by_blosc, path))

    def whole(key: str, found: Any) -> Any:
        folder, _, name = key.rpartition("/")
        if found is not None and not name.startswith((".z", "zarr.json")) and by_blosc(folder):
            _require_length(key, found)
        return found

    if not hasattr(storage, "LocalStore"):

        class Folder(storage.DirectoryStore):  # type: ignore[misc, name-defined]
            def __getitem__(self, key: str) -> Any:
                return whole(key, super().__getitem__(key))

        return Folder(str(path))

    class Store(storage.LocalStore):  # type: ignore[misc, name-defined]
        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            found = await super().get(key, prototype, byte_range)
            return whole(key, found) if byte_range is None else found

    return Store(path, read_only=True)


def _is_by_blosc(path: Path, folder: str) -> bool:
    """Whether the last codec of the array that this folder belongs to is Blosc."""
    folders = [path / folder, *(path / folder).parents]
    for ancestor in folders[: folders.index(path)]:
        for name in ("zarr.json", ".zarray"):
            if (ancestor / name).is_file():
                about = json.loads((ancestor / name).read_text(encoding="utf-8"))
                last = (about.get("codecs") or [about.get("compressor") or {}])[-1]
                return bool("blosc" in (last.get("name"), last.get("id")))
    return False


def _require_length(key: str, chunk: Any) -> None:
    """Raise an error for a truncated Blosc chunk: Blosc would read beyond its end in memory."""
    head = chunk[:16] if isinstance(chunk, bytes) else chunk[:16].to_bytes()
    stated = max(16, int.from_bytes(head[12:], "little"))
    if len(chunk) != stated:
        raise ValueError(f"the chunk {key} has {len(chunk)} bytes and must have {stated}")


@contextmanager
def explained(path: Path, kind: type[Exception]) -> Iterator[None]:
    """Turn any error of h5py or zarr into one that names the file."""
    try:
        yield
    except (DataFileError, ImportError, MemoryError):
        raise
    except Exception as error:  # h5py and zarr raise many types of errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(
            f"The file {path} cannot be read as AnnData: it is damaged, not complete, or something else "
            f"({reason}); write it again."
        ) from error


def open_annotated(path: Path) -> ColumnFile:
    """Open the matrix X of an AnnData file, dense or sparse."""
    with explained(path, ValueError), opened(path) as root:
        if "X" not in root:
            raise ValueError("it has no matrix X")
        is_sparse = not hasattr(root["X"], "shape")
    return StoredSparse(path) if is_sparse else StoredDense(path)


class StoredMatrix(ColumnFile):
    """Base class of dense and sparse matrices in AnnData files: feature names and the check for changes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path / "X" if path.is_dir() else path)
        self._root_path = path
        with explained(path, ValueError), opened(path) as root:
            self._describe(root["X"])
            self.names = _names(root, self.shape[1])

    def _describe(self, matrix: Any) -> None:
        raise NotImplementedError


def _names(root: Any, n_features: int) -> list[str] | None:
    """Names of the variables: the index of the table ``var``; None where it has none."""
    if "var" not in root or "_index" not in root["var"].attrs:
        return None
    found = _entries(root["var"][root["var"].attrs["_index"]])
    if found is None:
        return None
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in found.tolist()]
    if len(names) != n_features:
        raise ValueError(f"X has {n_features} columns and var names {len(names)}")
    return names


def _entries(column: Any) -> NDArray[Any] | None:
    """Values of a column that is plain, masked (anndata 0.13 or later) or categorical; None if entries are missing."""
    if hasattr(column, "shape"):
        return np.asarray(column[...])
    if "values" in column:
        is_missing = "mask" in column and bool(np.any(column["mask"][...]))
        return None if is_missing else np.asarray(column["values"][...])
    if "categories" in column:
        codes = np.asarray(column["codes"][...])
        return None if np.any(codes < 0) else np.asarray(column["categories"][...])[codes]
    return None


def _real(dtype: Any) -> np.dtype[Any]:
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind.kind not in "fiub":
        raise ValueError(f"X must hold real numbers and holds {kind}")
    return kind


# -- Dense matrices --


class StoredDense(StoredMatrix):
    """A dense matrix, contiguous by row or in chunks."""

    by_row = True

    def _describe(self, matrix: Any) -> None:
        if len(matrix.shape) != 2:
            raise ValueError(f"X must have two dimensions and has {len(matrix.shape)}")
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = _real(matrix.dtype)
        self._chunk = (1, 1) if matrix.chunks is None else tuple(int(size) for size in matrix.chunks)
        self.columns_at_once = self._chunk[1]

    def by_column(self, memory_budget: int, width: int) -> ColumnFile:
        if self.columns_at_once <= MOST_DECODINGS * width or self.columns_at_once == 1:
            return self
        n, p = self.shape
        height = int(memory_budget * BAND_FRACTION) // max(1, p * self.dtype.itemsize)
        height = max(1, height - height % self._chunk[0] if height > self._chunk[0] else height)
        bands = (self.read(range(top, min(top + height, n)), range(p)) for top in range(0, n, height))
        return DenseBands(bands, p, self.dtype, n * p * self.dtype.itemsize, self.names)

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        self.require_unchanged()
        spans, pick = spans_of(columns, self.columns_at_once)
        lines = as_selector(rows) if isinstance(rows, range) and rows.step == 1 else slice(None)
        with explained(self._root_path, DataFileError), opened(self._root_path) as root:
            parts = [root["X"][lines, start:stop] for start, stop in spans]
        block = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if pick is not None:
            block = block[:, pick]
        found: NDArray[Any] = block if lines != slice(None) else block[as_selector(rows)]
        return found


class DenseBands(ColumnFile):
    """A dense matrix in a temporary file, as consecutive bands of rows that are each stored by column."""

    def __init__(
        self,
        bands: Iterable[NDArray[Any]],
        n_features: int,
        dtype: np.dtype[Any],
        n_bytes: int,
        names: list[str] | None = None,
    ) -> None:
        self._scratch = Scratch(n_bytes)
        self.dtype, self.names = dtype, names
        tops = [0]
        with self._scratch.writing() as stream:
            for band in bands:
                np.ascontiguousarray(band.T, dtype=dtype).tofile(stream)
                tops.append(tops[-1] + band.shape[0])
        self.shape = (tops[-1], n_features)
        self._bands = [range(top, bottom) for top, bottom in itertools.pairwise(tops)]
        super().__init__(self._scratch.path)

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        self.require_unchanged()
        out = np.empty((len(columns), self.shape[0]), dtype=self.dtype)
        for band in self._bands:
            offset = band.start * self.shape[1] * self.dtype.itemsize
            out[:, band.start : band.stop] = read_lines(self, offset, len(band), columns, range(len(band)))
        return out.T[as_selector(rows)]


# -- Sparse matrices --


class StoredSparse(StoredMatrix):
    """A sparse matrix, compressed by row or by column."""

    def _describe(self, matrix: Any) -> None:
        attributes: dict[str, Any] = dict(matrix.attrs)
        encoding = attributes.get("encoding-type", attributes.get("h5sparse_format"))
        if encoding not in _FORMATS:
            raise ValueError(f"X must be an array or a compressed sparse matrix and is {encoding!r}")
        self._format = _FORMATS[encoding]
        n, p = (int(size) for size in attributes.get("shape", attributes.get("h5sparse_shape", ())))
        self.shape, self.dtype = (n, p), _real(matrix["data"].dtype)
        bounds = np.asarray(matrix["indptr"][...], dtype=np.int64)
        self.n_stored = int(matrix["data"].shape[0])
        ends = (bounds.size, *bounds[[0, -1]], int(matrix["indices"].shape[0]))
        n_lines = n if self._format == "csr" else p
        if ends != (n_lines + 1, 0, self.n_stored, self.n_stored) or np.any(np.diff(bounds) < 0):
            raise ValueError("the parts of the sparse matrix X do not fit together")
        self._bounds = bounds

    @property
    def stored_per_column(self) -> NDArray[np.int64]:
        return np.diff(self._bounds)

    def design(self, names: NDArray[Any] | None, memory_budget: int) -> Design:
        """Return a design in memory if it takes at most a quarter of the budget, otherwise one that reads from disk."""
        entry = self.dtype.itemsize + 4
        if 4 * entry * self.n_stored + 16 * (sum(self.shape) + 2) <= memory_budget:
            lines = range(self.shape[0] if self._format == "csr" else self.shape[1])
            return SparseDesign(_as_float(self._lines(lines)), names)
        if self._format == "csc":
            return SparseFileDesign(self, names, memory_budget=memory_budget)
        most = max(1, int(memory_budget * BAND_FRACTION) // entry)
        bands = (_as_float(self._lines(rows)).tocsc() for rows in _cut(self._bounds, most))
        columns = SparseBands(bands, self.shape[1], 2 * entry * self.n_stored, self.names)
        return SparseFileDesign(columns, names, memory_budget=memory_budget)

    def _lines(self, lines: range) -> Any:
        """Return consecutive rows (CSR) or columns (CSC) as a sparse matrix with a checked structure."""
        self.require_unchanged()
        start, stop = int(self._bounds[lines.start]), int(self._bounds[lines.stop])
        with explained(self._root_path, DataFileError), opened(self._root_path) as root:
            data, indices = root["X"]["data"][start:stop], root["X"]["indices"][start:stop]
        bounds = self._bounds[lines.start : lines.stop + 1] - start
        # Indices and bounds have the same integer type; otherwise SciPy converts one of them.
        index = np.int32 if max(self.n_stored, *self.shape) < 2**31 else np.int64
        arrays = data, indices.astype(index, copy=False), bounds.astype(index, copy=False)
        by_row = self._format == "csr"
        make = sparse.csr_array if by_row else sparse.csc_array
        shape = (len(lines), self.shape[1]) if by_row else (self.shape[0], len(lines))
        with explained(self._root_path, DataFileError):
            if not np.array_equal(arrays[1], indices):  # too large for int32
                raise ValueError(
                    f"'indices' holds {indices[arrays[1] != indices][0]}, which is not a row or column"
                )
            found = make(arrays, shape=shape)
            check_structure(found)
        found.sum_duplicates()
        return found

    def stored(self, columns: range) -> Any:
        """Return consecutive columns of a matrix in CSC format."""
        return _as_float(self._lines(columns))

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        raise ValueError(
            f"The sparse matrix of {self._root_path} cannot be combined with other files; pass it alone."
        )


def _as_float(matrix: Any) -> Any:
    """Return the sparse matrix with values in float32 or float64."""
    single = matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 4
    return matrix.astype(np.float32 if single else np.float64, copy=False)


def _cut(bounds: NDArray[np.int64], most: int) -> Iterator[range]:
    """Yield ranges of consecutive lines that hold at most ``most`` stored values, or one line with more."""
    start, end = 0, bounds.size - 1
    while start < end:
        stop = int(np.searchsorted(bounds, bounds[start] + most, side="right")) - 1
        stop = min(max(stop, start + 1), end)
        yield range(start, stop)
        start = stop


class SparseBands(ColumnFile):
    """A sparse matrix in a temporary file, as consecutive bands of rows that are each in CSC format."""

    def __init__(
        self, bands: Iterable[Any], n_features: int, n_bytes: int, names: list[str] | None = None
    ) -> None:
        self._scratch = Scratch(n_bytes)
        self.names, self.dtype = names, np.dtype(np.float64)
        self.stored_per_column = np.zeros(n_features, dtype=np.int64)
        self._bands: list[tuple[int, int, int]] = []  # offset in bytes, rows, stored values
        with self._scratch.writing() as stream:
            for band in bands:
                self.dtype = band.dtype
                self.stored_per_column += np.diff(band.indptr)
                self._bands.append((stream.tell(), band.shape[0], band.nnz))
                for array, kind in (
                    (band.indptr, np.int64),
                    (band.indices, np.int32),
                    (band.data, self.dtype),
                ):
                    array.astype(kind, copy=False).tofile(stream)
        self.shape = (sum(n_rows for _, n_rows, _ in self._bands), n_features)
        super().__init__(self._scratch.path)

    def stored(self, columns: range) -> Any:
        """Return consecutive columns of all bands as one matrix in CSC format."""
        self.require_unchanged()
        parts = []
        with open(self.path, "rb") as stream:
            for offset, n_rows, n_stored in self._bands:
                bounds = self._array(stream, offset + 8 * columns.start, len(columns) + 1, np.int64)
                start, count = int(bounds[0]), int(bounds[-1] - bounds[0])
                position = offset + 8 * (self.shape[1] + 1)
                indices = self._array(stream, position + 4 * start, count, np.int32)
                position += 4 * n_stored
                data = self._array(stream, position + self.dtype.itemsize * start, count, self.dtype)
                arrays = data, indices, bounds - start
                parts.append(sparse.csc_array(arrays, shape=(n_rows, len(columns))))
        found = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csc")
        found.has_canonical_format = True
        return found

    def _array(self, stream: Any, position: int, count: int, dtype: Any) -> NDArray[Any]:
        stream.seek(position)
        found: NDArray[Any] = np.fromfile(stream, dtype=dtype, count=count)
        if found.size != count:
            raise DataFileError(f"The temporary file {self.path} has become shorter; open the data again.")
        return found

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        raise NotImplementedError("sparse columns are read by `stored`")


def design_of_rows(
    bands: Iterable[Any], n_features: int, memory_budget: int, n_bytes: int, *, is_sparse: bool
) -> Design:
    """Return the design of rows that arrive band by band, for formats that can only be read sequentially.

    Parameters
    ----------
    bands : arrays, or sparse matrices, of some rows and all features
    n_bytes : estimated size of the temporary file
    """
    design: Design
    if is_sparse:
        by_column = (_as_float(band).tocsc() for band in bands)
        sparse_columns = SparseBands(by_column, n_features, n_bytes)
        design = SparseFileDesign(sparse_columns, memory_budget=memory_budget)
    else:
        design = ChunkedDesign(
            [DenseBands(bands, n_features, np.dtype(np.float64), n_bytes)], memory_budget=memory_budget
        )
    require_finite(design)
    return design


# -- Temporary files --


class Scratch:
    """A temporary file that is removed together with this object; copies in other processes only read it."""

    _PREFIX, _SUFFIX = "zeronorm-", ".bands"

    def __init__(self, n_bytes: int) -> None:
        folder = Path(tempfile.gettempdir())
        for abandoned in folder.glob(f"{self._PREFIX}*{self._SUFFIX}"):
            if not is_running(abandoned.name.split("-")[1]):
                abandoned.unlink(missing_ok=True)
        name = f"{self._PREFIX}{os.getpid()}-"
        handle, file = tempfile.mkstemp(prefix=name, suffix=self._SUFFIX, dir=folder)
        os.close(handle)
        self.path = Path(file)
        weakref.finalize(self, _remove, self.path, os.getpid())
        require_room(self.path, n_bytes)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Open the file for writing."""
        with full_disk_explained(self.path), open(self.path, "wb") as stream:
            yield stream

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}


def _remove(path: Path, maker: int) -> None:
    if os.getpid() == maker:
        path.unlink(missing_ok=True)
