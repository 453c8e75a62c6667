"""What features add to covariates: the three models, the test, the sentences, and messy covariates."""

from __future__ import annotations

import importlib.util
import json
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import zeronorm
from zeronorm._messages import OptionError
from zeronorm.engines._adjusted_scores import CovariateModel
from zeronorm.engines._conditional_targets import ConditionalTargets
from zeronorm.selection._covariates import Covariates
from zeronorm.selection.target import Binary, Real

N, P = 70, 15


def messy(effect=2.0, seed=0):
    """Age with a gap, stage as text, a centre of numbers, and genes that follow the age; two genes carry more."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    age, stage, centre = rng.normal(60, 8, N), rng.choice(["I", "II", "III"], N), rng.integers(1, 8, N)
    genes = rng.normal(size=(N, P))
    genes[:, :5] += ((age - 60) / 6)[:, None]
    f = (age - 60) / 8 + (stage == "III") + effect * (genes[:, 7] - genes[:, 8]) + rng.normal(size=N)
    frame = pd.DataFrame(genes, columns=[f"gene{k}" for k in range(P)])
    frame.insert(3, "age", age)
    frame["stage"], frame["centre"], frame["same"] = stage, centre, 5.0
    frame.loc[4, "age"] = np.nan
    frame["ill"] = np.where(f > np.median(f), "yes", "no")
    frame["score"] = f
    return frame


@pytest.fixture(scope="module")
def adjusted(tmp_path_factory):
    out = tmp_path_factory.mktemp("adjusted") / "run"
    options = {"method": "fisher", "features": 2, "cv": 3, "permutations": 19, "metric": "auc"}
    frame = messy()
    file = out.parent / "patients.csv"
    frame.to_csv(file, index=False)
    result = zeronorm.select(
        file, "ill", adjust="age,stage,same", ignore=["score", "centre"], out=out, save_model=True, **options
    )
    return result, out, frame


def test_result_is_about_what_the_features_add(adjusted):
    result, *_ = adjusted
    added = result.procedure["added"]
    assert sorted(result.features) == ["gene7", "gene8"]
    assert result.data["n_features"] == P
    assert added["covariates"] == ["age", "stage", "same"]
    assert added["n_columns"] == 5
    assert added["both"] > added["features_alone"] - 0.1
    assert added["both"] == pytest.approx(result.procedure["value"])
    assert added["difference"] == pytest.approx(added["both"] - added["covariates_alone"])
    assert added["low"] <= added["difference"] <= added["high"]
    assert result.headline.startswith("2 features add to age, stage and same: area under the ROC curve 0.")
    assert result.headline.endswith(", p = 0.05")
    assert "alone" in repr(result)
    assert any("logistic regression on the covariates" in note for note in result.notes)


def test_covariates_alone_are_a_model_of_their_columns(adjusted):
    """The same folds, columns and predictor, put together by hand."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler

    result, _, frame = adjusted
    columns = result.records.to_dict(as_series=False)
    stage = (frame["stage"].to_numpy()[:, None] == ["I", "II", "III"]).astype(float)
    areas = []
    for size, rows in zip(columns["size"], columns["test_rows"], strict=True):
        if size is not None:
            continue
        train = np.setdiff1d(np.arange(N), rows)
        age = frame["age"].to_numpy(copy=True)
        age[np.isnan(age)] = np.nanmedian(age[train])
        Z = np.column_stack([age, stage, np.full(N, 5.0)])
        ill = (frame["ill"] == "yes").to_numpy()
        scaler = StandardScaler().fit(Z[train])
        model = LogisticRegression(C=1e5, tol=1e-8).fit(scaler.transform(Z[train]), ill[train])
        areas.append(roc_auc_score(ill[rows], model.decision_function(scaler.transform(Z[rows]))))
    assert result.procedure["added"]["covariates_alone"] == pytest.approx(np.mean(areas), abs=1e-3)


