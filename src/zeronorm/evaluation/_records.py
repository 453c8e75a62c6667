"""Records: results of tasks as a tidy table with one row per split, method and size."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm.resampling._folds import FoldPlan, FoldTask, TaskResult

Row = dict[str, Any]

# Columns that do not hold metrics.
FIXED_COLUMNS = (
    "split", "method", "size", "n_selected", "selected", "predictions", "decision", "truth", "test_rows",
    "test_groups", "n_train", "n_test", "fit_seconds", "seconds", "converged", "error",
)  # fmt: skip


def rows_of_task(task_result: TaskResult, task: FoldTask, plan: FoldPlan) -> list[Row]:
    """The rows of one task; a task that failed has one row per size with its error and no results."""
    results = task_result["sizes"] or [{"size": size, "error": task_result["error"]} for size in plan.sizes]
    split = task.split
    test, truth = split.test.tolist(), _plain_target(plan.y[split.test])
    groups = None if plan.groups is None else [str(group) for group in plan.groups[split.test]]
    rows = []
    for result in results:
        measured = result.get("metrics", {})
        selected = result.get("selected")
        rows.append(
            {
                "split": split.index,
                "method": task.name,
                "size": result["size"],
                "n_selected": None if selected is None else len(selected),
                **{metric.name: measured.get(metric.name) for metric in plan.metrics},
                "selected": selected,
                "predictions": result.get("predictions"),
                "decision": result.get("decision"),
                "truth": truth,
                "test_rows": test,
                "test_groups": groups,
                "n_train": split.train.size,
                "n_test": split.test.size,
                "fit_seconds": task_result["fit_seconds"],
                "seconds": result.get("seconds"),
                "converged": task_result["converged"],
                "error": result["error"],
            }
        )
    return rows


def _plain_target(y: Any) -> list[Any]:
    """One plain value per sample; of a structured array one dict."""
    names = y.dtype.names
    return [dict(zip(names, value, strict=True)) for value in y.tolist()] if names else list(y.tolist())


def to_frame(rows: list[Row], metric_names: list[str]) -> Any:
    """A polars frame where polars is installed, else a pandas frame."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    try:
        import polars
    except ImportError:
        return _pandas_frame(columns, metric_names)
    return polars.DataFrame(columns, schema=_polars_schema(polars, columns, metric_names), strict=False)


def frame_of_rows(rows: list[Row]) -> Any:
    """Plain rows as a polars frame, else a pandas frame."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    try:
        import polars
    except ImportError:
        return _pandas_frame(columns, [])
    return polars.DataFrame(columns)


def columns_of(records: Any) -> dict[str, list[Any]]:
    """The columns of records (a polars or pandas frame, or a dict of lists) as plain lists."""
    if isinstance(records, dict):
        return records
    if hasattr(records, "iloc"):
        columns = records.astype(object).where(records.notna(), None)
        return {str(name): columns[name].tolist() for name in columns}
    return {str(name): values for name, values in records.to_dict(as_series=False).items()}


def own_rows_of(columns: dict[str, list[Any]], method: str) -> dict[str, list[Any]]:
    """The rows of one method at the size that it chooses."""
    pairs = enumerate(zip(columns["method"], columns["size"], strict=True))
    rows = [row for row, (name, size) in pairs if name == method and size is None]
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def metric_columns(records: Any) -> list[str]:
    """Names of the columns that hold metrics."""
    return [str(name) for name in records.columns if str(name) not in FIXED_COLUMNS]


def rows_by_method(
    records: Any, size: int | None, needed: tuple[str, ...], wanted: tuple[str, ...] = ()
) -> dict[str, list[Row]]:
    """The rows of every method at one size, in the order of the splits; an error where one is missing.

    Columns in ``wanted`` may be missing or empty.
    """
    columns = columns_of(records)
    missing = [name for name in (*needed, "split", "method", "size") if name not in columns]
    if missing:
        raise ValueError(f"The records have no column {missing}. They have {list(columns)}.")
    sizes = dict.fromkeys(columns["size"])
    if size not in sizes:
        raise ValueError(f"The records have no size {size}. They have the sizes {list(sizes)}.")
    by_method: dict[str, dict[int, Row]] = {}
    for i, row_size in enumerate(columns["size"]):
        if row_size == size:
            row = {name: columns[name][i] for name in (*needed, *wanted) if name in columns}
            empty = [name for name in needed if row[name] is None]
            if empty:
                raise ValueError(
                    f"Method {columns['method'][i]!r} has no {empty[0]} on split {columns['split'][i]} with "
                    f"size {size} (its 'error' says why), so the methods cannot be compared there. Leave the "
                    "method or the split out."
                )
            by_method.setdefault(columns["method"][i], {})[columns["split"][i]] = row
    splits = {name: sorted(rows) for name, rows in by_method.items()}
    first = next(iter(splits.values()))
    for name, found in splits.items():
        if found != first:
            raise ValueError(
                f"Method {name!r} was evaluated on other splits; compare methods on the same ones."
            )
    return {name: [rows[split] for split in first] for name, rows in by_method.items()}


def _polars_schema(polars: Any, columns: dict[str, list[Any]], metric_names: list[str]) -> dict[str, Any]:
    predicted: list[Any] = next((values for values in columns["predictions"] if values), [])
    truth: list[Any] = columns["truth"][0]
    are_times = isinstance(truth[0], dict)
    label = _label_type(polars, predicted if are_times else truth + predicted)
    times = polars.Struct({"event": polars.Boolean, "time": polars.Float64})
    schema = {
        "split": polars.Int64,
        "method": polars.String,
        "size": polars.Int64,
        "n_selected": polars.Int64,
        **dict.fromkeys(metric_names, polars.Float64),
        "selected": polars.List(polars.Int64),
        "predictions": polars.List(label),
        "decision": polars.List(polars.Float64),
        "truth": polars.List(times if are_times else label),
        "test_rows": polars.List(polars.Int64),
        "test_groups": polars.List(polars.String),
        "n_train": polars.Int64,
        "n_test": polars.Int64,
        "fit_seconds": polars.Float64,
        "seconds": polars.Float64,
        "converged": polars.Boolean,
        "error": polars.String,
    }
    return {name: schema[name] for name in columns}


def _label_type(polars: Any, labels: list[Any]) -> Any:
    for kinds, name in ((bool, "Boolean"), (int, "Int64"), ((int, float), "Float64")):
        if all(isinstance(label, kinds) for label in labels):
            return getattr(polars, name)
    return polars.String


def _pandas_frame(columns: dict[str, list[Any]], metric_names: list[str]) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "The records need a data frame library: install polars (`pip install zeronorm[app]`) or pandas."
        ) from error
    frame = pandas.DataFrame(columns)
    nullable = {
        "size": "Int64",
        "n_selected": "Int64",
        "converged": "boolean",
        "fit_seconds": np.float64,
        "seconds": np.float64,
        **dict.fromkeys(metric_names, np.float64),
    }
    return frame.astype({name: kind for name, kind in nullable.items() if name in columns})
