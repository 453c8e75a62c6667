"""Operations that are the same for every design, whatever its backend."""

from __future__ import annotations

import numpy as np
import pytest

from design.arrays import data
from zeronorm import RFE
from zeronorm.design import _finite as finite
from zeronorm.design import as_design
from zeronorm.design._base import BACKENDS, register_backend
from zeronorm.design._blocks import is_tall, row_blocks, scratch_blocks
from zeronorm.design._dense import DenseDesign
from zeronorm.execution import NotEnoughMemoryError


def test_blocks_of_one_column_at_least():
    design = as_design(data((4, 3)))
    assert [columns for columns, _ in design.iter_blocks(1)] == [slice(0, 1), slice(1, 2), slice(2, 3)]
    with pytest.raises(ValueError, match=r"'block_size' parameter must be at least 1\. Got 0"):
        list(design.iter_blocks(0))


def test_a_block_is_written_into_the_given_array():
    X = data((4, 3))
    out = np.full((4, 2), np.nan)
    assert as_design(X).block([2, 0], out) is out
    np.testing.assert_array_equal(out, X[:, [2, 0]])
    assert as_design(X).block([2, 0]).flags.f_contiguous


def test_tall_means_more_than_four_samples_for_each_feature():
    assert not is_tall(as_design(np.ones((20, 5))))
    assert is_tall(as_design(np.ones((21, 5))))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("width", "height"), [(1, 7), (2, 15), (5, 30), (0, 1)])
def test_blocks_of_rows_are_as_large_as_blocks_of_columns(order, width, height, monkeypatch):
    X = np.array(data((30, 4)), dtype=np.float32, order=order)
    monkeypatch.setattr(DenseDesign, "_block_width", lambda self: width)
    found = [(rows.start, rows.stop, block.copy()) for rows, block in row_blocks(as_design(X))]
    assert [start for start, _, _ in found] == list(range(0, 30, height))
    assert all(block.flags.c_contiguous for _, _, block in found)
    np.testing.assert_array_equal(np.concatenate([block for _, _, block in found]), X)
    assert next(block.shape for _, block in row_blocks(as_design(X).take([]))) == (30 if width else 1, 0)


def test_scratch_blocks_share_one_memory(monkeypatch):
    X = data((6, 9)).astype(np.float32)
    monkeypatch.setattr(DenseDesign, "_block_width", lambda self: 4)
    blocks = [(columns, block) for columns, block in scratch_blocks(as_design(X))]
    assert [columns for columns, _ in blocks] == [slice(0, 4), slice(4, 8), slice(8, 9)]
    assert [block.shape for _, block in blocks] == [(6, 4), (6, 4), (6, 1)]
    assert all(np.shares_memory(block, blocks[0][1]) for _, block in blocks)
    assert blocks[0][1].base.size == 24


@pytest.mark.parametrize("n_chosen", [0, 1, 3, 4, 5, 9])
def test_features_of_weight_zero_are_left_out_if_they_are_the_majority(n_chosen, monkeypatch):
    """With nine features, three or fewer with weight are selected first."""
    X = data((5, 9)).astype(np.float32)
    scale = np.zeros(9)
    scale[np.arange(n_chosen)] = 1.5
    taken, take = [], DenseDesign.take
    monkeypatch.setattr(DenseDesign, "take", lambda self, columns: taken.append(1) or take(self, columns))
    exact = (X.astype(float) * scale) @ X.T.astype(float)
    np.testing.assert_allclose(as_design(X).gram(scale), exact, atol=1e-12)
    assert bool(taken) == (n_chosen < 4)


