"""The kernel that a scaling method was asked for, checked."""

from __future__ import annotations

import numbers
from typing import Any

from zeronorm.criteria import ScaledKernel, make_kernel


def chosen_kernel(selector: Any, n_features: int) -> ScaledKernel:
    """The kernel from ``kernel``, ``gamma``, ``degree`` and ``coef0``; without a gamma, one over the features."""
    name = type(selector).__name__
    gamma, degree, coef0 = selector.gamma, selector.degree, selector.coef0
    if gamma is not None and (isinstance(gamma, str) or not gamma > 0):
        raise ValueError(f"The 'gamma' parameter of {name} must be None or positive. Got {gamma!r} instead.")
    if not isinstance(degree, numbers.Integral) or int(degree) < 1:
        raise ValueError(
            f"The 'degree' parameter of {name} must be a whole number from 1. Got {degree!r} instead."
        )
    if not coef0 >= 0:
        raise ValueError(f"The 'coef0' parameter of {name} must not be negative. Got {coef0!r} instead.")
    return make_kernel(
        selector.kernel, gamma=gamma, degree=int(degree), coef0=float(coef0), n_features=n_features
    )
