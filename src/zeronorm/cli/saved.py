"""Saved runs, read back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zeronorm.cli.errors import UsageProblem

if TYPE_CHECKING:
    from zeronorm.report.result import RunResult

NEEDED = ("split", "method", "size", "n_selected", "selected", "n_train", "n_test", "truth", "predictions")


def read_saved(path: Path) -> tuple[RunResult, Any]:
    """The result and the records of a run, from its folder or its records file."""
    import polars as pl

    from zeronorm.report.result import RunResult

    file = path / "records.parquet" if path.is_dir() else path
    if not file.is_file():
        raise UsageProblem(
            f"There are no records at {str(file)!r}. Give the folder of a run or a records.parquet."
        )
    try:
        records = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise UsageProblem(
            f"The file {str(file)!r} is damaged or not Parquet. Run the selection again."
        ) from error
    missing = [name for name in NEEDED if name not in records.columns]
    if missing or records.height == 0:
        raise UsageProblem(
            f"The file {str(file)!r} does not hold records of an evaluation (no {', '.join(missing) or 'rows'}). "
            "Give the records.parquet of a run."
        )
    beside = file.parent / "result.json"
    result = RunResult.read(beside) if beside.is_file() else _result_of(records, file)
    return result, records


def _result_of(records: Any, file: Path) -> RunResult:
    """What can be said about records alone."""
    from zeronorm.report.result import RunResult

    methods = records["method"].unique(maintain_order=True).to_list()
    indices = [i for row in records["selected"].to_list() if row for i in row]
    is_regression = "mse" in records.columns
    data: dict[str, Any] = {
        "source": str(file),
        "target": "",
        "task": "regression" if is_regression else "classification",
        "n_samples": int(records["n_train"][0]) + int(records["n_test"][0]),
        "n_features": max(indices, default=0) + 1,
        "class_counts": {},
        "sha256": None,
    }
    return RunResult(
        kind="comparison" if len(methods) > 1 else "selection",
        data=data,
        methods=[
            {"name": name, "label": name, "class": "", "reference": "", "parameters": {}} for name in methods
        ],
        chosen_method=methods[0] if len(methods) == 1 else None,
        notes=[
            "There is no result.json beside the records, so names of features and details of the run are missing."
        ],
    )


def write_report(folder: Path, result: RunResult, records: Any, *, force: bool) -> Path:
    """Write report.html at once or not at all."""
    from zeronorm.report.html import render_report

    file = folder / "report.html"
    if file.exists() and not force:
        raise UsageProblem(
            f"{str(file)!r} exists. Choose another folder with --out, or pass --force to replace it."
        )
    text = render_report(result, records)
    temporary = folder / f".report-{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageProblem(
            f"The report cannot be written to {str(folder)!r}: {error.strerror}. Choose another folder with --out."
        ) from error
    return file
