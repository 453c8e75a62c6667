"""The work of ``select``: fit on all samples, evaluate in the folds, measure, describe."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import OptionError, parameter, setting
from zeronorm.result import _files as files
from zeronorm.result._lists import LISTS, ListedFeature, left_out_note, rare_note
from zeronorm.result._sentences import control_sentence
from zeronorm.workflow import _added_value as added
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _checks as checks
from zeronorm.workflow import _control as control
from zeronorm.workflow import _measured as measured
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._descriptions import RULES, describe_data, describe_method, messages_of
from zeronorm.workflow._features import AFTER_SELECTION, Effects, describe_selected, selected_effects
from zeronorm.workflow._held_out import held_out_fields
from zeronorm.workflow._lists import nested_lists, sizes_by_rule, tried_sizes
from zeronorm.workflow._models import fit_model
from zeronorm.workflow._options import Settings
from zeronorm.workflow._proof import proved_gap
from zeronorm.workflow._questions import (
    NOT_SOUGHT,
    FinishedRun,
    check_answerable,
    finished_run,
    learning_curve_of,
    substitutes_of,
)
from zeronorm.workflow._result import Result

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.workflow._job import Job


@dataclass(frozen=True)
class Fitted:
    """The procedure fitted on all samples, and the features that it selected."""

    label: str
    procedure: Any
    selector: Any
    path: Any
    columns: Any  # of the selected features, in the order of the path
    construction: control.Construction | None = None  # where ``control`` chose it

    @property
    def innermost(self) -> Any:
        """The method itself, inside the selectors that chose a method and a size."""
        selector = self.selector
        while hasattr(selector, "selector_"):
            selector = selector.selector_
        return selector


def select_features(job: Job) -> Result:
    table, settings = job.table, job.settings
    check_answerable(table, settings)
    sizes = procedures.sizes_to_try(table, settings)
    _refuse_control_of_covariates(job)
    construction = control.choose_construction(job.whole, settings) if settings.control else None
    name = settings.method or procedures.default_method(job.whole)
    name = name if construction is None else construction.method
    _expect(job, chance.permutation_count(table, settings, sizes, name))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        baseline = chance.baseline_records(table, settings)
        fitted = _fit(job, name, sizes, construction)
        built = {fitted.label: fitted.procedure}
        records = training.evaluate_procedures(
            built, table, settings, sizes, journal=job.journal, bar=job.bar
        )
        metric = procedures.primary_metric_of(table, settings)
        measured.check_something_worked(records, metric, [fitted.label])
        found = _measure(job, fitted.label, fitted.procedure, records, baseline, sizes)
        run = finished_run(job, fitted)
        answers = _answers(job, run, found)
    if job.settings.write_table is not None:
        files.write_table(table, fitted.columns, Path(job.settings.write_table))
    result = _selection_result(job, fitted, records, found, sizes, messages_of(caught))
    notes = [*result.notes, *answers.pop("notes", [])]
    return replace(result, run=run, notes=notes, **answers)


def _answers(job: Job, run: FinishedRun, found: dict[str, Any]) -> dict[str, Any]:
    """What ``substitutes`` and ``learning_curve`` add to the result."""
    answers: dict[str, Any] = {}
    if job.settings.substitutes and run.columns.size and found["beats_chance"] is not False:
        job.bar.describe("Substitutes")
        answers["stored_substitutes"] = substitutes_of(run).to_dict()
    elif job.settings.substitutes:
        answers["notes"] = [NOT_SOUGHT]
    if job.settings.learning_curve:
        curve = learning_curve_of(run, journal=job.journal, bar=job.bar)
        answers["stored_learning_curve"] = curve.to_dict()
    return answers


def _refuse_control_of_covariates(job: Job) -> None:
    """Raise an error for error control that has no covariates."""
    if job.settings.control and job.table.covariates is not None:
        raise OptionError(
            f"does not apply together with {parameter('control', 'object')}, whose methods have no covariates. Use "
            f"{setting('method', 'probe-selector')} or {setting('method', 'stability-selection')} instead.",
            "adjust",
        )


def _expect(job: Job, n_permutations: int) -> None:
    job.bar.expect(1 + job.settings.cv * job.settings.repeats * (1 + n_permutations))


def _measure(
    job: Job, label: str, procedure: Any, records: Any, baseline: Any, sizes: list[int]
) -> dict[str, Any]:
    """Error, chance, p-value and stability from the records of a selection, the baseline and permuted targets."""
    found = measured.measure(label, records, baseline, job.table, job.settings)
    if job.table.covariates is not None:
        return _measure_added(job, label, procedure, records, found, sizes)
    is_only_test = found["beats_chance"] is None
    count = chance.permutation_count(job.table, job.settings, sizes, label, is_only_test=is_only_test)
    _expect(job, count)
    return with_permutations(job, label, procedure, records, baseline, count, found)


def _measure_added(
    job: Job, label: str, procedure: Any, records: Any, found: dict[str, Any], sizes: list[int]
) -> dict[str, Any]:
    """The measures with what the features add to the covariates, which is what is tested."""
    table, settings = job.table, job.settings
    job.bar.describe(f"{label}, features alone")
    features = added.feature_records(label, table, settings, sizes)
    value = added.measure_added(label, records, table, settings, features)
    is_only_test = value["low"] is None
    count = chance.permutation_count(table, settings, sizes, label, is_only_test=is_only_test)
    _expect(job, count)
    if count:
        value = added.with_test(
            value, label, procedure, table, settings, count, journal=job.journal, bar=job.bar
        )
    return added.with_added(found, value)


def with_permutations(
    job: Job, label: str, procedure: Any, records: Any, baseline: Any, count: int, found: dict[str, Any]
) -> dict[str, Any]:
    """The measures in ``found``, with the p-value of ``count`` permuted targets where there is a value to test."""
    if found["value"] is None or count == 0:
        return found
    permuted = chance.permutation_test(
        label, procedure, job.table, job.settings, found["value"], count, journal=job.journal, bar=job.bar
    )
    return measured.measure(label, records, baseline, job.table, job.settings, permuted)


def _fit(job: Job, name: str, sizes: list[int], construction: control.Construction | None) -> Fitted:
    from zeronorm.resampling._fitted_path import fitted_path, selected_support

    table, settings = job.whole, job.settings
    job.bar.describe(f"{name}, all samples")
    if construction is None:
        procedure = procedures.build_procedure(name, table, settings, sizes, settings.params)
    else:
        procedure = construction.selector
    try:
        selector = training.fit_procedure(procedure, table, settings)
    except TypeError as error:
        if not job.settings.params:
            raise
        raise ValueError(
            f"The method {name!r} cannot use the parameters {dict(job.settings.params)}: {error}"
        ) from error
    job.bar.advance(1)
    path = fitted_path(selector, table.with_covariates.shape[1]).alone()
    columns = selected_support(selector, path)
    ordered = columns[np.argsort(path.position()[columns], kind="stable")]
    return Fitted(name, procedure, selector, path, ordered, construction)


def _selection_result(
    job: Job, fitted: Fitted, records: Any, found: dict[str, Any], sizes: list[int], messages: list[str]
) -> Result:
    from zeronorm.evaluation._summary import selection_frequencies

    table, settings = job.whole, job.settings
    frequencies = selection_frequencies(records, fitted.label, table.n_features)
    listed = _listed(job, fitted, found, dict(frequencies.shares))
    model = fit_model(table, fitted.columns, settings, selector=fitted.selector, with_gaps=job.table)
    if model is not None:
        model = replace(model, **held_out_fields(job, records, fitted.label, fitted.selector))
    q_values = getattr(fitted.selector, "q_values_", None)
    effects = selected_effects(table, fitted.columns)
    selected = describe_selected(
        table, fitted.path, fitted.columns, effects, dict(frequencies.shares), model, q_values, listed
    )
    figures, size = _figures(table, fitted, sizes, effects), _size_of(job, fitted, sizes)
    named = {feature.index for feature in selected} | {feature.index for feature in listed}
    named |= {index for index, _ in frequencies.shares[:200]}
    named |= {index for figure in figures.values() for index in figure.get("features", ())}
    n_made = found["n_permutations"]
    not_tested = chance.left_out_notes(job.table, settings, sizes, fitted.label, n_made)
    notes = [*table.notes, *_notes(job, fitted, selected, size, frequencies.shares), *not_tested]
    result = Result(
        kind="selection",
        data=describe_data(job),
        methods=[describe_method(_method_name(fitted), fitted.innermost, fitted.label)],
        chosen_method=fitted.label,
        size=size,
        procedure=found,
        proof=proved_gap(table, fitted.columns, fitted.innermost),
        selected=selected,
        listed=listed,
        names={index: str(table.feature_names[index]) for index in sorted(named)},
        notes=job.rendered(notes),
        provenance=job.provenance({fitted.label: fitted.procedure}, fitted.selector),
        figures=figures,
        records=records,
        model=model,
    )
    own = measured.result_warnings(found, result.size)
    return replace(result, warnings=job.rendered([*checks.data_warnings(table), *own, *messages]))


def _size_of(job: Job, fitted: Fitted, sizes: list[int]) -> dict[str, Any]:
    """The selected number of features, how it was chosen, and the numbers that the three rules choose."""
    rule, chosen = _rule_of(fitted.label, job.settings), len(fitted.columns)
    tried = tried_sizes(fitted.selector, sizes)
    size = {
        "chosen": chosen,
        "rule": RULES[rule],
        "tried": tried,
        "at_largest": rule in LISTS and chosen >= tried[-1] < job.whole.n_features,
    }
    if fitted.construction is not None:
        kind, level = str(job.settings.control), control.level_of(job.settings)
        size["rule"] = f"is what {fitted.label} allows if {control.LIMITED[kind]} is at most {level:g}"
        size["control"] = fitted.construction.described(kind, level)
    by_rule = sizes_by_rule(fitted.selector) if rule in LISTS else {}
    return size | ({"by_rule": by_rule, "selected_list": rule} if by_rule else {})


def _listed(
    job: Job, fitted: Fitted, found: dict[str, Any], frequencies: dict[int, float]
) -> list[ListedFeature]:
    """The features of the three nested lists; none where the procedure does not predict."""
    rule, sizes = _rule_of(fitted.label, job.settings), sizes_by_rule(fitted.selector)
    if rule not in LISTS or not sizes or found["beats_chance"] is False:
        return []
    return nested_lists(job.whole, fitted.path, sizes, fitted.columns, rule, frequencies)


def _rule_of(method: str, settings: Settings) -> str:
    if settings.features is not None:
        return "fixed"
    return "own" if method in procedures.ERROR_CONTROL else settings.rule


def _method_name(fitted: Fitted) -> str:
    return str(getattr(fitted.selector, "chosen_", fitted.label))


def _notes(
    job: Job,
    fitted: Fitted,
    selected: Sequence[Any],
    size: dict[str, Any],
    shares: Sequence[tuple[int, float]],
) -> list[str]:
    is_default = job.settings.method is None and fitted.construction is None
    notes = procedures.default_notes(job.whole) if is_default else []
    notes += procedures.predictor_notes(job.settings)
    notes += [control_sentence(size)] if "control" in size else []
    if job.table.covariates is None:
        notes += chance.exchange_notes(job.table, job.settings)
    notes += added.added_notes(job.table, job.settings)
    notes += procedures.inner_notes(job.whole, job.settings, fitted.label)
    notes += [fitted.selector.verdict()] if hasattr(fitted.selector, "verdict") else []
    kept = {feature.index for feature in selected}
    always = [str(job.whole.feature_names[i]) for i, share in shares if share == 1.0 and i not in kept]
    notes += [*rare_note(selected), *left_out_note(always)]
    return [*notes, AFTER_SELECTION] if selected else notes


def _figures(table: Table, fitted: Fitted, sizes: list[int], effects: Effects | None) -> dict[str, Any]:
    """Values that the charts of the report need from the table and the fitted procedure."""
    if fitted.columns.size == 0:
        return {}
    from zeronorm.report._chart import collect_figures

    return collect_figures(
        X=table.X,
        y=table.y,
        task=table.task,
        selector=fitted.selector,
        method=fitted.innermost,
        path=fitted.path,
        columns=fitted.columns,
        sizes=sizes,
        sample_names=table.sample_ids,
        effects=effects,
    )
