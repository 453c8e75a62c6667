"""A design whose columns stay in files: NumPy or Parquet, one file or several side by side."""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design.base import Design
from zeronorm.design.index import Index, as_index, as_selector, compose


class ChunkedDesign(Design):
    """Columns in files, read block by block as they are needed and never all at once.

    Each file holds all samples of some features; several files stand side by side. A NumPy file is
    mapped into memory, and the system keeps in memory what fits. A Parquet file is decoded again at
    every reading: for methods that read the data many times, convert it to a NumPy file first.
    """

    def __init__(
        self,
        files: Sequence[ColumnFile],
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
    ) -> None:
        self._files = tuple(files)
        self._starts = np.concatenate([[0], np.cumsum([file.shape[1] for file in files])])
        self._rows: Index = range(files[0].shape[0]) if rows is None else rows
        self._columns: Index = range(int(self._starts[-1])) if columns is None else columns
        single = all(file.dtype == np.float32 for file in files)
        dtype = np.dtype(np.float32 if single else np.float64)
        super().__init__((len(self._rows), len(self._columns)), dtype, feature_names)

    def _take(self, columns: Index) -> ChunkedDesign:
        chosen = compose(self._columns, columns)
        return ChunkedDesign(self._files, self._names_of(columns), rows=self._rows, columns=chosen)

    def _take_rows(self, rows: Index) -> ChunkedDesign:
        chosen = compose(self._rows, rows)
        return ChunkedDesign(self._files, self.feature_names, rows=chosen, columns=self._columns)

    def _fill(self, columns: Index, out: FloatArray) -> None:
        wanted = np.asarray(compose(self._columns, columns), dtype=np.intp)
        home = np.searchsorted(self._starts, wanted, side="right") - 1
        for number in np.unique(home):
            file, here = self._files[number], np.flatnonzero(home == number)
            local = as_index(wanted[here] - self._starts[number], file.shape[1], "column")
            target = as_selector(as_index(here, out.shape[1], "column"))
            out[:, target] = file.read(self._rows, local)


class ColumnFile(ABC):
    """One file with all samples of some features."""

    def __init__(self, path: Path) -> None:
        self.path = path

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: list[str] | None

    @abstractmethod
    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        """Return the rows of the columns."""


class NpyFile(ColumnFile):
    """A two-dimensional array saved by ``numpy.save``; only its path is pickled."""

    names = None

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if self._mapped.ndim != 2 or self._mapped.dtype.kind not in "fiub":
            raise ValueError(
                f"A NumPy file must hold a two-dimensional array of real numbers, samples by features. {path} "
                f"holds {self._mapped.ndim} dimension(s) of type {self._mapped.dtype}."
            )
        self.shape = cast("tuple[int, int]", self._mapped.shape)
        self.dtype = self._mapped.dtype

    @functools.cached_property
    def _mapped(self) -> NDArray[Any]:
        return cast("NDArray[Any]", np.load(self.path, mmap_mode="r", allow_pickle=False))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_mapped"}

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        if isinstance(rows, range):
            return self._mapped[as_selector(rows), as_selector(columns)]
        return self._mapped[:, as_selector(columns)][rows]


class ParquetFile(ColumnFile):
    """A table saved as Parquet, one column for each feature; needs polars."""

    names: list[str]

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        frame = _polars().scan_parquet(path)
        schema = frame.collect_schema()
        for name, kind in schema.items():
            if not (kind.is_numeric() or kind == _polars().Boolean):
                raise ValueError(
                    f"All columns of a Parquet file must be numeric. Column {name!r} of {path} has type {kind}; "
                    "encode it or leave it out."
                )
        self.names = schema.names()
        n_rows = frame.select(_polars().len()).collect().item()
        self.shape = (int(n_rows), len(self.names))
        single = all(kind == _polars().Float32 for kind in schema.dtypes())
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        names = [self.names[column] for column in columns]
        table = _polars().read_parquet(self.path, columns=sorted(set(names)))
        out = np.empty((len(rows), len(names)), dtype=self.dtype, order="F")
        for k, name in enumerate(names):
            out[:, k] = table.get_column(name).cast(_polars().Float64).to_numpy()[as_selector(rows)]
        return out


FILE_TYPES: dict[str, type[NpyFile] | type[ParquetFile]] = {
    ".npy": NpyFile,
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
}


def are_files(X: Any) -> bool:
    """Tell whether X is a path or a list of paths."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(path, (str, os.PathLike)) for path in X)
    return isinstance(X, (str, os.PathLike))


def open_files(X: Any, feature_names: NDArray[Any] | None = None) -> ChunkedDesign:
    """Return the design of the columns in one file, or in several files side by side."""
    files = [_open(Path(path)) for path in (X if isinstance(X, (list, tuple)) else [X])]
    for file in files[1:]:
        if file.shape[0] != files[0].shape[0]:
            raise ValueError(
                f"All files must hold the same samples. {files[0].path} has {files[0].shape[0]} rows and "
                f"{file.path} has {file.shape[0]}."
            )
    if feature_names is None and all(file.names is not None for file in files):
        feature_names = np.asarray([name for file in files for name in file.names or ()], dtype=object)
    return ChunkedDesign(files, feature_names)


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
