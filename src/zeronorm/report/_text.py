"""The result in words: key figures, the error, a paragraph for a methods section, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from statistics import median
from typing import Any

from zeronorm.report._chart import ReportData
from zeronorm.result._record import ResultData
from zeronorm.selection.target import TASKS

CONFIRMING_REPEATS = 10
# Parameters that the text tells elsewhere.
UNTOLD = ("random_state", "task", "n_features_to_select")


@dataclass(frozen=True)
class Tile:
    """A figure one looks for first."""

    value: str
    label: str


def key_figures(report_data: ReportData) -> list[tuple[str, list[Tile]]]:
    """Tiles under headings that say which model they speak about."""
    result = report_data.result
    groups = []
    if report_data.comparison is not None:
        groups.append(("The methods, measured on samples they have not seen", _comparison_tiles(report_data)))
    procedure = _procedure_tiles(report_data)
    if procedure:
        groups.append(("The procedure, measured on samples it has not seen", procedure))
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
        Tile(comparison.preferred, "preferred: fewest features of the equally good"),
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
    if measured.get("p_value") is not None:
        words = (
            f"p-value of the whole procedure, from {measured['n_permutations']} permutations of the target"
        )
        tiles.append(Tile(f"p = {measured['p_value']:.2g}", words))
    if (measured.get("also") or {}).get("r2") is not None:
        tiles.append(Tile(f"{measured['also']['r2']:.3g}", "R², the explained share of the variation"))
    sizes = report_data.selected_sizes.get(label or "", [])
    if len(set(sizes)) > 1:
        tiles.append(
            Tile(
                f"{min(sizes)} to {max(sizes)}",
                f"features chosen in the {len(sizes)} training parts (median {median(sizes):g})",
            )
        )
    elif sizes:
        tiles.append(Tile(str(sizes[0]), f"features in each of the {len(sizes)} training parts"))
    stability = report_data.own_stability(label)
    if stability is not None:
        tiles.append(Tile(f"{stability.nogueira:.2f}", "stability of the selection (1 is best)"))
    return tiles


def _final_tiles(report_data: ReportData) -> list[Tile]:
    result = report_data.result
    size = len(result.selected)
    label = f"of {result.data['n_features']} features"
    if is_largest_tried(result):
        label += "; this is the largest size tried, so more may be better"
    return [Tile(str(size), label), Tile(str(result.data["n_samples"]), "samples")]


def is_largest_tried(result: ResultData) -> bool:
    """Whether the size was chosen and no larger one was tried, although there are more features."""
    return bool(result.size.get("at_largest"))


@dataclass(frozen=True)
class Step:
    """Something to do next, and the command for it."""

    words: str
    command: str


def next_steps(result: ResultData) -> list[Step]:
    """How to confirm, enlarge and use the result."""
    run = result.provenance
    command = str(run.get("command", "")) if run else ""
    if command.startswith("zeronorm demo"):
        return [Step("Use your own data: one row per sample.", "zeronorm select DATA.csv --target COLUMN")]
    if not command.startswith(("zeronorm select", "zeronorm compare")):
        return []
    command = _without(command, "--out", "-o", flags=("--force",))
    steps = []
    if run.get("repeats", 1) < CONFIRMING_REPEATS:
        words = "Confirm: measure again on ten times as many splits, which also shows how stable the set is."
        steps.append(Step(words, f"{command} --repeats {CONFIRMING_REPEATS} --out confirmed"))
    if result.kind == "selection" and is_largest_tried(result):
        larger = min(4 * max(result.size["tried"]), result.data["n_features"])
        words = "Enlarge: the chosen size is the largest one tried."
        steps.append(Step(words, f"{command} --max-features {larger} --out enlarged"))
    if result.kind == "selection" and result.selected and "--save-model" not in command:
        words = "Apply: keep the model of the final set, then predict new samples with it."
        again = f"{command} --save-model --out with-model"
        steps.append(Step(words, f"{again}\nzeronorm apply with-model new-samples.csv"))
    words_of_command = shlex.split(command)
    if result.kind == "selection" and len(words_of_command) > 2:
        data = shlex.quote(words_of_command[2])
        target = f" --target {shlex.quote(str(result.data['target']))}" if result.data.get("target") else ""
        words = "Compare: see whether another method does better on the same folds."
        steps.append(Step(words, f"zeronorm compare {data}{target} --methods all-fast --out compared"))
    elif result.kind == "comparison":
        chosen = command.replace("zeronorm compare", "zeronorm select", 1)
        words = (
            "Select: run one method and get its features; use the options of the comparison that you need."
        )
        steps.append(Step(words, f"{_without(chosen, '--methods', '-m')} --method NAME --out selected"))
    return steps


def _without(command: str, *options: str, flags: tuple[str, ...] = ()) -> str:
    """The command without some options, with their values, and flags."""
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
    """The error of the procedure on samples it has not seen."""
    own = report_data.own_point(report_data.result.chosen_method)
    if own is None:
        return "The error could not be measured."
    interval = f" ({own.no_interval})" if own.no_interval else ""
    if own.low is not None and own.high is not None:
        low, high = report_data.format(own.low), report_data.format(own.high)
        interval = f" (95 % interval for the models fitted here {low} to {high})"
    return (
        f"The {report_data.metric_label} on samples that were not used for selection is {report_data.format(own.mean)}"
        f"{interval}, over {own.n_splits} test parts."
    )


def stability_sentence(report_data: ReportData) -> str:
    """How alike the selections of different folds are."""
    point = report_data.own_stability(report_data.result.chosen_method)
    if point is None:
        return ""
    return (
        f"The stability of the selected set across the training parts is {point.nogueira:.2f} "
        "(Nogueira et al. 2018; 1 is best, 0 is chance)."
    )


def methods_section(report_data: ReportData) -> str:
    """What was done, in words that can go into a paper."""
    result = report_data.result
    parts = [_data_part(result), _method_part(result), _size_part(result), _evaluation_part(report_data)]
    if result.kind == "selection":
        parts += [new_samples_sentence(report_data), stability_sentence(report_data)]
    parts.append(_version_part(result))
    return " ".join(part for part in parts if part)


def _data_part(result: ResultData) -> str:
    data = result.data
    counts = data.get("class_counts") or {}
    classes = ", ".join(f"{name}: {count}" for name, count in counts.items())
    kind = TASKS[data["task"]].described(len(counts))
    listing = f" ({classes})" if classes and len(counts) <= 10 else ""
    target = f" of {data['target']}" if data.get("target") else ""
    extent = f"{data['n_samples']} samples and {data['n_features']} features"
    return f"The data have {extent}; the task is {kind}{target}{listing}."


def _method_part(result: ResultData) -> str:
    described = [_described(method) for method in result.methods]
    if result.kind == "comparison":
        return f"These methods were compared: {'; '.join(described)}."
    return f"Features were selected with {described[0]}." if described else ""


def _described(method: dict[str, Any]) -> str:
    source = f" ({method['reference']})" if method.get("reference") else ""
    parameters = {k: v for k, v in method.get("parameters", {}).items() if k not in UNTOLD}
    listing = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"{method['name']}{source}" + (f" with {listing}" if listing else "")


def _size_part(result: ResultData) -> str:
    rule = result.size.get("rule")
    if not rule:
        return ""
    count = f", {result.size['chosen']}," if result.size.get("chosen") is not None else ""
    return f"The number of features{count} {rule}."


def _evaluation_part(report_data: ReportData) -> str:
    result, run = report_data.result, report_data.result.provenance
    if not run:
        return (
            "The error was measured on held-out test parts, with selection repeated in every training part."
        )
    repeats = f"{run['repeats']} times " if run.get("repeats", 1) > 1 else ""
    groups = result.data.get("sample_groups")
    kept = f", keeping the {groups} groups of samples together" if groups else ""
    stratified = "stratified " if TASKS[result.data["task"]].is_stratified else ""
    return (
        f"The {report_data.metric_label} was measured by {repeats}{run['folds']}-fold {stratified}"
        f"cross-validation{kept}, with selection, scaling and tuning repeated inside every training part; a linear "
        f"predictor was trained on the selected features."
    )


def _version_part(result: ResultData) -> str:
    run = result.provenance
    if not run:
        return ""
    packages = ", ".join(f"{name} {version}" for name, version in run.get("packages", {}).items())
    return (
        f"Computed with zeronorm {run['version']} (Python {run['python']}, {packages}), seed {run['seed']}."
    )
