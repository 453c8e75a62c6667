"""Tests of several methods on several data sets, and McNemar's score matrix on one data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from zeronorm.evaluation._records import rows_by_method
from zeronorm.evaluation.significance._effects import EffectSize, error_difference


@dataclass(frozen=True)
class Friedman:
    """Result of the Friedman test, also in the less conservative form of Iman and Davenport.

    Parameters
    ----------
    mean_ranks : ndarray
        Mean rank of each method; 1 is best.
    statistic : float
        Friedman's statistic.
    p_value : float
        The p-value.
    f_statistic : float
        The statistic of Iman and Davenport.
    f_p_value : float
        Its p-value.
    n_datasets : int
        Number of data sets.
    concordance : float
        Kendall's coefficient of concordance, between 0 and 1.
    """

    mean_ranks: NDArray[np.float64]
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    n_datasets: int
    concordance: float


@dataclass(frozen=True)
class CriticalDifference:
    """The content of a critical-difference diagram.

    Parameters
    ----------
    methods : tuple of str
        The methods, best first.
    mean_ranks : ndarray
        Their mean ranks.
    difference : float
        The critical difference of two mean ranks.
    level : float
        Level of significance.
    groups : tuple of tuples of str
        The longest runs of methods whose mean ranks lie within the critical difference.
    p_values : ndarray
        Nemenyi's p-values of all pairs.
    friedman : Friedman
        The test before it.
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

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        The metric of every method on every data set.
    greater_is_better : bool
        Whether a greater value is better.

    Returns
    -------
    Friedman
        Mean ranks, statistics and p-values.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import friedman
    >>> errors = [[0.10, 0.20, 0.30], [0.20, 0.25, 0.40], [0.10, 0.30, 0.20], [0.15, 0.20, 0.35]]
    >>> friedman(errors, greater_is_better=False).mean_ranks.tolist()
    [1.0, 2.25, 2.75]
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

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        The metric of every method on every data set.
    methods : list of str
        Names of the methods, in the order of the columns.
    greater_is_better : bool
        Whether a greater value is better.
    level : float, default=0.05
        Level of significance.

    Returns
    -------
    CriticalDifference
        Mean ranks, groups and p-values.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import critical_difference
    >>> errors = [[0.10, 0.20, 0.30], [0.20, 0.25, 0.40], [0.10, 0.30, 0.20], [0.15, 0.20, 0.35]]
    >>> critical_difference(errors, ["a", "b", "c"], greater_is_better=False).groups
    (('a', 'b'), ('b', 'c'))
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
    groups = tuple(names[i:j] for i, j in runs_within(ranks, float(difference)))
    return CriticalDifference(names, ranks, float(difference), level, groups, p_values, test)


def runs_within(ranks: NDArray[np.float64], difference: float) -> list[tuple[int, int]]:
    """Longest runs of two or more sorted ranks that span less than the difference."""
    ends = [int(np.searchsorted(ranks, rank + difference)) for rank in ranks]
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


# -- Two classifiers on the same test samples, fold by fold --


@dataclass(frozen=True)
class McNemar:
    """Result of one McNemar test; a small ``p_value`` says that a is better than b.

    Parameters
    ----------
    only_a : int
        Number of samples that only a gets wrong.
    only_b : int
        Number of samples that only b gets wrong.
    z : float
        The statistic.
    p_value : float
        The p-value.
    difference : EffectSize
        Difference of the error rates, a minus b, with its interval.
    """

    only_a: int
    only_b: int
    z: float
    p_value: float
    difference: EffectSize

    def decision(self, level: float = 0.05) -> int:
        """1 when a is significantly better, -1 when significantly worse, else 0."""
        return int(self.p_value < level) - int(self.p_value > 1 - level)


@dataclass(frozen=True)
class ScoreMatrix:
    """Sums over the folds of the decisions of row against column.

    Parameters
    ----------
    methods : tuple of str
        The methods.
    scores : ndarray of int
        Entry (i, j) is the number of folds in which method i is significantly better than j, minus those in
        which it is worse.
    error_rates : ndarray
        Test error rate of each method.
    n_folds : int
        Number of folds.
    """

    methods: tuple[str, ...]
    scores: NDArray[np.intp]
    error_rates: NDArray[np.float64]
    n_folds: int

    def with_errors(self) -> NDArray[np.float64]:
        """The scores with the test error rates on the diagonal."""
        table = self.scores.astype(np.float64)
        np.fill_diagonal(table, self.error_rates)
        return table


