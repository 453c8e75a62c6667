"""Tables from the data of users: arrays, data frames, files, data sets by name, data that stay on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import Message, OptionError, marked_text, parameter, setting
from zeronorm._types import written
from zeronorm.design import Design, as_design, check_container, has_own_backend, pack
from zeronorm.design._chunked import DEFAULT_MEMORY_BUDGET
from zeronorm.design._devices import is_foreign_array
from zeronorm.design._packing import SUFFIX, PackedFile
from zeronorm.selection.target import TimeToEvent
from zeronorm.selection.target._event_columns import EVENT_AND_TIME
from zeronorm.workflow._options import DataOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.datasets._raw import RawTable

ANNOTATED = (".h5ad", ".zarr")
STAYS_ON_DISK = (".npy", ".parquet", ".pq", SUFFIX)


def load_data(data: Any, options: DataOptions) -> Table:
    """The table of any data that ``select`` accepts, or of a raw table; a ``Table`` is returned as it is."""
    from zeronorm.datasets import Table
    from zeronorm.datasets._raw import RawTable

    options = _with_target_of_times(options)
    if isinstance(data, Table):
        table = data
    elif isinstance(data, (str, os.PathLike)):
        table = _from_path(data, options)
    elif isinstance(data, RawTable):
        table = _from_raw(data, options, "table that was read before")
    elif isinstance(data, Design) or has_own_backend(data) or is_foreign_array(data):
        table = _from_design(as_design(data), options, source=f"{type(data).__name__}")
    elif hasattr(data, "columns") and hasattr(data, "shape"):
        table = _from_raw(raw_from_data_frame(data), options, f"data frame of {_extent(data)}")
    else:
        check_container(data)
        X = data.tocsr() if hasattr(data, "tocsr") else np.asarray(data)
        if X.ndim != 2 or (X.dtype.kind not in "biuf" and not hasattr(X, "tocsr")):
            raise ValueError(
                "The 'data' parameter must be a two-dimensional array of numbers, a data frame, a Design, a Dask "
                f"array, or the path of a file. Got {type(data).__name__} of shape {getattr(X, 'shape', None)} and "
                f"type {X.dtype} instead."
            )
        table = _from_raw(RawTable.from_matrix(X), options, f"array of {_extent(X)}")
    if options.feature_groups is not None:
        table = replace(table, feature_groups=_feature_groups(options.feature_groups, table))
    return table if options.annotation is None else _annotated(table, options)


def _with_target_of_times(options: DataOptions) -> DataOptions:
    """The options with events and times as one structured target, where they are arrays or a table of two columns."""
    are_arrays = [_is_array(options.time), _is_array(options.event)]
    if any(are_arrays) and not all(are_arrays):
        raise OptionError(
            f"must be an array if {parameter('event', 'object')} is one: both are names of columns, or both arrays.",
            "time",
        )
    if all(are_arrays):
        target: Any = {"event": np.asarray(options.event), "time": np.asarray(options.time)}
        label = " to ".join(
            str(getattr(given, "name", None) or key)
            for key, given in (("time", options.time), ("event", options.event))
        )
    elif _is_array(options.target) and (options.task == TimeToEvent.task or _fields_of(options.target)):
        target, label = options.target, "time to event"
    else:
        return options
    try:
        y = NamedTarget(TimeToEvent.prepared(target), label)
    except ValueError as error:
        raise OptionError(str(error)) from error
    return replace(options, target=y, time=None, event=None, task=TimeToEvent.task)


def _fields_of(target: Any) -> Any:
    return getattr(getattr(target, "dtype", None), "names", None)


@dataclass(frozen=True, eq=False)
class NamedTarget:
    """The values of a target with its name."""

    values: NDArray[Any]
    name: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


def _annotated(table: Table, options: DataOptions) -> Table:
    from zeronorm.datasets._annotation import with_annotation

    return with_annotation(table, _second_table(options.annotation, options, "annotation", "feature"))


def _extent(data: Any) -> str:
    return f"{data.shape[0]} × {data.shape[1]}"


def _from_path(data: Any, options: DataOptions) -> Table:
    from zeronorm.datasets import known_names, load_dataset

    path = Path(data)
    if path.suffix.lower() in STAYS_ON_DISK and _is_apart(options.target, path):
        from zeronorm.datasets.readers import check_readable

        check_readable(path)
        return _from_file(path, options)
    if path.suffix.lower() in ANNOTATED and path.exists() and _stays_on_disk(path, options):
        from zeronorm.datasets.readers._matrices import read_annotated

        return _from_raw(read_annotated(path, options.memory_budget), options, _source(path))
    if not path.exists() and str(data) in known_names():
        return load_dataset(str(data), random_state=options.random_state, **_table_options(options))
    return _from_raw(_read(path, options, transpose=options.transpose), options, _source(path))


def _stays_on_disk(path: Path, options: DataOptions) -> bool:
    """Whether the data stay on disk: a Zarr folder, or a file with a memory budget or above the default budget."""
    is_large = path.stat().st_size > DEFAULT_MEMORY_BUDGET
    return path.is_dir() or options.memory_budget is not None or is_large


def _read(path: Path, options: DataOptions, *, transpose: bool = False) -> RawTable:
    from zeronorm.datasets.readers import read_raw

    return read_raw(
        path,
        delimiter=options.delimiter,
        decimal_comma=options.decimal_comma,
        encoding=options.encoding,
        transpose=transpose,
        sheet=options.sheet,
        header_row=options.header_row,
        memory_budget=options.memory_budget,
    )


def _source(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _is_apart(target: Any, data: Path) -> bool:
    """Whether the target is separate from the columns: an array, a .npy file, or packed with the data."""
    return _is_array(target) or data.suffix.lower() in (".npy", SUFFIX) or str(target).endswith(".npy")


def _is_array(target: Any) -> bool:
    return target is not None and not isinstance(target, (str, os.PathLike))


def _table_options(options: DataOptions) -> dict[str, Any]:
    from zeronorm.datasets import TableOptions

    return {field.name: getattr(options, field.name) for field in fields(TableOptions)}


def _from_raw(raw: RawTable, options: DataOptions, source: str) -> Table:
    """The table of columns in memory, with a target and sample groups that may be arrays."""
    from zeronorm.datasets import TableOptions, build_table

    given: dict[str, Any] = _table_options(options)
    if options.samples is not None:
        raw = _with_samples(raw, options)
        given["id"] = None
    for role in ("target", "sample_groups"):
        if _is_array(given[role]):
            values = given_vector(given[role], raw.n_samples, role)
            name = str(getattr(given[role], "name", None) or role)
            name = name if name not in raw.names else f"{name} (given)"
            raw = replace(raw, targets={**raw.targets, name: values})
            given[role] = name
    return build_table(raw, TableOptions(**given), source=source)


def _with_samples(raw: RawTable, options: DataOptions) -> RawTable:
    from zeronorm.datasets._joining import join_samples

    samples = _second_table(options.samples, options, "samples", "sample")
    wanted = (*options.keep, *options.only, *options.categorical, *options.adjust)
    return join_samples(raw, samples, options.id, wanted)


def _second_table(given: Any, options: DataOptions, parameter: str, row: str) -> RawTable:
    """A table beside the data, from a file or a data frame; ``row`` is what its rows are."""
    if isinstance(given, (str, os.PathLike)):
        return _read(Path(given), replace(options, delimiter=None, sheet=None, header_row=None))
    if hasattr(given, "columns"):
        return raw_from_data_frame(given)
    raise OptionError(
        f"must be the path of a file or a data frame with one row per {row}. Got {type(given).__name__} instead.",
        parameter,
    )


def given_vector(values: Any, n_samples: int, parameter: str) -> NDArray[Any]:
    array = np.asarray(values)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (n_samples,):
        raise OptionError(
            f"must be the name of a column or hold one value for each of the {n_samples} samples. Got an array of "
            f"shape {array.shape} instead.",
            parameter,
        )
    return array


def raw_from_data_frame(frame: Any) -> RawTable:
    """The columns of a pandas or polars frame: numbers, and everything else as text."""
    if hasattr(frame, "iloc"):
        return _raw_from_pandas(frame)
    from zeronorm.datasets.readers._columnar import raw_from_frame

    return raw_from_frame([str(name) for name in frame.columns], frame, keep_text=True)


def _raw_from_pandas(frame: Any) -> RawTable:
    from zeronorm.datasets._raw import RawTable

    names = [str(name) for name in frame.columns]
    is_number = np.asarray([_is_number(dtype) for dtype in frame.dtypes], dtype=bool)
    values = frame.loc[:, is_number].to_numpy(dtype=np.float64, na_value=np.nan)
    texts = {}
    for index in np.flatnonzero(~is_number).tolist():
        column = frame.iloc[:, index]
        cells = zip(column.tolist(), column.isna().tolist(), strict=True)
        texts[index] = [None if missing else str(cell) for cell, missing in cells]
    is_numbered = type(frame.index).__name__ == "RangeIndex"
    return RawTable(
        names=names,
        values=values,
        positions=np.flatnonzero(is_number),
        texts=texts,
        sample_ids=None if is_numbered else [str(name) for name in frame.index],
    )


def _is_number(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", "O")
    return kind in "biuf" and not hasattr(dtype, "categories")


def _from_design(design: Design, options: DataOptions, source: str) -> Table:
    """The table of data that are not loaded into memory: numbers only, without missing values."""
    from zeronorm.datasets import Table
    from zeronorm.datasets._covariates import covariates_apart
    from zeronorm.datasets._raw import matching
    from zeronorm.datasets._table import check_target, infer_task

    for name in (
        "samples",
        "ignore",
        "only",
        "categorical",
        "transpose",
        "min_class_size",
        "drop_unlabelled",
    ):
        if _is_given(getattr(options, name)):
            raise OptionError(
                f"does not apply to {source}, whose columns are not loaded into memory. Prepare the columns before, or "
                "load the table into memory.",
                name,
            )
    target, name = _separate_target(options.target, source)
    y = given_vector(target, design.n_samples, "target")
    task, note = (options.task, "") if options.task else infer_task(y, name)
    y = check_target(y, name, task, task_was_given=options.task is not None)  # type: ignore[arg-type]
    groups = options.sample_groups
    names = design.feature_names
    if names is None:
        names = np.asarray([f"x{i}" for i in range(1, design.n_features + 1)], dtype=object)
    chosen = [p for wanted in options.adjust for p in matching([str(n) for n in names], wanted, "adjust")]
    covariates = np.unique(np.asarray(chosen, dtype=np.intp))
    kept = np.delete(np.arange(design.n_features), covariates)
    return Table(
        X=design.take(kept) if covariates.size else design,
        y=y,
        task=task,  # type: ignore[arg-type]
        feature_names=np.asarray(names, dtype=object)[kept],
        source_columns=kept,
        adjusted_for=options.adjust,
        **covariates_apart(design, [str(n) for n in names], covariates),
        target_name=name,
        sample_groups=None if groups is None else given_vector(groups, design.n_samples, "sample_groups"),
        notes=(note,) if note else (),
        source=source,
    )


def _is_given(value: Any) -> bool:
    return hasattr(value, "columns") or bool(value)


def _from_file(path: Path, options: DataOptions) -> Table:
    """The table of a file whose columns stay on disk; packed files may hold a target."""
    design = as_design(path, memory_budget=options.memory_budget)
    about = PackedFile(path).about if path.suffix.lower() == SUFFIX else {}
    if "y" not in about or _is_array(options.target) or str(options.target).endswith(".npy"):
        return _from_design(design, options, source=str(path))
    name = about["target_name"]
    if options.target not in (None, name):
        raise OptionError(
            f"must be {written(name)}, the target packed with {path}, an array, or the path of "
            f"a .npy file. Got {written(options.target)} instead.",
            "target",
        )
    groups = about["sample_groups"]
    given = replace(
        options,
        target=_packed_target(about["y"], about["task"]),
        task=options.task or about["task"],
        sample_groups=groups if options.sample_groups is None else options.sample_groups,
    )
    table = _from_design(design, given, source=str(path))
    known: dict[str, Any] = {
        field: np.asarray(about[field])
        for field in ("feature_groups", "sample_ids")
        if about[field] is not None
    }
    return replace(
        table,
        target_name=name,
        source_columns=np.asarray(about["source_columns"] or table.source_columns, dtype=np.intp),
        notes=(*map(Message, about["notes"]), *table.notes),
        **known,
    )


def _packed_target(values: list[Any], task: str) -> NDArray[Any]:
    """The target as it was packed; events and times are pairs in the file."""
    if task == TimeToEvent.task:
        return np.asarray([tuple(pair) for pair in values], dtype=EVENT_AND_TIME)
    return np.asarray(values)


def pack_table(table: Table, path: str | os.PathLike[str], dtype: str | None = None) -> Path:
    """Write a table to a packed file, with its target, names and groups."""
    if table.n_missing:
        raise OptionError(
            f"A packed file cannot hold missing values. {table.source} has {table.n_missing}; fill them "
            f"before, or set {setting('missing', 'drop-rows')} or {setting('missing', 'drop-columns')}."
        )
    in_order = np.array_equal(table.source_columns, np.arange(table.n_features))
    about = {
        "y": [list(row) for row in table.y.tolist()] if table.y.dtype.names else table.y.tolist(),
        "task": table.task,
        "target_name": table.target_name,
        "source_columns": None if in_order else table.source_columns.tolist(),
        "feature_groups": None if table.feature_groups is None else table.feature_groups.tolist(),
        "sample_groups": None if table.sample_groups is None else table.sample_groups.tolist(),
        "sample_ids": None if table.sample_ids is None else [str(name) for name in table.sample_ids],
        "notes": [marked_text(note) for note in table.notes],
    }
    return pack(table.X, path, feature_names=table.feature_names, dtype=dtype, about=about)


def _separate_target(target: Any, source: str) -> tuple[Any, str]:
    if target is None or (isinstance(target, str) and not target.endswith(".npy")):
        raise OptionError(
            f"must be an array, or the path of a .npy file, for {source}, which holds "
            f"features only. Got {written(target)} instead.",
            "target",
        )
    if _is_array(target):
        return target, str(getattr(target, "name", None) or "target")
    from zeronorm.datasets.readers import check_readable

    check_readable(Path(target))
    return np.load(target, allow_pickle=False), Path(target).stem


def _feature_groups(groups: Any, table: Table) -> NDArray[np.intp]:
    """A group code per feature, from a file, a mapping from feature to group, or labels."""
    if isinstance(groups, (str, os.PathLike)):
        from zeronorm.datasets import read_feature_groups

        return read_feature_groups(Path(groups), table)
    if isinstance(groups, Mapping):
        unknown = set(map(str, groups)) - set(map(str, table.feature_names))
        if unknown:
            raise OptionError(
                f"names {written(sorted(unknown)[0])}, which is not a feature of the table. Check the name.",
                "feature_groups",
            )
        groups = [str(groups.get(name, f"alone {i}")) for i, name in enumerate(table.feature_names)]
    labels: NDArray[Any] = np.asarray(groups)
    if labels.shape != (table.n_features,):
        raise OptionError(
            f"must hold one label for each of the {table.n_features} features, map "
            f"features to groups, or be the path of a file. Got shape {labels.shape} instead.",
            "feature_groups",
        )
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def _hint_about_case(label: str, labels: list[str]) -> str:
    twins = [other for other in labels if other != label and other.casefold() == label.casefold()]
    if not twins:
        return ""
    return (
        f" {written(label)} and {written(twins[0])} differ in upper and lower case only; if they are one class, use "
        "one spelling."
    )


def check_folds(table: Table, n_folds: int) -> None:
    """Check that there are enough samples of each class, and enough groups of samples, for the folds."""
    from zeronorm.datasets._table import counted

    if table.class_counts:
        rarest, count = min(table.class_counts.items(), key=lambda pair: pair[1])
        if count < n_folds:
            from zeronorm.datasets._table import QUANTITY

            n_left = sum(size >= n_folds for size in table.class_counts.values())
            others = f", or leave out small classes: set {setting('min_class_size', n_folds)}"
            raise OptionError(
                f"must be at most the size of the smallest class. The class {written(rarest)} has {count} samples, too "
                f"few for {setting('cv', n_folds)}. Set {setting('cv', max(2, count))} or fewer{others * (n_left > 1)}."
                + QUANTITY * (table.y.dtype.kind in "iuf")
                + _hint_about_case(rarest, list(table.class_counts)),
                "cv",
            )
    elif table.target.kind == TimeToEvent.kind and table.target.fewest_in_folds() < n_folds:
        count = table.target.fewest_in_folds()
        raise OptionError(
            f"must be at most the number of events: each fold needs one. {counted(count, 'event')} among "
            f"{table.n_samples} samples are too few for {setting('cv', n_folds)}. Set a smaller one, or follow the "
            "samples for longer.",
            "cv",
        )
    elif table.n_samples < 2 * n_folds:
        raise OptionError(
            f"must leave at least two samples in each fold. {table.n_samples} samples are too few "
            f"for {setting('cv', n_folds)}. Set a smaller one or add samples.",
            "cv",
        )
    if table.sample_groups is not None:
        n_groups = len(np.unique(table.sample_groups.astype(str)))
        if n_groups < n_folds:
            raise OptionError(
                f"has {n_groups} groups, too few for {setting('cv', n_folds)}. Set {setting('cv', n_groups)} "
                "or fewer.",
                "sample_groups",
            )


def check_covariates(table: Table, options: Any) -> None:
    """Check that the run can have covariates: classes or numbers, and a test that is made for them."""
    if table.covariates is None:
        return
    if hasattr(options, "methods") and options.permutations:
        raise OptionError(
            f"does not apply together with {setting('permutations', options.permutations)} of a comparison. Leave one "
            "of them out; select tests what the features of one method add.",
            "adjust",
        )


def kept_columns(table: Table, names: Sequence[str]) -> list[int]:
    """Features that must be selected, from the names of columns (all levels of a text column)."""
    from zeronorm.datasets._raw import matching

    known = [str(name) for name in table.feature_names]
    kept: list[int] = []
    for name in names:
        levels = [index for index, feature in enumerate(known) if feature.startswith(f"{name}=")]
        kept += levels if levels and name not in known else matching(known, name, "keep")
    return sorted(set(kept))
