"""Maximum entropy discrimination against generic concave solvers, integration and its limits."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from small_problems import problem_of
from zeronorm import MaxEntropyDiscrimination
from zeronorm.design import as_design
from zeronorm.solvers._max_entropy import MarginTerms, inclusion_probability, solve_max_entropy

ALMOST_ONE = 1.0 - 1e-12
may_be_empty = pytest.mark.filterwarnings("ignore:.*selects no feature by its own rule")


def problem(n=30, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = 2.0 * X[:, 1] + X[:, 3] + 0.3 * rng.normal(size=n)
    return X, y / y.std()


def terms_of(task, y, c=5.0, weight=None):
    weight = np.ones(y.size) if weight is None else weight
    if task == "labels":
        return MarginTerms.labels(np.sign(y), weight, c)
    return MarginTerms.targets(y, weight, c, 0.2)


def dual_objective(X, terms, prior, multiplier):
    """J as printed, multiplier by multiplier."""
    u = np.zeros(len(X))
    np.add.at(u, terms.sample, terms.sign * multiplier)
    total = -np.sum(np.logaddexp(np.log(1.0 - prior), np.log(prior) + (X.T @ u) ** 2 / 2.0))
    c, width = terms.c, terms.epsilon
    for lam, linear in zip(multiplier, terms.linear, strict=True):
        if width is None:
            total += lam + np.log(1.0 - lam / c)
        else:
            total += linear * lam
            if lam > 0.0:
                total += -width * lam + np.log(lam) + np.log(width + 1.0 / c)
                total -= np.log(-np.expm1(-width * lam) + lam / (c - lam))
    return total


@pytest.mark.parametrize("prior", [1e-3, 0.3, ALMOST_ONE])
@pytest.mark.parametrize("task", ["labels", "targets"])
def test_agrees_with_a_generic_concave_solver(task, prior):
    X, y = problem()
    terms = terms_of(task, y)
    solution = solve_max_entropy(as_design(X), terms, prior, tol=1e-10)
    assert solution.status.converged
    generic = minimize(
        lambda lam: -dual_objective(X, terms, prior, lam),
        terms.start(),
        bounds=[(0.0, terms.c * (1.0 - 1e-9))] * terms.sign.size,
        constraints={"type": "eq", "fun": lambda lam: terms.sign @ lam},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert solution.objective == pytest.approx(-generic.fun, abs=1e-6)
    np.testing.assert_allclose(solution.multiplier, generic.x, atol=1e-4)
    assert terms.sign @ solution.multiplier == pytest.approx(0.0, abs=1e-9)


def test_with_all_features_on_it_is_the_plain_svm():
    X, y = problem(n=40)
    signs, c = np.sign(y), 5.0
    lam = cp.Variable(40)
    objective = cp.sum(lam) + cp.sum(cp.log(1 - lam / c)) - 0.5 * cp.sum_squares((X * signs[:, None]).T @ lam)
    constraints = [signs @ lam == 0, lam >= 0]
    plain = cp.Problem(cp.Maximize(objective), constraints)
    plain.solve(solver=cp.CLARABEL)
    s = MaxEntropyDiscrimination(
        inclusion_prior=ALMOST_ONE, weight_scale=1.0, C=c, standardize=False, tol=1e-10
    ).fit(X, signs)
    assert s.objective_ == pytest.approx(plain.value, abs=1e-6)
    np.testing.assert_allclose(s.coef_, X.T @ (signs * lam.value), atol=1e-4)
    assert s.intercept_ == pytest.approx(float(constraints[0].dual_value), abs=1e-3)
    assert s.support_.all()


@pytest.mark.parametrize("lam", [1e-6, 0.03, 0.07, 1.0, 4.0])
def test_margin_potential_of_regression_is_a_log_moment(lam):
    """φ = -log E exp(λγ) under a density flat up to ε and exponential with rate c beyond."""
    c, width = 5.0, 0.2
    inside, _ = quad(lambda g: np.exp(lam * g), 0.0, width)
    beyond, _ = quad(lambda g: np.exp(lam * g - c * (g - width)), width, np.inf)
    terms = MarginTerms.targets(np.zeros(1), np.ones(1), c, width)
    value, slope, bend = terms.potential(np.array([lam]))
    assert value[0] == pytest.approx(-np.log((inside + beyond) / (width + 1.0 / c)), abs=1e-8)
    h = 1e-5 * lam
    near = terms.potential(np.array([lam - h, lam + h]))
    assert slope[0] == pytest.approx((near[0][1] - near[0][0]) / (2 * h), rel=1e-3)
    assert bend[0] == pytest.approx((near[1][1] - near[1][0]) / (2 * h), rel=1e-3)
    assert bend[0] < 0.0


def test_margin_potential_of_labels_is_a_log_moment():
    c, lam = 5.0, 1.7
    moment, _ = quad(lambda g: c * np.exp(-c * (1.0 - g) - lam * g), -30.0, 1.0)
    terms = MarginTerms.labels(np.ones(1), np.ones(1), c)
    assert terms.potential(np.array([lam]))[0][0] == pytest.approx(-np.log(moment), abs=1e-9)


def test_expected_weight_is_the_printed_formula():
    X, y = problem()
    s = MaxEntropyDiscrimination(inclusion_prior=0.1, weight_scale=1.0).fit(X, np.sign(y))
    field = s.scores_ * np.sign(s.coef_)
    np.testing.assert_allclose(s.coef_, field / (1.0 + 9.0 * np.exp(-(field**2) / 2.0)), rtol=1e-10)
    np.testing.assert_allclose(s.inclusion_probability_, inclusion_probability(field, 0.1))


@pytest.mark.parametrize("task", ["classification", "regression"])
@may_be_empty
def test_finds_the_relevant_features(task):
    X, y = problem(n=100, p=30)
    y = np.sign(y) if task == "classification" else 50.0 + 10.0 * y
    s = MaxEntropyDiscrimination(task=task).fit(X, y)
    assert s.path_.order[:2].tolist() == [1, 3]
    probable = np.count_nonzero(s.inclusion_probability_ > 0.5)
    assert s.n_features_ == max(1, probable)


@may_be_empty
def test_regression_coefficients_are_in_the_units_of_the_target():
    X, y = problem(n=200, p=5)
    a = MaxEntropyDiscrimination(task="regression").fit(X, y)
    b = MaxEntropyDiscrimination(task="regression").fit(X, 1000.0 * y - 7.0)
    np.testing.assert_allclose(1000.0 * a.coef_, b.coef_, rtol=1e-4)
    assert b.intercept_ == pytest.approx(1000.0 * a.intercept_ - 7.0, rel=1e-3)
    fitted = (X - X.mean(axis=0)) / X.std(axis=0) @ a.coef_ + a.intercept_
    assert np.corrcoef(fitted, y)[0, 1] > 0.98


@may_be_empty
def test_a_smaller_prior_concentrates_the_weight_on_fewer_features():
    X, y = problem(n=60, p=40, seed=2)
    shares = []
    for prior in (0.9, 0.1, 1e-3):
        s = MaxEntropyDiscrimination(inclusion_prior=prior).fit(X, np.sign(y))
        shares.append(np.abs(s.coef_[[1, 3]]).sum() / np.abs(s.coef_).sum())
    assert shares[0] * 1.2 < shares[1]
    assert shares[1] * 1.1 < shares[2]


@may_be_empty
def test_identical_samples_and_constant_targets_stay_finite():
    s = MaxEntropyDiscrimination().fit(np.ones((10, 3)), np.arange(10) % 2)
    assert np.all(np.isfinite(s.scores_))
    s = MaxEntropyDiscrimination(task="regression").fit(problem()[0], np.full(30, 3.0))
    np.testing.assert_allclose(s.coef_, 0.0, atol=1e-8)
    assert s.intercept_ == pytest.approx(3.0, abs=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inclusion_prior": 0.0}, "'inclusion_prior' .* greater than 0 and less than 1. Got 0.0"),
        ({"inclusion_prior": 1.0}, "'inclusion_prior' .* greater than 0 and less than 1. Got 1.0"),
        ({"inclusion_prior": -0.2}, "'inclusion_prior' .* greater than 0 and less than 1. Got -0.2"),
        ({"inclusion_prior": float("nan")}, "'inclusion_prior' .* greater than 0 and less than 1. Got nan"),
        ({"C": 1.0}, "'C' .* greater than 1"),
        ({"C": float("inf")}, "'C' .* finite"),
        ({"C": -1.0}, "'C' .* greater than 0"),
        ({"task": "regression", "epsilon": -0.1}, "'epsilon' .* "),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        MaxEntropyDiscrimination(**parameters).fit(X, np.sign(y))


def test_an_iteration_limit_is_reported():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="MaxEntropyDiscrimination did not converge: raise max_iter"):
        s = MaxEntropyDiscrimination(1, max_iter=3).fit(X, np.sign(y))
    assert not s.converged_


@pytest.mark.parametrize("C", [1e8, 1e10, 1e14])
def test_a_huge_c_tends_to_the_limit_for_labels(C):
    """log(1 - λ/C) vanishes: the objective differs from that of a large C by less than the sum of λ/C."""
    X, y = problem()
    labels = (y > 0).astype(int)
    X[:, 1] += 1.5 * np.sign(y)
    large, huge = (
        MaxEntropyDiscrimination(2, C=c, inclusion_prior=0.3, tol=1e-9).fit(X, labels) for c in (1e6, C)
    )
    np.testing.assert_allclose(huge.objective_, large.objective_, rtol=1e-5)
    np.testing.assert_allclose(huge.coef_, large.coef_, atol=1e-4)


@pytest.mark.parametrize("C", [1e8, 1e10, 1e14])
def test_a_huge_c_is_solved_or_reported_for_targets(C):
    X, y = problem()
    selector = MaxEntropyDiscrimination(2, C=C, task="regression")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(X, y)
    assert np.all(np.isfinite(selector.scores_))
    assert len(caught) == (not selector.converged_)
    if selector.converged_:  # then the answer is near that of a C a hundred times smaller
        smaller = MaxEntropyDiscrimination(2, C=C / 100.0, task="regression").fit(X, y)
        np.testing.assert_allclose(selector.coef_, smaller.coef_, atol=0.05)
    if caught:
        assert "use a smaller C" in str(caught[0].message) or "raise max_iter" in str(caught[0].message)


def test_an_empty_answer_is_reported():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 5)), np.arange(30) % 2
    with pytest.warns(UserWarning, match="selects no feature by its own rule.*raise inclusion_prior"):
        MaxEntropyDiscrimination(C=1.5, inclusion_prior=1e-4).fit(X, y)


@pytest.mark.parametrize(
    ("params", "y", "unit"),
    [({}, [1.0, 3.0, 5.0, 7.0], 5.0**0.5), ({"standardize": False}, [1.0, 3.0, 5.0, 7.0], 1.0), ({}, [2.0] * 4, 1.0)],
)  # fmt: skip
def test_the_unit_of_a_target_is_its_deviation(params, y, unit):
    selector = MaxEntropyDiscrimination(task="regression", epsilon=0.5, C=2.0, **params)
    _, centre, found = selector._terms(problem_of(y, task="regression"), np.ones(4))
    assert (centre, found) == (np.mean(y), pytest.approx(unit))
    weighted = np.array([3.0, 1.0, 0.5, 0.5])
    _, centre, found = selector._terms(problem_of(y, task="regression", sample_weight=weighted), weighted)
    assert centre == pytest.approx(np.average(y, weights=weighted))
    labels = selector._terms(problem_of([0, 1, 0, 1]), np.ones(4))
    assert labels[1:] == (0.0, 1.0)


@pytest.mark.parametrize("shift", [1.5, 4.0, 12.0])
@pytest.mark.parametrize(("n", "p"), [(60, 8), (100, 300)])
def test_the_defaults_switch_on_what_tells_the_classes_apart(n, p, shift):
    """Also where the classes are far apart and small weights suffice."""
    y = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, p))
    X[:, :2] += shift * y[:, None]
    assert np.flatnonzero(MaxEntropyDiscrimination().fit(X, y).support_).tolist() == [0, 1]


def test_a_smaller_prior_of_the_weights_equals_smaller_features():
    X, y = problem()
    settings = {"inclusion_prior": 0.1, "standardize": False, "tol": 1e-10}
    scaled = MaxEntropyDiscrimination(weight_scale=0.5, **settings).fit(X, np.sign(y))
    plain = MaxEntropyDiscrimination(weight_scale=1.0, **settings).fit(0.5 * X, np.sign(y))
    np.testing.assert_allclose(scaled.inclusion_probability_, plain.inclusion_probability_, rtol=1e-6)
    np.testing.assert_allclose(scaled.coef_, 0.5 * plain.coef_, rtol=1e-6)
