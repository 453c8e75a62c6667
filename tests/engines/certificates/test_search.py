"""The search finds the best subset of small problems and proves it; its limits keep what was found."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from oracles.exhaustive_subsets import (
    LOSSES,
    best_by_trying_all,
    best_in_closed_form,
    objective_of,
    random_problem,
)
from zeronorm.engines.certificates._branching import Limits, ProofStatus, SubsetProof
from zeronorm.engines.certificates._certificate import all_subsets
from zeronorm.engines.certificates._refit import refit
from zeronorm.engines.certificates._relaxation import Relaxation

NOTHING = np.empty(0, dtype=np.intp)


def searched(objective, size, groups=None, forced=(), limits=None, state=None):
    candidates = all_subsets(objective, groups, size, np.asarray(forced, dtype=np.intp))
    limits = limits or Limits.within(20.0)
    relaxation = Relaxation(objective, candidates.units, limits.is_over)
    search = SubsetProof(objective, candidates.units, candidates, limits, relaxation)
    return search.run(relaxation.first_start(search.candidates, refit(objective, NOTHING).bias), state=state)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_finds_and_proves_what_an_exhaustive_search_finds(loss):
    rng = np.random.default_rng(LOSSES.index(loss))
    for number in range(3 if loss == "hinge" else 10):
        X, targets, cost = random_problem(rng, loss, classes=3 if number % 4 == 0 else 2, p=5)
        groups = None if number % 3 else np.array([0, 1, 1, 2, 2])
        size = int(rng.integers(2, 4))
        best, _ = best_by_trying_all(X, targets, cost, loss, size, groups)
        proof = searched(objective_of(X, targets, cost, loss), size, groups)
        assert proof.status is ProofStatus.OPTIMAL
        assert proof.best.objective == pytest.approx(best, rel=1e-5)
        assert proof.bound <= best * (1 + 1e-7) + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_with_bounded_weights_it_finds_the_best_of_the_models_within_the_bound(loss):
    rng = np.random.default_rng(20 + LOSSES.index(loss))
    for _ in range(2 if loss == "hinge" else 5):
        X, targets, cost = random_problem(rng, loss, p=5)
        free = searched(objective_of(X, targets, cost, loss), 2)
        largest = 0.7 * float(np.abs(free.best.weights).max())
        best, _ = best_by_trying_all(X, targets, cost, loss, 2, max_weight=largest)
        proof = searched(
            objective_of(X, targets, cost, loss, largest), 2, limits=Limits.within(20.0, gap=1e-3)
        )
        assert np.abs(proof.best.weights).max() <= largest * (1 + 1e-12)
        assert best * (1 - 1e-6) <= proof.best.objective <= best * (1 + 2e-3)
        assert proof.bound <= best * (1 + 1e-6) + 1e-12
        assert proof.gap <= 2e-3


def test_the_two_exhaustive_searches_agree():
    rng = np.random.default_rng(2)
    for forced in ((), (2,)):
        X, targets, cost = random_problem(rng, "squared_error", p=5)
        by_training, _ = best_by_trying_all(X, targets, cost, "squared_error", 3, forced=forced)
        assert best_in_closed_form(X, targets[:, 0], cost, 3, forced)[0] == pytest.approx(
            by_training, rel=1e-8
        )


def assert_proved(proof, best, rounding):
    """The search found the optimum, and no bound that it ever had was above it."""
    assert proof.status is ProofStatus.OPTIMAL
    assert proof.best.objective == pytest.approx(best, rel=1e-5)
    bounds = [proof.bound, proof.root.bound, *(bound for _, bound, _ in proof.history)]
    assert max(bounds) <= best * (1 + rounding) + 1e-12


def test_no_bound_of_a_search_is_above_the_best_of_up_to_twenty_features():
    rng = np.random.default_rng(7)
    for number in range(40):
        p = int(rng.integers(12, 21))
        X, targets, cost = random_problem(rng, "squared_error", n=int(rng.integers(10, 40)), p=p)
        forced = () if number % 4 else (int(rng.integers(p)),)
        size = int(rng.integers(1, 5 if p < 17 else 4))
        best, _ = best_in_closed_form(X, targets[:, 0], cost, size, forced)
        proof = searched(objective_of(X, targets, cost, "squared_error"), size, forced=forced)
        assert_proved(proof, best, rounding=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_no_bound_of_a_search_is_above_the_best_pair_of_twelve_features(loss):
    rng = np.random.default_rng(8)
    for _ in range(1 if loss == "hinge" else 3):
        X, targets, cost = random_problem(rng, loss, n=20, p=12)
        best, _ = best_by_trying_all(X, targets, cost, loss, 2)
        assert_proved(searched(objective_of(X, targets, cost, loss), 2), best, rounding=1e-7)


def wide_problem(n=40, p=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, :4].sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)
    return objective_of(X, y[:, None], np.full(n, 1.0), "logistic")


def test_a_search_without_time_or_nodes_keeps_a_subset_and_a_bound():
    objective = wide_problem()
    for limits in (Limits(nodes=3), Limits.within(0.0)):
        proof = searched(objective, 5, limits=limits)
        assert proof.status is ProofStatus.LIMIT
        assert proof.best.columns.size == 5
        assert 0.0 <= proof.bound < proof.best.objective
        assert proof.gap > 0.0


def test_the_gap_never_grows_with_the_search():
    proof = searched(wide_problem(), 4, limits=Limits(nodes=25))
    bounds, values = np.array([h[1] for h in proof.history]), np.array([h[2] for h in proof.history])
    assert len(bounds) > 10
    assert np.all(np.diff(bounds) >= 0.0)
    assert np.all(np.diff(values) <= 0.0)


def test_an_interruption_keeps_the_best_so_far():
    objective = wide_problem()
    candidates = all_subsets(objective, None, 4, NOTHING)
    relaxation = Relaxation(objective, candidates.units)
    search = SubsetProof(objective, candidates.units, candidates, Limits(), relaxation)

    def interrupt(bound, best):
        if search.n_nodes == 5:
            raise KeyboardInterrupt

    proof = search.run(relaxation.first_start(search.candidates, np.zeros(1)), report=interrupt)
    assert proof.status is ProofStatus.LIMIT
    assert proof.n_nodes == 5
    assert 0.0 < proof.bound < proof.best.objective


def test_a_search_in_two_parts_proves_what_one_search_proves():
    whole = searched(wide_problem(), 4, limits=Limits(nodes=24))
    first = searched(wide_problem(), 4, limits=Limits(nodes=9))
    state = pickle.loads(pickle.dumps(first.state))
    second = searched(wide_problem(), 4, limits=Limits(nodes=24), state=state)
    assert second.n_nodes == 24
    assert second.bound == pytest.approx(whole.bound, rel=1e-6)
    assert second.bound > first.bound
    assert np.all(np.diff([bound for _, bound, _ in second.history]) >= 0.0)
    with pytest.raises(ValueError, match="Start a new search for other data"):
        searched(wide_problem(seed=1), 4, state=state)


def test_a_complete_search_is_only_continued_for_a_smaller_tolerance():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 60))
    y = X[:, :3].sum(axis=1) + rng.normal(size=100)
    objective = objective_of(X, y[:, None], np.full(100, 0.1), "squared_error")
    first = searched(objective, 3, limits=Limits(gap=0.1))
    again = searched(objective, 3, limits=Limits(gap=0.1), state=first.state)
    assert (again.n_nodes, again.bound) == (first.n_nodes, first.bound)
    exact = searched(objective, 3, limits=Limits(gap=0.0), state=first.state)
    assert exact.status is ProofStatus.OPTIMAL


def test_an_interruption_of_the_first_relaxation_keeps_its_bound(monkeypatch):
    objective = wide_problem()
    candidates = all_subsets(objective, None, 4, NOTHING)
    relaxation = Relaxation(objective, candidates.units)
    evaluate, calls = relaxation.bound_at, []

    def interrupted(alpha):
        calls.append(alpha)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(alpha)

    monkeypatch.setattr(relaxation, "bound_at", interrupted)
    search = SubsetProof(objective, candidates.units, candidates, Limits(), relaxation)
    proof = search.run(relaxation.first_start(search.candidates, np.zeros(1)))
    assert proof.was_interrupted
    assert (proof.status, proof.n_nodes) == (ProofStatus.LIMIT, 0)
    assert proof.best.columns.size == 4
    assert 0.0 < proof.bound < proof.best.objective
    finished = searched(objective, 4, limits=Limits(nodes=5), state=proof.state)
    assert finished.bound > proof.bound


def test_a_search_with_a_tolerance_ends_within_it():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 200))
    y = X[:, :5].sum(axis=1) + rng.normal(size=300)
    objective = objective_of(X, y[:, None], np.full(300, 0.03), "squared_error")
    proof = searched(objective, 5, limits=Limits.within(20.0, gap=0.05))
    assert proof.status is ProofStatus.GAP
    assert proof.gap <= 0.05
    assert proof.best.columns.tolist() == [0, 1, 2, 3, 4]
