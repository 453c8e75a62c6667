"""Which pieces of a file are read: scattered lines, gaps, blocks, and columns kept in memory."""

from __future__ import annotations

import io
import itertools
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from design.arrays import data, numbers, saved
from zeronorm import RFE, as_design
from zeronorm.design import _chunked as chunked
from zeronorm.design import _outer_products as outer_products
from zeronorm.design._chunked import DataFileError, open_files


@pytest.fixture
def read_bytes(monkeypatch):
    """Number of bytes that each call reads from a NumPy file."""
    found, real = [], chunked._read_into

    def counted(stream, file, offset, out):
        found.append(out.nbytes)
        real(stream, file, offset, out)

    monkeypatch.setattr(chunked, "_read_into", counted)
    return found


def test_remaining_features_are_read_once(tmp_path, read_bytes):
    X = numbers((20, 300), order="F")
    design = as_design(saved(tmp_path, X), memory_budget=X.nbytes).standardized()
    left = design.take(np.arange(0, 300, 7))
    read_bytes.clear()
    gram = left.gram()
    assert 0 < sum(read_bytes) <= X.nbytes
    read_bytes.clear()
    fewer = left.take(np.arange(5, 30))
    weights, block = fewer.transpose_dot(np.ones(20)), fewer.block([3, 1])
    assert not read_bytes
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = centred[:, ::7]
    np.testing.assert_allclose(gram, expected @ expected.T, atol=1e-11)
    np.testing.assert_allclose(weights, expected[:, 5:30].sum(axis=0), atol=1e-11)
    np.testing.assert_allclose(block, expected[:, [8, 6]], atol=1e-13)


def test_columns_in_any_order_and_twice_are_kept(tmp_path, read_bytes):
    X = numbers((6, 50), order="F")
    design = as_design(saved(tmp_path, X))
    for chosen, is_read in (
        ([40, 3, 17, 3], True),
        ([40, 3, 17, 3], False),
        ([17, 40], False),  # a subset of the kept columns
        ([3, 41], True),  # replace the kept columns
        ([41, 3], False),
        ([17, 40], True),
        ([49, 0, 49], True),
    ):
        read_bytes.clear()
        found = design.take(chosen).transpose_dot(np.ones(6))
        np.testing.assert_allclose(found, X[:, chosen].sum(axis=0), atol=1e-13)
        assert bool(read_bytes) == is_read
    read_bytes.clear()
    np.testing.assert_array_equal(design.take([0, 49]).block(slice(None)), X[:, [0, 49]])
    assert not read_bytes
    np.testing.assert_array_equal(design.take([0, 48]).block(slice(None)), X[:, [0, 48]])
    assert read_bytes


