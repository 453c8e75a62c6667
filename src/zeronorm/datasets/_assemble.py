"""A raw table and the user's options turned into a table that a selector can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import parameter
from zeronorm.datasets import _encoding as encoding
from zeronorm.datasets._covariates import adjusted_note, columns_of_covariates, covariates_apart
from zeronorm.datasets._draft import handle_missing, handle_rows, settle_task
from zeronorm.datasets._joining import join_samples
from zeronorm.datasets._numbers import (
    with_numbers,
)
from zeronorm.datasets._raw import RawTable, side_by_side
from zeronorm.datasets._roles import (
    groups_beside_features,
    may_be_numbers,
    with_categories,
    with_distinct_names,
    with_ids,
    with_roles,
    without_identifiers,
)
from zeronorm.datasets._table import (
    DataError,
    Table,
    counted,
    shown_list,
)
from zeronorm.datasets._table_options import TableOptions
from zeronorm.datasets.readers import read_raw
from zeronorm.design._base import SMALL_COPY_BYTES


def build_table(raw: RawTable, options: TableOptions, source: str = "") -> Table:
    """Set the target, groups and ignored columns apart, encode texts, handle missing values, check all.

    Parameters
    ----------
    raw : RawTable
        What the reader of a file format returned.
    options : TableOptions
        The user's options.
    source : str, default=''
        Description of where the data come from.

    Returns
    -------
    Table
        The features, the target and notes about what was decided.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.datasets import TableOptions, build_table
    >>> from zeronorm.datasets._raw import RawTable
    >>> raw = RawTable.from_matrix(np.eye(4), targets={"y": np.array([0, 0, 1, 1])}, default_target="y")
    >>> build_table(raw, TableOptions()).task
    'classification'
    """
    draft = with_roles(with_numbers(raw, may_be_numbers(raw, options), options.censored), options)
    draft = with_distinct_names(with_ids(draft, options))
    coded = (*options.categorical, *groups_beside_features(options))
    draft = replace(draft, raw=with_categories(draft.raw, coded))
    draft, set_aside, grouping = without_identifiers(draft, options)
    draft = handle_rows(draft, options.missing, options.drop_unlabelled)
    task, draft = settle_task(draft, options.task, options.min_class_size)
    draft = handle_missing(draft, options.missing)
    X, names, sources, groups, encoded = _encode_texts(draft.raw)
    draft = draft.noted(*encoded)
    encoding.check_finite(X, names)
    n_missing = int(encoding.missing_per_column(X).sum())
    covariates = columns_of_covariates(draft.raw, sources, options.adjust)
    apart = covariates_apart(X, names, covariates)
    if covariates.size:
        kept = np.delete(np.arange(len(names)), covariates)
        X, names, sources = X[:, kept], [names[i] for i in kept], sources[kept]
        groups = None if groups is None else np.unique(groups[kept], return_inverse=True)[1].astype(np.intp)
        groups = None if groups is None or groups.max(initial=-1) + 1 == len(names) else groups
        draft = draft.noted(adjusted_note(options.adjust, apart["covariate_names"]))
    if X.shape[1] == 0:
        raise DataError(
            f"No feature is left besides the target. Leave fewer columns out ({parameter('ignore')}), or check that "
            "the table holds measurements."
        )
    numeric_ids = [str(names[i]) for i in encoding.numeric_identifiers(X, names)]
    if draft.groups is None:
        grouping += encoding.groupings_apart(draft.raw.targets, draft.target_name)
        grouping += [
            str(names[i]) for i in encoding.numeric_groupings(X, names) if names[i] not in numeric_ids
        ]
    ids = draft.raw.sample_ids
    return Table(
        X=_by_row(X),
        y=draft.y,
        task=task,
        feature_names=np.asarray(names, dtype=object),
        source_columns=sources,
        target_name=draft.target_name,
        feature_groups=groups,
        sample_groups=draft.groups,
        sample_ids=None if ids is None else np.asarray(ids, dtype=object),
        id_columns=(*set_aside, *numeric_ids),
        group_columns=tuple(grouping),
        annotations=draft.raw.annotations,
        n_missing=n_missing,
        adjusted_for=options.adjust,
        **apart,
        notes=draft.notes,
        source=source,
    )


def _by_row(X: Any) -> Any:
    """A small array by row, as arrays of Python mostly are: loops for the other order are then never compiled."""
    is_small = isinstance(X, np.ndarray) and X.nbytes <= SMALL_COPY_BYTES
    return np.ascontiguousarray(X) if is_small else X


def _encode_texts(
    raw: RawTable,
) -> tuple[Any, list[str], NDArray[np.intp], NDArray[np.intp] | None, tuple[str, ...]]:
    """All features in the order of the file, with the levels of a text column as one group, and notes."""
    names = raw.numeric_names()
    sources = raw.positions
    if not raw.texts:
        return raw.values, names, sources, None, ()
    blocks = []
    for position, cells in raw.texts.items():
        encoded = encoding.encode(cells)
        blocks.append(encoded.indicators)
        names += [f"{raw.names[position]}={level}" for level in encoded.levels]
        sources = np.concatenate([sources, np.full(len(encoded.levels), position, dtype=np.intp)])
    note = (
        f"{counted(len(raw.texts), 'text column')} became {counted(sum(b.shape[1] for b in blocks), 'column')} of "
        f"zeros and ones: {shown_list([raw.names[position] for position in raw.texts])}."
    )
    if any(b.shape[1] > 1 for b in blocks):
        note += " Those of one text column are selected together or not at all."
    order = np.argsort(sources, kind="stable")
    X = side_by_side(raw.values, np.concatenate(blocks, axis=1), "Columns of text")[:, order]
    ordered_sources = sources[order]
    groups = np.unique(ordered_sources, return_inverse=True)[1].astype(np.intp)
    several = len(np.unique(groups)) < len(groups)
    return X, [names[i] for i in order], ordered_sources, groups if several else None, (note,)


# -- Files to tables in one call ----------------------------------------------------------------------


def read_table(
    path: str | Path,
    target: str | None = None,
    *,
    samples: str | Path | None = None,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    transpose: bool = False,
    sheet: str | int | None = None,
    header_row: int | None = None,
    with_columns: Sequence[str] = (),
    **options: Any,
) -> Table:
    """Read a CSV, TSV, Excel, ODS, Parquet, Arrow, NPZ, LIBSVM, MAT, ARFF or h5ad file, compressed or not.

    Parameters
    ----------
    path : str or Path
        The file. The ending of its name, or its content, says which format it has. "-" is standard input.
    target : str or None, default=None
        The column to predict. None: the target of formats that have one, such as LIBSVM.
    samples : str, Path or None, default=None
        A second file with one row per sample that holds the target. It is joined by the names of the samples.
    delimiter : str or None, default=None
        Character between two cells of a text file. None: the one that fits the file.
    decimal_comma : bool, default=False
        Whether decimals are written with a comma, as in 2,5.
    encoding : str or None, default=None
        Encoding of text files, such as "gb18030". None: detected from the content.
    transpose : bool, default=False
        Whether the samples are in columns.
    sheet : str, int or None, default=None
        Name or number of the sheet of a workbook. None: the first sheet that holds a table.
    header_row : int or None, default=None
        Number of the line or row that holds the names of the columns. None: found from the cells.
    with_columns : list of str, default=()
        Columns of ``samples`` that become features too.
    **options : object
        The fields of ``TableOptions``, such as ``task`` or ``ignore``.

    Returns
    -------
    Table
        The features, the target and notes about what was decided.

    Examples
    --------
    >>> from zeronorm.datasets import read_table
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = file.write_text("age,dose,healed\\n31,2,yes\\n45,1,no\\n52,3,yes\\n38,1,no\\n")
    >>> table = read_table(file, "healed")
    >>> table.X.shape, table.class_counts
    ((4, 2), {'no': 2, 'yes': 2})
    """
    text: dict[str, Any] = {"decimal_comma": decimal_comma, "encoding": encoding}
    where: dict[str, Any] = {"sheet": None if sheet is None else str(sheet), "header_row": header_row}
    raw = read_raw(Path(path), delimiter=delimiter, transpose=transpose, **where, **text)
    found = TableOptions(target=target, **options)
    if samples is not None:
        raw = join_samples(raw, read_raw(Path(samples), **text), found.id, with_columns)
        found = replace(found, id=None)
    return build_table(raw, found, source=str(path))
