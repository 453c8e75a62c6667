"""select and compare: data, groups, seeds, sizes, failures and methods."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import zeronorm
from zeronorm.registry import MethodInfo
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._procedures import Settings

from .conftest import two_signals

QUICK = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


def as_pandas(X, y):
    return pd.DataFrame(X, columns=[f"x{i + 1}" for i in range(X.shape[1])]).assign(label=y), "label"


def as_polars(X, y):
    columns = {f"x{i + 1}": X[:, i] for i in range(X.shape[1])}
    return pl.DataFrame({**columns, "label": y}), "label"


def as_dask(X, y):
    return pytest.importorskip("dask.array").from_array(X, chunks=(20, 10)), y


def as_csv(X, y, folder):
    frame, target = as_polars(X, y)
    frame.write_csv(folder / "data.csv")
    return folder / "data.csv", target


def as_npy(X, y, folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return folder / "X.npy", str(folder / "y.npy")


def as_parquet(X, y, folder):
    as_polars(X, y)[0].drop("label").write_parquet(folder / "X.parquet")
    return str(folder / "X.parquet"), y


BACKENDS = {
    "array": lambda X, y, _: (X, y),
    "list": lambda X, y, _: (X.tolist(), y.tolist()),
    "sparse": lambda X, y, _: (sp.csr_matrix(X), y),
    "pandas": lambda X, y, _: as_pandas(X, y),
    "polars": lambda X, y, _: as_polars(X, y),
    "pandas with an array": lambda X, y, _: (as_pandas(X, y)[0].drop(columns="label"), y),
    "dask": lambda X, y, _: as_dask(X, y),
    "design": lambda X, y, _: (zeronorm.as_design(X), y),
    "csv": as_csv,
    "npy on disk": as_npy,
    "parquet on disk": as_parquet,
}
MARK = two_signals()[0][0, 0]


class SometimesFails(BaseEstimator):
    """A selector that fails on folds without a certain training sample, and warns on all data."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def fit(self, X, y):
        if len(X) == 60:
            warnings.warn("the whole table\nis odd", UserWarning, stacklevel=2)
        elif MARK not in X[:, 0]:
            raise RuntimeError("the sample is gone")
        self.ranking_ = np.arange(1, X.shape[1] + 1)
        return self

    def get_support(self):
        return self.ranking_ <= 2


INFO = MethodInfo("sometimes", SometimesFails, "selector", "x", ("binary",), "-")


# -- Data --


@pytest.fixture(scope="module")
def from_arrays(problem):
    return zeronorm.select(*problem, **QUICK)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_of_the_data_gives_the_same_selection(backend, problem, from_arrays, tmp_path):
    data, target = BACKENDS[backend](*problem, tmp_path)
    result = zeronorm.select(data, target, **QUICK)
    assert set(result.features) == {"x1", "x2"}
    assert result.data["class_counts"] == {
        label: int(np.sum(problem[1] == label)) for label in ("down", "up")
    }
    assert result.procedure["value"] == pytest.approx(from_arrays.procedure["value"])
    assert result.records["selected"].to_list() == from_arrays.records["selected"].to_list()


