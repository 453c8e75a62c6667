"""How many steps the solvers take on small problems, and how near to the optimum they end.

A step that goes the wrong way, or an end that is not seen, often leaves the answer as it is and only costs time. The
limits are half as much again as what is taken now.
"""

from __future__ import annotations

import numpy as np
import pytest

from solvers.problems import classification, regression
from zeronorm.design import as_design
from zeronorm.solvers.geometry import solve_enclosing_sphere
from zeronorm.solvers.l1_svm.dual import L1SvmInteriorProgram, L1SvmTallProgram, l1_svm_program
from zeronorm.solvers.logistic import solve_logistic_dual
from zeronorm.solvers.sparse_bayes.posterior import BernoulliLikelihood, GaussianLikelihood
from zeronorm.solvers.sparse_bayes.sequential import solve_sparse_bayes
from zeronorm.solvers.svm.dual import solve_svm_dual, solve_svr_dual
from zeronorm.solvers.svm.joint_multiclass import solve_weston_watkins
from zeronorm.solvers.svm.linear import solve_linear_svm, solve_linear_svr


def at_most(taken):
    return 1.5 * taken + 2


@pytest.mark.parametrize(
    ("loss", "C", "taken"),
    [
        ("hinge", 0.01, 29),
        ("hinge", 0.1, 43),
        ("hinge", 1.0, 42),
        ("squared_hinge", 0.1, 38),
        ("squared_hinge", 10.0, 42),
    ],
)
def test_the_dual_of_two_classes(loss, C, taken):
    X, y = classification()
    machine = solve_svm_dual(X @ X.T, y, C=C, loss=loss)
    assert machine.n_iter <= at_most(taken)
    assert machine.gap <= 1e-9 * machine.objective
    assert machine.violation <= 1e-10


@pytest.mark.parametrize(
    ("loss", "C", "taken"),
    [
        ("epsilon_insensitive", 0.1, 55),
        ("epsilon_insensitive", 1.0, 80),
        ("squared_epsilon_insensitive", 1.0, 52),
    ],
)
def test_the_dual_of_a_regression(loss, C, taken):
    X, y = regression()
    machine = solve_svr_dual(X @ X.T, y, C=C, loss=loss)
    assert machine.n_iter <= at_most(taken)
    assert machine.gap <= 1e-9 * machine.objective


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "taken"), [("hinge", 14), ("squared_hinge", 3)])
def test_tall_classes(loss, taken, C):
    X, y = classification(300, 6)
    machine = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    assert machine.n_iter <= at_most(taken)
    assert machine.gap <= 1e-11 * machine.objective


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "taken"), [("epsilon_insensitive", 17), ("squared_epsilon_insensitive", 4)])
def test_tall_regression(loss, taken, C):
    X, y = regression(300, 6)
    machine = solve_linear_svr(as_design(X), y, C=C, loss=loss)
    assert machine.n_iter <= at_most(taken)
    assert machine.gap <= 1e-11 * machine.objective


@pytest.mark.parametrize(("C", "taken"), [(0.1, 6), (1.0, 7), (10.0, 9)])
def test_the_logistic_dual(C, taken):
    X, y = classification()
    assert solve_logistic_dual(X @ X.T, y, C=C).n_iter <= taken + 2


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_all_classes_at_once(C):
    X, _ = classification()
    machine = solve_weston_watkins(X @ X.T, np.arange(40) % 3, 3, C=C)
    assert machine.n_iter <= 5
    assert machine.violation <= 1e-12
    assert machine.primal_objective - machine.objective <= 1e-10


@pytest.mark.parametrize(
    ("shape", "C", "taken"),
    [
        ((40, 60), 0.1, 169),
        ((40, 60), 1.0, 99),
        ((60, 20), 0.1, 27),
        ((60, 20), 1.0, 51),
        ((60, 20), 10.0, 70),
        ((300, 6), 1.0, 18),
    ],
)
def test_programs_with_absolute_weights(shape, C, taken):
    X, y = classification(*shape)
    assert l1_svm_program(as_design(X), y, C=C).solve(np.ones(shape[1])).n_iter <= at_most(taken)


@pytest.mark.parametrize(
    ("cls", "shape", "taken", "exactly"),
    [
        (L1SvmInteriorProgram, (60, 20), 7, 1e-12),
        (L1SvmInteriorProgram, (80, 120), 8, 1e-12),
        (L1SvmInteriorProgram, (300, 6), 8, 1e-12),
        (L1SvmTallProgram, (60, 20), 103, 1e-10),
        (L1SvmTallProgram, (80, 120), 591, 1e-10),
        (L1SvmTallProgram, (300, 6), 18, 1e-10),
    ],
)
def test_other_ways_to_the_same_program(cls, shape, taken, exactly):
    X, y = classification(*shape)
    cost = np.ones(shape[1])
    found, plain = cls(as_design(X), y, C=1.0).solve(cost), l1_svm_program(as_design(X), y, C=1.0).solve(cost)
    assert found.n_iter <= at_most(taken)
    assert found.objective == pytest.approx(plain.objective, rel=exactly)


def test_the_smallest_sphere():
    X, _ = classification(60, 20)
    sphere = solve_enclosing_sphere(X @ X.T)
    assert sphere.n_iter <= at_most(54)
    assert sphere.gap <= 1e-10


