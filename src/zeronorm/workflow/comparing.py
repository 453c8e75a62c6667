"""Several methods on the same folds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from zeronorm.workflow import building, describing, procedures
from zeronorm.workflow.errors import UsageProblem
from zeronorm.workflow.loading import check_folds
from zeronorm.workflow.procedures import Wishes
from zeronorm.workflow.provenance import Clock, provenance
from zeronorm.workflow.selection import RULES, _messages, check_not_all_failed

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.workflow.result import RunResult


def run_comparison(
    table: Table, methods: str, wishes: Wishes, clock: Clock, checksum: str | None
) -> tuple[RunResult, Any]:
    """Evaluate all methods on the outer folds; return result and records."""
    from zeronorm.evaluation.comparison import compare
    from zeronorm.evaluation.summary import primary_metric, selection_frequencies
    from zeronorm.workflow.checks import data_warnings
    from zeronorm.workflow.result import RunResult

    check_folds(table, wishes.cv)
    names = building.named_methods(methods, table)
    if len(names) < 2:
        raise UsageProblem(f"A comparison needs at least two methods. Got {', '.join(names) or 'none'}.")
    sizes = procedures.sizes_to_try(table, wishes)
    built = {name: procedures.build_procedure(name, table, wishes, sizes) for name in names}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = procedures.evaluate_procedures(built, table, wishes, sizes)
    check_not_all_failed(records)
    comparison = compare(records, primary_metric(records))
    frequencies = {name: selection_frequencies(records, name, table.n_features) for name in names}
    named = sorted({index for f in frequencies.values() for index, _ in f.shares[:50]})
    result = RunResult(
        kind="comparison",
        data=describing.describe_data(table, checksum),
        methods=[
            describing.describe_method(n, getattr(s, "selector", s)) | {"label": n} for n, s in built.items()
        ],
        size={"chosen": wishes.features, "rule": RULES[wishes.features is not None], "tried": sizes},
        names={index: str(table.feature_names[index]) for index in named},
        notes=[*table.notes, *([comparison.verdict] if comparison is not None else [])],
        warnings=[*data_warnings(table), *_messages(caught)],
        provenance=provenance(clock, seed=wishes.seed, folds=wishes.cv, repeats=wishes.repeats),
    )
    return result, records
