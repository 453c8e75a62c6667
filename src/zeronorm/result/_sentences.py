"""The result in sentences: the headline, the error, the sizes, the effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zeronorm.datasets._table import counted
from zeronorm.evaluation import _summary as summary
from zeronorm.evaluation.learning._answer import LearningCurve
from zeronorm.evaluation.stand_ins._answers import Substitutes

if TYPE_CHECKING:
    from zeronorm.result._record import ResultData, SelectedFeature

LEVEL = 0.05  # of the test against chance
FEWEST_PERMUTATIONS = round(1 / LEVEL) - 1  # that can give a p-value of LEVEL
EFFECTS = {
    "cohens_d": "Cohen's d",
    "eta_squared": "η²",
    "correlation": "correlation with the target",
    "hazard_ratio": "hazard ratio per standard deviation",
}


def headline(result: ResultData) -> str:
    """The main finding in one line; it claims or denies prediction only where ``beats_chance`` is true or false."""
    data = result.data
    features = counted(data["n_features"], "feature")
    if result.panel:
        return _panel_headline(result)
    if result.kind == "comparison":
        return f"{len(result.methods)} methods compared on {data['n_samples']} samples and {features}"
    found = result.procedure
    count = len(result.selected)
    if not found:
        return f"Selection from {features}"
    if found.get("added"):
        return _added_headline(found, count)
    if count == 0:
        return f"No feature of {data['n_features']} was selected for {data['target']}"
    if found["beats_chance"]:
        return f"{count} of {features} {'predicts' if count == 1 else 'predict'} {data['target']}"
    if found["beats_chance"] is None:
        return f"{count} of {features} selected for {data['target']}: {_untested(found)}"
    those = "this feature predicts" if count == 1 else f"these {count} features predict"
    return f"No evidence that {those} {data['target']}"


def _panel_headline(result: ResultData) -> str:
    """Whether a given list predicts, and whether better than random lists of its size."""
    panel, own, target = result.panel, result.table[0], result.data["target"]
    given = f"the list of {counted(len(panel['features']), 'feature')}"
    if own.get("added"):
        return _list_headline(given, own)
    if own["beats_chance"] is False:
        return f"No evidence that {given} predicts {target}"
    if own["beats_chance"] is None:
        return f"{given.capitalize()} for {target}: {_untested(own)}"
    start, p_value = f"{given.capitalize()} predicts {target}", panel["p_value"]
    if p_value is None:
        return start
    if p_value <= LEVEL:
        return f"{start} better than random lists of its size (p = {p_value:.2g})"
    return f"{start}, but is not shown to be better than random lists of its size (p = {p_value:.2g})"


def _list_headline(given: str, own: dict[str, Any]) -> str:
    """Whether a given list adds to the covariates."""
    added = own["added"]
    others = listed(added["covariates"])
    if own["beats_chance"] is False:
        return f"No evidence that {given} adds anything to {others}"
    if own["beats_chance"] is None:
        return f"{given.capitalize()} beside {others}: {_change(own)}. Not tested"
    return f"{given.capitalize()} adds to {others}: {_change(own)}"


def _change(found: dict[str, Any]) -> str:
    """The metric of the covariates alone and of both, and the p-value of the difference where there is one."""
    added = found["added"]
    values = [summary.format_metric(added[name], found["metric"]) for name in ("covariates_alone", "both")]
    p_value = "" if added["p_value"] is None else f", p = {added['p_value']:.2g}"
    return f"{found['label']} {values[0]} → {values[1]}{p_value}"


def _added_headline(found: dict[str, Any], count: int) -> str:
    """Whether the features add to the covariates, with the metric without and with them."""
    added = found["added"]
    others = listed(added["covariates"])
    if found["beats_chance"] is False or count == 0:
        those = "this feature adds" if count == 1 else f"these {count} features add"
        return f"No evidence that {those if count else 'any feature adds'} anything to {others}"
    selected = f"{counted(count, 'feature')} selected beside {others}"
    if added["difference"] is None:
        return f"{selected}: the error could not be measured"
    if found["beats_chance"] is None:
        return f"{selected}: {_change({**found, 'added': {**added, 'p_value': None}})}. Not tested"
    return f"{counted(count, 'feature')} {'adds' if count == 1 else 'add'} to {others}: {_change(found)}"


def listed(names: Sequence[str]) -> str:
    """Names with commas, and "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def added_sentence(found: dict[str, Any]) -> str:
    """What the features add to the covariates, with the interval and the test; empty without covariates."""
    added = found.get("added")
    if not added or added["difference"] is None:
        return ""

    def shown(value: float | None) -> str:
        return "–" if value is None else summary.format_metric(value, found["metric"])

    text = (
        f"On the same test folds the {found['label']} of {listed(added['covariates'])} alone is "
        f"{shown(added['covariates_alone'])}, of the features alone {shown(added['features_alone'])}, and of both "
        f"{shown(added['both'])}."
    )
    if added["low"] is not None:
        text += (
            f" The difference that the features make is {shown(added['difference'])} (95 % interval "
            f"{shown(added['low'])} to {shown(added['high'])})."
        )
    if added["p_value"] is not None:
        text += (
            f" The test repeats the whole procedure on {added['n_permutations']} targets with the same relation to the "
            f"covariates, but none to the features beside them (p = {added['p_value']:.2g})."
        )
    return text


