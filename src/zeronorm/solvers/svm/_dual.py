"""Support vector classification in the dual, on a kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, written
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._free_set import Product, pivot_free_set
from zeronorm.solvers.svm._smo import refresh, smo

ClassificationLoss = Literal["hinge", "squared_hinge"]
DEFAULT_MAX_ITER = 2_000_000


@dataclass(frozen=True, eq=False)
class DualSolution(Ended):
    """A solution of a :class:`~zeronorm.solvers.svm._box_dual.BoxDual` on a kernel matrix."""

    problem: BoxDual
    alpha: FloatArray
    f: FloatArray
    bias: float
    violation: float
    n_iter: int
    status: Status
    shift: float = 0.0  # subtracted from the targets of ``problem``, and part of the bias

    @cached_property
    def dual_coef(self) -> FloatArray:
        """The coefficients v of the samples: the decision values are K v + bias."""
        return self.problem.signed_sum(self.alpha)

    @cached_property
    def objective(self) -> float:
        """The dual objective, in the form to be maximised."""
        return self.problem.objective(self.alpha, self.f)

    @cached_property
    def gap(self) -> float:
        """Primal minus dual objective, never negative: a bound on how far both are from the optimum."""
        return self.problem.gap(self.alpha, self.f, self.bias - self.shift)


class SvmDual(DualSolution):
    """A support vector classifier: alpha, bias, duality gap and status; the labels are ``y``."""

    @property
    def y(self) -> FloatArray:
        """The labels, -1 and +1."""
        return self.problem.sign


def solve_svm_dual(
    K: FloatArray,
    y: ArrayLike,
    *,
    C: float | ArrayLike = 1.0,
    loss: ClassificationLoss = "hinge",
    warm_start: SvmDual | None = None,
    all_free: bool = False,
    tol: float = 1e-6,
    max_iter: int = DEFAULT_MAX_ITER,
) -> SvmDual:
    r"""Solve the dual of a two-class support vector machine with an unpenalised bias.

    .. math:: \max_\alpha\ \sum_i \alpha_i - \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j K_{ij},
        \qquad \sum_i \alpha_i y_i = 0, \qquad 0 \le \alpha_i \le C_i

    for the hinge loss, the dual of :math:`\tfrac12\|w\|^2 + \sum_i C_i \xi_i`; for the squared hinge
    loss, :math:`\tfrac12\|w\|^2 + \tfrac12\sum_i C_i \xi_i^2`, the diagonal 1/C_i is added to K and the
    upper bound is dropped.

    Parameters
    ----------
    K : (n, n) kernel matrix, symmetric and positive semi-definite.
    y : (n,) labels, -1 and +1.
    C : cost of the slacks, one for all samples or one for each; ``inf`` is the hard margin. If the classes
        then cannot be separated, the status is ``UNBOUNDED``.
    warm_start : a solution of a similar problem; K, y and C may have changed.
    all_free : without a warm start, guess that all samples are support vectors and none is at its bound, as with
        squared losses and more features than samples. A wrong guess only costs time.
    tol : largest violation of the optimality conditions, in units of the margin.
    """
    labels = np.asarray(y, dtype=np.float64)
    problem = BoxDual.classification(labels, per_sample(C, labels.size), loss == "squared_hinge")
    alpha = None if warm_start is None else warm_start.alpha
    return SvmDual(*run_smo(K, problem, alpha, tol, max_iter, all_free))


def run_smo(
    K: FloatArray,
    problem: BoxDual,
    start: FloatArray | None,
    tol: float,
    max_iter: int,
    all_free: bool = False,
    product: Product | None = None,
) -> tuple[BoxDual, FloatArray, FloatArray, float, float, int, Status]:
    """Solve a box dual on a kernel matrix; returns the fields of a DualSolution."""
    K = kernel_matrix(K)
    found = None
    if start is not None or all_free:
        guess = np.zeros(problem.sign.size) if start is None else start
        found = pivot_free_set(K, problem, guess, all_free=start is None, product=product)
    start = start if found is None else found
    alpha = np.zeros(problem.sign.size) if start is None else problem.feasible(start)
    f = np.zeros(problem.n_samples)
    # In one thread: synchronising several would take longer than this product.
    refresh(K, problem.ridge, problem.sample, problem.sign, alpha, f)
    n_iter, violation, status = smo(
        K, problem.ridge, problem.sample, problem.sign, problem.linear, problem.upper, alpha, f, tol, max_iter
    )
    alpha = problem.without_overlap(alpha)
    return problem, alpha, f, problem.bias(alpha, f), max(violation, 0.0), n_iter, Status(status)


def per_sample(C: float | ArrayLike, n_samples: int) -> FloatArray:
    """C as one number for each sample."""
    costs = np.asarray(C, dtype=np.float64)
    if costs.ndim == 0:  # many times faster than broadcasting
        return np.full(n_samples, costs)
    return np.ascontiguousarray(np.broadcast_to(costs, (n_samples,)))


def kernel_matrix(K: FloatArray) -> FloatArray:
    """K as the array type for which the kernels are compiled, without a copy where possible.

    numba compiles everything a second time for read-only arrays, which joblib passes to its workers.
    The kernels never write to K, so a view without the read-only flag is safe.
    """
    K = np.asarray(K, dtype=np.float64)
    K = np.ascontiguousarray(K.T if K.flags.f_contiguous else K)  # K is symmetric
    return K if K.flags.writeable else np.asarray(_Unmarked(K))


class _Unmarked:
    """The memory of an array without its read-only flag."""

    def __init__(self, array: FloatArray) -> None:
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


# -- Support vector regression in the dual, on a kernel matrix --


RegressionLoss = Literal["epsilon_insensitive", "squared_epsilon_insensitive"]


def solve_svr_dual(
    K: FloatArray,
    y: ArrayLike,
    *,
    C: float | ArrayLike = 1.0,
    epsilon: float = 0.1,
    loss: RegressionLoss = "epsilon_insensitive",
    warm_start: DualSolution | None = None,
    tol: float = 1e-6,
    max_iter: int = DEFAULT_MAX_ITER,
) -> DualSolution:
    r"""Solve the dual of support vector regression with an unpenalised bias.

    .. math:: \min_{w, b}\ \tfrac12\|w\|^2 + \sum_i C_i\, \xi_i, \qquad
        \xi_i = \max(0, |y_i - w^\top x_i - b| - \epsilon),

    or with :math:`\tfrac12 C_i \xi_i^2` for the squared loss. The parameters are those of
    :func:`~zeronorm.solvers.svm._dual.solve_svm_dual`; tol is in units of y, and C must be finite.
    """
    target = np.asarray(y, dtype=np.float64)
    costs = finite_costs(C, target.size)
    # The bias absorbs a constant in the targets; a large one would cause rounding errors in the steps.
    midrange = 0.5 * float(target.min() + target.max())
    problem = BoxDual.regression(target - midrange, costs, epsilon, loss == "squared_epsilon_insensitive")
    alpha = None if warm_start is None else warm_start.alpha
    solution = DualSolution(*run_smo(K, problem, alpha, tol, max_iter))
    return replace(solution, bias=solution.bias + midrange, shift=midrange)


def finite_costs(C: float | ArrayLike, n_samples: int) -> FloatArray:
    """C for each sample; an infinite C, which would require a perfect fit, is an error."""
    costs = per_sample(C, n_samples)
    if not np.isfinite(costs).all():
        raise ValueError(
            f"The 'C' parameter of support vector regression must be finite. Got {written(C)} instead."
        )
    return costs
