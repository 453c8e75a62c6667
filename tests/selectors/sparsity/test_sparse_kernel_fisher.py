"""SparseKernelFisher against a quadratic program, its constraints, and Fisher's discriminant."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from small_problems import noise, problem_of
from zeronorm import SparseKernelFisher, as_design
from zeronorm.selectors.sparsity import _sparse_kernel_fisher as module
from zeronorm.selectors.sparsity import _sparse_kernel_fisher as sparse_kernel_fisher
from zeronorm.selectors.sparsity._sparse_kernel_fisher import _Fisher


def classes(seed, n=50, p=30):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    X = rng.normal(size=(n, p)) + np.outer(y, np.r_[1.5, 1.0, 0.7, np.zeros(p - 3)])
    X[:, 3] = X[:, 0] - 1.5 * y + 0.3 * rng.normal(size=n)  # noise of feature 0 alone
    return StandardScaler().fit_transform(X), y


def quadratic_program(X, y, C, weight=None):
    """The problem as the paper states it, by a convex solver."""
    weight = np.ones(len(y)) if weight is None else weight
    signs = 2.0 * y - 1.0
    a, b, xi = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(len(y))
    constraints = [X @ a + b == signs + xi]
    constraints += [cp.sum(cp.multiply(weight * (y == c), xi)) == 0 for c in (0, 1)]
    value = cp.sum(cp.multiply(weight, cp.square(xi))) + C * cp.norm1(a)
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL)
    return a.value, float(b.value), float(problem.value)


def objective(selector, X, y, C, weight=1.0):
    errors = X @ selector.coef_ + selector.intercept_ - (2.0 * y - 1.0)
    return np.sum(weight * errors**2) + C * np.abs(selector.coef_).sum()


@pytest.mark.parametrize("C", [0.5, 5.0, 40.0])
@pytest.mark.parametrize("seed", range(2))
def test_matches_a_quadratic_program(seed, C):
    X, y = classes(seed)
    selector = SparseKernelFisher(penalty_l1=C, n_steps=5).fit(X, y)
    a, b, value = quadratic_program(X, y, C)
    assert selector.converged_
    assert objective(selector, X, y, C) == pytest.approx(value, rel=1e-6)
    assert np.array_equal(selector.support_, np.abs(a) > 1e-5)
    assert selector.intercept_ == pytest.approx(b, abs=1e-4)


def test_class_means_of_the_errors_are_zero():
    X, y = classes(3, n=30, p=100)
    selector = SparseKernelFisher(n_steps=8).fit(X, y)
    errors = X @ selector.coef_ + selector.intercept_ - (2.0 * y - 1.0)
    assert abs(errors[y == 0].mean()) < 1e-7
    assert abs(errors[y == 1].mean()) < 1e-7


def test_sample_weights():
    X, y = classes(1)
    weight = np.random.default_rng(0).uniform(0.3, 2.0, size=len(y))
    selector = SparseKernelFisher(penalty_l1=3.0, n_steps=4, standardize=False).fit(
        X, y, sample_weight=weight
    )
    assert objective(selector, X, y, 3.0, weight) == pytest.approx(
        quadratic_program(X, y, 3.0, weight)[2], rel=1e-6
    )


def test_without_a_penalty_it_is_fishers_discriminant():
    X, y = classes(2, n=200, p=8)
    a = SparseKernelFisher(penalty_l1=1e-6, n_steps=30).fit(X, y).coef_
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).scalings_[:, 0]
    cosine = a @ lda / np.linalg.norm(a) / np.linalg.norm(lda)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-6)


def test_the_path_starts_with_the_most_distant_means():
    X, y = classes(0)
    path = SparseKernelFisher(n_steps=20).fit(X, y).path_
    assert path.support(1).tolist() == [
        int(np.argmax(np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))))
    ]
    second = path.subsets[1] if len(path.subsets[0]) == 1 else path.subsets[0]
    assert 0 in second


def test_a_feature_that_cancels_noise_is_found():
    X, y = classes(5, n=200, p=20)
    difference = np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    order = SparseKernelFisher(n_steps=30).fit(X, y).path_.order
    assert difference[3] < np.median(difference)
    assert 3 in order[:4]


def test_columns_of_a_kernel_select_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (np.hypot(*X.T) > 1.1).astype(int)
    K = rbf_kernel(X, gamma=0.7)
    selector = SparseKernelFisher(penalty_l1=2.0, n_steps=6, standardize=False).fit(K, y)
    assert objective(selector, K, y, 2.0) == pytest.approx(quadratic_program(K, y, 2.0)[2], rel=1e-5)
    assert selector.support_.sum() < 30
    assert np.mean((K @ selector.coef_ + selector.intercept_ > 0) == y) > 0.9


def test_equal_class_means():
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    selector = SparseKernelFisher().fit(X, [0, 0, 1, 1])
    assert not selector.coef_.any()
    assert selector.support_.sum() == 1
    assert np.all(np.isfinite(selector.scores_))


def test_two_samples():
    selector = SparseKernelFisher(n_steps=3).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    assert selector.support_.tolist() == [True, False]


@pytest.mark.parametrize(
    ("params", "name"),
    [({"penalty_l1": 0.0}, "penalty_l1"), ({"n_steps": 0}, "n_steps"), ({"tol": 0}, "tol")],
)
def test_bad_parameters(params, name):
    X, y = classes(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        SparseKernelFisher(**params).fit(X, y)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_feature_whose_means_are_as_distant_does_not_begin_the_path(side):
    """Up to rounding it could enter at any penalty, however large."""
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 4)) + y[:, None] * [3.0, 1.0, 0.5, 0.0]
    noise = rng.normal(size=40)
    noise -= np.where(y == 1, noise[y == 1].mean(), noise[y == 0].mean())
    other = side * (1.0 - 1e-12) * X[:, 0] + noise
    both, alone = (
        _Fisher(SimpleNamespace(n_samples=40, sample_weight=None, design=as_design(data), y=y))
        for data in (np.column_stack([X, other]), X)
    )
    assert both.first == alone.first == 0
    assert both.entry_of_second() == pytest.approx(alone.entry_of_second())


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_second_feature_enters_at_the_predicted_penalty(unit):
    X, y = classes(4, p=6)
    problem = SimpleNamespace(n_samples=50, sample_weight=None, design=as_design(unit * X), y=y)
    entry = _Fisher(problem).entry_of_second()
    sizes = [
        np.count_nonzero(_Fisher(problem).solve(share * entry, 1e-9, 10_000).weights)
        for share in (1.001, 0.999)
    ]
    assert sizes == [1, 2]


def test_classes_with_equal_means_leave_all_weights_zero():
    X = np.random.default_rng(0).normal(size=(10, 4))
    found = SparseKernelFisher().fit(np.vstack([X, X]), np.repeat([0, 1], 10))
    assert (found.coef_.tolist(), found.intercept_, found.penalty_) == ([0.0] * 4, 0.0, 0.0)


def sparse_counts(n, p, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    counts = rng.poisson(0.5 + 1.5 * y[:, None], size=(n, 4)).astype(float)
    rest = sparse.random(n, p - 4, density=0.05, format="csr", rng=rng)
    return sparse.csr_array(sparse.hstack([counts, rest], format="csr")), y


def test_sparse_columns_stay_sparse_and_give_the_same():
    X, y = sparse_counts(300, 60)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=300)
    dense, stored = (
        SparseKernelFisher(penalty_l1=1.0, n_steps=10).fit(data, y, sample_weight=weight)
        for data in (X.toarray(), X)
    )
    assert stored.support_.sum() > 10
    np.testing.assert_allclose(stored.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_array_equal(stored.ranking_, dense.ranking_)


def test_many_samples_reach_the_constraint(monkeypatch):
    """The multiplier of the first penalty grows with the number of samples; few steps must be enough."""
    monkeypatch.setattr(module, "MULTIPLIER_STEPS", 40)
    X, y = sparse_counts(20_000, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = SparseKernelFisher(4).fit(X, y)
    assert selector.converged_
    assert selector.support_[:4].all()
    errors = X @ (selector.coef_ / np.sqrt(X.power(2).mean(axis=0) - X.mean(axis=0) ** 2))
    assert errors[y == 1].mean() - errors[y == 0].mean() == pytest.approx(2.0, abs=1e-7)


@pytest.mark.parametrize("backend", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_within_the_classes(backend, weighted):
    X, y = np.round(noise(20, 4)), np.arange(20) % 2
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 20) if weighted else None
    fisher = _Fisher(problem_of(y, backend(X), sample_weight=weight))
    w = np.ones(20) if weight is None else weight
    means = np.array([np.average(X[y == c], axis=0, weights=w[y == c]) for c in (0, 1)])
    Z = np.sqrt(w)[:, None] * (X - means[y])
    np.testing.assert_allclose(fisher.within(X), Z, atol=1e-12)
    v = noise(20, 1, 3)[:, 0]
    np.testing.assert_allclose(fisher.adjoint(v), Z.T @ v, atol=1e-12)
    np.testing.assert_allclose(fisher.mean_difference, means[1] - means[0], atol=1e-12)
    for columns in ([3, 1], [1], [1, 3], [2, 1], [3], [0, 1, 2, 3]):
        part = Z[:, columns]
        np.testing.assert_allclose(fisher._products_of(np.array(columns)), part.T @ part, atol=1e-11)
    solution = SimpleNamespace(columns=np.array([2, 0]), weights=np.array([0.5, -2.0]))
    assert fisher.bias(solution) == pytest.approx(1.0 - 0.5 * means[1, 2] + 2.0 * means[1, 0])
    assert fisher.full(solution).tolist() == [-2.0, 0.0, 0.5, 0.0]


def test_of_columns_with_equally_distant_means_the_first_begins():
    x = np.array([0.0, 1.0, 4.0, 6.0])
    y = np.array([0, 0, 1, 1])
    fisher = _Fisher(problem_of(y, np.column_stack([np.ones(4), 0.5 * x, -x, x])))
    assert fisher.first == 2
    # Without a second feature the result is proportional to the variance within the classes.
    alone = _Fisher(problem_of(y, x[:, None]))
    assert alone.entry_of_second() == pytest.approx(
        2.0 * (2.0 / 4.5) * 4.0
    )  # four samples have more than 2.5


def test_too_few_rounds_are_reported(monkeypatch):
    problem = problem_of(np.arange(20) % 2, noise(20, 4) + (np.arange(20) % 2)[:, None])
    fisher = sparse_kernel_fisher._Fisher(problem)
    assert fisher.solve(0.5, 1e-9, 1000).converged
    monkeypatch.setattr(sparse_kernel_fisher, "MAX_ROUNDS", 1)
    other = sparse_kernel_fisher._Fisher(problem)
    assert not other.solve(0.5, 1e-9, 1000).converged
