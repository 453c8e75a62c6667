"""Few readings of the data tell the same features as a reading for every vector."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zeronorm import FSV, LogisticLasso
from zeronorm.design import as_design
from zeronorm.solvers import geometry
from zeronorm.solvers.geometry import PullBounds


@pytest.fixture
def never_small(monkeypatch):
    monkeypatch.setattr(geometry, "SMALL_DATA", 0)


def drifting_vectors(rng, n, count, step):
    v = rng.normal(size=n)
    for _ in range(count):
        yield v
        v = v + step * np.linalg.norm(v) / np.sqrt(n) * rng.normal(size=n)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 1e-9, 0.01, 0.1, 2.0]), st.sampled_from([np.float32, float])
)
def test_features_beyond_their_limit_are_those_of_the_products(seed, step, dtype):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(15, 700)) * rng.uniform(0.1, 100.0, 700)).astype(dtype)
    X[:, 5] = 0.0
    bounds = PullBounds(as_design(X))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(geometry, "SMALL_DATA", 0)
        for v in drifting_vectors(rng, 15, 20, step):
            product = np.abs(X.astype(float).T @ v)
            limit = rng.uniform(0.8, 1.2, 700) * np.linalg.norm(X, axis=0) * np.linalg.norm(v) * 0.7
            limit[rng.integers(0, 700, 5)] = np.inf
            excess = product - limit
            expected = np.flatnonzero(excess > 0.0)
            expected = expected[np.argsort(-excess[expected])]
            assert bounds.beyond(v, limit, 700).tolist() == expected.tolist()
            assert bounds.beyond(v, limit, 3).tolist() == expected[:3].tolist()
    assert len(bounds._directions) <= geometry.MOST_DIRECTIONS
    assert np.allclose(bounds._directions @ bounds._directions.T, np.eye(len(bounds._directions)), atol=1e-12)


def test_vectors_close_to_each_other_need_few_readings(never_small):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4000))
    bounds = PullBounds(as_design(X))
    for v in drifting_vectors(rng, 60, 50, 0.002):
        bounds.beyond(v, np.full(4000, 4.0 * np.linalg.norm(v)), 10)
    assert 1 <= bounds.n_readings <= 5


def test_a_vector_of_zeros_pulls_nothing(never_small):
    bounds = PullBounds(as_design(np.random.default_rng(0).normal(size=(10, 300))))
    assert bounds.beyond(np.zeros(10), np.zeros(300), 5).size == 0


@pytest.mark.parametrize("selector", [LogisticLasso(5, n_alphas=20), FSV(5)])
def test_methods_find_the_same_optimum_with_and_without_bounds(selector, monkeypatch):
    rng = np.random.default_rng(1)
    y = np.arange(50) % 2
    X = rng.normal(size=(50, 900))
    X[:, :5] += 1.2 * y[:, None]
    coef = []
    for small in (geometry.SMALL_DATA, 0):
        monkeypatch.setattr(geometry, "SMALL_DATA", small)
        coef.append(selector.fit(X, y).coef_)
    np.testing.assert_allclose(coef[1], coef[0], atol=1e-8)
