"""Which columns are constant, which values are usable, and the messages for unusable ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from design.arrays import LABELS, data, samples
from zeronorm import L1SVM, RFE, MarginLP, SVMWeights
from zeronorm.design import _finite as finite
from zeronorm.design import _stats as stats
from zeronorm.design import as_design
from zeronorm.design._dense import DenseDesign
from zeronorm.design._stats_kernels import extremes_of_columns


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_is_constant_up_to_eight_rounding_errors(dtype):
    eps = float(np.finfo(dtype).eps)
    for sign in (1.0, -1.0):
        low, high = (
            np.array([100.0, 100.0, 0.0]),
            np.array([100.0 * (1 + 7 * eps), 100.0 * (1 + 10 * eps), 0.0]),
        )
        ends = np.sort(sign * np.stack([low, high]), axis=0)
        assert stats.is_constant_range(*ends, dtype).tolist() == [True, False, True]
    assert stats.is_constant_range(np.array([1.0]), np.array([2.0]), dtype).tolist() == [False]
    for size in (1e6, 1e-6):  # no column is zero
        near = stats.is_constant_range(np.array([size]), np.array([size * (1 + 6 * eps)]), dtype)
        far = stats.is_constant_range(np.array([size]), np.array([size * (1 + 20 * eps)]), dtype)
        assert (near.tolist(), far.tolist()) == ([True], [False])
        both = np.array([-size]), np.array([-size * (1 - 6 * eps)])
        assert stats.is_constant_range(*both, dtype).tolist() == [True]
    across = stats.is_constant_range(np.array([-1e-20, 5.0]), np.array([1e-20, 5.0]), dtype)
    assert across.tolist() == [False, True]


def extremes(mean, low, high):
    """Whether all columns are usable, the smallest range, the lowest and the highest value."""
    return extremes_of_columns(mean, low, high, 0, mean.size)


def test_extremes_of_all_columns():
    mean, low, high = np.array([1.0, 0.0]), np.array([-3.0, -1.0]), np.array([2.0, 7.0])
    assert extremes(mean, low, high) == (True, 5.0, -3.0, 7.0)
    for change in ((0, np.nan), (1, -2e150), (2, 2e150)):
        parts = [mean.copy(), low.copy(), high.copy()]
        parts[change[0]][1] = change[1]
        assert not extremes(*parts)[0]
    assert np.isnan(extremes(mean, np.array([np.nan, 0.0]), high)[1])
    nothing = np.empty(0)
    assert extremes(nothing, nothing, nothing)[:2] == (True, np.inf)


@pytest.mark.parametrize("order", ["C", "F"])
def test_finite_values_are_seen_whatever_their_layout(order):
    X = np.array(data((6, 8)), order=order)
    for values in (X, X[::2, ::3], X.astype(np.float32)):
        assert finite.is_surely_finite(values)
        for wrong in (np.nan, np.inf):
            spoilt = values.copy(order="K")
            spoilt[1, 1] = wrong
            assert not finite.is_surely_finite(spoilt)
    assert not finite.is_surely_finite(np.full((2, 2), 1e200))
    assert finite.is_surely_finite(np.full((2, 2), 1e30, dtype=np.float32))


def test_the_first_unusable_value_is_named_with_its_column():
    X = data((5, 4))
    names = np.array(["a", "b", "c", "d"], dtype=object)
    for value, text in ((np.nan, "NaN"), (-np.inf, "infinity"), (1e200, "1e[+]200")):
        X[3, 2] = value
        with pytest.raises(ValueError, match=rf"{text}: first found in row 3, column 2 \('c'\)"):
            finite.require_finite(DenseDesign(X, names))
    X[3, 2] = np.nan
    design = DenseDesign(X)
    finite.require_finite(design, allow_nan=True)
    assert not design._known_finite
    X[3, 2] = 1e149
    design = DenseDesign(X)
    finite.require_finite(design)
    assert design._known_finite
    X[:, 1] = 1e-145 * np.arange(5)
    with pytest.raises(ValueError, match=r"4e-145 in column 1 \('b'\)"):
        DenseDesign(X, names).standardized()


def test_the_smallest_range_that_can_be_squared():
    X = np.zeros((4, 2))
    X[:, 1] = np.arange(4.0)
    for width, fits in ((1e-140, True), (0.99e-140, False)):
        X[2, 0] = width
        design = as_design(X)
        if fits:
            assert design.standardized().affine.zero_columns.tolist() == [False, False]
        else:
            with pytest.raises(ValueError, match=r"no more than 9\.9e-141 in column 0"):
                design.standardized()


def test_the_range_of_a_column_is_compared_with_its_own_magnitude():
    """The quick check of all columns together must not decide about single columns."""
    eps = np.finfo(float).eps
    low, high = np.array([0.0, 1.0, 1e9]), np.array([1e-9, 1.0 + 4 * eps, 2e9])
    assert stats.is_constant_range(low, high).tolist() == [False, True, False]
    assert stats.is_constant_range(low[[0, 2]], high[[0, 2]]).tolist() == [False, False]
    assert stats.is_constant_range(-high, -low).tolist() == [False, True, False]
    found = as_design(np.stack([low, high])).column_stats()
    assert found.is_constant().tolist() == [False, True, False]
    for n_roundings, constant in ((8.0, True), (8.5, False)):
        one, less = np.array([1.0]), np.array([1.0 - n_roundings * eps])
        assert stats.is_constant_range(less, one).tolist() == [constant]
        assert stats.is_constant_range(-one, -less).tolist() == [constant]


def test_the_largest_values_that_are_usual():
    for value, usual in (
        (1e150, True),
        (np.nextafter(1e150, 2e150), False),
        (np.inf, False),
        (np.nan, False),
    ):
        zero, one = np.zeros(2), np.array([0.0, value])
        assert extremes(zero, zero, one)[0] == usual
        assert extremes(zero, -one, zero)[0] == usual
    assert not extremes(np.array([np.inf]), np.zeros(1), np.zeros(1))[0]
    found = extremes(np.zeros(2), np.array([-2.0, 1.0]), np.array([-1.5, 4.0]))
    assert found[1:] == (0.5, -2.0, 4.0)


@pytest.mark.parametrize(("allow_nan", "known"), [(False, True), (True, False)])
def test_the_result_of_a_closer_check_is_remembered(allow_nan, known, monkeypatch):
    """The sum of these numbers overflows in single precision, though each of them is finite."""
    design = DenseDesign(np.full((3, 2), np.finfo(np.float32).max))
    assert not design._surely_finite()
    finite.require_finite(design, allow_nan)
    assert design._known_finite == known
    monkeypatch.setattr(finite, "blocks", None)
    if known:
        finite.require_finite(design)  # reads nothing
    monkeypatch.undo()
    plain = DenseDesign(np.ones((3, 2)))
    finite.require_finite(plain, allow_nan)
    assert plain._known_finite


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("method", [RFE, L1SVM, SVMWeights, MarginLP])
def test_unchecked_designs_are_checked_when_they_are_used(make, value, standardize, method):
    X = samples()
    X[7, 4] = value
    design = as_design(make(X), check_finite=False)
    with pytest.raises(ValueError, match="first found in row 7, column 4"):
        method(n_features_to_select=3, standardize=standardize).fit(design, LABELS)


def test_a_checked_design_is_not_read_again(monkeypatch):
    design = as_design(samples())

    def refuse(self):
        raise AssertionError("the data were read once more")

    monkeypatch.setattr(type(design), "_surely_finite", refuse)
    L1SVM(3, standardize=False).fit(design.take(slice(2, None)).take_rows(slice(0, 20)), LABELS[:20])


def test_selections_of_finite_data_are_known_to_be_finite():
    X = np.ones((4, 3))
    for check in (True, False):
        design = as_design(X, check_finite=check)
        for part in (design.take([2, 0]), design.take_rows([1]), design.in_memory(), design.standardized()):
            assert part._known_finite == check
        assert design.take(slice(None)) is design
    assert as_design(design) is design


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite(make, value, word):
    X = np.ones((4, 3))
    X[2, 1] = value
    with pytest.raises(ValueError, match=f"contains {word}: first found in row 2, column 1 \\('dose'\\)"):
        as_design(make(X), feature_names=["age", "dose", "weight"])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_nan_passes_when_allowed_but_infinity_does_not(make):
    X = np.ones((4, 3))
    X[2, 1] = np.nan
    assert np.isnan(as_design(make(X), allow_nan=True).block([1])[2, 0])
    X[0, 2] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        as_design(make(X), allow_nan=True)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_values_whose_squares_overflow_are_refused(make):
    X = np.full((3, 2), 1e150)
    assert as_design(make(X)).shape == (3, 2)
    X[2, 1] = -1e308
    with pytest.raises(ValueError, match=r"contains -1e\+308: first found in row 2, column 1.*rescale"):
        as_design(make(X))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_columns_whose_squared_differences_underflow_are_refused(make):
    X = np.arange(12.0).reshape(4, 3)
    X[:, 0], X[:, 2] = 0.0, 1e-200  # constant columns have no differences
    assert as_design(make(X)).standardized().affine.zero_columns.tolist() == [True, False, True]
    X[:, 1] *= 1e-160
    design = as_design(make(X), feature_names=["age", "dose", "weight"])
    with pytest.raises(ValueError, match=r"no more than 9e-160 in column 1 \('dose'\).*rescale such columns"):
        design.standardized()


def test_large_values_of_single_precision_pass():
    X = np.full((30, 20), np.finfo(np.float32).max)
    assert np.isfinite(as_design(X).gram()).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_standardizing_names_what_an_unchecked_design_holds(value):
    X = np.arange(12.0).reshape(4, 3)
    X[2, 1] = value
    design = as_design(X, check_finite=False)
    with pytest.raises(ValueError, match="first found in row 2, column 1"):
        design.standardized()
