"""Arrays of other libraries fulfil the contract with functions of the array API standard, on their device."""

from __future__ import annotations

import numpy as np
import pytest

from design.arrays import numbers
from zeronorm import FisherScore, GramSchmidt, Relief, as_design
from zeronorm.design import _array_api as array_api
from zeronorm.design import _ways as ways
from zeronorm.design import column_range
from zeronorm.design._array_api import ArrayApiDesign
from zeronorm.design._backend import Backend
from zeronorm.design._index import MANY, by_descending_value
from zeronorm.testing import check_design

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")


@pytest.mark.parametrize("shape", [(9, 12), (20, 3), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_contract(xp, shape, dtype):
    X = numbers(shape, dtype)
    check_design(lambda: as_design(xp.asarray(X)), X)


@pytest.mark.parametrize("offset", [1.0, 1e3])
def test_the_contract_of_the_standardized_view(xp, offset):
    X = numbers((12, 9), np.float32) + np.float32(offset)
    view = as_design(X).standardized()
    check_design(
        lambda: as_design(xp.asarray(X)).standardized(),
        (X.astype(float) - view.affine.mean) / view.affine.scale,
    )


def test_eigenvalues_of_large_matrices_are_found_on_the_device(xp, monkeypatch):
    X = numbers((401, 420))
    design = as_design(xp.asarray(X)).standardized()
    K = design.gram()
    expected, directions = np.linalg.eigh(K)
    monkeypatch.setattr(Backend, "eigen", lambda self, matrix: pytest.fail("on the host"))
    values, vectors = design.backend.eigen(K)
    np.testing.assert_allclose(values, expected, atol=1e-10)
    np.testing.assert_allclose(np.abs(np.diagonal(vectors.T @ directions))[1:], 1.0)  # the first is zero
    monkeypatch.setattr(Backend, "eigen", lambda self, matrix: ("from", "host"))
    assert design.backend.eigen(K[:400, :400]) == ("from", "host")

    def out_of_memory(values, like):
        raise MemoryError("no room")

    monkeypatch.setattr(array_api, "on_device", out_of_memory)
    assert design.backend.eigen(K) == ("from", "host")


@pytest.mark.parametrize("kind", ["normal", "ties", "missing", "few"])
def test_many_numbers_are_sorted_on_the_device_as_on_the_host(xp, kind, monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=MANY)
    if kind == "ties":
        values = np.round(values, 1) + 0.0  # no negative zeros
    if kind == "missing":
        values[5] = np.nan
    if kind == "few":
        values = values[1:]
    design = as_design(xp.asarray(numbers((9, 12)))).standardized()
    sent, on_device = [], array_api.on_device
    monkeypatch.setattr(array_api, "on_device", lambda v, like: sent.append(v.size) or on_device(v, like))
    for apart in (False, True):
        monkeypatch.setattr(array_api, "has_own_memory", lambda array, apart=apart: apart)
        order, descending = design.backend.by_descending_value(values)
        expected = by_descending_value(values)
        np.testing.assert_array_equal(order, expected[0])
        np.testing.assert_array_equal(descending, expected[1])
        assert sent == ([MANY] if apart and kind in ("normal", "ties") else [])

    def out_of_memory(values, like):
        raise MemoryError("no room")

    monkeypatch.setattr(array_api, "on_device", out_of_memory)
    np.testing.assert_array_equal(
        design.backend.by_descending_value(values)[0], by_descending_value(values)[0]
    )


def test_products_in_single_precision_where_double_is_slow(xp, monkeypatch):
    monkeypatch.setattr(array_api, "has_fast_double", lambda array: False)
    for shape in ((9, 12), (9, 1100)):  # sums of 1024 products are added in double precision
        X = numbers(shape, np.float32)
        check_design(lambda X=X: as_design(xp.asarray(X)), X, rtol=3e-6)
    X = numbers((9, 12), np.float64)  # data in double precision are multiplied in double precision
    check_design(lambda: as_design(xp.asarray(X)), X)


def test_no_operation_of_the_standardized_view_brings_data_to_the_host(xp, monkeypatch):
    X = numbers((30, 40), np.float32) + np.float32(500.0)
    design = as_design(xp.asarray(X)).standardized()

    def refuse(*_):
        raise AssertionError("a block came to the host")

    monkeypatch.setattr(ArrayApiDesign, "_fill", refuse)
    for view in (design, design.take([3, 30, 7]), design.take_rows(np.arange(30)[::-1])):
        n, p = view.shape
        view.gram()
        view.gram(np.arange(p) + 1.0)
        view.cross_gram(view.take_rows([1, 2]))
        view.gram_adjoint(np.eye(n))
        view.dot(np.ones(p))
        view.transpose_dot(np.ones((n, 2)))
        view.sandwich(np.ones(n))
        view.squared_norms()
        column_range(view)
        view.column_stats(np.arange(n) % 3, np.arange(n) + 1.0)


def test_a_rescaled_view_of_the_standardized_view_computes_on_the_device(xp):
    X = numbers((20, 7))
    X[:, 3] = 2.0
    scale = np.linspace(0.5, 2.0, 7)
    view, host = (
        as_design(values).standardized().transformed(np.zeros(7), scale) for values in (xp.asarray(X), X)
    )
    assert isinstance(view, ArrayApiDesign)
    d = np.linspace(0.0, 1.0, 20)
    np.testing.assert_allclose(view.sandwich(d), host.sandwich(d), atol=1e-12)
    np.testing.assert_allclose(view.gram(), host.gram(), atol=1e-12)
    np.testing.assert_allclose(
        view.take([5, 3]).transpose_dot(d), host.take([5, 3]).transpose_dot(d), atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool])
def test_other_types_are_converted(xp, dtype):
    X = (numbers((9, 12)) > 0.5).astype(dtype)
    design = as_design(xp.asarray(X))
    assert isinstance(design, ArrayApiDesign)
    assert design.dtype == np.float64
    np.testing.assert_array_equal(design.block(slice(None)), X)


def test_float32_products_are_computed_in_double_precision(xp):
    X = numbers((5, 3000), np.float32)
    expected = X.astype(np.float64) @ X.T.astype(np.float64)
    np.testing.assert_allclose(as_design(xp.asarray(X)).gram(), expected, rtol=1e-12)


def test_statistics_next_to_large_means_and_distant_classes(xp):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 5)) + 1e8 * y[:, None] + 1e6
    found, expected = as_design(xp.asarray(X)).column_stats(y), as_design(X).column_stats(y)
    np.testing.assert_allclose(found.class_variance, expected.class_variance, rtol=1e-9)


