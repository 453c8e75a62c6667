"""Runs that are interrupted, terminated or killed, and resumed runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import polars as pl

from zeronorm.cli._main import run
from zeronorm.workflow import _training as training

from .conftest import select

# Prints a line when five folds are in the journal and waits: the test does not depend on the clock. It waits in
# many short sleeps, because a signal that comes just before a sleep begins is acted upon only when the sleep ends.
# Ctrl-C acts even where the tests run in the background of a shell, which makes their processes ignore it.
HELD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from zeronorm.cli._main import main
from zeronorm.resampling._journal import Journal

written, write = [], Journal.write

def held(self, key, rows):
    write(self, key, rows)
    written.append(key)
    if len(written) == 5:
        print("now", flush=True)
        while True:
            time.sleep(0.05)

Journal.write = held
main()
"""


def held_run(arguments, cwd):
    """A run that has five folds in its journal and then waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "now\n"
    return process


def _records_in(folder):
    return pl.read_parquet(folder / "records.parquet").drop("seconds", "fit_seconds")


def test_an_interrupted_run_keeps_its_journal_and_goes_on(data_file, tmp_path, monkeypatch, capsys):
    """Only the interrupted run needs its own process; the resumed run is in this process."""
    monkeypatch.chdir(tmp_path)
    options = "-t label -m fisher --cv 5 --repeats 3 --features 2 --permutations 0 --out"
    arguments = ["select", "data.csv", *options.split()]
    for out, number, code in (("out", signal.SIGINT, 130), ("ended", signal.SIGTERM, 143)):
        process = held_run([*arguments, out], tmp_path)
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=400)
        # Python may end itself with the signal; a shell reports both as 128 + number.
        seen = process.returncode if process.returncode >= 0 else 128 - process.returncode
        assert seen == code
        assert "Traceback" not in errors
        assert [file.name for file in (tmp_path / out).iterdir()] == ["journal"]
    assert {file.name for file in tmp_path.iterdir()} == {"data.csv", "out", "ended"}
    assert run([*arguments, "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert run([*arguments, "whole"]) == 0
    whole = _records_in(tmp_path / "whole")
    for out in ("out", "ended"):
        assert run([*arguments, out, "--resume"]) == 0
        assert (tmp_path / out / "selected.csv").exists()
        assert not (tmp_path / out / "journal").exists()
        assert _records_in(tmp_path / out).equals(whole)


def test_a_killed_run_leaves_nothing_for_ever(data_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    select = ["select", "data.csv", "-t", "label", "-k", "2"]
    process = held_run([*select, "-m", "fisher", "--repeats", "2", "--out", "out"], tmp_path)
    process.kill()
    process.communicate()
    assert list(tmp_path.glob(".zeronorm-*"))
    assert run([*select, "-m", "fisher", "--cv", "3", "--permutations", "0"]) == 0
    assert not list(tmp_path.glob(".zeronorm-*"))


def test_an_interrupted_run_leaves_nothing(data_file, tmp_path, capsys, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "evaluate_procedures", interrupt)
    assert select(data_file, tmp_path / "out", "-q") == 130
    assert "Interrupted" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]
