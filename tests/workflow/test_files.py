"""Files of a result: call, provenance, tables, records, report."""

from __future__ import annotations

import csv
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Ridge

import zeronorm
from zeronorm.result import _files as files
from zeronorm.result._files import method_rows, write_table
from zeronorm.result._provenance import Clock, call_text, file_checksum, provenance
from zeronorm.workflow._inputs import DataOptions, load_data
from zeronorm.workflow._result import Result

from .conftest import numbers

RECORDS = {
    "split": [0], "method": ["a"], "size": [None], "n_selected": [2], "selected": [[3, 7]], "n_train": [8],
    "n_test": [2], "truth": [["u", "v"]], "predictions": [["u", "u"]],
}  # fmt: skip
QUICK = {"method": "fisher", "features": 3, "cv": 3}


# -- The call and its origin --


def test_the_call_names_what_differs_from_its_defaults():
    defaults = {"cv": 5, "rule": "recommended", "method": None, "verbose": False, "X": None}
    given = {"cv": 5, "rule": "all", "method": None, "verbose": 0, "X": np.ones((2, 2)), "features": 3}
    text = call_text("select", given, defaults)
    assert text == "zeronorm.select(rule='all', verbose=0, X=<ndarray>, features=3)"


def test_provenance_holds_the_call_the_time_and_what_is_added():
    found = provenance(Clock(), "zeronorm.select(cv=3)", seed=7)
    assert found["command"] == "zeronorm.select(cv=3)"
    assert (found["seed"], list(found)[-1]) == (7, "seed")
    assert 0.0 <= found["seconds"] < 60.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2], "[1, 2]"),
        (list(range(100)), "<list>"),
        ({"C": 1.0}, "{'C': 1.0}"),
        (None, "None"),
        (Ridge(), "<Ridge>"),
    ],
)
def test_arguments_of_a_call_as_text(value, text):
    assert call_text("select", {"x": value}, {}) == f"zeronorm.select(x={text})"
    assert call_text("select", {"x": value}, {"x": value}) == "zeronorm.select()"
    path = Path("a") / "b"
    assert call_text("select", {"data": path}, {"data": path / "c"}) == "zeronorm.select(data='a/b')"
    assert call_text("select", {"x": np.ones(1)}, {"x": np.ones(1)}) == "zeronorm.select(x=<ndarray>)"


def test_checksums_are_those_of_files(tmp_path):
    (tmp_path / "f").write_bytes(b"abc" * 1000)
    wanted = hashlib.sha256(b"abc" * 1000).hexdigest()
    assert file_checksum(str(tmp_path / "f")) == file_checksum(tmp_path / "f") == wanted
    assert file_checksum(tmp_path) is file_checksum("nothing") is file_checksum([1]) is None


def test_what_a_run_says_of_itself_is_short(monkeypatch):
    clock = Clock()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", provenance(clock, "")["started"])
    said = SimpleNamespace(started=clock.started, seconds=1.23456)
    assert provenance(said, "")["seconds"] == 1.23
    for length, shown in ((199, True), (200, False)):
        value = ["x" * (length - 4)]
        assert len(repr(value)) == length
        assert ("xxx" in call_text("select", {"keep": value}, {})) is shown


# -- Tables --


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("-a", "'-a"),
        ("+x", "'+x"),
        ("\tx", "'\tx"),
        ("\n=1", "'\n=1"),
        (" =1", "' =1"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\x00=1", "'\x00=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-1+cmd|'/c calc'!A0", "'-1+cmd|'/c calc'!A0"),
        ("-1.5", "-1.5"),
        (-2, -2),
        ("a=b", "a=b"),
    ],
)
def test_no_cell_is_a_formula(value, written):
    assert files.as_csv_text(value) == written


