"""LassoSelector against the optimality conditions and against coordinate descent."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso, MultiTaskLasso, lars_path
from sklearn.preprocessing import StandardScaler

import zeronorm
from small_problems import noise
from zeronorm import LassoSelector
from zeronorm.design._sparse import SparseDesign
from zeronorm.selectors.sparsity import _lasso as lasso
from zeronorm.solvers._lasso import LassoStep, follow_lasso_path


def regression(seed, n=40, p=60):
    X, y = make_regression(n, p, n_informative=8, noise=20.0, random_state=seed)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("seed", range(3))
def test_visited_subsets_are_lasso_solutions(seed):
    """Every visited subset is the support of a LASSO solution computed by another algorithm."""
    X, y = regression(seed)
    path = LassoSelector(5, task="regression").fit(X, y).path_
    alpha_max = np.abs(X.T @ (y - y.mean())).max() / len(y)
    visited = {tuple(s.tolist()) for s in path.subsets}
    for alpha in alpha_max * np.geomspace(0.98, 0.1, 15):
        w = Lasso(alpha=alpha, tol=1e-12, max_iter=10**6).fit(X, y).coef_
        assert tuple(np.flatnonzero(np.abs(w) > 1e-9).tolist()) in visited


def test_path_is_not_nested_when_a_feature_leaves():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(60, 2))
    X = np.column_stack([z[:, 0] + z[:, 1] + 0.1 * rng.normal(size=60), z[:, 0], z[:, 1]])
    y = z[:, 0] + z[:, 1] + 0.01 * rng.normal(size=60)
    path = LassoSelector(2, task="regression").fit(X, y).path_
    assert path.support(1).tolist() == [0]
    assert path.support(2).tolist() == [1, 2]
    assert not path.is_nested


def test_two_classes_equal_regression_on_signs():
    X, y = regression(1)
    labels = (y > 0).astype(int)
    a = LassoSelector(5).fit(X, labels).path_
    b = LassoSelector(5, task="regression").fit(X, 2.0 * labels - 1.0).path_
    assert np.array_equal(a.order, b.order)


def test_multiclass_is_the_multitask_lasso():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = StandardScaler().fit_transform(rng.normal(size=(60, 20)) + 1.5 * (y[:, None] == np.arange(20)))
    path = LassoSelector(3, n_alphas=30).fit(X, y).path_
    Y = (y[:, None] == np.arange(3)) - 1 / 3
    largest = np.sqrt(((X.T @ Y) ** 2).sum(axis=1)).max() / 60
    visited = {tuple(s.tolist()) for s in path.subsets}
    for alpha in largest * np.geomspace(1.0, 1e-3, 30)[3:12]:
        w = MultiTaskLasso(alpha=alpha, tol=1e-8, max_iter=10**5).fit(X, Y).coef_
        assert tuple(np.flatnonzero(np.abs(w).max(axis=0) > 1e-7).tolist()) in visited


def test_selected_size_is_the_largest_visited():
    X, y = regression(2, n=15, p=40)
    s = LassoSelector(task="regression").fit(X, y)
    assert s.support_.sum() == max(len(v) for v in s.path_.subsets) <= 14


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_norm_bound_is_the_constrained_problem(share):
    X, y = regression(0)
    largest = np.abs(LassoSelector(task="regression").fit(X, y).coef_).sum()
    bound = share * largest
    selector = LassoSelector(task="regression", norm_bound=bound).fit(X, y)
    w = cp.Variable(X.shape[1])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - (y - y.mean()))), [cp.norm1(w) <= bound])
    problem.solve(solver=cp.CLARABEL)
    ours = np.sum((X @ selector.coef_ - (y - y.mean())) ** 2)
    assert np.abs(selector.coef_).sum() == pytest.approx(bound, rel=1e-9)
    assert ours == pytest.approx(problem.value, rel=1e-5)
    assert np.flatnonzero(selector.support_).tolist() == np.flatnonzero(selector.coef_).tolist()


def test_norm_bound_meets_the_optimality_conditions():
    X, y = regression(1)
    w = LassoSelector(task="regression", norm_bound=30.0).fit(X, y).coef_
    gradient = X.T @ (y - y.mean() - X @ w)
    penalty = np.abs(gradient).max()
    assert np.allclose(gradient[w != 0], penalty * np.sign(w[w != 0]), rtol=1e-8)


def test_norm_bound_of_several_classes():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = StandardScaler().fit_transform(rng.normal(size=(60, 20)) + 1.5 * (y[:, None] == np.arange(20)))
    selector = LassoSelector(norm_bound=0.5, n_alphas=10).fit(X, y)
    assert selector.coef_.sum() == pytest.approx(0.5, rel=1e-4)


def test_a_bound_that_does_not_bind_is_least_squares():
    X, y = regression(3, n=50, p=5)
    selector = LassoSelector(task="regression", norm_bound=1e6).fit(X, y)
    assert np.allclose(selector.coef_, np.linalg.lstsq(X, y - y.mean(), rcond=None)[0])


def dependent(kind, seed):
    """Columns that depend on others, with which the homotopy of scikit-learn fails."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12))
    if kind == "copies":
        X = np.hstack([X, X[:, :4]])
    if kind == "complements":
        X[:, 3] = X[:, 3] > 0.0
        X = np.hstack([X, 1.0 - X[:, 3:4], -X[:, :2]])
    if kind == "nearly":
        X = np.hstack([X, X[:, :4] + 1e-7 * rng.normal(size=(40, 4))])
    if kind == "one-hot":
        X = np.hstack([X, rng.integers(0, 4, size=40)[:, None] == np.arange(4)])
    X = StandardScaler().fit_transform(X)
    return X, X[:, 0] + X[:, -1] - X[:, 3] + rng.normal(size=40)


