"""Measures of a procedure, as numbers and as sentences."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import zeronorm
from zeronorm.result import _sentences as sentences
from zeronorm.workflow import _measured as measured
from zeronorm.workflow._procedures import Settings

from .conftest import table_of

MEASURED = {
    "method": "rfe", "metric": "error_rate", "label": "error rate", "greater_is_better": False, "value": 0.2,
    "low": 0.1, "high": 0.3, "no_interval": "", "n_splits": 5, "chance": 0.5, "p_value": None, "n_permutations": 0,
    "also": {}, "stability": {"value": 0.8, "low": None, "high": None}, "sizes": [2, 4], "failed": [],
    "beats_chance": True,
}  # fmt: skip
NO_INTERVAL = {"low": None, "high": None}


# -- Numbers --


def test_a_method_that_failed_everywhere_is_an_error_with_its_reason():
    rows = {
        "method": ["a", "a", "b", "b", "baseline"],
        "size": [None] * 5,
        "m": [None, None, 0.5, None, None],
        "error": ["", "reason", None, "late", None],
    }
    measured.check_something_worked(rows, "m", ["b", "baseline"])
    with pytest.raises(ValueError, match="'a' failed on every fold: reason"):
        measured.check_something_worked(rows, "m", ["baseline", "b", "a"])
    with pytest.raises(ValueError, match="no reason was recorded"):
        measured.check_something_worked(rows | {"error": [None] * 5}, "m", ["a"])


def test_folds_that_failed_are_left_out_of_the_means(problem):
    X, y = problem
    records = zeronorm.select(X, y, method="fisher", features=2, cv=3, permutations=0).records
    rows = {name: records[name].to_list() for name in records.columns}
    one_failed = {
        "balanced_error_rate": [0.1, None, 0.3], "error_rate": [0.2, None, 0.6], "n_selected": [2, None, 0],
        "fit_seconds": [1.0, None, 2.0], "error": [None, "broken", None],
    }  # fmt: skip
    own = [i for i, size in enumerate(rows["size"]) if size is None]
    rows = {name: [values[i] for i in own] for name, values in rows.items()} | one_failed

    def measure(metric, **changes):
        given = rows | changes
        return measured.measure("fisher", given, given, table_of(X, y), Settings(metric=metric))

    found = measure(None)
    assert (found["value"], found["chance"], found["n_splits"]) == (pytest.approx(0.2), pytest.approx(0.2), 2)
    assert found["also"] == pytest.approx({"error_rate": 0.4})
    assert (found["sizes"], found["seconds"], found["failed"]) == ([2, 0], 1.5, ["broken"])
    assert measure("error_rate")["also"] == pytest.approx({"balanced_error_rate": 0.2})
    assert measure(None, error_rate=[None] * 3)["also"] == {}
    assert measure(None, fit_seconds=[None] * 3)["seconds"] is None


# -- Claims --


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"high": 0.49}, True),
        ({"high": 0.5}, False),  # chance is in the interval
        ({"high": 0.55}, False),
        ({"p_value": 0.05, "n_permutations": 19}, True),
        ({"p_value": 0.06, "n_permutations": 99}, False),
        ({"p_value": 0.1, "n_permutations": 19}, False),
        ({"high": 0.55, "p_value": 0.01, "n_permutations": 99}, True),
        ({"value": 0.5}, False),
        ({"value": 0.51, "p_value": 0.01, "n_permutations": 99}, False),
        ({"greater_is_better": True}, False),
        ({"greater_is_better": True, "value": 0.8, "low": 0.7, "high": 0.9}, True),
        ({"greater_is_better": True, "value": 0.9, "low": 0.5}, False),
        ({"greater_is_better": True, "value": 0.4, "low": 0.6}, False),
        # A result that was not measured or not tested is neither shown nor refuted.
        ({"value": None}, None),
        ({"value": None, **NO_INTERVAL}, None),
        (NO_INTERVAL, None),
        ({"greater_is_better": True, "value": 0.8, **NO_INTERVAL}, None),
        ({"value": 0.5, **NO_INTERVAL}, False),
        ({"value": 0.7, **NO_INTERVAL}, False),
        ({"chance": None}, None),
        ({"chance": None, "p_value": 0.05, "n_permutations": 19}, True),
        ({"chance": None, "p_value": 0.1, "n_permutations": 19}, False),
        # Nine permutations cannot give less than p = 0.1: they can only show that chance does as well.
        ({"p_value": 0.1, "n_permutations": 9}, None),
        ({"p_value": 0.1, "n_permutations": 9, **NO_INTERVAL}, None),
        ({"p_value": 0.2, "n_permutations": 9, **NO_INTERVAL}, False),
        ({"p_value": 0.2, "n_permutations": 9}, False),
    ],
)
def test_a_claim_needs_a_small_p_value_or_chance_outside_the_interval(changes, expected):
    assert measured.beats_chance(MEASURED | changes) is expected


# -- Sentences --


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": None}, "The error could not be measured."),
        (
            {},
            "is 20.0 % (95 % interval for the models fitted here 10.0 % to 30.0 %), over 5 test folds. Without any",
        ),
        ({}, "Without any feature it is 50.0 %."),
        (
            {"low": None, "high": None, "no_interval": "no interval: few"},
            "is 20.0 % (no interval: few), over 5",
        ),
        ({"low": None, "high": None}, "is 20.0 %, over 5 test folds"),
        ({"also": {"r2": 0.4, "auc": 0.9}}, "%), R² 0.4, over 5"),
        (
            {"p_value": 0.05, "n_permutations": 19},
            "on 19 permuted targets; it never did as well there (p = 0.05).",
        ),
        ({"p_value": 0.1, "n_permutations": 19}, "it did as well there once (p = 0.1)."),
        ({"p_value": 0.2, "n_permutations": 19}, "it did as well there 3 times (p = 0.2)."),
    ],
)
def test_the_sentence_about_the_error(changes, message):
    text = sentences.error_sentence(MEASURED | changes)
    assert message in text
    assert ("Without any" in text) == (changes.get("value", 0.2) is not None)
    assert "Without any" not in sentences.error_sentence(MEASURED | changes | {"chance": None})


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({}, []),
        ({"failed": ["no data"]}, ["1 of 6 test folds could not be evaluated: no data."]),
        ({"failed": ["no data", "other"]}, ["2 of 7 test folds could not be evaluated: no data."]),
        (
            {"beats_chance": None, "low": None, "high": None},
            ["has no interval, and no permutations were made"],
        ),
        ({"beats_chance": None, "n_permutations": 9}, ["9 permutations cannot give a p-value of 0.05"]),
        ({"beats_chance": False}, ["the interval of the error rate contains chance"]),
        ({"beats_chance": False, "p_value": 0.2}, ["(p = 0.2)"]),
        ({"beats_chance": False, "value": 0.6, "p_value": 0.2}, ["error rate is not below that of chance"]),
        ({"beats_chance": False, "value": 0.5}, ["error rate is not below that of chance"]),
        ({"beats_chance": False, "greater_is_better": True}, ["error rate is not above that of chance"]),
        ({"value": None, "beats_chance": None}, []),
        ({"low": 0.05, "high": 0.36}, ["is wide, ±16 percentage points"]),
        ({"low": 0.05, "high": 0.34}, []),
        ({"metric": "mse", "low": 0.0, "high": 9.0}, []),
        ({"stability": {"value": 0.39}}, ["is not stable (stability 0.39, 1 is best)"]),
        ({"stability": {"value": 0.41}}, []),
        ({"stability": {"value": None}}, []),
    ],
)
def test_warnings_about_the_result(changes, messages):
    notes = measured.result_warnings(MEASURED | changes, {"chosen": 3, "at_largest": False})
    assert len(notes) == len(messages)
    assert all(message in note for message, note in zip(messages, notes, strict=True))
    assert "--" not in "".join(notes)


def test_warnings_about_the_size():
    (nothing,) = measured.result_warnings(MEASURED | {"beats_chance": False}, {"chosen": 0})
    assert "The method selected no feature" in nothing
    (largest,) = measured.result_warnings(MEASURED | {"sizes": [8]}, {"chosen": 8, "at_largest": True})
    assert "number of features, 8, is the largest that was tried" in largest
    (outside,) = measured.result_warnings(MEASURED, {"chosen": 8, "at_largest": False})
    assert "8 features, more than that of any fold (2 to 4)" in outside


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], ""),
        ([1, 1], "selected 1 feature in each fold. From all samples it selected 2."),
        ([3, 3], "selected 3 features in each fold."),
        ([3, 4], "selected 3, 4 features in the folds."),
        (list(range(2, 12)), "selected 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 features"),
        (list(range(2, 13)), "selected 2 to 12 features in the folds."),
    ],
)
def test_the_sentence_about_sizes(sizes, message):
    result = SimpleNamespace(procedure={"sizes": sizes}, kind="selection", selected=["a", "b"], panel={})
    text = sentences.size_sentence(result)
    assert message in text
    assert bool(text) == bool(sizes)
    result.kind = "comparison"
    assert sentences.size_sentence(result) == ""


@pytest.mark.parametrize(
    ("count", "changes", "message"),
    [
        (2, {}, "2 of 9 features predict y"),
        (1, {}, "1 of 9 features predicts y"),
        (0, {}, "No feature of 9 was selected for y"),
        (2, {"beats_chance": False}, "No evidence that these 2 features predict y"),
        (1, {"beats_chance": False}, "No evidence that this feature predicts y"),
        (
            2,
            {"beats_chance": None},
            "2 of 9 features selected for y: error rate 20.0 % (50.0 % without any feature)",
        ),
        (2, {"beats_chance": None}, "at least 19 permutations"),
        (2, {"beats_chance": None, "chance": None}, "error rate 20.0 %. Not tested against chance"),
        (2, {"beats_chance": None, "value": None}, "the error could not be measured"),
    ],
)
def test_headlines(count, changes, message):
    data = {"n_features": 9, "n_samples": 30, "target": "y"}
    result = SimpleNamespace(
        data=data, kind="selection", selected=["x"] * count, procedure=MEASURED | changes, panel={}
    )
    assert message in sentences.headline(result)
    result.kind, result.methods = "comparison", [1, 2]
    assert sentences.headline(result) == "2 methods compared on 30 samples and 9 features"
    result.kind, result.procedure = "selection", {}
    assert sentences.headline(result) == "Selection from 9 features"
