"""The Python example of the README runs as printed."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


MEASURED = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def readme_table(monkeypatch):
    monkeypatch.syspath_prepend(str(MEASURED))
    import readme_table

    yield readme_table
    sys.modules.pop("readme_table", None)


def test_the_measured_times_are_those_of_the_committed_file(readme_table):
    text = README.read_text(encoding="utf-8")
    assert readme_table.readme(text, readme_table.measured()) == text


def test_the_ratios_follow_from_the_times(readme_table):
    seconds = re.compile(r"(?:^|.* )([\d.]+) s")
    checked = 0
    for row in readme_table.measured()["rows"]:
        ours, peer = seconds.fullmatch(row["ours"]), seconds.fullmatch(row["peer"])
        ratio = re.match(r"([\d.]+) ×(?! its| one)", row["ratio"])
        if ours and peer and ratio:
            assert float(ratio[1]) == pytest.approx(float(peer[1]) / float(ours[1]), rel=0.1)
            checked += 1
    assert checked >= 8


def test_the_documentation_quotes_the_measured_ratio_to_abess(readme_table):
    (ratio,) = (row["ratio"].split()[0] for row in readme_table.measured()["rows"] if "abess" in row["peer"])
    page = (README.parent / "docs" / "coming_from.rst").read_text(encoding="utf-8")
    assert re.findall(r"take ([\d.]+) times as long as with abess", page) == [ratio]


def test_the_cost_of_auto_is_the_same_wherever_it_is_quoted():
    """Against the slowest of its methods, and against the consensus."""
    quoted = {"slowest method": set(), "consensus": set()}
    folders = (README.parent / "src", README.parent / "docs")
    files = [
        README,
        *(f for folder in folders for ending in ("py", "rst") for f in folder.rglob(f"*.{ending}")),
    ]
    counts = dict.fromkeys(quoted, 0)
    for file in files:
        text = re.sub(r"[\s\"]+f?", " ", file.read_text(encoding="utf-8"))
        for kind, pattern in (
            ("slowest method", r"auto\b[^.]*\.?[^.]{0,60}up to (\w+) times as long"),
            ("slowest method", r"two to (\w+) times (?:as long as )?the slowest"),
            ("consensus", r"one to (\w+) times (?:as long as )?(?:``consensus``|the consensus|a consensus)"),
        ):
            found = re.findall(pattern, text)
            quoted[kind].update(found)
            counts[kind] += len(found)
    assert quoted == {"slowest method": {"100"}, "consensus": {"thirteen"}}
    assert min(counts.values()) >= 3


def test_the_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, {})
    printed = capsys.readouterr().out
    assert "NKG7" in printed
    assert "error_rate" in printed
