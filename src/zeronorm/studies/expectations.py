"""Published figures and claims, and the rules by which ours are compared with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from zeronorm.studies.results import NotMeasured, Results

Origin = Literal["figure", "claim", "from memory", "expected here"]
Verdict = Literal["agrees", "differs", "not measured"]

ROUNDING_SLACK = 0.02
"""Share of half a unit in the last place that rounding on another machine may add."""

ORIGINS = {
    "figure": "a number printed in the paper",
    "claim": "a statement of the paper's text",
    "from memory": "believed from memory of the original, not from a source at hand",
    "expected here": "what the mathematics or our own calculation predicts, not a statement of the paper",
}


@dataclass(frozen=True)
class Finding:
    """One line of the comparison."""

    what: str
    origin: Origin
    published: str
    ours: str
    verdict: Verdict
    rule: str
    note: str = ""


class Judged(NamedTuple):
    """The outcome of checking a claim: what we saw, and whether it agrees."""

    ours: str
    agrees: bool


@dataclass(frozen=True)
class PublishedFigure:
    """A published mean of a metric, compared with ours by standard errors.

    ``scale`` turns our value into the published unit (100 for per cent); a ``width`` of 0 is for one fixed split,
    where ours must round to the printed number, which has so many ``decimals``.
    """

    what: str
    data: str
    arm: str
    size: int | None
    value: float
    metric: str = "error_rate"
    scale: float = 100.0
    unit: str = " %"
    width: float = 2.0
    decimals: int = 2
    origin: Origin = "figure"
    in_quick: bool = False
    note: str = ""

    def judge(self, results: Results) -> Finding:
        shown = f"{self.value:g}{self.unit}"
        rule = f"|ours − published| ≤ {self.width:g} standard errors, corrected for resplits"
        if self.width == 0.0:
            rule = "equal to the printed decimals"
        try:
            mean, error = results.mean_and_error(self.data, self.arm, self.size, self.metric)
        except NotMeasured as reason:
            return Finding(self.what, self.origin, shown, str(reason), "not measured", rule, self.note)
        mean, error = mean * self.scale, error * self.scale
        values = results.values(self.data, self.arm, self.size, self.metric)
        reach = self.width * error if self.width else (1.0 + ROUNDING_SLACK) * 0.5 * 10.0**-self.decimals
        verdict: Verdict = "agrees" if abs(mean - self.value) <= reach else "differs"
        ours = f"{mean:.2f}{self.unit}"
        if values.size > 1:
            plain = self.scale * float(values.std(ddof=1)) / np.sqrt(values.size)
            ours = f"{mean:.2f} ± {error:.2f}{self.unit} (sd/√J: {plain:.2f})"
        return Finding(self.what, self.origin, shown, ours, verdict, rule, self.note)


@dataclass(frozen=True)
class Claim:
    """A statement that the results must bear out; ``check`` looks at them."""

    what: str
    published: str
    rule: str
    check: Callable[[Results], Judged]
    origin: Origin = "claim"
    in_quick: bool = True
    note: str = ""

    def judge(self, results: Results) -> Finding:
        try:
            judged = self.check(results)
        except NotMeasured as reason:
            return self._finding(str(reason), "not measured")
        return self._finding(judged.ours, "agrees" if judged.agrees else "differs")

    def _finding(self, ours: str, verdict: Verdict) -> Finding:
        return Finding(self.what, self.origin, self.published, ours, verdict, self.rule, self.note)


Expectation = PublishedFigure | Claim
