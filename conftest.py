"""What holds for all tests: no chance, and no clock."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# The same examples in every run, and no limit of time for one of them: a machine may be busy.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
# hypothesis would also try the numbers that stand in the sources loaded so far: others after other tests, and seconds
# of reading in each process.
providers._get_local_constants = lambda: providers._local_constants

_numbered, _made_by_numpy = itertools.count(), np.random.default_rng


def _default_rng(seed=None):
    """A generator without a seed differs from the one before, but not from one run of the test to the next."""
    return _made_by_numpy([21, next(_numbered)] if seed is None else seed)


np.random.default_rng = _default_rng


@pytest.fixture(autouse=True)
def _chance_starts_anew():
    """Whatever ran before, and also for estimators of scikit-learn without a ``random_state``."""
    global _numbered
    _numbered = itertools.count()
    np.random.seed(21)  # noqa: NPY002


def pytest_collection_finish():
    """What collecting has made lives as long as the run: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
