"""zeronorm pack, report and apply: from one file to another"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o

OF_PACK = o.examples(
    "zeronorm pack genes.csv --target tumour --out genes.zncols",
    "zeronorm pack genes.tsv --transpose --samples patients.xlsx --id sample -t outcome",
    "zeronorm pack counts.h5ad -t cell_type --float32 && zeronorm select counts.zncols",
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("pack", epilog=OF_PACK)(pack)
    app.command("report", epilog=o.examples("zeronorm report zeronorm-out --out again"))(report)
    app.command(
        "apply",
        epilog=o.examples(
            "zeronorm apply zeronorm-out/model.json new.csv --out predictions.csv",
            "zeronorm apply zeronorm-out new.tsv --transpose --samples patients.xlsx --id sample",
        ),
    )(apply)


def _budget_for(file: Path) -> int | None:
    """Files above the usual budget are converted piece by piece."""
    from zeronorm.design.chunked import DEFAULT_MEMORY_BUDGET

    is_large = file.is_file() and file.stat().st_size > DEFAULT_MEMORY_BUDGET
    return DEFAULT_MEMORY_BUDGET if is_large else None


def pack(
    data: o.Data,
    target: o.Target = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, ending in .zncols; default: beside the data."),
    ] = None,
    single: Annotated[
        bool, typer.Option("--float32", help="Store the numbers in single precision, in half the space.")
    ] = False,
    task: o.Task = None,
    samples: o.Samples = None,
    id: o.Id = None,
    sample_groups: o.SampleGroups = None,
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
    memory_budget: o.MemoryBudget = None,
    force: o.Force = False,
) -> None:
    """Convert a table to a file that select and compare can use without loading it into memory.

    The file also holds the target and the groups of the samples. Every part has a checksum. An interrupted
    conversion leaves no file behind.
    """
    from zeronorm.cli.printing import say
    from zeronorm.workflow.inputs import DataOptions, load_data, pack_table

    file = Path(data).with_suffix(".zncols") if out is None else out
    if file.exists() and not force:
        raise ValueError(f"{str(file)!r} exists. Choose another file, or set force=True to replace it.")
    options = DataOptions(
        target=target,
        task=task and str(task),
        samples=samples,
        id=id,
        ignore=tuple(ignore or ()),
        only=tuple(only or ()),
        categorical=tuple(categorical or ()),
        missing=str(missing),
        drop_unlabelled=drop_unlabelled,
        min_class_size=min_class_size,
        sample_groups=sample_groups,
        transpose=transpose,
        delimiter=delimiter,
        decimal_comma=decimal_comma,
        encoding=encoding,
        memory_budget=o.n_bytes(memory_budget) or _budget_for(Path(data)),
    )
    table = load_data(data, options)
    pack_table(table, file, "float32" if single else None)
    say(f"{table.n_samples} samples, {table.n_features} features, target {table.target_name!r}: wrote {file}")


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
