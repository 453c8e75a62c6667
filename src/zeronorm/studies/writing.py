"""A finished study as files."""

from __future__ import annotations

import json
from pathlib import Path

from zeronorm.studies.page import Page, to_html, to_markdown
from zeronorm.studies.results import Results

LARGE = ("predictions", "truth")


def write_study(folder: Path, name: str, page: Page, results: Results) -> list[Path]:
    """NAME.md, NAME.html and the measured rows as NAME.jsonl; each file is whole or absent."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{key: value for key, value in row.items() if key not in LARGE} for row in results.rows]
    texts = {
        f"{name}.md": to_markdown(page),
        f"{name}.html": to_html(page),
        f"{name}.jsonl": "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows),
    }
    written = []
    for file, text in texts.items():
        temporary = folder / f".{file}.tmp"
        temporary.write_text(text, encoding="utf-8")
        written.append(temporary.replace(folder / file))
    return written