def mcnemar(truth: ArrayLike, a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> McNemar:
    r"""McNemar test of the predictions ``a`` against ``b``, one-sided and without continuity correction.

    With :math:`\nu_a` samples that only a gets wrong and :math:`\nu_b` that only b gets wrong,

    .. math:: z = \frac{\nu_b - \nu_a}{\sqrt{\nu_a + \nu_b}}, \qquad p = 1 - \Phi(z),

    and z = 0 when both are 0. The difference is of the error rates, a minus b.

    Parameters
    ----------
    truth : array-like
        True labels.
    a : array-like
        Predictions of method a.
    b : array-like
        Predictions of method b.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    McNemar
        Counts, statistic, p-value and difference.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import mcnemar
    >>> found = mcnemar([0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0])
    >>> found.only_b, round(found.p_value, 3)
    (3, 0.042)
    """
    truth, a, b = np.asarray(truth), np.asarray(a), np.asarray(b)
    if not truth.shape == a.shape == b.shape or truth.ndim != 1 or truth.size == 0:
        raise ValueError(
            "The truth and both predictions must be lists of the same length, not empty. "
            f"Got shapes {truth.shape}, {a.shape} and {b.shape}."
        )
    wrong_a, wrong_b = a != truth, b != truth
    only_a, only_b = int(np.sum(wrong_a & ~wrong_b)), int(np.sum(wrong_b & ~wrong_a))
    z = (only_b - only_a) / np.sqrt(only_a + only_b) if only_a + only_b else 0.0
    effect = error_difference(only_a, only_b, truth.size, confidence=confidence)
    return McNemar(only_a, only_b, float(z), float(stats.norm.sf(z)), effect)


def score_matrix(
    truth: Sequence[ArrayLike], predictions: Mapping[str, Sequence[ArrayLike]], *, level: float = 0.05
) -> ScoreMatrix:
    """McNemar tests of all pairs of methods: one test per fold, decisions summed over the folds.

    ``truth`` has the labels of each fold, ``predictions`` those of each method in the same folds.

    Parameters
    ----------
    truth : list of array-like
        True labels of each fold.
    predictions : dict
        For each method its predictions in the same folds.
    level : float, default=0.05
        Level of significance.

    Returns
    -------
    ScoreMatrix
        Sums of decisions, and error rates.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import score_matrix
    >>> truth = [[0, 0, 1, 1, 1, 0] * 5]
    >>> found = score_matrix(truth, {"a": truth, "b": [[1, 0, 0, 1, 0, 0] * 5]})
    >>> found.scores.tolist()
    [[0, 1], [-1, 0]]
    """
    methods = tuple(predictions)
    scores = np.zeros((len(methods), len(methods)), dtype=np.intp)
    for i, row in enumerate(methods):
        for j in range(i):
            folds = zip(truth, predictions[row], predictions[methods[j]], strict=True)
            scores[i, j] = sum(mcnemar(t, a, b).decision(level) for t, a, b in folds)
            scores[j, i] = -scores[i, j]
    pooled = np.concatenate([np.asarray(fold) for fold in truth])
    errors = [
        np.mean(np.concatenate([np.asarray(fold) for fold in predictions[name]]) != pooled)
        for name in methods
    ]
    return ScoreMatrix(methods, scores, np.asarray(errors, dtype=np.float64), len(truth))


def score_matrix_of_records(records: Any, *, size: int | None = None, level: float = 0.05) -> ScoreMatrix:
    """The score matrix of the records of ``evaluate`` at one size.

    Parameters
    ----------
    records : DataFrame
        What ``evaluate`` returned.
    size : int or None, default=None
        Number of features to compare at. None: the size that each method chooses.
    level : float, default=0.05
        Level of significance.

    Returns
    -------
    ScoreMatrix
        Sums of decisions, and error rates.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import score_matrix_of_records
    >>> from zeronorm import FisherScore, RandomSelector, evaluate
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> methods = {"fisher": FisherScore(), "random": RandomSelector(random_state=0)}
    >>> records = evaluate(methods, X, y, sizes=[2])
    >>> score_matrix_of_records(records, size=2).methods
    ('fisher', 'random')
    """
    by_method = rows_by_method(records, size, ("truth", "predictions"))
    truth = [row["truth"] for row in next(iter(by_method.values()))]
    predictions = {name: [row["predictions"] for row in rows] for name, rows in by_method.items()}
    return score_matrix(truth, predictions, level=level)
