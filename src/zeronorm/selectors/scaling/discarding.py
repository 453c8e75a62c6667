"""Optimise the scaling factors, discard features, optimise those of the others, and so on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.greedy.elimination import count_to_remove
from zeronorm.selectors.path import SelectionPath, order_by_score
from zeronorm.selectors.progress import Progress
from zeronorm.selectors.scaling.descent import ConstantSum, Descent, Region, UnitBox, descend
from zeronorm.selectors.scaling.discard_rules import WORTH
from zeronorm.selectors.scaling.scaled_criterion import ScaledCriterion, is_zero, standing

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass
class Discarding:
    """The rounds of optimising and discarding, and what they left behind.

    Parameters
    ----------
    rule, step : which features leave in each round and how many; without a step there is one round only.
    bounded : factors between 0 and 1 instead of a constant sum of squares.
    """

    rule: str
    step: int | float | None
    bounded: bool
    zero_tol: float
    tol: float
    max_iter: int
    eliminated: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_iter: int = 0
    remedy: str = ""
    first: Descent | None = None

    def run(self, objective: ScaledCriterion, progress: Progress) -> None:
        """All rounds, until one feature is left or a hard margin cannot do with fewer."""
        m = objective.design.n_features
        region: Region = UnitBox() if self.bounded else ConstantSum(float(m))
        alive, start = np.arange(m), np.ones(m)
        with progress.task("Discarding features", m) as advance:
            while True:
                found = self._optimise(objective, start, region)
                ranked, n_out = self._ranked(objective, found)
                self.eliminated.extend(int(k) for k in alive[ranked[:n_out]])
                advance(n_out)
                if n_out == alive.size:
                    break
                staying = np.sort(ranked[n_out:])
                start = found.point[staying] if self.bounded else m * _shares(found.point[staying])
                objective = objective.take(staying)
                if not np.isfinite(objective(start)[0]):
                    self.eliminated.extend(int(k) for k in alive[ranked[n_out:]])
                    break
                alive = alive[staying]

    def _optimise(self, objective: ScaledCriterion, start: FloatArray, region: Region) -> Descent:
        found = descend(objective, start, region, tol=self.tol, max_iter=self.max_iter)
        self.n_iter += found.n_iter
        self.remedy = self.remedy or found.remedy
        if not objective.converged:
            self.remedy = self.remedy or "the machines did not meet their tolerance; lower C or standardize."
        self.first = self.first or found
        self.sizes.append(int(np.count_nonzero(~is_zero(found.point, self.zero_tol))))
        self.values.append(found.value)
        return found

    def _ranked(self, objective: ScaledCriterion, found: Descent) -> tuple[IntArray, int]:
        """The features, the worst first, and how many leave: those without a factor, then the least worth."""
        place = standing(found.point, found.slope, self.zero_tol, top=1.0 if self.bounded else np.inf)
        by_scale = order_by_score(place)[::-1]
        zero = is_zero(found.point, self.zero_tol)[by_scale]
        gone, rest = by_scale[zero], by_scale[~zero]
        if self.rule in WORTH and rest.size > 1:
            columns = np.sort(rest)
            value = WORTH[self.rule](objective.take(columns), found.point[columns])
            rest = columns[order_by_score(value)[::-1]]
        n_out = rest.size
        if self.step is not None and rest.size > 1:
            n_out = min(count_to_remove(self.step, rest.size), rest.size - 1)
        return np.concatenate([gone, rest]), gone.size + n_out

    def path(self, varying: IntArray, scale: FloatArray) -> SelectionPath:
        """The path over all features; those that took no part come last."""
        left_out = np.setdiff1d(np.arange(scale.size), varying)
        eliminated = varying[np.asarray(self.eliminated, dtype=np.intp)]
        return SelectionPath.from_elimination(
            np.concatenate([left_out[::-1], eliminated]),
            scale=scale,
            sizes=self.sizes,
            objective=np.asarray(self.values),
            own_size=self.sizes[0],
            n_iter=self.n_iter,
            converged=self.remedy == "",
            remedy=self.remedy,
        )


def _shares(scale_sq: FloatArray) -> FloatArray:
    return np.asarray(scale_sq / scale_sq.sum())
