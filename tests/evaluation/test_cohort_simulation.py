"""Simulated cohorts, a small part of docs/trust/cohort.py: verdicts, intervals and probabilities."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "trust" / "cohort.py"
N_SETS = 10


@pytest.fixture(scope="module")
def drawn():
    spec = importlib.util.spec_from_file_location("cohort", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["cohort"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    module.MANY, module.WEAKER = 1000, 0.2
    classes = module.Setting("two classes", 100, 100, 20, 1.0)
    numbers = module.Setting("number", 100, 100, 20, 0.6)
    return module.tables([classes, numbers], N_SETS, seed=5)


def test_cohorts_of_the_same_kind_are_rarely_called_worse(drawn):
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / N_SETS)
    assert {row["metric"] for row in drawn[0]} == {
        "error_rate",
        "balanced_error_rate",
        "auc",
        "mse",
        "mae",
        "r2",
    }
    for row in drawn[0]:
        assert row["called worse"] <= most, row
        assert row["interval of the new samples covers"] >= 1 - most, row


def test_cohorts_with_much_weaker_effects_are_called_worse(drawn):
    for row in drawn[0]:
        if row["metric"] in ("balanced_error_rate", "auc", "r2"):
            assert row["weaker effects called worse"] >= 0.8, row


def test_probabilities_of_new_samples_are_near_the_shares(drawn):
    classes, numbers = drawn[1]
    assert classes["mean gap of share and probability"] < 0.08  # a gap of more is visible in the chart
    assert 0.8 < classes["median slope"] < 1.6
    assert abs(classes["median intercept"]) < 0.3
    assert 0.9 < numbers["median slope"] < 1.1
