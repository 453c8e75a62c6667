"""zeronorm select"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o

EPILOG = (
    "Examples: zeronorm select genes.csv --target tumour --features 20 | "
    "zeronorm select genes.tsv --transpose --target label --method rfe | "
    "zeronorm select visits.parquet -t outcome --sample-groups patient --missing median --method auto"
)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("select", epilog=EPILOG)(select)


def select(
    data: o.Data,
    target: o.Target = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="Method, or auto to compare a few. Default: by task.")
    ] = None,
    features: Annotated[
        str, typer.Option("--features", "-k", help="Number of features, or auto (one-standard-error rule).")
    ] = "auto",
    task: o.Task = None,
    out: o.Out = Path("zeronorm-out"),
    feature_groups: o.FeatureGroups = None,
    sample_groups: o.SampleGroups = None,
    keep: o.Keep = None,
    ignore: o.Ignore = None,
    categorical: o.Categorical = None,
    missing: o.Missing = o.MissingWay.error,
    transpose: o.Transpose = False,
    delimiter: o.Delimiter = None,
    decimal_comma: o.DecimalComma = False,
    param: o.Parameters = None,
    max_features: o.MaxFeatures = None,
    cv: o.Folds = 5,
    repeats: o.Repeats = 1,
    seed: o.Seed = 0,
    jobs: o.Jobs = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Select the features that predict the target, and report an honest error.

    Selection is repeated inside every fold, so the error is that of the whole procedure on new samples.
    Writes selected.csv, result.json, records.parquet and report.html to the output folder.
    """
    arguments = locals()
    from zeronorm.cli.printing import print_json, print_selection, shows_progress
    from zeronorm.workflow.loading import DataRequest, load_table
    from zeronorm.workflow.procedures import Wishes
    from zeronorm.workflow.provenance import Clock, file_checksum
    from zeronorm.workflow.saving import output_folder, write_results
    from zeronorm.workflow.selection import run_selection

    clock = Clock()
    arguments["verbose"] = shows_progress(quiet, as_json)
    wishes, request = Wishes.from_arguments(arguments), DataRequest.from_arguments(arguments)
    with output_folder(out, force=force) as folder:
        table = load_table(request)
        result, records = run_selection(table, method, wishes, tuple(param or ()), clock, file_checksum(data))
        write_results(folder, result, records)
    if as_json:
        print_json({"folder": str(out), **result.to_dict()})
    elif not quiet:
        print_selection(result, records, out)
