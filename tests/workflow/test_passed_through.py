"""What one part of the workflow hands to the next, and what it leaves behind."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

import zeronorm
from zeronorm.evaluation.summary import selection_frequencies
from zeronorm.registry import get_method
from zeronorm.selection import problem as progress
from zeronorm.workflow import chance, files, job, places, procedures, training
from zeronorm.workflow import result as result_module
from zeronorm.workflow.features import univariate_effects
from zeronorm.workflow.inputs import DataOptions, load_data
from zeronorm.workflow.models import GaussianModel, LinearModel
from zeronorm.workflow.procedures import Settings
from zeronorm.workflow.result import Result, SelectedFeature

QUICK = {"method": "fisher", "features": 2, "cv": 2}


def table_of(X, y, **options):
    return load_data(X, DataOptions.taken_from({"target": y, **options}))


def numbers(n=24, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.where(np.arange(n) % 2, "yes", "no")


# -- Baseline and permutations --


def test_the_baseline_copies_no_features(monkeypatch):
    X, y = numbers()
    X[0, 0] = np.nan
    seen = []

    def evaluate(built, table, settings, sizes):
        seen.append((list(built), table.X.shape, table.n_missing, settings.verbose, sizes))
        return pl.DataFrame({"balanced_error_rate": [0.5, None], "error_rate": [0.5, 0.5]})

    monkeypatch.setattr(training, "evaluate_procedures", evaluate)
    chance.baseline_records(table_of(X, y), Settings(verbose=True))
    assert seen == [(["baseline"], (24, 1), 0, False, [])]
    monkeypatch.setattr(training, "evaluate_procedures", lambda *_: pl.DataFrame({"auc": [None, None]}))
    with pytest.raises(ValueError, match="names 'auc', which cannot be computed here"):
        chance.baseline_records(table_of(X, y), Settings(metric="auc"))


def test_warnings_of_meaningless_targets_are_not_heard(monkeypatch):
    def evaluate(*_, **__):
        warnings.warn("nothing converges here", UserWarning, stacklevel=1)
        return pl.DataFrame({"balanced_error_rate": [0.5]})

    monkeypatch.setattr(training, "evaluate_procedures", evaluate)
    found = chance.permutation_test("fisher", None, table_of(*numbers()), Settings(), 0.4, 2)
    assert found.values == (0.5, 0.5)


@pytest.mark.parametrize("function", ["select", "compare"])
def test_permutations_know_the_journal_and_the_bar(function, monkeypatch, tmp_path):
    X, y = numbers()
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


def test_steps_are_announced_before_the_first_and_again_when_there_are_more(monkeypatch):
    """All samples and two folds; nineteen times two more where only permutations can test the result."""
    told = []
    monkeypatch.setattr(progress.RunBar, "_update", lambda self, **what: told.append(what))
    monkeypatch.setattr(chance, "permutation_test", lambda *_, **__: None)
    monkeypatch.setattr(chance, "AFFORDABLE_SECONDS", 0.0)
    rng = np.random.default_rng(2)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 10)) + 3.0 * y[:, None] * (np.arange(10) < 3)
    zeronorm.select(X, y, **QUICK, metric="average_precision", permutations="auto")
    assert [what["total"] for what in told if "total" in what] == [3, 3 + 2 * 19]
    assert "total" in told[0]


# -- Methods and their parameters --


def test_a_large_table_has_more_than_two_million_cells():
    plain = table_of(*numbers())
    rfe = get_method("rfe")
    for p, step in ((2000, rfe.cls().step), (2001, 0.1)):
        table = replace(plain, X=np.broadcast_to(0.0, (1000, p)))
        assert procedures.build_selector(rfe, table, Settings(), {}).step == step


def test_parameters_inside_a_wrapped_method_are_not_reached():
    table = table_of(*numbers())
    params = {"selector": "fisher", "selector__variant": "overall"}
    with pytest.raises(ValueError, match="no parameter 'selector__variant'"):
        procedures.build_procedure("stability-selection", table, Settings(), [2], params)
    X, _ = numbers()
    real = table_of(X, X[:, 0], task="regression")
    with pytest.raises(ValueError, match="'margin-lp' serves binary, but the task is regression"):
        procedures.build_procedure("stability-selection", real, Settings(), [2], {"selector": "margin-lp"})


def test_at_most_two_parameters_are_suggested():
    known = dict.fromkeys(("n_steps", "n_stepx", "n_stepz", "C"))
    with pytest.raises(ValueError, match=r"Did you mean n_step\w or n_step\w\?$"):
        procedures._checked_params({"n_step": 1}, known, "m")


def test_a_compared_method_with_its_own_parameters_must_work():
    """Without parameters a method that fails everywhere is left out with a warning."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    params = {"margin-lp": {"C": float("inf")}}
    with pytest.raises(ValueError, match="'margin-lp' failed on every fold"):
        zeronorm.compare(X, y, methods="fisher,margin-lp", params=params, cv=2, features=2)


