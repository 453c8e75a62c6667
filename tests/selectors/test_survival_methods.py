"""Methods whose linear models are Cox models with ``task="survival"``, against refits by a general minimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from oracles.risk_sets import gradient_and_hessian, negative_log_likelihood
from small_problems import problem_of
from zeronorm import AROM, RFE, Grafting, SVMWeights, ZeroNormSVM
from zeronorm.models import CoxRegression
from zeronorm.selection.target import TimeToEvent
from zeronorm.solvers.l1_smooth._cox import CoupledCox


def survival(n=50, p=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    time = np.round(rng.exponential(np.exp(-1.5 * (X[:, 1] - X[:, 4]))), 1)
    y = TimeToEvent.prepared({"event": rng.random(n) < 0.75, "time": time})
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def ridge(X, y, C, z=1.0):
    """Weights by a general minimiser and all risk sets; the penalty is on w / z."""
    given = y["event"], y["time"], np.ones(len(y))

    def objective(v):
        f = X @ (z * v)
        return 0.5 * v @ v + C * negative_log_likelihood(f, *given), v + C * z * (
            X.T @ gradient_and_hessian(f, *given)[0]
        )

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, options={"gtol": 1e-9})
    return z * found.x


def test_weights_are_those_of_one_cox_model():
    X, y = survival()
    selector = SVMWeights(2, task="survival", C=0.5).fit(X, y)
    np.testing.assert_allclose(selector.coef_[0], ridge(X, y, 0.5), atol=1e-5)
    np.testing.assert_allclose(selector.coef_[0], CoxRegression(0.5).fit(X, y).coef_, atol=1e-5)


@pytest.mark.parametrize("p", [7, 60])
def test_features_leave_in_the_order_of_refits(p):
    X, y = survival(p=p, n=40)
    selector = RFE(task="survival", C=0.5, n_features_to_select=1).fit(X, y)
    active, expected = np.arange(p), []
    while active.size > max(1, p - 6):
        worst = int(np.argmin(np.abs(ridge(X[:, active], y, 0.5))))
        expected.append(int(active[worst]))
        active = np.delete(active, worst)
    assert selector.path_.order[::-1][: len(expected)].tolist() == expected


@pytest.mark.parametrize(
    "selector",
    [AROM(C=0.5), ZeroNormSVM(C=1.0)],  # whose norm has no factor ½
    ids=["arom", "zeronorm-svm"],
)
def test_factors_are_the_absolute_weights_of_the_model_before(selector):
    X, y = survival()
    selector.set_params(task="survival", scaling="paper", start="equal", max_iter=4, tol=1e-9)
    with pytest.warns(UserWarning, match="did not converge"):
        found = selector.fit(X, y)
    z = np.ones(7)
    for _ in range(4):
        w = ridge(X, y, 0.5, z)
        z = np.where(np.abs(w) > 1e-3 * np.abs(w).max(), np.abs(w), 0.0)
    np.testing.assert_allclose(found.coef_[0], w, atol=1e-4)


def test_grafting_reaches_the_lasso_solution():
    X, y = survival(p=30)
    selector = Grafting(task="survival", penalty_l1=0.08).fit(X, y)
    models = CoupledCox(problem_of(y, X, "survival"), "efron", 1e-10)
    models.solve(np.full(30, 0.08))
    np.testing.assert_allclose(selector.coef_, models.weights()[0], atol=1e-6)
    assert selector.intercept_ == 0.0


@pytest.mark.parametrize(
    "selector",
    [
        SVMWeights(2),
        RFE(n_features_to_select=2),
        AROM(2),
        ZeroNormSVM(2),
        SVMWeights(2, loss="ranking"),
        RFE(n_features_to_select=2, loss="ranking", step=0.5),
        AROM(2, loss="ranking"),
        ZeroNormSVM(2, loss="ranking"),
        RFE(CoxRegression(), n_features_to_select=2, step=0.5),
    ],
    ids=repr,
)
def test_the_features_with_an_effect_are_found_in_wide_data(selector):
    X, y = survival(n=120, p=300)
    found = selector.set_params(task="survival").fit(X, y)
    assert found.get_support(indices=True).tolist() == [1, 4]


def test_the_automatic_cost_has_the_unit_of_the_likelihood():
    """As many samples again say more, a column in another unit nothing; the model predicts better than with all C."""
    X, y = survival(n=150, p=400)
    train, test = np.arange(100), np.arange(100, 150)
    chosen = SVMWeights(task="survival").fit(X[train], y[train]).C_
    quality = {
        C: CoxRegression(C).fit(X[train], y[train]).score(X[test], y[test]) for C in (1e-6, chosen, 1e3)
    }
    assert quality[chosen] >= max(quality.values()) - 0.05
    assert 1e-5 < chosen < 1.0


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            RFE(task="survival", kernel="rbf"),
            "'kernel' parameter of RFE must be 'linear' with task='survival'",
        ),
        (AROM(task="survival", norm="l1"), "'norm' parameter of AROM must be 'l2' with task='survival'"),
        (ZeroNormSVM(task="survival", q=np.inf), "'q' parameter of ZeroNormSVM must be finite"),
        (SVMWeights(task="survival", C=np.inf), "'C' parameter of SVMWeights must be finite"),
        (Grafting(task="survival", loss="logistic"), "'loss' parameter of Grafting must be 'auto'"),
    ],
)
def test_settings_without_a_partial_likelihood_are_refused(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(*survival())


@pytest.mark.parametrize("selector", [SVMWeights, RFE, AROM, ZeroNormSVM])
def test_the_ranking_hinge_needs_times(selector):
    with pytest.raises(ValueError, match="'ranking' needs task='survival'"):
        selector(loss="ranking").fit(survival()[0], np.arange(50) % 2)


def test_there_is_no_certificate_of_a_partial_likelihood():
    assert not hasattr(RFE(task="survival"), "certificate")
