"""Relevance vector machines: sparsity against the SVM, and the models as ARD on kernel columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from zeronorm import ARD
from zeronorm.models import RelevanceVectorClassifier, RelevanceVectorRegressor


def ripley_like(n=250, seed=0):
    """Two classes, each a mixture of two round normals, overlapping (about 8 % Bayes error)."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    X = centres[y, rng.integers(0, 2, size=n)] + np.sqrt(0.03) * rng.normal(size=(n, 2))
    return X, y


@pytest.mark.parametrize("seed", range(3))
def test_fewer_vectors_than_the_svm_at_a_similar_error(seed):
    X, y = ripley_like(seed=seed)
    X_test, y_test = ripley_like(n=1000, seed=100 + seed)
    rvm = RelevanceVectorClassifier(gamma=4.0).fit(X, y)
    svm = SVC(C=1.0, gamma=4.0).fit(X, y)
    assert 1 <= rvm.relevance_.size <= svm.n_support_.sum() / 4
    assert rvm.score(X_test, y_test) >= svm.score(X_test, y_test) - 0.02


def test_the_regressor_is_ard_on_kernel_columns():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-10.0, 10.0, size=(80, 1)), axis=0)
    y = np.sinc(X[:, 0] / np.pi) + 0.05 * rng.normal(size=80)
    rvm = RelevanceVectorRegressor(gamma=0.1).fit(X, y)
    K = rbf_kernel(X, X, gamma=0.1)
    K /= np.sqrt((K**2).mean(axis=0))
    ard = ARD(task="regression", standardize=False, min_noise=1e-6).fit(K, y)
    assert rvm.relevance_.tolist() == np.flatnonzero(np.isfinite(ard.precision_)).tolist()
    assert rvm.log_evidence_ == pytest.approx(ard.log_evidence_)
    np.testing.assert_allclose(rvm.predict(X), K @ ard.coef_[0] + ard.intercept_[0], atol=1e-10)
    assert rvm.relevance_.size < 20
    assert rvm.noise_variance_ == pytest.approx(0.05**2, rel=0.5)
    np.testing.assert_allclose(rvm.predict(X), np.sinc(X[:, 0] / np.pi), atol=0.08)


def test_predictive_deviation_is_noise_plus_posterior():
    rng = np.random.default_rng(1)
    X = rng.uniform(-3.0, 3.0, size=(60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    rvm = RelevanceVectorRegressor(gamma=0.5).fit(X, y)
    mean, deviation = rvm.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, rvm.predict(X))
    assert np.all(deviation**2 > rvm.noise_variance_)
    F = np.column_stack([np.ones(60), rbf_kernel(X, rvm.relevance_vectors_, gamma=0.5)])
    # With a nearly flat prior the posterior variance is that of least squares, an upper bound.
    bound = rvm.noise_variance_ * np.einsum("ij,jk,ik->i", F, np.linalg.pinv(F.T @ F), F)
    assert np.all(deviation**2 <= rvm.noise_variance_ + bound + 1e-10)


def test_probabilities_are_calibrated_and_sum_to_one():
    X, y = ripley_like(n=400)
    rvm = RelevanceVectorClassifier(gamma=4.0).fit(X, y)
    probability = rvm.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert probability[:, 1].mean() == pytest.approx(y.mean(), abs=1e-3)  # the bias is not penalised


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_three_classes_with_every_kernel(kernel):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    X = rng.normal(size=(90, 2)) + 5.0 * np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 30, axis=0)
    rvm = RelevanceVectorClassifier(kernel=kernel).fit(X, y)
    assert rvm.score(X, y) > 0.9
    assert rvm.dual_coef_.shape == (3, rvm.relevance_.size)
    assert rvm.decision_function(X).shape == (90, 3)
    np.testing.assert_allclose(rvm.predict_proba(1e3 * X).sum(axis=1), 1.0)


def test_identical_samples_and_constant_targets():
    X = np.ones((10, 3))
    y = np.arange(10) % 2
    assert np.all(np.isfinite(RelevanceVectorClassifier().fit(X, y).decision_function(X)))
    rvm = RelevanceVectorRegressor().fit(X, np.full(10, 4.0))
    np.testing.assert_allclose(rvm.predict(X), 4.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "sigmoid"}, "'kernel' parameter of RelevanceVectorRegressor must be"),
        ({"gamma": -1.0}, "'gamma' parameter of RelevanceVectorRegressor must be"),
        ({"gamma": "wide"}, "'gamma' parameter of RelevanceVectorRegressor must be"),
        ({"noise_variance": -1.0}, "'noise_variance' parameter of RelevanceVectorRegressor must be"),
        ({"min_noise": 0.0}, "'min_noise' parameter of RelevanceVectorRegressor must be"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RelevanceVectorRegressor(**parameters).fit(np.eye(4), np.arange(4.0))


def test_an_iteration_limit_is_reported():
    X, y = ripley_like()
    with pytest.warns(ConvergenceWarning, match="did not converge: raise max_iter"):
        rvm = RelevanceVectorClassifier(gamma=4.0, max_iter=1).fit(X, y)
    assert not rvm.converged_


def test_probabilities_belong_to_the_classes_in_their_order():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 30)
    X = rng.normal(size=(60, 2)) + 3.0 * (y == "b")[:, None]
    model = RelevanceVectorClassifier().fit(X, y)
    probability = model.predict_proba(X)
    assert list(model.classes_) == ["a", "b"]
    assert np.mean(probability[y == "b", 1]) > 0.8
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))
