"""Options that several commands share."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class TaskChoice(StrEnum):
    """What the target is."""

    classification = "classification"
    regression = "regression"


class RuleChoice(StrEnum):
    """How the number of features is chosen inside the folds."""

    one_se = "one-se"
    best = "best"


class PredictorChoice(StrEnum):
    """What predicts from the selected features."""

    linear = "linear"
    gaussian = "gaussian"


class MissingWay(StrEnum):
    """What happens to missing values."""

    median = "median"
    error = "error"
    drop_rows = "drop-rows"
    drop_columns = "drop-columns"


# -- What the shell offers after the Tab key, at once: nothing heavy is imported for it --


def method_names(incomplete: str) -> list[str]:
    """Methods that begin so, auto among them."""
    from zeronorm.registry import names_in_sources

    return [name for name in ["auto", *names_in_sources()] if name.startswith(incomplete)]


def method_lists(incomplete: str) -> list[str]:
    """The list as far as it is written, with each method that may come next."""
    before, comma, last = incomplete.rpartition(",")
    names = [name for name in method_names(last) if name not in ("auto", *before.split(","))]
    groups = [] if comma else [name for name in ("all-fast",) if name.startswith(last)]
    return [*groups, *(f"{before}{comma}{name}" for name in names)]


def dataset_names(incomplete: str) -> list[str]:
    """Data sets with a name that begins so."""
    from zeronorm.datasets.catalogue import known_names

    return [name for name in known_names() if name.startswith(incomplete)]


def examples(*commands: str) -> str:
    """The end of a help page: one command per line, as it can be copied."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


DATA_HELP = (
    "A CSV, TSV, Excel, ODS, Parquet, Arrow, NPZ, NPY, LIBSVM, MAT, ARFF or h5ad file, compressed or not; a Zarr "
    "folder; - for standard input; or a name from `zeronorm datasets`."
)
Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column to predict, or a .npy file for data that stay on disk.",
    ),
]
Task = Annotated[TaskChoice | None, typer.Option(help="Default: decided from the target; a note says so.")]
PATTERNS = "a name, a pattern such as 'AFFX*', or re:REGEX; repeat for more."
Samples = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Second file with the target, one row per sample; --id names its column of samples.",
    ),
]
Id = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the names of the samples.")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="NAME", help=f"Columns to leave out: {PATTERNS}")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help=f"Columns to use as features: {PATTERNS}")
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column whose numbers are codes of categories; repeat for more."),
]
Missing = Annotated[
    MissingWay,
    typer.Option(help="What to do with missing values. median: fill in the median of each training part."),
]
DropUnlabelled = Annotated[
    bool, typer.Option("--drop-unlabelled", help="Leave out samples without a value in the target.")
]
MinClassSize = Annotated[int, typer.Option(min=0, metavar="N", help="Leave out classes with fewer samples.")]
Transpose = Annotated[bool, typer.Option("--transpose", help="Samples are in columns, as in gene tables.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="Separator of a text file, such as ';' or tab. Default: detected."
    ),
]
DecimalComma = Annotated[bool, typer.Option("--decimal-comma", help="Numbers are written 1,5.")]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of text files, such as gb18030. Default: detected."),
]
SampleGroups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        "--sample-groups",
        metavar="COLUMN",
        help="Column that tells which samples belong together (patient, batch).",
    ),
]
FeatureGroups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV (feature,group) or JSON file. The features of a group are selected together or not at all.",
    ),
]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help=f"Columns that must be selected: {PATTERNS}")
]
Folds = Annotated[
    int, typer.Option("--cv", min=2, metavar="N", help="Number of folds of the cross-validation.")
]
Repeats = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="How many times to repeat the outer cross-validation, with new folds."
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random numbers.")]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=-1,
        metavar="N",
        help="Number of processes: -1 uses all cores, 0 decides from the amount of work.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="Parameter of the method, such as C=10; repeat for more."
    ),
]
Rule = Annotated[RuleChoice, typer.Option(help="How auto chooses the number of features.")]
Features = Annotated[
    str,
    typer.Option(
        "--features",
        "-k",
        metavar="N|auto",
        help="Number of features, or auto to choose it inside the folds.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What to measure: auc, error_rate, r2 … or any scorer of scikit-learn."
    ),
]
Predictor = Annotated[
    PredictorChoice,
    typer.Option(help="What predicts from the selected features. gaussian: also curved boundaries."),
]
Permutations = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="How many permutations of the target, for a p-value: a number, 0, or auto (if it does not take long).",
    ),
]
MemoryBudget = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory for data that stay on disk, such as 512M or 2G.", show_default="512M"
    ),
]
Device = Annotated[str | None, typer.Option(metavar="NAME", help="Device on which to compute, such as cuda.")]
DaskAddress = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Address of a Dask scheduler whose workers do the work."),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted run; its finished parts are not computed again."),
]
MaxFeatures = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Largest number of features to try.")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the results.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing results.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def common(arguments: dict[str, Any], quiet: bool, as_json: bool) -> dict[str, Any]:
    """The arguments of a command as keywords of ``zeronorm.select`` and ``compare``."""
    from zeronorm.cli.printing import shows_progress

    renamed = {"seed": "random_state", "jobs": "n_jobs", "param": "params"}
    found = {renamed.get(name, name): value for name, value in arguments.items()}
    for name in ("as_json", "quiet"):
        del found[name]
    for name in ("task", "missing", "predictor"):
        found[name] = found[name] and str(found[name])
    for name in ("keep", "ignore", "only", "categorical"):
        found[name] = tuple(found[name] or ())
    found["rule"] = str(found["rule"]).replace("-", "_")
    found["permutations"] = _count(found["permutations"])
    found["n_jobs"] = found["n_jobs"] or None
    found["memory_budget"] = n_bytes(found["memory_budget"])
    verbose = shows_progress(quiet, as_json)
    if verbose:  # the packages take a second to load; the bar takes this line over
        sys.stderr.write("Starting …\r")
        sys.stderr.flush()
    return {**found, "verbose": verbose}


def _count(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def n_bytes(text: str | None) -> int | None:
    """A size such as 512M or 1.5G in bytes."""
    if text is None:
        return None
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), 1
    if number and number[-1] in "KMGT":
        number, unit = number[:-1], 1024 ** ("KMGT".index(number[-1]) + 1)
    try:
        size = int(float(number) * unit)
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise ValueError(f"--memory-budget takes a size such as 512M or 2G. Got {text!r} instead.")
    return size


def parameters(items: list[str] | None) -> dict[str, Any]:
    """Values of --param NAME=VALUE: numbers, True, False, None, or text."""
    import ast

    parsed: dict[str, Any] = {}
    for item in items or ():
        key, sign, text = item.partition("=")
        if not sign or not key:
            raise ValueError(f"--param takes NAME=VALUE, such as C=10. Got {item!r} instead.")
        try:
            parsed[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parsed[key] = text
    return parsed
