"""Preparation of a table: samples that cannot be used, missing values, and the task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import setting
from zeronorm.datasets import _encoding as encoding
from zeronorm.datasets._raw import RawTable
from zeronorm.datasets._table import (
    DataError,
    TaskName,
    as_labels,
    check_target,
    counted,
    infer_task,
    missing_labels,
    shown,
    shown_list,
)
from zeronorm.design import Design
from zeronorm.selection.target import TASKS


@dataclass(frozen=True)
class Draft:
    """A table in preparation: possible features, target and groups of the samples, and notes."""

    raw: RawTable
    y: NDArray[Any]
    groups: NDArray[Any] | None
    target_name: str
    notes: tuple[str, ...]

    def rows(self, keep: NDArray[np.bool_]) -> Draft:
        """The draft of the marked samples."""
        groups = None if self.groups is None else self.groups[keep]
        return replace(self, raw=self.raw.rows(keep), y=self.y[keep], groups=groups)

    def noted(self, *notes: str) -> Draft:
        """The draft with more notes."""
        return replace(self, notes=(*self.notes, *notes))


def handle_rows(draft: Draft, missing: encoding.MissingChoice, drop_unlabelled: bool) -> Draft:
    """Samples without a label are an error or, like other incomplete rows, dropped on request."""
    unlabelled, n = missing_labels(draft.y), len(draft.y)
    drops_rows = missing == "drop-rows"
    if unlabelled.any() and not (drops_rows or drop_unlabelled):
        raise DataError(
            f"The target {shown(draft.target_name)} has no value in {int(unlabelled.sum())} of {n} samples (first in "
            f"data row {int(np.argmax(unlabelled)) + 1}). Fill in the values, or leave these samples out: "
            f"{setting('drop_unlabelled', True, 'set')}."
        )
    incomplete = unlabelled | rows_with_missing(draft.raw) if drops_rows else unlabelled
    if not incomplete.any():
        return draft
    if incomplete.all():
        raise DataError(
            f"Every row has missing values, so dropping them leaves none. Set {setting('missing', 'median')}."
        )
    reason = "with missing values" if drops_rows else "without a value in the target"
    return draft.rows(~incomplete).noted(f"Dropped: {counted(int(incomplete.sum()), 'row')} of {n} {reason}.")


def rows_with_missing(raw: RawTable) -> NDArray[np.bool_]:
    """Rows in which a number or a text is missing."""
    incomplete = np.zeros(raw.n_samples, dtype=bool)
    if isinstance(raw.values, Design):
        pass  # was checked when it was opened
    elif hasattr(raw.values, "tocoo"):
        entries = raw.values.tocoo()
        incomplete[entries.row[np.isnan(entries.data)]] = True
    else:
        incomplete |= np.isnan(raw.values).any(axis=1)
    for cells in raw.texts.values():
        incomplete |= np.asarray([cell is None for cell in cells])
    return incomplete


def handle_missing(draft: Draft, choice: encoding.MissingChoice) -> Draft:
    raw = draft.raw
    counts = encoding.missing_per_column(raw.values)
    text_counts = {position: sum(cell is None for cell in cells) for position, cells in raw.texts.items()}
    if not counts.any() and not any(text_counts.values()):
        return draft
    if choice == "error":
        all_counts = np.concatenate([counts, np.asarray(list(text_counts.values()), dtype=np.intp)])
        names = [*raw.numeric_names(), *(raw.names[position] for position in text_counts)]
        raise encoding.complain(all_counts, names, raw.n_samples)
    if choice == "drop-columns":
        incomplete = [
            *raw.positions[counts > 0],
            *(position for position, count in text_counts.items() if count),
        ]
        dropped = replace(draft, raw=raw.without(int(position) for position in incomplete))
        return dropped.noted(f"Dropped: {counted(len(incomplete), 'column')} with missing values.")
    empty = np.flatnonzero(counts == raw.n_samples)
    if empty.size:
        names = [raw.numeric_names()[i] for i in empty]
        start = (
            "1 column has no values at all and was"
            if empty.size == 1
            else (f"{empty.size} columns have no values at all and were")
        )
        draft = replace(draft, raw=raw.without(raw.positions[empty].tolist()))
        draft = draft.noted(f"{start} left out: {shown_list(names)}.")
    filled = counts[counts < raw.n_samples]
    if filled.any():
        draft = draft.noted(
            f"Missing numbers are filled in with the median of the column in the training samples of each fold: "
            f"{counted(int(filled.sum()), 'number')} in {counted(int(np.count_nonzero(filled)), 'column')}."
        )
    if any(text_counts.values()):
        draft = draft.noted("Missing texts were encoded as a category of their own.")
    return draft


def settle_task(draft: Draft, given: TaskName | None, min_class_size: int) -> tuple[TaskName, Draft]:
    if draft.y.dtype.kind == "O" and all(isinstance(v, (bool, np.bool_)) for v in draft.y):
        draft = replace(draft, y=draft.y.astype(str))
    task, name = given, draft.target_name
    if task is None and draft.y.dtype.names:
        task = "survival"
    if task is None:
        task, reason = infer_task(draft.y, name)
        draft = draft.noted(reason)
    has_classes = TASKS[task].has_classes
    if has_classes and min_class_size > 1:
        draft = _without_rare_classes(draft, min_class_size)
    y = check_target(draft.y, name, task, task_was_given=given is not None)
    alike = encoding.alike_but_for_case(y) if has_classes else []
    if alike:
        draft = draft.noted(
            f"The classes {shown_list(alike)} differ in upper and lower case only. If they mean the same, correct the "
            "table."
        )
    return task, replace(draft, y=y)


def _without_rare_classes(draft: Draft, least: int) -> Draft:
    labels = as_labels(draft.y)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    rare = counts < least
    if not rare.any():
        return draft
    if np.count_nonzero(~rare) < 2:
        raise DataError(
            f"Fewer than two classes of {shown(draft.target_name)} have {least} samples or more. Set "
            f"{setting('min_class_size', int(np.sort(counts)[-2]) if len(counts) > 1 else 1)} or less."
        )
    pairs = list(zip(classes[rare], counts[rare], strict=True))
    listed = ", ".join(f"{shown(str(label))} ({count})" for label, count in pairs[:5])
    more = f" and {int(rare.sum()) - 5} more" if rare.sum() > 5 else ""
    return draft.rows(~rare[codes]).noted(
        f"Left out: {counted(int(counts[rare].sum()), 'sample')} of classes with fewer than {least}, {listed}{more}."
    )
