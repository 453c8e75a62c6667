"""Step sizes, the stopping rule, recovery from a collapse, and the grid of the trajectory."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.subsets import gaussian_classes
from zeronorm import OptimalFeatureWeighting
from zeronorm.engines.weighting._state import RunState
from zeronorm.engines.weighting._steps import (
    CHANCE,
    CHANCE_SHARE,
    LARGEST_SIGNAL,
    AdaptiveSteps,
    CollapseWatch,
    GivenSteps,
    default_max_iter,
    planned_steps,
    record_steps,
)
from zeronorm.engines.weighting._stopping import StoppingRule, next_grid_step
from zeronorm.engines.weighting._updates import common_share, make_rule

FEATURES = np.array([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [1, 3, 5, 7, 9], [2, 2, 4, 4, 19]])


def adaptive(planned=1000, p=20, k=5, batch_size=4):
    return AdaptiveSteps(p, k, batch_size, planned, smallest_error=0.01)


def after_pilot(steps, errors, p=20):
    """A state whose first draws had these errors."""
    state = RunState(seed=0, weights=np.full(p, 1 / p))
    while steps.signals(state, np.asarray(errors), FEATURES) is None:
        state.step += 1
    return state


def test_a_run_ends_when_the_features_that_hold_weight_were_drawn_often_enough():
    assert default_max_iter(24_900, 100, 32) == -(-996_000 // 32)  # 4000 draws of each of the features
    assert planned_steps(31_125, 32) == 12_500  # 400 000 subsets
    steps = adaptive(planned=1000)
    state = RunState(0, np.full(20, 1 / 20), step=1000)
    assert not steps.is_enough(state)  # with the weights on all features they go on
    state.draws_per_feature = 4000.0
    assert steps.is_enough(state)
    state.step = 999
    assert not steps.is_enough(state)
    assert not GivenSteps(1.0, 1.0).is_enough(state)


def test_draws_are_counted_per_feature_that_holds_weight():
    """The oracle adds k B over 1 / sum P², the effective number of features, from weights that stay uniform."""
    X, y = gaussian_classes(40, 6, 2, 0)
    counted = []

    class Counting(OptimalFeatureWeighting):
        def _keep(self, state, *parts):
            counted.append(state.draws_per_feature)
            super()._keep(state, *parts)

    never = {"step_size": 1e-12, "step_offset": 1.0, "noise": 0.0, "tol": 1e-9}
    with pytest.warns(match="did not converge"):
        Counting(2, subset_size=3, batch_size=5, max_iter=30, random_state=0, **never).fit(X, y)
    assert counted[0] == pytest.approx(30 * 3 * 5 / 6)


def test_given_steps_decrease_as_one_over_n():
    steps = GivenSteps(5.0, 50.0)
    assert steps.at(0) == pytest.approx(0.1)
    assert steps.at(450) == pytest.approx(0.01)
    state = RunState(0, np.ones(2) / 2, step=450)
    assert steps.length(state, 0.5) == steps.at(450)
    assert steps.signals(state, np.array([0.3]), FEATURES[:1]) == pytest.approx([0.3])


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_signals_do_not_depend_on_level_and_unit_of_the_errors(unit):
    steps = AdaptiveSteps(20, 5, 4, 1000, smallest_error=1e-6)
    errors = np.array([0.1, 0.2, 0.3, 0.4])
    plain, moved = (after_pilot(steps, e) for e in (errors, 0.3 + unit * errors))
    expected = steps.signals(plain, np.array([0.05, 0.2, 0.3, 0.25]), FEATURES)
    found = steps.signals(moved, 0.3 + unit * np.array([0.05, 0.2, 0.3, 0.25]), FEATURES)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_equal_errors_of_the_first_draws_divide_by_nothing():
    steps = adaptive()
    state = after_pilot(steps, np.full(4, 0.25))
    assert np.array_equal(steps.signals(state, np.full(4, 0.25), FEATURES), np.zeros((4, 5)))
    assert np.all(np.isfinite(steps.signals(state, np.array([0.0, 1.0, 0.25, 0.26]), FEATURES)))


def test_centring_leaves_the_mean_step_and_lowers_its_variance():
    """A subset's error is 0.5 less 0.05 for each good feature: the oracle is the exact gradient's direction."""
    rng = np.random.default_rng(0)
    p, k, n = 10, 3, 40_000
    P = rng.dirichlet(np.full(p, 5.0))
    draws = rng.choice(p, size=(n, k), p=P)
    counts = np.array([np.bincount(row, minlength=p) for row in draws], dtype=float)
    q = 0.5 - 0.05 * counts[:, :3].sum(axis=1) + 0.02 * rng.standard_normal(n)

    def projected(signal):
        terms = signal[:, None] * counts
        return terms - (terms @ P / (P @ P))[:, None] * P

    raw, centred = projected(q), projected(q - q.mean())
    standard_error = np.sqrt((raw.var(axis=0) + centred.var(axis=0)) / n)
    assert np.all(np.abs(raw.mean(axis=0) - centred.mean(axis=0)) < 4 * standard_error)
    assert np.all(centred.var(axis=0) < 0.1 * raw.var(axis=0))


def simulated_errors(rng, batch_size, k, effect, noise):
    """Subsets of ten features; the error is a sum of effects, a part common to the step, and noise."""
    features = np.sort(rng.integers(0, 10, size=(batch_size, k)), axis=1)
    common = 0.1 * rng.standard_normal()
    return features, 0.5 + effect[features].sum(axis=1) + common + noise * rng.standard_normal(batch_size)


def test_signals_show_the_effect_of_a_feature_and_little_else():
    """After predicted effects and the common part are subtracted, the feature's own effect and noise remain."""
    rng = np.random.default_rng(0)
    steps = AdaptiveSteps(10, 3, 16, 2000, smallest_error=1e-6)
    state = RunState(0, np.full(10, 0.1))
    effect, noise = np.linspace(-0.1, 0.1, 10), 0.01
    for _ in range(1500):
        features, errors = simulated_errors(rng, 16, 3, effect, noise)
        signals = steps.signals(state, errors, features)
    assert state.variance == pytest.approx(noise**2, rel=0.3)
    assert state.covariance == pytest.approx(0.1**2, rel=0.3)
    assert common_share(state.correlation, 16) > 0.95
    expected = np.clip(effect[features] / np.sqrt(state.variance), -LARGEST_SIGNAL, LARGEST_SIGNAL)
    # Noise of variance one, and the error of the common part, estimated by the mean of fifteen others.
    assert np.sqrt(np.mean((signals - expected) ** 2)) < 1.3
    assert np.corrcoef(signals.ravel(), expected.ravel())[0, 1] > 0.8


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_the_share_taken_away_is_that_of_least_squares(correlation):
    covariance = np.full((6, 6), correlation) + (1 - correlation) * np.eye(6)
    mean_of_others = np.r_[0.0, np.full(5, 0.2)]
    best = covariance[0] @ mean_of_others / (mean_of_others @ covariance @ mean_of_others)
    assert common_share(correlation, 6) == pytest.approx(best)
    assert common_share(correlation, 1) == 0.0


