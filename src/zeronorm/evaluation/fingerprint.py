"""Hashes that say whether two pieces of work are the same work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import CodeType
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from zeronorm.design import Design, as_design


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
