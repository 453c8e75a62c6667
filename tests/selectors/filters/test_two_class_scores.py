"""Golub's and Welch's scores, and the ratio that both share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.stats import ttest_ind

import zeronorm
from small_problems import noise
from zeronorm import GolubScore, WelchScore
from zeronorm.engines._column_information import safe_ratio


def two_classes(seed=0, n=31, p=15):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    scale = np.where(y[:, None] == 1, rng.uniform(0.1, 3.0, p), rng.uniform(0.1, 3.0, p))
    return rng.normal(size=(n, p)) * scale + np.outer(y, rng.normal(size=p)), y


@pytest.mark.parametrize("seed", range(3))
def test_golub_formula(seed):
    X, y = two_classes(seed)
    a, b = X[y == 1], X[y == 0]
    expected = np.abs(a.mean(0) - b.mean(0)) / (a.std(0) + b.std(0))
    np.testing.assert_allclose(GolubScore().fit(X, y).scores_, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_welch_agrees_with_scipy(seed):
    X, y = two_classes(seed)
    expected = ttest_ind(X[y == 1], X[y == 0], equal_var=False)
    s = WelchScore().fit(X, y)
    np.testing.assert_allclose(s.scores_, np.abs(expected.statistic), rtol=1e-12)
    np.testing.assert_allclose(s.pvalues_, expected.pvalue, rtol=1e-9)


def test_welch_weights_equal_repeated_samples():
    X, y = two_classes()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    weighted = WelchScore().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        weighted.pvalues_, WelchScore().fit(X[repeated], y[repeated]).pvalues_, rtol=1e-9
    )


def test_welch_p_values_of_degenerate_columns():
    X, y = two_classes()
    X[:, 0], X[:, 1] = 3.0, y
    s = WelchScore().fit(X, y)
    assert s.pvalues_[0] == 1.0
    assert s.pvalues_[1] == 0.0
    assert np.argmax(s.scores_) == 1
    assert s.path_.order[-1] == 0


@pytest.mark.parametrize("method", [GolubScore, WelchScore])
def test_sparse_columns_score_as_dense_ones(method):
    X, y = two_classes()
    X[np.abs(X) < 0.5] = 0.0
    np.testing.assert_allclose(
        method().fit(sparse.csc_array(X), y).scores_, method().fit(X, y).scores_, rtol=1e-10
    )


def test_welch_refuses_a_class_of_one_sample():
    X, y = two_classes()
    y = np.where(np.arange(len(y)) == 4, "rare", "common")
    with pytest.raises(ValueError, match=r"at least two samples of each.*'rare'.*GolubScore"):
        WelchScore().fit(X, y)


def test_golub_takes_a_class_of_one_sample_as_without_variance():
    X, _ = two_classes()
    y = np.arange(len(X)) == 4
    expected = np.abs(X[4] - X[~y].mean(0)) / X[~y].std(0)
    np.testing.assert_allclose(GolubScore().fit(X, y).scores_, expected, rtol=1e-12)


@given(
    st.lists(st.tuples(st.floats(0, 1e300), st.floats(0, 1e300)), min_size=1, max_size=20),
)
def test_safe_ratio_is_finite_and_keeps_the_order(pairs):
    numerator, denominator = np.asarray(pairs).T
    ratio = safe_ratio(numerator, denominator)
    assert not np.isnan(ratio).any()
    proper = (denominator > 0) & np.isfinite(ratio)
    with np.errstate(all="ignore"):
        plain = numerator / denominator
    finite = proper & np.isfinite(plain)
    np.testing.assert_array_equal(ratio[finite], plain[finite])
    perfect = (numerator > 0) & ~np.isfinite(plain)
    if perfect.any() and finite.any():
        assert ratio[perfect].min() > ratio[finite].max()
    assert np.all(ratio[numerator == 0] == 0)


def test_variances_of_two_classes_need_two_samples_each():
    X, y = noise(5), np.array([0, 0, 1, 1, 1])
    zeronorm.WelchScore().fit(X, y)
    with pytest.raises(ValueError, match="Got weight 1 for class"):
        zeronorm.WelchScore().fit(X[1:], y[1:])
    X[:, 1] = y  # no variance within the classes
    X[:, 2] = 7.0
    p_values = zeronorm.WelchScore().fit(X, y).pvalues_
    assert (p_values[1], p_values[2]) == (0.0, 1.0)
    assert p_values[0] == pytest.approx(stats.ttest_ind(X[:2, 0], X[2:, 0], equal_var=False).pvalue)


def test_the_class_without_a_variance_is_named():
    with pytest.raises(ValueError, match="Got weight 1 for class 'q'"):
        zeronorm.WelchScore().fit(noise(4), list("ppqp"))
    with pytest.raises(ValueError, match=r"Got weight 1 for class .*1\b"):
        zeronorm.WelchScore().fit(noise(4), [0, 0, 1, 0])