def test_files_on_disk_are_not_read_into_memory(problem, tmp_path, monkeypatch):
    from zeronorm.design._chunked import ChunkedDesign

    seen = []
    monkeypatch.setattr(training, "fit_procedure", lambda p, table, s: seen.append(table.X) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        zeronorm.select(*as_npy(*problem, tmp_path), **QUICK)
    assert isinstance(seen[0], ChunkedDesign)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"target": np.zeros(3)},
            "'target' parameter must be the name of a column or hold one value for each of the 60",
        ),
        ({"target": np.where(np.arange(60) == 7, None, "a")}, "has no value in 1 of 60 samples"),
        ({"data": np.zeros(5)}, "two-dimensional"),
        ({"data": np.array([["a", "b"]])}, "array of numbers"),
        ({"features": 0}, "'features' parameter must be a count"),
        ({"features": 2.5}, "'features' parameter must be a count"),
        ({"features": 99}, "99 features, but the table has 30"),
        ({"cv": 1}, "'cv' parameter"),
        ({"cv": 40}, "too few for cv=40"),
        ({"rule": "worst"}, "'rule' parameter must be one of"),
        ({"metric": "beauty"}, "'metric' parameter names 'beauty'"),
        ({"permutations": -1}, "'permutations' parameter"),
        ({"keep": "nobody"}, "'keep' parameter names 'nobody'"),
        ({"params": {"nothing": 1}}, "no parameter 'nothing'"),
        ({"method": "selector-cv"}, "features='auto'"),
        ({"method": "auto", "params": {"C": 1}}, "does not apply to the method 'auto'"),
        ({"method": "knockoff-selector", "keep": "x1"}, "'keep' parameter does not apply"),
        ({"method": "probe-selector", "params": {"selector": "auto"}}, "must be the name of a selector"),
        ({"feature_groups": {"nobody": 1}}, "'feature_groups' parameter names 'nobody'"),
        ({"write_table": "x.docx"}, "ends in .csv"),
        ({"sample_groups": np.arange(60) % 2, "cv": 3}, "2 groups, too few"),
    ],
)
def test_errors_of_wrong_calls_have_a_remedy_and_no_flags(changes, message, problem):
    arguments = {"data": problem[0], "target": problem[1], **QUICK, **changes}
    with pytest.raises(ValueError, match=message) as caught:
        zeronorm.select(**arguments)
    assert "--" not in str(caught.value)


# -- Sample groups --


