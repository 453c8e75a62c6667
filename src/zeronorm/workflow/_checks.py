"""Warnings about the data that may make a result misleading."""

from __future__ import annotations

import hashlib
from math import exp, lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, parameter, setting
from zeronorm.datasets._table import Table, counted, shown, shown_list
from zeronorm.resampling._splits import dense_columns
from zeronorm.selection._problem import target_outlier_message, target_outliers
from zeronorm.selection.target import Real, TimeToEvent

IMBALANCE = 4.0
FEWEST_SAMPLES = 50
FEWEST_PER_CLASS = 15
CHANCE_LEVEL = 0.01
SUSPICIOUS_CORRELATION = 0.999
BLOCK = 4096


def data_warnings(table: Table) -> list[str]:
    """Warnings of leaks, identifiers, groups, repeated samples, imbalance, few samples, outliers in y, no variation."""
    parts = (
        _leak_warnings,
        _identifier_warnings,
        _grouping_warnings,
        _repeated_samples,
        _balance_warnings,
        _size_warnings,
        _target_outliers,
        _constant_features,
    )
    return [Message(text) for warnings_about in parts for text in warnings_about(table)]


def separating_features(X: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Features whose values in different classes do not overlap at all."""
    labels = np.unique(y)
    found = []
    for start in range(0, X.shape[1], BLOCK):
        block = dense_columns(X, slice(start, start + BLOCK))
        lows = np.stack([block[y == label].min(axis=0) for label in labels])
        highs = np.stack([block[y == label].max(axis=0) for label in labels])
        order = np.argsort(lows, axis=0, kind="stable")
        lows = np.take_along_axis(lows, order, axis=0)
        highs = np.take_along_axis(highs, order, axis=0)
        found.append(start + np.flatnonzero(np.all(highs[:-1] < lows[1:], axis=0)))
    return np.concatenate(found)


def _leak_warnings(table: Table) -> list[str]:
    if table.target.has_classes:
        suspects = separating_features(table.X, table.y)
        if _chance_of_separation(table) > CHANCE_LEVEL:
            return []
        reason = "separates the classes alone"
    else:
        suspects = _copies_of_target(table)
        reason = "is almost a linear function of the target"
    if not suspects.size:
        return []
    names = [str(table.feature_names[i]) for i in suspects]
    subject = f"The feature {shown(names[0])}" if len(names) == 1 else f"Each of {len(names)} features"
    listing = "" if len(names) == 1 else f": {shown_list(names)}"
    return [
        f"Possible leak: {subject} {reason}{listing}. Check that its values are known before the target is. If not, "
        f"leave it out ({parameter('ignore')})."
    ]


def _chance_of_separation(table: Table) -> float:
    """Expected number of pure noise features that would separate two classes of these sizes."""
    counts = list(table.class_counts.values())
    if len(counts) != 2:
        return 0.0
    orders = (
        lgamma(sum(counts) + 1) - lgamma(counts[0] + 1) - lgamma(counts[1] + 1)
    )  # logarithm of the number of orders
    return exp(log(2.0 * table.n_features) - orders)


def _copies_of_target(table: Table) -> NDArray[np.intp]:
    numbers = table.y["time"] if table.y.dtype.names else table.y
    target = numbers - numbers.mean()
    target = target / np.linalg.norm(target)
    found = []
    for start in range(0, table.n_features, BLOCK):
        block = dense_columns(table.X, slice(start, start + BLOCK))
        block = block - block.mean(axis=0)
        norms = np.linalg.norm(block, axis=0)
        correlation = np.abs(target @ block) / np.where(norms > 0.0, norms, 1.0)
        found.append(start + np.flatnonzero(correlation > SUSPICIOUS_CORRELATION))
    return np.concatenate(found)


def _identifier_warnings(table: Table) -> list[str]:
    kept = [name for name in table.id_columns if name in set(table.feature_names.tolist())]
    if not kept:
        return []
    return [
        f"These features look like identifiers: {shown_list(kept)}. If the rows are sorted by the target, they reveal "
        f"it. Leave them out ({parameter('ignore')})."
    ]


def _grouping_warnings(table: Table) -> list[str]:
    """Warn of features that look like groups of dependent samples, which make the measured error too small."""
    if table.sample_groups is not None or not table.group_columns:
        return []
    names = list(table.group_columns)
    verb = "looks" if len(names) == 1 else "look"
    return [
        f"Samples may belong together: {shown_list(names)} {verb} like a patient or a batch. If so, keep them "
        f"together in training or test data ({setting('sample_groups', names[0])}); otherwise the measured error is "
        "too small."
    ]


def _repeated_samples(table: Table) -> list[str]:
    """Warn of exact copies of samples, which may be in the training and in the test data."""
    if table.sample_groups is not None:
        return []
    digests = _row_digests(table.X)
    repeated = len(digests) - len(set(digests))
    if not repeated:
        return []
    subject = (
        "1 sample is an exact copy of another"
        if repeated == 1
        else f"{repeated} samples are exact copies of others"
    )
    return [
        f"{subject}, which may be in the training and in the test data at the same time. Remove copies, or keep them "
        f"together ({parameter('sample_groups')})."
    ]


def _row_digests(X: Any) -> list[bytes]:
    """A digest of the values of each row: exact, however large some of them are."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(X.shape[0])]
    for start in range(0, X.shape[1], BLOCK):
        block = dense_columns(X, slice(start, start + BLOCK))
        block = np.ascontiguousarray(block) + 0.0  # one zero instead of two
        for digest, row in zip(digests, block, strict=True):
            digest.update(row.tobytes())
    return [digest.digest() for digest in digests]


def _balance_warnings(table: Table) -> list[str]:
    counts = table.class_counts
    if not counts:
        return []
    rare, few = min(counts.items(), key=lambda pair: pair[1])
    many = max(counts.values())
    if many < IMBALANCE * few:
        return []
    return [
        f"The classes are not balanced: {shown(rare)} has {few} of {table.n_samples} samples. Use the balanced "
        "error rate, in which all classes have equal weight, instead of the error rate."
    ]


def _size_warnings(table: Table) -> list[str]:
    if table.target.kind == TimeToEvent.kind:
        return _event_warnings(table)
    fewest = min(table.class_counts.values(), default=table.n_samples)
    if table.n_samples >= FEWEST_SAMPLES and fewest >= FEWEST_PER_CLASS:
        return []
    in_class = "" if not table.class_counts else f", {fewest} in the smallest class"
    return [
        f"There are few samples ({table.n_samples}{in_class}) for {counted(table.n_features, 'feature')}. The measured "
        "error is only a rough estimate. Confirm the selected features on new samples."
    ]


def _event_warnings(table: Table) -> list[str]:
    """Warn of few events: they, not the samples, say what a time to an event depends on."""
    n_events = int(table.y["event"].sum())
    if n_events >= FEWEST_SAMPLES:
        return []
    return [
        f"There are few events ({n_events} among {table.n_samples} samples) for "
        f"{counted(table.n_features, 'feature')}. The measured concordance is only a rough estimate. Confirm the "
        "selected features on new samples."
    ]


def _target_outliers(table: Table) -> list[str]:
    """Warn of outliers in a real target, which dominate squared errors."""
    if table.target.kind != Real.kind:
        return []
    found = target_outliers(table.y)
    if not found.size:
        return []
    noun = "Sample" if found.size == 1 else "Samples"
    if table.sample_ids is not None:
        who = f"{noun} {shown_list([str(table.sample_ids[i]) for i in found])}"
    else:
        numbers = ", ".join(str(i + 1) for i in found[:5])
        more = f" and {found.size - 5} more" if found.size > 5 else ""
        who = f"{noun} {numbers}{more} of {table.n_samples}"
    remedy = "or use the ranks of the target instead of its values"
    return [
        target_outlier_message(table.y, found, who, "the choice of features and its measured error", remedy)
    ]


def _constant_features(table: Table) -> list[str]:
    """Warn where no feature varies, for example because a file was read in the wrong way."""
    for start in range(0, table.n_features, BLOCK):
        block = dense_columns(table.X, slice(start, start + BLOCK))
        if not np.all(block == block[0]):
            return []
    subject = "The only feature" if table.n_features == 1 else f"Each of the {table.n_features} features"
    return [
        f"{subject} has the same value in all samples, so it predicts nothing. Check the file and how it was read."
    ]