@pytest.mark.parametrize("kind", ["copies", "complements", "nearly", "one-hot"])
@pytest.mark.parametrize("seed", range(6))
def test_dependent_columns_leave_the_path_optimal(kind, seed):
    X, y = dependent(kind, seed)
    y = y - y.mean()
    largest = np.abs(LassoSelector(task="regression").fit(X, y).coef_).sum()
    for share in (0.2, 0.6):
        selector = LassoSelector(task="regression", norm_bound=share * largest).fit(X, y)
        w = cp.Variable(X.shape[1])
        problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [cp.norm1(w) <= share * largest])
        problem.solve(solver=cp.CLARABEL)
        ours = np.sum((X @ selector.coef_ - y) ** 2)
        assert ours == pytest.approx(problem.value, rel=1e-4)
        assert selector.converged_


@pytest.mark.parametrize("seed", range(6))
def test_of_mirrored_columns_the_first_is_selected(seed):
    X, y = dependent("complements", seed)
    selector = LassoSelector(5, task="regression").fit(X, y)
    assert selector.representative_[[12, 13, 14]].tolist() == [3, 0, 1]
    assert not selector.support_[12:].any()


def test_a_path_that_went_wrong_is_repaired(monkeypatch):
    """The homotopy is replaced by one that omits a feature."""
    X, y = regression(0, n=40, p=10)

    def forgetful(X, q, **limits):
        steps = follow_lasso_path(X, q, **limits)
        forgotten = steps[-1].columns[np.argmax(np.abs(steps[-1].weights))]
        kept = [(s, s.columns != forgotten) for s in steps[3:]]
        return steps[:3] + [LassoStep(s.penalty, s.columns[k], s.weights[k]) for s, k in kept]

    right = LassoSelector(task="regression").fit(X, y)
    monkeypatch.setattr("zeronorm.selectors.sparsity._lasso.follow_lasso_path", forgetful)
    repaired = LassoSelector(task="regression").fit(X, y)
    np.testing.assert_allclose(repaired.coef_, right.coef_, atol=1e-4 * np.abs(right.coef_).max())
    assert repaired.path_.order.tolist() == right.path_.order.tolist()


