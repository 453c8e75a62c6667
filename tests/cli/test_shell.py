"""A few runs through a real shell: exit codes, streams, signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from zeronorm.cli import options
from zeronorm.cli.main import run
from zeronorm.registry import all_methods

PROGRAM = [sys.executable, "-m", "zeronorm.cli.main"]
# Says when so many cells are in the journal and waits: what happens then does not depend on the clock. It waits in
# many short sleeps, because a signal that comes just before a sleep begins is acted upon only when the sleep ends.
# Ctrl-C acts even where the tests run in the background of a shell, which makes their processes ignore it.
HELD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from zeronorm.cli.main import main
from zeronorm.resampling.journal import Journal

written, write = [], Journal.write

def held(self, key, cell):
    write(self, key, cell)
    written.append(key)
    if len(written) == 5:
        print("now", flush=True)
        while True:
            time.sleep(0.05)

Journal.write = held
main()
"""


def held_run(arguments, cwd):
    """A run that has five cells in its journal and goes no further."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "now\n"
    return process


def shell(*arguments, cwd, **options):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        **options,
    )


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys; sys.argv = ['zeronorm', '--help']\n"
        "from zeronorm.cli.main import run\n"
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


def test_the_installed_program_selects(data_file, tmp_path):
    program = Path(sys.executable).parent / "zeronorm"
    if not program.exists():
        pytest.skip("the package is not installed with its program")
    options = "--target label --method fisher --features 2 --cv 3 --permutations 0 --out out"
    command = f"'{program}' select data.csv {options} | tail -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "report: out/report.html\n"
    assert done.stderr == ""
    assert (tmp_path / "out" / "report.html").exists()


def test_usage_errors_are_one_line(tmp_path, capfd):
    done = shell("selekt", cwd=tmp_path)
    assert run(["select", str(tmp_path / "none.csv")]) == done.returncode == 2
    for printed, told in (capfd.readouterr(), (done.stdout, done.stderr)):
        assert printed == ""
        assert told.count("\n") == 1


def test_an_interrupted_run_keeps_its_journal_and_goes_on(data_file, tmp_path, monkeypatch, capsys):
    """Only what is interrupted needs a process of its own; what follows it runs in this one."""
    monkeypatch.chdir(tmp_path)
    options = "-t label -m fisher --cv 5 --repeats 3 --features 2 --permutations 0 --out"
    arguments = ["select", "data.csv", *options.split()]
    for out, number, code in (("out", signal.SIGINT, 130), ("ended", signal.SIGTERM, 143)):
        process = held_run([*arguments, out], tmp_path)
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=400)
        # Python may end itself with the signal; a shell reports both as 128 + number.
        seen = process.returncode if process.returncode >= 0 else 128 - process.returncode
        assert seen == code
        assert "Traceback" not in errors
        assert [file.name for file in (tmp_path / out).iterdir()] == ["journal"]
    assert {file.name for file in tmp_path.iterdir()} == {"data.csv", "out", "ended"}
    assert run([*arguments, "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert run([*arguments, "whole"]) == 0
    whole = _records_in(tmp_path / "whole")
    for out in ("out", "ended"):
        assert run([*arguments, out, "--resume"]) == 0
        assert (tmp_path / out / "selected.csv").exists()
        assert not (tmp_path / out / "journal").exists()
        assert _records_in(tmp_path / out).equals(whole)


def _records_in(folder):
    return pl.read_parquet(folder / "records.parquet").drop("seconds", "fit_seconds")


def test_a_killed_run_leaves_nothing_for_ever(data_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    select = ["select", "data.csv", "-t", "label", "-k", "2"]
    process = held_run([*select, "-m", "fisher", "--repeats", "2", "--out", "out"], tmp_path)
    process.kill()
    process.communicate()
    assert list(tmp_path.glob(".zeronorm-*"))
    assert run([*select, "-m", "fisher", "--cv", "3", "--permutations", "0"]) == 0
    assert not list(tmp_path.glob(".zeronorm-*"))


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['typer'] = None\nfrom zeronorm.cli.main import run\nsys.exit(run(['methods']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'zeronorm[app]'" in done.stderr


def test_bare_command_prints_help_and_completion_is_offered(tmp_path):
    done = shell(cwd=tmp_path)
    assert done.returncode == 0
    assert "select" in done.stdout
    for name in ("bash", "zsh", "fish"):
        environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        shown = shell("--show-completion", name, cwd=tmp_path, env=environment)
        assert "_ZERONORM_COMPLETE" in shown.stdout, shown.stderr


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
        words = {"COMP_CWORD": len(line.split())}
        given = {key: text.format(words.get(key, line)) for key, text in environment.items()}
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
