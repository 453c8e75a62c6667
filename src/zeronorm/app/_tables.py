"""The tables in the working folder: names of files that are safe, and files that were sent by the browser."""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from zeronorm.datasets._catalogue import BUNDLED, KNOWN, describe, find_local, known_names
from zeronorm.workflow._options import DataOptions
from zeronorm.workflow._preview import Preview, preview

MEGABYTE = 1 << 20
LONGEST_NAME = 120
KNOWN_PREFIX = "known:"  # in front of the name of a data set; no file has a colon
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
PARTIAL = ".part"
MOST_PREVIEWS = 2  # kept in memory


class TableError(ValueError):
    """A table that cannot be stored or found.

    Parameters
    ----------
    text : what is wrong and what to do.
    status : the status of the answer.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def safe_name(given: str) -> str:
    """A name for a file without path, control characters and characters that some systems do not allow."""
    name = unicodedata.normalize("NFC", given).replace("\\", "/").rsplit("/", 1)[-1]
    name = _NOT_IN_NAMES.sub("_", name).strip().lstrip(".").rstrip(". ")
    stem, dot, ending = name.partition(".")
    return f"{stem[: LONGEST_NAME - len(ending)] or 'table'}{dot}{ending[:LONGEST_NAME]}"


@dataclass(frozen=True)
class Tables:
    """The tables of the working folder.

    Parameters
    ----------
    folder : the folder that holds them.
    most_bytes : size of the largest file that is accepted.
    """

    folder: Path
    most_bytes: int

    def names(self) -> list[str]:
        """The names of the tables, the latest first; links are no tables."""
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as entries:
            found = [
                (entry.stat(follow_symlinks=False).st_mtime, entry.name)
                for entry in entries
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith(".")
            ]
        return [name for _, name in sorted(found, reverse=True)]

    def path(self, name: str) -> Path:
        """The file of a table, found among the names of the folder."""
        if name not in self.names():
            raise TableError(f"There is no table {name!r} in {str(self.folder)!r}. Add it again.", 404)
        return self.folder / name

    def data(self, name: str) -> str:
        """What ``select`` takes as data: the path of a table, or the name of a known data set."""
        if not name.startswith(KNOWN_PREFIX):
            return str(self.path(name))
        known = name.removeprefix(KNOWN_PREFIX)
        if known not in {each["name"] for each in known_tables()}:
            raise TableError(f"There is no data set {known!r} on this computer. Choose one of the list.", 404)
        return known

    async def receive(self, given: str, chunks: AsyncIterator[bytes], announced: int | None) -> str:
        """Store a file piece by piece, under a new name; one that is too large is not kept."""
        if announced is not None and announced > self.most_bytes:
            raise self._too_large()
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f".{uuid.uuid4().hex}{PARTIAL}"
        size = 0
        try:
            with partial.open("xb") as stream:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.most_bytes:
                        raise self._too_large()
                    stream.write(chunk)
            if size == 0:
                raise TableError("The file is empty. Choose another one.")
            return self._published(partial, safe_name(given))
        finally:
            partial.unlink(missing_ok=True)

    def _published(self, partial: Path, name: str) -> str:
        stem, dot, ending = name.partition(".")
        for number in itertools.count(1):
            tried = name if number == 1 else f"{stem}-{number}{dot}{ending}"
            try:
                with (self.folder / tried).open("xb"):
                    pass
            except FileExistsError:
                continue
            os.replace(partial, self.folder / tried)
            return tried
        raise AssertionError

    def _too_large(self) -> TableError:
        return TableError(
            f"The file is larger than {self.most_bytes // MEGABYTE} MB. Start the page with --max-upload and a larger "
            f"number, or put the file into {str(self.folder)!r} yourself.",
            413,
        )


def known_tables() -> list[dict[str, Any]]:
    """The data sets and synthetic problems that are on this computer."""
    generated = [name for name in known_names() if name not in BUNDLED and name not in KNOWN]
    local = [name for name in KNOWN if find_local(name) is not None]
    return [describe(name) for name in (*BUNDLED, *local, *generated)]


class Previews:
    """The previews of the last tables, so that a table is read once and not for each answer."""

    def __init__(self) -> None:
        self._found: dict[Any, Preview] = {}
        self._locks: dict[Any, Lock] = {}
        self._lock = Lock()

    def get(self, data: str, options: DataOptions) -> Preview:
        """The preview of a table, read now or kept from before."""
        path = Path(data)
        state = path.stat() if path.exists() else None
        key = (data, options, None if state is None else (state.st_mtime_ns, state.st_size))
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:  # several clients wait for one that reads
            if key not in self._found:
                found = preview(data, options)
                with self._lock:
                    self._found[key] = found
                    for old in list(self._found)[:-MOST_PREVIEWS]:
                        del self._found[old]
                        self._locks.pop(old, None)
                return found
            with self._lock:
                return self._found[key]
