"""Relief against plain loops and against skrebate, and its documented rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils import get_tags

import zeronorm
from oracles.relief import mean_hit_and_miss
from small_problems import noise
from zeronorm import Relief
from zeronorm.engines.neighbours import _kernels as ranges
from zeronorm.engines.neighbours import _search as neighbours
from zeronorm.execution import _threads as threads
from zeronorm.selection._path import SelectionPath
from zeronorm.selectors.filters import _relief as relief


def continuous(seed=0, n=34, p=11, q=3):
    rng = np.random.default_rng(seed)
    y = rng.choice(q, n, p=np.arange(1, q + 1) / (q * (q + 1) / 2))
    y[: 3 * q] = np.arange(3 * q) % q
    return rng.normal(size=(n, p)) * rng.uniform(0.1, 5.0, p) + 3.0 + np.outer(y, rng.normal(size=p)), y


def tied(seed=0, n=30, p=8):
    """Values 0, 1, 2, 3, 4 in every column: exact sums, many ties."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(n, p)).astype(float)
    X[0], X[1] = 0.0, 4.0
    return X, np.arange(n) % 2


def assert_agrees(X, y, k, **settings):
    hit, miss = mean_hit_and_miss(X, y, k, **settings)
    if "discrete" in settings:
        settings["discrete_features"] = settings.pop("discrete")
    difference = Relief(n_neighbors=k, contrast="difference", **settings).fit(X, y)
    constant = np.array([np.unique(column[~np.isnan(column)]).size < 2 for column in np.asarray(X, float).T])
    np.testing.assert_allclose(difference.scores_[~constant], (miss - hit)[~constant], atol=1e-12)
    assert np.all(difference.scores_[constant] <= difference.scores_.min() + 1e-12)  # such columns rank last
    ratio = Relief(n_neighbors=k, contrast="ratio", **settings).fit(X, y).scores_
    proper = hit > 0
    np.testing.assert_allclose(ratio[proper], miss[proper] / hit[proper], rtol=1e-10)
    assert np.all(ratio[(hit == 0) & (miss == 0)] == 0.0)
    if np.any(proper) and np.any(~proper & (miss > 0)):
        assert ratio[~proper & (miss > 0)].min() > ratio[proper].max()


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
@pytest.mark.parametrize("column_scaling", ["range", "none"])
def test_more_classes_with_priors(k, metric, column_scaling):
    X, y = continuous()
    assert_agrees(X, y, k, metric=metric, column_scaling=column_scaling)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_ties_go_to_the_lower_index(k, seed):
    X, y = tied(seed)
    assert_agrees(X, y, k)


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
def test_missing_values(metric):
    X, y = continuous(q=2)
    rng = np.random.default_rng(5)
    X[rng.random(X.shape) < 0.25] = np.nan
    X[:, 4] = np.nan
    assert_agrees(X, y, 2, metric=metric)


def test_samples_without_a_shared_value_are_no_neighbours():
    X, y = continuous(q=2, n=16, p=4)
    X[::3, :2] = np.nan
    X[1::3, 2:] = np.nan
    assert_agrees(X, y, 2)


def test_discrete_columns_with_missing_values():
    X, y = continuous(q=2)
    rng = np.random.default_rng(3)
    discrete = np.arange(X.shape[1]) % 2 == 0
    X[:, discrete] = rng.integers(0, 4, (len(X), discrete.sum()))
    assert_agrees(X, y, 3, discrete=discrete)
    X[rng.random(X.shape) < 0.2] = np.nan
    assert_agrees(X, y, 3, discrete=discrete, metric="euclidean")


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_regression(missing):
    X, _ = continuous()
    rng = np.random.default_rng(1)
    y = X[:, 2] + 0.1 * rng.normal(size=len(X))
    X[rng.random(X.shape) < missing] = np.nan
    assert_agrees(X, y, 4, task="regression")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(4, 20), st.integers(1, 9))
