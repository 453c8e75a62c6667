"""Column statistics against NumPy: layouts, classes, weights, threads, large means, extremes."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import FisherScore, as_design
from zeronorm.design import Affine, column_range
from zeronorm.design import _dense as dense
from zeronorm.design import _stats as stats
from zeronorm.design._column_kernels import columns_stats_in_place

LAYOUTS = [(order, dtype) for order in "CF" for dtype in (np.float64, np.float32)]


def classes(n, p, order, dtype, seed=0):
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
    X, y = classes(n, 37, order, dtype)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    assert_is_numpy(as_design(X).column_stats(y, weight), X, y, weight)


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
@pytest.mark.parametrize("q", [1, 2, 5, 6, 7, 12])
def test_few_and_many_classes(order, dtype, q):
    X, _ = classes(90, 11, order, dtype)
    y = np.arange(90) % q
    assert_is_numpy(as_design(X).column_stats(y), X, y, np.ones(90))


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
def test_samples_without_weight_do_not_count(order, dtype):
    X, y = classes(90, 11, order, dtype)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 90)
    absent = np.arange(90) % 7 == 0
    X[absent], weight[absent] = 1e6, 0.0
    assert_is_numpy(as_design(X).column_stats(y, weight), X[~absent], y[~absent], weight[~absent])


@pytest.mark.parametrize(("order", "dtype"), LAYOUTS)
def test_threads_and_more_columns_than_a_tile(order, dtype, monkeypatch):
    X, y = classes(30, 20_003, order, dtype)
    alone = as_design(X).column_stats(y)
    assert_is_numpy(alone, X, y, np.ones(30))
    monkeypatch.setattr(dense, "BYTES_PER_THREAD", 1000)
    monkeypatch.setattr(dense, "available_threads", lambda: 3)
    together = as_design(X).column_stats(y)
    for name in ("class_mean", "class_variance", "minimum", "maximum"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_means_cost_few_digits(order):
    X, y = classes(600, 9, order, np.float64)
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
        low, high = column_range(chosen)
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


def test_an_outlier_in_one_class_leaves_the_others_exact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[0] = 1e12
    y = np.arange(60) % 2
    for order in "CF":
        stats = as_design(np.array(X, order=order)).column_stats(y)
        np.testing.assert_allclose(stats.class_variance[1], X[1::2].var(axis=0), rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_tiny_weights_of_the_first_samples_do_not_spoil_the_variance(order):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    X[:50] += 1e6
    weights = np.where(np.arange(100) < 50, 1e-20, 1.0)
    stats = as_design(np.array(X, order=order)).column_stats(sample_weight=weights)
    expected = np.cov(X.T, aweights=weights, ddof=0).diagonal()
    np.testing.assert_allclose(stats.variance, expected, rtol=1e-10)


def test_statistics_after_a_shift_and_a_factor():
    X = data()
    found = as_design(X).column_stats(np.arange(12) % 2 * 2)  # the second of three classes is empty
    shift, factor = np.linspace(0.0, 1.0, 9), np.linspace(0.5, 2.0, 9)
    moved = found.transformed(Affine.checked(9, shift, 1.0 / factor, None))
    Z = (X - shift) * factor
    np.testing.assert_allclose(moved.mean, Z.mean(axis=0))
    np.testing.assert_allclose(moved.variance, Z.var(axis=0))
    np.testing.assert_allclose(moved.class_mean[0], Z[::2].mean(axis=0))
    np.testing.assert_allclose(moved.class_variance[2], Z[1::2].var(axis=0))
    assert not moved.class_mean[1].any()
    np.testing.assert_allclose(moved.minimum, Z.min(axis=0))
    np.testing.assert_allclose(moved.maximum, Z.max(axis=0))
    assert (moved.count.tolist(), moved.n_classes) == ([6, 0, 6], 3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("way", ["many classes", "weights of zero", "some rows", "more than a block"])
def test_variances_next_to_large_means_are_accurate_in_each_loop(order, way):
    """Moments are taken about a center of each class, which must not be zero if the values are far from zero."""
    rng = np.random.default_rng(0)
    n = 1300 if way == "more than a block" else 90
    y = np.arange(n) % (9 if way == "many classes" else 2)
    X = np.array(rng.normal(size=(n, 70)) + 1e7 * (1.0 + y[:, None]), order=order)
    weight, rows = np.ones(n), np.arange(n)
    if way in ("weights of zero", "more than a block"):
        weight[::7] = 0.0
    if way == "some rows":
        rows = rng.permutation(n)[:60]
    found = as_design(X).take_rows(rows).column_stats(y[rows], weight[rows])
    for c in range(y.max() + 1):
        own = rows[(y[rows] == c) & (weight[rows] > 0.0)]
        exact = X[own] - 1e7 * (1.0 + c)
        np.testing.assert_allclose(found.class_variance[c], exact.var(axis=0), rtol=1e-6)
        np.testing.assert_allclose(found.class_mean[c], X[own].mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_class_without_samples_has_no_moments(order):
    """Small variances of other classes are still accurate."""
    X = np.array(1e-3 * data((14, 5)), order=order)
    y = np.where(np.arange(14) < 5, 0, 3)
    found = as_design(X).column_stats(y)
    assert found.count.tolist() == [5, 0, 0, 9]
    assert not found.class_mean[1:3].any()
    assert not found.class_variance[1:3].any()
    for c, own in ((0, X[:5]), (3, X[5:])):
        np.testing.assert_allclose(found.class_mean[c], own.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.class_variance[c], own.var(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.variance, X.var(axis=0), rtol=1e-10)
    np.testing.assert_array_equal(found.minimum, X.min(axis=0))
    X[:, 2] = 0.1  # whose mean is rounded
    rows = np.array([13, 0, 4, 7, 2, 9])
    for n_classes in (4, 9):  # the last class has no samples either
        for chosen in (rows, np.arange(14)):
            y = np.append(np.where(chosen < 5, 0, 3), n_classes - 1)
            weight = np.append(np.ones(chosen.size), 0.0)
            part = as_design(X).take_rows(np.append(chosen, 1))
            found = part.column_stats(y, weight)
            assert found.n_classes == n_classes
            for c in range(n_classes):
                own = X[chosen[y[:-1] == c]]
                mean = own.mean(axis=0) if len(own) else np.zeros(5)
                variance = own.var(axis=0) if len(own) else np.zeros(5)
                np.testing.assert_allclose(found.class_mean[c], mean, rtol=1e-12)
                np.testing.assert_allclose(found.class_variance[c], variance, rtol=1e-10, atol=1e-20)
            assert found.class_mean[0, 2] == found.mean[2] == 0.1
            assert found.class_variance[0, 2] == found.variance[2] == 0.0


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extremes_of_columns_without_a_zero(make, sign):
    X = sign * (np.abs(data((9, 4))) + 1.0)
    X[2, 1] = X[4, 3] = 0.0
    weight = np.ones(9)
    weight[4] = 0.0
    found = as_design(make(X)).column_stats(sample_weight=weight)
    counted = X[weight > 0.0]
    np.testing.assert_array_equal(found.minimum, counted.min(axis=0))
    np.testing.assert_array_equal(found.maximum, counted.max(axis=0))
    assert found.count.tolist() == [8]


def interpreted(kernel):
    """Run the loop in Python, which raises an error for an index beyond the end of an array."""
    names = {name: interpreted(callee) for name, callee in kernel.callees().items()}
    function = kernel.function
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("y", [[0], [0, 4], [4, 0], [0, 1, 0], [2, 0, 1, 2, 0], [6, 0, 6], list(range(9))])
def test_loops_of_statistics_stay_inside_their_arrays(order, y, monkeypatch):
    """More classes than samples, one class without a partner, fewer rows than are handled at a time."""
    for name in ("rows_stats", "columns_stats", "columns_stats_in_place", "combine_classes", "sparse_stats"):
        kernel = getattr(stats, name)
        monkeypatch.setattr(stats, name, interpreted(kernel))
    X, codes = np.array(data((len(y), 3)), order=order), np.array(y)
    rows = np.arange(len(y))[::-1]
    for design, own, exact in (
        (as_design(X), codes, X),
        (as_design(X).take_rows(rows), codes[rows], X[rows]),
        (as_design(sparse.csc_array(X)), codes, X),
    ):
        found = design.column_stats(own)
        assert found.count.tolist() == np.bincount(codes).tolist()
        for c in set(y):
            np.testing.assert_allclose(found.class_mean[c], exact[own == c].mean(axis=0), rtol=1e-12)
            np.testing.assert_allclose(found.class_variance[c], exact[own == c].var(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.variance, X.var(axis=0), atol=1e-12)
        np.testing.assert_array_equal(found.minimum, X.min(axis=0))
        np.testing.assert_array_equal(found.maximum, X.max(axis=0))


def test_codes_and_weights_that_are_refused():
    design = as_design(data((3, 2)))
    for y in ([0, 1], [[0, 1, 1]], [0.0, 1.0, 1.0], ["a", "b", "a"]):
        with pytest.raises(ValueError, match="'y' must hold 3 integer class codes"):
            design.column_stats(y)
    with pytest.raises(ValueError, match="must not be negative"):
        design.column_stats([0, -1, 1])
    for weight, message in (
        ([1.0, 1.0], "must have length 3"),
        ([1.0, -1e-300, 1.0], "finite and not negative"),
        ([np.inf, 1.0, 1.0], "finite and not negative"),
        ([np.nan, 1.0, 1.0], "finite and not negative"),
        ([0.0, 0.0, 0.0], "not all zero"),
    ):
        with pytest.raises(ValueError, match=message):
            design.column_stats(sample_weight=weight)
    assert design.column_stats([True, False, True]).count.tolist() == [1, 2]
    assert design.column_stats(sample_weight=[0.0, 0.0, 1e-300]).count.tolist() == [1]
