"""zeronorm explain: why a feature is in the list, or not"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "explain",
        epilog=o.examples(
            "zeronorm explain result CD4", "zeronorm explain result CD4 --data genes.csv --json"
        ),
    )(explain)


def explain(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="Folder of a selection.", show_default=False)
    ],
    feature: Annotated[
        str, typer.Argument(metavar="FEATURE", help="Name of the feature.", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The file of the selection; its options are in the result. Default: where it was then.",
        ),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Explain why a feature was selected, or why not.

    Says its rank by each method, how many folds selected it, its effect alone, which selected feature takes its place,
    and what is lost or gained by adding or swapping it.
    """
    from zeronorm.cli.printing import print_json, print_text
    from zeronorm.workflow._result import Result

    found = Result.load(result).explain(feature, data)
    if as_json:
        print_json(found.to_dict())
        return
    for sentence in found.sentences():
        print_text(sentence)
