"""Models that RFE follows from one size to the next without refitting: optimal at every size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import make_classification, make_regression
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm import RFE
from zeronorm.engines.elimination import _known_models as known_models
from zeronorm.engines.elimination import _margin_models as margin_models
from zeronorm.engines.elimination._known_models import KnownRanker, known_model


def classes(seed, shape, n_classes=2):
    X, y = make_classification(*shape, n_informative=6, n_classes=n_classes, class_sep=0.5, random_state=seed)
    return X * np.geomspace(0.5, 2.0, shape[1]), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("shape", [(300, 24), (30, 80)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_followed_squared_hinge_is_stationary_at_every_size(n_classes, shape):
    X, y = classes(24, shape, n_classes)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    model = known_model(LinearSVC(C=0.4, intercept_scaling=2.0), X, y, {"sample_weight": weight})
    targets = np.where(y[:, None] == np.unique(y), 1.0, -1.0)[:, -1 if n_classes == 2 else 0 :]
    while model.active.size > 1:
        assert model.train()
        columns = X[:, model.active]
        decision = columns @ model.weights.T + model.intercept
        gradient = 0.8 * weight[:, None] * targets * np.maximum(0.0, 1.0 - targets * decision)
        np.testing.assert_allclose(columns.T @ gradient, model.weights.T, atol=1e-9)
        np.testing.assert_allclose(4.0 * gradient.sum(axis=0), model.intercept, atol=1e-9)
        model.remove(model.active[[int(np.argmin((model.weights**2).sum(axis=0)))]])


@pytest.mark.parametrize("shape", [(300, 24), (30, 80)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_followed_hinge_has_no_duality_gap_at_any_size(n_classes, shape):
    X, y = classes(32, shape, n_classes)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    model = known_model(
        LinearSVC(loss="hinge", C=0.4, intercept_scaling=2.0), X, y, {"sample_weight": weight}
    )
    targets = np.where(y[:, None] == np.unique(y), 1.0, -1.0)[:, -1 if n_classes == 2 else 0 :]
    while model.active.size > 1:
        assert model.train()
        columns = np.column_stack([X[:, model.active], np.full(len(y), 2.0)])
        weights = np.column_stack([model.weights, model.intercept / 2.0])
        np.testing.assert_allclose((model.alpha * targets.T) @ columns, weights, atol=1e-9)
        assert model.alpha.min() >= 0.0
        assert (model.alpha <= 0.4 * weight).all()
        losses = 0.4 * weight[:, None] * np.maximum(0.0, 1.0 - targets * (columns @ weights.T))
        primal, dual = 0.5 * (weights**2).sum() + losses.sum(), model.alpha.sum() - 0.5 * (weights**2).sum()
        assert primal - dual <= 1e-7 * primal
        model.remove(model.active[[int(np.argmin((model.weights**2).sum(axis=0)))]])


@pytest.mark.parametrize("shape", [(200, 24), (30, 80), (260, 300)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_followed_logistic_regression_is_stationary_at_every_size(n_classes, shape):
    X, y = classes(26, shape, n_classes)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    model = known_model(LogisticRegression(C=0.7), X, y, {"sample_weight": weight})
    of_class = (y[:, None] == np.unique(y))[:, -1 if n_classes == 2 else 0 :]
    n_checks = 0
    while model.active.size > 1:
        assert model.train()
        columns = X[:, model.active]
        decision = columns @ model.weights.T + model.intercept
        probability = expit(decision) if n_classes == 2 else softmax(decision, axis=1)
        gradient = 0.7 * weight[:, None] * (of_class - probability)
        np.testing.assert_allclose(columns.T @ gradient, model.weights.T, atol=1e-6)
        np.testing.assert_allclose(gradient.sum(axis=0), 0.0, atol=1e-6)
        leaving = np.argsort((model.weights**2).sum(axis=0))[: 1 + model.active.size // 60 * (n_checks % 2)]
        model.remove(np.sort(model.active[leaving]))
        n_checks += 1
    assert n_checks > 20


@pytest.mark.parametrize("shape", [(400, 20), (40, 60)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_known_only_at_the_smallest_give_the_same_order(n_classes, shape):
    X, y = classes(27, shape, n_classes)
    X[:, 5] = X[:, 2]  # of two equal columns the first is removed first
    estimator = LogisticRegression(C=0.7)
    quick = RFE(estimator)._ranker(X, y, {}).one_by_one(1)
    exact = known_model(estimator, X, y, {})
    for feature in quick.eliminated:
        assert exact.train()
        value = np.round((exact.weights**2).sum(axis=0), 12)
        assert exact.active[np.argmin(value)] == feature
        exact.remove(np.array([feature]))


def test_decision_values_beyond_the_largest_exponential_are_no_trouble():
    X, y = classes(28, (80, 12))
    X = X * 1e4
    model = known_model(LogisticRegression(C=1e3), X, y, {})
    assert model.train()
    decision = X @ model.weights[0] + model.intercept[0]
    gradient = 1e3 * ((y == "b") - expit(decision))
    np.testing.assert_allclose(X.T @ gradient, model.weights[0], atol=1e-9 * 1e3 * np.abs(X).sum())
    far = known_model(LogisticRegression(), X, y, {}).phase
    far.state[0, :-1] = 1.0
    assert np.abs(far.residual(far.state)[0]).max() < np.inf


@pytest.mark.parametrize("C", [1e3, 1e5])
def test_certain_classes_are_followed_or_left_to_the_estimator_without_a_warning(C):
    """Curvatures of samples whose class is certain are zero, or below it by rounding."""
    X, y = classes(31, (40, 60), 3)
    model = known_model(LogisticRegression(C=C), X, y, {})
    while model.active.size > 1:
        model.train()
        model.remove(model.active[:2][: model.active.size - 1])


@pytest.mark.parametrize("seed", range(3))
def test_three_certain_classes_of_correlated_columns_are_followed(seed):
    rng = np.random.default_rng(seed)
    X = 2.0 * rng.normal(size=(40, 5)) @ rng.normal(size=(5, 80)) + rng.normal(size=(40, 80))
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))
    model = known_model(LogisticRegression(C=100.0), X, y, {})
    while model.active.size > 40:
        assert model.train()
        model.remove(model.active[-10:])


def numbers(seed, shape):
    X, y = make_regression(*shape, n_informative=6, noise=3.0, random_state=seed)
    return X + 5.0, y / 10.0


@pytest.mark.parametrize("shape", [(60, 12), (20, 60)])
@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(), Ridge(fit_intercept=False)])
def test_columns_of_the_caller_are_not_changed(estimator, shape):
    X, y = numbers(6, shape) if isinstance(estimator, Ridge) else classes(6, shape)
    by_columns = np.asfortranarray(X)
    fitted = RFE(estimator, n_features_to_select=1, step=1).fit(by_columns, y)
    np.testing.assert_array_equal(by_columns, X)
    by_rows = RFE(estimator, n_features_to_select=1, step=1).fit(np.ascontiguousarray(X), y)
    np.testing.assert_array_equal(fitted.ranking_, by_rows.ranking_)


def test_a_squared_hinge_that_jumps_between_two_sets_is_damped(monkeypatch):
    X, y = classes(25, (120, 10))
    exact = known_model(LinearSVC(), X, y, {})
    assert exact.train()
    monkeypatch.setattr(margin_models, "UNDAMPED_STEPS", 1)
    damped = known_model(LinearSVC(), X, y, {})
    assert damped.train()
    np.testing.assert_allclose(damped.weights, exact.weights, rtol=1e-9)


def test_known_models_answer_most_rounds():
    X, y = numbers(15, (40, 12))
    ranker = RFE(Ridge())._ranker(X, y, {})
    assert isinstance(ranker, KnownRanker)
    ranker.importances(np.arange(12))
    assert ranker.is_exact


class CountedRefits:
    """The estimator itself, with a count of its refits."""

    def __init__(self, refits):
        self.refits, self.n_asked = refits, 0

    def __getattr__(self, name):
        return getattr(self.refits, name)

    def importances(self, features):
        self.n_asked += 1
        return self.refits.importances(features)


@pytest.mark.parametrize("shape", [(30, 80), (80, 30)])
@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression(), LinearRegression(fit_intercept=False)])
def test_least_squares_is_hardly_ever_refitted(estimator, shape):
    """Only where as many features as samples are left, and the solution depends on the last digits."""
    X, y = numbers(16, shape)
    ranker = RFE(estimator)._ranker(X, y, {})
    ranker.refits = CountedRefits(ranker.refits)
    assert ranker.one_by_one(1) is not None
    assert ranker.refits.n_asked <= 3


@pytest.mark.parametrize(
    ("weighted", "n_classes", "shape"),
    [
        (False, 2, (90, 20)),
        (True, 3, (90, 20)),
        (True, 2, (40, 60)),
        (False, 3, (40, 60)),
        pytest.param(True, 2, (90, 20), marks=pytest.mark.slow),
        pytest.param(False, 3, (90, 20), marks=pytest.mark.slow),
        pytest.param(False, 2, (40, 60), marks=pytest.mark.slow),
        pytest.param(True, 3, (40, 60), marks=pytest.mark.slow),
    ],
)
def test_logistic_regression_follows_every_number_of_classes(weighted, n_classes, shape):
    X, y = classes(17, shape, n_classes)
    estimator = LogisticRegression(C=2.0, tol=1e-11, max_iter=10**5)
    params = {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, len(y))} if weighted else {}
    ours, theirs = (cls(estimator, n_features_to_select=1).fit(X, y, **params) for cls in (RFE, ReferenceRFE))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()
    ranker = RFE(estimator)._ranker(X, y, params)
    ranker.refits = CountedRefits(ranker.refits)
    ranker.one_by_one(1)
    assert ranker.refits.n_asked == 0


def test_the_weights_of_a_followed_softmax_are_those_of_the_estimator():
    X, y = classes(18, (70, 12), 3)
    model = known_model(LogisticRegression(C=0.5), X, y, {})
    for gone in ([3], [0, 7], [11]):
        model.remove(np.array(gone))
        assert model.train()
        exact = LogisticRegression(C=0.5, tol=1e-12, solver="newton-cg", max_iter=10**4).fit(
            X[:, model.active], y
        )
        np.testing.assert_allclose(model.weights, exact.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept - model.intercept.mean(),
                                   exact.intercept_ - exact.intercept_.mean(), atol=1e-7)  # fmt: skip
        assert abs(model.intercept.sum()) < 1e-9


@pytest.mark.parametrize(
    ("step", "weighted"),
    [
        (1, False),
        (0.2, True),
        pytest.param(1, True, marks=pytest.mark.slow),
        pytest.param(0.2, False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("estimator", "n_classes"),
    [
        (SVC(kernel="linear", tol=1e-8), 2),
        (SVC(kernel="linear", C=0.05, class_weight="balanced", tol=1e-8), 2),
        (SVC(kernel="linear", C=0.3, tol=1e-8), 3),
        (SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-8), 0),
        (SVR(kernel="linear", epsilon=0.0, tol=1e-8), 0),
    ],
)
def test_models_on_tall_data_rank_as_in_scikit_learn(estimator, n_classes, step, weighted, monkeypatch):
    monkeypatch.setattr(known_models, "MOST_SAMPLES", 100)
    X, y = classes(20, (150, 9), n_classes) if n_classes else numbers(20, (150, 9))
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    params = {"sample_weight": weight} if weighted else {}
    assert known_model(estimator, X, y, params).is_tall
    ours, theirs = (
        cls(estimator, n_features_to_select=1, step=step).fit(X, y, **params) for cls in (RFE, ReferenceRFE)
    )
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def _model_objective(X, y, w, b):
    decision = X @ w + b
    if y.dtype.kind == "f":
        return 0.5 * w @ w + np.maximum(0.0, np.abs(y - decision) - 0.1).sum()
    return 0.5 * w @ w + np.maximum(0.0, 1.0 - np.where(y == "b", 1.0, -1.0) * decision).sum()


@pytest.mark.parametrize("estimator", [SVC(kernel="linear", tol=1e-8), SVR(kernel="linear", tol=1e-8)])
def test_tall_models_agree_with_the_dual_and_are_better_than_libsvm(estimator, monkeypatch):
    """libsvm keeps kernel values in single precision: its weights have about five digits at any tolerance."""
    X, y = classes(21, (200, 9)) if isinstance(estimator, SVC) else numbers(21, (200, 9))
    dual = known_model(estimator, X, y, {})
    monkeypatch.setattr(known_models, "MOST_SAMPLES", 100)
    tall = known_model(estimator, X, y, {})
    for gone in ([], [3], [0, 7]):
        for model in (dual, tall):
            model.remove(np.array(gone, dtype=int))
            assert model.train()
        np.testing.assert_allclose(tall.weights, dual.weights, atol=1e-6)
        np.testing.assert_allclose(tall.intercept, dual.intercept, atol=1e-6)
        exact = estimator.fit(X[:, tall.active], y)
        np.testing.assert_allclose(tall.weights, exact.coef_, atol=1e-3)
        np.testing.assert_allclose(tall.intercept, exact.intercept_, atol=1e-3)
        ours, libsvm = (
            _model_objective(X[:, tall.active], y, w[0], b[0])
            for w, b in ((tall.weights, tall.intercept), (exact.coef_, exact.intercept_))
        )
        assert ours <= libsvm * (1.0 + 1e-12)


def test_a_tall_model_ends_where_rounding_lets_it_gain_no_more(monkeypatch):
    """Steps beyond that point move away from the solution and may not return."""
    monkeypatch.setattr(known_models, "MOST_SAMPLES", 100)
    for seed in range(16, 30):
        model = known_model(SVR(kernel="linear"), *numbers(seed, (200, 9)), {})
        assert model.train()
        found = model.models[0].solution.models[0]
        assert found.n_iter <= 30
        assert found.gap <= 1e-11 * found.objective


def test_models_with_few_samples_per_feature_are_left_to_the_estimator(monkeypatch):
    monkeypatch.setattr(known_models, "MOST_SAMPLES", 50)
    X, y = classes(22, (80, 40))
    model = known_model(SVC(kernel="linear"), X, y, {})
    assert not model.train()
    model.remove(np.arange(20))
    assert model.train()
