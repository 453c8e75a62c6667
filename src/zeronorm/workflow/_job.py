"""The steps of a run: read the data, select or compare, measure, and build the result."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import OptionError, rendered
from zeronorm._types import written
from zeronorm.resampling._fitted_path import chosen_predictor
from zeronorm.result import _files as files
from zeronorm.result._folder import output_folder
from zeronorm.result._lists import LISTS, ListedFeature, left_out_note, rare_note
from zeronorm.result._provenance import Clock, call_text, file_checksum, provenance
from zeronorm.result._sentences import control_sentence
from zeronorm.selection._problem import Progress, RunBar
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _checks as checks
from zeronorm.workflow import _control as control
from zeronorm.workflow import _measured as measured
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._backends import jobs_at, on_cluster, table_on_device
from zeronorm.workflow._compiling import compilation_shown
from zeronorm.workflow._features import AFTER_SELECTION, describe_selected
from zeronorm.workflow._inputs import check_folds, load_data
from zeronorm.workflow._kinds import defaults_of
from zeronorm.workflow._lists import nested_lists, sizes_by_rule, tried_sizes
from zeronorm.workflow._models import fit_model
from zeronorm.workflow._options import Caller, CompareOptions, SelectOptions, Settings
from zeronorm.workflow._result import Result, write_result

if TYPE_CHECKING:
    from zeronorm.datasets import Table

ALWAYS_COMPARED = "random"  # with the baseline, the reference that a method must beat
RULES = {
    "fixed": "was set in advance",
    "fewest": "is the smallest within one standard error of the best mean score on inner cross-validation",
    "recommended": "is the smallest with nearly the best smoothed score on inner cross-validation (within half a "
    "standard error, or within a fiftieth of the range of all sizes)",
    "all": "is the one with the best smoothed score on inner cross-validation",
    "own": "was chosen by the method's own control of false selections",
}


@dataclass(frozen=True)
class Job:
    """One run: the data, the options, the caller, and the folder that keeps finished folds."""

    table: Table
    whole: Table  # the same without missing values, for what is fitted on all samples
    settings: Any  # SelectOptions or CompareOptions
    checksum: str | None
    clock: Clock
    bar: RunBar
    caller: Caller
    journal: Path | None = None

    def provenance(self, built: Mapping[str, Any], selector: Any = None) -> dict[str, Any]:
        """Versions, settings, the predictor for the fitted selector, and the seeds of all folds."""
        s = self.settings
        return provenance(
            self.clock,
            self.caller.command or "",
            seed=s.random_state,
            folds=s.cv,
            repeats=s.repeats,
            predictor=procedures.described_predictor(self.table, s, chosen_predictor(selector)),
            seeds=training.fold_seeds(built, s.cv * s.repeats, s),
        )

    def rendered(self, messages: Iterable[str]) -> list[str]:
        """The messages with options named as the caller names them."""
        return [rendered(message, self.caller.naming) for message in messages]


def run_job(name: str, arguments: Mapping[str, Any], caller: Caller | None = None) -> Result:
    """Check the options, load the data, check the output folder, do the work, write the files.

    Parameters
    ----------
    name : "select" or "compare".
    arguments : the data and the options.
    caller : the interface that started the run; None: a call in Python with these arguments.
    """
    clock = Clock()
    record, work = RUNS[name]
    caller = caller or Caller(call_text(name, arguments, defaults_of(record)))
    options = {key: value for key, value in arguments.items() if key != "data"}
    settings = record(**options)
    settings = replace(settings, n_jobs=jobs_at(settings.device, settings.dask, settings.n_jobs))
    with_model = isinstance(settings, SelectOptions) and settings.save_model
    data = arguments["data"]
    with Progress(settings.verbose).whole(f"Reading {_named(data)}") as bar, compilation_shown(bar):
        # A mistake in the input is reported before any in the folder.
        job = _job(data, settings, clock, caller, bar)
        if settings.out is None:
            with on_cluster(settings.dask):
                return work(job)
        folder = output_folder(settings.out, force=settings.force, resume=settings.resume)
        with folder as folders, on_cluster(settings.dask):
            result = work(replace(job, journal=folders.journal))
            bar.say("Writing the report")
            write_result(result, folders.folder, with_model=with_model)
    return result


def _named(data: Any) -> str:
    if not isinstance(data, (str, os.PathLike)):
        return "the data"
    return "standard input" if str(data) == "-" else Path(data).name


def _job(data: Any, settings: Any, clock: Clock, caller: Caller, bar: RunBar) -> Job:
    if isinstance(settings, SelectOptions) and settings.write_table is not None:
        files.check_table_path(Path(settings.write_table), settings.force)
    table = table_on_device(load_data(data, settings), settings.device)
    check_folds(table, settings.cv)
    procedures.metrics_of(table, settings)
    return Job(table, training.filled(table), settings, file_checksum(data), clock, bar, caller)


def _describe_data(job: Job) -> dict[str, Any]:
    table = job.table
    return {
        "source": table.source,
        "target": table.target_name,
        "task": table.task,
        "n_samples": table.n_samples,
        "n_features": table.n_features,
        "class_counts": table.class_counts,
        "sample_groups": None if table.sample_groups is None else len(set(map(str, table.sample_groups))),
        "sha256": job.checksum,
    }


OMITTED = (
    "feature_groups",
    "always_keep",
    "selector",
    "selectors",
    "sizes",
    "verbose",
    "n_jobs",
    "random_state",
)


def _describe_method(name: str, selector: Any, label: str) -> dict[str, Any]:
    """A method with the parameters that differ from the defaults of its class, and the method that it wraps."""
    info = getattr(type(selector), "_method", None)
    is_ours = info is not None and info.kind in ("selector", "meta")
    defaults = type(selector)().get_params(deep=False) if is_ours else {}
    parameters = {
        key: value
        for key, value in selector.get_params(deep=False).items()
        if key not in OMITTED and (key not in defaults or repr(value) != repr(defaults[key]))
    }
    wrapped = getattr(type(getattr(selector, "selector", None)), "_method", None)
    if wrapped is not None:
        parameters["selector"] = wrapped.name
    return {
        "name": name,
        "label": label,
        "class": type(selector).__name__,
        "reference": "" if info is None else info.reference,
        "summary": "" if info is None else info.summary,
        "parameters": {key: _plain(value) for key, value in parameters.items()},
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else written(value)


# Of outliers in y, ``checks`` warns with the names of the samples.
OMITTED_WARNINGS = ("DeprecationWarning", "PendingDeprecationWarning", "TargetOutlierWarning")


def _messages(caught: list[Any]) -> list[str]:
    """Warnings of the computation, one line each; those that differ in numbers only are given once."""
    relevant = [w for w in caught if w.category.__name__ not in OMITTED_WARNINGS]
    found: dict[str, str] = {}
    for text in (" ".join(str(w.message).split()) for w in relevant):
        found.setdefault(re.sub(r"\d+(\.\d+)?", "0", text), text)
    return list(found.values())


# -- Selection ----------------------------------------------------------------------------------------


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
    sizes = procedures.sizes_to_try(table, settings)
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
    if job.settings.write_table is not None:
        files.write_table(table, fitted.columns, Path(job.settings.write_table))
    return _selection_result(job, fitted, records, found, sizes, _messages(caught))


def _expect(job: Job, n_permutations: int) -> None:
    job.bar.expect(1 + job.settings.cv * job.settings.repeats * (1 + n_permutations))


def _measure(
    job: Job, label: str, procedure: Any, records: Any, baseline: Any, sizes: list[int]
) -> dict[str, Any]:
    """Error, chance, p-value and stability from the records of a selection, the baseline and permuted targets."""
    found = measured.measure(label, records, baseline, job.table, job.settings)
    is_only_test = found["beats_chance"] is None
    count = chance.permutation_count(job.table, job.settings, sizes, label, is_only_test=is_only_test)
    _expect(job, count)
    return _with_permutations(job, label, procedure, records, baseline, count, found)


def _with_permutations(
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
    job.bar.say(f"{name}, all samples")
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
    path = fitted_path(selector, table.n_features)
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
    q_values = getattr(fitted.selector, "q_values_", None)
    selected = describe_selected(
        table, fitted.path, fitted.columns, dict(frequencies.shares), model, q_values, listed
    )
    figures, size = _figures(table, fitted, sizes), _size_of(job, fitted, sizes)
    named = {feature.index for feature in selected} | {feature.index for feature in listed}
    named |= {index for index, _ in frequencies.shares[:200]}
    named |= {index for figure in figures.values() for index in figure.get("features", ())}
    n_made = found["n_permutations"]
    not_tested = chance.left_out_notes(job.table, settings, sizes, fitted.label, n_made)
    result = Result(
        kind="selection",
        data=_describe_data(job),
        methods=[_describe_method(_method_name(fitted), fitted.innermost, fitted.label)],
        chosen_method=fitted.label,
        size=size,
        procedure=found,
        selected=selected,
        listed=listed,
        names={index: str(table.feature_names[index]) for index in sorted(named)},
        notes=job.rendered(
            [*table.notes, *_notes(job, fitted, selected, size, frequencies.shares), *not_tested]
        ),
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
    notes += chance.exchange_notes(job.table, job.settings)
    notes += procedures.inner_notes(job.whole, job.settings, fitted.label)
    notes += [fitted.selector.verdict()] if hasattr(fitted.selector, "verdict") else []
    kept = {feature.index for feature in selected}
    always = [str(job.whole.feature_names[i]) for i, share in shares if share == 1.0 and i not in kept]
    notes += [*rare_note(selected), *left_out_note(always)]
    return [*notes, AFTER_SELECTION] if selected else notes


def _figures(table: Table, fitted: Fitted, sizes: list[int]) -> dict[str, Any]:
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
    )


# -- Comparison ---------------------------------------------------------------------------------------


def compare_methods(job: Job) -> Result:
    from zeronorm.evaluation._summary import compare as compare_records

    table, settings = job.table, job.settings
    metric = procedures.primary_metric_of(table, settings)
    sizes = procedures.sizes_to_try(table, settings)
    built = _built_methods(job, sizes)
    n_permutations = int(settings.permutations) if settings.permutations != "auto" else 0
    job.bar.expect(len(built) * settings.cv * settings.repeats * (1 + n_permutations))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        baseline = chance.baseline_records(table, settings)
        records = training.evaluate_procedures(
            built, table, settings, sizes, journal=job.journal, bar=job.bar
        )
        measured.check_something_worked(records, metric, [name for name in built if name in settings.params])
        rows = []
        for name, procedure in built.items():
            found = measured.measure(name, records, baseline, table, settings)
            rows.append(_with_permutations(job, name, procedure, records, baseline, n_permutations, found))
    rows.append(measured.measure(chance.BASELINE, baseline, baseline, table, settings))
    comparison = compare_records(records, metric)
    return Result(
        kind="comparison",
        data=_describe_data(job),
        methods=[_describe_method(n, getattr(s, "selector", s), n) for n, s in built.items()],
        size={
            "chosen": settings.features,
            "rule": RULES["fixed" if settings.features is not None else settings.rule],
            "tried": sizes,
        },
        table=rows,
        names=_names_in_figures(table, records, list(built)),
        notes=job.rendered(
            [
                *table.notes,
                *procedures.predictor_notes(settings),
                *chance.exchange_notes(table, settings),
                *_advice(comparison, rows),
            ]
        ),
        warnings=job.rendered([*checks.data_warnings(job.whole), *_failures(rows), *_messages(caught)]),
        provenance=job.provenance(built),
        records=records,
    )


def _advice(comparison: Any, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which method to prefer; none where the preferred one is not shown to be better than chance."""
    if comparison is None:
        return []
    name = comparison.preferred
    if any(row["method"] == name and row["beats_chance"] is False for row in rows):
        return [
            f"No method is preferred: {name}, which has the best scores, is not shown to be better than chance."
        ]
    return [comparison.verdict]


