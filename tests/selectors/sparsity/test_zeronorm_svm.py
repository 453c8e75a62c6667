"""ZeroNormSVM: special cases, the probit model, planted solutions and bad input."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import zeronorm
from oracles.qp import PRECISE
from zeronorm import ZeroNormSVM
from zeronorm.design import as_design
from zeronorm.engines.rescaling._between import ProbitStep, expected_scores
from zeronorm.engines.rescaling._iteration import power_rule, rescale_until_sparse
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.selectors.sparsity._zeronorm_svm import solve_linf_svm
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._program import L1SvmProgram
from zeronorm.solvers.linear import SQUARED_ERROR, LinearProblem


def noisy(n=60, p=10, *, noise=0.8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, 0] + 0.7 * X[:, 1] + noise * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1, -1)


def l1_objective(X, y, C, weights, bias):
    return np.abs(weights).sum() + C * np.maximum(0.0, 1.0 - y * (X @ weights + bias)).sum()


# -- special cases of the exponent ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 80), (60, 10), (400, 10)])
def test_exponent_two_is_the_svm(shape):
    X, y = noisy(*shape)
    selector = ZeroNormSVM(q=2.0, C=3.0, standardize=False, scaling="paper").fit(X, y)
    reference = SVC(kernel="linear", C=1.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(selector.coef_, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(selector.intercept_, reference.intercept_, atol=1e-4)
    assert selector.n_iter_ == 1
    np.testing.assert_array_equal(selector.path_.order, np.argsort(-np.abs(reference.coef_[0])))


@pytest.mark.parametrize("shape", [(40, 60), (60, 10)])
@pytest.mark.parametrize("seed", range(2))
def test_exponent_one_is_the_l1_svm(shape, seed):
    X, y = noisy(*shape, seed=seed)
    selector = ZeroNormSVM(
        q=1.0, C=2.0, standardize=False, zero_tol=1e-6, max_iter=2000, scaling="paper"
    ).fit(X, y)
    reference = L1SvmProgram(as_design(X), y, C=1.0).solve()
    ours = l1_objective(X, y, 1.0, selector.coef_[0], selector.intercept_[0])
    assert ours == pytest.approx(reference.objective, rel=1e-4)
    np.testing.assert_allclose(selector.coef_[0], reference.weights, atol=2e-2)


@pytest.mark.parametrize("C", [0.05, 1.0, np.inf])
def test_infinite_exponent_has_the_smallest_largest_weight(C):
    X, y = noisy(30, 40 if np.isinf(C) else 6)
    selector = ZeroNormSVM(q=np.inf, C=C, standardize=False).fit(X, y)
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    margin = cp.multiply(y, X @ w + b)
    loss, constraints = (0.0, [margin >= 1]) if np.isinf(C) else (C * cp.sum(cp.pos(1 - margin)), [])
    problem = cp.Problem(cp.Minimize(cp.norm_inf(w) + loss), constraints)
    problem.solve(solver=cp.CLARABEL, **PRECISE)
    slack = np.maximum(0.0, 1.0 - y * (X @ selector.coef_[0] + selector.intercept_[0]))
    ours = np.abs(selector.coef_).max() + (0.0 if np.isinf(C) else C * slack.sum())
    assert ours == pytest.approx(problem.value, rel=1e-6)
    assert slack.max() < 1e-6 or not np.isinf(C)


def test_only_weights_at_the_bound_have_a_multiplier():
    X, y = noisy(40, 8)
    model = solve_linf_svm(as_design(X), y, C=0.5)
    at_bound = np.abs(np.abs(model.weights) - model.bound) < 1e-9
    assert 0 < at_bound.sum() < 8
    np.testing.assert_allclose(model.gradient[~at_bound], 0.0, atol=1e-7)
    assert np.abs(model.gradient).sum() == pytest.approx(1.0)
    assert solve_linf_svm(as_design(X[:, :2]), y, C=np.inf).status is Status.INFEASIBLE


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_smaller_exponents_leave_fewer_features(q):
    X, y = noisy(80, 30)
    with_q = ZeroNormSVM(q=q, zero_tol=1e-3).fit(X, y)
    plain = ZeroNormSVM(q=2.0).fit(X, y)
    assert with_q.path_.selected_size < plain.path_.selected_size
    assert set(np.flatnonzero(ZeroNormSVM(2, q=q).fit(X, y).support_)) == {0, 1}


# -- several classes --------------------------------------------------------------------------------------


def test_pairs_of_classes_are_those_of_libsvm():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 8))
    X[:, 2] += 1.5 * y
    selector = ZeroNormSVM(q=2.0, C=2.0, multi_class="one_vs_one", standardize=False, scaling="paper").fit(
        X, y
    )
    reference = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(np.abs(selector.coef_), np.abs(reference.coef_), atol=1e-5)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("loss", ["hinge", "probit"])
def test_several_classes_share_their_features(multi_class, loss):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 15))
    X[:, 2] += 5.0 * (y == 0)
    X[:, 7] += 5.0 * (y == 1)
    selector = ZeroNormSVM(2, loss=loss, multi_class=multi_class).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [2, 7]
    scores = np.abs(selector.coef_).sum(axis=0)
    np.testing.assert_array_equal(np.sort(np.argsort(-scores)[:2]), [2, 7])


# -- the probit model -------------------------------------------------------------------------------------


def test_expected_scores_of_a_truncated_normal():
    decision, target = np.array([0.3, -1.2, 2.0, -40.0, 40.0]), np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    rng = np.random.default_rng(0)
    draws = decision[:3, None] + rng.normal(size=(3, 400_000))
    simulated = [row[row * t > 0].mean() for row, t in zip(draws, target[:3], strict=True)]
    values = expected_scores(decision, target)
    np.testing.assert_allclose(values[:3], simulated, atol=0.01)
    np.testing.assert_allclose(values[3:], [1.0 / 40.0, -1.0 / 40.0], rtol=0.01)
    assert norm.pdf(0.0) / 0.5 == pytest.approx(expected_scores(np.zeros(1), np.ones(1))[0])


@pytest.mark.parametrize("shape", [(30, 50), (80, 6)])
def test_probit_with_exponent_two_is_ridge_probit_regression(shape):
    X, y = noisy(*shape)
    selector = ZeroNormSVM(
        q=2.0, loss="probit", standardize=False, tol=1e-8, max_iter=5000, scaling="paper"
    ).fit(X, y)

    def posterior(parameters):
        w, b = parameters[:-1], parameters[-1]
        return 0.5 * w @ w - log_ndtr(y * (X @ w + b)).sum()

    reference = minimize(posterior, np.zeros(X.shape[1] + 1), tol=1e-12)
    np.testing.assert_allclose(selector.coef_[0], reference.x[:-1], atol=1e-4)
    np.testing.assert_allclose(selector.intercept_[0], reference.x[-1], atol=1e-4)


def probit_model(y, weight):
    labels = y.astype(float)[:, None]
    return RescaledModels(LinearProblem(SQUARED_ERROR, labels, weight[:, None]), ProbitStep(labels, tol=1e-3))


def test_the_probit_posterior_never_decreases():
    """Expectation-maximisation of Σ log Φ(y f) - Σ ln|w|, the posterior under the paper's prior."""
    X, y = noisy(80, 6)
    values = []
    for n_steps in range(1, 7):
        model = probit_model(y, np.ones(80))
        rescale_until_sparse(
            model, as_design(X), np.arange(6), power_rule(0.0), zero_tol=0.0, tol=1e-9, max_iter=n_steps
        )
        w = model.weights[:, 0]
        values.append(log_ndtr(y * (X @ w + model.bias[0])).sum() - np.log(np.abs(w)).sum())
    assert np.all(np.diff(values) >= -1e-9)
    assert values[-1] > values[0] + 0.1