def test_a_path_that_went_wrong_next_to_least_squares_ends_there(monkeypatch):
    X, y = regression(0, n=40, p=10)
    right = LassoSelector(task="regression").fit(X, y)
    steps = []

    def wrong_at_the_end(X, q, **limits):
        steps.extend(follow_lasso_path(X, q, **limits))
        last = steps[-1]
        tiny = 1e-5 * steps[0].penalty
        return [*steps, LassoStep(tiny, last.columns, 1.1 * last.weights)]

    monkeypatch.setattr("zeronorm.selectors.sparsity._lasso.follow_lasso_path", wrong_at_the_end)
    ended = LassoSelector(task="regression").fit(X, y)
    assert ended.converged_
    assert ended.n_iter_ == len(steps)
    np.testing.assert_array_equal(ended.coef_, right.coef_)


def least_angle_order(X, y):
    """Efron et al. 2004, section 2: follow equal angles until another correlation is as large."""
    order, residual = [int(np.argmax(np.abs(X.T @ y)))], y
    while len(order) < X.shape[1]:
        gradient = X.T @ residual
        chosen, outside = X[:, order], np.setdiff1d(np.arange(X.shape[1]), order)
        assert np.allclose(np.abs(gradient[order]), np.abs(gradient).max())
        direction = chosen @ np.linalg.lstsq(chosen.T @ chosen, np.sign(gradient[order]), rcond=None)[0]
        level, slope = np.abs(gradient).max(), X.T @ direction
        lengths = np.concatenate(
            [(level - side * gradient[outside]) / (1.0 - side * slope[outside]) for side in (1.0, -1.0)]
        )
        lengths[lengths <= 1e-9 * level] = np.inf
        residual = residual - lengths.min() * direction
        order.append(int(outside[np.argmin(lengths) % outside.size]))
    return order


@pytest.mark.parametrize("seed", range(3))
def test_lars_order_is_that_of_equal_angles(seed):
    X, y = regression(seed, n=80, p=60)
    path = LassoSelector(method="lars", task="regression").fit(X, y).path_
    assert path.is_nested
    assert path.order.tolist() == least_angle_order(X, y - y.mean())
    # Later versions of scikit-learn lose the equal angles where a weight changes its sign.
    _, active, _ = lars_path(X, y - y.mean(), method="lar", max_iter=20)
    assert path.order[:20].tolist() == list(active)


# -- Large and sparse data, of which no dense copy is made --


@pytest.fixture
def nothing_is_small(monkeypatch):
    monkeypatch.setattr("zeronorm.selectors.sparsity._lasso.LARGEST_DENSE_COPY", 0)


