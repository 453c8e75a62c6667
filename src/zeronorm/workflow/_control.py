"""The construction that limits false features for ``control``: which one, and why.

False discovery rate (``control="fdr"``), the first that applies:

1. Two classes or a real target: dummies. They take two to five passes over the data at any width, and correlated
   features are weighed against each other. Samples in groups are combined into rows with independent noise.
2. Several classes, enough independent samples for 1/level features, and up to ``MOST_SECONDS`` for one fit: knockoffs.
   They keep 1/level features or none.
3. Up to ``MOST_SECONDS`` for the 300 fits: half-samples with the integrated bound, for few samples.
4. Otherwise probes with the correction of Benjamini and Hochberg: a few passes over the data.

Probability of any false feature (``"fwer"``): probes around the Fisher score. A bound on the expected number would do
as well, by Markov's inequality, but it is much less sharp.

Expected number of false features (``"expected"``): half-samples where their halves have enough samples and 100 fits are
affordable, since they count features that act only together; otherwise probes at the rate level/p.

The figures are on the pages on trust (``docs/trust.rst``) and on error control (``docs/guide/error_control.rst``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zeronorm._messages import OptionError, setting
from zeronorm.engines.knockoffs._filter import samples_needed
from zeronorm.registry import get_method
from zeronorm.selection.target import TimeToEvent

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.workflow._options import SelectOptions

LEVELS = {"fdr": 0.1, "fwer": 0.05, "expected": 1.0}  # where the user sets none
LIMITED = {  # as the subject of a sentence
    "fdr": "the expected share of false features among the selected ones (false discovery rate)",
    "fwer": "the probability of any false feature among the selected ones (family-wise error rate)",
    "expected": "the expected number of false features among the selected ones",
}
FEWEST_FOR_HALVES = 100  # independent samples
MOST_SECONDS = 60.0  # that one fit may take; the procedure is fitted on all samples and in every fold
# Measured on 200 × 1000 to 200 × 20,000 values with one core (2026-11-18): seconds per value of knockoffs, and of one
# of the fits of least-angle regression on halves.
SECONDS_OF_KNOCKOFFS, SECONDS_OF_HALF = 3e-6, 8e-8
FITS_ON_HALVES, FITS_OF_INTEGRATED = 100, 300


@dataclass(frozen=True)
class Facts:
    """What the choice of the construction depends on.

    Parameters
    ----------
    kind : "binary", "multiclass" or "regression".
    n_units : number of independent samples: sample groups, where there are any.
    n_samples, n_features : size of the table.
    """

    kind: str
    n_units: int
    n_samples: int
    n_features: int

    @property
    def n_values(self) -> int:
        return self.n_samples * self.n_features


@dataclass(frozen=True)
class Construction:
    """The chosen method, unfitted, and why it was chosen.

    Parameters
    ----------
    method : its registered name.
    selector : the method with its parameters.
    reason : a clause for "It was chosen because …".
    false_means : which features count as false.
    """

    method: str
    selector: Any
    reason: str
    false_means: str

    def described(self, control: str, level: float) -> dict[str, Any]:
        """The entry of the result."""
        return {
            "kind": control,
            "level": level,
            "limited": LIMITED[control],
            "method": self.method,
            "reason": self.reason,
            "false_means": self.false_means,
        }


UNRELATED = "a feature without any relation to the target"
NO_EFFECT = "a feature that adds nothing to the others, also one correlated with a relevant feature"
RARELY_CHOSEN = "a feature that is chosen on half of the samples no more often than by chance"


def level_of(options: SelectOptions) -> float:
    """The level that the user set, or the usual one."""
    return LEVELS[str(options.control)] if options.level is None else float(options.level)


def choose_construction(table: Table, options: SelectOptions) -> Construction:
    """The construction for ``control`` on these data."""
    control, level = str(options.control), level_of(options)
    if options.keep or options.has_own_groups:
        name = "keep" if options.keep else "feature_groups"
        raise OptionError(
            f"does not apply together with {setting('control', control)}: what is always selected, or only as a whole, "
            "is not tested. Leave one of them out.",
            name,
        )
    if control == "expected" and level >= table.n_features:
        raise OptionError(
            f"must be below the number of features, {table.n_features}, with {setting('control', control)}: an "
            f"expected number of {level:g} false features limits nothing. Lower it.",
            "level",
        )
    if table.target.kind == TimeToEvent.kind:
        return _for_times(table, control, level)
    return CHOICES[control](facts_of(table), table.task, level)


def facts_of(table: Table) -> Facts:
    """What the choice depends on."""
    n_units = table.n_samples if table.sample_groups is None else len(set(map(str, table.sample_groups)))
    return Facts(table.target.kind, n_units, table.n_samples, table.n_features)


# -- The rule ---------------------------------------------------------------------------------------


def _for_discovery_rate(facts: Facts, task: str, level: float) -> Construction:
    if facts.kind != "multiclass":
        return Construction(
            "dummy-selector",
            get_method("dummy-selector").cls(level=level, task=task),
            f"dummies need few passes over the {facts.n_features} features, and correlated ones are weighed against "
            "each other",
            NO_EFFECT,
        )
    cause = "the target has several classes"
    needed = samples_needed(facts.n_features, math.ceil(1.0 / level - 1e-9))
    is_enough = facts.n_units >= needed
    if is_enough and facts.n_values * SECONDS_OF_KNOCKOFFS <= MOST_SECONDS:
        return Construction(
            "knockoff-selector",
            get_method("knockoff-selector").cls(level=level, task=task),
            f"{cause}, and {facts.n_units} independent samples are enough for knockoffs of {facts.n_features} features "
            f"(about {math.ceil(needed)})",
            NO_EFFECT,
        )
    lacking = (
        f"knockoffs of {facts.n_features} features take too long"
        if is_enough
        else f"{facts.n_units} independent samples are too few for knockoffs (about {math.ceil(needed)})"
    )
    if facts.n_values * SECONDS_OF_HALF * FITS_OF_INTEGRATED > MOST_SECONDS:
        return Construction(
            "probe-selector",
            _probes(task, level, "fdr"),
            f"{cause}, {lacking}, and so do {FITS_OF_INTEGRATED} fits on half-samples"
            if is_enough
            else f"{cause}, {lacking}, and {FITS_OF_INTEGRATED} fits on half-samples take too long",
            UNRELATED,
        )
    lasso = get_method("lasso").cls(method="lars", task=task)
    return Construction(
        "stability-selection",
        get_method("stability-selection").cls(lasso, bound="integrated", level=level),
        f"{cause}, and {lacking}",
        RARELY_CHOSEN,
    )


def _for_any_false(facts: Facts, task: str, level: float) -> Construction:
    return Construction(
        "probe-selector",
        _probes(task, level, "fwer"),
        "probes give each feature a p-value, for any target and any dependence of the samples in groups, and Holm's "
        "correction is sharper than a bound on the expected number",
        UNRELATED,
    )


def _for_expected_number(facts: Facts, task: str, level: float) -> Construction:
    lacking = ""
    if facts.n_units < FEWEST_FOR_HALVES:
        lacking = f"halves of {facts.n_units} independent samples have little power"
    elif facts.n_values * SECONDS_OF_HALF * FITS_ON_HALVES > MOST_SECONDS:
        lacking = (
            f"{FITS_ON_HALVES} fits on halves of {facts.n_samples} × {facts.n_features} values take too long"
        )
    elif level < _least_bound(facts.n_features):
        lacking = (
            f"with {facts.n_features} features the bound for half-samples is at least "
            f"{_least_bound(facts.n_features):.2g}"
        )
    if lacking:
        return Construction(
            "probe-selector",
            _probes(task, level / facts.n_features, "rate"),
            f"{lacking}, and with probes each irrelevant feature passes with the probability level/p",
            UNRELATED,
        )
    lasso = get_method("lasso").cls(method="lars", task=task)
    return Construction(
        "stability-selection",
        get_method("stability-selection").cls(lasso, false_selections=level),
        f"halves of {facts.n_units} independent samples are large enough, and features that act together are found",
        RARELY_CHOSEN,
    )


def _for_times(table: Table, control: str, level: float) -> Construction:
    probes = {"fdr": (level, "fdr"), "fwer": (level, "fwer"), "expected": (level / table.n_features, "rate")}
    selector = get_method("probe-selector").cls(
        get_method("cox-score").cls(), level=probes[control][0], control=probes[control][1]
    )
    reason = "probes give each feature a p-value for any target, while dummies and knockoffs need classes or numbers"
    return Construction("probe-selector", selector, reason, UNRELATED)


def _probes(task: str, level: float, control: str) -> Any:
    fisher = get_method("fisher").cls(task=task)
    return get_method("probe-selector").cls(fisher, level=level, control=control)


def _least_bound(n_features: int) -> float:
    """The bound of half-samples for one feature per half, with the usual threshold 0.75."""
    return 2.0 / n_features


CHOICES: Mapping[str, Callable[[Facts, str, float], Construction]] = {
    "fdr": _for_discovery_rate,
    "fwer": _for_any_false,
    "expected": _for_expected_number,
}
