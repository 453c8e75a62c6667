"""Where a run writes and computes: its output folder, a device, the workers of a cluster.

Results appear in the output folder all at once or not at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from zeronorm.design.array_api import to_device

if TYPE_CHECKING:
    from zeronorm.datasets import Table

RESULT_FILES = (
    "selected.csv",
    "result.json",
    "records.parquet",
    "figures.parquet",
    "report.html",
    "model.json",
)
JOURNAL = "journal"
TEMPORARY = ".zeronorm-"
STALE_SECONDS = 7 * 24 * 3600  # a temporary folder of an unknown process is left over after a week
PATIENCE_S = 10


# -- The output folder --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a run writes: files that move to the output folder at the end, and the journal of finished parts."""

    folder: Path
    journal: Path


@contextmanager
def output_folder(folder: Path, *, force: bool = False, resume: bool = False) -> Iterator[Place]:
    """A temporary folder whose files move to ``folder`` at the end, if nothing went wrong.

    It is made beside ``folder``, so that moving is renaming, and before any work, so that a place that
    cannot be written is noticed first. After an interruption the journal stays in ``folder``.
    """
    _check_free(folder, force, resume)
    is_new = not folder.exists()
    journal = folder / JOURNAL
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder.parent)
        temporary = Path(tempfile.mkdtemp(prefix=_temporary_prefix(), dir=folder.parent))
        if not resume:
            shutil.rmtree(journal, ignore_errors=True)
        journal.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"The output folder {str(folder)!r} cannot be written: {error.strerror}. Choose another (parameter 'out')."
        ) from error
    try:
        yield Place(temporary, journal)
        _publish(temporary, folder)
        shutil.rmtree(journal, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_empty(journal)
        if is_new:
            _remove_empty(folder)


def has_journal(folder: Path) -> bool:
    """Whether an interrupted run left finished parts there."""
    return (folder / JOURNAL).is_dir() and any((folder / JOURNAL).iterdir())


def _temporary_prefix() -> str:
    return f"{TEMPORARY}{_host()}-{os.getpid()}-"


def _host() -> str:
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def remove_leftovers(parent: Path) -> None:
    """Remove temporary folders of processes that were killed and could not do it themselves."""
    for folder in parent.glob(f"{TEMPORARY}*"):
        parts = folder.name.removeprefix(TEMPORARY).split("-")
        if len(parts) == 3 and parts[0] == _host() and parts[1].isdigit():
            is_stale = not _is_running(int(parts[1]))
        else:
            is_stale = time.time() - folder.stat().st_mtime > STALE_SECONDS
        if is_stale and folder.is_dir():
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
        return  # not empty, or never made


def _check_free(folder: Path, force: bool, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"The 'out' parameter names {str(folder)!r}, which is a file. Choose a folder.")
    found = [name for name in RESULT_FILES if (folder / name).exists()]
    if found and not force:
        raise ValueError(
            f"The folder {str(folder)!r} already holds results ({', '.join(found)}). Choose another (parameter "
            "'out'), or set force=True to replace them."
        )
    if has_journal(folder) and not (resume or force):
        raise ValueError(
            f"The folder {str(folder)!r} holds finished parts of a run that was interrupted. Set resume=True to go on, "
            "or force=True to start anew."
        )
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise ValueError(
            f"The output folder {str(folder)!r} cannot be written. Choose another (parameter 'out')."
        )


def _publish(temporary: Path, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
        for name in RESULT_FILES:  # results of an earlier run that this run does not write
            if not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        for file in sorted(temporary.iterdir()):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise ValueError(f"The results cannot be moved to {str(folder)!r}: {error.strerror}.") from error


# -- Device and cluster --------------------------------------------------------------------------------


def table_on_device(table: Table, device: str | None) -> Table:
    """The table with its features on a device, to which they are copied in blocks."""
    if device is None:
        return table
    if table.n_missing:
        raise ValueError(
            f"The 'device' parameter needs data without gaps. {table.source} has {table.n_missing} missing values; "
            "fill them before, or set missing='drop-rows' or missing='drop-columns'."
        )
    return replace(table, X=to_device(table.X, device, feature_names=table.feature_names))


def jobs_at(device: str | None, dask: str | None, n_jobs: int | None) -> int | None:
    """How many parts run side by side: one on a device, as many as there are workers on a cluster."""
    if device is not None and dask is not None:
        raise ValueError(
            "The 'device' and 'dask' parameters exclude each other: a device belongs to this process. Set one of them."
        )
    if device is not None and n_jobs not in (None, 1):
        raise ValueError(
            f"The 'n_jobs' parameter must be 1 with a device, which all processes would share. Got {n_jobs} instead."
        )
    if n_jobs is not None:
        return n_jobs
    return 1 if device is not None else -1 if dask is not None else None


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let everything that runs side by side run on the workers of a Dask scheduler; None: here.

    The workers need the same packages, and data files under the same paths.
    """
    if address is None:
        yield
        return
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise ValueError(
            "The 'dask' parameter needs the package distributed, which is not installed; install zeronorm[dask]."
        ) from error
    from joblib import parallel_config

    try:
        client = distributed.Client(address, timeout=PATIENCE_S, name="zeronorm")
    except Exception as error:  # whatever answers there may not be a scheduler at all
        raise ValueError(
            f"The 'dask' parameter must be the address of a running Dask scheduler, such as tcp://host:8786. Nothing "
            f"answers at {address!r}; start `dask scheduler` and `dask worker` first."
        ) from error
    with client, parallel_config(backend="dask"):
        yield
