"""Where a result comes from: command, versions, data."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

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


def provenance(clock: Clock, **settings: Any) -> dict[str, Any]:
    """Everything needed to repeat a run."""
    from zeronorm import __version__

    return {
        "command": shlex.join(["zeronorm", *sys.argv[1:]]),
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "started": clock.started.isoformat(timespec="seconds"),
        "seconds": round(clock.seconds, 2),
        **settings,
    }


def file_checksum(data: str) -> str | None:
    """SHA-256 of a data file; None for data that are not a file."""
    path = Path(data)
    if not path.is_file():
        return None
    state = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(CHUNK_BYTES):
            state.update(piece)
    return state.hexdigest()
