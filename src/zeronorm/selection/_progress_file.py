"""The progress of a run in a small file, so that another process can show it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LEAST_SECONDS = 0.2  # between two versions of the file


class ProgressFile:
    """Writes the latest step of a run: its text, the finished steps and their number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from zeronorm.selection._progress_file import ProgressFile, read_progress
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "progress"
    >>> ProgressFile(file).update(total=5, advance=1, description="fold 2")
    >>> read_progress(file)
    {'text': 'fold 2', 'done': 1, 'total': 5, 'lines': []}
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._state: dict[str, Any] = {"text": "", "done": 0, "total": None, "lines": []}
        self._written = -LEAST_SECONDS

    def update(self, *, advance: int = 0, total: int | None = None, description: str | None = None) -> None:
        """Note finished steps, the number of all steps, and the text of the present one."""
        self._state["done"] += advance
        self._state["total"] = self._state["total"] if total is None else total
        self._state["text"] = self._state["text"] if description is None else description
        if time.monotonic() - self._written >= LEAST_SECONDS:
            self._write()

    def add_line(self, text: str) -> None:
        """Note a sentence that stays."""
        self._state["lines"].append(text)
        self._write()

    def close(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)

    def _write(self) -> None:
        self._written = time.monotonic()
        temporary = self.file.with_name(f"{self.file.name}.part")
        with suppress(OSError):  # a run does not fail because nobody can watch it
            temporary.write_text(json.dumps(self._state), encoding="utf-8")
            os.replace(temporary, self.file)


def read_progress(file: Path) -> Mapping[str, Any] | None:
    """The latest step of a run, or None where no run writes it."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_state = isinstance(found, dict) and {"text", "done", "total", "lines"} <= set(found)
    return found if is_state else None
