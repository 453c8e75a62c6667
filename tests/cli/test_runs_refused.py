"""Errors of a run: one line with a remedy, and no files left behind."""

from __future__ import annotations

import json

import polars as pl
import pytest

from zeronorm.cli._main import run

from .conftest import select, selected_names, small_rows, write_csv

BAD = {
    "missing file": (["none.csv"], "There is no file"),
    "directory": (["."], "is a directory"),
    "no target": (["data.csv"], "--target"),
    "target absent": (["data.csv", "-t", "lable"], "Did you mean 'label'"),
    "unknown method": (["data.csv", "-t", "label", "-m", "rfee"], "Did you mean rfe"),
    "method that wraps": (["data.csv", "-t", "label", "-m", "selector-cv"], "--features auto"),
    "model": (["data.csv", "-t", "label", "-m", "kernel-arom"], "not a selector"),
    "wrong task": (["data.csv", "-t", "g3", "-m", "golub"], "the task is regression"),
    "zero features": (["data.csv", "-t", "label", "-k", "0"], "at least 1"),
    "too many features": (["data.csv", "-t", "label", "-k", "99"], "99 features, but the table has 12"),
    "features in words": (["data.csv", "-t", "label", "-k", "ten"], "count"),
    "too many folds": (["data.csv", "-t", "label", "--cv", "30"], "--cv"),
    "one fold": (["data.csv", "-t", "label", "--cv", "1"], "--cv"),
    "bad parameter": (
        ["data.csv", "-t", "label", "-m", "fisher", "-p", "nothing=1"],
        "no parameter 'nothing'",
    ),
    "parameter without value": (["data.csv", "-t", "label", "-m", "fisher", "-p", "step"], "NAME=VALUE"),
    "unknown kept column": (["data.csv", "-t", "label", "--keep", "gg"], "--keep names 'gg'"),
    "unknown option": (["data.csv", "--nonsense"], "nonsense"),
    "pattern without columns": (
        ["data.csv", "-t", "label", "--ignore", "z*"],
        "no column of the table matches",
    ),
    "no regular expression": (["data.csv", "-t", "label", "--only", "re:("], "--only holds 're:('"),
    "no table of samples": (["data.csv", "-t", "label", "--samples", "no.csv"], "There is no file"),
    "classes too small": (["data.csv", "-t", "label", "--min-class-size", "39"], "--min-class-size"),
    "missing groups file": (["data.csv", "-t", "label", "--feature-groups", "no.csv"], "There is no file"),
    "unknown sample groups": (
        ["data.csv", "-t", "label", "--sample-groups", "who"],
        "--groups names 'who'",
    ),
    "bad choice": (["data.csv", "-t", "label", "--missing", "guess"], "guess"),
    "group larger than the number asked": (
        ["data.csv", "-t", "label", "-m", "fisher", "-k", "2", "--feature-groups", "big.json"],
        "Ask for at least 3",
    ),
    "more groups than features": (
        ["data.csv", "-t", "label", "-m", "fisher", "--feature-groups", "many.json"],
        "does not have",
    ),
}


