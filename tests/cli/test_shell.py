"""A few runs through a real shell: exit codes, streams, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "zeronorm.cli.main"]


def shell(*arguments, cwd, **options):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys; sys.argv = ['zeronorm', '--help']\n"
        "from zeronorm.cli.main import run\n"
        "assert run(['--help']) == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'polars', 'numba', 'jinja2', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for command in ("select", "compare", "methods", "datasets", "report", "warmup", "demo"):
        assert command in done.stdout


def test_the_installed_program_selects(data_file, tmp_path):
    program = Path(sys.executable).parent / "zeronorm"
    if not program.exists():
        pytest.skip("the package is not installed with its program")
    command = f"'{program}' select data.csv --target label --method fisher --features 2 --cv 3 --out out | tail -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "report: out/report.html\n"
    assert done.stderr == ""
    assert (tmp_path / "out" / "report.html").exists()


def test_usage_errors_are_one_line(tmp_path):
    done = shell("select", "none.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert shell("selekt", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_no_files(data_file, tmp_path, number, code):
    arguments = [
        "select",
        "data.csv",
        "-t",
        "label",
        "-m",
        "rfe",
        "--cv",
        "5",
        "--repeats",
        "2000",
        "--out",
        "out",
    ]
    process = subprocess.Popen([*PROGRAM, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".zeronorm-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    # Python may end itself with the signal; a shell reports both as 128 + number.
    seen = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert seen == code
    assert "Traceback" not in errors
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]