def test_selectors_take_foreign_arrays(xp):
    X = numbers((40, 30))
    y = np.arange(40) % 2
    X[:, 12] += 3.0 * y
    for selector in (FisherScore(5), GramSchmidt(5)):
        expected = selector.fit(X, y).path_.order.tolist()
        assert selector.fit(xp.asarray(X), y).path_.order.tolist() == expected


def test_wrong_kinds_are_refused(xp):
    with pytest.raises(ValueError, match=r"must be two-dimensional.*Got 1 dimension"):
        as_design(xp.ones(5))
    with pytest.raises(ValueError, match="complex128"):
        as_design(xp.ones((2, 2), dtype=xp.complex128))


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity"), (1e200, r"1e\+200")])
def test_values_that_are_not_finite_are_named(xp, value, word):
    X = numbers((9, 12))
    X[2, 7] = value
    with pytest.raises(ValueError, match=f"contains {word}: first found in row 2, column 7"):
        as_design(xp.asarray(X))


@pytest.mark.parametrize("squared", [False, True])
def test_differences_of_samples(xp, squared, monkeypatch):
    monkeypatch.setattr(array_api, "block_bytes", lambda array, *wanted: 2000)
    X = numbers((11, 70), np.float32)
    scale = np.linspace(0.1, 2.0, 70)
    design = as_design(xp.asarray(X))
    exact = X.astype(np.float64) * scale
    difference = np.abs(exact[:, None] - exact[None])
    expected = (difference**2 if squared else difference).sum(axis=2)
    np.testing.assert_allclose(design.distances(scale, squared=squared), expected, rtol=1e-12)
    first, second = np.array([0, 3, 3, 10]), np.array([1, 2, 9, 10])
    weights = np.array([1.0, 0.5, 2.0, 3.0])
    expected = weights @ np.abs(X.astype(np.float64)[first] - X[second])
    np.testing.assert_allclose(design.difference_sums(first, second, weights), expected, rtol=1e-12)


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_relief_compares_samples_on_the_device(xp, metric, task, monkeypatch):
    X = numbers((41, 60), np.float32)
    y = np.arange(41) % 3 if task == "classification" else X[:, 0] + 0.1 * X[:, 1]
    X[:, 12] += 3.0 * np.asarray(y, dtype=np.float32)
    relief = Relief(5, metric=metric, task=task, n_neighbors=5)
    expected = relief.fit(X, y).path_.scores
    foreign = xp.asarray(X)

    def refuse(*_):
        raise AssertionError("a block came to the host")

    monkeypatch.setattr(ArrayApiDesign, "_fill", refuse)
    np.testing.assert_allclose(relief.fit(foreign, y).path_.scores, expected, rtol=1e-9)


@pytest.mark.parametrize("n_pairs", [0, 1, 4, 5, 6, 13])
def test_more_pairs_than_samples(xp, n_pairs):
    X, rng = numbers((5, 7)), np.random.default_rng(1)
    first, second = rng.integers(0, 5, n_pairs), rng.integers(0, 5, n_pairs)
    weights = rng.uniform(size=n_pairs)
    design = as_design(xp.asarray(X))
    for part, exact in ((design, X), (design.take_rows([4, 3, 2, 1, 0]).take([6, 0]), X[::-1][:, [6, 0]])):
        found = part.difference_sums(first, second, weights)
        np.testing.assert_allclose(found, weights @ np.abs(exact[first] - exact[second]), atol=1e-12)


