"""BoundElimination: slopes and removals against the true bound, the nonlinear toy, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from zeronorm import RFE, BoundElimination, FisherScore
from zeronorm.criteria import LinearKernel, PolynomialKernel, RadiusMargin, RBFKernel, Span
from zeronorm.datasets.generators import make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.selectors.greedy.bound_elimination import BoundMachines

KERNELS = [LinearKernel(), PolynomialKernel(2, 0.2, 1.0), RBFKernel(0.1)]


def data(seed=0, n=24, p=14):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 3] += 1.5 * y
    X[:, 7] -= y
    return StandardScaler().fit_transform(X), y


def machines(kernel, criterion, rule="derivative"):
    X, y = data()
    trained = BoundMachines(as_design(X), y, kernel, criterion, rule=rule, absolute=False)
    trained.train()
    return trained, X, y


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("criterion", [RadiusMargin(1.0, tol=1e-11), Span(1.0, tol=1e-11)], ids=repr)
def test_derivative_matches_finite_differences_of_the_bound(kernel, criterion):
    trained, X, y = machines(kernel, criterion)
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
    trained, X, y = machines(kernel, RadiusMargin(1.0, tol=1e-11), "removal")
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
    trained, X, y = machines(RBFKernel(0.1), criterion, "retrain")
    for k, value in enumerate(trained.importance()):
        Z = np.delete(X, k, axis=1)
        assert value == pytest.approx(criterion.evaluate(RBFKernel(0.1).matrix(Z @ Z.T), y).value, rel=1e-6)


def test_fixed_span_matches_its_definition():
    trained, X, _ = machines(RBFKernel(0.1), Span(2.0, tol=1e-11), "removal")
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
