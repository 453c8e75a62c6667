"""The function ``learning_curve``: the error of a procedure on growing parts of the samples."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.dummy import DummyClassifier, DummyRegressor

from zeronorm._types import written
from zeronorm.evaluation._protocol import evaluate
from zeronorm.evaluation._records import columns_of
from zeronorm.evaluation.learning._answer import LearningCurve
from zeronorm.evaluation.learning._prediction import curve_of_records
from zeronorm.evaluation.learning._subsets import growing_splits
from zeronorm.resampling._metrics import as_metric, parse_metrics
from zeronorm.resampling._scored_paths import KnownPath
from zeronorm.selection._path import SelectionPath
from zeronorm.selection.target import TASKS

SERVED = ("classification", "regression")
N_SIZES, DRAWS = 6, 5
WITHOUT_FEATURES = {True: DummyClassifier(strategy="most_frequent"), False: DummyRegressor()}


def learning_curve(
    selector: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    draws: int = DRAWS,
    n_sizes: int = N_SIZES,
    estimator: Any = None,
    metric: Any = None,
    groups: Any = None,
    task: str = "classification",
    confidence: float = 0.95,
    n_jobs: int | None = None,
    journal: Any = None,
    random_state: int = 0,
    verbose: Any = False,
) -> LearningCurve:
    """Measure the error of a procedure on growing parts of the samples, and predict it for more samples.

    In every fold the whole procedure, with the selection inside, is fitted on nested subsets of the training samples
    that have the same mix of classes and divide no sample group; all test samples of the fold are predicted. This is
    repeated with other folds and subsets. The inverse power law a + b m^−c is fitted to the mean values. "Twice as
    many samples" means twice as many in the same folds, so that the value at all samples is comparable with that of
    ``evaluate``.

    The intervals are for the value that would be measured in the same way with so many samples. They hold the noise of
    the fitted points (parametric bootstrap), of the test samples now and then, and of one data set among others. They
    assume that the new samples are like these, and that the law continues to hold.

    Parameters
    ----------
    selector : selector
        The procedure. Choices, such as that of the number of features, belong inside it.
    X : array-like, sparse matrix, data frame or Design
        The features.
    y : array-like
        Labels, or real targets with ``task="regression"``.
    cv : int, splitter or list, default=5
        The folds.
    draws : int, default=5
        How many times folds and subsets are drawn.
    n_sizes : int, default=6
        Number of sizes, in equal ratios.
    estimator : estimator or None, default=None
        The predictor. None: as in ``evaluate``.
    metric : str, Metric or None, default=None
        The metric. None: the first of those of ``evaluate``.
    groups : array-like or None, default=None
        One label per sample, where samples belong together.
    task : {"classification", "regression"}, default='classification'
        What y holds.
    confidence : float, default=0.95
        Confidence of the intervals.
    n_jobs : int or None, default=None
        Number of processes.
    journal : path or None, default=None
        Folder for finished fits, as in ``evaluate``.
    random_state : int, default=0
        Seed.
    verbose : bool, int or RunBar, default=False
        Show progress.

    Returns
    -------
    LearningCurve
        Measured points, the law, predictions for 2 and 4 times as many samples, and a sentence.

    Examples
    --------
    >>> from zeronorm import FisherScore, learning_curve
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> curve = learning_curve(FisherScore(5), X, y, draws=2)
    >>> [prediction.factor for prediction in curve.predictions]
    [2, 4]
    """
    _check(draws=(draws, 1), n_sizes=(n_sizes, 4))
    if not 0.5 <= confidence < 1.0:
        raise ValueError(
            f"The 'confidence' parameter must be at least 0.5 and below 1. Got {written(confidence)} instead."
        )
    if task not in SERVED:
        raise ValueError(
            f"The 'task' parameter must be {' or '.join(map(repr, SERVED))}. Got {written(task)} instead."
        )
    y = np.asarray(y)
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and len(groups) != len(y):
        raise ValueError(f"'groups' has {len(groups)} entries, but y has {len(y)}.")
    drawn = growing_splits(y, groups, TASKS[task], cv=cv, draws=draws, n_sizes=n_sizes, seed=random_state)
    measured = as_metric(metric) if metric is not None else parse_metrics(None, TASKS[task])[0]
    options: dict[str, Any] = {
        "metrics": [measured],
        "groups": groups,
        "task": task,
        "random_state": random_state,
    }
    records = evaluate(
        {"procedure": selector},
        X,
        y,
        cv=drawn.splits,
        estimator=estimator,
        n_jobs=n_jobs,
        journal=journal,
        verbose=verbose,
        **options,
    )
    without = {"cv": drawn.of_first_draw(), "estimator": WITHOUT_FEATURES[TASKS[task].has_classes], **options}
    constant = KnownPath(SelectionPath.from_scores(np.zeros(1)))
    at_chance = evaluate({"constant": constant}, np.zeros((len(y), 1)), y, sizes=[1], **without)
    chance = float(np.mean(columns_of(at_chance)[measured.name]))
    return curve_of_records(records, drawn, measured, y, chance, confidence=confidence, seed=random_state)


def _check(**counts: tuple[Any, int]) -> None:
    for name, (value, least) in counts.items():
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
            raise ValueError(
                f"The {name!r} parameter must be a count of at least {least}. Got {written(value)} instead."
            )
