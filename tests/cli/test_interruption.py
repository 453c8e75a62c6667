"""Runs that are interrupted, terminated or killed, and resumed runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import polars as pl
import pytest

from zeronorm.cli._main import run
from zeronorm.workflow import _training as training

from .conftest import select, small_rows, write_csv

# Each run prints its process and waits when five folds are in its journal: the test does not depend on the clock. It
# waits in many short sleeps, because a signal that comes just before a sleep begins is acted upon only when the sleep
# ends. Ctrl-C acts even where the tests run in the background of a shell, which makes their processes ignore it. All
# runs are forked from one process, as its imports take longer than they do.
HELD = """
import json, os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from zeronorm.cli._main import main
from zeronorm.resampling._journal import Journal
import sklearn.svm, zeronorm.workflow._run
from zeronorm import FisherScore

FisherScore(1).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]], [0, 0, 1, 1])  # reads the compiled code once

written, write = [], Journal.write

def held(self, key, rows):
    write(self, key, rows)
    written.append(key)
    if len(written) == 5:
        print(out, os.getpid(), flush=True)
        while True:
            time.sleep(0.05)

Journal.write = held
processes = {}
for out in sys.argv[1].split():
    processes[out] = os.fork()
    if processes[out] == 0:
        sys.argv[1:] = [*sys.argv[2:], "--out", out]
        main()
        os._exit(0)
ended = {out: os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for out, process in processes.items()}
print(json.dumps(ended))
"""
RUN = ["select", "data.csv", "-t", "label", "-m", "fisher", "--features", "2", "--cv", "5", "--repeats", "3"]
RUN += ["--permutations", "0"]
SIGNALS = {"out": signal.SIGINT, "ended": signal.SIGTERM, "killed": signal.SIGKILL}


@pytest.fixture(scope="module")
def ended_runs(tmp_path_factory):
    """A folder in which three runs got a signal when they had five folds, their exit codes, and what they printed."""
    folder = tmp_path_factory.mktemp("runs")
    write_csv(folder / "data.csv", [*(f"g{i}" for i in range(12)), "label"], small_rows())
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, " ".join(SIGNALS), *RUN],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in SIGNALS:
        out, pid = process.stdout.readline().split()
        os.kill(int(pid), SIGNALS[out])
    printed, errors = process.communicate(timeout=400)
    return folder, json.loads(printed), errors


def _records_in(folder):
    return pl.read_parquet(folder / "records.parquet").drop("seconds", "fit_seconds")


def test_an_interrupted_run_keeps_its_journal_and_goes_on(ended_runs, monkeypatch, capsys):
    """Only the interrupted runs need their own processes; the resumed runs are in this process."""
    folder, codes, errors = ended_runs
    monkeypatch.chdir(folder)
    # Python may end itself with the signal; a shell reports both as 128 + number.
    assert {out: code % 256 if code >= 0 else 128 - code for out, code in codes.items()} == {
        "out": 130,
        "ended": 143,
        "killed": 137,
    }
    assert "Traceback" not in errors
    for out in ("out", "ended"):
        assert [file.name for file in (folder / out).iterdir()] == ["journal"]
    assert {file.name for file in folder.iterdir() if file.name[0] != "."} == {"data.csv", *SIGNALS}
    assert run([*RUN, "--out", "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert list(folder.glob(".zeronorm-*"))  # of the killed run; the next one removes it
    assert run([*RUN, "--out", "whole"]) == 0
    assert not list(folder.glob(".zeronorm-*"))
    whole = _records_in(folder / "whole")
    for out in ("out", "ended"):
        assert run([*RUN, "--out", out, "--resume"]) == 0
        assert (folder / out / "selected.csv").exists()
        assert not (folder / out / "journal").exists()
        assert _records_in(folder / out).equals(whole)


def test_an_interrupted_run_leaves_nothing(data_file, tmp_path, capsys, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "evaluate_procedures", interrupt)
    assert select(data_file, tmp_path / "out", "-q") == 130
    assert "Interrupted" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]
