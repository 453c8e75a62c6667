"""What features add to covariates for times to an event: the permuted targets, the free weights, and the result."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import zeronorm
from zeronorm.engines._conditional_targets import ConditionalTargets
from zeronorm.resampling.predictors._covariates import DEVIATION
from zeronorm.resampling.predictors._cox import RidgeCox
from zeronorm.selection._covariates import Covariates
from zeronorm.selection.target import TimeToEvent

N = 100


def negative_log_likelihood(weights, Z, time, happened):
    """By the definition, without ties."""
    eta = Z @ weights
    return -sum(eta[i] - np.log(np.exp(eta[time >= time[i]]).sum()) for i in np.flatnonzero(happened))


def frame_of(effect, seed=0, n=N):
    """Age raises the risk, three genes follow the age, and two others carry more."""
    rng = np.random.default_rng(seed)
    age, genes = rng.normal(size=n), rng.normal(size=(n, 8))
    genes[:, :3] += age[:, None]
    time = rng.exponential(np.exp(-1.5 * age - effect * (genes[:, 5] - genes[:, 6])))
    end = rng.exponential(np.exp(-0.5 * age) * 2.0)  # the censoring depends on the age too
    frame = pd.DataFrame(genes, columns=[f"g{i}" for i in range(8)]).assign(age=age)
    return frame.assign(months=np.minimum(time, end), died=np.where(time <= end, "yes", "no"))


def test_times_are_permuted_with_the_likelihood_of_two_cox_models():
    """Against all orders of six samples; the models are fitted by a general optimiser."""
    z = np.array([[0.0], [1.0], [2.0], [0.5], [1.5], [0.2]])
    y = TimeToEvent.of({"event": [1, 1, 0, 1, 0, 1], "time": [3.0, 1.0, 2.0, 6.0, 5.0, 4.0]})
    log_q = np.zeros((6, 6))  # of the label of the second sample at the first
    for happened in (y.event, ~y.event):
        weight = optimize.minimize(negative_log_likelihood, [0.0], (z, y.time, happened), method="BFGS").x
        risk = np.exp(z @ weight)
        steps = [(y.time[i], 1.0 / risk[y.time >= y.time[i]].sum()) for i in np.flatnonzero(happened)]
        hazard = np.array([sum(step for at, step in steps if at <= t) for t in y.time])
        log_q += np.log(risk)[:, None] * happened - risk[:, None] * hazard
    orders = np.array(list(permutations(range(6))))
    weight = np.exp(log_q[np.arange(6), orders].sum(axis=1))
    exact = (weight / weight.sum()) @ y.time[orders]
    targets = ConditionalTargets.of(y, Covariates(z), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    draws = np.array([targets.draw(rng).time for _ in range(300)])
    np.testing.assert_allclose(draws.mean(axis=0), exact, atol=4 * y.time.std() / np.sqrt(300))
    assert np.abs(exact - y.time.mean()).max() > 8 * y.time.std() / np.sqrt(300)  # the covariates matter


def test_a_target_without_censoring_and_constant_covariates():
    rng = np.random.default_rng(0)
    y = TimeToEvent.of({"event": np.ones(30), "time": np.arange(1.0, 31.0)})
    for Z in (np.ones((30, 1)), rng.normal(size=(30, 2))):
        drawn = ConditionalTargets.of(y, Covariates(Z), rng).draw(rng)
        assert drawn.event.all()
        assert sorted(drawn.time) == sorted(y.time)


def test_covariates_of_the_cox_predictor_have_practically_no_penalty():
    """Against a general optimiser of the likelihood with the penalty of the features."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) * [1.0, 2.0, 5.0] + [0.0, 3.0, 50.0]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    time = rng.exponential(np.exp(-scaled[:, 0] - 2 * scaled[:, 2]))
    happened = rng.random(60) < 0.7
    penalty = np.array([1.0, 1.0, DEVIATION**-2])

    def objective(w):
        return 0.5 * penalty @ w**2 + 0.1 * negative_log_likelihood(w, scaled, time, happened)

    exact = optimize.minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    model = RidgeCox(0.1, n_covariates=1).fit(X, {"event": happened, "time": time})
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), exact, rtol=1e-4)
    np.testing.assert_allclose(model.coef_ * model.scale_ * [1, 1, DEVIATION], exact, rtol=1e-4)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    frame = frame_of(1.0)
    out = tmp_path_factory.mktemp("adjusted") / "run"
    result = zeronorm.select(
        frame, time="months", event="died", adjust="age", method="cox-score", features=2, max_features=2, cv=3,
        permutations=19, out=out, save_model=True,
    )  # fmt: skip
    return frame, result, out


def test_the_result_is_about_what_the_features_add(run):
    _, result, out = run
    added = result.procedure["added"]
    assert sorted(result.features) == ["g5", "g6"]
    assert added["covariates_alone"] > 0.6
    assert added["both"] > added["covariates_alone"]
    assert added["low"] <= added["difference"] <= added["high"]
    assert added["p_value"] == 0.05
    assert result.headline.startswith("2 features add to age: concordance 0.")
    assert max(feature.p_value for feature in result.selected) < 1e-3
    assert any("two Cox regressions on the covariates" in note for note in result.notes)
    assert "What the features add to age" in (out / "report.html").read_text()


def test_the_model_holds_the_covariates(run):
    frame, result, out = run
    assert result.model.features == [*result.features, "age"]
    cohort = zeronorm.apply(out, frame_of(1.0, seed=5), time="months", event="died")
    assert cohort.scores[0]["value"] > 0.75
    with pytest.raises(ValueError, match="age"):
        zeronorm.apply(out, frame.drop(columns="age"))


def test_genes_that_follow_the_age_add_nothing():
    frame = frame_of(0.0, seed=1)[["g0", "g1", "g2", "age", "months", "died"]]
    options = {"method": "cox-score", "features": 2, "max_features": 2, "cv": 3, "permutations": 19}
    alone = zeronorm.select(frame, time="months", event="died", ignore=["age"], **options)
    assert alone.procedure["beats_chance"]
    beside = zeronorm.select(frame, time="months", event="died", adjust="age", **options)
    assert not beside.procedure["beats_chance"]
    assert beside.headline == "No evidence that these 2 features add anything to age"


@pytest.mark.parametrize("method", ["auto", "probe-selector", "stability-selection"])
def test_methods_get_the_covariates(method):
    frame = frame_of(1.5)[["age", "months", "died", "g3", "g4", "g5", "g6"]]
    result = zeronorm.select(
        frame, time="months", event="died", adjust="age", method=method, cv=2, max_features=2, permutations=0
    )
    assert {"g5", "g6"} & set(result.features) <= set(result.features) <= {"g3", "g4", "g5", "g6"}
    assert {"g5", "g6"} & set(result.features)


def test_several_classes_beside_covariates():
    """Labels of three classes are permuted with the probabilities of a multinomial regression."""
    rng = np.random.default_rng(0)
    age, genes = rng.normal(size=90), rng.normal(size=(90, 6))
    kind = np.digitize(age + 1.5 * genes[:, 4] + 0.3 * rng.normal(size=90), [-0.7, 0.7])
    frame = pd.DataFrame(genes, columns=[f"g{i}" for i in range(6)]).assign(age=age)
    frame["kind"] = np.array(["low", "middle", "high"])[kind]
    result = zeronorm.select(
        frame, "kind", adjust="age", method="fisher", features=1, max_features=1, cv=3, permutations=19
    )
    assert result.features == ["g4"]
    assert result.procedure["added"]["p_value"] == 0.05
    assert result.headline.startswith("1 feature adds to age: balanced error rate")
