"""Every registered selector keeps scikit-learn's rules and ours, with no expected failures."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from zeronorm.registry import all_methods
from zeronorm.testing import selector_checks

SELECTORS = [
    instance for kind in ("selector", "meta") for m in all_methods(kind) for instance in m.instances()
]
OTHERS = [
    instance for kind in ("model", "transformer") for m in all_methods(kind) for instance in m.instances()
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*selects no feature by its own rule")  # the checks fit noise
@parametrize_with_checks(SELECTORS + OTHERS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def _contract_cases():
    for selector in SELECTORS:
        for name, run in selector_checks(selector):
            yield pytest.param(run, id=f"{selector!r}-{name}".replace("\n", ""))


@pytest.mark.parametrize("run", list(_contract_cases()))
def test_contract(run):
    run()
