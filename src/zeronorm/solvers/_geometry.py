r"""Problems of geometry: the nearest point of the probability simplex, the smallest enclosing sphere, and
the features whose directions are closest to that of a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import Design
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.svm._dual import kernel_matrix
from zeronorm.solvers.svm._smo import smo

DEFAULT_MAX_ITER = 1_000_000


# -- Euclidean projection on the probability simplex: x >= 0 with sum one --


def project_on_simplex(x: ArrayLike) -> FloatArray:
    r"""The nearest point of the simplex, :math:`\max(x_k - \tau, 0)`, by sorting.

    The threshold is :math:`\tau = (\sum_{k \le m} x_{(k)} - 1)/m` for the largest m for which the m-th largest entry
    is above it.
    """
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values)):
        raise ValueError(
            f"Only a finite, non-empty vector can be projected on the simplex. Got shape {values.shape}."
        )
    descending = np.sort(values)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, values.size + 1)
    m = int(np.flatnonzero(descending > thresholds)[-1])
    projection: FloatArray = np.maximum(values - thresholds[m], 0.0)
    return projection


@kernel
def project_in_place(x: FloatArray) -> None:
    """The same projection for compiled loops, in a few passes over the vector and without extra memory.

    Removes the entries below the current threshold and recomputes the threshold from the others, until no entry is
    removed (Gadat and Younes 2007, section 4.3).
    """
    threshold = (x.sum() - 1.0) / x.shape[0]
    kept = x.shape[0]
    while True:
        total = 0.0
        count = 0
        for value in x:
            if value > threshold:
                total += value
                count += 1
        if count == kept or count == 0:
            break
        kept = count
        threshold = (total - 1.0) / count
    for k in range(x.shape[0]):
        x[k] = max(x[k] - threshold, 0.0)


# -- The smallest sphere that holds all samples, in the feature space of a kernel --


@dataclass(frozen=True, eq=False)
class EnclosingSphere(Ended):
    """The squared radius of the sphere, and the weights of the samples in its centre."""

    radius_sq: float
    beta: FloatArray
    gap: float
    n_iter: int
    status: Status


def solve_enclosing_sphere(
    K: FloatArray,
    *,
    warm_start: EnclosingSphere | None = None,
    tol: float = 1e-8,
    max_iter: int = DEFAULT_MAX_ITER,
) -> EnclosingSphere:
    r"""Solve the dual of the smallest enclosing sphere.

    .. math:: R^2 = \max_\beta\ \sum_i \beta_i K_{ii} - \beta^\top K \beta, \qquad \sum_i \beta_i = 1, \quad \beta \ge 0

    It is the dual of a support vector machine with all signs equal, so the same compiled loop solves it. ``gap`` is an
    upper bound on the error of the squared radius: the largest squared distance from the centre minus the radius found.

    Parameters
    ----------
    K : (n, n) kernel matrix, symmetric and positive semi-definite.
    warm_start : a solution of a similar problem with as many samples.
    tol : largest violation of the optimality conditions, relative to the largest squared distance.
    """
    K = kernel_matrix(K)
    n = K.shape[0]
    diagonal = np.diagonal(K).copy()
    beta = np.full(n, 1.0 / n) if warm_start is None else warm_start.beta / warm_start.beta.sum()
    centre_distance = diagonal - 2.0 * (K @ beta) + beta @ K @ beta
    scale = float(centre_distance.max(initial=0.0))
    if scale <= 0.0:  # all samples coincide
        return EnclosingSphere(0.0, beta, 0.0, 0, Status.CONVERGED)
    f = K @ beta
    n_iter, _, status = smo(
        K, np.zeros(n), np.arange(n), np.ones(n), -0.5 * diagonal, np.ones(n), beta, f, tol * scale, max_iter
    )
    beta /= beta.sum()
    inner = K @ beta
    norm_sq = float(beta @ inner)
    radius_sq = float(beta @ diagonal) - norm_sq
    farthest = float((diagonal - 2.0 * inner).max()) + norm_sq
    return EnclosingSphere(max(radius_sq, 0.0), beta, max(farthest - radius_sq, 0.0), n_iter, Status(status))


# -- The features with the largest products with a vector, found in few passes over the data --
#
# A method with a sparse solution asks again and again for the features with a large :math:`|x_k \cdot v|`, each
# time for another v that is close to the last ones. With orthonormal vectors q whose products with all features are
# known,
#
# .. math:: v = \sum_j a_j q_j + d, \qquad
#     \Bigl| x_k \cdot v - \sum_j a_j\, x_k \cdot q_j \Bigr| \le \|x_k\|\,\|d\|,
#
# which leaves few features in doubt. Their columns are read, so that the answer is exact. Only when too many features
# are in doubt are all data read, for their products with the direction of d, which is then one more q.

SMALL_DATA = 1 << 21  # entries; with fewer, all data are read each time
MOST_DIRECTIONS = 12  # directions kept, each as one float32 for every feature
MOST_IN_DOUBT = 1 / 256  # of the features: reading more of them one by one takes longer than reading all
NORM_ROUNDING = 1.0 + 1e-6
TILE = 2048


class GradientBounds:
    """Products of the features of one design with a sequence of vectors."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n_passes_over_data = 0
        self._norms = np.empty(0)
        self._directions = np.empty((0, design.n_samples))
        self._cosines = np.empty((0, design.n_features), dtype=np.float32)

    def beyond(self, v: FloatArray, limit: FloatArray, most: int) -> IntArray:
        """Features with |x·v| above their limit, the largest excess first; no more than ``most`` of them."""
        if self._is_small:
            return _worst(np.arange(limit.size), self._all(v) - limit, most)
        doubtful = self._in_doubt(v, limit)
        if doubtful.size > self._most_in_doubt:
            self._read(v)
            doubtful = self._in_doubt(v, limit)
        if doubtful.size > max(most, self._most_in_doubt):
            excess = self._estimate(v)[doubtful] * self.norms[doubtful] - limit[doubtful]
            doubtful = np.sort(doubtful[np.argpartition(-excess, most)[:most]])
        return _worst(doubtful, self._exact(v, doubtful) - limit[doubtful], most)

    @property
    def norms(self) -> FloatArray:
        """Euclidean norm of each feature."""
        if self._norms.size == 0:
            self._norms = np.sqrt(self.design.squared_norms())
        return self._norms

    @property
    def _is_small(self) -> bool:
        return self.design.n_samples * self.design.n_features <= SMALL_DATA

    @property
    def _most_in_doubt(self) -> int:
        return 64 + int(MOST_IN_DOUBT * self.design.n_features)

    # -- bounds without a pass over the data --

    def _split(self, v: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Coefficients of v in the known directions, the remainder, and its norm."""
        shares = self._directions @ v
        rest = v - shares @ self._directions
        again = self._directions @ rest  # a second pass removes what rounding left
        rest -= again @ self._directions
        return shares + again, rest, float(np.linalg.norm(rest))

    def _estimate(self, v: FloatArray) -> FloatArray:
        """|x·v| / |x| of all features, from the part of v in the known directions."""
        cosine: FloatArray = np.abs(self._split(v)[0].astype(np.float32) @ self._cosines)
        return cosine

    def _in_doubt(self, v: FloatArray, limit: FloatArray) -> IntArray:
        """Features whose |x·v| may be above their limit."""
        shares, _, distance = self._split(v)
        m = len(shares)
        rounding = float(np.finfo(np.float32).eps) * (m + 2) * np.sqrt(m) * float(np.linalg.norm(shares))
        doubt = NORM_ROUNDING * (distance + rounding)
        found = np.empty(limit.size, dtype=np.intp)
        count = may_be_beyond(shares.astype(np.float32), self._cosines, self.norms, doubt, limit, found)
        return found[:count]

    # -- passes over the data --

    def _all(self, v: FloatArray) -> FloatArray:
        self.n_passes_over_data += 1
        return np.abs(self.design.transpose_dot(v))

    def _exact(self, v: FloatArray, columns: IntArray) -> FloatArray:
        if self.design.is_sparse:
            return np.abs(self.design.take(columns).transpose_dot(v))
        return np.abs(v @ self.design.block(columns))

    def _read(self, v: FloatArray) -> None:
        """Add the new direction in v by one pass over the data, in exchange for the direction of which v has least."""
        shares, rest, distance = self._split(v)
        if len(shares) >= MOST_DIRECTIONS:
            kept = np.arange(len(shares)) != np.argmin(np.abs(shares))
            self._directions, self._cosines = self._directions[kept], self._cosines[kept]
            _, rest, distance = self._split(v)
        if distance > 0.0:
            direction = rest / distance
            products = self.design.transpose_dot(direction)
            self.n_passes_over_data += 1
            cosines = np.divide(products, self.norms, out=np.zeros_like(products), where=self.norms > 0.0)
            self._directions = np.vstack([self._directions, direction])
            self._cosines = np.vstack([self._cosines, cosines.astype(np.float32)])


@kernel
def may_be_beyond(
    shares: NDArray[Any],
    cosines: NDArray[Any],
    norms: FloatArray,
    doubt: float,
    limit: FloatArray,
    found: IntArray,
) -> int:
    """Write the features whose product may be above their limit to ``found``; returns how many there are."""
    count = 0
    estimate = np.empty(TILE, dtype=np.float32)
    for start in range(0, norms.shape[0], TILE):
        width = min(TILE, norms.shape[0] - start)
        estimate[:] = 0.0
        for m in range(shares.shape[0]):
            share, row = shares[m], cosines[m, start : start + width]
            for j in range(width):
                estimate[j] += share * row[j]
        for j in range(width):
            if (abs(np.float64(estimate[j])) + doubt) * norms[start + j] > limit[start + j]:
                found[count] = start + j
                count += 1
    return count


def _worst(columns: IntArray, excess: FloatArray, most: int) -> IntArray:
    above = np.flatnonzero(excess > 0.0)
    return columns[above[np.lexsort((above, -excess[above]))[:most]]]
