"""Conversion of user data to a `Design`, with all checks of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from zeronorm._types import written
from zeronorm.design._array_api import from_array_api
from zeronorm.design._base import BACKENDS, Converter, Design
from zeronorm.design._chunked import are_files, open_files
from zeronorm.design._dask import from_dask, is_dask_array
from zeronorm.design._dense import DenseDesign
from zeronorm.design._devices import is_foreign_array
from zeronorm.design._finite import require_finite
from zeronorm.design._sparse import SparseDesign, check_structure
from zeronorm.execution import require_memory
from zeronorm.registry import load_extensions

_NUMERIC_KINDS = ("int", "uint", "float", "double", "bool", "complex", "sparse", "decimal")
REMOTE_ARRAYS = ("dask", "cupy", "torch", "array_api_strict")  # packages whose arrays are not copied to NumPy
_TIME_KINDS = ("datetime", "timedelta", "duration", "date", "time", "period")


def as_design(
    X: Any,
    *,
    feature_names: ArrayLike | None = None,
    allow_nan: bool = False,
    check_finite: bool = True,
    memory_budget: int | None = None,
) -> Design:
    """Return a `Design` for an array, a scipy sparse matrix, a pandas or polars data frame, or files.

    The data are not copied unless their type must change (integers, data frames).

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path, list of paths or Design
        The data. Paths of NumPy, Parquet or packed files, alone or side by side, and of AnnData (.h5ad, .zarr) are
        read in blocks and stay on disk; of AnnData the matrix X with the names of the variables.
    feature_names : array-like of str or None, default=None
        Names of the columns. None: those of a data frame, if it has any.
    allow_nan : bool, default=False
        Whether NaN is accepted. Infinity never is.
    check_finite : bool, default=True
        Whether all values are checked now, which takes one pass over the data. With False the caller must check
        them, for instance with the statistics of the columns.
    memory_budget : int or None, default=None
        Number of bytes that blocks read from files may take. None: 512 MiB.

    Returns
    -------
    Design
        The design of the data. A ``Design`` is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import as_design
    >>> as_design(np.eye(3)).shape
    (3, 3)
    """
    if isinstance(X, Design):
        return X
    names = None if feature_names is None else _names(feature_names)
    if type(X) is np.ndarray:
        design = _from_array(X, names)
    else:
        design = open_files(X, names, memory_budget) if are_files(X) else _converter_for(X)(X, names)
    if design.n_samples < 1 or design.n_features < 1:
        raise ValueError(
            f"X must have at least one row and one column. Found array with {design.n_samples} sample(s) "
            f"and {design.n_features} feature(s) (shape={design.shape})."
        )
    if names is not None and names.shape != (design.n_features,):
        raise ValueError(
            f"'feature_names' must name the {design.n_features} columns of X. Got {names.size} names instead."
        )
    if check_finite:
        require_finite(design, allow_nan)
    return design


def has_own_backend(X: Any) -> bool:
    """Whether X must not be converted to a NumPy array because its own backend reads and checks it."""
    if isinstance(X, np.ndarray):
        return False
    load_extensions()
    return type(X).__module__.split(".")[0] in REMOTE_ARRAYS or any(knows(X) for knows, _ in BACKENDS)


def _converter_for(X: Any) -> Converter:
    if not isinstance(X, np.ndarray):
        load_extensions()
    for recognizes, converter in (*BACKENDS, *_CONVERTERS):
        if recognizes(X):
            return converter
    return _from_array


def _from_array(X: Any, names: NDArray[Any] | None) -> Design:
    array = np.asarray(X)
    _check_dimensions(array.ndim)
    return DenseDesign(_as_float(array), names)


def _check_dimensions(n_dimensions: int) -> None:
    if n_dimensions != 2:
        raise ValueError(
            f"X must be two-dimensional, samples by features. Got {n_dimensions} dimension(s) instead; "
            "use X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one sample."
        )


def _from_rows(X: Any, names: NDArray[Any] | None) -> Design:
    check_container(X)
    return _from_array(X, names)


def _from_frame(X: Any, names: NDArray[Any] | None) -> Design:
    check_container(X)
    names = _names(list(X.columns)) if names is None else names
    return _from_array(X.to_numpy(), names)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "to_numpy") and len(getattr(X, "shape", ())) == 2


def _from_sparse(X: Any, names: NDArray[Any] | None) -> Design:
    check_container(X)
    floats = _as_float(X.data) if X.format in ("csr", "csc") else None
    if floats is None or floats.dtype != X.dtype:
        X = X.tocsr().astype(np.float64 if floats is None else floats.dtype)
    return SparseDesign(X, names)


def _from_sparse_frame(X: Any, names: NDArray[Any] | None) -> Design:
    names = _names(list(X.columns)) if names is None else names
    return _from_sparse(X.sparse.to_coo().tocsc(), names)


def check_container(X: Any) -> None:
    """Raise an error for damaged sparse matrices, paths, and tables that are not numeric or have unclear names."""
    if sparse.issparse(X):
        _check_dimensions(X.ndim)
        check_structure(X)
    elif are_files(X):
        kind = "the path of a file" if isinstance(X, (str, PathLike)) else "paths of files"
        raise ValueError(
            f"X must hold the data, not {kind}. Got {written(X):.60} instead; use as_design for files of columns, or "
            "zeronorm.select, which reads tables."
        )
    elif _is_frame(X):
        _check_names(list(X.columns))
        kinds = X.dtypes.tolist() if hasattr(X.dtypes, "tolist") else X.dtypes
        for name, kind in zip(X.columns, kinds, strict=True):
            if not str(kind).lower().startswith(_NUMERIC_KINDS):
                _check_column(X[name], name, kind)
            elif str(kind).startswith("Sparse") and np.isnan(getattr(kind, "fill_value", 0)):
                raise ValueError(
                    f"Sparse columns of X must leave out zeros. Column {written(name)} leaves out missing values; use "
                    "X.sparse.to_dense()."
                )
    elif isinstance(X, (list, tuple)):
        _check_rows(X)
    elif isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2:
        _check_cells(X)


def in_memory(X: Any, owner: object) -> Any:
    """The data for an estimator that computes on arrays: a design as one array, anything else checked and as it is."""
    if not isinstance(X, Design):
        check_container(X)
        return X
    require_memory(
        8 * X.n_samples * X.n_features,
        f"{type(owner).__name__} needs all data in memory, which",
        "select features first, with a method that reads the data in blocks.",
    )
    return X.block(slice(None))


def _check_column(column: Any, name: Any, kind: Any) -> None:
    if str(kind).lower().startswith(_TIME_KINDS):
        raise ValueError(
            f"All columns of X must be numeric. Column {written(name)} holds times ({kind}); turn it into numbers, "
            "for instance days since a date, or drop it."
        )
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"All columns of X must be numeric. Column {written(name)} of type {kind} is not: {error}; encode or drop "
            "it."
        ) from error


def _check_rows(rows: Sequence[Any]) -> None:
    """Raise an error that names the row for lists that are not a table; NumPy's own errors do not."""
    lengths = [len(row) if _is_row(row) else None for row in rows]
    first = next((row for row, length in enumerate(lengths) if length is not None), None)
    if first is None:
        return  # one dimension, which `_from_array` refuses
    for row, length in enumerate(lengths):
        if length is None:
            raise ValueError(
                f"The rows of X must have equal lengths. Row {first} has {lengths[first]} values, but row {row} is "
                f"no list of values: {written(rows[row]):.60}; give each row one value per feature."
            )
        if length != lengths[first]:
            raise ValueError(
                f"The rows of X must have equal lengths. Row {first} has {lengths[first]} values and row {row} has "
                f"{length}; give each row one value per feature."
            )
    try:
        table = np.asarray(rows)
    except ValueError:  # some cells are lists, others are not
        _check_cells(np.array([list(row) for row in rows], dtype=object))
        return
    if table.dtype.kind in "USO" and table.ndim == 2:
        _as_float(table)  # the error names the cell that is not a number


