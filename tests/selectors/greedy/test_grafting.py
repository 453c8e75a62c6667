"""Grafting against a convex solver, elastic nets, optimality residuals and exhaustive search."""

from __future__ import annotations

import warnings
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet

from small_problems import noise
from zeronorm import Grafting, as_design
from zeronorm.selectors.greedy import _grafting as grafting
from zeronorm.solvers.linear._losses import LOSSES
from zeronorm.solvers.linear._working_set import PenalizedLoss, solve_working_set

PENALTIES = [
    {"penalty_l1": 0.05},
    {"penalty_l1": 0.05, "penalty_l2": 0.1},
    {"penalty_l1": 0.0, "penalty_l2": 0.1},
]


def two_classes(seed: int = 0, n: int = 40, p: int = 12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    y = np.sign(X[:, 1] - X[:, 4] + 0.8 * rng.normal(size=n) + 0.3)
    return X, y


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def convex_optimum(X, y, loss, penalty_l1=0.0, penalty_l2=0.0, weight=None):
    """The same problem without λ0 for an interior-point solver."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    f = X @ w + b
    losses = {
        "squared_error": 0.5 * cp.square(f - y),
        "logistic": cp.logistic(-cp.multiply(y, f)),
        "squared_hinge": 0.5 * cp.square(cp.pos(1 - cp.multiply(y, f))),
    }
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    objective = share @ losses[loss] + penalty_l2 * cp.sum_squares(w) + penalty_l1 * cp.norm1(w)
    cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    return w.value, float(b.value), float(objective.value)


# -- the losses and the sub-problem -----------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
@given(f=st.floats(-30, 30), sign=st.sampled_from([-1.0, 1.0]))
def test_derivatives_of_the_losses(name, f, sign):
    loss, y = LOSSES[name], np.array([sign])
    if name == "squared_hinge" and abs(1.0 - sign * f) < 1e-3:
        return  # the curvature jumps here
    step = 1e-5

    def near(function):
        return float((function(np.array([f + step]), y) - function(np.array([f - step]), y))[0]) / (2 * step)

    assert float(loss.slope(np.array([f]), y)[0]) == pytest.approx(near(loss.value), rel=1e-5, abs=1e-7)
    assert float(loss.curvature(np.array([f]), y)[0]) == pytest.approx(near(loss.slope), rel=1e-5, abs=1e-7)


def test_losses_survive_huge_predictions():
    f, y = np.array([-1e6, 1e6]), np.array([1.0, 1.0])
    for loss in LOSSES.values():
        for part in (loss.value, loss.slope, loss.curvature):
            assert np.all(np.isfinite(part(f, y)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(sorted(LOSSES)), st.floats(0.0, 0.2), st.floats(0.001, 0.2))
def test_sub_problem_is_optimal(seed, name, penalty_l1, penalty_l2):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 4)), rng.choice([-1.0, 1.0], size=30)
    share = np.full(30, 1 / 30)
    objective = PenalizedLoss(LOSSES[name], y, share, penalty_l1, penalty_l2)
    start = rng.normal(size=4)
    solution = solve_working_set(X, objective, start, 0.3, np.zeros(4), 1e-10)
    assert solution.converged
    gradient = X.T @ objective.slope(solution.f) + 2.0 * penalty_l2 * solution.w
    inside = solution.w != 0.0
    assert np.allclose(gradient[inside], -penalty_l1 * np.sign(solution.w[inside]), atol=1e-9)
    assert abs(objective.slope(solution.f).sum()) < 1e-9
    assert solution.value == pytest.approx(objective.value(X @ solution.w + solution.bias, solution.w))


# -- without λ0: the full convex solution -----------------------------------------------------------------


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_result_is_the_full_convex_solution(loss, penalties):
    X, y = two_classes()
    s = Grafting(loss=loss, **penalties).fit(X, y)
    w, b, value = convex_optimum(standardised(X), y, loss, **penalties)
    assert s.converged_
    assert s.objective_[-1] == pytest.approx(value, abs=1e-8)
    assert np.allclose(s.coef_, w, atol=1e-4)
    assert s.intercept_ == pytest.approx(b, abs=1e-4)
    assert np.array_equal(s.support_, s.coef_ != 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_result_is_the_full_convex_solution_in_wide_data(loss):
    X, y = two_classes(1, n=30, p=150)
    s = Grafting(loss=loss, penalty_l1=0.03).fit(X, y)
    slope = LOSSES[loss].slope(standardised(X) @ s.coef_ + s.intercept_, y) / len(y)
    gradient = standardised(X).T @ slope
    chosen = s.coef_ != 0.0
    assert 3 < chosen.sum() < 30
    assert np.allclose(gradient[chosen], -0.03 * np.sign(s.coef_[chosen]), atol=1e-7)
    assert np.all(np.abs(gradient[~chosen]) <= 0.03 + 1e-7)
    assert abs(slope.sum()) < 1e-7


def test_regression_is_the_elastic_net():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 20))
    y = 3.0 * X[:, 2] - 2.0 * X[:, 6] + rng.normal(size=50) + 5.0
    s = Grafting(penalty_l1=0.2, penalty_l2=0.05, task="regression").fit(X, y)
    peer = ElasticNet(alpha=0.3, l1_ratio=2 / 3, tol=1e-12, max_iter=100_000).fit(standardised(X), y)
    assert np.allclose(s.coef_, peer.coef_, atol=1e-7)
    assert s.intercept_ == pytest.approx(peer.intercept_)


def test_weights_are_multiplicities():
    X, y = two_classes(3)
    weight = 1.0 + (np.arange(len(y)) % 3)
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    s = Grafting(penalty_l1=0.03).fit(X, y, sample_weight=weight)
    w, _, value = convex_optimum((X - mean) / scale, y, "logistic", penalty_l1=0.03, weight=weight)
    assert np.allclose(s.coef_, w, atol=1e-4)
    assert s.objective_[-1] == pytest.approx(value, abs=1e-8)


# -- with λ0 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_every_feature_pays_for_itself_and_the_next_would_not(loss):
    X, y = two_classes(4)
    penalties = {"penalty_l1": 0.01, "penalty_l2": 0.01}
    s = Grafting(loss=loss, penalty_l0=0.01, **penalties).fit(X, y)
    Z = standardised(X)
    values = [convex_optimum(Z[:, :0] if k == 0 else Z[:, s.path_.support(k)], y, loss, **penalties)[2]
              if k else _without_features(Z, y, loss) for k in range(s.support_.sum() + 1)]  # fmt: skip
    assert np.all(-np.diff(values) > 0.01)
    chosen = np.flatnonzero(s.support_)
    gradient = np.abs(Z.T @ LOSSES[loss].slope(Z @ s.coef_ + s.intercept_, y))
    gradient[chosen] = 0.0
    _, _, one_more = convex_optimum(Z[:, [*chosen, np.argmax(gradient)]], y, loss, **penalties)
    assert values[-1] - one_more <= 0.01
    assert s.objective_[-1] == pytest.approx(values[-1] + 0.01 * chosen.size, abs=1e-7)


def _without_features(Z, y, loss):
    return convex_optimum(np.zeros((len(y), 1)), y, loss)[2]


def test_a_larger_l0_selects_fewer_features():
    X, y = two_classes(5, n=60, p=20)
    sizes = [
        Grafting(penalty_l0=l0, penalty_l1=0.01).fit(X, y).path_.selected_size
        for l0 in (0.0, 0.003, 0.02, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == 0


def test_result_is_near_the_exhaustive_optimum():
    """Greedy growth is not optimal in general; on independent columns it is."""
    rng = np.random.default_rng(6)
    Z, _ = np.linalg.qr(rng.normal(size=(40, 8)) - 0.0)
    X = standardised(Z)
    y = X[:, 2] + 0.6 * X[:, 5] + 0.2 * rng.normal(size=40)
    s = Grafting(penalty_l0=0.05, penalty_l1=0.0, task="regression").fit(X, y)

    def total(columns):
        A = np.column_stack([np.ones(40), X[:, list(columns)]])
        residual = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        return 0.5 * (residual**2).mean() + 0.05 * len(columns)

    best = min((c for k in range(5) for c in combinations(range(8), k)), key=total)
    assert s.get_support(indices=True).tolist() == list(best) == [2, 5]


# -- the path ---------------------------------------------------------------------------------------------


def test_objective_decreases_at_every_step():
    X, y = two_classes(7, n=50, p=60)
    s = Grafting(penalty_l1=0.01).fit(X, y)
    assert np.all(np.diff(s.objective_) < 0.0)


def test_features_that_others_replace_leave_again():
    X, y = two_classes(8, n=30, p=150)
    s = Grafting(penalty_l1=0.003, loss="squared_error").fit(X, y)
    visited = set(np.concatenate(s.path_.subsets).tolist())
    assert visited > set(np.flatnonzero(s.coef_).tolist())
    assert np.array_equal(s.path_.subsets[-1], np.flatnonzero(s.support_))


def test_a_count_ends_the_growth():
    X, y = two_classes(9)
    s = Grafting(3, penalty_l1=0.0, penalty_l2=0.01).fit(X, y)
    assert s.support_.sum() == np.count_nonzero(s.coef_) == 3


def test_nothing_pays_for_a_huge_penalty():
    X, y = two_classes(9)
    s = Grafting(penalty_l1=10.0).fit(X, y)
    assert s.path_.selected_size == 0
    assert not s.coef_.any()
    assert s.support_.sum() == 1  # at least one feature is always selected, here by gradient


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, "'loss' parameter of Grafting must be 'auto', 'squared_error'"),
        (
            {"loss": "logistic", "task": "regression"},
            "'squared_error' or another loss of real numbers for task='regression'",
        ),
        ({"penalty_l1": -1.0}, "'penalty_l1' parameter of Grafting must be a finite number of at least 0"),
        ({"penalty_l0": np.inf}, "'penalty_l0' parameter of Grafting must be a finite number of at least 0"),
        ({"penalty_l2": "much"}, "'penalty_l2' parameter of Grafting must be a finite number of at least 0"),
        ({"max_iter": 0}, "'max_iter' parameter of Grafting must be a whole number of at least 1"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    X, y = two_classes()
    with pytest.raises(ValueError, match=message):
        Grafting(**params).fit(X, y)


def test_too_few_steps_are_reported():
    X, y = two_classes()
    with pytest.warns(ConvergenceWarning, match="Grafting did not converge: raise"):
        s = Grafting(penalty_l1=0.001, max_iter=2).fit(X, y)
    assert not s.converged_


def test_separable_classes_without_a_penalty_end():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(20, 40))
    y = np.sign(X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        s = Grafting(penalty_l1=0.0).fit(X, y)
    assert np.all(np.isfinite(s.coef_))
    assert np.all(np.sign(standardised(X) @ s.coef_ + s.intercept_) == y)


def growth_of(penalty_l1, penalty_l0=0.0):
    X, y = noise(20, 3), noise(20, 1, 1)[:, 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    objective = grafting.PenalizedLoss(
        grafting.LOSSES["squared_error"], y, np.full(20, 0.05), penalty_l1, 0.0
    )
    return grafting._Growth(as_design(X), objective, penalty_l0, 1e-9), X, y


def test_a_model_grows_by_the_steepest_feature_while_that_pays():
    growth, X, y = growth_of(0.0)
    slope = X.T @ (y - y.mean()) / 20
    np.testing.assert_allclose(np.abs(growth.gradient) / np.abs(slope), growth.gradient[0] / -slope[0])
    steepest = np.abs(growth.gradient)
    assert growth.step()
    assert growth.active == [np.argmax(steepest)]
    weight = np.linalg.lstsq(X[:, growth.active], y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(growth.model.w, weight, atol=1e-7)
    path = growth.path()
    rest = np.abs(growth.gradient) / np.abs(growth.gradient).max()
    rest[growth.active] = 2.0
    assert path.order.tolist() == np.argsort(-rest).tolist()
    assert (path.selected_size, path.n_iter, path.converged) == (1, 1, True)
    np.testing.assert_allclose(path.objective, [growth.model.value])
    highest = float(steepest.max())
    assert not growth_of(highest * 1.0001)[0].step()  # the penalty holds it back
    assert growth_of(highest * 0.9999)[0].step()
    gain = growth_of(0.0)[0].model.value - growth.model.value
    assert not growth_of(0.0, 1.001 * gain)[0].step()  # a feature costs more than it gains
    assert growth_of(0.0, 0.999 * gain)[0].step()
