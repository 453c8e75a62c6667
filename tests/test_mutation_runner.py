"""The runner that puts faults into the package leaves neither processes nor files behind."""

from __future__ import annotations

import json
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
def test_a_run_that_gets_a_signal_ends_its_tests(tmp_path, number):
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
        wait_until(lambda: not is_active(waiting))
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("body", "status"),
    [("time.sleep(1.5)", 0), ("while True: pass", -signal.SIGPROF)],
    ids=["waits", "works"],
)
def test_a_limit_is_one_of_processor_time(tmp_path, body, status):
    """On a busy machine a test that is all right takes long by the clock."""
    test, orders = tmp_path / "test_it.py", tmp_path / "orders.json"
    test.write_text(f"import time\n\ndef test_it():\n    {body}\n")
    orders.write_text(json.dumps({"tests": {"test_it.py::test_it": 0.5}, "ran": None}))
    settings = {"PYTHONPATH": str(RUNNER / "inside"), "ZERONORM_TRIAL": str(orders)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "mutation_plugin",
        str(test),
    ]
    ended = subprocess.run(command, cwd=tmp_path, env={**os.environ, **settings}, timeout=120)
    assert ended.returncode == status


def wait_until(condition, limit_s=30.0):
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + limit_s
        time.sleep(0.05)


def is_active(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_named_faults_apply_and_name_tests_that_exist(monkeypatch):
    monkeypatch.syspath_prepend(str(RUNNER))
    from faults import NAMED_FAULTS

    root = RUNNER.parents[1]
    for fault in NAMED_FAULTS:
        assert (root / "src" / "zeronorm" / fault.file).read_text("utf-8").count(fault.text) == 1, (
            fault.meaning
        )
        assert all((root / test).exists() for test in fault.tests), fault.meaning