def test_vectors_of_a_wrong_shape():
    design = as_design(data((5, 3)))
    for call, wrong in (
        (design.dot, np.ones(4)),
        (design.dot, np.ones((4, 3))),
        (design.dot, np.ones((3, 2, 2))),
        (design.dot, 1.0),
        (design.transpose_dot, np.ones((3, 5))),
        (design.transpose_dot, np.ones((5, 1, 1))),
    ):
        with pytest.raises(ValueError, match="rows and at most 2 axes"):
            call(wrong)
    for call, wrong in (
        (design.gram, np.ones((3, 1))),
        (design.sandwich, np.ones(3)),
        (design.gram, np.ones(5)),
        (lambda w: design.cross_gram(design, w), np.ones(5)),
    ):
        with pytest.raises(ValueError, match="must be a vector of length"):
            call(wrong)
    with pytest.raises(ValueError, match=r"M must have shape \(5, 5\)"):
        design.gram_adjoint(np.ones((3, 3)))


def test_release_frees_memory_and_changes_nothing_else():
    design = as_design(data())
    assert design.release() is None
    assert design.stored_columns(np.array([1])) is None
    assert design.distances(np.ones(9)) is None
    assert design.difference_sums(np.array([0]), np.array([1]), np.ones(1)) is None
    assert not design.is_sparse


xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


def test_a_backend_of_a_package_is_found():
    class Table:
        values = data((3, 2))

    @register_backend(lambda X: isinstance(X, Table))
    def from_table(X, names):
        return DenseDesign(X.values, names)

    try:
        np.testing.assert_array_equal(as_design(Table()).block(slice(None)), Table.values)
    finally:
        BACKENDS.pop()


def test_memory_for_two_square_matrices_is_required(monkeypatch):
    asked = []
    monkeypatch.setattr("zeronorm.design._base.require_memory", lambda n_bytes, *texts: asked.append(n_bytes))
    design = as_design(data((3000, 9)))
    design.gram()
    design.sandwich(np.ones(3000))
    assert asked == [2 * 8 * 3000**2, 2 * 8 * 9**2]


def test_defaults_of_a_design():
    X = data()
    X[:, 2] = 4.0
    view = as_design(X).standardized()
    np.testing.assert_allclose(view.affine.mean, X.mean(axis=0))
    np.testing.assert_allclose(view.affine.scale, np.where(np.arange(9) == 2, 1.0, X.std(axis=0)))
    assert as_design(X)._known_finite
    X[1, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        as_design(X)
    with pytest.raises(ValueError, match="NaN"):
        finite.require_finite(DenseDesign(X))
    X[1, 1] = 0.0
    pairs = as_design(xp.asarray(X)).distances(np.ones(9))
    np.testing.assert_allclose(pairs, np.abs(X[:, None] - X[None]).sum(axis=2), atol=1e-10)
    assert as_design(X).distances(np.ones(9)) is None
    plain = as_design(X).transformed(np.zeros(9), np.ones(9))
    np.testing.assert_allclose(plain.squared_norms(), (X**2).sum(axis=0))


def test_too_large_matrices_are_refused_before_they_are_computed(monkeypatch):
    monkeypatch.setattr("zeronorm.execution._memory.available_bytes", lambda: 10 << 30)
    design = as_design(np.ones((50_000, 3)), check_finite=False)
    with pytest.raises(NotEnoughMemoryError, match=r"Gram matrix of 50000 samples needs .* GiB.*10\.0 GiB"):
        design.gram()
    wide = as_design(np.ones((3, 50_000)), check_finite=False)
    with pytest.raises(NotEnoughMemoryError, match=r"50000 features"):
        wide.sandwich(np.ones(3))
    with pytest.raises(NotEnoughMemoryError, match="Gram matrix"):
        RFE(n_features_to_select=1, kernel="rbf").fit(
            np.random.default_rng(0).normal(size=(50_000, 3)), np.arange(50_000) % 2
        )


def test_products_of_two_designs_need_the_same_features():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(as_design(one).cross_gram(as_design(other)), one @ other.T)
    with pytest.raises(ValueError, match=r"the same features\. Got 3 and 2"):
        as_design(one).cross_gram(as_design(rng.normal(size=(4, 2))))
