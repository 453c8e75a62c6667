"""The predictor used when none is named, and the shares of right predictions, against scikit-learn's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zeronorm.resampling._metrics import METRICS, as_metric, scoring_metric
from zeronorm.resampling.predictors import _pairwise_svm as pairwise_svm
from zeronorm.resampling.predictors._default import default_estimator, gaussian_estimator
from zeronorm.selection.target import TASKS, Binary, Labels, Real


def columns_as_they_come(seed):
    """Columns of any size: far from zero, tiny, constant, and of whole numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8)) * 10.0 ** rng.integers(-6, 7, size=8) + rng.normal(size=8) * 1e3
    X[:, 5] = 0.1
    X[:, 6] = rng.integers(0, 2, size=60)
    X[:, 7] = 0.0
    return X, rng


def assert_same_model(ours, X, y, **model):
    """The same predictions, values and score on the last samples as the pipeline of scaler and SVM."""
    ours = clone(ours).fit(X[:40], y[:40])
    model = SVC(random_state=0, tol=1e-10, **model)
    reference = make_pipeline(StandardScaler(), model).fit(X[:40], y[:40])
    assert ours.pairs_ is not None
    np.testing.assert_array_equal(ours.predict(X[40:]), reference.predict(X[40:]))
    tolerance = 1e-5 if X.dtype != np.float32 else 2e-3
    near = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(ours.decision_function(X[40:]), reference.decision_function(X[40:]), **near)
    np.testing.assert_allclose(ours.intercept_, reference[-1].intercept_, **near)
    assert hasattr(ours, "coef_") == (model.kernel == "linear")
    if model.kernel == "linear":
        np.testing.assert_allclose(ours.coef_, reference[-1].coef_, **near)
    assert ours.score(X[40:], y[40:]) == reference.score(X[40:], y[40:])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_default_model_is_the_pipeline_of_scaler_and_model(dtype, n_classes):
    X, rng = columns_as_they_come(n_classes)
    y = np.asarray(list("abc"))[rng.integers(0, n_classes, size=60)]
    assert_same_model(default_estimator(Labels, n_samples=60), X.astype(dtype), y, kernel="linear")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_features", [1, 8])
def test_the_gaussian_model_is_the_pipeline_of_scaler_and_model(dtype, n_classes, n_features):
    X, rng = columns_as_they_come(n_classes)
    y = np.asarray(list("abc"))[rng.integers(0, n_classes, size=60)]
    assert_same_model(gaussian_estimator(Labels), X[:, :n_features].astype(dtype), y)


def test_a_gaussian_model_of_constant_columns_and_of_many_samples(monkeypatch):
    y = np.arange(40) % 2
    X = np.ones((40, 2))
    reference = make_pipeline(StandardScaler(), SVC())
    ours = gaussian_estimator(Labels)
    np.testing.assert_array_equal(ours.fit(X, y).predict(X), reference.fit(X, y).predict(X))
    monkeypatch.setattr(pairwise_svm, "LARGEST_NONLINEAR", 20)
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert ours.fit(X, y).pairs_ is None
    np.testing.assert_array_equal(ours.predict(X), reference.fit(X, y).predict(X))


