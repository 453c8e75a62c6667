"""The probe distribution against simulated probes and the F distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zeronorm.engines._error_control import ProbeRisk, best_of, probe_cdf, probe_tail


def simulated_cosines(dimension: int, rank: int, n_probes: int, seed: int):
    rng = np.random.default_rng(seed)
    probes = rng.normal(size=(n_probes, dimension))
    target, _ = np.linalg.qr(rng.normal(size=(dimension, rank)))
    return ((probes @ target) ** 2).sum(axis=1) / (probes**2).sum(axis=1)


@pytest.mark.parametrize(("dimension", "rank"), [(2, 1), (9, 1), (30, 1), (30, 2), (12, 4)])
def test_cdf_matches_simulated_probes(dimension, rank):
    cosines = simulated_cosines(dimension, rank, 20_000, seed=dimension + rank)
    # The Kolmogorov distance of 20,000 draws exceeds 1.95/sqrt(n) with probability 0.001.
    result = stats.kstest(cosines, lambda x: probe_cdf(x, dimension, rank))
    assert result.statistic < 1.95 / np.sqrt(20_000)


@given(st.floats(0.001, 0.999), st.integers(1, 5), st.integers(1, 200))
def test_tail_is_the_significance_of_the_partial_f_test(cos_sq, rank, extra):
    dimension = rank + extra
    f_value = (cos_sq / rank) / ((1.0 - cos_sq) / extra)
    assert probe_tail(cos_sq, dimension, rank) == pytest.approx(stats.f.sf(f_value, rank, extra), rel=1e-9)
    assert probe_tail(cos_sq, dimension, rank) + probe_cdf(cos_sq, dimension, rank) == pytest.approx(1.0)


def test_tail_keeps_its_digits_where_the_cdf_rounds_to_one():
    assert probe_cdf(0.999, 60.0) == 1.0
    assert 0.0 < probe_tail(0.999, 60.0) < 1e-80


def test_a_probe_without_room_lies_in_the_space_of_the_target():
    assert probe_tail(1.0, 2, 2) == 1.0
    assert probe_cdf(0.5, 2, 2) == 0.0


@given(st.floats(0.0, 1.0), st.integers(1, 100_000))
def test_best_of_many_probes(tail, n_probes):
    assert best_of(tail, n_probes) == pytest.approx(1.0 - (1.0 - tail) ** n_probes, abs=1e-9)


def test_best_of_many_probes_keeps_tiny_tails():
    assert best_of(1e-30, 1000) == pytest.approx(1e-27, rel=1e-12)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_the_risk_is_that_of_at_least_one_probe(cosines):
    risk = ProbeRisk()
    for step, cos_sq in enumerate(cosines):
        risk.value = risk.after(cos_sq, 40 - step, 1, 100)
    survival = np.prod([probe_cdf(c, 40 - step) for step, c in enumerate(cosines)])
    assert risk.value == pytest.approx(1.0 - survival, abs=1e-12)
