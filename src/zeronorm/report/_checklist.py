"""Items of the reporting guidelines TRIPOD+AI and REMARK, in our own words, with what the run knows about each.

Collins et al. (2024), BMJ 385, e078378; McShane et al. (2005), Journal of the National Cancer Institute 97, 1180.
"""

from __future__ import annotations

from dataclasses import dataclass

from zeronorm.report import _text as text
from zeronorm.report._chart import ReportData
from zeronorm.result._record import ResultData

AUTHORS = ""  # what only the authors know


@dataclass(frozen=True)
class ChecklistItem:
    """One row: the item, its numbers in the two guidelines, and the answer of the run, empty where it has none."""

    item: str
    tripod: str
    remark: str
    answer: str


def checklist(report_data: ReportData) -> list[ChecklistItem]:
    """The items for a selection; none for other results."""
    result = report_data.result
    if result.kind != "selection":
        return []
    rows = [*_about_the_data(result), *_about_the_analysis(report_data), *_about_the_results(report_data)]
    return [ChecklistItem(*row) for row in rows]


def _about_the_data(result: ResultData) -> list[tuple[str, str, str, str]]:
    data = result.data
    counts = data.get("class_counts") or {}
    classes = ", ".join(f"{name}: {count}" for name, count in counts.items())
    groups = data.get("sample_groups")
    missing = " ".join(note for note in result.notes if "missing" in note)
    return [
        ("where the samples come from, and when they were collected", "5", "2, 6", AUTHORS),
        ("who was included and excluded, and which treatment they had", "6", "2, 3", AUTHORS),
        ("how the features were measured, blinded to the outcome or not", "9", "4, 5", AUTHORS),
        (
            "the outcome, its definition and who determined it",
            "8",
            "7",
            f"column {data['target']}; definition: ",
        ),
        (
            "number of samples and of events or classes",
            "20",
            "12",
            f"{data['n_samples']} samples {classes}".strip(),
        ),
        ("why there are so many samples", "10", "9", AUTHORS),
        ("missing values", "11", "10", missing or "no feature with missing values was reported by the run"),
        (
            "samples that belong together",
            "12",
            "",
            f"{groups} groups, kept together in the folds"
            if groups
            else "none were named: samples count as independent",
        ),
        ("all features that were candidates", "9", "8", f"{data['n_features']} features of {data['source']}"),
    ]


def _about_the_analysis(report_data: ReportData) -> list[tuple[str, str, str, str]]:
    run = report_data.result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in run.get("packages", {}).items())
    software = (
        f"zeronorm {run['version']}, Python {run['python']}, {versions}; {run['command']}" if run else AUTHORS
    )
    folds = (
        f"{run['folds']}-fold cross-validation, {run['repeats']} times, seed {run['seed']}; " if run else ""
    )
    return [
        ("method of selection and model", "12", "10", text.methods_section(report_data)),
        (
            "how cut-points of features were chosen",
            "12",
            "11",
            "features were used as numbers, without cut-points",
        ),
        (
            "how the model was tested",
            "12, 16",
            "10",
            f"{folds}selection was repeated in every fold; no samples of another study unless named above",
        ),
        ("fairness between groups of people", "14", "", AUTHORS),
        ("software, code and data", "18", "10", software),
        ("protocol, registration, funding, conflicts of interest", "18", "", AUTHORS),
    ]


def _about_the_results(report_data: ReportData) -> list[tuple[str, str, str, str]]:
    result, found = report_data.result, report_data.measured
    interval = ""
    if found.get("low") is not None:
        interval = (
            f" (95 % interval {report_data.format(found['low'])} to {report_data.format(found['high'])})"
        )
    performance = f"{report_data.metric_label} {report_data.format(found.get('value'))}{interval}"
    p_value = found.get("p_value")
    chance = (
        f"{report_data.format(report_data.chance)} without any feature"
        if report_data.chance is not None
        else ""
    )
    tested = (
        chance if p_value is None else f"{chance}; permutation test of the whole procedure: p = {p_value:.2g}"
    )
    names = ", ".join(feature.name for feature in result.selected[:10])
    more = len(result.selected) - 10
    return [
        ("table of the samples' characteristics", "20", "13", AUTHORS),
        (
            "relation of each feature alone to the outcome",
            "",
            "15",
            "table of selected features; figure of effects and p-values",
        ),
        (
            "the whole model",
            "22",
            "16",
            f"{len(result.selected)} features: {names}"
            + (f" and {more} more" if more > 0 else "")
            + "; coefficients in the table of selected features, model.json where the model was saved",
        ),
        ("performance with intervals", "23", "", performance),
        ("calibration", "23", "", "figure of calibration, where predictions allow it"),
        ("compared with chance", "", "18", tested),
        ("stability and sensitivity to choices", "", "18", text.stability_sentence(report_data)),
        ("limits of the study", "26", "19", " ".join(result.warnings)),
        ("use in practice and next studies", "27", "20", AUTHORS),
    ]
