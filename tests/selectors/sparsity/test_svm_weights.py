"""SVMWeights against the SVMs of other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR

from zeronorm import SVMWeights
from zeronorm.design import as_design
from zeronorm.solvers.l1_svm._program import L1SvmProgram


def noisy(n=60, p=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 4] - X[:, 9] + 0.5 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("shape", [(40, 100), (60, 20), (500, 10)])
def test_two_classes(shape):
    X, y = noisy(*shape)
    selector = SVMWeights(3, C=0.5, standardize=False).fit(X, y)
    reference = SVC(kernel="linear", C=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(selector.coef_, reference.coef_, atol=1e-5)
    expected = np.argsort(-np.abs(reference.coef_[0]))[:3]
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), np.sort(expected))


def test_several_classes():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 12))
    X[:, 2] += y
    selector = SVMWeights(C=1.0, standardize=False).fit(X, y)
    reference = OneVsRestClassifier(SVC(kernel="linear", tol=1e-8)).fit(X, y)
    weights = np.abs([model.coef_[0] for model in reference.estimators_]).sum(axis=0)
    np.testing.assert_allclose(selector.scores_, weights, atol=1e-4)


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    y = X[:, 4] - 2.0 * X[:, 7] + 0.1 * rng.normal(size=60)
    selector = SVMWeights(2, C=1.0, epsilon=0.1, task="regression", standardize=False).fit(X, y)
    reference = SVR(kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(selector.coef_, reference.coef_, atol=1e-5)
    assert np.flatnonzero(selector.support_).tolist() == [4, 7]


def test_sparse_weights_come_first_and_the_rest_by_reduced_cost():
    X, y = noisy(30, 60)
    selector = SVMWeights(norm="l1", C=1.0, standardize=False).fit(X, y)
    reference = L1SvmProgram(as_design(X), y, C=1.0).solve()
    np.testing.assert_allclose(selector.coef_[0], reference.weights, atol=1e-9)
    n_weights = np.count_nonzero(reference.weights)
    assert selector.support_.sum() == n_weights
    order = selector.path_.order
    np.testing.assert_array_equal(np.sort(order[:n_weights]), np.flatnonzero(reference.weights))
    closeness = np.abs(reference.gradient)[order[n_weights:]]
    np.testing.assert_allclose(closeness, np.sort(closeness)[::-1])


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_hard_margins(norm):
    X, y = noisy(30, 60)
    selector = SVMWeights(2, norm=norm, C=np.inf, standardize=False).fit(X, y)
    assert np.min(y * (X @ selector.coef_[0] + selector.intercept_[0])) > 1.0 - 1e-5
    with pytest.raises(ValueError, match="SVMWeights with a hard margin"):
        SVMWeights(norm=norm, C=np.inf).fit(X[:, :2], y)


def test_wrong_parameters_are_explained():
    X, y = noisy()
    with pytest.raises(ValueError, match="'norm' parameter of SVMWeights must be 'l2' or 'l1'"):
        SVMWeights(norm="l0").fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter"):
        SVMWeights(C=0.0).fit(X, y)


def test_pairs_of_classes_are_those_of_libsvm():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 8))
    X[:, 2] += 1.5 * y
    selector = SVMWeights(C=1.0, multi_class="one_vs_one", standardize=False).fit(X, y)
    reference = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(np.abs(selector.coef_), np.abs(reference.coef_), atol=1e-5)
