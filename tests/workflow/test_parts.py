"""Parts of a run by themselves: what is read, what is built from it, and what is said about it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from zeronorm.workflow.files import (
    COMMAND,
    Clock,
    _described,
    call_text,
    method_rows,
    provenance,
    write_table,
)

from zeronorm import as_design, compare
from zeronorm.design import Design
from zeronorm.registry import all_methods, get_method
from zeronorm.selection import problem
from zeronorm.workflow import measured, procedures
from zeronorm.workflow.features import _direction, _finite, univariate_effects
from zeronorm.workflow.inputs import DataOptions, check_folds, load_data
from zeronorm.workflow.job import _named
from zeronorm.workflow.models import LinearModel, apply_model
from zeronorm.workflow.procedures import (
    SCORERS,
    Settings,
    build_procedure,
    build_selector,
    check_permutations,
    inner_folds,
    inner_notes,
    metrics_of,
    named_methods,
    parse_features,
    predictor_notes,
    predictor_of,
    scorer_name,
    sizes_to_try,
)


def table_of(X, y, **options):
    return load_data(X, DataOptions.taken_from({"target": y, **options}))


def numbers(n=30, p=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.where(np.arange(n) % 2, "yes", "no")


# -- What is read --


@pytest.mark.parametrize("home", ["array", "list", "design", "dask", "foreign"])
def test_the_same_numbers_make_the_same_table_from_every_home(home):
    X, y = numbers(12, 5)
    if home == "dask":
        data = pytest.importorskip("dask.array").from_array(X, chunks=(6, 5))
    elif home == "foreign":
        data = pytest.importorskip("array_api_strict").asarray(X)
    else:
        data = {"array": X, "list": X.tolist(), "design": as_design(X)}[home]
    table = table_of(data, y)
    assert (table.n_samples, table.n_features, table.task) == (12, 5, "classification")
    assert isinstance(table.X, Design) == (home in ("design", "dask", "foreign"))  # these stay where they are
    np.testing.assert_allclose(as_design(table.X).block(slice(None)), X)
    assert table.y.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("samples", pl.DataFrame({"a": [1]})),
        ("ignore", ["x1"]),
        ("only", ["x1"]),
        ("categorical", ["x1"]),
        ("transpose", True),
        ("min_class_size", 3),
        ("drop_unlabelled", True),
    ],
)
def test_columns_that_stay_where_they_are_are_not_changed(option, value):
    X, y = numbers(12, 5)
    with pytest.raises(ValueError, match=f"'{option}' parameter does not apply to"):
        table_of(as_design(X), y, **{option: value})


def test_a_design_brings_its_names_and_its_groups():
    X, y = numbers(12, 3)
    plain = table_of(as_design(X), y)
    assert plain.feature_names.tolist() == ["x1", "x2", "x3"]
    assert plain.target_name == "target"
    assert plain.sample_groups is None
    named = table_of(as_design(X, feature_names=["a", "b", "c"]), y, sample_groups=np.arange(12) // 4)
    assert named.feature_names.tolist() == ["a", "b", "c"]
    assert named.sample_groups.tolist() == (np.arange(12) // 4).tolist()
    assert named.source_columns.tolist() == [0, 1, 2]
    (guessed,) = plain.notes
    assert "holds text, so the task is classification" in guessed
    assert table_of(as_design(X), y, task="classification").notes == ()
    with pytest.raises(ValueError, match=r"must be an array, or the path of a \.npy file"):
        table_of(as_design(X), "label")


def test_groups_of_features_are_labels_or_a_mapping():
    X, y = numbers(12, 4)
    names = [str(name) for name in table_of(X, y).feature_names]
    by_label = table_of(X, y, feature_groups=["b", "a", "b", "c"]).feature_groups
    assert by_label.tolist() == [1, 0, 1, 2]
    by_name = table_of(X, y, feature_groups={names[0]: "g", names[3]: "g"}).feature_groups
    assert by_name[0] == by_name[3]
    assert len(set(by_name.tolist())) == 3  # the others stand alone
    with pytest.raises(ValueError, match="names 'nothing', which is not a feature"):
        table_of(X, y, feature_groups={"nothing": "g"})
    with pytest.raises(ValueError, match=r"one label for each of the 4 features.* Got shape \(3,\)"):
        table_of(X, y, feature_groups=[0, 1, 2])


def test_folds_need_samples_classes_and_groups():
    X, y = numbers(12, 3)
    with pytest.raises(ValueError, match=r"two samples in each fold\. 12 samples are too few for cv=7"):
        check_folds(table_of(X, X[:, 0], task="regression"), 7)
    check_folds(table_of(X, X[:, 0], task="regression"), 6)
    with pytest.raises(ValueError, match=r"'no' has 6 samples, too few for cv=7\. Set cv=6 or fewer"):
        check_folds(table_of(X, y), 7)
    check_folds(table_of(X, y), 6)
    grouped = table_of(X, y, sample_groups=np.arange(12) // 3)
    with pytest.raises(ValueError, match=r"has 4 groups, too few for cv=5\. Set cv=4"):
        check_folds(grouped, 5)
    check_folds(grouped, 4)


def test_a_target_may_be_a_column():
    X, y = numbers(12, 3)
    for data in (X, as_design(X)):
        assert table_of(data, y[:, None]).y.tolist() == y.tolist()
        with pytest.raises(
            ValueError, match=r"one value for each of the 12 samples\. Got an array of shape \(12, 2\)"
        ):
            table_of(data, np.column_stack([y, y]))


# -- What is built --


@pytest.mark.parametrize(
    ("settings", "smallest", "largest"),
    [
        ({}, 1, 40),
        ({"features": 2}, 1, 16),
        ({"features": 6}, 1, 24),
        ({"features": 30}, 1, 40),
        ({"max_features": 7}, 1, 7),
        ({"features": 5, "max_features": 3}, 1, 5),
        ({"max_features": 9, "keep": ("x3", "x5")}, 2, 9),
    ],
)
def test_sizes_go_from_what_must_be_in_to_well_beyond_what_is_asked_for(
    settings, smallest, largest, monkeypatch
):
    monkeypatch.setattr(procedures, "DEFAULT_LARGEST", 50)
    X, y = numbers()
    table = table_of(X, y)
    keep = tuple(str(table.feature_names[int(name[1:])]) for name in settings.get("keep", ()))
    sizes = sizes_to_try(table, Settings(**{**settings, "keep": keep}))
    assert (sizes[0], sizes[-1]) == (smallest, largest)
    assert sizes == sorted(set(sizes))
    ratios = np.diff(np.log(sizes[len(sizes) // 2 :]))
    assert ratios.max() < 2 * ratios.min() + 0.2  # the large ones are evenly spaced in the logarithm


def test_sizes_begin_where_the_largest_group_fits():
    X, y = numbers(30, 10)
    groups = [0, 0, 0, 0, 1, 1, 2, 3, 4, 5]
    assert sizes_to_try(table_of(X, y, feature_groups=groups), Settings())[0] == 4
    with pytest.raises(ValueError, match="asks for 11 features, but the table has 10"):
        sizes_to_try(table_of(X, y), Settings(features=11))
    assert sizes_to_try(table_of(X, y), Settings(features=10))[-1] == 10


def test_a_large_table_is_eliminated_in_larger_steps(monkeypatch):
    X, y = numbers(30, 10)
    table, rfe = table_of(X, y), get_method("rfe")
    plain = rfe.cls().step
    assert build_selector(rfe, table, Settings(), {}).step == plain != 0.1
    monkeypatch.setattr(procedures, "LARGE_TABLE", 299)
    assert build_selector(rfe, table, Settings(), {}).step == 0.1
    assert build_selector(rfe, table, Settings(), {"step": 2}).step == 2
    monkeypatch.setattr(procedures, "LARGE_TABLE", 300)
    assert build_selector(rfe, table, Settings(), {}).step == plain


def test_settings_reach_the_selector_that_has_them():
    X, y = numbers(30, 4)
    table = table_of(X, y, feature_groups=[0, 0, 1, 2])
    name = str(table.feature_names[3])
    settings = Settings(features=3, keep=(name,), has_own_groups=True)
    found = build_selector(get_method("rfe"), table, settings, {"C": 0.5})
    assert (found.n_features_to_select, found.C, list(found.always_keep)) == (3, 0.5, [3])
    assert list(found.feature_groups) == [0, 0, 1, 2]


def test_only_selectors_are_run():
    X, y = numbers(30, 4)
    model = next(iter(all_methods("model")))
    with pytest.raises(ValueError, match="is a model, not a selector"):
        procedures._check_serves(model, table_of(X, y))
    procedures._check_serves(get_method("rfe"), table_of(X, y))


def test_a_count_of_features_is_a_whole_number():
    assert [parse_features(value) for value in (None, "auto", 3, "3", 3.0, np.int64(2))] == [
        None,
        None,
        3,
        3,
        3,
        2,
    ]
    for wrong in (0, -1, 2.5, "two", [3], "2.5"):
        with pytest.raises(ValueError, match="count of at least 1, or 'auto'"):
            parse_features(wrong)
    for count in (0, 19, np.int64(3), "auto"):
        check_permutations(count)
    for wrong in (-1, 1.5, True, "many", None):
        with pytest.raises(ValueError, match=r"count .0 for none. or 'auto'"):
            check_permutations(wrong)


def test_methods_are_named_in_a_list_or_a_text():
    table = table_of(*numbers(20, 4))
    assert named_methods(None, table) == ["fisher", "rfe"]
    assert named_methods(" rfe, fisher ,", table) == ["rfe", "fisher"]
    assert named_methods(("l1-svm",), table) == ["l1-svm"]
    quick = named_methods("all-fast", table)
    assert "fisher" in quick
    assert all("binary" in get_method(name).tasks for name in quick)
    with pytest.raises(ValueError, match="names 'rfe' twice"):
        named_methods("rfe,fisher,rfe", table)
    with pytest.raises(ValueError, match="is empty"):
        named_methods(" , ", table)


def test_the_kind_of_a_task_counts_the_classes():
    X, y = numbers(21, 3)
    kinds = {
        "binary": table_of(X, y),
        "multiclass": table_of(X, np.arange(21) % 3, task="classification"),
        "regression": table_of(X, X[:, 0], task="regression"),
    }
    for kind, table in kinds.items():
        assert procedures.task_kind(table) == kind
        assert all(kind in info.tasks for info in procedures.usable_methods(table).values())


@pytest.mark.parametrize(
    ("n_rare", "cv", "inner"), [(10, 5, 5), (5, 5, 4), (6, 3, 3), (4, 4, 3), (3, 3, 2), (7, 5, 5), (4, 3, 2)]
)
def test_folds_inside_are_as_many_as_the_training_parts_allow(n_rare, cv, inner):
    """The smallest class less its share of the largest test part."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.where(np.arange(30) < n_rare, "rare", "common")
    assert inner_folds(table_of(X, y), Settings(cv=cv)) == inner
    notes = inner_notes(table_of(X, y), Settings(cv=cv), "rfe")
    assert [f"rest on {inner} folds" in note for note in notes] == ([] if inner == cv else [True])
    assert inner_notes(table_of(X, y), Settings(cv=cv, features=2), "rfe") == []


