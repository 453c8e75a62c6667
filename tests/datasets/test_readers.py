"""Every format gives the same table; strange names survive."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.io.arff
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from datasets.corpus import TWO_COLUMNS
from zeronorm.datasets import DataError, read_table
from zeronorm.datasets.readers import _delimited as delimited
from zeronorm.datasets.readers import read_raw

STRANGE_NAMES = [
    '<script>alert("x")</script>',
    'it\'s "quoted"',
    "two\nlines",
    "x" * 10_000,
    "\u202eright to left עברית",
    "=1+1",
    "same",
    "same",
]


def write_csv(file, names, rows, delimiter=","):
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(names)
        writer.writerows(rows)
    return file


ROWS_OF_CELLS = {
    "plain": "id,g1,g2,g3,y\ns1,1,2.5,3,a\ns2,4,-5e3,6,b\n",
    "no texts": "g1,g2,y\n1,2,0\n3,4,1\n",
    "gaps": "id,g1,g2,g3,y\ns1,,2.5,NA,a\ns2,4,,,b\n",
    "quoted texts": '"id","g1","g2","y"\n"s 1",1,2,"a"\n"s2",3,4,"b"\n',
    "windows": "id\tg1\tg2\ty\r\ns1\t1\t2\ta\r\ns2\t3\t4\tb\r\n",
    "decimal comma": "id;g1;g2;y\ns1;1,5;2;a\ns2;3;4,25;b\n",
}
NOT_ROW_BY_ROW = {
    "text within": "g1,y,g2\n1,a,2\n3,b,4\n",
    "text further down": "g1,g2,y\n" + "1,2,a\n" * 101 + "1,low,b\n",
    "quoted number": 'id,g1,g2,y\ns1,1,"2",a\ns2,3,4,b\n',
    "separator in a text": 'id,g1,g2,y\n"s,1",1,2,a\n"s,2",3,4,b\n',
    "number after a missing value": "g1,g2,y\n.,2,a\n1,2,b\n" + "1,2,a\n" * 100,
}
VALUES = np.random.default_rng(0).normal(size=60)
LABELS = np.where(VALUES > 0.0, "ill", "well").tolist()
A = [f"{value:.3f}" for value in VALUES[::-1]]


def saved(tmp_path, text):
    file = tmp_path / "table.csv"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def numbers():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 4)).round(6)
    return X, np.arange(12) % 2


def frame_of(X, y):
    return pl.DataFrame({**{f"x{i + 1}": X[:, i] for i in range(X.shape[1])}, "y": y})


def save(kind, folder, X, y):
    file = folder / f"data.{kind}"
    if kind in ("csv", "tsv"):
        frame_of(X, y).write_csv(file, separator="," if kind == "csv" else "\t")
    elif kind == "parquet":
        frame_of(X, y).write_parquet(file)
    elif kind == "arrow":
        frame_of(X, y).write_ipc(file)
    elif kind == "npz":
        np.savez(file, X=X, y=y)
    elif kind == "libsvm":
        dump_svmlight_file(X, y, str(file), zero_based=False)
    elif kind == "mat":
        scipy.io.savemat(file, {"X": X, "y": y})
    elif kind == "arff":
        header = "@relation r\n" + "".join(f"@attribute x{i + 1} numeric\n" for i in range(X.shape[1]))
        rows = "\n".join(",".join(map(str, row)) + f",{label}" for row, label in zip(X, y, strict=True))
        file.write_text(f"{header}@attribute y {{0,1}}\n@data\n% comment\n{rows}\n")
    return file


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow", "npz", "libsvm", "mat", "arff"])
def test_every_format_gives_the_same_table(kind, tmp_path, numbers):
    X, y = numbers
    file = save(kind, tmp_path, X, y)
    table = read_table(file, None if kind in ("npz", "libsvm", "mat") else "y")
    values = table.X.toarray() if sp.issparse(table.X) else table.X
    np.testing.assert_allclose(values, X, rtol=0, atol=1e-12)
    assert [int(label) for label in table.y] == y.tolist()
    assert table.feature_names.tolist() == ["x1", "x2", "x3", "x4"]
    assert table.task == "classification"
    assert any("classification" in note for note in table.notes)


def test_h5ad(tmp_path, numbers):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pandas = pytest.importorskip("pandas")
    X, y = numbers
    genes = pandas.DataFrame(index=[f"g{i}" for i in range(4)])
    cells = pandas.DataFrame(
        {"state": pandas.Categorical(np.where(y == 1, "sick", "well"))}, index=map(str, range(12))
    )
    file = tmp_path / "cells.h5ad"
    anndata.AnnData(X=sp.csr_matrix(X), obs=cells, var=genes).write_h5ad(file)
    table = read_table(file, "state")
    np.testing.assert_allclose(table.X.toarray(), X)
    assert table.feature_names.tolist() == ["g0", "g1", "g2", "g3"]
    assert table.class_counts == {"sick": 6, "well": 6}


def test_strange_names_survive_and_repeated_ones_become_distinct(tmp_path):
    rows = [[i + k for k in range(len(STRANGE_NAMES))] + ["ab"[i % 2]] for i in range(6)]
    table = read_table(write_csv(tmp_path / "d.csv", [*STRANGE_NAMES, "label"], rows), "label")
    assert table.feature_names.tolist() == [*STRANGE_NAMES[:-1], "same (2)"]
    assert any("'same (2)'" in note for note in table.notes)
    np.testing.assert_array_equal(table.X, np.asarray([row[:-1] for row in rows], dtype=float))


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    file = tmp_path / "d.csv"
    file.write_bytes("\ufeffa,y\n1,u\n2,v\n3,u\n4,v\n".encode())
    assert read_table(file, "y").feature_names.tolist() == ["a"]


def test_samples_in_columns(tmp_path):
    names = ["gene", "s1", "s2", "s3", "s4"]
    rows = [["label", "a", "b", "a", "b"], ["g1", 1, 2, 3, 4], ["g2", 5, 6, 7, 8.5]]
    table = read_table(write_csv(tmp_path / "d.csv", names, rows), "label", transpose=True)
    np.testing.assert_array_equal(table.X, [[1, 5], [2, 6], [3, 7], [4, 8.5]])
    assert table.feature_names.tolist() == ["g1", "g2"]
    assert table.sample_ids.tolist() == ["s1", "s2", "s3", "s4"]
    assert table.y.tolist() == ["a", "b", "a", "b"]


@pytest.mark.parametrize("row", [1, 99, 100, 149])
def test_a_word_among_numbers_is_missing_in_any_row(row, tmp_path):
    """The types of columns are guessed from the first hundred rows."""
    rows = [[i % 50, "7", "ab"[i % 2]] for i in range(150)]
    rows[row][1] = "many"
    file = write_csv(tmp_path / "d.csv", ["x", "size", "y"], rows)
    table = read_table(file, "y")
    assert table.feature_names.tolist() == ["x", "size"]
    assert np.flatnonzero(np.isnan(table.X[:, 1])).tolist() == [row]
    assert table.n_missing == 1
    assert any(f"'many' in the column 'size', data row {row + 1}" in note for note in table.notes)
    declared = read_table(file, "y", categorical=("size",))
    assert declared.feature_names.tolist() == ["x", "size=many"]
    assert np.flatnonzero(declared.X[:, 1]).tolist() == [row]


def test_decimal_comma(tmp_path):
    file = write_csv(tmp_path / "d.csv", ["x", "y"], [["1,5", "a"], ["2,5", "b"]] * 3, delimiter=";")
    for options in ({}, {"decimal_comma": True}):
        table = read_table(file, "y", delimiter=";", **options)
        assert table.X[:2, 0].tolist() == [1.5, 2.5]


def test_sparse_npz_as_in_the_challenge_files(tmp_path):
    matrix = sp.random(10, 30, density=0.2, random_state=0, format="csr")
    file = tmp_path / "d.npz"
    np.savez(
        file,
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.asarray(matrix.shape),
        y=np.arange(10) % 2,
    )
    table = read_table(file)
    assert sp.issparse(table.X)
    np.testing.assert_allclose(table.X.toarray(), matrix.toarray())


def test_arff_agrees_with_scipy(tmp_path):
    file = tmp_path / "d.arff"
    file.write_text(
        "% a comment\n@RELATION test\n@ATTRIBUTE width REAL\n@ATTRIBUTE 'my height' numeric\n"
        "@ATTRIBUTE colour {red, green, blue}\n@ATTRIBUTE class {yes, no}\n@DATA\n"
        "1.5,2,red,yes\n2.5,-3e2,green,no\n0,1,blue,yes\n1,4,red,no\n"
    )
    data, _ = scipy.io.arff.loadarff(file)
    table = read_table(file, "class")
    assert table.feature_names.tolist() == ["width", "my height", "colour=blue", "colour=green", "colour=red"]
    np.testing.assert_array_equal(table.X[:, 0], data["width"])
    np.testing.assert_array_equal(table.X[:, 1], data["my height"])
    np.testing.assert_array_equal(table.X[:, 4], data["colour"] == b"red")
    assert table.y.tolist() == ["yes", "no", "yes", "no"]


def test_sparse_arff(tmp_path):
    file = tmp_path / "d.arff"
    file.write_text(
        "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute c {no,yes}\n@data\n"
        "{0 1.5}\n{1 2, 2 yes}\n{}\n{0 -1, 1 3, 2 yes}\n"
    )
    table = read_table(file, "c")
    np.testing.assert_array_equal(table.X.toarray(), [[1.5, 0], [0, 2], [0, 0], [-1, 3]])
    assert table.y.tolist() == ["no", "yes", "no", "yes"]


def test_matlab_labels_and_names_as_cells(tmp_path):
    file = tmp_path / "d.mat"
    names = np.asarray(["f1", "f2", "f3"], dtype=object)
    labels = np.asarray(["u", "v", "u", "v"], dtype=object)
    scipy.io.savemat(file, {"X": np.arange(12.0).reshape(4, 3), "names": names, "label": labels})
    table = read_table(file)
    assert table.feature_names.tolist() == ["f1", "f2", "f3"]
    assert table.y.tolist() == ["u", "v", "u", "v"]


def test_more_than_65535_columns(tmp_path):
    p = 70_000
    header = ",".join(f"g{i}" for i in range(p)) + ",y\n"
    lines = [",".join([str(i + 1)] * p) + "," + "ab"[i % 2] for i in range(4)]
    file = tmp_path / "wide.csv"
    file.write_text(header + "\n".join(lines) + "\n")
    table = read_table(file, "y")
    assert table.X.shape == (4, p)
    assert table.X[:, -1].tolist() == [1, 2, 3, 4]
    assert table.feature_names[-1] == f"g{p - 1}"


def _raw(text, tmp_path, monkeypatch, wide):
    file = tmp_path / "d.csv"
    file.write_bytes(text.encode())
    calls = []
    read = delimited._read_wide
    monkeypatch.setattr(delimited, "_read_wide", lambda *a: calls.append(read(*a)) or calls[-1])
    monkeypatch.setattr(delimited, "WIDE", wide)
    raw = read_raw(file, decimal_comma=";" in text)
    monkeypatch.setattr(delimited, "_read_wide", read)
    return raw, bool(calls and calls[-1] is not None)


@pytest.mark.parametrize("case", [*ROWS_OF_CELLS, *NOT_ROW_BY_ROW])
def test_reading_row_by_row_gives_the_same_table(case, tmp_path, monkeypatch):
    text = (ROWS_OF_CELLS | NOT_ROW_BY_ROW)[case]
    expected, _ = _raw(text, tmp_path, monkeypatch, 10**9)
    found, row_by_row = _raw(text, tmp_path, monkeypatch, 1)
    assert row_by_row is (case in ROWS_OF_CELLS)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.positions, expected.positions)
    assert found.names == expected.names
    assert {row: list(cells) for row, cells in found.texts.items()} == dict(expected.texts)


def test_a_file_without_a_header_may_have_text(tmp_path):
    rows = "".join(f"{a},{b},{label}\n" for a, b, label in zip(A, A[::-1], LABELS, strict=True))
    with pytest.raises(DataError, match=r"Many names are numbers. Add a header line if"):
        read_table(saved(tmp_path, rows), target="y")
    named = "a,b,y\n" + rows
    with pytest.raises(DataError, match=r"The first are 'a', 'b', 'y'.$"):
        read_table(saved(tmp_path, named), target="outcome")


def test_a_title_above_the_header_is_seen(tmp_path):
    rows = "".join(f"{a},{label}\n" for a, label in zip(A, LABELS, strict=True))
    with pytest.raises(
        DataError, match="Line 3 has 2 cells: if it is the header, below a title, set header_row=3"
    ):
        read_table(saved(tmp_path, "Results of our study\n\na,y\n" + rows), target="y")


@pytest.mark.parametrize(
    "page", ["<!DOCTYPE html><html><p>Not found, sorry</p></html>", "\n<html>\n<p>No</p></html>"]
)
def test_a_web_page_is_no_table(tmp_path, page):
    with pytest.raises(DataError, match=r"is a web page, not a table. Download the data itself"):
        read_table(saved(tmp_path, page), target="y")


def test_a_damaged_h5ad_file(tmp_path):
    pytest.importorskip("anndata", reason="anndata is not installed")
    (tmp_path / "d.h5ad").write_text(TWO_COLUMNS)
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "d.h5ad", "y")


def test_an_unreadable_file(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text(TWO_COLUMNS)
    file.chmod(0)
    try:
        file.read_bytes()
    except PermissionError:
        with pytest.raises(DataError, match="permissions"):
            read_table(file, "y")
    else:
        pytest.skip("this user can read files without permission")


@pytest.mark.parametrize(("factor", "features", "identifiers"), [(0.37, ["g", "h"], ()), (3, ["h"], ("g",))])
def test_whole_numbers_declared_as_text_are_names_and_others_are_numbers(
    tmp_path, factor, features, identifiers
):
    """An ARFF file may declare numbers as text."""
    rows = "\n".join(f"{factor * i},{1.5 * i},{'ab'[i % 2]}" for i in range(30))
    header = "@relation r\n@attribute g string\n@attribute h numeric\n@attribute class {a,b}\n@data\n"
    path = tmp_path / "texts.arff"
    path.write_text(header + rows)
    table = read_table(path, "class")
    assert table.feature_names.tolist() == features
    assert table.id_columns == identifiers
    assert any("'g'" in note and "left out" in note for note in table.notes) is bool(identifiers)


# -- Files made to fill a disk --


def test_compression_within_compression_is_limited(tmp_path):
    path, content = tmp_path / "x.csv.gz.gz", b"0" * (65 << 20)
    path.write_bytes(gzip.compress(gzip.compress(content)))
    assert path.stat().st_size < 4000
    with pytest.raises(
        DataError, match=r"grows to more than 64 MiB when it is decompressed, over 1000 times"
    ):
        read_table(path, "y")


def test_more_than_two_layers_are_refused(tmp_path):
    path, content = tmp_path / "x.csv.gz.gz.gz", b"y,a\n0,1\n1,2\n0,3\n1,5\n"
    path.write_bytes(gzip.compress(gzip.compress(gzip.compress(content))))
    with pytest.raises(DataError, match="is compressed more than 2 times, one within the other"):
        read_table(path, "y")
    path = tmp_path / "x.csv.gz.gz"
    path.write_bytes(gzip.compress(gzip.compress(content)))
    assert read_table(path, "y").X.shape == (4, 1)
