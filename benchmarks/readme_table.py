"""``python benchmarks/readme_table.py`` writes the measured times of results/measured.json into README.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEASURED = HERE / "results" / "measured.json"
README = HERE.parent / "README.md"
HEADS = ("job", "ours", "peer", "ratio")
TABLE = re.compile(r"(?<=## Measured\n\n).*?\n\n(?:\|.*\|\n)+", re.DOTALL)


def measured() -> dict[str, Any]:
    """When, where and what was measured."""
    content: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return content


def introduction(found: dict[str, Any]) -> str:
    """Where the figures come from, in Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"On {found['cores']} cores, on {found['date']}, with {versions}. The jobs are those of `make bench`, run in "
        'groups\n(`benchmarks/run.py "part of a job name"`; set `ZERONORM_DATA` for the real data sets). Every peer '
        "ran in the same run, on\nthe same data and with the same settings.\n"
    )


def table(found: dict[str, Any]) -> str:
    """The rows as a Markdown table."""
    lines = [HEADS, ("---",) * len(HEADS), *([row[head] for head in HEADS] for row in found["rows"])]
    bars = [f"| {' | '.join(line)} |" if line[0] != "---" else f"|{'|'.join(line)}|" for line in lines]
    return "\n".join(bars) + "\n"


def readme(text: str, found: dict[str, Any]) -> str:
    """The text of the README with the table of the file."""
    written, count = TABLE.subn(lambda _: f"{introduction(found)}\n{table(found)}", text, count=1)
    if count != 1:
        raise ValueError("The README has no table under the heading 'Measured'. Add the heading and a table.")
    return written


if __name__ == "__main__":
    README.write_text(readme(README.read_text(encoding="utf-8"), measured()), encoding="utf-8")
