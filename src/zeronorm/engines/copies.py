"""Columns that are the same up to sign and shift, which the ℓ2 norm never separates."""

from __future__ import annotations

import numpy as np

from zeronorm._types import IntArray
from zeronorm.design import Design

CLOSE = 1e-10  # of products with the probe vector, relative: worth a full comparison
EQUAL = 1e-9  # of two columns, relative to their range: the same up to rounding


def first_copies(design: Design, *, shifted: bool = True) -> IntArray:
    """For each feature the first one that is its copy: itself, as a rule.

    Copies are x, -x and, where ``shifted``, x + c and c - x: an indicator g and its complement 1 - g carry the
    same information for a machine with a free bias. Candidates have the same product with one fixed vector,
    whose entries sum to zero, up to sign; they are then compared in full. Constant columns are left alone.
    """
    n, p = design.shape
    probe = np.random.default_rng(0).normal(size=n)
    value = np.abs(design.transpose_dot(probe - probe.mean() if shifted else probe))
    first = np.arange(p)
    order = np.argsort(value)
    order = order[value[order] != 0.0]
    ascending = value[order]
    starts_run = np.ones(order.size + 1, dtype=bool)
    starts_run[1:-1] = np.diff(ascending) > CLOSE * ascending[1:]
    bounds = np.flatnonzero(starts_run)
    for run in np.flatnonzero(np.diff(bounds) > 1):
        _link(design, np.sort(order[bounds[run] : bounds[run + 1]]), first, shifted)
    return first


def distinct_columns(first: IntArray) -> IntArray:
    """The features that are the first of their copies, in order."""
    return np.flatnonzero(first == np.arange(first.size))


def _link(design: Design, run: IntArray, first: IntArray, shifted: bool) -> None:
    """Point each column of a run to the first one that it is a copy of."""
    columns = design.block(run)
    if shifted:
        columns = columns - columns[:1]
    largest = np.abs(columns).max(axis=0)
    run, columns = run[largest > 0.0], columns[:, largest > 0.0]
    while run.size > 1:
        leader = columns[:, :1]
        gap = np.minimum(np.abs(columns - leader).max(axis=0), np.abs(columns + leader).max(axis=0))
        equal = gap <= EQUAL * np.abs(leader).max()
        first[run[equal]] = run[0]
        run, columns = run[~equal], columns[:, ~equal]
