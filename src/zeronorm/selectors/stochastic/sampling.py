# mypy: allow-untyped-defs
"""Drawing the subsets of features and the bootstrap samples of one step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm.selectors.stochastic.random_streams import next_exponential, next_index, open_stream

MOST_REDRAWS = 1000
LARGEST_SEED = 2**31


class Draws(NamedTuple):
    """What is drawn for a batch of subsets, one row per subset.

    ``features`` (ascending, with repetitions), the bootstrap samples ``train`` and ``test``, a seed for
    learners that are random themselves, and how many training samples were thrown away because they held
    one class only (-1: no sample of two classes found).
    """

    features: NDArray[np.int64]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    seeds: NDArray[np.int64]
    redraws: NDArray[np.int64]

    @classmethod
    def empty(cls, batch_size: int, subset_size: int, bootstrap_size: int) -> Draws:
        """Room for a batch."""
        return cls(
            np.zeros((batch_size, subset_size), np.int64),
            np.zeros((batch_size, bootstrap_size), np.int64),
            np.zeros((batch_size, bootstrap_size), np.int64),
            np.zeros(batch_size, np.int64),
            np.zeros(batch_size, np.int64),
        )


@kernel
def draw_batch(cumulative, codes, test_codes, seed, step, first, last, two_classes, draws):
    """Draw the subsets ``first`` to ``last`` of a step, each from its own stream."""
    for b in range(first, last):
        state = open_stream(seed, step, b)
        draw_features(state, cumulative, draws.features[b])
        draw_rows(state, codes.shape[0], draws.train[b])
        draws.redraws[b] = 0
        while two_classes and has_one_class(codes, draws.train[b]):
            if draws.redraws[b] == MOST_REDRAWS:
                draws.redraws[b] = -1
                break
            draws.redraws[b] += 1
            draw_rows(state, codes.shape[0], draws.train[b])
        draw_rows(state, test_codes.shape[0], draws.test[b])
        draws.seeds[b] = next_index(state, LARGEST_SEED)


@kernel
def draw_features(state, cumulative, out):
    """Independent draws from the law with the given (unnormalised) cumulative weights, in ascending order.

    The partial sums of exponential numbers, divided by the whole, are uniform numbers in ascending order.
    """
    size = out.shape[0]
    sums = np.empty(size)
    total = 0.0
    for i in range(size):
        total += next_exponential(state)
        sums[i] = total
    scale = cumulative[-1] / (total + next_exponential(state))
    low = 0
    for i in range(size):
        low = first_above(cumulative, sums[i] * scale, low)
        out[i] = low


@kernel
def first_above(cumulative, value, low):
    """The first place from ``low`` on where the sums exceed the value; rounding never leads beyond the last rise."""
    high = cumulative.shape[0] - 1
    while high > low and cumulative[high - 1] == cumulative[high]:
        high -= 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def draw_rows(state, n_samples, out):
    """Independent uniform draws of sample numbers."""
    for i in range(out.shape[0]):
        out[i] = next_index(state, n_samples)


@kernel
def has_one_class(codes, rows):
    """Whether all the samples belong to one class."""
    for i in range(1, rows.shape[0]):  # noqa: SIM110 (any() over a generator does not compile)
        if codes[rows[i]] != codes[rows[0]]:
            return False
    return True


@kernel
def distinct(ordered):
    """The distinct values of an ascending array."""
    out = np.empty_like(ordered)
    size = 0
    for i in range(ordered.shape[0]):
        if i == 0 or ordered[i] != ordered[i - 1]:
            out[size] = ordered[i]
            size += 1
    return out[:size]


@kernel
def gather(columns, features, rows):
    """The chosen features of the chosen samples, one row per feature."""
    out = np.empty((features.shape[0], rows.shape[0]))
    for f in range(features.shape[0]):
        column = columns[features[f]]
        for i in range(rows.shape[0]):
            out[f, i] = column[rows[i]]
    return out
