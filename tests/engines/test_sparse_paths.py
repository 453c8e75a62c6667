"""Copies of columns, and paths from iterates of shrinking support."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from zeronorm import AROM, KernelMultiplicativeUpdate, ZeroNormSVM
from zeronorm.design import as_design, pack
from zeronorm.engines import _sparse_paths as sparse_paths
from zeronorm.engines._sparse_paths import first_copies
from zeronorm.engines.rescaling._iteration import IteratePath


def test_first_copies():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 9))
    X[:, 5], X[:, 8], X[:, 7] = X[:, 2], X[:, 2], 0.0
    assert first_copies(as_design(X)).tolist() == [0, 1, 2, 3, 4, 2, 6, 7, 2]
    assert first_copies(as_design(X * 1e-9)).tolist() == [0, 1, 2, 3, 4, 2, 6, 7, 2]


def test_first_copies_up_to_sign_and_shift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 7))
    X[:, 1] = X[:, 1] > 0.0
    X[:, 4], X[:, 5], X[:, 6] = 1.0 - X[:, 1], -X[:, 0], X[:, 0] + 3.0
    assert first_copies(as_design(X)).tolist() == [0, 1, 2, 3, 1, 0, 0]
    assert first_copies(as_design(X), shifted=False).tolist() == [0, 1, 2, 3, 4, 0, 6]
    X[:, 2] *= 1e9  # one column of another unit does not make all others look alike
    assert first_copies(as_design(X)).tolist() == [0, 1, 2, 3, 1, 0, 0]
    X[:, 3] = 7.0
    assert first_copies(as_design(np.hstack([X, X[:, 3:4]])))[[3, 7]].tolist() == [3, 7]


def test_candidates_on_disk_are_read_only_when_two_products_agree(tmp_path, monkeypatch):
    """Many columns agree in one product with a vector by chance; the copies found are the same as in memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 400))
    X[:, 7], X[:, 90], X[:, 390], X[:, 50:52] = -X[:, 3], 2.0 * X[:, 3] + 1.0, X[:, 200], 4.0
    expected = first_copies(as_design(X).standardized())
    assert expected[[7, 90, 390]].tolist() == [3, 3, 200]
    monkeypatch.setattr(sparse_paths, "CLOSE", 1e-3)
    design = as_design(pack(X, tmp_path / "x.zncols")).standardized()
    assert design.backend.is_on_disk
    linked, link = [], sparse_paths._link
    monkeypatch.setattr(sparse_paths, "_link", lambda *given: linked.append(given[1]) or link(*given))
    np.testing.assert_array_equal(first_copies(design), expected)
    assert len(linked) == 2
    linked.clear()
    np.testing.assert_array_equal(first_copies(as_design(X).standardized()), expected)
    assert len(linked) > 20


def noisy(n=40, p=30, *, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, 0] + 0.7 * X[:, 1] + noise * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


@pytest.mark.parametrize("method", [AROM, ZeroNormSVM])
def test_mirrored_columns_and_complements_are_one_feature(method):
    X, y = noisy(150, 20, noise=0.2)
    X[:, 1] = X[:, 1] > 0.0
    X[:, 7], X[:, 9] = -X[:, 0], 1.0 - X[:, 1]
    selector = method(2).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [0, 1]
    assert selector.representative_[[7, 9]].tolist() == [0, 1]
    assert set(selector.path_.order[-2:].tolist()) == {7, 9}


@pytest.mark.parametrize("values", ["real", "binary"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "selector", [AROM(3), ZeroNormSVM(3), KernelMultiplicativeUpdate(3, kernel="linear")], ids=repr
)
def test_order_sign_shift_and_unit_of_the_columns_do_not_matter(selector, seed, values):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 40)) if values == "real" else rng.integers(0, 2, size=(24, 40)).astype(float)
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=24) > np.median(X[:, 0] + X[:, 1])).astype(int)
    columns, signs = rng.permutation(40), rng.choice([-1.0, 1.0], size=40)
    shift, unit = rng.normal(size=40), rng.uniform(0.1, 10.0, size=40)
    plain = np.flatnonzero(clone(selector).fit(X, y).support_)
    moved = columns[clone(selector).fit((X * signs * unit + shift)[:, columns], y).support_]

    def content(chosen):  # of copies either may be selected
        return {tuple((X[:, k] != X[0, k]).tolist()) for k in chosen}

    if values == "real":
        assert set(plain.tolist()) == set(moved.tolist())
    else:
        assert content(plain) == content(moved)


def iterate_path(**fields):
    iterates = [
        (np.array([0, 1, 2, 3, 4]), np.array([5.0, 1.0, 4.0, 3.0, 2.0])),
        (np.array([1, 2, 3]), np.array([1.0, 3.0, 2.0])),
    ]
    return IteratePath.from_iterates(iterates, np.array([9.0, 9.0, 9.0, 9.0, 9.0, 0.1, 0.3]), **fields)


def test_a_size_between_iterates_is_cut_by_the_larger_iterates_own_weights():
    path = iterate_path()
    assert path.support(4).tolist() == [
        0,
        2,
        3,
        4,
    ]  # feature 1 is the weakest of the five, though it survives
    assert path.support(3).tolist() == [1, 2, 3]
    assert path.support(2).tolist() == [2, 3]
    assert path.support(6).tolist() == [0, 1, 2, 3, 4, 6]
    assert path.order.tolist() == [2, 3, 1, 0, 4, 6, 5]
    assert path.sizes.tolist() == [3, 5]


def test_forced_features_and_groups_in_a_cut():
    forced = iterate_path().constrained(None, np.array([1]))
    assert forced.support(4).tolist() == [0, 1, 2, 3]
    groups = np.array([0, 1, 0, 1, 2, 2, 3])
    whole = iterate_path().constrained(groups, np.array([], dtype=np.intp))
    assert whole.support(2).tolist() == [0, 2]
    assert whole.support(4).tolist() == [0, 1, 2, 3]


def test_repeated_supports_keep_the_latest_weights():
    features = np.array([0, 1])
    path = IteratePath.from_iterates(
        [(features, np.array([1.0, 2.0])), (features, np.array([2.0, 1.0]))], np.zeros(3)
    )
    assert path.support(1).tolist() == [0]
    assert len(path.subsets) == 1