def test_class_names_in_the_header_are_guarded_too(problem, tmp_path):
    X, y = problem
    zeronorm.select(X, np.where(y == "up", "=up()", "down"), **QUICK, permutations=0, out=tmp_path / "out")
    with (tmp_path / "out" / "selected.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert not any(str(cell).startswith(("=", "@")) for row in rows for cell in row)


def test_the_reduced_table_has_the_target_and_the_selected_columns(problem, tmp_path):
    X, y = problem
    for name in ("t.csv", "t.parquet"):
        result = zeronorm.select(X, y, **QUICK, permutations=0, write_table=tmp_path / name)
        frame = pl.read_csv(tmp_path / name) if name.endswith("csv") else pl.read_parquet(tmp_path / name)
        assert frame.columns == ["target", *result.features]
        np.testing.assert_allclose(frame[result.features[0]], X[:, result.selected[0].index])
        assert frame["target"].to_list() == y.tolist()
    with pytest.raises(ValueError, match="force=True"):
        zeronorm.select(X, y, **QUICK, permutations=0, write_table=tmp_path / "t.csv")


def test_cells_of_a_table_for_spreadsheets(tmp_path):
    assert [files.as_csv_text(v) for v in (None, float("nan"), 0, False, "", "x")] == [
        "",
        "",
        0,
        False,
        "",
        "x",
    ]
    files.write_csv(tmp_path / "a.csv", [], header=("=x", "y"))
    assert (tmp_path / "a.csv").read_text() == "'=x,y\n"
    files.write_csv(tmp_path / "b.csv", [{"p": 1, "q": None}, {"p": "+z", "q": 2.5}], header=("x",))
    assert (tmp_path / "b.csv").read_text() == "p,q\n1,\n'+z,2.5\n"


def test_where_a_reduced_table_may_go(tmp_path):
    there = tmp_path / "t.csv"
    for name in ("t.csv", "t.parquet", "T.PQ"):
        files.check_table_path(tmp_path / name, False)
    with pytest.raises(ValueError, match=r"must name a file that ends in \.csv, \.parquet, \.pq"):
        files.check_table_path(tmp_path / "t.txt", True)
    there.write_text("")
    files.check_table_path(there, True)
    with pytest.raises(ValueError, match="exists"):
        files.check_table_path(there, False)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_reduced_table_has_distinct_names(ending, tmp_path):
    X, y = numbers(4, 3)
    frame = pl.DataFrame({"y": X[:, 0], "y (2)": X[:, 1], "z": X[:, 2], "label": y})
    table = load_data(frame, DataOptions(target="label"))
    table = replace(table, target_name="y", sample_ids=np.arange(4))
    file = tmp_path / f"reduced{ending}"
    write_table(table, np.array([0, 2, 1]), file)
    found = pl.read_csv(file) if ending == ".csv" else pl.read_parquet(file)
    assert found.columns == ["sample", "y", "y (2)", "z", "y (2) (2)"]
    assert found["y"].to_list() == y.tolist()
    np.testing.assert_allclose(found.select(found.columns[2:]).to_numpy().astype(float), X[:, [0, 2, 1]])


def test_a_row_of_a_comparison_in_numbers():
    row = {
        "method": "rfe",
        "value": 0.1,
        "low": 0.0,
        "high": 0.2,
        "chance": 0.5,
        "p_value": 0.05,
        "seconds": 3.0,
    }
    row |= {"sizes": [2, 4, 6], "stability": {"value": 0.7}, "failed": ["fold 1"]}
    (found,) = method_rows([row])
    assert (found["features"], found["stability"], found["failed"]) == (4.0, 0.7, 1)
    assert [found[name] for name in ("method", "value", "low", "high", "chance", "p_value", "seconds")] == [
        "rfe", 0.1, 0.0, 0.2, 0.5, 0.05, 3.0,
    ]  # fmt: skip
    assert method_rows([row | {"sizes": []}])[0]["features"] is None


def test_values_of_figures_have_types_even_where_there_are_none(problem, tmp_path):
    result = zeronorm.select(*problem, **QUICK, permutations=0)
    replace(result, figures={"f": {"a": 1}}).save(tmp_path / "out")
    types = pl.read_parquet(tmp_path / "out" / "figures.parquet").schema
    assert [types[name] for name in ("i", "j", "k", "number", "text")] == [pl.Int32] * 3 + [
        pl.Float64,
        pl.String,
    ]


# -- Records and report --


def test_records_that_lack_something_are_refused(tmp_path):
    frame = pl.DataFrame(RECORDS)
    frame.write_parquet(tmp_path / "records.parquet")
    found = Result.load(tmp_path)
    assert (found.kind, found.model, found.figures) == ("selection", None, {})
    assert Result.load(tmp_path / "records.parquet").records.equals(frame)
    frame.drop("truth", "n_test").write_parquet(tmp_path / "records.parquet")
    with pytest.raises(ValueError, match=r"does not hold records of an evaluation \(no n_test, truth\)"):
        Result.load(tmp_path)
    frame.head(0).write_parquet(tmp_path / "records.parquet")
    with pytest.raises(ValueError, match=r"\(no rows\)"):
        Result.load(tmp_path)
    with pytest.raises(ValueError, match="There are no records at"):
        Result.load(tmp_path / "none")


def test_the_report_goes_to_a_file_or_into_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("zeronorm.report._html.render_report", lambda result, records: "page")
    result = Result(kind="selection", data={"n_samples": 10, "n_features": 30, "target": "y"}, methods=[])
    for path, file in (("a/b.html", "a/b.html"), ("c.HTM", "c.HTM"), ("d", "d/report.html")):
        written = result.report(tmp_path / path)
        assert written == tmp_path / file
        assert written.read_text() == "page"
        with pytest.raises(ValueError, match=r"exists\. Choose another path"):
            result.report(tmp_path / path)
        result.report(tmp_path / path, force=True)
    (tmp_path / "mine").write_text("")
    (tmp_path / "folder.html").mkdir()
    for wrong in ("mine/x.html", "mine/a/b", "folder.html"):
        with pytest.raises(ValueError, match="report cannot be written to"):
            result.report(tmp_path / wrong, force=True)
    assert not list(tmp_path.rglob(".report-*"))


def test_records_alone_tell_what_they_can(tmp_path):
    records = pl.DataFrame(RECORDS | {"error_rate": [0.1]})
    other = records.with_columns(method=pl.lit("b"), selected=pl.lit(None, dtype=pl.List(pl.Int64)))

    def loaded(frame):
        frame.write_parquet(tmp_path / "records.parquet")
        return Result.load(tmp_path)

    two = loaded(pl.concat([records, other]))
    assert (two.data["n_samples"], two.data["n_features"], two.data["task"]) == (10, 8, "classification")
    assert (two.kind, two.chosen_method) == ("comparison", None)
    assert [method["name"] for method in two.methods] == ["a", "b"]
    one = loaded(records.rename({"error_rate": "mse"}))
    assert (one.kind, one.chosen_method, one.data["task"]) == ("selection", "a", "regression")
    assert loaded(other).data["n_features"] == 1


def test_a_report_of_a_table_is_refused_with_what_to_give(tmp_path):
    (tmp_path / "table.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"is not a Parquet file. Give the folder of a run"):
        Result.load(tmp_path / "table.csv")
