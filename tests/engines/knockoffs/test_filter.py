"""The knockoff filter and its e-values, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from zeronorm.engines.knockoffs._filter import (
    knockoff_e_values,
    knockoff_threshold,
    n_passing_e_values,
    samples_needed,
)


def test_threshold_by_hand():
    W = np.array([5.0, 4.0, 3.0, -2.5, 2.0, 1.0, -0.5, 0.0])
    # t = 2.5: (1 + 1) / 3; t = 3: (1 + 0) / 3; without the offset t = 1: 1 / 5
    assert knockoff_threshold(W, 0.34, offset=1) == 3.0
    assert knockoff_threshold(W, 0.2, offset=1) == np.inf
    assert knockoff_threshold(W, 0.2, offset=0) == 1.0
    assert knockoff_threshold(np.zeros(3), 0.9, offset=0) == np.inf


def test_e_values_by_hand():
    W = np.array([5.0, 4.0, 3.0, -2.5, 2.0])
    np.testing.assert_allclose(knockoff_e_values(W, 0.34), [5, 5, 5, 0, 0])
    assert n_passing_e_values(np.array([5.0, 5, 5, 0, 0]), 0.34) == 3  # 5 >= 5 / (0.34 * 3)
    assert n_passing_e_values(np.array([5.0, 5, 5, 0, 0]), 0.3) == 0


def test_one_draw_passes_as_in_its_filter():
    """E-values of one draw keep exactly the features beyond the threshold they were made with."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        W = rng.normal(0.5, 1.0, size=30)
        kept = int(np.sum(knockoff_threshold(W, 0.2, 1, 0.5) <= W))
        assert n_passing_e_values(knockoff_e_values(W, 0.2), 0.2) == kept


# -- the definitions, value by value --

STATISTICS = arrays(np.float64, st.integers(1, 25), elements=st.integers(-6, 6).map(float))
LEVELS = st.sampled_from([0.05, 0.1, 0.2, 0.34, 0.5, 0.9])


def naive_threshold(W, level, offset):
    """min{t > 0 : (offset + #{W <= -t}) / max(1, #{W >= t}) <= level}, t among the |W_j|."""
    for t in sorted({abs(w) for w in W} - {0.0}):
        if (offset + sum(w <= -t for w in W)) / max(1, sum(w >= t for w in W)) <= level:
            return t
    return np.inf


def stopping_threshold(W, level):
    """At half the level while 2 / level statistics are left, which that level needs; else at the level."""
    for t in sorted({abs(w) for w in W} - {0.0}):
        left = sum(w >= t for w in W)
        if (1 + sum(w <= -t for w in W)) / max(1, left) <= (level / 2 if left >= 2 / level else level):
            return t
    return np.inf


@given(STATISTICS, LEVELS, st.sampled_from([0, 1]))
def test_threshold_is_that_of_the_definition(W, level, offset):
    assert knockoff_threshold(W, level, offset) == naive_threshold(W, level, offset)


@given(STATISTICS, LEVELS)
def test_e_values_are_those_of_the_definition(W, level):
    t = stopping_threshold(W, level)
    expected = [len(W) * (w >= t) / (1 + sum(v <= -t for v in W)) for w in W]
    np.testing.assert_allclose(knockoff_e_values(W, level), expected)


@given(arrays(np.float64, st.integers(1, 20), elements=st.integers(0, 40).map(float)), LEVELS)
def test_passing_e_values_are_those_of_the_definition(e, level):
    """The largest k such that k e-values are at least p / (level k)."""
    p = len(e)
    sizes = [k for k in range(1, p + 1) if np.sort(e)[::-1][k - 1] * level * k / p >= 1 - 1e-12]
    assert n_passing_e_values(e, level) == max(sizes, default=0)


@given(STATISTICS, LEVELS)
def test_one_sign_more_never_keeps_more_features(W, level):
    """Turning a positive statistic negative cannot help."""
    turned = W.copy()
    turned[np.argmax(W)] *= -1 if W.max() > 0 else 1
    assert np.sum(turned >= knockoff_threshold(turned, level, 1)) <= np.sum(
        knockoff_threshold(W, level, 1) <= W
    )


def test_e_values_of_pure_noise_add_up_to_at_most_p():
    """Symmetric signs: the mean of sum_j e_j / p is at most one (the property behind the bound)."""
    rng = np.random.default_rng(0)
    sums = [knockoff_e_values(rng.normal(size=40), 0.3).mean() for _ in range(4000)]
    assert np.mean(sums) <= 1 + 3 * np.std(sums) / np.sqrt(4000)
    assert np.mean(sums) > 0.1  # some pass


def test_samples_needed_by_hand():
    assert samples_needed(2000, 10) == pytest.approx(20 * np.log(200))
    assert samples_needed(5, 10) == 0
