"""Backward elimination by a bound on the leave-one-out error of a support vector machine."""

from __future__ import annotations

from typing import Any, Literal

from zeronorm.criteria import Criterion, RadiusMargin, Span, make_kernel
from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.greedy.bound_machines import BoundMachines
from zeronorm.selectors.greedy.elimination import Elimination, check_step, eliminate
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register


@register(
    "bound-elimination",
    family="greedy",
    tasks=("binary",),
    reference="Rakotomamonjy 2003; Lal et al. 2006, section 2.3",
    test_params=(
        {"step": 2},
        {"bound": "span", "kernel": "linear", "step": 3},
        {"rule": "removal", "step": 3},
    ),
)
class BoundElimination(BaseSelector):
    r"""Remove the features without which a leave-one-out bound is smallest.

    The bound is that of a machine with squared slacks: radius/margin :math:`R^2 \|w\|^2`, or the span estimate
    :math:`\sum_k \alpha_k S_k^2`. A feature is valued by one of three rules.

    ``rule="derivative"`` (default): remove the feature with the largest slope
    :math:`\partial B / \partial \sigma_k`, since to first order
    :math:`B(\sigma_k = 0) = B - \partial B / \partial \sigma_k`. The literature ranks by the absolute slope; that is
    ``sign="absolute"``. It treats a feature that raises the bound like one that lowers it, and misses the relevant pair
    of the nonlinear toy problem.

    ``rule="removal"``: take the feature out of the kernel with :math:`\alpha` and :math:`\beta` fixed and remove
    the one that leaves the smallest bound,

    .. math:: W_{(-k)}^2 = 2\sum_i \alpha_i - v^\top K^{(-k)} v, \qquad
        R_{(-k)}^2 = \sum_i \beta_i K^{(-k)}_{ii} - \beta^\top K^{(-k)} \beta, \qquad v = \alpha \circ y.

    The shorter form :math:`v^\top K^{(-k)} v` for the margin is smallest without the most useful feature and so ranks
    backwards.

    ``rule="retrain"``: the same with a machine trained anew without each feature: exact, and p times as dear.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for half of the features.
    bound : "radius_margin" or "span".
    rule : "derivative", "removal" or "retrain".
    sign : "signed" or "absolute", for the derivative.
    kernel : "rbf" (default), "poly" or "linear".
    gamma : width of "rbf" and factor of "poly"; None is one over the number of features and stays fixed.
    degree, coef0 : of the polynomial kernel.
    step : features (or groups) removed per round: a count, or a fraction of what is left.
    C : cost of squared slacks, (C/2) Σ ξ²; ``numpy.inf`` is the hard margin.
    standardize, tol, estimator, feature_groups, always_keep, verbose : as in all selectors.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        bound: Literal["radius_margin", "span"] = "radius_margin",
        rule: Literal["derivative", "removal", "retrain"] = "derivative",
        sign: Literal["signed", "absolute"] = "signed",
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        gamma: float | None = None,
        degree: int = 2,
        coef0: float = 1.0,
        step: int | float = 1,
        C: float = 1.0,
        standardize: bool = True,
        tol: float = 1e-6,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.bound = bound
        self.rule = rule
        self.sign = sign
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.step = step
        self.C = C
        self.standardize = standardize
        self.tol = tol
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_parameters()
        criterion: Criterion = (
            Span(self.C, self.tol) if self.bound == "span" else RadiusMargin(self.C, tol=self.tol)
        )
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, n_features=problem.n_features
        )
        machines = BoundMachines(
            problem.design, problem.signs, kernel, criterion, rule=self.rule, absolute=self.sign == "absolute"
        )
        record = Elimination(problem)
        eliminate(machines, record, self.step)
        return record.path()

    def _check_parameters(self) -> None:
        check_step(self.step, "BoundElimination")
        choices = {
            "bound": ("radius_margin", "span"),
            "rule": ("derivative", "removal", "retrain"),
            "sign": ("signed", "absolute"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"The '{name}' parameter of BoundElimination must be one of {allowed}. "
                    f"Got {getattr(self, name)!r} instead."
                )
        if not self.C > 0:
            raise ValueError(
                f"The 'C' parameter of BoundElimination must be positive. Got {self.C!r} instead."
            )
