"""The runner that puts faults into the package leaves neither processes nor files behind."""

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
        orders = {{"tests": None, "ran": {ran!r}}}
        status, output, _ = pool.submit(run.pytest, [{test!r}], orders, run.Path({folder!r}), 60.0).result()
    print(output)
    sys.exit(status)
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
    running = subprocess.Popen([sys.executable, script_of(test)])
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


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_what_a_test_writes_where_it_stands_does_not_stay(tmp_path):
    test = tmp_path / "test_that_writes.py"
    test.write_text(
        "import pathlib\n\ndef test_it():\n    pathlib.Path('left-behind').write_text('by a fault')\n"
    )
    ended = subprocess.run([sys.executable, script_of(test)], capture_output=True, text=True, cwd=tmp_path)
    left = RUNNER.parents[1] / "left-behind"
    try:
        assert not left.exists()
    finally:
        left.unlink(missing_ok=True)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


def script_of(test):
    """A program that runs the tests of one file as a trial does."""
    folder = test.parent
    script = folder / "script.py"
    ran = str(folder / "ran.json")
    script.write_text(SCRIPT.format(runner=str(RUNNER), test=str(test), folder=str(folder), ran=ran))
    return str(script)


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
