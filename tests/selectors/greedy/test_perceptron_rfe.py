"""PerceptronRFE: the margin that pruning leaves, the rounds against a direct loop, bad input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from small_problems import noise, problem_of
from zeronorm import PerceptronRFE
from zeronorm.design import as_design
from zeronorm.design._sparse import SparseDesign
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Binary
from zeronorm.selectors.greedy import _perceptron_rfe as module
from zeronorm.selectors.greedy import _perceptron_rfe as perceptron_rfe
from zeronorm.selectors.greedy._perceptron_rfe import PerceptronModels, SparseRows, solve_alma


def data(seed=0, n=40, p=200, shift=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, :3] += shift * (2 * y - 1)[:, None]
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("accuracy", [0.3, 0.5, 0.8])
def test_pruned_weights_keep_the_promised_margin(seed, accuracy):
    X, y = data(seed)
    problem = Problem(design=as_design(X), target=Binary(y))
    models = PerceptronModels(problem, accuracy, None, 50)
    models.train()
    margin, weights, power = models.solution.margin, models.solution.weights, models.power
    assert margin > 0.0
    value = models.importance()
    n_out = models.n_affordable(np.sort(value))
    pruned = weights.copy()
    pruned[np.argsort(value)[:n_out]] = 0.0
    rows = np.column_stack([X, np.ones(len(y))])
    rows /= np.linalg.norm(rows, power, axis=1)[:, None]
    left = float(np.min((2 * y - 1) * (rows @ pruned)))
    assert 0 < n_out < X.shape[1]
    assert left >= (1.0 - accuracy * (1.0 - accuracy)) * margin
    # The kept share of the norm is the rule of the paper, and no further weight would fit.
    q = power / (power - 1.0)
    budget = (accuracy * (1.0 - accuracy) * margin) ** q
    kept = np.sum(np.abs(pruned) ** q)
    assert kept >= 1.0 - budget - 1e-12
    smallest_kept = np.abs(pruned[:-1][pruned[:-1] != 0.0]).min()
    assert kept - smallest_kept**q < 1.0 - budget


def test_rounds_equal_a_direct_loop():
    X, y = data(1)
    signs, active, sizes, margins = 2.0 * y - 1.0, np.arange(X.shape[1]), [], []
    while True:
        power = max(2.0, np.log(active.size))
        rows = np.ascontiguousarray(np.column_stack([X[:, active], np.ones(len(y))]))
        found = solve_alma(rows, signs, power=power, accuracy=0.5, max_epochs=50)
        sizes.append(active.size)
        margins.append(found.margin)
        share = np.abs(found.weights[:-1]) ** (power / (power - 1.0))
        order = np.argsort(share)
        out = np.cumsum(share[order]) <= (0.25 * found.margin) ** (power / (power - 1.0))
        if not out.any() or active.size == 1:
            break
        active = np.sort(active[order[~out]])
    s = PerceptronRFE().fit(X, y)
    assert s.path_.sizes.tolist() == sorted(sizes)
    assert np.flatnonzero(s.support_).tolist() == active.tolist()
    np.testing.assert_allclose(s.margins_, margins, rtol=1e-9)
    assert {0, 1, 2} <= set(active.tolist())
    assert active.size < 60


def test_halving_visits_halves_and_keeps_the_signal():
    X, y = data(2)
    s = PerceptronRFE(3, rule="halve").fit(X, y)
    assert s.path_.sizes.tolist() == [1, 2, 4, 7, 13, 25, 50, 100, 200]
    assert set(np.flatnonzero(s.support_)) == {0, 1, 2}


def test_groups_leave_together_and_forced_features_stay():
    X, y = data(3, p=40)
    groups = np.arange(40) // 4
    s = PerceptronRFE(rule="halve", feature_groups=groups, always_keep=[38]).fit(X, y)
    for k in range(4, 41, 4):
        mask = s.path_.mask(k)
        assert mask[36:].all()
        assert all(len(set(mask[groups == g])) == 1 for g in range(10))
    assert s.path_.mask(8)[:4].all()


def test_small_weights_are_ranked_and_not_tied():
    X, y = data(4, p=2000)
    s = PerceptronRFE(rule="halve").fit(X, y)
    dropped = s.path_.order[1000:]
    assert np.all(np.diff(s.scores_[dropped]) <= 0)
    assert np.any(np.diff(dropped) < 0)


def test_overlapping_classes_are_reported(monkeypatch):
    """Where not even coordinates of their own separate them."""
    monkeypatch.setattr(module, "LARGEST_SLACK", 0.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    for rule in ("margin", "halve"):
        with pytest.warns(ConvergenceWarning, match="did not separate the classes"):
            s = PerceptronRFE(rule=rule).fit(X, y)
        assert not s.converged_
        assert np.all(np.isfinite(s.scores_))


@pytest.mark.parametrize(
    ("name", "value"),
    [("rule", "x"), ("accuracy", 0.0), ("accuracy", 1.0), ("power", 1.5), ("max_iter", 0)],
)
def test_bad_parameters_are_named(name, value):
    X, y = data(p=5)
    with pytest.raises(ValueError, match=f"'{name}' parameter of PerceptronRFE"):
        PerceptronRFE(2, **{name: value}).fit(X, y)


def sparse_data(n=60, p=80):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(0.3, size=(n, p)).astype(float), np.arange(n) % 2
    X[:, :3] += 3.0 * y[:, None]
    return X, y


@pytest.mark.parametrize("parameters", [{}, {"standardize": False}, {"rule": "halve"}, {"power": 2.0}])
def test_sparse_rows_give_the_same(parameters):
    X, y = sparse_data()
    dense, stored = (PerceptronRFE(3, **parameters).fit(data, y) for data in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(stored.margins_, dense.margins_, atol=1e-12)
    np.testing.assert_array_equal(stored.path_.order, dense.path_.order)


def test_sparse_data_are_never_dense(monkeypatch):
    X, y = sparse_data()
    monkeypatch.setattr(SparseDesign, "_fill", None)
    assert PerceptronRFE(3).fit(sparse.csr_array(X), y).support_[:3].all()


def test_warns_before_corrections_of_minutes(monkeypatch):
    """Where classes may overlap, the first round is tried with up to twelve sizes of the samples' own coordinates."""

    def stop(*_):
        raise InterruptedError

    monkeypatch.setattr(module, "eliminate", stop)
    X = sparse.random_array((100_000, 1000), density=1e-4, format="csr", rng=np.random.default_rng(0))
    expected = "100000 samples of 1000 features may take up to 20 minutes"
    with pytest.warns(UserWarning, match=expected) as said, pytest.raises(InterruptedError):
        PerceptronRFE(3).fit(X, np.arange(100_000) % 2)
    assert said[0].filename == __file__
    with pytest.raises(InterruptedError):  # more features than samples: no warning
        PerceptronRFE(3).fit(X.T.tocsr(), np.arange(1000) % 2)


