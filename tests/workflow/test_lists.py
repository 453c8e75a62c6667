"""Three nested lists of features: fewest, recommended, all."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zeronorm
from zeronorm.cli.printing import print_selection
from zeronorm.report import render_report
from zeronorm.result._lists import (
    LISTS,
    RARE_MARK,
    is_rare,
    left_out_note,
    list_sentence,
    outside_note,
    rare_note,
)
from zeronorm.selection._path import SelectionPath
from zeronorm.workflow._lists import nested_lists

from .conftest import numbers, simulated, table_of

RULES = list(LISTS)
SETTINGS = {"method": "lasso", "cv": 3, "permutations": 0}


def weak_effects():
    """One strong, five weak and 24 useless features."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 30))
    return X, 2.0 * X[:, 0] + 0.4 * X[:, 1:6].sum(axis=1) + rng.normal(size=60)


@pytest.fixture(scope="module")
def result():
    return zeronorm.select(*weak_effects(), **SETTINGS)


@pytest.fixture(scope="module")
def null():
    """Classes that no feature predicts."""
    X, y = simulated(1, 0.0, n_samples=60, n_features=20)
    found = zeronorm.select(X, y, method="fisher", cv=3, permutations=0)
    assert found.procedure["beats_chance"] is False
    return found


# -- What they are --


def nested(lists):
    return all(set(lists[a]) <= set(lists[b]) for a, b in pairwise(RULES))


def test_the_default_is_the_recommended_list(result):
    assert list(result.lists) == RULES
    assert nested(result.lists)
    assert sorted(result.lists["recommended"]) == sorted(result.features)
    assert result.size["selected_list"] == "recommended"
    assert len(result.lists["fewest"]) < len(result.lists["all"])


@pytest.mark.parametrize("rule", RULES)
def test_the_list_that_the_rule_names_is_the_selected_one(rule):
    found = zeronorm.select(*weak_effects(), **SETTINGS, rule=rule)
    assert set(found.lists[rule]) == set(found.features)
    assert nested(found.lists)
    smallest = {feature.name: feature.smallest_list for feature in found.selected}
    assert all(name in found.lists[kind] for name, kind in smallest.items())


@given(st.integers(0, 1000), st.sampled_from(RULES))
def test_lists_are_nested_on_any_path(seed, rule):
    """Also where the subsets of a path are not nested: smaller lists are parts of the selected one."""
    rng = np.random.default_rng(seed)
    subsets = [rng.choice(8, size=k, replace=False) for k in range(1, 9)]
    path = SelectionPath.from_subsets(subsets, n_features=8)
    sizes = dict(zip(RULES, sorted(rng.integers(1, 9, size=3).tolist()), strict=True))
    selected = path.support(sizes[rule])
    X, y = numbers(12, 8)
    found = nested_lists(table_of(X, y), path, sizes, selected, rule, {})
    rank = {name: at for at, name in enumerate(RULES)}
    lists = {
        name: {feature.index for feature in found if rank[feature.smallest_list] <= rank[name]}
        for name in RULES
    }
    assert nested(lists)
    assert lists[rule] == set(selected.tolist())
    assert len(found) == len({feature.index for feature in found})


def test_on_a_nested_path_a_list_has_the_size_that_the_rule_chose():
    X, y = numbers(12, 8)
    path = SelectionPath(order=np.array([3, 1, 4, 0, 5, 2, 7, 6]))
    sizes = {"fewest": 2, "recommended": 3, "all": 6}
    found = nested_lists(table_of(X, y), path, sizes, [3, 1, 4], "recommended", {3: 1.0, 5: 0.2})
    assert [feature.index for feature in found] == [3, 1, 4, 0, 5, 2]
    assert [feature.smallest_list for feature in found] == ["fewest"] * 2 + ["recommended"] + ["all"] * 3
    assert [feature.frequency for feature in found] == [1.0, 0.0, 0.0, 0.0, 0.2, 0.0]


@pytest.mark.parametrize("options", [{"features": 3}, {"method": "probe-selector"}])
@pytest.mark.filterwarnings("ignore")
def test_there_are_no_lists_where_no_size_was_chosen_inside(options, problem):
    found = zeronorm.select(*problem, **{"method": "fisher", "cv": 3, "permutations": 0} | options)
    assert found.lists == {}
    assert found.listed == []
    assert list_sentence(found) == ""
    assert {feature.smallest_list for feature in found.selected} == {""}
    assert "How many features" not in render_report(found, found.records)


