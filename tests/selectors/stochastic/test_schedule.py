"""Step sizes, the stopping rule and the grid of the trajectory."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.engines.weighting.state import (
    RunState,
    StoppingRule,
    make_schedule,
    next_grid_step,
    record_steps,
)
from zeronorm.engines.weighting.updates import make_rule


def default_schedule(method, p, k, batch_size=1):
    return make_schedule(
        method, None, None, n_features=p, subset_size=k, batch_size=batch_size, max_iter=1000
    )


@pytest.mark.parametrize("method", ["exponential", "euclidean", "diffusion"])
@pytest.mark.parametrize(("p", "k", "batch_size"), [(4, 2, 1), (100, 4, 1), (500, 20, 8), (50, 50, 4)])
def test_first_step_changes_no_weight_by_more_than_a_tenth(method, p, k, batch_size):
    rng = np.random.default_rng(0)
    schedule = default_schedule(method, p, k, batch_size)
    worst = 0.0
    for _ in range(100):
        rule = make_rule(method, np.full(p, 1 / p), noise=0.001, first_step=schedule.at(0))
        features = np.sort(rng.integers(0, p, size=(batch_size, k)), axis=1)
        assert rule.learn(features, np.full(batch_size, 0.5), schedule.at(0), 1, 0)
        worst = max(worst, float(np.abs(rule.weights * p - 1).max()))
    assert worst <= 0.1


def test_euclidean_survives_the_worst_draw():
    p, k = 20, 6
    schedule = default_schedule("euclidean", p, k)
    assert schedule.at(0) == pytest.approx(0.1 / (k * p**2))
    rule = make_rule("euclidean", np.full(p, 1 / p), noise=0.0, first_step=1.0)
    assert rule.learn(np.zeros((1, k), np.int64), np.ones(1), schedule.at(0), 1, 0)
    assert rule.weights[0] * p >= 0.9


def test_steps_fall_as_one_over_n():
    schedule = make_schedule("exponential", 5.0, 50.0, n_features=9, subset_size=2, batch_size=1, max_iter=10)
    assert schedule.at(0) == pytest.approx(0.1)
    assert schedule.at(450) == pytest.approx(0.01)


@pytest.mark.parametrize("window", [2, 3, 10, 100])
def test_grid_steps_lag_by_the_window(window):
    n = window
    for _ in range(50):
        m = next_grid_step(n, window)
        assert m - m // window == n
        assert m > n
        n = m


def test_rule_stops_only_when_the_weights_settle():
    rule = StoppingRule(window=10, tol=0.005, first_lag=3)
    state = RunState(seed=0, weights=np.array([0.5, 0.5]))
    stopped_at = None
    for n in range(1, 2000):
        state.step = n
        drift = 0.08 * np.log(min(n, 400))  # the same change over every lag, until it ends
        state.weights[:] = [0.5 + drift, 0.5 - drift]
        if rule.is_met(state):
            stopped_at = n
            break
    assert stopped_at is not None
    assert 400 < stopped_at <= 400 * (10 / 9) ** 2 + 2


def test_nothing_is_tested_before_the_first_lag():
    rule = StoppingRule(window=10, tol=0.05, first_lag=20)
    state = RunState(seed=0, weights=np.array([0.5, 0.5]))
    met = []
    for n in range(1, 400):
        state.step = n
        if rule.is_met(state):
            met.append(n)
    assert met[0] == next_grid_step(200, 10)


def test_no_tolerance_no_stop():
    rule = StoppingRule(window=10, tol=None, first_lag=1)
    state = RunState(seed=0, weights=np.ones(1), step=10**6)
    assert not rule.is_met(state)


@pytest.mark.parametrize("max_iter", [1, 2, 17, 1000, 10**6])
def test_trajectory_grid_ends_with_the_run(max_iter):
    steps = record_steps(max_iter)
    assert steps[0] == 1
    assert steps[-1] == max_iter
    assert len(steps) <= 40
    assert np.all(np.diff(steps) > 0)
