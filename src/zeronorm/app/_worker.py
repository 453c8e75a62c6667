"""The process of one run: reads its settings, calls ``select`` or ``compare``, and writes why it ended.

It is started with the folder of the run. The file that stops it is looked for here, so that no process is ended
because of a number in a file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

from zeronorm._messages import rendered
from zeronorm.app._calls import command_text
from zeronorm.app._fields import in_labels
from zeronorm.app._runs import HEARTBEAT, OUTCOME, STOP, WatchedRun
from zeronorm.result._folder import has_journal
from zeronorm.workflow._job import run_job
from zeronorm.workflow._options import Caller

LOOK_S = 0.3  # between two looks for the file that stops the run
PATIENCE_S = 20.0  # from the request to the end of a process that does not react


def main(folder: Path) -> int:
    """Do the run of a folder."""
    run = WatchedRun(folder.name, folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored in a process of the background
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_look_for_stop, args=(folder,), daemon=True).start()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")  # worker processes; the result has the warnings
    try:
        _do(run)
    except KeyboardInterrupt:
        return _ended(run, "")
    except Exception as error:
        return _ended(run, _message(error))
    finally:
        (folder / HEARTBEAT).unlink(missing_ok=True)
    return 0


def _do(run: WatchedRun) -> None:
    kind, asked = run.settings["kind"], run.arguments
    arguments = {**asked, "out": run.folder, "resume": has_journal(run.folder), "verbose": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_job(kind, arguments, Caller(command_text(kind, asked), in_labels))
    if kind == "select" and result.model is not None:  # nothing can be saved where nothing was selected
        result.model.save(run.folder / "model.json")


def _message(error: Exception) -> str:
    if isinstance(error, ValueError):
        return rendered(getattr(error, "message", str(error)), in_labels)
    return f"{type(error).__name__}: {error}"


def _ended(run: WatchedRun, message: str) -> int:
    (run.folder / OUTCOME).write_text(json.dumps({"message": message}), encoding="utf-8")
    return 1


def _look_for_stop(folder: Path) -> None:
    """Show that the process lives, until the file that stops it appears."""
    while not (folder / STOP).exists():
        (folder / HEARTBEAT).touch()
        time.sleep(LOOK_S)
    (folder / STOP).unlink(missing_ok=True)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGINT)  # also the processes that this one started
    else:
        signal.raise_signal(signal.SIGINT)
    time.sleep(PATIENCE_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
