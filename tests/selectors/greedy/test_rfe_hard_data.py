"""RFE and BoundElimination on data hard on the arithmetic: outliers, raw units, indefinite kernels, huge costs."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from zeronorm import (
    RFE,
    BoundElimination,
    as_design,
)
from zeronorm.solvers._status import UnsolvableError
from zeronorm.solvers.svm._dual import solve_svm_dual


def problem(seed=0, n=40, p=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 2] - X[:, 7] + 0.3 * rng.normal(size=n) > 0).astype(int)
    return X, y


def with_outlier(X, size=1e6):
    X = X.copy()
    X[5, 3] = size
    return X


def exact_order(X, y, gamma):
    """Algorithm 2 with kernels from exact distances of the remaining features."""
    signs = 2.0 * y - 1.0
    active, gone = list(range(X.shape[1])), []

    def kernel(columns):
        differences = X[:, None, columns] - X[None, :, columns]
        return np.exp(-gamma * (differences**2).sum(axis=2))

    while len(active) > 1:
        K = kernel(active)
        v = solve_svm_dual(K, signs, C=1.0, tol=1e-9).dual_coef
        value = [abs(v @ (K - kernel([f for f in active if f != k])) @ v) for k in active]
        gone.append(active.pop(int(np.argmin(value))))
    return [*gone, *active][::-1]


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_rbf_elimination_survives_an_outlier(size):
    X, y = problem()
    X = with_outlier(X, size)
    s = RFE(n_features_to_select=2, C=1.0, kernel="rbf", gamma=0.1, standardize=False, tol=1e-9).fit(X, y)
    assert np.isfinite(s.scores_).all()
    assert s.path_.order.tolist() == exact_order(X, y, 0.1)


@pytest.mark.parametrize("size", [3e6, 1e9])
@pytest.mark.parametrize(
    "selector",
    [
        RFE(C=1.0, standardize=False),
        RFE(C=1.0, standardize=False, step=2),
        RFE(C=1.0, standardize=False, learner="logistic"),
        BoundElimination(kernel="linear", standardize=False),
    ],
)
def test_a_removed_column_of_another_unit_leaves_no_rounding_behind(selector, size):
    X, y = problem(1, n=50, p=40)
    time = size * np.random.default_rng(2).normal(size=(50, 1))
    if selector.step == 2:  # so that the clock and nothing else leaves in the first round
        time = np.hstack([time, np.zeros((50, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = selector.set_params(n_features_to_select=1).fit(X, y).path_.order
        order = selector.fit(np.hstack([time, X]), y).path_.order
    if (
        size > 1e8 and not selector.converged_
    ):  # rounding errors of the clock hide everything else; a warning is issued
        return
    # The clock leaves first, as its weight is the smallest: the rest is as without it.
    assert (order[: plain.size] - time.shape[1]).tolist() == plain.tolist()


def test_indefinite_kernel_is_valued_without_its_shift():
    X, y = problem(3, n=30)

    def kernel(A, B):
        return np.tanh(A @ B.T - 1.0)

    with pytest.warns(UserWarning, match="not positive semi-definite"):
        s = RFE(n_features_to_select=1, C=1.0, kernel=kernel, standardize=False, tol=1e-9).fit(X, y)
    signs, active, gone = 2.0 * y - 1.0, list(range(12)), []
    while len(active) > 1:
        K = kernel(X[:, active], X[:, active])
        shifted = K - min(0.0, np.linalg.eigvalsh(K)[0]) * np.eye(30)
        v = solve_svm_dual(shifted, signs, C=1.0, tol=1e-9).dual_coef
        rest = [X[:, [f for f in active if f != k]] for k in active]
        gone.append(active.pop(int(np.argmin([abs(v @ (K - kernel(Z, Z)) @ v) for Z in rest]))))
    assert s.path_.order.tolist() == [*gone, *active][::-1]


def test_a_kernel_without_similar_samples_is_reported():
    X, y = problem()
    for selector in (
        RFE(n_features_to_select=2, C=1.0, kernel="rbf", standardize=False),
        BoundElimination(standardize=False),
    ):
        with pytest.warns(UserWarning, match="no two samples are similar"):
            selector.fit(1e5 * X, y)


# -- the limit of iterations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"step": 3}, {"kernel": "rbf"}, {"learner": "logistic"}, {"kernel": "poly"}]
)
def test_max_iter_is_heeded_by_every_model_and_raising_it_helps(settings):
    X, y = problem(4, n=60)
    with pytest.warns(ConvergenceWarning, match="increase max_iter") as caught:
        s = RFE(max_iter=1, C=100.0, **settings).fit(X, y)
    assert len(caught) == 1
    assert not s.converged_
    assert RFE(C=100.0, **settings).fit(X, y).converged_


@pytest.mark.parametrize("value", [0, -3, 1.5, "many", None])
def test_max_iter_must_be_a_count(value):
    X, y = problem()
    with pytest.raises(ValueError, match="'max_iter' parameter of RFE must be"):
        RFE(max_iter=value).fit(X, y)


# -- loops end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [0.0, np.nan, -1.0, np.inf, "a"])
@pytest.mark.parametrize("selector", [RFE(), BoundElimination()])
def test_a_tolerance_that_cannot_be_met_is_refused(selector, tol):
    X, y = problem()
    with pytest.raises(ValueError, match="'tol' parameter of"):
        selector.set_params(tol=tol).fit(X, y)


@pytest.mark.parametrize("C", [np.nan, 0.0, -1.0, 1e300, "a"])
@pytest.mark.parametrize("selector", [RFE(), BoundElimination()])
def test_an_invalid_cost_is_refused(selector, C):
    X, y = problem()
    with pytest.raises(ValueError, match="'C' parameter of"):
        selector.set_params(C=C).fit(X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308, -1e308])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("selector", [RFE(), RFE(step=2), RFE(kernel="rbf"), BoundElimination()])
def test_values_without_a_square_are_refused_also_in_a_design(selector, standardize, value):
    X, y = problem()
    X[3, 4] = value
    design = as_design(X, check_finite=False)
    selector.set_params(standardize=standardize)
    if np.isfinite(value) and (standardize or getattr(selector, "kernel", "") == "rbf"):
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")
            assert np.isfinite(selector.fit(design, y).scores_).all()
        return
    with pytest.raises(ValueError, match=r"NaN|infinity|too large|overflow"):
        selector.fit(design, y)


@pytest.mark.parametrize("C", [1e12, 1e20, 1e90])
@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"loss": "squared"}, {"learner": "logistic"}])
def test_a_huge_cost_ends(C, settings):
    X, y = problem(5, n=30, p=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with contextlib.suppress(UnsolvableError):
            s = RFE(n_features_to_select=2, C=C, **settings).fit(X, y)
            assert np.isfinite(s.scores_).all()


@pytest.mark.parametrize("settings", [{}, {"step": 0.5}, {"kernel": "rbf"}, {"loss": "squared"}])
def test_a_large_common_part_of_the_target_changes_nothing(settings):
    X, _ = problem()
    y = np.round(1024 * (X[:, 2] + X[:, 7])) / 1024  # 1e12 + y has no rounding
    ranked = [
        RFE(task="regression", n_features_to_select=2, C=1.0, epsilon=0.1, **settings).fit(X, y + common)
        for common in (0.0, 1e12)
    ]
    assert ranked[0].ranking_.tolist() == ranked[1].ranking_.tolist()
    assert ranked[1].converged_
