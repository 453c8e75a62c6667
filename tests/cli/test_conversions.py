"""apply and pack on one table and on two."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from zeronorm.cli._main import run

from .conftest import QUICK, select, small_rows, write_csv


def test_a_model_is_saved_and_applied(data_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert select(data_file, out, "--features", "2", "--save-model", "-q") == 0
    assert run(["apply", str(out / "model.json"), str(data_file), "--out", str(tmp_path / "p.csv")]) == 0
    with (tmp_path / "p.csv").open(newline="") as stream:
        predicted = [row["prediction"] for row in csv.DictReader(stream)]
    assert np.mean([a == row[-1] for a, row in zip(predicted, small_rows(), strict=True)]) > 0.9
    capsys.readouterr()
    assert run(["apply", str(out), str(data_file), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 40
    assert run(["apply", str(out), str(data_file), "--out", str(tmp_path / "p.csv")]) == 2


def two_tables(folder):
    """Genes × samples in one file; patients, some without a measurement, in another one in Windows-1250."""
    rows = small_rows()
    names = [f"s{i}" for i in range(len(rows))]
    genes = [[f"g{j}", *(row[j] for row in rows)] for j in range(12)]
    people = [[name, row[-1], 30 + i % 7] for i, (name, row) in enumerate(zip(names, rows, strict=True))]
    people = [*people[::-1], ["s99", "up", 50]]
    write_csv(folder / "genes.csv", ["gene", *names], genes)
    text = "próbka,stan,věk\n" + "".join(",".join(map(str, row)) + "\n" for row in people)
    (folder / "people.csv").write_bytes(text.encode("cp1250"))
    reading = [
        "--transpose",
        "--samples",
        str(folder / "people.csv"),
        "--id",
        "próbka",
        "--encoding",
        "cp1250",
    ]
    return str(folder / "genes.csv"), reading


def test_a_model_is_applied_to_two_tables(tmp_path, capsys):
    genes, reading = two_tables(tmp_path)
    out = str(tmp_path / "out")
    options = ["-t", "stan", "--keep", "věk", *QUICK, "--features", "3", "--save-model", "--out", out, "-q"]
    assert run(["select", genes, *reading, *options]) == 0
    assert run(["apply", out, genes, *reading, "--json"]) == 0
    found = {row["sample"]: row["prediction"] for row in json.loads(capsys.readouterr().out)}
    assert len(found) == 40
    assert np.mean([found[f"s{i}"] == row[-1] for i, row in enumerate(small_rows())]) > 0.9
    assert run(["apply", out, genes, *reading]) == 0
    assert "note: 40 samples are in both tables." in capsys.readouterr().out
    assert run(["apply", out, genes, "--transpose"]) == 2  # the age is only in the other table
    assert "lack 1 of the 3 features of the model: 'věk'" in capsys.readouterr().err


def test_predictions_carry_the_names_of_the_samples(data_file, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert select(data_file, Path(out), "--features", "2", "--save-model", "-q") == 0
    rows = [[*row[:-1], f"patient {i}", i + 100] for i, row in enumerate(small_rows())]
    file = str(write_csv(tmp_path / "new.csv", [*(f"g{i}" for i in range(12)), "who", "number"], rows))
    for options, first in (([], "patient 0"), (["--id", "number"], "100")):
        assert run(["apply", out, file, "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)[0]["sample"] == first
    assert run(["apply", out, file, "--id", "whom"]) == 2
    assert "Did you mean 'who'?" in capsys.readouterr().err


def test_files_beside_the_report_are_named(data_file, tmp_path, capsys):
    out, table, predicted = tmp_path / "out", tmp_path / "small.csv", tmp_path / "predicted.csv"
    assert select(data_file, out, "--features", "2", "--save-model", "--write-table", str(table)) == 0
    printed = capsys.readouterr().out
    assert f"model: {out / 'model.json'}" in printed
    assert f"table: {table}" in printed
    assert run(["apply", str(out), str(data_file), "--out", str(predicted)]) == 0
    assert f"40 predictions: {predicted}" in capsys.readouterr().out
    assert run(["apply", str(data_file), str(data_file)]) == 2
    message = capsys.readouterr().err
    assert "is not a model of zeronorm, or it is damaged" in message
    assert "Give the model.json" in message
    assert "column 1" not in message


def test_two_tables_are_packed(tmp_path, capsys):
    genes, reading = two_tables(tmp_path)
    packed, rows = tmp_path / "genes.zncols", ["--only", "g0", "--only", "g1", "--only", "věk"]
    assert run(["pack", genes, *reading, "-t", "stan", *rows, "--out", str(packed)]) == 0
    assert "40 samples, 3 features, target 'stan'" in capsys.readouterr().out
    assert run(["select", str(packed), *QUICK, "-k", "2", "-o", str(tmp_path / "out"), "-q"]) == 0
    selected = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))["selected"]
    assert {row["name"] for row in selected} == {"g0", "g1"}
