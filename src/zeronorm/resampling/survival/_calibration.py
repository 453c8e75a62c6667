"""The calibration slope of predicted log risks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray
from zeronorm.resampling.survival._curves import Counts, event_and_time

MAX_STEPS = 200
LARGEST_SLOPE = 20.0  # in standard deviations of the log risks: beyond it the events are in perfect order
LARGEST_STEP = 2.0
TOLERANCE = 1e-12
FLAT = 1e-10  # curvature per event of a likelihood without maximum


def calibration_slope(y_true: Any, log_risk: ArrayLike) -> float:
    r"""The weight of the predicted log risk in a Cox model of the evaluated samples (Breslow's ties).

    1 is calibrated; below 1 the predicted risks differ too much, as those of overfitted models do. Newton's method for

    .. math:: \sum_{\text{events } i} \left(\eta_i -
        \frac{\sum_{t_j \ge t_i} \eta_j e^{\beta\eta_j}}{\sum_{t_j \ge t_i} e^{\beta\eta_j}}\right) = 0
    """
    event, time = event_and_time(y_true)
    eta = np.asarray(log_risk, dtype=np.float64).reshape(-1)
    scale = float(eta.std())
    if scale <= 1e-12 * max(1.0, float(np.abs(eta).max(initial=0.0))) or not event.any():
        raise ValueError(
            "The calibration slope is not defined: the predicted risks do not vary, or no sample has an event."
        )
    counts = Counts.of(event, time)
    codes = np.searchsorted(counts.times, time)
    standard = (eta - eta.mean()) / scale
    observed = float(standard[event].sum())
    slope = 0.0
    for _ in range(MAX_STEPS):
        gradient, curvature = _derivatives(slope, standard, codes, counts, observed)
        if curvature <= FLAT * counts.events.sum() or abs(slope) > LARGEST_SLOPE:
            break
        step = float(np.clip(gradient / curvature, -LARGEST_STEP, LARGEST_STEP))
        slope += step
        if abs(step) < TOLERANCE * (1.0 + abs(slope)):
            return slope / scale
    raise ValueError(
        "The calibration slope is infinite: the predicted risks put the events in perfect order. Use larger folds."
    )


def _derivatives(
    slope: float, eta: FloatArray, codes: Any, counts: Counts, observed: float
) -> tuple[float, float]:
    """Slope and curvature of the partial likelihood."""
    risk = np.exp(slope * eta - np.max(slope * eta))
    sums = [np.bincount(codes, weights=risk * eta**power)[::-1].cumsum()[::-1] for power in range(3)]
    mean = sums[1] / sums[0]
    return observed - float(counts.events @ mean), float(counts.events @ (sums[2] / sums[0] - mean**2))
