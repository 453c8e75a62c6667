"""Filters for times to an event: log-rank at the median, concordance, variance."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from zeronorm import ConcordanceScore, LogRankScore, VarianceScore


def observed(n=40, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 1)
    time = np.ceil(6.0 * rng.exponential(np.exp(-X[:, 0])))
    return X, rng.random(n) < 0.7, time


def log_rank(above, event, time):
    excess = variance = 0.0
    for t in np.unique(time[event]):
        at_risk, dying = time >= t, event & (time == t)
        n, d, share = at_risk.sum(), dying.sum(), above[at_risk].mean()
        excess += above[dying].sum() - d * share
        variance += d * (n - d) / max(n - 1, 1) * (np.mean(above[at_risk] ** 2) - share**2)
    return excess**2 / variance


def test_log_rank_is_the_formula_and_that_of_lifelines():
    X, event, time = observed()
    found = LogRankScore().fit(X, {"event": event, "time": time}).scores_
    shares = 0.5 + 0.5 * np.sign(X - np.median(X, axis=0))
    np.testing.assert_allclose(found, [log_rank(above, event, time) for above in shares.T], rtol=1e-10)
    statistics = pytest.importorskip("lifelines.statistics")
    X = np.random.default_rng(1).normal(size=X.shape)  # no sample is at the median
    found = LogRankScore().fit(X, {"event": event, "time": time}).scores_
    for x, score in zip(X.T, found, strict=True):
        above = x > np.median(x)
        expected = statistics.logrank_test(time[above], time[~above], event[above], event[~above])
        assert score == pytest.approx(expected.test_statistic, rel=1e-9)


def test_concordance_counts_all_pairs():
    X, event, time = observed()
    found = ConcordanceScore().fit(X, {"event": event, "time": time}).scores_
    for x, score in zip(X.T, found, strict=True):
        right = total = 0.0
        for i, j in combinations(range(len(x)), 2):
            first, second = (i, j) if (time[i], not event[i]) < (time[j], not event[j]) else (j, i)
            if event[first] and (time[first] < time[second] or not event[second]):
                total += 1.0
                right += float(x[first] > x[second]) + 0.5 * float(x[first] == x[second])
        assert score == pytest.approx(abs(2.0 * right / total - 1.0), abs=1e-12)


def test_variance_is_that_of_numpy_and_ignores_the_target():
    X, event, time = observed()
    X *= np.arange(1, 6)
    found = VarianceScore().fit(X, {"event": event, "time": time})
    np.testing.assert_allclose(found.scores_, X.var(axis=0))
    other = VarianceScore().fit(X, {"event": event, "time": time[::-1]})
    np.testing.assert_array_equal(other.scores_, found.scores_)
