"""Questions about a finished run that need its data: substitutes, learning curve, why a feature is not selected."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import OptionError
from zeronorm.result._provenance import file_checksum
from zeronorm.selection.target import TimeToEvent
from zeronorm.workflow import _control as control
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._chance import WithBaseline
from zeronorm.workflow._inputs import load_data
from zeronorm.workflow._kinds import defaults_of, options_of
from zeronorm.workflow._options import Settings

if TYPE_CHECKING:
    from zeronorm._types import IntArray
    from zeronorm.datasets import Table
    from zeronorm.evaluation.learning._answer import LearningCurve
    from zeronorm.evaluation.stand_ins._answers import Substitutes
    from zeronorm.result._record import ResultData
    from zeronorm.selection._path import SelectionPath

# Options that do not change what is selected or measured.
NOT_STORED = (
    "dask", "device", "force", "learning_curve", "memory_budget", "n_jobs", "out", "resume", "save_model", "seed",
    "substitutes", "verbose", "write_table",
)  # fmt: skip
PLAIN = (bool, int, float, str)
NOT_SOUGHT = (
    "No substitutes were sought, because no feature was selected or the procedure is not shown to predict better than "
    "chance."
)


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """The data of a selection and what is needed to repeat parts of it.

    Parameters
    ----------
    table : the data.
    whole : the same without missing values.
    settings : the options.
    procedure : the unfitted procedure.
    columns : the selected features, best first.
    selector : the procedure fitted on all samples; None for a loaded result, for which it is fitted when needed.
    """

    table: Table
    whole: Table
    settings: Any
    procedure: Any
    columns: IntArray
    selector: Any = None

    @cached_property
    def fitted(self) -> Any:
        """The procedure, fitted on all samples."""
        return self.selector or training.fit_procedure(self.procedure, self.whole, self.settings)

    @cached_property
    def path(self) -> SelectionPath:
        """The path of the fitted procedure."""
        from zeronorm.resampling._fitted_path import fitted_path

        return fitted_path(self.fitted, self.whole.with_covariates.shape[1]).alone()

    def options(self) -> dict[str, Any]:
        """The folds, the predictor, the metric and the rest, as ``substitutes`` and ``learning_curve`` take them."""
        s = self.settings
        return {
            "task": self.table.task,
            "metric": procedures.primary_metric_of(self.table, s),
            "groups": self.table.sample_groups,
            "random_state": s.random_state,
            "n_jobs": training.n_processes(self.table, s),
        }


def finished_run(job: Any, fitted: Any) -> FinishedRun:
    """The run, from the parts of ``select``."""
    return FinishedRun(job.table, job.whole, job.settings, fitted.procedure, fitted.columns, fitted.selector)


def check_answerable(table: Table, settings: Any) -> None:
    """Raise an error, before any work, for a question that these data do not answer."""
    from zeronorm.evaluation.learning._curve import N_SIZES
    from zeronorm.evaluation.learning._subsets import shares_for

    if settings.learning_curve and table.task == TimeToEvent.task:
        raise OptionError(
            f"supports classes and real numbers. The task is {table.task}; leave the option out.",
            "learning_curve",
        )
    if settings.learning_curve:
        shares_for(table.y, table.sample_groups, type(table.target), N_SIZES)


def predictor_of_swaps(run: FinishedRun) -> Any:
    """The predictor for lists of features: that of the run, or the one that the method chose on all samples."""
    predictor = WithBaseline.for_table(run.whole, run.settings)
    follows = procedures.follows_selector(run.whole, run.settings) and run.selector is not None
    return predictor.for_selector(run.selector) if follows else predictor


def substitutes_of(run: FinishedRun) -> Substitutes:
    """The features that would do as well as each selected one, on the outer folds of the run."""
    from zeronorm.evaluation.stand_ins._substitutes import substitutes

    names = [*run.whole.feature_names, *run.whole.covariate_names]
    return substitutes(
        run.whole.with_covariates,
        run.whole.y,
        run.columns,
        adjust=run.whole.positions_of_covariates,
        cv=training.outer_splits(run.table, run.settings),
        estimator=predictor_of_swaps(run),
        feature_names=[str(name) for name in names],
        **run.options(),
    )


def learning_curve_of(run: FinishedRun, *, journal: Any = None, bar: Any = None) -> LearningCurve:
    """The error of the whole procedure on growing parts of the samples."""
    from zeronorm.evaluation.learning._curve import DRAWS, N_SIZES, learning_curve

    if bar is not None:
        bar.expect(run.settings.cv * DRAWS * N_SIZES)
    return learning_curve(
        training.selector_for(run.table, run.procedure),
        run.table.with_covariates,
        run.table.y,
        cv=run.settings.cv,
        estimator=WithBaseline.for_table(run.table, run.settings),
        journal=journal,
        verbose=False if bar is None else bar,
        **run.options(),
    )


# -- A run from a loaded result ---------------------------------------------------------------------


def stored_options(settings: Settings) -> dict[str, Any]:
    """The options that decide what a run does, as plain values; ``options_missing`` names those that are none."""
    defaults, stored, missing = defaults_of(type(settings)), {}, []
    for name in options_of(type(settings)):
        value = getattr(settings, name)
        if name in NOT_STORED or (not hasattr(value, "shape") and _is_same(value, defaults[name])):
            continue
        plain = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        if _is_plain(plain):
            stored[name] = plain
        else:
            missing.append(name)
    return {"options": stored, "options_missing": missing}


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, PLAIN) for each in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and isinstance(each, PLAIN) for key, each in value.items())
    return value is None or isinstance(value, PLAIN)


class NoDataError(ValueError):
    """The data of a loaded result are not at hand."""


def run_of(result: ResultData, data: Any = None) -> FinishedRun:
    """The run behind a result: the one in memory, or one made again from the stored options and the data."""
    if result.kind != "selection":
        raise ValueError("A comparison has no selected features. Ask a result of select instead.")
    if result.run is not None and data is None:
        found: FinishedRun = result.run
        return found
    missing = result.provenance.get("options_missing", ["target"])
    if missing and not hasattr(data, "shape"):
        raise NoDataError(
            f"The data of this result cannot be read again: {', '.join(map(repr, missing))} was given as an array "
            "or an object, not as a name. Ask in the Python session of the selection, or select from a file."
        )
    table, settings = _loaded_again(result, data)
    columns = np.array([feature.index for feature in result.selected], dtype=np.intp)
    _check_same(result, table)
    return FinishedRun(table, training.filled(table), settings, _procedure(result, table, settings), columns)


def _loaded_again(result: ResultData, data: Any) -> tuple[Table, Any]:
    from zeronorm.datasets._catalogue import known_names
    from zeronorm.workflow._options import SelectOptions

    source = result.data["source"] if data is None else data
    if data is None and not Path(source).is_file() and source not in known_names():
        raise NoDataError(
            f"The data {source!r} are not where they were. Give the file (data, or --data on the command line)."
        )
    checksum = file_checksum(source)
    if checksum is not None and result.data["sha256"] not in (None, checksum):
        raise ValueError(
            f"The file {str(source)!r} is not the one of this result: its SHA-256 checksum differs. Give the file from "
            "which the features were selected."
        )
    settings = SelectOptions(**result.provenance["options"])
    return load_data(source, settings), settings


def _check_same(result: ResultData, table: Table) -> None:
    names = [feature.name for feature in result.selected]
    at = [feature.index for feature in result.selected]
    is_same = (table.n_samples, table.n_features) == (result.data["n_samples"], result.data["n_features"])
    if not is_same or [str(table.feature_names[index]) for index in at] != names:
        raise ValueError(
            f"The data have {table.n_samples} samples and {table.n_features} features, and do not fit this result "
            f"({result.data['n_samples']} and {result.data['n_features']}). Give the data of the selection."
        )


def _procedure(result: ResultData, table: Table, settings: Any) -> Any:
    whole = training.filled(table)
    if settings.control is not None:
        return control.choose_construction(whole, settings).selector
    sizes = procedures.sizes_to_try(table, settings)
    return procedures.build_procedure(str(result.chosen_method), whole, settings, sizes, settings.params)
