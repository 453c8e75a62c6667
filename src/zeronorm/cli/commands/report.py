"""zeronorm report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("report", epilog="Example: zeronorm report zeronorm-out --out again")(report)


def report(
    records: Annotated[
        Path,
        typer.Argument(help="records.parquet of a run, or the folder that holds it.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for report.html.")] = None,
    force: o.Force = False,
) -> None:
    """Write the report again from saved records.

    Uses the result.json beside the records where there is one; records of `evaluate` alone will do.
    """
    from zeronorm.cli.printing import say
    from zeronorm.workflow.result import Result

    folder = out if out is not None else (records if records.is_dir() else records.parent)
    file = Result.load(records).report(folder, force=force or out is None)
    say(f"report: {file}")
