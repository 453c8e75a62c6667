"""RFE with kernels, logistic regression and any estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler

from zeronorm import RFE
from zeronorm.criteria._kernels import PolynomialKernel
from zeronorm.design import as_design
from zeronorm.engines.elimination._kernel import CallableSource, PolynomialSource, RBFSource
from zeronorm.solvers.linear import LOGISTIC
from zeronorm.solvers.linear._smooth import solve_on_gram


def data(seed=0, n=30, p=12, classes=2):
    X, y = make_classification(
        n, p, n_informative=4, n_redundant=0, n_classes=classes, n_clusters_per_class=1, random_state=seed
    )
    return StandardScaler().fit_transform(X), y


SOURCES = {
    "rbf": (lambda X: RBFSource(as_design(X), 0.3, rescale=False), lambda A, B: rbf_kernel(A, B, gamma=0.3)),
    "poly": (
        lambda X: PolynomialSource(as_design(X), PolynomialKernel(3, 0.4, 0.7)),
        lambda A, B: polynomial_kernel(A, B, degree=3, gamma=0.4, coef0=0.7),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("grouped", [False, True])
def test_removal_equals_fresh_kernels(name, grouped):
    X, _ = data()
    make_source, function = SOURCES[name]
    V = np.random.default_rng(0).normal(size=(30, 2))
    V[:8, 0] = 0.0
    active = np.array([0, 2, 3, 5, 7, 8, 11])
    units = (
        [np.array([0, 3]), np.array([1]), np.array([2, 4, 5, 6])]
        if grouped
        else [np.array([i]) for i in range(7)]
    )
    source, reference = make_source(X), CallableSource(as_design(X), function)
    K = source.matrix(active)
    assert np.allclose(K, reference.matrix(active))
    change = source.removal(active, K, V, units)
    assert np.allclose(change, reference.removal(active, K, V, units), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_elimination_equals_the_naive_algorithm(kernel):
    X, y = data(1, n=24, p=8)
    function = {
        "rbf": lambda A, B: rbf_kernel(A, B, gamma=1 / 8),
        "poly": lambda A, B: (A @ B.T / 8 + 1) ** 2,
    }[kernel]
    ours = RFE(n_features_to_select=1, kernel=kernel, tol=1e-9).fit(X, y).path_.order
    naive = RFE(n_features_to_select=1, kernel=function, tol=1e-9).fit(X, y).path_.order
    assert np.array_equal(ours, naive)


def test_linear_function_and_pieces_equal_the_linear_kernel():
    X, y = data(2, n=24, p=9)
    linear = RFE(n_features_to_select=1, C=1.0, tol=1e-9).fit(X, y).path_.order
    assert np.array_equal(
        RFE(n_features_to_select=1, kernel=lambda A, B: A @ B.T, C=1.0, tol=1e-9).fit(X, y).path_.order,
        linear,
    )
    pieces = np.einsum("ik,jk->kij", X, X)
    given = RFE(n_features_to_select=1, kernel="precomputed", kernel_pieces=pieces, C=1.0, tol=1e-9).fit(X, y)
    assert np.array_equal(given.path_.order, linear)


def test_product_of_pieces_equals_rbf():
    X, y = data(3, n=24, p=6)
    pieces = np.exp(-((X.T[:, :, None] - X.T[:, None, :]) ** 2) / 6)
    given = RFE(
        n_features_to_select=1, kernel="precomputed", kernel_pieces=pieces, combine="product", tol=1e-9
    ).fit(X, y)
    assert np.array_equal(
        given.path_.order, RFE(n_features_to_select=1, kernel="rbf", tol=1e-9).fit(X, y).path_.order
    )


def test_width_follows_the_remaining_features_on_request():
    source = RBFSource(as_design(np.ones((3, 10))), 0.1, rescale=True)
    assert source.width(np.arange(5)) == pytest.approx(0.2)
    fixed = RBFSource(as_design(np.ones((3, 10))), 0.1, rescale=False)
    assert fixed.width(np.arange(5)) == 0.1


def test_kernel_groups_are_never_split():
    X, y = data(4, p=12)
    groups = np.arange(12) // 3
    for kernel in ("rbf", "poly"):
        path = RFE(n_features_to_select=3, kernel=kernel, feature_groups=groups).fit(X, y).path_
        for k in (3, 6, 9):
            assert all(len(set(path.mask(k)[groups == g])) == 1 for g in range(4))


def test_logistic_solver_matches_scikit_learn():
    X, y = data(5, n=40, p=15)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    signs = 2.0 * y - 1.0
    ours = solve_on_gram(X @ X.T, LOGISTIC, signs, 0.7 * weight, tol=1e-10)
    theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10**4).fit(X, y, sample_weight=weight)
    assert np.allclose(X.T @ ours.dual_coef, theirs.coef_[0], atol=1e-5)
    assert ours.bias == pytest.approx(theirs.intercept_[0], abs=1e-5)
    assert abs(ours.dual_coef.sum()) < 1e-7
    again = solve_on_gram(X @ X.T, LOGISTIC, signs, 0.7 * weight, (ours.dual_coef, ours.bias))
    assert again.n_iter <= 2


def test_logistic_solver_survives_separable_data_and_a_large_cost():
    X, y = data(6, n=20, p=60)
    solution = solve_on_gram(X @ X.T, LOGISTIC, 2.0 * y - 1.0, np.full(20, 1e6))
    assert np.all(np.isfinite(solution.dual_coef))
    assert np.all(np.sign(X @ (X.T @ solution.dual_coef) + solution.bias) == 2 * y - 1)


@pytest.mark.parametrize("shape", [(30, 20), (700, 8)])
def test_logistic_elimination_is_that_of_scikit_learn(shape):
    X, y = data(7, *shape)
    ours = RFE(n_features_to_select=1, learner="logistic", C=0.5, tol=1e-9).fit(X, y)
    theirs = ReferenceRFE(LogisticRegression(C=0.5, tol=1e-10, max_iter=10**4), n_features_to_select=1).fit(
        X, y
    )
    assert np.array_equal(ours.path_.ranking(), theirs.ranking_)


def test_an_estimator_is_no_learner():
    X, y = data()
    with pytest.raises(ValueError, match="'learner' parameter of RFE must be"):
        RFE(n_features_to_select=2, learner=LogisticRegression()).fit(X, y)


@pytest.mark.parametrize("pieces", [None, np.ones((12, 5, 5)), np.full((12, 30, 30), np.nan)])
def test_wrong_pieces_are_refused(pieces):
    X, y = data()
    with pytest.raises(ValueError, match="'kernel_pieces' parameter"):
        RFE(n_features_to_select=2, kernel="precomputed", kernel_pieces=pieces).fit(X, y)


def test_indefinite_kernel_is_shifted_with_a_warning():
    X, y = data(10)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        s = RFE(n_features_to_select=3, kernel=lambda A, B: np.tanh(A @ B.T - 1.0)).fit(X, y)
    assert np.all(np.isfinite(s.scores_))
    assert sorted(s.path_.order) == list(range(12))


def test_kernel_function_of_the_wrong_shape_is_refused():
    X, y = data()
    with pytest.raises(ValueError, match="'kernel' function must return"):
        RFE(n_features_to_select=3, kernel=lambda A, B: np.ones(4)).fit(X, y)


def test_logistic_regression_is_for_classes():
    X, y = data()
    with pytest.raises(ValueError, match="'learner' parameter of RFE must be"):
        RFE(n_features_to_select=3, learner="logistic", task="regression").fit(X, y)
