"""Small results and records that the report tests share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from report.made_records import made_records
from zeronorm.datasets import TableOptions, build_table
from zeronorm.datasets._raw import RawTable
from zeronorm.report._html import report_data_of
from zeronorm.workflow._run import compare, select

STRANGE_NAMES = [
    "<script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked=2">',
    'it\'s "quoted" & {{ 7*7 }}',
    "two\nlines\tand\ta tab",
    "x" * 10_000,
    "\u202eright to left עברית",
    "=1+1",
    "</script><b>bold</b>",
    "same",
    "same",
]


def make_table(names, n_samples=60, task="classification", seed=0):
    """A table in which the first columns carry the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, len(names)))
    signal = X[:, :3].sum(axis=1)
    y = (
        np.where(signal > 0, "yes <b>", "no")
        if task == "classification"
        else signal + 0.1 * rng.normal(size=n_samples)
    )
    raw = RawTable.from_matrix(X, list(names), targets={"y": y}, default_target="y")
    return build_table(raw, TableOptions(task=task), source='folder/"data" <1>.csv')


@pytest.fixture(scope="session")
def strange_selection():
    """Result and records of a selection in which every name is hostile."""
    names = STRANGE_NAMES + [f"g{i}" for i in range(10)]
    table = make_table(names, n_samples=40)
    result = select(table, method="fisher", features=12, cv=3, keep=STRANGE_NAMES, permutations=0)
    return result, result.records


@pytest.fixture(scope="session")
def what_next(strange_selection):
    """The same, from the command line: such a report ends with commands."""
    result, records = strange_selection
    command = "zeronorm select 'my data.csv' -t y"
    return replace(result, provenance={**result.provenance, "command": command}), records


@pytest.fixture(scope="session")
def regression_selection():
    """Result and records of a regression."""
    table = make_table([f"g{i}" for i in range(15)], task="regression")
    result = select(table, method="lasso", cv=3, permutations=0)
    return result, result.records


@pytest.fixture(scope="session")
def comparison():
    """Result and records of a comparison of three methods."""
    table = make_table([f"g{i}" for i in range(25)])
    result = compare(table, methods="fisher,random,lasso", cv=4)
    return result, result.records


@pytest.fixture(scope="session")
def ten_methods():
    """Result and records of ten methods with close curves."""
    rng = np.random.default_rng(0)
    values = {f"method-{chr(97 + i)}": tuple(rng.uniform(0.05, 0.3, size=5)) for i in range(10)}
    report_data = report_data_of(
        made_records("balanced_error_rate", values, sizes=(1, 2, 4, 8, 16, None)), n_features=100
    )
    return report_data.result, report_data.records