def test_the_probit_model_is_the_same_for_tall_and_wide_data():
    X, y = noisy(30, 29)
    extended = np.column_stack([X, np.zeros((30, 2))])
    results = []
    for data in (X, extended):  # tall and wide, the same problem
        model = probit_model(y, np.linspace(0.5, 2.0, 30))
        for _ in range(3):
            model.train(as_design(data), np.ones(data.shape[1]))
        results.append(model.between.decision)
    np.testing.assert_allclose(results[0], results[1], atol=1e-9)


# -- the path and bad input -------------------------------------------------------------------------------


def test_planted_features_are_recovered():
    X, y = noisy(80, 300, noise=0.0, seed=1)
    for parameters in ({"C": 10.0}, {"C": np.inf}, {"loss": "probit"}):
        assert np.flatnonzero(ZeroNormSVM(2, **parameters).fit(X, y).support_).tolist() == [0, 1]


def test_one_fit_gives_subsets_of_any_size():
    X, y = noisy(40, 50)
    whole = ZeroNormSVM().fit(X, y)
    for k in (1, 3, 10, 33, 50):
        single = ZeroNormSVM(k).fit(X, y)
        np.testing.assert_array_equal(np.flatnonzero(single.support_), whole.path_.support(k))


@pytest.mark.parametrize("q", [-0.1, 2.1, np.nan])
def test_exponents_outside_the_range(q):
    X, y = noisy()
    with pytest.raises(
        ValueError, match="'q' parameter of ZeroNormSVM must be a number of at least 0 and at most 2"
    ):
        ZeroNormSVM(q=q).fit(X, y)


