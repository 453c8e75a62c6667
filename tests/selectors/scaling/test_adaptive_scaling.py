"""AdaptiveScaling: slopes, the equivalent ℓ1-norm SVM, MarginLP, smaller q, bad input."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from small_problems import noise
from zeronorm import L1SVM, AdaptiveScaling, MarginLP
from zeronorm.criteria import LinearKernel, PolynomialKernel, RBFKernel, SoftMargin
from zeronorm.datasets._generators import make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.engines.factor_descent._criterion import ScaledCriterion
from zeronorm.selectors.scaling import _adaptive_scaling as adaptive_scaling
from zeronorm.selectors.scaling._adaptive_scaling import NormedFactors


def data(seed=0, n=40, p=30):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, :5] += 0.8 * y[:, None]
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("q", [2.0, 1.0, 0.5])
@pytest.mark.parametrize("kernel", [LinearKernel(), PolynomialKernel(2, 0.1, 1.0), RBFKernel(0.05)], ids=repr)
def test_slopes_match_finite_differences(kernel, q):
    X, y = data(p=12)
    objective = ScaledCriterion(as_design(X), kernel, SoftMargin(0.5, 1e-12), y)
    norm = NormedFactors(objective, q, 2.5)
    u = np.random.default_rng(1).uniform(0.3, 1.8, size=12)
    slope = norm(u)[1]
    shifts = 1e-5 * np.eye(12)
    differences = [(norm(u + e)[0] - norm(u - e)[0]) / 2e-5 for e in shifts]
    assert slope == pytest.approx(np.array(differences), rel=1e-4, abs=1e-4 * np.abs(slope).max())


@pytest.mark.parametrize("q", [2.0, 1.0, 0.5])
def test_factors_have_the_norm_asked_for(q):
    X, y = data()
    s = AdaptiveScaling(q=q, sigma_norm=1.7, kernel="linear").fit(X, y)
    assert (s.scale_**q).sum() ** (1.0 / q) == pytest.approx(1.7, rel=1e-9)
    assert np.all(s.scale_ >= 0.0)


@pytest.mark.parametrize(("C", "sigma_norm"), [(1.0, 1.0), (1.0, 3.0), (0.2, 2.0)])
@pytest.mark.parametrize("seed", range(2))
def test_linear_kernel_with_q_two_is_the_l1_svm(seed, C, sigma_norm):
    X, y = data(seed)
    s = AdaptiveScaling(kernel="linear", C=C, sigma_norm=sigma_norm, tol=1e-5, max_iter=5000).fit(X, y)
    w, b = cp.Variable(30), cp.Variable()
    slack = cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b)))
    objective = cp.Minimize(cp.square(cp.norm1(w)) / (2 * sigma_norm**2) + C * slack)
    best = cp.Problem(objective).solve(solver=cp.CLARABEL)
    assert s.objective_ == pytest.approx(best, rel=1e-4)
    # The same weights solve the ℓ1 problem with the cost Cσ₀²/‖w‖₁.
    norm = np.abs(w.value).sum()
    cost = C * sigma_norm**2 / norm
    model = L1SVM(C=cost).fit(X, y)
    slacks = np.maximum(0.0, 1.0 - y * (X @ model.coef_[0] + model.intercept_[0]))
    assert np.abs(model.coef_).sum() + cost * slacks.sum() == pytest.approx(
        norm + cost * float(slack.value), rel=1e-5
    )


def test_squared_factors_are_proportional_to_the_weights():
    X, y = data(2)
    s = AdaptiveScaling(kernel="linear", sigma_norm=1.5, tol=1e-6, max_iter=5000).fit(X, y)
    w = cp.Variable(30)
    b = cp.Variable()
    objective = cp.square(cp.norm1(w)) / (2 * 1.5**2) + cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b)))
    cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert s.scale_**2 == pytest.approx(1.5**2 * np.abs(w.value) / np.abs(w.value).sum(), abs=0.01)


def test_hard_margin_agrees_with_margin_lp():
    X, y = data(3, n=24, p=40)
    adaptive = AdaptiveScaling(kernel="linear", C=1e6, sigma_norm=1.0, tol=1e-5, max_iter=5000).fit(X, y)
    program = MarginLP(C=np.inf).fit(X, y)
    assert adaptive.objective_ == pytest.approx(0.5 * np.abs(program.coef_).sum() ** 2, rel=1e-4)
    assert adaptive.scale_**2 == pytest.approx(program.scale_**2, abs=0.01)
    top = set(program.path_.order[:4].tolist())
    assert set(adaptive.path_.order[:4].tolist()) == top


def test_smaller_q_leaves_fewer_factors():
    X, y = data(1)
    kept = [
        AdaptiveScaling(kernel="linear", q=q, sigma_norm=2.0).fit(X, y).n_features_ for q in (2.0, 1.0, 0.5)
    ]
    assert kept[0] > kept[1] >= kept[2] >= 1


def test_nonlinear_kernel_finds_both_features_of_the_toy_problem():
    found = 0
    for seed in range(6):
        toy = make_nonlinear_toy(150, random_state=seed)
        s = AdaptiveScaling(2).fit(toy.X, toy.y)
        found += set(np.flatnonzero(s.support_)) == {0, 1}
    assert found >= 5


def test_constant_and_identical_data_give_finite_results():
    X, y = data()
    X = np.column_stack([X, np.full(40, 3.0)])
    s = AdaptiveScaling().fit(X, y)
    assert s.scale_[30] == 0.0
    assert s.path_.order[-1] == 30
    flat = AdaptiveScaling().fit(np.ones((6, 3)), [0, 1, 0, 1, 0, 1])
    assert np.all(np.isfinite(flat.scores_))
    twins = AdaptiveScaling().fit(np.tile([[0.0, 1.0], [1.0, 0.0]], (4, 1)), [0, 0, 1, 1, 0, 0, 1, 1])
    assert np.all(np.isfinite(twins.scores_))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"q": 0.0}, "'q' parameter of AdaptiveScaling"),
        ({"q": 3.0}, "'q' parameter of AdaptiveScaling"),
        ({"C": 0.0}, "'C' parameter"),
        ({"sigma_norm": -1.0}, "'sigma_norm' parameter"),
        ({"gamma": -0.1}, "'gamma' parameter"),
        ({"degree": 0}, "'degree' parameter"),
        ({"coef0": -1.0}, "'coef0' parameter"),
        ({"kernel": "cosine"}, "'kernel' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        AdaptiveScaling(**parameters).fit(X, y)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5])
def test_small_exponents_do_not_keep_all_features_of_wide_data(q):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 600))
    y = (X[:, 0] + X[:, 1] > 0.0).astype(int)
    plain = AdaptiveScaling(q=2.0).fit(X, y)
    sparse = AdaptiveScaling(q=q).fit(X, y)
    assert sparse.path_.selected_size <= plain.path_.selected_size < 100
    assert sparse.objective_ <= plain.objective_
    assert {0, 1} <= set(sparse.path_.order[:4].tolist())


@pytest.mark.parametrize(("sigma_norm", "norm"), [(None, np.sqrt(5.0)), (3.0, 3.0)])
def test_factors_start_equal_for_q_two(sigma_norm, norm):
    objective = SimpleNamespace(design=SimpleNamespace(n_features=5))
    columns, factors, found = AdaptiveScaling(q=2.0, sigma_norm=sigma_norm)._start(objective)
    assert (columns.tolist(), factors.tolist(), found) == ([0, 1, 2, 3, 4], [1.0] * 5, norm)


def test_default_norm_of_the_factors_is_half_way():
    """Half-way in the logarithm between one factor of √m and m factors of one."""
    for m, q in ((9, 1.0), (16, 0.5), (25, 2.0)):
        ends = np.sqrt(m), m ** (1.0 / q)
        assert adaptive_scaling.default_norm(m, q) == pytest.approx(np.sqrt(ends[0] * ends[1]))
    design = as_design(noise(6, 3))
    factors = adaptive_scaling.NormedFactors(SimpleNamespace(design=design), 0.5, 7.0)
    scale = np.sqrt(factors.scale_sq(np.array([1.5, 0.5, 1.0])))
    assert (scale**0.5).sum() ** 2 == pytest.approx(7.0)
    np.testing.assert_allclose(scale**0.5 / (scale**0.5).sum(), [0.5, 1 / 6, 1 / 3])
