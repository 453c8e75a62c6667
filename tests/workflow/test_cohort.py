"""A model on a second cohort: outcomes in other words, missing features, files, and what was promised."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import zeronorm
from zeronorm.result._models import LinearModel
from zeronorm.result._moments import Completion

FAST = {"method": "fisher", "features": 3, "cv": 3, "permutations": 0}


def frame_of(n, seed, labels=("healthy", "Tumour"), n_classes=2):
    """Three features that tell the classes apart, a copy with noise of the first one, and three without meaning."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, 7))
    X[np.arange(n), codes % 3] += 2.5
    X[:, 3] = X[:, 0] + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "near a", "u", "v", "w"])
    return frame.assign(state=[labels[code] for code in codes])


@pytest.fixture(scope="module")
def result():
    return zeronorm.select(frame_of(80, 0), "state", only=["a", "b", "c", "near a"], **FAST)


@pytest.fixture(scope="module")
def model(result):
    model = result.model
    assert "a" in model.features
    assert {"a", "b", "c", "near a"} == set(model.moments.features)
    return model


def scored(model, outcome, n=40, **options):
    frame = frame_of(n, 1)
    return zeronorm.apply(model, frame.assign(state=outcome(frame["state"])), "state", **options)


# -- What the model stores ----------------------------------------------------------------------------


def test_the_model_stores_what_the_selection_measured(result, tmp_path):
    found, expected = result.procedure, result.model.expected
    own = expected["metrics"][found["metric"]]
    assert (own["value"], own["low"], own["high"]) == pytest.approx(
        (found["value"], found["low"], found["high"])
    )
    assert expected["class_counts"] == [40, 40]
    result.save(tmp_path / "out", model=True)
    assert LinearModel.load(tmp_path / "out") == result.model


def test_files_of_the_first_version_can_be_read(model, tmp_path):
    model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    for name in ("probabilities", "expected", "moments"):
        del content[name]
    (tmp_path / "model.json").write_text(json.dumps(content | {"format_version": 1}))
    old = LinearModel.load(tmp_path / "model.json")
    assert old.features == model.features
    cohort = scored(old, lambda state: state)
    assert cohort.scores[0]["expected"] is None
    assert not any(name.startswith("probability") for name in cohort.samples)


@pytest.mark.parametrize(
    ("part", "change", "text"),
    [
        ("probabilities", {"slope": -1.0}, "at least 0"),
        ("probabilities", {"biases": [0.0]}, "one value for each of 2 classes"),
        ("moments", {"mean": [0.0]}, "lengths must be equal"),
        ("expected", {"n_samples": "many"}, "whole number"),
    ],
)
def test_a_damaged_model_is_refused(model, tmp_path, part, change, text):
    model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    content[part] |= change
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=text):
        LinearModel.load(tmp_path / "model.json")


