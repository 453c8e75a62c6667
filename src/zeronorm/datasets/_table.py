"""A table that is ready for a selector, with notes about everything that was decided."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, OptionError, parameter, setting
from zeronorm._types import written
from zeronorm.design import DenseDesign, Design
from zeronorm.design._joined import JoinedDesign
from zeronorm.selection.target import TASKS, Labels, Real, Target, TimeToEvent
from zeronorm.selection.target._labels import MOST_CLASSES

# -- The error of everything that reads a user's data --


class DataError(OptionError):
    """A file or table that cannot be used, in one line that says what to do.

    Parameters
    ----------
    message : str
        The text, which becomes one line.
    parameter : str or None, default=None
        The option that is the subject of the text.

    Examples
    --------
    >>> from zeronorm.datasets import DataError, read_table
    >>> try:
    ...     read_table("nothing.csv")
    ... except DataError as error:
    ...     print(str(error)[:30])
    There is no file 'nothing.csv'
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(" ".join(message.split()), parameter)


def shown(name: str, limit: int = 60) -> str:
    """A name for one line of text: quoted, without line breaks, cut when long."""
    if not name.strip():
        return f"{written(name)} (no name)"
    text = written(name)
    return text if len(text) <= limit else f"{text[:limit]}…' ({len(name)} characters)"


def shown_list(names: list[str], limit: int = 5) -> str:
    """The first names of a list, for one line of text."""
    listed = ", ".join(shown(name) for name in names[:limit])
    return listed + (f" and {len(names) - limit} more" if len(names) > limit else "")


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 column, 2 columns."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# -- Numbers that were read as text --

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_DECORATED = re.compile(r"[<>≤≥~$€£]?\s*[+-]?\d[\d, ']*(\.\d+)?\s*[%$€£]?")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( .*)?")
DATES_AS_NUMBERS = "Turn them into numbers, for instance days since a date."


def is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def has_decimal_commas(cells: Sequence[str]) -> bool:
    return len(cells) > 0 and all(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)


def are_dates(cells: Sequence[str]) -> bool:
    return len(cells) > 0 and all(_DATE.fullmatch(cell) for cell in cells)


def first_decorated(cells: Sequence[str]) -> str | None:
    """The first number with a sign such as % or $, or a separator of thousands, where all others are numbers too."""
    odd = [cell for cell in cells if not is_float(cell)]
    return odd[0] if odd and all(_DECORATED.fullmatch(cell) for cell in odd) else None


def disguise_of(cells: Sequence[str]) -> str | None:
    """A description of numbers that were read as text, with the remedy; None for other text."""
    if has_decimal_commas(cells):
        return f"numbers with a decimal comma, such as {shown(cells[0])}. {setting('decimal_comma', True, 'Set')}."
    if are_dates(cells):
        return f"dates, such as {shown(cells[0])}. {DATES_AS_NUMBERS}"
    decorated = first_decorated(cells)
    if decorated is not None:
        return f"numbers with signs in or around them, such as {shown(decorated)}. Write plain numbers."
    return None


TaskName = Literal["classification", "regression", "survival"]