def test_the_variance_of_a_window_is_that_of_correlated_errors():
    rng = np.random.default_rng(0)
    steps = AdaptiveSteps(10, 3, 16, 2000, smallest_error=1e-6)
    state = RunState(0, np.full(10, 0.1))
    means = []
    for _ in range(50):
        for _ in range(40):
            features, errors = simulated_errors(rng, 16, 3, np.zeros(10), 0.05)
            state.add(errors)
            steps.signals(state, errors, features)
            state.step += 1
        state.close_window()
        means.append(state.windows[-1, 1])
    assert np.var(means) == pytest.approx((0.1**2 + 0.05**2 / 16) / 40, rel=0.5)
    assert np.median(state.windows[:, 2]) == pytest.approx((0.1**2 + 0.05**2 / 16) / 40, rel=0.3)


@pytest.mark.parametrize("method", ["exponential", "diffusion"])
def test_chance_alone_moves_weights_as_much_as_planned(method):
    """Signals of variance one that do not depend on the subset, over a tenth of the plan without annealing."""
    p, k, batch_size, planned = 200, 10, 4, 40_000
    steps = adaptive(planned, p, k, batch_size)
    rng = np.random.default_rng(0)
    state = RunState(0, np.full(p, 1 / p))
    length = steps.length(state, 1 / p)
    n_draws = CHANCE_SHARE * planned * batch_size
    assert length == pytest.approx(CHANCE / np.sqrt(k / p * n_draws))
    rule = make_rule(method, state.weights, noise=0.0, first_step=length)
    for step in range(40):  # a hundredth of that tenth: the standard deviation is a tenth
        features = np.sort(rng.integers(0, p, size=(batch_size, k)), axis=1)
        rule.learn_relative(features, rng.standard_normal(batch_size), length, 1, step)
    scale = np.std(np.log(rule.weights))
    assert scale == pytest.approx(0.1 * CHANCE, rel=0.3)


def test_the_first_step_changes_no_weight_by_more_than_a_tenth():
    assert adaptive(planned=100).length(RunState(0, np.full(20, 1 / 20)), 1 / 20) == pytest.approx(0.1)


def test_steps_shorten_as_the_distribution_concentrates_and_later_in_the_run():
    steps, state = adaptive(planned=10_000), RunState(0, np.full(20, 1 / 20))
    first = steps.length(state, 1 / 20)
    assert steps.length(state, 1 / 5) == pytest.approx(first / 2)
    state.step = int(steps.offset)
    assert steps.length(state, 1 / 20) == pytest.approx(first / 2)
    state.shrinkage = 0.5
    assert steps.length(state, 1 / 20) == pytest.approx(first / 4)


