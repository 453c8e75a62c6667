"""The true values of new samples in the words of a model: other spellings, missing values, numbers as text."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import OptionError, parameter
from zeronorm.datasets._numbers import with_numbers
from zeronorm.datasets._raw import RawTable, no_such_column
from zeronorm.datasets._table import DataError, counted, missing_labels, shown, shown_list
from zeronorm.selection.target import TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zeronorm.result._models import LinearModel

MOST_SHOWN = 5
EMPTY = {"", "na", "n/a", "nan", "null", "none", "?", "<na>"}


def outcome_column(raw: RawTable, name: str, option: str = "target") -> NDArray[Any]:
    """A column of the new data by its name; text columns that hold numbers are read as numbers where they are used."""
    if name in raw.targets:
        return np.asarray(raw.targets[name])
    positions = [position for position, known in enumerate(raw.names) if known == name]
    if not positions:
        raise no_such_column([*raw.names, *raw.targets], name, option, "the new data")
    if len(positions) > 1:
        raise OptionError(
            f"names {shown(name)}, the name of {len(positions)} columns. Rename all but one.", option
        )
    return raw.column(positions[0])


def true_values(values: NDArray[Any], model: LinearModel, name: str) -> tuple[NDArray[Any], list[str]]:
    """The true values as the model writes them, None (or NaN) where they are missing, and notes about them."""
    read = _labels if TASKS[model.task].has_classes else _numbers
    truth, notes = read(values, model, name)
    absent = missing_labels(truth)
    if absent.all():
        raise DataError(
            f"The column {shown(name)} has no value in any of the {len(truth)} new samples, so that nothing can be "
            f"scored. Fill it in, or leave {parameter('target', 'the name')} out to predict only."
        )
    if absent.any():
        notes.append(
            f"{counted(int(absent.sum()), 'sample')} without a value of {shown(name)}: predicted, not scored."
        )
    return truth, notes


def _numbers(values: NDArray[Any], model: LinearModel, name: str) -> tuple[NDArray[Any], list[str]]:
    if values.dtype.kind in "biuf":
        truth = values.astype(np.float64)
    else:
        cells = [None if _is_empty(cell) else str(cell) for cell in values]
        empty = np.empty((len(cells), 0))
        alone = RawTable(names=[name], values=empty, positions=np.empty(0, dtype=np.intp), texts={0: cells})
        read = with_numbers(alone)
        if 0 in read.texts:
            example = next((cell for cell in cells if cell is not None), None)
            if example is not None:
                raise DataError(
                    f"The column {shown(name)} of the new data holds text, such as {shown(example)}, but the model "
                    "predicts a number. Choose another column."
                )
            return np.full(len(cells), np.nan), []
        return _finite(read.column(0), name), list(read.notes)
    return _finite(truth, name), []


def _finite(truth: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if np.isinf(truth).any():
        raise DataError(
            f"The column {shown(name)} of the new data holds infinite values. Correct these rows."
        )
    return truth


def _labels(values: NDArray[Any], model: LinearModel, name: str) -> tuple[NDArray[Any], list[str]]:
    """The labels of the model; other spellings are matched where only case and spaces differ."""
    exact = {_canonical(label): label for label in model.classes}
    loose = _unambiguous([(_loosened(text), label) for text, label in exact.items()])
    truth, respelled, unknown = np.full(len(values), None, dtype=object), Counter[str](), Counter[str]()
    for row, cell in enumerate(values):
        if _is_empty(cell):
            continue
        text = _canonical(cell)
        if text in exact:
            truth[row] = exact[text]
        elif _loosened(text) in loose:
            truth[row] = loose[_loosened(text)]
            respelled[text] += 1
        else:
            unknown[text] += 1
    if unknown:
        raise _unknown_labels(unknown, list(exact), name)
    notes = [
        f"{counted(count, 'sample')} of {shown(name)} with {shown(text)}: taken as "
        f"{shown(str(loose[_loosened(text)]))}."
        for text, count in respelled.items()
    ]
    return truth, notes


def _is_empty(cell: Any) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and cell.strip().casefold() in EMPTY)


def _canonical(label: Any) -> str:
    """One text for 1, 1.0 and "1"."""
    if isinstance(label, (bool, np.bool_)):
        return str(bool(label))
    if isinstance(label, (int, float, np.number)):
        return str(int(label)) if float(label).is_integer() else str(float(label))
    text = str(label).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else text


def _loosened(text: str) -> str:
    return " ".join(text.casefold().split())


def _unambiguous(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(text for text, _ in pairs)
    return {text: label for text, label in pairs if counts[text] == 1}


def _unknown_labels(unknown: Counter[str], known: list[str], name: str) -> DataError:
    texts = [text for text, _ in unknown.most_common()]
    hints = {text: get_close_matches(text, known, n=1) for text in texts[:MOST_SHOWN]}
    similar = [f"{shown(text)} for {shown(found[0])}" for text, found in hints.items() if found]
    hint = f" Is {', '.join(similar)} another spelling? Write it as the model does." if similar else ""
    return DataError(
        f"The column {shown(name)} of the new data holds {shown_list(texts, MOST_SHOWN)} "
        f"({counted(unknown.total(), 'sample')}), but the model knows the classes "
        f"{shown_list(known, MOST_SHOWN)}.{hint} A class that the model does not know cannot be scored: leave the "
        "target of these samples empty to only predict them."
    )
