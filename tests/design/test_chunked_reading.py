"""Which pieces of a file are read: scattered lines, gaps, blocks, columns that are kept."""

from __future__ import annotations

import io
import itertools
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from design.arrays import data, numbers
from zeronorm import RFE, as_design
from zeronorm.design import chunked, column_kernels
from zeronorm.design.chunked import DataFileError, _KeptColumns, _places, open_files


def saved(folder, X, name="x.npy"):
    np.save(folder / name, X)
    return folder / name


@pytest.fixture
def read_bytes(monkeypatch):
    """How much is read from NumPy files, call by call."""
    found, real = [], chunked._read_into

    def counted(stream, file, offset, out):
        found.append(out.nbytes)
        real(stream, file, offset, out)

    monkeypatch.setattr(chunked, "_read_into", counted)
    return found


def test_features_that_are_left_are_read_once(tmp_path, read_bytes):
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


def test_columns_in_any_order_and_twice_are_kept(tmp_path):
    X = numbers((6, 50), order="F")
    design = as_design(saved(tmp_path, X))
    chosen = np.array([40, 3, 17, 3])
    for _ in range(2):  # read, and kept
        np.testing.assert_allclose(
            design.take(chosen).transpose_dot(np.ones(6)), X[:, chosen].sum(axis=0), atol=1e-13
        )
    np.testing.assert_array_equal(design.take([17, 40]).block(slice(None)), X[:, [17, 40]])


def test_no_more_than_half_of_the_budget_is_kept(tmp_path, read_bytes):
    X = numbers((20, 300), order="F")
    design = as_design(saved(tmp_path, X), memory_budget=X.nbytes // 2)
    many = design.take(np.arange(0, 300, 3))
    assert many.resident() is many  # in place of a copy beyond the budget
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
    multiply = column_kernels.add_outer_square

    def noted(accumulator, block):
        widths.append(block.shape[1])
        multiply(accumulator, block)

    monkeypatch.setattr(column_kernels, "add_outer_square", noted)
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
def test_places_far_apart_are_read_piece_by_piece(tmp_path, order, monkeypatch):
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 8)
    X = np.asarray(np.random.default_rng(0).normal(size=(20, 16)), order=order)
    np.save(tmp_path / "X.npy", X)
    design = as_design(tmp_path / "X.npy")
    rows, columns = np.array([0, 1, 7, 15, 16]), np.array([12, 0, 1, 7])
    np.testing.assert_array_equal(design.take_rows(rows).block(slice(None)), X[rows])
    np.testing.assert_array_equal(design.take(columns).block(slice(None)), X[:, columns])
    np.testing.assert_array_equal(
        design.take(columns).take_rows(rows).block(slice(None)), X[np.ix_(rows, columns)]
    )


