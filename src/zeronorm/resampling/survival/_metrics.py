"""The metrics of times to an event."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from zeronorm._types import FloatArray
from zeronorm.resampling._metrics import Metric
from zeronorm.resampling.survival._brier import IntegratedBrier, brier_times
from zeronorm.resampling.survival._calibration import calibration_slope
from zeronorm.resampling.survival._concordance import (
    UnoConcordance,
    concordance,
    concordance_outcomes,
    uno_concordance,
)
from zeronorm.resampling.survival._curves import censoring_survival, event_and_time
from zeronorm.selection.target import TimeToEvent


def _uno_of(y: NDArray[Any]) -> UnoConcordance:
    """Uno's concordance with the censoring of all samples."""
    return UnoConcordance(censoring_survival(*event_and_time(y)))


def _uno_outcomes(y_true: Any, risk: ArrayLike) -> FloatArray:
    return UnoConcordance().pairs(y_true, risk).outcomes


def _brier_of(y: NDArray[Any]) -> IntegratedBrier:
    """The integrated Brier score with the censoring and the times of all samples."""
    return IntegratedBrier(censoring_survival(*event_and_time(y)), brier_times(y))


SURVIVAL_METRICS = (
    Metric(
        "concordance",
        concordance,
        greater_is_better=True,
        label="concordance",
        bounds=(0.0, 1.0),
        outcomes="pairs",
        sample_outcomes=concordance_outcomes,
        tasks=(TimeToEvent.task,),
    ),
    Metric(
        "uno_concordance",
        uno_concordance,
        greater_is_better=True,
        label="Uno's concordance",
        bounds=(0.0, 1.0),
        outcomes="pairs",
        sample_outcomes=_uno_outcomes,
        tasks=(TimeToEvent.task,),
        of_target=_uno_of,
    ),
    Metric(
        "integrated_brier_score",
        IntegratedBrier(),
        response="model",
        label="integrated Brier score",
        bounds=(0.0, 1.0),
        tasks=(TimeToEvent.task,),
        of_target=_brier_of,
    ),
    Metric(
        "calibration_slope",
        calibration_slope,
        greater_is_better=True,
        label="calibration slope",
        tasks=(TimeToEvent.task,),
    ),
)
