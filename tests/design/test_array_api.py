"""Arrays of other libraries keep the contract through the array API standard alone."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import FisherScore, GramSchmidt, as_design
from zeronorm.design.array_api import ArrayApiDesign
from zeronorm.testing import check_design

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")


def data(shape=(9, 12), dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0).astype(dtype)


@pytest.mark.parametrize("shape", [(9, 12), (20, 3), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_contract(shape, dtype):
    X = data(shape, dtype)
    check_design(lambda: as_design(xp.asarray(X)), X)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool])
def test_other_types_are_converted(dtype):
    X = (data() > 0.5).astype(dtype)
    design = as_design(xp.asarray(X))
    assert isinstance(design, ArrayApiDesign)
    assert design.dtype == np.float64
    np.testing.assert_array_equal(design.block(slice(None)), X)


def test_float32_products_are_computed_in_double_precision():
    X = data((5, 3000), np.float32)
    expected = X.astype(np.float64) @ X.T.astype(np.float64)
    np.testing.assert_allclose(as_design(xp.asarray(X)).gram(), expected, rtol=1e-12)


def test_selectors_take_foreign_arrays():
    X = data((40, 30))
    y = np.arange(40) % 2
    X[:, 12] += 3.0 * y
    for selector in (FisherScore(5), GramSchmidt(5)):
        expected = selector.fit(X, y).path_.order.tolist()
        assert selector.fit(xp.asarray(X), y).path_.order.tolist() == expected


def test_wrong_kinds_are_refused():
    with pytest.raises(ValueError, match=r"must be two-dimensional.*Got 1 dimension"):
        as_design(xp.ones(5))
    with pytest.raises(ValueError, match="complex128"):
        as_design(xp.ones((2, 2), dtype=xp.complex128))


def test_values_that_are_not_finite_are_named():
    X = data()
    X[2, 7] = np.nan
    with pytest.raises(ValueError, match="contains NaN: first found in row 2, column 7"):
        as_design(xp.asarray(X))
