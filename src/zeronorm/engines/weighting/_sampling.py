"""Drawing of feature subsets and bootstrap samples, and the data they are drawn from."""

# mypy: allow-untyped-defs

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, Int64Array

# -- Random numbers for compiled loops, one independent stream per (seed, step, index) --
#
# A stream is a counter that is hashed (SplitMix64, Steele, Lea and Flood 2014). Its start depends only on the
# three numbers, so that a subset of features does not depend on the worker that draws it


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_12 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
UNIT = 2.0**-52


@kernel
def scramble(word):
    """Hash of one 64-bit word."""
    word = (word ^ (word >> SHIFT_30)) * FIRST_FACTOR
    word = (word ^ (word >> SHIFT_27)) * SECOND_FACTOR
    return word ^ (word >> SHIFT_31)


@kernel
def open_stream(seed, step, index):
    """The state of a new stream: an array of one 64-bit word, changed by every draw."""
    state = np.empty(1, np.uint64)
    word = scramble(np.uint64(seed) + GOLDEN)
    word = scramble((word ^ np.uint64(step)) + GOLDEN)
    state[0] = scramble((word ^ np.uint64(index)) + GOLDEN)
    return state


@kernel
def next_word(state):
    """64 random bits."""
    state[0] += GOLDEN
    return scramble(state[0])


@kernel
def next_uniform(state):
    """A uniform random number in [0, 1)."""
    return np.float64(next_word(state) >> SHIFT_12) * UNIT


@kernel
def next_index(state, size):
    """A uniform random integer in 0, …, size - 1."""
    return min(np.int64(next_uniform(state) * size), size - 1)


@kernel
def next_exponential(state):
    """A random number from the exponential distribution with mean one."""
    return -np.log(1.0 - next_uniform(state))


@kernel
def fill_normal(state, out):
    """Fill ``out`` with standard normal numbers (Box and Muller, two at a time)."""
    for i in range(0, out.shape[0], 2):
        radius = np.sqrt(2.0 * next_exponential(state))
        angle = 2.0 * np.pi * next_uniform(state)
        out[i] = radius * np.cos(angle)
        if i + 1 < out.shape[0]:
            out[i + 1] = radius * np.sin(angle)


# -- One batch of subsets --


MOST_REDRAWS = 1000
LARGEST_SEED = 2**31


class Draws(NamedTuple):
    """The draws for a batch of subsets, one row per subset.

    ``features`` (ascending, with repetitions), the bootstrap samples ``train`` and ``test``, a seed for
    learners that are random themselves, and how many training sets were discarded because they had
    one class only (-1: none with two classes found). If the batch ``shares_samples``, all its subsets have the same
    training and test set, and no sample is twice in the test set; else each subset has its own bootstrap samples.
    """

    features: NDArray[np.int64]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    seeds: NDArray[np.int64]
    redraws: NDArray[np.int64]
    shares_samples: bool = False

    @classmethod
    def empty(
        cls,
        batch_size: int,
        subset_size: int,
        bootstrap_size: int,
        *,
        test_size: int | None = None,
        shares_samples: bool = False,
    ) -> Draws:
        """Allocate the arrays of a batch."""
        return cls(
            np.zeros((batch_size, subset_size), np.int64),
            np.zeros((batch_size, bootstrap_size), np.int64),
            np.zeros((batch_size, test_size or bootstrap_size), np.int64),
            np.zeros(batch_size, np.int64),
            np.zeros(batch_size, np.int64),
            shares_samples,
        )


# The index of the stream of shared samples, which no subset has.
SHARED_STREAM = 2**40


@kernel
def draw_batch(cumulative, codes, test_codes, seed, step, first, last, two_classes, draws):
    """Draw the subsets ``first`` to ``last`` of a step, each from its own stream; shared samples from another."""
    for b in range(first, last):
        state = open_stream(seed, step, b)
        draw_features(state, cumulative, draws.features[b])
        if not draws.shares_samples:
            draw_train(state, codes, two_classes, draws, b)
            draw_rows(state, test_codes.shape[0], draws.test[b])
        elif b == first:
            shared = open_stream(seed, step, SHARED_STREAM)
            draw_train(shared, codes, two_classes, draws, b)
            draw_rows_left_out(shared, test_codes.shape[0], draws.train[b], draws.test[b])
        else:
            copy_row(draws.train, b - 1, b)
            copy_row(draws.test, b - 1, b)
            draws.redraws[b] = draws.redraws[b - 1]
        if draws.shares_samples and b > 0:
            draws.redraws[b] = min(draws.redraws[b], 0)  # counted once
        draws.seeds[b] = next_index(state, LARGEST_SEED)


