"""zeronorm pack, report and apply: from one file to another"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zeronorm.cli import options as o
from zeronorm.workflow._kinds import options_of
from zeronorm.workflow._options import DATA_OF_APPLY, MODEL, ApplyOptions, DataOptions

NOT_OF_PACK = ("annotation", "feature_groups", "keep", "random_state")
OF_PACK = o.examples(
    "zeronorm pack genes.csv --target tumour --out genes.zncols",
    "zeronorm pack genes.tsv --transpose --samples patients.xlsx --id sample -t outcome",
    "zeronorm pack counts.h5ad -t cell_type --float32 && zeronorm select counts.zncols",
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("pack", epilog=OF_PACK)(pack)
    app.command("report", epilog=o.examples("zeronorm report result --out again"))(report)
    app.command(
        "apply",
        epilog=o.examples(
            "zeronorm apply result/model.json new.csv --out predictions.csv",
            "zeronorm apply result new.tsv --transpose --samples patients.xlsx --id sample",
            "zeronorm apply result second-cohort.csv --target outcome --out second-cohort",
        ),
    )(apply)


def _budget_for(file: Path) -> int | None:
    """The default memory budget for a file that is larger than it; None for a file that can be read at once."""
    from zeronorm.design._chunked import DEFAULT_MEMORY_BUDGET

    is_large = file.is_file() and file.stat().st_size > DEFAULT_MEMORY_BUDGET
    return DEFAULT_MEMORY_BUDGET if is_large else None


@o.takes(DataOptions, [name for name in options_of(DataOptions) if name not in NOT_OF_PACK])
def pack(
    data: o.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", parser=o.path, help="File to write, ending in .zncols; default: beside the data."
        ),
    ] = None,
    single: Annotated[
        bool, typer.Option("--float32", help="Store the numbers in single precision, in half the space.")
    ] = False,
    options: Any = None,
    force: o.Force = False,
) -> None:
    """Convert a table to a file that select and compare can use without loading it into memory.

    The file also holds the target and the groups of the samples. Every part has a checksum. An interrupted
    conversion leaves no file behind.
    """
    from zeronorm.cli.printing import print_text
    from zeronorm.workflow._inputs import load_data, pack_table

    file = Path(data).with_suffix(".zncols") if out is None else out
    _check_free(file, force)
    options["memory_budget"] = options["memory_budget"] or _budget_for(Path(data))
    table = load_data(data, DataOptions(**options))
    pack_table(table, file, "float32" if single else None)
    print_text(
        f"{table.n_samples} samples, {table.n_features} features, target {table.target_name!r}: wrote {file}"
    )


def _check_free(file: Path, force: bool) -> None:
    if file.exists() and not force:
        raise ValueError(f"{str(file)!r} exists. Choose another file, or pass --force to replace it.")


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
        Path | None,
        typer.Option("--out", "-o", parser=o.path, metavar="FOLDER", help="Folder for report.html."),
    ] = None,
    force: o.Force = False,
) -> None:
    """Write the report again from saved records.

    Uses the result.json in the same folder, if there is one. Records of `evaluate` are enough.
    """
    from zeronorm.cli.printing import print_text
    from zeronorm.workflow._result import Result

    folder = out if out is not None else (records if records.is_dir() else records.parent)
    file = Result.load(records).report(folder, force=force or out is None)
    print_text(f"report: {file}")


@o.takes(ApplyOptions, list(options_of(ApplyOptions)))
def apply(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar=MODEL.usage, help=MODEL.help, show_default=False)],
    data: Annotated[
        Path, typer.Argument(metavar=DATA_OF_APPLY.usage, help=DATA_OF_APPLY.help, show_default=False)
    ],
    options: Any = None,
    as_json: o.AsJson = False,
) -> None:
    """Predict the target of new samples with a saved model, and score the predictions where it is known.

    With --target the predictions are compared with the true values, and their error with the one that the selection
    promised.
    """
    from zeronorm.cli.printing import print_cohort, print_json
    from zeronorm.workflow._cohort import run_apply

    cohort = run_apply({"model": model, "data": data, **options}, context.obj)
    if not as_json:
        print_cohort(cohort, options["out"])
    elif options["target"] is not None:
        print_json({**cohort.to_dict(), "samples": cohort.rows()})
    elif options["out"] is None:
        print_json(cohort.rows())
