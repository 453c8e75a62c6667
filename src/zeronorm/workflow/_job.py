"""The steps of a run: check the options, read the data, do the work, write the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zeronorm._messages import rendered
from zeronorm.resampling._fitted_path import chosen_predictor
from zeronorm.result import _files as files
from zeronorm.result._folder import PROGRESS, output_folder
from zeronorm.result._provenance import Clock, call_text, file_checksum, provenance
from zeronorm.selection._problem import Progress, RunBar
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._backends import jobs_at, on_cluster, table_on_device
from zeronorm.workflow._comparison import compare_methods
from zeronorm.workflow._compiling import compilation_shown
from zeronorm.workflow._inputs import check_covariates, check_folds, load_data
from zeronorm.workflow._kinds import defaults_of
from zeronorm.workflow._options import Caller, CompareOptions, PanelOptions, SelectOptions
from zeronorm.workflow._panel import test_list
from zeronorm.workflow._questions import stored_options
from zeronorm.workflow._result import Result, write_result
from zeronorm.workflow._selection import select_features

if TYPE_CHECKING:
    from zeronorm.datasets import Table


@dataclass(frozen=True)
class Job:
    """One run: the data, the options, the caller, and the folder that keeps finished folds."""

    table: Table
    whole: Table  # the same without missing values, for what is fitted on all samples
    settings: Any  # SelectOptions, CompareOptions or PanelOptions
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
            **stored_options(s),
        )

    def rendered(self, messages: Iterable[str]) -> list[str]:
        """The messages with options named as the caller names them."""
        return [rendered(message, self.caller.naming) for message in messages]


def run_job(name: str, arguments: Mapping[str, Any], caller: Caller | None = None) -> Result:
    """Check the options, load the data, check the output folder, do the work, write the files.

    Parameters
    ----------
    name : "select", "compare" or "test_panel".
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
        watched = bar.recorded(Path(settings.out) / PROGRESS)
        with folder as folders, watched, on_cluster(settings.dask):
            result = work(replace(job, journal=folders.journal))
            bar.describe("Writing the report")
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
    check_covariates(table, settings)
    procedures.metrics_of(table, settings)
    return Job(table, training.filled(table), settings, file_checksum(data), clock, bar, caller)


RUNS: dict[str, tuple[Any, Callable[[Job], Result]]] = {
    "select": (SelectOptions, select_features),
    "compare": (CompareOptions, compare_methods),
    "test_panel": (PanelOptions, test_list),
}