def test_no_more_than_half_of_the_budget_is_kept(tmp_path, read_bytes):
    X = numbers((20, 300), order="F")
    design = as_design(saved(tmp_path, X), memory_budget=X.nbytes // 2)
    many = design.take(np.arange(0, 300, 3))
    assert many.in_memory() is many  # a copy would exceed the budget
    for _ in range(2):
        read_bytes.clear()
        many.transpose_dot(np.ones(20))
        assert read_bytes


def test_nothing_is_kept_once_a_method_has_ended(tmp_path, read_bytes):
    X = numbers((20, 40), order="F")
    design = as_design(saved(tmp_path, X))
    RFE(n_features_to_select=3, step=0.5).fit(design, np.arange(20) % 2)
    part = design.standardized().take([3, 30])
    part.gram()
    for released in (False, True):
        read_bytes.clear()
        design.take([3, 30]).gram()
        assert bool(read_bytes) == released
        part.release()


def test_other_samples_are_not_taken_from_what_was_kept(tmp_path):
    X = numbers((20, 40), order="F")
    design = as_design(saved(tmp_path, X))
    design.take([3, 30]).gram()
    some = design.take_rows([5, 1]).take([30, 3])
    np.testing.assert_array_equal(some.block(slice(None)), X[np.ix_([5, 1], [30, 3])])


def test_what_was_read_is_multiplied_in_large_blocks(tmp_path, monkeypatch):
    """One product for each block of the file: many small ones cost more than the arithmetic."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((200, 20_000), dtype=np.float32))
    design = as_design(tmp_path / "x.npy", memory_budget=16 << 20).standardized()
    widths = []
    multiply = outer_products.add_outer_square

    def noted(accumulator, block):
        widths.append(block.shape[1])
        multiply(accumulator, block)

    monkeypatch.setattr(outer_products, "add_outer_square", noted)
    design.gram()
    assert len(widths) == -(-20_000 // design._block_width())


def test_of_a_table_only_the_columns_asked_for_are_read(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(6, 4))
    pl.DataFrame(X, schema=list("abcd")).write_parquet(tmp_path / "table.parquet")
    design = as_design(tmp_path / "table.parquet")
    asked, read = [], pl.read_parquet
    monkeypatch.setattr(
        pl, "read_parquet", lambda *args, **more: asked.append(more.get("columns")) or read(*args, **more)
    )
    np.testing.assert_array_equal(design.block(np.array([3, 1, 3])), X[:, [3, 1, 3]])
    assert asked == [["b", "d"]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_positions_far_apart_are_read_piece_by_piece(tmp_path, order):
    """Lines of 72 kB, larger than the gaps that are read, and entries that are as far apart."""
    X = np.random.default_rng(0).normal(size=(20, 9000))
    X = X if order == "C" else X.T.copy(order="F")
    np.save(tmp_path / "X.npy", X)
    design = as_design(tmp_path / "X.npy")
    lines, positions = np.array([0, 1, 7, 15, 16]), np.array([8700, 0, 1, 4000])
    rows, columns = (lines, positions) if order == "C" else (positions, lines)
    np.testing.assert_array_equal(design.take_rows(rows).block(slice(None)), X[rows])
    np.testing.assert_array_equal(design.take(columns).block(slice(None)), X[:, columns])
    np.testing.assert_array_equal(
        design.take(columns).take_rows(rows).block(slice(None)), X[np.ix_(rows, columns)]
    )


@pytest.mark.parametrize("n_chosen", [3, 40, 400])
def test_columns_between_scattered_ones_are_read_in_one_go(tmp_path, n_chosen):
    """Each part begins where the one before ended, none is wider than a block, and few columns are read alone."""
    X = np.random.default_rng(0).normal(size=(800, 500)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    # Up to twenty columns may be read for each one that is wanted; blocks have fifty.
    design = chunked.open_files(tmp_path / "x.npy", memory_budget=16 * 8 * 800 * 50)
    chosen = np.sort(np.random.default_rng(1).choice(500, n_chosen, replace=False))
    part = design.take(chosen)
    pieces = list(part._pieces_to_read())
    assert [p for columns, _ in pieces for p in chosen[columns]] == chosen.tolist()
    if n_chosen == 3:
        assert all(np.array_equal(read, chosen[columns]) for columns, read in pieces)
    else:
        assert all(isinstance(read, range) and len(read) <= 50 for _, read in pieces)
        assert all(before[1].stop == after[1].start for before, after in itertools.pairwise(pieces))
    np.testing.assert_allclose(
        part.transpose_dot(np.ones(800)), X[:, chosen].sum(axis=0), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(part.gram(), X[:, chosen] @ X[:, chosen].T, rtol=1e-3, atol=1e-3)
    unsorted = design.take(chosen[::-1])
    np.testing.assert_allclose(
        unsorted.transpose_dot(np.ones(800)), X[:, chosen[::-1]].sum(axis=0), rtol=1e-4, atol=1e-4
    )


def test_blocks_that_are_kept_do_not_change(tmp_path):
    """A block, or a view of it, keeps its values after other blocks have been read."""
    X = np.random.default_rng(0).normal(size=(20, 30_000)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    design = chunked.open_files(tmp_path / "x.npy", memory_budget=16 << 20)
    kept = list(design._from_arrays(lambda columns, array: (columns, array[::2])))
    assert len(kept) > 4
    for columns, array in kept:
        np.testing.assert_array_equal(array, X[::2, columns])


@pytest.mark.parametrize(
    ("budget", "n_columns", "is_kept"),
    [(1280, 10, True), (1279, 10, False), (10**6, 20, False), (10**6, 19, True)],
)
def test_some_columns_that_take_half_of_the_budget_are_kept(tmp_path, read_bytes, budget, n_columns, is_kept):
    X = numbers((8, 20), order="F")
    part = open_files(saved(tmp_path, X), memory_budget=budget).take(np.arange(n_columns)[::-1])
    for is_read in (True, not is_kept):
        read_bytes.clear()
        np.testing.assert_allclose(
            part.transpose_dot(np.ones(8)), X[:, :n_columns].sum(axis=0)[::-1], atol=1e-12
        )
        assert bool(read_bytes) == is_read


@pytest.fixture
def shapes_read(monkeypatch):
    """The shape of each piece that is read from a NumPy file."""
    found, into = [], chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: found.append(out.shape) or into(s, f, o, out)
    )
    return found


@pytest.mark.parametrize(
    ("rows", "heights"),
    [
        ([3, 11, 50], [9, 1]),  # gaps of up to 64 kB, eight lines, are read
        ([3, 12, 50], [1, 1, 1]),
        ([12, 4, 12], [9]),
        (range(0, 512, 8), [505]),
        (range(0, 528, 8), [505, 16]),  # 4 MB at a time, each piece starting where the last one ended
    ],
)
def test_scattered_lines_are_read_with_what_is_between(tmp_path, rows, heights, shapes_read):
    X = data((600, 1024))  # lines of 8 kB
    np.save(tmp_path / "x.npy", X)
    rows = np.array(rows)
    np.testing.assert_array_equal(open_files(tmp_path / "x.npy").take_rows(rows).block(slice(None)), X[rows])
    assert shapes_read == [(height, 1024) for height in heights]


@pytest.mark.parametrize(
    ("columns", "widths"),
    [
        ([2, 8194, 30_000, 39_000, 39_001], [8193, 1, 2]),  # gaps of up to 64 kB are read
        ([2, 8195], [1, 1]),
        ([30_000, 2, 30_000], [1, 1]),
        (range(5, 9), [4]),
    ],
)
def test_places_of_a_line_are_read_span_by_span(tmp_path, columns, widths, shapes_read):
    X = data((3, 40_000))
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(open_files(tmp_path / "x.npy").block(list(columns)), X[:, columns])
    assert [size for (size,) in shapes_read] == 3 * widths


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_a_stream_that_gives_little_at_a_time(at_once):
    class Slow(io.BytesIO):
        def readinto(self, buffer):
            return super().readinto(memoryview(buffer)[:at_once])

    stored = np.arange(6.0)
    stream, file = Slow(stored.tobytes()), SimpleNamespace(path="x")
    out = np.empty((2, 2))
    chunked._read_into(stream, file, 8, out)
    np.testing.assert_array_equal(out.ravel(), stored[1:5])
    chunked._read_into(stream, file, 0, out[:0])
    with pytest.raises(DataFileError, match="has become shorter"):
        chunked._read_into(stream, file, 24, out)


def test_lines_longer_than_what_is_read_at_a_time(tmp_path, shapes_read):
    X = data((4, 600_000))
    np.save(tmp_path / "x.npy", X)
    design = open_files(tmp_path / "x.npy")
    np.testing.assert_array_equal(design.take_rows([0, 1, 3]).block(slice(None)), X[[0, 1, 3]])
    assert shapes_read == [(1, 600_000)] * 3


def test_the_width_of_blocks_that_are_converted():
    """As many columns as have 4 MB in double precision, and one at least."""
    for n_samples, width in ((64, 1 << 13), (65, (1 << 19) // 65), (1 << 19, 1), (1 << 20, 1), (0, 1 << 19)):
        assert chunked._PartOfFiles(np.empty((n_samples, 2), np.float32))._block_width() == width
