"""Damaged files: a good file of each format, and a seeded mutator that breaks it in the ways files break."""

from __future__ import annotations

import io
import resource
import struct
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from fuzz.attempt import FOREIGN, RIGHT, classified_error
from fuzz.inputs import ANY, clean_data
from zeronorm.datasets import read_table

MEMORY = "too much memory"
WRONG_TABLE = "wrong table"
SPARE_BYTES = 256 * 2**20  # libraries load parts of themselves on first use; a file adds ten times its size

# Numbers that programs take for sizes and positions: in text, and as bytes of binary headers.
TEXTS = (
    b"99999999999999999999",
    b"-1",
    b"1e999",
    b"nan",
    b"\0",
    b'"',
    b"'",
    b"{",
    b"\n\n",
    b",,,,",
    b"\xff\xfe",
    b":",
)
WHOLE = (-1, 0, 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, -(2**63), 2**63 - 1)


def _csv() -> bytes:
    X, y = clean_data(False)
    lines = ["label," + ",".join(f"gene {i}" for i in range(X.shape[1]))]
    lines += [f"{'ab'[label]}," + ",".join(f"{v:.5g}" for v in row) for row, label in zip(X, y, strict=True)]
    return "\n".join(lines).encode()


def _libsvm() -> bytes:
    X, y = clean_data(False)
    stream = io.BytesIO()
    dump_svmlight_file(np.where(np.abs(X) > 0.5, X, 0.0), y, stream, zero_based=False)
    return stream.getvalue()


def _arff() -> bytes:
    X, y = clean_data(False)
    header = ["@relation genes", *(f"@attribute 'gene {i}' numeric" for i in range(X.shape[1]))]
    rows = [",".join(f"{v:.5g}" for v in row) + f",{'ab'[label]}" for row, label in zip(X, y, strict=True)]
    return "\n".join([*header, "@attribute class {a,b}", "@data", *rows]).encode()


def _sparse_arff() -> bytes:
    text = _arff().decode().partition("@data\n")
    rows = [
        "{" + ", ".join(f"{i} {v}" for i, v in enumerate(line.split(","))) + "}"
        for line in text[2].split("\n")
    ]
    return (text[0] + text[1] + "\n".join(rows)).encode()


def _mat(compress: bool) -> bytes:
    X, y = clean_data(False)
    stream = io.BytesIO()
    scipy.io.savemat(stream, {"X": X, "S": sparse.csc_matrix(X), "y": y}, do_compression=compress)
    return b"MATLAB 5.0 MAT-file".ljust(116) + stream.getvalue()[116:]  # without the time of writing


def _npz() -> bytes:
    X, y = clean_data(False)
    stream = io.BytesIO()
    np.savez(stream, X=X, y=y)
    return stream.getvalue()


def _csr_npz() -> bytes:
    X, y = clean_data(False)
    matrix = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    stream = io.BytesIO()
    np.savez(
        stream, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=np.asarray(X.shape), y=y
    )
    return stream.getvalue()


def _frame() -> Any:
    import polars as pl

    X, y = clean_data(False)
    columns = {f"gene {i}": X[:, i] for i in range(X.shape[1])}
    return pl.DataFrame({"label": np.where(y, "a", "b"), **columns})


def _parquet() -> bytes:
    stream = io.BytesIO()
    _frame().write_parquet(stream)
    return stream.getvalue()


def _arrow() -> bytes:
    stream = io.BytesIO()
    _frame().write_ipc(stream)
    return stream.getvalue()


def _h5ad() -> bytes:
    import anndata
    import pandas as pd

    X, y = clean_data(False)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "x.h5ad"
        anndata.AnnData(X.astype(np.float32), obs=pd.DataFrame({"label": np.where(y, "a", "b")})).write_h5ad(
            path
        )
        return path.read_bytes()


# The ending, the target, and a good file.
FORMATS: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "csv": (".csv", "label", _csv),
    "libsvm": (".libsvm", "label", _libsvm),
    "arff": (".arff", "class", _arff),
    "sparse arff": (".arff", "class", _sparse_arff),
    "mat": (".mat", "y", lambda: _mat(False)),
    "compressed mat": (".mat", "y", lambda: _mat(True)),
    "npz": (".npz", "y", _npz),
    "csr npz": (".npz", "y", _csr_npz),
    "parquet": (".parquet", "label", _parquet),
    "arrow": (".arrow", "label", _arrow),
    "h5ad": (".h5ad", "label", _h5ad),
}


@cache
def good_file(name: str) -> bytes:
    """A file of the format that can be read."""
    return FORMATS[name][2]()


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content after one to four small accidents."""
    for _ in range(rng.integers(1, 5)):
        if not content:
            break
        accident = ACCIDENTS[rng.integers(len(ACCIDENTS))]
        content = accident(content, int(rng.integers(len(content))), rng)
    return content


def _flip_bit(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def _other_byte(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    return content[:at] + bytes([int(rng.integers(256))]) + content[at + 1 :]


def _cut_end(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    return content[:at]


def _cut_piece(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    return content[:at] + content[at + int(rng.integers(1, 64)) :]


def _repeat_piece(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    piece = content[at : at + int(rng.integers(1, 64))]
    return content[:at] + piece * int(rng.integers(2, 40)) + content[at:]


def _insert_text(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    return content[:at] + TEXTS[rng.integers(len(TEXTS))] + content[at:]


def _write_number(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    """A size or position of a binary header becomes a number that no file holds."""
    number, width = WHOLE[rng.integers(len(WHOLE))], int(rng.choice([4, 8]))
    packed = struct.pack("<q", number)[:width]
    at -= at % 4
    return content[:at] + packed + content[at + width :]


def _replace_number(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    """The next number written in digits, such as a shape in a header of NumPy, becomes a huge one."""
    start = next((i for i in range(at, len(content)) if content[i : i + 1].isdigit()), None)
    if start is None:
        return content
    end = next((i for i in range(start, len(content)) if not content[i : i + 1].isdigit()), len(content))
    return content[:start] + TEXTS[rng.integers(2)] + content[end:]


def _zeros(content: bytes, at: int, rng: np.random.Generator) -> bytes:
    width = int(rng.integers(1, 512))
    return content[:at] + bytes(min(width, len(content) - at)) + content[at + width :]


ACCIDENTS = (
    _flip_bit,
    _other_byte,
    _cut_end,
    _cut_piece,
    _repeat_piece,
    _insert_text,
    _write_number,
    _replace_number,
    _zeros,
)


def attempt_file(name: str, seed: int) -> tuple[str, str]:
    """Read one damaged file of a format: its table, or an error that names the file."""
    ending, target, _ = FORMATS[name]
    content = mutated(good_file(name), np.random.default_rng([seed, len(name)]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{ending}"
        path.write_bytes(content)
        before = _largest_size()
        outcome, seen = _read(path, target)
        used = _largest_size() - before
    if used > 10 * len(content) + SPARE_BYTES:
        return MEMORY, f"{used / 2**20:.0f} MiB for a file of {len(content)} bytes; {outcome} {seen}"
    return outcome, seen


def _read(path: Path, target: str) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = read_table(path, target)
        except Exception as error:
            return classified_error(error, ANY)
        except BaseException as error:  # polars panics are no Exception
            return FOREIGN, f"{type(error).__name__}: {error}"
    n, p = table.X.shape
    if len(table.y) != n or len(table.feature_names) != p or n < 1 or p < 1:
        return WRONG_TABLE, f"{n} rows, {p} columns, {len(table.y)} labels, {len(table.feature_names)} names"
    return RIGHT, ""


def _largest_size() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
