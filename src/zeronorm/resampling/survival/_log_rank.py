"""The log-rank test: whether the hazards of several groups of samples are equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from zeronorm.resampling.survival._curves import Counts


@dataclass(frozen=True)
class LogRankTest:
    """The statistic with its degrees of freedom, and the p-value of the chi-squared distribution."""

    statistic: float
    degrees: int
    p_value: float

    def divided(self, factor: float) -> LogRankTest:
        """The test with a smaller statistic, where samples vary together."""
        statistic = self.statistic / factor
        return LogRankTest(statistic, self.degrees, chi_squared_tail(statistic, self.degrees))


def log_rank_test(
    event: ArrayLike, time: ArrayLike, groups: ArrayLike, strata: ArrayLike | None = None
) -> LogRankTest:
    r"""Compare observed with expected numbers of events (Mantel 1966).

    .. math:: (O - E)' V^- (O - E), \quad E_g = \sum_i d_i \frac{n_{gi}}{n_i}, \quad
        V_{gh} = \sum_i d_i \frac{n_i - d_i}{n_i - 1} \frac{n_{gi}}{n_i}\left([g = h] - \frac{n_{hi}}{n_i}\right)

    The sums go over the times with events and, where there are ``strata``, over the strata, such as the folds in which
    the groups were formed.
    """
    happened, times = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    difference, variance = np.zeros(names.size), np.zeros((names.size, names.size))
    layers = np.zeros(times.size, dtype=int) if strata is None else np.unique(strata, return_inverse=True)[1]
    for layer in np.unique(layers):
        rows = layers == layer
        found = _observed_less_expected(happened[rows], times[rows], codes[rows], names.size)
        difference, variance = difference + found[0], variance + found[1]
    degrees = int(np.linalg.matrix_rank(variance)) if variance.any() else 0
    statistic = float(difference @ np.linalg.pinv(variance) @ difference)
    return LogRankTest(statistic, degrees, chi_squared_tail(statistic, degrees))


def chi_squared_tail(statistic: float, degrees: int) -> float:
    """The p-value of a chi-squared statistic; 1 without degrees of freedom."""
    return float(stats.chi2.sf(statistic, degrees)) if degrees else 1.0


def _observed_less_expected(
    event: ArrayLike, time: ArrayLike, codes: ArrayLike, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """O − E of each group, and its covariance matrix."""
    counts = Counts.of(event, time)
    index, group = np.searchsorted(counts.times, time), np.asarray(codes)
    shape = (counts.times.size, n_groups)
    present, died = np.zeros(shape), np.zeros(shape)
    np.add.at(present, (index, group), 1.0)
    np.add.at(died, (index, group), np.asarray(event, dtype=float))
    share = present[::-1].cumsum(axis=0)[::-1] / counts.at_risk[:, None]
    expected = counts.events[:, None] * share
    hypergeometric = counts.events * (counts.at_risk - counts.events) / np.maximum(counts.at_risk - 1, 1)
    covariance = np.diag(hypergeometric @ share) - (hypergeometric[:, None] * share).T @ share
    return (died - expected).sum(axis=0), covariance
