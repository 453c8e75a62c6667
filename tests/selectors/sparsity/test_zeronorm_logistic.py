"""ZeroNormLogistic against exhaustive search, a convex solver, and abess."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.preprocessing import StandardScaler

import zeronorm
from oracles.logistic import best_subset, logistic_objective
from small_problems import problem_of
from zeronorm import ZeroNormLogistic, as_design
from zeronorm.engines.logistic_exchanges._subsets import SubsetFit
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Binary
from zeronorm.selectors.sparsity._zeronorm_logistic import SURROGATES, _extended_bic, tangent_factors
from zeronorm.solvers.l1_smooth._logistic import CoupledLogistic

SIZES = (1, 2, 3, 4)


def planted_problem(seed, n=60, p=12, k=4, correlation=0.0):
    """Labels drawn from a logistic model on a few of the standardised features, which are returned as well."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + np.sqrt(correlation / (1.0 - correlation)) * rng.normal(size=(n, 1))
    X = StandardScaler().fit_transform(X)
    w = np.zeros(p)
    planted = rng.choice(p, k, replace=False)
    w[planted] = rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 2.0, k)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
    y[:2] = 0, 1
    return X, y, sorted(planted.tolist())


def logistic_problem(*args, **kwargs):
    return planted_problem(*args, **kwargs)[:2]


def compare_with_exhaustive_search(n_problems):
    """Relative excess of the objective over the optimum: problems by sizes."""
    excess = []
    for seed in range(n_problems):
        rng = np.random.default_rng(1000 + seed)
        n, p, correlation = int(rng.integers(25, 120)), int(rng.integers(6, 16)), rng.choice([0.0, 0.5, 0.8])
        X, y = logistic_problem(seed, n, p, correlation=correlation)
        signs = 2.0 * y - 1.0
        path = ZeroNormLogistic(4).fit(X, y).path_
        ours = [logistic_objective(X[:, path.support(k)], signs) for k in SIZES]
        best = [best_subset(X, signs, k)[1] for k in SIZES]
        excess.append([o / b - 1.0 for o, b in zip(ours, best, strict=True)])
    return np.asarray(excess)


def test_equals_exhaustive_search():
    excess = compare_with_exhaustive_search(8)
    assert np.mean(excess.max(axis=1) <= 1e-7) >= 0.95
    assert excess.max() <= 0.01


@pytest.mark.slow
def test_equals_exhaustive_search_on_200_problems():
    excess = compare_with_exhaustive_search(200)
    equal = np.mean(excess.max(axis=1) <= 1e-7)
    print(f"equal to exhaustive search: {equal:.1%} of 200 problems, largest excess {excess.max():.2e}")
    assert equal >= 0.95
    assert excess.max() <= 0.01


def test_equals_exhaustive_search_for_three_classes():
    rng = np.random.default_rng(5)
    X, _ = logistic_problem(3, n=60, p=7)
    y = np.argmax(X[:, [1, 4, 6]] + 0.7 * rng.normal(size=(60, 3)), axis=1)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)

    def total(subset):
        return sum(logistic_objective(X[:, list(subset)], s) for s in signs.T)

    path = ZeroNormLogistic(3).fit(X, y).path_
    for k in (1, 2, 3):
        best = min(total(s) for s in combinations(range(7), k))
        assert total(path.support(k)) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_objective_of_the_path_is_the_smallest_loss_of_its_subsets(seed):
    X, y = logistic_problem(seed, n=80, p=300, k=5)
    path = ZeroNormLogistic(6).fit(X, y).path_
    assert path.sizes.tolist() == [1, 2, 3, 4, 5, 6]
    for subset, value in zip(path.subsets, path.objective, strict=True):
        assert value == pytest.approx(logistic_objective(X[:, subset], 2.0 * y - 1.0), rel=1e-8)
    assert np.all(np.diff(path.objective) <= 0)


def test_planted_features_are_found_in_wide_data():
    X, y, planted = planted_problem(7, n=700, p=1500, k=5)
    assert np.flatnonzero(ZeroNormLogistic(5).fit(X, y).support_).tolist() == planted


def test_selected_size_finds_the_number_of_planted_features():
    X, y = logistic_problem(7, n=300, p=400, k=4)
    assert ZeroNormLogistic().fit(X, y).support_.sum() == 4


def test_forced_features_are_part_of_the_search():
    X, y = logistic_problem(2, n=60, p=9)
    signs = 2.0 * y - 1.0
    path = ZeroNormLogistic(3, always_keep=[8]).fit(X, y).path_
    best = min((logistic_objective(X[:, [*s, 8]], signs), s) for s in combinations(range(8), 2))
    assert path.support(3).tolist() == [*best[1], 8]


# -- concave penalties ----------------------------------------------------------------------------------


def penalised_value(name, models, penalty, epsilon):
    weights = models.absolute_weights()
    slope = lambda t: float(tangent_factors(name, np.asarray([t]), penalty, epsilon)[0])
    return models.loss + penalty * sum(quad(slope, 0.0, w, limit=200)[0] for w in weights[weights > 0])


