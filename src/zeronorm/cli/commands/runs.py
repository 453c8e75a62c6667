"""zeronorm select and zeronorm compare: from a file to a report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zeronorm.cli import options as o

OF_SELECT = o.examples(
    "zeronorm select genes.csv --target tumour --features 20",
    "zeronorm select genes.tsv --transpose -t label --method rfe -p C=10",
    "zeronorm select genes.csv.gz --transpose --samples patients.xlsx --id sample -t outcome",
)
OF_COMPARE = o.examples(
    "zeronorm compare genes.csv --target tumour --methods fisher,rfe,l1-svm --features 20",
    "zeronorm compare genes.csv -t tumour -m rfe,l1-svm -p rfe.C=3",
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("select", epilog=OF_SELECT)(select)
    app.command("compare", epilog=OF_COMPARE)(compare)


def select(
    data: o.Data,
    target: o.Target = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="A name from `zeronorm methods`. Default: auto, which compares a few; up to ten times as long.",
            autocompletion=o.method_names,
        ),
    ] = None,
    features: o.Features = "auto",
    rule: o.Rule = o.RuleChoice.one_se,
    metric: o.Metric = None,
    predictor: o.Predictor = o.PredictorChoice.linear,
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


def compare(
    data: o.Data,
    target: o.Target = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="NAMES",
            help="Names of methods, separated by commas; or all-fast. Default: fisher,rfe.",
            autocompletion=o.method_lists,
        ),
    ] = None,
    features: o.Features = "auto",
    rule: o.Rule = o.RuleChoice.one_se,
    metric: o.Metric = None,
    predictor: o.Predictor = o.PredictorChoice.linear,
    permutations: o.Permutations = "0",
    task: o.Task = None,
    out: o.Out = Path("zeronorm-comparison"),
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
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="METHOD.NAME=VALUE",
            help="Parameter of one method, such as rfe.C=3; repeat for more.",
        ),
    ] = None,
    max_features: o.MaxFeatures = None,
    cv: o.Folds = 5,
    repeats: o.Repeats = 1,
    seed: o.Seed = 0,
    jobs: o.Jobs = 0,
    memory_budget: o.MemoryBudget = None,
    device: o.Device = None,
    dask: o.DaskAddress = None,
    force: o.Force = False,
    resume: o.Resume = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare methods on the same folds, with random features and no features for reference.

    Writes result.json, records.parquet and report.html to the output folder.
    """
    arguments = o.common(dict(locals()), quiet, as_json)
    from zeronorm.cli.printing import print_comparison, print_json
    from zeronorm.workflow import run

    arguments["params"] = by_method(o.parameters(param))
    result = run.compare(**arguments)
    if as_json:
        print_json({"folder": str(out), **result.to_dict()})
    elif not quiet:
        print_comparison(result, out)


def by_method(parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Parameters named "method.parameter", by method."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in parameters.items():
        method, dot, name = key.partition(".")
        if not dot or not name:
            raise ValueError(
                f"--param of compare takes METHOD.NAME=VALUE, such as rfe.C=3. Got {key!r} instead."
            )
        found.setdefault(method, {})[name] = value
    return found
