"""The program itself: help, errors of usage, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from zeronorm._messages import Message, OptionError, parameter, rendered, setting
from zeronorm.cli._main import run
from zeronorm.cli.options import in_flags
from zeronorm.workflow import _training as training

from .conftest import select, shell


def test_parameters_of_the_library_are_options_here():
    """Only marked options are translated: a column may have the name of an option."""
    column = "the 'cv' parameter, cv=3"
    error = OptionError(
        f"is odd. Set {setting('cv', 3)}, or {setting('force', True, 'set')} ({parameter('random_state')}): {column}.",
        "sample_groups",
    )
    assert error.parameter == "sample_groups"
    assert (
        str(error)
        == f"The 'sample_groups' parameter is odd. Set cv=3, or set force=True (parameter 'random_state'): {column}."
    )
    reported = rendered(error.message, in_flags)
    assert reported == f"--groups is odd. Set --cv 3, or pass --force (--seed): {column}."


@pytest.mark.parametrize(
    ("mention", "python", "flag"),
    [
        (setting("delimiter", ";"), "delimiter=';'", "--delimiter ';'"),
        (setting("missing", "drop-rows", "Set"), "Set missing='drop-rows'", "Set --missing drop-rows"),
        (setting("transpose", True), "transpose=True", "--transpose"),
        (setting("params", {"level": 0.2}), "params={'level': 0.2}", "--param level=0.2"),
        (parameter("max_features", "the name"), "the parameter 'max_features'", "--max-features"),
        (parameter("features", "object"), "the 'features' parameter", "--features"),
    ],
)
def test_a_mention_of_an_option(mention, python, flag):
    assert (Message(mention), rendered(Message(mention), in_flags)) == (python, flag)


def test_help_shows_whole_sentences(capsys):
    assert run([]) == 0
    printed = capsys.readouterr().out
    assert "..." not in printed.partition("Commands:")[2]
    assert "Start with" in printed


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (["--cv", "1"], "at least 2"),
        (["--cv", "many"], "whole number"),
        (["--rule", "first"], "'fewest', 'recommended', 'all'"),
        (["--rule", "one-se"], "'one-se' is now called 'fewest'; use one of 'fewest'"),
        (["--rule", "one_se"], "'one_se' is now called 'fewest'"),
        (["--rule", "best"], "'best' is now called 'all'"),
        (["--sed", "3"], "--seed"),
    ],
)
def test_wrong_values_are_answered_in_whole_sentences(option, expected, data_file, capsys):
    assert run(["select", str(data_file), "-t", "label", *option]) == 2
    message = capsys.readouterr().err
    assert message.endswith(". Try `zeronorm select --help`.\n")
    assert "Input should" not in message
    assert "range" not in message
    assert expected in message


def test_every_help_page_lists_examples_that_can_be_copied(capsys):
    for command in ("select", "compare", "pack", "methods", "datasets", "report", "apply", "demo"):
        assert run([command, "--help"]) == 0
        page = capsys.readouterr().out
        assert "\n    zeronorm " in page[page.index("Examples:") :]
        assert " | " not in page


def test_an_unexpected_failure_is_exit_code_1(data_file, tmp_path, capsys, monkeypatch):
    def fail(*_arguments, **_options):
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr(training, "evaluate_procedures", fail)
    assert select(data_file, tmp_path / "out", "-q") == 1
    assert capsys.readouterr().err.startswith("zeronorm: RuntimeError: the sky fell. ")
    assert not (tmp_path / "out").exists()


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys; sys.argv = ['zeronorm', '--help']\n"
        "from zeronorm.cli._main import run\n"
        "assert run(['--help']) == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'polars', 'numba', 'jinja2', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for command in ("select", "compare", "methods", "datasets", "report", "warmup", "demo"):
        assert command in done.stdout


def test_usage_errors_are_one_line(tmp_path, capfd):
    done = shell("selekt", cwd=tmp_path)
    assert run(["select", str(tmp_path / "none.csv")]) == done.returncode == 2
    for printed, reported in (capfd.readouterr(), (done.stdout, done.stderr)):
        assert printed == ""
        assert reported.count("\n") == 1


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['typer'] = None\nfrom zeronorm.cli._main import run\nsys.exit(run(['methods']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'zeronorm[app]'" in done.stderr


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_extra_the_page_says_what_to_install(tmp_path, package):
    code = f"import sys; sys.modules['{package}'] = None\nfrom zeronorm.cli._main import run\nsys.exit(run(['app']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"needs the package '{package}'. Install it with: pip install 'zeronorm[web]'" in done.stderr


def test_bare_command_prints_help_and_completion_is_offered(tmp_path):
    done = shell(cwd=tmp_path)
    assert done.returncode == 0
    assert "select" in done.stdout
    for name in ("bash", "zsh", "fish"):
        environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        shown = shell("--show-completion", name, cwd=tmp_path, env=environment)
        assert "_ZERONORM_COMPLETE" in shown.stdout, shown.stderr
