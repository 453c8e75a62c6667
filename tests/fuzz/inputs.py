"""The table of odd and bad inputs: each row makes X, y and parameters of the selector.

A row says what is allowed: ``ANY`` outcome that is no defect, only a fit that ``WORKS``, or only a ``REFUSED``
one. "Works" is asked of inputs that merely look strange, "refused" of those that no answer could be right for.
"""

from __future__ import annotations

import datetime
import decimal
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

ANY, WORKS, REFUSED = "any", "works", "refused"
N, P = 24, 8


@dataclass(frozen=True)
class Case:
    X: Any
    y: Any
    params: dict[str, Any] = field(default_factory=dict)
    fit_params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One input: ``make(X, y, regression)`` gets clean data and returns a case."""

    name: str
    allowed: str
    make: Callable[[np.ndarray, np.ndarray, bool], Case]


ROWS: dict[str, Row] = {}


def is_regression(selector: Any) -> bool:
    return selector._task_name() == "regression"


def clean_data(regression: bool, n: int = N, p: int = P, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a signal in the features 1 and 4; classes have a margin, as hard margins ask."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = 2.0 * X[:, 1] + X[:, 4] + 0.3 * rng.normal(size=n)
    if regression:
        return X, signal
    y = (signal > np.median(signal)).astype(int)
    X[:, 1] += 1.5 * (2 * y - 1)
    return X, y


def _add(name: str, allowed: str, make: Callable[..., Case]) -> None:
    assert name not in ROWS, name
    ROWS[name] = Row(name, allowed, make)


def _x(name: str, allowed: str, change: Callable[[np.ndarray], Any]) -> None:
    _add(name, allowed, lambda X, y, regression: Case(change(X), y))


def _y(name: str, allowed: str, change: Callable[[np.ndarray], Any]) -> None:
    _add(name, allowed, lambda X, y, regression: Case(X, change(y)))


def _with(X: np.ndarray, index: Any, value: Any) -> np.ndarray:
    changed = X.copy()
    changed[index] = value
    return changed


# -- types ----------------------------------------------------------------------------------------------

for _dtype in ("float32", "float16", "longdouble", ">f8"):
    _x(f"type {_dtype}", WORKS, lambda X, t=_dtype: X.astype(t))
for _dtype in ("int8", "int64", "uint16"):
    _x(f"type {_dtype}", ANY, lambda X, t=_dtype: np.abs(20 * X).astype(t))
_x("type bool", ANY, lambda X: X > 0)
_x("object numbers", WORKS, lambda X: X.astype(object))
_x("object with None", ANY, lambda X: _with(X.astype(object), (3, 2), None))
_x("object with text", REFUSED, lambda X: _with(X.astype(object), (3, 2), "high"))
_x("object with a list", REFUSED, lambda X: _with(X.astype(object), (3, 2), [1, 2]))
_x("decimals", ANY, lambda X: np.vectorize(lambda v: decimal.Decimal(str(v)), otypes=[object])(X))
_x("text of numbers", ANY, lambda X: X.astype(str))
_x("complex", REFUSED, lambda X: X.astype(complex))
_x("datetimes", ANY, lambda X: (1e9 * X).astype("datetime64[s]"))
_x("timedeltas", ANY, lambda X: (1e9 * X).astype("timedelta64[s]"))
_x("records", REFUSED, lambda X: np.zeros(N, dtype=[("a", float), ("b", float)]))
_x("a dict", REFUSED, lambda X: {"a": X[:, 0], "b": X[:, 1]})
_x("a string", REFUSED, lambda X: "no such file.npy")
_x("None", REFUSED, lambda X: None)
_x("a generator", REFUSED, lambda X: (row for row in X))

# -- containers and memory orders -----------------------------------------------------------------------


def _mapped(X: np.ndarray, mode: str) -> np.memmap:
    handle, path = tempfile.mkstemp(suffix=".bin")
    os.close(handle)
    X.tofile(path)
    mapped = np.memmap(path, dtype=X.dtype, mode=mode, shape=X.shape)
    os.unlink(path)
    return mapped


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _unaligned(X: np.ndarray) -> np.ndarray:
    buffer = np.zeros(X.nbytes + 1, dtype=np.uint8)[1:]
    view = buffer.view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


_x("Fortran order", WORKS, np.asfortranarray)
_x("strided", WORKS, lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3])
_x("negative strides", WORKS, lambda X: X[:, ::-1])
_x("read-only", WORKS, _read_only)
_x("unaligned", WORKS, _unaligned)
_x("mapped", WORKS, lambda X: _mapped(X, "r+"))
_x("mapped read-only", WORKS, lambda X: _mapped(X, "r"))
_x("masked, nothing hidden", WORKS, np.ma.masked_array)
_x("masked", ANY, lambda X: np.ma.masked_array(X, mask=np.abs(X) > 2))
_x("lists", WORKS, lambda X: X.tolist())
_x("ragged lists", REFUSED, lambda X: [*X.tolist()[:-1], [1.0]])
_x("one row broadcast", ANY, lambda X: np.broadcast_to(X[0], X.shape))
_x("one column broadcast", ANY, lambda X: np.broadcast_to(X[:, 1:2], X.shape))

# -- shapes ---------------------------------------------------------------------------------------------


def _rows(n: int) -> Callable[..., Case]:
    return lambda X, y, regression: Case(X[:n], y[:n])


_add("no rows", REFUSED, _rows(0))
_add("one row", REFUSED, _rows(1))
_add("two rows", ANY, lambda X, y, regression: Case(X[np.argsort(y)[[0, -1]]], y[np.argsort(y)[[0, -1]]]))
_add("three rows", ANY, _rows(3))
_x("no columns", REFUSED, lambda X: X[:, :0])
_x("one column", ANY, lambda X: X[:, 1:2])
_x("two columns", ANY, lambda X: X[:, :2])
_x("one dimension", REFUSED, lambda X: X[:, 0])
_x("three dimensions", REFUSED, lambda X: X[:, :, None])
_x("a scalar", REFUSED, lambda X: np.float64(3.0))
_add("wide", ANY, lambda X, y, regression: Case(*clean_data(regression, p=300)))
_add("tall", ANY, lambda X, y, regression: Case(*clean_data(regression, n=400, p=5)))

# -- values ---------------------------------------------------------------------------------------------

_x("one constant column", ANY, lambda X: _with(X, np.s_[:, 2], 0.1))
_x("all columns constant", ANY, lambda X: np.full_like(X, 3.0))
_x("zeros", ANY, np.zeros_like)
_x("two equal columns", ANY, lambda X: _with(X, np.s_[:, 6], X[:, 1]))
_x("two mirrored columns", ANY, lambda X: _with(X, np.s_[:, 6], -X[:, 1]))
_x("all columns equal", ANY, lambda X: np.repeat(X[:, 1:2], P, axis=1))
_x("rank one", ANY, lambda X: np.outer(X[:, 1], np.arange(1, P + 1)))
_x("almost equal columns", ANY, lambda X: X[:, 1:2] + 1e-14 * X)
_x("few values", ANY, lambda X: np.sign(X))
_x("one sample differs", ANY, lambda X: _with(np.zeros_like(X), 5, X[5]))
_x("each row twice", ANY, lambda X: np.repeat(X[: N // 2], 2, axis=0))
_add("a column is the target", ANY, lambda X, y, regression: Case(_with(X, np.s_[:, 3], y), y))
_add(
    "a contradiction in the rows",
    ANY,
    lambda X, y, regression: Case(np.repeat(X[: N // 2], 2, axis=0), np.arange(N) % 2),
)
for _unit in (1e-300, 1e-160, 1e-30, 1e30, 1e140, 1e160, 1e300):
    _x(f"unit {_unit:g}", ANY, lambda X, u=_unit: X * u)
_x("denormals", ANY, lambda X: np.round(X) * 5e-324)
_x("units over 24 decades", ANY, lambda X: X * np.logspace(-12, 12, P))
_x("one unit of 1e9", ANY, lambda X: X * np.where(np.arange(P) == 6, 1e9, 1.0))
for _offset in (1e6, 1e9, 1e15, 1e300):
    _x(f"offset {_offset:g}", ANY, lambda X, o=_offset: X + o)
_x("one value 1e6", ANY, lambda X: _with(X, (5, 7), 1e6))
_x("one value 1e308", ANY, lambda X: _with(X, (5, 7), 1e308))
_x("values of ±1e308", ANY, lambda X: np.where(X > 0, 1e308, -1e308))
_x("float32 at its largest", ANY, lambda X: np.where(X > 0, 3e38, -3e38).astype(np.float32))
_x("one NaN", ANY, lambda X: _with(X, (5, 7), np.nan))
_x("a column of NaN", ANY, lambda X: _with(X, np.s_[:, 2], np.nan))
_x("all NaN", REFUSED, lambda X: np.full_like(X, np.nan))
_x("one infinity", REFUSED, lambda X: _with(X, (5, 7), np.inf))
_x("minus infinity", REFUSED, lambda X: _with(X, (0, 0), -np.inf))
_x("negative zeros", ANY, lambda X: np.where(X > 0, X, -0.0))

# -- targets --------------------------------------------------------------------------------------------

_y("y of text", ANY, lambda y: np.where(y > np.median(y), "tumour", "normal"))
_y("y of bytes", ANY, lambda y: np.where(y > np.median(y), b"t", b"n"))
_y("y of booleans", ANY, lambda y: y > np.median(y))
_y("y of floats", ANY, lambda y: y + 0.0)
_y("y as objects", ANY, lambda y: y.astype(object))
_y("y with None", REFUSED, lambda y: _with(y.astype(object), 4, None))
_y("y with NaN", REFUSED, lambda y: _with(y.astype(float), 4, np.nan))
_y("y with infinity", REFUSED, lambda y: _with(y.astype(float), 4, np.inf))
_y("y mixes text and numbers", REFUSED, lambda y: _with(y.astype(object), 4, "high"))
_y("y None", REFUSED, lambda y: None)
_y("y scalar", REFUSED, lambda y: 1)
_y("y empty", REFUSED, lambda y: y[:0])
_y("y too short", REFUSED, lambda y: y[:-1])
_y("y too long", REFUSED, lambda y: np.append(y, y[0]))
_y("y a list", WORKS, lambda y: y.tolist())
_y("y a series", WORKS, lambda y: pd.Series(y, index=np.arange(N)[::-1]))
_y("y a polars series", WORKS, pl.Series)
_y("y categorical", ANY, lambda y: pd.Series(pd.Categorical(np.where(y > np.median(y), "a", "b"))))
_y("y of dates", ANY, lambda y: np.where(y > np.median(y), 1, 2).astype("datetime64[D]"))
_y("y two columns", ANY, lambda y: np.column_stack([y, y]))
_y("y one column", ANY, lambda y: y[:, None])
_y("y sparse", ANY, lambda y: sparse.csr_array(y[:, None]))
_y("y complex", REFUSED, lambda y: y.astype(complex))
_y("y read-only", WORKS, _read_only)
_y("y one value", ANY, np.zeros_like)
_y("y all different", ANY, lambda y: np.arange(N))
_y("y three classes", ANY, lambda y: np.arange(N) % 3)
_y("y one rare class", ANY, lambda y: (np.arange(N) == 5).astype(int))
_y("y times 1e200", ANY, lambda y: y * 1e200)
_y("y times 1e300", ANY, lambda y: y * 1e300)
_y("y times 1e-200", ANY, lambda y: y * 1e-200)
_y("y plus 1e12", ANY, lambda y: y + 1e12)

# -- sparse matrices ------------------------------------------------------------------------------------


def _thin(X: np.ndarray) -> np.ndarray:
    return np.where(np.abs(X) > 0.7, X, 0.0)


def _damaged(array: str, index: Any, value: Any, make: Any = sparse.csr_array) -> Callable[..., Any]:
    def change(X: np.ndarray) -> Any:
        matrix = make(_thin(X))
        getattr(matrix, array)[index] = value
        return matrix

    return change


def _shortened(X: np.ndarray) -> Any:
    matrix = sparse.csr_array(_thin(X))
    matrix.data = matrix.data[:-4]
    return matrix


def _twice_stored(X: np.ndarray) -> Any:
    matrix = sparse.coo_array(_thin(X))
    rows, columns = (np.tile(c, 2) for c in matrix.coords)
    return sparse.coo_array((np.tile(matrix.data / 2, 2), (rows, columns)), shape=X.shape)


def _unsorted(X: np.ndarray) -> Any:
    matrix = sparse.csr_array(_thin(X))
    for row in range(X.shape[0]):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        matrix.indices[part], matrix.data[part] = matrix.indices[part][::-1], matrix.data[part][::-1]
    matrix.has_sorted_indices = False
    return matrix


for _format in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
    _x(f"sparse {_format}", ANY, lambda X, f=_format: sparse.csr_array(_thin(X)).asformat(f))
_x("sparse matrix of old", ANY, lambda X: sparse.csc_matrix(_thin(X)))
_x("sparse float32", ANY, lambda X: sparse.csr_array(_thin(X).astype(np.float32)))
_x("sparse integers", ANY, lambda X: sparse.csr_array(_thin(X).astype(int)))
_x("sparse booleans", ANY, lambda X: sparse.csr_array(_thin(X) != 0))
_x("sparse without values", ANY, lambda X: sparse.csr_array(X.shape))
_x("sparse without rows", REFUSED, lambda X: sparse.csr_array((0, P)))
for _format in ("csr", "coo", "dok"):
    _x(
        f"sparse {_format} of one dimension",
        REFUSED,
        lambda X, f=_format: sparse.coo_array(X[:, 1]).asformat(f),
    )
_y("y sparse of one dimension", ANY, lambda y: sparse.coo_array(y))
_x("seconds since 1970 and one 0", ANY, lambda X: _with(np.round(1.7e9 + 10 * X), (5, 1), 0.0))
_x("sparse unsorted", ANY, _unsorted)
_x("sparse, entries stored twice", ANY, _twice_stored)
_x("sparse with stored zeros", ANY, _damaged("data", np.s_[:20], 0.0))
_x("sparse with NaN", ANY, _damaged("data", 3, np.nan))
_x("sparse with infinity", REFUSED, _damaged("data", 3, np.inf))
_x("sparse times 1e300", ANY, lambda X: sparse.csc_array(1e300 * _thin(X)))
for _make in (sparse.csr_array, sparse.csc_array):
    _kind = _make.__name__
    _x(f"{_kind} index too large", REFUSED, _damaged("indices", 3, 10**6, _make))
    _x(f"{_kind} index negative", REFUSED, _damaged("indices", 3, -7, _make))
    _x(f"{_kind} pointer falls", REFUSED, _damaged("indptr", 4, 0, _make))
    _x(f"{_kind} pointer beyond the end", REFUSED, _damaged("indptr", -1, 10**6, _make))
_x("sparse with values missing", REFUSED, _shortened)

# -- data frames ----------------------------------------------------------------------------------------


def _frame(X: np.ndarray, names: Any = None) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])] if names is None else names)


def _changed(name: str, values: Callable[[pd.DataFrame], Any]) -> Callable[[np.ndarray], pd.DataFrame]:
    return lambda X: _frame(X).assign(**{name: values})


_x("frame", WORKS, _frame)
_x("frame with a shuffled index", WORKS, lambda X: _frame(X).set_index(np.arange(N)[::-1]))
_x(
    "frame with odd names",
    WORKS,
    lambda X: _frame(X, ["=1+1", "a\nb", "", " ", "\x1b[31m", "Ünïcødé", "a" * 5000, "<b>"]),
)
_x("frame with whole numbers as names", WORKS, lambda X: _frame(X, list(range(P))))
_x("frame with mixed names", ANY, lambda X: _frame(X, [0, "b", 2, "d", 4, "f", 6, "h"]))
_x("frame with tuples as names", ANY, lambda X: _frame(X, pd.MultiIndex.from_product([["a", "b"], range(4)])))
_x("frame with equal names", REFUSED, lambda X: _frame(X, ["a"] * P))
_x("frame with a name missing", REFUSED, lambda X: _frame(X, [None, *"bcdefgh"]))
_x("frame with NaN as a name", REFUSED, lambda X: _frame(X, [np.nan, *"bcdefgh"]))
_x("frame with dates", REFUSED, _changed("gene 2", lambda d: pd.date_range("2020", periods=len(d))))
_x("frame with date objects", REFUSED, _changed("gene 2", lambda d: [datetime.date(2020, 1, 1)] * len(d)))
_x("frame with text", REFUSED, _changed("gene 2", lambda d: ["high"] * len(d)))
_x("frame with categories", REFUSED, _changed("gene 2", lambda d: pd.Categorical(["a", "b"] * (len(d) // 2))))
_x("frame with booleans", ANY, _changed("gene 2", lambda d: d["gene 2"] > 0))
_x(
    "frame with missing whole numbers",
    ANY,
    _changed("gene 2", lambda d: pd.array([None, *range(N - 1)], "Int64")),
)
_x("frame of nullable floats", ANY, lambda X: _frame(X).convert_dtypes())
_x("frame, sparse", ANY, lambda X: _frame(_thin(X)).astype(pd.SparseDtype("float64", 0.0)))
_x("frame, sparse with NaN left out", ANY, lambda X: _frame(X).astype(pd.SparseDtype("float64", np.nan)))
_x("frame without rows", REFUSED, lambda X: _frame(X).iloc[:0])
_x("frame without columns", REFUSED, lambda X: _frame(X)[[]])
_x("polars frame", WORKS, lambda X: pl.DataFrame(X, schema=[f"gene {i}" for i in range(P)]))
_x(
    "polars frame with nulls",
    ANY,
    lambda X: pl.DataFrame({"a": [None, *X[1:, 0]], "b": X[:, 1], "c": X[:, 4]}),
)
_x(
    "polars frame with dates",
    REFUSED,
    lambda X: pl.DataFrame({"a": [datetime.date(2020, 1, 1)] * N, "b": X[:, 1]}),
)
_x("a series", REFUSED, lambda X: pd.Series(X[:, 0]))

# -- parameters of the selector -------------------------------------------------------------------------


def _params(name: str, allowed: str, **params: Any) -> None:
    _add(name, allowed, lambda X, y, regression: Case(X, y, params=params))


def _weighted(name: str, allowed: str, weight: Any) -> None:
    _add(name, allowed, lambda X, y, regression: Case(X, y, fit_params={"sample_weight": weight}))


_params("groups as labels", ANY, feature_groups=np.arange(P) // 2)
_params("groups of text", ANY, feature_groups=list("aabbccdd"))
_params("groups as a dict", ANY, feature_groups={"one": [0, 1, 2], "two": [3, 4], "three": [5, 6, 7]})
_params("groups, one for all", ANY, feature_groups=[0] * P)
_params("groups too short", REFUSED, feature_groups=[0, 1])
_params("groups with NaN", REFUSED, feature_groups=[np.nan, *range(P - 1)])
_params("groups with None", REFUSED, feature_groups=[None, *range(P - 1)])
_params("groups that overlap", REFUSED, feature_groups={"one": [0, 1, 2], "two": [2, 3]})
_params("groups beyond the columns", REFUSED, feature_groups={"one": [0, 99]})
_params("groups in two dimensions", REFUSED, feature_groups=np.zeros((2, P)))
_params("groups by a number", REFUSED, feature_groups=3)
_params("groups and size that do not fit", ANY, feature_groups=[0] * P, n_features_to_select=2)
_params("kept features", ANY, always_keep=[7, 0])
_params("kept features as a mask", ANY, always_keep=np.arange(P) == 2)
_params("kept features from the end", ANY, always_keep=[-1])
_params("kept features beyond the columns", REFUSED, always_keep=[99])
_params("kept features by name without names", REFUSED, always_keep=["gene 2"])
_params("kept features as text", REFUSED, always_keep="gene 2")
_params("kept features of NaN", REFUSED, always_keep=[np.nan])
_params("more kept than wanted", ANY, always_keep=[1, 2, 3], n_features_to_select=2)
_params("kept and groups", ANY, always_keep=[3], feature_groups=np.arange(P) // 2)
for _size in (1, P, 0.5, 1.0, np.int64(3), np.float32(0.5)):
    _params(f"size {_size!r}", WORKS, n_features_to_select=_size)
for _size in (0, -1, P + 1, 0.0, 1.5, np.nan, np.inf, "3", True, [3], 10**30):
    _params(f"size {_size!r}", REFUSED, n_features_to_select=_size)
_weighted("weights of one", WORKS, np.ones(N))
_weighted("weights of many sizes", ANY, np.logspace(-8, 8, N))
_weighted("weights mostly zero", ANY, (np.arange(N) < 3).astype(float))
_weighted("weights all zero", REFUSED, np.zeros(N))
_weighted("weights negative", REFUSED, -np.ones(N))
_weighted("weights with NaN", REFUSED, np.full(N, np.nan))
_weighted("weights with infinity", REFUSED, np.full(N, np.inf))
_weighted("weights too few", REFUSED, np.ones(3))
_weighted("weights of text", REFUSED, ["much"] * N)
_weighted("weights of 1e308", ANY, np.full(N, 1e308))
_weighted("weights of 1e-308", ANY, np.full(N, 1e-308))
