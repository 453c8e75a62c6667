"""Concordance: the share of comparable pairs of samples whose predicted risks are in the order of their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.resampling.survival._curves import StepFunction, censoring_survival, event_and_time
from zeronorm.selection.target._event_columns import strata_of

NOT_DEFINED = (
    "The concordance is not defined: no sample has an event before the time of another one. Use larger test folds "
    "that are stratified by the event, or more samples."
)


@dataclass(frozen=True, eq=False)
class ComparablePairs:
    """For every sample the weighted number of its comparable pairs, and of those in the right order (ties one half).

    A pair is comparable if the sample with the earlier time has an event; at equal times, if one has an event and the
    other is censored. With strata in the target both samples are of one stratum. It is in the right order if the
    sample with the event has the greater predicted risk. Its weight is that of the sample with the event.
    """

    ordered: FloatArray
    comparable: FloatArray

    @classmethod
    def of(cls, y: Any, risk: ArrayLike, weight: ArrayLike | None = None) -> ComparablePairs:
        """Count the pairs in O(n log n)."""
        event, time = event_and_time(y)
        values = np.asarray(risk, dtype=np.float64).reshape(-1)
        if values.size != time.size:
            raise ValueError(
                f"There are {time.size} samples but {values.size} predicted risks; there must be one for each sample."
            )
        weights = np.ones(time.size) if weight is None else np.asarray(weight, dtype=np.float64)
        ranks = np.unique(values, return_inverse=True)[1].astype(np.intp)
        strata = strata_of(y)
        strata = np.zeros(time.size, dtype=np.int64) if strata is None else strata
        order = np.lexsort((~event, time, strata)).astype(
            np.intp
        )  # events come before censoring at the same time
        found = np.zeros((2, time.size))
        for own in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
            found += _count(own, event.astype(np.intp), time, ranks, weights)
        return cls(*found)

    @property
    def share(self) -> float:
        """The share of the comparable pairs that are in the right order."""
        total = float(self.comparable.sum())
        if total <= 0.0:
            raise ValueError(NOT_DEFINED)
        return float(self.ordered.sum()) / total

    @property
    def outcomes(self) -> FloatArray:
        r"""One outcome per sample, whose mean is the concordance C and whose variance over n is that of C.

        .. math:: o_i = C + n \frac{a_i - C b_i}{\sum_j b_j / 2}

        where :math:`a_i` of the :math:`b_i` pairs of sample i are in the right order (Hájek's projection).
        """
        share, total = self.share, float(self.comparable.sum())
        return np.asarray(share + 2.0 * self.ordered.size * (self.ordered - share * self.comparable) / total)


def concordance(y_true: Any, risk: ArrayLike) -> float:
    """Harrell's concordance: the share of comparable pairs in the right order, ties one half.

    Parameters
    ----------
    y_true : structured array with the fields "event" and "time"
        Outcomes of the samples.
    risk : array-like of shape (n_samples,)
        Predicted risks; the event is expected earlier where they are greater.

    Returns
    -------
    float
        1 for a perfect order, 0.5 for chance.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.evaluation import concordance
    >>> y = np.array([(True, 2.0), (False, 3.0), (True, 5.0)], dtype=[("event", bool), ("time", float)])
    >>> round(concordance(y, [1.0, 2.0, 0.0]), 3)  # of two comparable pairs one is in the right order
    0.5
    """
    return ComparablePairs.of(y_true, risk).share


def concordance_outcomes(y_true: Any, risk: ArrayLike) -> FloatArray:
    """One outcome per sample, whose mean is the concordance."""
    return ComparablePairs.of(y_true, risk).outcomes


@dataclass(frozen=True, eq=False)
class UnoConcordance:
    r"""Uno's concordance: pairs are weighted by :math:`1 / \hat G(t)^2`, so that censoring does not distort it.

    Parameters
    ----------
    censoring : StepFunction or None
        The survival :math:`\hat G` of the censoring; None estimates it from the samples that are evaluated.
    """

    censoring: StepFunction | None = None

    def __call__(self, y_true: Any, risk: ArrayLike) -> float:
        return self.pairs(y_true, risk).share

    def pairs(self, y_true: Any, risk: ArrayLike) -> ComparablePairs:
        """The weighted pairs."""
        event, time = event_and_time(y_true)
        remaining = (self.censoring or censoring_survival(event, time))(time)
        # An event after the last censored sample of those that gave G has no weight.
        weight = np.divide(1.0, remaining**2, out=np.zeros(time.size), where=event & (remaining > 0.0))
        return ComparablePairs.of(y_true, risk, weight)


def uno_concordance(y_true: Any, risk: ArrayLike) -> float:
    """Uno's concordance, with the survival of the censoring estimated from the same samples.

    Parameters
    ----------
    y_true : structured array with the fields "event" and "time"
        Outcomes of the samples.
    risk : array-like of shape (n_samples,)
        Predicted risks.

    Returns
    -------
    float
        1 for a perfect order, 0.5 for chance.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.evaluation import uno_concordance
    >>> y = np.array([(True, 2.0), (False, 3.0), (True, 5.0)], dtype=[("event", bool), ("time", float)])
    >>> uno_concordance(y, [2.0, 1.0, 0.0])
    1.0
    """
    return UnoConcordance()(y_true, risk)


@kernel
def _count(
    order: IntArray, event: IntArray, time: FloatArray, ranks: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted numbers of ordered and of comparable pairs of each sample, by two passes with a binary indexed tree."""
    n = order.size
    ordered, comparable = np.zeros(time.size), np.zeros(time.size)
    later, earlier = np.zeros(time.size + 1), np.zeros(time.size + 1)
    waiting, total = n, 0.0
    # From the last sample to the first: an event meets all that come after it, except events at the same time.
    for position in range(n - 1, -1, -1):
        i = order[position]
        while waiting > position + 1 and not (
            event[i] == 1 and event[order[waiting - 1]] == 1 and time[order[waiting - 1]] == time[i]
        ):
            waiting -= 1
            _add(later, ranks[order[waiting]], 1.0)
            total += 1.0
        if event[i] == 1:
            below, upto = _sum_below(later, ranks[i]), _sum_below(later, ranks[i] + 1)
            ordered[i] += weight[i] * (0.5 * below + 0.5 * upto)
            comparable[i] += weight[i] * total
    # From the first to the last: a sample is met by all events before it, except those at the same time as its event.
    entered, total = 0, 0.0
    for position in range(n):
        i = order[position]
        while entered < position and not (event[i] == 1 and time[order[entered]] == time[i]):
            k = order[entered]
            if event[k] == 1:
                _add(earlier, ranks[k], weight[k])
                total += weight[k]
            entered += 1
        below, upto = _sum_below(earlier, ranks[i]), _sum_below(earlier, ranks[i] + 1)
        ordered[i] += total - 0.5 * below - 0.5 * upto
        comparable[i] += total
    return ordered, comparable


@kernel
def _add(tree: FloatArray, rank: int, value: float) -> None:
    """Add a value at a rank."""
    at = rank + 1
    while at < tree.size:
        tree[at] += value
        at += at & -at


@kernel
def _sum_below(tree: FloatArray, rank: int) -> float:
    """The sum of the values at smaller ranks."""
    found, at = 0.0, rank
    while at > 0:
        found += tree[at]
        at -= at & -at
    return found
