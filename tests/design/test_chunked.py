"""Columns in files: the contract, several files, names, pickling by path, and errors."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc

import numpy as np
import polars as pl
import pytest

from zeronorm import RFE, FisherScore, as_design
from zeronorm._threads import _BlockMemory, read_in_turn, work_in_turn
from zeronorm.design import chunked, column_kernels, pack
from zeronorm.design.chunked import ChunkedDesign
from zeronorm.design.stats import read_only
from zeronorm.testing import check_design


def data(shape=(13, 29), dtype=np.float64, order="C", seed=0):
    X = np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0
    return np.array(X, dtype=dtype, order=order)


def saved(folder, X, name="x.npy"):
    np.save(folder / name, X)
    return folder / name


def saved_table(folder, X, names=None, name="x.parquet"):
    names = [f"gene {j}" for j in range(X.shape[1])] if names is None else names
    pl.DataFrame(dict(zip(names, X.T, strict=True))).write_parquet(folder / name)
    return folder / name


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_numpy_file(tmp_path, dtype, order):
    X = data(dtype=dtype, order=order)
    path = saved(tmp_path, X)
    check_design(lambda: as_design(path), X)
    assert isinstance(as_design(str(path)), ChunkedDesign)
    assert as_design(path).dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize("shape", [(40, 5), (1, 3), (6, 1)])
def test_other_shapes(tmp_path, shape):
    X = data(shape)
    path = saved(tmp_path, X)
    check_design(lambda: as_design(path), X)


def test_a_parquet_file(tmp_path):
    X = data((7, 6), np.float32)
    path = saved_table(tmp_path, X)
    check_design(lambda: as_design(path), X)
    assert as_design(path).dtype == np.float32
    assert list(as_design(path).take([4, 1]).feature_names) == ["gene 4", "gene 1"]


def test_files_side_by_side(tmp_path):
    X = data()
    parts = [
        saved(tmp_path, X[:, :10], "a.npy"),
        saved(tmp_path, np.asfortranarray(X[:, 10:11]), "b.npy"),
        saved(tmp_path, X[:, 11:], "c.npy"),
    ]
    check_design(lambda: as_design(parts), X)


def test_numpy_and_parquet_side_by_side(tmp_path):
    X = data((8, 9))
    parts = [saved(tmp_path, X[:, :5]), saved_table(tmp_path, X[:, 5:])]
    design = as_design(parts, feature_names=list("abcdefghi"))
    np.testing.assert_array_equal(design.block([8, 0, 5]), X[:, [8, 0, 5]])
    assert design.feature_names[8] == "i"
    assert as_design(parts).feature_names is None


def test_only_the_path_is_pickled(tmp_path):
    X = data((50, 400))
    design = as_design(saved(tmp_path, X))
    text = pickle.dumps(design)
    assert len(text) < X.nbytes / 50
    np.testing.assert_array_equal(pickle.loads(text).block([3, 7]), X[:, [3, 7]])


def test_a_selector_reads_files(tmp_path):
    X = data((40, 30))
    y = np.arange(40) % 2
    X[:, 12] += 3.0 * y
    path = saved(tmp_path, X)
    from_file = FisherScore(5).fit(as_design(path), y)
    assert from_file.path_.order.tolist() == FisherScore(5).fit(X, y).path_.order.tolist()


def test_the_data_are_never_all_in_memory(tmp_path):
    X = data((100, 20_000))
    design = as_design(saved(tmp_path, X)).standardized()
    weights = np.ones(100)
    design.gram()  # compilers take memory too
    design.release()
    design.transpose_dot(weights)
    tracemalloc.start()
    design.gram()
    design.transpose_dot(weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * X.nbytes


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
    X = data((20, 300), order="F")
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
    X = data((6, 50), order="F")
    design = as_design(saved(tmp_path, X))
    chosen = np.array([40, 3, 17, 3])
    for _ in range(2):  # read, and kept
        np.testing.assert_allclose(
            design.take(chosen).transpose_dot(np.ones(6)), X[:, chosen].sum(axis=0), atol=1e-13
        )
    np.testing.assert_array_equal(design.take([17, 40]).block(slice(None)), X[:, [17, 40]])


def test_no_more_than_half_of_the_budget_is_kept(tmp_path, read_bytes):
    X = data((20, 300), order="F")
    design = as_design(saved(tmp_path, X), memory_budget=X.nbytes // 2)
    many = design.take(np.arange(0, 300, 3))
    assert many.resident() is many  # in place of a copy beyond the budget
    for _ in range(2):
        read_bytes.clear()
        many.transpose_dot(np.ones(20))
        assert read_bytes


def test_nothing_is_kept_once_a_method_has_ended(tmp_path, read_bytes):
    X = data((20, 40), order="F")
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
    X = data((20, 40), order="F")
    design = as_design(saved(tmp_path, X))
    design.take([3, 30]).gram()
    some = design.take_rows([5, 1]).take([30, 3])
    np.testing.assert_array_equal(some.block(slice(None)), X[np.ix_([5, 1], [30, 3])])


def test_a_changed_file_is_noticed_when_columns_were_kept(tmp_path):
    X = data((20, 40), order="F")
    path = saved(tmp_path, X)
    left = as_design(path).take([3, 30])
    left.gram()
    saved(tmp_path, data((20, 41), order="F"))
    with pytest.raises(chunked.DataFileError, match="has changed"):
        left.gram()


def test_values_that_are_not_finite_are_named(tmp_path):
    X = data((5, 4))
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN: first found in row 2, column 3 \\('gene 3'\\)"):
        as_design(saved_table(tmp_path, X))


def test_empty_cells_of_a_table_are_missing_values(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1.0, None], "b": [1, 2]}).write_parquet(path)
    with pytest.raises(ValueError, match="contains NaN"):
        as_design(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(5), "must hold a two-dimensional array of real numbers.* holds 1 dimension"),
        (np.ones((2, 2), dtype=complex), "holds 2 dimension.s. of type complex128"),
    ],
)
def test_arrays_that_are_not_matrices_are_refused(tmp_path, array, message):
    with pytest.raises(ValueError, match=message):
        as_design(saved(tmp_path, array))


def test_text_columns_are_refused(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1.0, 2.0], "stage": ["I", "II"]}).write_parquet(path)
    with pytest.raises(ValueError, match=r"must be numeric\. Column 'stage'"):
        as_design(path)


def test_files_with_other_samples_are_refused(tmp_path):
    parts = [saved(tmp_path, data((5, 2)), "a.npy"), saved(tmp_path, data((6, 2)), "b.npy")]
    with pytest.raises(ValueError, match=r"must hold the same samples.* has 5 rows and .* has 6"):
        as_design(parts)


def test_unknown_types_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"in files of type \.npy, \.parquet"):
        as_design(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        as_design(tmp_path / "x.npy")


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


@pytest.mark.parametrize("ahead", [False, True])
def test_each_part_is_read_once_and_in_turn(ahead):
    for n_parts in range(5):
        read = []
        parts = read_in_turn(
            lambda place, read=read: read.append(place) or -place, range(n_parts), ahead=ahead
        )
        assert list(parts) == [-place for place in range(n_parts)]
        assert read == list(range(n_parts))


def test_positions_that_nobody_may_change_are_not_copied(tmp_path):
    """An index as long as the features counts in wide data; one that may change must be copied."""
    X = np.random.default_rng(0).normal(size=(5, 40))
    design, places = as_design(pack(X, tmp_path / "x.zncols")), np.array([3, 5, 30])
    copied = design.take(places)
    fixed = read_only(places)
    assert design.take(fixed)._columns.base is places
    places[:] = 0
    np.testing.assert_array_equal(copied.block(slice(None)), X[:, [3, 5, 30]])


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


def test_sums_do_not_depend_on_the_threads(tmp_path, monkeypatch):
    """Blocks are summed in several threads, and the sums added in the order of the blocks."""
    X = np.random.default_rng(0).normal(size=(7, 30_000)).astype(np.float32)
    file = pack(X, tmp_path / "x.zncols")
    found = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(chunked, "available_threads", lambda n_threads=n_threads: n_threads)
        design = as_design(file, memory_budget=8 << 20)
        assert len(list(design._column_slices())) > 3
        assert design._is_summed_in_threads
        found.append((design.gram(), design.standardized().gram(np.arange(30_000.0)), design.column_stats()))
    for gram, scaled, stats in found[1:]:
        np.testing.assert_array_equal(gram, found[0][0])
        np.testing.assert_array_equal(scaled, found[0][1])
        np.testing.assert_array_equal(stats.variance, found[0][2].variance)
    np.testing.assert_allclose(found[0][0], X.astype(float) @ X.T, rtol=1e-6)


def test_after_an_error_nothing_more_is_read():
    """An error in the first of a thousand parts must not wait for the others, nor an interrupt."""
    read = []

    def fails_at_once(place):
        read.append(place)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(work_in_turn(fails_at_once, lambda place, part: part, range(1000), n_threads=2))
    assert len(read) < 4


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


def test_memory_of_blocks_is_used_again_when_nobody_looks_at_it():
    """Not while a view of it is alive, whoever holds it; what is too small is given up."""
    memory = _BlockMemory()
    first = memory.array((3, 4), np.dtype(np.float32))
    first[:] = 1.0
    view = first.T[1:]
    del first
    second = memory.array((3, 4), np.dtype(np.float32))
    second[:] = 2.0
    assert np.all(view == 1.0)
    place = second.ctypes.data
    del second
    third = memory.array((5,), np.dtype(np.float64))
    assert third.ctypes.data == place
    assert third.shape == (5,)
    del view
    fourth = memory.array((100,), np.dtype(np.float64))
    fourth[:] = 4.0
    assert len(memory._given) == 2
    assert third.nbytes == 40
    assert np.all(fourth == 4.0)


def test_blocks_that_are_kept_do_not_change(tmp_path):
    """Whoever keeps what was read, or a view of it, finds it as it was when others have been read."""
    X = np.random.default_rng(0).normal(size=(20, 30_000)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    design = chunked.open_files(tmp_path / "x.npy", memory_budget=16 << 20)
    kept = list(design._from_arrays(lambda columns, array: (columns, array[::2])))
    assert len(kept) > 4
    for columns, array in kept:
        np.testing.assert_array_equal(array, X[::2, columns])
