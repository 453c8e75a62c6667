"""Finished cells on disk, so that interrupted work goes on where it stopped."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any


class Journal:
    """A directory with one small file per finished cell.

    Files are only ever added. Each is written under a temporary name and then renamed, so a process
    that is killed leaves whole files or none.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._write("writable", "")
            (self.directory / "writable.json").unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def finished(self) -> set[str]:
        """Keys of the cells on disk."""
        with os.scandir(self.directory) as entries:
            return {entry.name[:-5] for entry in entries if entry.name.endswith(".json")}

    def read(self, key: str) -> dict[str, Any] | None:
        """The cell, or None when its file is missing or damaged and the work must be done again."""
        try:
            cell = json.loads((self.directory / f"{key}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return None
        return cell if isinstance(cell, dict) else None

    def write(self, key: str, cell: dict[str, Any]) -> None:
        """Store a finished cell."""
        text = json.dumps(cell, separators=(",", ":"), allow_nan=False)
        try:
            self._write(key, text)
        except OSError as error:
            raise self._unwritable(error) from error

    def _write(self, key: str, text: str) -> None:
        temporary = self.directory / f"{key}.{uuid.uuid4().hex}.tmp"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.directory / f"{key}.json")

    def _unwritable(self, error: OSError) -> OSError:
        return OSError(
            f"The journal directory {str(self.directory)!r} cannot be written: {error}. Finished cells in it "
            "are kept; free the place or choose another directory."
        )
