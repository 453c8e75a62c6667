"""OptimalBrainDamage: saliencies against the true rise of the objective, the rounds, planted problems, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from zeronorm import FisherScore, OptimalBrainDamage
from zeronorm.datasets._generators import make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.engines.sensitivity._network import NetworkModels
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Binary
from zeronorm.solvers._neural_network import NetworkObjective, NeuralNetwork, train_network
from zeronorm.solvers.linear._losses import LOSSES


def data(seed=0, n=120, p=7):
    """The classes depend on a product of two features and on a third."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return StandardScaler().fit_transform(X), (X[:, 2] * X[:, 4] + X[:, 5] > 0).astype(int)


def trained_models(tol=1e-8, penalty=0.02):
    X, y = data()
    problem = Problem(design=as_design(X), target=Binary(y), rng=np.random.default_rng(0))
    models = NetworkModels(problem, n_hidden=4, penalty=penalty, tol=tol, max_iter=5000)
    models.train()
    return models


def test_saliency_is_the_second_order_rise_of_the_objective():
    models = trained_models()
    network, scale = models.network, 1e-3
    for name, saliency in zip(("hidden_weights", "output_weights"), models.saliencies(), strict=True):
        for index in np.ndindex(saliency.shape):
            values = []
            for factor in (1.0 - scale, 1.0 + scale):
                changed = getattr(network, name).copy()
                changed[index] *= factor
                values.append(models.objective.value_and_gradient(replace(network, **{name: changed}))[0])
            # Changing a weight by a small share of itself costs that share squared of its saliency.
            rise = (np.mean(values) - models.value) / scale**2
            assert rise == pytest.approx(saliency[index], rel=1e-3, abs=1e-8)


def test_small_weights_cost_about_their_saliency():
    models = trained_models()
    hidden, _ = models.saliencies()
    for index in np.argwhere(hidden < np.quantile(hidden, 0.3)):
        mask = models.network.hidden_mask.copy()
        mask[tuple(index)] = False
        pruned = models.network.masked(mask, models.network.output_mask)
        rise = models.objective.value_and_gradient(pruned)[0] - models.value
        assert rise == pytest.approx(hidden[tuple(index)], rel=0.3, abs=1e-5)


def curvature(objective, network, name, h=1e-4):
    """Second differences of the objective in each weight of a layer."""
    result = np.empty(getattr(network, name).shape)
    for index in np.ndindex(result.shape):
        values = []
        for step in (h, 0.0, -h):
            moved = getattr(network, name).copy()
            moved[index] += step
            values.append(objective.value_and_gradient(replace(network, **{name: moved}))[0])
        result[index] = (values[0] - 2 * values[1] + values[2]) / h**2
    return result


# The plain loop asks for the same tolerance, which rounding may not allow in the last round.
@pytest.mark.filterwarnings("ignore:OptimalBrainDamage did not converge")
def test_rounds_equal_a_plain_loop():
    X, y = data(1)
    network = NeuralNetwork.random(7, 3, 1, np.random.default_rng(5))
    objective = NetworkObjective(as_design(X), np.where(y == 1, 1.0, -1.0)[:, None], LOSSES["logistic"], 0.02)
    left_at = {}
    while True:
        network = train_network(objective, network, tol=1e-7, max_iter=5000).network
        if np.count_nonzero(network.hidden_mask.any(axis=1)) == 1:
            break
        saliency = [
            np.where(mask, 0.5 * curvature(objective, network, name) * getattr(network, name) ** 2, np.inf)
            for name, mask in (
                ("hidden_weights", network.hidden_mask),
                ("output_weights", network.output_mask),
            )
        ]
        flat = np.concatenate([s.ravel() for s in saliency])
        keep = np.arange(flat.size) != np.argmin(flat)
        before = network.hidden_mask.any(axis=1)
        network = network.masked(
            network.hidden_mask & keep[:21].reshape(7, 3), network.output_mask & keep[21:].reshape(3, 1)
        )
        for feature in np.flatnonzero(before & ~network.hidden_mask.any(axis=1)):
            left_at[int(feature)] = np.count_nonzero(before)
    s = OptimalBrainDamage(1, n_hidden=3, weight_decay=0.02, step=1, tol=1e-7, max_iter=5000, random_state=5)
    order = s.fit(X, y).path_.order
    expected = sorted(left_at, key=lambda feature: left_at[feature])
    assert order[1:].tolist() == expected


