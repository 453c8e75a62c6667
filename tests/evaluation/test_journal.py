"""Interrupted runs: no finished task is repeated, no damaged result is used."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression

from zeronorm import FisherScore, SelectionPath, evaluate
from zeronorm.evaluation import Metric, probe_fraction
from zeronorm.registry import register
from zeronorm.resampling._journal import Journal, digest
from zeronorm.selectors._base import BaseSelector


def make_data(n=24, p=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p)) + 0.8 * y[:, None]
    return X, y


@register("test-counting", family="filters", tasks=("binary",), reference="")
class Counting(BaseSelector):
    """A random order; counts its fits and fails on request."""

    fits = 0
    is_broken = False

    def __init__(self, n_features_to_select=None, *, threshold=0.6, random_state=None):
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.random_state = random_state

    def _select(self, problem):
        Counting.fits += 1
        if Counting.is_broken:
            raise RuntimeError("no memory left")
        return SelectionPath.from_scores(problem.rng.random(problem.n_features))


@pytest.fixture
def run(tmp_path):
    Counting.fits, Counting.is_broken = 0, False
    X, y = make_data()
    defaults = {"selectors": {"a": Counting()}, "X": X, "y": y, "cv": 4, "sizes": [1, 3]}

    def call(**changes):
        before = Counting.fits
        records = evaluate(**(defaults | {"journal": tmp_path / "journal"} | changes))
        return records, Counting.fits - before

    return call


def test_resume_repeats_nothing_and_gives_the_same_records(run):
    first, fits = run()
    assert fits == 4
    again, fits = run()
    assert fits == 0
    assert again.equals(first)  # even the seconds: they were read, not measured
    without, _ = run(journal=None)
    assert without.drop("fit_seconds", "seconds").equals(first.drop("fit_seconds", "seconds"))


def test_a_new_method_costs_only_its_own_cells(run):
    run()
    _, fits = run(selectors={"b": Counting(threshold=1.0), "a": Counting()})
    assert fits == 4


CHANGES = {
    "parameter": {"selectors": {"a": Counting(threshold=0.7)}},
    "sizes": {"sizes": [1, 4]},
    "estimator": {"estimator": LogisticRegression()},
    "seed": {"random_state": 1},
    "labels": {"y": 1 - make_data()[1]},
    "data": {"X": make_data()[0] + 1e-12},
    "metric": {"metrics": [Metric("error_rate", lambda truth, predictions: 0.5)]},
    "probes": {"metrics": [probe_fraction([1, 2])]},
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_work_is_not_mistaken_for_finished_work(run, change):
    run(**({"metrics": [probe_fraction([1, 3])]} if change == "probes" else {}))
    _, fits = run(**CHANGES[change])
    assert fits == 4


FIXED_FOLDS = [(np.arange(12, 24), np.arange(12)), (np.arange(12), np.arange(12, 24))]


@pytest.mark.parametrize("change", ["seed", "data", "labels", "groups"])
def test_the_same_folds_with_another_seed_or_other_data_are_other_work(run, change):
    """With a number of folds the seed changes the folds too; here only the seed, or only the data, changes."""
    groups = np.arange(24) // 2
    changed = CHANGES | {"groups": {"groups": groups[::-1]}}
    run(cv=FIXED_FOLDS, groups=groups)
    _, fits = run(**({"cv": FIXED_FOLDS, "groups": groups} | changed[change]))
    assert fits == 2


def test_only_lost_and_damaged_cells_are_done_again(run, tmp_path):
    first, _ = run()
    files = sorted((tmp_path / "journal").glob("*.json"))
    files[0].unlink()
    files[1].write_text(files[1].read_text()[:20])
    files[2].write_text("[]")
    (tmp_path / "journal" / "half.json.123.tmp").write_text("{")
    again, fits = run()
    assert fits == 3
    assert again.drop("fit_seconds", "seconds").equals(first.drop("fit_seconds", "seconds"))


@pytest.mark.parametrize("flip", [0, 1, 2])
def test_cells_changed_on_the_disk_are_done_again(run, tmp_path, flip):
    """Wherever one bit flips, the resumed records are those of the uninterrupted run."""
    first, _ = run()
    rng = np.random.default_rng(flip)
    for file in (tmp_path / "journal").glob("*.json"):
        content = bytearray(file.read_bytes())
        place = int(rng.integers(len(content)))
        content[place] ^= 1 << int(rng.integers(7))
        file.write_bytes(bytes(content))
    again, _ = run()
    assert again.drop("fit_seconds", "seconds").equals(first.drop("fit_seconds", "seconds"))


def test_a_changed_number_that_is_still_valid_json_is_not_believed(tmp_path):
    journal = Journal(tmp_path)
    journal.write("key", {"error_rate": 0.25})
    file = tmp_path / "key.json"
    file.write_text(file.read_text().replace("0.25", "0.05"))
    assert journal.read("key") is None
    journal.write("other", {"error_rate": 0.5})
    (tmp_path / "key.json").write_text((tmp_path / "other.json").read_text())
    assert journal.read("key") is None  # a whole result, but of another task


def test_cells_of_another_version_are_not_believed(run, monkeypatch):
    run()
    monkeypatch.setattr("zeronorm.evaluation._protocol.__version__", "0.0.0")
    _, fits = run()
    assert fits == 4


def test_two_runs_in_one_folder_at_the_same_time(run, tmp_path):
    """Results written twice are the same, and the folder holds nothing but results."""
    expected, _ = run(journal=None)
    with ThreadPoolExecutor(2) as pool:
        found = [future.result() for future in [pool.submit(run) for _ in range(2)]]
    for records, _ in found:
        assert records.drop("fit_seconds", "seconds").equals(expected.drop("fit_seconds", "seconds"))
    assert len(list((tmp_path / "journal").iterdir())) == 4


def test_leftovers_of_killed_runs_are_removed_when_they_are_old(tmp_path):
    old, young = tmp_path / "a.1.tmp", tmp_path / "b.2.tmp"
    for file in (old, young):
        file.write_text("{")
    os.utime(old, (0, 0))
    Journal(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["b.2.tmp"]


def test_failures_are_kept_until_a_retry_is_asked_for(run):
    Counting.is_broken = True
    with pytest.warns(FitFailedWarning, match="4 of 4"):
        run()
    Counting.is_broken = False
    with pytest.warns(FitFailedWarning, match="4 of 4"):
        records, fits = run()
    assert fits == 0
    assert records["error"].to_list() == ["RuntimeError: no memory left"] * 8
    records, fits = run(retry_failed=True)
    assert fits == 4
    assert records["error"].null_count() == 8


def test_unwritable_journal_is_refused_before_any_work(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot be written.*choose another directory"):
        run(journal=tmp_path / "file")
    assert Counting.fits == 0


def test_a_disk_that_fails_in_the_middle_keeps_finished_cells(run, tmp_path, monkeypatch):
    real_replace, calls = os.replace, []

    def replace(source, target):
        calls.append(target)
        if len(calls) == 4:  # the probe at the start, two tasks, then the failure
            raise OSError(28, "No space left on device")
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match=r"No space left on device.*are kept"):
        run()
    monkeypatch.undo()
    assert not list((tmp_path / "journal").glob("*.tmp"))
    _, fits = run()
    assert fits == 2


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    real_write = Path.write_text

    def write_text(self, text, **options):
        real_write(self, text[:5], **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(OSError, match=r"No space left on device.*free disk space"):
        journal.write("key", {"a": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_folder_is_refused_before_any_work(run, tmp_path, monkeypatch):
    def write_text(self, text, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(OSError, match=r"cannot be written.*Permission denied.*choose another directory"):
        run()
    assert Counting.fits == 0


def test_journal_needs_a_seed(run):
    with pytest.raises(ValueError, match="must be an int when there is a journal"):
        run(random_state=None)


def test_digest_tells_values_apart():
    values = [
        1, 1.0, True, "1", None, [1], (1,), [[1], 2], [1, [2]], {"a": 1}, {"b": 1}, b"1",
        np.arange(3), np.arange(3.0), np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2),
        FisherScore(), FisherScore(2), lambda x: x + 1, lambda x: x + 2, np.random.RandomState(0),
        np.asarray(["a", "b"], dtype=object), np.asarray(["a", "b"]),
    ]  # fmt: skip
    digests = [digest(value) for value in values]
    assert len(set(digests)) == len(values)
    assert digests == [digest(value) for value in values]


def test_a_digest_does_not_depend_on_the_order_of_a_dictionary():
    assert digest(FisherScore(2), {"a": 1, "b": [2]}) == digest(FisherScore(2), {"b": [2], "a": 1})


KILLED_SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import slow_selector
slow_selector.FITS_BEFORE_THE_END = 4
slow_selector.evaluate_slowly({journal!r})
"""
SLOW_SELECTOR = """
import time
import numpy as np
from zeronorm import SelectionPath, evaluate
from zeronorm.selectors._base import BaseSelector
from zeronorm.registry import register

FITS_BEFORE_THE_END = None
fits = []

@register("slow-order", family="filters", tasks=("binary",), reference="")
class SlowOrder(BaseSelector):
    def __init__(self, n_features_to_select=None, *, random_state=None):
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _select(self, problem):
        if len(fits) == FITS_BEFORE_THE_END:
            print("now", flush=True)
            time.sleep(3600)
        fits.append(problem)
        return SelectionPath.from_scores(problem.rng.random(problem.n_features))

def evaluate_slowly(journal):
    X, y = np.random.default_rng(0).normal(size=(24, 8)), np.arange(24) % 2
    return evaluate({"slow": SlowOrder()}, X, y, cv=12, sizes=[1, 3], journal=journal)
"""


