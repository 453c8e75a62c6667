"""Reads files in a forked process, which is faster than the new Python process that the package starts for each.

A process without threads that has loaded the libraries is forked for each file.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path


def read_in_a_fork(path: Path, program: str) -> subprocess.CompletedProcess[bytes] | None:
    """In place of ``_read_elsewhere`` of the readers: the same program, limits and answers."""
    from zeronorm.datasets.readers._matrices import PROLOGUE, seconds_for

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["h5py", "scipy.io"])
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        arguments = (PROLOGUE + program, str(path), str(seconds_for(path)), str(out), str(errors))
        process = context.Process(target=_run_as_main, args=arguments)
        process.start()
        process.join()
        code = process.exitcode
        if code is None or code < 0:
            return None
        return subprocess.CompletedProcess(program, code, out.read_bytes(), errors.read_bytes())


def _run_as_main(program: str, path: str, seconds: str, out: str, errors: str) -> None:
    sys.argv = ["-c", path, seconds]
    for number, name in ((1, out), (2, errors)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
    try:
        exec(program, {})
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stdout.flush()
