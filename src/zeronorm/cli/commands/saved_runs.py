"""zeronorm report and zeronorm apply: what a saved run is good for"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("report", epilog=o.examples("zeronorm report zeronorm-out --out again"))(report)
    app.command(
        "apply",
        epilog=o.examples(
            "zeronorm apply zeronorm-out/model.json new.csv --out predictions.csv",
            "zeronorm apply zeronorm-out new.tsv --transpose --samples patients.xlsx --id sample",
        ),
    )(apply)


def report(
    records: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDS",
            help="records.parquet of a run, or the folder that holds it.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for report.html.")
    ] = None,
    force: o.Force = False,
) -> None:
    """Write the report again from saved records.

    Uses the result.json in the same folder, if there is one. Records of `evaluate` are enough.
    """
    from zeronorm.cli.printing import say
    from zeronorm.workflow.result import Result

    folder = out if out is not None else (records if records.is_dir() else records.parent)
    file = Result.load(records).report(folder, force=force or out is None)
    say(f"report: {file}")


def apply(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="model.json of `select --save-model`, or its folder.", show_default=False
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="File with new samples. Its columns are found by name.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="CSV file to write. Default: print to the terminal."
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Second file with columns that the model needs, one row per sample."
        ),
    ] = None,
    id: o.Id = None,
    transpose: o.Transpose = False,
    delimiter: o.Delimiter = None,
    decimal_comma: o.DecimalComma = False,
    encoding: o.Encoding = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    """Predict the target of new samples with a saved model."""
    from zeronorm.cli.printing import print_json, print_notes, print_rows, say
    from zeronorm.datasets.table import counted
    from zeronorm.workflow.files import write_csv
    from zeronorm.workflow.models import LinearModel, apply_model, read_new_samples

    if out is not None and out.exists() and not force:
        raise ValueError(f"{str(out)!r} exists. Choose another file, or set force=True to replace it.")
    loaded = LinearModel.load(model)
    new = read_new_samples(
        loaded,
        data,
        samples=samples,
        id=id,
        transpose=transpose,
        delimiter=delimiter,
        decimal_comma=decimal_comma,
        encoding=encoding,
    )
    if not as_json:
        print_notes(new.notes)
    found = apply_model(loaded, new)
    rows = [dict(zip(found, cells, strict=True)) for cells in zip(*found.values(), strict=True)]
    if out is not None:
        write_csv(out, rows)
        if not as_json:
            say(f"{counted(len(rows), 'prediction')}: {out}")
    elif as_json:
        print_json(rows)
    else:
        print_rows(counted(len(rows), "prediction"), rows)
