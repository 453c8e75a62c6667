"""A packed file gives the same result as the table it was made from."""

from __future__ import annotations

import errno
import gzip
import json
import os

import numpy as np
import polars as pl
import pytest

from zeronorm.cli._main import run
from zeronorm.design import _packing as packing
from zeronorm.design import as_design
from zeronorm.design._base import Design
from zeronorm.design._chunked import ChunkedDesign
from zeronorm.design._sparse import SparseFileDesign
from zeronorm.workflow._inputs import DataOptions, load_data
from zeronorm.workflow._result import Result

from .conftest import small_rows

QUICK = ["--method", "fisher", "--cv", "3", "--permutations", "0", "--features", "2", "-q"]


def test_a_packed_table_gives_the_result_of_the_table(data_file, tmp_path, capsys, monkeypatch):
    packed = tmp_path / "data.zncols"
    assert run(["pack", str(data_file), "--target", "label", "--out", str(packed)]) == 0
    assert f"wrote {packed}" in " ".join(capsys.readouterr().out.split())
    assert run(["select", str(data_file), "-t", "label", "-o", str(tmp_path / "a"), *QUICK]) == 0

    def refuse(self):
        raise AssertionError("the data were loaded")

    monkeypatch.setattr(ChunkedDesign, "in_memory", refuse)
    assert run(["select", str(packed), "-o", str(tmp_path / "b"), "--memory-budget", "1M", *QUICK]) == 0
    table, columns = (Result.read(tmp_path / name / "result.json") for name in "ab")
    # A file is read by column and a table in memory by row, so that sums differ by rounding.
    for of_file, of_table in zip(columns.selected, table.selected, strict=True):
        assert (of_file.name, of_file.rank, of_file.frequency) == (
            of_table.name,
            of_table.rank,
            of_table.frequency,
        )
        assert of_file.score == pytest.approx(of_table.score, rel=1e-12)
    assert columns.procedure["value"] == table.procedure["value"]
    assert columns.data["target"] == "label"
    assert run(["compare", str(packed), "-m", "fisher,golub", "-o", str(tmp_path / "c"), *QUICK[2:]]) == 0


@pytest.mark.parametrize("kind", ["parquet", "npz", "libsvm", "h5ad"])
def test_other_formats(tmp_path, kind):
    rows = small_rows()
    X = np.asarray([row[:-1] for row in rows], dtype=float)
    y = np.unique([row[-1] for row in rows], return_inverse=True)[1]
    file, target = tmp_path / f"data.{kind}", ["-t", "label"]
    if kind == "parquet":
        pl.DataFrame({f"g{j}": X[:, j] for j in range(X.shape[1])} | {"label": y}).write_parquet(file)
    elif kind == "npz":
        np.savez(file, X=X, label=y)
    elif kind == "libsvm":
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X, y, str(file))
        target = []
    else:
        anndata = pytest.importorskip("anndata")
        import pandas as pd

        obs = pd.DataFrame({"label": [f"c{v}" for v in y]}, index=[f"s{i}" for i in range(len(y))])
        anndata.AnnData(X, obs=obs).write_h5ad(file)
    assert run(["pack", str(file), *target, "--float32"]) == 0
    packed = tmp_path / "data.zncols"
    assert run(["select", str(packed), "-o", str(tmp_path / "out"), *QUICK]) == 0
    assert sorted(f.column for f in Result.read(tmp_path / "out" / "result.json").selected) == [0, 1]
    found = packing.PackedFile(packed)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.read(range(len(X)), range(X.shape[1])), X.astype(np.float32))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "npz", "libsvm"])