@pytest.mark.parametrize("rule", ["saliency", "first_layer"])
def test_planted_features_are_found(rule):
    for seed in range(3):
        X, y = data(seed, n=300, p=15)
        s = OptimalBrainDamage(3, rule=rule, random_state=0).fit(X, y)
        assert set(np.flatnonzero(s.support_)) == {2, 4, 5}
        assert s.converged_


def test_several_classes_and_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    radius = X[:, 1] ** 2 + X[:, 6] ** 2
    classes = np.digitize(radius, [0.8, 2.5])
    assert set(np.flatnonzero(OptimalBrainDamage(2, random_state=0).fit(X, classes).support_)) == {1, 6}
    s = OptimalBrainDamage(2, task="regression", weight_decay=0.01, random_state=0)
    assert set(np.flatnonzero(s.fit(X, 1e6 * radius).support_)) == {1, 6}


def toy_rate(selector, n_draws):
    found = 0
    for seed in range(n_draws):
        X, y = make_nonlinear_toy(150, random_state=seed)[:2]
        found += set(selector.fit(X, y).path_.support(2).tolist()) == {0, 1}
    return found / n_draws


def test_nonlinear_toy():
    assert toy_rate(OptimalBrainDamage(2, random_state=0), 4) >= 0.5
    assert toy_rate(FisherScore(2), 4) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["saliency", "first_layer"])
def test_nonlinear_toy_thirty_draws(rule):
    rate = toy_rate(OptimalBrainDamage(2, rule=rule, random_state=0), 30)
    print(f"OptimalBrainDamage, rule {rule}: the pair is found in {100 * rate:.0f} % of 30 draws")
    assert rate > 0.5


def test_forced_features_keep_their_weights():
    X, y = data(2)
    s = OptimalBrainDamage(2, always_keep=[0, 6], random_state=0).fit(X, y)
    assert set(np.flatnonzero(s.support_)) == {0, 6}
    assert set(s.path_.order[2:5].tolist()) == {2, 4, 5}


def test_groups_are_never_split():
    X, y = data(3, p=8)
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    for rule in ("saliency", "first_layer"):
        path = OptimalBrainDamage(4, rule=rule, feature_groups=groups, random_state=0).fit(X, y).path_
        for k in range(2, 9, 2):
            assert all(len(set(path.mask(k)[groups == g])) == 1 for g in range(4))
        assert set(path.support(4).tolist()) == {2, 3, 4, 5}


@pytest.mark.parametrize("rule", ["saliency", "first_layer"])
def test_a_network_that_cannot_fit_is_reported(rule):
    X, y = data(4)
    with pytest.warns(ConvergenceWarning, match="no better than a constant"):
        s = OptimalBrainDamage(2, rule=rule, weight_decay=100.0, random_state=0).fit(X, y)
    assert not s.converged_
    assert np.all(np.isfinite(s.scores_))
    with pytest.warns(ConvergenceWarning, match="no better than a constant"):
        OptimalBrainDamage(1, rule=rule, random_state=0).fit(np.ones((6, 3)), [0, 1] * 3)


def test_too_few_iterations_are_reported():
    X, y = data(5)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        s = OptimalBrainDamage(2, max_iter=2, tol=1e-9, random_state=0).fit(X, y)
    assert not s.converged_


@pytest.mark.parametrize(
    ("name", "value"),
    [("rule", "x"), ("n_hidden", 0), ("weight_decay", 0.0), ("step", 0), ("max_iter", 1.5), ("tol", -1.0)],
)
def test_bad_parameters_are_named(name, value):
    X, y = data()
    with pytest.raises(ValueError, match=f"'{name}' parameter of OptimalBrainDamage"):
        OptimalBrainDamage(2, **{name: value}).fit(X, y)