@pytest.mark.parametrize("window", [2, 3, 10, 100])
def test_grid_steps_lag_by_the_window(window):
    n = window
    for _ in range(50):
        m = next_grid_step(n, window)
        assert m - m // window == n
        assert m > n
        n = m


def stopped_at(rule, n_steps, weights_at, error_at):
    state = RunState(seed=0, weights=np.array([0.5, 0.5]))
    for n in range(1, n_steps):
        state.step = n
        state.weights[:] = weights_at(n)
        state.add(np.array([error_at(n) - 0.01, error_at(n) + 0.01]))
        if rule.is_due(state) and rule.is_met(state):
            return n
    return None


def test_rule_stops_only_when_the_weights_settle():
    def drifting(n):  # the same change over every lag up to a last step
        drift = 0.08 * np.log(min(n, 400))
        return [0.5 + drift, 0.5 - drift]

    found = stopped_at(StoppingRule(10, 0.005, first_lag=3), 2000, drifting, lambda n: 0.2)
    assert found is not None
    assert 400 < found <= 400 * (10 / 9) ** 2 + 2


def test_rule_does_not_stop_while_the_errors_decrease():
    rule = StoppingRule(10, 0.05, first_lag=30)
    descending = stopped_at(rule, 3000, lambda n: [0.5, 0.5], lambda n: 0.4 - 0.1 * min(n, 1000) / 1000)
    assert descending is not None
    assert 1000 < descending < 2600
    assert stopped_at(rule, 3000, lambda n: [0.5, 0.5], lambda n: 0.4) < 700


def test_nothing_is_tested_before_the_first_lag():
    still = lambda n: [0.5, 0.5]
    # Half of the run must have been seen as well.
    assert 400 <= stopped_at(StoppingRule(10, 0.05, 20), 1000, still, lambda n: 0.2) < 460
    assert stopped_at(StoppingRule(10, 0.05, 20, first_settled=600), 1000, still, lambda n: 0.2) >= 600
    assert next_grid_step(200, 10) == 222


# -- collapse -------------------------------------------------------------------------------------------


def collapsing_state(error, best=0.2):
    """Two windows: nearly uniform weights with the error ``best``, then 0.9 on one feature with ``error``."""
    state = RunState(seed=0, weights=np.array([0.25, 0.25, 0.25, 0.25]))
    for step, weights, mean in ((10, [0.25] * 4, best), (20, [0.9, 0.04, 0.03, 0.03], error)):
        state.step, state.weights[:] = step, weights
        state.add(np.full(100, mean) + np.tile([0.01, -0.01], 50))
        state.record()
        state.close_window()
    return state


def test_a_collapsed_distribution_is_given_up_for_an_earlier_one_with_half_the_step():
    state = collapsing_state(error=0.25)
    assert CollapseWatch(10, can_go_back=True).goes_back(state)
    assert state.weights == pytest.approx([0.25] * 4)
    assert (state.shrinkage, state.n_steps_back) == (0.5, 1)
    assert state.mean_error == pytest.approx(0.2)


def test_one_feature_that_is_better_than_all_is_no_collapse_the_second_time():
    state = collapsing_state(error=0.05)
    state.n_steps_back = 1
    watch = CollapseWatch(10, can_go_back=True)
    assert not watch.is_collapsed(state)
    assert not watch.goes_back(state)


def test_given_steps_never_go_back_but_know_a_collapse():
    state = collapsing_state(error=0.25)
    watch = CollapseWatch(10, can_go_back=False)
    assert not watch.goes_back(state)
    assert watch.is_collapsed(state)
    # Both draws of a subset of two may be the same feature.
    assert not CollapseWatch(2, can_go_back=False).is_collapsed(state)


def test_a_collapse_is_reported_as_such():
    X, y = gaussian_classes(n=40, p=30, shift=0.3)
    with pytest.warns(UserWarning, match=r"the distribution collapsed: \d+% of the weight is on one feature"):
        s = OptimalFeatureWeighting(
            method="exponential",
            subset_size=10,
            learner="centroid",
            step_size=3.0 * 400,
            max_iter=400,
            batch_size=1,
            random_state=0,
        ).fit(X, y)
    assert not s.converged_
    assert s.weights_.max() > 0.5


@pytest.mark.parametrize("max_iter", [1, 2, 17, 1000, 10**6])
def test_trajectory_grid_ends_with_the_run(max_iter):
    steps = record_steps(max_iter)
    assert steps[0] == 1
    assert steps[-1] == max_iter
    assert len(steps) <= 40
    assert np.all(np.diff(steps) > 0)