@dataclass(frozen=True)
class Table:
    """Features and target, with their names and groups.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The features, as floats.
    y : ndarray of shape (n_samples,)
        Labels, real targets, or events and times (a structured array).
    task : {"classification", "regression", "survival"}
        What y holds.
    feature_names : ndarray of str
        One name per column of X, as in the file. Levels of a text column are called "column=level".
    source_columns : ndarray of int
        For each column of X, the position of its column in the file. Levels of one text column share it.
    target_name : str
        The column or variable that holds the target.
    feature_groups : ndarray of int or None, default=None
        A group code per column, when levels of one text column belong together.
    sample_groups : ndarray or None, default=None
        One label per sample, when samples belong together (patients, batches).
    sample_ids : ndarray or None, default=None
        Names of the samples.
    id_columns : tuple of str, default=()
        Columns that look like identifiers. Those of text are left out of X, and a note says so.
    group_columns : tuple of str, default=()
        Columns that look like patients or batches while no groups of samples are known. Those of text are
        left out of X.
    covariates : ndarray of shape (n_samples, n_covariates) or None, default=None
        Columns that are in every model beside the features, such as age or a batch; see ``adjust`` of ``select``.
    covariate_names : tuple of str, default=()
        One name per column of ``covariates``.
    adjusted_for : tuple of str, default=()
        The columns of the file that ``covariates`` come from.
    annotations : mapping, default={}
        Descriptions of the columns, such as the titles of genes: by heading, then by position in the file.
    n_missing : int, default=0
        How many values of X and of the covariates are missing (NaN).
    notes : tuple of str, default=()
        Sentences about what was inferred, encoded, filled in or left out.
    source : str, default=''
        Where the data come from.

    Examples
    --------
    >>> from zeronorm.datasets import load_dataset
    >>> table = load_dataset("linear-toy")
    >>> table.n_samples, table.n_features, table.task
    (30, 202, 'classification')
    """

    X: Any
    y: NDArray[Any]
    task: TaskName
    feature_names: NDArray[Any]
    source_columns: NDArray[np.intp]
    target_name: str
    feature_groups: NDArray[np.intp] | None = None
    sample_groups: NDArray[Any] | None = None
    sample_ids: NDArray[Any] | None = None
    id_columns: tuple[str, ...] = ()
    group_columns: tuple[str, ...] = ()
    covariates: NDArray[np.float64] | None = None
    covariate_names: tuple[str, ...] = ()
    adjusted_for: tuple[str, ...] = ()
    annotations: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    n_missing: int = 0
    notes: tuple[str, ...] = ()
    source: str = ""

    @cached_property
    def target(self) -> Target:
        """The target, encoded."""
        return TASKS[self.task].of(self.y)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def with_covariates(self) -> Any:
        """The features, followed by the covariates where there are any."""
        if self.covariates is None:
            return self.X
        if isinstance(self.X, Design):
            return JoinedDesign(self.X, DenseDesign(np.asfortranarray(self.covariates)))
        if hasattr(self.X, "tocsr"):
            import scipy.sparse as sp

            return sp.hstack([self.X, sp.csr_matrix(self.covariates)]).tocsr()
        return np.concatenate([self.X, self.covariates], axis=1)

    @property
    def positions_of_covariates(self) -> NDArray[np.intp]:
        """The columns of ``with_covariates`` that are covariates."""
        return np.arange(self.n_features, self.n_features + len(self.covariate_names))

    @property
    def class_counts(self) -> dict[str, int]:
        """Samples per class; empty without classes."""
        if self.target.classes is None:
            return {}
        return dict(zip(map(str, self.target.classes), self.target.strata_sizes().tolist(), strict=True))

    def to_frame(self) -> Any:
        """The features with their names, so that a selector names what it chose.

        Returns
        -------
        DataFrame
            Of polars where it is installed, else of pandas.
        """
        if not isinstance(self.X, np.ndarray):
            raise DataError(
                "Only dense features fit into a data frame. Use the attributes X and feature_names."
            )
        names = [str(name) for name in self.feature_names]
        try:
            import polars
        except ImportError:
            import pandas

            return pandas.DataFrame(self.X, columns=names)
        return polars.DataFrame(self.X, schema=names, orient="row")


# -- The target: checks, and whether it holds classes or numbers --


FEWEST_SAMPLES_PER_CLASS = 2
QUANTITY = f" If the target is a quantity and not a class, set {setting('task', 'regression')}."


def infer_task(y: NDArray[Any], name: str) -> tuple[TaskName, str]:
    """The task that fits the target, and a sentence that says why.

    Text and booleans are classes. Numbers are classes when they are whole, take at most 20 values and
    each value has at least two samples on average; otherwise the task is regression.
    """
    reasons = ((task, target.recognised(y)) for task, target in TASKS.items())
    task, reason = next(found for found in reasons if found[1] is not None)
    return cast("TaskName", task), Message(f"The target {shown(name)} {reason}")


def check_target(y: NDArray[Any], name: str, task: TaskName, *, task_was_given: bool) -> NDArray[Any]:
    """The target as labels (text or whole numbers) or floats, or an error with the remedy."""
    if len(y) < 2:
        raise DataError(
            f"The table has {counted(len(y), 'sample')}. Add samples: at least two of each class are needed."
        )
    if y.dtype.names and task != TimeToEvent.task:
        raise DataError(
            f"The target {shown(name)} holds times and events, which {task} cannot use. Set "
            f"{setting('task', TimeToEvent.task)}."
        )
    return COLUMN_CHECKS[TASKS[task]](y, name, task_was_given)


