"""Curves of censored times: Kaplan–Meier, Nelson–Aalen, the survival of the censoring, Breslow's baseline hazard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function that is constant between ``times``, takes its new value at each of them, and starts at ``before``.

    Parameters
    ----------
    times : ascending times of the steps.
    values : the value from each time on.
    before : the value before the first time.
    """

    times: FloatArray
    values: FloatArray
    before: float

    def __call__(self, time: ArrayLike) -> FloatArray:
        """Values at some times; after the last step the function is constant."""
        at = np.searchsorted(self.times, np.asarray(time, dtype=np.float64), side="right")
        return np.concatenate([[self.before], self.values])[at]


@dataclass(frozen=True, eq=False)
class Counts:
    """Events, censored samples and samples at risk at each distinct time, in ascending order."""

    times: FloatArray
    events: IntArray
    censored: IntArray
    at_risk: IntArray

    @classmethod
    def of(cls, event: ArrayLike, time: ArrayLike) -> Counts:
        """Count the samples at each time; those with a time at or after it are at risk."""
        times, codes = np.unique(np.asarray(time, dtype=np.float64), return_inverse=True)
        happened = np.asarray(event, dtype=bool)
        n_all = np.bincount(codes, minlength=times.size)
        events = np.bincount(codes[happened], minlength=times.size)
        at_risk = n_all[::-1].cumsum()[::-1]
        return cls(times, events.astype(np.intp), (n_all - events).astype(np.intp), at_risk.astype(np.intp))


def event_and_time(y: Any) -> tuple[BoolArray, FloatArray]:
    """Events and times of a structured array, or of the rows of records: pairs, or dicts with these two keys."""
    values = y if isinstance(y, np.ndarray) else list(y)
    if isinstance(values, np.ndarray) and values.dtype.names:
        return np.asarray(values["event"], dtype=bool), np.asarray(values["time"], dtype=np.float64)
    pairs = [(row["event"], row["time"]) if isinstance(row, dict) else tuple(row) for row in values]
    return np.asarray([pair[0] for pair in pairs], dtype=bool), np.asarray(
        [pair[1] for pair in pairs], dtype=np.float64
    )


def kaplan_meier(event: ArrayLike, time: ArrayLike) -> StepFunction:
    r"""The estimated share of samples without event after each time (Kaplan & Meier 1958).

    .. math:: \hat S(t) = \prod_{t_i \le t} \left(1 - \frac{d_i}{n_i}\right)

    with :math:`d_i` events among the :math:`n_i` samples at risk at time :math:`t_i`.
    """
    counts = Counts.of(event, time)
    shares = np.asarray(counts.events / counts.at_risk, dtype=np.float64)
    return StepFunction(counts.times, np.asarray(np.cumprod(1.0 - shares), dtype=np.float64), 1.0)


def kaplan_meier_at(
    event: ArrayLike, time: ArrayLike, at: float, z: float
) -> tuple[float, float | None, float | None]:
    r"""Kaplan–Meier's share at one time with its limits; None where the share is 0 or 1.

    .. math:: \hat S^{\exp(\pm z\,s)}, \qquad
        s^2 = \frac{1}{\log^2 \hat S} \sum_{t_i \le t} \frac{d_i}{n_i (n_i - d_i)}

    Greenwood's variance on the scale of :math:`\log(-\log S)`, as Kalbfleisch and Prentice (2002, section 1.4).
    """
    counts, share = Counts.of(event, time), float(kaplan_meier(event, time)(at))
    if not 0.0 < share < 1.0:
        return share, None, None
    past = counts.times <= at
    n, d = counts.at_risk[past], counts.events[past]
    error = float(np.sqrt(np.sum(d / (n * (n - d))))) / abs(float(np.log(share)))
    return share, float(share ** np.exp(z * error)), float(share ** np.exp(-z * error))


def nelson_aalen(event: ArrayLike, time: ArrayLike) -> StepFunction:
    r"""The estimated cumulative hazard :math:`\hat\Lambda(t) = \sum_{t_i \le t} d_i / n_i`."""
    counts = Counts.of(event, time)
    shares = np.asarray(counts.events / counts.at_risk, dtype=np.float64)
    return StepFunction(counts.times, np.cumsum(shares), 0.0)


def censoring_survival(event: ArrayLike, time: ArrayLike) -> StepFunction:
    """The estimated share of samples that are not yet censored after each time.

    Kaplan–Meier with the two outcomes exchanged; of samples with the same time, events come before censoring.
    """
    counts = Counts.of(event, time)
    at_risk = counts.at_risk - counts.events
    leaving = np.divide(counts.censored, at_risk, out=np.zeros(counts.times.size), where=counts.censored > 0)
    return StepFunction(counts.times, np.cumprod(1.0 - leaving), 1.0)


def baseline_hazard(event: ArrayLike, time: ArrayLike, log_risk: ArrayLike) -> StepFunction:
    r"""Breslow's cumulative baseline hazard for predicted log risks η.

    .. math:: \hat\Lambda_0(t) = \sum_{t_i \le t} \frac{d_i}{\sum_{t_j \ge t_i} e^{\eta_j}}
    """
    counts = Counts.of(event, time)
    codes = np.searchsorted(counts.times, np.asarray(time, dtype=np.float64))
    risk = np.bincount(codes, weights=np.exp(np.asarray(log_risk, dtype=np.float64)))
    at_risk = risk[::-1].cumsum()[::-1]
    return StepFunction(counts.times, np.asarray(np.cumsum(counts.events / at_risk), dtype=np.float64), 0.0)
