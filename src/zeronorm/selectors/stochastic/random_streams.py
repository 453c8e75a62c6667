# mypy: allow-untyped-defs
"""Random numbers for compiled loops, one independent stream per (seed, step, index).

A stream is a counter that is hashed (SplitMix64, Steele, Lea and Flood 2014). Its start depends only on the
three numbers, so that a subset of features is drawn alike whichever worker draws it.
"""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel

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
    """The state of a new stream: an array of one word, changed by every draw."""
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
    """A number in [0, 1)."""
    return np.float64(next_word(state) >> SHIFT_12) * UNIT


@kernel
def next_index(state, size):
    """An integer in 0, …, size - 1."""
    return min(np.int64(next_uniform(state) * size), size - 1)


@kernel
def next_exponential(state):
    """A number of the exponential law of mean one."""
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
