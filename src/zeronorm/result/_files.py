"""Write the files of a result and read them again."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from zeronorm._messages import OptionError, setting
from zeronorm.evaluation._records import columns_of
from zeronorm.evaluation.stand_ins._answers import Substitutes
from zeronorm.resampling._splits import dense_columns
from zeronorm.result._lists import is_rare
from zeronorm.result._models import LinearModel
from zeronorm.result._plain import INDICES, figure_values, figures_from
from zeronorm.selection.target import Labels, Real, Target, TimeToEvent

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.result._record import ResultData, SelectedFeature

R = TypeVar("R", bound="ResultData")

RECORDS_ALONE = (
    "There is no result.json beside the records, so names of features and details of the run are missing."
)
NEEDED = ("split", "method", "size", "n_selected", "selected", "n_train", "n_test", "truth", "predictions")
# Also the full-width forms of East Asian text; spreadsheets drop a byte order mark or NUL in front of them.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
IGNORED_IN_FRONT = "\ufeff\x00 "


# -- Writing ------------------------------------------------------------------------------------------


def write_files(result: ResultData, folder: Path, *, with_model: bool) -> None:
    """Write result.json and records.parquet; of a selection also selected.csv, figures.parquet, perhaps a model."""
    if result.kind == "selection":
        write_csv(folder / "selected.csv", feature_rows(result.selected), header=FEATURE_COLUMNS)
    if result.stored_substitutes:
        write_csv(folder / "substitutes.csv", Substitutes.from_dict(result.stored_substitutes).rows())
    if with_model and result.model is None:
        why = (
            "No feature was selected"
            if not result.selected
            else "Only the predictors of zeronorm can be saved"
        )
        raise OptionError(f"{why}, so there is no model to save. Leave {setting('save_model', True)} out.")
    if with_model:
        result.model.save(folder / "model.json")
    (folder / "result.json").write_text(result.to_json(), encoding="utf-8")
    _polars_frame(result.records).write_parquet(folder / "records.parquet")
    if result.figures:
        _write_figures(result.figures, folder / "figures.parquet")


def _write_figures(figures: Mapping[str, Any], file: Path) -> None:
    import polars as pl

    kinds = dict.fromkeys(INDICES, pl.Int32) | {"number": pl.Float64, "text": pl.String}
    pl.DataFrame(figure_values(figures), schema_overrides=kinds).write_parquet(file)


def _polars_frame(records: Any) -> Any:
    if hasattr(records, "write_parquet"):
        return records
    import polars as pl

    return pl.from_pandas(records)


FEATURE_COLUMNS = (
    "rank",
    "name",
    "column",
    "smallest_list",
    "score",
    "frequency",
    "rarely_selected",
    "direction",
    "effect",
    "effect_kind",
    "fold_change",
    "p_value",
    "q_value",
    "selection_q_value",
    "coefficient",
    "mean",
    "scale",
)


def feature_rows(selected: Sequence[SelectedFeature]) -> list[dict[str, Any]]:
    """One row per selected feature, with columns for the mean of each class and for the annotations."""
    headings = annotation_headings(selected)
    rows = []
    for feature in selected:
        content = asdict(feature)
        means = content["class_means"] or {}
        content["rarely_selected"] = is_rare(feature.frequency)
        row = {name: content[name] for name in FEATURE_COLUMNS}
        row |= {f"mean in {label}": value for label, value in means.items()}
        texts = {heading: (feature.annotation or {}).get(heading) for heading in headings}
        rows.append(row | {_distinct(heading, row): text for heading, text in texts.items()})
    return rows


def annotation_headings(selected: Sequence[SelectedFeature]) -> list[str]:
    """The headings of the annotations of the selected features."""
    return list(dict.fromkeys(heading for feature in selected for heading in feature.annotation or {}))


def method_rows(table: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per method of a comparison."""
    return [
        {
            "method": row["method"],
            "value": row["value"],
            "low": row["low"],
            "high": row["high"],
            "chance": row["chance"],
            "p_value": row["p_value"],
            "features": sum(row["sizes"]) / len(row["sizes"]) if row["sizes"] else None,
            "stability": row["stability"]["value"],
            "seconds": row["seconds"],
            "failed": len(row["failed"]),
        }
        for row in table
    ]


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]], header: Sequence[str] = ()) -> None:
    """Write rows as CSV; an apostrophe is put in front of texts that a spreadsheet would run as a formula."""
    heads = list(rows[0]) if rows else list(header)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([as_csv_text(head) for head in heads])
        for row in rows:
            writer.writerow([as_csv_text(row[head]) for head in heads])


def as_csv_text(value: Any) -> Any:
    """The text of a cell, changed so that no spreadsheet takes it for a formula."""
    if value is None or value != value:
        return ""
    starts_one = isinstance(value, str) and value.lstrip(IGNORED_IN_FRONT).startswith(FORMULA_STARTS)
    if starts_one and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


