"""FCBF and its discretisation against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import zeronorm
from oracles.information import cut, fcbf, supervised_cuts
from zeronorm import FCBF
from zeronorm.selectors.filters._fcbf import _ranks, _require_few_values


def correlated(seed=0, n=80, p=15, q=3):
    """Informative columns, noisy copies of them, and noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, q, n)
    X = rng.normal(size=(n, p))
    X[:, :5] += np.outer(y, rng.uniform(0.5, 2.5, 5))
    X[:, 5:9] = X[:, :4] + 0.1 * rng.normal(size=(n, 4))
    return X, y


@pytest.mark.parametrize("seed", range(4))
def test_supervised_bins_agree_with_plain_recursion(seed):
    X, y = correlated(seed)
    codes = [cut(column, supervised_cuts(list(zip(column, y, strict=True)))) for column in X.T]
    assert max(max(c) for c in codes) > 0
    relevance, kept = fcbf(codes, y.tolist())
    s = FCBF().fit(X, y)
    np.testing.assert_allclose(s.path_.scores, relevance, atol=1e-12)
    assert s.path_.order[: len(kept)].tolist() == kept
    assert s.support_.sum() == len(kept)


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_categories_as_they_are(seed, threshold):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 200)
    X = rng.integers(0, 4, size=(200, 10)).astype(float)
    X[:, 3] += 4 * y
    X[:, 7] = np.where(rng.random(200) < 0.8, y, X[:, 7])
    X[:, 8] = np.where(rng.random(200) < 0.9, X[:, 7], X[:, 8])
    relevance, kept = fcbf(X.T.tolist(), y.tolist(), threshold)
    s = FCBF(bins=None, threshold=threshold).fit(X, y)
    np.testing.assert_allclose(s.path_.scores, relevance, atol=1e-12)
    assert s.path_.order[: len(kept)].tolist() == kept
    assert s.support_.sum() == len(kept)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_equal_counts(seed, bins):
    """Bins keep equal values together and hold about the same number of distinct values."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 60))
    x = rng.permutation(n).astype(float)
    y = rng.integers(0, 2, n)
    y[:2] = (0, 1)
    expected, _ = fcbf([(np.argsort(np.argsort(x)) * bins // n).tolist()], y.tolist())
    np.testing.assert_allclose(FCBF(bins=bins).fit(x[:, None], y).scores_, expected, atol=1e-12)
    tied = np.round(x / 5.0)
    codes = [int(np.count_nonzero(tied < value)) * bins // n for value in tied]
    expected, _ = fcbf([codes], y.tolist())
    np.testing.assert_allclose(FCBF(bins=bins).fit(tied[:, None], y).scores_, expected, atol=1e-12)


def test_uncertainty_does_not_depend_on_units_or_direction():
    X, y = correlated()
    np.testing.assert_allclose(FCBF().fit(-3.0 * X + 7.0, y).scores_, FCBF().fit(X, y).scores_, atol=1e-9)


def test_path_holds_kept_then_removed_then_irrelevant():
    X, y = correlated()
    X[:, 14] = 1.0
    s = FCBF().fit(X, y)
    kept = int(s.support_.sum())
    relevant = int(np.count_nonzero(s.path_.scores > 0))
    assert kept < relevant < X.shape[1]
    for part in (s.path_.order[:kept], s.path_.order[kept:relevant]):
        assert np.all(np.diff(s.path_.scores[part]) <= 1e-12)
    assert np.all(s.path_.scores[s.path_.order[relevant:]] == 0)
    assert s.path_.order[-1] == 14


def test_forced_features_remove_their_copies():
    X, y = correlated()
    plain = FCBF().fit(X, y)
    first = int(plain.path_.order[0])
    X[:, 10] = X[:, first] ** 3
    s = FCBF(always_keep=[10]).fit(X, y)
    assert s.support_[10]
    assert not s.support_[first]


@pytest.mark.parametrize("bins", ["mdl", 4, None])
def test_sparse_columns(bins):
    X, y = correlated()
    X[np.abs(X) < 1.0] = 0.0
    dense, stored = (FCBF(bins=bins).fit(data, y) for data in (X, sparse.csr_array(X)))
    assert stored.path_.order.tolist() == dense.path_.order.tolist()
    np.testing.assert_array_equal(stored.path_.scores, dense.path_.scores)


@pytest.mark.parametrize(
    "parameters", [{"threshold": -0.1}, {"threshold": 1.0}, {"bins": 1}, {"bins": "auto"}, {"bins": 2.5}]
)
def test_bad_parameters_are_named(parameters):
    X, y = correlated()
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of FCBF"):
        FCBF(**parameters).fit(X, y)


def test_too_many_categories():
    n = 2**15 + 10
    with pytest.raises(ValueError, match=r"at most 32767 different values.*column 1; use bins='mdl'"):
        FCBF(bins=None).fit(np.column_stack([np.zeros(n), np.arange(n)]), np.arange(n) % 2)


def test_values_of_a_column_that_are_too_many_for_categories():
    """A block that begins with column 5; through the public interface this takes a minute."""
    _require_few_values(np.array([3, 32767]), 5)
    with pytest.raises(ValueError, match="Got 32768 in column 6"):
        _require_few_values(np.array([3, 32768, 40000]), 5)


def test_a_relevance_at_the_threshold_is_none():
    """Two independent columns; 1, 4, 7 and 9 of the ten samples of each combination are of the second class."""
    X = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 10, axis=0)
    y = np.concatenate([np.arange(10) < count for count in (1, 4, 7, 9)]).astype(int)
    scores = zeronorm.FCBF(bins=None).fit(X, y).scores_
    assert scores[0] > scores[1] > 0.0
    for threshold, size in ((scores[1], 1), (np.nextafter(scores[1], 0.0), 2)):
        assert zeronorm.FCBF(bins=None, threshold=float(threshold)).fit(X, y).path_.selected_size == size


def test_equal_relevance_is_decided_by_the_second_score():
    relevance = np.array([0.5, 0.7, 0.5 + 1e-14, 0.7 - 1e-9, 0.5])
    found = _ranks(relevance, np.array([1.0, 0.0, 3.0, 9.0, 2.0]))
    assert found.tolist() == [4, 0, 2, 1, 3]
