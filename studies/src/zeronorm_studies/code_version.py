"""The code that computed the tasks of a study: its version, its state and the date, kept in the journal."""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import zeronorm

PACKAGES = (Path(zeronorm.__file__).parent, Path(__file__).parent)
UNKNOWN = "code of unknown state, from a journal that does not state it"
ROW = "code"
"""The line of 'How this was run' that the head of a page is made of."""


def code_now() -> str:
    """Version and state of the code in use, with today's date."""
    return f"zeronorm {zeronorm.__version__}, {code_state()}, {datetime.now(UTC):%Y-%m-%d}"


@cache
def code_state() -> str:
    """The commit if the packages lie unchanged in a repository, else a digest of their source files."""
    commit, changes = (_git("rev-parse", "--short=8", "HEAD"), _git("status", "--porcelain", "--", *PACKAGES))
    if commit and changes == "":
        return f"commit {commit}"
    state = hashlib.blake2b(digest_size=6)
    for package in PACKAGES:
        for file in sorted(package.rglob("*.py")):
            state.update(f"{file.relative_to(package.parent).as_posix()}\0".encode())
            state.update(file.read_bytes())
    return f"source files with digest {state.hexdigest()}"


def _git(*arguments: str | Path) -> str | None:
    """What git prints about the repository that holds the packages; None where there is none."""
    command = ["git", "-C", str(PACKAGES[0]), *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def code_of_tasks(codes: Iterable[str]) -> str:
    """Every code that computed tasks, with their number where there are several."""
    counts = Counter(codes)
    if len(counts) < 2:
        return next(iter(counts), UNKNOWN)
    return "; ".join(f"{code} ({count} of the tasks)" for code, count in sorted(counts.items()))


def head_of(code: str) -> str:
    """The sentence at the head of a page."""
    return f"The figures were computed by {code}; later code and later defaults may give others."
