"""The smallest sphere that holds all samples, in the feature space of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.dual import kernel_matrix
from zeronorm.solvers.svm.smo import smo

DEFAULT_MAX_ITER = 1_000_000


@dataclass(frozen=True, eq=False)
class EnclosingSphere:
    """Squared radius and the weights of the samples in its centre."""

    radius_sq: float
    beta: FloatArray
    gap: float
    n_iter: int
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status.converged


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
