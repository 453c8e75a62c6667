"""Concordance, Brier score and calibration slope against brute force and scikit-survival."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resampling.survival.made_times import outcomes, tied
from zeronorm.resampling.survival._brier import brier_scores, brier_times, integrated_brier_score
from zeronorm.resampling.survival._calibration import calibration_slope
from zeronorm.resampling.survival._concordance import (
    ComparablePairs,
    UnoConcordance,
    concordance,
    concordance_outcomes,
    uno_concordance,
)
from zeronorm.resampling.survival._curves import baseline_hazard, censoring_survival, event_and_time


def pairs_by_force(y, risk, weight):
    """Ordered and comparable pairs of each sample, by looking at all pairs."""
    event, time = event_and_time(y)
    n = len(y)
    ordered, comparable = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(n):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                right = weight[i] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
                for k in (i, j):
                    ordered[k] += right
                    comparable[k] += weight[i]
    return ordered, comparable


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 5), st.integers(0, 4), st.floats(0.1, 3.0)),
        min_size=1,
        max_size=14,
    )
)
def test_pairs_equal_those_of_brute_force(rows):
    event, time, risk, weight = map(np.asarray, zip(*rows, strict=True))
    y = outcomes(event, time)
    found = ComparablePairs.of(y, risk, weight)
    ordered, comparable = pairs_by_force(y, risk, weight)
    assert np.allclose(found.ordered, ordered, atol=1e-12)
    assert np.allclose(found.comparable, comparable, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_measures_equal_those_of_scikit_survival(seed):
    metrics = pytest.importorskip("sksurv.metrics")
    train, _ = tied(n=90, seed=seed + 10)
    y, risk = tied(seed=seed)
    event, time = event_and_time(y)
    assert np.isclose(
        concordance(y, risk), metrics.concordance_index_censored(event, time, risk)[0], rtol=0, atol=1e-12
    )
    inside = time < train["time"].max()
    censoring = censoring_survival(*event_and_time(train))
    ours = UnoConcordance(censoring)(y[inside], risk[inside])
    theirs = metrics.concordance_index_ipcw(train, y[inside], risk[inside])[0]
    assert np.isclose(ours, theirs, rtol=0, atol=1e-12)
    times = np.linspace(2.0, np.quantile(time[inside], 0.8), 20)
    survival = np.exp(-np.exp(risk[inside])[:, None] * baseline_hazard(event, time, risk)(times))
    ours = integrated_brier_score(y[inside], survival, times, censoring)
    theirs = metrics.integrated_brier_score(train, y[inside], survival, times)
    assert np.isclose(ours, theirs, rtol=0, atol=1e-12)
    assert np.allclose(
        brier_scores(y[inside], survival, times, censoring),
        metrics.brier_score(train, y[inside], survival, times)[1],
        rtol=0,
        atol=1e-12,
    )


def test_concordance_of_reversed_and_of_equal_risks():
    y, risk = tied(seed=2)
    assert np.isclose(concordance(y, risk) + concordance(y, -risk), 1.0)
    assert concordance(y, np.zeros(len(y))) == 0.5
    assert np.isclose(concordance(y, np.exp(risk)), concordance(y, risk))  # of the order alone


def test_outcomes_have_the_concordance_as_mean_and_its_variance():
    rng = np.random.default_rng(0)
    found, variances = [], []
    for _ in range(300):
        risk = rng.normal(size=80)
        time, censored = rng.exponential(np.exp(-risk)), rng.exponential(1.5, size=80)
        outcome = concordance_outcomes(outcomes(time <= censored, np.minimum(time, censored)), risk)
        found.append(outcome.mean())
        variances.append(outcome.var(ddof=1) / 80)
    y, risk = tied()
    assert np.isclose(concordance_outcomes(y, risk).mean(), concordance(y, risk))
    assert 0.8 < np.mean(variances) / np.var(found, ddof=1) < 1.4


def test_uno_equals_harrell_without_censoring_and_is_free_of_its_bias():
    rng = np.random.default_rng(1)
    risk = rng.normal(size=4000)
    time = rng.exponential(np.exp(-2 * risk))
    complete = outcomes(np.ones(4000, bool), time)
    assert np.isclose(uno_concordance(complete, risk), concordance(complete, risk))
    censored = rng.exponential(0.7, size=4000)
    y = outcomes(time <= censored, np.minimum(time, censored))
    wanted = concordance(complete, risk)
    assert abs(uno_concordance(y, risk) - wanted) < 0.6 * abs(concordance(y, risk) - wanted)


def test_a_concordance_without_comparable_pairs_is_an_error():
    with pytest.raises(ValueError, match="no sample has an event before"):
        concordance(outcomes([False, False], [1.0, 2.0]), [0.0, 1.0])
    with pytest.raises(ValueError, match="2 samples but 3 predicted"):
        concordance(outcomes([True, False], [1.0, 2.0]), [0.0, 1.0, 2.0])


def test_brier_score_without_censoring_is_the_mean_squared_error():
    y = outcomes([True, True, True], [1.0, 2.0, 3.0])
    found = brier_scores(y, [[0.2], [0.6], [0.9]], [1.5])
    assert np.isclose(found[0], (0.2**2 + 0.4**2 + 0.1**2) / 3)
    times = brier_times(y)
    assert times[0] == 1.0
    assert times[-1] < 3.0


def test_calibration_slope_against_lifelines():
    lifelines = pytest.importorskip("lifelines")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    risk = rng.normal(size=120)
    time, censored = rng.exponential(np.exp(-0.5 * risk)), rng.exponential(2.0, size=120)
    y = outcomes(time <= censored, np.minimum(time, censored))
    frame = pandas.DataFrame({"risk": risk, "time": y["time"], "event": y["event"]})
    fitted = lifelines.CoxPHFitter().fit(frame, "time", "event", fit_options={"precision": 1e-12})
    assert np.isclose(calibration_slope(y, risk), fitted.params_["risk"], rtol=1e-7)


def test_calibration_slope_is_one_for_true_risks_and_lower_for_exaggerated_ones():
    rng = np.random.default_rng(5)
    risk = rng.normal(size=5000)
    y = outcomes(rng.random(5000) < 0.7, rng.exponential(np.exp(-risk)))
    assert abs(calibration_slope(y, risk) - 1) < 0.06
    assert np.isclose(calibration_slope(y, 2 * risk + 3), calibration_slope(y, risk) / 2)
    with pytest.raises(ValueError, match="do not vary"):
        calibration_slope(y, np.ones(5000))
    with pytest.raises(ValueError, match="perfect order"):
        calibration_slope(outcomes([True] * 4, [1, 2, 3, 4]), [4.0, 3.0, 2.0, 1.0])
