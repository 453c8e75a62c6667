"""The function ``substitutes``: which other features would do as well as the selected ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.design import as_design
from zeronorm.evaluation.stand_ins._answers import (
    MOST_SIGNATURES,
    FeatureSubstitutes,
    Substitute,
    Substitutes,
)
from zeronorm.evaluation.stand_ins._swaps import Swaps, values_on_folds
from zeronorm.evaluation.stand_ins._tests import Tested, run_tests
from zeronorm.resampling._metrics import as_metric, parse_metrics
from zeronorm.resampling.survival._curves import nelson_aalen
from zeronorm.selection._sample_groups import group_means
from zeronorm.selection.target import TASKS, Real, Target, TimeToEvent

SERVED = ("classification", "regression", "survival")
LEVEL = 0.05
LARGEST_LOSS = 0.25  # of what a feature adds; a correlation of 0.87 with it, given the others, loses as much
MOST_SWAPS = 30  # substitutes of one feature whose error is measured, and unclear ones that are named


def substitutes(
    X: Any,
    y: ArrayLike,
    support: Any,
    *,
    task: str = "classification",
    level: float = LEVEL,
    largest_loss: float = LARGEST_LOSS,
    cv: Any = 5,
    estimator: Any = None,
    metric: Any = None,
    groups: Any = None,
    adjust: ArrayLike = (),
    feature_names: Sequence[str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Substitutes:
    """Find the features that would do as well as each of the selected ones.

    A feature f can stand in for a selected feature j if, beside the other selected features,

    1. j is associated with the target without f, also if it is the best of all features (else there is nothing to take
       over, and it cannot be told),
    2. so is f,
    3. once f is given, no more than a negligible part of the association of j is seen (a fiftieth),
    4. the samples are enough to have seen it if more than ``largest_loss`` were left (else it cannot be told),
    5. and the error with f in place of j is within one standard error of that with j, on the same folds.

    The tests are those of partial correlations (of several columns for more than two classes). The candidates are
    features with a correlation of at least 0.5 with j given the others, up to the 100 most correlated. The tests are
    corrected by Holm over them, those of the loss in the order of the correlations, until one is not rejected.
    Effects that features have only together are not seen. With ``groups``, means of the samples of each group are
    tested. With ``adjust`` covariates are given in all tests and are in every model. For times to an event the tests
    are those of martingale residuals (observed less expected events, where all samples are alike). The selection itself
    used the same samples, which favours j.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Design
        All features, without missing values.
    y : array-like
        Labels, real targets with ``task="regression"``, or times and events with ``task="survival"``.
    support : selector, mask or array of int
        The selected features; a fitted selector has them.
    task : {"classification", "regression", "survival"}, default='classification'
        What y holds.
    level : float, default=0.05
        Level of the tests.
    largest_loss : float, default=0.25
        Share of what a feature adds to the others, in explained variance, that a substitute may lose.
    cv : int, splitter or list, default=5
        The folds.
    estimator : estimator or None, default=None
        The predictor. None: as in ``evaluate``.
    metric : str, Metric or None, default=None
        The metric. None: the first of those of ``evaluate``.
    groups : array-like or None, default=None
        One label per sample, where samples belong together.
    adjust : array-like of int, default=()
        The columns of X that are covariates.
    feature_names : sequence of str or None, default=None
        Names of the features. None: those of X, or x0, x1, ….
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int or None, default=None
        Number of processes.

    Returns
    -------
    Substitutes
        One entry per selected feature, the number of equivalent lists and the best of them.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import substitutes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> X[:, 7] = X[:, 0] + 0.1 * rng.normal(size=200)
    >>> y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=200) > 0).astype(int)
    >>> print(substitutes(X, y, [0, 1]).features[0].sentence())
    x0 can be replaced by x7.
    """
    design, y = as_design(X), TimeToEvent.prepared(y) if task == TimeToEvent.task else np.asarray(y)
    chosen = _checked_support(support, design.n_features)
    _check_shares(level=level, largest_loss=largest_loss)
    if len(y) != design.n_samples:
        raise ValueError(f"y has {len(y)} values, but X has {design.n_samples} samples.")
    if task not in SERVED:
        raise ValueError(f"The 'task' parameter must be one of {SERVED}. Got {written(task)} instead.")
    names = _names(feature_names, design)
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and len(groups) != design.n_samples:
        raise ValueError(f"'groups' has {len(groups)} entries, but X has {design.n_samples} samples.")
    covariates = _checked_adjust(adjust, design.n_features, chosen)
    collapse, target = independent_samples(y, TASKS[task], groups)
    tested = run_tests(design, chosen, target, collapse, level, largest_loss, covariates)
    measured = as_metric(metric) if metric is not None else parse_metrics(None, TASKS[task])[0]
    values_of = values_on_folds(
        design,
        y,
        measured,
        cv=cv,
        estimator=estimator,
        groups=groups,
        task=task,
        adjust=covariates,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    pairs = [
        (each.index, int(other))
        for each in tested
        for other in each.candidates[each.is_substitute(level)][:MOST_SWAPS]
    ]
    swaps = Swaps.measure(values_of, chosen, pairs, measured, y)
    features = tuple(_described(each, names, swaps, level) for each in tested)
    best, best_error = swaps.best(features)
    return Substitutes(
        features=features,
        level=level,
        largest_loss=largest_loss,
        metric=measured.name,
        error=_finite(swaps.error),
        standard_error=_finite(swaps.standard_error),
        n_signatures=min(MOST_SIGNATURES, math.prod(1 + len(each.substitutes) for each in features)),
        best=tuple(names[index] for index in best),
        best_error=_finite(best_error),
    )


def independent_samples(
    y: Any, target: type[Target], groups: Any
) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    """The columns of the target that are tested, one row per independent sample, and the function from columns of all
    samples to such rows: with sample groups their means.

    Times to an event become martingale residuals, which are observed less expected events where all samples are alike.
    """
    if issubclass(target, TimeToEvent):
        encoded = target.encode(y, "substitutes")
        y = encoded.event - nelson_aalen(encoded.event, encoded.time)(encoded.time)
        target = Real
    means, y = (np.asarray, y) if groups is None else group_means(groups, y, target.has_classes)
    return means, target.encode(y, "substitutes").columns()


# -- Input ----------------------------------------------------------------------------------------------------------


def _checked_support(support: Any, n_features: int) -> IntArray:
    found = np.asarray(support.get_support() if hasattr(support, "get_support") else support)
    if found.dtype == bool and found.shape == (n_features,):
        found = np.flatnonzero(found)
    is_index = found.ndim == 1 and found.size > 0 and np.issubdtype(found.dtype, np.integer)
    if not is_index or found.min() < 0 or found.max() >= n_features or len(np.unique(found)) < found.size:
        raise ValueError(
            f"The 'support' parameter must hold different positions from 0 to {n_features - 1}, or a mask of "
            f"{n_features} features, with at least one. Got {written(support)} instead."
        )
    return found.astype(np.intp)


def _checked_adjust(adjust: ArrayLike, n_features: int, support: IntArray) -> IntArray:
    found = np.asarray(adjust if np.size(adjust) else [], dtype=np.intp)
    others = np.setdiff1d(np.arange(n_features), support)
    if found.ndim != 1 or not np.isin(found, others).all() or len(np.unique(found)) < found.size:
        raise ValueError(
            f"The 'adjust' parameter must hold different positions from 0 to {n_features - 1} that are not selected. "
            f"Got {written(adjust)} instead."
        )
    return found


def _check_shares(**shares: float) -> None:
    for name, value in shares.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
            raise ValueError(
                f"The {name!r} parameter must be a number between 0 and 1. Got {written(value)} instead."
            )


def _names(given: Sequence[str] | None, design: Any) -> Sequence[str]:
    if given is not None and len(given) != design.n_features:
        raise ValueError(f"'feature_names' has {len(given)} names, but X has {design.n_features} features.")
    names = design.feature_names if given is None else given
    return [f"x{i}" for i in range(design.n_features)] if names is None else [str(name) for name in names]


# -- The answer for one feature ------------------------------------------------------------------------------------


def _described(tested: Tested, names: Sequence[str], swaps: Swaps, level: float) -> FeatureSubstitutes:
    found: list[Substitute] = []
    n_worse = 0
    for at in np.flatnonzero(tested.is_substitute(level)):
        index = int(tested.candidates[at])
        error = swaps.with_swap(tested.index, index)
        if np.isfinite(error) and not swaps.is_as_good(error):
            n_worse += 1
            continue
        correlation = 0.0 if tested.found is None else float(tested.found.correlation[at])
        found.append(
            Substitute(
                index,
                names[index],
                correlation,
                p_value=float(tested.p_candidates[at]),
                p_left=float(tested.p_left[at]),
                p_loss=float(tested.p_loss[at]),
                error=_finite(error),
            )
        )
    unclear = tested.candidates[tested.is_open(level)]
    entry = FeatureSubstitutes(
        index=tested.index,
        name=names[tested.index],
        status="found" if found else "none",
        reason="",
        p_value=tested.p_value,
        covered_by=tuple(names[index] for index in tested.covered_by),
        substitutes=tuple(found),
        unclear=tuple(names[index] for index in unclear[:MOST_SWAPS]),
        n_tested=len(tested.candidates),
        n_open=len(unclear),
        n_worse=n_worse,
    )
    reason = "" if found else _why_unknown(entry, tested, level)
    return replace(entry, status="cannot be told", reason=reason) if reason else entry


def _why_unknown(entry: FeatureSubstitutes, tested: Tested, level: float) -> str:
    """Why it cannot be told whether a feature has substitutes; empty where it is told."""
    if tested.dof < 1:
        return "there are as many selected features as independent samples"
    if tested.p_value > level and entry.covered_by:
        return f"beside {', '.join(entry.covered_by)}, which is also selected, it adds nothing that these samples show"
    if tested.p_value > level:
        return "these samples do not show that it adds to the other selected features, as the best of so many"
    if entry.n_open:
        others = "1 feature is" if entry.n_open == 1 else f"{entry.n_open} features are"
        return f"{others} similar to it, and the samples are too few to show whether something would be lost"
    return ""


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