@pytest.mark.parametrize("power", [2.0, 3.5])
def test_norms_of_rows_in_any_storage(power):
    X = np.round(noise(6, 4)) * (noise(6, 4, 1) > 0.0)
    shift = np.array([0.5, -1.0, 0.0, 2.0])
    rows = perceptron_rfe.SparseRows(sparse.csr_array(X), shift)
    wanted = np.linalg.norm(X - shift, power, axis=1)
    np.testing.assert_allclose(rows.norms(power), wanted)
    np.testing.assert_allclose(perceptron_rfe.row_norms(X - shift, power), wanted)
    w = np.array([1.0, 2.0, -1.0, 0.5])
    np.testing.assert_allclose(rows @ w, (X - shift) @ w)
    assert rows.shape == (6, 4)


@pytest.mark.parametrize(("p", "power"), [(2, 2.0), (7, 2.0), (21, np.log(21)), (40, np.log(40))])
def test_the_power_of_a_perceptron_follows_the_features_that_are_left(p, power):
    problem = problem_of([0, 1, 0, 1], noise(4, p))
    models = perceptron_rfe.PerceptronModels(problem, 0.5, None, 3)
    assert models.power == pytest.approx(power)
    assert perceptron_rfe.PerceptronModels(problem, 0.5, 2.5, 3).power == 2.5
    models.remove(np.array([0]))
    assert models.active.tolist() == list(range(1, p))


