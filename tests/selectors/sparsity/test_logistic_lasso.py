"""LogisticLasso against a convex solver, the optimality conditions and scikit-learn."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from oracles.logistic import l1_logistic
from small_problems import problem_of
from zeronorm import LogisticLasso
from zeronorm.engines import _penalty_walk as penalty_walk
from zeronorm.solvers._lasso import penalty_at_bound


def classes(seed, n=60, p=80):
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(rng.normal(size=(n, p)))
    return X, (X[:, :4].sum(axis=1) + rng.normal(size=n) > 0.5).astype(int)


def slopes(X, signs, w, b):
    return X.T @ (signs / (1.0 + np.exp(signs * (X @ w + b)))) / len(X)


@pytest.mark.parametrize("bound", [0.3, 2.0, 8.0])
@pytest.mark.parametrize("seed", range(2))
def test_norm_bound_is_the_constrained_problem(seed, bound):
    X, y = classes(seed)
    signs = 2.0 * y - 1.0
    selector = LogisticLasso(norm_bound=bound, n_alphas=10).fit(X, y)
    w, b = selector.coef_[0], selector.intercept_[0]
    _, _, value = l1_logistic(X, signs, bound=bound)
    assert np.abs(w).sum() == pytest.approx(bound, rel=1e-6)
    assert np.mean(np.logaddexp(0, -signs * (X @ w + b))) == pytest.approx(value, rel=1e-5)
    assert np.array_equal(selector.support_, w != 0)


def test_the_bound_is_sought_between_the_penalties_around_it(monkeypatch):
    """Far smaller penalties take many steps, most of all where the classes can be separated."""
    X, y = classes(0)
    around = []

    def noted(norm, high, low, bound):
        around.append((low / high, norm(high) <= bound < norm(low)))
        return penalty_at_bound(norm, high, low, bound)

    monkeypatch.setattr(penalty_walk, "penalty_at_bound", noted)
    LogisticLasso(norm_bound=0.3, n_alphas=10).fit(X, y)
    assert around == [(pytest.approx(penalty_walk.WIDE_GRID_END ** (1 / 9)), True)]


@pytest.mark.parametrize("seed", range(3))
def test_the_end_of_the_path_meets_the_optimality_conditions(seed):
    X, y = classes(seed)
    selector = LogisticLasso(n_alphas=10).fit(X, y)
    w, b, penalty = selector.coef_[0], selector.intercept_[0], selector.penalty_
    gradient = slopes(X, 2.0 * y - 1.0, w, b)
    tolerance = 1e-6 * np.abs(slopes(X, 2.0 * y - 1.0, 0 * w, np.log(y.mean() / (1 - y.mean())))).max()
    assert np.all(np.abs(gradient) <= penalty + tolerance)
    assert np.allclose(gradient[w != 0], penalty * np.sign(w[w != 0]), atol=tolerance)
    assert selector.converged_


def test_features_enter_in_the_order_of_the_path():
    X, y = classes(0)
    path = LogisticLasso(3, n_alphas=200).fit(X, y).path_
    first = int(np.argmax(np.abs(X.T @ (y - y.mean()))))
    assert path.support(1).tolist() == [first]
    entered = [set(path.order[:k].tolist()) for k in (1, 2, 3)]
    assert all(entered[i] <= set(path.subsets[-1].tolist()) | entered[2] for i in range(3))


def test_sample_weights_equal_duplicates():
    X, y = classes(4, n=40, p=20)
    weight = np.where(np.arange(40) < 10, 3.0, 1.0)
    rows = np.repeat(np.arange(40), weight.astype(int))
    a = LogisticLasso(norm_bound=1.5, n_alphas=5, standardize=False).fit(X, y, sample_weight=weight)
    b = LogisticLasso(norm_bound=1.5, n_alphas=5, standardize=False).fit(X[rows], y[rows])
    assert np.allclose(a.coef_, b.coef_, atol=1e-6)


def test_classes_are_taken_against_the_rest():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = StandardScaler().fit_transform(rng.normal(size=(60, 15)) + 1.2 * (y[:, None] == np.arange(15)))
    selector = LogisticLasso(norm_bound=2.0, n_alphas=5).fit(X, y)
    assert np.abs(selector.coef_).sum() == pytest.approx(2.0, rel=1e-6)
    for c in range(3):
        _, _, value = l1_logistic(X, np.where(y == c, 1.0, -1.0), penalty=np.full(15, selector.penalty_))
        w, b = selector.coef_[c], selector.intercept_[c]
        loss = np.mean(np.logaddexp(0, -np.where(y == c, 1.0, -1.0) * (X @ w + b)))
        assert loss + selector.penalty_ * np.abs(w).sum() == pytest.approx(value, rel=1e-5)


def test_a_bound_that_does_not_bind_is_logistic_regression():
    X, y = classes(1, n=100, p=3)
    selector = LogisticLasso(norm_bound=1e3).fit(X, y)
    gradient = slopes(X, 2.0 * y - 1.0, selector.coef_[0], selector.intercept_[0])
    assert np.abs(gradient).max() < 1e-4
    assert selector.support_.all()


def test_separable_classes_end_early():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200))
    selector = LogisticLasso(n_alphas=40).fit(X, (X[:, 0] > 0).astype(int))
    assert selector.path_.support(1).tolist() == [0]
    assert np.all(np.isfinite(selector.coef_))


def test_two_samples():
    assert LogisticLasso(n_alphas=5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]).support_.tolist() == [True, False]


@pytest.mark.parametrize(
    ("params", "name"), [({"norm_bound": -1.0}, "norm_bound"), ({"n_alphas": 0}, "n_alphas")]
)
def test_bad_parameters(params, name):
    X, y = classes(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        LogisticLasso(**params).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_columns_give_the_weights_of_dense_ones(n_classes, monkeypatch):
    rng = np.random.default_rng(n_classes)
    y = np.arange(90) % n_classes
    X = rng.poisson(0.4, size=(90, 30)).astype(float)
    X[:, :n_classes] += rng.poisson(1.0, size=(90, n_classes)) * (y[:, None] == np.arange(n_classes))
    weight = np.where(np.arange(90) % 4 == 0, 2.0, 1.0)
    dense = LogisticLasso(5, n_alphas=20).fit(X, y, sample_weight=weight)
    monkeypatch.setattr("zeronorm.solvers.l1_smooth._working_set.LARGEST_DENSE_COPY", 0)
    found = LogisticLasso(5, n_alphas=20).fit(sparse.csr_array(X), y, sample_weight=weight)
    assert found.converged_
    assert found.support_.tolist() == dense.support_.tolist()
    assert found.path_.order.tolist() == dense.path_.order.tolist()
    np.testing.assert_allclose(found.coef_, dense.coef_, atol=1e-4 * np.abs(dense.coef_).max())


def test_the_path_ends_when_many_more_features_than_asked_for_have_entered(monkeypatch):
    """The features asked for, and the order of all that entered, are those of the whole path."""
    monkeypatch.setattr("zeronorm.engines._penalty_walk.MANY_FEATURES", 12)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 40))
    y = (X[:, :4] @ [1.0, -1.0, 0.5, 0.5] + 1.5 * rng.normal(size=400) > 0).astype(int)
    whole, cut, twice = LogisticLasso().fit(X, y), LogisticLasso(4).fit(X, y), LogisticLasso(10).fit(X, y)
    np.testing.assert_array_equal(cut.get_support(), np.isin(np.arange(40), whole.path_.order[:4]))
    assert 12 <= np.count_nonzero(cut.coef_) < 20 <= np.count_nonzero(twice.coef_)
    assert whole.penalty_ < twice.penalty_ < cut.penalty_
    n = np.count_nonzero(cut.coef_)
    np.testing.assert_array_equal(cut.path_.order[:n], whole.path_.order[:n])


def walk_of_norms(norm_at):
    """A path over penalties whose models have a known norm."""
    models = SimpleNamespace(
        n_features=2,
        support=np.array([0]),
        largest_penalty=1.0,
        loss=0.5,
        loss_without_features=1.0,
        absolute_weights=lambda: np.ones(2),
    )

    def solve(penalties):
        models.norm = norm_at(penalties[0])

    models.solve = solve
    return penalty_walk.PenaltyWalk(models, np.arange(2), 2)


def test_when_the_path_over_penalties_ends():
    walk = walk_of_norms(lambda penalty: 1.0 - penalty)
    walk.visit(0.5)
    assert [walk.ends(bound, None) for bound in (0.4, 0.5, 0.6)] == [True, True, False]
    assert not walk.ends(None, None)
    for loss, is_end in ((0.011, False), (0.009, True)):
        walk.models.loss = loss
        assert walk.ends(None, None) is is_end
        assert walk.ends(None, 3) is is_end
    walk.models.loss = 1.0
    for n_found, asked, is_end in ((500, 3, True), (499, 3, False), (599, 300, False), (600, 300, True)):
        walk.supports[-1] = np.arange(n_found)
        assert walk.ends(None, asked) is is_end
        assert not walk.ends(None, None)


def test_the_path_over_penalties_meets_its_bound():
    walk = walk_of_norms(lambda penalty: 1.0 - penalty)
    for penalty in (1.0, 0.7, 0.4, 0.1):
        walk.visit(penalty)
    walk.meet(0.5)
    np.testing.assert_allclose(walk.penalties, [1.0, 0.7, 0.5], atol=1e-6)
    np.testing.assert_allclose(walk.norms, [0.0, 0.3, 0.5], atol=1e-6)
    assert len(walk.supports) == len(walk.abs_weights) == 3
    walk = walk_of_norms(lambda penalty: 1.0 - penalty)
    walk.visit(0.5)
    walk.meet(0.5)  # a norm equal to the bound is not beyond it
    np.testing.assert_allclose(walk.penalties, [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize(("n_features", "end"), [(4, 1e-2), (3, 1e-3)])
def test_the_penalties_end_earlier_where_features_outnumber_samples(n_features, end):
    models = walk_of_norms(lambda penalty: 1.0 - penalty).models
    models.largest_penalty = 2.0
    problem = problem_of([0, 1, 0], np.zeros((3, n_features)))
    walk = penalty_walk.follow_penalties(models, np.arange(2), problem, 3, None)
    np.testing.assert_allclose(walk.penalties, 2.0 * np.geomspace(1.0, end, 3))
