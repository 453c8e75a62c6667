"""The result in sentences: key figures, the error, a paragraph for a methods section, and what to do next."""

from __future__ import annotations

import itertools
import shlex
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from zeronorm.report._chart import ReportData
from zeronorm.result._record import ResultData
from zeronorm.result._sentences import added_sentence, control_sentence, listed, panel_sentence
from zeronorm.selection.target import TASKS, TimeToEvent

CONFIRMING_REPEATS = 10
# Parameters that another sentence mentions.
OMITTED = ("random_state", "task", "n_features_to_select")


@dataclass(frozen=True)
class Tile:
    """A key figure: a value with its label."""

    value: str
    label: str


def key_figures(report_data: ReportData) -> list[tuple[str, list[Tile]]]:
    """Tiles by heading: those of the methods, or of the procedure and of the final set."""
    result = report_data.result
    groups = []
    if report_data.comparison is not None:
        groups.append(
            (
                "The methods, measured on samples that were not used for selection",
                _comparison_tiles(report_data),
            )
        )
    procedure = _procedure_tiles(report_data)
    if procedure:
        groups.append(("The procedure, measured on samples that were not used for selection", procedure))
    if result.selected:
        groups.append(("The final set, selected from all samples", _final_tiles(report_data)))
    return groups


def _comparison_tiles(report_data: ReportData) -> list[Tile]:
    comparison = report_data.comparison
    assert comparison is not None
    best = comparison.rows[0]
    extreme = "highest" if report_data.greater_is_better else "lowest"
    return [
        Tile(best.method, f"{extreme} {report_data.metric_label}: {report_data.format(best.mean)}"),
        Tile(comparison.preferred, f"preferred: {comparison.choice.preferred_because}"),
        Tile(str(report_data.result.data["n_samples"]), "samples"),
    ]


def _procedure_tiles(report_data: ReportData) -> list[Tile]:
    label = report_data.result.chosen_method
    own = report_data.own_point(label)
    if own is None:
        return []
    interval = f" ({own.no_interval})" if own.no_interval else ""
    if own.low is not None and own.high is not None:
        interval = f" (95 %: {report_data.format(own.low)} to {report_data.format(own.high)})"
    direction = "higher" if report_data.greater_is_better else "lower"
    tiles = [
        Tile(report_data.format(own.mean), f"{report_data.metric_label}{interval}; {direction} is better")
    ]
    if report_data.chance is not None:
        tiles.append(
            Tile(
                report_data.format(report_data.chance),
                f"{report_data.metric_label} without any feature (chance)",
            )
        )
    measured = report_data.measured
    if measured.get("added"):
        tiles += _added_tiles(report_data)
    elif measured.get("p_value") is not None:
        text = f"p-value of the whole procedure, from {measured['n_permutations']} permutations of the target"
        tiles.append(Tile(f"p = {measured['p_value']:.2g}", text))
    if (measured.get("also") or {}).get("r2") is not None:
        tiles.append(Tile(f"{measured['also']['r2']:.3g}", "R², the share of the variance that is explained"))
    sizes = report_data.selected_sizes.get(label or "", [])
    if len(set(sizes)) > 1:
        tiles.append(
            Tile(
                f"{min(sizes)} to {max(sizes)}",
                f"features selected in the {len(sizes)} folds (median {median(sizes):g})",
            )
        )
    elif sizes:
        tiles.append(Tile(str(sizes[0]), f"features in each of the {len(sizes)} folds"))
    stability = report_data.own_stability(label)
    if stability is not None:
        tiles.append(Tile(f"{stability.nogueira:.2f}", "stability of the selection (1 is best)"))
    return tiles


def _added_tiles(report_data: ReportData) -> list[Tile]:
    """What the covariates alone reach, what the features add, and the p-value of that."""
    added, label = report_data.measured["added"], report_data.metric_label
    tiles = [
        Tile(
            report_data.format(added["covariates_alone"]), f"{label} of {listed(added['covariates'])} alone"
        ),
        Tile(report_data.format(added["features_alone"]), f"{label} of the features alone"),
    ]
    if added["p_value"] is not None:
        text = f"p-value of what the features add, from {added['n_permutations']} targets in which they add nothing"
        tiles.append(Tile(f"p = {added['p_value']:.2g}", text))
    return tiles


