"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TaskChoice(StrEnum):
    """What the target is."""

    classification = "classification"
    regression = "regression"


class MissingWay(StrEnum):
    """What happens to missing values."""

    error = "error"
    median = "median"
    drop_rows = "drop-rows"
    drop_columns = "drop-columns"


DATA_HELP = (
    "A CSV, TSV, Parquet, Arrow, NPZ, LIBSVM, MAT, ARFF or h5ad file, or a name from `zeronorm datasets`."
)
Data = Annotated[str, typer.Argument(help=DATA_HELP, show_default=False)]
Target = Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.")]
Task = Annotated[TaskChoice | None, typer.Option(help="Default: inferred from the target, and stated.")]
Ignore = Annotated[list[str] | None, typer.Option(help="Column to leave out; repeat for more.")]
Categorical = Annotated[list[str] | None, typer.Option(help="Column of codes; repeat for more.")]
Missing = Annotated[MissingWay, typer.Option(help="What to do with missing values.")]
Transpose = Annotated[bool, typer.Option("--transpose", help="Samples are in columns, as in gene tables.")]
Delimiter = Annotated[str | None, typer.Option(help="Separator of a text file.")]
DecimalComma = Annotated[bool, typer.Option("--decimal-comma", help="Numbers are written 1,5.")]
SampleGroups = Annotated[
    str | None, typer.Option(help="Column that tells which samples belong together (patient, batch).")
]
FeatureGroups = Annotated[
    Path | None, typer.Option(help="CSV (feature,group) or JSON file: groups enter and leave whole.")
]
Keep = Annotated[list[str] | None, typer.Option(help="Column that must be selected; repeat for more.")]
Folds = Annotated[int, typer.Option("--cv", min=2, help="Number of folds.")]
Repeats = Annotated[int, typer.Option(min=1, help="How often the outer folds are drawn anew.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=-1, help="Processes; -1 for all cores, 0 decides by size.")
]
Parameters = Annotated[
    list[str] | None, typer.Option("--param", "-p", help="Parameter of the method, such as C=10; repeat.")
]
MaxFeatures = Annotated[int | None, typer.Option(min=1, help="Largest number of features tried.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are in the folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no table.")]
