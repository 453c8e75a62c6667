"""A selection by a linear model states how far it is from the best subset of its size."""

from itertools import combinations

import numpy as np
import pytest

import zeronorm
from zeronorm.report import render_report
from zeronorm.result._record import ResultData


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 7))
    X[:, :3] += 0.8 * y[:, None]
    return X, y


def select(table, **options):
    X, y = table
    return zeronorm.select(X, y, permutations=0, cv=3, **options)


def ridge_hinge(X, y, C):
    """½‖w‖² + C Σ hinge of the best weights, by a general convex solver."""
    cp = pytest.importorskip("cvxpy")
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.pos(1 - cp.multiply(2.0 * y - 1.0, X @ w + b)))
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * loss)).solve(solver="CLARABEL")


def test_the_stated_bound_holds_for_every_subset(table):
    X, y = table
    proof = select(table, method="svm-weights", features=2).proof
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    best = min(ridge_hinge(Z[:, list(s)], y, proof["C"]) for s in combinations(range(7), 2))
    assert proof["loss"] == "hinge"
    assert proof["bound"] <= best * (1 + 1e-6)
    assert proof["objective"] >= best * (1 - 1e-6)
    assert proof["gap"] >= 1 - proof["bound"] / proof["objective"] - 1e-12


def test_what_best_subset_has_proved_itself_is_stated(table):
    proof = select(table, method="best-subset", features=2, params={"time_limit": 20}).proof
    assert proof["status"] == "optimal"
    assert proof["better"] == []


def test_the_report_and_the_methods_text_state_the_gap_and_it_survives_the_file(table):
    result = select(table, method="rfe", features=3)
    page = render_report(result, result.records)
    assert result.proof["sentence"] in page
    assert "(proved)" in page
    assert ResultData.from_json(result.to_json()).proof == result.proof


@pytest.mark.parametrize("method", ["fisher", "relief"])
def test_methods_without_a_linear_model_state_no_gap(table, method):
    assert select(table, method=method, features=2).proof == {}
