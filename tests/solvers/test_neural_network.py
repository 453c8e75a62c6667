"""The network: gradient and diagonal Hessian against finite differences, masks, training against other solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from zeronorm.design import as_design
from zeronorm.solvers._neural_network import NetworkObjective, NeuralNetwork, train_network
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear._losses import LOSSES


def setting(seed=0, n=30, p=5, hidden=4, outputs=1, loss="logistic", penalty=0.01, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    targets = rng.normal(size=(n, outputs))
    if loss == "logistic":
        targets = np.sign(targets)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    objective = NetworkObjective(as_design(X), targets, LOSSES[loss], penalty, weight)
    network = NeuralNetwork.random(p, hidden, outputs, rng)
    return objective, replace(network, hidden_bias=rng.normal(size=hidden))


def half_masked(network, seed=1):
    rng = np.random.default_rng(seed)
    return network.masked(
        rng.random(network.hidden_weights.shape) < 0.6, rng.random(network.output_weights.shape) < 0.7
    )


CASES = [("logistic", 1, False), ("logistic", 3, True), ("squared_error", 2, False)]


@pytest.mark.parametrize(("loss", "outputs", "weighted"), CASES)
def test_gradient_matches_finite_differences(loss, outputs, weighted):
    objective, network = setting(loss=loss, outputs=outputs, weighted=weighted)
    for start in (network, half_masked(network)):
        error = check_grad(
            lambda v, start=start: objective.value_and_gradient(start.unpacked(v))[0],
            lambda v, start=start: objective.value_and_gradient(start.unpacked(v))[1].packed(),
            start.packed(),
        )
        assert error < 1e-6


@pytest.mark.parametrize(("loss", "outputs", "weighted"), CASES)
def test_diagonal_hessian_matches_finite_differences_of_the_gradient(loss, outputs, weighted):
    objective, network = setting(loss=loss, outputs=outputs, weighted=weighted)
    h = 1e-5
    for name, diagonal in zip(
        ("hidden_weights", "output_weights"), objective.diagonal_hessian(network), strict=True
    ):
        for index in np.ndindex(diagonal.shape):
            slopes = []
            for step in (h, -h):
                moved = getattr(network, name).copy()
                moved[index] += step
                _, gradient = objective.value_and_gradient(replace(network, **{name: moved}))
                slopes.append(getattr(gradient, name)[index])
            assert diagonal[index] == pytest.approx((slopes[0] - slopes[1]) / (2 * h), rel=1e-6, abs=1e-8)


def test_packing_is_a_round_trip():
    _, network = setting(outputs=3)
    masked = half_masked(network)
    again = masked.unpacked(masked.packed())
    for name in ("hidden_weights", "hidden_bias", "output_weights", "output_bias"):
        assert np.array_equal(getattr(again, name), getattr(masked, name))
    assert np.all(masked.hidden_weights[~masked.hidden_mask] == 0.0)


def test_training_reaches_a_stationary_point_inside_the_mask():
    objective, network = setting(penalty=0.05)
    start = half_masked(network)
    trained = train_network(objective, start, tol=1e-6)
    assert trained.status is Status.CONVERGED
    assert trained.value < objective.value_and_gradient(start)[0]
    _, gradient = objective.value_and_gradient(trained.network)
    assert np.abs(gradient.packed()).max() <= 1e-6
    assert np.all(trained.network.hidden_weights[~start.hidden_mask] == 0.0)
    assert np.all(trained.network.output_weights[~start.output_mask] == 0.0)


def test_without_inputs_the_network_is_the_best_constant():
    for loss, constant in (
        ("logistic", lambda y: np.log((y > 0).sum() / (y < 0).sum())),
        ("squared_error", np.mean),
    ):
        objective, network = setting(loss=loss)
        nothing = network.masked(np.zeros((5, 4), dtype=bool), np.zeros((4, 1), dtype=bool))
        bias = train_network(objective, nothing, tol=1e-9).network.output_bias[0]
        assert bias == pytest.approx(constant(objective.targets[:, 0]), abs=1e-7)


def test_exclusive_or_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.sign(X[:, :1] * X[:, 1:])
    objective = NetworkObjective(as_design(X), y, LOSSES["logistic"], 1e-4)
    trained = train_network(objective, NeuralNetwork.random(2, 8, 1, rng))
    assert np.mean(np.sign(trained.network.outputs(objective.design)) == y) > 0.97


def test_the_iteration_limit_is_reported():
    objective, network = setting(penalty=1e-6)
    assert train_network(objective, network, tol=1e-10, max_iter=3).status is Status.ITERATION_LIMIT


def test_weights_start_between_the_bounds_of_glorot():
    network = NeuralNetwork.random(40, 20, 10, np.random.default_rng(0))
    for weights in (network.hidden_weights, network.output_weights):
        bound = np.sqrt(6.0 / sum(weights.shape))
        assert 0.98 * bound < np.abs(weights).max() <= bound
        assert abs(weights.mean()) < 0.1 * bound
