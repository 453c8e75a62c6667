"""The paper's stopping rule, and the rule on the energy of samples that are kept out."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pytest

from zeronorm import OptimalFeatureWeighting
from zeronorm.engines.weighting._held_out import STEPS_PER_TEST, TESTS_REMEMBERED, HeldOutEnergy, split_off
from zeronorm.engines.weighting._state import RunState
from zeronorm.engines.weighting._stopping import PrintedRule
from zeronorm.selection.target import Binary


def printed_end(trajectory, window, tol):
    """The loop of Figure 3 on a list of all distributions, from the first n with ⌊n/μ⌋ ≥ 1."""
    n = window
    while n < len(trajectory) and np.abs(trajectory[n - n // window] - trajectory[n]).max() > tol:
        n += 1
    return n


@pytest.mark.parametrize("window", [2, 3, 10])
@pytest.mark.parametrize("seed", range(4))
def test_the_printed_rule_ends_where_the_paper_ends(window, seed):
    rng = np.random.default_rng(seed)
    shape = rng.dirichlet(np.ones(5), size=400)
    shares = 1.0 / (1.0 + np.arange(400.0)) ** 1.5
    trajectory = (1.0 - shares[:, None]) / 5 + shares[:, None] * shape
    rule, state = PrintedRule(window, 0.002), RunState(0, trajectory[0].copy())
    expected = printed_end(trajectory, window, 0.002)
    for n in range(1, 400):
        state.step, state.weights = n, trajectory[n]
        assert rule.is_due(state)
        if rule.is_met(state):
            break
    assert n == expected
    assert window < expected < 399


class Scripted:
    """An evaluator whose errors are given."""

    def __init__(self, energies):
        self.energies = iter(energies)

    def evaluate(self, cumulative, seed, step):
        return np.full(3, next(self.energies))

    def workers(self, n_jobs):
        return nullcontext()


def run_held_out(energies, first_test=0):
    """The step at which the rule stops (or the last), and the state after restoring."""
    rule = HeldOutEnergy(Scripted(energies), first_test)
    state = RunState(0, np.zeros(2))
    for step in range(1, STEPS_PER_TEST * len(energies)):
        state.step = step
        state.weights[:] = [step, -step]
        if step % 50 == 0:
            state.add(np.ones(1))
            state.record()
        if rule.stops(state, state.weights):
            break
    return state.step, rule, state


def test_the_run_stops_at_twice_the_steps_of_the_lowest_energy_and_goes_back():
    falling, rising = np.linspace(0.5, 0.1, 60), np.linspace(0.1, 0.3, 200)
    stopped, rule, state = run_held_out(np.concatenate([falling, rising]))
    energy, lowest, best_test = 0.0, np.inf, 0
    for j, q in enumerate(np.concatenate([falling, rising]), start=1):
        energy += (q - energy) / min(j, TESTS_REMEMBERED)
        if j >= TESTS_REMEMBERED and energy < 0.99 * lowest:
            lowest, best_test = energy, j
    assert rule.best_step == STEPS_PER_TEST * best_test
    assert 60 < best_test < 100  # the smoothed energy turns after the energy
    assert stopped == 2 * rule.best_step
    assert rule.restore(state)
    assert state.weights.tolist() == [rule.best_step, -rule.best_step]
    assert state.history.steps.max() <= rule.best_step < state.history.steps.max() + 50


def test_a_run_goes_on_while_the_energy_decreases():
    energies = np.geomspace(0.5, 0.001, 300)
    stopped, _, _ = run_held_out(energies)
    assert stopped == STEPS_PER_TEST * 300 - 1


def test_without_a_test_nothing_is_restored():
    _, rule, state = run_held_out(np.full(5, 0.3))
    assert not rule.restore(state)


def test_samples_are_kept_out_by_class_and_by_group():
    y = np.repeat([0, 1], [30, 10])
    target = Binary(y, np.arange(2))
    learning, kept_out = split_off(target, None, 0)
    assert sorted([*learning, *kept_out]) == list(range(40))
    assert np.bincount(y[kept_out]).tolist() in ([8, 2], [7, 3], [7, 2], [8, 3])
    groups = np.arange(40) // 4
    learning, kept_out = split_off(target, groups, 0)
    assert not set(groups[learning]) & set(groups[kept_out])


def overfitting_data(n=60, p=300):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, p)), np.arange(n) % 2
    return X, y


def test_the_weights_are_those_before_the_energy_kept_out_increased():
    """On noise the training error goes on to decrease; the weights of an earlier step are on more features."""
    X, y = overfitting_data()
    held_out, settled = (
        OptimalFeatureWeighting(stopping=rule, learner="centroid", max_iter=3000, random_state=0).fit(X, y)
        for rule in ("held_out", "settled")
    )
    best_step = int(re.search(r"kept out was lowest after (\d+) steps", held_out.stop_reason_).group(1))
    assert held_out.converged_
    assert held_out.history_.steps.max() <= best_step < held_out.n_iter_
    assert np.sum(held_out.weights_**2) < np.sum(settled.weights_**2)


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"stopping": "printed"}, "stopping"),
        ({"stopping": "held_out", "method": "exact"}, "stopping"),
        ({"stopping": "held_out", "checkpoint": "file"}, "checkpoint"),
        ({"stopping": "printed", "step_size": 0.1, "window": 2, "max_iter": 10**9}, "window"),
    ],
)
def test_rules_that_do_not_fit_are_refused(params, named):
    X, y = overfitting_data(20, 5)
    with pytest.raises(ValueError, match=f"'{named}'"):
        OptimalFeatureWeighting(**params).fit(X, y)


def test_the_printed_rule_ends_a_run():
    X, y = overfitting_data(40, 10)
    run = OptimalFeatureWeighting(
        stopping="printed", method="exponential", step_size=0.2, step_offset=1.0, random_state=0
    ).fit(X, y)
    assert run.converged_
    assert 10 <= run.n_iter_ < run.max_iter_
