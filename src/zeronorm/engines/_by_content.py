"""Division of the samples by their values, not by their position: the order of the rows does not matter."""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.selection._problem import Problem

EQUAL = 1e-9  # relative to the largest squared distance; closer samples count as copies
SPARSE_COLUMNS = 1024  # columns per block


def turns_by_content(problem: Problem) -> IntArray:
    """Number each sample by its turn, 0, 1, …, in which folds or parts are dealt out; copies of a sample share a turn.

    Within each class the samples are sorted by their distance from the mean; a group of samples has one turn, in the
    order of its first sample.
    """
    squared = squared_distances(problem)
    strata = problem.target.strata()
    label = np.zeros(problem.n_samples) if strata is None else strata
    second = problem.target.columns().sum(axis=1)
    order = np.lexsort((second, squared, label))
    if problem.sample_groups is not None:
        _, codes = np.unique(problem.sample_groups, return_inverse=True)
        _, first = np.unique(codes[order], return_index=True)
        return np.asarray(np.argsort(np.argsort(first))[codes], dtype=np.intp)
    close = EQUAL * max(float(np.abs(squared).max(initial=0.0)), np.finfo(float).tiny)
    turns = np.zeros(problem.n_samples, dtype=np.intp)
    before, after = order[:-1], order[1:]
    is_next = (
        (label[before] != label[after])
        | (second[before] != second[after])
        | (squared[after] - squared[before] > close)
    )
    turns[after] = np.cumsum(is_next)
    return turns


def squared_distances(problem: Problem) -> FloatArray:
    """Squared distances of the samples from their mean."""
    design = problem.design
    weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
    mean = design.transpose_dot(weight) / weight.sum()
    return _squared_rows(design) - 2.0 * design.dot(mean) + float(mean @ mean)


def _squared_rows(design: Design) -> FloatArray:
    total = np.zeros(design.n_samples)
    if design.stored_columns(np.empty(0, dtype=np.intp)) is None:
        for _, block in design.iter_blocks():
            total += np.einsum("ij,ij->i", block, block)
        return total
    for start in range(0, design.n_features, SPARSE_COLUMNS):
        stored = design.stored_columns(np.arange(start, min(start + SPARSE_COLUMNS, design.n_features)))
        assert stored is not None
        columns, shift = stored
        total += float(shift @ shift) - 2.0 * (columns @ shift)
        total += np.bincount(columns.indices, columns.data**2, design.n_samples)
    return total
