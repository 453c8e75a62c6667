"""Every field of a result, recomputed from the data and the records."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest
from scipy import stats

import zeronorm
from zeronorm.registry import get_method
from zeronorm.selection.target import Labels

from .conftest import state_of_patients

N_SAMPLES, N_FEATURES = 36, 7


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    X, y = state_of_patients()
    columns = {
        "sample": [f"s{i}" for i in range(N_SAMPLES)],
        "patient": [f"p{i // 2}" for i in range(N_SAMPLES)],
    }
    file = tmp_path_factory.mktemp("whole") / "data.csv"
    pl.DataFrame({**columns, **{f"g{j}": X[:, j] for j in range(N_FEATURES)}, "state": y}).write_csv(file)
    return file


@pytest.fixture(scope="module")
def selection(file):
    return zeronorm.select(
        file, "state", method="rfe", params={"C": 0.5}, features=2, cv=3, repeats=2, permutations=2,
        sample_groups="patient", id="sample", random_state=3, metric="error_rate",
    )  # fmt: skip


# -- A selection --


def test_what_was_run(selection, file):
    assert selection.kind == "selection"
    assert selection.chosen_method == "rfe"
    assert selection.data == {
        "source": str(file),
        "target": "state",
        "task": "classification",
        "n_samples": N_SAMPLES,
        "n_features": N_FEATURES,
        "class_counts": {"sick": 18, "well": 18},
        "sample_groups": 18,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    info = get_method("rfe")
    assert selection.methods == [
        {
            "name": "rfe",
            "label": "rfe",
            "class": "RFE",
            "reference": info.reference,
            "summary": info.summary,
            "parameters": {"C": 0.5, "n_features_to_select": 2},
        }
    ]
    assert selection.size == {
        "chosen": 2,
        "rule": "was set in advance",
        "tried": [1, 2, 3, 4, 5, 6, 7],
        "at_largest": False,
    }
    assert selection.choice == {"method": "rfe", **selection.size}
    origin = selection.provenance
    assert (origin["seed"], origin["folds"], origin["repeats"], origin["seeds"]) == (3, 3, 2, {})
    assert origin["version"] == zeronorm.__version__
    assert origin["packages"]["numpy"] == np.__version__
    assert origin["command"].startswith("zeronorm.select(data='")
    assert origin["command"].endswith(
        "target='state', method='rfe', features=2, params={'C': 0.5}, metric='error_rate', cv=3, repeats=2, "
        "permutations=2, id='sample', sample_groups='patient', random_state=3)"
    )


def test_what_was_measured(selection):
    own = selection.records.filter(pl.col("size").is_null())
    errors = [np.mean(np.asarray(row["truth"]) != np.asarray(row["predictions"])) for row in own.to_dicts()]
    found = selection.procedure
    assert found["value"] == pytest.approx(np.mean(errors))
    assert found["low"] < found["value"] < found["high"]
    assert found["n_splits"] == len(errors) == 6
    assert found["sizes"] == [2] * 6
    assert found["chance"] == selection.chance == 0.5
    assert found["seconds"] == pytest.approx(own["fit_seconds"].mean())
    assert (found["method"], found["metric"], found["label"]) == ("rfe", "error_rate", "error rate")
    assert (found["greater_is_better"], found["also"], found["failed"]) == (False, {}, [])
    assert (found["n_permutations"], len(found["permutation_values"])) == (2, 2)
    assert found["p_value"] == pytest.approx(1 / 3)
    sets = np.asarray(
        [[index in row["selected"] for index in range(7)] for row in own.to_dicts()], dtype=float
    )
    share, k = sets.mean(axis=0), 2.0  # stability of Nogueira et al.
    scale = (6 / 5 * share * (1 - share)).mean() / (k / 7 * (1 - k / 7))
    assert found["stability"]["value"] == pytest.approx(1.0 - scale)
    assert found["stability"]["low"] < found["stability"]["value"] < found["stability"]["high"]
    for row in own.to_dicts():  # both samples of a patient in the same fold
        assert sorted(i // 2 for i in row["test_rows"]) == sorted(
            2 * list({i // 2 for i in row["test_rows"]})
        )


def test_each_selected_feature(selection):
    X, y = state_of_patients()
    own = selection.records.filter(pl.col("size").is_null())["selected"].to_list()
    reference = zeronorm.RFE(n_features_to_select=2, C=0.5).fit(X, y)
    scores = reference.path_.feature_scores()
    assert {feature.index for feature in selection.selected} == set(np.flatnonzero(reference.support_))
    p_values = stats.ttest_ind(X[y == "well"], X[y == "sick"], equal_var=False).pvalue
    q_values = stats.false_discovery_control(p_values)
    weights = zeronorm.resampling.predictors._default.default_estimator(Labels, n_samples=36)
    columns = [feature.index for feature in selection.selected]
    coefficients = weights.fit(X[:, columns], y).coef_[0]
    for position, feature in enumerate(selection.selected):
        k = feature.index
        sick, well = X[y == "sick", k], X[y == "well", k]
        assert (feature.rank, feature.name, feature.column) == (position + 1, f"g{k}", k + 2)
        assert feature.score == pytest.approx(scores[k])
        assert (feature.mean, feature.scale) == pytest.approx((X[:, k].mean(), X[:, k].std()))
        assert feature.frequency == pytest.approx(np.mean([k in chosen for chosen in own]))
        assert feature.class_means == pytest.approx({"sick": sick.mean(), "well": well.mean()})
        assert feature.direction == f"higher in {'sick' if sick.mean() > well.mean() else 'well'}"
        pooled = np.sqrt((sick.var(ddof=1) + well.var(ddof=1)) / 2)
        assert feature.effect == pytest.approx((well.mean() - sick.mean()) / pooled)
        assert feature.effect_kind == "cohens_d"
        assert feature.fold_change == pytest.approx(well.mean() / sick.mean())
        assert (feature.p_value, feature.q_value) == pytest.approx((p_values[k], q_values[k]))
        assert feature.coefficient == pytest.approx(coefficients[position], rel=1e-3)
    order = [feature.index for feature in selection.selected]
    assert order == [k for k in reference.path_.order if k in order]
    assert selection.names == {k: f"g{k}" for k in range(N_FEATURES)}


def test_what_is_said_about_a_selection(selection):
    assert [note[:30] for note in selection.notes] == [
        "The target 'state' holds text,",
        "Permutations exchange the labe",
        "The p_value and q_value of a f",
    ]
    assert [text[:25] for text in selection.warnings] == [
        "There are few samples (36",
        "Whether the features pred",
    ]


# -- A comparison --


@pytest.fixture(scope="module")
def comparison(file):
    return zeronorm.compare(
        file, "state", methods="fisher,rfe", params={"rfe": {"C": 0.5}}, max_features=4, rule="all", cv=3,
        permutations=2, id="sample", ignore=["patient", "g6"], random_state=3,
    )  # fmt: skip


def test_what_was_compared(comparison, file):
    assert comparison.kind == "comparison"
    assert comparison.chosen_method is None
    assert comparison.data["sample_groups"] is None
    assert comparison.data["n_features"] == 6
    assert [method["name"] for method in comparison.methods] == ["fisher", "rfe", "random"]
    assert [method["class"] for method in comparison.methods] == ["FisherScore", "RFE", "RandomSelector"]
    assert [method["parameters"] for method in comparison.methods] == [{}, {"C": 0.5}, {}]
    assert comparison.size == {
        "chosen": None,
        "rule": "is the one with the best smoothed score on inner cross-validation",
        "tried": [1, 2, 3, 4],
    }
    assert comparison.names == {k: f"g{k}" for k in range(6)}
    origin = comparison.provenance
    assert (origin["seed"], origin["folds"], origin["repeats"]) == (3, 3, 1)
    assert [len(origin["seeds"][name]["training parts"]) for name in ("fisher", "rfe", "random")] == [3, 3, 3]
    assert comparison.notes[0][:30] == "The target 'state' holds text,"
    assert any("not significantly better" in note for note in comparison.notes[1:])
    assert [text[:25] for text in comparison.warnings] == ["There are few samples (36"]


def test_each_row_of_a_comparison(comparison):
    assert [row["method"] for row in comparison.table] == ["fisher", "rfe", "random", "baseline"]
    for row in comparison.table[:3]:
        own = comparison.records.filter(pl.col("size").is_null(), pl.col("method") == row["method"])
        errors = []
        for fold in own.to_dicts():
            truth, predictions = np.asarray(fold["truth"]), np.asarray(fold["predictions"])
            errors.append(
                np.mean([np.mean(predictions[truth == label] != label) for label in ("sick", "well")])
            )
        assert row["value"] == pytest.approx(np.mean(errors))
        assert row["sizes"] == own["n_selected"].to_list()
        assert (row["n_permutations"], row["chance"], row["n_splits"]) == (2, 0.5, 3)
        as_good = sum(value <= row["value"] + 1e-9 for value in row["permutation_values"])
        assert row["p_value"] == pytest.approx((1 + as_good) / 3)
        assert row["also"] == pytest.approx({"error_rate": own["error_rate"].mean()})
    last = comparison.table[3]
    assert (last["value"], last["chance"], last["p_value"], last["sizes"]) == (0.5, 0.5, None, [0, 0, 0])
    assert (last["n_permutations"], last["permutation_values"]) == (0, None)
