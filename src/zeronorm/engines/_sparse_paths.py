"""What paths of sparse models share: the order in which features enter, and columns that are copies of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._threads import in_threads
from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design, StandardizedDesign
from zeronorm.design._index import made_absolute, rising
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem

_AT_A_TIME = 1 << 16  # numbers that stay close to the processor
CLOSE = 1e-10  # of products with the probe vector, relative: worth a full comparison
EQUAL = 1e-9  # of two columns, relative to their range: the same up to rounding


# -- Features enter, leave and come back: the order of their first entry --


def relative(values: FloatArray) -> FloatArray:
    """Values divided by the largest, which becomes one unless all are zero."""
    return np.asarray(values / max(float(values.max(initial=0.0)), np.finfo(float).tiny))


def entry_scores(
    supports: Sequence[IntArray],
    levels: ArrayLike,
    never: FloatArray,
    abs_weights: Sequence[FloatArray] | None = None,
) -> FloatArray:
    """Scores by which a feature that enters at a higher level stands before one that enters at a lower.

    ``levels`` belong to the supports, from high to low. Features that enter together are ordered by their
    ``strengths`` (not negative, one for each feature of each support); those that never enter follow in the
    order of ``never``, which is not negative either.
    """
    level = np.asarray(levels, dtype=np.float64)
    scores = np.zeros(never.size)
    above = np.inf
    for step, support in enumerate(supports):
        new = scores[support] == 0.0
        # Half way to the level above at most, so that strength never outranks an earlier entry.
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
    """The path of these supports; features are ordered by their first entry."""
    scores = entry_scores(supports, levels, never, abs_weights)
    return SelectionPath.from_subsets(
        [support for support in supports if support.size],
        n_features=never.size,
        tie_break=scores,
        scores=scores,
        **fields,
    )


# -- Columns that are the same up to sign and shift, which the ℓ2 norm never separates --


def first_copies(design: Design, *, shifted: bool = True) -> IntArray:
    """For each feature the first one that is its copy: itself, as a rule.

    Copies are x, -x and, where ``shifted``, x + c and c - x: an indicator g and its complement 1 - g carry the
    same information for a machine with a free bias. Candidates have the same product with one fixed vector,
    whose entries sum to zero, up to sign; they are then compared in full. Constant columns are left alone.
    """
    rng = np.random.default_rng(0)
    probes = [rng.normal(size=design.n_samples) for _ in range(2 if _is_worth_two_probes(design) else 1)]
    probes = [probe - probe.mean() for probe in probes] if shifted else probes
    found = design.transpose_dot(np.column_stack(probes) if len(probes) > 1 else probes[0])
    products = np.atleast_2d(made_absolute(np.require(found, requirements="W")).T)  # a row for each vector
    order, descending = design.by_descending_value(products[0])
    # Two columns of unit variance that are copies have products with the second vector closer than this.
    apart = 4.0 * EQUAL * np.sqrt(design.n_samples) * float(np.abs(probes[-1]).sum())
    first = rising(design.n_features)
    for begin, end in _runs(_close_to_next(descending)):
        run = np.sort(order[begin:end])
        if len(probes) == 1 or np.diff(np.sort(products[1, run])).min() <= apart:
            _link(design, run, first, shifted)
    return first


def _is_worth_two_probes(design: Design) -> bool:
    """Whether candidates would be read from a disk one by one: of ten million columns thousands agree by chance."""
    return design.is_on_disk and isinstance(design, StandardizedDesign) and design.has_unit_variance


def _close_to_next(descending: FloatArray) -> IntArray:
    """Places of products that are nearly as large as the next, unless they are zero."""
    found: dict[int, IntArray] = {}

    def look(first: int, last: int) -> None:
        for start in range(first, min(last, descending.size - 1), _AT_A_TIME):
            here = descending[start : min(start + _AT_A_TIME, last, descending.size - 1) + 1]
            is_close = ~(here[:-1] - here[1:] > CLOSE * here[:-1]) & (here[1:] != 0.0)
            found[start] = start + np.flatnonzero(is_close)

    in_threads(look, descending.size)
    return np.concatenate([found[start] for start in sorted(found)] or [np.empty(0, dtype=np.intp)])


def _runs(places: IntArray) -> Iterator[tuple[int, int]]:
    """Bounds of the runs in which each place is followed by the next, and of what follows it."""
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
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
    """The features of each set of copies, in order; none for a feature without a copy."""
    order = np.argsort(first, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(first[order])) + 1)
    return [group for group in groups if group.size > 1]


def without_copies(problem: Problem) -> tuple[Problem, IntArray]:
    """The problem with the first of all copies only, and these features."""
    distinct = distinct_columns(first_copies(problem.design))
    if distinct.size == problem.n_features:
        return problem, distinct
    return replace(problem, design=problem.design.take(distinct)), distinct


def spread_over(columns: IntArray, n_features: int, values: FloatArray) -> FloatArray:
    """Values of some columns along the last axis, with zeros for all other features."""
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
