"""Saved runs, read back."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zeronorm.workflow.errors import UsageProblem

if TYPE_CHECKING:
    from zeronorm.workflow.result import RunResult, SelectedFeature


NEEDED = ("split", "method", "size", "n_selected", "selected", "n_train", "n_test", "truth", "predictions")


def read_saved(path: Path) -> tuple[RunResult, Any]:
    """The result and the records of a run, from its folder or its records file."""
    import polars as pl

    from zeronorm.workflow.result import RunResult

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
    from zeronorm.workflow.result import RunResult

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
    from zeronorm._lazy import service

    file = folder / "report.html"
    if file.exists() and not force:
        raise UsageProblem(
            f"{str(file)!r} exists. Choose another folder with --out, or pass --force to replace it."
        )
    text = service("render_report")(result, records)
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


# -- Results as files --


CSV_COLUMNS = ("rank", "name", "column", "score", "frequency", "mean", "scale")


def write_results(folder: Path, result: RunResult, records: Any) -> None:
    """All files of a run: selected.csv (for a selection), result.json, records.parquet, report.html."""
    from zeronorm._lazy import service

    if result.kind == "selection":
        write_selected(folder / "selected.csv", result.selected)
    (folder / "result.json").write_text(result.to_json(), encoding="utf-8")
    records.write_parquet(folder / "records.parquet")
    (folder / "report.html").write_text(service("render_report")(result, records), encoding="utf-8")


def write_selected(file: Path, selected: list[SelectedFeature]) -> None:
    """The selected features; names are written as they are, quoted where CSV needs it."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(CSV_COLUMNS)
        for feature in selected:
            writer.writerow("" if (v := getattr(feature, key)) is None else v for key in CSV_COLUMNS)


# -- Results appear in the output folder all at once or not at all --


RESULT_FILES = ("selected.csv", "result.json", "records.parquet", "report.html")


@contextmanager
def output_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """A temporary folder whose files move to ``folder`` at the end, if nothing went wrong.

    It is made beside ``folder``, so that moving is renaming, and before any work, so that a place that
    cannot be written is noticed first.
    """
    _check_free(folder, force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".zeronorm-", dir=folder.parent))
    except OSError as error:
        raise UsageProblem(
            f"The output folder {str(folder)!r} cannot be written: {error.strerror}. Choose another with --out."
        ) from error
    try:
        yield temporary
        _publish(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_free(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageProblem(f"--out names {str(folder)!r}, which is a file. Choose a folder.")
    found = [name for name in RESULT_FILES if (folder / name).exists()]
    if found and not force:
        raise UsageProblem(
            f"The folder {str(folder)!r} already holds results ({', '.join(found)}). Choose another with --out, "
            "or pass --force to replace them."
        )
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise UsageProblem(f"The output folder {str(folder)!r} cannot be written. Choose another with --out.")


def _publish(temporary: Path, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
        for name in RESULT_FILES:  # results of an earlier run that this run does not write
            if not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        for file in sorted(temporary.iterdir()):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise UsageProblem(f"The results cannot be moved to {str(folder)!r}: {error.strerror}.") from error