def test_a_large_file_is_converted_piece_by_piece(tmp_path, kind, monkeypatch):
    rng, y = np.random.default_rng(0), np.arange(40) % 2
    X = np.where(rng.uniform(size=(40, 30)) < 0.4, rng.integers(1, 99, size=(40, 30)), 0).astype(np.float64)
    X[0, 29] = 5.0
    file, target = tmp_path / f"data.{kind}", "label"
    if kind == "npz":
        np.savez(file, X=X, label=y)
    elif kind == "libsvm":
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X, y, str(file), zero_based=False)
    else:
        names = [f"g{j}" for j in range(30)]
        lines = [",".join(["id", *names, "label"])]
        lines += [
            f"s{i}," + ",".join(map(str, row)) + f",{'ab'[k]}"
            for i, (row, k) in enumerate(zip(X, y, strict=True))
        ]
        content = "\n".join(lines).encode()
        file.write_bytes(gzip.compress(content) if kind == "csv.gz" else content)
    expected = load_data(file, DataOptions(target=target))
    bands = []
    monkeypatch.setattr(packing, "as_design", lambda X, **names: bands.append(X) or as_design(X, **names))
    assert (
        run(["pack", str(file), "-t", target, "-o", str(tmp_path / "x.zncols"), "--memory-budget", "2K"]) == 0
    )
    assert isinstance(bands[0], SparseFileDesign if kind == "libsvm" else ChunkedDesign)
    found = load_data(tmp_path / "x.zncols", DataOptions())
    np.testing.assert_array_equal(found.X.block(slice(None)), X)
    np.testing.assert_array_equal(found.y, expected.y)
    assert list(found.feature_names) == list(expected.feature_names)
    assert (found.sample_ids is None) == (expected.sample_ids is None)


