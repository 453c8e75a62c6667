"""How a run was made: the command, versions, seeds and the time."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm._types import written

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
CHUNK_BYTES = 1 << 22


class Clock:
    """Start and duration of a run."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


def provenance(clock: Clock, command: str, **settings: Any) -> dict[str, Any]:
    """Everything needed to repeat a run, with the command or the call that made it."""
    from zeronorm import __version__

    return {
        "command": command,
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "started": clock.started.isoformat(timespec="seconds"),
        "seconds": round(clock.seconds, 2),
        **settings,
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def call_text(name: str, arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """A call in Python as text, with the arguments that differ from their defaults; arrays are shown by their type."""
    shown = []
    for key, value in arguments.items():
        if key in defaults and _is_same(value, defaults[key]):
            continue
        is_plain = isinstance(value, (str, int, float, bool, np.generic, Path)) or value is None
        is_plain = is_plain or (isinstance(value, (list, tuple, dict)) and len(written(value)) < 200)
        text = (
            written(str(value) if isinstance(value, Path) else value)
            if is_plain
            else f"<{type(value).__name__}>"
        )
        shown.append(f"{key}={text}")
    return f"zeronorm.{name}({', '.join(shown)})"


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not hasattr(value, "shape") and bool(value == default)


def file_checksum(data: Any) -> str | None:
    """SHA-256 checksum of a data file; None for data in memory."""
    if not isinstance(data, (str, os.PathLike)) or not Path(data).is_file():
        return None
    state = hashlib.sha256()
    with Path(data).open("rb") as stream:
        while piece := stream.read(CHUNK_BYTES):
            state.update(piece)
    return state.hexdigest()