def _is_row(value: Any) -> bool:
    no_rows = (str, bytes, Mapping, Set)
    return hasattr(value, "__len__") and not isinstance(value, no_rows) and getattr(value, "ndim", 1) > 0


def _check_cells(X: NDArray[Any]) -> None:
    """Raise an error for the first cell of an array of objects that is a sequence."""
    for row, column in zip(*np.nonzero(np.frompyfunc(_is_sequence, 1, 1)(X).astype(bool)), strict=True):
        raise ValueError(
            f"X must be numeric. Row {row}, column {column} holds {written(X[row, column]):.60}; give one number per "
            "cell."
        )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0


def _check_names(names: list[Any]) -> None:
    seen = set()
    for position, name in enumerate(names):
        if name is None or name != name:
            raise ValueError(
                f"All columns of X must have names, but column {position} has no name; name it first."
            )
        if name in seen:
            raise ValueError(
                f"The names of the columns of X must differ, but two columns are called {written(name)}; rename one."
            )
        seen.add(name)


def _is_sparse_frame(X: Any) -> bool:
    """Whether X is a pandas frame whose columns are all sparse with fill value zero."""
    fill_values = [getattr(dtype, "fill_value", None) for dtype in getattr(X, "dtypes", ())]
    return _is_frame(X) and len(fill_values) > 0 and all(value == 0 for value in fill_values)


# The backends of this package; those registered by other packages are in BACKENDS.
_CONVERTERS: list[tuple[Callable[[Any], bool], Converter]] = [
    (sparse.issparse, _from_sparse),
    (is_dask_array, from_dask),
    (is_foreign_array, from_array_api),
    (_is_sparse_frame, _from_sparse_frame),
    (_is_frame, _from_frame),
    (lambda X: isinstance(X, (list, tuple)), _from_rows),
]


def _names(feature_names: ArrayLike | None) -> NDArray[Any] | None:
    return None if feature_names is None else np.asarray(feature_names, dtype=object)


def _as_float(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as native float32 or float64; arrays of these types are not copied."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X has complex values; take real parts or magnitudes.")
    try:
        return array.astype(
            np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
        )
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"X must be numeric. Got values of type {array.dtype} that cannot be converted{_first_no_number(array)}; "
            "encode or drop such columns."
        ) from error


def _first_no_number(array: NDArray[Any]) -> str:
    """Text for a message: the first value that cannot be converted to a number, with its row and column."""
    for index, value in np.ndenumerate(array):
        try:
            float(value)
        except (TypeError, ValueError):
            return (
                f", first {written(value):.60} in row {index[0]}, column {index[1]}"
                if len(index) == 2
                else ""
            )
    return ""


def contiguous(design: Design) -> Design:
    """Return the same data as one contiguous array if they are small or on a device, so that products are faster."""
    return design.in_memory(if_small=True)
