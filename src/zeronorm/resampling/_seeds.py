"""Seeds for the random states of wrapped estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone


def seeded_clone(
    estimator: Any, seeds: np.random.SeedSequence | np.random.Generator, unset: list[str] | None = None
) -> Any:
    """A clone whose unset ``random_state`` parameters, also the nested ones, are fixed by ``seeds``.

    A ``random_state`` the user has set is kept. Finding the ``unset`` parameters takes longer than fitting a
    small model, so pass their names when cloning often.
    """
    fresh = clone(estimator)
    unset = unset_random_states(fresh) if unset is None else unset
    if unset:
        fresh.set_params(**dict(zip(unset, _draw(seeds, len(unset)), strict=True)))
    return fresh


def unset_random_states(estimator: Any) -> list[str]:
    """Names of the ``random_state`` parameters that are None."""
    params = estimator.get_params(deep=True)
    is_random = (name for name in params if name == "random_state" or name.endswith("__random_state"))
    return sorted(name for name in is_random if params[name] is None)


def _draw(seeds: np.random.SeedSequence | np.random.Generator, count: int) -> list[int]:
    if isinstance(seeds, np.random.SeedSequence):
        return [int(word) >> 1 for word in seeds.generate_state(count)]
    return [int(word) for word in seeds.integers(0, 2**31 - 1, size=count)]


def generator_from(random_state: Any) -> np.random.Generator:
    """A NumPy generator from anything scikit-learn accepts as ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    return np.random.default_rng(random_state)
