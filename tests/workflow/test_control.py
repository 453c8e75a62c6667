"""``control`` limits false features: which construction is chosen, why, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm._messages import OptionError
from zeronorm.cli._main import run
from zeronorm.report._chart import ReportData
from zeronorm.report._text import methods_section
from zeronorm.workflow._control import (
    CHOICES,
    LEVELS,
    Facts,
    choose_construction,
    facts_of,
    level_of,
)
from zeronorm.workflow._options import SelectOptions

from .conftest import table_of


def chosen(X, y, control, level=None, **data):
    return choose_construction(table_of(X, y, **data), SelectOptions(control=control, level=level))


def noise(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def two(n):
    return np.arange(n) % 2


# -- Which construction --


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_two_classes_and_real_targets_have_dummies(task):
    y = two(80) if task == "classification" else noise(80, 1)[:, 0]
    found = chosen(noise(80, 60), y, "fdr", task=task)
    assert found.method == "dummy-selector"
    assert (found.selector.level, found.selector.task) == (LEVELS["fdr"], task)
    assert "the 60 features" in found.reason


@pytest.mark.parametrize(("kind", "method"), [("two", "dummy"), ("real", "dummy"), ("three", "stability")])
def test_samples_in_groups_count_as_one_sample_each(kind, method):
    patients = np.arange(120) // 4
    y = noise(120, 1)[:, 0] if kind == "real" else patients % (2 if kind == "two" else 3)
    task = "regression" if kind == "real" else "classification"
    found = chosen(noise(120, 60), y, "fdr", sample_groups=patients, task=task)
    assert found.method.startswith(method)
    if kind == "three":
        assert "30 independent samples are too few for knockoffs" in found.reason


def test_several_classes_have_knockoffs_where_the_samples_suffice():
    found = chosen(noise(150, 40), np.arange(150) % 3, "fdr")
    assert found.method == "knockoff-selector"
    assert "several classes" in found.reason


def test_half_samples_control_the_rate_where_the_samples_are_too_few_for_knockoffs():
    found = chosen(noise(30, 200), np.arange(30) % 3, "fdr")
    assert (found.method, found.selector.bound) == ("stability-selection", "integrated")
    assert found.selector.level == LEVELS["fdr"]
    assert "30 independent samples are too few for knockoffs (about 60)" in found.reason


@pytest.mark.parametrize(
    ("n", "p", "method", "reason"),
    [
        (
            200,
            90_000,
            "knockoff-selector",
            "200 independent samples are enough for knockoffs of 90000 features",
        ),
        (400, 90_000, "probe-selector", "take too long, and so do 300 fits on half-samples"),
        (60, 10_000, "stability-selection", "60 independent samples are too few"),
        (
            60,
            90_000,
            "probe-selector",
            "are too few for knockoffs (about 183), and 300 fits on half-samples take",
        ),
    ],
)
def test_wide_data_of_several_classes_have_what_ends_within_a_minute(n, p, method, reason):
    found = CHOICES["fdr"](Facts("multiclass", n, n, p), "classification", 0.1)
    assert found.method == method
    assert reason in found.reason
    assert found.selector.level == 0.1
    assert getattr(found.selector, "control", "fdr") == "fdr"


def test_any_false_feature_is_controlled_by_probes():
    for y in (two(40), np.arange(40) % 4):
        found = chosen(noise(40, 30), y, "fwer", 0.01)
        assert (found.method, found.selector.control, found.selector.level) == (
            "probe-selector",
            "fwer",
            0.01,
        )


def test_an_expected_number_is_controlled_by_half_samples_of_many_samples():
    found = chosen(noise(120, 80), two(120), "expected", 2.0)
    assert (found.method, found.selector.bound) == ("stability-selection", "frequency")
    assert found.selector.false_selections == 2.0


@pytest.mark.parametrize(
    ("shape", "level", "groups", "reason"),
    [
        ((60, 80), None, None, "halves of 60 independent samples"),
        ((120, 80), None, np.arange(120) // 3, "halves of 40 independent samples"),
        ((120, 80), 0.01, None, "the bound for half-samples is at least 0.025"),
    ],
)
def test_an_expected_number_is_controlled_by_probes_elsewhere(shape, level, groups, reason):
    y = two(shape[0]) if groups is None else groups % 2
    found = chosen(noise(*shape), y, "expected", level, sample_groups=groups)
    assert (found.method, found.selector.control) == ("probe-selector", "rate")
    assert found.selector.level == pytest.approx((1.0 if level is None else level) / shape[1])
    assert reason in found.reason


def test_an_expected_number_of_very_wide_data_is_controlled_by_probes():
    found = CHOICES["expected"](Facts("binary", 200, 200, 40_000), "classification", 1.0)
    assert found.method == "probe-selector"
    assert "200 × 40000 values take too long" in found.reason


# -- What the choice depends on --


def test_groups_of_samples_count_as_one_sample_each():
    table = table_of(noise(60, 5), two(60), sample_groups=[f"p{i // 2}" for i in range(60)])
    facts = facts_of(table)
    assert (facts.kind, facts.n_units, facts.n_samples, facts.n_features) == ("binary", 30, 60, 5)


# -- Refusals --


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0.1}, "'level' parameter needs the 'control' parameter"),
        ({"control": "rate"}, "'control' parameter must be one of"),
        ({"control": "fdr", "level": 0.0}, "'level' parameter must be a number above 0"),
        ({"control": "fdr", "level": True}, "'level' parameter must be a number above 0"),
        ({"control": "fdr", "level": "0.1"}, "'level' parameter must be a number above 0"),
        ({"control": "fdr", "level": float("nan")}, "'level' parameter must be a number above 0"),
        ({"control": "fdr", "level": 1.0}, "'level' parameter must be below 1 with control='fdr'"),
        ({"control": "fwer", "level": 5}, "'level' parameter must be below 1 with control='fwer'"),
        ({"control": "expected", "level": 12}, "must be below the number of features, 12"),
        (
            {"control": "fdr", "method": "rfe"},
            "'method' parameter does not apply together with control='fdr'",
        ),
        ({"control": "fdr", "features": 5}, "'features' parameter does not apply together"),
        ({"control": "fdr", "params": {"C": 1}}, "'params' parameter does not apply together"),
        ({"control": "fdr", "rule": "all"}, "'rule' parameter does not apply together"),
        ({"control": "fdr", "keep": "x1"}, "'keep' parameter does not apply together"),
        (
            {"control": "fdr", "feature_groups": [0] * 12},
            "'feature_groups' parameter does not apply together",
        ),
    ],
)
def test_combinations_without_a_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        zeronorm.select(noise(40, 12), two(40), **options)


def test_the_usual_levels_are_those_of_the_documentation():
    for control, level in LEVELS.items():
        assert level_of(SelectOptions(control=control)) == level
        declared = zeronorm.select.__doc__
        assert f'{level:g} with "{control}"' in " ".join(declared.split())


# -- Whole runs --


def relevant(n=120, p=40):
    """The first six features are relevant."""
    X = noise(n, p)
    return X, X[:, :6].sum(axis=1) + 0.5 * np.random.default_rng(1).normal(size=n)


@pytest.fixture(scope="module")
def result():
    return zeronorm.select(*relevant(), control="fdr", level=0.2, cv=3, permutations=0)


def test_result_and_methods_text_say_what_was_limited_and_why(result):
    assert set(result.features) >= {f"x{k}" for k in range(1, 7)}
    entry = result.size["control"]
    assert (entry["kind"], entry["level"], entry["method"]) == ("fdr", 0.2, "dummy-selector")
    assert result.chosen_method == "dummy-selector"
    text = methods_section(ReportData(result, result.records))
    for part in (entry["reason"], entry["false_means"], "at 0.2 or less", "false discovery rate"):
        assert part in text
    assert any(entry["reason"] in note for note in result.notes)
    assert not any("No method was named" in note for note in result.notes)
    assert result.lists == {}


def test_files_hold_the_control(result, tmp_path):
    result.save(tmp_path / "run")
    loaded = zeronorm.Result.load(tmp_path / "run")
    assert loaded.size["control"] == result.size["control"]
    content = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert content["size"]["control"]["level"] == 0.2
    assert all(feature["selection_q_value"] <= 0.2 for feature in content["selected"])


@pytest.mark.parametrize("control", ["fdr", "fwer", "expected"])
def test_the_command_takes_it(control, tmp_path, capsys):
    X, y = relevant(60, 15)
    file = tmp_path / "data.csv"
    pl.DataFrame({**{f"g{k}": X[:, k] for k in range(15)}, "y": y}).write_csv(file)
    out = tmp_path / "out"
    arguments = ["select", str(file), "-t", "y", "--cv", "2", "--permutations", "0", "--out", str(out)]
    assert run([*arguments, "--control", control, "--level", "0.4"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "or less," in printed
    assert zeronorm.Result.read(out / "result.json").size["control"]["kind"] == control
    assert run([*arguments, "--level", "0.4"]) == 2
    assert "--level needs --control" in capsys.readouterr().err


@pytest.mark.parametrize("control", ["fdr", "fwer", "expected"])
@pytest.mark.filterwarnings("ignore")
def test_messy_tables_are_accepted(control):
    """Missing values, a text column, a constant column, equal columns, and several samples per patient."""
    rng = np.random.default_rng(0)
    frame = {f"g{k}": rng.normal(size=48) for k in range(8)}
    y = np.repeat(np.arange(24) % 2, 2)
    frame["g0"] = frame["g0"] + 3.0 * y
    frame["same"], frame["constant"] = frame["g1"], np.ones(48)
    frame["colour"] = rng.choice(["red", "green", "blue"], 48)
    frame["g2"] = np.where(rng.random(48) < 0.2, np.nan, frame["g2"])
    data = pl.DataFrame({**frame, "patient": [f"p{i // 2}" for i in range(48)], "state": y.astype(str)})
    found = zeronorm.select(
        data, "state", control=control, level=0.4, sample_groups="patient", cv=3, permutations=0
    )
    assert set(found.features) <= {*frame, "colour=red", "colour=green", "colour=blue"}
    assert found.procedure["failed"] == []


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_selected_from_noise_more_often_than_the_level_allows():
    """20 tables without any relation: at most 5 claims, which at the level 0.05 has a probability of 0.0003 to fail."""
    claims = 0
    for seed in range(20):
        selector = chosen(noise(50, 25, seed), two(50), "fwer").selector.set_params(random_state=seed)
        claims += bool(selector.fit(noise(50, 25, seed), two(50)).support_.any())
    assert claims <= 5


def test_dummies_by_name_choose_their_size_by_their_level():
    X, y = relevant()
    found = zeronorm.select(X, y, method="dummy-selector", params={"level": 0.2}, cv=3, permutations=0)
    assert "own control" in found.size["rule"]
    direct = zeronorm.DummySelector(
        level=0.2,
        task="regression",
        random_state=found.provenance["seeds"]["dummy-selector"]["all samples"]["random_state"],
    ).fit(X, y)
    assert {feature.index for feature in found.selected} == set(direct.get_support(indices=True))
