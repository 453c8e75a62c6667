"""The number of permutations of a run if the user does not set it: as many as the time allows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow._inputs import DataOptions, load_data
from zeronorm.workflow._procedures import Settings

from .conftest import numbers, simulated, table_of


def _data(n_samples, n_features):
    X, y = simulated(0, 0.0, n_samples, n_features)
    return X, DataOptions(target=y)


def test_the_estimate_of_the_work_by_hand():
    """Seconds of one target: a selector in each outer and inner fold, a predictor for each size."""
    X, y = numbers(30, 4)
    table = table_of(X, y)
    predictor = 3e-3 + 5e-6 * 30
    n_values = 30 * 4
    sizes = [1, 2, 3]

    def estimate(method, **settings):
        return chance.estimated_seconds(table, Settings(**settings), sizes, method)

    assert estimate("fisher", features=2, cv=3, repeats=2) == pytest.approx(6 * (n_values * 2e-7 + predictor))
    assert estimate("fisher", cv=3) == pytest.approx(3 * (4 * n_values * 2e-7 + (1 + 3 * 3) * predictor))
    assert estimate("rfe", features=2, cv=3) == pytest.approx(3 * (n_values * 2e-6 + predictor))
    assert estimate("ofw", features=2, cv=3) == pytest.approx(3 * (40 * n_values * 2e-6 + predictor))
    neighbours = n_values * (2e-7 + 6e-10 * 30)
    assert estimate("relief", features=2, cv=3) == pytest.approx(3 * (neighbours + predictor))
    gaussian = 3e-3 + 3e-8 * 900
    assert estimate("fisher", features=2, cv=3, predictor="gaussian") == pytest.approx(
        3 * (n_values * 2e-7 + gaussian)
    )
    assert estimate("fisher", features=2, cv=3, predictor=Ridge()) == pytest.approx(
        3 * (n_values * 2e-7 + 0.3)
    )
    methods = 1 + len(procedures.candidates(table))
    both = 3 * (4 * n_values * 2e-6 + (1 + 3) * predictor)
    assert estimate("auto", features=2, cv=3) == pytest.approx(methods * both)


def test_models_on_more_samples_than_features_take_longer():
    y = np.arange(501) % 2
    tall, wide = (table_of(np.zeros((501, p)) + y[:, None], y) for p in (500, 501))
    assert chance._seconds_of_selector(tall, "rfe") == pytest.approx(501 * 500 * 5e-6)
    assert chance._seconds_of_selector(wide, "rfe") == pytest.approx(501 * 501 * 2e-6)
    short = table_of(np.zeros((500, 3)) + y[:500, None], y[:500])
    assert chance._seconds_of_selector(short, "rfe") == pytest.approx(500 * 3 * 2e-6)


def test_the_factor_by_which_methods_take_longer_than_a_model():
    """Times as measured on 2026-11-16; the default number of permutations follows from them."""
    table = table_of(*numbers())
    model = chance._seconds_of_selector(table, "rfe")
    factors = {
        "bound-elimination": 10, "consensus": 4, "gflip": 3, "interval": 10, "jcfo": 10, "knockoff-selector": 3,
        "ofw": 40, "probe-selector": 3, "stability-selection": 100, "arom": 1, "fisher": 0.1,
    }  # fmt: skip
    for name, factor in factors.items():
        assert chance._seconds_of_selector(table, name) == pytest.approx(factor * model), name


@pytest.mark.parametrize(
    ("seconds", "is_only_test", "count"),
    [(20 / 99, False, 99), (20.1 / 99, False, 39), (20 / 39, False, 39), (20 / 19, False, 19), (1.06, False, 0),
     (1.06, True, 19), (120 / 19, True, 19), (6.4, True, 0)],
)  # fmt: skip
def test_as_many_permutations_as_the_time_allows(seconds, is_only_test, count, monkeypatch):
    monkeypatch.setattr(chance, "estimated_seconds", lambda *_: seconds)
    found = chance.permutation_count(None, Settings(), [1], "fisher", is_only_test=is_only_test)
    assert found == count
    assert (
        chance.permutation_count(None, Settings(permutations=5), [1], "fisher", is_only_test=is_only_test)
        == 5
    )


def test_auto_takes_fewer_permutations_as_the_work_grows():
    small = load_data(*_data(40, 50))
    assert chance.permutation_count(small, Settings(features=3, cv=3), [1, 2], "fisher") == 99
    wide = load_data(*_data(40, 50))
    counts = [
        chance.permutation_count(
            wide, Settings(features=None, cv=cv, repeats=repeats), list(range(12)), "fisher"
        )
        for cv, repeats in ((2, 1), (5, 1), (10, 10))
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    assert chance.permutation_count(wide, Settings(permutations=7, cv=10, repeats=10), [1], "fisher") == 7


def test_auto_knows_that_models_take_longer_on_many_samples():
    table = load_data(*_data(3000, 40))
    fixed = Settings(features=5, cv=5)
    counts = [chance.permutation_count(table, fixed, [5], name) for name in ("fisher", "rfe", "ofw")]
    assert counts == [39, 0, 0]


def test_auto_knows_that_the_method_auto_takes_longer():
    table = load_data(*_data(40, 22))
    settings = Settings(features=None, cv=5)
    assert chance.permutation_count(table, settings, list(range(12)), "fisher") == 19
    assert chance.permutation_count(table, settings, list(range(12)), "auto") == 0
    assert chance.permutation_count(table, settings, list(range(12)), "auto", is_only_test=True) == 19
    assert chance.permutation_count(table, Settings(features=None, cv=10), list(range(12)), "auto") == 0
    long = Settings(features=None, cv=10, repeats=10)
    assert chance.permutation_count(table, long, list(range(12)), "auto", is_only_test=True) == 0


@pytest.mark.parametrize(
    ("method", "width", "n_made", "is_explained"),
    [("rfe", 4, 0, False), ("rfe", 4000, 0, True), ("ofw", 4000, 0, True), ("rfe", 4000, 19, False)],
)
def test_permutations_that_auto_leaves_out_are_explained(method, width, n_made, is_explained):
    table = table_of(*numbers(60, width))
    settings = Settings(features=2, cv=3)
    notes = chance.left_out_notes(table, settings, [2], method, n_made)
    if not is_explained:
        assert notes == []
        return
    (note,) = notes
    seconds = 19 * chance.estimated_seconds(table, settings, [2], method)
    assert (f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes") in note
    assert note.startswith("No permutation test was made: 19 permutations are estimated to take ")
    assert note.endswith("To make them, set permutations=19.")
    assert chance.left_out_notes(table, Settings(permutations=0), [2], method, 0) == []