def test_concave_penalties_are_flat_where_the_papers_define_it():
    """Fan & Li (2001): SCAD bends at λ and is flat beyond 3.7 λ. Zhang (2010): MCP with shape 3 is flat beyond 3 λ."""
    w = np.array([0.0, 1.0, 2.0, 2.9, 3.0, 3.6, 3.7, 9.0]) * 0.5
    flat = 1e-4  # no weight is without any penalty
    mcp = [1.0, 2 / 3, 1 / 3, 0.1 / 3, flat, flat, flat, flat]
    scad = [1.0, 1.0, 1.7 / 2.7, 0.8 / 2.7, 0.7 / 2.7, 0.1 / 2.7, flat, flat]
    np.testing.assert_allclose(tangent_factors("mcp", w, 0.5, 0.1), mcp, atol=1e-12)
    np.testing.assert_allclose(tangent_factors("scad", w, 0.5, 0.1), scad, atol=1e-12)


@pytest.mark.parametrize("name", SURROGATES)
def test_reweighting_never_increases_the_penalised_loss(name):
    X, y = logistic_problem(1, n=50, p=30)
    problem = Problem(design=as_design(X), target=Binary(y, np.arange(2)))
    models = CoupledLogistic(problem, 1e-9)
    penalty, epsilon = 0.2 * models.largest_penalty, 0.1
    factors, values = np.ones(30), []
    for _ in range(6):
        models.solve(penalty * factors)
        values.append(penalised_value(name, models, penalty, epsilon))
        factors = tangent_factors(name, models.absolute_weights(), penalty, epsilon)
    assert models.n_solved == 6
    assert np.all(np.diff(values) <= 1e-7)
    assert values[-1] < values[0] - 1e-4


@pytest.mark.parametrize("name", SURROGATES)
def test_concave_penalties_find_planted_features(name):
    X, y, planted = planted_problem(11, n=400, p=60, k=3)
    selector = ZeroNormLogistic(3, penalty=name, n_alphas=25).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == planted


# -- bad and extreme input ------------------------------------------------------------------------------


def test_weights_are_repeated_samples_where_subsets_are_larger_than_the_samples():
    rng = np.random.default_rng(2)
    X, y, weight = rng.random((15, 30)), rng.integers(0, 3, 15), rng.integers(0, 5, 15)
    make = {"penalty": "mcp", "n_alphas": 3, "max_reweightings": 2}
    weighted = ZeroNormLogistic(**make).fit(X, y, sample_weight=weight)
    repeated = ZeroNormLogistic(**make).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert np.count_nonzero(weight) < repeated.support_.sum()
    np.testing.assert_array_equal(weighted.support_, repeated.support_)


def test_separable_data_have_finite_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 500))
    y = (X[:, 3] > 0).astype(int)
    selector = ZeroNormLogistic(8).fit(X, y)
    assert selector.path_.support(1).tolist() == [3]
    assert np.all(np.isfinite(selector.path_.objective))
    assert selector.converged_


def test_two_samples():
    selector = ZeroNormLogistic().fit([[0.0, 1.0, 5.0], [1.0, 1.0, 7.0]], [0, 1])
    assert selector.support_.sum() == 1
    assert not selector.support_[1]


def test_more_features_than_the_search_visits():
    X, y = logistic_problem(0, n=30, p=40)
    selector = ZeroNormLogistic(30, max_features=3).fit(X, y)
    assert selector.support_.sum() == 30
    assert selector.path_.sizes.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"penalty": "l2"}, "'penalty' parameter"),
        ({"ridge": 0.0}, "'ridge' parameter"),
        ({"tol": -1}, "'tol'"),
    ],
)
def test_bad_parameters(params, message):
    X, y = logistic_problem(0)
    with pytest.raises(ValueError, match=message):
        ZeroNormLogistic(2, **params).fit(X, y)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_no_worse_than_abess(correlation):
    abess = pytest.importorskip("abess", reason="abess is not installed (extra 'bench')")
    X, y = logistic_problem(21, n=200, p=500, k=6, correlation=correlation)
    signs = 2.0 * y - 1.0
    path = ZeroNormLogistic(10).fit(X, y).path_
    for k in range(1, 11):
        peer = abess.LogisticRegression(support_size=range(k + 1), ic_coef=0.0).fit(X, y)
        value = logistic_objective(X[:, np.flatnonzero(peer.coef_)], signs)
        assert path.objective[k - 1] <= value * (1 + 1e-6)


def test_the_extended_criterion_by_hand():
    fit = SubsetFit(np.array([1, 3]), np.zeros((1, 3)), 5.0, b"")
    assert _extended_bic(fit, 2, 20, 50.0) == pytest.approx(
        2 * 5.0 + 3 * np.log(50) + 2 * np.log(20 * 19 / 2)
    )


@pytest.mark.parametrize(
    ("n", "p", "params", "size"),
    [
        (200, 50, {}, 30),  # 200 / (log 50 · log log 200) = 30.7
        (4, 1000, {}, 1),
        (200, 7, {}, 7),
        (100_000, 5000, {}, 100),
        (200, 50, {"max_features": 70}, 50),
        (200, 50, {"max_features": 3}, 3),
        (200, 2, {}, 2),
    ],
)
def test_the_largest_subsets_that_samples_support(n, p, params, size):
    problem = problem_of(np.arange(4) % 2, np.zeros((4, p)))
    assert zeronorm.ZeroNormLogistic(**params)._largest_size(problem, float(n)) == size
    asked = problem_of(np.arange(4) % 2, np.zeros((4, p)), n_features_to_select=2)
    assert zeronorm.ZeroNormLogistic()._largest_size(asked, float(n)) == 2
