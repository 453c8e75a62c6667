r"""Whether a kept feature can be told from the features that are correlated with it.

With the other kept features removed from the target and from all columns, feature j must stay significant when any one
neighbour i is fitted first. For unit columns :math:`u` (of j) and :math:`v` (of i) with :math:`s = u^\top v`,

.. math:: F = \frac{g^2}{(\|y\|^2 - (v^\top y)^2 - g^2) / \nu},
          \qquad g = \frac{u^\top y - s\, v^\top y}{\sqrt{1 - s^2}},

the partial F test with 1 and :math:`\nu` degrees of freedom. If i is relevant and j only its neighbour, F is that of
noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._dummy_screening import ForwardData

NEIGHBOUR = 0.5  # absolute correlation from which a feature counts as a neighbour
DEPENDENT = 1e-8  # squared sine below which two columns are the same


def told_from_neighbours(
    data: ForwardData, kept: IntArray, candidates: IntArray, level: float
) -> NDArray[np.bool_]:
    """For each kept feature, whether it is significant given the other kept ones and any one neighbour."""
    columns = data.columns(kept)
    others = data.columns(np.setdiff1d(candidates, kept))
    result = np.empty(kept.size, dtype=bool)
    for position in range(kept.size):
        near = others[:, np.abs(columns[:, position] @ others) >= NEIGHBOUR]
        rest = np.linalg.qr(np.delete(columns, position, axis=1))[0]
        dimension = data.target.size - data.removed.shape[1] - rest.shape[1]
        projected = _without(rest, np.column_stack([data.target, columns[:, position], near]))
        result[position] = near.shape[1] == 0 or _largest_p_value(projected, dimension) <= level
    return result


def _without(basis: FloatArray, columns: FloatArray) -> FloatArray:
    return np.asarray(columns - basis @ (basis.T @ columns))


def _largest_p_value(projected: FloatArray, dimension: int) -> float:
    """The largest p-value of the second column for the first one, given each of the further columns."""
    y, own, near = projected[:, 0], projected[:, 1], projected[:, 2:]
    own = own / np.linalg.norm(own)
    lengths = np.linalg.norm(near, axis=0)
    near = near[:, lengths**2 > DEPENDENT] / lengths[lengths**2 > DEPENDENT]
    cosine, with_y = own @ near, y @ near
    sine_sq = 1.0 - cosine**2
    if near.shape[1] == 0:
        return 0.0
    if sine_sq.min() < DEPENDENT:
        return 1.0
    gain_sq = (y @ own - cosine * with_y) ** 2 / sine_sq
    left = np.maximum(y @ y - with_y**2, np.finfo(float).tiny)
    explained = np.clip(gain_sq / left, 0.0, 1.0)
    return float(betainc(max(dimension - 2, 1) / 2.0, 0.5, 1.0 - explained).max())
