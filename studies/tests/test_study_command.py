"""zeronorm study"""

import json

from zeronorm.cli._main import run


def test_list_names_every_study(capsys):
    from zeronorm_studies.study import NAMES

    assert run(["study", "--list", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == list(NAMES)


def test_a_quick_study_writes_its_page(tmp_path, capsys):
    assert run(["study", "huang2008-time", "--quick", "--out", str(tmp_path), "--quiet"]) == 0
    text = (tmp_path / "huang2008-time.md").read_text(encoding="utf-8")
    for part in ("Published and ours", "date", "command", "numpy"):
        assert part in text
    assert (tmp_path / "huang2008-time.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list((tmp_path / "journal").glob("*.json"))


def test_an_unknown_study_is_one_line_and_code_2(capsys):
    assert run(["study", "nothing"]) == 2
    assert "There is no study named 'nothing'" in capsys.readouterr().err


def test_the_help_page_lists_an_example_that_can_be_copied(capsys):
    assert run(["study", "--help"]) == 0
    page = capsys.readouterr().out
    assert "\n    zeronorm study " in page[page.index("Examples:") :]


def test_no_name_is_explained(capsys):
    assert run(["study"]) == 2
    assert "--list" in capsys.readouterr().err