def test_probabilities_do_not_come_from_training_decisions():
    """With irrelevant features the training samples are separated, but held-out samples are not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 300)), np.arange(40) % 2
    found = zeronorm.select(X, y, method="fisher", features=10, permutations=0)
    columns = [feature.index for feature in found.selected]
    assert np.mean(found.model.predict(X[:, columns]) == y) > 0.9
    assert found.model.predict_proba(X[:, columns]).max() < 0.9


def test_probabilities_of_more_classes_sum_to_one():
    frame = frame_of(90, 0, ("x", "y", "z"), 3)
    found = zeronorm.select(frame, "state", **FAST)
    cohort = zeronorm.apply(found, frame_of(60, 1, ("x", "y", "z"), 3), "state")
    columns = np.column_stack([cohort.samples[f"probability of {label}"] for label in "xyz"])
    np.testing.assert_allclose(columns.sum(axis=1), 1.0)
    assert cohort.calibration["slope"]["low"] < 1.3
    agree = np.asarray(list("xyz"))[columns.argmax(axis=1)] == np.asarray(cohort.samples["prediction"])
    assert agree.mean() > 0.9


# -- Outcomes of the new samples ----------------------------------------------------------------------


def test_labels_in_other_spellings_are_matched_with_a_note(model):
    exact = scored(model, lambda state: state)
    other = scored(model, lambda state: state.replace({"Tumour": " tumour "}))
    assert other.scores == exact.scores
    assert "taken as 'Tumour'" in other.notes[-1]


def test_a_class_that_the_model_does_not_know_is_an_error(model):
    with pytest.raises(ValueError, match=r"'tumor' \(20 samples\).*'tumor' for 'Tumour' another spelling"):
        scored(model, lambda state: state.replace({"Tumour": "tumor"}))


def test_samples_without_an_outcome_are_predicted_and_not_scored(model):
    cohort = scored(model, lambda state: state.where(np.arange(40) >= 10, None))
    whole = scored(model, lambda state: state)
    assert cohort.data["n_scored"] == 30
    assert cohort.samples["truth"][:10] == [None] * 10
    assert cohort.samples["wrong"][:10] == [None] * 10
    assert cohort.samples["prediction"] == whole.samples["prediction"]
    assert "10 samples without a value" in cohort.notes[-1]
    with pytest.raises(ValueError, match="no value in any of the 40"):
        scored(model, lambda state: state.where(np.zeros(40, dtype=bool), None))


def test_one_class_only_is_scored_by_its_error_rate(model):
    cohort = scored(model, lambda state: state.where(state == "healthy", None))
    assert [row["metric"] for row in cohort.scores] == ["error_rate"]
    assert "All scored samples are 'healthy'" in cohort.warnings[0]
    rates = {row["class"]: row for row in cohort.classes}
    assert rates["Tumour"]["sensitivity"] is None
    assert rates["healthy"]["specificity"] is None
    assert "intercept" in cohort.calibration


def test_whole_numbers_are_the_same_labels_as_their_texts(tmp_path):
    frame = frame_of(60, 0, (1, 2))
    found = zeronorm.select(frame, "state", **FAST)
    new = frame_of(40, 1, ("1", "2.0"))
    cohort = zeronorm.apply(found, new, "state")
    assert set(cohort.samples["truth"]) == {1, 2}
    assert cohort.data["n_scored"] == 40


def test_an_outcome_that_is_text_is_an_error_for_a_number():
    frame = frame_of(60, 0).assign(state=lambda f: f["a"] + f["b"])
    found = zeronorm.select(frame, "state", task="regression", **FAST)
    new = frame_of(40, 1).assign(size=lambda f: f["a"] + f["b"])
    cohort = zeronorm.apply(found, new, "size")
    assert [row["metric"] for row in cohort.scores] == ["mse", "mae", "r2"]
    assert cohort.calibration["slope"]["value"] == pytest.approx(1.0, abs=0.1)
    with pytest.raises(ValueError, match="holds text, such as 'healthy', but the model predicts a number"):
        zeronorm.apply(found, new, "state")


def test_unknown_columns_and_wrong_lengths_are_errors(model):
    frame = frame_of(20, 1)
    with pytest.raises(ValueError, match="Did you mean 'state'"):
        zeronorm.apply(model, frame, "stat")
    with pytest.raises(ValueError, match="each of the 20 samples"):
        zeronorm.apply(model, frame, ["healthy"] * 19)
    with pytest.raises(ValueError, match="'sample_groups' parameter names 'patient'"):
        zeronorm.apply(model, frame, "state", sample_groups="patient")
    with pytest.raises(ValueError, match="must be a model, a result"):
        zeronorm.apply(frame, frame)


def test_other_units_and_other_class_shares_are_warned_about(model):
    frame = frame_of(60, 1)
    cohort = zeronorm.apply(model, frame.assign(a=1000 * frame["a"] + 1e5), "state")
    assert "more than 3 standard deviations" in cohort.warnings[0]
    few = frame[(frame["state"] == "healthy") | (np.arange(60) < 10)]
    assert "The classes have other shares" in zeronorm.apply(model, few, "state").warnings[0]


# -- Missing features ---------------------------------------------------------------------------------


def test_the_error_says_what_a_refit_would_explain(model):
    with pytest.raises(
        ValueError, match=r"lack 1 of the 3 .*missing_features='refit' .*% of the variance of 'a'"
    ):
        zeronorm.apply(model, frame_of(20, 1).drop(columns="a"))


def test_a_refit_is_the_best_linear_prediction_of_the_score(model):
    """Against least squares on many samples with exactly the stored moments."""
    m = model.moments
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4000, len(m.features)))
    Z -= Z.mean(axis=0)
    Z = (
        np.linalg.solve(np.linalg.cholesky(Z.T @ Z / len(Z)), Z.T).T
        @ np.linalg.cholesky(np.asarray(m.correlation)).T
    )
    frame = pd.DataFrame(Z * m.scale + m.mean, columns=m.features)
    score = model.decision(frame[model.features])[:, 0]
    present = frame.drop(columns="a")
    design = np.column_stack([np.ones(len(Z)), present])
    best = design @ np.linalg.lstsq(design, score, rcond=None)[0]
    refit = zeronorm.apply(model, present, missing_features="refit")
    np.testing.assert_allclose(refit.samples["decision"], best, atol=1e-8)
    completion = Completion.of(m, model.features, list(present))
    lost = np.var(score - best)
    slope = model.probabilities["slope"]
    assert model.certainty_without(completion) == pytest.approx(
        1 / np.sqrt(1 + np.pi * slope**2 * lost / 8), rel=1e-6
    )


def test_a_refit_is_reported_and_loses_little(model):
    frame = frame_of(200, 1)
    whole = zeronorm.apply(model, frame, "state")
    refit = zeronorm.apply(model, frame.drop(columns="a"), "state", missing_features="refit")
    assert refit.refit["missing"] == ["a"]
    assert " expected with all features, " in refit.headline
    assert refit.refit["explained"][0] > 0.5
    assert "filled in from the other features" in " ".join(refit.notes)
    assert "refit is not known" in refit.warnings[0]
    assert refit.scores[0]["value"] < whole.scores[0]["value"] + 0.15


def test_a_refit_needs_correlations_and_some_feature(model):
    with pytest.raises(ValueError, match="keeps no correlations"):
        zeronorm.apply(
            replace(model, moments=None), frame_of(9, 1).drop(columns="a"), missing_features="refit"
        )
    with pytest.raises(ValueError, match="none of the features that could replace them"):
        zeronorm.apply(model, frame_of(9, 1)[["u", "v"]], missing_features="refit")
    with pytest.raises(ValueError, match="must be one of"):
        zeronorm.apply(model, frame_of(9, 1), missing_features="ignore")


def test_a_nonlinear_model_gives_no_probabilities_of_a_refit():
    found = zeronorm.select(frame_of(80, 0), "state", predictor="gaussian", **FAST)
    frame = frame_of(40, 1)
    assert "probability of healthy" in zeronorm.apply(found, frame).samples
    cohort = zeronorm.apply(found, frame.drop(columns=found.features[0]), "state", missing_features="refit")
    assert "probability of healthy" not in cohort.samples
    assert "gives no probabilities" in cohort.warnings[0]


# -- Files --------------------------------------------------------------------------------------------


def test_a_folder_holds_predictions_numbers_and_a_report(model, tmp_path):
    frame = frame_of(40, 1)
    frame.insert(0, "sample", [f"s{i}" for i in range(40)])
    frame.to_csv(tmp_path / "new.csv", index=False)
    cohort = zeronorm.apply(model, tmp_path / "new.csv", "state", out=tmp_path / "out")
    saved = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert list(saved.columns[:4]) == ["sample", "truth", "prediction", "wrong"]
    assert saved["sample"].tolist() == frame["sample"].tolist()
    content = json.loads((tmp_path / "out" / "cohort.json").read_text())
    assert content["scores"] == json.loads(json.dumps(cohort.scores))
    page = (tmp_path / "out" / "report.html").read_text()
    assert cohort.headline in page
    assert all(f'data-figure="{name}"' in page for name in ("calibration", "cohort-roc", "cohort-confusion"))
    assert '<link rel="stylesheet' not in page
    assert "://" not in page.replace("http://www.w3.org", "")
    with pytest.raises(ValueError, match="already holds results"):
        zeronorm.apply(model, tmp_path / "new.csv", "state", out=tmp_path / "out")


def test_names_of_features_and_labels_are_escaped(tmp_path):
    frame = frame_of(60, 0, ("<b>ill</b>", "well")).rename(columns={"a": "<script>"})
    found = zeronorm.select(frame, "state", **FAST)
    cohort = zeronorm.apply(found, frame, "state")
    page = cohort.report(tmp_path / "r.html").read_text()
    assert "<b>ill" not in page
    assert "&lt;b&gt;ill" in page
