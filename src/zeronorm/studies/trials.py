"""Where trials come from: generators, resplits of one sample, folds, and published splits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

from zeronorm.datasets import load_dataset
from zeronorm.datasets.catalogue import find_local
from zeronorm.studies.study import Data, StudyError, Trial

Transform = Callable[[Any], Any]
Sample = tuple[Any, NDArray[Any]]


def generated(
    label: str, make: Callable[..., Any], *, n_train: int, n_test: int, n_trials: int, **settings: Any
) -> Data:
    """Independent draws of a synthetic problem; nothing is standardised across training and test part."""

    def draw(trial: int) -> Trial:
        seed = np.random.SeedSequence([n_train, trial])
        X, y, _ = make(n_train + n_test, random_state=np.random.default_rng(seed), **settings)
        rows = np.arange(n_train + n_test)
        if np.unique(y[:n_train]).size < 2:  # a tiny training part of one class cannot be learned from
            other = n_train + int(np.flatnonzero(y[n_train:] != y[0])[0])
            rows[[0, other]] = rows[[other, 0]]
        return Trial(X[rows], y[rows], np.arange(n_train), np.arange(n_train, n_train + n_test))

    return Data(label, draw, n_trials, independent=True)


@cache
def sample_of(name: str, target: str | None = None) -> Sample:
    """Features and labels of a known data set; missing values stay NaN."""
    if find_local(name) is None:
        load_dataset(name, download=False)  # explains what to do
    path = find_local(name)
    assert path is not None
    if path.suffix != ".npz":
        table = load_dataset(name)
        return table.X, table.y
    return _archived(path, "", target)


@cache
def second_part_of(name: str) -> Sample:
    """The published validation or test part."""
    path = find_local(name)
    if path is None:
        raise StudyError(f"The data set {name!r} is not on this machine; set ZERONORM_DATA to its folder.")
    return _archived(path, "_valid", None)


def _archived(path: Any, ending: str, target: str | None) -> Sample:
    import scipy.sparse as sp

    with np.load(path, allow_pickle=False) as archive:
        if "X" in archive.files:
            X: Any = archive[f"X{ending}"].astype(np.float64)
        else:
            parts = [archive[f"{key}{ending}"] for key in ("data", "indices", "indptr", "shape")]
            X = sp.csr_matrix((parts[0].astype(np.float64), parts[1], parts[2]), shape=tuple(parts[3]))
        return X, archive[f"{target or 'y'}{ending}"]


def resplits(
    label: str,
    load: Callable[[], Sample],
    *,
    n_trials: int,
    test_size: float | int,
    stratify: bool = False,
    seed: int = 0,
) -> Data:
    """Random divisions of one sample into training and test part."""

    def draw(trial: int) -> Trial:
        X, y = load()
        train, test = train_test_split(
            np.arange(len(y)),
            test_size=test_size,
            stratify=y if stratify else None,
            random_state=seed + trial,
        )
        return filled(Trial(X, y, train, test))

    return Data(label, draw, n_trials)


def folds(
    label: str,
    load: Callable[[], Sample],
    *,
    n_folds: int,
    groups: Any = None,
    repeats: int = 1,
    seed: int = 0,
) -> Data:
    """Stratified folds, drawn anew in every repetition; sample groups stay together."""

    def draw(trial: int) -> Trial:
        X, y = load()
        repeat, fold = divmod(trial, n_folds)
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=seed + repeat)
        together = None if groups is None else groups()
        train, test = list(splitter.split(np.zeros(len(y)), y, together))[fold]
        return filled(Trial(X, y, train, test))

    return Data(label, draw, n_folds * repeats)


def published_split(label: str, first: Callable[[], Sample], second: Callable[[], Sample]) -> Data:
    """Training on the first published part, test on the second."""

    def draw(trial: int) -> Trial:
        import scipy.sparse as sp

        (X, y), (X_second, y_second) = first(), second()
        stacked = sp.vstack([X, X_second]).tocsr() if sp.issparse(X) else np.vstack([X, X_second])
        n = len(y)
        return Trial(stacked, np.concatenate([y, y_second]), np.arange(n), np.arange(n, n + len(y_second)))

    return Data(label, draw, 1)


def filled(trial: Trial) -> Trial:
    """Missing values replaced by the median of the training part."""
    X = trial.X
    if not isinstance(X, np.ndarray) or not np.isnan(X).any():
        return trial
    median = np.nanmedian(X[trial.train], axis=0)
    median = np.where(np.isnan(median), 0.0, median)
    return Trial(np.where(np.isnan(X), median, X), trial.y, trial.train, trial.test)