def test_files_and_model_hold_the_covariates(adjusted):
    result, out, frame = adjusted
    content = json.loads((out / "result.json").read_text())
    assert content["procedure"]["added"]["covariates"] == ["age", "stage", "same"]
    assert type(result).load(out).headline == result.headline
    page = (out / "report.html").read_text()
    assert "What the features add to age, stage and same" in page
    listed = (out / "selected.csv").read_text()
    assert "gene7" in listed
    assert "stage" not in listed
    assert result.model.features == [*result.features, "age", "stage=I", "stage=II", "stage=III", "same"]
    predicted = zeronorm.apply(out, frame.drop(columns="ill"))
    assert np.mean(np.asarray(predicted.samples["prediction"]) == frame["ill"]) > 0.8
    with pytest.raises(ValueError, match="age"):
        zeronorm.apply(out, frame.drop(columns=["ill", "age"]))


def test_nothing_is_claimed_where_features_only_follow_the_covariates():
    frame = messy(effect=0.0, seed=3)[["age", "stage", "score", *(f"gene{k}" for k in range(5))]]
    options = {"method": "lasso", "features": 2, "cv": 3, "permutations": 19}
    alone = zeronorm.select(frame, "score", ignore=["age", "stage"], **options)
    assert alone.procedure["beats_chance"]
    beside = zeronorm.select(frame, "score", adjust=["age", "stage"], **options)
    assert not beside.procedure["beats_chance"]
    assert beside.headline == "No evidence that these 2 features add anything to age and stage"
    assert any("Use the covariates alone" in warning for warning in beside.warnings)


def test_without_permutations_the_interval_decides():
    result = zeronorm.select(
        messy(effect=3.0),
        "score",
        adjust="age",
        ignore=["ill"],
        method="fisher",
        features=2,
        cv=3,
        permutations=0,
    )
    added = result.procedure["added"]
    assert result.procedure["beats_chance"] == (added["high"] < 0.0)
    assert "p =" not in result.headline


def test_column_of_groups_can_be_a_covariate():
    """Its numbers are codes of categories then, and labels are permuted within the groups."""
    frame = messy()
    result = zeronorm.select(
        frame, "ill", adjust=["centre", "age"], sample_groups="centre", ignore=["score", "stage"],
        method="fisher", features=2, cv=3, permutations=3,
    )  # fmt: skip
    assert result.procedure["added"]["n_columns"] == 8
    assert result.data["sample_groups"] == 7
    assert any("the labels within each sample group" in note for note in result.notes)


@pytest.mark.parametrize("method", ["auto", "probe-selector", "stability-selection", "rfe"])
def test_methods_get_the_covariates(method):
    frame = messy(effect=3.0)[["age", "ill", *(f"gene{k}" for k in range(4, 9))]]
    result = zeronorm.select(frame, "ill", adjust="age", method=method, cv=2, permutations=0)
    assert set(result.features) <= {f"gene{k}" for k in range(4, 9)}
    assert {"gene7", "gene8"} & set(result.features)


def test_comparison_beside_covariates():
    frame = messy(effect=3.0)[["age", "ill", *(f"gene{k}" for k in range(4, 9))]]
    result = zeronorm.compare(frame, "ill", adjust="age", methods=["fisher", "lasso"], features=2, cv=3)
    assert [row["method"] for row in result.table] == ["fisher", "lasso", "random", "baseline"]


@pytest.mark.parametrize(
    ("options", "message"),
    {
        "method": ({"method": "relief"}, "'relief', which has no adjust. Choose another method: .*fisher"),
        "control": ({"control": "fdr"}, "does not apply together with"),
        "dummies": ({"method": "dummy-selector"}, "does not apply to the method 'dummy-selector'"),
        "unknown": ({"adjust": "agee"}, "Did you mean 'age'"),
        "target": ({"adjust": "ill"}, "names 'ill', which is the target"),
        "ignored": ({"adjust": "stage", "ignore": "stage"}, "names 'stage', which is the target or a column"),
        "kept": ({"adjust": "age", "keep": "age"}, "'age'"),
        "all": ({"adjust": "gene*,age,stage,centre,same,score"}, "No feature is left"),
    }.values(),
)
def test_errors(options, message):
    with pytest.raises((OptionError, ValueError), match=message):
        zeronorm.select(messy(), "ill", **{"adjust": "age", "cv": 3, "permutations": 0, **options})


