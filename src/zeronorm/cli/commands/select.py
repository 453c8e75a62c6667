"""zeronorm select"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o

EPILOG = o.examples(
    "zeronorm select genes.csv --target tumour --features 20",
    "zeronorm select genes.tsv --transpose -t label --method rfe -p C=10",
    "zeronorm select genes.csv.gz --transpose --samples patients.xlsx --id sample -t outcome",
)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("select", epilog=EPILOG)(select)


def select(
    data: o.Data,
    target: o.Target = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="A name from `zeronorm methods`. Default: auto, which compares a few; it takes ten times as long.",
            autocompletion=o.method_names,
        ),
    ] = None,
    features: o.Features = "auto",
    rule: o.Rule = o.RuleChoice.one_se,
    metric: o.Metric = None,
    permutations: o.Permutations = "auto",
    task: o.Task = None,
    out: o.Out = Path("zeronorm-out"),
    samples: o.Samples = None,
    id: o.Id = None,
    feature_groups: o.FeatureGroups = None,
    sample_groups: o.SampleGroups = None,
    keep: o.Keep = None,
    ignore: o.Ignore = None,
    only: o.Only = None,
    categorical: o.Categorical = None,
    missing: o.Missing = o.MissingWay.median,
    drop_unlabelled: o.DropUnlabelled = False,
    min_class_size: o.MinClassSize = 0,
    transpose: o.Transpose = False,
    delimiter: o.Delimiter = None,
    decimal_comma: o.DecimalComma = False,
    encoding: o.Encoding = None,
    param: o.Parameters = None,
    max_features: o.MaxFeatures = None,
    cv: o.Folds = 5,
    repeats: o.Repeats = 1,
    seed: o.Seed = 0,
    jobs: o.Jobs = 0,
    memory_budget: o.MemoryBudget = None,
    device: o.Device = None,
    dask: o.DaskAddress = None,
    save_model: Annotated[
        bool, typer.Option("--save-model", help="Write model.json, for `zeronorm apply`.")
    ] = False,
    write_table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or Parquet file for the selected columns and the target."),
    ] = None,
    force: o.Force = False,
    resume: o.Resume = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Select the features that predict the target, and report an honest error.

    Selection is repeated inside every fold, so the error is that of the whole procedure on new samples.
    Writes selected.csv, result.json, records.parquet, figures.parquet and report.html to the output folder.
    """
    arguments = o.common(dict(locals()), quiet, as_json)
    from zeronorm.cli.printing import print_json, print_selection, say
    from zeronorm.workflow import run

    arguments["params"] = o.parameters(param)
    result = run.select(**arguments)
    if as_json:
        print_json({"folder": str(out), **result.to_dict()})
    elif not quiet:
        print_selection(result, out)
        if save_model:
            say(f"model: {out / 'model.json'} (to predict new samples: zeronorm apply {out} NEW.csv)")
        if write_table is not None:
            say(f"table: {write_table}")
