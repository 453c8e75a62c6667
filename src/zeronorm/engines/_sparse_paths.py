"""Tools for paths of sparse models: the order in which features enter, and columns that are copies of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._index import made_absolute, rising
from zeronorm.execution import in_threads
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem

_AT_A_TIME = 1 << 16  # numbers that fit in the cache
# Relative difference of products with the probe vector below which columns are compared in full.
CLOSE = 1e-10
EQUAL = 1e-9  # difference of two columns, relative to their range, below which they are equal up to rounding


# -- Features enter, leave and come back: the order of their first entry --


def relative(values: FloatArray) -> FloatArray:
    """Divide values by the largest; zeros stay zeros."""
    return np.asarray(values / max(float(values.max(initial=0.0)), np.finfo(float).tiny))


def entry_scores(
    supports: Sequence[IntArray],
    levels: ArrayLike,
    never: FloatArray,
    abs_weights: Sequence[FloatArray] | None = None,
) -> FloatArray:
    """Scores in which a feature that enters at a higher level ranks before one that enters at a lower level.

    ``levels`` belong to the supports, from high to low. Features that enter together are ordered by their
    ``abs_weights`` (not negative, one for each feature of each support); those that never enter follow in the
    order of ``never``, which is not negative.
    """
    level = np.asarray(levels, dtype=np.float64)
    scores = np.zeros(never.size)
    above = np.inf
    for step, support in enumerate(supports):
        new = scores[support] == 0.0
        # At most half way to the level above, so that an absolute weight never outranks an earlier entry.
        room = 0.5 * min(above / level[step] - 1.0, 1.0)
        abs_weight = np.zeros(support.size) if abs_weights is None else relative(abs_weights[step])
        scores[support[new]] = level[step] * (1.0 + room * abs_weight[new])
        if new.any():
            above = level[step]
    lowest = float(scores[scores > 0].min(initial=np.inf))
    rest = 0.5 * (lowest if np.isfinite(lowest) else 1.0) * relative(never)
    return np.where(scores > 0.0, scores, rest)


def path_of_entries(
    supports: Sequence[IntArray],
    levels: ArrayLike,
    never: FloatArray,
    abs_weights: Sequence[FloatArray] | None = None,
    **fields: Any,
) -> SelectionPath:
    """Build the path of these supports; features are ordered by their first entry."""
    scores = entry_scores(supports, levels, never, abs_weights)
    return SelectionPath.from_subsets(
        [support for support in supports if support.size],
        n_features=never.size,
        tie_break=scores,
        scores=scores,
        **fields,
    )


# -- Columns that are equal up to sign and shift, to which the ℓ2 norm gives equal weights --


def first_copies(design: Design, *, shifted: bool = True) -> IntArray:
    """Return for each feature the index of its first copy, which is its own index if it has none before it.

    Copies are x, -x and, where ``shifted``, x + c and c - x: an indicator g and its complement 1 - g carry the
    same information for a model with a free bias. Candidates have the same product with one fixed vector,
    whose entries sum to zero, up to sign; they are then compared in full. Constant columns are never copies.
    """
    rng = np.random.default_rng(0)
    # A second vector saves reads from disk: of ten million columns thousands agree in one by chance.
    has_unit_variance = design.affine is not None and design.affine.has_unit_variance
    n_probes = 2 if design.backend.is_on_disk and has_unit_variance else 1
    probes = [rng.normal(size=design.n_samples) for _ in range(n_probes)]
    probes = [probe - probe.mean() for probe in probes] if shifted else probes
    found = design.transpose_dot(np.column_stack(probes) if len(probes) > 1 else probes[0])
    products = np.atleast_2d(made_absolute(np.require(found, requirements="W")).T)  # a row for each vector
    order, descending = design.backend.by_descending_value(products[0])
    # Copies of unit variance have products with the second vector that differ by less than this.
    apart = 4.0 * EQUAL * np.sqrt(design.n_samples) * float(np.abs(probes[-1]).sum())
    first = rising(design.n_features)
    for begin, end in _runs(_close_to_next(descending)):
        run = np.sort(order[begin:end])
        if len(probes) == 1 or np.diff(np.sort(products[1, run])).min() <= apart:
            _link(design, run, first, shifted)
    return first


def _close_to_next(descending: FloatArray) -> IntArray:
    """Positions of nonzero products that are nearly equal to the next one."""
    found: dict[int, IntArray] = {}

    def look(first: int, last: int) -> None:
        for start in range(first, min(last, descending.size - 1), _AT_A_TIME):
            here = descending[start : min(start + _AT_A_TIME, last, descending.size - 1) + 1]
            is_close = ~(here[:-1] - here[1:] > CLOSE * here[:-1]) & (here[1:] != 0.0)
            found[start] = start + np.flatnonzero(is_close)

    in_threads(look, descending.size)
    return np.concatenate([found[start] for start in sorted(found)] or [np.empty(0, dtype=np.intp)])


def _runs(positions: IntArray) -> Iterator[tuple[int, int]]:
    """Bounds of the runs of consecutive positions, each run extended by one."""
    for run in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1):
        if run.size:
            yield int(run[0]), int(run[-1]) + 2


def distinct_columns(first: IntArray) -> IntArray:
    """The features that are the first of their copies, in order."""
    is_first = np.empty(first.size, dtype=bool)

    def look(begin: int, end: int) -> None:
        for start in range(begin, end, _AT_A_TIME):
            stop = min(start + _AT_A_TIME, end)
            np.equal(first[start:stop], np.arange(start, stop), out=is_first[start:stop])

    in_threads(look, first.size)
    return rising(first.size) if is_first.all() else np.flatnonzero(is_first)


def groups_of_copies(first: IntArray) -> list[IntArray]:
    """Sorted features of each set of copies; features without a copy are in none."""
    order = np.argsort(first, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(first[order])) + 1)
    return [group for group in groups if group.size > 1]


def without_copies(problem: Problem) -> tuple[Problem, IntArray]:
    """The problem without repeated columns, and the indices of the features that it has."""
    distinct = distinct_columns(first_copies(problem.design))
    if distinct.size == problem.n_features:
        return problem, distinct
    return replace(problem, design=problem.design.take(distinct)), distinct


def scatter_columns(columns: IntArray, n_features: int, values: FloatArray) -> FloatArray:
    """Expand values of some columns along the last axis to all features, with zeros elsewhere."""
    scale = np.zeros((*values.shape[:-1], n_features))
    scale[..., columns] = values
    return scale


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