def _finished(journal):
    return len(list(journal.glob("*.json"))) if journal.exists() else 0


def test_kill_9_in_the_middle_and_resume(tmp_path, monkeypatch):
    """What is finished is found by digests of data, methods and seeds, which are the same in another process."""
    (tmp_path / "slow_selector.py").write_text(SLOW_SELECTOR)
    journal = tmp_path / "journal"
    script = KILLED_SCRIPT.format(folder=str(tmp_path), journal=str(journal))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "now\n"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    survivors = {file.name: file.read_text() for file in journal.glob("*.json")}
    assert len(survivors) == 4
    assert all(json.loads(text) for text in survivors.values())

    monkeypatch.syspath_prepend(tmp_path)
    slow_selector = importlib.import_module("slow_selector")
    resumed = slow_selector.evaluate_slowly(journal)
    for name, text in survivors.items():
        assert (journal / name).read_text() == text  # not done again: the seconds in it are the old ones
    assert _finished(journal) == 12
    uninterrupted = slow_selector.evaluate_slowly(None)
    seconds = ["fit_seconds", "seconds"]
    assert resumed.drop(seconds).equals(uninterrupted.drop(seconds))


def test_journal_reads_only_what_it_knows(tmp_path):
    journal = Journal(tmp_path)
    journal.write("key", {"a": [1, None, "x"]})
    assert journal.finished() == {"key"}
    assert journal.read("key") == {"a": [1, None, "x"]}
    assert journal.read("other") is None