def test_groups_and_too_few_samples_limit_the_folds_inside():
    X, y = numbers(30, 3)
    assert inner_folds(table_of(X, y, sample_groups=np.arange(30) // 6), Settings(cv=5)) == 4
    assert inner_folds(table_of(X, X[:, 0], task="regression"), Settings(cv=10)) == 10
    with pytest.raises(ValueError, match="one sample of the smallest class"):
        inner_folds(table_of(X, np.arange(30) < 2), Settings(cv=2))


def test_everything_that_was_asked_for_reaches_the_choice_of_a_size():
    X, y = numbers(40, 6)
    table = table_of(X, y, feature_groups=[0, 0, 1, 2, 3, 4])
    name = str(table.feature_names[5])
    asked = {
        "cv": 4,
        "rule": "best",
        "metric": "auc",
        "predictor": LogisticRegression(C=2.0),
        "keep": (name,),
    }
    settings = Settings(**asked, has_own_groups=True)
    for method in ("rfe", "auto"):
        found = build_procedure(method, table, settings, [2, 3])
        params = found.get_params(deep=False)
        assert (params["cv"], params["rule"], list(params["sizes"])) == (4, "best", [2, 3])
        assert params["scoring"] == "roc_auc"
        assert params["estimator"].C == 2.0
        inside = found.selector if method == "rfe" else found
        assert list(inside.always_keep) == [5]
        assert list(inside.feature_groups) == [0, 0, 1, 2, 3, 4]
    fixed = build_procedure("rfe", table, Settings(features=3), [2, 3], {"C": 7.0})
    assert (type(fixed).__name__, fixed.n_features_to_select, fixed.C) == ("RFE", 3, 7.0)
    assert build_procedure("auto", table, Settings(features=3), [2, 3]).n_features_to_select == 3
    default = build_procedure("rfe", table, Settings(), [2, 3])
    assert default.estimator is None
    assert default.selector.always_keep is None
    regression = build_procedure("auto", table_of(X, X[:, 0], task="regression"), Settings(), [2])
    assert regression.task == "regression"


def test_error_control_goes_around_a_method_by_name():
    X, y = numbers(40, 6)
    table = table_of(X, y)
    settings = Settings(features=2)
    found = build_procedure(
        "stability-selection", table, settings, [2], {"selector": "fisher", "n_subsamples": 7}
    )
    assert (type(found.selector).__name__, found.n_subsamples) == ("FisherScore", 7)
    assert found.n_features_to_select == 2
    for wrong, words in (
        ({"selector": "auto"}, "must be the name of a selector. Got 'auto'"),
        ({"nsubsamples": 3}, "Did you mean n_subsamples"),
        ({"random_state": 3}, "must not hold 'random_state'"),
    ):
        with pytest.raises(ValueError, match=words):
            build_procedure("stability-selection", table, settings, [2], wrong)
    keep = Settings(keep=(str(table.feature_names[0]),))
    with pytest.raises(
        ValueError, match="'keep' parameter does not apply to the method 'stability-selection'"
    ):
        build_procedure("stability-selection", table, keep, [2])
    with pytest.raises(ValueError, match="chooses the number of features of another method"):
        build_procedure("selector-cv", table, settings, [2])
    with pytest.raises(ValueError, match="'params' parameter does not apply to the method 'auto'"):
        build_procedure("auto", table, settings, [2], {"C": 1.0})


def test_the_scorer_is_that_of_the_metric_and_the_task():
    X, y = numbers(30, 3)
    two, three = table_of(X, y), table_of(X, np.arange(30) % 3, task="classification")
    target = table_of(X, X[:, 0], task="regression")
    assert scorer_name(two, Settings()) == SCORERS[procedures.primary_metric_of(two, Settings())]
    assert [scorer_name(t, Settings(metric="auc")) for t in (two, three)] == ["roc_auc", "roc_auc_ovr"]
    assert scorer_name(two, Settings(metric="f1")) == "f1"
    assert metrics_of(two, Settings(metric="f1")) == ["f1"]
    assert metrics_of(target, Settings()) == list(procedures.DEFAULT_METRICS["regression"])
    for table, metric in ((two, "mse"), (target, "auc"), (two, "nonsense")):
        with pytest.raises(ValueError, match="'metric' parameter names"):
            metrics_of(table, Settings(metric=metric))


def test_the_predictor_is_the_one_asked_for():
    X, y = numbers(30, 3)
    table = table_of(X, y)
    own = LogisticRegression()
    assert predictor_of(table, Settings(predictor=own)) is own
    assert procedures._judge(table, Settings()) is None
    gaussian = predictor_of(table, Settings(predictor="gaussian"))
    assert gaussian.get_params()["kernel"] == "rbf"
    assert [len(predictor_notes(Settings(predictor=p))) for p in ("linear", "gaussian", own)] == [0, 1, 1]
    assert "Gaussian kernel" in predictor_notes(Settings(predictor="gaussian"))[0]
    assert "LogisticRegression()" in predictor_notes(Settings(predictor=own))[0]


# -- Models --


def model_of(scheme, weights, classes, task="classification"):
    p = len(weights[0])
    names = [f"x{j}" for j in range(p)]
    means, scales = [1.0, 2.0][:p], [2.0, 0.5][:p]
    return LinearModel(task, "y", names, means, scales, weights, [0.0] * len(weights), scheme, classes)


def test_predictions_of_each_scheme_by_hand():
    """Standardised, the three samples are (1, 0), (0, 2) and (-1, -2)."""
    X = [[3.0, 2.0], [1.0, 3.0], [-1.0, 1.0]]
    line = model_of("single", [[1.0, 1.0]], [], "regression")
    np.testing.assert_allclose(line.predict(X), [1.0, 2.0, -3.0])
    assert line.coefficients == [1.0, 1.0]
    assert model_of("single", [[1.0, -1.0]], ["a", "b"]).predict(X).tolist() == ["b", "a", "b"]
    by_class = model_of("classes", [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], ["a", "b", "c"])
    assert by_class.predict(X).tolist() == ["a", "b", "c"]
    assert by_class.coefficients is None
    # a against b, a against c, b against c; a positive value is a vote for the first
    pairs = model_of("pairs", [[1.0, -1.0], [1.0, 1.0], [0.0, 1.0]], ["a", "b", "c"])
    assert pairs.predict(X).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "change",
    [
        {"mean": [1.0]},
        {"scale": [1.0, 2.0, 3.0]},
        {"fill": [0.0]},
        {"weights": [[1.0]]},
        {"weights": [[1.0, 1.0], [1.0, 1.0]]},
        {"intercepts": [0.0, 0.0]},
        {"scheme": "pairs", "classes": ["a", "b", "c"]},
        {"scheme": "classes", "classes": ["a", "b"]},
        {"scheme": "other"},
        {"scale": [0.0, 1.0]},
        {"mean": [np.nan, 1.0]},
        {"intercepts": [np.inf]},
        {"weights": [["1", 2.0]]},
        {"fill": [np.nan, 1.0]},
    ],
)
def test_a_model_whose_parts_do_not_agree_is_refused(change):
    model_of("single", [[1.0, 1.0]], ["a", "b"])._check()
    model_of("pairs", [[1.0, 1.0]] * 3, ["a", "b", "c"])._check()
    model_of("classes", [[1.0, 1.0]] * 3, ["a", "b", "c"])._check()
    with pytest.raises(ValueError, match=r"Save it again\."):
        replace(model_of("single", [[1.0, 1.0]], ["a", "b"]), **change)._check()


def test_a_model_takes_arrays_of_its_features():
    model = model_of("single", [[1.0, -1.0]], ["a", "b"])
    found = apply_model(model, [[3.0, 2.0], [1.0, 3.0]])
    assert found["prediction"] == ["b", "a"]
    np.testing.assert_allclose(found["decision"], [1.0, -2.0])
    assert "decision" not in apply_model(model_of("classes", [[1.0, 0.0]] * 3, ["a", "b", "c"]), [[3.0, 2.0]])
    with pytest.raises(ValueError, match="'x1' has no finite value in data row 2"):
        apply_model(model, [[3.0, 2.0], [1.0, np.nan]])
    filled = apply_model(replace(model, fill=[0.0, 3.0]), [[3.0, 2.0], [1.0, np.nan]])
    assert filled["prediction"] == ["b", "a"]
    for wrong in ([[1.0, 2.0, 3.0]], [1.0, 2.0]):
        with pytest.raises(ValueError, match="must have the 2 columns x0, x1"):
            apply_model(model, wrong)


# -- What is said --


def test_effects_by_hand():
    X, y = numbers(20, 3)
    X = X + 5.0
    found = univariate_effects(table_of(X, y))
    yes, no = X[y == "yes"], X[y == "no"]
    np.testing.assert_allclose(found.class_means, [no.mean(axis=0), yes.mean(axis=0)])
    np.testing.assert_array_equal(np.sign(found.difference), np.sign(yes.mean(axis=0) - no.mean(axis=0)))
    target = X[:, 1] + X[:, 0] ** 2
    found = univariate_effects(table_of(X, target, task="regression"))
    wanted = [stats.pearsonr(column, target) for column in X.T]
    np.testing.assert_allclose(found.difference, [one.statistic for one in wanted])
    np.testing.assert_allclose(found.p_value, [one.pvalue for one in wanted])
    assert found.kind == "correlation"


def test_the_direction_of_a_feature_in_words():
    effects = SimpleNamespace(difference=np.array([0.3, -0.3, 0.0]))
    words = [_direction(effects, None, index, []) for index in range(3)]
    assert words == ["rises with the target", "falls with the target", "none"]
    means = [np.array([1.0, 2.0, 1.5]), np.array([3.0, 2.0, 1.0]), np.ones(3)]
    words = [_direction(effects, one, 0, ["a", "b", "c"]) for one in means]
    assert words == ["higher in b", "higher in a", "none"]


@pytest.mark.parametrize(
    ("methods", "words"),
    [([], ""), (["a"], "compares a inside"), (["a", "b"], "a and b inside"), (["a", "b", "c"], "a, b and c")],
)
def test_the_methods_that_auto_compares_in_words(methods, words, monkeypatch):
    monkeypatch.setattr(procedures, "roster", lambda table: methods)
    notes = procedures.default_notes(None)
    assert len(notes) == bool(methods)
    assert words in "".join(notes)


def test_where_the_data_come_from_in_words():
    found = [_named(data) for data in ("-", "folder/file.csv", Path("folder/file.csv"), np.ones(2))]
    assert found == ["standard input", "file.csv", "file.csv", "the data"]


def test_numbers_that_are_not_finite_are_left_empty():
    assert [_finite(value) for value in (1.5, np.nan, np.inf, -np.inf)] == [1.5, None, None, None]
    assert type(_finite(np.float32(2.0))) is float


def test_the_call_names_what_differs_from_its_defaults():
    defaults = {"cv": 5, "rule": "one_se", "method": None, "verbose": False, "X": None}
    given = {"cv": 5, "rule": "best", "method": None, "verbose": 0, "X": np.ones((2, 2)), "features": 3}
    text = call_text("select", given, defaults)
    assert text == "zeronorm.select(rule='best', verbose=0, X=<ndarray>, features=3)"


def test_the_command_line_stands_before_the_call_in_python():
    found = provenance(Clock(), "zeronorm.select(cv=3)", seed=7)
    assert found["command"] == "zeronorm.select(cv=3)"
    assert (found["seed"], list(found)[-1]) == (7, "seed")
    assert 0.0 <= found["seconds"] < 60.0
    token = COMMAND.set("zeronorm select data.csv")
    try:
        assert provenance(Clock(), "zeronorm.select(cv=3)")["command"] == "zeronorm select data.csv"
    finally:
        COMMAND.reset(token)
    assert provenance(Clock())["command"] == ""


def test_a_row_of_a_comparison_in_numbers():
    row = {
        "method": "rfe",
        "value": 0.1,
        "low": 0.0,
        "high": 0.2,
        "chance": 0.5,
        "p_value": 0.05,
        "seconds": 3.0,
    }
    row |= {"sizes": [2, 4, 6], "stability": {"value": 0.7}, "failed": ["fold 1"]}
    (found,) = method_rows([row])
    assert (found["features"], found["stability"], found["failed"]) == (4.0, 0.7, 1)
    assert [found[name] for name in ("method", "value", "low", "high", "chance", "p_value", "seconds")] == [
        "rfe", 0.1, 0.0, 0.2, 0.5, 0.05, 3.0,
    ]  # fmt: skip
    assert method_rows([row | {"sizes": []}])[0]["features"] is None


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_reduced_table_has_distinct_names(ending, tmp_path):
    X, y = numbers(4, 3)
    frame = pl.DataFrame({"y": X[:, 0], "y (2)": X[:, 1], "z": X[:, 2], "label": y})
    table = load_data(frame, DataOptions.taken_from({"target": "label"}))
    table = replace(table, target_name="y", sample_ids=np.arange(4))
    file = tmp_path / f"reduced{ending}"
    write_table(table, np.array([0, 2, 1]), file)
    found = pl.read_csv(file) if ending == ".csv" else pl.read_parquet(file)
    assert found.columns == ["sample", "y", "y (2)", "z", "y (2) (2)"]
    assert found["y"].to_list() == y.tolist()
    np.testing.assert_allclose(found.select(found.columns[2:]).to_numpy().astype(float), X[:, [0, 2, 1]])


def test_records_alone_tell_what_they_can():
    records = pl.DataFrame(
        {
            "method": ["a", "b"],
            "selected": [[3, 7], None],
            "n_train": [8, 8],
            "n_test": [2, 2],
            "error_rate": [0.1, 0.2],
        }
    )
    found = _described(records, Path("place/records.parquet"))
    data = found["data"]
    assert (data["n_samples"], data["n_features"], data["task"]) == (10, 8, "classification")
    assert (found["kind"], found["chosen_method"]) == ("comparison", None)
    assert [method["name"] for method in found["methods"]] == ["a", "b"]
    one = _described(records.head(1).rename({"error_rate": "mse"}), Path("place/records.parquet"))
    assert (one["kind"], one["chosen_method"], one["data"]["task"]) == ("selection", "a", "regression")


MEASURED = {
    "method": "rfe", "metric": "error_rate", "label": "error rate", "greater_is_better": False, "value": 0.2,
    "low": 0.1, "high": 0.3, "no_interval": "", "n_splits": 5, "chance": 0.5, "p_value": None, "n_permutations": 0,
    "also": {}, "stability": {"value": 0.8, "low": None, "high": None}, "sizes": [2, 2], "failed": [],
    "beats_chance": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"value": None}, "The error could not be measured."),
        (
            {},
            "is 20.0 % (95 % interval for the models fitted here 10.0 % to 30.0 %), over 5 test parts. Without any",
        ),
        ({}, "Without any feature it is 50.0 %."),
        (
            {"low": None, "high": None, "no_interval": "no interval: few"},
            "is 20.0 % (no interval: few), over 5",
        ),
        ({"low": None, "high": None}, "is 20.0 %, over 5 test parts"),
        ({"also": {"r2": 0.4, "auc": 0.9}}, "%), R² 0.4, over 5"),
        (
            {"p_value": 0.05, "n_permutations": 19},
            "on 19 permuted targets; it never did as well there (p = 0.05).",
        ),
        ({"p_value": 0.1, "n_permutations": 19}, "it did as well there once (p = 0.1)."),
        ({"p_value": 0.2, "n_permutations": 19}, "it did as well there 3 times (p = 0.2)."),
    ],
)
def test_the_measured_error_in_words(changes, words):
    text = measured.error_sentence(MEASURED | changes)
    assert words in text
    assert ("Without any" in text) == (changes.get("value", 0.2) is not None)
    assert "Without any" not in measured.error_sentence(MEASURED | changes | {"chance": None})


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({}, True),
        ({"high": 0.5}, False),  # chance is in the interval
        ({"high": 0.49}, True),
        ({"value": 0.5}, False),
        ({"value": 0.51, "p_value": 0.01, "n_permutations": 99}, False),
        ({"value": None}, None),
        ({"low": None, "high": None}, None),
        ({"chance": None}, None),
        ({"p_value": 0.05, "n_permutations": 19}, True),
        ({"p_value": 0.1, "n_permutations": 9}, None),  # none did as well, of too few
        ({"p_value": 0.1, "n_permutations": 19}, False),
        ({"greater_is_better": True, "value": 0.9, "low": 0.6}, True),
        ({"greater_is_better": True, "value": 0.9, "low": 0.5}, False),
        ({"greater_is_better": True, "value": 0.4, "low": 0.6}, False),
    ],
)
def test_what_beats_chance(changes, claim):
    assert measured.beats_chance(MEASURED | changes) is claim


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"failed": ["no data", "other"]}, ["2 of 7 test parts could not be evaluated: no data."]),
        (
            {"beats_chance": None, "low": None, "high": None},
            ["has no interval, and no permutations were made"],
        ),
        ({"beats_chance": None, "n_permutations": 9}, ["9 permutations cannot give a p-value of 0.05"]),
        ({"beats_chance": False}, ["the interval of the error rate contains chance"]),
        ({"beats_chance": False, "p_value": 0.2}, ["(p = 0.2)"]),
        ({"beats_chance": False, "value": 0.6, "p_value": 0.2}, ["error rate is not below that of chance"]),
        ({"beats_chance": False, "greater_is_better": True}, ["error rate is not above that of chance"]),
        ({"value": None, "beats_chance": None}, []),
        ({"low": 0.05, "high": 0.36}, ["is wide, ±16 percentage points"]),
        ({"low": 0.05, "high": 0.34}, []),
        ({"metric": "mse", "low": 0.0, "high": 9.0}, []),
        ({"stability": {"value": 0.39}}, ["(stability 0.39, 1 is best)"]),
        ({"stability": {"value": 0.41}}, []),
        ({"stability": {"value": None}}, []),
    ],
)
def test_doubts_in_words(changes, words):
    notes = measured.result_warnings(MEASURED | changes, {"chosen": 3, "at_largest": False})
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))