def counts(seed, n=60, p=90, n_classes=2):
    """Sparse counts with copies and a mirrored column."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.poisson(0.3, size=(n, p)).astype(float)
    X[:, :n_classes] += rng.poisson(2.0, size=(n, n_classes)) * (y[:, None] == np.arange(n_classes))
    X[:, 40:43] = X[:, 20:23]
    X[:, 50] = -X[:, 0]
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [{}, {"standardize": False}, {"norm_bound": 0.4}, {"method": "lars"}, {"task": "regression"}],
    ids=str,
)
def test_sparse_data_give_the_path_of_the_dense_copy(params, n_classes, monkeypatch):
    X, y = counts(n_classes, n_classes=n_classes)
    weight = np.where(np.arange(y.size) % 5 == 0, 2.0, 1.0)
    params = {"n_alphas": 10, **params}
    dense = LassoSelector(6, **params).fit(X, y, sample_weight=weight)
    monkeypatch.setattr("zeronorm.selectors.sparsity._lasso.LARGEST_DENSE_COPY", 0)
    for data in (X, sparse.csr_array(X), sparse.csc_array(X)):
        other = LassoSelector(6, **params).fit(data, y, sample_weight=weight)
        assert other.support_.tolist() == dense.support_.tolist()
        assert other.path_.order[:15].tolist() == dense.path_.order[:15].tolist()
        assert other.representative_.tolist() == dense.representative_.tolist()


@pytest.mark.usefixtures("nothing_is_small")
def test_sparse_data_are_never_dense(monkeypatch):
    """No block has more columns than a tenth of the data."""
    X, y = counts(0)
    asked = []
    fill = SparseDesign._fill
    monkeypatch.setattr(
        SparseDesign,
        "_fill",
        lambda self, columns, out: (asked.append(len(columns)), fill(self, columns, out))[1],
    )
    LassoSelector(6).fit(sparse.csc_array(X), y)
    assert 0 < max(asked) <= X.shape[1] // 10


@pytest.mark.usefixtures("nothing_is_small")
def test_large_data_are_repaired_by_coordinate_descent(monkeypatch):
    X, y = regression(0, n=40, p=30)
    bounded = LassoSelector(task="regression", norm_bound=40.0).fit(X, y)
    monkeypatch.setattr("zeronorm.selectors.sparsity._lasso.OPTIMAL", -1.0)
    repaired = LassoSelector(task="regression", norm_bound=40.0).fit(X, y)
    np.testing.assert_allclose(repaired.coef_, bounded.coef_, atol=1e-5 * np.abs(bounded.coef_).max())
    assert repaired.converged_


def test_the_path_ends_soon_after_the_size_asked_for(monkeypatch):
    X, y = regression(0, n=60, p=80)
    monkeypatch.setattr("zeronorm.selectors.sparsity._lasso.MOST_STEPS", 8)
    assert LassoSelector(3, task="regression").fit(X, y).n_iter_ == 9
    assert LassoSelector(20, task="regression").fit(X, y).n_features_ == 20
    assert LassoSelector(20, task="regression").fit(X, y).n_iter_ == 41


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"norm_bound": 0.0}, "'norm_bound' parameter"),
        ({"norm_bound": 1.0, "method": "lars"}, "must be None with method='lars'"),
        ({"method": "ridge"}, "'method' parameter"),
    ],
)
def test_bad_parameters(params, message):
    X, y = regression(0)
    with pytest.raises(ValueError, match=message):
        LassoSelector(task="regression", **params).fit(X, y)


def test_of_many_features_those_with_the_largest_gradients_join(monkeypatch):
    monkeypatch.setattr(lasso, "MOST_JOINING", 2)
    gradient = np.array([0.1, 3.0, 5.0, 4.0, 2.0, 9.0])
    assert lasso._joining(gradient, 1.0, np.array([5])).tolist() == [2, 3]
    assert lasso._joining(gradient, 3.5, np.array([], dtype=int)).tolist() == [5, 2]


def test_the_path_is_cut_where_its_norm_meets_the_bound():
    """Weights and penalty change linearly between two breakpoints; a quarter of the way the norm is 1.5."""
    steps = [
        LassoStep.of(8.0, np.array([2]), np.array([1.0])),
        LassoStep.of(4.0, np.array([0, 2]), np.array([-1.0, 2.0])),
    ]
    kept, cut = lasso._cut_at_bound(steps, 1.5)
    assert kept is steps[0]
    assert cut.penalty == 7.0
    assert (cut.columns.tolist(), cut.weights.tolist()) == ([0, 2], [-0.25, 1.25])
    assert lasso._cut_at_bound(steps, 5.0) is steps


def test_of_several_targets_a_feature_enters_with_the_first():
    X, y = noise(40, 4), np.arange(40) % 3
    X[:, 1] += y == 1
    X[:, 2] += 2.0 * (y == 2)
    whole = zeronorm.LassoSelector(method="lars").fit(X, y).path_
    each = [zeronorm.LassoSelector(method="lars").fit(X, y == c).path_.scores for c in range(3)]
    np.testing.assert_allclose(whole.scores, np.max(each, axis=0))
    assert (whole.selected_size, whole.n_iter) == (4, 5)
