"""Each bad file gets one line that says what to do."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from zeronorm.datasets import DataError, read_table


def text(content):
    return lambda file: file.write_bytes(content if isinstance(content, bytes) else content.encode())


def truncated_parquet(file):
    pl.DataFrame({"x": list(range(1000)), "y": [0, 1] * 500}).write_parquet(file)
    file.write_bytes(file.read_bytes()[:-200])


def pickled_npz(file):
    np.savez(file, X=np.asarray([{"a": 1}, {"b": 2}], dtype=object), y=np.arange(2))


GOOD = "x,y\n1,a\n2,b\n3,a\n4,b\n"
FOREIGN = ("polars", "pandas", "traceback", "schema", "dtype", "computeerror", "rust")
CASES = {
    "missing file": ("none.csv", None, "There is no file"),
    "directory": (".", None, "is a directory"),
    "empty": ("d.csv", text(""), "is empty"),
    "only a header": ("d.csv", text("x,y\n"), "no rows"),
    "one row": ("d.csv", text("x,y\n1,a\n"), "1 sample"),
    "one column": ("d.csv", text("y\na\nb\n"), "only one column"),
    "target absent": ("d.csv", text(GOOD.replace("y", "yy")), "Did you mean 'yy'"),
    "no header": ("d.csv", text("1,2\n3,4\n5,6\n"), "Add a header line"),
    "ragged": ("d.csv", text("x,y\n1,a\n2,b,c\n3,a\n"), "Line 3 of the file"),
    "target constant": ("d.csv", text("x,y\n1,a\n2,a\n"), "constant"),
    "numeric target constant": ("d.csv", text("x,y\n1,2.5\n2,2.5\n"), "constant"),
    "labels missing": ("d.csv", text("x,y\n1,a\n2,\n3,b\n4,a\n"), "has no value in 1 of 4 samples"),
    "label seen once": ("d.csv", text("x,y\n1,a\n2,b\n3,a\n4,b\n5,c\n"), "only one sample"),
    "target all unique": ("d.csv", text("x,y\n1,a\n2,b\n3,c\n4,d\n"), "identifier"),
    "whole numbers all unique": ("d.csv", text("x,y\n1,5\n2,6\n3,7\n4,9\n"), "identifier"),
    "infinite": ("d.csv", text("x,y\n1,a\ninf,b\n3,a\n4,b\n"), "infinite"),
    "truncated parquet": ("d.parquet", truncated_parquet, "damaged"),
    "text as parquet": ("d.parquet", text(GOOD), "damaged"),
    "text as arrow": ("d.arrow", text(GOOD), "damaged"),
    "text as npz": ("d.npz", text(GOOD), "NumPy archive"),
    "pickle in npz": ("d.npz", pickled_npz, "NumPy archive"),
    "text as mat": ("d.mat", text(GOOD), "MATLAB"),
    "csv as libsvm": ("d.libsvm", text(GOOD), "LIBSVM"),
    "csv as arff": ("d.arff", text(GOOD), "@data"),
    "unknown ending": ("d.xyz", text(GOOD), "known format"),
    "binary as csv": ("d.csv", text(b"\x00\x01\x02,\x07\n"), "binary"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_with_a_remedy(case, tmp_path):
    name, write, message = CASES[case]
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


def test_a_damaged_h5ad_file(tmp_path):
    pytest.importorskip("anndata", reason="anndata is not installed")
    (tmp_path / "d.h5ad").write_text(GOOD)
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "d.h5ad", "y")


def test_an_unreadable_file(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text(GOOD)
    file.chmod(0)
    try:
        file.read_bytes()
    except PermissionError:
        with pytest.raises(DataError, match="permissions"):
            read_table(file, "y")
    else:
        pytest.skip("this user can read files without permission")
