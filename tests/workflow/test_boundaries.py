"""Conditions of the workflow at the value where they change, and every option that is passed through."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from math import comb
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import zeronorm
from zeronorm import as_design
from zeronorm.datasets.raw import RawTable
from zeronorm.selection.path import SelectionPath
from zeronorm.workflow import chance, checks, files, inputs, job, measured, places, procedures, training
from zeronorm.workflow.chance import WithBaseline, permuted_target
from zeronorm.workflow.features import compared_classes, describe_selected, effect_name, univariate_effects
from zeronorm.workflow.inputs import DataOptions, dense_columns, kept_columns, load_data, names_of, pack_table
from zeronorm.workflow.models import LinearModel, apply_model, fit_model, read_new_samples
from zeronorm.workflow.procedures import Settings
from zeronorm.workflow.result import Result, figure_cells, finite


def table_of(X, y, **options):
    return load_data(X, DataOptions.taken_from({"target": y, **options}))


def numbers(n=30, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.where(np.arange(n) % 2, "yes", "no")


# -- Settings --


@pytest.mark.parametrize(
    ("name", "least"), [("cv", 2), ("repeats", 1), ("random_state", 0), ("max_features", 1)]
)
def test_whole_numbers_have_a_least_value(name, least):
    assert getattr(Settings.taken_from({name: least}), name) == least
    assert getattr(Settings.taken_from({name: np.int64(least + 1)}), name) == least + 1
    for wrong in (least - 1, float(least + 1), True, str(least), None):
        if wrong is None and name == "max_features":
            continue
        with pytest.raises(
            ValueError, match=f"'{name}' parameter must be a whole number of at least {least}"
        ):
            Settings.taken_from({name: wrong})


def test_settings_take_what_is_theirs():
    options = {"features": "3", "keep": "a", "params": None, "target": "y", "verbose": True}
    found = Settings.taken_from(options)
    assert options == {"target": "y"}
    assert (found.features, found.keep, found.params, found.verbose) == (3, ("a",), {}, True)
    plain = Settings.taken_from({})
    assert plain == Settings()
    assert (plain.cv, plain.repeats, plain.rule, plain.predictor, plain.permutations) == (
        5,
        1,
        "one_se",
        "linear",
        "auto",
    )
    assert (plain.random_state, plain.has_own_groups, plain.verbose, plain.features) == (
        0,
        False,
        False,
        None,
    )


def test_options_of_the_data_take_what_is_theirs():
    options = {"ignore": "a", "only": ["b", 3], "keep": None, "categorical": ("c",), "cv": 3, "target": "y"}
    found = DataOptions.taken_from(options)
    assert options == {"cv": 3}
    assert (found.ignore, found.only, found.keep, found.categorical) == (("a",), ("b", "3"), (), ("c",))
    plain = DataOptions()
    assert (plain.missing, plain.min_class_size, plain.random_state) == ("median", 0, 0)
    assert not any((plain.drop_unlabelled, plain.transpose, plain.decimal_comma))
    assert names_of(None) == names_of(()) == ()


@pytest.mark.parametrize(
    ("predictor", "is_right"),
    [
        ("linear", True),
        ("gaussian", True),
        (Ridge(), True),
        (Ridge, False),
        ("ridge", False),
        (SimpleNamespace(fit=1, predict=1), False),
        (SimpleNamespace(fit=1, get_params=1), False),
        (SimpleNamespace(predict=1, get_params=1), False),
    ],
)
def test_what_a_predictor_is(predictor, is_right):
    if is_right:
        procedures.check_predictor(predictor)
    else:
        with pytest.raises(ValueError, match="'predictor' parameter must be one of"):
            procedures.check_predictor(predictor)


def test_the_predictor_of_a_run():
    X, y = numbers()
    table = table_of(X, y)
    own = LogisticRegression()
    assert procedures.predictor_of(table, Settings(predictor=own)) is own
    assert procedures.predictor_of(table, Settings(predictor="gaussian")).kernel == "rbf"
    assert procedures.predictor_of(table, Settings()).kernel == "linear"
    sparse_table = table_of(sparse.csr_matrix(X), y)
    for name in procedures.PREDICTORS:
        steps = procedures.predictor_of(sparse_table, Settings(predictor=name))
        assert steps[0].with_mean is False  # sparse columns are not centred
    tall = replace(table, X=np.zeros((5001, 1)))
    assert isinstance(procedures.predictor_of(tall, Settings())[-1], LinearSVC)


def test_the_largest_table_for_a_gaussian_machine(monkeypatch):
    table = table_of(*numbers())
    monkeypatch.setattr(procedures, "LARGEST_GAUSSIAN", 30)
    procedures.predictor_of(table, Settings(predictor="gaussian"))
    monkeypatch.setattr(procedures, "LARGEST_GAUSSIAN", 29)
    with pytest.raises(ValueError, match="serves up to 29 samples; the table has 30"):
        procedures.predictor_of(table, Settings(predictor="gaussian"))
    procedures.predictor_of(table, Settings())


def test_metrics_suit_the_task():
    X, y = numbers()
    classes, real = table_of(X, y), table_of(X, X[:, 0], task="regression")
    assert procedures.metrics_of(classes, Settings()) == ["balanced_error_rate", "error_rate"]
    assert procedures.metrics_of(real, Settings()) == ["mse", "r2"]
    for name in procedures.SCORERS:
        suits, other = (real, classes) if name in ("mse", "mae", "r2") else (classes, real)
        assert procedures.metrics_of(suits, Settings(metric=name)) == [name]
        with pytest.raises(ValueError, match=f"names '{name}', which cannot be computed here"):
            procedures.metrics_of(other, Settings(metric=name))
    for table, others in ((classes, "auc, balanced_error_rate, error_rate"), (real, "mae, mse, r2")):
        assert f"Use one of {others}." in str(procedures.unsuitable_metric("x", table))
    assert chance.direction(classes, Settings()) == -1
    assert chance.direction(classes, Settings(metric="auc")) == 1
    assert chance.direction(real, Settings()) == -1


def test_what_the_user_may_set_of_a_method():
    known = {"C": 1.0, "n_steps": 5, "task": None, "verbose": False, "random_state": None}
    check = procedures._checked_params
    assert check({"C": 2.0, "n_steps": 3}, known, "m") == {"C": 2.0, "n_steps": 3}
    for wrong, words in (
        ({"c": 1}, r"no parameter 'c'\. Did you mean C\?$"),
        ({"nsteps": 1}, r"no parameter 'nsteps'\. Did you mean n_steps\?$"),
        ({"zzzz": 1}, r"no parameter 'zzzz'\. It has C, n_steps\.$"),
        ({"task": 1}, r"must not hold 'task': .* Use the parameter 'task' instead"),
        ({"always_keep": 1}, "Use the parameter 'keep' instead"),
        ({"n_features_to_select": 1}, "Use the parameter 'features' instead"),
    ):
        with pytest.raises(ValueError, match=words):
            check(wrong, known, "m")


def test_methods_without_groups_or_forced_features_say_so(monkeypatch):
    X, y = numbers()
    table = table_of(X, y, feature_groups=[0, 0, 1, 2])
    info = SimpleNamespace(name="plain", cls=Ridge)
    assert procedures.build_selector(info, table, Settings(), {}).alpha == 1.0  # levels of a text are no wish
    with pytest.raises(ValueError, match="'feature_groups' parameter does not apply to the method 'plain'"):
        procedures.build_selector(info, table, Settings(has_own_groups=True), {})
    keep = Settings(keep=(str(table.feature_names[0]),))
    with pytest.raises(ValueError, match="'keep' parameter does not apply to the method 'plain'"):
        procedures.build_selector(info, table, keep, {})
    with pytest.raises(ValueError, match="'feature_groups' parameter does not apply"):
        procedures.build_procedure("probe-selector", table, Settings(has_own_groups=True), [2])


def test_error_control_takes_the_first_preferred_method_that_serves():
    X, y = numbers()
    found = procedures.build_procedure("probe-selector", table_of(X, y), Settings(), [2])
    assert type(found.selector).__name__ == "ZeroNormSVM"
    assert found.get_params(deep=False)["n_features_to_select"] is None
    real = procedures.build_procedure(
        "probe-selector", table_of(X, X[:, 0], task="regression"), Settings(), [2]
    )
    served = procedures.usable_methods(table_of(X, X[:, 0], task="regression"))
    assert type(real.selector) is next(served[n].cls for n in procedures.PREFERRED if n in served)
    assert found.selector.feature_groups is None
    grouped = procedures.build_procedure(
        "probe-selector", table_of(X, y, feature_groups=[0, 0, 1, 1]), Settings(), [2]
    )
    assert grouped.selector.feature_groups is None


def test_methods_for_another_task_are_refused_with_those_that_serve():
    X, _ = numbers()
    real = table_of(X, X[:, 0], task="regression")
    with pytest.raises(
        ValueError, match=r"'margin-lp' serves .*, but the task is regression\. Use one of auto,"
    ) as told:
        procedures.build_procedure("margin-lp", real, Settings(), [2])
    names = str(told.value).split("Use one of ")[1].rstrip(".").split(", ")
    assert names == ["auto", *procedures.usable_methods(real)]
    assert procedures.default_method(real) == "auto"


def test_folds_inside_follow_the_smallest_class_groups_or_samples():
    X, y = numbers(12)
    assert procedures.inner_folds(table_of(X, X[:, 0], task="regression"), Settings(cv=5)) == 5
    assert (
        procedures.inner_folds(table_of(X, y), Settings(cv=5)) == 4
    )  # 6 of a class, 2 in the largest test part
    grouped = table_of(X, y, sample_groups=np.arange(12) // 4)
    assert procedures.inner_folds(grouped, Settings(cv=3)) == 2
    with pytest.raises(ValueError, match="one group of samples"):
        procedures.inner_folds(grouped, Settings(cv=2))  # the largest test part takes two of three groups
    note = procedures.inner_notes(grouped, Settings(cv=3, features=2), "auto")
    assert note == ["Choices inside the training parts rest on 2 folds: there are too few samples for 3."]
    assert procedures.inner_notes(grouped, Settings(cv=3), "probe-selector") == []


def test_the_grid_of_sizes_is_even_in_the_logarithm():
    X = np.zeros((4, 2000)) + np.arange(4)[:, None]
    table = table_of(X, np.array(["a", "b"] * 2))
    assert procedures.sizes_to_try(table, Settings()) == sorted(
        {round(float(size)) for size in 128.0 ** (np.arange(12) / 11)}
    )
    assert procedures.sizes_to_try(table, Settings(features=4))[-1] == 16
    assert procedures.sizes_to_try(table, Settings(features=5))[-1] == 20


# -- Data --


def test_forced_features_are_columns_levels_or_patterns():
    frame = pl.DataFrame(
        {
            "a": [1.0, 2, 3, 5],
            "colour": list("rgbr"),
            "a=b": [2.0, 1, 0, 3],
            "ab": [1.0, 0, 2, 2],
            "y": list("uvuv"),
        }
    )
    table = load_data(frame, DataOptions(target="y"))
    names = table.feature_names.tolist()
    assert kept_columns(table, ("a",)) == [
        names.index("a")
    ]  # the column itself, not what begins like a level
    levels = [k for k, name in enumerate(names) if name.startswith("colour=")]
    assert len(levels) == 3
    assert kept_columns(table, ("colour", "colour")) == levels
    assert kept_columns(table, ("ab", "a")) == sorted((names.index("a"), names.index("ab")))
    assert kept_columns(table, ()) == []


def test_sheets_of_samples_have_their_own_delimiter(tmp_path):
    (tmp_path / "data.txt").write_text("id;a;b\ns1;1;5\ns2;2;4\ns3;3;7\ns4;4;6\n")
    (tmp_path / "sheet.csv").write_text("id,state,age\ns4,v,40\ns1,u,10\ns2,v,20\ns3,u,30\n")
    options = DataOptions(
        target="state", samples=str(tmp_path / "sheet.csv"), id="id", delimiter=";", keep=("age",)
    )
    table = load_data(tmp_path / "data.txt", options)
    assert table.y.tolist() == ["u", "v", "u", "v"]
    assert table.feature_names.tolist() == ["a", "b", "age"]
    np.testing.assert_array_equal(table.X, [[1, 5, 10], [2, 4, 20], [3, 7, 30], [4, 6, 40]])
    assert table.source == str(tmp_path / "data.txt")
    for role in ("only", "categorical"):
        given = replace(options, keep=(), **{role: ("a", "b", "age") if role == "only" else ("age",)})
        found = [str(name) for name in load_data(tmp_path / "data.txt", given).feature_names]
        assert any(name.startswith("age") for name in found), role
    assert load_data(tmp_path / "data.txt", replace(options, keep=())).feature_names.tolist() == ["a", "b"]


def test_how_a_text_file_is_written_reaches_its_reader(tmp_path):
    place = tmp_path / "data.txt"
    place.write_bytes("name|größe|y\ns1|1,5|u\ns2|2,5|v\ns3|3,5|u\ns4|0,5|v\n".encode("latin-1"))
    table = load_data(
        place, DataOptions(target="y", id="name", delimiter="|", decimal_comma=True, encoding="latin-1")
    )
    assert table.feature_names.tolist() == ["größe"]
    np.testing.assert_array_equal(table.X[:, 0], [1.5, 2.5, 3.5, 0.5])
    assert table.sample_ids.tolist() == ["s1", "s2", "s3", "s4"]
    turned = tmp_path / "turned.csv"
    turned.write_text("x,s1,s2,s3,s4\na,1,2,3,4\nb,5,4,7,6\ny,u,v,u,v\n")
    table = load_data(turned, DataOptions(target="y", transpose=True))
    assert table.feature_names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(np.asarray(table.X, dtype=float), [[1, 5], [2, 4], [3, 7], [4, 6]])


def test_a_data_set_by_name_follows_the_seed_and_the_options():
    one, same, other = (load_data("linear-toy", DataOptions(random_state=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.X, same.X)
    assert not np.array_equal(one.X, other.X)
    fewer = load_data("linear-toy", DataOptions(random_state=1, ignore=("x3",)))
    assert (one.n_features, fewer.n_features) == (202, 201)


def test_a_table_is_taken_as_it_is():
    table = table_of(*numbers())
    assert load_data(table, DataOptions()) is table
    grouped = load_data(table, DataOptions(feature_groups=["u", "v", "u", "u"]))
    assert grouped.feature_groups.tolist() == [0, 1, 0, 0]


def test_columns_of_pandas_keep_their_kinds():
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3, 4],
            "flag": [True, False, True, False],
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "kind": pd.Categorical([3, 1, 3, 1]),
            "text": ["p", None, "q", "p"],
            "y": ["u", "v", "u", "v"],
        },
        index=["s1", "s2", "s3", "s4"],
    )
    raw = inputs.raw_from_data_frame(frame)
    assert raw.names == ["n", "flag", "whole", "kind", "text", "y"]
    assert raw.positions.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(raw.values, [[1, 1, 1], [2, 0, np.nan], [3, 1, 3], [4, 0, 4]])
    assert raw.texts[3] == ["3", "1", "3", "1"]
    assert raw.texts[4] == ["p", None, "q", "p"]
    assert raw.sample_ids == ["s1", "s2", "s3", "s4"]
    assert inputs.raw_from_data_frame(frame.reset_index(drop=True)).sample_ids is None


def test_an_array_of_the_target_brings_its_name():
    X, y = numbers(8)
    frame = pd.DataFrame(X, columns=["a", "target", "c", "state"])
    assert load_data(frame, DataOptions(target=pd.Series(y, name="diagnosis"))).target_name == "diagnosis"
    table = load_data(frame, DataOptions(target=y))
    assert table.target_name == "target (given)"
    assert table.n_features == 4  # the column of that name is a feature
    named = load_data(frame, DataOptions(target=pd.Series(y, name="state"), sample_groups=np.arange(8) // 2))
    assert (named.target_name, named.sample_groups.tolist()) == ("state (given)", [0, 0, 1, 1, 2, 2, 3, 3])
    kept = load_data(as_design(X), DataOptions(target=pd.Series(y, name="diagnosis")))
    assert kept.target_name == "diagnosis"
    assert kept.source == type(as_design(X)).__name__
    assert load_data(X, DataOptions(target=y)).source == "array of 8 × 4"
    assert load_data(frame, DataOptions(target=y)).source == "data frame of 8 × 4"


def test_a_design_with_whole_numbers_is_classes_unless_said_otherwise():
    X, _ = numbers(8)
    design = as_design(X)
    counted = load_data(design, DataOptions(target=np.arange(8) % 3))
    assert counted.task == "classification"
    assert counted.y.dtype.kind == "i"
    real = load_data(design, DataOptions(target=np.arange(8), task="regression"))
    assert (real.task, real.y.dtype.kind, real.notes) == ("regression", "f", ())
    with pytest.raises(ValueError, match="like an identifier"):
        load_data(design, DataOptions(target=np.arange(8)))


def test_what_an_array_of_data_is():
    for wrong in (np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros(3), np.zeros((2, 2), dtype=complex)):
        with pytest.raises(ValueError, match="must be a two-dimensional array of numbers"):
            load_data(wrong, DataOptions(target=[0, 1]))
    for kind in (bool, np.int8, np.uint16, np.float32):
        X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=kind)
        np.testing.assert_array_equal(load_data(X, DataOptions(target=list("uvuv"))).X, X.astype(float))


def test_data_on_disk_need_a_target_beside_them(tmp_path):
    X, y = numbers(8)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "labels.npy", y)
    table = load_data(tmp_path / "X.npy", DataOptions(target=str(tmp_path / "labels.npy")))
    assert table.target_name == "labels"
    assert table.y.tolist() == y.tolist()
    assert table.source == str(tmp_path / "X.npy")
    assert load_data(tmp_path / "X.npy", DataOptions(target=tmp_path / "labels.npy")).target_name == "labels"
    for wrong in (None, "state"):
        with pytest.raises(ValueError, match=r"must be an array, or the path of a \.npy file, for .*X\.npy"):
            load_data(tmp_path / "X.npy", DataOptions(target=wrong))
    with pytest.raises(ValueError, match="no file"):
        load_data(tmp_path / "X.npy", DataOptions(target=str(tmp_path / "none.npy")))
    with pytest.raises(ValueError, match="no file"):
        load_data(tmp_path / "Z.npy", DataOptions(target=y))
    # A Parquet file that holds its target is read; with the target apart it stays where it is.
    frame = pl.DataFrame({f"g{j}": X[:, j] for j in range(4)} | {"y": y})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.drop("y").write_parquet(tmp_path / "X.parquet")
    assert isinstance(load_data(tmp_path / "t.parquet", DataOptions(target="y")).X, np.ndarray)
    for target in (y, str(tmp_path / "labels.npy")):
        assert not isinstance(load_data(tmp_path / "X.parquet", DataOptions(target=target)).X, np.ndarray)


def test_a_packed_table_keeps_everything_that_belongs_to_it(tmp_path):
    X, y = numbers(8)
    frame = pl.DataFrame(
        {
            "id": [f"s{i}" for i in range(8)],
            "text": list("pqrpqrpq"),
            **{f"g{j}": X[:, j] for j in range(3)},
            "who": np.arange(8) // 2,
            "y": y,
        }
    )
    table = load_data(frame, DataOptions(target="y", id="id", sample_groups="who", ignore=("g1",)))
    place = pack_table(table, tmp_path / "t.zncols")
    found = load_data(place, DataOptions())
    np.testing.assert_allclose(found.X.block(slice(None)), table.X)
    for name in ("y", "source_columns", "feature_groups", "sample_groups", "sample_ids", "feature_names"):
        assert [str(v) for v in getattr(found, name)] == [str(v) for v in getattr(table, name)], name
    assert (found.target_name, found.task, found.source) == ("y", "classification", str(place))
    assert found.notes == table.notes
    assert load_data(place, DataOptions(target="y")).y.tolist() == y.tolist()
    other = load_data(place, DataOptions(target=np.arange(8.0) / 3, sample_groups=np.arange(8)))
    assert (other.task, other.target_name) == ("regression", "target")
    assert other.sample_groups.tolist() == list(range(8))
    regrouped = load_data(place, DataOptions(sample_groups=np.arange(8) // 4))
    assert regrouped.sample_groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"'target' parameter must be 'y', the target packed with"):
        load_data(place, DataOptions(target="z"))
    whole = load_data(place, DataOptions(task="classification"))
    assert whole.task == "classification"
    plain = pack_table(table_of(X, y), tmp_path / "plain.zncols")
    again = load_data(plain, DataOptions())
    assert again.source_columns.tolist() == [0, 1, 2, 3]
    assert again.feature_groups is again.sample_groups is None
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"has no place for missing values.* has 1; fill them"):
        pack_table(table_of(gaps, y), tmp_path / "gaps.zncols")
    assert (
        np.dtype(as_design(pack_table(table_of(X, y), tmp_path / "f.zncols", "float32")).dtype) == np.float32
    )


def test_columns_in_any_home_are_dense():
    X, _ = numbers(6)
    wanted = X[:, [2, 0]]
    for home in (X, sparse.csr_matrix(X), as_design(X), X.astype(np.float32)):
        found = dense_columns(home, np.array([2, 0]))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


# -- Gaps and training parts --


def test_gaps_are_filled_with_medians_of_the_samples_at_hand():
    X, y = numbers(9)
    X[0, 0] = X[3, 2] = np.nan
    table = table_of(X, y)
    assert table.n_missing == 2
    whole = training.filled(table)
    assert whole.n_missing == 0
    np.testing.assert_allclose(whole.X, np.where(np.isnan(X), np.nanmedian(X, axis=0), X))
    complete = table_of(np.nan_to_num(X), y)
    assert training.filled(complete) is complete
    plain = procedures.build_procedure("fisher", complete, Settings(features=2), [2])
    assert training.selector_for(complete, plain) is plain
    assert training.predictor_for(complete, plain) is plain
    assert isinstance(training.selector_for(table, plain), training.OnFilled)
    steps = training.predictor_for(table, LogisticRegression())
    assert [type(step).__name__ for _, step in steps.steps] == ["MedianFill", "LogisticRegression"]
    fitted = training.selector_for(table, plain).fit(X, y)
    alone = zeronorm.FisherScore(2).fit(whole.X, y)
    np.testing.assert_array_equal(fitted.get_support(), alone.support_)
    assert fitted.path_.order.tolist() == alone.path_.order.tolist()
    assert fitted.converged_ is True
    tags = training.MedianFill().__sklearn_tags__().input_tags
    assert tags.allow_nan
    assert tags.sparse


def test_processes_start_where_the_work_is_large(monkeypatch):
    table = table_of(*numbers(30, 4))
    fixed, chosen = Settings(features=2, cv=4, repeats=2), Settings(cv=4, repeats=2)
    cells = 30 * 4 * 8
    for settings, work in ((fixed, cells), (chosen, 5 * cells)):
        monkeypatch.setattr(training, "CELLS_WORTH_A_PROCESS", work)
        assert training.n_processes(table, settings) == 1
        monkeypatch.setattr(training, "CELLS_WORTH_A_PROCESS", work - 1)
        assert training.n_processes(table, settings) == -1
        assert training.n_processes(table, replace(settings, n_jobs=3)) == 3


def test_outer_splits_follow_the_seed_the_repeats_and_the_task():
    X, _ = numbers(24)
    table = table_of(X, np.where(np.arange(24) < 6, "rare", "common"))
    splits = training.outer_splits(table, Settings(cv=3, repeats=2, random_state=5))
    assert len(splits) == 6
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(24))
        assert np.sum(table.y[test] == "rare") == 2  # each class by its share
    first, second = ([test.tolist() for _, test in splits[k : k + 3]] for k in (0, 3))
    assert first != second
    again = training.outer_splits(table, Settings(cv=3, repeats=2, random_state=5))
    other = training.outer_splits(table, Settings(cv=3, repeats=2, random_state=6))
    tests = [[test.tolist() for _, test in some] for some in (splits, again, other)]
    assert tests[0] == tests[1] != tests[2]
    real = table_of(X, X[:, 0], task="regression")
    assert [len(test) for _, test in training.outer_splits(real, Settings(cv=5))] == [5, 5, 5, 5, 4]


# -- Chance --


def test_a_predictor_without_features_for_each_task():
    X, y = numbers(9)
    three = np.array(list("abcabcaab"))
    model = WithBaseline(LinearSVC()).fit(X[:, :0], three)
    assert set(model.predict(X[:, :0])) == {"a"}
    assert model.decision_function(X[:, :0]).shape == (9, 3)
    two = WithBaseline(LinearSVC()).fit(X[:, :0], y)
    assert two.decision_function(X[:, :0]).tolist() == [0.0] * 9
    assert two.classes_.tolist() == ["no", "yes"]
    assert not hasattr(two, "predict_proba")
    proba = WithBaseline(LogisticRegression()).fit(X[:, :0], y)
    assert proba.predict_proba(X[:, :0])[0].tolist() == [1.0, 0.0]
    real = WithBaseline(Ridge(), "regression").fit(X[:, :0], X[:, 0])
    np.testing.assert_allclose(real.predict(X[:, :0]), X[:, 0].mean())
    assert not hasattr(real, "classes_")
    assert not hasattr(real, "decision_function")
    one = WithBaseline(LinearSVC()).fit(X[:, :1], y)  # a single feature is a feature
    np.testing.assert_allclose(
        one.decision_function(X[:, :1]), LinearSVC().fit(X[:, :1], y).decision_function(X[:, :1])
    )
    assert (one.__sklearn_tags__().estimator_type, real.__sklearn_tags__().estimator_type) == (
        "classifier",
        "regressor",
    )
    assert WithBaseline.for_table(table_of(X, X[:, 0], task="regression"), Settings()).task == "regression"


def test_the_estimate_of_the_work_by_hand():
    """Seconds of one target: a selector on each training part and inner fold, a predictor for each size."""
    X, y = numbers(30, 4)
    table = table_of(X, y)
    predictor = 3e-3 + 5e-6 * 30
    cells = 30 * 4
    sizes = [1, 2, 3]

    def estimate(method, **settings):
        return chance._estimated_seconds(table, Settings(**settings), sizes, method)

    assert estimate("fisher", features=2, cv=3, repeats=2) == pytest.approx(6 * (cells * 2e-7 + predictor))
    assert estimate("fisher", cv=3) == pytest.approx(3 * (4 * cells * 2e-7 + (1 + 3 * 3) * predictor))
    assert estimate("rfe", features=2, cv=3) == pytest.approx(3 * (cells * 2e-6 + predictor))
    assert estimate("ofw", features=2, cv=3) == pytest.approx(3 * (40 * cells * 2e-6 + predictor))
    neighbours = cells * (2e-7 + 6e-10 * 30)
    assert estimate("relief", features=2, cv=3) == pytest.approx(3 * (neighbours + predictor))
    gaussian = 3e-3 + 3e-8 * 900
    assert estimate("fisher", features=2, cv=3, predictor="gaussian") == pytest.approx(
        3 * (cells * 2e-7 + gaussian)
    )
    assert estimate("fisher", features=2, cv=3, predictor=Ridge()) == pytest.approx(3 * (cells * 2e-7 + 0.3))
    methods = 1 + len(procedures.roster(table))
    both = 3 * (4 * cells * 2e-6 + (1 + 3) * predictor)
    assert estimate("auto", features=2, cv=3) == pytest.approx(methods * both)


def test_machines_on_more_samples_than_features_take_longer():
    y = np.arange(501) % 2
    tall, wide = (table_of(np.zeros((501, p)) + y[:, None], y) for p in (500, 501))
    assert chance._seconds_of_selector(tall, "rfe") == pytest.approx(501 * 500 * 5e-6)
    assert chance._seconds_of_selector(wide, "rfe") == pytest.approx(501 * 501 * 2e-6)
    short = table_of(np.zeros((500, 3)) + y[:500, None], y[:500])
    assert chance._seconds_of_selector(short, "rfe") == pytest.approx(500 * 3 * 2e-6)


@pytest.mark.parametrize(
    ("seconds", "is_only_test", "count"),
    [(20 / 99, False, 99), (20.1 / 99, False, 39), (20 / 39, False, 39), (20 / 19, False, 19), (1.06, False, 0),
     (1.06, True, 19), (120 / 19, True, 19), (6.4, True, 0)],
)  # fmt: skip
def test_as_many_permutations_as_the_time_allows(seconds, is_only_test, count, monkeypatch):
    monkeypatch.setattr(chance, "_estimated_seconds", lambda *_: seconds)
    found = chance.permutation_count(None, Settings(), [1], "fisher", is_only_test=is_only_test)
    assert found == count
    assert (
        chance.permutation_count(None, Settings(permutations=5), [1], "fisher", is_only_test=is_only_test)
        == 5
    )


@pytest.mark.parametrize(("metric", "p_value"), [("error_rate", 4 / 6), ("auc", 5 / 6)])
def test_permutations_that_are_as_good_count(metric, p_value, monkeypatch):
    """Observed 0.3. At most as large are 0.2, 0.3 and the part without a value, which counts as as good."""
    values = iter([[0.2], [0.3, None], [0.4], [], [0.5]])
    seen = []

    def evaluate(built, table, settings, sizes, *, journal):
        seen.append((list(built), table.y.tolist(), sizes, journal))
        return pl.DataFrame({metric: pl.Series(next(values), dtype=pl.Float64)})

    monkeypatch.setattr(training, "evaluate_procedures", evaluate)
    X, y = numbers(12)
    table = table_of(X, y)
    settings = Settings(metric=metric, random_state=4)
    found = chance.permutation_test("fisher", None, table, settings, 0.3, 5, journal="here")
    assert found.values == (0.2, 0.3, 0.4, 0.3, 0.5)
    assert found.p_value == pytest.approx(p_value)
    assert [entry[1] for entry in seen] == [permuted_target(table, 4, k).tolist() for k in range(5)]
    assert all((names, sizes, place) == (["fisher"], [], "here") for names, _, sizes, place in seen)
    assert chance.permutation_test("fisher", None, table, settings, 0.3, 0) is None


def test_each_permutation_is_another_order_of_the_target():
    X, y = numbers(12)
    table = table_of(X, y)
    drawn = [permuted_target(table, seed, k).tolist() for seed in (0, 1) for k in range(3)]
    assert len({tuple(one) for one in drawn}) == 6
    assert all(sorted(one) == sorted(y.tolist()) for one in drawn)
    # Of three patients, one has two diagnoses: samples change places within each.
    mixed = table_of(X, np.array(list("uvuuvvuuuvvv")), sample_groups=np.repeat([2, 10, 1], 4))
    for k in range(4):
        found = permuted_target(mixed, 0, k)
        for group in (2, 10, 1):
            rows = mixed.sample_groups == group
            assert sorted(found[rows]) == sorted(mixed.y[rows])


def test_what_chance_gives_is_a_mean_over_the_parts_that_have_it():
    assert chance.chance_level({"m": [0.5, None, 0.25]}, "m") == 0.375
    assert chance.chance_level({"m": [None, None]}, "m") is None


# -- Doubts about data --


def small_table(n_first, n_second, p=2):
    y = np.array(["a"] * n_first + ["b"] * n_second)
    return table_of(np.random.default_rng(0).normal(size=(len(y), p)), y)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [((40, 10), True), ((39, 10), False), ((100, 25), True), ((99, 25), False)],
)
def test_one_class_of_four_times_the_samples_is_not_balanced(sizes, told):
    found = checks._balance_warnings(small_table(*sizes))
    assert bool(found) is told
    assert all(f"'b' has {sizes[1]} of {sum(sizes)} samples" in text for text in found)


@pytest.mark.parametrize(("sizes", "told"), [((35, 15), False), ((34, 15), True), ((40, 14), True)])
def test_fifty_samples_and_fifteen_of_a_class_are_enough(sizes, told):
    assert bool(checks._size_warnings(small_table(*sizes))) is told
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert checks._size_warnings(table_of(X, X[:, 0], task="regression")) == []
    (text,) = checks._size_warnings(table_of(X[:49], X[:49, 0], task="regression"))
    assert "few samples (49) for 2 features" in text


def test_leaks_are_counted_and_named():
    n = 60
    y = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, 4))
    X[:, 1] = y + 0.01 * X[:, 1]
    X[:, 3] = -y + 0.01 * X[:, 3]
    (text,) = checks._leak_warnings(table_of(X, y))
    assert "Each of 2 features separates the classes alone: 'x2', 'x4'." in text
    real = np.random.default_rng(1).normal(size=n)
    X[:, 2] = 5.0  # constant, no division by zero
    X[:, 0] = 3.0 - 2.0 * real
    (text,) = checks._leak_warnings(table_of(X, real, task="regression"))
    assert "The feature 'x1' is almost a linear function of the target." in text
    three = table_of(np.repeat(np.arange(3.0), 4)[:, None], np.repeat(list("abc"), 4))
    assert checks._chance_of_separation(three) == 0.0
    (text,) = checks._leak_warnings(three)
    assert "'x1' separates the classes alone" in text


@pytest.mark.parametrize(("sizes", "p", "told"), [((6, 6), 4, True), ((6, 6), 5, False), ((5, 7), 3, True)])
def test_separation_is_told_where_chance_gives_less_than_one_in_a_hundred(sizes, p, told):
    """Of 12 samples, 924 or 792 orders are equally likely for a feature of noise, and two of them separate."""
    table = small_table(*sizes, p)
    expected = 2 * p / comb(12, sizes[0])
    assert checks._chance_of_separation(table) == pytest.approx(expected)
    assert (expected <= 0.01) is told
    X = table.X.copy()
    X[:, 0] = (table.y == "a") + 0.0
    assert bool(checks._leak_warnings(replace(table, X=X))) is told


def test_checks_go_through_all_blocks_of_columns(monkeypatch):
    n = 40
    y = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, 7))
    X[:, [2, 5]] = y[:, None] + 0.01 * X[:, [2, 5]]
    X[7] = X[3]
    real = X[:, 3] * 2.0 + 1.0
    whole, hashes = checks.separating_features(X, y), checks._row_hashes(X)
    monkeypatch.setattr(checks, "BLOCK", 3)
    assert checks.separating_features(X, y).tolist() == whole.tolist() == [2, 5]
    np.testing.assert_allclose(checks._row_hashes(X), hashes)
    assert checks._copies_of_target(table_of(X, real, task="regression")).tolist() == [3]
    assert len(np.unique(checks._row_hashes(X))) == n - 1
    (text,) = checks._repeated_samples(table_of(X, y))
    assert text.startswith("1 sample is an exact copy of another, ")
    assert checks._repeated_samples(table_of(X, y, sample_groups=np.arange(n) // 2)) == []


# -- Effects --


def test_effects_of_classes_of_unequal_size_by_hand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + 6.0
    X[:, 2] = 1.0
    y = np.array(["a"] * 6 + ["b"] * 14)
    found = univariate_effects(table_of(X, y))
    a, b = X[:6], X[6:]
    pooled = np.sqrt((5 * a.var(axis=0, ddof=1) + 13 * b.var(axis=0, ddof=1)) / 18)
    wanted = (b.mean(axis=0) - a.mean(axis=0))[:2] / pooled[:2]
    np.testing.assert_allclose(found.difference, [*wanted, 0.0])
    np.testing.assert_allclose(found.fold_change, b.mean(axis=0) / a.mean(axis=0))
    assert (found.kind, found.p_value[2], found.q_value[2]) == ("cohens_d", 1.0, 1.0)
    X[0, 0] = 0.0  # a ratio needs positive values
    assert np.isnan(univariate_effects(table_of(X, y)).fold_change).tolist() == [True, False, False]
    three = np.array(list("aaabbbbbbbcccccccccc"))
    found = univariate_effects(table_of(X, three))
    between = sum(np.sum(three == c) * (X[three == c].mean(axis=0) - X.mean(axis=0)) ** 2 for c in "abc")
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.difference[:2], between[:2] / total[:2])
    assert (found.kind, np.isnan(found.fold_change).all()) == ("eta_squared", True)


def test_a_feature_with_one_value_in_each_class_is_not_one_without_effect():
    y = np.arange(12) % 2
    X = np.column_stack([np.random.default_rng(0).normal(size=12), y, 1.0 - y])
    found = univariate_effects(table_of(X, y))
    assert found.difference[1:].tolist() == [np.inf, -np.inf]
    assert (found.p_value[1:] < 1e-12).all()
    result = zeronorm.select(X, y, method="fisher", features=1, cv=2)
    assert (result.selected[0].effect, result.selected[0].direction) == (None, "higher in 1")


def test_features_without_an_effect_in_words():
    one = SimpleNamespace(effect_kind="", class_means=None)
    two = SimpleNamespace(effect_kind="cohens_d", class_means={"a": 1.0, "b": 2.0})
    three = SimpleNamespace(effect_kind="eta_squared", class_means={"a": 1.0, "b": 2.0, "c": 3.0})
    assert [effect_name(some) for some in ([], [one], [one, two], [three])] == [
        "effect", "effect", "Cohen's d", "η²",
    ]  # fmt: skip
    assert compared_classes([one, two]) == ("b", "a")
    assert compared_classes([three]) is compared_classes([one]) is None


# -- Models --


def test_a_model_of_each_kind_of_columns():
    X, y = numbers(40)
    X[:, 0] += 2.0 * (y == "yes")
    columns = np.array([2, 0])
    gaps = X.copy()
    gaps[3, 0] = np.nan
    table, with_gaps = table_of(X, y), table_of(gaps, y)
    model = fit_model(table, columns, Settings())
    assert model.features == [str(table.feature_names[k]) for k in columns]
    assert (model.task, model.target, model.scheme, model.classes, model.fill) == (
        "classification", "target", "single", ["no", "yes"], [],
    )  # fmt: skip
    np.testing.assert_allclose(model.mean, X[:, columns].mean(axis=0))
    np.testing.assert_allclose(model.scale, X[:, columns].std(axis=0))
    assert fit_model(table, columns, Settings(), with_gaps=table).fill == []
    filled = fit_model(training.filled(with_gaps), columns, Settings(), with_gaps=with_gaps).fill
    np.testing.assert_allclose(filled, np.nanmedian(gaps[:, columns], axis=0))
    assert fit_model(table, np.array([], dtype=int), Settings()) is None
    assert fit_model(table, columns, Settings(predictor=Ridge())) is None
    sparse_model = fit_model(table_of(sparse.csr_matrix(X), y), columns, Settings())
    assert sparse_model.mean == [0.0, 0.0]
    real = fit_model(table_of(X, X[:, 0], task="regression"), columns, Settings())
    assert (real.classes, real.scheme) == ([], "single")
    np.testing.assert_allclose(real.predict(X[:, columns]), X[:, 0], atol=0.2)


def line(*features):
    k = len(features)
    return LinearModel(
        "regression", "y", list(features), [0.0] * k, [1.0] * k, [[1.0] * k], [0.0], "single", []
    )


def test_new_samples_are_named_by_their_own_column(tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("n,who,a\n7,u1,1\n8,u2,2\n9,u3,3\n")
    assert apply_model(line("a"), file) == {"sample": ["u1", "u2", "u3"], "prediction": [1.0, 2.0, 3.0]}
    assert apply_model(line("a"), file, id="n")["sample"] == ["7", "8", "9"]
    with pytest.raises(ValueError, match="the new data"):
        apply_model(line("a"), file, id="nobody")
    frame = pd.DataFrame({"a": [1.0, 2.0], "who": ["v1", "v2"]}, index=["i1", "i2"])
    assert apply_model(line("a"), frame)["sample"] == ["i1", "i2"]  # the index names them already
    assert "sample" not in apply_model(line("a"), pd.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="'who' of the new data holds text, but the model needs numbers"):
        apply_model(line("who"), file)
    with pytest.raises(ValueError, match="no column 'z', which the model needs"):
        apply_model(line("z"), file)
    turned = tmp_path / "turned.txt"
    turned.write_text("x;s1;s2\na;1,5;2,5\n")
    found = apply_model(line("a"), turned, transpose=True, delimiter=";", decimal_comma=True)
    assert found == {"sample": ["s1", "s2"], "prediction": [1.5, 2.5]}
    raw = read_new_samples(line("a"), file)
    assert isinstance(raw, RawTable)
    assert apply_model(line("a"), raw)["prediction"] == [1.0, 2.0, 3.0]


def test_only_the_columns_that_a_model_needs_come_from_the_sheet(tmp_path):
    (tmp_path / "data.csv").write_text("id,a\ns1,1\ns2,2\ns3,3\n")
    (tmp_path / "sheet.csv").write_text("id,b,c\ns2,20,x\ns3,30,x\ns1,10,x\n")
    raw = read_new_samples(line("a", "b"), tmp_path / "data.csv", samples=tmp_path / "sheet.csv", id="id")
    assert sorted(raw.names) == ["a", "b", "id"]
    found = apply_model(line("a", "b"), raw)
    assert found == {"sample": ["s1", "s2", "s3"], "prediction": [11.0, 22.0, 33.0]}


@pytest.mark.parametrize("content", ["[1]", "{}", "no json", "null", '{"format": "zeronorm-model"}'])
def test_what_is_no_model_is_refused(content, tmp_path):
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(ValueError, match="is not a model of zeronorm"):
        LinearModel.load(tmp_path)
    with pytest.raises(ValueError, match="There is no model at"):
        LinearModel.load(tmp_path / "nothing.json")


# -- Files --


def test_cells_of_figures_know_their_kind_and_place():
    cells = figure_cells({"f": {"a": [[1, True], [None, "x"]], "b": 2.5, "c": [], "d": float("nan")}})
    rows = list(zip(*cells.values(), strict=True))
    assert list(cells) == ["figure", "part", "i", "j", "k", "kind", "number", "text"]
    assert rows == [
        ("f", "a", 0, 0, None, "int", 1.0, None),
        ("f", "a", 0, 1, None, "bool", 1.0, None),
        ("f", "a", 1, 0, None, "NoneType", None, None),
        ("f", "a", 1, 1, None, "str", None, "x"),
        ("f", "b", None, None, None, "float", 2.5, None),
        ("f", "c", None, None, None, "list", None, None),
        ("f", "d", None, None, None, "NoneType", None, None),
    ]
    assert finite({1: (np.float64(2.0), {"x"}), None: True}) == {1: [2.0, "{'x'}"], "None": True}


def plain_result(**changes):
    data = {"n_samples": 10, "n_features": 30, "target": "y"}
    return Result(**{"kind": "selection", "data": data, "methods": [], **changes})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "x"}, "not a result of zeronorm"),
        ({"format_version": 1}, "format version 1, but this program reads 2"),
        ({"selected": [{"rank": 1}]}, "is incomplete"),
        ({"names": {"a": "b"}}, "is incomplete"),
        ({"kind": None, "more": 1}, "is incomplete"),
    ],
)
def test_what_is_no_result_is_refused(change, words):
    content = json.loads(plain_result(names={3: "g"}).to_json())
    assert Result.from_json(json.dumps(content)).names == {3: "g"}
    with pytest.raises(ValueError, match=words):
        Result.from_json(json.dumps(content | change))
    with pytest.raises(ValueError, match="not valid JSON"):
        Result.from_json("{")
    with pytest.raises(ValueError, match="not a result"):
        Result.from_json("[]")


def test_chance_of_a_result_and_names_of_features():
    result = plain_result(names={3: "g"})
    assert (result.name_of(3), result.name_of(4), result.chance) == ("g", "feature 4", None)
    assert plain_result(procedure={"chance": 0.4}, table=[{"chance": 0.3}]).chance == 0.4
    assert plain_result(table=[{"chance": 0.3}, {"chance": 0.2}]).chance == 0.3
    with pytest.raises(ValueError, match="Nothing was selected, so there is no table"):
        result.to_frame()


def test_the_report_goes_to_a_file_or_into_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "service", lambda name: lambda result, records: f"page {name}")
    result = plain_result()
    for place, file in (("a/b.html", "a/b.html"), ("c.HTM", "c.HTM"), ("d", "d/report.html")):
        written = result.report(tmp_path / place)
        assert written == tmp_path / file
        assert written.read_text() == "page render_report"
        with pytest.raises(ValueError, match=r"exists\. Choose another place"):
            result.report(tmp_path / place)
        result.report(tmp_path / place, force=True)
    (tmp_path / "mine").write_text("")
    (tmp_path / "folder.html").mkdir()
    for wrong in ("mine/x.html", "mine/a/b", "folder.html"):
        with pytest.raises(ValueError, match="report cannot be written to"):
            result.report(tmp_path / wrong, force=True)
    assert not list(tmp_path.rglob(".report-*"))


def test_where_a_reduced_table_may_go(tmp_path):
    there = tmp_path / "t.csv"
    for name in ("t.csv", "t.parquet", "T.PQ"):
        files.check_table_place(tmp_path / name, False)
    with pytest.raises(ValueError, match=r"must name a file that ends in \.csv, \.parquet, \.pq"):
        files.check_table_place(tmp_path / "t.txt", True)
    there.write_text("")
    files.check_table_place(there, True)
    with pytest.raises(ValueError, match="exists"):
        files.check_table_place(there, False)


def test_records_that_lack_something_are_refused(tmp_path):
    columns = {name: [1] for name in files.NEEDED} | {"selected": [[1]], "method": ["a"]}
    frame = pl.DataFrame(columns)
    frame.write_parquet(tmp_path / "records.parquet")
    found = Result.load(tmp_path)
    assert (found.kind, found.model, found.figures) == ("selection", None, {})
    assert Result.load(tmp_path / "records.parquet").records.equals(frame)
    frame.drop("truth", "n_test").write_parquet(tmp_path / "records.parquet")
    with pytest.raises(ValueError, match=r"does not hold records of an evaluation \(no n_test, truth\)"):
        Result.load(tmp_path)
    frame.head(0).write_parquet(tmp_path / "records.parquet")
    with pytest.raises(ValueError, match=r"\(no rows\)"):
        Result.load(tmp_path)
    with pytest.raises(ValueError, match="There are no records at"):
        Result.load(tmp_path / "none")


def test_cells_of_a_table_for_spreadsheets(tmp_path):
    assert [files.as_csv_text(v) for v in (None, float("nan"), 0, False, "", "x")] == [
        "",
        "",
        0,
        False,
        "",
        "x",
    ]
    files.write_csv(tmp_path / "a.csv", [], header=("=x", "y"))
    assert (tmp_path / "a.csv").read_text() == "'=x,y\n"
    files.write_csv(tmp_path / "b.csv", [{"p": 1, "q": None}, {"p": "+z", "q": 2.5}], header=("x",))
    assert (tmp_path / "b.csv").read_text() == "p,q\n1,\n'+z,2.5\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2], "[1, 2]"),
        (list(range(100)), "<list>"),
        ({"C": 1.0}, "{'C': 1.0}"),
        (None, "None"),
        (Ridge(), "<Ridge>"),
    ],
)
def test_arguments_of_a_call_in_words(value, text):
    assert files.call_text("select", {"x": value}, {}) == f"zeronorm.select(x={text})"
    assert files.call_text("select", {"x": value}, {"x": value}) == "zeronorm.select()"
    place = Path("a") / "b"
    assert files.call_text("select", {"data": place}, {"data": place / "c"}) == "zeronorm.select(data='a/b')"
    assert files.call_text("select", {"x": np.ones(1)}, {"x": np.ones(1)}) == "zeronorm.select(x=<ndarray>)"


def test_checksums_are_those_of_files(tmp_path):
    (tmp_path / "f").write_bytes(b"abc" * 1000)
    wanted = hashlib.sha256(b"abc" * 1000).hexdigest()
    assert files.file_checksum(str(tmp_path / "f")) == files.file_checksum(tmp_path / "f") == wanted
    assert files.file_checksum(tmp_path) is files.file_checksum("nothing") is files.file_checksum([1]) is None


# -- Places --


def test_folders_that_hold_something_are_not_overwritten_unless_told(tmp_path):
    folder = tmp_path / "out"
    with places.output_folder(folder) as place:
        (place.folder / "result.json").write_text("1")
        (place.folder / "model.json").write_text("m")
        assert place.journal == folder / "journal"
        assert place.journal.is_dir()
    assert sorted(os.listdir(folder)) == ["model.json", "result.json"]
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(ValueError, match=r"already holds results \(result\.json, model\.json\)"):
        places._check_free(folder, False, False)
    with pytest.raises(ValueError, match="already holds results"):
        places._check_free(folder, False, True)
    places._check_free(folder, True, False)
    with places.output_folder(folder, force=True) as place:
        (place.folder / "result.json").write_text("2")
    assert os.listdir(folder) == ["result.json"]  # nothing of the earlier run is left
    assert (folder / "result.json").read_text() == "2"


def test_finished_parts_stay_after_an_interruption(tmp_path):
    folder = tmp_path / "out"

    def begin(place):
        (place.journal / f"part-{len(list(place.journal.iterdir()))}").write_text("")
        raise KeyboardInterrupt

    def interrupted(**options):
        with pytest.raises(KeyboardInterrupt), places.output_folder(folder, **options) as place:
            begin(place)

    interrupted()
    assert places.has_journal(folder)
    with pytest.raises(ValueError, match=r"interrupted\. Set resume=True"):
        places._check_free(folder, False, False)
    interrupted(resume=True)
    assert sorted(os.listdir(folder / "journal")) == ["part-0", "part-1"]
    interrupted(force=True)
    assert os.listdir(folder / "journal") == ["part-0"]
    assert os.listdir(tmp_path) == ["out"]
    with places.output_folder(folder, resume=True) as place:
        (place.folder / "report.html").write_text("")
    assert os.listdir(folder) == ["report.html"]
    assert not places.has_journal(folder)
    with pytest.raises(RuntimeError), places.output_folder(tmp_path / "new"):
        raise RuntimeError
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(RuntimeError), places.output_folder(tmp_path / "old"):
        raise RuntimeError
    assert os.listdir(tmp_path / "old") == []


@pytest.mark.parametrize(
    ("device", "dask", "n_jobs", "found"),
    [(None, None, None, None), (None, None, 3, 3), ("cpu", None, None, 1), ("cpu", None, 1, 1),
     (None, "tcp://x", None, -1), (None, "tcp://x", 2, 2)],
)  # fmt: skip
def test_how_many_parts_run_side_by_side(device, dask, n_jobs, found):
    assert places.jobs_at(device, dask, n_jobs) == found


def test_processes_and_old_folders(tmp_path, monkeypatch):
    assert places._is_running(os.getpid())
    assert places._is_running(1)  # of another user or not, it runs
    kept = tmp_path / f"{places.TEMPORARY}x"
    kept.mkdir()
    made = kept.stat().st_mtime
    week = 7 * 24 * 3600
    monkeypatch.setattr(places.time, "time", lambda: made + week)
    places.remove_leftovers(tmp_path)
    assert kept.exists()
    monkeypatch.setattr(places.time, "time", lambda: made + week + 1)
    places.remove_leftovers(tmp_path)
    assert not kept.exists()


# -- The job --


def test_warnings_that_differ_in_numbers_are_told_once():
    caught = [
        SimpleNamespace(category=kind, message=text)
        for kind, text in (
            (UserWarning, "took 3 of\n 10.5 steps"),
            (UserWarning, "took 4 of 9 steps"),
            (DeprecationWarning, "old"),
            (PendingDeprecationWarning, "soon old"),
            (FutureWarning, "other"),
        )
    ]
    assert job._messages(caught) == ["took 3 of 10.5 steps", "other"]


def test_a_method_is_described_by_what_differs_from_its_defaults():
    found = job._describe_method(
        "rfe", zeronorm.RFE(C=2.0, feature_groups=[0, 1], n_features_to_select=3), "label"
    )
    assert found["parameters"] == {"C": 2.0, "n_features_to_select": 3}
    assert (found["name"], found["label"], found["class"]) == ("rfe", "label", "RFE")
    foreign = job._describe_method("own", Ridge(alpha=2.0), "own")
    assert (foreign["reference"], foreign["summary"], foreign["parameters"]["alpha"]) == ("", "", 2.0)
    assert job._plain((1, 2)) == "(1, 2)"
    assert [job._plain(value) for value in (None, True, 2, 2.5, "x")] == [None, True, 2, 2.5, "x"]


def test_how_the_size_was_found_in_a_word():
    for settings, method, rule in (
        (Settings(features=2), "probe-selector", "fixed"),
        (Settings(), "probe-selector", "own"),
        (Settings(rule="best"), "rfe", "best"),
        (Settings(), "rfe", "one_se"),
    ):
        assert job._rule_of(method, settings) == rule


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


def test_what_cannot_be_measured_is_told_before_any_work(monkeypatch):
    X, y = numbers()
    for name in ("fit_procedure", "evaluate_procedures"):
        monkeypatch.setattr(training, name, lambda *_, **__: pytest.fail("work that is of no use"))
    options = {"method": "fisher", "features": 2, "permutations": 0}
    for wrong, words in (({"metric": "mse"}, "'metric' parameter"), ({"cv": 16}, "too few for cv=16")):
        with pytest.raises(ValueError, match=words):
            zeronorm.select(X, y, **options, **wrong)


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


def test_parts_that_failed_have_no_say_in_the_means():
    rows = {
        "error_rate": [0.1, None, 0.3],
        "auc": [None, None, None],
        "mse": [1.0, 3.0, None],
        "n_selected": [2, None, 0],
        "fit_seconds": [1.0, None, 2.0],
        "error": [None, "broken", None],
    }
    assert measured._other_metrics(rows, "error_rate") == {"mse": 2.0}
    assert measured._other_metrics(rows, "mse") == pytest.approx({"error_rate": 0.2})
    assert measured._per_fold(rows) == {"sizes": [2, 0], "seconds": 1.5, "failed": ["broken"]}
    assert measured._per_fold(rows | {"fit_seconds": [None] * 3})["seconds"] is None


def test_a_model_is_written_in_letters_and_finite_numbers(tmp_path):
    line("größe").save(tmp_path / "model.json")
    assert "größe" in (tmp_path / "model.json").read_text("utf-8")
    assert LinearModel.load(tmp_path).features == ["größe"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(line("a"), mean=[np.nan]).save(tmp_path / "model.json")


def test_results_appear_also_where_the_folder_was_removed_meanwhile(tmp_path):
    with places.output_folder(tmp_path / "out") as place:
        (place.folder / "result.json").write_text("1")
        shutil.rmtree(tmp_path / "out")
    assert (tmp_path / "out" / "result.json").read_text() == "1"


def test_how_many_times_longer_than_a_machine_methods_are_taken_to_be():
    """As measured on 2026-11-16: what a run without a number of permutations can afford follows from it."""
    table = table_of(*numbers())
    machine = chance._seconds_of_selector(table, "rfe")
    factors = {
        "bound-elimination": 10, "consensus": 4, "gflip": 3, "interval": 10, "jcfo": 10, "knockoff-selector": 3,
        "ofw": 40, "probe-selector": 3, "stability-selection": 100, "arom": 1, "fisher": 0.1,
    }  # fmt: skip
    for name, factor in factors.items():
        assert chance._seconds_of_selector(table, name) == pytest.approx(factor * machine), name


def test_a_selected_feature_in_numbers_and_words():
    X, y = numbers(20)
    table = table_of(X, y)
    path = SelectionPath.from_scores([1.0, 4.0, 3.0, 2.0])
    (first, second) = describe_selected(table, path, np.array([1, 3]), {1: 0.75}, None)
    effects = univariate_effects(table)
    assert (first.rank, second.rank, first.index, second.index) == (1, 2, 1, 3)
    assert (first.score, second.score, first.frequency, second.frequency) == (4.0, 2.0, 0.75, 0.0)
    assert (first.effect, second.effect) == pytest.approx(tuple(effects.difference[[1, 3]]))
    assert (first.p_value, second.q_value) == pytest.approx((effects.p_value[1], effects.q_value[3]))
    assert (first.effect_kind, first.coefficient, first.fold_change) == ("cohens_d", None, None)
    assert (first.mean, first.scale) == pytest.approx((X[:, 1].mean(), X[:, 1].std()))
    assert describe_selected(table, path, np.array([], dtype=int), {}, None) == []
