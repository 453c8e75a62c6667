"""Each file of the corpus gives the expected table, or one line that says what to do."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from datasets.corpus import BAD, DAMAGED, FOREIGN, GENES, GOOD, JOINS, PLAIN, X, Z, columns, write
from datasets.corpus_numbers import BAD_NUMBERS, NUMBERS
from zeronorm.datasets import DataError, read_table
from zeronorm.datasets.readers import _delimited as delimited

ALL_GOOD, ALL_BAD = GOOD | NUMBERS, BAD | BAD_NUMBERS


def check_message(error, message):
    text = str(error.value)
    assert message in text
    assert "\n" not in text
    assert len(text) < 400
    assert text.endswith((".", "?"))
    assert not any(word in text.lower() for word in (*FOREIGN, "--", "tmp"))


@pytest.fixture(params=["whole", "row by row"])
def reader_choice(request, monkeypatch):
    """Text tables are read as a whole, and very wide ones row by row."""
    if request.param == "row by row":
        monkeypatch.setattr(delimited, "WIDE", 1)


@pytest.mark.usefixtures("reader_choice")
@pytest.mark.parametrize("case", ALL_GOOD)
def test_the_expected_table(case, tmp_path):
    good = ALL_GOOD[case]
    file = write(tmp_path / good.name, good.content)
    samples = None if good.samples is None else write(tmp_path / "samples.csv", good.samples)
    table = read_table(file, "y", samples=samples, **good.options)
    assert table.feature_names.tolist() == list(good.names)
    np.testing.assert_array_equal(table.X, good.values)
    assert table.y.tolist() == good.labels
    assert any(good.note in note for note in table.notes)
    assert len(set(table.notes)) == len(table.notes)
    assert not any(word in " ".join(table.notes).lower() for word in (*FOREIGN, "--"))


@pytest.mark.usefixtures("reader_choice")
@pytest.mark.parametrize("case", ALL_BAD)
def test_the_expected_message(case, tmp_path, monkeypatch):
    name, content, message = ALL_BAD[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / name, content)
    with pytest.raises(DataError) as error:
        read_table(name, "y")
    check_message(error, message)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf-9", "The 'encoding' parameter must be the name of a text encoding"),
        ("base64", "The 'encoding' parameter must be the name of a text encoding"),
        ("shift_jis", "not text in the encoding shift_jis. Name another one (parameter 'encoding')"),
    ],
)
def test_a_wrong_encoding(encoding, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "d.csv", PLAIN.replace("x,", "年龄é,").encode())
    with pytest.raises(DataError) as error:
        read_table("d.csv", "y", encoding=encoding)
    check_message(error, message)


@pytest.mark.parametrize("case", JOINS)
def test_tables_that_cannot_be_joined(case, tmp_path, monkeypatch):
    samples, options, message = JOINS[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "d.csv", GENES)
    write(tmp_path / "samples.csv", samples)
    with pytest.raises(DataError) as error:
        read_table("d.csv", "y", samples="samples.csv", **options)
    check_message(error, message)


def test_the_corpus_is_large_enough():
    assert len(ALL_GOOD) + len(ALL_BAD) + len(JOINS) + len(DAMAGED) >= 150


@pytest.mark.parametrize(("package", "name"), [("python_calamine", "d.xlsx"), ("zstandard", "d.csv.zst")])
def test_a_missing_package_is_named(package, name, tmp_path, monkeypatch):
    import sys

    if package == "zstandard" and sys.version_info >= (3, 14):
        pytest.skip("Python itself reads Zstandard files")
    monkeypatch.setitem(sys.modules, package, None)
    write(tmp_path / name, b"PK\x03\x04")
    with pytest.raises(DataError, match=f"pip install {package.replace('_', '-')}"):
        read_table(tmp_path / name, "y")


def test_standard_input(monkeypatch):
    class Piped(io.TextIOWrapper):
        def isatty(self):
            return False

    for content in (PLAIN.encode(), gzip.compress(PLAIN.encode())):
        monkeypatch.setattr("sys.stdin", Piped(io.BytesIO(content)))
        np.testing.assert_array_equal(read_table("-", "y").X, columns(X, Z))
    monkeypatch.setattr("sys.stdin", Piped(io.BytesIO(b"")))
    with pytest.raises(DataError, match="Standard input is empty"):
        read_table("-", "y")


@pytest.mark.parametrize("case", DAMAGED)
def test_one_line_with_a_remedy(case, tmp_path):
    name, write, message = DAMAGED[case]
    file = tmp_path / name
    if write is not None:
        write(file)
    with pytest.raises(DataError) as error:
        read_table(file, "y")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert "--" not in str(error.value)
    assert not any(word in str(error.value).lower() for word in FOREIGN)
