"""Results of a study, and their comparison with the published ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from zeronorm.evaluation.significance import corrected_resampled_t, signed_rank
from zeronorm.evaluation.significance._effects import standard_error
from zeronorm_studies.code_version import UNKNOWN
from zeronorm_studies.study import FloatArray, Plan

Row = dict[str, Any]


class NotMeasured(ValueError):
    """The error for a value that the results do not hold; the message has the reason."""


@dataclass(frozen=True)
class PublishedDifference:
    """Mean of a minus b over the same trials, with a two-sided p-value and the interval that goes with the test:
    of the mean for the corrected t-test, of the pseudo-median for the signed rank test.
    """

    mean: float
    low: float
    high: float
    p_value: float
    interval_of: str

    def __str__(self) -> str:
        interval = f"95 % of the {self.interval_of}: {self.low:+.4f} to {self.high:+.4f}"
        return f"mean {self.mean:+.4f} ({interval}; p = {self.p_value:.3g})"


class Results:
    """All rows of a run: one per data set, configuration, trial and size.

    ``seconds`` is the time of all tasks, ``code`` the code that computed them.
    """

    def __init__(
        self,
        plan: Plan,
        rows: list[Row],
        missing: dict[str, str] | None = None,
        seconds: float = 0.0,
        code: str = UNKNOWN,
    ) -> None:
        self.plan = plan
        self.seconds, self.code = seconds, code
        self.rows = rows
        self.missing = missing or {}
        self._by_key: dict[tuple[str, str, int | None], list[Row]] = {}
        for row in rows:
            self._by_key.setdefault((row["data"], row["configuration"], row["asked_size"]), []).append(row)

    @property
    def keys(self) -> list[tuple[str, str, int | None]]:
        return list(self._by_key)

    def rows_of(self, data: str, config: str, size: int | None) -> list[Row]:
        """All trials of one data set, configuration and size, in order."""
        if config in self.missing:
            raise NotMeasured(f"{config} was left out: {self.missing[config]}")
        found = self._by_key.get((data, config, size))
        if not found:
            raise NotMeasured(f"{config} on {data} with size {size} is not part of this version of the study")
        return sorted(found, key=lambda row: int(row["trial"]))

    def values(self, data: str, config: str, size: int | None, metric: str = "error_rate") -> FloatArray:
        """A metric in every trial; an error if any trial has none, since means would not compare."""
        rows = self.rows_of(data, config, size)
        failed = [row for row in rows if row.get(metric) is None]
        if failed:
            reason = failed[0]["error"] or f"{metric} is not measured for this method"
            raise NotMeasured(f"{config} on {data}: {len(failed)} of {len(rows)} trials: {reason}")
        return np.asarray([row[metric] for row in rows], dtype=np.float64)

    def mean(self, data: str, config: str, size: int | None, metric: str = "error_rate") -> float:
        return float(self.values(data, config, size, metric).mean())

    def mean_and_error(
        self, data: str, config: str, size: int | None, metric: str = "error_rate"
    ) -> tuple[float, float]:
        """Mean and its standard error; for resplits of one sample the corrected one (Nadeau & Bengio)."""
        values = self.values(data, config, size, metric)
        if values.size < 2:
            return float(values.mean()), 0.0
        return float(values.mean()), standard_error(values, self.overlap(data, config, size))

    def overlap(self, data: str, config: str, size: int | None) -> float:
        """n_test / n_train of resplits, 0 for independent draws."""
        if next(d.independent for d in self.plan.data if d.label == data):
            return 0.0
        rows = self.rows_of(data, config, size)
        return float(np.mean([row["n_test"] / row["n_train"] for row in rows]))

    def difference(
        self, data: str, a: str, b: str, size: int | None, metric: str = "error_rate", b_size: Any = "same"
    ) -> PublishedDifference:
        """a minus b on the same trials: signed rank test for draws, corrected t-test for resplits."""
        left = self.values(data, a, size, metric)
        right = self.values(data, b, size if b_size == "same" else b_size, metric)
        overlap = self.overlap(data, a, size)
        if overlap == 0.0:
            test: Any = signed_rank(left, right)
        else:
            row = self.rows_of(data, a, size)[0]
            try:
                # As published: the papers' own comparisons are repeated with the test of Nadeau & Bengio.
                test = corrected_resampled_t(
                    left, right, n_train=row["n_train"], n_test=row["n_test"], common=0.0
                )
            except ValueError as error:
                raise NotMeasured(f"{a} and {b} on {data} cannot be compared: {error}") from error
        effect = test.difference
        kind = "pseudo-median" if overlap == 0.0 else "mean"
        return PublishedDifference(
            float(np.mean(left - right)), effect.low, effect.high, float(test.p_value), kind
        )

    def selections(self, data: str, config: str, size: int | None) -> list[list[int]]:
        """The selected columns in every trial that has a result; an error if none has."""
        rows = self.rows_of(data, config, size)
        found = [row["selected"] for row in rows if row["selected"] is not None]
        if not found:
            raise NotMeasured(f"{config} on {data}: no selection in {len(rows)} trials: {rows[0]['error']}")
        return found


# -- Published figures and claims, and the rules by which ours are compared with them --


Origin = Literal["figure", "claim", "from memory", "expected here"]
Verdict = Literal["agrees", "differs", "too few trials to tell", "not measured"]

CONFIDENCE = 0.95
"""Confidence level of the interval around our mean that must hold the published figure."""

WIDEST_INTERVAL = 1 / 3
"""Half-width of that interval, as a share of the larger of both figures, above which agreement would mean nothing."""

ROUNDING_SLACK = 0.02
"""Share of half a unit in the last digit that rounding on another computer may add."""

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


class ClaimCheck(NamedTuple):
    """The outcome of checking a claim: what was found, and whether it agrees."""

    ours: str
    agrees: bool


@dataclass(frozen=True)
class PublishedFigure:
    """A published mean of a metric, compared with ours by standard errors.

    ``scale`` turns our value into the published unit (100 for per cent). With ``is_fixed``, for one fixed split, ours
    must round to the printed number, which has so many ``decimals``. A share of errors in one random
    division of ``one_division_of`` test samples has a standard error of its own, which counts too.
    """

    what: str
    data: str
    config: str
    size: int | None
    value: float
    metric: str = "error_rate"
    scale: float = 100.0
    unit: str = " %"
    is_fixed: bool = False
    decimals: int = 2
    origin: Origin = "figure"
    in_quick: bool = False
    note: str = ""
    one_division_of: int | None = None

    @property
    def rule(self) -> str:
        if self.is_fixed:
            return "equal to the printed decimals"
        rule = f"within the {CONFIDENCE:.0%} t interval of ours, corrected for resplits"
        if self.one_division_of is None:
            return rule
        return f"{rule}, with that of the published one ({self.error_of_published:.2f}, {self.one_division_of} samples)"

    @property
    def error_of_published(self) -> float:
        """Binomial standard error in the published unit; 0 where it is not known."""
        share = self.value / self.scale
        variance = 0.0 if self.one_division_of is None else share * (1.0 - share) / self.one_division_of
        return float(self.scale * np.sqrt(variance))

    def compare(self, results: Results) -> Finding:
        shown, rule = f"{self.value:g}{self.unit}", self.rule
        try:
            mean, error = results.mean_and_error(self.data, self.config, self.size, self.metric)
        except NotMeasured as reason:
            return Finding(self.what, self.origin, shown, str(reason), "not measured", rule, self.note)
        mean, error = mean * self.scale, error * self.scale
        values = results.values(self.data, self.config, self.size, self.metric)
        verdict = self.verdict(mean, error, values.size)
        ours = f"{mean:.2f}{self.unit}"
        if values.size > 1:
            plain = self.scale * float(values.std(ddof=1)) / np.sqrt(values.size)
            ours = f"{mean:.2f} ± {error:.2f}{self.unit} (sd/√J: {plain:.2f})"
        return Finding(self.what, self.origin, shown, ours, verdict, rule, self.note)

    def verdict(self, mean: float, error: float, n_trials: int) -> Verdict:
        """Whether our mean over the trials, with its standard error, agrees with the published figure.

        The interval has the t quantile of n_trials - 1 degrees of freedom; where the published figure has an error
        of its own, they are those of Welch and Satterthwaite. An interval that is wide compared with the figures
        holds almost any number, so it shows no agreement.
        """
        gap = abs(mean - self.value)
        if self.is_fixed:
            return "agrees" if gap <= (1.0 + ROUNDING_SLACK) * 0.5 * 10.0**-self.decimals else "differs"
        reach = interval_reach(error, n_trials, self.error_of_published)
        if gap > reach:
            return "differs"
        return (
            "agrees"
            if reach <= WIDEST_INTERVAL * max(abs(mean), abs(self.value))
            else "too few trials to tell"
        )


def interval_reach(error: float, n_trials: int, other: float = 0.0) -> float:
    """Half-width of the t interval of a mean over some trials; ``other`` is a further standard error that is known."""
    if n_trials < 2:
        return math.inf
    total = math.hypot(error, other)
    df = (n_trials - 1) * (total / error) ** 4 if error > 0.0 else math.inf
    return float(stats.t.ppf((1.0 + CONFIDENCE) / 2.0, df)) * total


@dataclass(frozen=True)
class Claim:
    """A published statement, and the function ``check`` that compares it with the results."""

    what: str
    published: str
    rule: str
    check: Callable[[Results], ClaimCheck]
    origin: Origin = "claim"
    in_quick: bool = True
    note: str = ""

    def compare(self, results: Results) -> Finding:
        try:
            judged = self.check(results)
        except NotMeasured as reason:
            return self._finding(str(reason), "not measured")
        return self._finding(judged.ours, "agrees" if judged.agrees else "differs")

    def _finding(self, ours: str, verdict: Verdict) -> Finding:
        return Finding(self.what, self.origin, self.published, ours, verdict, self.rule, self.note)


Expectation = PublishedFigure | Claim


# -- Rules that several studies use --


Check = Callable[[Results], ClaimCheck]
LEVEL = 0.05


def lower_mean(
    data: str, better: Iterable[str], worse: Iterable[str], size: int | None, metric: str = "error_rate"
) -> Check:
    """Every one of ``better`` has a lower mean than every one of ``worse``."""
    better, worse = tuple(better), tuple(worse)

    def check(results: Results) -> ClaimCheck:
        left = {config: results.mean(data, config, size, metric) for config in better}
        right = {config: results.mean(data, config, _size(results, config, size), metric) for config in worse}
        shown = ", ".join(f"{config} {value:.4g}" for config, value in {**left, **right}.items())
        return ClaimCheck(shown, max(left.values()) < min(right.values()))

    return check


def significantly_lower(data: str, better: str, worse: Iterable[str], size: int | None) -> Check:
    """``better`` has a lower error than each of ``worse``, p < 0.05 on the same trials."""
    worse = tuple(worse)

    def check(results: Results) -> ClaimCheck:
        found = {
            config: results.difference(data, better, config, size, b_size=_size(results, config, size))
            for config in worse
        }
        shown = "; ".join(f"{better} − {config}: {difference}" for config, difference in found.items())
        return ClaimCheck(shown, all(d.mean < 0 and d.p_value < LEVEL for d in found.values()))

    return check


def indistinguishable(data: str, configs: Iterable[str], size: int | None) -> Check:
    """No pair of configurations differs, p ≥ 0.05 divided by the number of pairs (Bonferroni)."""
    configs = tuple(configs)

    def check(results: Results) -> ClaimCheck:
        pairs = [(a, b) for i, a in enumerate(configs) for b in configs[i + 1 :]]
        found = [(a, b, results.difference(data, a, b, size)) for a, b in pairs]
        shown = "; ".join(f"{a} − {b}: {difference}" for a, b, difference in found)
        return ClaimCheck(shown, all(d.p_value >= LEVEL / len(pairs) for _, _, d in found))

    return check


def within(data: str, a: str, b: str, size: int | None, margin: float) -> Check:
    """The means of two configurations are within ``margin`` of each other."""

    def check(results: Results) -> ClaimCheck:
        left, right = results.mean(data, a, size), results.mean(data, b, size)
        return ClaimCheck(f"{a} {left:.4g}, {b} {right:.4g}", abs(left - right) <= margin)

    return check


def _size(results: Results, config: str, size: int | None) -> int | None:
    """The size in the records: None for configurations that keep all features."""
    return None if next(a.keeps_all for a in results.plan.configs if a.label == config) else size