def test_comparison_makes_no_permutations():
    with pytest.raises(OptionError, match="select tests what the features"):
        zeronorm.compare(messy(), "ill", adjust="age", cv=3, permutations=3)


def test_more_covariates_than_samples():
    rng = np.random.default_rng(0)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.normal(size=(24, 40)), columns=[f"c{k}" for k in range(40)])
    frame["y"] = np.tile(["a", "b"], 12)
    with pytest.raises(ValueError, match="explain any target"):
        zeronorm.select(frame, "y", adjust="c1*,c2*,c3*", method="fisher", features=2, cv=3)


# -- Targets in which features add nothing --


def test_labels_are_permuted_with_the_probability_of_the_model():
    """Against all orders of few labels, whose probabilities are known."""
    z = np.array([-1.5, -0.5, 0.2, 0.7, 1.9])
    y = np.array([0, 1, 0, 1, 1])
    covariates = Covariates(z[:, None])
    targets = ConditionalTargets.of(Binary.of(y), covariates, np.random.default_rng(0))
    log_q = np.log(CovariateModel.fit(covariates, y, 2).all_probabilities)
    orders = sorted(set(permutations(y.tolist())))
    weight = np.exp([sum(log_q[i, label] for i, label in enumerate(one)) for one in orders])
    rng = np.random.default_rng(1)
    draws = [tuple(targets.draw(rng).values.tolist()) for _ in range(400)]
    share = np.array([draws.count(one) for one in orders]) / len(draws)
    np.testing.assert_allclose(share, weight / weight.sum(), atol=0.08)


def test_residuals_of_a_real_target_are_permuted():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3))
    y = Z @ [1.0, -2.0, 0.0] + rng.normal(size=40) + 100.0
    drawn = ConditionalTargets.of(Real.of(y), Covariates(Z), rng).draw(rng).values
    full = np.column_stack([np.ones(40), Z])
    fit = full @ np.linalg.lstsq(full, y, rcond=None)[0]
    np.testing.assert_allclose(np.sort(drawn - fit), np.sort(y - fit), atol=1e-9)
    assert not np.allclose(drawn, y)


@pytest.mark.parametrize("design", ["block", "between"])
def test_sample_groups_restrict_what_is_permuted(design):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 3)
    y = (rng.random(36) < 0.5).astype(int) if design == "block" else np.repeat(np.arange(12) % 2, 3)
    targets = ConditionalTargets.of(Binary.of(y), Covariates(rng.normal(size=(36, 2))), rng, groups, design)
    for _ in range(5):
        drawn = targets.draw(rng).values
        assert drawn.sum() == y.sum()
        by_group = drawn.reshape(12, 3)
        if design == "block":
            np.testing.assert_array_equal(by_group.sum(axis=1), y.reshape(12, 3).sum(axis=1))
        else:
            assert (by_group == by_group[:, :1]).all()


def test_claims_of_the_simulation_on_trust():
    """A reduced run of docs/trust/added_value.py: hardly any claim without an effect, and claims with one."""
    file = Path(__file__).parents[2] / "docs" / "trust" / "added_value.py"
    spec = importlib.util.spec_from_file_location("trust_added_value", file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trust_added_value"] = module
    spec.loader.exec_module(module)
    nothing = [module.claims(module.Setting("regression", 80, 2), seed) for seed in range(4)]
    strong = [module.claims(module.Setting("regression", 80, 2, effect=1.5), seed) for seed in range(1)]
    assert sum(one["claim"] for one in nothing) <= 1
    assert all(one["claim"] for one in strong)