def test_hard_margin_on_inseparable_classes():
    X, y = noisy(80, 3)
    for q in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="ZeroNormSVM with a hard margin"):
            ZeroNormSVM(q=q, C=np.inf).fit(X, y)
    with pytest.raises(ValueError, match="q=inf"):
        ZeroNormSVM(q=np.inf, C=np.inf).fit(X, y)


def test_a_cost_too_small_for_the_number_of_features_is_reported():
    X, y = noisy(30, 500)
    with pytest.warns(ConvergenceWarning, match="raise C"):
        selector = ZeroNormSVM(5, C=1e-3, scaling="paper").fit(X, y)
    assert not selector.converged_
    assert selector.support_.sum() == 5


def test_identical_columns_tie_the_same_way_every_time():
    X, y = noisy(40, 20)
    X[:, 10:] = X[:, :10]
    first, again = ZeroNormSVM(2).fit(X, y), ZeroNormSVM(2).fit(X, y)
    assert np.flatnonzero(first.support_).tolist() == [0, 1]
    np.testing.assert_array_equal(first.path_.order, again.path_.order)
    assert first.representative_.tolist() == [*range(10), *range(10)]


def test_the_smallest_problems():
    one = ZeroNormSVM().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    assert one.support_.tolist() == [True]
    two = ZeroNormSVM(1).fit([[0.0, 5.0, 1.0], [1.0, -5.0, 1.0]], [0, 1])
    assert two.support_.sum() == 1
    assert np.isfinite(two.scores_).all()


def test_the_probit_model_selects_no_feature_from_two_samples():
    with pytest.warns(ConvergenceWarning, match="use loss='hinge'"):
        selector = ZeroNormSVM(1, loss="probit", scaling="paper").fit(
            [[0.0, 5.0, 1.0], [1.0, -5.0, 1.0]], [0, 1]
        )
    assert selector.support_.sum() == 1
    assert np.isfinite(selector.scores_).all()


def test_wrong_parameters_are_explained():
    X, y = noisy()
    for parameters, message in (
        ({"loss": "logistic"}, "'loss' parameter"),
        ({"multi_class": "joint"}, "'multi_class' parameter"),
        ({"C": -1.0}, "'C' parameter of ZeroNormSVM must be"),
        ({"loss": "probit", "q": np.inf}, "must be 'hinge' with q=inf"),
    ):
        with pytest.raises(ValueError, match=message):
            ZeroNormSVM(**parameters).fit(X, y)


# -- what follows from the exponent ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "zero_tol"),
    [
        ({}, 1e-3),
        ({"q": 0.99}, 1e-3),
        ({"q": 1.0}, 1e-4),
        ({"q": 1.99}, 1e-4),
        ({"q": 2.0}, 0.0),
        ({"zero_tol": 0.3}, 0.3),
    ],
)
def test_what_counts_as_zero_by_exponent(params, zero_tol):
    assert zeronorm.ZeroNormSVM(**params)._zero_tol() == zero_tol


@pytest.mark.parametrize(("shift", "seed"), [(1.2, 0), (1.2, 1), (4.0, 0)])
def test_a_converged_probit_model_is_at_its_fixed_point(shift, seed):
    """EM slows down as the classes move apart: small steps do not show that the end is near."""
    y = np.arange(80) % 2
    X = np.random.default_rng(seed).normal(size=(80, 6))
    X[:, :2] += shift * y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = ZeroNormSVM(loss="probit", scaling="paper").fit(X, y)
        exact = ZeroNormSVM(loss="probit", scaling="paper", tol=1e-6, max_iter=5000).fit(X, y)
    distance = np.abs(found.coef_ - exact.coef_).max() / np.abs(exact.coef_).max()
    assert not found.converged_ or distance < 5e-3
    assert found.converged_ == (shift < 4.0)