@pytest.mark.parametrize("useful", [False, True])
def test_a_tie_is_decided_as_libsvm_decides_it(useful):
    """Constant columns and classes of the same size give a decision value of zero."""
    y = np.arange(40) % 4
    X = (y[:, None] > 1) * 2.0 if useful else np.ones((40, 1))
    ours = default_estimator(Labels, n_samples=40)
    reference = make_pipeline(StandardScaler(), SVC(kernel="linear"))
    for labels in (y % 2, y):
        np.testing.assert_array_equal(ours.fit(X, labels).predict(X), reference.fit(X, labels).predict(X))


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_with_many_samples_the_default_model_stays_the_same(labels, overlap, monkeypatch):
    """Two classes with more samples than features are solved without LIBSVM, which takes long where they overlap."""
    monkeypatch.setattr(pairwise_svm, "LARGEST_FOR_LIBSVM", 20)
    X, rng = columns_as_they_come(0)
    X = X[:, :6]
    codes = rng.integers(0, len(labels), size=60)
    X[:, 0] += (0.0 if overlap else 50.0 * X[:, 0].std()) * codes
    y = np.asarray(list(labels))[codes]
    ours = clone(default_estimator(Labels, n_samples=60)).fit(X[:40], y[:40])
    model = SVC(kernel="linear", random_state=0, tol=1e-8)
    reference = make_pipeline(StandardScaler(), model).fit(X[:40], y[:40])
    assert (ours.pairs_ is not None) == (labels == "ab")
    np.testing.assert_array_equal(ours.predict(X[40:]), reference.predict(X[40:]))
    near = {"rtol": 1e-4, "atol": 1e-4} if labels == "ab" else {"rtol": 1e-2, "atol": 5e-3}
    np.testing.assert_allclose(ours.decision_function(X[40:]), reference.decision_function(X[40:]), **near)
    np.testing.assert_allclose(ours.coef_, reference[-1].coef_, **near)
    np.testing.assert_allclose(ours.intercept_, reference[-1].intercept_, **near)
    assert ours.score(X[40:], y[40:]) == reference.score(X[40:], y[40:])


def test_the_default_ridge_is_the_pipeline_of_scaler_and_ridge():
    X, rng = columns_as_they_come(0)
    y = rng.normal(size=60)
    ours = clone(default_estimator(Real, n_samples=60)).fit(X[:40], y[:40])
    reference = make_pipeline(StandardScaler(), Ridge()).fit(X[:40], y[:40])
    np.testing.assert_allclose(ours.predict(X[40:]), reference.predict(X[40:]), rtol=1e-9)
    assert ours.score(X[40:], y[40:]) == pytest.approx(reference.score(X[40:], y[40:]), rel=1e-9)


def test_missing_values_are_refused():
    X, _ = columns_as_they_come(0)
    X[3, 2] = np.nan
    for task, y in (("classification", np.arange(60) % 2), ("regression", np.arange(60.0))):
        with pytest.raises(ValueError, match="NaN"):
            default_estimator(TASKS[task], n_samples=60).fit(X, y)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_samples_that_do_not_fit_are_refused(task):
    X, _ = columns_as_they_come(0)
    fitted = default_estimator(TASKS[task], n_samples=60).fit(X, np.arange(60) % 2)
    with pytest.raises(ValueError, match=r"fitted on 8 features. Got X of shape \(60, 1\)"):
        fitted.predict(X[:, :1])
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(X)


def test_the_score_of_a_regressor_is_that_of_scikit_learn():
    X, rng = columns_as_they_come(0)
    y = rng.normal(size=60)
    fitted = default_estimator(Real, n_samples=60).fit(X, y)
    score = scoring_metric(None, fitted)
    for truth in (y, np.ones(60)):
        assert score.function(truth, fitted.predict(X)) == pytest.approx(fitted.score(X, truth), rel=1e-12)
    assert score.function(y, y) == score.function(np.ones(60), np.ones(60)) == 1.0
    assert score.response == "predict"  # the model does not predict once more