def patients():
    """Every patient has three samples that are nearly copies, with a diagnosis independent of the features."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(24, 40)), 3, axis=0) + 1e-3 * rng.normal(size=(72, 40))
    y = np.repeat(rng.permutation(np.arange(24) % 2), 3)
    return X, y, np.repeat(np.arange(24), 3)


def test_samples_of_one_group_are_never_divided():
    X, y, groups = patients()
    result = zeronorm.select(X, y, sample_groups=groups, **QUICK | {"cv": 4})
    assert result.records["split"].n_unique() == 4
    for rows in result.records["test_rows"]:
        inside = set(groups[rows.to_numpy()])
        assert not inside & set(np.delete(groups, rows.to_numpy()))
    assert result.data["sample_groups"] == 24


def test_the_inner_folds_know_the_groups_too(monkeypatch):
    from zeronorm.selectors.meta._selector_cv import SelectorCV

    seen = []
    fit = SelectorCV.fit

    def spy(self, X, y, groups=None, **params):
        seen.append((X.shape[0], groups))
        return fit(self, X, y, groups=groups, **params)

    monkeypatch.setattr(SelectorCV, "fit", spy)
    X, y, groups = patients()
    zeronorm.select(X, y, sample_groups=groups, **QUICK | {"features": "auto"})
    assert len(seen) == 1 + 3
    for n_samples, inner in seen:
        assert inner is not None
        assert len(inner) == n_samples
        assert set(np.bincount(inner)) <= {0, 3}


# -- Seeds --


def test_every_fold_has_a_fresh_recorded_seed(problem):
    result = zeronorm.select(*problem, **QUICK | {"method": "random"})
    seeds = result.provenance["seeds"]["random"]
    drawn = [fold["random_state"] for fold in seeds["training parts"]] + [
        seeds["all samples"]["random_state"]
    ]
    assert len(set(drawn)) == 4
    assert result.procedure["stability"]["value"] < 0.5
    X, y = problem
    own = result.records.filter(pl.col("size").is_null())
    for row, fold in zip(own.iter_rows(named=True), drawn[:-1], strict=True):
        train = np.setdiff1d(np.arange(len(y)), row["test_rows"])
        again = zeronorm.RandomSelector(2, random_state=fold).fit(X[train], y[train])
        assert np.flatnonzero(again.support_).tolist() == row["selected"]


def test_one_seed_one_result_and_another_seed_another(problem):
    def run(seed, n_jobs=None):
        found = zeronorm.select(
            *problem, **QUICK | {"method": "random", "random_state": seed, "n_jobs": n_jobs}
        )
        return found.features, found.records["test_rows"].to_list(), found.procedure["value"]

    assert run(3) == run(3) == run(3, n_jobs=2)
    assert run(3)[0] != run(4)[0]
    assert run(3)[1] != run(4)[1]


# -- How sizes are chosen --


@pytest.mark.parametrize("rule", ["fewest", "recommended", "all"])
def test_the_rule_chooses_the_size(rule, problem):
    X, y = problem
    noisy = y.copy()
    noisy[::6] = noisy[::6][::-1]
    result = zeronorm.select(X, noisy, **QUICK | {"features": "auto", "rule": rule, "max_features": 20})
    chooser = zeronorm.SelectorCV(
        zeronorm.FisherScore(),
        rule=rule,
        cv=3,
        scoring="balanced_accuracy",
        sizes=result.size["tried"],
        random_state=result.provenance["seeds"]["fisher"]["all samples"]["random_state"],
    ).fit(X, noisy)
    assert len(result.features) == chooser.n_features_ == chooser.sizes_[rule]


def test_the_rules_differ_where_they_should():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 30))
    y = 2.0 * X[:, 0] + 0.4 * X[:, 1:7].sum(axis=1) + rng.normal(size=60)
    sizes = [
        len(zeronorm.select(X, y, **QUICK | {"method": "lasso", "features": "auto", "rule": rule}).features)
        for rule in ("fewest", "recommended", "all")
    ]
    assert sizes[0] <= sizes[1] <= sizes[2]
    assert sizes[0] < sizes[2]


def test_the_metric_reaches_the_inner_choice_and_the_records(problem):
    result = zeronorm.select(*problem, **QUICK | {"features": "auto", "metric": "f1_macro"})
    assert result.procedure["metric"] == "f1_macro"
    assert result.procedure["greater_is_better"]
    assert "f1_macro" in result.records.columns
    table = zeronorm.workflow._inputs.load_data(
        problem[0], zeronorm.workflow._inputs.DataOptions(target=problem[1])
    )
    built = procedures.build_procedure("fisher", table, Settings(metric="f1_macro"), [1, 2])
    assert built.scoring == "f1_macro"


def test_a_choice_at_the_largest_size_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 60))
    y = X[:, :5].sum(axis=1)
    result = zeronorm.select(X, y, method="lasso", max_features=4, rule="all", cv=3, permutations=0)
    assert result.size["at_largest"]
    assert any("'max_features'" in text for text in result.warnings)


# -- Failures and warnings --


def test_failed_folds_and_collected_warnings_are_reported(problem, monkeypatch):
    monkeypatch.setattr(procedures, "get_method", lambda name: INFO)
    result = zeronorm.select(*problem, **QUICK | {"method": "sometimes"})
    assert result.procedure["failed"] == ["RuntimeError: the sample is gone"]
    assert result.procedure["n_splits"] == 2
    text = " ".join(result.warnings)
    assert "1 of 3 test folds could not be evaluated: RuntimeError: the sample is gone" in text
    assert "the whole table is odd" in text


def test_a_method_that_always_fails_is_an_error(problem, monkeypatch):
    class AlwaysFails(SometimesFails):
        def fit(self, X, y):
            if len(X) < 60:
                raise RuntimeError("never")
            return super().fit(X, y)

    monkeypatch.setattr(
        procedures, "get_method", lambda name: MethodInfo("a", AlwaysFails, "selector", "", ("binary",), "")
    )
    with pytest.raises(ValueError, match="failed on every fold: RuntimeError: never"):
        zeronorm.select(*problem, **QUICK | {"method": "a"})


# -- Methods --


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("knockoff-selector", {"selector": "fisher", "level": 0.5}),
        ("probe-selector", {"selector": "fisher"}),
        ("stability-selection", {"selector": "fisher", "n_subsamples": 10}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_methods_that_control_errors_choose_their_own_size(method, params, problem):
    result = zeronorm.select(*problem, method=method, params=params, cv=3, permutations=0)
    assert {"x1", "x2"} <= set(result.features)
    assert "own control" in result.size["rule"]
    assert result.procedure["failed"] == []


@pytest.mark.filterwarnings("ignore")
def test_q_values_of_the_method_reach_the_table(problem, tmp_path):
    params = {"selector": "fisher", "bound": "integrated", "level": 0.9, "n_subsamples": 10}
    result = zeronorm.select(*problem, method="stability-selection", params=params, cv=3, permutations=0)
    found = [feature.selection_q_value for feature in result.selected]
    assert found
    assert all(0.0 < q <= 0.9 for q in found)
    result.save(tmp_path / "run")
    header, first, *_ = (tmp_path / "run" / "selected.csv").read_text().splitlines()
    written = dict(zip(header.split(","), first.split(","), strict=True))
    assert float(written["selection_q_value"]) == pytest.approx(found[0])
    assert "q of the selection" in (tmp_path / "run" / "report.html").read_text()


def test_auto_says_which_ranking_and_predictor_it_keeps(problem):
    result = zeronorm.select(*problem, method="auto", cv=3, permutations=0)
    assert result.chosen_method == "auto"
    assert result.methods[0]["name"] in ("consensus", "relief")
    assert any("the consensus of arom and zeronorm-svm" in note for note in result.notes)


def test_compare_always_shows_what_chance_gives(problem):
    result = zeronorm.compare(*problem, methods="fisher,rfe", features=2, cv=3, params={"rfe": {"C": 3.0}})
    rows = {row["method"]: row for row in result.table}
    assert list(rows) == ["fisher", "rfe", "random", "baseline"]
    assert rows["baseline"]["value"] == pytest.approx(0.5)
    assert rows["fisher"]["beats_chance"]
    assert not rows["random"]["beats_chance"]
    assert result.methods[1]["parameters"]["C"] == 3.0
    assert result.to_frame().height == 4
    with pytest.raises(ValueError, match="'golub', which is not compared"):
        zeronorm.compare(*problem, methods="fisher", params={"golub": {}})


def test_compare_prefers_no_method_where_the_best_one_is_no_better_than_chance():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 8)), np.arange(60) % 2
    result = zeronorm.compare(X, target=y, methods=["fisher", "golub"], cv=3, features=2)
    rows = {row["method"]: row for row in result.table}
    best = min(("fisher", "golub", "random"), key=lambda name: rows[name]["value"])
    assert rows[best]["beats_chance"] is False
    (note,) = [note for note in result.notes if note.startswith("No method is preferred: ")]
    named = note.removeprefix("No method is preferred: ").split(" ")[0]
    assert rows[named]["value"] == rows[best]["value"]
    assert not any("fewest features" in note for note in result.notes)


def test_compare_says_which_methods_failed_and_warned():
    """One method does not accept sparse data, and one iteration does not converge."""
    rng = np.random.default_rng(0)
    X, y = sp.csr_matrix(rng.normal(size=(60, 4))), np.arange(60) % 2
    result = zeronorm.compare(
        X, target=y, methods=["fisher", "interval", "rfe"], params={"rfe": {"max_iter": 1}}, cv=2, features=2
    )
    assert any(text.startswith("interval failed on 2 folds") for text in result.warnings)
    assert any("max_iter" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("task", "names", "relief"),
    [("classification", "the consensus of arom and zeronorm-svm,", True), ("regression", "lasso", False)],
)
def test_without_a_method_auto_compares_a_few_and_says_so(task, names, relief):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    result = zeronorm.select(
        X, y if task == "regression" else np.where(y > 0, "a", "b"), features=1, cv=3, permutations=0
    )
    assert result.features == ["x1"]
    note = next(note for note in result.notes if note.startswith("No method was named, so auto ranks"))
    assert names in note
    assert ("relief" in note) == relief
    assert any(note.startswith("The features are those of the consensus") for note in result.notes)
