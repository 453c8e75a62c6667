"""Kaplan–Meier, Nelson–Aalen, the survival of the censoring, Breslow's baseline and the log-rank test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from resampling.survival.made_times import outcomes, tied
from zeronorm.resampling.survival._curves import (
    baseline_hazard,
    censoring_survival,
    event_and_time,
    kaplan_meier,
    nelson_aalen,
)
from zeronorm.resampling.survival._log_rank import log_rank_test


def test_curves_by_hand():
    event, time = [True, False, True, True, False], [1.0, 1.0, 2.0, 2.0, 3.0]
    assert np.allclose(
        kaplan_meier(event, time)([0.5, 1.0, 1.5, 2.0, 9.0]), [1, 4 / 5, 4 / 5, 4 / 15, 4 / 15]
    )
    assert np.allclose(nelson_aalen(event, time)([0.5, 1.0, 2.0]), [0, 1 / 5, 1 / 5 + 2 / 3])
    # At time 1 the event leaves before the censored sample: one of four is censored.
    assert np.allclose(censoring_survival(event, time)([0.5, 1.0, 2.5, 3.0]), [1, 3 / 4, 3 / 4, 0])


def test_outcomes_of_arrays_and_of_records():
    y = outcomes([True, False], [2.0, 3.0])
    for found in (y, y.tolist(), [{"event": True, "time": 2.0}, {"event": False, "time": 3.0}]):
        event, time = event_and_time(found)
        assert event.tolist() == [True, False]
        assert time.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("seed", range(3))
def test_curves_equal_those_of_scikit_survival(seed):
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    coxph = pytest.importorskip("sksurv.linear_model.coxph")
    y, risk = tied(seed=seed)
    event, time = event_and_time(y)
    for ours, theirs in (
        (kaplan_meier(event, time), nonparametric.kaplan_meier_estimator(event, time)),
        (nelson_aalen(event, time), nonparametric.nelson_aalen_estimator(event, time)),
        (censoring_survival(event, time), nonparametric.kaplan_meier_estimator(event, time, reverse=True)),
    ):
        assert np.array_equal(ours.times, theirs[0])
        assert np.allclose(ours.values, theirs[1], rtol=0, atol=1e-12)
    found = coxph.BreslowEstimator().fit(risk, event, time).cum_baseline_hazard_
    assert np.allclose(baseline_hazard(event, time, risk)(found.x), found.y, rtol=1e-10)


def test_baseline_without_risks_is_nelson_aalen():
    y, _ = tied()
    event, time = event_and_time(y)
    assert np.allclose(
        baseline_hazard(event, time, np.zeros(len(y))).values, nelson_aalen(event, time).values, rtol=1e-12
    )


@pytest.mark.parametrize("n_groups", [2, 3])
def test_log_rank_equals_that_of_scikit_survival(n_groups):
    compare = pytest.importorskip("sksurv.compare")
    y, _ = tied(seed=3)
    groups = np.random.default_rng(1).integers(0, n_groups, len(y))
    statistic, p_value = compare.compare_survival(y, groups)
    found = log_rank_test(*event_and_time(y), groups)
    assert found.degrees == n_groups - 1
    assert np.allclose([found.statistic, found.p_value], [statistic, p_value], rtol=1e-10)


def test_log_rank_of_two_groups_by_the_hypergeometric_law():
    y, risk = tied(seed=5)
    event, time = event_and_time(y)
    high = risk > np.median(risk)
    observed = expected = variance = 0.0
    for t in np.unique(time[event]):
        at_risk, died = time >= t, (time == t) & event
        n, m, d = at_risk.sum(), (at_risk & high).sum(), died.sum()
        chances = stats.hypergeom(n, m, d).pmf(np.arange(d + 1))
        mean = chances @ np.arange(d + 1)
        observed, expected = observed + (died & high).sum(), expected + mean
        variance += chances @ (np.arange(d + 1) - mean) ** 2
    found = log_rank_test(event, time, high)
    assert np.isclose(found.statistic, (observed - expected) ** 2 / variance, rtol=1e-10)


def test_stratified_log_rank_adds_the_strata():
    y, risk = tied(n=80, seed=6)
    event, time = event_and_time(y)
    high, stratum = risk > 0, np.arange(80) % 2
    single = [log_rank_test(event[stratum == s], time[stratum == s], high[stratum == s]) for s in (0, 1)]
    both = log_rank_test(event, time, high, stratum)
    assert both.statistic <= single[0].statistic + single[1].statistic + 1e-9
    same = log_rank_test(np.tile(event, 2), np.tile(time, 2), np.tile(high, 2), np.repeat([0, 1], 80))
    assert np.isclose(same.statistic, 2 * log_rank_test(event, time, high).statistic)
    assert log_rank_test(event, time, np.zeros(80)).p_value == 1.0


def test_p_values_of_the_log_rank_test_are_uniform():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        time, censored = rng.exponential(size=60), rng.exponential(2.0, size=60)
        found.append(log_rank_test(time <= censored, np.minimum(time, censored), np.arange(60) % 3).p_value)
    assert abs(np.mean(np.asarray(found) <= 0.05) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 400)
