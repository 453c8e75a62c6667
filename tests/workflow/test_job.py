"""The steps of a run: progress, descriptions, warnings and errors."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import rich.progress
from sklearn.base import BaseEstimator

import zeronorm
from zeronorm.evaluation._summary import selection_frequencies
from zeronorm.registry import MethodInfo
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training

from .conftest import numbers, state_of_patients

QUICK = {"method": "fisher", "features": 2, "cv": 2}
UNTESTED = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


# -- Steps --


@pytest.fixture
def reported(monkeypatch):
    """The updates that the progress bar of a run gets."""
    found = []

    def add_task(self, description, total):
        found.append({"description": description})
        return 0

    monkeypatch.setattr(rich.progress.Progress, "add_task", add_task)
    monkeypatch.setattr(rich.progress.Progress, "update", lambda self, task, **what: found.append(what))
    return found


def test_a_selection_announces_as_many_steps_as_it_takes(reported, tmp_path):
    """All samples once, then two folds twice, again for each of three permutations."""
    X, y = state_of_patients()
    options = {"method": "fisher", "features": 2, "cv": 2, "repeats": 2, "n_jobs": 1}
    zeronorm.select(X, y, **options, permutations=3, verbose=True, out=tmp_path / "out")
    assert {what["total"] for what in reported if "total" in what} == {1 + 4 * (1 + 3)}
    assert sum(what.get("advance", 0) for what in reported) == 17
    said = [what["description"] for what in reported if what.get("description")]
    assert said[:2] == ["Reading the data", "fisher, all samples"]
    assert any(text.startswith("permutation 1 of 3") for text in said)
    assert any(text.startswith("permutation 3 of 3") for text in said)
    assert said[-1] == "Writing the report"  # the stage of the permutations is over


@pytest.mark.parametrize(("repeats", "permutations", "steps"), [(1, 0, 4), (2, 1, 16)])
def test_a_comparison_announces_as_many_steps_as_it_takes(repeats, permutations, steps, reported):
    """Two methods on two folds, again for each repeat and for each permutation."""
    X, y = numbers(24, 4)
    settings = {"features": 2, "cv": 2, "repeats": repeats, "permutations": permutations, "verbose": True}
    zeronorm.compare(X, y, methods="fisher,random", **settings)
    assert [what["total"] for what in reported if "total" in what] == [steps]
    assert sum(what.get("advance", 0) for what in reported) == steps


def test_the_bar_names_data_method_and_fold(reported, tmp_path, monkeypatch):
    X, y = numbers(24, 4)
    np.savetxt(
        tmp_path / "data.csv",
        np.column_stack([X, y == "yes"]),
        delimiter=",",
        header="a,b,c,d,y",
        comments="",
    )
    options = {"method": "fisher", "features": 2, "cv": 3, "permutations": 2, "verbose": True}
    zeronorm.select(tmp_path / "data.csv", "y", **options)
    texts = [what["description"] for what in reported if "description" in what]
    assert texts[:4] == [
        "Reading data.csv",
        "fisher, all samples",
        "fisher, fold 1 of 3",
        "fisher, fold 2 of 3",
    ]
    assert "permutation 2 of 2, fisher, fold 3 of 3" in texts
    reported.clear()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "data.csv").read_bytes())))
    zeronorm.select("-", "y", **options)
    assert reported[0] == {"description": "Reading standard input"}


def test_steps_are_announced_before_the_first_and_again_when_there_are_more(reported, monkeypatch):
    """All samples and two folds; two more for each of 19 permutations where these are the only test."""
    monkeypatch.setattr(chance, "permutation_test", lambda *_, **__: None)
    monkeypatch.setattr(chance, "AFFORDABLE_SECONDS", 0.0)
    rng = np.random.default_rng(2)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 10)) + 3.0 * y[:, None] * (np.arange(10) < 3)
    zeronorm.select(X, y, **QUICK, metric="average_precision", permutations="auto", verbose=True)
    assert [what["total"] for what in reported if "total" in what] == [3, 3 + 2 * 19]
    assert "total" in reported[1]  # the first update is about reading the data


@pytest.mark.parametrize("function", ["select", "compare"])
def test_permutations_know_the_journal_and_the_bar(function, monkeypatch, tmp_path):
    X, y = numbers(24)
    seen = []

    def permute(label, procedure, table, settings, observed, count, *, journal, bar):
        seen.append((label, count, journal, type(bar).__name__))

    monkeypatch.setattr(chance, "permutation_test", permute)
    if function == "select":
        found = zeronorm.select(X, y, **QUICK, permutations=3, out=tmp_path / "out")
        assert found.procedure["p_value"] is None
        names = ["fisher"]
    else:
        zeronorm.compare(X, y, methods="fisher", features=2, cv=2, permutations=3, out=tmp_path / "out")
        names = ["fisher", "random"]
    assert seen == [(name, 3, tmp_path / "out" / "journal", "RunBar") for name in names]


# -- Descriptions --


class Foreign(BaseEstimator):
    """A selector of another package, with a parameter that is not a plain value; it warns if asked to."""

    def __init__(self, n_features_to_select=None, *, pair=(1, 2), warned=()):
        self.n_features_to_select = n_features_to_select
        self.pair = pair
        self.warned = warned

    def fit(self, X, y):
        for category, text in self.warned:
            warnings.warn(text, category, stacklevel=2)
        self.ranking_ = np.arange(1, X.shape[1] + 1)
        return self

    def get_support(self):
        return self.ranking_ <= 2


@pytest.fixture
def foreign(monkeypatch):
    info = MethodInfo("own", Foreign, "selector", "x", ("binary",), "-")
    monkeypatch.setattr(procedures, "get_method", lambda name: info)


def test_a_method_is_described_by_what_differs_from_its_defaults():
    X, y = numbers()
    settings = {"features": 3, "cv": 3, "permutations": 0, "feature_groups": [0, 0, 1, 2]}
    (found,) = zeronorm.select(X, y, method="rfe", params={"C": 2.0}, **settings).methods
    assert found["parameters"] == {"C": 2.0, "n_features_to_select": 3}
    assert (found["name"], found["label"], found["class"]) == ("rfe", "rfe", "RFE")


@pytest.mark.filterwarnings("ignore")
def test_a_method_around_another_one_is_described_with_it(problem):
    settings = {"params": {"selector": "fisher", "level": 0.2}, "cv": 3, "permutations": 0}
    (found,) = zeronorm.select(*problem, method="probe-selector", **settings).methods
    assert found["parameters"] == {"selector": "fisher", "level": 0.2}


@pytest.mark.usefixtures("foreign")
def test_a_foreign_method_is_described_by_all_its_parameters():
    (found,) = zeronorm.select(*numbers(), **UNTESTED | {"method": "own"}).methods
    assert (found["name"], found["class"], found["reference"], found["summary"]) == ("own", "Foreign", "", "")
    assert found["parameters"] == {"n_features_to_select": 2, "pair": "(1, 2)", "warned": "()"}


@pytest.mark.parametrize(
    ("method", "settings", "rule"),
    [
        ("probe-selector", {"features": 2}, "was set in advance"),
        ("probe-selector", {}, "own control"),
        ("fisher", {"rule": "all"}, "best smoothed score on inner cross-validation"),
        ("fisher", {}, "nearly the best smoothed score on inner cross-validation"),
        ("fisher", {"rule": "fewest"}, "within about one standard error of the best smoothed score"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_rule_that_chose_the_size_as_text(method, settings, rule, problem):
    params = {"selector": "fisher"} if method == "probe-selector" else None
    result = zeronorm.select(*problem, method=method, params=params, cv=3, permutations=0, **settings)
    assert rule in result.size["rule"]


def test_names_are_kept_for_what_figures_show():
    X, y = numbers(24, 400)
    found = zeronorm.select(X, y, method="random", features=150, cv=2, permutations=0)
    shares = selection_frequencies(found.records, "random", 400).shares
    assert len(shares) > 201
    expected = {feature.index for feature in found.selected} | {index for index, _ in shares[:200]}
    expected |= {index for figure in found.figures.values() for index in figure.get("features", ())}
    assert list(found.names) == sorted(expected)
    compared = zeronorm.compare(X, y, methods="random", features=150, cv=2)
    shares = selection_frequencies(compared.records, "random", 400).shares
    assert list(compared.names) == sorted(index for index, _ in shares[:50])


def test_all_features_are_no_sign_that_more_were_needed():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = X.sum(axis=1)
    found = zeronorm.select(X, y, method="lasso", rule="all", cv=3, permutations=0)
    assert found.size["chosen"] == 4
    assert found.size["at_largest"] is False
    fewer = zeronorm.select(X, y, method="lasso", rule="all", cv=3, permutations=0, max_features=3)
    assert fewer.size["at_largest"] is True
    fixed = zeronorm.select(X, y, method="lasso", features=3, max_features=3, cv=3, permutations=0)
    assert fixed.size["at_largest"] is False


# -- Warnings and refusals --


@pytest.mark.usefixtures("foreign")
def test_warnings_that_differ_in_numbers_only_are_given_once():
    warned = [
        (UserWarning, "took 3 of\n 10.5 steps"),
        (UserWarning, "took 4 of 9 steps"),
        (DeprecationWarning, "old"),
        (PendingDeprecationWarning, "soon old"),
        (FutureWarning, "other"),
    ]
    plain = zeronorm.select(*numbers(), **UNTESTED | {"method": "own"}).warnings
    reported = zeronorm.select(*numbers(), **UNTESTED | {"method": "own"}, params={"warned": warned}).warnings
    assert reported == [*plain, "took 3 of 10.5 steps", "other"]


def test_a_warning_that_differs_in_its_numbers_only_appears_once():
    """In the folds, the numbers of training samples per class differ from those of the whole table."""
    rng = np.random.default_rng(0)
    y = np.repeat(["often", "rare"], [30, 9])
    result = zeronorm.select(rng.normal(size=(39, 6)), y, **{**UNTESTED, "method": "relief"})
    (text,) = [text for text in result.warnings if text.startswith("Relief found fewer than")]
    assert "'rare' (9 samples" in text


def test_parameters_that_a_method_cannot_use_are_named(monkeypatch):
    X, y = numbers()

    def broken(*_):
        raise TypeError("no such kind")

    monkeypatch.setattr(training, "fit_procedure", broken)
    options = {"method": "rfe", "features": 2, "cv": 3, "permutations": 0}
    with pytest.raises(ValueError, match=r"'rfe' cannot use the parameters \{'C': 2\.0\}: no such kind"):
        zeronorm.select(X, y, params={"C": 2.0}, **options)
    with pytest.raises(TypeError, match="no such kind"):
        zeronorm.select(X, y, **options)


def test_a_metric_that_cannot_be_measured_is_an_error_before_any_work(monkeypatch):
    X, y = numbers()
    for name in ("fit_procedure", "evaluate_procedures"):
        monkeypatch.setattr(training, name, lambda *_, **__: pytest.fail("work that is of no use"))
    options = {"method": "fisher", "features": 2, "permutations": 0}
    for wrong, message in (({"metric": "mse"}, "'metric' parameter"), ({"cv": 16}, "too few for cv=16")):
        with pytest.raises(ValueError, match=message):
            zeronorm.select(X, y, **options, **wrong)


def test_a_compared_method_with_its_own_parameters_must_work():
    """Without parameters, a method that fails on every fold is left out with a warning."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    params = {"margin-lp": {"C": float("inf")}}
    with pytest.raises(ValueError, match="'margin-lp' failed on every fold"):
        zeronorm.compare(X, y, methods="fisher,margin-lp", params=params, cv=2, features=2)
