"""The main job: select features, measure the error honestly, describe the result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zeronorm.workflow import building, describing, procedures
from zeronorm.workflow.errors import UsageProblem
from zeronorm.workflow.loading import check_folds
from zeronorm.workflow.procedures import Wishes
from zeronorm.workflow.provenance import Clock, provenance

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.workflow.result import RunResult

RULES = {
    True: "was set in advance",
    False: "was chosen by the one-standard-error rule on inner cross-validation",
}


@dataclass(frozen=True)
class Fitted:
    """The procedure fitted on all samples, and what it chose."""

    method: str
    procedure: Any
    selector: Any
    path: Any
    columns: Any
    notes: tuple[str, ...]


def run_selection(
    table: Table,
    method: str | None,
    wishes: Wishes,
    parameters: tuple[str, ...],
    clock: Clock,
    checksum: str | None,
) -> tuple[RunResult, Any]:
    """Select on all samples, evaluate the same procedure on the outer folds, return result and records."""
    check_folds(table, wishes.cv)
    sizes = procedures.sizes_to_try(table, wishes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _fit(table, method, wishes, sizes, parameters)
        label = "auto" if method == "auto" else fitted.method
        records = procedures.evaluate_procedures({label: fitted.procedure}, table, wishes, sizes)
    check_not_all_failed(records)
    result = _describe(table, fitted, label, wishes, sizes, records, _messages(caught), clock, checksum)
    return result, records


def _fit(
    table: Table, method: str | None, wishes: Wishes, sizes: list[int], parameters: tuple[str, ...]
) -> Fitted:
    from zeronorm.resampling.fitted import fitted_path, own_support

    notes: tuple[str, ...] = ()
    if method == "auto":
        if parameters:
            raise UsageProblem("--param does not apply to --method auto. Name a method.")
        procedure = _roster(table, wishes, sizes)
    else:
        name = method or building.default_method(table)
        procedure = procedures.build_procedure(name, table, wishes, sizes, parameters)
    selector = procedures.fit_procedure(procedure, table, wishes)
    if method == "auto":
        name, notes = selector.chosen_, (selector.verdict(),)
    path = fitted_path(selector, table.n_features)
    return Fitted(name, procedure, selector, path, own_support(selector, path), notes)


def _roster(table: Table, wishes: Wishes, sizes: list[int]) -> Any:
    """The methods of the roster, each with its size cross-validated (or fixed, when it was asked for)."""
    from dataclasses import replace

    from zeronorm.workflow.roster import RosterSelector

    tried = sizes if wishes.features is None else [wishes.features]
    names = building.roster(table)
    if not names:
        raise UsageProblem("No method of the roster serves this task. Name a method with --method.")
    free = replace(wishes, features=None)
    return RosterSelector([(name, procedures.build_procedure(name, table, free, tried)) for name in names])


def _describe(
    table: Table,
    fitted: Fitted,
    label: str,
    wishes: Wishes,
    sizes: list[int],
    records: Any,
    messages: list[str],
    clock: Clock,
    checksum: str | None,
) -> RunResult:
    from zeronorm.evaluation.summary import selection_frequencies
    from zeronorm.workflow.result import RunResult

    inner = innermost(fitted.selector)
    frequencies = selection_frequencies(records, label, table.n_features)
    selected = describing.describe_selected(
        table, fitted.path, fitted.columns, fitted.path.feature_scores(), dict(frequencies.shares)
    )
    figures = _figures(table, fitted, inner, sizes)
    named = {feature.index for feature in selected} | {index for index, _ in frequencies.shares[:200]}
    named |= {index for figure in figures.values() for index in figure.get("features", ())}
    return RunResult(
        kind="selection",
        data=describing.describe_data(table, checksum),
        methods=[describing.describe_method(fitted.method, inner) | {"label": label}],
        chosen_method=label,
        size={"chosen": len(selected), "rule": RULES[wishes.features is not None], "tried": sizes},
        selected=selected,
        names={index: str(table.feature_names[index]) for index in sorted(named)},
        notes=[*table.notes, *fitted.notes],
        warnings=_warnings(table, records, label, messages),
        provenance=provenance(clock, seed=wishes.seed, folds=wishes.cv, repeats=wishes.repeats),
        figures=figures,
    )


def innermost(selector: Any) -> Any:
    """The method inside the choice of a method and of a size."""
    while hasattr(selector, "selector_"):
        selector = selector.selector_
    return selector


def _figures(table: Table, fitted: Fitted, inner: Any, sizes: list[int]) -> dict[str, Any]:
    """What the charts of the report need of the table and the fitted procedure."""
    import numpy as np

    from zeronorm._lazy import service

    ordered = fitted.columns[np.argsort(fitted.path.position()[fitted.columns], kind="stable")]
    figures: dict[str, Any] = service("collect_figures")(
        X=table.X,
        y=table.y,
        task=table.task,
        selector=fitted.selector,
        method=inner,
        path=fitted.path,
        columns=ordered,
        sizes=sizes,
    )
    return figures


def _warnings(table: Table, records: Any, label: str, messages: list[str]) -> list[str]:
    from zeronorm.evaluation import summary
    from zeronorm.workflow.checks import data_warnings, result_warnings

    metric = summary.primary_metric(records)
    own = next(curve.own for curve in summary.error_curves(records, metric) if curve.method == label)
    half = None if own is None or own.high is None or own.low is None else (own.high - own.low) / 2
    stable = [p.nogueira for p in summary.stabilities(records, table.n_features) if p.size is None]
    stability = stable[0] if stable else None
    return [*data_warnings(table), *result_warnings(half, stability, metric in summary.RATES), *messages]


def check_not_all_failed(records: Any) -> None:
    """When nothing worked, the reason of the first failure is the message."""
    from zeronorm.evaluation.records import columns_of
    from zeronorm.evaluation.summary import primary_metric

    columns = columns_of(records)
    if all(value is None for value in columns[primary_metric(records)]):
        reason = next((error for error in columns["error"] if error), "no reason was recorded")
        raise UsageProblem(f"The evaluation failed on every fold: {reason}")


def _messages(caught: list[Any]) -> list[str]:
    """Warnings of the computation, each once, in one line."""
    relevant = [
        w for w in caught if w.category.__name__ not in ("DeprecationWarning", "PendingDeprecationWarning")
    ]
    return list(dict.fromkeys(" ".join(str(w.message).split()) for w in relevant))
