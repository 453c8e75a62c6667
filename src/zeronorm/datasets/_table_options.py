"""What the user says about the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass

from zeronorm._messages import parameter
from zeronorm.datasets import _encoding as encoding
from zeronorm.datasets._numbers import (
    CENSORED_CHOICES,
    CensoredChoice,
)
from zeronorm.datasets._table import (
    DataError,
    TaskName,
)


@dataclass(frozen=True)
class TableOptions:
    """The user's options for reading a table.

    Parameters
    ----------
    target : str or None, default=None
        The column to predict. None: the target of formats that have one.
    task : {"classification", "regression", "survival"} or None, default=None
        None infers it from the target; a note says so.
    time : str or None, default=None
        The column with the times of a target of times to an event.
    event : str or None, default=None
        The column that says whether the event happened at that time, or "column=value" with the value that says so.
    ignore : tuple of str, default=()
        Columns to leave out: names, patterns such as "AFFX*", or regular expressions such as "re:^AFFX".
    only : tuple of str, default=()
        The columns to use as features. Empty: all.
    categorical : tuple of str, default=()
        Columns whose numbers are codes of categories.
    sample_groups : str or None, default=None
        Column that says which samples belong together, such as a patient.
    id : str or None, default=None
        Column with the names of the samples.
    adjust : tuple of str, default=()
        Covariates: columns that are in every model beside the features. They may also be the sample groups.
    missing : {"median", "error", "drop-rows", "drop-columns"}, default='median'
        What to do with missing values. "median" leaves them in the table; ``select`` fills them with
        the medians of the training samples of each fold.
    censored : {"error", "half", "missing"}, default='error'
        What to do with limits of detection among numbers, such as "<0.5": an error, half of the limit, or a
        missing value. "half" takes the limit itself for values above it.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a value in the target. Otherwise they are an error.
    min_class_size : int, default=0
        Classes with fewer samples are left out.

    Examples
    --------
    >>> from zeronorm.datasets import TableOptions
    >>> TableOptions(target="healed", ignore=("age",)).missing
    'median'
    """

    target: str | None = None
    task: TaskName | None = None
    time: str | None = None
    event: str | None = None
    ignore: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    sample_groups: str | None = None
    id: str | None = None
    adjust: tuple[str, ...] = ()
    missing: encoding.MissingChoice = "median"
    censored: CensoredChoice = "error"
    drop_unlabelled: bool = False
    min_class_size: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("missing", encoding.MISSING_CHOICES), ("censored", CENSORED_CHOICES)):
            if getattr(self, name) not in choices:
                raise DataError(
                    f"must be one of {', '.join(choices)}. Got {getattr(self, name)!r} instead.", name
                )
        if (self.time is None) != (self.event is None):
            raise DataError(
                f"needs {parameter('event' if self.event is None else 'time', 'object')} as well.",
                "time" if self.event is None else "event",
            )
