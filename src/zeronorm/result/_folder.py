"""The output folder of a run: results appear in it all at once or not at all."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from zeronorm._messages import OptionError, parameter, setting

RESULT_FILES = (
    "selected.csv",
    "substitutes.csv",
    "result.json",
    "records.parquet",
    "figures.parquet",
    "report.html",
    "model.json",
    "predictions.csv",
    "cohort.json",
)
JOURNAL = "journal"
RUNNING = ".zeronorm-running"
PROGRESS = ".zeronorm-progress"  # the latest step of the run that writes to the folder
TEMPORARY = ".zeronorm-"
MARK = ".made-by-zeronorm"  # a file in every temporary folder: only folders with it are removed
# After a week, a temporary folder of a process on another computer is considered left over.
STALE_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True)
class RunFolders:
    """The temporary folder, whose files move to the output folder at the end, and the journal of finished folds."""

    folder: Path
    journal: Path


@contextmanager
def output_folder(
    folder: str | os.PathLike[str], *, force: bool = False, resume: bool = False
) -> Iterator[RunFolders]:
    """A temporary folder whose files move to ``folder`` at the end, if nothing went wrong.

    It is made next to ``folder``, so that files are moved by renaming, and before any work, so that a folder
    that cannot be written is an error at once. After an interruption the journal stays in ``folder``.
    """
    if not os.fspath(folder).strip():
        raise OptionError("must name a folder. Got an empty text; a dot is this folder.", "out")
    folder = Path(folder)
    _check_free(folder, force, resume)
    is_new = not folder.exists()
    journal = folder / JOURNAL
    with _cleaned_up(folder, is_new), _alone_in(folder):
        yield from _written_at_the_end(folder, journal, resume)


def _written_at_the_end(folder: Path, journal: Path, resume: bool) -> Iterator[RunFolders]:
    try:
        remove_leftovers(folder.parent)
        temporary = Path(tempfile.mkdtemp(prefix=_temporary_prefix(), dir=folder.parent))
        (temporary / MARK).touch()
        if not resume:
            shutil.rmtree(journal, ignore_errors=True)
        journal.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield RunFolders(temporary, journal)
        _publish(temporary, folder)
        shutil.rmtree(journal, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_empty(journal)


@contextmanager
def _cleaned_up(folder: Path, is_new: bool) -> Iterator[None]:
    """Remove a folder that this run made and left empty."""
    try:
        yield
    finally:
        if is_new:
            _remove_empty(folder)


_HELD: set[Path] = set()  # folders that this process writes to


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the file that tells other runs that this one writes to the folder."""
    held = folder.absolute() / RUNNING
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if held.exists() and not _is_held(held):
            held.unlink(missing_ok=True)
        with held.open("x") as stream:
            stream.write(f"{_host()} {os.getpid()}")
    except FileExistsError as error:
        raise OptionError(
            f"Another run is writing to the folder {str(folder)!r}. Wait until it ends, or choose another folder "
            f"({parameter('out')}). If no other run exists, remove the file {RUNNING!r} in it."
        ) from error
    except OSError as error:
        raise _unwritable(folder, error) from error
    _HELD.add(held)
    try:
        yield
    finally:
        _HELD.discard(held)
        held.unlink(missing_ok=True)


def _is_held(held: Path) -> bool:
    """Whether the run that wrote the file may still go on: on another computer for a week."""
    with suppress(OSError, ValueError):
        host, process = held.read_text().split()
        if host == _host():
            return held in _HELD if int(process) == os.getpid() else _is_running(int(process))
    with suppress(OSError):
        return time.time() - held.stat().st_mtime <= STALE_SECONDS
    return False


def is_running(folder: Path) -> bool:
    """Whether a run writes to the folder at this moment."""
    held = folder.absolute() / RUNNING
    return held.is_file() and _is_held(held)


def _unwritable(folder: Path, error: OSError) -> OptionError:
    return OptionError(
        f"The output folder {str(folder)!r} cannot be written: {error.strerror}. Choose another "
        f"({parameter('out')})."
    )


def folder_named_after(data: str, kind: str = "", *, resume: bool = False) -> Path:
    """A new folder of this directory, named after the data and the time; with ``resume`` that of an interrupted run."""
    stem = "input" if data == "-" else Path(data).name.split(".")[0] or "data"
    start = "-".join(part for part in ("zeronorm", kind, stem) if part)
    if resume:
        stamped = re.compile(rf"{re.escape(start)}-\d{{8}}-\d{{6}}(-\d+)?")
        found = [each for each in Path().iterdir() if stamped.fullmatch(each.name) and has_journal(each)]
        if not found:
            raise OptionError(
                f"found no interrupted run of {data!r} in this directory. Name its folder ({parameter('out')}), or "
                f"leave {parameter('resume', 'the name')} out.",
                "resume",
            )
        return max(found, key=lambda each: (each / JOURNAL).stat().st_mtime)
    name = f"{start}-{time.strftime('%Y%m%d-%H%M%S')}"
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(Path(each) for each in itertools.chain([name], others) if not Path(each).exists())


def has_journal(folder: Path) -> bool:
    """Whether the folder holds finished folds of an interrupted run."""
    return (folder / JOURNAL).is_dir() and any((folder / JOURNAL).iterdir())


def _temporary_prefix() -> str:
    return f"{TEMPORARY}{_host()}-{os.getpid()}-"


def _host() -> str:
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def remove_leftovers(parent: Path) -> None:
    """Remove temporary folders of processes that were killed: those that have our names and hold our mark."""
    for folder in parent.glob(f"{TEMPORARY}*"):
        parts = folder.name.removeprefix(TEMPORARY).split("-")
        mark = folder / MARK
        if folder.is_symlink() or len(parts) != 3 or not parts[1].isdigit() or not mark.is_file():
            continue
        if parts[0] == _host():
            is_stale = not _is_running(int(parts[1]))
        else:
            is_stale = time.time() - mark.stat().st_mtime > STALE_SECONDS
        if is_stale:
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # not empty, or does not exist


def _check_free(folder: Path, force: bool, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"names {str(folder)!r}, which is a file. Choose a folder.", "out")
    if (folder / JOURNAL).is_symlink():
        raise OptionError(
            f"{JOURNAL!r} in the folder {str(folder)!r} is a link to another folder, which this run would empty. "
            f"Remove the link, or choose another folder ({parameter('out')})."
        )
    found = [name for name in RESULT_FILES if (folder / name).exists()]
    if found and not force:
        raise OptionError(
            f"The folder {str(folder)!r} already holds results ({', '.join(found)}). Choose another "
            f"({parameter('out')}), or {setting('force', True, 'set')} to replace them."
        )
    if has_journal(folder) and not (resume or force):
        raise OptionError(
            f"The folder {str(folder)!r} holds finished folds of an interrupted run. "
            f"{setting('resume', True, 'Set')} to continue it, or {setting('force', True)} to start again."
        )
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise OptionError(
            f"The output folder {str(folder)!r} cannot be written. Choose another ({parameter('out')})."
        )


def _publish(temporary: Path, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
        for name in RESULT_FILES:  # results of an earlier run that this run does not write
            if not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        for file in sorted(file for file in temporary.iterdir() if file.name != MARK):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise ValueError(f"The results cannot be moved to {str(folder)!r}: {error.strerror}.") from error
