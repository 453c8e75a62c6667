"""RFE against scikit-learn, brute force and its own invariants."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification, make_regression
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm import RFE
from zeronorm.engines.elimination import _one_by_one as one_by_one
from zeronorm.engines.elimination._linear import LinearValue
from zeronorm.engines.elimination._scan import ascending_order, nth_smallest
from zeronorm.solvers.linear import _ways as ways
from zeronorm.solvers.svm import _dual as dual
from zeronorm.solvers.svm import _free_set as free_set
from zeronorm.solvers.svm._free_set import pivot_free_set


def wide_data(seed, n=30, p=120, classes=2):
    X, y = make_classification(
        n, p, n_informative=6, n_redundant=0, n_classes=classes, n_clusters_per_class=1, random_state=seed
    )
    return StandardScaler().fit_transform(X), y


def agreement(ours, theirs):
    return float(np.mean(np.asarray(ours) == np.asarray(theirs)))


@pytest.mark.parametrize("most", [2, 1000])
def test_the_value_at_a_position_of_the_order(most):
    """With most = 2 nearly all values are equal."""
    rng = np.random.default_rng(most)
    for size in (1, 2, 3, 40):
        values = rng.integers(0, most, size).astype(float)
        assert [nth_smallest(values.copy(), size, n) for n in range(size)] == np.sort(values).tolist()
        assert ascending_order(values, size).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_elimination_order_is_that_of_scikit_learn(seed, C):
    X, y = wide_data(seed)
    ours = RFE(n_features_to_select=1, C=C, tol=1e-9).fit(X, y)
    theirs = ReferenceRFE(SVC(kernel="linear", C=C, tol=1e-9), n_features_to_select=1).fit(X, y)
    assert agreement(ours.path_.ranking(), theirs.ranking_) >= 0.98


def test_squared_hinge_order_is_that_of_a_reference():
    X, y = wide_data(1, n=40, p=25)
    ours = RFE(n_features_to_select=1, C=0.1, loss="squared", tol=1e-9).fit(X, y)
    # Half of C: LIBLINEAR's objective has C Σ ξ², ours (C/2) Σ ξ²; the large scaling frees the bias.
    model = LinearSVC(C=0.05, tol=1e-10, intercept_scaling=1e3, max_iter=10**6, dual=False)
    theirs = ReferenceRFE(model, n_features_to_select=1).fit(X, y)
    assert agreement(ours.path_.ranking(), theirs.ranking_) >= 0.98


def test_multiclass_order_is_that_of_one_against_rest():
    X, y = wide_data(2, n=45, p=40, classes=3)
    ours = RFE(n_features_to_select=1, C=1.0, tol=1e-9).fit(X, y)
    active = list(range(X.shape[1]))
    eliminated = []
    while len(active) > 1:
        models = OneVsRestClassifier(SVC(kernel="linear", tol=1e-9)).fit(X[:, active], y)
        value = sum(m.coef_[0] ** 2 for m in models.estimators_)
        eliminated.append(active.pop(int(np.argmin(value))))
    assert agreement(ours.path_.order[::-1][:-1], eliminated) >= 0.95


def eliminated_by_pairs(X, y, value):
    """Features in the order of removal; ``value`` sums over the models of all pairs of classes."""
    active, eliminated = list(range(X.shape[1])), []
    while len(active) > 1:
        total = np.zeros(len(active))
        for pair in combinations(np.unique(y), 2):
            rows = np.isin(y, pair)
            total += value(X[np.ix_(rows, active)], y[rows])
        eliminated.append(active.pop(int(np.argmin(total))))
    return eliminated


def change_of_the_norm(X, y, C=2.0, gamma=0.1):
    model = SVC(C=C, gamma=gamma, tol=1e-9).fit(X, y)
    rows, dual = model.support_, model.dual_coef_[0]

    def norm(columns):
        return dual @ rbf_kernel(X[np.ix_(rows, columns)], gamma=gamma) @ dual

    every = list(range(X.shape[1]))
    return np.array([abs(norm(every) - norm(every[:k] + every[k + 1 :])) for k in every])


def squared_weights(X, y):
    return SVC(kernel="linear", tol=1e-9).fit(X, y).coef_[0] ** 2


def squared_weights_of_squared_slacks(X, y):
    # Half of C: LIBLINEAR's objective has C Σ ξ², ours (C/2) Σ ξ²; the large scaling frees the bias.
    model = LinearSVC(C=0.5, tol=1e-10, intercept_scaling=1e3, max_iter=10**6, dual=False)
    return model.fit(X, y).coef_[0] ** 2


def squared_weights_of_a_regression(X, y):
    return LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X, y).coef_[0] ** 2


@pytest.mark.parametrize(
    ("settings", "p", "value"),
    [
        ({}, 40, squared_weights),
        ({"loss": "squared"}, 12, squared_weights_of_squared_slacks),
        ({"C": 2.0, "kernel": "rbf", "gamma": 0.1}, 8, change_of_the_norm),
        ({"learner": "logistic"}, 12, squared_weights_of_a_regression),
    ],
    ids=["hinge", "squared", "rbf", "logistic"],
)
def test_pairs_of_classes_are_trained_apart_and_leave_together(settings, p, value):
    """By hand: one model per pair on its own samples; the feature with the smallest sum of values is removed."""
    X, y = wide_data(2, n=45, p=p, classes=3)
    settings = {"n_features_to_select": 1, "tol": 1e-9, "C": 1.0} | settings
    pairs = RFE(multi_class="one_vs_one", **settings).fit(X, y)
    np.testing.assert_array_equal(pairs.path_.order[::-1][:-1], eliminated_by_pairs(X, y, value))
    assert RFE(**settings).fit(X, y).path_.order.tolist() != pairs.path_.order.tolist()


def test_with_two_classes_one_vs_one_is_a_single_model():
    X, y = wide_data(3)
    orders = [RFE(multi_class=name, C=1.0).fit(X, y).path_.order for name in ("one_vs_rest", "one_vs_one")]
    np.testing.assert_array_equal(*orders)


@pytest.mark.parametrize(
    ("loss", "value"), [("hinge", squared_weights), ("squared", squared_weights_of_squared_slacks)]
)
def test_pairs_of_many_samples_agree_with_few(loss, value):
    """From 500 samples on the models do not use the Gram matrix; samples of weight zero have no effect."""
    X, y = wide_data(4, n=520, p=10, classes=3)
    weight = np.r_[np.ones(120), np.zeros(400)]
    settings = {"multi_class": "one_vs_one", "C": 1.0, "loss": loss, "tol": 1e-9, "standardize": False}
    tall = RFE(n_features_to_select=1, **settings).fit(X, y)
    assert tall.converged_
    np.testing.assert_array_equal(tall.path_.order[::-1][:-1], eliminated_by_pairs(X, y, value))
    few = RFE(n_features_to_select=1, **settings).fit(X[:120], y[:120])
    weighted = RFE(n_features_to_select=1, **settings).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(weighted.path_.order, few.path_.order)


def test_regression_order_is_that_of_scikit_learn():
    X, y = make_regression(40, 50, n_informative=5, noise=5.0, random_state=0)
    X, y = StandardScaler().fit_transform(X), y / y.std()
    ours = RFE(n_features_to_select=1, task="regression", C=1.0, epsilon=0.05, tol=1e-9).fit(X, y)
    theirs = ReferenceRFE(SVR(kernel="linear", epsilon=0.05, tol=1e-9), n_features_to_select=1).fit(X, y)
    assert agreement(ours.path_.ranking(), theirs.ranking_) >= 0.95


@pytest.mark.parametrize("block", [1, 3, 16])
def test_small_blocks_change_nothing(monkeypatch, block):
    X, y = wide_data(3, p=150)
    expected = RFE(n_features_to_select=1).fit(X, y).path_.order
    monkeypatch.setattr(one_by_one, "SMALL_BLOCK", block)
    assert np.array_equal(RFE(n_features_to_select=1).fit(X, y).path_.order, expected)


def test_rounds_of_one_equal_the_exact_scan():
    """step=1 through the plain loop (groups of one) and through the scan are the same elimination."""
    X, y = wide_data(4, p=80)
    scan = RFE(n_features_to_select=1).fit(X, y).path_.order
    plain = RFE(n_features_to_select=1, feature_groups=np.arange(80)).fit(X, y).path_.order
    assert np.array_equal(scan, plain)


@pytest.mark.parametrize(("C", "loss"), [(1.0, "hinge"), (0.003, "hinge"), (0.1, "squared")])
def test_models_start_from_block_pivoting_where_samples_are_many(C, loss, monkeypatch):
    X, y = wide_data(0, n=280, p=1200, classes=3)
    calls = []

    def counted(*args, **kwargs):
        calls.append(pivot_free_set(*args, **kwargs))
        return calls[-1]

    monkeypatch.setattr(dual, "pivot_free_set", counted)
    found = RFE(n_features_to_select=20, step=0.5, C=C, loss=loss).fit(X, y)
    assert any(call is not None for call in calls)
    monkeypatch.setattr(dual, "pivot_free_set", lambda *args, **kwargs: None)
    assert found.path_.order.tolist() == RFE(step=0.5, C=C, loss=loss).fit(X, y).path_.order.tolist()


def test_halving_visits_halves():
    X, y = wide_data(5, p=64)
    path = RFE(n_features_to_select=8, step=0.5).fit(X, y).path_
    assert path.sizes.tolist() == [1, 2, 4, 8, 16, 32, 64]


def test_wide_and_tall_solvers_agree():
    X, y = make_classification(600, 12, n_informative=4, n_redundant=0, random_state=6)
    tall = RFE(n_features_to_select=1, C=0.5, tol=1e-8).fit(X, y).path_.order  # many samples: primal
    wide = (
        RFE(n_features_to_select=1, C=0.5, tol=1e-8).fit(np.hstack([X, np.zeros((600, 30))]), y).path_.order
    )
    assert tall.tolist() == [f for f in wide if f < 12]


def test_groups_leave_as_a_whole_by_sum_of_absolute_weights():
    X, y = wide_data(7, p=20)
    groups = np.repeat(np.arange(5), 4)
    path = RFE(n_features_to_select=4, C=1.0, feature_groups=groups).fit(X, y).path_
    active, eliminated = list(range(5)), []
    while len(active) > 1:
        columns = np.flatnonzero(np.isin(groups, active))
        weight = np.abs(SVC(kernel="linear", tol=1e-9).fit(X[:, columns], y).coef_[0])
        value = [weight[groups[columns] == g].sum() for g in active]
        eliminated.append(active.pop(int(np.argmin(value))))
    order = list(dict.fromkeys(groups[path.order].tolist()))
    assert order[::-1][:-1] == eliminated


def test_hard_margin_goes_on_while_it_separates():
    X, y = wide_data(8, n=20, p=60)
    path = RFE(n_features_to_select=5, C=np.inf).fit(X, y).path_
    assert sorted(path.order) == list(range(60))


@pytest.mark.parametrize("n_samples", [60, 700])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_hard_margin_on_inseparable_data_is_an_error(n_samples, loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_samples, 3)), rng.integers(0, 2, n_samples)
    with pytest.raises(ValueError, match="finite C"):
        RFE(n_features_to_select=1, C=np.inf, loss=loss).fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("step", 0),
        ("step", 1.5),
        ("step", "half"),
        ("C", 0.0),
        ("C", -1),
        ("tol", 0),
        ("loss", "l1"),
        ("epsilon", -1),
    ],
)
def test_bad_parameters_are_named(parameter, value):
    X, y = wide_data(9, p=10)
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of RFE"):
        RFE(n_features_to_select=1, **{parameter: value}).fit(X, y)


def test_iteration_limit_is_reported():
    from sklearn.exceptions import ConvergenceWarning

    X, y = wide_data(10)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        s = RFE(n_features_to_select=1, max_iter=1).fit(X, y)
    assert not s.converged_
    assert sorted(s.path_.order) == list(range(120))


def test_an_automatic_cost_keeps_its_meaning_as_features_leave():
    """By hand: each time half of the features are removed, C grows as the mean diagonal of the kernel decreases."""
    X, y = wide_data(11, p=48)
    ours = RFE(n_features_to_select=1, tol=1e-9).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    active, eliminated, renewed_at = list(range(48)), [], 48
    while len(active) > 1:
        if 2 * len(active) <= renewed_at:
            renewed_at = len(active)
        model = SVC(kernel="linear", C=ours.C_ * 48 / renewed_at, tol=1e-10).fit(Z[:, active], y)
        eliminated.append(active.pop(int(np.argmin(model.coef_[0] ** 2))))
    assert ours.path_.order.tolist() == [*active, *eliminated[::-1]]


@pytest.mark.parametrize("settings", [{}, {"step": 0.3}, {"learner": "logistic", "task": "classification"}])
def test_an_automatic_cost_has_no_unit(settings):
    X, y = wide_data(12, p=40)
    expected = RFE(n_features_to_select=1, standardize=False, **settings).fit(X, y).path_.order
    found = RFE(n_features_to_select=1, standardize=False, **settings).fit(1000.0 * X, y).path_.order
    assert found.tolist() == expected.tolist()


def test_the_epsilon_of_a_regression_has_no_unit():
    X, _ = wide_data(13, p=30)
    y = X[:, 0] + 0.1 * X[:, 1] + 0.05 * np.random.default_rng(0).normal(size=len(X))
    orders = [
        RFE(n_features_to_select=1, task="regression").fit(X, unit * y).path_.order
        for unit in (1e-4, 1.0, 1e4)
    ]
    assert orders[0].tolist() == orders[1].tolist() == orders[2].tolist()


def test_several_classes_are_valued_by_squared_weights():
    """Two weights of 2 are worth less than one of 3 by their squares, and more by their absolute values."""

    class Fixed(LinearValue):
        def weights(self):
            return np.array([[3.0, 0.0], [2.0, 2.0]])

    assert Fixed().importance().tolist() == [9.0, 8.0]


def test_sparse_elimination_by_products_keeps_the_same_features(monkeypatch):
    """Wide sparse rounds are solved by products with the data instead of factors of the Gram matrix."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(sparse.random(300, 1500, density=0.05, format="csr", rng=rng))
    y = (X[:, :5].sum(axis=1) + 0.2 * rng.normal(size=300) > 0.25).astype(int)
    expected = RFE(n_features_to_select=5, step=0.5).fit(X, y)
    monkeypatch.setattr(ways, "PRODUCT_SAMPLES", 1)
    monkeypatch.setattr(free_set, "GRADIENTS", 100)
    found = RFE(n_features_to_select=5, step=0.5).fit(X, y)
    assert found.path_.sizes.tolist() == expected.path_.sizes.tolist()
    for size in expected.path_.sizes:
        assert set(found.path_.support(size)) == set(expected.path_.support(size))
