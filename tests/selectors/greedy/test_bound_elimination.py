"""BoundElimination: slopes and removals against the true bound, the nonlinear toy, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from zeronorm import RFE, BoundElimination, FisherScore
from zeronorm.criteria import LinearKernel, PolynomialKernel, RadiusMargin, RBFKernel, Span
from zeronorm.datasets._generators import make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.selectors.greedy._bound_elimination import BoundModels
from zeronorm.solvers.svm._dual import solve_svm_dual

KERNELS = [LinearKernel(), PolynomialKernel(2, 0.2, 1.0), RBFKernel(0.1)]


def data(seed=0, n=24, p=14):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 3] += 1.5 * y
    X[:, 7] -= y
    return StandardScaler().fit_transform(X), y


def models(kernel, criterion, rule="derivative"):
    X, y = data()
    trained = BoundModels(as_design(X), y, kernel, criterion, rule=rule, absolute=False)
    trained.train()
    return trained, X, y


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("criterion", [RadiusMargin(1.0, tol=1e-11), Span(1.0, tol=1e-11)], ids=repr)
def test_derivative_matches_finite_differences_of_the_bound(kernel, criterion):
    trained, X, y = models(kernel, criterion)
    slope = trained.derivative()
    step = 1e-5
    for k in range(X.shape[1]):
        values = []
        for sigma in (1.0 + step, 1.0 - step):
            Z = X.copy()
            Z[:, k] *= sigma
            values.append(criterion.evaluate(kernel.matrix(Z @ Z.T), y).value)
        assert slope[k] == pytest.approx(
            (values[0] - values[1]) / (2 * step), rel=1e-3, abs=1e-4 * abs(slope).max()
        )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_removal_matches_fresh_kernels(kernel):
    trained, X, y = models(kernel, RadiusMargin(1.0, tol=1e-11), "removal")
    sphere, dual = trained.bound.warm
    v, beta = dual.dual_coef, sphere.beta
    ridge = np.eye(len(y))  # C = 1
    for k, value in enumerate(trained.importance()):
        Z = np.delete(X, k, axis=1)
        K = kernel.matrix(Z @ Z.T) + ridge
        margin = 2 * dual.alpha.sum() - v @ K @ v
        radius = beta @ np.diag(K) - beta @ K @ beta
        assert value == pytest.approx(margin * radius, rel=1e-7)


@pytest.mark.parametrize("criterion", [RadiusMargin(1.0, tol=1e-11), Span(1.0, tol=1e-11)], ids=repr)
def test_retraining_gives_the_bound_without_the_feature(criterion):
    trained, X, y = models(RBFKernel(0.1), criterion, "retrain")
    for k, value in enumerate(trained.importance()):
        Z = np.delete(X, k, axis=1)
        assert value == pytest.approx(criterion.evaluate(RBFKernel(0.1).matrix(Z @ Z.T), y).value, rel=1e-6)


def test_fixed_span_matches_its_definition():
    trained, X, _ = models(RBFKernel(0.1), Span(2.0, tol=1e-11), "removal")
    dual = trained.bound.warm
    support = dual.alpha > 1e-9 * dual.alpha.max()
    for k, value in enumerate(trained.importance()):
        Z = np.delete(X, k, axis=1)[support]
        H = np.ones((support.sum() + 1,) * 2)
        H[:-1, :-1] = RBFKernel(0.1).matrix(Z @ Z.T) + np.eye(support.sum()) / 2.0
        H[-1, -1] = 0.0
        span_sq = 1.0 / np.diag(np.linalg.inv(H))[:-1]
        assert value == pytest.approx(dual.alpha[support] @ span_sq, rel=1e-7)


def found_pair(selector, seeds):
    hits = 0
    for seed in seeds:
        X, y = make_nonlinear_toy(150, random_state=seed)[:2]
        hits += set(selector.fit(X, y).path_.support(2).tolist()) == {0, 1}
    return hits / len(seeds)


TOY = {
    "RFE": RFE(n_features_to_select=2, kernel="rbf"),
    "derivative": BoundElimination(2),
    "removal": BoundElimination(2, rule="removal"),
}


@pytest.mark.parametrize("name", TOY)
def test_nonlinear_toy(name):
    assert found_pair(TOY[name], range(3)) == 1.0


def test_a_linear_filter_fails_on_the_nonlinear_toy():
    assert found_pair(FisherScore(2), range(10)) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", TOY)
def test_nonlinear_toy_thirty_draws(name):
    rate = found_pair(TOY[name], range(30))
    print(f"{name}: the pair is found in {100 * rate:.0f} % of 30 draws")
    assert rate >= 0.85


def test_groups_are_never_split():
    X, y = data()
    groups = np.arange(14) // 2
    for rule in ("derivative", "removal"):
        path = BoundElimination(4, rule=rule, feature_groups=groups).fit(X, y).path_
        for k in range(2, 15, 2):
            assert all(len(set(path.mask(k)[groups == g])) == 1 for g in range(7))


def test_hard_margin_orders_the_rest_when_it_separates_no_more():
    X, y = data(1, n=16, p=40)
    path = BoundElimination(3, kernel="linear", C=np.inf).fit(X, y).path_
    assert sorted(path.order) == list(range(40))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="finite C"):
        BoundElimination(1, kernel="linear", C=np.inf).fit(rng.normal(size=(60, 2)), rng.integers(0, 2, 60))


def test_two_samples_and_identical_samples_stay_finite():
    for X, y in (([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]], [0, 1]), (np.ones((6, 3)), [0, 1] * 3)):
        for bound in ("radius_margin", "span"):
            s = BoundElimination(1, bound=bound).fit(np.asarray(X), y)
            assert np.all(np.isfinite(s.scores_))


@pytest.mark.parametrize(
    ("name", "value"), [("bound", "x"), ("rule", "x"), ("sign", "x"), ("C", 0), ("step", 0)]
)
def test_bad_parameters_are_named(name, value):
    X, y = data()
    with pytest.raises(ValueError, match=f"'{name}' parameter of BoundElimination"):
        BoundElimination(2, **{name: value}).fit(X, y)


def problem(seed=0, n=40, p=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 2] - X[:, 7] + 0.3 * rng.normal(size=n) > 0).astype(int)
    return X, y


def with_outlier(X, size=1e6):
    X = X.copy()
    X[5, 3] = size
    return X


@pytest.mark.parametrize("rule", ["derivative", "removal", "retrain"])
def test_bound_elimination_survives_an_outlier(rule):
    X, y = problem()
    settings = {"rule": rule, "gamma": 0.1, "standardize": False, "n_features_to_select": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        s = BoundElimination(**settings).fit(with_outlier(X), y)
    assert s.path_.order.tolist() != list(range(12))
    assert {2, 7} <= set(s.path_.support(4).tolist())


def test_an_indispensable_feature_leaves_last_under_a_hard_margin():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 3))
    y = (X[:, 1] > 0).astype(int)
    X[:, 1] += np.where(y == 1, 1.0, -1.0)
    s = BoundElimination(rule="retrain", kernel="linear", C=np.inf, n_features_to_select=1).fit(X, y)
    assert np.flatnonzero(s.support_).tolist() == [1]


def test_variance_finds_more_than_the_radius():
    """Eq. 17 of the review: the variance instead of the radius, which depends on a few far samples."""
    found = {"radius_margin": [], "variance": []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 100)
        X = rng.normal(size=(100, 24))
        X[:, :12] += 0.7 * (2 * y - 1)[:, None]
        for bound, counts in found.items():
            s = BoundElimination(n_features_to_select=12, bound=bound, kernel="linear").fit(X, y)
            counts.append(int(s.support_[:12].sum()))
    assert all(v >= r for r, v in zip(found["radius_margin"], found["variance"], strict=True))
    assert sum(found["variance"]) > sum(found["radius_margin"])


@pytest.mark.parametrize("rule", ["removal", "retrain"])
def test_variance_without_a_feature_is_that_of_the_other_features(rule):
    X, y = problem(8, n=30, p=8)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    s = BoundElimination(
        n_features_to_select=7, bound="variance", kernel="linear", rule=rule, C=2.0, tol=1e-9
    )
    bounds = []
    for k in range(8):
        K = np.delete(Z, k, axis=1) @ np.delete(Z, k, axis=1).T
        if rule == "retrain":
            margin = 2.0 * solve_svm_dual(K, 2.0 * y - 1.0, C=2.0, loss="squared_hinge", tol=1e-9).objective
        else:
            whole = solve_svm_dual(Z @ Z.T, 2.0 * y - 1.0, C=2.0, loss="squared_hinge", tol=1e-9)
            v = whole.dual_coef
            margin = 2.0 * whole.objective + v @ (Z @ Z.T - K) @ v
        bounds.append(margin * (np.trace(K) / 30 - K.sum() / 900 + (1 - 1 / 30) / 2.0))
    assert int(np.argmin(bounds)) == int(np.flatnonzero(~s.fit(X, y).support_)[0])