def test_how_many_weights_a_margin_allows_to_remove():
    problem = problem_of([0, 1, 0, 1], noise(4, 4))
    models = perceptron_rfe.PerceptronModels(problem, 0.5, 2.0, 3)
    models.solution = SimpleNamespace(margin=2.0, weights=np.array([0.3, -0.2, 0.1, 0.4, 9.0]))
    # With power 2 the budget is (a (1 - a) margin)² = 1/4.
    assert models.n_affordable(np.array([0.3, 0.4, 0.5])) == 2
    assert models.n_affordable(np.array([0.3, 0.401, 0.5])) == 1
    np.testing.assert_allclose(models.importance(), [0.3, 0.2, 0.1, 0.4])
    np.testing.assert_allclose(models.group_importance(np.array([0, 1, 1, 0])), [0.5, 0.05**0.5])
    models.solution.margin = -1.0
    assert models.n_affordable(np.array([0.0, 1e-9])) == 1
    models.fixed_power = 3.0  # q = 3/2, and the values are |w|^(1/2)
    np.testing.assert_allclose(models.importance(), np.sqrt([0.3, 0.2, 0.1, 0.4]))
    models.solution.margin = 4.0
    assert models.n_affordable(np.array([0.5, 0.9, 0.6])) == 2


def alma(X, y, power, accuracy, max_epochs):
    """ALMA of Gentile 2001, line by line: rows of unit norm, the dual weights computed afresh every time."""
    rows = X / np.linalg.norm(X, power, axis=1)[:, None]
    theta, k = np.zeros(X.shape[1]), 1

    def weights():
        length = np.linalg.norm(theta, power)
        return np.sign(theta) * np.abs(theta) ** (power - 1.0) / (length ** (power - 2.0) if length else 1.0)

    n_epochs, is_clean = 0, False
    while n_epochs < max_epochs and not is_clean:
        before = k
        for row, label in zip(rows, y, strict=True):
            if label * (weights() @ row) <= (1.0 - accuracy) * np.sqrt(8.0 * (power - 1.0) / k) / accuracy:
                theta = theta + np.sqrt(2.0 / ((power - 1.0) * k)) * label * row
                theta = theta / max(1.0, np.linalg.norm(theta, power))
                k += 1
        n_epochs, is_clean = n_epochs + 1, k == before
    length = np.linalg.norm(theta, power)
    unit = np.sign(theta) * (np.abs(theta) / length) ** (power - 1.0)
    return unit, float(np.min(y * (rows @ unit))), k - 1, n_epochs, is_clean


@pytest.mark.parametrize("power", [2.0, 3.5])
@pytest.mark.parametrize(("accuracy", "max_epochs"), [(0.5, 30), (0.9, 3)])
@pytest.mark.parametrize("is_stored", [False, True])
def test_the_large_margin_perceptron_line_by_line(power, accuracy, max_epochs, is_stored):
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    X = np.round(noise(12, 4) + 3.0 * y[:, None] * [1.0, 0.0, 0.0, 1.0]) * (noise(12, 4, 1) > -0.7)
    shift = np.array([0.5, 0.0, -0.25, 0.1])
    rows = perceptron_rfe.SparseRows(sparse.csr_array(X), shift) if is_stored else X - shift
    found = perceptron_rfe.solve_alma(rows, y, power=power, accuracy=accuracy, max_epochs=max_epochs)
    weights, margin, n_corrections, n_epochs, is_clean = alma(X - shift, y, power, accuracy, max_epochs)
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    assert found.margin == pytest.approx(margin, abs=1e-9)
    assert (found.n_corrections, found.n_epochs, found.is_clean) == (n_corrections, n_epochs, is_clean)


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("n", "p"), [(60, 5), (300, 20)])
def test_classes_that_overlap_are_separated_by_coordinates_of_their_own(n, p, shift):
    y = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, p))
    X[:, :2] += shift * y[:, None]
    s = PerceptronRFE().fit(X, y)  # a warning of convergence would be an error
    assert s.converged_
    assert s.slack_ > 0.0
    if shift >= 1.0:
        assert sorted(s.path_.support(2)) == [0, 1]


@pytest.mark.parametrize("power", [2.0, 3.5])
def test_slack_equals_explicit_coordinates(power):
    """Every row with a column of its own, of the size of its norm times the slack; sparse rows alike."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 4)), np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    lengths = np.linalg.norm(X, power, axis=1)
    settings = {"power": power, "accuracy": 0.5, "max_epochs": 7}
    expected = solve_alma(np.hstack([X, np.diag(2.0 * lengths)]), y, **settings)
    found = solve_alma(X, y, slack=2.0, **settings)
    by_entries = solve_alma(SparseRows(sparse.csr_array(X), np.zeros(4)), y, slack=2.0, **settings)
    for one in (found, by_entries):
        assert one.margin == pytest.approx(expected.margin, rel=1e-9)
        np.testing.assert_allclose(one.weights, expected.weights[:4], rtol=1e-9)
