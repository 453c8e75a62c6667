"""A loss that is not a sum over samples, written in one class, in every method of the linear core."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from solvers.linear.fits import fit, problem_of
from zeronorm.design import as_design
from zeronorm.engines.elimination._linear import LinearModels
from zeronorm.engines.elimination._loop import Elimination, eliminate
from zeronorm.engines.rescaling._iteration import multiplicative, rescale_until_sparse
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Real
from zeronorm.solvers.linear import Loss, Way


class PartialLikelihood(Loss):
    """Cox's partial likelihood; the target is the time of an event, or minus the time of censoring."""

    for_classes_only = False
    has_bias = False

    def _shares(self, f, y):
        """The probability of each sample (column) to have the event of a sample (row), among those at risk."""
        at_risk = np.abs(y)[None, :] >= np.abs(y)[:, None]
        odds = at_risk * np.exp(f - f.max())
        return odds, odds / odds.sum(axis=1, keepdims=True)

    def total(self, f, y, cost):
        odds, _ = self._shares(f, y)
        return float((cost * (y > 0.0)) @ (np.log(odds.sum(axis=1)) + f.max() - f))

    def gradient(self, f, y, cost):
        paid = cost * (y > 0.0)
        return self._shares(f, y)[1].T @ paid - paid

    def hessian(self, f, y, cost):
        _, share = self._shares(f, y)
        paid = cost * (y > 0.0)
        return np.diag(share.T @ paid) - share.T @ (paid[:, None] * share)


def survival(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    time = rng.exponential(np.exp(-(X[:, 0] - X[:, 1])))
    return X, np.where(rng.random(n) < 0.8, time, -time)


def by_a_general_minimiser(X, y, C, z=1.0):
    loss, cost = PartialLikelihood(), np.full(len(y), C)

    def objective(w):
        f = X @ w
        return 0.5 * np.sum((w / z) ** 2) + loss.total(f, y, cost), w / z**2 + X.T @ loss.gradient(f, y, cost)

    return minimize(objective, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def test_the_derivatives_of_the_whole_vector():
    _, y = survival()
    loss, f, cost, h = PartialLikelihood(), np.linspace(-1.0, 1.0, 40), np.linspace(0.5, 1.5, 40), 1e-6
    steps = h * np.eye(40)
    slope = [(loss.total(f + s, y, cost) - loss.total(f - s, y, cost)) / (2 * h) for s in steps]
    np.testing.assert_allclose(loss.gradient(f, y, cost), slope, atol=1e-7)
    bend = [(loss.gradient(f + s, y, cost) - loss.gradient(f - s, y, cost)) / (2 * h) for s in steps]
    np.testing.assert_allclose(loss.hessian(f, y, cost), bend, atol=1e-7)


@pytest.mark.parametrize("way", [Way.GRAM, Way.PRIMAL])
@pytest.mark.parametrize("p", [6, 60])
def test_a_coupled_loss_is_solved_on_both_sides(way, p):
    X, y = survival(p=p)
    found = fit(X, y, C=0.7, loss=PartialLikelihood(), way=way, tol=1e-9)
    assert found.converged
    assert found.gap < 1e-8
    np.testing.assert_allclose(found.weights[:, 0], by_a_general_minimiser(X, y, 0.7), atol=1e-5)
    again = fit(X, y, C=0.7, loss=PartialLikelihood(), way=way, tol=1e-9, start=found)
    assert again.n_iter <= 2


def test_features_are_eliminated_by_a_coupled_loss():
    X, y = survival()
    problem = Problem(as_design(X), Real(y))
    record = Elimination(problem)
    eliminate(LinearModels(problem, problem_of(y, 0.7, PartialLikelihood()), tol=1e-9), record, 1)
    active, expected = np.arange(6), []
    while active.size > 1:
        worst = int(np.argmin(np.abs(by_a_general_minimiser(X[:, active], y, 0.7))))
        expected.append(int(active[worst]))
        active = np.delete(active, worst)
    assert record.eliminated.tolist() == expected
    assert set(record.active) < {0, 1}


def test_features_are_rescaled_by_a_coupled_loss():
    X, y = survival()
    z = np.ones(6)
    for _ in range(3):
        w = by_a_general_minimiser(X, y, 0.7, z)
        z = np.abs(w)
    model = RescaledModels(problem_of(y, 0.7, PartialLikelihood()))
    found = rescale_until_sparse(
        model, as_design(X), np.arange(6), multiplicative, zero_tol=0.0, tol=1e-3, max_iter=3
    )
    np.testing.assert_allclose(found.iterates[-1][1], z, atol=1e-4)