@pytest.mark.parametrize(
    ("kind", "method", "tol", "taken"),
    [
        ("labels", "sequential", 1e-3, 13),
        ("labels", "sequential", 1e-6, 22),
        ("labels", "fixed_point", 1e-3, 100),
        ("labels", "fixed_point", 1e-6, 110),
        ("target", "sequential", 1e-3, 9),
        ("target", "sequential", 1e-6, 11),
        ("target", "fixed_point", 1e-3, 42),
        ("target", "fixed_point", 1e-6, 48),
    ],
)
def test_relevance(kind, method, tol, taken):
    found = solve_sparse_bayes(as_design(data(kind)[0]), likelihood(kind), method=method, tol=tol)
    assert found.status.converged
    assert found.n_iter <= at_most(taken)


def test_relevance_with_a_prior_of_the_precisions():
    found = solve_sparse_bayes(
        as_design(data("labels")[0]), likelihood("labels"), hyperprior=(0.1, 0.1), tol=1e-4
    )
    assert found.n_iter <= at_most(38)
    exact = solve_sparse_bayes(
        as_design(data("labels")[0]), likelihood("labels"), hyperprior=(0.1, 0.1), tol=1e-8
    )
    assert found.log_evidence == pytest.approx(exact.log_evidence, rel=1e-4)


# -- Larger ones, where variables are set aside and followed, and where the solution of a similar problem is known --


@pytest.mark.parametrize(
    ("shape", "noise", "loss", "C", "taken", "near"),
    [
        ((200, 10), 2.0, "hinge", 0.05, 113, 137),
        ((200, 10), 2.0, "hinge", 5.0, 531, 174),
        ((200, 10), 2.0, "squared_hinge", 0.05, 490, 172),
        ((200, 10), 2.0, "squared_hinge", 5.0, 1728, 1),
        ((120, 300), 1.0, "hinge", 5.0, 201, 0),
        ((120, 300), 1.0, "squared_hinge", 0.05, 266, 1),
    ],
)
def test_a_start_near_the_solution(shape, noise, loss, C, taken, near):
    X, y = classification(*shape, noise=noise)
    K = X @ X.T
    first = solve_svm_dual(K, y, C=C, loss=loss)
    assert first.n_iter <= at_most(taken)
    assert solve_svm_dual(K, y, C=C, loss=loss, warm_start=first).n_iter <= 2
    other = solve_svm_dual(K, y, C=1.1 * C, loss=loss, warm_start=first)
    assert other.n_iter <= at_most(near)
    for machine in (first, other):
        assert machine.gap <= 1e-9 * machine.objective


@pytest.mark.parametrize(("loss", "dual", "primal"), [("hinge", 255, 11), ("squared_hinge", 616, 3)])
def test_a_price_for_each_sample(loss, dual, primal):
    X, y = classification(200, 10, noise=2.0)
    price = np.random.default_rng(0).uniform(0.0, 2.0, 200)
    price[::7] = 0.0
    by_samples = solve_svm_dual(X @ X.T, y, C=price, loss=loss)
    by_features = solve_linear_svm(as_design(X), y, C=price, loss=loss)
    assert by_samples.n_iter <= at_most(dual)
    assert by_features.n_iter <= at_most(primal)
    for machine in (by_samples, by_features):
        assert machine.gap <= 1e-11 * machine.objective
    assert by_samples.objective == pytest.approx(by_features.objective, rel=1e-10)
    np.testing.assert_allclose(by_samples.dual_coef @ X, by_features.weights, atol=1e-6)
    assert by_samples.bias == pytest.approx(by_features.bias, abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "taken", "warm"), [("epsilon_insensitive", 398, 62), ("squared_epsilon_insensitive", 394, 0)]
)
def test_a_regression_from_its_solution(loss, taken, warm):
    X, y = regression(200, 10)
    settings = {"C": 1.0, "epsilon": 0.2, "loss": loss}
    first = solve_svr_dual(X @ X.T, y, **settings)
    assert first.n_iter <= at_most(taken)
    assert first.gap <= 1e-12 * first.objective
    assert solve_svr_dual(X @ X.T, y, **settings, warm_start=first).n_iter <= at_most(warm)


def test_others_from_their_solution():
    X, y = classification(200, 10, noise=2.0)
    K = X @ X.T
    logistic = solve_logistic_dual(K, y, C=1.0)
    assert logistic.n_iter <= 8
    assert solve_logistic_dual(K, y, C=1.0, warm_start=logistic).n_iter <= 1
    sphere = solve_enclosing_sphere(K)
    assert sphere.n_iter <= at_most(194)
    assert solve_enclosing_sphere(K, warm_start=sphere).n_iter <= 2
    codes, K = np.arange(100) % 4, K[:100, :100]
    joint = solve_weston_watkins(K, codes, 4, C=1.0)
    assert joint.n_iter <= at_most(10)
    assert solve_weston_watkins(K, codes, 4, C=1.0, warm_start=joint).n_iter == 1


def test_classes_that_can_be_separated():
    X, y = classification()
    for loss in ("hinge", "squared_hinge"):
        machine = solve_svm_dual(X @ X.T, y, C=np.inf, loss=loss)
        assert machine.n_iter <= at_most(43)
        assert machine.gap <= 1e-10


def data(kind):
    return classification(60, 20) if kind == "labels" else regression(60, 20)


def likelihood(kind):
    y = data(kind)[1]
    if kind == "labels":
        return BernoulliLikelihood((y[:, None] > 0).astype(float), np.ones(60))
    return GaussianLikelihood(y, np.ones(60))
