"""Measures of a procedure from its records: error, chance, stability, sizes, and warnings about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import Message, parameter, setting
from zeronorm.evaluation import _summary as summary
from zeronorm.evaluation._records import columns_of, own_rows_of
from zeronorm.resampling._metrics import METRICS, as_metric
from zeronorm.result._lists import outside_note
from zeronorm.result._sentences import FEWEST_PERMUTATIONS, LEVEL, are_exchanges_few
from zeronorm.workflow._chance import BASELINE, PermutationTest, chance_level, direction
from zeronorm.workflow._options import Settings
from zeronorm.workflow._procedures import primary_metric_of

if TYPE_CHECKING:
    from zeronorm.datasets import Table

WIDE_INTERVAL = 0.15  # half-width of a rate
UNSTABLE = 0.4


def measure(
    label: str,
    records: Any,
    baseline: Any,
    table: Table,
    settings: Settings,
    permuted: PermutationTest | None = None,
) -> dict[str, Any]:
    """Error with interval, chance, p-value, stability and sizes of one procedure on the outer folds."""
    metric = primary_metric_of(table, settings)
    rows = own_rows_of(columns_of(records), label)
    own = next((curve.own for curve in summary.error_curves(rows, metric)), None)
    chance = chance_level(columns_of(baseline), metric)
    found: dict[str, Any] = {
        "method": label,
        "metric": metric,
        "label": summary.metric_label(metric),
        "greater_is_better": direction(table, settings) > 0,
        "value": None if own is None else own.mean,
        "low": None if own is None else own.low,
        "high": None if own is None else own.high,
        "no_interval": "" if own is None else own.no_interval,
        "n_splits": 0 if own is None else own.n_splits,
        "chance": chance,
        "p_value": None if permuted is None else permuted.p_value,
        "smallest_p_value": None if permuted is None else permuted.smallest_p_value,
        "n_permutations": 0 if permuted is None else len(permuted.values),
        "permutation_values": None if permuted is None else list(permuted.values),
        "also": _other_metrics(rows, metric),
        "stability": _stability(rows, table.n_features),
        **_per_fold(rows),
    }
    found["beats_chance"] = beats_chance(found)
    return found


def beats_chance(measured: dict[str, Any]) -> bool | None:
    """Whether the procedure predicts: p at most 0.05 or, without permutations, chance outside the interval.

    None where it was not tested: no interval and no permutations, or too few permutations for a p-value of 0.05
    although none of them was as good, or sample groups that allow no such p-value.
    """
    value, chance, p_value = measured["value"], measured["chance"], measured["p_value"]
    if value is None:
        return None
    sign = 1.0 if measured["greater_is_better"] else -1.0
    if chance is not None and sign * value <= sign * chance:
        return False
    if p_value is not None:
        if are_exchanges_few(measured):
            return None
        is_least = p_value * (1 + measured["n_permutations"]) < 1.5
        return True if p_value <= LEVEL else None if is_least else False
    worse_end = measured["low"] if sign > 0 else measured["high"]
    if worse_end is None or chance is None:
        return None
    return bool(sign * worse_end > sign * chance)


def _other_metrics(rows: dict[str, list[Any]], metric: str) -> dict[str, float]:
    """Means of the other recorded metrics."""
    others = [name for name in METRICS if name in rows and name != metric]
    means = {name: [value for value in rows[name] if value is not None] for name in others}
    return {name: float(np.mean(values)) for name, values in means.items() if values}


def _per_fold(rows: dict[str, list[Any]]) -> dict[str, Any]:
    """Numbers of features per fold, time, and errors of failed folds."""
    seconds = [value for value in rows["fit_seconds"] if value is not None]
    return {
        "sizes": [size for size in rows["n_selected"] if size is not None],
        "seconds": float(np.mean(seconds)) if seconds else None,
        "failed": [error for error in rows["error"] if error is not None],
    }


def _stability(rows: dict[str, list[Any]], n_features: int) -> dict[str, Any]:
    points = summary.stabilities(rows, n_features)
    if not points:
        return {"value": None, "low": None, "high": None}
    return {"value": points[0].nogueira, "low": points[0].low, "high": points[0].high}


def result_warnings(found: dict[str, Any], size: dict[str, Any]) -> list[str]:
    """Warnings about the evaluation: failed folds, chance, a wide interval, low stability, the largest size."""
    notes = []
    if found["failed"]:
        notes.append(
            f"{len(found['failed'])} of {found['n_splits'] + len(found['failed'])} test folds could not be evaluated: "
            f"{found['failed'][0]}. The error is the mean over the others."
        )
    if size.get("chosen") == 0:
        less_strict = setting("level", 0.2) if "control" in size else setting("params", {"level": 0.2})
        notes.append(
            "The method selected no feature, because none passed its control of false selections. Add samples, set a "
            f"less strict level ({less_strict}), or choose a method that ranks the features."
        )
    else:
        notes += _doubts_about_chance(found)
        notes += outside_note(found["sizes"], size["chosen"]) if size.get("chosen") else []
    if as_metric(found["metric"]).unit == "%" and found["low"] is not None:
        half_width = (found["high"] - found["low"]) / 2
        if half_width > WIDE_INTERVAL:
            notes.append(
                f"The 95 % interval of the {found['label']} is wide, ±{100 * half_width:.0f} percentage points: there "
                "are too few samples for a precise estimate."
            )
    stability = found["stability"]["value"]
    if stability is not None and stability < UNSTABLE:
        notes.append(
            f"The selection is not stable (stability {stability:.2f}, 1 is best): with other samples, most of the "
            "selected features would be different. Do not rely on a single feature."
        )
    if size.get("at_largest") and found["beats_chance"] is not False:
        notes.append(
            f"The chosen number of features, {size['chosen']}, is the largest that was tried. More may be better: "
            f"raise {parameter('max_features', 'the name')}."
        )
    return [Message(note) for note in notes]


def _doubts_about_chance(found: dict[str, Any]) -> list[str]:
    """The warning that the result is not shown to be better than chance, or was not tested."""
    if found["beats_chance"] or found["value"] is None:
        return []
    if found.get("added"):
        return _doubts_about_adding(found)
    p_value, count = found["p_value"], found["n_permutations"]
    if found["beats_chance"] is None:
        reason = f"the {found['label']} has no interval, and no permutations were made"
        remedy = f"raise {parameter('permutations', 'the name')} to {FEWEST_PERMUTATIONS} or more"
        if count:
            reason = f"{count} permutations cannot give a p-value of {LEVEL}"
        if are_exchanges_few(found):
            reason, remedy = (
                f"the sample groups allow only {count + 1} different targets, and no p-value below "
                f"{found['smallest_p_value']:.2g}",
                "add sample groups",
            )
        return [
            f"Whether the features predict better than chance was not tested: {reason}. To test it, {remedy}."
        ]
    sign = 1.0 if found["greater_is_better"] else -1.0
    if found["chance"] is not None and sign * found["value"] <= sign * found["chance"]:
        reason = f"the {found['label']} is not {'above' if sign > 0 else 'below'} that of chance"
    elif p_value is not None:
        reason = f"p = {p_value:.2g}"
    else:
        reason = f"the interval of the {found['label']} contains chance"
    return [
        f"The result is not shown to be better than chance ({reason}). Do not use the features for prediction."
    ]


def _doubts_about_adding(found: dict[str, Any]) -> list[str]:
    """The warning that the features are not shown to add to the covariates, or that this was not tested."""
    added = found["added"]
    if found["beats_chance"] is None:
        return [
            "Whether the features add to the covariates was not tested: the test folds give no interval, or there are "
            f"too few permutations. To test it, raise {parameter('permutations', 'the name')} to {FEWEST_PERMUTATIONS} "
            "or more."
        ]
    sign = 1.0 if found["greater_is_better"] else -1.0
    if sign * added["difference"] <= 0.0:
        reason = f"with them the {found['label']} is not better than with the covariates alone"
    elif added["p_value"] is not None:
        reason = f"p = {added['p_value']:.2g}"
    else:
        reason = "the interval of the difference contains 0"
    return [
        f"The features are not shown to add anything to the covariates ({reason}). Use the covariates alone."
    ]


def check_something_worked(records: Any, metric: str, methods: Sequence[str]) -> None:
    """Raise an error for a method that failed on every fold, with the reason of its first failure."""
    columns = columns_of(records)
    for label in methods:
        if label == BASELINE:
            continue
        rows = own_rows_of(columns, label)
        if all(value is None for value in rows[metric]):
            reason = next((error for error in rows["error"] if error), "no reason was recorded")
            raise ValueError(f"The method {label!r} failed on every fold: {reason}")
