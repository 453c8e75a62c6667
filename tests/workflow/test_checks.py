"""Warnings appear when there is reason, and only then."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp

import zeronorm
from zeronorm.datasets import TableOptions, build_table
from zeronorm.datasets.raw import RawTable
from zeronorm.workflow.checks import _chance_of_separation, data_warnings, separating_features
from zeronorm.workflow.measured import result_warnings


def table_of(X, y, names=None, **options):
    raw = RawTable.from_matrix(X, names, targets={"y": np.asarray(y)}, default_target="y")
    return build_table(raw, TableOptions(**options))


def noise(n=100, p=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def test_clean_data_raise_no_warning():
    assert data_warnings(table_of(noise(), np.arange(100) % 2)) == []


@pytest.mark.parametrize("n", [100, 5000])
def test_a_feature_that_separates_the_classes_is_a_leak_suspect(n):
    X, y = noise(n), np.arange(n) % 2
    X[:, 3] = np.where(y == 1, 5.0, 1.0) + 0.1 * X[:, 3]
    found = data_warnings(table_of(X, y, [f"<g{i}>" for i in range(5)]))
    assert len(found) == 1
    assert "'<g3>' separates the classes alone" in found[0]


def test_separation_is_no_suspicion_where_chance_would_do_it():
    X, y = noise(n=8, p=2000), np.arange(8) % 2
    assert separating_features(X, y).size > 0
    assert _chance_of_separation(table_of(X, y)) == pytest.approx(2 * 2000 / comb(8, 4))
    assert not any("leak" in text for text in data_warnings(table_of(X, y)))


def test_separating_features_against_a_plain_loop():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, size=(9, 300)).astype(float)
    y = np.repeat(["a", "b", "c"], 3)

    def separates(column):
        ranges = sorted((column[y == label].min(), column[y == label].max()) for label in "abc")
        return ranges[0][1] < ranges[1][0] and ranges[1][1] < ranges[2][0]

    expected = [k for k in range(300) if separates(X[:, k])]
    X[:, 7] = np.repeat([2.0, 0.0, 1.0], 3)
    expected = sorted({*expected, 7})
    assert separating_features(X, y).tolist() == expected
    assert separating_features(sp.csr_matrix(X), y).tolist() == expected


def test_a_copy_of_a_real_target_is_a_leak_suspect():
    X = noise()
    y = X[:, 0] + X[:, 1]
    X[:, 4] = -3.0 * y + 1.0
    found = data_warnings(table_of(X, y))
    assert any("'x5' is almost a linear function of the target" in text for text in found)


def test_repeated_samples():
    X = noise()
    X[7] = X[3]
    found = data_warnings(table_of(X, np.arange(100) % 2))
    assert [text for text in found if text.startswith("1 sample is an exact copy of another, ")]


def test_imbalance_and_few_samples():
    y = np.zeros(100, dtype=int)
    y[:16] = 1
    found = data_warnings(table_of(noise(), y))
    assert len(found) == 1
    assert "not balanced" in found[0]
    found = data_warnings(table_of(noise(20), np.arange(20) % 2))
    assert "few samples (20, 10 in the smallest class)" in found[0]


def test_identifier_columns():
    X = noise()
    X[:, 2] = np.arange(100)
    found = data_warnings(table_of(X, np.arange(100) % 2, ["a", "b", "row", "c", "d"]))
    assert any("'row'" in text for text in found)


def measured(**changes):
    found = {
        "failed": [],
        "n_splits": 5,
        "value": 0.15,
        "chance": 0.5,
        "greater_is_better": False,
        "p_value": None,
        "n_permutations": 0,
        "beats_chance": True,
        "metric": "error_rate",
        "label": "error rate",
        "low": 0.1,
        "high": 0.2,
        "stability": {"value": 0.9},
    }
    return found | changes


def test_a_sound_result_has_no_warning():
    assert result_warnings(measured(), {"chosen": 3, "at_largest": False}) == []
    assert result_warnings(measured(metric="mse", low=1.0, high=9.0), {}) == []


@pytest.mark.parametrize(
    ("changes", "size", "words"),
    [
        ({"low": 0.0, "high": 0.4}, {}, "±20 percentage points"),
        ({"stability": {"value": 0.1}}, {}, "not stable"),
        ({"beats_chance": False, "p_value": 0.4, "n_permutations": 19}, {}, "better than chance (p = 0.4)"),
        ({"beats_chance": False}, {}, "the interval of the error rate contains chance"),
        (
            {"beats_chance": None, "p_value": 0.2, "n_permutations": 4},
            {},
            "4 permutations cannot give a p-value",
        ),
        ({"beats_chance": False, "value": 0.6}, {}, "the error rate is not below that of chance"),
        ({"beats_chance": None, "low": None, "high": None}, {}, "no permutations were made"),
        ({"failed": ["ValueError: no"]}, {}, "1 of 6 test parts could not be evaluated: ValueError: no"),
        ({"beats_chance": False, "value": 0.5}, {"chosen": 0}, "The method selected nothing"),
        ({}, {"chosen": 128, "at_largest": True}, "128, is the largest that was tried"),
    ],
)
def test_each_doubt_about_a_result_is_told(changes, size, words):
    found = result_warnings(measured(**changes), size)
    assert len(found) == 1
    assert words in found[0]
    assert "--" not in found[0]


def test_a_gross_target_is_told_with_the_name_of_its_sample():
    X = noise()
    y = X[:, 0] + 0.3 * X[:, 1]
    y[40] = -1e6
    table = table_of(X, y)
    [told] = data_warnings(table)
    assert told.startswith("Sample 41 of 100 has the target -1e+06, while the others have the median ")
    assert told.endswith("Correct or drop it, or use the ranks of the target instead of its values.")
    named = replace(table, sample_ids=np.array([f"P{i}" for i in range(100)], dtype=object))
    assert data_warnings(named)[0].startswith("Sample 'P40' has the target -1e+06")
    y[7] = 1e6
    assert data_warnings(table_of(X, y))[0].startswith("Samples 8, 41 of 100 have targets such as")
    assert data_warnings(table_of(X, np.argsort(np.argsort(y)).astype(float), task="regression")) == []


@pytest.mark.parametrize("run", [zeronorm.select, zeronorm.compare])
def test_a_run_tells_of_a_gross_target_once(run, recwarn):
    X = noise()
    y = X[:, 0] + 0.3 * X[:, 1]
    y[40] = -1e6
    settings = (
        {"method": "fisher", "features": 1} if run is zeronorm.select else {"methods": ["fisher", "rfe"]}
    )
    result = run(X, y, cv=2, permutations=0, **settings)
    assert sum("outweighs all others" in text for text in result.warnings) == 1
    assert len(recwarn) == 0
