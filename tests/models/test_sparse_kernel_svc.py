"""SparseKernelSVC: the same as ZeroNormSVM on kernel columns, merged rows, the added two-norm."""

from __future__ import annotations

import os
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from oracles.qp import PRECISE
from zeronorm import ZeroNormSVM
from zeronorm.models import SparseKernelSVC


def checkerboard(n=80, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + noise * rng.normal(size=n) > 0, 1, 0)


def test_it_is_the_zero_norm_model_on_the_kernel_columns():
    X, y = checkerboard()
    model = SparseKernelSVC(gamma=0.7, C=5.0).fit(X, y)
    selector = ZeroNormSVM(C=5.0, scaling="paper", standardize=False).fit(rbf_kernel(X, gamma=0.7), y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(selector.coef_[0]))
    np.testing.assert_allclose(model.dual_coef_[0], selector.coef_[0][model.support_], atol=1e-6)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize("two_norm", [0.0, 0.5])
def test_the_first_model_against_a_qp_solver(two_norm):
    X, y = checkerboard(30)
    with pytest.warns(ConvergenceWarning):
        model = SparseKernelSVC(gamma=0.7, C=3.0, two_norm=two_norm, max_iter=1, zero_tol=0.0).fit(X, y)
    K, signs = rbf_kernel(X, gamma=0.7), 2.0 * y - 1.0
    beta, b = cp.Variable(30), cp.Variable()
    quadratic = cp.sum_squares(beta) + two_norm * cp.quad_form(beta, cp.psd_wrap(K))
    loss = 3.0 * cp.sum(cp.pos(1 - cp.multiply(signs, K @ beta + b)))
    cp.Problem(cp.Minimize(quadratic + loss)).solve(solver=cp.CLARABEL, **PRECISE)
    found = np.zeros(30)
    found[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(found, beta.value, atol=1e-4)


def test_the_two_norm_is_rescaled_along():
    """The second model: β'Λβ + τ β'Kβ with Λ from the first."""
    X, y = checkerboard(30)
    settings = {"gamma": 0.7, "C": 3.0, "two_norm": 0.5, "zero_tol": 0.0}
    K, signs = rbf_kernel(X, gamma=0.7), 2.0 * y - 1.0
    penalty = np.ones(30)
    for _ in range(2):
        beta, b = cp.Variable(30), cp.Variable()
        quadratic = cp.sum(cp.multiply(penalty, cp.square(beta))) + 0.5 * cp.quad_form(beta, cp.psd_wrap(K))
        loss = 3.0 * cp.sum(cp.pos(1 - cp.multiply(signs, K @ beta + b)))
        cp.Problem(cp.Minimize(quadratic + loss)).solve(solver=cp.CLARABEL, **PRECISE)
        penalty = beta.value**-2.0
    with pytest.warns(ConvergenceWarning):
        model = SparseKernelSVC(max_iter=2, **settings).fit(X, y)
    found = np.zeros(30)
    found[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(found, beta.value, atol=1e-3 * np.abs(beta.value).max())


def probit_loss(K, signs):
    """-Σ log Φ(y f) and its derivative by the coefficients and the bias."""

    def value(theta):
        margin = signs * (K @ theta[:-1] + theta[-1])
        slope = -signs * np.exp(norm.logpdf(margin) - norm.logcdf(margin))
        return -norm.logcdf(margin).sum(), np.r_[K.T @ slope, slope.sum()]

    return value


@pytest.mark.parametrize("two_norm", [0.0, 0.5])
def test_the_probit_model_is_the_minimum_of_its_objective(two_norm):
    """With q = 2 the penalty stays the same, so that a general minimiser can solve the problem."""
    X, y = checkerboard(40)
    model = SparseKernelSVC(
        loss="probit", q=2.0, gamma=0.7, two_norm=two_norm, tol=1e-10, zero_tol=0.0, max_iter=20_000
    ).fit(X, y)
    K = rbf_kernel(X, gamma=0.7)
    loss = probit_loss(K, 2.0 * y - 1.0)
    penalty = np.eye(40) + two_norm * K

    def objective(theta):
        value, slope = loss(theta)
        gradient = penalty @ theta[:-1]
        return value + 0.5 * theta[:-1] @ gradient, slope + np.r_[gradient, 0.0]

    found = minimize(
        objective, np.zeros(41), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000}
    )
    beta = np.zeros(40)
    beta[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(np.r_[beta, model.intercept_], found.x, atol=1e-5)


def test_the_sparse_probit_model_is_stationary():
    """At convergence Λ = 1/β², so the slope of the loss is -1/β at every vector that is kept."""
    X, y = checkerboard(120, noise=0.1)
    model = SparseKernelSVC(loss="probit", gamma=0.7, tol=1e-9, max_iter=20_000).fit(X, y)
    assert 0 < model.support_.size < 30
    K = rbf_kernel(X, model.support_vectors_, gamma=0.7)
    _, slope = probit_loss(K, 2.0 * y - 1.0)(np.r_[model.dual_coef_[0], model.intercept_])
    np.testing.assert_allclose(slope[:-1], -1.0 / model.dual_coef_[0], rtol=1e-4)
    assert abs(slope[-1]) < 1e-5
    assert model.score(X, y) > 0.9


def three_classes(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]


@pytest.mark.filterwarnings("ignore:SparseKernelSVC did not converge")  # EM of separable classes has no end
@pytest.mark.parametrize("loss", ["hinge", "probit"])
def test_pairs_vote(loss):
    """Votes counted by hand from the coefficients; a tie goes to the largest sum of decision values."""
    X, y = three_classes()
    model = SparseKernelSVC(loss=loss, multi_class="one_vs_one", gamma=0.7).fit(X, y)
    grid = np.random.default_rng(1).normal(scale=2.0, size=(400, 2))
    values = rbf_kernel(grid, model.support_vectors_, gamma=0.7) @ model.dual_coef_.T + model.intercept_
    expected = []
    for row in values:
        votes, sums = np.zeros(3), np.zeros(3)
        for value, (a, b) in zip(row, [(0, 1), (0, 2), (1, 2)], strict=True):
            votes[b if value > 0 else a] += 1
            sums += value * (np.arange(3) == b) - value * (np.arange(3) == a)
        best = np.flatnonzero(votes == votes.max())
        expected.append("abc"[best[np.argmax(sums[best])]])
    assert model.predict(grid).tolist() == expected
    assert model.decision_function(grid).shape == (400, 3)
    assert model.score(X, y) > 0.9


def test_a_pair_uses_the_samples_of_its_classes_only():
    """With q = 2 the classifiers are independent: each is the classifier of its pair alone."""
    X, y = three_classes(60)
    settings = {"q": 2.0, "gamma": 0.7, "zero_tol": 0.0, "tol": 1e-8, "C": 3.0}
    model = SparseKernelSVC(multi_class="one_vs_one", **settings).fit(X, y)
    for svm, pair in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        rows = np.flatnonzero(np.isin(y, pair))
        K, signs = rbf_kernel(X, gamma=0.7)[rows], np.where(y[rows] == pair[1], 1.0, -1.0)
        beta, b = cp.Variable(60), cp.Variable()
        loss = 3.0 * cp.sum(cp.pos(1 - cp.multiply(signs, K @ beta + b)))
        cp.Problem(cp.Minimize(cp.sum_squares(beta) + loss)).solve(solver=cp.CLARABEL, **PRECISE)
        found = np.zeros(60)
        found[model.support_] = model.dual_coef_[svm]
        np.testing.assert_allclose(found, beta.value, atol=1e-4)


def test_a_probit_model_that_shrinks_to_zero_is_reported_with_a_remedy():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(ConvergenceWarning, match="use loss='hinge' with a larger C"):
        SparseKernelSVC(loss="probit", gamma=50.0, max_iter=5000).fit(X, np.arange(40) % 2)


def test_far_fewer_vectors_than_the_svm():
    X, y = checkerboard(400)
    model = SparseKernelSVC(gamma=0.5, C=10.0).fit(X[:200], y[:200])
    reference = SVC(gamma=0.5, C=10.0).fit(X[:200], y[:200])
    assert model.support_.size <= len(reference.support_) / 5
    assert model.score(X[200:], y[200:]) >= reference.score(X[200:], y[200:]) - 0.05
    assert model.converged_


def test_identical_rows_count_once_as_vectors_and_fully_in_the_loss():
    X, y = checkerboard(40)
    rows = np.concatenate([np.arange(40), [0, 0, 5, 9]])
    weight = np.bincount(rows).astype(float)
    repeated = SparseKernelSVC(gamma=0.7).fit(X[rows], y[rows])
    weighted = SparseKernelSVC(gamma=0.7).fit(X, y, sample_weight=weight)
    assert len(np.unique(repeated.support_vectors_, axis=0)) == len(repeated.support_vectors_)
    np.testing.assert_array_equal(repeated.support_, weighted.support_)
    np.testing.assert_allclose(repeated.dual_coef_, weighted.dual_coef_, atol=1e-8)


def test_rows_with_both_labels():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    model = SparseKernelSVC(C=10.0).fit(X, [0, 0, 1, 1, 1])
    assert model.support_.size <= 2
    assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]


def test_several_classes_share_their_vectors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    model = SparseKernelSVC().fit(X, y)
    assert model.dual_coef_.shape == (3, model.support_.size)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.9


def test_candidates_limit_the_vectors_and_follow_the_seed():
    X, y = checkerboard(120)
    models = [SparseKernelSVC(n_candidates=30, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(models[0].support_, models[1].support_)
    assert models[0].support_.tolist() != models[2].support_.tolist()
    assert models[0].support_.size <= 30


def test_a_larger_exponent_keeps_more_vectors():
    X, y = checkerboard(100)
    sizes = [SparseKernelSVC(q=q, max_iter=3000).fit(X, y).support_.size for q in (0.0, 1.5, 2.0)]
    assert sizes[0] < sizes[1] <= sizes[2] <= 100


def test_wrong_parameters_are_explained():
    X, y = checkerboard(20)
    for parameters, message in (
        ({"kernel": "laplace"}, "'kernel' parameter of SparseKernelSVC must be"),
        ({"gamma": "wide"}, "'gamma' parameter"),
        ({"gamma": -1.0}, "'gamma' parameter of SparseKernelSVC must be a finite number greater than 0"),
        ({"C": 0.0}, "'C' parameter"),
        ({"q": 3.0}, "'q' parameter"),
        ({"two_norm": -1.0}, "'two_norm' parameter"),
        ({"n_candidates": 0}, "'n_candidates' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseKernelSVC(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="two classes"):
        SparseKernelSVC().fit(X, np.ones(20))
    with pytest.warns(ConvergenceWarning, match="raise C"):
        SparseKernelSVC(C=1e-6).fit(X, y)


def test_titanic_needs_a_handful_of_its_fourteen_distinct_rows():
    folder = os.environ.get("ZERONORM_DATA")
    if not folder:
        pytest.skip("needs the Titanic data: set ZERONORM_DATA to the folder with titanic.npz")
    with np.load(Path(folder) / "titanic.npz") as data:
        X, y = data["X"].astype(float), data["y"]
    assert len(np.unique(X, axis=0)) == 14
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    ours = cross_val_score(SparseKernelSVC(C=1.0), X, y, cv=folds)
    reference = cross_val_score(SVC(C=1.0), X, y, cv=folds)
    standard_error = reference.std(ddof=1) / np.sqrt(10)
    assert ours.mean() >= reference.mean() - standard_error
    assert SparseKernelSVC(C=1.0).fit(X, y).support_.size <= len(SVC(C=1.0).fit(X, y).support_) / 10
