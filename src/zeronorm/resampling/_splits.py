"""Splits into training and test samples, checked before any work is done."""

from __future__ import annotations

import copy
import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from zeronorm._types import IntArray
from zeronorm.design import Design
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.selection.target import Target


@dataclass(frozen=True)
class Split:
    """Row indices of the training samples and the test samples of one fold."""

    index: int
    train: IntArray
    test: IntArray


def make_splits(
    cv: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    *,
    target: Target | type[Target],
    seed: int,
    repeats: int = 1,
    least_per_fold: int = 2,
) -> list[Split]:
    """All splits of ``cv``: a number of folds, a splitter, pairs of row indices, or splits made by this function.

    A number of folds means shuffled folds, stratified as the target asks, that keep the sample
    groups together where there are any. A splitter is copied, so its random state does not change, and an unset
    random state is fixed by ``seed``. Of few samples there are fewer folds, with a warning: at most as many as the
    largest class or the sample groups allow, and for a real target so many that each has ``least_per_fold`` samples:
    two where each fold has a score, since one sample has no R², and one where the predictions of all folds are scored
    together. Each of several ``repeats`` is drawn with the next seed; they must differ.
    """
    if isinstance(cv, list) and cv and all(isinstance(split, Split) for split in cv):
        return cv
    strata = target.strata_of(y)
    is_stratified = strata is not None
    labels = y if strata is None else strata
    n_samples = len(y)
    placeholder = np.zeros((n_samples, 1))
    cv = possible_folds(cv, labels, groups, is_stratified, least_per_fold)
    splits: list[Split] = []
    seen: list[frozenset[bytes]] = []
    for repeat in range(repeats):
        splitter = _splitter(cv, labels, groups, is_stratified, seed + repeat)
        first = len(splits)
        with suppress_nested_warnings(UserWarning, starting="The least populated class"):
            parts = list(splitter.split(placeholder, labels, groups))
        for train, test in parts:
            i = len(splits)
            splits.append(Split(i, _rows(train, n_samples, i, "training"), _rows(test, n_samples, i, "test")))
            _check_disjoint(splits[-1], groups)
        seen.append(frozenset(np.sort(split.test).tobytes() for split in splits[first:]))
        if seen[-1] in seen[:-1]:
            raise ValueError(
                f"Repeat {repeat + 1} of {repeats} has the same folds as an earlier one, so it adds no "
                "information. There are too few different folds (few sample groups), or 'cv' is not random; use "
                "fewer repeats or fewer folds."
            )
    if not splits:
        raise ValueError("The 'cv' parameter gave no splits at all; it must give at least one.")
    if isinstance(splitter, StratifiedKFold | StratifiedGroupKFold):
        target.check_folds(y, splitter.n_splits)
    return splits


def possible_folds(
    cv: Any, labels: NDArray[Any], groups: Any, is_stratified: bool, least_per_fold: int = 2
) -> Any:
    """The number of folds ``cv``, or the largest that the samples allow, with a warning; other splitters as they are.

    A fold needs ``least_per_fold`` samples of a real target, or one sample of the largest class.
    """
    if not isinstance(cv, numbers.Integral) or isinstance(cv, bool) or cv < 2:
        return cv
    most = (
        int(np.unique(labels, return_counts=True)[1].max())
        if is_stratified
        else len(labels) // least_per_fold
    )
    found = f"the largest class has {most} samples" if is_stratified else f"there are {len(labels)} samples"
    if groups is not None and len(np.unique(groups)) < most:
        most = len(np.unique(groups))
        found = f"the samples have {most} groups"
    if cv <= most:
        return cv
    if most < 2:
        raise ValueError(
            f"There are too few samples for cross-validation: {found}, and two folds need at least two samples of a "
            "class, two groups, or four samples of a real target. Collect more samples, or use a method without "
            "cross-validation, such as FisherScore, with n_features_to_select."
        )
    warnings.warn(
        f"{most} folds are used instead of {cv}, because {found}. Results on so few samples are uncertain; for "
        "leave-one-out give a splitter, LeaveOneOut().",
        UserWarning,
        stacklevel=3,
    )
    return most


