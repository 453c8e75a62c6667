"""What a run will do, and how long it takes at most."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm.workflow._options import Caller, CompareOptions, SelectOptions
from zeronorm.workflow._plan import plan, rough_time

from .conftest import numbers, two_signals

CALLER = Caller("a command")


def planned(X, y, **options):
    return plan(X, SelectOptions(target=y, **options), CALLER)


def test_the_steps_name_data_method_folds_and_permutations():
    steps = planned(*numbers(), method="fisher", cv=3, repeats=2, permutations=7).steps
    assert "30 samples with 4 features" in steps[0]
    assert "15 no, 15 yes" in steps[0]
    assert "fisher" in steps[1]
    assert "3 folds, 2 times" in steps[2]
    assert "7 shuffled outcomes" in steps[3]


def test_the_method_is_the_one_that_the_run_uses():
    """What the plan promises is what the result says."""
    X, y = two_signals()
    for options in ({"control": "fdr", "level": 0.2}, {"method": "golub", "features": 3}):
        result = zeronorm.select(X, y, cv=3, permutations=0, **options)
        used = result.chosen_method
        assert used in planned(X, y, cv=3, permutations=0, **options).steps[1]


def test_groups_and_numbers_are_mentioned():
    X, _ = numbers()
    rng = np.random.default_rng(0)
    found = planned(X, rng.normal(size=30), sample_groups=np.repeat(np.arange(10), 3), method="lasso")
    assert "(a number)" in found.steps[0]
    assert "10 groups" in found.steps[0]


def test_a_comparison_names_all_methods():
    X, y = numbers()
    found = plan(X, CompareOptions(target=y, methods="fisher,golub"), CALLER)
    assert "2 methods (fisher, golub)" in found.steps[1]


@pytest.mark.parametrize("options", [{"cv": 20}, {"features": 99}, {"target": "none"}, {"metric": "none"}])
def test_errors_are_those_of_the_run(options):
    X, y = numbers()
    given = {"target": y, **options}
    with pytest.raises(ValueError) as of_plan:
        plan(X, SelectOptions(**given), CALLER)
    with pytest.raises(ValueError) as of_run:
        zeronorm.select(X, **given)
    assert str(of_plan.value) == str(of_run.value)


def test_more_work_takes_longer():
    X, y = numbers()
    times = [planned(X, y, method="rfe", permutations=0, **more).seconds for more in ({}, {"repeats": 4})]
    assert times[1] == pytest.approx(4 * times[0])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, "less than half a minute"),
        (50, "at most about 1 minute, often much less"),
        (200, "at most about 3 minutes, often much less"),
        (7300, "at most about 2 hours, often much less"),
    ],
)
def test_times_are_rough(seconds, text):
    assert rough_time(seconds) == text