@pytest.mark.parametrize(
    ("parameter", "option"),
    [("n_features_to_select=2", "--features"), ("random_state=1", "--seed"), ("always_keep=g1", "--keep")],
)
def test_a_parameter_that_belongs_to_the_run_names_its_option(data_file, tmp_path, capsys, parameter, option):
    assert select(data_file, tmp_path / "out", "--method", "random", "-p", parameter) == 2
    assert f"Use {option} instead." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "metric", "instead"),
    [
        ("label", "r2", "auc, balanced_error_rate, error_rate"),
        ("label", "neg_log_loss", "auc, balanced_error_rate, error_rate"),
        ("label", "neg_mean_squared_error", "auc, balanced_error_rate, error_rate"),
        ("coded", "mse", "auc, balanced_error_rate, error_rate"),
        ("g3", "f1_macro", "mae, mse, r2"),
        ("g3", "auc", "mae, mse, r2"),
    ],
)
def test_a_metric_that_does_not_suit_the_target_is_refused_at_once(tmp_path, capsys, target, metric, instead):
    rows = [[*row, int(row[-1] == "up")] for row in small_rows()]
    file = write_csv(tmp_path / "d.csv", [*(f"g{i}" for i in range(12)), "label", "coded"], rows)
    arguments = [
        "select",
        str(file),
        "--target",
        target,
        "--metric",
        metric,
        "--features",
        "2",
        "--method",
        "random",
    ]
    assert run([*arguments, "--cv", "2", "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert f"--metric names {metric!r}, which cannot be computed here" in message
    assert f"Use one of {instead}." in message
    assert "Error" not in message


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(case, data_file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.json").write_text(
        json.dumps({f"big{i}": [f"g{3 * i}", f"g{3 * i + 1}", f"g{3 * i + 2}"] for i in range(4)})
    )
    (tmp_path / "many.json").write_text(json.dumps({f"group{i}": [f"g{i}"] for i in range(20)}))
    arguments, message = BAD[case]
    assert run(["select", *arguments, "--out", "out"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".zeronorm-*"))


def test_a_second_run_into_the_same_folder_is_refused(data_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert select(data_file, out, "--features", "2", "-q") == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert select(data_file, out, "--features", "3", "-q") == 2
    assert "--force" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert select(data_file, out, "--features", "3", "-q", "--force") == 0
    assert len(selected_names(out)) == 3


def test_a_mistake_in_the_input_is_reported_before_one_in_the_folder(data_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert select(data_file, out, "--features", "2", "-q") == 0
    assert run(["select", str(data_file), "-t", "lable", "--out", str(out)]) == 2
    assert "Did you mean 'label'" in capsys.readouterr().err


def test_without_a_folder_each_run_has_its_own(data_file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [
        "select",
        "data.csv",
        "-t",
        "label",
        "-m",
        "fisher",
        "-k",
        "2",
        "--cv",
        "3",
        "--permutations",
        "0",
    ]
    assert run(command) == 0
    assert run(command) == 0
    found = sorted(path.name for path in tmp_path.glob("zeronorm-data-*"))
    assert len(found) == 2
    assert f"report: {found[-1]}" in capsys.readouterr().out
    assert run([*command, "--resume"]) == 2
    assert "no interrupted run" in capsys.readouterr().err


def test_an_output_folder_that_cannot_be_written(data_file, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert select(data_file, tmp_path / "file", "-q") == 2
    assert select(data_file, tmp_path / "file" / "below", "-q") == 2
    assert select(data_file, "/proc/nowhere/out", "-q") == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_damaged_records(tmp_path, capsys):
    file = tmp_path / "records.parquet"
    file.write_bytes(b"not parquet")
    assert run(["report", str(tmp_path)]) == 2
    pl.DataFrame({"x": [1]}).write_parquet(file)
    assert run(["report", str(file)]) == 2
    assert run(["report", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert not (tmp_path / "report.html").exists()


def test_a_wrong_value_of_a_parameter_is_an_input_error(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "-m", "rfe", "-k", "2", "-p", "kernel=cubic") == 2
    assert "kernel" in capsys.readouterr().err
    arguments = [
        "compare",
        str(data_file),
        "-t",
        "label",
        "-m",
        "fisher,rfe",
        "-k",
        "2",
        "-p",
        "rfe.kernel=cubic",
    ]
    assert run([*arguments, "--out", str(tmp_path / "c")]) == 2
    assert "kernel" in capsys.readouterr().err


def test_the_demo_does_not_replace_results(tmp_path, capsys, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "result.json").write_text("mine")
    assert run(["demo", "--out", str(tmp_path / "out"), "-q"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "out" / "result.json").read_text() == "mine"


def test_a_wrong_parameter_names_the_right_one(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "-m", "rfe", "-p", "c=1") == 2
    assert "no parameter 'c'. Did you mean C?" in capsys.readouterr().err


@pytest.mark.parametrize("n_rare", [1, 2])
def test_a_quantity_that_was_taken_for_classes_is_pointed_out(n_rare, tmp_path, capsys):
    rows = [(i % 3 if i < 20 else 30, 0.5 * i) for i in range(20 + n_rare)]
    file = write_csv(tmp_path / "data.csv", ["age", "g"], rows)
    assert run(["select", str(file), "-t", "age"]) == 2
    assert "--task regression" in capsys.readouterr().err
