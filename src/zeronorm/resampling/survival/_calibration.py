"""The calibration slope of predicted log risks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import BoolArray, FloatArray
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
    return _Fit.of(y_true, log_risk).slope


def slope_and_error(y_true: Any, log_risk: ArrayLike, groups: ArrayLike | None = None) -> tuple[float, float]:
    """The calibration slope and its standard error: that of the likelihood, or with groups of dependent samples Lin and
    Wei's (1989) from the sums of the score residuals of each group.
    """
    fit = _Fit.of(y_true, log_risk)
    if groups is None:
        return fit.slope, fit.error
    return fit.slope, fit.error**2 * float(np.linalg.norm(_sums(fit.score_residuals(), groups)))


def _sums(values: FloatArray, groups: ArrayLike) -> FloatArray:
    """The sum of the values of each group, a little larger where groups are few."""
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    n_groups = int(codes.max()) + 1
    return np.asarray(np.bincount(codes, weights=values) * np.sqrt(n_groups / max(1, n_groups - 1)))


def log_ratio_of_events(
    y_true: Any, expected: ArrayLike, groups: ArrayLike | None = None
) -> tuple[float, float]:
    r"""The logarithm of observed over expected events, and its standard error (Crowson, Atkinson & Therneau 2016).

    ``expected`` has the cumulative hazard of each sample at its own time. With O events and the ratio r the error is
    that of the sums of observed less r times expected events (of samples, or of groups) over O, and at least that of a
    Poisson count, :math:`1/\sqrt O`: where risks are predicted badly, the expected events vary as well.
    """
    event, predicted = event_and_time(y_true)[0], np.asarray(expected, dtype=np.float64)
    observed, total = float(event.sum()), float(predicted.sum())
    if observed == 0.0 or not 0.0 < total < np.inf:
        raise ValueError("The ratio of observed to expected events is not defined: there are no events.")
    left = event - observed / total * predicted
    units = np.arange(len(left)) if groups is None else groups
    error = max(float(np.linalg.norm(_sums(left, units))) / observed, 1.0 / np.sqrt(observed))
    return float(np.log(observed / total)), error


@dataclass(frozen=True, eq=False)
class _Fit:
    """A Cox model of one column: the predicted log risks in standard deviations (``eta``, ``scale``).

    Attributes
    ----------
    weight : of the standardised log risk.
    curvature : of the partial likelihood at this weight.
    """

    event: BoolArray
    time: FloatArray
    eta: FloatArray
    scale: float
    weight: float
    curvature: float

    @classmethod
    def of(cls, y_true: Any, log_risk: ArrayLike) -> _Fit:
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
                return cls(event, time, standard, scale, slope, curvature)
        raise ValueError(
            "The calibration slope is infinite: the predicted risks put the events in perfect order. Use larger folds."
        )

    @property
    def slope(self) -> float:
        return self.weight / self.scale

    @property
    def error(self) -> float:
        return 1.0 / (self.scale * float(np.sqrt(self.curvature)))

    def score_residuals(self) -> FloatArray:
        r"""What each sample adds to the derivative of the likelihood in the slope (Lin & Wei 1989):

        .. math:: \delta_i (\eta_i - \bar\eta(t_i)) - \sum_{t_k \le t_i} \frac{d_k\, e^{\beta\eta_i}}{S_0(t_k)}
            (\eta_i - \bar\eta(t_k)).
        """
        counts = Counts.of(self.event, self.time)
        codes = np.searchsorted(counts.times, self.time)
        risk = np.exp(self.weight * self.eta)
        at_risk, total = (
            np.bincount(codes, weights=part)[::-1].cumsum()[::-1] for part in (risk, risk * self.eta)
        )
        mean, step = total / at_risk, counts.events / at_risk
        hazard, weighted = np.cumsum(step)[codes], np.cumsum(step * mean)[codes]
        residual = self.event * (self.eta - mean[codes]) - risk * (self.eta * hazard - weighted)
        return np.asarray(self.scale * residual)


def _derivatives(
    slope: float, eta: FloatArray, codes: Any, counts: Counts, observed: float
) -> tuple[float, float]:
    """Slope and curvature of the partial likelihood."""
    risk = np.exp(slope * eta - np.max(slope * eta))
    sums = [np.bincount(codes, weights=risk * eta**power)[::-1].cumsum()[::-1] for power in range(3)]
    mean = sums[1] / sums[0]
    return observed - float(counts.events @ mean), float(counts.events @ (sums[2] / sums[0] - mean**2))
