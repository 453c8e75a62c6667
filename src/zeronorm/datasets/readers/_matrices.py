"""Formats that keep a matrix and the targets apart: NumPy archives, MATLAB files, LIBSVM text, AnnData files."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.datasets._raw import RawTable, reader
from zeronorm.datasets._table import DataError, shown, shown_list
from zeronorm.datasets.readers._opening import Opened, check_readable
from zeronorm.design import Design, as_design
from zeronorm.design._annotated import design_of_rows
from zeronorm.design._annotated import opened as annotated_root
from zeronorm.design._sparse import check_structure

TARGET_NAMES = ("y", "Y", "label", "labels", "target", "gnd")
CSR_KEYS = {"data", "indices", "indptr", "shape"}
_LIBSVM_LINE = re.compile(r"\s*(#.*)?$|\s*[^\s:]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?$")


# -- NumPy: arrays X and y, or a CSR matrix as data, indices, indptr and shape; nothing is unpickled --


@reader(".npz", takes=("memory_budget",))
def read_npz(file: Opened, *, memory_budget: int | None = None) -> RawTable:
    """The matrix, its feature names and candidate targets; nothing is unpickled."""
    X = None if memory_budget is None else _matrix_in_bands(file, memory_budget)
    arrays = _load_arrays(file, left_out=() if X is None else ("X",))
    X = _matrix(arrays, file) if X is None else X
    names = arrays.get("feature_names")
    listed = None if names is None or len(names) != X.shape[1] else [str(name) for name in names]
    targets = {
        key: values
        for key, values in arrays.items()
        if values.ndim == 1 and len(values) == X.shape[0] and key not in CSR_KEYS | {"feature_names"}
    }
    default = "y" if "y" in targets else None
    return RawTable.from_matrix(X, listed, targets=targets, default_target=default)


def _matrix_in_bands(file: Opened, memory_budget: int) -> Design | None:
    """A matrix X that is stored by row, from disk; None where there is no such one."""
    try:
        with zipfile.ZipFile(file.path) as archive, archive.open("X.npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_column, dtype = read(stream)
            if by_column or len(shape) != 2 or dtype.kind not in "biuf":
                return None
            n, p = shape
            height = max(1, memory_budget // 8 // max(1, p * dtype.itemsize))
            bands = (
                np.frombuffer(_exactly(stream, min(height, n - top) * p * dtype.itemsize), dtype).reshape(
                    -1, p
                )
                for top in range(0, n, height)
            )
            return design_of_rows(bands, p, memory_budget, 8 * n * p, is_sparse=False)
    except (KeyError, EOFError, OSError, RuntimeError, zipfile.BadZipFile):
        return None  # the reader of whole archives says what is wrong


def _exactly(stream: Any, n_bytes: int) -> bytes:
    found: bytes = stream.read(n_bytes)
    if len(found) < n_bytes:
        raise EOFError("the array is cut off")
    return found


def _load_arrays(file: Opened, left_out: tuple[str, ...] = ()) -> dict[str, Any]:
    try:
        with open(file.path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            # Arrays of a published second part are not samples of this table.
            keys = [key for key in archive.files if not key.endswith("_valid") and key not in left_out]
            return {key: archive[key] for key in keys}
    # A damaged header may ask for a password, or for a compression that nobody knows: a RuntimeError.
    except (ValueError, OSError, EOFError, AttributeError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{file.subject} cannot be read as a NumPy archive: it is damaged, or holds Python objects. Write it "
            "again with numpy.savez, with arrays of numbers or text."
        ) from error


def _matrix(arrays: dict[str, Any], file: Opened) -> Any:
    import scipy.sparse as sp

    if "X" in arrays and arrays["X"].ndim == 2 and arrays["X"].dtype.kind in "biuf":
        return arrays["X"]
    if set(arrays) >= CSR_KEYS:
        try:
            matrix = sp.csr_matrix(
                (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
            )
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise DataError(
                f"The sparse matrix in {file} is not valid: its indices do not fit its shape. Write it again."
            ) from error
        return matrix
    raise DataError(
        f"{file.subject} has no numeric matrix 'X' and no CSR matrix (data, indices, indptr, shape). It holds "
        f"{shown_list(sorted(arrays)) or 'nothing'}. Save the matrix under the name X."
    )


# -- MATLAB files up to version 7 --


@reader(".mat")
def read_mat(file: Opened) -> RawTable:
    """The matrix X (or the largest matrix) and the vectors of as many entries as it has rows."""
    variables = _load_mat(file)
    name = _largest_matrix(variables, file)
    X = variables.pop(name)
    targets = {key: _vector(values) for key, values in variables.items() if _is_target(values, X.shape[0])}
    names = next((_texts(v) for v in variables.values() if _is_text_list(v, X.shape[1])), None)
    default = next((key for key in TARGET_NAMES if key in targets), None)
    X = _checked_rows(X, file) if hasattr(X, "tocsr") else X
    return RawTable.from_matrix(
        X,
        names,
        targets=targets,
        default_target=default,
        notes=(f"The matrix is the variable {shown(name)}.",),
    )


def _checked_rows(X: Any, file: Opened) -> Any:
    """A sparse matrix by rows; compiled loops would follow indices that lie out of the matrix."""
    try:
        check_structure(X)
    except ValueError as error:
        raise DataError(f"The sparse matrix in {file} is not valid: {error}") from error
    return X.tocsr()


def _load_mat(file: Opened) -> dict[str, Any]:
    read = _read_elsewhere(file.path, _READ_MAT)
    if read is None:
        raise DataError(f"{file.subject} is damaged: reading it ends in a crash. Write it again.")
    if read.returncode == _NOT_SUPPORTED:
        raise DataError(
            f"{file.subject} is a MATLAB 7.3 file, which is not supported. Save it with save(…, '-v7')."
        )
    if read.returncode != 0:
        raise DataError(f"{file.subject} is damaged or not a MATLAB file. Write it again.")
    content: dict[str, Any] = pickle.loads(read.stdout)
    return {key: value for key, value in content.items() if not key.startswith("__")}


def _largest_matrix(variables: dict[str, Any], file: Opened) -> str:
    matrices = {
        key: value
        for key, value in variables.items()
        if getattr(value, "ndim", 0) == 2 and value.dtype.kind in "biuf" and min(value.shape) > 1
    }
    if "X" in matrices:
        return "X"
    if not matrices:
        raise DataError(
            f"{file.subject} holds no numeric matrix, only {shown_list(sorted(variables))}. "
            "Save the matrix under the name X."
        )
    return max(matrices, key=lambda key: int(np.prod(matrices[key].shape)))


def _is_target(values: Any, n_samples: int) -> bool:
    if not isinstance(values, np.ndarray):
        return False
    return (values.dtype.kind in "biufU" and values.size == n_samples) or _is_text_list(values, n_samples)


def _is_text_list(values: Any, length: int) -> bool:
    """MATLAB's cell arrays of text arrive as object arrays of one-element text arrays."""
    if not isinstance(values, np.ndarray) or values.size != length:
        return False
    if values.dtype.kind == "U":
        return True
    return values.dtype == object and all(
        isinstance(cell, np.ndarray) and cell.dtype.kind == "U" for cell in values.ravel()
    )


