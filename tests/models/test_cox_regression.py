"""Cox regression against the likelihood of all risk sets, scikit-survival and lifelines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from oracles.risk_sets import gradient_and_hessian, negative_log_likelihood
from zeronorm.models import CoxRegression
from zeronorm.selection.target import TimeToEvent


def survival(n=80, p=4, seed=0, decimals=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.arange(1, p + 1) + 3.0
    time = np.round(rng.exponential(np.exp(-(X[:, 0] - X[:, 1] / 2) / 2)), decimals)
    return X, TimeToEvent.prepared({"event": rng.random(n) < 0.7, "time": time})


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("p", [4, 100])
def test_the_model_minimises_the_penalised_likelihood(ties, p):
    X, y = survival(p=p, decimals=1)
    model, Z, C = CoxRegression(0.2, ties=ties).fit(X, y), (X - X.mean(axis=0)) / X.std(axis=0), 0.2
    given = y["event"], y["time"], np.ones(len(y)), ties

    def objective(w):
        gradient, _ = gradient_and_hessian(Z @ w, *given)
        return 0.5 * w @ w + C * negative_log_likelihood(Z @ w, *given), w + C * Z.T @ gradient

    w = model.coef_ * X.std(axis=0)
    value, gradient = objective(w)
    assert np.abs(gradient).max() < 1e-6
    if p == 4:
        found = minimize(objective, np.zeros(p), jac=True, options={"gtol": 1e-9})
        assert value == pytest.approx(found.fun, rel=1e-12)
    np.testing.assert_allclose(model.predict(X), Z @ w, atol=1e-10)
    np.testing.assert_allclose(
        CoxRegression(0.2, ties=ties).fit(sp.csr_array(X), y).coef_, model.coef_, atol=1e-8
    )


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_the_model_and_its_curves_are_those_of_scikit_survival(ties):
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, y = survival(decimals=1)
    other = linear_model.CoxPHSurvivalAnalysis(ties=ties, tol=1e-13).fit(X, y)
    model = CoxRegression(1e6, ties=ties).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    assert model.score(X, y) == pytest.approx(other.score(X, y))
    times = np.array([0.1, 0.5, 1.0, 2.0])
    curves = [
        f(times) for f in linear_model.CoxPHSurvivalAnalysis().fit(X, y).predict_survival_function(X[:5])
    ]
    own = CoxRegression(1e6, ties="breslow").fit(X, y).predict_survival_function(X[:5], times)
    np.testing.assert_allclose(own, curves, atol=1e-5)


def test_hazard_ratios_are_those_of_lifelines():
    lifelines = pytest.importorskip("lifelines")
    import pandas as pd

    X, y = survival(decimals=1)
    frame = pd.DataFrame(X).assign(t=y["time"] + 1.0, e=y["event"])
    expected = lifelines.CoxPHFitter().fit(frame, "t", "e").params_
    np.testing.assert_allclose(CoxRegression(1e7).fit(X, y).coef_, expected, atol=1e-5)


def test_many_samples_need_no_matrix_of_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 3))
    time = rng.exponential(np.exp(-X @ [1.0, 0.0, -0.5]))
    model = CoxRegression().fit(X, {"event": time < 1.0, "time": np.minimum(time, 1.0)})
    np.testing.assert_allclose(model.coef_, [1.0, 0.0, -0.5], atol=0.03)


def test_a_target_without_events_is_refused():
    X, y = survival()
    y["event"] = False
    with pytest.raises(ValueError, match="CoxRegression needs events"):
        CoxRegression().fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter of CoxRegression"):
        CoxRegression(-1.0).fit(X, y)
