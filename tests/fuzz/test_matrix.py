"""All selectors on all rows of the table: a right result or a clear refusal, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from fuzz.attempt import DEFECTS, attempt, instances
from fuzz.inputs import ROWS
from fuzz.runner import run_cases, table
from zeronorm import FisherScore

LIMIT_S = 60.0  # on a quiet machine the slowest case takes two seconds


def _report(outcomes):
    print(f"\n{len(outcomes)} cases: {table(outcomes)}")
    defects = [f"{case}: {kind}: {seen}" for case, kind, seen in outcomes if kind in DEFECTS]
    assert not defects, "\n".join(defects)


def test_the_table_is_wide_enough():
    assert len(ROWS) >= 80
    assert len({name.rpartition("-")[0] for name in instances()}) >= 45


def test_a_sample_of_the_matrix():
    """Each row once, with another selector; each selector at least twice."""
    selectors = np.resize(list(instances()), 2 * len(instances()))
    rows = np.resize(np.random.default_rng(21).permutation(list(ROWS)), selectors.size)
    cases = list(zip(selectors.tolist(), rows.tolist(), strict=True))
    assert selectors.size >= len(ROWS)
    _report(list(run_cases("fuzz.worker matrix", cases, LIMIT_S)))


@pytest.mark.slow
@pytest.mark.parametrize("selector", list(instances()))
def test_the_whole_matrix(selector):
    _report(list(run_cases("fuzz.worker matrix", [(selector, row) for row in ROWS], LIMIT_S)))


# -- the classification itself: what must count as a defect ---------------------------------------------


class Faulty(BaseEstimator):
    """A filter with a fault that the classification must find."""

    def __init__(self, fault=None):
        self.fault = fault

    def _task_name(self):
        return "classification"

    def fit(self, X, y):
        self.__dict__.update({k: v for k, v in vars(FisherScore(3).fit(X, y)).items() if k.endswith("_")})
        self.fault(self)
        return self


def _nan_scores(selector):
    selector.scores_ = np.full(selector.n_features_in_, np.nan)


def _repeated_order(selector):
    selector.path_ = SimpleNamespace(order=np.zeros(selector.n_features_in_, dtype=int))


def _other_support(selector):
    selector.support_ = ~selector.support_


def _raise(error):
    def fault(selector):
        raise error

    return fault


@pytest.mark.parametrize(
    ("fault", "row", "kind"),
    [
        (lambda s: None, "frame", "right"),
        (lambda s: None, "one infinity", "refused"),
        (lambda s: None, "size 0", "does not apply"),
        (lambda s: None, "y of floats", "right"),
        (_nan_scores, "frame", "wrong result"),
        (_repeated_order, "frame", "wrong result"),
        (_other_support, "frame", "wrong result"),
        (_raise(IndexError("index 3 is not there")), "frame", "foreign exception"),
        (_raise(ValueError("no")), "unit 1e+30", "foreign exception"),
        (_raise(ValueError("operands could not be broadcast together")), "unit 1e+30", "foreign exception"),
        (lambda s: np.exp(np.array([1e4])), "frame", "warning of arithmetic"),
        (lambda s: np.linalg.inv(np.zeros((2, 2))), "unit 1e+30", "foreign exception"),
    ],
)
def test_the_scorer_knows_defects(fault, row, kind):
    assert attempt(Faulty(fault), row)[0] == kind


def test_hangs_and_deaths_are_counted():
    cases = ["works", "die", "works", "sleep", "works"]
    outcomes = list(run_cases("fuzz.failing_worker", cases, limit_s=2.0))
    assert [kind for _, kind, _ in outcomes] == ["right", "process death", "right", "hang", "right"]
    assert table(outcomes) == "right: 3, process death: 1, hang: 1"