@pytest.mark.parametrize("n_chosen", [3, 40, 400])
def test_columns_between_scattered_ones_are_read_in_one_go(tmp_path, monkeypatch, n_chosen):
    """Each part begins where the one before ended, none is wider than a block, and few columns are read alone."""
    X = np.random.default_rng(0).normal(size=(8, 500)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 32 * 20)  # twenty columns
    design = chunked.open_files(tmp_path / "x.npy", memory_budget=16 * 64 * 50)  # blocks of fifty columns
    chosen = np.sort(np.random.default_rng(1).choice(500, n_chosen, replace=False))
    part = design.take(chosen)
    places = list(part._places_to_read())
    assert [p for columns, _ in places for p in chosen[columns]] == chosen.tolist()
    if n_chosen == 3:
        assert all(np.array_equal(read, chosen[columns]) for columns, read in places)
    else:
        assert all(isinstance(read, range) and len(read) <= 50 for _, read in places)
        assert all(before[1].stop == after[1].start for before, after in itertools.pairwise(places))
    np.testing.assert_allclose(part.transpose_dot(np.ones(8)), X[:, chosen].sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(part.gram(), X[:, chosen] @ X[:, chosen].T, rtol=1e-4, atol=1e-4)
    unsorted = design.take(chosen[::-1])
    np.testing.assert_allclose(unsorted.transpose_dot(np.ones(8)), X[:, chosen[::-1]].sum(axis=0), rtol=1e-5)


def test_blocks_that_are_kept_do_not_change(tmp_path):
    """Whoever keeps what was read, or a view of it, finds it as it was when others have been read."""
    X = np.random.default_rng(0).normal(size=(20, 30_000)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    design = chunked.open_files(tmp_path / "x.npy", memory_budget=16 << 20)
    kept = list(design._from_arrays(lambda columns, array: (columns, array[::2])))
    assert len(kept) > 4
    for columns, array in kept:
        np.testing.assert_array_equal(array, X[::2, columns])


def test_kept_columns_are_found_in_any_order():
    kept = _KeptColumns()
    assert kept.find(range(1)) is None
    assert not kept.has([3])
    lines = data((3, 4))
    kept.replace(np.array([7, 2, 5]), lines)
    assert kept.has([5, 7])
    assert not kept.has([5, 6])
    assert not kept.has([8])
    np.testing.assert_array_equal(kept.find(np.array([5, 7, 7])), lines[[2, 0, 0]].T)
    assert kept.find(np.array([2, 3])) is None
    kept.replace(np.array([2, 5]), lines[:2])
    np.testing.assert_array_equal(kept.find(np.array([5])), lines[[1]].T)
    kept.clear()
    assert not kept.has([5])
    assert _places(np.array([1, 4, 6]), [6, 1]).tolist() == [2, 0]
    assert _places(np.array([1, 4, 6]), range(2, 4)) is None


def test_what_is_worth_keeping(tmp_path):
    X = data((8, 20))
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    for budget, n_columns, worth in (
        (1280, 10, True),
        (1279, 10, False),
        (10**6, 20, False),
        (10**6, 19, True),
    ):
        design = open_files(tmp_path / "x.npy", memory_budget=budget).take(np.arange(n_columns)[::-1])
        assert design._is_worth_keeping == worth
    assert not open_files(tmp_path / "x.npy").take([])._is_worth_keeping


def test_scattered_lines_are_read_with_what_is_between(tmp_path, monkeypatch):
    X = data((60, 4))
    np.save(tmp_path / "x.npy", X)
    file = open_files(tmp_path / "x.npy")._files[0]
    reads = []
    into = chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: reads.append(out.shape) or into(s, f, o, out)
    )
    line = 4 * 8
    for converted, gap, rows, wanted in (
        (10**6, 10**6, [3, 9, 50], [(48, 4)]),
        (10**6, 6 * line, [3, 9, 50], [(7, 4), (1, 4)]),
        (10**6, 5 * line, [3, 9, 50], [(1, 4)] * 3),
        (7 * line, 10**6, [3, 9, 50], [(7, 4), (1, 4)]),
        (6 * line, 10**6, [3, 9, 50], [(1, 4), (6, 4), (1, 4)]),  # read on from the last piece
        (10**6, 10**6, [9, 3, 9], [(7, 4)]),
    ):
        monkeypatch.setattr(chunked, "_CONVERTED_BYTES", converted)
        monkeypatch.setattr(chunked, "_LARGEST_GAP", gap)
        reads.clear()
        np.testing.assert_array_equal(file.read(np.array(rows), range(4)), X[rows])
        assert reads == wanted


def test_places_of_a_line_are_read_span_by_span(tmp_path, monkeypatch):
    X = data((3, 40))
    np.save(tmp_path / "x.npy", X)
    file = open_files(tmp_path / "x.npy")._files[0]
    reads, into = [], chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: reads.append(out.size) or into(s, f, o, out)
    )
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 3 * 8)
    for columns, wanted in (([2, 4, 20, 30, 31], [3, 1, 2]), ([30, 2, 30], [1, 1]), (range(5, 9), [4])):
        reads.clear()
        chosen = columns if isinstance(columns, range) else np.array(columns)
        np.testing.assert_array_equal(file.read(range(3), chosen), X[:, columns])
        assert reads == 3 * wanted


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


def test_gaps_and_blocks_of_one_line_at_least(tmp_path, monkeypatch):
    X = data((9, 40))
    np.save(tmp_path / "x.npy", X)
    file, reads, into = open_files(tmp_path / "x.npy")._files[0], [], chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: reads.append(out.shape) or into(s, f, o, out)
    )
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 1)
    np.testing.assert_array_equal(file.read(range(1), np.array([2, 4, 5])), X[:1, [2, 4, 5]])
    assert reads == [(1,), (2,)]
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 10**6)
    monkeypatch.setattr(chunked, "_CONVERTED_BYTES", 1)
    reads.clear()
    np.testing.assert_array_equal(file.read(np.array([3, 4, 8]), range(40)), X[[3, 4, 8]])
    assert reads == [(1, 40)] * 3
    part = chunked._PartOfFiles(X)
    for n_bytes, width in ((1, 1), (8 * 9 * 5 - 1, 4), (8 * 9 * 5, 5)):
        monkeypatch.setattr(chunked, "_CONVERTED_BYTES", n_bytes)
        assert part._scratch_width() == width
    assert chunked._PartOfFiles(X[:0])._scratch_width() == 8 * 9 * 5 // 8
