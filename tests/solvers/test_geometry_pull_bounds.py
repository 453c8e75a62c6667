"""Few readings of the data give the same features as a reading for every vector."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solvers.problems import plain
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


def test_pulls_of_many_features_from_few_readings(monkeypatch):
    monkeypatch.setattr(geometry, "SMALL_DATA", 0)
    monkeypatch.setattr(geometry, "TILE", 8)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10, 300))
    X[:, 7] = 0.0
    for design in (as_design(X), as_design(sparse.csc_array(X))):
        bounds = PullBounds(design)
        v = rng.normal(size=10)
        for turn in range(15):
            v = v + 0.05 * rng.normal(size=10)
            pull, limit = np.abs(X.T @ v), np.full(300, np.sort(np.abs(X.T @ v))[-12] * (1 - 1e-9))
            found = bounds.beyond(v, limit, 5 + turn)
            wanted = np.flatnonzero(pull > limit)
            wanted = wanted[np.argsort(-pull[wanted])][: 5 + turn]
            assert found.tolist() == wanted.tolist()
        assert 0 < bounds.n_readings <= 15
        assert len(bounds._directions) <= geometry.MOST_DIRECTIONS
        np.testing.assert_allclose(
            bounds._directions @ bounds._directions.T, np.eye(len(bounds._directions)), atol=1e-9
        )
        np.testing.assert_allclose(bounds.norms, np.linalg.norm(X, axis=0))
        shares, rest, distance = bounds._split(v)
        np.testing.assert_allclose(shares @ bounds._directions + rest, v)
        np.testing.assert_allclose(bounds._directions @ rest, 0.0, atol=1e-12)
        assert distance == pytest.approx(np.linalg.norm(rest))
        many = bounds.beyond(v, np.zeros(300), 3)  # nearly all are beyond: the largest estimates are read
        assert set(many.tolist()) <= set(np.argsort(-np.abs(X.T @ v))[:30].tolist())


def test_the_direction_of_least_use_makes_room(monkeypatch):
    monkeypatch.setattr(geometry, "MOST_DIRECTIONS", 2)
    bounds = PullBounds(as_design(np.eye(4)))
    for v in (np.eye(4)[0], np.eye(4)[1], np.array([3.0, 0.5, 1.0, 0.0])):
        bounds._read(v)
    assert bounds._directions.shape == (2, 4)
    np.testing.assert_allclose(bounds._directions[0], np.eye(4)[0])
    np.testing.assert_allclose(bounds._directions[1], np.array([0.0, 0.5, 1.0, 0.0]) / np.sqrt(1.25))
    np.testing.assert_allclose(bounds._cosines, bounds._directions.astype(np.float32))
    assert bounds.n_readings == 3
    bounds._read(bounds._directions[0] * 2.0)  # nothing new in it
    assert bounds.n_readings == 3


def test_features_that_may_be_beyond_by_the_bound_itself(monkeypatch):
    monkeypatch.setattr(geometry, "TILE", 3)
    shares = np.array([2.0, -1.0], dtype=np.float32)
    cosines = np.array([[0.5, 0.0, 0.25, -1.0], [0.0, 0.5, 0.25, 0.0]], dtype=np.float32)
    norms = np.array([1.0, 2.0, 1.0, 1.0])
    bound = (np.abs(shares @ cosines) + 0.125) * norms
    for slack, wanted in ((0.0, []), (1e-9, [0, 1, 2, 3])):
        found = np.empty(4, dtype=np.intp)
        count = plain(geometry.may_be_beyond)(shares, cosines, norms, 0.125, bound - slack, found)
        assert found[:count].tolist() == wanted