def _untested(found: dict[str, Any]) -> str:
    """The measured value, for a result that was not tested against chance."""
    if found["value"] is None:
        return "the error could not be measured"
    metric = found["metric"]
    at_chance = found["chance"]
    beside = "" if at_chance is None else f" ({summary.format_metric(at_chance, metric)} without any feature)"
    needed = f"at least {FEWEST_PERMUTATIONS} permutations"
    return (
        f"{found['label']} {summary.format_metric(found['value'], metric)}{beside}. Not tested against chance: that "
        f"needs {'more sample groups' if are_exchanges_few(found) else needed}"
    )


def are_exchanges_few(found: dict[str, Any]) -> bool:
    """Whether the sample groups allow too few permutations for a p-value of ``LEVEL``."""
    smallest = found.get("smallest_p_value")
    return smallest is not None and smallest > LEVEL


def error_sentence(found: dict[str, Any]) -> str:
    """The measured value with its interval and p-value, and the value without features."""
    if not found or found["value"] is None:
        return "The error could not be measured."

    def shown(value: float) -> str:
        return summary.format_metric(value, found["metric"])

    interval = (
        f" (95 % interval for the models fitted here {shown(found['low'])} to {shown(found['high'])})"
        if found["low"] is not None
        else f" ({found['no_interval']})" * bool(found.get("no_interval"))
    )
    others = "".join(
        f", {summary.metric_label(name)} {summary.format_metric(value, name)}"
        for name, value in found["also"].items()
        if name in ("r2", "uno_concordance")
    )
    text = (
        f"The {found['label']} on samples that were not used for selection is {shown(found['value'])}{interval}"
        f"{others}, over {found['n_splits']} test folds."
    )
    if found["chance"] is not None:
        text += f" Without any feature it is {shown(found['chance'])}."
    if found.get("added"):
        return f"{text} {added_sentence(found)}".rstrip()
    if found["p_value"] is not None:
        text += f" {permutation_sentence(found['p_value'], found['n_permutations'])}"
    return text


def permutation_sentence(p_value: float, n_permutations: int) -> str:
    """How often the procedure did as well on permuted targets."""
    as_good = round(p_value * (1 + n_permutations)) - 1
    outcome = {0: "it never did as well there", 1: "it did as well there once"}.get(
        as_good, f"it did as well there {as_good} times"
    )
    return f"The whole procedure was repeated on {n_permutations} permuted targets; {outcome} (p = {p_value:.2g})."


def panel_sentence(result: ResultData) -> str:
    """How a given list compares with random lists; empty without a list or random lists."""
    panel = result.panel
    if not panel or not panel["random_values"]:
        return ""
    values, own = panel["random_values"], result.table[0]
    beside = f" beside {listed(own['added']['covariates'])}" if own.get("added") else ""
    size = counted(len(panel["features"]), "feature")
    mean = summary.format_metric(sum(values) / len(values), own["metric"])
    as_good = round(panel["p_value"] * (1 + len(values))) - 1
    return (
        f"Random lists of {size}{beside} have a mean {own['label']} of {mean} on the same folds; {as_good} of "
        f"{len(values)} are as good as this list (p = {panel['p_value']:.2g})."
    )


def size_sentence(result: ResultData) -> str:
    """The sizes of the sets that were selected in the folds, and of the final set."""
    sizes = result.procedure.get("sizes") or []
    if not sizes or result.kind != "selection":
        return ""
    if len(set(sizes)) == 1:
        counted = f"{sizes[0]} {'feature' if sizes[0] == 1 else 'features'} in each fold"
    else:
        listed = ", ".join(map(str, sizes)) if len(sizes) <= 10 else f"{min(sizes)} to {max(sizes)}"
        counted = f"{listed} features in the folds"
    return (
        f"This is measured for the whole procedure, which selected {counted}. From all samples it selected "
        f"{len(result.selected)}."
    )


def control_sentence(size: dict[str, Any]) -> str:
    """What was limited to which level, by which method, and why this one; empty without ``control``."""
    found = size.get("control")
    if not found:
        return ""
    return (
        f"To keep {found['limited']} at {found['level']:g} or less, {found['method']} was chosen because "
        f"{found['reason']}. False is {found['false_means']}."
    )


def answer_sentences(result: ResultData) -> list[str]:
    """What the substitutes and the learning curve say, where the run has them."""
    found: list[str] = []
    if result.stored_substitutes:
        found.append(Substitutes.from_dict(result.stored_substitutes).sentence())
    if result.stored_learning_curve:
        found.append(LearningCurve.from_dict(result.stored_learning_curve).sentence())
    return found


def effect_name(features: Sequence[SelectedFeature]) -> str:
    """The name of the measure of effect that the features have."""
    return EFFECTS.get(
        next((feature.effect_kind for feature in features if feature.effect_kind), ""), "effect"
    )


def compared_classes(features: Sequence[SelectedFeature]) -> tuple[str, str] | None:
    """With two classes, the class that is compared and the class it is compared with; else None."""
    classes = next((list(feature.class_means) for feature in features if feature.class_means), [])
    return (classes[1], classes[0]) if len(classes) == 2 else None
