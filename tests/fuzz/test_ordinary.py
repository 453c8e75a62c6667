"""Every class with its defaults on ordinary tables: a finite result, features or the reason, and convergence."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.attempt import DEFECTS, DOES_NOT_APPLY, RIGHT
from fuzz.ordinary import EMPTY_WITH_REASON, NOT_CONVERGED, SELECTS_NOTHING, TABLES, attempt_default, methods
from fuzz.runner import run_cases, table

LIMIT_S = 300.0
QUICK = [name for name, t in TABLES.items() if t.n * t.p <= 3000]
# Classes whose constructor needs a selector.
NEED_AN_ARGUMENT = {"KnockoffSelector", "StabilitySelection"}
# What is known and not yet mended, with the reason.
KNOWN = {
    ("KernelAROM", "20 x 2000"): "two million monomials for 20 samples: all weights shrink, with the remedy",
    ("KernelAROM", "wide"): "125,000 monomials for 60 samples: all weights shrink, with the remedy",
    ("KernelAROM", "wide, weak"): "125,000 monomials for 60 samples: all weights shrink, with the remedy",
    ("OptimalFeatureWeighting", "20 x 2000"): "its weights still move after the default number of steps",
    ("SensitivityElimination", "500 x 2000"): "takes minutes",
}
CLASSES = [name for name in methods() if name not in NEED_AN_ARGUMENT]


def _report(outcomes):
    print(f"\n{len(outcomes)} fits with defaults: {table(outcomes)}")
    bad = (*DEFECTS, NOT_CONVERGED, SELECTS_NOTHING)
    defects = [
        f"{case}: {kind}: {seen}" for case, kind, seen in outcomes if kind in bad and tuple(case) not in KNOWN
    ]
    assert not defects, "\n".join(defects)


def test_the_tables_are_ordinary_and_many():
    assert len(TABLES) >= 20
    assert {t.kind for t in TABLES.values()} == {"binary", "multiclass", "regression"}
    assert all(20 <= t.n <= 500 and 5 <= t.p <= 2000 for t in TABLES.values())


def test_every_class_once_and_every_small_table():
    """Each class on one small table, in turn; AutoSelector compares many methods and has its own tests."""
    classes = [name for name in CLASSES if name != "AutoSelector"]
    cases = list(zip(classes, np.resize(QUICK, len(classes)).tolist(), strict=True))
    outcomes = [(case, *attempt_default(*case)) for case in cases]
    _report(outcomes)
    assert sum(kind == RIGHT for _, kind, _ in outcomes) > len(outcomes) // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_every_class_on_every_table(name):
    outcomes = list(run_cases("fuzz.worker ordinary", [(name, t) for t in TABLES], LIMIT_S))
    _report(outcomes)
    applied = [kind for _, kind, _ in outcomes if kind != DOES_NOT_APPLY]
    assert (
        applied.count(EMPTY_WITH_REASON) <= len(applied) // 3
    )  # a default that mostly selects nothing is no default
