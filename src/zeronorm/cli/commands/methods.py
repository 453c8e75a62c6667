"""zeronorm methods"""

from __future__ import annotations

from typing import Annotated

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("methods", epilog="Example: zeronorm methods --task regression")(methods)


def methods(
    task: Annotated[
        str | None, typer.Option(help="Only methods for binary, multiclass, multilabel or regression.")
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the methods."""
    from zeronorm.cli.printing import print_json, print_table
    from zeronorm.registry import all_methods
    from zeronorm.workflow.errors import UsageProblem

    found = [info for info in all_methods() if task is None or task in info.tasks]
    if not found:
        raise UsageProblem(
            f"No method serves the task {task!r}. Use binary, multiclass, multilabel or regression."
        )
    if as_json:
        print_json(
            [
                {
                    "name": info.name,
                    "class": info.cls.__name__,
                    "kind": info.kind,
                    "family": info.family,
                    "tasks": list(info.tasks),
                    "reference": info.reference,
                    "summary": info.summary,
                }
                for info in found
            ]
        )
        return
    rows = [[info.name, info.family, ", ".join(info.tasks), info.reference] for info in found]
    print_table(f"{len(found)} methods", ["name", "family", "tasks", "reference"], rows)
