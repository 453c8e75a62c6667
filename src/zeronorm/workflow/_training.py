"""Fitting procedures in folds: splits, seeds, processes, and filling of missing values.

Missing values are filled with the medians of the training samples of each fold; test samples have no influence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import has_fit_parameter

from zeronorm.datasets._encoding import column_medians, fill
from zeronorm.execution import pass_on_interruption
from zeronorm.resampling._fitted_path import chosen_predictor, fitted_path, selected_support
from zeronorm.resampling._splits import Split, make_splits
from zeronorm.workflow._options import Settings
from zeronorm.workflow._procedures import metrics_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.selection._problem import RunBar

TASKS_WORTH_A_PROCESS = 50_000_000


# -- Missing values ---------------------------------------------------------------------------------------------


class MedianFill(TransformerMixin, BaseEstimator):
    """Replace missing values with the medians of the columns it was fitted on, or 0 for a column without values."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the medians."""
        self.medians_ = column_medians(X)
        return self

    def transform(self, X: Any) -> Any:
        """A copy without missing values."""
        return fill(X, self.medians_)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


class OnFilled(BaseEstimator):
    """A procedure that fills missing values with the medians of the samples it is fitted on.

    Parameters
    ----------
    procedure : selector that takes no missing values.
    """

    def __init__(self, procedure: Any) -> None:
        self.procedure = procedure

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fill missing values and fit the procedure."""
        params = (
            {"groups": groups} if groups is not None and has_fit_parameter(self.procedure, "groups") else {}
        )
        self.procedure_ = clone(self.procedure).fit(MedianFill().fit(X).transform(X), y, **params)
        self.path_ = fitted_path(self.procedure_, int(X.shape[1]))
        self.converged_ = bool(getattr(self.procedure_, "converged_", self.path_.converged))
        self.predictor_ = chosen_predictor(self.procedure_)
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """Mask of the selected features."""
        mask = np.zeros(self.path_.n_features, dtype=bool)
        mask[selected_support(self.procedure_, self.path_)] = True
        return mask


def selector_for(table: Table, procedure: Any) -> Any:
    """The procedure, which fills missing values if the table has any."""
    return OnFilled(procedure) if table.n_missing else procedure


def on_filled(estimator: Any) -> Any:
    """The predictor on columns whose missing values are filled."""
    return make_pipeline(MedianFill(), estimator)


def filled(table: Table) -> Table:
    """The table without missing values, for what is fitted on all samples: the final set and its model."""
    if not table.n_missing:
        return table
    covariates = table.covariates
    if covariates is not None:
        covariates = fill(covariates, column_medians(covariates))
    return replace(table, X=MedianFill().fit(table.X).transform(table.X), covariates=covariates, n_missing=0)


# -- Splits and seeds ---------------------------------------------------------------------------------


def outer_splits(table: Table, settings: Settings) -> list[Split]:
    """Training and test rows of the folds of all repeats, each repeat with its own seed."""
    return make_splits(
        settings.cv,
        table.y,
        table.sample_groups,
        target=table.target,
        seed=settings.random_state,
        repeats=settings.repeats,
        least_per_fold=1,
    )


def fold_seeds(procedures: Mapping[str, Any], n_splits: int, settings: Settings) -> dict[str, Any]:
    """The seed of every random component of every procedure, on all samples and in each fold."""
    from zeronorm.resampling._folds import task_seeds
    from zeronorm.resampling._seeds import seeded_clone, unset_random_states

    seeds: dict[str, Any] = {}
    for label, procedure in procedures.items():
        unset = unset_random_states(procedure)
        if not unset:
            continue
        clones = [seeded_clone(procedure, _final_seed(settings), unset)]
        clones += [
            seeded_clone(procedure, task_seeds(settings.random_state, split, label)[0], unset)
            for split in range(n_splits)
        ]
        drawn = [{name: found.get_params()[name] for name in unset} for found in clones]
        seeds[label] = {"all samples": drawn[0], "training parts": drawn[1:]}
    return seeds


def _final_seed(settings: Settings) -> np.random.SeedSequence:
    return np.random.SeedSequence(settings.random_state)


# -- Fitting and evaluating ---------------------------------------------------------------------------


def fit_procedure(procedure: Any, table: Table, settings: Settings) -> Any:
    """The procedure fitted on all samples, with its inner folds in parallel."""
    from sklearn.utils.validation import has_fit_parameter

    from zeronorm.resampling._seeds import seeded_clone

    fitted = seeded_clone(procedure, _final_seed(settings))
    if "n_jobs" in fitted.get_params(deep=False):
        fitted.set_params(n_jobs=n_processes(table, settings))
    if table.sample_groups is not None and has_fit_parameter(fitted, "groups"):
        fitted.fit(table.with_covariates, table.y, groups=table.sample_groups)
    else:
        fitted.fit(table.with_covariates, table.y)
    pass_on_interruption(fitted)
    return fitted


def n_processes(table: Table, settings: Settings) -> int:
    """Number of processes for the folds: one for little work, because starting them takes seconds."""
    if settings.n_jobs:
        return settings.n_jobs
    n_fits = settings.cv * settings.repeats * (1 if settings.features is not None else settings.cv + 1)
    return -1 if n_fits * table.n_samples * table.n_features > TASKS_WORTH_A_PROCESS else 1


def evaluate_procedures(
    procedures: Mapping[str, Any],
    table: Table,
    settings: Settings,
    sizes: list[int],
    *,
    y: Any = None,
    journal: Any = None,
    bar: RunBar | None = None,
) -> Any:
    """Records of all procedures on the outer folds, at their selected size and at the sizes of the curve.

    ``y`` replaces the target of the table, on the same folds. ``bar`` counts the finished fits.
    """
    from zeronorm.evaluation import evaluate
    from zeronorm.workflow._chance import WithBaseline

    return evaluate(
        {name: selector_for(table, procedure) for name, procedure in procedures.items()},
        table.with_covariates,
        table.y if y is None else y,
        cv=outer_splits(table, settings),
        sizes=[None, *sizes],
        estimator=WithBaseline.for_table(table, settings),
        metrics=metrics_of(table, settings),
        groups=table.sample_groups,
        task=table.task,
        n_jobs=n_processes(table, settings),
        journal=journal,
        random_state=settings.random_state,
        verbose=settings.verbose if bar is None else bar,
    )