def test_doubts_about_the_size_in_words():
    (nothing,) = measured.result_warnings(MEASURED | {"beats_chance": False}, {"chosen": 0})
    assert "The method selected nothing" in nothing
    (largest,) = measured.result_warnings(MEASURED, {"chosen": 8, "at_largest": True})
    assert "number of features, 8, is the largest that was tried" in largest


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([], ""),
        ([1, 1], "selected 1 feature in each training part. From all samples it selected 2."),
        ([3, 3], "selected 3 features in each training part."),
        ([3, 4], "selected 3, 4 features in the training parts."),
        (list(range(2, 12)), "selected 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 features"),
        (list(range(2, 13)), "selected 2 to 12 features in the training parts."),
    ],
)
def test_sizes_in_words(sizes, words):
    result = SimpleNamespace(procedure={"sizes": sizes}, kind="selection", selected=["a", "b"])
    text = measured.size_sentence(result)
    assert words in text
    assert bool(text) == bool(sizes)
    result.kind = "comparison"
    assert measured.size_sentence(result) == ""


@pytest.mark.parametrize(
    ("count", "changes", "words"),
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
def test_headlines(count, changes, words):
    data = {"n_features": 9, "n_samples": 30, "target": "y"}
    result = SimpleNamespace(
        data=data, kind="selection", selected=["x"] * count, procedure=MEASURED | changes
    )
    assert words in measured.headline(result)
    result.kind, result.methods = "comparison", [1, 2]
    assert measured.headline(result) == "2 methods compared on 30 samples and 9 features"
    result.kind, result.procedure = "selection", {}
    assert measured.headline(result) == "Selection from 9 features"


@pytest.mark.parametrize(("repeats", "permutations", "steps"), [(1, 0, 4), (2, 1, 16)])
def test_a_comparison_announces_as_many_steps_as_it_takes(repeats, permutations, steps, monkeypatch):
    """Two methods on two folds, again for each repeat and for each permutation."""
    told = []

    @contextmanager
    def bar(description, total):
        yield problem.RunBar(None, None)

    monkeypatch.setattr(problem, "_bar", bar)
    monkeypatch.setattr(problem.RunBar, "_update", lambda self, **what: told.append(what))
    X, y = numbers(24, 4)
    settings = {"features": 2, "cv": 2, "repeats": repeats, "permutations": permutations, "verbose": True}
    compare(X, y, methods="fisher,random", **settings)
    assert [what["total"] for what in told if "total" in what] == [steps]
    assert sum(what.get("advance", 0) for what in told) == steps