def _built_methods(job: Job, sizes: list[int]) -> dict[str, Any]:
    """The methods asked for and random features, each with its own parameters."""
    names = procedures.named_methods(job.settings.methods, job.table)
    params = job.settings.params or {}
    unknown = [name for name in params if name not in names]
    if unknown:
        raise OptionError(
            f"names the method {unknown[0]!r}, which is not compared. Use one of {', '.join(names)}.",
            "params",
        )
    everything = list(dict.fromkeys((*names, ALWAYS_COMPARED)))
    return {
        name: procedures.build_procedure(name, job.table, job.settings, sizes, params.get(name, {}))
        for name in everything
    }


def _names_in_figures(table: Table, records: Any, methods: list[str]) -> dict[int, str]:
    from zeronorm.evaluation._summary import selection_frequencies

    found = [selection_frequencies(records, name, table.n_features).shares[:50] for name in methods]
    named = sorted({index for shares in found for index, _ in shares})
    return {index: str(table.feature_names[index]) for index in named}


def _failures(rows: list[dict[str, Any]]) -> list[str]:
    return [
        f"{row['method']} failed on {len(row['failed'])} folds: {row['failed'][0]}."
        for row in rows
        if row["failed"]
    ]


RUNS: dict[str, tuple[Any, Callable[[Job], Result]]] = {
    "select": (SelectOptions, select_features),
    "compare": (CompareOptions, compare_methods),
}
