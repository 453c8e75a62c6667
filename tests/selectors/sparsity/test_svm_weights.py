"""SVMWeights against the SVMs of other libraries."""

from __future__ import annotations

from itertools import combinations

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


# -- counted slacks (p = 2, q = 0) --


def mislabelled(seed, n=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[:2] *= -1
    return X, y


def fewest_errors(X, y, C):
    """The smallest ½‖w‖² + C ‖ξ‖₀, by a hard margin on the other samples of every set of errors."""
    best = C * min(np.bincount(y > 0))  # w = 0 misses one class
    for size in range(len(y)):
        for left_out in combinations(range(len(y)), size):
            kept = np.setdiff1d(np.arange(len(y)), left_out)
            if size * C >= best or np.unique(y[kept]).size < 2:
                continue
            hard = SVC(kernel="linear", C=1e6, max_iter=100_000).fit(X[kept], y[kept])
            if np.min(y[kept] * hard.decision_function(X[kept])) > 0.99:
                best = min(best, 0.5 * float(np.sum(hard.coef_**2)) + C * size)
    return best


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_counted_slacks_against_all_sets_of_errors():
    """A local minimum: never below the best of all, never worse than what one plain SVM gives, and often the best."""
    ratios = []
    for seed in range(4):
        X, y = mislabelled(seed)
        objective = {}
        for slack_norm in (0, 1):
            s = SVMWeights(1, slack_norm=slack_norm, C=3.0, standardize=False).fit(X, y)
            assert s.converged_
            slack = 1.0 - y * (X @ s.coef_[0] + s.intercept_[0])
            objective[slack_norm] = 0.5 * float(s.coef_[0] @ s.coef_[0]) + 3.0 * np.sum(slack > 1.5e-3)
        best = fewest_errors(X, y, 3.0)
        assert objective[0] > 0.99 * best
        ratios.append((objective[0] / best, objective[1] / objective[0]))
    to_best, of_plain = np.transpose(ratios)
    assert np.median(to_best) < 1.2
    assert of_plain.min() > 0.999
    assert np.mean(of_plain) > 1.1


@pytest.mark.parametrize("C", [0.3, 3.0])
def test_counted_slacks_end_at_a_fixed_point(C):
    """An SVM of another library with the costs C / ξ has the same slacks."""
    X, y = noisy(60, 10, seed=3)
    s = SVMWeights(slack_norm=0, C=C, standardize=False).fit(X, y)
    slack = np.maximum(1.0 - y * (X @ s.coef_[0] + s.intercept_[0]), 1e-3)
    again = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y, sample_weight=1.0 / slack)
    np.testing.assert_allclose(s.coef_, again.coef_, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_counted_slacks_ignore_samples_far_on_the_wrong_side(norm):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    wrong = np.argsort(-np.abs(X[:, 0]))[:6]
    y[wrong] *= -1
    X[wrong, 1] += 3.0 * y[wrong]  # and the wrong feature explains them
    weights = {}
    for slack_norm in (0, 1):
        s = SVMWeights(1, norm=norm, slack_norm=slack_norm, C=1.0, standardize=False).fit(X, y)
        weights[slack_norm] = np.abs(s.coef_[0])
    assert weights[0][1] / weights[0][0] < 0.5 * weights[1][1] / weights[1][0]


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_counted_slacks_of_several_classes_and_of_weighted_samples(multi_class):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 8))
    X[:, :3] += 2.0 * np.eye(3)[y]
    s = SVMWeights(3, slack_norm=0, C=1.0, multi_class=multi_class).fit(X, y)
    assert s.converged_
    assert s.get_support(indices=True).tolist() == [0, 1, 2]
    weight = np.where(np.arange(90) < 60, 1.0, 0.0)
    left_out = SVMWeights(slack_norm=0, C=1.0, multi_class=multi_class, standardize=False)
    found = left_out.fit(X, y, sample_weight=weight).coef_
    np.testing.assert_allclose(found, left_out.fit(X[:60], y[:60]).coef_, rtol=1e-4, atol=1e-5)


def test_wrong_parameters_are_explained():
    X, y = noisy()
    with pytest.raises(ValueError, match="'C' parameter of SVMWeights must be finite with slack_norm=0"):
        SVMWeights(C=np.inf, slack_norm=0).fit(X, y)
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
