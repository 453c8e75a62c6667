"""The Python example of the README runs as printed."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, {})
    printed = capsys.readouterr().out
    assert "worst" in printed
    assert "error_rate" in printed
