"""Scaling factors as parameters of the support vector machine, with a bound on their norm."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria import SoftMargin
from zeronorm.engines.factor_descent._criterion import (
    CONSTANT,
    COPY,
    ConstantSum,
    ScaledCriterion,
    chosen_kernel,
    descend,
    distinct_columns,
    is_zero,
    standing,
)
from zeronorm.registry import register
from zeronorm.selection._kinds import exceptions, number
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector

SOLVER_TOL = 1e-8


@register(
    "adaptive-scaling",
    family="scaling",
    tasks=("binary",),
    reference="Grandvalet & Canu 2003; Lal et al. 2006, eq. 18",
    cost="n² p and one SVM for each step of the descent",
    oracle="finite differences, the equivalent ℓ1-norm SVM, and MarginLP",
    avoid="far more features than samples: nothing guards against overfitting; several classes",
    test_params=({}, {"kernel": "linear", "q": 1.0}),
)
class AdaptiveScaling(WeightedSelector):
    r"""Learn one scaling factor per feature together with the support vector machine.

    .. math:: \min_\sigma\ \max_\alpha\ \sum_i \alpha_i
        - \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j\, k(\sigma * x_i, \sigma * x_j), \qquad
        0 \le \alpha_i \le C, \quad \sum_i \alpha_i y_i = 0, \quad \|\sigma\|_q = \sigma_0

    The SVM is trained for the current σ; then σ takes a step against the gradient
    :math:`\partial/\partial\sigma_k^2 = -\tfrac12 v^\top (\partial K / \partial\sigma_k^2)\, v` with
    :math:`v = \alpha * y`, within the constraint. With q = 2 the constraint is a simplex in :math:`\sigma^2`, and for
    the linear kernel the problem is convex: its solution is that of the ℓ1-norm SVM,

    .. math:: \min_w\ \tfrac{1}{2\sigma_0^2} \|w\|_1^2 + C \sum_i \xi_i, \qquad
        \sigma_k^2 = \sigma_0^2\, |w_k| / \|w\|_1 .

    The smaller q, the fewer factors remain, and the more the result depends on the start: a factor that has
    reached zero stays there when q < 2. The descent then starts from the solution for q = 2.

    Use it when you will train a soft-margin SVM with a nonlinear kernel in the end. It fits the training labels
    and has no term for the scale of the data, so unlike :class:`~zeronorm.RadiusMarginScaling` it may overfit when
    there are many features and few samples; lower ``sigma_norm`` or C then.

    Parameters
    ----------
    n_features_to_select
        None: the features with a scaling factor above zero.
    q
        Here the exponent of the norm of the scaling factors in the constraint.
    sigma_norm
        :math:`\sigma_0`; None is :math:`p^{1/2}` for q = 2, where all factors could be one, and for q < 2 the norm
        of the solution for q = 2, from which the descent starts. A norm larger than the useful features need
        lets other features keep a factor as well.
    C
        Factor of the hinge loss. ``numpy.inf`` is the hard margin, which needs classes that can be separated.
    zero_tol
        Here this applies to the scaling factors.
    tol
        The descent ends when the relative decrease of the objective that a step can bring is smaller than this.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features_in_,)
        The factors σ.
    objective_ : float or ndarray
        The objective at the last factors.
    representative_ : ndarray of shape (n_features_in_,), dtype int
        For each feature the first one that it is a copy of, up to sign and shift (up to sign, for "poly"); only
        that one is given a factor, its copies rank last.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import AdaptiveScaling
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = AdaptiveScaling(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(q=(number(above=0, most=2), "the constraint needs a norm"))

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        q: float = 2.0,
        sigma_norm: float | None = None,
        C: float = 1.0,
        gamma: float | Literal["auto", "scale"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 2000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.kernel = kernel
        self.q = q
        self.sigma_norm = sigma_norm
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        kernel = chosen_kernel(self, problem.design)
        varying, self.representative_ = distinct_columns(problem.design, kernel)
        self.scale_ = np.zeros(problem.n_features)
        self.objective_ = 0.0
        scores = np.where(self.representative_ == np.arange(problem.n_features), CONSTANT, COPY)
        if varying.size == 0:
            return SelectionPath.from_scores(scores, scale=self.scale_)
        criterion = SoftMargin(problem.sample_costs(self.C), SOLVER_TOL)
        objective = ScaledCriterion(
            problem.design.take(varying), kernel, criterion, problem.target.columns()[:, 0]
        )
        active, start, sigma_norm = self._start(objective)
        norm = NormedFactors(objective.take(active), self.q, sigma_norm)
        found = descend(norm, start, norm.region, tol=self.tol, max_iter=self.max_iter)
        scale_sq = np.zeros(varying.size)
        scale_sq[active] = norm.scale_sq(found.point)
        _, slope = objective(scale_sq)
        scores[varying] = standing(scale_sq, slope, self.zero_tol)
        self.scale_[varying] = np.sqrt(scale_sq)
        self.objective_ = found.value
        return SelectionPath.from_scores(
            scores,
            scale=self.scale_,
            selected_size=int(np.count_nonzero(~is_zero(scale_sq, self.zero_tol))),
            n_iter=found.n_iter,
            converged=found.converged and objective.converged,
            remedy=found.remedy,
        )

    def _start(self, objective: ScaledCriterion) -> tuple[IntArray, FloatArray, float]:
        """The features that are optimised, their first factors, and the norm of these factors.

        For q = 2 all factors are equal at first. For q < 2, where a factor of zero stays zero, the first factors are
        the solution for q = 2, and features whose factor is zero there are left out: the power q/2 would raise the
        rounding errors of their factors above the threshold, and near zero the slope in u is too small to lower them.
        """
        m = objective.design.n_features
        if self.q == 2.0:
            return np.arange(m), np.ones(m), np.sqrt(m) if self.sigma_norm is None else self.sigma_norm
        share = 1.0 if self.sigma_norm is None else self.sigma_norm / default_norm(m, self.q)
        smooth = NormedFactors(objective, 2.0, share * np.sqrt(m))
        found = descend(smooth, np.ones(m), smooth.region, tol=self.tol, max_iter=self.max_iter)
        active = np.flatnonzero(~is_zero(found.point, self.zero_tol))
        powers = smooth.scale_sq(found.point)[active] ** (0.5 * self.q)
        norm = float(powers.sum() ** (1.0 / self.q)) if self.sigma_norm is None else self.sigma_norm
        return active, np.asarray(active.size * powers / powers.sum()), norm


def default_norm(m: int, q: float) -> float:
    """The norm half-way between that of one factor and of m equal ones, both with the sum of squares m."""
    return float(m ** (0.25 + 0.5 / q))


class NormedFactors:
    r"""The objective in variables u with a fixed sum, :math:`\sigma_k^q = \sigma_0^q\, u_k / m`, m factors in all."""

    def __init__(self, objective: ScaledCriterion, q: float, sigma_norm: float) -> None:
        m = objective.design.n_features
        self.objective, self.exponent = objective, 2.0 / q
        self.common_sq = sigma_norm**2 / m**self.exponent
        self.region = ConstantSum(float(m))

    def scale_sq(self, u: FloatArray) -> FloatArray:
        """The squared factors; ``common_sq`` is their value where all factors are equal."""
        return np.asarray(self.common_sq * u**self.exponent)

    def __call__(self, u: FloatArray) -> tuple[float, FloatArray]:
        value, slope = self.objective(self.scale_sq(u))
        return value, slope * (self.common_sq * self.exponent) * u ** (self.exponent - 1.0)