@kernel
def copy_row(table, source, target):
    """Copy element by element: for an assignment of rows numba takes three seconds more to compile."""
    for k in range(table.shape[1]):
        table[target, k] = table[source, k]


@kernel
def draw_train(state, codes, two_classes, draws, b):
    """Draw the training set of a subset, again while it has one class only."""
    draw_rows(state, codes.shape[0], draws.train[b])
    draws.redraws[b] = 0
    while two_classes and has_one_class(codes, draws.train[b]):
        if draws.redraws[b] == MOST_REDRAWS:
            draws.redraws[b] = -1
            break
        draws.redraws[b] += 1
        draw_rows(state, codes.shape[0], draws.train[b])


@kernel
def draw_features(state, cumulative, out):
    """Independent draws from the distribution with the given (unnormalised) cumulative weights, in ascending order.

    The partial sums of exponential numbers, divided by their total, are uniform numbers in ascending order.
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
    """The first index from ``low`` on where the sums exceed the value, by bisection; always one of positive weight."""
    high = cumulative.shape[0] - 1
    while high > low and cumulative[high - 1] == cumulative[high]:
        high -= 1
    while low < high:
        midpoint = (low + high) // 2
        if cumulative[midpoint] > value:
            high = midpoint
        else:
            low = midpoint + 1
    return low


@kernel
def draw_rows(state, n_samples, out):
    """Draw sample indices uniformly and independently."""
    for i in range(out.shape[0]):
        out[i] = next_index(state, n_samples)


# If so small a share of the samples is drawn, samples that are drawn twice make no difference.
NEGLIGIBLE_SHARE = 0.02


@kernel
def draw_rows_left_out(state, n_samples, train, out):
    """Draw different sample indices uniformly from those that are not in the training set, from all if too few."""
    if train.shape[0] + out.shape[0] < NEGLIGIBLE_SHARE * n_samples:
        draw_rows(state, n_samples, out)
        return
    is_used = np.zeros(n_samples, np.bool_)
    for i in train:
        is_used[i] = True
    indices = np.empty(n_samples, np.int64)
    size = 0
    for i in range(n_samples):
        if not is_used[i]:
            indices[size] = i
            size += 1
    n_left_out = size
    for i in range(n_samples):
        if is_used[i]:
            indices[size] = i
            size += 1
    for i in range(out.shape[0]):
        last = n_left_out if i < n_left_out else n_samples
        other = i + next_index(state, last - i)
        indices[i], indices[other] = indices[other], indices[i]
        out[i] = indices[i]


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


@kernel
def subset_data(pool, draws, b):
    """Training and test samples of a subset, one row per feature."""
    features = distinct(draws.features[b])
    train = gather(pool.columns, features, draws.train[b])
    return train, gather(pool.test_columns, features, draws.test[b])


# -- The samples, and the cost of misclassifications --


class Pool(NamedTuple):
    """The samples from which training and test sets are drawn, and the cost of misclassifications.

    ``columns`` has one row per feature. Row m of ``coding`` gives the label of each class in model m: one
    row 0, 1, … for a multi-class learner, one row per class for one-against-all, a code word per model for
    output codes. ``class_cost`` is the cost of a mistake on a sample of each class; with ``balanced`` the
    error rates of the labels are averaged instead.
    """

    columns: NDArray[np.floating[Any]]
    codes: Int64Array
    test_columns: NDArray[np.floating[Any]]
    test_codes: Int64Array
    coding: Int64Array
    n_labels: int
    class_cost: FloatArray
    balanced: bool


@kernel
def labels_of(coding, codes, rows):
    """Labels of the chosen samples in one model."""
    out = np.empty(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        out[i] = coding[codes[rows[i]]]
    return out


@kernel
def model_cost(pool, m, rows, predicted):
    """Mean cost of the predictions of model ``m`` on the chosen test samples, between 0 and 1."""
    wrong = np.zeros(pool.n_labels)
    weight = np.zeros(pool.n_labels)
    for i in range(rows.shape[0]):
        code = pool.test_codes[rows[i]]
        label = pool.coding[m, code]
        weight[label] += pool.class_cost[code]
        if predicted[i] != label:
            wrong[label] += pool.class_cost[code]
    if not pool.balanced:
        return wrong.sum() / weight.sum()
    total = 0.0
    present = 0
    for label in range(pool.n_labels):
        if weight[label] > 0.0:
            total += wrong[label] / weight[label]
            present += 1
    return total / present
