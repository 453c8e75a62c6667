"""Descriptions of features, such as symbols and titles of genes, which accompany the selected features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from zeronorm._messages import OptionError
from zeronorm.datasets._joining import texts_of
from zeronorm.datasets._table import counted, shown, shown_list

if TYPE_CHECKING:
    from zeronorm.datasets._raw import RawTable
    from zeronorm.datasets._table import Table

Annotations = Mapping[str, Mapping[int, str]]  # by heading, then by the position of the column in the file


def with_annotation(table: Table, described: RawTable) -> Table:
    """The table with the descriptions of its features in ``described``, which has one row per feature.

    The column of ``described`` that holds most names of features names them; of several rows for a feature the
    first is used.
    """
    position_of = {_column_name(table, i): int(table.source_columns[i]) for i in range(table.n_features)}
    columns = {p: texts_of(described, p) for p in sorted({*described.positions.tolist(), *described.texts})}
    known = {p: sum(name in position_of for name in set(cells)) for p, cells in columns.items()}
    best = max(known, key=lambda position: known[position], default=None)
    if best is None or known[best] == 0:
        first = columns[min(columns)] if columns else []
        raise OptionError(
            f"describes none of the features: the table has {shown_list(list(position_of), 3)}, the annotation "
            f"{shown_list(first, 3)}. Give a file with a column of the names of the features.",
            "annotation",
        )
    found: dict[str, dict[int, str]] = {}
    for position, cells in columns.items():
        if position == best:
            continue
        texts = found.setdefault(described.names[position] or f"column {position + 1}", {})
        for name, text in zip(columns[best], cells, strict=True):
            if name in position_of and text not in ("", "nan"):
                texts.setdefault(position_of[name], text)
    note = (
        f"The annotation describes {known[best]} of {counted(len(position_of), 'feature')} by "
        f"{shown(described.names[best])}."
    )
    return replace(table, annotations={**table.annotations, **found}, notes=(*table.notes, note))


def _column_name(table: Table, index: int) -> str:
    """The name of the column of a feature, without the level of a text column."""
    name = str(table.feature_names[index])
    is_level = table.feature_groups is not None and "=" in name
    return name.split("=")[0] if is_level else name