@pytest.mark.parametrize(
    ("name", "reference"), [("accuracy", accuracy_score), ("balanced_accuracy", balanced_accuracy_score)]
)
def test_shares_of_right_predictions_are_those_of_scikit_learn(name, reference):
    rng = np.random.default_rng(0)
    for labels in (np.arange(3), np.asarray(list("xyz"))):
        truth, predicted = labels[rng.integers(0, 3, size=50)], labels[rng.integers(0, 3, size=50)]
        metric = as_metric(name)
        assert metric.function(truth, predicted) == reference(truth, predicted)
        assert metric.greater_is_better
        assert metric.name == name


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64, bool, "U1", object])
@pytest.mark.parametrize("n_samples", [12, pairwise_svm.FEW_LABELS + 2])
def test_the_samples_of_each_class_are_looked_up_once_for_the_same_target(dtype, n_samples):
    pairwise_svm._members_in_memory.cache_clear()
    y = (np.arange(n_samples) % 2).astype(dtype)
    for target in (y, y[::-1], y.copy()):
        classes, members = pairwise_svm._members_of_classes(target)
        np.testing.assert_array_equal(classes, np.unique(target))
        assert classes.dtype == target.dtype
        for label, rows in zip(classes, members, strict=True):
            np.testing.assert_array_equal(rows, np.flatnonzero(target == label))
    again = pairwise_svm._members_of_classes(y)[1]
    is_kept = n_samples <= pairwise_svm.FEW_LABELS and dtype is not object
    assert (again is members) == is_kept


def test_targets_with_the_same_bytes_and_other_types_are_distinguished():
    whole = np.array([0, 1, 0, 1])
    as_numbers = whole.view(np.float64)
    assert pairwise_svm._members_of_classes(whole)[0].tolist() == [0, 1]
    assert pairwise_svm._members_of_classes(as_numbers)[0].tolist() == [0.0, 5e-324]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("largest", [500, 20])
def test_balanced_weights_are_those_of_scikit_learn(n_classes, kernel, largest, monkeypatch):
    """For few samples, for many (two classes), and where LIBSVM does it."""
    monkeypatch.setattr(pairwise_svm, "LARGEST_FOR_LIBSVM", largest)
    monkeypatch.setattr(pairwise_svm, "LARGEST_NONLINEAR", largest)
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(3), [60, 9, 18] if n_classes == 3 else [60, 0, 18])
    X = rng.normal(size=(y.size, 5)) + y[:, None]
    metric = METRICS["balanced_error_rate"]
    if kernel == "linear":
        ours = default_estimator(Labels, n_samples=y.size, metric=metric)
    else:
        ours = gaussian_estimator(Labels, metric=metric)
    reference = make_pipeline(StandardScaler(), SVC(kernel=kernel, class_weight="balanced", tol=1e-9)).fit(
        X, y
    )
    near = {"atol": 1e-4} if ours.fit(X, y).pairs_ is not None else {"atol": 1e-2}
    np.testing.assert_allclose(ours.decision_function(X), reference.decision_function(X), **near)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_balanced_weights_change_nothing_where_the_classes_have_the_same_size(n_classes, kernel):
    y = np.arange(45 if n_classes == 3 else 46) % n_classes
    X = np.random.default_rng(0).normal(size=(y.size, 5)) + 0.5 * y[:, None]
    plain, weighted = (
        pairwise_svm.StandardizedSVC(kernel=kernel, class_weight=weight).fit(X, y).decision_function(X)
        for weight in (None, "balanced")
    )
    np.testing.assert_array_equal(plain, weighted)


@pytest.mark.parametrize("target", [Binary, Real])
def test_a_gaussian_kernel_on_sparse_columns_is_that_on_centred_ones(target):
    """Columns of counts with means far from zero and from each other."""
    rng = np.random.default_rng(0)
    X = rng.poisson(np.linspace(0.1, 20.0, 12), (80, 12)).astype(float)
    y = X[:, 3] + X[:, 8] if target is Real else (X[:, 3] > 6).astype(int)
    dense = gaussian_estimator(target).fit(X[:50], y[:50])
    stored = gaussian_estimator(target, is_sparse=True).fit(sparse.csr_matrix(X[:50]), y[:50])
    use = "predict" if target is Real else "decision_function"
    found, expected = getattr(stored, use)(sparse.csr_matrix(X[50:])), getattr(dense, use)(X[50:])
    np.testing.assert_allclose(found, expected, atol=5e-3 * np.abs(expected).max())
