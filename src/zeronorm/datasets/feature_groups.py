"""A user's file that says which features belong together."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets.errors import DataError, shown, shown_list
from zeronorm.datasets.readers import check_readable
from zeronorm.datasets.table import Table


def read_feature_groups(path: Path, table: Table, column_names: list[str] | None = None) -> NDArray[np.intp]:
    """A group code per feature.

    The file is a CSV with the columns ``feature,group`` or a JSON object from group names to lists of
    features. Features that the file does not name stand alone; levels of one text column always stay
    together. ``column_names`` are the names in the file of the data, for naming a text column as a whole.
    """
    check_readable(path)
    group_of = _read_json(path) if path.suffix.lower() == ".json" else _read_csv(path)
    sources = table.source_columns
    known: dict[str, set[int]] = {}
    for name, source in zip(table.feature_names, sources, strict=True):
        known.setdefault(str(name), set()).add(int(source))
    for place, name in enumerate(column_names or []):
        if place in set(sources.tolist()):
            known.setdefault(name, set()).add(place)
    unknown = [name for name in group_of if name not in known]
    if unknown:
        raise DataError(
            f"The groups file {shown(str(path))} names features that the table does not have: "
            f"{shown_list(unknown)}. Correct the names."
        )
    label_of = {source: group for name, group in group_of.items() for source in known[name]}
    labels = [("named", label_of[s]) if s in label_of else ("alone", str(s)) for s in sources.tolist()]
    codes: dict[tuple[str, str], int] = {}
    return np.asarray([codes.setdefault(label, len(codes)) for label in labels], dtype=np.intp)


def _read_csv(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"The groups file {shown(str(path))} cannot be read as UTF-8 CSV: {error}."
        ) from error
    if not rows or {"feature", "group"} - set(rows[0]):
        raise DataError(
            f"The groups file {shown(str(path))} must be a CSV with the columns feature,group and a row per "
            "feature, or a JSON object of lists. Correct its header."
        )
    return _without_repeats([(row["feature"] or "", row["group"] or "") for row in rows], path)


def _read_json(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"The groups file {shown(str(path))} is not valid JSON: {error}.") from error
    if not isinstance(content, dict) or not all(isinstance(members, list) for members in content.values()):
        raise DataError(f"The groups file {shown(str(path))} must map group names to lists of features.")
    empty = [group for group, members in content.items() if not members]
    if empty:
        raise DataError(
            f"The groups file {shown(str(path))} has {len(content)} groups, and {shown(empty[0])} has no feature. "
            "Remove it."
        )
    return _without_repeats(
        [(str(name), group) for group, members in content.items() for name in members], path
    )


def _without_repeats(pairs: list[tuple[str, str]], path: Path) -> dict[str, str]:
    group_of: dict[str, str] = {}
    for name, group in pairs:
        if group_of.setdefault(name, group) != group:
            raise DataError(
                f"The groups file {shown(str(path))} puts {shown(name)} into two groups. Choose one."
            )
    return group_of