def test_any_small_integer_data(seed, k, n, p):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 3, size=(n, p)).astype(float) * 2.0
    X[X == -2.0] = np.nan if seed % 2 else -2.0
    y = np.arange(n) % 2
    if n > 2 * k + 1:
        assert_agrees(X, y, k, column_scaling="none")


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
def test_more_columns_than_one_sum(metric, monkeypatch):
    monkeypatch.setattr(neighbours, "COLUMNS_PER_SUM", 64)
    X, y = continuous(n=35, p=131)
    assert_agrees(X, y, 3, metric=metric)


def test_tiles_blocks_and_threads_change_nothing(monkeypatch):
    X, y = continuous(n=75, p=130)
    plain = Relief(n_neighbors=5).fit(X, y).scores_
    monkeypatch.setattr(threads, "_WORK_PER_THREAD", 1)
    np.testing.assert_array_equal(Relief(n_neighbors=5, n_jobs=3).fit(X, y).scores_, plain)
    monkeypatch.setattr(neighbours, "_TILE_ENTRIES", 300)
    monkeypatch.setattr(ranges, "_BLOCK_ENTRIES", 64 * 75)
    monkeypatch.setattr(neighbours, "COLUMNS_PER_SUM", 64)
    monkeypatch.setattr(neighbours, "_tile_pairs", lambda n, p, pairs=neighbours._tile_pairs: pairs(n, 4))
    assert len(list(neighbours._tile_pairs(75, 130))) == 15
    np.testing.assert_allclose(Relief(n_neighbors=5).fit(X, y).scores_, plain, rtol=1e-13)
    np.testing.assert_allclose(Relief(n_neighbors=5, n_jobs=2).fit(X, y).scores_, plain, rtol=1e-13)


@pytest.mark.parametrize("missing", [False, True])
def test_blocks_that_many_threads_take_at_once_change_nothing(missing, monkeypatch):
    """More samples than have sums of their own; five blocks, two of them at once and one left over."""
    X, y = continuous(n=520, p=2100)
    if missing:
        X[3, ::7] = np.nan
    plain = Relief(n_neighbors=5).fit(X, y).scores_
    monkeypatch.setattr(threads, "n_cores", lambda: 3)
    monkeypatch.setattr(neighbours, "_DIFFERENCES_PER_THREAD", 512 * 520**2)
    merged, widths = neighbours._Tiles._merged, []

    def spy(self, *sizes):
        blocks = merged(self, *sizes)
        widths.append([block.stop - block.start for block in blocks])
        return blocks

    monkeypatch.setattr(neighbours._Tiles, "_merged", spy)
    monkeypatch.setattr(neighbours, "_MERGED_BYTES", 8 * 2 * 512 * 520)
    np.testing.assert_array_equal(Relief(n_neighbors=5, n_jobs=3).fit(X, y).scores_, plain)
    assert widths == [[1024, 1024, 52]]


def test_sparse_input():
    X, y = continuous()
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0.0
    np.testing.assert_array_equal(
        Relief(n_neighbors=3).fit(sparse.csr_array(X), y).scores_, Relief(n_neighbors=3).fit(X, y).scores_
    )


def test_two_classes_agree_with_skrebate():
    skrebate = pytest.importorskip("skrebate", reason="skrebate is not installed (extra 'bench')")
    X, y = continuous(q=2, n=40)
    reference = skrebate.ReliefF(n_features_to_select=3, n_neighbors=5).fit(X, y)
    ours = Relief(n_neighbors=5, contrast="difference").fit(X, y)
    np.testing.assert_allclose(ours.scores_, reference.feature_importances_, rtol=1e-10)


def test_finds_features_that_matter_only_together():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(300, 12))
    y = X[:, 3] * X[:, 8] > 0
    assert set(Relief(2).fit(X, y).path_.support(2)) == {3, 8}


def test_missing_column_ranks_last():
    X, y = continuous()
    X[:, 6] = np.nan
    s = Relief(n_neighbors=2).fit(X, y)
    assert s.path_.order[-1] == 6
    assert np.isfinite(s.scores_).all()


def test_few_hits_are_used_and_reported():
    X, y = continuous(q=2)
    y = np.where(np.arange(len(y)) < 3, "rare", "common")
    with pytest.warns(UserWarning, match=r"fewer than n_neighbors=5 hits in class .*rare.*3 samples"):
        s = Relief(n_neighbors=5, contrast="difference").fit(X, y)
    hit, miss = mean_hit_and_miss(X, list(y), 5)
    np.testing.assert_allclose(s.scores_, miss - hit, atol=1e-12)


