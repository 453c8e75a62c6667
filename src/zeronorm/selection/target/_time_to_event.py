"""A time-to-event target: how long each sample was observed, and whether that ended with the event."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.selection._sample_groups import Exchange, exchange_of, group_codes
from zeronorm.selection.target._base import Target
from zeronorm.selection.target._event_columns import EVENT_AND_TIME, strata_of, structured

FEWEST_EVENTS_PER_FOLD = 5  # with fewer, the concordance of a fold is a mean over a handful of samples


class TimeToEvent(Target):
    """One time per sample and whether the event happened then; otherwise the sample was censored.

    ``values`` is a structured array with the fields ``event`` (bool) and ``time`` (float), as in scikit-survival, and
    possibly ``stratum`` (int): only samples of one stratum are then compared.
    """

    kind = "survival"
    task = "survival"
    estimator_type = None
    has_classes = False
    is_stratified = True
    needs_positive = True
    metrics = ("concordance", "uno_concordance")
    scoring = "concordance"
    predictors: ClassVar = {"linear": "cox", "gaussian": "cox"}
    baseline = "kaplan-meier"
    smooth_loss = "cox"

    @classmethod
    def prepared(cls, y: Any) -> Any:
        return y if y is None else structured(y)

    @classmethod
    def encode(cls, y: Any, owner: str) -> TimeToEvent:
        target = cls.of(y)
        event, time = target.event, target.time
        if not event.any():
            raise ValueError(
                f"{owner} needs events in y. Got {len(time)} censored samples and no event; check which value of the "
                "event column means that the event happened (1 or True)."
            )
        if np.all(time == time[0]):
            raise ValueError(
                f"{owner} needs times that differ. Got {time[0]:g} for all {len(time)} samples, so that none of them "
                "can be compared."
            )
        return target

    @classmethod
    def of(cls, y: Any) -> TimeToEvent:
        return cls(structured(y))

    @classmethod
    def of_columns(cls, columns: FloatArray) -> TimeToEvent:
        """The target from what ``columns`` returns."""
        values = np.empty(len(columns), dtype=EVENT_AND_TIME)
        values["event"], values["time"] = ~np.signbit(columns).ravel(), np.abs(columns).ravel()
        return cls(values)

    @classmethod
    def recognised(cls, y: NDArray[Any]) -> str | None:
        return f"holds events and times, so the task is {cls.task}." if y.dtype.names else None

    @property
    def event(self) -> NDArray[np.bool_]:
        """Whether the event happened, for each sample."""
        return np.asarray(self.values["event"])

    @property
    def time(self) -> FloatArray:
        """The time of the event or of the censoring of each sample."""
        return np.asarray(self.values["time"])

    @property
    def stratum(self) -> NDArray[np.int64] | None:
        """The code of the stratum of each sample, if there are strata."""
        return strata_of(self.values)

    def columns(self) -> FloatArray:
        """One column: the time of an event, and minus the time of a censoring (-0.0 for time zero)."""
        return np.where(self.event, self.time, -self.time)[:, None]

    @classmethod
    def strata_of(cls, y: Any) -> NDArray[Any]:
        return structured(y)["event"]

    def fewest_in_folds(self) -> int:
        """The number of events; folds without censored samples are as good as others."""
        return int(self.event.sum())

    def exchange(self, groups: NDArray[Any] | None = None, design: str = "auto") -> Exchange:
        """Times are exchanged together with their events, and only within strata."""
        scale = np.array([max(float(np.std(x)), np.finfo(float).tiny) for x in (self.event, self.time)])
        if self.stratum is not None:
            both = [self.stratum] if groups is None else [self.stratum, group_codes(groups)]
            groups, design = np.unique(np.column_stack(both), axis=0, return_inverse=True)[1].ravel(), "block"
        return exchange_of(np.column_stack([self.event, self.time]) / scale, groups, design)

    @classmethod
    def check_folds(cls, y: Any, n_folds: int) -> None:
        """Warn of folds with so few events that their scores say little."""
        n_events = int(np.count_nonzero(structured(y)["event"]))
        if n_events < FEWEST_EVENTS_PER_FOLD * n_folds:
            warnings.warn(
                f"There are {n_events} events for {n_folds} folds, fewer than {FEWEST_EVENTS_PER_FOLD} in each, so "
                "that the scores of single folds are very uncertain. Use fewer folds ('cv'), or follow the samples "
                "for longer.",
                UserWarning,
                stacklevel=3,
            )

    @classmethod
    def described(cls, n_classes: int) -> str:
        return "a time-to-event analysis"
