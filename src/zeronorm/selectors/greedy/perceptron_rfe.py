"""Recursive feature elimination with large margin perceptrons."""

from __future__ import annotations

import math
import numbers
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.greedy.elimination import Elimination, eliminate
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register
from zeronorm.solvers.alma import AlmaSolution, solve_alma
from zeronorm.solvers.status import Status

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

NOT_SEPARATED = (
    "the perceptron did not separate the classes with all features; raise max_iter, or select with RFE, "
    "which allows for errors."
)


@register(
    "perceptron-rfe",
    family="greedy",
    tasks=("binary",),
    reference="Gentile 2004; Lal et al. 2006, section 2.3",
    test_params=({}, {"rule": "halve"}),
)
class PerceptronRFE(BaseSelector):
    r"""Recursive elimination with a large margin perceptron that decides itself how many features may leave.

    Each round runs the approximate large margin perceptron of Gentile (ALMA) on the features that are left. Its
    norms follow the number d of these features: :math:`p = \max(2, \ln d)`, so that with many features it behaves like
    a multiplicative algorithm, which does not mind useless ones, and with few like a support vector machine. The
    weights have :math:`\|w\|_q = 1`, :math:`q = p/(p-1)`, and margin γ on samples scaled to
    :math:`\|x\|_p = 1`. Then the smallest weights leave as long as

    .. math:: \sum_{\text{kept}} |w_i|^q \ge 1 - \bigl(a (1 - a) \gamma\bigr)^q .

    By Hölder's inequality the weights that are kept separate the training samples with a margin of at least
    :math:`(1 - a(1 - a)) \gamma`. (The rule is often printed with :math:`\sum |w_i|`, which is larger than one
    and keeps far too few features.) The method ends when no feature may leave; ``n_features_to_select=None`` takes
    the features of that moment.

    Use it for separable problems with many useless features. Where the classes overlap, no margin is left to spend
    and ``rule="margin"`` removes only features of weight zero: use ``rule="halve"`` or ``RFE``.

    The perceptron visits sample after sample and so keeps a dense copy of the data. It depends on the order of the
    samples, not on that of the features.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for the method's own end (half of the features with "halve").
    rule : "margin" as above, or "halve": half of the features leave each round, until one is left.
    accuracy : a in (0, 1), the share of the largest margin that the perceptron may miss, and of its margin that
        elimination may spend.
    power : p of the norms, at least 2; None to follow the number of features.
    max_iter : passes over the samples per round.
    standardize, estimator, feature_groups, always_keep, verbose : as in all selectors.

    Attributes
    ----------
    margins_ : margin of the perceptron in each round.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        rule: Literal["margin", "halve"] = "margin",
        accuracy: float = 0.5,
        power: float | None = None,
        max_iter: int = 50,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.rule = rule
        self.accuracy = accuracy
        self.power = power
        self.max_iter = max_iter
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_parameters()
        machines = PerceptronMachines(problem, self.accuracy, self.power, self.max_iter)
        record = Elimination(problem)
        eliminate(machines, record, machines.n_affordable if self.rule == "margin" else 0.5)
        self.margins_ = np.asarray(machines.margins)
        path = record.path()
        separated = machines.margins[0] > 0.0
        return replace(
            path,
            own_size=record.sizes[-1] if self.rule == "margin" else None,
            converged=separated,
            remedy="" if separated else NOT_SEPARATED,
        )

    def _check_parameters(self) -> None:
        if self.rule not in ("margin", "halve"):
            raise ValueError(
                f"The 'rule' parameter of PerceptronRFE must be 'margin' or 'halve'. Got {self.rule!r} instead."
            )
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(
                "The 'accuracy' parameter of PerceptronRFE must lie strictly between 0 and 1. "
                f"Got {self.accuracy!r} instead."
            )
        if self.power is not None and not 2.0 <= self.power < math.inf:
            raise ValueError(
                "The 'power' parameter of PerceptronRFE must be None or a finite number of at least 2. "
                f"Got {self.power!r} instead."
            )
        if not isinstance(self.max_iter, numbers.Integral) or self.max_iter < 1:
            raise ValueError(
                f"The 'max_iter' parameter of PerceptronRFE must be at least 1. Got {self.max_iter!r} instead."
            )


class PerceptronMachines:
    """``Machines`` of the elimination loop around ALMA; a constant input, which never leaves, is the bias."""

    def __init__(self, problem: Problem, accuracy: float, power: float | None, max_epochs: int) -> None:
        self.design, self.y = problem.design, problem.signs
        self.accuracy, self.max_epochs = accuracy, max_epochs
        self.fixed_power = power
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.margins: list[float] = []
        self.solution: AlmaSolution | None = None

    @property
    def power(self) -> float:
        return self.fixed_power or max(2.0, math.log(self.alive.size))

    def train(self) -> None:
        rows = np.ones((self.design.n_samples, self.alive.size + 1))
        self.design.block(self.alive, out=rows[:, :-1])
        self.solution = solve_alma(
            rows, self.y, power=self.power, accuracy=self.accuracy, max_epochs=self.max_epochs
        )
        self.n_iter += self.solution.n_epochs
        self.margins.append(self.solution.margin)

    def importance(self) -> FloatArray:
        """|w|^(q-1), the dual weights of unit p-norm: on the scale of |w|^q small features would all look tied."""
        assert self.solution is not None
        return np.asarray(np.abs(self.solution.weights[:-1]) ** (1.0 / (self.power - 1.0)))

    def group_importance(self, unit: IntArray) -> FloatArray:
        """The sum of |w|^q over the group, brought to the scale of one feature."""
        share = np.bincount(unit, weights=self.importance() ** self.power)
        return np.asarray(share ** (1.0 / self.power))

    def n_affordable(self, values: FloatArray) -> int:
        """How many of the smallest values may leave: the sum of their |w|^q must not exceed (a(1-a)γ)^q."""
        assert self.solution is not None
        q = self.power / (self.power - 1.0)
        budget = (self.accuracy * (1.0 - self.accuracy) * max(self.solution.margin, 0.0)) ** q
        return int(np.count_nonzero(np.cumsum(values**self.power) <= budget))

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