def test_a_sample_alone_in_its_class_is_only_a_miss_of_others():
    X, y = continuous(q=2)
    y = np.where(np.arange(len(y)) == 7, 2, y)
    with pytest.warns(UserWarning, match="1 samples"):
        s = Relief(n_neighbors=1, contrast="difference").fit(X, y)
    hit, miss = mean_hit_and_miss(X, list(y), 1)
    np.testing.assert_allclose(s.scores_, miss - hit, atol=1e-12)
    with pytest.raises(ValueError, match="at least one class must have two samples"):
        Relief(n_neighbors=1).fit(X[:10], np.arange(10))


def test_min_separation_keeps_positions_apart():
    X, y = continuous(p=40, n=60)
    plain = Relief(n_neighbors=2).fit(X, y).path_.order.tolist()
    s = Relief(n_neighbors=2, min_separation=4).fit(X, y)
    chosen = []
    for feature in plain:
        if all(abs(feature - other) >= 4 for other in chosen):
            chosen.append(feature)
    assert s.path_.order[: len(chosen)].tolist() == chosen
    assert s.path_.order[len(chosen) :].tolist() == [f for f in plain if f not in chosen]
    assert np.flatnonzero(s.support_).tolist() == sorted(chosen)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_neighbors": 0},
        {"n_neighbors": 1.5},
        {"contrast": "quotient"},
        {"metric": "cosine"},
        {"column_scaling": "std"},
        {"min_separation": 0},
    ],
)
def test_bad_parameters_are_named(parameters):
    X, y = continuous()
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of Relief"):
        Relief(**parameters).fit(X, y)


def test_constant_target_of_a_regression():
    X, _ = continuous()
    with pytest.raises(ValueError, match="target that varies"):
        Relief(task="regression").fit(X, np.full(len(X), 2.5))


def test_tags_declare_that_missing_values_are_allowed():
    assert get_tags(Relief()).input_tags.allow_nan


@pytest.mark.parametrize("scaling", ["range", "none"])
@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
@pytest.mark.parametrize("discrete", [[], [1, 3], [0, 1, 2, 3]])
def test_distances_are_sums_over_scaled_columns(scaling, metric, discrete):
    """One column has a hundred times the range of the others, one is constant; discrete ones differ or do not."""
    X = np.round(2.0 * noise(16, 4)) * [1.0, 100.0, 0.0, 1.0] + [0.0, 0.0, 7.0, 0.0]
    X[:, [0, 3]] += 0.1 * noise(16, 2, 1) * (len(discrete) < 2)
    is_discrete = np.isin(np.arange(4), discrete)
    assert_agrees(X, np.arange(16) % 2, 2, metric=metric, column_scaling=scaling, discrete=is_discrete)


@pytest.mark.parametrize("cls", [zeronorm.Relief, zeronorm.GramSchmidtRelief])
def test_the_order_of_columns_matters_where_neighbours_are_kept_apart(cls):
    assert not cls()._depends_on_column_order
    assert cls(min_separation=2)._depends_on_column_order
    assert zeronorm.IntervalSelector()._depends_on_column_order


def test_features_are_kept_apart_from_better_ones_that_are_kept():
    path = SelectionPath(order=np.array([2, 3, 0, 4, 1, 5]))
    found = relief.keep_apart(path, 2, np.array([False, False, False, False, True, False]))
    assert found.order.tolist() == [2, 0, 5, 3, 4, 1]
    assert found.selected_size == 3
    same = relief.keep_apart(path, 1, np.zeros(6, dtype=bool))
    assert (same.order.tolist(), same.selected_size) == (path.order.tolist(), 6)


def test_a_long_computation_is_announced_with_an_estimate(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    Relief(n_neighbors=3).fit(X, y)
    monkeypatch.setattr("zeronorm.selectors.filters._relief.SECONDS_PER_DIFFERENCE", 0.01)
    with pytest.warns(UserWarning, match="all pairs of 40 samples in 3 features, which takes about 48 s"):
        Relief(n_neighbors=3).fit(X, y)
