"""The result in sentences: the headline, the error, and a paragraph for a methods section."""

from __future__ import annotations

from typing import Any

from zeronorm.evaluation.summary import error_curves, format_metric, metric_label, primary_metric, stabilities
from zeronorm.workflow.result import RunResult

# Parameters that the text tells elsewhere.
UNTOLD = ("random_state", "task", "n_features_to_select")


def headline(result: RunResult) -> str:
    """What was found, in one line."""
    data = result.data
    if result.kind == "comparison":
        extent = f"{data['n_samples']} samples and {data['n_features']} features"
        return f"{len(result.methods)} methods compared on {extent}"
    if not result.selected:
        return f"Selection from {data['n_features']} features"
    verb = "predicts" if len(result.selected) == 1 else "predict"
    return f"{len(result.selected)} of {data['n_features']} features {verb} {data['target']}"


def error_sentence(result: RunResult, records: Any) -> str:
    """The error of the procedure on samples it has not seen."""
    metric = primary_metric(records)
    label = result.chosen_method
    own = next((curve.own for curve in error_curves(records, metric) if curve.method == label), None)
    if own is None:
        return "The error could not be measured."
    interval = ""
    if own.low is not None and own.high is not None:
        interval = f" (95 % interval {format_metric(own.low, metric)} to {format_metric(own.high, metric)})"
    return (
        f"The {metric_label(metric)} on samples that were not used for selection is {format_metric(own.mean, metric)}"
        f"{interval}, over {own.n_splits} test parts."
    )


def stability_sentence(result: RunResult, records: Any) -> str:
    """How alike the selections of different folds are."""
    points = [
        point
        for point in stabilities(records, result.data["n_features"])
        if point.size is None and point.method == result.chosen_method and point.nogueira is not None
    ]
    if not points:
        return ""
    return (
        f"The stability of the selected set across the training parts is {points[0].nogueira:.2f} "
        "(Nogueira et al. 2018; 1 is best, 0 is chance)."
    )


def methods_section(result: RunResult, records: Any) -> str:
    """What was done, in words that can go into a paper."""
    parts = [_data_part(result), _method_part(result), _size_part(result), _evaluation_part(result, records)]
    if result.kind == "selection":
        parts += [error_sentence(result, records), stability_sentence(result, records)]
    parts.append(_version_part(result))
    return " ".join(part for part in parts if part)


def _data_part(result: RunResult) -> str:
    data = result.data
    counts = data.get("class_counts") or {}
    classes = ", ".join(f"{name}: {count}" for name, count in counts.items())
    kind = "a regression" if data["task"] == "regression" else f"a classification with {len(counts)} classes"
    listing = f" ({classes})" if classes and len(counts) <= 10 else ""
    if not counts and data["task"] != "regression":
        kind = "a classification"
    target = f" of {data['target']}" if data.get("target") else ""
    extent = f"{data['n_samples']} samples and {data['n_features']} features"
    return f"The data have {extent}; the task is {kind}{target}{listing}."


def _method_part(result: RunResult) -> str:
    described = [_described(method) for method in result.methods]
    if result.kind == "comparison":
        return f"These methods were compared: {'; '.join(described)}."
    return f"Features were selected with {described[0]}." if described else ""


def _described(method: dict[str, Any]) -> str:
    source = f" ({method['reference']})" if method.get("reference") else ""
    parameters = {k: v for k, v in method.get("parameters", {}).items() if k not in UNTOLD}
    listing = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"{method['name']}{source}" + (f" with {listing}" if listing else "")


def _size_part(result: RunResult) -> str:
    rule = result.size.get("rule")
    if not rule:
        return ""
    count = f", {result.size['chosen']}," if result.size.get("chosen") is not None else ""
    return f"The number of features{count} {rule}."


def _evaluation_part(result: RunResult, records: Any) -> str:
    run = result.provenance
    if not run:
        return (
            "The error was measured on held-out test parts, with selection repeated in every training part."
        )
    repeats = f"{run['repeats']} times " if run.get("repeats", 1) > 1 else ""
    groups = result.data.get("sample_groups")
    kept = f", keeping the {groups} groups of samples together" if groups else ""
    stratified = "" if result.data["task"] == "regression" else "stratified "
    return (
        f"The {metric_label(primary_metric(records))} was measured by {repeats}{run['folds']}-fold {stratified}"
        f"cross-validation{kept}, with selection, scaling and tuning repeated inside every training part; a linear "
        f"predictor was trained on the selected features."
    )


def _version_part(result: RunResult) -> str:
    run = result.provenance
    if not run:
        return ""
    packages = ", ".join(f"{name} {version}" for name, version in run.get("packages", {}).items())
    return (
        f"Computed with zeronorm {run['version']} (Python {run['python']}, {packages}), seed {run['seed']}."
    )
