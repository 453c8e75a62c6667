"""The work of a run: read the data, select or compare, measure, and put the result together."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._lazy import service
from zeronorm._types import written
from zeronorm.selection.problem import Progress, RunBar
from zeronorm.workflow import chance, checks, files, measured, procedures, training
from zeronorm.workflow.features import AFTER_SELECTION, describe_selected
from zeronorm.workflow.inputs import DataOptions, check_folds, load_data
from zeronorm.workflow.models import fit_model
from zeronorm.workflow.places import jobs_at, on_cluster, output_folder, table_on_device
from zeronorm.workflow.procedures import Settings
from zeronorm.workflow.result import Result

if TYPE_CHECKING:
    from zeronorm.datasets import Table

ALWAYS_COMPARED = "random"  # together with the baseline: what a method must beat
RULES = {
    "fixed": "was set in advance",
    "one_se": "was chosen by the one-standard-error rule on inner cross-validation",
    "best": "was chosen by the best mean score on inner cross-validation",
    "own": "was chosen by the method's own control of false selections",
}


@dataclass(frozen=True)
class Job:
    """One run: the data, what is asked for, and where finished parts are kept."""

    table: Table
    whole: Table  # the same without gaps, for what is fitted on all samples
    settings: Settings
    checksum: str | None
    clock: files.Clock
    bar: RunBar
    call: str
    methods: Any = None
    params: Mapping[str, Any] | None = None
    method: str | None = None
    journal: Path | None = None
    write_table: Path | None = None

    def provenance(self, built: Mapping[str, Any]) -> dict[str, Any]:
        """Versions, settings and the seeds of all folds."""
        s = self.settings
        return files.provenance(
            self.clock,
            self.call,
            seed=s.random_state,
            folds=s.cv,
            repeats=s.repeats,
            seeds=training.fold_seeds(built, s.cv * s.repeats, s),
        )


def run_job(
    function: Callable[..., Result], work: Callable[[Job], Result], arguments: dict[str, Any]
) -> Result:
    """Check the output folder, load the data, do the work, write the files."""
    clock = files.Clock()
    signature = inspect.signature(function).parameters
    call = files.call_text(function.__name__, arguments, {k: v.default for k, v in signature.items()})
    data, out = arguments.pop("data"), arguments.pop("out")
    resume, save_model = arguments.pop("resume"), arguments.pop("save_model", False)
    procedures.check_predictor(arguments["predictor"])
    if save_model and not isinstance(arguments["predictor"], str):
        raise ValueError(
            "The 'save_model' parameter does not apply to a predictor of your own, which has no safe file format. Use "
            "predictor='linear' or predictor='gaussian'."
        )
    cluster = arguments.pop("dask")
    arguments["n_jobs"] = jobs_at(arguments["device"], cluster, arguments["n_jobs"])
    with Progress(arguments["verbose"]).whole(f"Reading {_named(data)}") as bar:
        if out is None:
            with on_cluster(cluster):
                return work(_job(data, arguments, clock, call, None, bar))
        place_of_results = output_folder(Path(out), force=arguments["force"], resume=resume)
        with place_of_results as place, on_cluster(cluster):
            result = work(_job(data, arguments, clock, call, place.journal, bar))
            bar.say("Writing the report")
            files.write_files(result, place.folder, with_model=save_model)
    return result


def _named(data: Any) -> str:
    if not isinstance(data, (str, os.PathLike)):
        return "the data"
    return "standard input" if str(data) == "-" else Path(data).name


def _job(
    data: Any, arguments: dict[str, Any], clock: files.Clock, call: str, journal: Path | None, bar: RunBar
) -> Job:
    options = dict(arguments)
    method, methods, params = options.pop("method", None), options.pop("methods", None), options.pop("params")
    force, write_table = options.pop("force"), options.pop("write_table", None)
    device = options.pop("device")
    if write_table is not None:
        files.check_table_place(Path(write_table), force)
    has_groups = options["feature_groups"] is not None
    loading = DataOptions.taken_from(dict(options))
    settings = Settings.taken_from({**options, "has_own_groups": has_groups})
    table = table_on_device(load_data(data, loading), device)
    check_folds(table, settings.cv)
    procedures.metrics_of(table, settings)
    return Job(
        table=table,
        whole=training.filled(table),
        settings=settings,
        checksum=files.file_checksum(data),
        clock=clock,
        bar=bar,
        call=call,
        methods=methods,
        params=params or {},
        method=method,
        journal=journal,
        write_table=None if write_table is None else Path(write_table),
    )


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


UNTOLD = (
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
    """A method with the parameters that differ from the defaults of its class."""
    info = getattr(type(selector), "_method", None)
    defaults = type(selector)().get_params(deep=False) if info is not None and info.kind == "selector" else {}
    parameters = {
        key: value
        for key, value in selector.get_params(deep=False).items()
        if key not in UNTOLD and (key not in defaults or repr(value) != repr(defaults[key]))
    }
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


# The last one is said with the names of the samples, beside all else that is unusual about the data.
UNTOLD_WARNINGS = ("DeprecationWarning", "PendingDeprecationWarning", "GrossTargetWarning")


def _messages(caught: list[Any]) -> list[str]:
    """Warnings of the computation, in one line; those of the folds that differ in numbers only, once."""
    relevant = [w for w in caught if w.category.__name__ not in UNTOLD_WARNINGS]
    found: dict[str, str] = {}
    for text in (" ".join(str(w.message).split()) for w in relevant):
        found.setdefault(re.sub(r"\d+(\.\d+)?", "0", text), text)
    return list(found.values())


# -- Selection ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """The procedure fitted on all samples, and what it chose."""

    label: str
    procedure: Any
    selector: Any
    path: Any
    columns: Any  # of the selected features, in the order of the path

    @property
    def innermost(self) -> Any:
        """The method inside the choice of a method and of a size."""
        selector = self.selector
        while hasattr(selector, "selector_"):
            selector = selector.selector_
        return selector


def select_features(job: Job) -> Result:
    table, settings = job.table, job.settings
    sizes = procedures.sizes_to_try(table, settings)
    name = job.method or procedures.default_method(job.whole)
    _expect(job, chance.permutation_count(table, settings, sizes, name))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        baseline = chance.baseline_records(table, settings)
        fitted = _fit(job, name, sizes)
        built = {fitted.label: fitted.procedure}
        records = training.evaluate_procedures(built, table, settings, sizes, journal=job.journal)
        metric = procedures.primary_metric_of(table, settings)
        measured.check_something_worked(records, metric, [fitted.label])
        found = _measure(job, fitted.label, fitted.procedure, records, baseline, sizes)
    if job.write_table is not None:
        files.write_table(table, fitted.columns, job.write_table)
    return _selection_result(job, fitted, records, found, sizes, _messages(caught))


def _expect(job: Job, n_permutations: int) -> None:
    job.bar.expect(1 + job.settings.cv * job.settings.repeats * (1 + n_permutations))


def _measure(
    job: Job, label: str, procedure: Any, records: Any, baseline: Any, sizes: list[int]
) -> dict[str, Any]:
    """What the records say, beside the baseline and permuted targets."""
    table, settings = job.table, job.settings
    found = measured.measure(label, records, baseline, table, settings)
    is_only_test = found["beats_chance"] is None
    count = chance.permutation_count(table, settings, sizes, label, is_only_test=is_only_test)
    _expect(job, count)
    permuted = chance.permutation_test(
        label, procedure, table, settings, found["value"], count, journal=job.journal, bar=job.bar
    )
    return (
        found if permuted is None else measured.measure(label, records, baseline, table, settings, permuted)
    )


def _fit(job: Job, name: str, sizes: list[int]) -> Fitted:
    from zeronorm.resampling.fitted_path import fitted_path, own_support

    table, settings = job.whole, job.settings
    job.bar.say(f"{name}, all samples")
    procedure = procedures.build_procedure(name, table, settings, sizes, job.params)
    try:
        selector = training.fit_procedure(procedure, table, settings)
    except TypeError as error:
        if not job.params:
            raise
        raise ValueError(
            f"The method {name!r} cannot use the parameters {dict(job.params)}: {error}"
        ) from error
    job.bar.advance(1)
    path = fitted_path(selector, table.n_features)
    columns = own_support(selector, path)
    ordered = columns[np.argsort(path.position()[columns], kind="stable")]
    return Fitted(name, procedure, selector, path, ordered)


def _selection_result(
    job: Job, fitted: Fitted, records: Any, found: dict[str, Any], sizes: list[int], messages: list[str]
) -> Result:
    from zeronorm.evaluation.summary import selection_frequencies

    table, settings = job.whole, job.settings
    frequencies = selection_frequencies(records, fitted.label, table.n_features)
    model = fit_model(table, fitted.columns, settings, with_gaps=job.table)
    selected = describe_selected(table, fitted.path, fitted.columns, dict(frequencies.shares), model)
    figures = _figures(table, fitted, sizes)
    named = {feature.index for feature in selected} | {index for index, _ in frequencies.shares[:200]}
    named |= {index for figure in figures.values() for index in figure.get("features", ())}
    rule = _rule_of(fitted.label, settings)
    result = Result(
        kind="selection",
        data=_describe_data(job),
        methods=[_describe_method(_method_name(fitted), fitted.innermost, fitted.label)],
        chosen_method=fitted.label,
        size={
            "chosen": len(selected),
            "rule": RULES[rule],
            "tried": sizes,
            "at_largest": rule in ("one_se", "best") and len(selected) >= sizes[-1] < table.n_features,
        },
        procedure=found,
        selected=selected,
        names={index: str(table.feature_names[index]) for index in sorted(named)},
        notes=[*table.notes, *_notes(job, fitted, selected)],
        provenance=job.provenance({fitted.label: fitted.procedure}),
        figures=figures,
        records=records,
        model=model,
    )
    own = measured.result_warnings(found, result.size)
    return replace(result, warnings=[*checks.data_warnings(table), *own, *messages])


def _rule_of(method: str, settings: Settings) -> str:
    if settings.features is not None:
        return "fixed"
    return "own" if method in procedures.ERROR_CONTROL else settings.rule


def _method_name(fitted: Fitted) -> str:
    return str(getattr(fitted.selector, "chosen_", fitted.label))


def _notes(job: Job, fitted: Fitted, selected: Sequence[Any]) -> list[str]:
    notes = [] if job.method else procedures.default_notes(job.whole)
    notes += procedures.predictor_notes(job.settings)
    notes += procedures.inner_notes(job.whole, job.settings, fitted.label)
    notes += [fitted.selector.verdict()] if hasattr(fitted.selector, "verdict") else []
    return [*notes, AFTER_SELECTION] if selected else notes


def _figures(table: Table, fitted: Fitted, sizes: list[int]) -> dict[str, Any]:
    """What the charts of the report need of the table and the fitted procedure."""
    if fitted.columns.size == 0:
        return {}
    figures: dict[str, Any] = service("collect_figures")(
        X=table.X,
        y=table.y,
        task=table.task,
        selector=fitted.selector,
        method=fitted.innermost,
        path=fitted.path,
        columns=fitted.columns,
        sizes=sizes,
    )
    return figures


# -- Comparison ---------------------------------------------------------------------------------------


def compare_methods(job: Job) -> Result:
    from zeronorm.evaluation.summary import compare as compare_records

    table, settings = job.table, job.settings
    metric = procedures.primary_metric_of(table, settings)
    sizes = procedures.sizes_to_try(table, settings)
    built = _built_methods(job, sizes)
    n_permutations = int(settings.permutations) if settings.permutations != "auto" else 0
    job.bar.expect(len(built) * settings.cv * settings.repeats * (1 + n_permutations))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        baseline = chance.baseline_records(table, settings)
        records = training.evaluate_procedures(built, table, settings, sizes, journal=job.journal)
        measured.check_something_worked(records, metric, [n for n in built if job.params and n in job.params])
        rows = [_measured_method(job, name, built[name], records, baseline, sizes) for name in built]
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
        notes=[
            *table.notes,
            *procedures.predictor_notes(settings),
            *([comparison.verdict] if comparison is not None else []),
        ],
        warnings=[*checks.data_warnings(job.whole), *_failures(rows), *_messages(caught)],
        provenance=job.provenance(built),
        records=records,
    )


def _built_methods(job: Job, sizes: list[int]) -> dict[str, Any]:
    """The methods asked for and random features, each with its own parameters."""
    names = procedures.named_methods(job.methods, job.table)
    params = job.params or {}
    unknown = [name for name in params if name not in names]
    if unknown:
        raise ValueError(
            f"The 'params' parameter names the method {unknown[0]!r}, which is not compared. Use one of "
            f"{', '.join(names)}."
        )
    everything = list(dict.fromkeys((*names, ALWAYS_COMPARED)))
    return {
        name: procedures.build_procedure(name, job.table, job.settings, sizes, params.get(name, {}))
        for name in everything
    }


def _measured_method(
    job: Job, name: str, procedure: Any, records: Any, baseline: Any, sizes: list[int]
) -> dict[str, Any]:
    found = measured.measure(name, records, baseline, job.table, job.settings)
    count = int(job.settings.permutations) if job.settings.permutations != "auto" else 0
    if found["value"] is None or count == 0:
        return found
    permuted = chance.permutation_test(
        name, procedure, job.table, job.settings, found["value"], count, journal=job.journal, bar=job.bar
    )
    return measured.measure(name, records, baseline, job.table, job.settings, permuted)


def _names_in_figures(table: Table, records: Any, methods: list[str]) -> dict[int, str]:
    from zeronorm.evaluation.summary import selection_frequencies

    found = [selection_frequencies(records, name, table.n_features).shares[:50] for name in methods]
    named = sorted({index for shares in found for index, _ in shares})
    return {index: str(table.feature_names[index]) for index in named}


def _failures(rows: list[dict[str, Any]]) -> list[str]:
    return [
        f"{row['method']} failed on {len(row['failed'])} test parts: {row['failed'][0]}."
        for row in rows
        if row["failed"]
    ]
