"""From the penalty to the constraint: the penalty at which the norm of the weights meets a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

BOUND_TOL = 1e-12  # relative accuracy of the penalty


def penalty_at_bound(norm: Callable[[float], float], high: float, low: float, bound: float) -> float:
    """The penalty between ``low`` and ``high`` with this norm; the norm falls as the penalty grows."""
    if norm(low) <= bound:
        return low
    return float(
        np.exp(
            brentq(lambda log: norm(float(np.exp(log))) - bound, np.log(low), np.log(high), xtol=BOUND_TOL)
        )
    )


def check_norm_bound(selector: Any) -> None:
    """Raise unless the bound is None or a positive number."""
    bound = selector.norm_bound
    if bound is not None and not 0.0 < bound < np.inf:
        raise ValueError(
            f"The 'norm_bound' parameter of {type(selector).__name__} must be None or a positive number. "
            f"Got {bound!r} instead."
        )
