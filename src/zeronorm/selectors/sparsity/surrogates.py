r"""Concave penalties between ℓ0 and ℓ1, and how they are minimised through ℓ1.

A penalty :math:`\lambda\,\rho(|w|)` that is concave on the positive axis lies below its tangents; the one at the
last weights is a weighted ℓ1 norm with factors :math:`\rho'(|w_k|)`. Minimising that instead and repeating never
increases the objective. All penalties here have the slope one at zero, so the first problem is the LASSO.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SCAD_SHAPE = 3.7
MCP_SHAPE = 3.0
SMALLEST_FACTOR = 1e-4  # a feature never becomes quite free

Slope = Callable[[FloatArray, float, float], FloatArray]


def _log_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    return epsilon / (epsilon + w)


def _root_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    return np.sqrt(epsilon / (epsilon + w))


def _scad_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    beyond = (SCAD_SHAPE * penalty - w) / ((SCAD_SHAPE - 1.0) * penalty)
    return np.where(w <= penalty, 1.0, np.maximum(beyond, 0.0))


def _mcp_slope(w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    return np.maximum(1.0 - w / (MCP_SHAPE * penalty), 0.0)


SURROGATES: dict[str, Slope] = {
    "log": _log_slope,
    "l0.5": _root_slope,
    "scad": _scad_slope,
    "mcp": _mcp_slope,
}


def tangent_factors(name: str, w: FloatArray, penalty: float, epsilon: float) -> FloatArray:
    """Slopes of the penalty at the absolute weights ``w``, in units of ``penalty``."""
    return np.maximum(SURROGATES[name](w, penalty, epsilon), SMALLEST_FACTOR)
