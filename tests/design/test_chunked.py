"""Columns in files: the contract, several files, names, pickling by path, and errors."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import polars as pl
import pytest

from design.arrays import data, numbers, saved
from zeronorm import FisherScore, as_design
from zeronorm.design import _chunked as chunked
from zeronorm.design._blocks import column_slices
from zeronorm.design._chunked import ChunkedDesign, open_files
from zeronorm.design._packing import pack
from zeronorm.design._stats import read_only
from zeronorm.testing import check_design


def saved_table(folder, X, names=None, name="x.parquet"):
    names = [f"gene {j}" for j in range(X.shape[1])] if names is None else names
    pl.DataFrame(dict(zip(names, X.T, strict=True))).write_parquet(folder / name)
    return folder / name


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_numpy_file(tmp_path, dtype, order):
    X = numbers(dtype=dtype, order=order)
    path = saved(tmp_path, X)
    check_design(lambda: as_design(path), X)
    assert isinstance(as_design(str(path)), ChunkedDesign)
    assert as_design(path).dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize("shape", [(40, 5), (1, 3), (6, 1)])
def test_other_shapes(tmp_path, shape):
    X = numbers(shape)
    path = saved(tmp_path, X)
    check_design(lambda: as_design(path), X)


def test_a_parquet_file(tmp_path):
    X = numbers((7, 6), np.float32)
    path = saved_table(tmp_path, X)
    check_design(lambda: as_design(path), X)
    assert as_design(path).dtype == np.float32
    assert list(as_design(path).take([4, 1]).feature_names) == ["gene 4", "gene 1"]


def test_files_side_by_side(tmp_path):
    X = numbers()
    parts = [
        saved(tmp_path, X[:, :10], "a.npy"),
        saved(tmp_path, np.asfortranarray(X[:, 10:11]), "b.npy"),
        saved(tmp_path, X[:, 11:], "c.npy"),
    ]
    check_design(lambda: as_design(parts), X)


def test_numpy_and_parquet_side_by_side(tmp_path):
    X = numbers((8, 9))
    parts = [saved(tmp_path, X[:, :5]), saved_table(tmp_path, X[:, 5:])]
    design = as_design(parts, feature_names=list("abcdefghi"))
    np.testing.assert_array_equal(design.block([8, 0, 5]), X[:, [8, 0, 5]])
    assert design.feature_names[8] == "i"
    assert as_design(parts).feature_names is None


def test_only_the_path_is_pickled(tmp_path):
    X = numbers((50, 400))
    design = as_design(saved(tmp_path, X))
    text = pickle.dumps(design)
    assert len(text) < X.nbytes / 50
    np.testing.assert_array_equal(pickle.loads(text).block([3, 7]), X[:, [3, 7]])


def test_a_selector_reads_files(tmp_path):
    X = numbers((40, 30))
    y = np.arange(40) % 2
    X[:, 12] += 3.0 * y
    path = saved(tmp_path, X)
    from_file = FisherScore(5).fit(as_design(path), y)
    assert from_file.path_.order.tolist() == FisherScore(5).fit(X, y).path_.order.tolist()


def test_the_data_are_never_all_in_memory(tmp_path):
    X = numbers((100, 20_000))
    design = as_design(saved(tmp_path, X)).standardized()
    weights = np.ones(100)
    design.gram()  # compilation takes memory too
    design.release()
    design.transpose_dot(weights)
    tracemalloc.start()
    design.gram()
    design.transpose_dot(weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * X.nbytes


def test_values_that_are_not_finite_are_named(tmp_path):
    X = numbers((5, 4))
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
    parts = [saved(tmp_path, numbers((5, 2)), "a.npy"), saved(tmp_path, numbers((6, 2)), "b.npy")]
    with pytest.raises(ValueError, match=r"must hold the same samples.* has 5 rows and .* has 6"):
        as_design(parts)


def test_unknown_types_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"in files of type \.npy, \.parquet"):
        as_design(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        as_design(tmp_path / "x.npy")


def test_read_only_positions_are_not_copied(tmp_path):
    """An index of length n_features takes much memory in wide data; a writable one must be copied."""
    X = np.random.default_rng(0).normal(size=(5, 40))
    design, positions = as_design(pack(X, tmp_path / "x.zncols")), np.array([3, 5, 30])
    copied = design.take(positions)
    fixed = read_only(positions)
    assert design.take(fixed)._columns.base is positions
    positions[:] = 0
    np.testing.assert_array_equal(copied.block(slice(None)), X[:, [3, 5, 30]])


def test_sums_do_not_depend_on_the_threads(tmp_path, monkeypatch):
    """Blocks are summed in several threads, and the sums added in the order of the blocks."""
    X = np.random.default_rng(0).normal(size=(7, 30_000)).astype(np.float32)
    file = pack(X, tmp_path / "x.zncols")
    found = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(chunked, "available_threads", lambda n_threads=n_threads: n_threads)
        design = as_design(file, memory_budget=8 << 20)
        assert len(list(column_slices(design))) > 3
        assert design.backend.reads_ahead
        found.append((design.gram(), design.standardized().gram(np.arange(30_000.0)), design.column_stats()))
    for gram, scaled, stats in found[1:]:
        np.testing.assert_array_equal(gram, found[0][0])
        np.testing.assert_array_equal(scaled, found[0][1])
        np.testing.assert_array_equal(stats.variance, found[0][2].variance)
    np.testing.assert_allclose(found[0][0], X.astype(float) @ X.T, rtol=1e-6)


def test_files_and_their_limits(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2), dtype=np.float32))
    np.save(tmp_path / "b.npy", np.zeros((3, 1)))
    one, both = as_design(tmp_path / "a.npy"), as_design([tmp_path / "a.npy", str(tmp_path / "b.npy")])
    assert (one.dtype, both.dtype, both.shape) == (np.float32, np.float64, (3, 3))
    np.testing.assert_array_equal(both.block([2, 0]), [[0.0, 1.0]] * 3)
    assert both.feature_names is None
    assert one.memory_budget == 512 * 2**20
    assert as_design(tmp_path / "a.npy", memory_budget=1).memory_budget == 1
    with pytest.raises(ValueError, match="positive number of bytes"):
        as_design(tmp_path / "a.npy", memory_budget=0)
    assert chunked.are_files("x.npy")
    assert chunked.are_files([tmp_path / "a.npy"])
    assert not chunked.are_files([])
    assert not chunked.are_files([tmp_path / "a.npy", 1.0])
    quarter = 32 * 3 * 2
    for budget, stays in ((quarter, False), (quarter - 1, True)):
        design = as_design(tmp_path / "a.npy", memory_budget=budget)
        assert (design.in_memory() is design) == stays


def test_how_files_are_stored(tmp_path):
    X = data((4, 3))
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    pl.DataFrame(X, schema=list("abc")).write_parquet(tmp_path / "x.parquet")
    pack(X, tmp_path / "x.zncols")
    for name, order, at_once, is_known in (
        ("rows.npy", "C", 1, False),
        ("columns.npy", "F", 1, False),
        ("x.parquet", "F", 1, False),
        ("x.zncols", "F", (4 << 20) // (4 * 8), True),
    ):
        design = open_files(tmp_path / name)
        file = design._files[0]
        assert (design.backend.order, file.columns_at_once) == (order, at_once)
        assert design._known_finite == file.known_finite == is_known
    both = open_files([tmp_path / "rows.npy", tmp_path / "x.zncols"])
    assert not both._known_finite
    assert open_files([tmp_path / "x.zncols"] * 2)._known_finite


def test_types_of_the_columns_of_a_table(tmp_path):
    path = tmp_path / "x.parquet"
    for kinds, dtype in (
        ((pl.Float32, pl.Float32), np.float32),
        ((pl.Float32, pl.Float64), np.float64),
        ((pl.Float32, pl.Boolean), np.float64),
        ((pl.Int8, pl.Boolean), np.float64),
    ):
        frame = pl.DataFrame({"a": [1, 0], "b": [0, 1]}).with_columns(pl.col("a").cast(kinds[0]))
        frame.with_columns(pl.col("b").cast(kinds[1])).write_parquet(path)
        design = as_design(path)
        assert design.dtype == dtype
        np.testing.assert_array_equal(design.block(slice(None)), [[1.0, 0.0], [0.0, 1.0]])
    pl.DataFrame({"a": [1, 0], "t": ["x", "y"]}).write_parquet(path)
    with pytest.raises(ValueError, match="Column 't'"):
        as_design(path)


def test_several_files_are_read_as_one(tmp_path):
    """Each part of a selection is read from its own file, in the smallest type that holds all values."""
    X = data((5, 9)).astype(np.float32)
    parts = []
    for k, (first, last) in enumerate(((0, 2), (2, 3), (3, 9))):
        np.save(tmp_path / f"{k}.npy", X[:, first:last])
        parts.append(tmp_path / f"{k}.npy")
    design = open_files(parts)
    assert design.dtype == np.float32
    for columns in ([8, 2, 0, 2], slice(1, 4), [3], [2]):
        chosen = design.take(columns)
        np.testing.assert_array_equal(chosen.block(slice(None)), X[:, columns])
        np.testing.assert_allclose(
            chosen.dot(np.ones(chosen.n_features)), X[:, columns].sum(axis=1), rtol=1e-6
        )
        (stored,) = chosen._from_arrays(lambda columns, array: array)
        assert stored.dtype == np.float32
