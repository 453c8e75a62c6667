"""Selectors and procedures, built from a table and the settings."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge

from zeronorm._messages import OptionError
from zeronorm.registry import all_methods, get_method
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow._procedures import (
    Settings,
    build_procedure,
    build_selector,
    metrics_of,
    named_methods,
    scorer_name,
)

from .conftest import numbers, table_of

# -- Methods --


def test_only_selectors_are_run():
    X, y = numbers(30, 4)
    model = next(iter(all_methods("model")))
    with pytest.raises(ValueError, match="is a model, not a selector"):
        build_procedure(model.name, table_of(X, y), Settings(), [2])


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
        assert table.target.kind == kind
        assert all(kind in info.tasks for info in procedures.usable_methods(table).values())


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ([], ""),
        (["a"], "features by a"),
        (["a", "b"], "consensus of a and b"),
        (["a", "b", "c"], "a, b and c"),
    ],
)
def test_the_note_on_what_auto_does(methods, message, monkeypatch):
    X, y = numbers()
    monkeypatch.setattr(procedures, "candidates", lambda table: methods)
    for table, has_classes in ((table_of(X, y), True), (table_of(X, X[:, 0], task="regression"), False)):
        notes = procedures.default_notes(table)
        assert len(notes) == bool(methods)
        assert message in "".join(notes)
        assert ("relief with a Gaussian" in "".join(notes)) == (has_classes and bool(methods))


def test_methods_for_another_task_are_refused_with_those_that_serve():
    X, _ = numbers()
    real = table_of(X, X[:, 0], task="regression")
    with pytest.raises(
        ValueError, match=r"'margin-lp' supports .*, but the task is regression\. Use one of auto,"
    ) as reported:
        procedures.build_procedure("margin-lp", real, Settings(), [2])
    names = str(reported.value).split("Use one of ")[1].rstrip(".").split(", ")
    assert names == ["auto", *procedures.usable_methods(real)]
    assert procedures.default_method(real) == "auto"


# -- Their parameters --


class Tuned(BaseEstimator):
    """A method with its own parameters and some that are options of the run."""

    def __init__(self, C=1.0, n_steps=5, n_stepx=0, n_stepz=0, task=None, verbose=False, random_state=None):
        self.C = C
        self.n_steps = n_steps
        self.n_stepx = n_stepx
        self.n_stepz = n_stepz
        self.task = task
        self.verbose = verbose
        self.random_state = random_state


def test_what_the_user_may_set_of_a_method():
    info, table = SimpleNamespace(name="m", cls=Tuned), table_of(*numbers())
    found = build_selector(info, table, Settings(), {"C": 2.0, "n_steps": 3})
    assert (found.C, found.n_steps, found.task) == (2.0, 3, "classification")
    for wrong, message in (
        ({"c": 1}, r"'m' has no parameter 'c'\. Did you mean C\?$"),
        ({"N_STEPS": 1}, r"no parameter 'N_STEPS'\. Did you mean n_steps\?$"),
        ({"n_step": 1}, r"Did you mean n_step\w or n_step\w\?$"),  # at most two of three
        ({"zzzz": 1}, r"no parameter 'zzzz'\. It has C, n_steps, n_stepx, n_stepz\.$"),
        ({"task": 1}, r"must not hold 'task', .* Use the parameter 'task' instead"),
        ({"always_keep": 1}, "Use the parameter 'keep' instead"),
        ({"n_features_to_select": 1}, "Use the parameter 'features' instead"),
    ):
        with pytest.raises(ValueError, match=message):
            build_selector(info, table, Settings(), wrong)


def test_methods_without_groups_or_forced_features_say_so(monkeypatch):
    X, y = numbers()
    table = table_of(X, y, feature_groups=[0, 0, 1, 2])
    info = SimpleNamespace(name="plain", cls=Ridge)
    assert (
        procedures.build_selector(info, table, Settings(), {}).alpha == 1.0
    )  # the levels of a text column are not groups set by the user
    with pytest.raises(ValueError, match="'feature_groups' parameter does not apply to the method 'plain'"):
        procedures.build_selector(info, table, Settings(feature_groups=()), {})
    keep = Settings(keep=(str(table.feature_names[0]),))
    with pytest.raises(ValueError, match="'keep' parameter does not apply to the method 'plain'"):
        procedures.build_selector(info, table, keep, {})
    with pytest.raises(ValueError, match="'feature_groups' parameter does not apply"):
        procedures.build_procedure("probe-selector", table, Settings(feature_groups=()), [2])


def test_parameters_inside_a_wrapped_method_are_not_reached():
    table = table_of(*numbers(24))
    params = {"selector": "fisher", "selector__variant": "overall"}
    with pytest.raises(ValueError, match="no parameter 'selector__variant'"):
        procedures.build_procedure("stability-selection", table, Settings(), [2], params)
    X, _ = numbers(24)
    real = table_of(X, X[:, 0], task="regression")
    with pytest.raises(ValueError, match="'margin-lp' supports binary, but the task is regression"):
        procedures.build_procedure("stability-selection", real, Settings(), [2], {"selector": "margin-lp"})


def test_settings_reach_the_selector_that_has_them():
    X, y = numbers(30, 4)
    table = table_of(X, y, feature_groups=[0, 0, 1, 2])
    name = str(table.feature_names[3])
    settings = Settings(features=3, keep=(name,), feature_groups=())
    found = build_selector(get_method("rfe"), table, settings, {"C": 0.5})
    assert (found.n_features_to_select, found.C, list(found.always_keep)) == (3, 0.5, [3])
    assert list(found.feature_groups) == [0, 0, 1, 2]


def test_a_table_of_more_than_two_million_values_is_eliminated_in_larger_steps():
    plain = table_of(*numbers(24))
    rfe = get_method("rfe")
    for p, step in ((2000, rfe.cls().step), (2001, 0.1)):
        table = replace(plain, X=np.broadcast_to(0.0, (1000, p)))
        assert procedures.build_selector(rfe, table, Settings(), {}).step == step
        assert procedures.build_selector(rfe, table, Settings(), {"step": 2}).step == 2
    assert rfe.cls().step != 0.1


# -- Around a selector --


def test_everything_that_was_asked_for_reaches_the_choice_of_a_size():
    X, y = numbers(40, 6)
    table = table_of(X, y, feature_groups=[0, 0, 1, 2, 3, 4])
    name = str(table.feature_names[5])
    asked = {
        "cv": 4,
        "rule": "all",
        "metric": "auc",
        "predictor": LogisticRegression(C=2.0),
        "keep": (name,),
        "max_features": 3,
    }
    settings = Settings(**asked, feature_groups=())
    for method in ("rfe", "auto"):
        found = build_procedure(method, table, settings, [2, 3])
        params = found.get_params(deep=False)
        assert (params["cv"], params["rule"], list(params["sizes"])) == (4, "all", [2, 3])
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


def test_units_are_those_of_auto_and_of_its_predictor():
    X, y = numbers(30, 4)
    table = table_of(np.abs(X), y)
    found = build_procedure("auto", table, Settings(units="log", features=2), [2]).fit(table.X, table.y)
    assert (found.units_, found.predictor_.units) == ("log", "log")
    with pytest.raises(OptionError, match="'log' needs the predictor that auto chooses"):
        build_procedure("auto", table, Settings(units="log", predictor="linear"), [2])
    assert build_procedure("auto", table, Settings(units="standardized", predictor="linear"), [2]).estimator
    for method in ("rfe", "probe-selector"):
        with pytest.raises(OptionError, match=f"'units' .* does not apply to the method '{method}'"):
            build_procedure(method, table, Settings(units="log"), [2])


def test_error_control_goes_around_a_method_by_name():
    X, y = numbers(40, 6)
    table = table_of(X, y)
    settings = Settings(features=2)
    found = build_procedure(
        "stability-selection", table, settings, [2], {"selector": "fisher", "n_subsamples": 7}
    )
    assert (type(found.selector).__name__, found.n_subsamples) == ("FisherScore", 7)
    assert found.n_features_to_select == 2
    for wrong, message in (
        ({"selector": "auto"}, "must be the name of a selector. Got 'auto'"),
        ({"nsubsamples": 3}, "Did you mean n_subsamples"),
        ({"random_state": 3}, "must not hold 'random_state'"),
    ):
        with pytest.raises(ValueError, match=message):
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


def test_error_control_takes_the_first_preferred_method_that_serves():
    X, y = numbers()
    found = procedures.build_procedure("probe-selector", table_of(X, y), Settings(), [2])
    assert type(found.selector).__name__ == "ZeroNormSVM"
    assert found.get_params(deep=False)["n_features_to_select"] is None
    real = procedures.build_procedure(
        "probe-selector", table_of(X, X[:, 0], task="regression"), Settings(), [2]
    )
    assert type(real.selector).__name__ == "RFE"  # the first of them does not support a real target
    assert found.selector.feature_groups is None
    grouped = procedures.build_procedure(
        "probe-selector", table_of(X, y, feature_groups=[0, 0, 1, 1]), Settings(), [2]
    )
    assert grouped.selector.feature_groups is None


# -- Metrics --


def names(table, settings):
    return [metric.name for metric in metrics_of(table, settings)]


def test_metrics_suit_the_task():
    X, y = numbers()
    classes, real = table_of(X, y), table_of(X, X[:, 0], task="regression")
    assert names(classes, Settings()) == ["balanced_error_rate", "error_rate"]
    assert names(real, Settings()) == ["mse", "r2"]
    for name in ("balanced_error_rate", "error_rate", "auc", "mse", "mae", "r2"):
        suits, other = (real, classes) if name in ("mse", "mae", "r2") else (classes, real)
        assert names(suits, Settings(metric=name)) == [name]
        with pytest.raises(ValueError, match=f"names '{name}', which cannot be computed here"):
            procedures.metrics_of(other, Settings(metric=name))
    for table, others in ((classes, "auc, balanced_error_rate, error_rate"), (real, "mae, mse, r2")):
        assert f"Use one of {others}." in str(procedures.unsuitable_metric("x", table))
    assert chance.direction(classes, Settings()) == -1
    assert chance.direction(classes, Settings(metric="auc")) == 1
    assert chance.direction(real, Settings()) == -1


def test_the_scorer_is_that_of_the_metric_and_the_task():
    X, y = numbers(30, 3)
    two, three = table_of(X, y), table_of(X, np.arange(30) % 3, task="classification")
    target = table_of(X, X[:, 0], task="regression")
    assert [scorer_name(t, Settings()) for t in (two, target)] == [
        "balanced_accuracy",
        "neg_mean_squared_error",
    ]
    assert [scorer_name(target, Settings(metric=name)) for name in ("mae", "r2")] == [
        "neg_mean_absolute_error",
        "r2",
    ]
    assert scorer_name(two, Settings(metric="error_rate")) == "accuracy"
    assert [scorer_name(t, Settings(metric="auc")) for t in (two, three)] == ["roc_auc", "roc_auc_ovr"]
    assert scorer_name(two, Settings(metric="f1")) == "f1"
    assert names(two, Settings(metric="f1")) == ["f1"]
    for table, metric in ((two, "mse"), (target, "auc"), (two, "nonsense")):
        with pytest.raises(ValueError, match="'metric' parameter names"):
            metrics_of(table, Settings(metric=metric))
