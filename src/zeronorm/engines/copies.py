"""Identical columns, which the ℓ2 norm never separates."""

from __future__ import annotations

import itertools

import numpy as np

from zeronorm._types import IntArray
from zeronorm.design import Design

CLOSE = 1e-12  # of products with the probe vector, relative to the largest: worth a full comparison
EQUAL = 1e-9  # of two columns, relative to their largest entry: the same up to rounding


def first_copies(design: Design) -> IntArray:
    """For each feature the first one identical to it: itself, as a rule.

    Candidates have the same product with one fixed vector; they are then compared in full.
    """
    n, p = design.shape
    value = design.transpose_dot(np.random.default_rng(0).normal(size=n))
    first = np.arange(p)
    order = np.lexsort((first, value))
    order = order[value[order] != 0.0]
    step = np.diff(value[order], prepend=-np.inf, append=np.inf)
    starts_run = step > CLOSE * np.abs(value).max(initial=0.0)
    boundaries = np.flatnonzero(starts_run)
    for begin, end in itertools.pairwise(boundaries):
        if end - begin > 1:
            _link(design, np.sort(order[begin:end]), first)
    return first


def _link(design: Design, run: IntArray, first: IntArray) -> None:
    """Point each column of a run to the first one equal to it."""
    while run.size > 1:
        columns = design.block(run)
        gap = np.abs(columns - columns[:, :1]).max(axis=0)
        equal = gap <= EQUAL * np.abs(columns[:, 0]).max()
        first[run[equal]] = run[0]
        run = run[~equal]
