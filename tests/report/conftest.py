"""Small results and records that the report tests share."""

from __future__ import annotations

import numpy as np
import pytest

from report.made_records import made_records
from zeronorm.datasets import TableOptions, build_table
from zeronorm.datasets.raw import RawTable
from zeronorm.report.html import facts_of
from zeronorm.workflow.comparing import run_comparison
from zeronorm.workflow.procedures import Wishes
from zeronorm.workflow.provenance import Clock
from zeronorm.workflow.selection import run_selection

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
    wishes = Wishes(features=12, cv=3, keep=tuple(STRANGE_NAMES))
    return run_selection(make_table(names, n_samples=40), "fisher", wishes, (), Clock(), None)


@pytest.fixture(scope="session")
def regression_selection():
    """Result and records of a regression."""
    table = make_table([f"g{i}" for i in range(15)], task="regression")
    return run_selection(table, "lasso", Wishes(cv=3), (), Clock(), "ab" * 32)


@pytest.fixture(scope="session")
def comparison():
    """Result and records of a comparison of three methods."""
    table = make_table([f"g{i}" for i in range(25)])
    return run_comparison(table, "fisher,random,lasso", Wishes(cv=4), Clock(), None)


@pytest.fixture(scope="session")
def ten_methods():
    """Result and records of ten methods with close curves."""
    rng = np.random.default_rng(0)
    values = {f"method-{chr(97 + i)}": tuple(rng.uniform(0.05, 0.3, size=5)) for i in range(10)}
    facts = facts_of(
        made_records("balanced_error_rate", values, sizes=(1, 2, 4, 8, 16, None)), n_features=100
    )
    return facts.result, facts.records