def _final_tiles(report_data: ReportData) -> list[Tile]:
    result = report_data.result
    size = len(result.selected)
    label = f"of {result.data['n_features']} features"
    if is_largest_tried(result):
        label += "; this is the largest size tried, so more may be better"
    tiles = [Tile(str(size), label), Tile(str(result.data["n_samples"]), "samples")]
    return [*tiles, _gap_tile(result.proof)] if result.proof else tiles


def _gap_tile(proof: dict[str, Any]) -> Tile:
    """How much better another subset of the same size can be on these samples."""
    if proof["status"] == "optimal":
        return Tile("best subset", "no other subset of this size fits these samples better (proved)")
    percent = ceil(1000.0 * proof["gap"]) / 10.0
    return Tile(
        f"≤ {percent:.1f} %",
        "the most by which another subset of this size can fit these samples better (proved)",
    )


def is_largest_tried(result: ResultData) -> bool:
    """Whether the chosen size is the largest that was tried, although there are more features."""
    return bool(result.size.get("at_largest"))


@dataclass(frozen=True)
class Step:
    """A next step, and the command for it."""

    text: str
    command: str


def next_steps(result: ResultData) -> list[Step]:
    """Next steps: confirm, enlarge and use the result."""
    run = result.provenance
    command = str(run.get("command", "")) if run else ""
    if command.startswith("zeronorm demo"):
        return [Step("Use your own data: one row per sample.", "zeronorm select DATA.csv --target COLUMN")]
    if not command.startswith(("zeronorm select", "zeronorm compare")):
        return []
    command = _without(command, "--out", "-o", flags=("--force",))
    steps = []
    if run.get("repeats", 1) < CONFIRMING_REPEATS:
        text = "Confirm: repeat the cross-validation ten times, which also shows how stable the set is."
        steps.append(Step(text, f"{command} --repeats {CONFIRMING_REPEATS} --out confirmed"))
    if result.kind == "selection" and is_largest_tried(result):
        larger = min(4 * max(result.size["tried"]), result.data["n_features"])
        text = "Enlarge: the chosen size is the largest one tried."
        steps.append(Step(text, f"{command} --max-features {larger} --out enlarged"))
    if result.kind == "selection" and result.selected and "--save-model" not in command:
        text = "Apply: save the model of the final set, then predict new samples with it."
        again = f"{command} --save-model --out with-model"
        steps.append(Step(text, f"{again}\nzeronorm apply with-model new-samples.csv"))
    arguments = shlex.split(command)
    if result.kind == "selection" and len(arguments) > 2:
        data = shlex.quote(arguments[2])
        target = _target_options(arguments, result)
        text = "Compare: see whether another method does better on the same folds."
        steps.append(Step(text, f"zeronorm compare {data}{target} --methods all-fast --out compared"))
    elif result.kind == "comparison":
        chosen = command.replace("zeronorm compare", "zeronorm select", 1)
        text = "Select: run one method to get its features, with the options of the comparison that you need."
        steps.append(Step(text, f"{_without(chosen, '--methods', '-m')} --method NAME --out selected"))
    return steps


def _target_options(arguments: list[str], result: ResultData) -> str:
    """The options of the command that name the target."""
    if result.data["task"] == TimeToEvent.task:
        return "".join(
            f" {option} {shlex.quote(value)}"
            for option, value in itertools.pairwise(arguments)
            if option in ("--time", "--event")
        )
    return f" --target {shlex.quote(str(result.data['target']))}" if result.data.get("target") else ""


def _without(command: str, *options: str, flags: tuple[str, ...] = ()) -> str:
    """The command without some options and their values, and without some flags."""
    kept, skip = [], False
    for word in shlex.split(command):
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif word not in flags and not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return shlex.join(kept)


def new_samples_sentence(report_data: ReportData) -> str:
    """The error of the procedure on samples that were not used for selection."""
    own = report_data.own_point(report_data.result.chosen_method)
    if own is None:
        return "The error could not be measured."
    interval = f" ({own.no_interval})" if own.no_interval else ""
    if own.low is not None and own.high is not None:
        low, high = report_data.format(own.low), report_data.format(own.high)
        interval = f" (95 % interval for the models fitted here {low} to {high})"
    return (
        f"The {report_data.metric_label} on samples that were not used for selection is {report_data.format(own.mean)}"
        f"{interval}, over {own.n_splits} test folds."
    )


