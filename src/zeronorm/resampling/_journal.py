"""Results of finished tasks on disk, so that an interrupted run can be resumed."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from zeronorm.design import Design, as_design

AGE_OF_LEFTOVERS_S = 3600.0


class Journal:
    """A directory with one small file per finished task.

    Files are only ever added. Each is written under a temporary name and then renamed, so a process
    that is killed leaves whole files or none, and several processes may share a directory. A file holds
    the hash of its content: a file that was truncated or changed on the disk is ignored.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            self._write("writable", "")
            (self.directory / "writable.json").unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def finished(self) -> set[str]:
        """Keys of the tasks whose results are on disk."""
        with os.scandir(self.directory) as entries:
            return {entry.name[:-5] for entry in entries if entry.name.endswith(".json")}

    def holds(self, key: str) -> bool:
        """Whether the result of the task is on disk."""
        return (self.directory / f"{key}.json").exists()

    def read(self, key: str) -> dict[str, Any] | None:
        """The result of the task, or None when its file is missing or damaged and the task must be computed again."""
        try:
            stored = json.loads((self.directory / f"{key}.json").read_text(encoding="utf-8"))
            result = json.loads(stored["cell"])
            is_whole = stored["digest"] == digest(key, stored["cell"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return result if is_whole and isinstance(result, dict) else None

    def write(self, key: str, result: dict[str, Any]) -> None:
        """Store the result of a finished task."""
        text = json.dumps(result, separators=(",", ":"), allow_nan=False)
        try:
            self._write(key, json.dumps({"digest": digest(key, text), "cell": text}))
        except OSError as error:
            raise self._unwritable(error) from error

    def _write(self, key: str, text: str) -> None:
        temporary = self.directory / f"{key}.{uuid.uuid4().hex}.tmp"
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, self.directory / f"{key}.json")
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    def _remove_leftovers(self) -> None:
        """Remove temporary files of processes that were killed; recent ones may belong to a running process."""
        for file in self.directory.glob("*.tmp"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > AGE_OF_LEFTOVERS_S:
                    file.unlink()

    def _unwritable(self, error: OSError) -> OSError:
        return OSError(
            f"The journal directory {str(self.directory)!r} cannot be written: {error}. Finished tasks in it "
            "are kept; free disk space or choose another directory."
        )


# -- Hashes: two tasks with the same hash are the same task --


def digest(*parts: Any) -> str:
    """One hash of several values: estimators by their parameters, functions by their code."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        _update(state, part)
    return state.hexdigest()


def data_digest(X: Any, y: NDArray[Any]) -> str:
    """A hash of the values, the targets and the feature names, the same for every container."""
    design = X if isinstance(X, Design) else as_design(X, allow_nan=True)
    state = hashlib.blake2b(digest_size=20)
    names = getattr(X, "columns", design.feature_names)
    _update(state, (design.shape, None if names is None else [str(name) for name in names]))
    for _, block in design.iter_blocks():
        state.update(np.ascontiguousarray(block.T).data)
    _update(state, y)
    return state.hexdigest()


def _update(state: Any, value: Any) -> None:
    if isinstance(value, BaseEstimator):
        _update(state, f"{type(value).__module__}.{type(value).__qualname__}")
        _update(state, value.get_params(deep=False))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        state.update(f"array{value.shape}{value.dtype}".encode())
        state.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif isinstance(value, Mapping):
        _update_sequence(state, "map", [item for key in sorted(value, key=str) for item in (key, value[key])])
    elif isinstance(value, (list, tuple)):
        _update_sequence(state, type(value).__name__, value)
    elif value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        state.update(f"{type(value).__name__}:{value!r};".encode())
    elif hasattr(value, "__code__"):
        _update(state, f"{value.__module__}.{value.__qualname__}")
        _update_code(state, value.__code__)
        captured = [cell.cell_contents for cell in value.__closure__ or ()]
        _update_sequence(state, "captured", [*(value.__defaults__ or ()), *captured])
    else:
        state.update(joblib.hash(value).encode())


def _update_sequence(state: Any, kind: str, values: Any) -> None:
    state.update(f"{kind}{len(values)}:".encode())
    for value in values:
        _update(state, value)


def _update_code(state: Any, code: CodeType) -> None:
    state.update(code.co_code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _update_code(state, constant)
        else:
            state.update(repr(constant).encode())