def _check_labels(y: NDArray[Any], name: str, task_was_given: bool) -> NDArray[Any]:
    labels = as_labels(y)
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise DataError(
            f"The target {shown(name)} is constant: all {len(y)} samples are {shown(str(classes[0]))}. "
            f"Choose another column ({parameter('target')})."
        )
    all_differ = len(classes) == len(y) > FEWEST_SAMPLES_PER_CLASS
    if all_differ or (len(classes) > MOST_CLASSES and not task_was_given):
        _refuse_disguised(y, name)
    if all_differ and y.dtype.kind in "iuf":
        raise DataError(
            f"The target {shown(name)} is different in each of the {len(y)} samples, like an identifier. "
            f"Choose another column ({parameter('target')}), or set {setting('task', 'regression')} if these are "
            "measurements."
        )
    if all_differ:
        raise DataError(
            f"The target {shown(name)} holds another text in each of the {len(y)} samples, like an identifier. "
            f"Choose another column ({parameter('target')})."
        )
    rare = [str(c) for c, n in zip(classes, counts, strict=True) if n < FEWEST_SAMPLES_PER_CLASS]
    if rare:
        raise DataError(
            f"The class {shown(rare[0])} of {shown(name)} has only one sample"
            + (f" ({len(rare)} classes do)" if len(rare) > 1 else "")
            + ", so it cannot be in both training and test data. Merge it with another, or leave it out: set "
            f"{setting('min_class_size', 2)}." + QUANTITY * (y.dtype.kind in "iuf")
        )
    return labels


def _refuse_disguised(y: NDArray[Any], name: str) -> None:
    disguise = disguise_of([str(cell) for cell in y]) if y.dtype.kind in "OU" else None
    if disguise is not None:
        raise DataError(f"The target {shown(name)} holds {disguise}")


def _check_numbers(y: NDArray[Any], name: str, task_was_given: bool) -> NDArray[np.float64]:
    try:
        numbers = y.astype(np.float64)
    except ValueError as error:
        _refuse_disguised(y, name)
        cells = [str(cell) for cell in y]
        example = next(cell for cell in cells if not is_float(cell))
        is_label = len(set(cells)) < len(cells)
        remedy = (
            f"Set {setting('task', 'classification')}."
            if is_label
            else f"Choose another column ({parameter('target')})."
        )
        raise DataError(
            f"The target {shown(name)} holds text, such as {shown(example)}, which regression cannot use. {remedy}"
        ) from error
    if not np.all(np.isfinite(numbers)):
        raise DataError(f"The target {shown(name)} holds infinite values. Correct or remove these rows.")
    if np.ptp(numbers) == 0.0:
        raise DataError(
            f"The target {shown(name)} is constant: all {len(y)} samples are {numbers[0]:g}. "
            f"Choose another column ({parameter('target')})."
        )
    whole = np.all(numbers == np.round(numbers))
    if not task_was_given and whole and len(np.unique(numbers)) == len(numbers):
        raise DataError(
            f"The target {shown(name)} is a different whole number in each of the {len(y)} samples, like an "
            f"identifier. Choose another column ({parameter('target')}), or set {setting('task', 'regression')} if "
            "these are measurements."
        )
    return numbers


def _check_times(y: NDArray[Any], name: str, task_was_given: bool) -> NDArray[Any]:
    """Events and times, or an error with the remedy."""
    if not y.dtype.names:
        raise DataError(
            f"The target {shown(name)} holds one value per sample, but a time to an event needs two columns: "
            f"{parameter('time')} with the time and {parameter('event')} with 1 (it happened) or 0 (censored)."
        )
    event, time = y["event"], y["time"]
    if not event.any():
        raise DataError(
            f"The target {shown(name)} has no events: all {len(y)} samples are censored. Check which value means that "
            f"the event happened ({parameter('event')})."
        )
    if np.ptp(time) == 0.0:
        raise DataError(
            f"The target {shown(name)} has one time for all samples, {time[0]:g}. Check {parameter('time')}."
        )
    return y


COLUMN_CHECKS: dict[type[Target], Callable[[NDArray[Any], str, bool], NDArray[Any]]] = {
    Labels: _check_labels,
    Real: _check_numbers,
    TimeToEvent: _check_times,
}


def as_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Text as text, whole numbers as integers, other numbers as their text."""
    if y.dtype.kind in "biu":
        return y
    if y.dtype.kind == "f":
        return y.astype(np.int64) if np.all(y == np.round(y)) else y.astype(str)
    return np.asarray([str(label) for label in y])


def missing_labels(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the target is missing."""
    if y.dtype.names:
        return np.asarray(np.isnan(y["time"]), dtype=bool)
    if y.dtype.kind == "f":
        return np.asarray(np.isnan(y), dtype=bool)
    if y.dtype.kind == "O":
        return np.asarray([v is None or v != v for v in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)
