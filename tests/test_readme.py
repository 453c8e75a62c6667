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


def test_the_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, {})
    printed = capsys.readouterr().out
    assert "NKG7" in printed
    assert "error_rate" in printed
