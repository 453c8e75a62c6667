"""Results appear in the output folder all at once or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zeronorm.cli.errors import UsageProblem

RESULT_FILES = ("selected.csv", "result.json", "records.parquet", "report.html")


@contextmanager
def output_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """A temporary folder whose files move to ``folder`` at the end, if nothing went wrong.

    It is made beside ``folder``, so that moving is renaming, and before any work, so that a place that
    cannot be written is noticed first.
    """
    _check_free(folder, force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".zeronorm-", dir=folder.parent))
    except OSError as error:
        raise UsageProblem(
            f"The output folder {str(folder)!r} cannot be written: {error.strerror}. Choose another with --out."
        ) from error
    try:
        yield temporary
        _publish(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_free(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageProblem(f"--out names {str(folder)!r}, which is a file. Choose a folder.")
    found = [name for name in RESULT_FILES if (folder / name).exists()]
    if found and not force:
        raise UsageProblem(
            f"The folder {str(folder)!r} already holds results ({', '.join(found)}). Choose another with --out, "
            "or pass --force to replace them."
        )
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise UsageProblem(f"The output folder {str(folder)!r} cannot be written. Choose another with --out.")


def _publish(temporary: Path, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
        for name in RESULT_FILES:  # results of an earlier run that this run does not write
            if not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        for file in sorted(temporary.iterdir()):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise UsageProblem(f"The results cannot be moved to {str(folder)!r}: {error.strerror}.") from error
