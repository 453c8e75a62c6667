"""Every registered selector keeps scikit-learn's rules and ours, with no expected failures.

One test holds all checks of one estimator, and names each one that fails: thousands of small tests would cost
more in pytest than in the methods. scikit-learn's checks run on the first set of parameters of each class;
the other sets, of which ours run all, follow under the mark ``slow``.
"""

from __future__ import annotations

import traceback
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import check_estimator

from zeronorm.registry import all_methods
from zeronorm.testing import selector_checks

METHODS = [m for kind in ("selector", "meta", "model", "transformer") for m in all_methods(kind)]
FIRST_SETS = [m.instances()[0] for m in METHODS]
OTHER_SETS = [instance for m in METHODS for instance in m.instances()[1:]]
SELECTORS = [instance for m in METHODS if m.kind in ("selector", "meta") for instance in m.instances()]


def _name(estimator):
    return " ".join(repr(estimator).split())


def _told(name, error):
    return f"--- {name} ---\n{''.join(traceback.format_exception(error))}"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*selects no feature by its own rule")  # the checks fit noise
@pytest.mark.parametrize(
    "estimator",
    [*FIRST_SETS, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHER_SETS)],
    ids=_name,
)
def test_scikit_learn_checks(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = [_told(r["check_name"], r["exception"]) for r in results if r["status"] in ("failed", "xfail")]
    assert not failed, "\n".join(failed)
    assert sum(r["status"] == "passed" for r in results) > 30  # nothing was skipped as a whole


@pytest.mark.parametrize("selector", SELECTORS, ids=_name)
def test_contract(selector):
    failed = []
    for name, run in selector_checks(selector):
        try:
            run()
        except SkipTest:
            continue  # what the method does not promise, with its reason in UNKEPT_CHECKS
        except Exception as error:
            failed.append(_told(name, error))
    assert not failed, "\n".join(failed)
