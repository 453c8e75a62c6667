"""SparseKernelSVC: the same as ZeroNormSVM on kernel columns, merged rows, the added two-norm."""

from __future__ import annotations

import os
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
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


def test_it_is_the_zero_norm_machine_on_the_kernel_columns():
    X, y = checkerboard()
    model = SparseKernelSVC(gamma=0.7, C=5.0).fit(X, y)
    selector = ZeroNormSVM(C=5.0, scaling="paper", standardize=False).fit(rbf_kernel(X, gamma=0.7), y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(selector.coef_[0]))
    np.testing.assert_allclose(model.dual_coef_[0], selector.coef_[0][model.support_], atol=1e-6)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize("two_norm", [0.0, 0.5])
def test_the_first_machine_against_a_qp_solver(two_norm):
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
    """The second machine: β'Λβ + τ β'Kβ with Λ from the first."""
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


def test_far_fewer_vectors_than_the_support_vector_machine():
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
