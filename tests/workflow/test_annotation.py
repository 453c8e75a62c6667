"""Descriptions of features accompany the selected features into every file."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import zeronorm
from zeronorm.workflow._inputs import load_data
from zeronorm.workflow._options import DataOptions

RNG = np.random.default_rng(0)
LABELS = ["a", "b"] * 20
GENES = {
    f"g{k}": [f"{RNG.normal() + 2.0 * (k == 0) * (label == 'b'):.3f}" for label in LABELS] for k in range(5)
}
SAMPLES = [f"s{i}" for i in range(len(LABELS))]
TITLES = {name: f"gene <{name}>" for name in GENES}
QUICK = {"method": "fisher", "features": 2, "cv": 2, "permutations": 0}


@pytest.fixture
def in_columns(tmp_path):
    """Genes in rows, with a description beside their names, and the labels in the last row."""
    file = tmp_path / "genes.csv"
    rows = [["gene", "description", *SAMPLES]]
    rows += [[name, TITLES[name], *values] for name, values in GENES.items()]
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([*rows, ["y", "", *LABELS]])
    return file


@pytest.fixture
def in_rows(tmp_path):
    file = tmp_path / "samples.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*GENES, "y"])
        writer.writerows(zip(*GENES.values(), LABELS, strict=True))
    return file


def written(file, rows):
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return file


def test_a_column_of_descriptions_is_kept(in_columns, tmp_path):
    out = tmp_path / "out"
    result = zeronorm.select(in_columns, "y", transpose=True, out=out, **QUICK)
    assert [feature.annotation for feature in result.selected] == [
        {"description": TITLES[name]} for name in result.features
    ]
    with (out / "selected.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["description"] for row in csv.DictReader(stream)] == [TITLES[n] for n in result.features]
    saved = json.loads((out / "result.json").read_text())
    assert [feature["annotation"]["description"] for feature in saved["selected"]] == [
        TITLES[name] for name in result.features
    ]
    assert zeronorm.Result.load(out).selected == result.selected
    report = (out / "report.html").read_text()
    assert f"gene &lt;{result.features[0]}&gt;" in report
    assert "gene <g" not in report


def test_a_file_describes_the_features(in_rows, tmp_path):
    rows = [["symbol", "id", "chromosome"], *([name.upper(), name, k] for k, name in enumerate(GENES))]
    file = written(tmp_path / "about.tsv.csv", [*rows, ["OTHER", "g99", 7], ["TWICE", "g0", 8]])
    result = zeronorm.select(in_rows, "y", annotation=file, **QUICK)
    for feature in result.selected:
        assert feature.annotation == {"symbol": feature.name.upper(), "chromosome": feature.name[1:]}
    assert any("describes 5 of 5 features by 'id'" in note for note in result.notes)
    row = result.to_frame().to_dicts()[0]
    assert row["symbol"] == row["name"].upper()


def test_an_annotation_named_like_a_statistic_does_not_replace_it(in_rows, tmp_path):
    file = written(tmp_path / "about.csv", [["id", "score"], *([name, "high"] for name in GENES)])
    row = zeronorm.select(in_rows, "y", annotation=file, **QUICK).to_frame().to_dicts()[0]
    assert isinstance(row["score"], float)
    assert row["score (2)"] == "high"


def test_an_array_and_a_data_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = np.asarray(list(GENES.values()), dtype=float).T
    about = pandas.DataFrame({"who": ["x1", "x3"], "title": ["first", "third"]})
    table = load_data(X, DataOptions(target=np.asarray(LABELS), annotation=about))
    assert table.annotations == {"title": {0: "first", 2: "third"}}


def test_levels_of_a_text_column_have_its_annotation(tmp_path):
    data = written(
        tmp_path / "d.csv", [["colour", "x", "y"], *(["rgb"[i % 3], i * 0.5, "ab"[i % 2]] for i in range(12))]
    )
    about = written(tmp_path / "a.csv", [["name", "title"], ["colour", "of the eye"], ["x", "height"]])
    table = load_data(data, DataOptions(target="y", annotation=about))
    assert table.annotations == {"title": {0: "of the eye", 1: "height"}}


def test_an_annotation_of_other_features_is_an_error(in_rows, tmp_path):
    file = written(tmp_path / "about.csv", [["id", "title"], ["p1", "one"], ["p2", "two"]])
    with pytest.raises(
        ValueError, match=r"describes none of the features: the table has 'g0', 'g1', 'g2' and 2 more"
    ):
        zeronorm.select(in_rows, "y", annotation=file, **QUICK)


def test_without_annotation_there_is_none(in_rows):
    result = zeronorm.select(in_rows, "y", **QUICK)
    assert [feature.annotation for feature in result.selected] == [None, None]


def test_texts_of_variables_in_h5ad(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pandas = pytest.importorskip("pandas")
    X = np.asarray(list(GENES.values()), dtype=np.float32).T
    genes = pandas.DataFrame({"title": list(TITLES.values()), "length": range(5)}, index=list(GENES))
    cells = pandas.DataFrame({"y": LABELS}, index=SAMPLES)
    file = tmp_path / "cells.h5ad"
    anndata.AnnData(X=X, obs=cells, var=genes).write_h5ad(file)
    table = load_data(file, DataOptions(target="y"))
    assert table.annotations == {"title": dict(enumerate(TITLES.values()))}
