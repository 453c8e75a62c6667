"""Losses of linear models of times to an event, which compare samples with those that were observed for longer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.solvers.linear._losses import Loss


class AtPredictions(Protocol):
    """The loss of samples at their predictions, and its derivatives."""

    def total(self) -> float: ...

    def gradient(self) -> FloatArray: ...

    def curvature(self) -> FloatArray: ...

    def hessian(self) -> FloatArray: ...

    def product(self, columns: FloatArray) -> FloatArray: ...

    def sandwich(self, columns: FloatArray) -> FloatArray: ...


class Comparisons(Protocol):
    """Which samples of one stratum are compared."""

    def at(self, f: FloatArray) -> AtPredictions: ...


C = TypeVar("C", bound=Comparisons)


@dataclass(frozen=True, eq=False)
class Strata(Generic[C]):
    """The comparisons in each stratum with an event, and the rows of its samples; the losses of the strata add up."""

    parts: tuple[tuple[IntArray, C], ...]

    def at(self, f: FloatArray) -> StrataAt:
        """The losses at the predictions f."""
        return StrataAt(f.size, [(rows, sets.at(f[rows])) for rows, sets in self.parts])


class StrataAt:
    """The losses of all strata at their predictions; samples without part in the loss have derivatives of zero."""

    def __init__(self, n_samples: int, parts: list[tuple[IntArray, AtPredictions]]) -> None:
        self.n_samples, self.parts = n_samples, parts

    def total(self) -> float:
        return float(sum(part.total() for _, part in self.parts))

    def gradient(self) -> FloatArray:
        found = np.zeros(self.n_samples)
        for rows, part in self.parts:
            found[rows] = part.gradient()
        return found

    def curvature(self) -> FloatArray:
        """The diagonal of the second derivatives."""
        found = np.zeros(self.n_samples)
        for rows, part in self.parts:
            found[rows] = part.curvature()
        return found

    def hessian(self) -> FloatArray:
        """The second derivatives."""
        found = np.zeros((self.n_samples, self.n_samples))
        for rows, part in self.parts:
            found[np.ix_(rows, rows)] = part.hessian()
        return found

    def product(self, columns: FloatArray) -> FloatArray:
        """The product of the second derivatives with columns, without the matrix of samples."""
        found = np.zeros(columns.shape)
        for rows, part in self.parts:
            found[rows] = part.product(columns[rows])
        return found

    def sandwich(self, columns: FloatArray) -> FloatArray:
        """The product of the second derivatives with columns from both sides."""
        found = np.zeros((columns.shape[1], columns.shape[1]))
        for rows, part in self.parts:
            found += part.sandwich(columns[rows])
        return found


class SurvivalLoss(Loss):
    """The target is the time of an event, or minus the time of a censoring; the cost of a sample is its weight.

    ``strata`` holds the code of the stratum of each sample; only samples of one stratum are compared.
    """

    strata: NDArray[Any] | None
    for_classes_only = False
    has_bias = False

    @abstractmethod
    def comparisons(self, time: FloatArray, event: BoolArray, weight: FloatArray) -> Comparisons:
        """The comparisons in one stratum with an event; all weights are positive."""

    def mean_curvature(self, y: FloatArray, cost: FloatArray) -> float:
        """The mean second derivative in a prediction where all are zero, by cost."""
        return float(self._in_strata(y, cost).at(np.zeros(y.size)).curvature().sum() / cost.sum())

    def total(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> float:
        return self._in_strata(y, cost).at(f).total()

    def gradient(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        return self._in_strata(y, cost).at(f).gradient()

    def hessian(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        return self._in_strata(y, cost).at(f).hessian()

    def sandwich(self, f: FloatArray, y: FloatArray, cost: FloatArray, columns: FloatArray) -> FloatArray:
        return self._in_strata(y, cost).at(f).sandwich(columns)

    def prepared(self, y: FloatArray, cost: FloatArray) -> Loss:
        return PreparedLoss(self._in_strata(y, cost))

    def _in_strata(self, y: FloatArray, cost: FloatArray) -> Strata[Comparisons]:
        time, event = np.abs(y), ~np.signbit(y)
        return Strata(
            tuple(
                (rows, self.comparisons(time[rows], event[rows], cost[rows]))
                for rows in rows_of_strata(self.strata, event, cost)
            )
        )


def rows_of_strata(strata: NDArray[Any] | None, event: BoolArray, weight: FloatArray) -> Iterator[IntArray]:
    """The samples of positive weight of each stratum with an event among them."""
    counted = weight > 0.0
    for code in [None] if strata is None else np.unique(strata[counted]):
        rows = np.flatnonzero(counted if strata is None else counted & (strata == code))
        if event[rows].any():
            yield rows


class PreparedLoss(Loss):
    """The loss for given times and costs; what belongs to the last predictions is computed once."""

    for_classes_only = False
    has_bias = False

    def __init__(self, strata: Strata[Any]) -> None:
        self._strata = strata
        self._f = np.empty(0)
        self._here = StrataAt(0, [])

    def at(self, f: FloatArray) -> StrataAt:
        """The losses at the predictions f."""
        if not np.array_equal(self._f, f):
            self._f, self._here = f.copy(), self._strata.at(f)
        return self._here

    def total(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> float:
        return self.at(f).total()

    def gradient(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        return self.at(f).gradient()

    def hessian(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        return self.at(f).hessian()

    def sandwich(self, f: FloatArray, y: FloatArray, cost: FloatArray, columns: FloatArray) -> FloatArray:
        return self.at(f).sandwich(columns)