class Plain(BaseEstimator):
    """Notes what it is given."""

    def __init__(self, n_jobs=None, random_state=None):
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        return self


def test_the_fit_on_all_samples_has_processes_seed_and_groups():
    X, y = numbers()
    groups = np.arange(24) // 2
    fitted = training.fit_procedure(
        Plain(), table_of(X, y, sample_groups=groups), Settings(n_jobs=3, random_state=4)
    )
    assert fitted.n_jobs == 3
    assert fitted.groups_.tolist() == groups.tolist()
    again = training.fit_procedure(Plain(), table_of(X, y), Settings(n_jobs=3, random_state=4))
    other = training.fit_procedure(Plain(random_state=7), table_of(X, y), Settings(random_state=5))
    assert again.groups_ is None
    assert again.random_state == fitted.random_state
    assert (other.random_state, other.n_jobs) == (7, 1)
    seeds = training.fold_seeds({"a": Plain(), "b": Plain(random_state=7)}, 3, Settings(random_state=4))
    assert list(seeds) == ["a"]  # the others have one already
    assert seeds["a"]["all samples"] == {"random_state": fitted.random_state}
    assert len({part["random_state"] for part in seeds["a"]["training parts"]}) == 3


def test_a_procedure_on_filled_samples_says_whether_it_converged():
    X, y = numbers()
    X[0, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = training.OnFilled(zeronorm.RFE(max_iter=1, C=1e4)).fit(X, y)
    assert short.converged_ is False
    assert training.OnFilled(zeronorm.RFE()).fit(X, y).converged_ is True


# -- The result --


def selected_features(count):
    return [
        SelectedFeature(rank=k + 1, name=f"g{k}", column=k, index=k, score=1.0, mean=0.0, scale=1.0)
        for k in range(count)
    ]


def plain_result(**changes):
    data = {"n_samples": 10, "n_features": 30, "target": "größe"}
    return Result(**{"kind": "selection", "data": data, "methods": [], **changes})


def test_ten_features_are_printed_and_the_others_counted():
    ten, more = (repr(plain_result(selected=selected_features(count))) for count in (10, 12))
    assert ten.endswith("g8, g9")
    assert more.endswith("g8, g9 and 2 more")


def test_results_are_compared_without_their_records_and_written_in_letters():
    result = plain_result()
    assert replace(result, records=1, model=2) == result
    assert replace(result, kind="comparison") != result
    assert (result.records, result.model) == (None, None)
    assert '"größe"' in result.to_json()
    assert GaussianModel("regression", "y", ["a"], [0.0], [1.0], [[1.0]], [0.0], "single", []).gamma == 1.0


def test_charts_are_drawn_where_they_are_told(monkeypatch):
    seen = []
    monkeypatch.setattr(
        result_module, "service", lambda name: lambda *given, **named: seen.append((name, given, named))
    )
    result = plain_result(records="records")
    for plot, chart in (
        (result.plot_errors, "error"),
        (result.plot_stability, "stability"),
        (result.plot_path, "path"),
    ):
        plot("here")
        assert seen.pop() == ("figure", (chart, "records", result), {"ax": "here"})


def test_names_are_kept_for_what_figures_show():
    X, y = numbers(24, 400)
    found = zeronorm.select(X, y, method="random", features=150, cv=2, permutations=0)
    shares = selection_frequencies(found.records, "random", 400).shares
    assert len(shares) > 201
    expected = {feature.index for feature in found.selected} | {index for index, _ in shares[:200]}
    expected |= {index for figure in found.figures.values() for index in figure.get("features", ())}
    assert list(found.names) == sorted(expected)
    few = job._names_in_figures(load_data(X, DataOptions(target=y)), found.records, ["random"])
    assert list(few) == sorted(index for index, _ in shares[:50])


def test_all_features_are_no_sign_that_more_were_needed():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = X.sum(axis=1)
    found = zeronorm.select(X, y, method="lasso", rule="best", cv=3, permutations=0)
    assert found.size["chosen"] == 4
    assert found.size["at_largest"] is False
    fewer = zeronorm.select(X, y, method="lasso", rule="best", cv=3, permutations=0, max_features=3)
    assert fewer.size["at_largest"] is True
    fixed = zeronorm.select(X, y, method="lasso", features=3, max_features=3, cv=3, permutations=0)
    assert fixed.size["at_largest"] is False


# -- Effects --


def test_features_that_are_the_target_are_no_division_by_zero():
    X, y = numbers()
    X[:, 1] = y == "yes"
    found = univariate_effects(table_of(X, y))
    assert found.p_value[1] < 1e-8
    three = np.arange(24) % 3
    X[:, 1] = three
    assert univariate_effects(table_of(X, three)).p_value[1] < 1e-8
    real = univariate_effects(table_of(X, X[:, 2], task="regression"))
    assert real.difference[2] == pytest.approx(1.0)
    assert real.p_value[2] < 1e-8
    few = univariate_effects(table_of(X[:3], X[:3, 0] ** 2, task="regression"))
    np.testing.assert_allclose(few.p_value, [stats.pearsonr(x, X[:3, 0] ** 2).pvalue for x in X[:3].T])


# -- Models --


def test_a_decision_of_zero_goes_to_the_first_class_alone_and_to_the_second_of_a_pair():
    def model(scheme, weights, classes):
        rows = len(weights)
        return LinearModel("classification", "y", ["a"], [0.0], [1.0], weights, [0.0] * rows, scheme, classes)

    assert model("single", [[1.0]], ["p", "q"]).predict([[0.0], [1.0]]).tolist() == ["p", "q"]
    # Of p against q, p against r and q against r all are undecided: r has two votes, q has one.
    assert model("pairs", [[1.0]] * 3, ["p", "q", "r"]).predict([[0.0]]).tolist() == ["r"]


# -- Files and places --


def test_what_a_run_says_of_itself_is_short(monkeypatch):
    clock = files.Clock()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", files.provenance(clock)["started"])
    said = SimpleNamespace(started=clock.started, seconds=1.23456)
    assert files.provenance(said)["seconds"] == 1.23
    for length, shown in ((199, True), (200, False)):
        value = ["x" * (length - 4)]
        assert len(repr(value)) == length
        assert ("xxx" in files.call_text("select", {"keep": value}, {})) is shown


def test_cells_of_figures_have_types(tmp_path):
    files._write_figures({"f": {"a": 1}}, tmp_path / "figures.parquet")
    types = pl.read_parquet(tmp_path / "figures.parquet").schema
    assert [types[name] for name in ("i", "j", "k", "number", "text")] == [pl.Int32] * 3 + [
        pl.Float64,
        pl.String,
    ]


def test_no_object_is_read_from_the_file_of_a_target(tmp_path):
    X, y = numbers()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_data(tmp_path / "X.npy", DataOptions(target=str(tmp_path / "y.npy")))


def test_a_run_writes_beside_its_folder_first(tmp_path):
    folder = tmp_path / "a" / "b" / "out"
    with places.output_folder(folder) as place:
        assert place.folder.parent == folder.parent
        assert place.folder.name.startswith(f".zeronorm-{places._host()}-{os.getpid()}-")
        assert sorted(os.listdir(folder)) == ["journal"]
        (place.folder / "result.json").write_text("1")
    assert os.listdir(folder.parent) == ["out"]
    assert len(places._host()) == 8


def test_results_that_were_removed_before_they_could_be_moved_are_told(tmp_path):
    def vanish(place):
        shutil.rmtree(place.folder)

    with (
        pytest.raises(ValueError, match="results cannot be moved"),
        places.output_folder(tmp_path / "out") as place,
    ):
        vanish(place)


def test_leftovers_of_earlier_runs_go_when_a_run_begins(tmp_path):
    old = tmp_path / ".zeronorm-old"
    old.mkdir()
    os.utime(old, (0, 0))
    with places.output_folder(tmp_path / "out"):
        assert not old.exists()


def test_features_on_a_device_keep_their_names(monkeypatch):
    X, y = numbers()
    table = table_of(X, y)
    seen = []
    monkeypatch.setattr(
        places, "to_device", lambda X, device, **named: seen.append((X, device, named)) or "there"
    )
    assert places.table_on_device(table, None) is table
    assert places.table_on_device(table, "cuda").X == "there"
    ((moved, device, named),) = seen
    assert moved is table.X
    assert device == "cuda"
    assert named["feature_names"].tolist() == table.feature_names.tolist()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="needs data without gaps"):
        places.table_on_device(table_of(X, y), "cuda")


@pytest.mark.parametrize(("device", "dask"), [("cuda", None), (None, "tcp://here")])
def test_a_run_asks_how_many_parts_run_side_by_side_where_it_computes(device, dask, monkeypatch):
    X, y = numbers()

    def asked(*places_and_jobs):
        raise LookupError(repr(places_and_jobs))

    monkeypatch.setattr(job, "jobs_at", asked)
    with pytest.raises(LookupError, match=re.escape(repr((device, dask, 3)))):
        zeronorm.select(X, y, **QUICK, device=device, dask=dask, n_jobs=3)
