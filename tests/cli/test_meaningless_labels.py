"""On random labels the command line reports chance, and the same test detects a leak."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from zeronorm import FisherScore
from zeronorm.cli._main import run
from zeronorm.registry import all_methods

N_SAMPLES, N_FEATURES, SEEDS = 60, 400, (0, 1, 2)
# Four standard errors of an error rate of one half over all predictions.
MARGIN = 4 * np.sqrt(0.25 / (N_SAMPLES * len(SEEDS)))
BINARY = [m.name for m in all_methods("selector") if "binary" in m.tasks]


def meaningless(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N_SAMPLES, N_FEATURES)), rng.permutation(np.arange(N_SAMPLES) % 2)


def reported_error(folder, method, X, y):
    folder.mkdir()
    frame = pl.DataFrame(
        {f"x{k}": X[:, k] for k in range(X.shape[1])} | {"label": np.where(y == 1, "a", "b")}
    )
    frame.write_csv(folder / "data.csv")
    command = ["select", str(folder / "data.csv"), "--target", "label", "--method", method, "--features", "5"]
    assert (
        run([*command, "--cv", "5", "--jobs", "1", "--permutations", "0", "-q", "--out", str(folder / "out")])
        == 0
    )
    records = pl.read_parquet(folder / "out" / "records.parquet").filter(pl.col("n_selected") == 5)
    return float((records["error_rate"] * records["n_test"]).sum() / records["n_test"].sum())


def mean_error(tmp_path, method):
    return np.mean([reported_error(tmp_path / str(seed), method, *meaningless(seed)) for seed in SEEDS])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["fisher", "rfe", "zeronorm-svm"])
def test_meaningless_labels_give_chance(tmp_path, method):
    assert abs(mean_error(tmp_path, method) - 0.5) < MARGIN


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", BINARY)
def test_meaningless_labels_give_chance_with_every_method(tmp_path, method):
    assert abs(mean_error(tmp_path, method) - 0.5) < MARGIN


@pytest.mark.filterwarnings("ignore")
def test_selection_before_the_command_is_caught(tmp_path):
    errors = []
    for seed in SEEDS:
        X, y = meaningless(seed)
        chosen = FisherScore(8).fit(X, y).transform(X)
        errors.append(reported_error(tmp_path / str(seed), "fisher", chosen, y))
    assert np.mean(errors) < 0.5 - MARGIN
