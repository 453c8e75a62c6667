"""Options of the commands as they reach the workflow and as the shell completes them."""

from __future__ import annotations

import inspect
import os
import re
import shlex
from pathlib import Path

import pytest

import zeronorm
from zeronorm.cli import options
from zeronorm.cli._main import run
from zeronorm.registry import all_methods

from .conftest import shell


def handed_over(monkeypatch, name, *command):
    """The keywords with which a command calls the workflow."""
    seen = {}

    def spy(called, arguments, caller):
        assert called == name
        assert caller.command == shlex.join(["zeronorm", name, *command])
        seen.update(arguments)
        raise ValueError("enough")

    monkeypatch.setattr("zeronorm.workflow._job.run_job", spy)
    assert run([name, *command]) == 2
    return seen


# -- Handed over --


def test_select_hands_over_every_option(monkeypatch, tmp_path):
    options = {
        "--target": ("t", "target", "t"),
        "--method": ("rfe", "method", "rfe"),
        "--features": ("7", "features", "7"),
        "--rule": ("all", "rule", "all"),
        "--units": ("root rows", "units", "root rows"),
        "--control": ("fwer", "control", "fwer"),
        "--level": ("0.01", "level", 0.01),
        "--metric": ("roc_auc", "metric", "roc_auc"),
        "--permutations": ("5", "permutations", 5),
        "--task": ("regression", "task", "regression"),
        "--groups": ("patient", "sample_groups", "patient"),
        "--id": ("s", "id", "s"),
        "--samples": ("p.csv", "samples", Path("p.csv")),
        "--only": ("o", "only", ("o",)),
        "--min-class-size": ("3", "min_class_size", 3),
        "--keep": ("k", "keep", ("k",)),
        "--ignore": ("i", "ignore", ("i",)),
        "--categorical": ("c", "categorical", ("c",)),
        "--missing": ("drop-rows", "missing", "drop-rows"),
        "--delimiter": (";", "delimiter", ";"),
        "--param": ("C=10", "params", {"C": 10}),
        "--max-features": ("9", "max_features", 9),
        "--cv": ("4", "cv", 4),
        "--repeats": ("3", "repeats", 3),
        "--seed": ("11", "random_state", 11),
        "--out": ("o", "out", Path("o")),
        "--sheet": ("2", "sheet", "2"),
        "--header-row": ("3", "header_row", 3),
        "--censored": ("half", "censored", "half"),
        "--annotation": ("a.csv", "annotation", Path("a.csv")),
        "--jobs": ("2", "n_jobs", 2),
    }
    flags = ["--transpose", "--decimal-comma", "--force", "--resume", "--save-model", "--drop-unlabelled"]
    arguments = [text for flag, (value, _, _) in options.items() for text in (flag, value)]
    seen = handed_over(monkeypatch, "select", "data.csv", *arguments, *flags)
    assert seen["data"] == "data.csv"
    for _, name, value in options.values():
        assert seen[name] == value, name
    for name in ("transpose", "decimal_comma", "force", "resume", "save_model", "drop_unlabelled"):
        assert seen[name] is True


@pytest.mark.parametrize("command", ["select", "compare"])
def test_every_parameter_of_the_workflow_has_an_option(command, monkeypatch):
    known = set(inspect.signature(getattr(zeronorm, command)).parameters)
    more = ["-m", "fisher,rfe"] if command == "compare" else []
    assert set(handed_over(monkeypatch, command, "data.csv", *more)) == known - {
        "seed"
    }  # --seed is random_state


def test_compare_hands_over_parameters_by_method(monkeypatch):
    seen = handed_over(monkeypatch, "compare", "d.csv", "-m", "rfe,fisher", "-p", "rfe.C=3", "--keep", "a")
    assert seen["params"] == {"rfe": {"C": 3}}
    assert seen["keep"] == ("a",)
    assert run(["compare", "d.csv", "-m", "rfe,fisher", "-p", "C=3"]) == 2


# -- Completed --


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("bash", {"COMP_WORDS": "zeronorm {}", "COMP_CWORD": "{}"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "zeronorm {}"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "zeronorm {}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_the_shell_completes_names_of_methods(tmp_path, name, environment):
    def offered(line):
        count = {"COMP_CWORD": len(line.split())}
        given = {key: text.format(count.get(key, line)) for key, text in environment.items()}
        done = shell(cwd=tmp_path, env=os.environ | {"_ZERONORM_COMPLETE": f"complete_{name}"} | given)
        return set(re.findall(r"[a-z0-9,-]+", done.stdout)) - {"arguments"}

    assert offered("select genes.csv --method zeronorm-s") == {"zeronorm-svm"}
    if name == "bash":  # what is offered does not depend on the shell, and every line starts a process
        assert offered("compare genes.csv -m fisher,zeronorm-s") == {"fisher,zeronorm-svm"}
        assert offered("methods zeronorm-s") == {"zeronorm-svm"}
        assert "breast-cancer" in offered("datasets breast")


def test_the_shell_knows_every_method_of_the_package():
    own = {info.name for info in all_methods() if info.cls.__module__.startswith("zeronorm.")}
    assert set(options.method_names("")) == {"auto"} | own
    assert options.method_lists("all") == ["all-fast"]
