"""Support vector regression in the dual, on a kernel matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.dual import DEFAULT_MAX_ITER, DualSolution, per_sample, run_smo

RegressionLoss = Literal["epsilon_insensitive", "squared_epsilon_insensitive"]


class SvrDual(DualSolution):
    """A support vector regressor: its variables above the tube, then those below it."""


def solve_svr_dual(
    K: FloatArray,
    y: ArrayLike,
    *,
    C: float | ArrayLike = 1.0,
    epsilon: float = 0.1,
    loss: RegressionLoss = "epsilon_insensitive",
    warm_start: SvrDual | None = None,
    tol: float = 1e-6,
    max_iter: int = DEFAULT_MAX_ITER,
) -> SvrDual:
    r"""Solve the dual of support vector regression with an unpenalised bias.

    .. math:: \min_{w, b}\ \tfrac12\|w\|^2 + \sum_i C_i\, \xi_i, \qquad
        \xi_i = \max(0, |y_i - w^\top x_i - b| - \epsilon),

    or with :math:`\tfrac12 C_i \xi_i^2` for the squared loss. The parameters are those of
    :func:`~zeronorm.solvers.svm.dual.solve_svm_dual`; tol is in units of y, and C must be finite.
    """
    target = np.asarray(y, dtype=np.float64)
    prices = finite_prices(C, target.size)
    problem = BoxDual.regression(target, prices, epsilon, loss == "squared_epsilon_insensitive")
    alpha = None if warm_start is None else warm_start.alpha
    return SvrDual(*run_smo(K, problem, alpha, tol, max_iter))


def finite_prices(C: float | ArrayLike, n_samples: int) -> FloatArray:
    """C for each sample; an infinite one would demand a perfect fit."""
    prices = per_sample(C, n_samples)
    if not np.isfinite(prices).all():
        raise ValueError(f"The 'C' parameter of support vector regression must be finite. Got {C!r} instead.")
    return prices
