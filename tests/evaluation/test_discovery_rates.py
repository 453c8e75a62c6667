"""The runner and the table of docs/trust/discovery_rates.py."""

import importlib
import time
from dataclasses import replace
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "trust"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the repository")


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("discovery_rates"), importlib.import_module("parallel_tasks")


def double(task):
    if task == "bad":
        raise ValueError("no")
    if task == "slow":
        time.sleep(60)
    return 2 * task


def test_slow_and_failing_tasks_do_not_keep_the_others(modules):
    _, parallel = modules
    found = list(parallel.results(double, [1, "slow", "bad", 2, 3], 2, 30.0, 1.0))
    assert sorted(str(task) for task, _ in found) == ["1", "2", "3", "bad", "slow"]
    results = dict(found)
    assert (results[1], results[2], results[3], results["slow"]) == (2, 4, 6, None)
    assert isinstance(results["bad"], ValueError)


def test_no_task_goes_on_after_the_time_is_up(modules):
    _, parallel = modules
    start = time.monotonic()
    assert list(parallel.results(double, ["slow", "slow"], 1, 0.5, 60.0)) == []
    assert time.monotonic() - start < 20


def test_every_setting_gets_its_first_data_set_before_any_gets_its_second(modules):
    rates, _ = modules
    numbers = [0, 1, 2, 20]
    seeds = [seed for _, _, seed in rates.tasks(numbers, ["DummySelector"], 3)]
    assert seeds == [0] * 4 + [1] * 4 + [2] * 4
    slower = [
        seed for _, method, seed in rates.tasks(numbers, list(rates.TURNS), 8) if method == "KnockoffSelector"
    ]
    assert slower == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    repeated = next(number for number, one in enumerate(rates.settings()) if one.is_repeated)
    assert rates.tasks([0, repeated], ["DummySelector"], 4) == [
        (0, "DummySelector", 0),
        (repeated, "DummySelector", 0),
        *((0, "DummySelector", seed) for seed in (1, 2, 3)),
        (repeated, "DummySelector", 1),
    ]


def test_rows_count_what_did_not_end_beside_the_rates(modules, tmp_path):
    rates, _ = modules
    one = rates.draw_of((0, "DummySelector", 0), (4, 1, 0.5))
    draws = [
        one,
        replace(one, seed=1, selected=0, false=0),
        replace(one, seed=2, selected=-1),
        replace(one, seed=0, selected=5),  # a data set that was run again replaces the earlier draw
    ]
    (row,) = rates.tabulate(draws, tmp_path / "rates.csv")
    assert (row.sets, row.failed, row.rate, row.power) == (2, 1, 0.1, 0.4)
    assert row.rate_error == pytest.approx(0.1)
    assert rates.read(tmp_path / "rates.csv", rates.Row) == [row]
