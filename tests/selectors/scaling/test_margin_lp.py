"""MarginLP: the printed linear program, the convex problem behind it, the ℓ1-norm SVM, bad input."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.preprocessing import StandardScaler

from zeronorm import L1SVM, MarginLP, as_design
from zeronorm.selectors.scaling import _margin_lp as margin_lp
from zeronorm.solvers.l1_svm import _dual as dual
from zeronorm.solvers.l1_svm import _program as program


def data(seed=0, n=30, p=50, shift=1.2):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 3] += shift * y
    X[:, 7] -= y
    return StandardScaler().fit_transform(X), y


def printed_program(X, y):
    """max Σα, |X'(α∗y)| ≤ 1; the multipliers of the two sets of constraints."""
    signed = (X * y[:, None]).T
    result = linprog(
        -np.ones(y.size),
        A_ub=np.vstack([signed, -signed]),
        b_ub=np.ones(2 * X.shape[1]),
        A_eq=y[None, :],
        b_eq=[0.0],
        bounds=(0, None),
    )
    assert result.status == 0
    return -result.fun, -result.ineqlin.marginals.reshape(2, -1).sum(axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_factors_are_the_multipliers_of_the_printed_program(seed):
    X, y = data(seed)
    value, multipliers = printed_program(X, y)
    s = MarginLP(C=np.inf).fit(X, y)
    assert np.abs(s.dual_coef_).sum() == pytest.approx(value, rel=1e-6)
    assert s.scale_**2 == pytest.approx(multipliers / multipliers.sum(), abs=1e-6)
    assert (s.scale_**2).sum() == pytest.approx(1.0)
    assert s.n_features_ == np.count_nonzero(multipliers > 1e-9)


def test_factors_solve_the_convex_problem_of_the_chapter():
    X, y = data(5, n=14, p=20)
    s = MarginLP(C=np.inf).fit(X, y)
    # In the primal: the smallest ½ Σ w²/σ² over weights that separate the classes and over σ² with sum one.
    share, bound = cp.Variable(20, nonneg=True), cp.Variable(20, nonneg=True)
    w, b = cp.Variable(20), cp.Variable()
    cones = cp.SOC(share + bound, cp.vstack([2 * w, share - bound]))  # w² ≤ share · bound
    constraints = [cp.multiply(y, X @ w + b) >= 1, cp.sum(share) == 1, cones]
    best = cp.Problem(cp.Minimize(0.5 * cp.sum(bound)), constraints).solve(solver=cp.CLARABEL)
    assert 0.5 * np.abs(s.coef_).sum() ** 2 == pytest.approx(best, rel=1e-5)
    assert s.scale_**2 == pytest.approx(share.value, abs=1e-3)


def test_it_is_the_l1_svm_with_a_hard_margin():
    X, y = data(1)
    hard, soft = MarginLP(C=np.inf).fit(X, y), MarginLP(C=0.3).fit(X, y)
    model = L1SVM(C=0.3).fit(X, y)
    assert soft.coef_ == pytest.approx(model.coef_, abs=1e-6)
    assert np.all(y * (X @ hard.coef_[0] + hard.intercept_[0]) >= 1.0 - 1e-6)
    assert hard.scale_**2 == pytest.approx(np.abs(hard.coef_[0]) / np.abs(hard.coef_).sum())


def test_features_without_a_factor_follow_by_their_constraint():
    X, y = data(2)
    s = MarginLP(C=np.inf).fit(X, y)
    gradient = np.abs(X.T @ s.dual_coef_)
    rest = s.path_.order[s.n_features_ :]
    assert np.all(np.diff(gradient[rest]) <= 1e-9)
    assert gradient.max() <= 1.0 + 1e-6


def test_the_first_of_identical_columns_gets_the_factor():
    X, y = data(3)
    X = np.column_stack([X, X[:, 3], X[:, 7]])
    s = MarginLP(C=np.inf).fit(X, y)
    assert s.scale_[3] > 0.0
    assert s.scale_[50] == 0.0
    assert s.scale_[51] == 0.0


def test_inseparable_classes_and_bad_costs():
    X = np.ones((6, 3))
    X[:, 0] = [1, 2, 1, 2, 1, 2]
    y = [0, 0, 1, 1, 0, 1]
    with pytest.raises(ValueError, match="MarginLP with a hard margin"):
        MarginLP(C=np.inf).fit(X, y)
    s = MarginLP(C=1.0).fit(X, y)
    assert np.all(np.isfinite(s.scores_))
    with pytest.raises(
        ValueError,
        match=r"'C' parameter of MarginLP must be a finite number greater than 0, infinity or 'auto'",
    ):
        MarginLP(C=-1.0).fit(X, y)


def tall_counts(gap, n=800, p=50):
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, size=(n, 5)).astype(float)
    value = counts @ [1.0, -1.0, 2.0, 1.0, -2.0] - 0.5
    counts[:, 0] += gap * np.sign(value)
    rest = sparse.random(n, p - 5, density=0.01, format="csr", rng=rng)
    return sparse.csr_array(sparse.hstack([counts, rest], format="csr")), (value > 0).astype(int)


