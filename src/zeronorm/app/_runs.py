"""The runs in the working folder: their settings, how far they are, and how they are started and stopped."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zeronorm.result._folder import JOURNAL, PROGRESS, RESULT_FILES, is_running
from zeronorm.selection._progress_file import read_progress

SETTINGS = "run.json"  # what the run was asked to do
OUTCOME = "outcome.json"  # why it ended without a result
STOP = ".zeronorm-stop"  # a file that asks the process of the run to end
LOG = "run.log"
HEARTBEAT = ".zeronorm-heartbeat"  # a file that the process of the run touches as long as it lives
HEARTBEAT_S = 15.0  # age of that file from which on the process is taken for dead; compiling may delay it
STARTING, RUNNING, FINISHED, STOPPED, FAILED = "starting", "running", "finished", "stopped", "failed"


class RunError(ValueError):
    """A run that is not there, or cannot do what was asked.

    Parameters
    ----------
    text : what is wrong and what to do.
    status : the status of the answer.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class WatchedRun:
    """One run: a folder that holds settings, a journal, or a result.

    Parameters
    ----------
    name : its name in the list.
    folder : its folder.
    """

    name: str
    folder: Path

    @property
    def state(self) -> str:
        """How far the run is."""
        if is_running(self.folder):
            return RUNNING
        if self.file("result.json") is not None or self.file("cohort.json") is not None:
            return FINISHED
        if self.outcome:
            return FAILED if self.outcome.get("message") else STOPPED
        return STARTING if self._has_process else STOPPED

    @property
    def _has_process(self) -> bool:
        """Whether a process was started a moment ago or lives: it holds the folder after it has read the data."""
        seen = [float(self.settings.get("started", 0))]
        with suppress(OSError):
            seen.append((self.folder / HEARTBEAT).stat().st_mtime)
        return time.time() - max(seen) < HEARTBEAT_S

    @property
    def is_active(self) -> bool:
        return self.state in (STARTING, RUNNING)

    @property
    def can_continue(self) -> bool:
        """Whether the run was started on a page and can go on from its finished folds."""
        return bool(self.settings) and self.state in (STOPPED, FAILED)

    @property
    def can_stop(self) -> bool:
        """Whether the run was started on a page, whose process looks for the file that stops it."""
        return bool(self.settings) and self.is_active

    @property
    def settings(self) -> dict[str, Any]:
        """What the run was asked to do; empty for one that was started elsewhere."""
        return _read_json(self.folder / SETTINGS)

    @property
    def arguments(self) -> dict[str, Any]:
        """The data and the options; lists of names are tuples, as they were before they were stored."""
        stored = self.settings.get("arguments", {})
        return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}

    @property
    def outcome(self) -> dict[str, Any]:
        """Why the run ended without a result: its message, empty after a stop."""
        return _read_json(self.folder / OUTCOME)

    @property
    def started(self) -> float:
        """When it began, in seconds."""
        with suppress(OSError):
            return float(self.settings.get("started") or self.folder.stat().st_mtime)
        return 0.0

    def file(self, name: str) -> Path | None:
        """A file of the result, if there is one; links and other names are none."""
        is_known = name in (*RESULT_FILES, LOG)
        found = self.folder / name
        return found if is_known and found.is_file() and not found.is_symlink() else None

    def files(self) -> list[Path]:
        """All files of the result that are there."""
        return [
            file for file in map(self.file, (*RESULT_FILES, LOG)) if file is not None and file.stat().st_size
        ]

    def progress(self) -> dict[str, Any]:
        """The latest step: its text, and the finished steps with their number, as far as they are known."""
        found = read_progress(self.folder / PROGRESS) if is_running(self.folder) else None
        if found is not None:
            return dict(found)
        return {"text": "", "done": self.n_finished, "total": None, "lines": []}

    @property
    def n_finished(self) -> int:
        """Finished folds in the journal."""
        with suppress(OSError):
            return sum(1 for _ in (self.folder / JOURNAL).glob("*.json"))
        return 0


def _read_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class WatchedRuns:
    """The runs of a folder, and perhaps one whose folder is elsewhere.

    Parameters
    ----------
    folder : the folder that holds a folder for each run.
    opened : a result folder of another run, which was named when the page was started.
    """

    folder: Path
    opened: Path | None = None

    def all(self) -> list[WatchedRun]:
        """All runs, the latest first."""
        found = [] if self.opened is None else [WatchedRun(self.opened.name or "result", self.opened)]
        names = {run.name for run in found}
        if self.folder.is_dir():
            with os.scandir(self.folder) as entries:
                folders = [
                    entry
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                ]
            found += [
                WatchedRun(entry.name, Path(entry.path)) for entry in folders if entry.name not in names
            ]
        return sorted(found, key=lambda run: -run.started)

    def get(self, name: str) -> WatchedRun:
        """The run of this name."""
        for run in self.all():
            if run.name == name:
                return run
        raise RunError(f"There is no run {name!r}. Choose one of the list.", 404)

    def start(self, kind: str, table: str, arguments: Mapping[str, Any]) -> WatchedRun:
        """Store the settings of a new run in a new folder, and start its process."""
        run = self.new(kind, table, arguments)
        launch(run)
        return run

    def new(self, kind: str, table: str, arguments: Mapping[str, Any]) -> WatchedRun:
        """A new run with its settings, which no process does yet."""
        stem = re.sub(r"[^\w.-]+", "-", table.split(":")[-1].split(".")[0]).strip("-.") or "run"
        end = "-predicted" if kind == "apply" else ""
        run = self._new(f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}{end}")
        settings = {"kind": kind, "table": table, "arguments": arguments, "started": time.time()}
        (run.folder / SETTINGS).write_text(json.dumps(settings, indent=1), encoding="utf-8")
        return run

    def _new(self, name: str) -> WatchedRun:
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            tried = name if number == 1 else f"{name}-{number}"
            try:
                (self.folder / tried).mkdir()
            except FileExistsError:
                number += 1
                continue
            return WatchedRun(tried, self.folder / tried)


def launch(run: WatchedRun) -> None:
    """Start the process of a run; it goes on when the page is closed or the server ends."""
    (run.folder / OUTCOME).unlink(missing_ok=True)
    (run.folder / STOP).unlink(missing_ok=True)
    with (run.folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}._worker", str(run.folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=run.folder,
            start_new_session=True,
        )
    # A process that has ended counts as running until somebody waits for it.
    threading.Thread(target=process.wait, daemon=True).start()


def go_on(run: WatchedRun) -> None:
    """Continue a run that was stopped or that failed."""
    if not run.can_continue:
        raise RunError("This run cannot be continued: it is running, finished, or was started elsewhere.")
    settings = {**run.settings, "started": time.time()}
    (run.folder / SETTINGS).write_text(json.dumps(settings, indent=1), encoding="utf-8")
    launch(run)


def stop(run: WatchedRun) -> None:
    """Ask the process of a run to end; its finished folds are kept."""
    if not run.can_stop:
        raise RunError("This run cannot be stopped here: it has ended, or was started elsewhere.")
    (run.folder / STOP).touch()
