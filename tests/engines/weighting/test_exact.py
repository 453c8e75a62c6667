"""The stochastic gradients have the exact gradient as their mean, and the exact gradient descends."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oracles.subsets import gaussian_classes, make_pool
from zeronorm.design import as_design
from zeronorm.engines.weighting._batches import BatchEvaluator, Source
from zeronorm.engines.weighting._exact import ExactEnergy, all_subsets, descend, project_for_log, run_exact
from zeronorm.engines.weighting._state import RunState
from zeronorm.engines.weighting._updates import centre_errors
from zeronorm.engines.weighting.learners._nearest import SubsetCentroid

P_FEATURES, SUBSET, BOOTSTRAP, N = 4, 2, 3, 5
N_TEST = 4  # common test samples of a step


def small_problem():
    X, y = gaussian_classes(n=N, p=P_FEATURES, seed=3)
    return X.astype(np.float32).astype(float), y


def error_on_all(wrong, rows):
    """Mean over the test samples that are drawn from all samples."""
    return np.mean(wrong)


def error_on_left_out(wrong, rows):
    """Mean over the test samples of a common draw: those left out of the training sample, then random others."""
    left_out = np.setdiff1d(np.arange(N), rows)
    n_left_out = min(len(left_out), N_TEST)
    others = wrong[np.unique(rows)]
    return (n_left_out * np.mean(wrong[left_out]) + (N_TEST - n_left_out) * np.mean(others)) / N_TEST


def exact_energy(error=error_on_all):
    """The error of each subset, averaged over all training samples of three and over their test samples."""
    X, y = small_problem()
    subsets = all_subsets(P_FEATURES, SUBSET)
    errors = []
    for subset in subsets:
        values = X[:, np.unique(subset)]
        draws = map(list, product(range(N), repeat=BOOTSTRAP))
        errors.append(np.mean([error(nearest_mean(values, y, rows) != y, rows) for rows in draws]))
    return ExactEnergy(subsets, np.asarray(errors), P_FEATURES)


def nearest_mean(values, y, rows):
    present = np.unique(y[rows])
    means = np.array([values[[i for i in rows if y[i] == c]].mean(axis=0) for c in present])
    return present[np.argmin(((values[:, None] - means) ** 2).sum(axis=2), axis=1)]


def small_evaluator(batch_size, **settings):
    X, y = small_problem()
    design = as_design(X).standardized(with_mean=False, with_scale=False)
    sizes = {"batch_size": batch_size, "subset_size": SUBSET, "bootstrap_size": BOOTSTRAP}
    return BatchEvaluator(Source(design, make_pool(X, y)), SubsetCentroid(), **sizes, **settings)


def projected(weighted, P):
    """Both gradient terms (eq. 15 and the next equation) from the sums of C(ω, δ) q in each row."""
    euclidean = weighted / P
    euclidean -= euclidean.mean(axis=1, keepdims=True)
    return euclidean, weighted - (weighted @ P / (P @ P))[:, None] * P


def stochastic_gradients(P, n_draws):
    """Gradient terms of many independent draws."""
    evaluator = small_evaluator(n_draws)
    with evaluator.workers(1):
        q = evaluator.evaluate(np.cumsum(P), 11, 0)
    counts = np.array([np.bincount(row, minlength=P_FEATURES) for row in evaluator.draws.features])
    return projected(q[:, None] * counts, P)


def centred_gradients(P, n_steps, batch_size, mean, common, effects):
    """Gradient terms of many steps on shared samples, from centred errors and from raw errors."""
    evaluator = small_evaluator(batch_size, test_size=N_TEST, shares_samples=True)
    sums = np.zeros((2, n_steps, P_FEATURES))
    centred = np.empty((batch_size, SUBSET))
    level = float(effects @ P)
    with evaluator.workers(1):
        for step in range(n_steps):
            q = evaluator.evaluate(np.cumsum(P), 12, step)
            features = evaluator.draws.features
            centre_errors(features, q, mean, common, effects, level, centred)
            for row, signals in enumerate((centred, np.repeat(q, SUBSET))):
                sums[row, step] = np.bincount(features.ravel(), signals.ravel(), P_FEATURES) / batch_size
    return [projected(weighted, P) for weighted in sums]


def expected_gradients(P, energy):
    exact = energy.gradient(P)
    return exact - exact.mean(), project_for_log(P, energy.log_gradient(P))


def assert_mean(draws, gradient):
    standard_error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    deviation = (draws.mean(axis=0) - gradient) / standard_error
    assert np.all(np.abs(deviation) < 4.0), deviation
    # The check has power: the gradient itself is many standard errors away from zero.
    assert np.abs(gradient / standard_error).max() > 8.0


@pytest.mark.parametrize("n_draws", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_mean_of_the_stochastic_gradient_is_the_exact_gradient(n_draws):
    P = np.array([0.4, 0.3, 0.2, 0.1])
    for draws, gradient in zip(
        stochastic_gradients(P, n_draws), expected_gradients(P, exact_energy()), strict=True
    ):
        assert_mean(draws, gradient)


@pytest.mark.parametrize(("common", "size"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1), (1.0, -0.1)])
def test_what_is_subtracted_leaves_the_mean_of_the_gradient(common, size):
    """This holds for any effects, right or wrong; the oracle is the sum over all subsets and samples."""
    P = np.array([0.4, 0.3, 0.2, 0.1])
    effects = size * np.array([1.0, -0.5, 2.0, 0.0])
    centred, _ = centred_gradients(P, 4000, 5, 0.3, common, effects)
    expected = expected_gradients(P, exact_energy(error_on_left_out))
    for draws, gradient in zip(centred, expected, strict=True):
        assert_mean(draws, gradient)


def test_what_is_subtracted_takes_away_most_of_the_variance():
    P = np.array([0.4, 0.3, 0.2, 0.1])
    energy = exact_energy(error_on_left_out)
    effects = energy.gradient(P) / SUBSET  # effect of a feature in a subset, up to a constant
    centred, raw = centred_gradients(P, 2000, 5, energy.value(P), 0.9, effects)
    for kind in range(2):
        assert np.all(centred[kind].var(axis=0) < 0.5 * raw[kind].var(axis=0))


def test_gradients_match_finite_differences():
    rng = np.random.default_rng(0)
    subsets = all_subsets(5, 3)
    energy = ExactEnergy(subsets, rng.uniform(size=len(subsets)), 5)
    P = rng.dirichlet(np.ones(5))
    step = 1e-6
    for k in range(5):
        e = np.eye(5)[k] * step
        numeric = (energy.value(P + e) - energy.value(P - e)) / (2 * step)
        assert energy.gradient(P)[k] == pytest.approx(numeric, rel=1e-7)
    np.testing.assert_allclose(energy.log_gradient(P), P * energy.gradient(P))


def test_energy_is_the_sum_over_all_draws():
    rng = np.random.default_rng(1)
    table = {tuple(s): rng.uniform() for s in all_subsets(3, 3).tolist()}
    energy = ExactEnergy(all_subsets(3, 3), np.array(list(table.values())), 3)
    P = rng.dirichlet(np.ones(3))
    brute = sum(table[tuple(sorted(w))] * np.prod(P[list(w)]) for w in product(range(3), repeat=3))
    assert energy.value(P) == pytest.approx(brute, rel=1e-12)


@pytest.mark.parametrize(("first_step", "share"), [(0.01, 0.999), (1.0, 0.8), (1e4, 0.8)])
def test_exact_gradient_descends(first_step, share):
    rng = np.random.default_rng(2)
    subsets = all_subsets(6, 2)
    energy = ExactEnergy(subsets, rng.uniform(size=len(subsets)), 6)
    P = np.full(6, 1 / 6)
    values = [energy.value(P)]
    for _ in range(200):
        P, step = descend(energy, P, first_step)
        values.append(energy.value(P))
        if step == 0.0:
            break
    assert np.all(np.diff(values[: len(values) - 1]) < 0)
    assert values[-1] < share * values[0]
    assert P.sum() == pytest.approx(1.0)


def test_exact_euclidean_gradient_ends_where_the_optimality_conditions_hold():
    rng = np.random.default_rng(4)
    subsets = all_subsets(6, 2)
    energy = ExactEnergy(subsets, rng.uniform(size=len(subsets)), 6)
    state = RunState(0, np.full(6, 1 / 6))
    assert run_exact(energy, state, scheme="euclidean", max_iter=5000, tol=1e-12).converged
    P = state.weights
    # The derivative for each feature, also for those of weight zero, by differences of the polynomial.
    step = 1e-6
    slope = np.array(
        [(energy.value(P + step * e) - energy.value(P - step * e)) / (2 * step) for e in np.eye(6)]
    )
    kept = P > 1e-8
    assert 0 < kept.sum() < 6
    assert slope[kept] == pytest.approx(slope[kept].mean(), abs=1e-4)
    assert slope[~kept].min() >= slope[kept].mean() - 1e-4


def test_too_many_subsets_are_refused():
    with pytest.raises(ValueError, match=r"4421275 subsets, more than 200000.*Lower 'subset_size'"):
        all_subsets(100, 4)
