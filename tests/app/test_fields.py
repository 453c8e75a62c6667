"""The fields of a page are the declared options, and their command and call do the same."""

from __future__ import annotations

import ast
import shlex

import pytest

from app import conftest  # noqa: F401  (skips these tests without the extra)
from zeronorm._messages import rendered, setting
from zeronorm.app import _fields as fields
from zeronorm.app._calls import command_text, python_text
from zeronorm.cli._main import run
from zeronorm.workflow._kinds import options_of
from zeronorm.workflow._options import CompareOptions, SelectOptions

ALL = {
    "target": "the state",
    "task": "classification",
    "sample_groups": "patient",
    "id": "sample",
    "keep": "a b\nAFFX*",
    "ignore": ["x", "-y"],
    "categorical": "site",
    "missing": "drop-rows",
    "censored": "half",
    "drop_unlabelled": True,
    "min_class_size": "3",
    "transpose": "true",
    "delimiter": "tab",
    "sheet": "2",
    "header_row": "4",
    "features": "7",
    "rule": "all",
    "units": "log",
    "metric": "auc",
    "predictor": "gaussian",
    "max_features": "20",
    "cv": "3",
    "repeats": "2",
    "permutations": "5",
    "n_jobs": "-1",
    "random_state": "9",
    "method": "rfe",
}


def test_every_option_is_a_field_or_hidden_for_a_reason():
    for kind, record in (("select", SelectOptions), ("compare", CompareOptions)):
        assert set(fields.fields_of(kind)) | fields.HIDDEN >= set(options_of(record))
        shown = [field.name for part in fields.sections(kind).values() for field in part]
        assert sorted(shown) == sorted(fields.fields_of(kind))


def test_roles_whose_option_is_not_declared_are_not_shown():
    roles = [field.name for field in fields.sections("select")["roles"]]
    assert roles[0] == "target"
    assert set(roles) == set(fields.ROLES) & set(options_of(SelectOptions))


def test_a_new_option_appears_with_a_label_and_its_description():
    field = fields.Field("outer_limit", options_of(SelectOptions)["level"], None)
    assert (field.label, field.control) == ("Outer limit", "decimal")
    assert field.help == options_of(SelectOptions)["level"].help


def test_empty_and_usual_values_are_left_out():
    given = {
        "target": "y",
        "task": "",
        "keep": " \n",
        "cv": "5",
        "features": "auto",
        "transpose": "",
        "missing": "median",
    }
    assert fields.options_from("select", given) == {"target": "y"}


def test_the_command_hands_over_the_options_of_the_page(monkeypatch):
    """The command line parses the command into what the page runs."""
    options = fields.options_from("select", ALL)
    seen = {}

    def spy(kind, arguments, caller):
        seen.update(arguments, kind=kind)
        raise ValueError("enough")

    monkeypatch.setattr("zeronorm.workflow._job.run_job", spy)
    command = command_text("select", {"data": "my data.csv", **options})
    assert run(shlex.split(command)[1:]) == 2
    assert seen["kind"] == "select"
    assert seen["data"] == "my data.csv"
    as_run, as_command = SelectOptions(**options), SelectOptions(**{name: seen[name] for name in options})
    assert {name: getattr(as_run, name) for name in options} == {
        name: getattr(as_command, name) for name in options
    }


def test_the_call_in_python_holds_the_options_of_the_page():
    options = fields.options_from("select", ALL)
    text = python_text("select", {"data": "my data.csv", **options}, with_model=True)
    call = ast.parse(text).body[1].value
    found = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert found == {"data": "my data.csv", **options, "save_model": True}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cv": "many"}, "“Folds” takes a whole number"),
        ({"level": "x"}, "“Limit” takes a number"),
        ({"rule": "most"}, "“How short the list is” takes one of fewest"),
        ({"target": 3}, "“Outcome” takes a text"),
        ({"keep": [1]}, "“Always keep” takes names"),
        ({"out": "/tmp"}, "no field 'out'"),
    ],
)
def test_wrong_values_are_named_as_the_page_names_them(given, message):
    with pytest.raises(fields.FieldError, match=message):
        fields.options_from("select", given)


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        (setting("cv", 3, "set"), "set “Folds” = 3"),
        (setting("drop_unlabelled", True, "Set"), "Tick “Leave out samples without an outcome”"),
        (setting("missing", "drop-rows"), "“Missing values” = leave the sample out"),
        (setting("force", True, "set"), "set force=True"),
    ],
)
def test_messages_mention_fields(marked, text):
    assert rendered(marked, fields.in_labels) == text