def test_missing_values_of_a_large_file_are_named(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,label\n" + "1,2,x\n3,4,y\n" * 10 + "1,,x\n")
    assert run(["pack", str(tmp_path / "t.csv"), "-t", "label", "--memory-budget", "10"]) == 2
    assert "contains NaN: first found in row 20, column 1" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "t.zncols").exists()


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
@pytest.mark.parametrize("backend", ["h5ad", "zarr"])
def test_annotated_data_stay_on_disk(tmp_path, backend, monkeypatch):
    anndata = pytest.importorskip("anndata")
    import pandas as pd
    from scipy import sparse

    rows = small_rows()
    X = np.asarray([row[:-1] for row in rows], dtype=np.float32)
    names = [f"cell {i}" for i in range(len(rows))]
    obs = pd.DataFrame(
        {"label": [f"c{row[-1]}" for row in rows], "donor": np.arange(len(rows)) // 3}, index=names
    )
    obs.loc["cell 0", "label"] = None
    data = anndata.AnnData(sparse.csr_matrix(X), obs=obs)
    data.var_names = [f"gene {j}" for j in range(X.shape[1])]
    file = tmp_path / f"cells.{backend}"
    data.write_h5ad(file) if backend == "h5ad" else data.write_zarr(file)
    monkeypatch.setattr(anndata, "read_h5ad", None)
    options = ["-t", "label", "--drop-unlabelled", "--memory-budget", "1K"]
    roles = ["--sample-groups", "donor", "--ignore", "gene 3"]
    assert run(["select", str(file), *options, *roles, "-o", str(tmp_path / "a"), *QUICK]) == 0
    result = Result.read(tmp_path / "a" / "result.json")
    assert sorted(feature.name for feature in result.selected) == ["gene 0", "gene 1"]
    assert result.data["n_samples"] == len(rows) - 1
    assert result.data["n_features"] == X.shape[1] - 1
    assert run(["pack", str(file), *options]) == 0
    packed = packing.PackedFile(tmp_path / "cells.zncols")
    np.testing.assert_array_equal(packed.read(range(len(rows) - 1), range(X.shape[1])), X[1:])
    assert packed.about["sample_ids"][0] == "cell 1"


def test_annotated_data_without_a_table_of_samples_are_refused(tmp_path, capsys):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.eye(4)
    arguments = ["select", str(tmp_path / "x.h5ad"), "-t", "label", "--memory-budget", "1M"]
    assert run([*arguments, "-o", str(tmp_path / "o"), *QUICK]) == 2
    assert "no readable table 'obs'" in " ".join(capsys.readouterr().err.split())


def test_groups_and_encoded_columns_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    frame = pl.DataFrame(
        {
            "a": rng.normal(size=40) + 2 * y,
            "colour": [["red", "green", "blue"][k] for k in rng.integers(0, 3, 40)],
            "patient": [f"p{k // 4}" for k in range(40)],
            "label": [["ill", "well"][k] for k in y],
        }
    )
    frame.write_csv(tmp_path / "t.csv")
    assert run(["pack", str(tmp_path / "t.csv"), "-t", "label", "--sample-groups", "patient"]) == 0
    about = packing.PackedFile(tmp_path / "t.zncols").about
    assert len(set(about["sample_groups"])) == 10
    assert run(["select", str(tmp_path / "t.zncols"), "-o", str(tmp_path / "out"), *QUICK]) == 0
    result = Result.read(tmp_path / "out" / "result.json")
    assert result.data["sample_groups"] == 10
    assert result.data["class_counts"] == {"ill": 20, "well": 20}
    assert result.data["n_features"] == 4


def test_a_full_disk_and_other_errors_are_reported_in_one_line(data_file, tmp_path, capsys, monkeypatch):
    packed = tmp_path / "data.zncols"
    arguments = ["pack", str(data_file), "-t", "label", "-o", str(packed)]

    def full(stream, *_):
        stream.write(b"something")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(packing, "_write_columns", full)
        assert run(arguments) == 2
    assert "disk is full" in capsys.readouterr().err
    assert not [file for file in tmp_path.iterdir() if "zncols" in file.name]
    assert run(arguments) == 0
    assert run(arguments) == 2
    assert "pass --force" in capsys.readouterr().err
    assert run(["select", str(packed), "-t", "other", "-o", str(tmp_path / "o"), *QUICK]) == 2
    assert "must be 'label'" in capsys.readouterr().err
    assert run(["select", str(packed), "-o", str(tmp_path / "o"), "--memory-budget", "lots", *QUICK]) == 2
    assert "such as 512M" in capsys.readouterr().err


def test_a_damaged_file_is_an_error_of_the_input(data_file, tmp_path, capsys):
    packed = tmp_path / "data.zncols"
    run(["pack", str(data_file), "-t", "label", "-o", str(packed)])
    content = bytearray(packed.read_bytes())
    content[100] ^= 1
    packed.write_bytes(content)
    capsys.readouterr()
    assert run(["select", str(packed), "-o", str(tmp_path / "o"), *QUICK]) == 2
    assert "do not match their checksum; pack the data again" in capsys.readouterr().err


def test_missing_values_are_refused_with_a_remedy_that_works(tmp_path, capsys):
    y = np.arange(30) % 2
    x = [None, *np.random.default_rng(0).normal(size=29)]
    pl.DataFrame({"a": y + 0.5, "b": x, "label": y}).write_csv(tmp_path / "t.csv")
    arguments = ["pack", str(tmp_path / "t.csv"), "-t", "label"]
    assert run(arguments) == 2
    assert "cannot hold missing values" in capsys.readouterr().err
    assert run([*arguments, "--missing", "drop-rows"]) == 0
    assert packing.PackedFile(tmp_path / "t.zncols").shape == (29, 2)


def test_numbers_too_large_for_single_precision_are_refused(tmp_path):
    with pytest.raises(ValueError, match="too large for float32"):
        packing.pack(np.array([[1e100, 1.0]]), tmp_path / "x.zncols", dtype="float32")
    with pytest.raises(ValueError, match="'dtype' parameter of pack"):
        packing.pack(np.eye(2), tmp_path / "x.zncols", dtype="int8")
    assert not list(tmp_path.iterdir())


def test_what_belongs_to_the_data_is_kept(tmp_path):
    about = {"unit": "mg", "batch": [1, 2]}
    file = packing.pack(np.eye(2), tmp_path / "x.zncols", about=about)
    assert packing.PackedFile(file).about == about
    assert isinstance(packing.as_design(file), Design)
    assert json.dumps(about) in file.read_bytes().decode("latin-1")
