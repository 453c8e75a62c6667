"""Models recognise the samples that they were selected on, and keep none of their values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import zeronorm
from zeronorm.result._models import LinearModel
from zeronorm.result._seen import DIGITS, MOST_SAMPLES, SeenSamples


def frame_of(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 6)) + 1.2 * y[:, None]
    return pd.DataFrame(X, columns=[f"g{i}" for i in range(6)]).assign(kind=np.where(y == 1, "ill", "well"))


@pytest.fixture(scope="module")
def selected():
    frame = frame_of(60, 0)
    frame.loc[3, "g0"] = np.nan  # filled with the median on both sides
    options = {"method": "fisher", "features": 3, "max_features": 3, "permutations": 0, "cv": 3}
    return frame, zeronorm.select(frame, "kind", **options)


def test_the_same_samples_are_recognised_in_any_order(selected, tmp_path):
    frame, result = selected
    result.model.save(tmp_path / "model.json")
    shuffled = frame.sample(frac=1.0, random_state=0)
    cohort = zeronorm.apply(LinearModel.load(tmp_path / "model.json"), shuffled, "kind")
    assert "These are the samples that the model was selected on" in cohort.warnings[0]
    assert {score["verdict"] for score in cohort.scores} == {"seen"}
    assert "compatible" not in repr(cohort) + cohort.headline
    assert "on 60 samples" in cohort.headline
    page = cohort.report(tmp_path).read_text()
    assert "The model was selected on these samples" in page


def test_some_known_samples_are_predicted_but_not_scored(selected):
    frame, result = selected
    new = frame_of(50, 1)
    both = pd.concat([frame.iloc[:10], new], ignore_index=True)
    cohort = zeronorm.apply(result.model, both, "kind")
    alone = zeronorm.apply(result.model, new, "kind")
    assert cohort.scores == alone.scores
    assert cohort.data["n_seen"], cohort.data["n_scored"] == (10, 50)
    assert cohort.samples["seen"] == [True] * 10 + [False] * 50
    assert "10 of 60 samples are among those that the model was selected on" in cohort.warnings[0]
    assert alone.warnings == []
    assert "seen" not in alone.samples
    assert (
        zeronorm.apply(result.model, both.drop(columns="kind")).warnings[0].endswith("have the same values).")
    )


def test_the_file_keeps_hashes_and_no_values(selected):
    frame, result = selected
    seen = result.model.seen
    assert len(seen.hashes) == 60 * 10
    values = frame[result.features].to_numpy()
    other = SeenSamples.of(np.where(np.arange(60)[:, None] == 0, values[::-1], values + 0.1))
    assert other.key != seen.key  # the key depends on the data
    again = SeenSamples.of(np.nan_to_num(values))
    assert SeenSamples.of(np.nan_to_num(values)) == again


def test_equal_values_of_few_categories_mean_nothing():
    rng = np.random.default_rng(0)
    assert SeenSamples.of(rng.integers(0, 3, size=(80, 3)).astype(float)) is None


def test_values_written_with_fewer_digits_and_other_scales():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4)) * [1e-12, 1.0, 1e9, 1.0]
    X[0] = [0.0, -0.0, 1.0, 10.0]
    found = SeenSamples.of(X)
    rewritten = np.asarray([[float(f"{value:.9g}") for value in row] for row in X])
    assert found.among(rewritten).mean() > 0.99
    assert found.among(X.astype(np.float32).astype(float)).mean() > 0.95
    assert not found.among(X * (1 + 2 * 10.0 ** (1 - DIGITS))).any()
    assert not found.among(rng.normal(size=(500, 4))).any()


def test_many_samples_are_represented_by_evenly_spaced_ones():
    X = np.random.default_rng(2).normal(size=(2 * MOST_SAMPLES, 2))
    found = SeenSamples.of(X)
    assert len(found.hashes) == 10 * MOST_SAMPLES
    assert found.among(X).sum() == MOST_SAMPLES
