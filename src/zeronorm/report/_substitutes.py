"""The table of the features that would do as well as the selected ones."""

from __future__ import annotations

from dataclasses import dataclass

from zeronorm.evaluation.stand_ins._answers import FeatureSubstitutes, Substitutes
from zeronorm.report._svg import visible
from zeronorm.resampling._metrics import as_metric
from zeronorm.result._record import ResultData

MOST_NAMED = 8  # substitutes of one feature in a row


@dataclass(frozen=True)
class SubstituteLine:
    """One row: a selected feature, whether others can stand in for it, which, and with what error."""

    name: str
    status: str
    others: str
    errors: str
    remark: str


@dataclass(frozen=True)
class SubstituteTable:
    """The table with the sentences above and below it."""

    sentence: str
    metric: str
    error: str
    best: str
    lines: list[SubstituteLine]
    explanation: str


def substitute_table(result: ResultData) -> SubstituteTable | None:
    """The table of a result; None where substitutes were not sought."""
    if not result.stored_substitutes:
        return None
    found = Substitutes.from_dict(result.stored_substitutes)
    metric = as_metric(found.metric)
    best = ""
    if found.best_error is not None and set(found.best) != {feature.name for feature in found.features}:
        names = ", ".join(visible(name, 40) for name in found.best)
        best = (
            f"Best of the lists that were measured: {names} ({metric.format(found.best_error)}); as the best of many "
            "it is somewhat too good."
        )
    return SubstituteTable(
        found.sentence(),
        metric.text,
        metric.format(found.error),
        best,
        [_line(feature, found) for feature in found.features],
        "A feature can stand in for a selected one if it is associated with the target given the other selected "
        "features, if no more than a fiftieth of what the selected one adds is seen once it is given, if these samples "
        f"are enough to have seen more than {100 * found.largest_loss:.0f} % of it (level {found.level:g}), and "
        "if the error with it in its place is within one standard error on the same folds. Where the samples are too "
        "few to show that, it cannot be told. Single replacements were tested, not their combinations. The errors are "
        "those of fixed lists that were selected on all samples: compare them only with each other.",
    )


def _line(feature: FeatureSubstitutes, found: Substitutes) -> SubstituteLine:
    metric, shown = as_metric(found.metric), feature.substitutes[:MOST_NAMED]
    more = len(feature.substitutes) - len(shown)
    names = ", ".join(f"{visible(each.name, 40)} (r = {each.correlation:.2f})" for each in shown)
    errors = [each.error for each in feature.substitutes if each.error is not None]
    span = ""
    if errors:
        low, high = metric.format(min(errors)), metric.format(max(errors))
        span = low if low == high else f"{low} to {high}"
    unclear = ""
    if feature.unclear:
        named = ", ".join(visible(name, 40) for name in feature.unclear[:MOST_NAMED])
        rest = feature.n_open - min(len(feature.unclear), MOST_NAMED)
        unclear = f"cannot be told: {named}{f' and {rest} more' if rest > 0 else ''}"
    return SubstituteLine(
        visible(feature.name, 60),
        {"found": "yes", "none": "no", "cannot be told": "cannot be told"}[feature.status],
        names + (f" and {more} more" if more > 0 else "") or "–",
        span or "–",
        "; ".join(text for text in (feature.reason, unclear) if text) or "–",
    )