@pytest.mark.parametrize("n_chosen", [0, 1, 3, 4, 5, 9])
def test_features_of_weight_zero_are_left_out_if_they_are_the_majority(xp, n_chosen, monkeypatch):
    X = numbers((5, 9))
    scale = np.where(np.arange(9) < n_chosen, 1.5, 0.0)
    taken, take = [], ArrayApiDesign._take
    monkeypatch.setattr(ArrayApiDesign, "_take", lambda self, c: taken.append(len(c)) or take(self, c))
    np.testing.assert_allclose(as_design(xp.asarray(X)).gram(scale), (X * scale) @ X.T, atol=1e-12)
    assert taken == ([n_chosen] if n_chosen < 4 else [])


def test_moments_count_samples_of_positive_weight_and_centre_by_the_heaviest(xp):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    X[:50] += 1e6
    weights = np.where(np.arange(100) < 50, 1e-20, 1.0)
    found = as_design(xp.asarray(X)).column_stats(sample_weight=weights)
    expected = np.cov(X.T, aweights=weights, ddof=0).diagonal()
    np.testing.assert_allclose(found.variance, expected, rtol=1e-9)
    X[7], weights[7] = 1e9, 0.0
    X[8], weights[8] = -1e9, 0.0
    found = as_design(xp.asarray(X)).column_stats(np.arange(100) % 2, weights)
    counted = weights > 0.0
    np.testing.assert_array_equal(found.minimum, X[counted].min(axis=0))
    np.testing.assert_array_equal(found.maximum, X[counted].max(axis=0))
    assert found.count.tolist() == [49, 49]


def test_equal_numbers_are_their_own_mean(xp):
    """Also numbers whose mean is rounded, with and without an empty class."""
    X = numbers((7, 4))
    X[:, 1], X[:, 2] = 0.1, np.arange(7) % 2 * 2 + 0.1
    found = as_design(xp.asarray(X)).column_stats(np.arange(7) % 2 * 2)
    assert found.mean[1] == 0.1
    assert found.class_mean[:, 1].tolist() == [0.1, 0.0, 0.1]
    assert found.variance[1] == 0.0
    assert not found.class_variance[:, 1].any()
    assert found.variance[2] > 0.9
    nothing = as_design(xp.asarray(X)).take([]).column_stats(np.arange(7) % 2)
    assert (nothing.class_mean.shape, nothing.class_variance.shape, nothing.mean.shape) == (
        (2, 0),
        (2, 0),
        (0,),
    )
    missing = X.copy()
    missing[:, 3] = np.nan
    found = as_design(xp.asarray(missing), allow_nan=True).column_stats()
    assert np.isnan(found.mean[3])


def test_the_largest_values_that_are_surely_finite(xp):
    for value, sure in ((1e150, True), (-1e150, True), (1.1e150, False), (-1.1e150, False), (np.nan, False)):
        X = numbers((3, 2))
        X[1, 1] = value
        assert as_design(xp.asarray(X), check_finite=False)._surely_finite() == sure


def test_up_to_which_means_products_are_corrected_on_a_device(xp):
    design = as_design(xp.asarray(np.eye(3)))
    for mean, corrected in ((1e4, True), (-1e4, True), (1.1e4, False)):
        view = design.transformed(np.full(3, mean), np.ones(3))
        assert ways.corrects_vectors(view) == corrected
        assert not ways.corrects(view)
        np.testing.assert_allclose(view.dot(np.ones(3)), 1.0 - 3.0 * mean, rtol=1e-12)


def test_a_product_with_a_design_of_the_host(xp):
    X, Z = numbers((5, 7)), numbers((4, 7), seed=1)
    left, right = as_design(xp.asarray(X)), as_design(Z)
    np.testing.assert_allclose(left.cross_gram(right), X @ Z.T, atol=1e-12)
    scale = np.arange(7.0)
    np.testing.assert_allclose(left.cross_gram(right, scale), (X * scale) @ Z.T, atol=1e-12)
    np.testing.assert_allclose(right.cross_gram(left, scale), (Z * scale) @ X.T, atol=1e-12)
    view, exact = right.standardized(), (Z - Z.mean(axis=0)) / Z.std(axis=0)
    np.testing.assert_allclose(left.cross_gram(view), X @ exact.T, atol=1e-12)
    nothing = left.take([]).cross_gram(right.take([]))
    np.testing.assert_array_equal(nothing, np.zeros((5, 4)))


def test_statistics_of_a_view_that_is_computed_on_the_device(xp):
    X, y, weights = numbers((9, 5)), np.arange(9) % 2, np.arange(9) + 1.0
    shift, factor = np.linspace(-1.0, 1.0, 5), np.linspace(0.5, 2.0, 5)
    design = as_design(xp.asarray(X))
    found = design.transformed(shift, 1.0 / factor).column_stats(y, weights)
    expected = as_design((X - shift) * factor).column_stats(y, weights)
    for name in ("mean", "variance", "minimum", "maximum", "class_mean", "class_variance"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    part = design.transformed(shift, 1.0 / factor).take([3, 0])
    np.testing.assert_allclose(part.column_stats().mean, ((X - shift) * factor).mean(axis=0)[[3, 0]])
