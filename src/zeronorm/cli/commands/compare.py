"""zeronorm compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o

EPILOG = "Example: zeronorm compare genes.csv --target tumour --methods fisher,rfe,lasso --features 20"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("compare", epilog=EPILOG)(compare)


def compare(
    data: o.Data,
    methods: Annotated[
        str,
        typer.Option("--methods", "-m", help="Methods separated by commas, or all-fast.", show_default=False),
    ],
    target: o.Target = None,
    features: Annotated[
        str, typer.Option("--features", "-k", help="Number of features, or auto (one-standard-error rule).")
    ] = "auto",
    task: o.Task = None,
    out: o.Out = Path("zeronorm-comparison"),
    sample_groups: o.SampleGroups = None,
    ignore: o.Ignore = None,
    categorical: o.Categorical = None,
    missing: o.Missing = o.MissingWay.error,
    transpose: o.Transpose = False,
    delimiter: o.Delimiter = None,
    decimal_comma: o.DecimalComma = False,
    max_features: o.MaxFeatures = None,
    cv: o.Folds = 5,
    repeats: o.Repeats = 1,
    seed: o.Seed = 0,
    jobs: o.Jobs = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare methods on the same folds, with tests of significance.

    Writes result.json, records.parquet and report.html to the output folder.
    """
    arguments = locals()
    from zeronorm.cli.printing import print_comparison, print_json, shows_progress
    from zeronorm.workflow.comparing import run_comparison
    from zeronorm.workflow.loading import DataRequest, load_table
    from zeronorm.workflow.procedures import Wishes
    from zeronorm.workflow.provenance import Clock, file_checksum
    from zeronorm.workflow.saving import output_folder, write_results

    clock = Clock()
    arguments["verbose"] = shows_progress(quiet, as_json)
    wishes, request = Wishes.from_arguments(arguments), DataRequest.from_arguments(arguments)
    with output_folder(out, force=force) as folder:
        table = load_table(request)
        result, records = run_comparison(table, methods, wishes, clock, file_checksum(data))
        write_results(folder, result, records)
    if as_json:
        print_json({"folder": str(out), **result.to_dict()})
    elif not quiet:
        print_comparison(result, records, out)
