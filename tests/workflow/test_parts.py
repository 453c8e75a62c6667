"""Parts of a run by themselves: what is read, what is built from it, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from zeronorm import as_design
from zeronorm.registry import all_methods, get_method
from zeronorm.workflow import procedures
from zeronorm.workflow.features import _finite, univariate_effects
from zeronorm.workflow.files import COMMAND, Clock, call_text, provenance
from zeronorm.workflow.inputs import DataOptions, check_folds, load_data
from zeronorm.workflow.models import LinearModel
from zeronorm.workflow.procedures import Settings, build_selector, sizes_to_try


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
    np.testing.assert_allclose(as_design(table.X).block(slice(None)), X)
    assert table.y.tolist() == y.tolist()


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
