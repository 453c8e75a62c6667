"""Small files for the command line."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pytest

from zeronorm.cli._main import run

QUICK = ["--method", "fisher", "--cv", "3", "--permutations", "0"]
PROGRAM = [sys.executable, "-m", "zeronorm.cli._main"]


def write_csv(file, names, rows):
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(rows)
    return file


def small_rows(n_samples=40, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)).round(4)
    labels = np.where(X[:, 0] - X[:, 1] > 0, "up", "down")
    return [[*row, label] for row, label in zip(X.tolist(), labels.tolist(), strict=True)]


@pytest.fixture
def data_file(tmp_path):
    """40 samples, 12 features, of which two carry the label."""
    return write_csv(tmp_path / "data.csv", [*(f"g{i}" for i in range(12)), "label"], small_rows())


def select(data_file, out, *more):
    return run(["select", str(data_file), "--target", "label", "--out", str(out), *QUICK, *more])


def selected_names(folder):
    with (folder / "selected.csv").open(encoding="utf-8", newline="") as stream:
        return [row["name"] for row in csv.DictReader(stream)]


def shell(*arguments, cwd, **options):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        **options,
    )
