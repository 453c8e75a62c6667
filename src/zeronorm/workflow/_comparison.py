"""The work of ``compare``: several methods on the same folds, with random features and no features for reference."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zeronorm._messages import OptionError
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _checks as checks
from zeronorm.workflow import _measured as measured
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._descriptions import RULES, describe_data, describe_method, messages_of
from zeronorm.workflow._result import Result
from zeronorm.workflow._selection import with_permutations

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.workflow._job import Job

ALWAYS_COMPARED = "random"  # with the baseline, the reference that a method must beat


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
            rows.append(with_permutations(job, name, procedure, records, baseline, n_permutations, found))
    rows.append(measured.measure(chance.BASELINE, baseline, baseline, table, settings))
    comparison = compare_records(records, metric)
    return Result(
        kind="comparison",
        data=describe_data(job),
        methods=[describe_method(n, getattr(s, "selector", s), n) for n, s in built.items()],
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
                *advice(comparison, rows),
            ]
        ),
        warnings=job.rendered([*checks.data_warnings(job.whole), *failures(rows), *messages_of(caught)]),
        provenance=job.provenance(built),
        records=records,
    )


def advice(comparison: Any, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The verdict of the tests; that no method is preferred where the best one is not shown to beat chance."""
    if comparison is None:
        return []
    best = comparison.choice.best
    if any(row["method"] == best and row["beats_chance"] is False for row in rows):
        return [
            f"No method is preferred: {best} has the best mean, but is not shown to be better than chance."
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


def failures(rows: list[dict[str, Any]]) -> list[str]:
    """The methods that failed on some folds, with the first error of each."""
    return [
        f"{row['method']} failed on {len(row['failed'])} folds: {row['failed'][0]}."
        for row in rows
        if row["failed"]
    ]
