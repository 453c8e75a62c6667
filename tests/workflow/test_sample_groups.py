"""Runs on dependent samples: several samples of each patient."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm.workflow import _chance as chance
from zeronorm.workflow._options import Settings

from .conftest import table_of

FIXED = {"method": "fisher", "features": 1, "permutations": 19}


def patients(seed=0, *, signal=0.0, n_patients=16, n_each=3, n_features=10, own=0.3):
    """Features that are mostly properties of the patient, and one diagnosis per patient; the first may depend on it."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_patients), n_each)
    y = rng.permutation(np.arange(n_patients) % 2)[groups]
    X = rng.normal(size=(n_patients, n_features))[groups] + own * rng.normal(size=(len(y), n_features))
    X[:, 0] += signal * y
    return X, y, groups


def test_one_flipped_label_leaves_the_p_value():
    X, y, groups = patients(signal=8.0)
    y[4] = 1 - y[4]
    result = zeronorm.select(X, y, sample_groups=groups, **FIXED)
    assert result.procedure["value"] < 0.05
    assert result.procedure["p_value"] == pytest.approx(0.05)
    assert "No evidence" not in result.headline
    assert any("label patterns of whole sample groups" in note for note in result.notes)


def test_paired_samples_are_permuted_within_patients_by_name():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 2)
    y = np.tile([0, 1], 12)
    X = 5 * rng.normal(size=(12, 4))[groups] + rng.normal(size=(24, 4))
    X[:, 0] += 40.0 * y
    for design in ("auto", "block"):
        result = zeronorm.select(X, y, sample_groups=groups, group_design=design, **FIXED)
        assert result.procedure["p_value"] == pytest.approx(0.05)
        assert any("the labels within each sample group" in note for note in result.notes)
    none = zeronorm.select(X, y, sample_groups=groups, group_design="between", **FIXED)
    assert none.procedure["p_value"] is None
    assert any("there is no permutation test" in note for note in none.notes)


def test_few_groups_say_the_smallest_p_value():
    X, y, groups = patients(signal=20.0, n_patients=4, n_each=8)
    result = zeronorm.select(X, y, sample_groups=groups, cv=2, **FIXED)
    found = result.procedure
    assert (found["n_permutations"], found["smallest_p_value"]) == (5, pytest.approx(1 / 3))
    assert found["beats_chance"] is None
    assert result.headline.endswith("needs more sample groups")
    assert any("no p-value can be below 0.33" in note for note in result.notes)
    assert any("allow only 6 different targets" in warning for warning in result.warnings)


def test_the_smallest_p_value_is_shown_before_the_permutations_run(monkeypatch):
    X, y, groups = patients(n_patients=4, n_each=8)

    class Bar:
        stage = ""

    def evaluate(*_, bar, **__):
        stages.append(bar.stage)
        raise KeyboardInterrupt

    stages: list[str] = []
    monkeypatch.setattr(chance.training, "evaluate_procedures", evaluate)
    with pytest.raises(KeyboardInterrupt):
        chance.permutation_test(
            "fisher", None, table_of(X, y, sample_groups=groups), Settings(), 0.1, 19, bar=Bar()
        )
    assert stages == ["permutation 1 of 5 (smallest possible p = 0.33)"]


def test_permuted_targets_are_all_different():
    X, y, groups = patients(n_patients=6)
    table = table_of(X, y, sample_groups=groups)
    found = {tuple(one) for one in chance.permuted_targets(table, Settings(), 19)}
    assert len(found) == 19
    assert tuple(y) not in found


def p_values(n_sets, **settings):
    found = []
    for seed in range(n_sets):
        X, y, groups = patients(100 + seed, n_patients=12)
        y[0] = 1 - y[0]
        result = zeronorm.select(X, y, sample_groups=groups, cv=3, **(FIXED | settings))
        found.append(result.procedure["p_value"])
    return np.array(found)


def test_the_p_value_holds_its_level_on_null_patients():
    found = p_values(20, permutations=9)
    for level in (0.1, 0.2, 0.5):  # up to four standard errors
        share = np.mean(found <= level + 1e-12)
        assert share <= level + 4 * np.sqrt(level * (1 - level) / len(found))


@pytest.mark.slow
def test_the_p_value_holds_its_level_on_many_null_patients():
    found = p_values(200)
    for level in (0.05, 0.1, 0.2, 0.5):
        share = np.mean(found <= level + 1e-12)
        assert share <= level + 3 * np.sqrt(level * (1 - level) / len(found))


def claims(n_sets, signal, **settings):
    """The number of headlines that claim prediction."""
    count = 0
    for seed in range(n_sets):
        X, y, groups = patients(seed, signal=signal)
        result = zeronorm.select(X, y, sample_groups=groups, **(FIXED | settings))
        count += " predict" in result.headline and "No evidence" not in result.headline
    return count


def test_no_headline_on_null_patients_claims_prediction_and_nearly_all_strong_ones_do():
    assert claims(8, 0.0) == 0
    assert claims(8, 6.0) >= 7


@pytest.mark.slow
def test_headlines_of_twenty_null_and_twenty_strong_data_sets():
    assert claims(20, 0.0) == 0
    assert claims(20, 6.0) >= 19
