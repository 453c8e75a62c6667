"""Stability of selected subsets: properties, values by hand, coverage."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from zeronorm import FisherScore, evaluate
from zeronorm.evaluation import (
    correlation_stability,
    hamming_distance,
    jaccard_stability,
    kuncheva_stability,
    nogueira_stability,
    stability_of_records,
)

SETS = [[0, 1, 2], [0, 1, 3], [0, 4, 5]]


def test_values_by_hand():
    """Of six features: pairs share 2, 1 and 1."""
    assert jaccard_stability(SETS, 6) == pytest.approx((2 / 4 + 1 / 5 + 1 / 5) / 3)
    assert hamming_distance(SETS, 6) == pytest.approx((2 + 4 + 4) / 3 / 6)
    assert kuncheva_stability(SETS, 6) == pytest.approx(((2 * 6 - 9) + (6 - 9) + (6 - 9)) / 9 / 3)
    masks = np.zeros((3, 6), dtype=bool)
    for mask, columns in zip(masks, SETS, strict=True):
        mask[columns] = True
    assert jaccard_stability(masks) == jaccard_stability(SETS, 6)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.integers(2, 6), st.integers(0, 2**31), st.data())
def test_nogueira_is_kuncheva_when_sizes_are_equal(p, m, seed, data):
    k = data.draw(st.integers(1, p - 1))
    rng = np.random.default_rng(seed)
    sets = [rng.choice(p, k, replace=False) for _ in range(m)]
    assert nogueira_stability(sets, p).estimate == pytest.approx(kuncheva_stability(sets, p), abs=1e-12)


def test_equal_selections_are_fully_stable():
    same = [[1, 3]] * 4
    assert jaccard_stability(same, 5) == 1
    assert hamming_distance(same, 5) == 0
    assert kuncheva_stability(same, 5) == 1
    effect = nogueira_stability(same * 2, 5)
    assert effect.estimate == 1
    assert np.isnan(effect.low)  # equal selections are no proof of certainty
    X = np.random.default_rng(0).normal(size=(20, 5))
    assert correlation_stability(same, X) == pytest.approx(1)


def test_random_selections_are_not_stable():
    rng = np.random.default_rng(0)
    masks = rng.random((400, 60)) < 0.2
    assert abs(nogueira_stability(masks).estimate) < 0.01
    X = rng.normal(size=(50, 60))
    assert abs(correlation_stability(masks, X)) < 0.02
    assert jaccard_stability([[], [], []], 4) == 1


def test_nogueira_interval_is_the_jackknife_with_t():
    rng = np.random.default_rng(1)
    masks = rng.random((7, 40)) < 0.2
    effect = nogueira_stability(masks)
    pseudo = [
        7 * effect.estimate - 6 * nogueira_stability(np.delete(masks, i, axis=0)).estimate for i in range(7)
    ]
    half = stats.t.ppf(0.975, 6) * np.std(pseudo, ddof=1) / np.sqrt(7)
    assert effect.high - effect.estimate == pytest.approx(half)
    assert effect.estimate - effect.low == pytest.approx(half)
    assert np.isnan(nogueira_stability(masks[:4]).low)  # too few runs for an interval


def dense_correlation_stability(masks, similar):
    """The definition with full matrices."""
    p = masks.shape[1]
    S = np.cov(masks.astype(float), rowvar=False)
    sizes = masks.sum(axis=1)
    k = sizes.mean()
    off = (np.mean(sizes**2) - k) / (p**2 - p) - (k / p) ** 2
    sigma_0 = np.full((p, p), off)
    np.fill_diagonal(sigma_0, k / p * (1 - k / p))
    return 1 - np.trace(similar @ S) / np.trace(similar @ sigma_0)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.1])
@pytest.mark.parametrize("p", [11, 1100])  # few columns at once, and many in blocks
def test_correlation_stability_matches_the_dense_definition(threshold, p):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, p)) + rng.normal(size=(30, 1))
    masks = rng.random((8, p)) < 0.4
    similar = np.abs(np.corrcoef(X, rowvar=False))
    similar = np.where(similar >= threshold, similar, 0.0)
    if threshold > 1:  # only identical features are alike: then the measure is Nogueira's
        np.fill_diagonal(similar, 1.0)
        assert correlation_stability(masks, X, threshold=1.0) == pytest.approx(
            nogueira_stability(masks).estimate
        )
        threshold = 1.0
    expected = dense_correlation_stability(masks, similar)
    assert correlation_stability(masks, X, threshold=threshold) == pytest.approx(expected)


def test_swapping_correlated_features_is_forgiven():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(40, 5)), 2, axis=1) + 0.05 * rng.normal(size=(40, 10))
    swapped = [[0, 2], [1, 3], [0, 3], [1, 2]]
    assert correlation_stability(swapped, X) > 0.95
    assert nogueira_stability(swapped, 10).estimate < 0.5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=2, max_size=6))
def test_pairwise_definitions(sets):
    pairs = list(combinations(sets, 2))
    lists = [sorted(s) for s in sets]
    assert jaccard_stability(lists, 7) == pytest.approx(np.mean([len(a & b) / len(a | b) for a, b in pairs]))
    assert hamming_distance(lists, 7) == pytest.approx(np.mean([len(a ^ b) / 7 for a, b in pairs]))


def test_records():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 6)) + np.array([3, 0, 0, 0, 0, 0]) * y[:, None]
    records = evaluate(FisherScore(), X, y, cv=5, sizes=[1, 3, 6])
    table = stability_of_records(records, 6)
    assert table["size"].to_list() == [1, 3, 6]
    assert table["nogueira"].to_list()[0] == pytest.approx(1.0)
    assert table["nogueira"].to_list()[2] is None
    chosen = records.filter(records["size"] == 3)["selected"].to_list()
    assert table["jaccard"][1] == pytest.approx(jaccard_stability(chosen, 6))
    assert table["high"][1] <= 1.0


BAD_CALLS = {
    "one run": (lambda: jaccard_stability([[1]], 3), "at least two selections"),
    "no width": (lambda: jaccard_stability([[1], [2]]), "need 'n_features'"),
    "column": (lambda: jaccard_stability([[1], [5]], 3), "names column 5"),
    "sizes": (lambda: kuncheva_stability([[1], [1, 2]], 3), "Got the sizes .1, 2."),
    "all": (lambda: nogueira_stability([[0, 1], [0, 1]], 2), "every feature is selected"),
    "none": (lambda: nogueira_stability([[], []], 2), "no feature is selected"),
    "X": (lambda: correlation_stability([[1], [2]], np.eye(3), n_features=4), "X has 3 features"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input(case):
    call, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        call()
