"""Column statistics of larger arrays, in threads, next to large means, and with values that are missing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from zeronorm import FisherScore
from zeronorm.design import as_design, dense, stats
from zeronorm.design.column_kernels import columns_stats_in_place

LAYOUTS = [(order, dtype) for order in "CF" for dtype in (np.float64, np.float32)]


def data(n, p, order, dtype, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 3.0, p) + np.outer(y, rng.normal(size=p))
    return np.array(X, dtype=dtype, order=order), y


def assert_is_numpy(stats, X, y, weight, rtol=1e-11):
    exact = X.astype(np.float64)
    for c in range(y.max() + 1):
        w = weight[y == c]
        mean = np.average(exact[y == c], axis=0, weights=w)
        variance = np.average((exact[y == c] - mean) ** 2, axis=0, weights=w)
        np.testing.assert_allclose(stats.class_mean[c], mean, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(stats.class_variance[c], variance, rtol=rtol)
    np.testing.assert_array_equal(stats.minimum, X.min(axis=0))
    np.testing.assert_array_equal(stats.maximum, X.max(axis=0))


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
@pytest.mark.parametrize("n", [40, 61, 700])
def test_classes_of_any_size_with_weights(order, dtype, n):
    X, y = data(n, 37, order, dtype)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    assert_is_numpy(as_design(X).column_stats(y, weight), X, y, weight)


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
@pytest.mark.parametrize("q", [1, 2, 5, 6, 7, 12])
def test_few_and_many_classes(order, dtype, q):
    X, _ = data(90, 11, order, dtype)
    y = np.arange(90) % q
    assert_is_numpy(as_design(X).column_stats(y), X, y, np.ones(90))


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
def test_samples_without_weight_do_not_count(order, dtype):
    X, y = data(90, 11, order, dtype)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 90)
    absent = np.arange(90) % 7 == 0
    X[absent], weight[absent] = 1e6, 0.0
    assert_is_numpy(as_design(X).column_stats(y, weight), X[~absent], y[~absent], weight[~absent])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(40, 21), (9, 8), (3, 1), (1, 9), (5, 16)])
def test_blocks_of_column_ordered_data(dtype, shape):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=shape).astype(dtype))
    n, p = shape
    for width in (p, p + 3):
        out = np.zeros((n, width))
        as_design(X).block(slice(0, p), out[:, :p])
        np.testing.assert_array_equal(out[:, :p], X)
        assert not out[:, p:].any()


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
def test_threads_and_more_columns_than_a_tile(order, dtype, monkeypatch):
    X, y = data(30, 20_003, order, dtype)
    alone = as_design(X).column_stats(y)
    assert_is_numpy(alone, X, y, np.ones(30))
    monkeypatch.setattr(dense, "BYTES_PER_THREAD", 1000)
    monkeypatch.setattr(dense, "available_threads", lambda: 3)
    together = as_design(X).column_stats(y)
    for name in ("class_mean", "class_variance", "minimum", "maximum"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_means_cost_few_digits(order):
    X, y = data(600, 9, order, np.float64)
    X = np.array(np.round(X * 2**20) / 2**20 + 2.0**27, order=order)  # the sums below are exact
    stats = as_design(X).column_stats(y)
    small = X - 2.0**27
    for c in range(3):
        np.testing.assert_allclose(stats.class_variance[c], small[y == c].var(axis=0), rtol=1e-9)


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
def test_missing_values_next_to_equal_ones_are_seen(make):
    X = np.array([[2.0, 4.0, np.nan], [np.nan, 4.0, 4.0], [4.0, 4.0, 4.0], [4.0, np.nan, 4.0]])
    stats = as_design(make(X), allow_nan=True).column_stats()
    assert np.isnan(stats.mean).all()
    with pytest.raises(ValueError, match="contains NaN"):
        FisherScore(1).fit(make(X), [0, 1, 0, 1])


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_range_of_each_column(make, dtype, n):
    X = np.random.default_rng(n).normal(size=(n, 11)).astype(dtype)
    X[n // 2, 3] = X[0, 5] = X[-1, 7] = np.nan
    design = as_design(make(X), allow_nan=True)
    for chosen, part in (
        (design, X),
        (design.take_rows(range(0, n, 2)), X[::2]),
        (design.take([5, 1]), X[:, [5, 1]]),
    ):
        low, high = chosen.column_range()
        np.testing.assert_array_equal(low, part.min(axis=0))
        np.testing.assert_array_equal(high, part.max(axis=0))


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
def test_classes_are_read_in_pairs(n_classes, monkeypatch):
    """The compiled loop reads beyond the weights if the last class has no partner."""
    rows = []

    def noted(*arguments):
        rows.append(len(arguments[8]))
        return columns_stats_in_place(*arguments)

    monkeypatch.setattr(stats, "columns_stats_in_place", noted)
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(24, 3)))
    y = np.arange(24) % n_classes
    assert_is_numpy(as_design(X).column_stats(y), X, y, np.ones(24))
    assert set(rows) == {n_classes + n_classes % 2}