def test_groups_and_kept_features_are_in_every_list():
    X, y = weak_effects()
    found = zeronorm.select(X, y, **SETTINGS, keep="x30")
    assert all("x30" in names for names in found.lists.values())


def test_auto_states_its_lists():
    X, y = simulated(1, 1.0, n_samples=60, n_features=12)
    found = zeronorm.select(X, y, cv=3, permutations=0, predictor="linear")
    assert nested(found.lists)
    assert set(found.lists["recommended"]) == set(found.features)
    assert max(found.size["tried"]) == 12


# -- Nothing is recommended where nothing predicts --


def test_auto_recommends_nothing_on_tables_of_noise():
    """Three tables; docs/trust/answer_checks.py counts claims on 240."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 6)), rng.permutation(np.arange(30) % 2)
        found = zeronorm.select(X, y, cv=2, permutations=0, random_state=seed)
        assert found.lists["recommended"] == []


def test_nothing_is_recommended_where_nothing_predicts(null, tmp_path, capsys):
    assert null.headline.startswith("No evidence")
    assert null.lists == {"fewest": [], "recommended": [], "all": []}
    assert {feature.smallest_list for feature in null.selected} == {""}
    page = render_report(null, null.records)
    assert (
        page.index("No evidence") < page.index("Nothing is recommended") < page.index('id="features-table"')
    )
    assert 'id="lists-table"' not in page
    print_selection(null, tmp_path)
    printed = capsys.readouterr().out
    assert printed.index("No evidence") < printed.index("Nothing is recommended") < printed.index("rank")


def test_an_untested_result_keeps_its_lists(result):
    untested = replace(result, procedure={**result.procedure, "beats_chance": None})
    assert untested.lists == result.lists
    assert list_sentence(untested).startswith("Three nested lists")


# -- Where they are stated --


def test_files_report_and_command_line_state_the_lists(result, tmp_path, capsys):
    result.save(tmp_path / "run")
    loaded = zeronorm.Result.load(tmp_path / "run")
    assert loaded.lists == result.lists
    with (tmp_path / "run" / "selected.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == result.features
    for row, feature in zip(rows, result.selected, strict=True):
        assert row["name"] in result.lists[row["smallest_list"]]
        assert row["rarely_selected"] == str(feature.frequency < 0.4)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    table = re.search(r'<table id="lists-table">(.*?)</table>', page, re.DOTALL)[1]
    counts = re.findall(r'<th scope="row">(\w+)(?: \(selected\))?</th><td>(\d+)</td>', table)
    assert counts == [(name, str(len(features))) for name, features in result.lists.items()]
    print_selection(result, Path())
    printed = capsys.readouterr().out
    assert list_sentence(result) in printed
    assert "fewest" in printed


# -- Marks and notes --


def test_rare_features_are_marked():
    shares = [None, 0.39, 0.4, 1.0]
    assert [is_rare(share) for share in shares] == [False, True, False, False]
    X, y = simulated(2, 0.5, n_samples=60, n_features=40)
    found = zeronorm.select(X, y, method="fisher", features=12, cv=5, permutations=0)
    rare = [feature for feature in found.selected if feature.frequency < 0.4]
    assert rare, "the data were chosen so that there are some"
    (note,) = rare_note(found.selected)
    assert note in found.notes
    assert f"{len(rare)} of the {len(found.selected)} selected ones" in note
    assert rare[0].name in note
    page = render_report(found, found.records)
    cells = re.search(r'id="features-table".*?</table>', page, re.DOTALL)[0]
    assert cells.count(RARE_MARK) == len(rare)


def test_what_every_fold_selected_and_the_final_set_has_not_is_named():
    assert left_out_note([]) == []
    (note,) = left_out_note([f"g{k}" for k in range(7)])
    assert "g0, g1, g2, g3, g4 and 2 more" in note


@pytest.mark.parametrize(
    ("sizes", "chosen", "expected"),
    [
        ([3, 5, 8], 5, None),
        ([3, 5, 8], 8, None),
        ([3, 5, 8], 9, "9 features, more than that of any fold (3 to 8)"),
        ([3, 5, 8], 1, "1 feature, fewer than that of any fold (3 to 8)"),
        ([4, 4], 5, "more than that of any fold (4)"),
        ([], 5, None),
    ],
)
def test_a_final_size_outside_those_of_the_folds_is_named(sizes, chosen, expected):
    notes = outside_note(sizes, chosen)
    assert [expected in note for note in notes] == ([] if expected is None else [True])