@pytest.fixture
def few_rows(monkeypatch):
    """Programs of tall sparse data start with 20 samples."""
    monkeypatch.setattr(dual, "LARGEST_DENSE_COPY", 0)
    monkeypatch.setattr(dual, "MANY_ENTRIES", 0)
    monkeypatch.setattr(dual, "FIRST_ROWS", 20)
    monkeypatch.setattr(dual, "ROWS_OF_A_PROGRAM", 0)
    return monkeypatch


@pytest.mark.parametrize("cost", [dual.HIGH_COST, 1e-6])
def test_tall_sparse_samples_join_the_program(cost, few_rows):
    X, y = tall_counts(0.3)
    few_rows.setattr(dual, "MANY_ENTRIES", X.shape[0] * X.shape[1] + 1)
    expected = MarginLP(C=np.inf).fit(X, y)
    few_rows.setattr(dual, "MANY_ENTRIES", 0)
    few_rows.setattr(dual, "HIGH_COST", cost)  # a cost that is too low is raised
    found = MarginLP(C=np.inf).fit(X, y)
    assert found.converged_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-8)
    assert found.n_features_ == np.count_nonzero(np.abs(expected.coef_) > 1e-9)
    assert np.abs(found.dual_coef_).sum() == pytest.approx(np.abs(found.coef_).sum())


def test_warns_before_the_fit_that_many_features_may_take_long(few_rows):
    X, y = tall_counts(0.3)
    few_rows.setattr(margin_lp, "MANY_FEATURES", X.shape[1])
    with pytest.warns(UserWarning, match="A finite C is quick") as caught:
        MarginLP(C=np.inf).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    y[:300] = 1 - y[:300]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing takes long where the overlap is seen
        with pytest.raises(ValueError, match="cannot be separated"):
            MarginLP(C=np.inf).fit(X, y)


@pytest.mark.parametrize("is_separable", [True, False])
def test_linear_programs_decide_where_squared_losses_do_not(is_separable, few_rows):
    X, y = tall_counts(0.3)
    expected = MarginLP(C=np.inf).fit(X, y)
    few_rows.setattr(program, "MOST_LOOKS", 1)
    few_rows.setattr(program, "NEWTON_STEPS", 1)
    if not is_separable:
        y[:3] = 1 - y[:3]
        assert program.separating_model(as_design(X).standardized(), 2.0 * y - 1.0) is not None
        with pytest.raises(ValueError, match="cannot be separated; use a finite C"):
            MarginLP(C=np.inf).fit(X, y)
        return
    design, signs = as_design(X).standardized(), 2.0 * y - 1.0
    weights, bias = program.separating_model(design, signs)
    assert np.any(signs * (design.dot(weights) + bias) < 0.0)
    np.testing.assert_allclose(MarginLP(C=np.inf).fit(X, y).coef_, expected.coef_, atol=1e-8)


def test_tall_sparse_classes_are_proved_to_overlap(monkeypatch):
    X, y = tall_counts(0.0)
    y[:3] = 1 - y[:3]
    monkeypatch.setattr(dual, "LARGEST_DENSE_COPY", 0)
    monkeypatch.setattr(dual, "MANY_ENTRIES", 0)
    with pytest.raises(ValueError, match="cannot be separated; use a finite C"):
        MarginLP(C=np.inf).fit(X, y)
    assert program.separating_model(as_design(X).standardized(), 2.0 * y - 1.0) is None


def test_weights_found_on_some_samples_are_tried_on_all(monkeypatch):
    X, y = tall_counts(0.3)
    monkeypatch.setattr(program, "ROWS_PER_FEATURE", 0.1)
    design, signs = as_design(X).standardized(), 2.0 * y - 1.0
    weights, bias = program.separating_model(design, signs)
    assert np.all(signs * (design.dot(weights) + bias) > 0.0)


@pytest.mark.parametrize("shift", [1.2, 2.0, 12.0])
def test_the_defaults_fit_classes_that_overlap(shift):
    y = np.arange(80) % 2
    X = np.random.default_rng(0).normal(size=(80, 10))
    X[:, :2] += shift * y[:, None]
    s = MarginLP().fit(X, y)
    assert np.isfinite(s.C_)
    assert s.path_.support(2).tolist() == [0, 1]
