"""What holds for all tests: no chance, and no clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, and no limit of time for one of them: a machine may be busy.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _the_global_generator_starts_anew():
    """Estimators of scikit-learn without a ``random_state`` draw from it, whatever ran before."""
    np.random.seed(21)  # noqa: NPY002