TABLE_ENDINGS = (".csv", ".parquet", ".pq")


def check_table_path(file: Path, force: bool) -> None:
    """Check the path of the reduced table before any work is done."""
    if file.suffix.lower() not in TABLE_ENDINGS:
        raise OptionError(
            f"must name a file that ends in {', '.join(TABLE_ENDINGS)}. Got {str(file)!r}.",
            "write_table",
        )
    if file.exists() and not force:
        raise OptionError(
            f"{str(file)!r} exists. Choose another file, or {setting('force', True, 'set')} to replace it."
        )


def write_table(table: Table, columns: Any, file: Path) -> None:
    """Write the names of the samples, the target and the selected columns, under distinct names."""
    import polars as pl

    found: dict[str, Any] = {} if table.sample_ids is None else {"sample": [str(i) for i in table.sample_ids]}
    for name in table.y.dtype.names or ():
        found[_distinct(name, found)] = table.y[name]
    if not table.y.dtype.names:
        found[_distinct(table.target_name, found)] = table.y
    for index, values in zip(columns.tolist(), dense_columns(table.X, columns).T, strict=True):
        found[_distinct(str(table.feature_names[index]), found)] = values
    if file.suffix.lower() == ".csv":
        rows = list(zip(*(np.asarray(v).tolist() for v in found.values()), strict=True))
        write_csv(file, [dict(zip(found, row, strict=True)) for row in rows])
    else:
        pl.DataFrame(found).write_parquet(file)


def _distinct(name: str, taken: Mapping[str, Any]) -> str:
    return next(
        text
        for text in itertools.chain([name], (f"{name} ({i})" for i in itertools.count(2)))
        if text not in taken
    )


# -- Reading ------------------------------------------------------------------------------------------


def load(cls: type[R], path: Path) -> R:
    """The result of a run, from its folder or its records file."""
    file = path / "records.parquet" if path.is_dir() else path
    if not file.is_file():
        raise ValueError(
            f"There are no records at {str(file)!r}. Give the folder of a run or a records.parquet."
        )
    records = _read_parquet(file)
    missing = [name for name in NEEDED if name not in records.columns]
    if missing or records.height == 0:
        raise ValueError(
            f"The file {str(file)!r} does not hold records of an evaluation (no {', '.join(missing) or 'rows'}). "
            "Give the records.parquet of a run."
        )
    beside = file.parent / "result.json"
    if beside.is_file():
        result = cls.read(beside)
    else:
        result = cls(**described_records(records, str(file)), notes=[RECORDS_ALONE])
    return replace(
        result,
        records=records,
        model=_model_beside(file.parent),
        figures=_figures_beside(file.parent) or result.figures,
    )


def _read_parquet(file: Path) -> Any:
    import polars as pl

    try:
        return pl.read_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        wrong, remedy = "is damaged or not Parquet", "Run the selection again."
        if file.suffix != ".parquet":
            wrong, remedy = "is not a Parquet file", "Give the folder of a run or its records.parquet."
        raise ValueError(f"The file {str(file)!r} {wrong}. {remedy}") from error


def _figures_beside(folder: Path) -> dict[str, Any]:
    file = folder / "figures.parquet"
    if not file.is_file() or not (folder / "result.json").is_file():
        return {}
    try:
        return figures_from(_read_parquet(file).iter_rows(named=True))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(
            f"The file {str(file)!r} does not hold the values of figures. Run the selection again."
        ) from error


def _model_beside(folder: Path) -> Any:
    return LinearModel.load(folder) if (folder / "model.json").is_file() else None


def described_records(
    records: Any, source: str, *, names: Sequence[str] | None = None, n_features: int | None = None
) -> dict[str, Any]:
    """The fields of a result that can be filled from records and, if known, the names or the number of all features."""
    columns = columns_of(records)
    methods = list(dict.fromkeys(columns["method"]))
    indices = {int(i) for row in columns["selected"] if row is not None for i in row}
    n_known = len(names) if names is not None else max(indices, default=0) + 1
    has_numbers = all(isinstance(value, float) for row in columns["truth"] for value in row)
    is_real = "mse" in columns or "r2" in columns or has_numbers
    are_times = any(isinstance(value, dict) for row in columns["truth"][:1] for value in row[:1])
    kind: type[Target] = TimeToEvent if are_times else Real if is_real else Labels
    return {
        "kind": "comparison" if len(methods) > 1 else "selection",
        "data": {
            "source": source,
            "target": "",
            "task": kind.task,
            "n_samples": int(columns["n_train"][0]) + int(columns["n_test"][0]),
            "n_features": n_features or n_known,
            "class_counts": {},
            "sample_groups": None,
            "sha256": None,
        },
        "methods": [
            {"name": name, "label": name, "class": "", "reference": "", "parameters": {}} for name in methods
        ],
        "chosen_method": methods[0] if len(methods) == 1 else None,
        "names": {i: str(names[i]) for i in sorted(indices)} if names is not None else {},
    }
