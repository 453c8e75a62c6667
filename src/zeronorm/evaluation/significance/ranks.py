"""Several methods on several data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


@dataclass(frozen=True)
class Friedman:
    """Result of the Friedman test, also in the less conservative form of Iman and Davenport."""

    mean_ranks: NDArray[np.float64]
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    n_datasets: int
    concordance: float


@dataclass(frozen=True)
class CriticalDifference:
    """What a critical-difference diagram shows.

    ``methods`` and ``mean_ranks`` are sorted, best first; ``groups`` are the longest runs of methods
    whose mean ranks lie within the critical difference; ``p_values`` are Nemenyi's, for all pairs.
    """

    methods: tuple[str, ...]
    mean_ranks: NDArray[np.float64]
    difference: float
    level: float
    groups: tuple[tuple[str, ...], ...]
    p_values: NDArray[np.float64]
    friedman: Friedman


def friedman(scores: ArrayLike, *, greater_is_better: bool) -> Friedman:
    r"""Friedman test that all methods (columns) rank alike on the data sets (rows).

    .. math::

        \chi^2_F = \frac{12 N}{k (k+1)} \Bigl[ \sum_j R_j^2 - \frac{k (k+1)^2}{4} \Bigr], \qquad
        F_F = \frac{(N-1)\, \chi^2_F}{N (k-1) - \chi^2_F}

    with mean ranks :math:`R_j` (1 is best, ties share their ranks), as in Demšar (2006).
    """
    table = _score_table(scores)
    n, k = table.shape
    ranks = stats.rankdata(-table if greater_is_better else table, axis=1)
    mean_ranks = ranks.mean(axis=0)
    chi = 12 * n / (k * (k + 1)) * (float(np.sum(mean_ranks**2)) - k * (k + 1) ** 2 / 4)
    chi = max(0.0, chi)
    remaining = n * (k - 1) - chi
    f = (n - 1) * chi / remaining if remaining > 1e-12 * n * k else np.inf
    return Friedman(
        mean_ranks=mean_ranks,
        statistic=chi,
        p_value=float(stats.chi2.sf(chi, k - 1)),
        f_statistic=float(f),
        f_p_value=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        n_datasets=n,
        concordance=chi / (n * (k - 1)),
    )


def critical_difference(
    scores: ArrayLike, methods: Sequence[str], *, greater_is_better: bool, level: float = 0.05
) -> CriticalDifference:
    r"""Nemenyi's test after Friedman's.

    Two methods differ at the level when their mean ranks differ by at least

    .. math:: CD = q_\alpha \sqrt{\frac{k (k+1)}{6 N}},

    :math:`q_\alpha` being the quantile of the studentised range divided by :math:`\sqrt 2`.
    """
    test = friedman(scores, greater_is_better=greater_is_better)
    k = test.mean_ranks.size
    if len(methods) != k or len(set(methods)) != k:
        raise ValueError(f"'methods' must hold {k} different names, one per column. Got {list(methods)}.")
    unit = float(np.sqrt(k * (k + 1) / (6 * test.n_datasets)))
    difference = float(stats.studentized_range.ppf(1 - level, k, np.inf)) / np.sqrt(2) * unit
    order = np.argsort(test.mean_ranks, kind="stable")
    ranks = test.mean_ranks[order]
    names = tuple(methods[i] for i in order)
    gaps = np.abs(ranks[:, None] - ranks[None, :]) / unit * np.sqrt(2)
    p_values = np.asarray(stats.studentized_range.sf(gaps, k, np.inf), dtype=np.float64)
    np.fill_diagonal(p_values, 1.0)
    groups = tuple(names[i:j] for i, j in _runs_within(ranks, float(difference)))
    return CriticalDifference(names, ranks, float(difference), level, groups, p_values, test)


def _runs_within(ranks: NDArray[np.float64], difference: float) -> list[tuple[int, int]]:
    """Longest runs of two or more sorted ranks that span less than the difference."""
    ends = [int(np.searchsorted(ranks, rank + difference, side="left")) for rank in ranks]
    runs = [(start, end) for start, end in enumerate(ends) if end - start > 1]
    return [run for run in runs if not any(o[0] <= run[0] and run[1] <= o[1] and o != run for o in runs)]


def _score_table(scores: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise ValueError(
            "'scores' must be a table of at least two data sets (rows) and two methods (columns). "
            f"Got shape {table.shape}."
        )
    if not np.all(np.isfinite(table)):
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"'scores' must be finite. Got {table[row, column]} for data set {row}, method {column}; leave out "
            "data sets on which a method failed."
        )
    return table
