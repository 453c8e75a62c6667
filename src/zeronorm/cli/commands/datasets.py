"""zeronorm datasets"""

from __future__ import annotations

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("datasets", epilog="Example: ZERONORM_DATA=~/data zeronorm select colon --features 10")(
        datasets
    )


def datasets(as_json: o.AsJson = False) -> None:
    """List the data sets and synthetic problems that can be used by name."""
    from zeronorm.cli.printing import print_json, print_table
    from zeronorm.datasets.catalogue import describe, known_names

    found = [describe(name) for name in known_names()]
    if as_json:
        print_json(found)
        return
    rows = [
        [
            entry["name"],
            "" if entry["n_samples"] is None else f"{entry['n_samples']} × {entry['n_features']}",
            entry["about"],
            entry["where"],
        ]
        for entry in found
    ]
    print_table("Data sets", ["name", "samples × features", "about", "where"], rows)
