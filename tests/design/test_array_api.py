"""Arrays of other libraries keep the contract through the array API standard alone, where they live."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import FisherScore, GramSchmidt, Relief, as_design
from zeronorm.design import StandardizedDesign, array_api, convert, gathered
from zeronorm.design.array_api import ArrayApiDesign
from zeronorm.testing import check_design

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


def data(shape=(9, 12), dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0).astype(dtype)


@pytest.mark.parametrize("shape", [(9, 12), (20, 3), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_contract(xp, shape, dtype):
    X = data(shape, dtype)
    check_design(lambda: as_design(xp.asarray(X)), X)


@pytest.mark.parametrize("offset", [1.0, 1e3])
def test_the_contract_of_the_standardized_view(xp, offset):
    X = data((12, 9), np.float32) + np.float32(offset)
    view = as_design(X).standardized()
    check_design(lambda: as_design(xp.asarray(X)).standardized(), (X.astype(float) - view.mean) / view.scale)


def test_blocks_of_few_columns_and_rows(xp, monkeypatch):
    monkeypatch.setattr(array_api, "block_bytes", lambda array, *wanted: 200)
    X = data((7, 23))
    check_design(lambda: as_design(xp.asarray(X)), X)


def test_products_in_single_precision_where_double_is_slow(xp, monkeypatch):
    monkeypatch.setattr(array_api, "has_fast_double", lambda array: False)
    monkeypatch.setattr(array_api, "_SINGLE_SUM", 5)
    X = data((9, 12), np.float32)
    check_design(lambda: as_design(xp.asarray(X)), X, rtol=3e-6)
    X = data((9, 12), np.float64)  # who brings double precision gets it
    check_design(lambda: as_design(xp.asarray(X)), X)


def test_no_operation_of_the_standardized_view_brings_data_to_the_host(xp, monkeypatch):
    X = data((30, 40), np.float32) + np.float32(500.0)
    design = as_design(xp.asarray(X)).standardized()

    def refuse(*_):
        raise AssertionError("a block came to the host")

    monkeypatch.setattr(ArrayApiDesign, "_fill", refuse)
    monkeypatch.setattr(StandardizedDesign, "_fill", refuse)
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
        view.column_range()
        view.column_stats(np.arange(n) % 3, np.arange(n) + 1.0)


def test_a_rescaled_view_of_the_standardized_view_computes_where_the_data_live(xp):
    X = data((20, 7))
    X[:, 3] = 2.0
    scale = np.linspace(0.5, 2.0, 7)
    view, host = (
        StandardizedDesign(as_design(values).standardized(), np.zeros(7), scale)
        for values in (xp.asarray(X), X)
    )
    assert isinstance(view._fused(), ArrayApiDesign)
    d = np.linspace(0.0, 1.0, 20)
    np.testing.assert_allclose(view.sandwich(d), host.sandwich(d), atol=1e-12)
    np.testing.assert_allclose(view.gram(), host.gram(), atol=1e-12)
    np.testing.assert_allclose(
        view.take([5, 3]).transpose_dot(d), host.take([5, 3]).transpose_dot(d), atol=1e-12
    )


def test_too_little_memory_is_met_with_smaller_blocks(xp, monkeypatch):
    X = data((6, 40))
    double = ArrayApiDesign._double

    def scarce(self, columns):
        if len(columns) > 3:
            raise MemoryError
        return double(self, columns)

    monkeypatch.setattr(ArrayApiDesign, "_double", scarce)
    design = as_design(xp.asarray(X))
    np.testing.assert_allclose(design.gram(), X @ X.T, rtol=1e-12)
    np.testing.assert_allclose(design.transpose_dot(X[:, 0]), X.T @ X[:, 0], rtol=1e-12)

    def none_left(self, columns):
        raise MemoryError

    monkeypatch.setattr(ArrayApiDesign, "_double", none_left)
    with pytest.raises(MemoryError, match=r"memory of the device .* does not suffice.*move the data"):
        design.gram()


def test_large_selections_stay_where_they_are(xp, monkeypatch):
    X = data((8, 30))
    design = as_design(xp.asarray(X)).standardized().take([4, 1, 20, 8])
    assert type(design.resident()).__name__ == "DenseDesign"
    monkeypatch.setattr(array_api, "SMALL_COPY_BYTES", 10)
    monkeypatch.setattr(convert, "SMALL_COPY_BYTES", 10)
    for resident in (design.resident(), gathered(design)):
        assert isinstance(resident.base, ArrayApiDesign)
        assert resident.base._array.shape == (8, 4)
        np.testing.assert_allclose(resident.gram(), design.gram(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool])
def test_other_types_are_converted(xp, dtype):
    X = (data() > 0.5).astype(dtype)
    design = as_design(xp.asarray(X))
    assert isinstance(design, ArrayApiDesign)
    assert design.dtype == np.float64
    np.testing.assert_array_equal(design.block(slice(None)), X)


def test_float32_products_are_computed_in_double_precision(xp):
    X = data((5, 3000), np.float32)
    expected = X.astype(np.float64) @ X.T.astype(np.float64)
    np.testing.assert_allclose(as_design(xp.asarray(X)).gram(), expected, rtol=1e-12)


def test_statistics_next_to_large_means_and_distant_classes(xp):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 5)) + 1e8 * y[:, None] + 1e6
    found, expected = as_design(xp.asarray(X)).column_stats(y), as_design(X).column_stats(y)
    np.testing.assert_allclose(found.class_variance, expected.class_variance, rtol=1e-9)


def test_selectors_take_foreign_arrays(xp):
    X = data((40, 30))
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
    X = data()
    X[2, 7] = value
    with pytest.raises(ValueError, match=f"contains {word}: first found in row 2, column 7"):
        as_design(xp.asarray(X))


@pytest.mark.parametrize("squared", [False, True])
def test_differences_of_samples(xp, squared, monkeypatch):
    monkeypatch.setattr(array_api, "block_bytes", lambda array, *wanted: 2000)
    X = data((11, 70), np.float32)
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
def test_relief_compares_samples_where_they_are(xp, metric, task, monkeypatch):
    X = data((41, 60), np.float32)
    y = np.arange(41) % 3 if task == "classification" else X[:, 0] + 0.1 * X[:, 1]
    X[:, 12] += 3.0 * np.asarray(y, dtype=np.float32)
    relief = Relief(5, metric=metric, task=task, n_neighbors=5)
    expected = relief.fit(X, y).path_.scores
    foreign = xp.asarray(X)

    def refuse(*_):
        raise AssertionError("a block came to the host")

    monkeypatch.setattr(ArrayApiDesign, "_fill", refuse)
    np.testing.assert_allclose(relief.fit(foreign, y).path_.scores, expected, rtol=1e-9)
