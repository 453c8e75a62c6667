"""Kinds of targets: two classes, several classes, several labels, real numbers, times to an event.

A new kind is a class in a file of its own, listed in ``KINDS`` and ``TASKS``. The objects that it refers to by name are
registered in ``PREDICTORS`` (resampling.predictors.default), ``METRICS`` (resampling.metrics), ``BASELINES``
(workflow.chance) and ``COLUMN_CHECKS`` (datasets.table). A method lists the kinds it accepts in ``tasks``.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from zeronorm.selection.target._base import Target
from zeronorm.selection.target._labels import Binary, Labels, Multiclass, NotLabelsError
from zeronorm.selection.target._multilabel import Multilabel
from zeronorm.selection.target._real import Real
from zeronorm.selection.target._time_to_event import TimeToEvent

KINDS: dict[str, type[Target]] = {
    cls.kind: cls for cls in (Binary, Multiclass, Multilabel, Real, TimeToEvent)
}
TASKS: dict[str, type[Target]] = {cls.task: cls for cls in (Labels, Real, TimeToEvent)}

__all__ = [
    "KINDS",
    "TASKS",
    "Binary",
    "Labels",
    "Multiclass",
    "Multilabel",
    "NotLabelsError",
    "Real",
    "Target",
    "TimeToEvent",
    "target_for",
]


def target_for(y: NDArray[Any], task: str, kinds: tuple[str, ...], owner: str) -> Target:
    """The checked and encoded target y, for a ``task`` and a method that accepts these ``kinds``."""
    cls = TASKS[task]
    if issubclass(Multilabel, cls) and Multilabel.kind in kinds and Multilabel.fits(y):
        cls = Multilabel
    return cls.encode(y, owner)