def _splitter(cv: Any, y: Any, groups: Any, is_stratified: bool, seed: int) -> Any:
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        kinds: dict[tuple[bool, bool], type] = {
            (True, True): StratifiedGroupKFold,
            (True, False): StratifiedKFold,
            (False, True): GroupKFold,
            (False, False): KFold,
        }
        kind = kinds[is_stratified, groups is not None]
        return kind(int(cv), shuffle=True, random_state=seed)
    splitter = check_cv(copy.deepcopy(cv) if hasattr(cv, "split") else cv, y, classifier=is_stratified)
    if getattr(splitter, "random_state", 0) is None and getattr(splitter, "shuffle", True):
        splitter.random_state = seed
    return splitter


def _rows(rows: Any, n_samples: int, index: int, kind: str) -> IntArray:
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if rows.size == 0:
        raise ValueError(f"Split {index} of 'cv' has an empty {kind} set.")
    if rows.min() < 0 or rows.max() >= n_samples:
        raise ValueError(
            f"Split {index} of 'cv' names row {int(rows.min() if rows.min() < 0 else rows.max())} in its {kind} "
            f"set, but there are {n_samples} samples (0 to {n_samples - 1})."
        )
    return np.asarray(rows, dtype=np.intp)


def _check_disjoint(split: Split, groups: NDArray[Any] | None) -> None:
    shared = np.intersect1d(split.train, split.test)
    if shared.size:
        raise ValueError(
            f"Split {split.index} of 'cv' overlaps: {shared.size} rows are in both the training and the test "
            f"set, the first: {shared[:5].tolist()}. A test row must not be trained on."
        )
    if groups is None:
        return
    shared_groups = np.intersect1d(groups[split.train], groups[split.test])
    if shared_groups.size:
        raise ValueError(
            f"Split {split.index} of 'cv' divides sample groups: {shared_groups.size} are in both the training "
            f"and the test set, the first: {shared_groups[:5].tolist()}. Use a splitter that honours "
            "groups, such as GroupKFold, or a number of folds."
        )


def require_two_classes(owner: str, y_train: NDArray[Any]) -> None:
    """Raise an error where the training samples of a fold have one class only, before a selector fails on them."""
    if np.all(y_train == y_train[0]):
        raise ValueError(
            f"{owner} trains on a part of the samples that holds only the class {y_train[0]}: another class has "
            "too few samples for the folds. Use fewer folds in 'cv', or drop that class."
        )


# -- Rows and columns of data in any container --


def take_rows(X: Any, rows: IntArray) -> Any:
    """The given samples, in the same kind of container."""
    if isinstance(X, Design):
        return X.take_rows(rows)
    return X[rows] if isinstance(X, np.ndarray) else _safe_indexing(X, rows)


def take_columns(X: Any, columns: IntArray) -> Any:
    """The given features in a container that a scikit-learn estimator can be fitted on."""
    if isinstance(X, Design):
        return X.block(columns)
    if isinstance(X, np.ndarray):
        return X[:, columns]
    return _safe_indexing(X, columns, axis=1)


def dense_columns(X: Any, columns: IntArray | slice) -> NDArray[np.float64]:
    """The given features in any container as a dense array."""
    if isinstance(X, Design):
        return X.block(columns)
    part = X[:, columns]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def group_params(selector: Any, groups: Any) -> dict[str, Any]:
    """The argument ``groups`` for ``fit`` of a selector that accepts it, directly or for its splitter."""
    if groups is None:
        return {}
    has_group_splitter = "Group" in type(getattr(selector, "cv", None)).__name__
    return {"groups": groups} if has_group_splitter or has_fit_parameter(selector, "groups") else {}
