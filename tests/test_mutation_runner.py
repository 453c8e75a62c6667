"""The runner that puts faults into the package leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNNER = Path(__file__).parent / "mutation"
SCRIPT = """
import sys
sys.path.insert(0, {runner!r})
import run
if __name__ == "__main__":
    run.end_when_asked()
    with run.ThreadPoolExecutor(1) as pool:
        orders = {{"tests": None, "ran": "unused"}}
        pool.submit(run.pytest, [{test!r}], orders, run.Path({folder!r}), 60.0).result()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_takes_its_tests_along(tmp_path, number):
    noted = tmp_path / "pid"
    test = tmp_path / "test_that_waits.py"
    test.write_text(
        "import os, pathlib, time\n\n"
        f"def test_it():\n    pathlib.Path({str(noted)!r}).write_text(str(os.getpid()))\n    time.sleep(60.0)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(runner=str(RUNNER), test=str(test), folder=str(tmp_path)))
    running = subprocess.Popen([sys.executable, str(script)])
    try:
        wait_until(noted.exists)
        wait_until(lambda: noted.read_text() != "")
        waiting = int(noted.read_text())
        running.send_signal(number)
        assert running.wait(10.0) == 128 + number
        wait_until(lambda: not is_alive(waiting))
    finally:
        running.kill()
        running.wait()


def wait_until(condition, limit_s=30.0):
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + limit_s
        time.sleep(0.05)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
