"""A command of another package of this project that is not installed; `tests/test_one_file.py` adds commands."""

from importlib import metadata

import pytest
from typer.main import get_command

from zeronorm.cli.commands import app


@pytest.fixture
def program(monkeypatch):
    """All commands, with no other package installed."""
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    return get_command(app)


def test_a_command_whose_package_is_not_installed_says_how_to_get_it(program):
    with pytest.raises(
        ValueError, match=r"needs the package 'zeronorm-studies'.* pip install zeronorm-studies"
    ):
        program(["study", "--list"], standalone_mode=False)


def test_a_command_whose_package_is_not_installed_is_not_listed(program, capsys):
    program(["--help"], standalone_mode=False)
    page = capsys.readouterr().out
    assert "select" in page
    assert "study" not in page


def test_the_shell_completes_nothing_after_a_command_that_is_not_installed(program):
    context = program.make_context("zeronorm", ["study"], resilient_parsing=True)
    assert program.get_command(context, "study") is None
