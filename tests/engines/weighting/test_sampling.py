"""The random streams: uniform, independent of each other, and the same wherever they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from zeronorm.engines.weighting._sampling import (
    MOST_REDRAWS,
    Draws,
    draw_batch,
    fill_normal,
    next_index,
    next_uniform,
    open_stream,
)

SEED = np.uint64(12345)


def uniforms(seed, step, index, size):
    state = open_stream(np.uint64(seed), step, index)
    return np.array([next_uniform(state) for _ in range(size)])


def test_numbers_are_uniform():
    values = uniforms(SEED, 3, 1, 5000)
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert stats.kstest(values, "uniform").pvalue > 1e-3


def test_first_numbers_of_neighbouring_streams_are_uniform():
    firsts = [uniforms(SEED, step, index, 1)[0] for step in range(60) for index in range(60)]
    assert stats.kstest(firsts, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(firsts[:-1], firsts[1:])[0, 1]) < 4 / np.sqrt(len(firsts))


def test_streams_differ_in_each_number():
    streams = [uniforms(*key, 4) for key in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (3, 2, 1))]
    assert len({tuple(s) for s in streams}) == 4
    assert np.array_equal(uniforms(1, 2, 3, 4), streams[0])


def test_normal_numbers_are_normal():
    values = np.empty(5001)
    fill_normal(open_stream(SEED, 0, 0), values)
    assert stats.kstest(values, "norm").pvalue > 1e-3


def test_indices_cover_their_range_evenly():
    state = open_stream(SEED, 0, 0)
    counts = np.bincount([next_index(state, 7) for _ in range(7000)], minlength=7)
    assert counts.size == 7
    assert stats.chisquare(counts).pvalue > 1e-3


def draw(P, codes, *, batch_size=1000, subset_size=4, bootstrap_size=5, two_classes=True):
    draws = Draws.empty(batch_size, subset_size, bootstrap_size)
    draw_batch(np.cumsum(P), codes, codes, SEED, 0, 0, batch_size, two_classes, draws)
    return draws


def test_features_follow_the_distribution():
    P = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    draws = draw(P, np.arange(10) % 2)
    counts = np.bincount(draws.features.ravel(), minlength=5)
    assert counts[1] == counts[4] == 0
    assert stats.chisquare(counts[P > 0], 4000 * P[P > 0]).pvalue > 1e-3
    assert np.all(np.diff(draws.features, axis=1) >= 0)


def test_samples_of_one_class_are_redrawn_and_counted():
    codes = np.array([0] * 9 + [1])
    draws = draw(np.ones(3), codes)
    assert np.all(np.ptp(codes[draws.train], axis=1) == 1)
    # Five samples have a single class with probability 0.9^5 + 0.1^5, which gives the discarded sets per success.
    one_class = 0.9**5 + 0.1**5
    expected = one_class / (1.0 - one_class)
    error = np.sqrt(one_class) / (1.0 - one_class) / np.sqrt(1000)
    assert abs(draws.redraws.mean() - expected) < 4 * error
    assert draw(np.ones(3), codes, two_classes=False).redraws.sum() == 0


def test_giving_up_is_marked():
    codes = np.zeros(10, np.int64)
    assert draw(np.ones(3), codes, batch_size=2).redraws.tolist() == [-1, -1]
    assert MOST_REDRAWS >= 100


@pytest.mark.parametrize("shares_samples", [False, True])
@pytest.mark.parametrize("cut", [1, 300, 999])
def test_parts_of_a_batch_are_the_batch(cut, shares_samples):
    codes, cumulative = np.array([0] * 18 + [1, 1]), np.cumsum(np.ones(9))
    whole, parts = (Draws.empty(1000, 4, 5, shares_samples=shares_samples) for _ in range(2))
    draw_batch(cumulative, codes, codes, SEED, 7, 0, 1000, True, whole)
    draw_batch(cumulative, codes, codes, SEED, 7, cut, 1000, True, parts)
    draw_batch(cumulative, codes, codes, SEED, 7, 0, cut, True, parts)
    for a, b in zip(whole, parts, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("n_samples", [9, 12, 1000])
def test_shared_samples_are_those_of_every_subset_and_no_sample_is_tested_twice(n_samples):
    codes = np.arange(n_samples) % 2
    counts = np.zeros(n_samples)
    draws = Draws.empty(3, 4, 5, test_size=9, shares_samples=True)
    for step in range(2000):
        draw_batch(np.ones(1), codes, codes, SEED, step, 0, 3, True, draws)
        assert np.array_equal(draws.train, np.tile(draws.train[0], (3, 1)))
        assert np.array_equal(draws.test, np.tile(draws.test[0], (3, 1)))
        assert np.array_equal(draws.redraws[1:], [0, 0])
        counts[draws.test[0]] += 1
        shared = np.intersect1d(draws.test[0], draws.train[0]).size
        n_left_out = n_samples - np.unique(draws.train[0]).size
        assert n_samples == 1000 or shared == max(0, 9 - n_left_out)
        # If nine are a negligible share of the samples, some may be drawn twice.
        assert n_samples == 1000 or np.unique(draws.test[0]).size == 9
    if n_samples == 9:
        assert np.array_equal(counts, np.full(9, 2000.0))
    else:
        assert stats.chisquare(counts).pvalue > 1e-3