def _texts(values: Any) -> list[str]:
    return [
        str(cell.ravel()[0]) if isinstance(cell, np.ndarray) and cell.size else str(cell)
        for cell in values.ravel()
    ]


def _vector(values: Any) -> Any:
    return np.asarray(_texts(values)) if values.dtype.kind in "OU" else values.ravel()


# -- LIBSVM (svmlight): label index:value index:value … --


@reader(".libsvm", ".svmlight", ".svm", takes=("memory_budget",))
def read_libsvm(file: Opened, *, memory_budget: int | None = None) -> RawTable:
    """The sparse matrix, with the labels as the target ``label``."""
    from sklearn.datasets import load_svmlight_file

    X: Any
    try:
        if memory_budget is None:
            X, y = load_svmlight_file(str(file.path))
        else:
            X, y = _libsvm_in_bands(file.path, memory_budget)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{file.subject} cannot be read as LIBSVM text{_first_wrong_line(file)}. Each line must be 'label "
            "index:value index:value …' with ascending indices."
        ) from error
    return RawTable.from_matrix(X, targets={"label": y}, default_target="label")


def _libsvm_in_bands(path: Path, memory_budget: int) -> tuple[Design, np.ndarray]:
    """Rows and labels, some lines at a time; a first pass finds the smallest and the largest index."""
    from sklearn.datasets import load_svmlight_file

    lowest, highest = _range_of_indices(path)
    first = min(1, lowest)  # whether features are counted from one
    labels: list[np.ndarray] = []

    def bands() -> Iterator[Any]:
        with path.open("rb") as stream:
            while lines := stream.readlines(memory_budget // 16):
                X, y = load_svmlight_file(
                    io.BytesIO(b"".join(lines)), n_features=highest + 1, zero_based=True
                )
                labels.append(y)
                yield X[:, first:]

    n_bytes = 12 * path.stat().st_size // 4  # an entry takes four characters or more
    design = design_of_rows(bands(), highest + 1 - first, memory_budget, n_bytes, is_sparse=True)
    return design, np.concatenate(labels)


def _range_of_indices(path: Path) -> tuple[int, int]:
    """The smallest and the largest index; indices ascend, so the first and the last of each line are enough."""
    lowest, highest = 1, 0
    with path.open("rb") as stream:
        for line in stream:
            cells = [cell for cell in line.partition(b"#")[0].split()[1:] if not cell.startswith(b"qid")]
            if cells:
                lowest = min(lowest, int(cells[0].partition(b":")[0]))
                highest = max(highest, int(cells[-1].partition(b":")[0]))
    return lowest, highest


def _first_wrong_line(file: Opened) -> str:
    with file.path.open(encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            if not _LIBSVM_LINE.match(line):
                return f": line {number} is {shown(line.strip())}"
    return ""


# -- AnnData: every column of ``obs`` is a candidate target --


@reader(".h5ad")
def read_h5ad(file: Opened) -> RawTable:
    """``X`` with the names of the variables; every column of ``obs`` is a candidate target."""
    anndata = _anndata(str(file))
    _check_h5(file.path, file.subject)
    try:
        data = anndata.read_h5ad(file.path)
    except Exception as error:  # h5py and anndata raise many kinds on damaged files
        raise DataError(f"{file.subject} is damaged or not an h5ad file. Write it again.") from error
    if data.X is None:
        raise DataError(f"{file.subject} has no matrix X. Store the measurements in X.")
    names = [str(name) for name in data.var_names]
    return RawTable.from_matrix(data.X, names, **_samples(data.obs), annotations=_described(data.var))


def read_annotated(path: Path, memory_budget: int | None = None) -> RawTable:
    """The table of an h5ad file or a Zarr folder whose matrix stays on disk."""
    subject = f"The file {shown(str(path))}"
    anndata = _anndata(f"the file {shown(str(path))}")
    if not path.is_dir():
        check_readable(path)
        _check_h5(path, subject)
    design = as_design(path, memory_budget=memory_budget)
    try:
        read = anndata.io.read_elem if hasattr(anndata, "io") else anndata.experimental.read_elem
        with annotated_root(path) as root:
            samples = _samples(read(root["obs"])) | {"annotations": _described(read(root["var"]))}
    except Exception as error:  # h5py, zarr and anndata raise many kinds on damaged files
        raise DataError(f"{subject} has no readable table 'obs' of samples. Write it again.") from error
    names = None if design.feature_names is None else list(design.feature_names)
    return RawTable.from_matrix(design, names, **samples)


def _anndata(file: str) -> Any:
    try:
        import anndata
    except ImportError as error:
        raise DataError(
            f"Reading {file} needs the package anndata. Install it with `pip install anndata`."
        ) from error
    return anndata


def _check_h5(path: Path, subject: str) -> None:
    """Refuse a file that makes the library crash."""
    walk = _read_elsewhere(path, _WALK_H5)
    if walk is None or walk.returncode != 0:
        message = b"" if walk is None else walk.stderr.strip()
        reason = (
            message.rpartition(b"\n")[2].decode(errors="replace") or "reading it ends in a crash, or never"
        )
        if b"Traceback" in message:  # the messages of HDF5 do not name a part of the file
            reason = "its groups and attributes cannot be read"
        raise DataError(f"{subject} is damaged or not an h5ad file: {reason}. Write it again.")


def _samples(obs: Any) -> dict[str, Any]:
    """The candidate targets and the names of the samples in the table ``obs``."""
    return {
        "targets": {str(name): _plain(obs[name]) for name in obs.columns},
        "sample_ids": [str(name) for name in obs.index],
    }


def _described(var: Any) -> dict[str, dict[int, str]]:
    """The columns of text in the table ``var``, which describe the features."""
    texts = {str(name): np.asarray(var[name], dtype=object) for name in var.columns}
    return {
        name: {row: cell for row, cell in enumerate(cells) if isinstance(cell, str) and cell}
        for name, cells in texts.items()
        if any(isinstance(cell, str) for cell in cells[:100])
    }


def _plain(column: object) -> np.ndarray:
    values = np.asarray(column)
    return values if values.dtype.kind in "biuf" else np.asarray(values, dtype=object)


# -- Libraries that crash or hang on damaged files are called in another process --

_NOT_SUPPORTED = 3
_READ_MAT = f"""
import pickle, scipy.io
try:
    content = scipy.io.loadmat(path)
except NotImplementedError:
    sys.exit({_NOT_SUPPORTED})
pickle.dump(content, sys.stdout.buffer, protocol=5)
"""
_WALK_H5 = """
import h5py
largest = 2**28 + 1100 * os.path.getsize(path)  # no compression of HDF5 packs more tightly
def visit(name, item):
    dict(item.attrs)
    if isinstance(item, h5py.Dataset):
        if item.size and item.size * item.dtype.itemsize > largest:
            sys.exit(f"{name!r} declares the shape {item.shape}, more than a file of this size can hold")
        if item.dtype.kind == "O":
            item[()]
with h5py.File(path, "r") as file:
    dict(file.attrs)
    file.visititems(visit)
"""
PROLOGUE = """
import os, sys
path, seconds = sys.argv[1], int(sys.argv[2])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
except ImportError:
    pass  # Windows
"""


def _read_elsewhere(path: Path, program: str) -> subprocess.CompletedProcess[bytes] | None:
    """The result of reading the file in another process, or None when that process crashed or did not end.

    The limit is on processor time, because wall time says little on a busy computer.
    """
    seconds = seconds_for(path)
    command = [sys.executable, "-P", "-c", PROLOGUE + program, str(path), str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=100 * seconds)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode < 0 else done


def seconds_for(path: Path) -> int:
    """Processor time that a file may take."""
    return 5 + path.stat().st_size // 10**7