def stability_sentence(report_data: ReportData) -> str:
    """How similar the selected sets of different folds are."""
    point = report_data.own_stability(report_data.result.chosen_method)
    if point is None:
        return ""
    return (
        f"The stability of the selected set across the folds is {point.nogueira:.2f} "
        "(Nogueira et al. 2018; 1 is best, 0 is chance)."
    )


def proof_sentence(result: ResultData) -> str:
    """What is proved about the selected subset, and in which objective."""
    proof = result.proof
    if not proof:
        return ""
    loss = proof["loss"].replace("_", " ")
    return (
        f"{proof['sentence']} The objective is ½‖w‖² + C Σ {loss} of a linear model of the standardised features with "
        f"C = {proof['C']:.3g}, on all samples; it says nothing about new samples."
    )


def methods_section(report_data: ReportData) -> str:
    """What was done, in sentences for a methods section."""
    result = report_data.result
    parts = [
        _data_sentence(result),
        _method_sentence(result),
        control_sentence(result.size),
        _size_sentence(result),
        _evaluation_sentence(report_data),
    ]
    if result.kind == "selection":
        parts += [new_samples_sentence(report_data), added_sentence(report_data.measured)]
        parts += [stability_sentence(report_data), proof_sentence(result)]
    parts += [panel_sentence(result), _version_sentence(result)]
    return " ".join(part for part in parts if part)


def _data_sentence(result: ResultData) -> str:
    data = result.data
    counts = data.get("class_counts") or {}
    classes = ", ".join(f"{name}: {count}" for name, count in counts.items())
    kind = TASKS[data["task"]].described(len(counts))
    listing = f" ({classes})" if classes and len(counts) <= 10 else ""
    target = f" of {data['target']}" if data.get("target") else ""
    extent = f"{data['n_samples']} samples and {data['n_features']} features"
    return f"The data have {extent}; the task is {kind}{target}{listing}."


def _method_sentence(result: ResultData) -> str:
    described = [_described(method) for method in result.methods]
    if result.kind == "comparison":
        these = "The list was compared with others" if result.panel else "These methods were compared"
        return f"{these}: {'; '.join(described)}."
    return f"Features were selected with {described[0]}." if described else ""


def _described(method: dict[str, Any]) -> str:
    source = f" ({method['reference']})" if method.get("reference") else ""
    parameters = {k: v for k, v in method.get("parameters", {}).items() if k not in OMITTED}
    listing = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"{method['name']}{source}" + (f" with {listing}" if listing else "")


def _size_sentence(result: ResultData) -> str:
    rule = result.size.get("rule")
    if not rule:
        return ""
    count = f", {result.size['chosen']}," if result.size.get("chosen") is not None else ""
    return f"The number of features{count} {rule}."


def _evaluation_sentence(report_data: ReportData) -> str:
    result, run = report_data.result, report_data.result.provenance
    if not run:
        return "The error was measured on held-out test folds, with selection repeated in every fold."
    repeats = f"{run['repeats']} times " if run.get("repeats", 1) > 1 else ""
    groups = result.data.get("sample_groups")
    kept = f", keeping the {groups} groups of samples together" if groups else ""
    stratified = "stratified " if TASKS[result.data["task"]].is_stratified else ""
    return (
        f"The {report_data.metric_label} was measured by {repeats}{run['folds']}-fold {stratified}"
        f"cross-validation{kept}, with selection, scaling and tuning repeated inside every fold; "
        f"{run.get('predictor', 'a linear predictor')} was trained on the selected features{_and_covariates(result)}."
    )


def _and_covariates(result: ResultData) -> str:
    added = result.procedure.get("added")
    return f" and on {listed(added['covariates'])}" if added else ""


def _version_sentence(result: ResultData) -> str:
    run = result.provenance
    if not run:
        return ""
    packages = ", ".join(f"{name} {version}" for name, version in run.get("packages", {}).items())
    return (
        f"Computed with zeronorm {run['version']} (Python {run['python']}, {packages}), seed {run['seed']}."
    )
