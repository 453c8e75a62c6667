"""Warnings appear if there is a reason for them, and only then."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import zeronorm
from zeronorm.datasets import TableOptions, build_table
from zeronorm.datasets._raw import RawTable
from zeronorm.workflow._checks import data_warnings, separating_features

from .conftest import table_of


def raw_table(X, y, names=None, **options):
    raw = RawTable.from_matrix(X, names, targets={"y": np.asarray(y)}, default_target="y")
    return build_table(raw, TableOptions(**options))


def noise(n=100, p=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


QUICK = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}
VALUES = np.random.default_rng(0).normal(size=60)


def warnings_about(message, table):
    return [text for text in data_warnings(table) if message in text]


def small_table(n_first, n_second, p=2):
    y = np.array(["a"] * n_first + ["b"] * n_second)
    return table_of(np.random.default_rng(0).normal(size=(len(y), p)), y)


def test_clean_data_raise_no_warning():
    assert data_warnings(raw_table(noise(), np.arange(100) % 2)) == []


@pytest.mark.parametrize("n", [100, 5000])
def test_a_feature_that_separates_the_classes_is_a_leak_suspect(n):
    X, y = noise(n), np.arange(n) % 2
    X[:, 3] = np.where(y == 1, 5.0, 1.0) + 0.1 * X[:, 3]
    found = data_warnings(raw_table(X, y, [f"<g{i}>" for i in range(5)]))
    assert len(found) == 1
    assert "'<g3>' separates the classes alone" in found[0]


def test_separation_is_no_suspicion_where_chance_would_do_it():
    X, y = noise(n=8, p=2000), np.arange(8) % 2
    assert separating_features(X, y).size > 0
    assert not any("leak" in text for text in data_warnings(raw_table(X, y)))


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
    found = data_warnings(raw_table(X, y))
    assert any("'x5' is almost a linear function of the target" in text for text in found)


@pytest.mark.parametrize("huge", [5e20, 12345678901234567890.0])
def test_huge_values_do_not_make_samples_equal(huge):
    X = np.column_stack([noise(), np.full(100, huge)])
    assert not any("exact cop" in text for text in data_warnings(raw_table(X, np.arange(100) % 2)))


def test_zeros_of_both_signs_are_equal():
    X = noise()
    X[7], X[3] = 0.0, -0.0
    found = data_warnings(raw_table(X, np.arange(100) % 2))
    assert any("1 sample is an exact copy" in text for text in found)


def test_repeated_samples():
    X = noise()
    X[7] = X[3]
    found = data_warnings(raw_table(X, np.arange(100) % 2))
    assert [text for text in found if text.startswith("1 sample is an exact copy of another, ")]


def test_imbalance_and_few_samples():
    y = np.zeros(100, dtype=int)
    y[:16] = 1
    found = data_warnings(raw_table(noise(), y))
    assert len(found) == 1
    assert "not balanced" in found[0]
    found = data_warnings(raw_table(noise(20), np.arange(20) % 2))
    assert "few samples (20, 10 in the smallest class)" in found[0]


def test_identifier_columns():
    X = noise()
    X[:, 2] = np.arange(100)
    found = data_warnings(raw_table(X, np.arange(100) % 2, ["a", "b", "row", "c", "d"]))
    assert any("'row'" in text for text in found)


def test_an_outlier_in_y_is_reported_with_the_name_of_its_sample():
    X = noise()
    y = X[:, 0] + 0.3 * X[:, 1]
    y[40] = -1e6
    table = raw_table(X, y)
    [reported] = data_warnings(table)
    assert reported.startswith("Sample 41 of 100 has the target -1e+06, while the others have the median ")
    assert reported.endswith("Correct or drop it, or use the ranks of the target instead of its values.")
    named = replace(table, sample_ids=np.array([f"P{i}" for i in range(100)], dtype=object))
    assert data_warnings(named)[0].startswith("Sample 'P40' has the target -1e+06")
    y[7] = 1e6
    assert data_warnings(raw_table(X, y))[0].startswith("Samples 8, 41 of 100 have targets such as")
    assert data_warnings(raw_table(X, np.argsort(np.argsort(y)).astype(float), task="regression")) == []


@pytest.mark.parametrize("run", [zeronorm.select, zeronorm.compare])
def test_a_run_warns_of_an_outlier_in_y_once(run, recwarn):
    X = noise()
    y = X[:, 0] + 0.3 * X[:, 1]
    y[40] = -1e6
    settings = (
        {"method": "fisher", "features": 1} if run is zeronorm.select else {"methods": ["fisher", "rfe"]}
    )
    result = run(X, y, cv=2, permutations=0, **settings)
    assert sum("outweighs all others" in text for text in result.warnings) == 1
    assert len(recwarn) == 0


def test_a_column_like_an_identifier_is_pointed_out_once():
    rng = np.random.default_rng(0)
    X = np.column_stack([1000 + np.arange(40), rng.normal(size=(40, 5))])
    result = zeronorm.select(X, np.arange(40) % 2, **QUICK)
    assert sum("identifier" in text for text in [*result.notes, *result.warnings]) == 1


def test_features_that_never_vary_give_a_warning():
    y = np.arange(60) % 2
    reported = data_warnings(table_of(np.ones((60, 2)), y))
    assert any("Each of the 2 features has the same value in all samples" in text for text in reported)
    X = np.ones((60, 2))
    X[:, 1] = VALUES
    assert not any("same value" in text for text in data_warnings(table_of(X, y)))


@pytest.mark.parametrize(
    ("sizes", "reported"),
    [((40, 10), True), ((39, 10), False), ((100, 25), True), ((99, 25), False)],
)
def test_one_class_of_four_times_the_samples_is_not_balanced(sizes, reported):
    found = warnings_about("not balanced", small_table(*sizes))
    assert len(found) == reported
    assert all(f"'b' has {sizes[1]} of {sum(sizes)} samples" in text for text in found)


@pytest.mark.parametrize(("sizes", "reported"), [((35, 15), False), ((34, 15), True), ((40, 14), True)])
def test_fifty_samples_and_fifteen_of_a_class_are_enough(sizes, reported):
    assert len(warnings_about("few samples", small_table(*sizes))) == reported
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert warnings_about("few samples", table_of(X, X[:, 0], task="regression")) == []
    (text,) = warnings_about("few samples", table_of(X[:49], X[:49, 0], task="regression"))
    assert "few samples (49) for 2 features" in text


def test_leaks_are_counted_and_named():
    n = 60
    y = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, 4))
    X[:, 1] = y + 0.01 * X[:, 1]
    X[:, 3] = -y + 0.01 * X[:, 3]
    (text,) = warnings_about("leak", table_of(X, y))
    assert "Each of 2 features separates the classes alone: 'x2', 'x4'." in text
    real = np.random.default_rng(1).normal(size=n)
    X[:, 2] = 5.0  # constant, no division by zero
    X[:, 0] = 3.0 - 2.0 * real
    (text,) = warnings_about("leak", table_of(X, real, task="regression"))
    assert "The feature 'x1' is almost a linear function of the target." in text
    three = table_of(np.repeat(np.arange(3.0), 4)[:, None], np.repeat(list("abc"), 4))
    (text,) = warnings_about("leak", three)
    assert "'x1' separates the classes alone" in text


@pytest.mark.parametrize(
    ("sizes", "p", "reported"), [((6, 6), 4, True), ((6, 6), 5, False), ((5, 7), 3, True)]
)
def test_separation_gives_a_warning_where_chance_gives_less_than_one_in_a_hundred(sizes, p, reported):
    """Of 12 samples, 924 or 792 orders are equally likely for a noise feature, and two of them separate the classes."""
    table = small_table(*sizes, p)
    expected = 2 * p / comb(12, sizes[0])
    assert (expected <= 0.01) is reported
    X = table.X.copy()
    X[:, 0] = (table.y == "a") + 0.0
    assert len(warnings_about("leak", replace(table, X=X))) == reported


def test_every_column_of_a_wide_table_is_looked_at():
    """Columns are read in blocks: the first, an inner and the last column are found, and so is a single difference."""
    n, p = 60, 10_000
    y = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, p))
    X[:, [0, 5000, p - 1]] = y[:, None] + 0.01 * X[:, [0, 5000, p - 1]]
    assert separating_features(X, y).tolist() == [0, 5000, p - 1]
    (text,) = warnings_about("leak", table_of(X, X[:, p - 2] * 2.0 + 1.0, task="regression"))
    assert f"The feature 'x{p - 1}' is almost a linear function" in text
    X[7] = X[5]
    (text,) = warnings_about("copy", table_of(X, y))
    assert text.startswith("1 sample is an exact copy of another, ")
    assert warnings_about("copy", table_of(X, y, sample_groups=np.arange(n) // 2)) == []
    for column in (0, 5000, p - 1):
        other = X.copy()
        other[7, column] += 1.0
        assert warnings_about("copy", table_of(other, y)) == []
    constant = np.ones((n, p))
    assert len(warnings_about("same value", table_of(constant, y))) == 1
    constant[0, p - 1] = 2.0
    assert warnings_about("same value", table_of(constant, y)) == []


def test_patients_are_pointed_out_until_they_are_used(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "patient": [f"p{i // 3}" for i in range(36)],
            "batch": [i // 6 for i in range(36)],
            **{f"g{k}": rng.normal(size=36) for k in range(6)},
            "y": ["a", "b"] * 18,
        }
    )
    result = zeronorm.select(frame, "y", **QUICK)
    assert not any(name.startswith("patient") for name in result.features)
    warned = [text for text in result.warnings if "belong together" in text]
    assert len(warned) == 1
    assert "'patient', 'batch' look like" in warned[0]
    assert "sample_groups='patient'" in warned[0]
    used = zeronorm.select(frame, "y", sample_groups="patient", **QUICK)
    assert not any("belong together" in text for text in used.warnings)
