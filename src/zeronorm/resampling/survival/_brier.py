"""The integrated Brier score of predicted survival curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray
from zeronorm.resampling.survival._curves import StepFunction, censoring_survival, event_and_time

N_TIMES = 100
LATEST = (
    0.9  # share of the samples whose time has passed at the last time of the score: beyond it few are at risk
)


def brier_times(y: Any) -> FloatArray:
    """Equally spaced times from the first event to the time that a tenth of the samples reach."""
    event, time = event_and_time(y)
    return times_between(float(time[event].min()), float(np.quantile(time, LATEST)))


def times_between(first: float, last: float) -> FloatArray:
    """Equally spaced times of the score."""
    return np.linspace(first, max(first, last), N_TIMES)


def brier_scores(
    y: Any, survival: ArrayLike, times: ArrayLike, censoring: StepFunction | None = None
) -> FloatArray:
    r"""The Brier score of predicted probabilities of survival at each time (Graf et al. 1999).

    .. math:: BS(t) = \frac1n \sum_i \frac{[t_i \le t, \delta_i = 1]\,\hat S_i(t)^2}{\hat G(t_i)}
        + \frac{[t_i > t]\,(1 - \hat S_i(t))^2}{\hat G(t)}

    ``survival`` has one row per sample and one column per time, and Ĝ is the survival of the censoring.
    """
    return np.asarray(_brier_terms(y, survival, times, censoring).mean(axis=0))


def _brier_terms(
    y: Any, survival: ArrayLike, times: ArrayLike, censoring: StepFunction | None = None
) -> FloatArray:
    """The terms of the samples (rows) in the Brier score at each time."""
    event, time = event_and_time(y)
    at = np.asarray(times, dtype=np.float64)
    predicted = np.asarray(survival, dtype=np.float64)
    remaining = censoring or censoring_survival(event, time)

    def weight(when: FloatArray) -> FloatArray:
        share = remaining(when)
        return np.divide(1.0, share, out=np.zeros(share.shape), where=share > 0.0)

    died = event[:, None] & (time[:, None] <= at)
    at_risk = time[:, None] > at
    return np.asarray(
        died * predicted**2 * weight(time)[:, None] + at_risk * (1.0 - predicted) ** 2 * weight(at)
    )


def integrated_brier_score(
    y: Any, survival: ArrayLike, times: ArrayLike, censoring: StepFunction | None = None
) -> float:
    """The mean of the Brier scores over the range of the times, by the trapezoidal rule."""
    return float(integrated_brier_outcomes(y, survival, times, censoring).mean())


def integrated_brier_outcomes(
    y: Any, survival: ArrayLike, times: ArrayLike, censoring: StepFunction | None = None
) -> FloatArray:
    """The part of each sample in the integrated Brier score, which is their mean."""
    at, terms = np.asarray(times, dtype=np.float64), _brier_terms(y, survival, times, censoring)
    width = float(at[-1] - at[0])
    return np.asarray(np.trapezoid(terms, at, axis=1)) / width if width > 0.0 else terms[:, 0]


@dataclass(frozen=True, eq=False)
class IntegratedBrier:
    """The integrated Brier score of a fitted model; without a target, with times and censoring of the test samples.

    Parameters
    ----------
    censoring : StepFunction or None
        The survival of the censoring.
    times : ndarray or None
        The times of the scores.
    """

    censoring: StepFunction | None = None
    times: FloatArray | None = None

    def __call__(self, model: Any, X: Any, y_true: Any) -> float:
        return float(self.outcomes(model, X, y_true).mean())

    def outcomes(self, model: Any, X: Any, y_true: Any) -> FloatArray:
        """The part of each sample in the score."""
        times = brier_times(y_true) if self.times is None else self.times
        return integrated_brier_outcomes(y_true, survival_at(model, X, times), times, self.censoring)


def survival_at(model: Any, X: Any, times: FloatArray) -> FloatArray:
    """Predicted probabilities of survival, one row per sample: of our models, or of those of scikit-survival."""
    if not hasattr(model, "predict_survival_function"):
        raise ValueError(
            f"{type(model).__name__} has no predict_survival_function, which the integrated Brier score needs. Use "
            "another 'estimator', or the metric 'concordance'."
        )
    try:
        return np.asarray(model.predict_survival_function(X, times), dtype=np.float64)
    except TypeError:  # functions of time, one per sample, as in scikit-survival
        curves = model.predict_survival_function(X)
    return np.asarray([curve(np.clip(times, *curve.domain)) for curve in curves], dtype=np.float64)
