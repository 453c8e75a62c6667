"""Tables from files, from two tables, by name and packed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm import as_design
from zeronorm.workflow._inputs import DataOptions, load_data, pack_table

from .conftest import numbers, table_of

QUICK = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


# -- Text files and sheets of samples --


def test_how_a_text_file_is_written_reaches_its_reader(tmp_path):
    file = tmp_path / "data.txt"
    file.write_bytes("name|größe|y\ns1|1,5|u\ns2|2,5|v\ns3|3,5|u\ns4|0,5|v\n".encode("latin-1"))
    table = load_data(
        file, DataOptions(target="y", id="name", delimiter="|", decimal_comma=True, encoding="latin-1")
    )
    assert table.feature_names.tolist() == ["größe"]
    np.testing.assert_array_equal(table.X[:, 0], [1.5, 2.5, 3.5, 0.5])
    assert table.sample_ids.tolist() == ["s1", "s2", "s3", "s4"]
    turned = tmp_path / "turned.csv"
    turned.write_text("x,s1,s2,s3,s4\na,1,2,3,4\nb,5,4,7,6\ny,u,v,u,v\n")
    table = load_data(turned, DataOptions(target="y", transpose=True))
    assert table.feature_names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(np.asarray(table.X, dtype=float), [[1, 5], [2, 4], [3, 7], [4, 6]])


def test_sheets_of_samples_have_their_own_delimiter(tmp_path):
    (tmp_path / "data.txt").write_text("id;a;b\ns1;1;5\ns2;2;4\ns3;3;7\ns4;4;6\n")
    (tmp_path / "sheet.csv").write_text("id,state,age\ns4,v,40\ns1,u,10\ns2,v,20\ns3,u,30\n")
    options = DataOptions(
        target="state", samples=str(tmp_path / "sheet.csv"), id="id", delimiter=";", keep=("age",)
    )
    table = load_data(tmp_path / "data.txt", options)
    assert table.y.tolist() == ["u", "v", "u", "v"]
    assert table.feature_names.tolist() == ["a", "b", "age"]
    np.testing.assert_array_equal(table.X, [[1, 5, 10], [2, 4, 20], [3, 7, 30], [4, 6, 40]])
    assert table.source == str(tmp_path / "data.txt")
    for role in ("only", "categorical"):
        given = replace(options, keep=(), **{role: ("a", "b", "age") if role == "only" else ("age",)})
        found = [str(name) for name in load_data(tmp_path / "data.txt", given).feature_names]
        assert any(name.startswith("age") for name in found), role
    assert load_data(tmp_path / "data.txt", replace(options, keep=())).feature_names.tolist() == ["a", "b"]


def two_tables(folder, n=24):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, "sick", "well")
    X = rng.normal(size=(n, 30)) + 2.0 * (y == "sick")[:, None] * (np.arange(30) < 2)
    ids = [f"S-{i}" for i in range(n)]
    genes = pl.DataFrame({"gene": [f"g{k}" for k in range(30)], **{name: X[i] for i, name in enumerate(ids)}})
    genes.write_csv(folder / "genes.csv")
    order = rng.permutation(n)
    people = pl.DataFrame(
        {
            "sample": [ids[i] for i in order],
            "state": y[order],
            "patient": [f"p{i // 2}" for i in order],
            "age": rng.integers(20, 80, size=n),
        }
    )
    people.write_csv(folder / "people.csv")
    return X, y, genes, people


def test_a_file_and_a_table_of_samples(tmp_path):
    X, y, _, people = two_tables(tmp_path)
    files = {"samples": tmp_path / "people.csv", "id": "sample", "transpose": True}
    table = load_data(
        tmp_path / "genes.csv", DataOptions(target="state", sample_groups="patient", keep=("age",), **files)
    )
    np.testing.assert_allclose(table.X[:, :30], X)
    assert table.y.tolist() == y.tolist()
    assert table.feature_names[-1] == "age"
    assert table.sample_groups.tolist() == [f"p{i // 2}" for i in range(24)]
    result = zeronorm.select(tmp_path / "genes.csv", target="state", **files, **QUICK)
    assert set(result.features) == {"g0", "g1"}
    framed = zeronorm.select(
        tmp_path / "genes.csv", target="state", samples=people, id="sample", transpose=True, **QUICK
    )
    assert framed.features == result.features


def test_a_table_of_samples_for_a_pandas_frame_with_an_index(tmp_path):
    pytest.importorskip("pandas")
    X, y, genes, people = two_tables(tmp_path)
    frame = genes.to_pandas().set_index("gene").T
    table = load_data(frame, DataOptions(target="state", samples=people.to_pandas().set_index("sample")))
    np.testing.assert_allclose(table.X, X)
    assert table.y.tolist() == y.tolist()
    with pytest.raises(ValueError, match="'samples' parameter"):
        load_data(frame, DataOptions(target="state", samples=[1, 2]))


# -- Data that stay on disk --


def test_data_on_disk_need_a_target_beside_them(tmp_path):
    X, y = numbers(8)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "labels.npy", y)
    table = load_data(tmp_path / "X.npy", DataOptions(target=str(tmp_path / "labels.npy")))
    assert table.target_name == "labels"
    assert table.y.tolist() == y.tolist()
    assert table.source == str(tmp_path / "X.npy")
    assert load_data(tmp_path / "X.npy", DataOptions(target=tmp_path / "labels.npy")).target_name == "labels"
    for wrong in (None, "state"):
        with pytest.raises(ValueError, match=r"must be an array, or the path of a \.npy file, for .*X\.npy"):
            load_data(tmp_path / "X.npy", DataOptions(target=wrong))
    with pytest.raises(ValueError, match="no file"):
        load_data(tmp_path / "X.npy", DataOptions(target=str(tmp_path / "none.npy")))
    with pytest.raises(ValueError, match="no file"):
        load_data(tmp_path / "Z.npy", DataOptions(target=y))
    # A Parquet file that holds its target is loaded; with a separate target it stays on disk.
    frame = pl.DataFrame({f"g{j}": X[:, j] for j in range(4)} | {"y": y})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.drop("y").write_parquet(tmp_path / "X.parquet")
    assert isinstance(load_data(tmp_path / "t.parquet", DataOptions(target="y")).X, np.ndarray)
    for target in (y, str(tmp_path / "labels.npy")):
        assert not isinstance(load_data(tmp_path / "X.parquet", DataOptions(target=target)).X, np.ndarray)


def test_a_packed_table_keeps_everything_that_belongs_to_it(tmp_path):
    X, y = numbers(8)
    frame = pl.DataFrame(
        {
            "id": [f"s{i}" for i in range(8)],
            "text": list("pqrpqrpq"),
            **{f"g{j}": X[:, j] for j in range(3)},
            "who": np.arange(8) // 2,
            "y": y,
        }
    )
    table = load_data(frame, DataOptions(target="y", id="id", sample_groups="who", ignore=("g1",)))
    file = pack_table(table, tmp_path / "t.zncols")
    found = load_data(file, DataOptions())
    np.testing.assert_allclose(found.X.block(slice(None)), table.X)
    for name in ("y", "source_columns", "feature_groups", "sample_groups", "sample_ids", "feature_names"):
        assert [str(v) for v in getattr(found, name)] == [str(v) for v in getattr(table, name)], name
    assert (found.target_name, found.task, found.source) == ("y", "classification", str(file))
    assert found.notes == table.notes
    assert load_data(file, DataOptions(target="y")).y.tolist() == y.tolist()
    other = load_data(file, DataOptions(target=np.arange(8.0) / 3, sample_groups=np.arange(8)))
    assert (other.task, other.target_name) == ("regression", "target")
    assert other.sample_groups.tolist() == list(range(8))
    regrouped = load_data(file, DataOptions(sample_groups=np.arange(8) // 4))
    assert regrouped.sample_groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"'target' parameter must be 'y', the target packed with"):
        load_data(file, DataOptions(target="z"))
    whole = load_data(file, DataOptions(task="classification"))
    assert whole.task == "classification"
    plain = pack_table(table_of(X, y), tmp_path / "plain.zncols")
    again = load_data(plain, DataOptions())
    assert again.source_columns.tolist() == [0, 1, 2, 3]
    assert again.feature_groups is again.sample_groups is None
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"cannot hold missing values.* has 1; fill them"):
        pack_table(table_of(gaps, y), tmp_path / "gaps.zncols")
    assert (
        np.dtype(as_design(pack_table(table_of(X, y), tmp_path / "f.zncols", "float32")).dtype) == np.float32
    )


def test_no_object_is_read_from_the_file_of_a_target(tmp_path):
    X, y = numbers(24)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_data(tmp_path / "X.npy", DataOptions(target=str(tmp_path / "y.npy")))


# -- By name --


def test_a_data_set_by_name_follows_the_seed_and_the_options():
    one, same, other = (load_data("linear-toy", DataOptions(random_state=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.X, same.X)
    assert not np.array_equal(one.X, other.X)
    fewer = load_data("linear-toy", DataOptions(random_state=1, ignore=("x3",)))
    assert (one.n_features, fewer.n_features) == (202, 201)
