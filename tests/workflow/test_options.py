"""Signatures, docstrings, commands and messages agree with the declaration of the options."""

from __future__ import annotations

import inspect
import json
import pickle
import typing

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm._messages import Message, OptionError, marked_text, parameter, rendered, setting
from zeronorm.cli._main import run
from zeronorm.cli.options import in_flags
from zeronorm.datasets._encoding import MISSING_CHOICES
from zeronorm.datasets._table import TaskName
from zeronorm.evaluation import METRICS, Metric, register_metric
from zeronorm.resampling.predictors._units import UNITS
from zeronorm.workflow._inputs import load_data, pack_table
from zeronorm.workflow._kinds import defaults_of, options_of
from zeronorm.workflow._options import CompareOptions, DataOptions, SelectOptions

from .conftest import numbers

RECORDS = [(zeronorm.select, SelectOptions), (zeronorm.compare, CompareOptions)]


@pytest.mark.parametrize(("function", "record"), RECORDS)
def test_the_signature_is_the_declaration(function, record):
    parameters = dict(inspect.signature(function).parameters)
    assert parameters.pop("data").default is inspect.Parameter.empty
    assert {name: found.default for name, found in parameters.items()} == defaults_of(record)


@pytest.mark.parametrize(("function", "record"), RECORDS)
def test_the_docstring_describes_every_option(function, record):
    text = " ".join(inspect.getdoc(function).split())
    for name, option in options_of(record).items():
        assert (
            f" {name} : {option.kind.accepts}, default={defaults_of(record)[name]!r} {option.meaning}" in text
        )


def test_what_the_command_line_offers_is_what_tables_know():
    declared = options_of(DataOptions)
    assert declared["missing"].kind.values == tuple(MISSING_CHOICES)
    assert declared["task"].kind.values == typing.get_args(TaskName)


def test_the_units_are_those_of_auto():
    offered = options_of(SelectOptions)["units"].kind.values
    assert offered == ("auto", *UNITS)


def test_the_rules_are_those_of_the_selectors_and_former_names_lead_to_them():
    kind = options_of(SelectOptions)["rule"].kind
    for cls in (zeronorm.AutoSelector, zeronorm.SelectorCV):
        for rule in kind.values:
            cls(rule=rule)._validate_params()
    assert set(kind.former.values()) <= set(kind.values)
    for former, present in {"one_se": "fewest", "best": "all"}.items():
        with pytest.raises(OptionError, match=f"'rule' .* {former!r} is now called {present!r}"):
            SelectOptions(rule=former)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"cv": 1}, "cv"),
        ({"cv": 40}, "cv"),
        ({"min_class_size": -1}, "min_class_size"),
        ({"rule": "worst"}, "rule"),
        ({"units": "metres"}, "units"),
        ({"units": "log"}, "units"),
        ({"metric": "nothing"}, "metric"),
        ({"missing": "never"}, "missing"),
        ({"keep": "x77"}, "keep"),
        ({"features": 50}, "features"),
        ({"write_table": "table.txt"}, "write_table"),
        ({"sample_groups": [1, 2]}, "sample_groups"),
        ({"n_jobs": 2, "device": "cuda"}, "n_jobs"),
    ],
)
def test_errors_carry_the_name_of_the_parameter(options, name):
    X, y = numbers()
    with pytest.raises(OptionError, match=f"The '{name}' parameter ") as caught:
        zeronorm.select(X, y, method="fisher", **options)
    assert caught.value.parameter == name
    assert rendered(caught.value.message, in_flags).startswith(f"{in_flags_of(name)} ")


def in_flags_of(name):
    return rendered(Message(parameter(name)), in_flags)


def test_errors_come_back_from_other_processes():
    error = OptionError(f"is odd, set {setting('cv', 3)}.", "repeats")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.parameter) == (str(error), "repeats")
    assert rendered(again.message, in_flags) == "--repeats is odd, set --cv 3."


# -- Notes and warnings --


@pytest.fixture
def leaking_file(tmp_path):
    X, _ = numbers(40)
    y = np.arange(40) % 2
    X[:, 2] += 9.0 * y
    frame = pl.DataFrame({f"g{i}": column for i, column in enumerate(X.T)}).with_columns(label=pl.Series(y))
    frame.write_csv(tmp_path / "data.csv")
    return tmp_path / "data.csv"


def test_notes_and_warnings_name_options_as_the_caller_does(leaking_file, tmp_path, capsys):
    found = zeronorm.select(leaking_file, "label", method="fisher", features=1, permutations=0)
    texts = [*found.notes, *found.warnings]
    assert any("(task='regression' for numbers)" in text for text in texts)
    assert any("(parameter 'ignore')" in text for text in texts)
    command = ["select", str(leaking_file), "-t", "label", "-m", "fisher", "-k", "1", "--permutations", "0"]
    assert run([*command, "--out", str(tmp_path / "out")]) == 0
    content = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    texts = [*content["notes"], *content["warnings"]]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for text in ("\n".join(texts), page, capsys.readouterr().out):
        assert "(--task regression for numbers)" in text
        assert "(--ignore)" in text
        assert "parameter &#39;" not in text
        assert "parameter '" not in text


def test_notes_of_a_packed_table_keep_their_options(leaking_file, tmp_path):
    table = load_data(leaking_file, DataOptions(target="label"))
    pack_table(table, tmp_path / "data.zncols")
    again = load_data(tmp_path / "data.zncols", DataOptions())
    assert list(again.notes) == list(table.notes)
    assert [marked_text(note) for note in again.notes] == [marked_text(note) for note in table.notes]


# -- Metrics --


@pytest.fixture
def worst_residual():
    yield register_metric(
        Metric("worst_residual", lambda y, found: float(np.max(np.abs(y - found))), tasks=("regression",))
    )
    METRICS.pop("worst_residual")


def test_a_registered_metric_serves_its_task(worst_residual):
    X, y = numbers()
    found = zeronorm.select(X, X[:, 0], method="fisher", features=1, permutations=0, metric="worst_residual")
    assert found.procedure["metric"] == "worst_residual"
    assert found.procedure["value"] >= 0.0
    with pytest.raises(OptionError, match="'worst_residual', which cannot be computed here") as refused:
        zeronorm.select(X, y, method="fisher", metric="worst_residual")
    assert str(refused.value).endswith("Use one of auc, balanced_error_rate, error_rate.")
    with pytest.raises(OptionError, match="mae, mse, r2, worst_residual or the name of a scikit-learn"):
        zeronorm.select(X, X[:, 0], method="fisher", metric="nothing")
