r"""Two problems of geometry: the nearest point of the probability simplex, and the smallest enclosing sphere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.solvers.status import Ended, Status
from zeronorm.solvers.svm.dual import kernel_matrix
from zeronorm.solvers.svm.smo import smo

DEFAULT_MAX_ITER = 1_000_000


# -- Euclidean projection on the probability simplex: x >= 0 with sum one --


def project_on_simplex(x: ArrayLike) -> FloatArray:
    r"""The nearest point of the simplex, :math:`\max(x_k - \tau, 0)`, by sorting.

    The threshold is :math:`\tau = (\sum_{k \le m} x_{(k)} - 1)/m` for the largest m whose m-th largest entry
    stays above it.
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
    """The same projection for compiled loops: a few passes and no memory.

    Drops the entries below the current threshold and recomputes it from the others until none drops
    (Gadat and Younes 2007, section 4.3).
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
    """Squared radius and the weights of the samples in its centre."""

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

    It is the dual of a support vector machine with all signs equal, so the same kernel solves it. ``gap`` is an
    upper bound on the error of the squared radius: the largest squared distance from the centre minus the value.

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
