"""Integrated path stability selection: a loop over the definition, values of the authors' package, properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zeronorm.engines._integrated_paths import (
    LARGEST_INTEGRAL,
    independent_pairs_bound,
    integrate_paths,
    q_values_of,
    shares_by_size,
    summed_paths,
)


def rankings(n_halves, p, seed, n_strong=0):
    """Random positions, with the first features always ahead."""
    rng = np.random.default_rng(seed)
    found = np.array(
        [np.r_[rng.permutation(n_strong), n_strong + rng.permutation(p - n_strong)] for _ in range(n_halves)]
    )
    return found.astype(np.int32)


def cubic_by_hand(share):
    return (2.0 * share - 1.0) ** 3 if share >= 0.5 else 0.0


def plain_integration(positions, permuted):
    """Scores, expected false selections and q-values, from the definitions, one number at a time."""
    n_halves, p = positions.shape
    B = n_halves // 2

    def f(table, j, k):
        return cubic_by_hand(sum(row[j] < k for row in table) / n_halves)

    b = []
    for k in range(1, p + 1):
        paper = (
            k**2 / (B**2 * p) + 3 * (B - 1) * k**4 / (B**2 * p**3) + (B - 1) * (B - 2) * k**6 / (B**2 * p**5)
        )
        measured = [sum(f(table, j, k) for j in range(p)) for table in permuted]
        b.append(max(paper, float(np.mean(measured))) if permuted else paper)
    K = 1
    while p > K and sum(b[: K + 1]) / (K + 1) <= LARGEST_INTEGRAL:
        K += 1
    integral = sum(b[:K]) / K
    scores = [sum(f(positions, j, k) for k in range(1, K + 1)) / K for j in range(p)]
    expected = [integral / s if s > integral / p else float(p) for s in scores]
    q = []
    for own in expected:
        rates = [t / sum(e <= t for e in expected) for t in expected if t >= own]
        q.append(min(1.0, min(rates)))
    return K, scores, expected, q


@pytest.mark.parametrize("n_permuted", [0, 2])
@pytest.mark.parametrize("n_strong", [0, 3])
def test_integration_matches_a_plain_loop(n_permuted, n_strong):
    positions = rankings(12, 30, 1, n_strong)
    permuted = [rankings(12, 30, 10 + i) for i in range(n_permuted)]
    found = integrate_paths(positions, permuted)
    K, scores, expected, q = plain_integration(positions, permuted)
    assert found.largest_size == K > 1
    np.testing.assert_allclose(found.scores, scores, atol=1e-12)
    np.testing.assert_allclose(found.expected_false, expected, rtol=1e-10)
    np.testing.assert_allclose(found.q_values, q, rtol=1e-10)


def test_bound_and_q_values_agree_with_the_authors_package():
    """Recorded with ipss 1.1.13: its terms of "h3" for p = 40, B = 20, and its q-values, which are not cut at 1."""
    recorded = [6.4734912109375e-05, 0.0030845642089843755, 0.0801018]
    np.testing.assert_allclose(independent_pairs_bound(np.array([1, 5, 12]), 40, 20), recorded, rtol=1e-12)
    q = q_values_of(np.array([0.5, 0.02, 3.0, 0.5, 10.0, 0.3, 0.02]))
    np.testing.assert_allclose(q, [0.1, 0.01, 0.5, 0.1, 1.0, 0.1, 0.01], rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 4))
def test_q_values_follow_the_scores_and_the_columns(seed, n_strong):
    positions, permuted = rankings(10, 20, seed, n_strong), [rankings(10, 20, seed + 1)]
    found = integrate_paths(positions, permuted)
    order = np.argsort(-found.scores, kind="stable")
    assert np.all(np.diff(found.q_values[order]) >= 0)
    assert np.all(np.diff(found.expected_false[order]) >= 0)
    assert np.all((found.q_values > 0) & (found.q_values <= 1))
    columns = np.random.default_rng(seed).permutation(20)
    moved = integrate_paths(positions[:, columns], permuted)
    np.testing.assert_allclose(moved.q_values, found.q_values[columns])


def test_measured_bound_is_the_sum_over_all_features():
    positions = rankings(8, 15, 0)
    by_hand = [sum(cubic_by_hand(np.mean(positions[:, j] < k)) for j in range(15)) for k in range(1, 16)]
    np.testing.assert_allclose(summed_paths(positions), by_hand, atol=1e-12)
    assert summed_paths(positions)[-1] == pytest.approx(15)


@given(st.integers(0, 1000), st.integers(1, 9))
def test_shares_by_size_are_those_of_a_loop(seed, n_sizes):
    positions = rankings(6, 9, seed)
    by_hand = [[np.mean(positions[:, j] < k) for k in range(1, n_sizes + 1)] for j in range(9)]
    np.testing.assert_allclose(shares_by_size(positions, n_sizes), by_hand)
