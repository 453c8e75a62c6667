"""Commands within this process: outputs, options, errors."""

from __future__ import annotations

import csv
import inspect
import json
from importlib import metadata
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.main import get_command

import zeronorm
from zeronorm.cli.commands import app
from zeronorm.cli.main import in_flags, run
from zeronorm.selection.problem import Progress, RunBar
from zeronorm.workflow import training
from zeronorm.workflow.result import Result

from .conftest import small_rows, write_csv

FILES = {"selected.csv", "result.json", "records.parquet", "figures.parquet", "report.html"}
QUICK = ["--method", "fisher", "--cv", "3", "--permutations", "0"]


def select(data_file, out, *more):
    return run(["select", str(data_file), "--target", "label", "--out", str(out), *QUICK, *more])


def selected_names(folder):
    with (folder / "selected.csv").open(encoding="utf-8", newline="") as stream:
        return [row["name"] for row in csv.DictReader(stream)]


def test_select_writes_all_files_and_prints_the_features(data_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert select(data_file, out, "--features", "2") == 0
    assert {file.name for file in out.iterdir()} == FILES
    assert set(selected_names(out)) == {"g0", "g1"}
    printed = capsys.readouterr().out
    assert "g0" in printed
    assert "task is classification" in printed
    assert str(out / "report.html") in printed
    records = pl.read_parquet(out / "records.parquet")
    assert records["split"].n_unique() == 3
    assert not list(tmp_path.glob(".zeronorm-*"))


def test_result_json_says_where_the_result_comes_from(data_file, tmp_path):
    out = tmp_path / "out"
    select(data_file, out, "--features", "2", "--seed", "5", "-q")
    result = Result.read(out / "result.json")
    assert result.data["n_features"] == 12
    assert len(result.data["sha256"]) == 64
    assert result.provenance["seed"] == 5
    X = np.asarray([row[:-1] for row in small_rows()])
    for feature in result.selected:
        assert feature.column == int(feature.name[1:])
        assert feature.mean == pytest.approx(X[:, feature.column].mean())
        assert feature.scale == pytest.approx(X[:, feature.column].std())


def test_auto_size_and_json_output(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert "one-standard-error rule" in printed["size"]["rule"]
    assert 1 <= len(printed["selected"]) <= 12
    assert printed["format"] == "zeronorm-result"


def test_the_same_seed_gives_the_same_files(data_file, tmp_path):
    for name in ("a", "b"):
        select(data_file, tmp_path / name, "-q", "--seed", "3")
    assert (tmp_path / "a/selected.csv").read_bytes() == (tmp_path / "b/selected.csv").read_bytes()


def test_method_auto_compares_and_says_so(data_file, tmp_path, capsys, monkeypatch):
    from zeronorm.selectors.meta.consensus import DEFAULT_METHODS

    monkeypatch.setitem(DEFAULT_METHODS, "classification", ("fisher", "lasso"))
    out = tmp_path / "out"
    arguments = [
        "select",
        str(data_file),
        "--target",
        "label",
        "--out",
        str(out),
        "--method",
        "auto",
        "--cv",
        "3",
        "--permutations",
        "0",
    ]
    assert run(arguments) == 0
    assert "3 methods (fisher, lasso, relief) were compared" in capsys.readouterr().out
    assert run([*arguments, "--force", "--param", "C=1"]) == 2


def test_strange_names_round_trip(tmp_path):
    names = [
        '<b>"x"</b>',
        "a\nb",
        "y" * 10_000,
        "\u202eעברית",
        "=cmd()",
        "+1",
        "same",
        "same",
        "tab\there",
        "plain",
    ]
    rows = [[*row[:10], row[-1]] for row in small_rows()]
    file = write_csv(tmp_path / "d.csv", [*names, "label"], rows)
    assert select(file, tmp_path / "out", "--features", "10", "-q") == 0
    # A spreadsheet would run what starts like a formula; the JSON file holds the name itself.
    names[7] = "same (2)"
    written = ["'=cmd()" if name == "=cmd()" else name for name in names]
    assert sorted(selected_names(tmp_path / "out")) == sorted(written)
    assert sorted(Result.load(tmp_path / "out").features) == sorted(names)


def test_regression_with_categories_groups_and_forced_columns(tmp_path):
    rng = np.random.default_rng(1)
    rows = [
        [v, w, "rgb"[i % 3], f"p{i // 2}", 0.1 * v + 2.0 * (i % 3) + 0.1 * w]
        for i, (v, w) in enumerate(rng.normal(size=(36, 2)).round(3).tolist())
    ]
    file = write_csv(tmp_path / "d.csv", ["v", "w", "colour", "patient", "y"], rows)
    out = tmp_path / "out"
    arguments = ["select", str(file), "-t", "y", "-m", "lasso", "--cv", "3", "--features", "4", "--keep", "w"]
    arguments += ["--permutations", "0"]
    assert run([*arguments, "--sample-groups", "patient", "--out", str(out), "-q"]) == 0
    names = selected_names(out)
    assert len(names) == 4
    assert {"w", "colour=r", "colour=g", "colour=b"} <= set(names)
    result = Result.read(out / "result.json")
    assert result.data["task"] == "regression"
    assert result.data["sample_groups"] == 18


def test_feature_groups_enter_whole(data_file, tmp_path):
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps({"pair": ["g0", "g7"], "other": ["g1", "g5"]}))
    out = tmp_path / "out"
    assert select(data_file, out, "--features", "4", "--feature-groups", str(groups), "-q") == 0
    assert set(selected_names(out)) == {"g0", "g7", "g1", "g5"}


def test_compare_and_report(data_file, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = [
        "compare",
        str(data_file),
        "-t",
        "label",
        "--methods",
        "fisher,random",
        "--cv",
        "3",
        "--out",
        str(out),
    ]
    assert run(arguments) == 0
    assert {file.name for file in out.iterdir()} == FILES - {"selected.csv", "figures.parquet"}
    printed = capsys.readouterr().out
    assert "fisher" in printed
    assert "p against chance" not in printed  # no permutations were made
    again = tmp_path / "again"
    assert run(["report", str(out / "records.parquet"), "--out", str(again)]) == 0
    assert (again / "report.html").read_text() == (out / "report.html").read_text()
    assert run(["report", str(out), "--out", str(again)]) == 2
    (out / "result.json").unlink()
    assert run(["report", str(out)]) == 0
    assert "no result.json" in (out / "report.html").read_text()


def test_methods_and_datasets(capsys):
    assert run(["methods", "--json"]) == 0
    methods = json.loads(capsys.readouterr().out)
    assert {"fisher", "rfe", "lasso"} <= {method["name"] for method in methods}
    assert run(["methods", "--task", "regression"]) == 0
    assert "golub" not in capsys.readouterr().out
    assert run(["methods", "jcfo"]) == 0
    described = capsys.readouterr().out
    assert "cost with n samples and p features" in described
    assert "not for" in described
    assert run(["datasets", "--json"]) == 0
    assert "colon" in {entry["name"] for entry in json.loads(capsys.readouterr().out)}


def test_the_list_of_methods_says_what_each_does_and_which_are_for_python_only(capsys):
    assert run(["methods"]) == 0
    printed = capsys.readouterr().out
    table, after = printed.split("In Python only: ")
    assert "Rank features by the Fisher score" in " ".join(table.replace("│", " ").split())
    assert "kernel-arom" not in table
    assert {"selector-cv", "kernel-arom", "edge-features"} <= set(after.split(".")[0].split(", "))
    assert run(["methods", "rfe"]) == 0
    described = capsys.readouterr().out
    assert "│ C " in described
    assert not any(f"│ {name} " in described for name in ("n_features_to_select", "estimator", "verbose"))
    assert "``" not in described


@pytest.mark.filterwarnings("ignore")
def test_the_meta_methods_of_the_list_can_be_selected_with(data_file, tmp_path):
    for method in ("consensus", "probe-selector"):
        out = tmp_path / method
        assert select(data_file, out, "--method", method, "--features", "2", "--cv", "2", "-q") == 0
        assert len(selected_names(out)) == 2


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
    assert "is not a model of zeronorm. Give the model.json" in message
    assert "column 1" not in message


def test_the_report_names_options_of_the_command_line_and_in_python_parameters(tmp_path):
    rows = [[*row[:-1], i % 4 + 1, row[-1]] for i, row in enumerate(small_rows())]
    file = write_csv(tmp_path / "d.csv", [*(f"g{i}" for i in range(12)), "batch", "label"], rows)
    assert select(file, tmp_path / "a", "--features", "2", "-q") == 0
    zeronorm.select(
        file, "label", method="fisher", features=2, cv=3, permutations=0, out=tmp_path / "b", n_jobs=1
    )
    command, python = ((tmp_path / name / "report.html").read_text(encoding="utf-8") for name in "ab")
    assert "(--groups batch)" in command
    assert "sample_groups=" not in command
    assert "(sample_groups=&#39;batch&#39;)" in python
    assert "--groups" not in python


def test_an_effect_says_which_class_is_compared_with_which(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "--features", "2") == 0
    assert "Cohen's d, up − down" in capsys.readouterr().out
    assert "compare <bdi>up</bdi> with <bdi>down</bdi>" in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.filterwarnings("ignore")
def test_nothing_selected_is_said_with_a_remedy_and_without_an_empty_table(tmp_path, capsys):
    rows = [[*row[:-1], "ab"[i % 2]] for i, row in enumerate(small_rows())]
    file = write_csv(tmp_path / "data.csv", [*(f"g{i}" for i in range(12)), "label"], rows)
    assert select(file, tmp_path / "out", "--method", "knockoff-selector", "--cv", "2") == 0
    printed = capsys.readouterr().out
    assert "No feature of 12 was selected for label." in printed
    assert "┃ rank" not in printed
    assert "set a less strict level (--param level=0.2)" in printed
    assert "Do not use the features" not in printed


def test_a_comparison_without_names_takes_two_quick_methods(data_file, tmp_path):
    arguments = ["compare", str(data_file), "--features", "2", "--cv", "2", "-q"]
    for target in ("label", "g3"):
        out = tmp_path / target
        assert run([*arguments, "--target", target, "--out", str(out)]) == 0
        assert [row["method"] for row in Result.load(out).table][:2] == ["fisher", "rfe"]


def test_data_by_name(tmp_path):
    out = tmp_path / "out"
    assert run(["select", "linear-toy", "--features", "2", "--out", str(out), *QUICK, "-q"]) == 0
    assert set(selected_names(out)) <= {f"x{i}" for i in range(1, 203)}


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


def test_other_files_in_the_folder_are_left_alone(data_file, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert select(data_file, out, "--features", "2", "-q") == 0
    assert (out / "mine.txt").read_text() == "mine"


def test_an_output_place_that_cannot_be_written(data_file, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert select(data_file, tmp_path / "file", "-q") == 2
    assert select(data_file, tmp_path / "file" / "below", "-q") == 2
    assert select(data_file, "/proc/nowhere/out", "-q") == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_an_interrupted_run_leaves_nothing(data_file, tmp_path, capsys, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "evaluate_procedures", interrupt)
    assert select(data_file, tmp_path / "out", "-q") == 130
    assert "Interrupted" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]


def test_an_unexpected_failure_is_exit_code_1(data_file, tmp_path, capsys, monkeypatch):
    def fail(*_arguments, **_options):
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr(training, "evaluate_procedures", fail)
    assert select(data_file, tmp_path / "out", "-q") == 1
    assert capsys.readouterr().err.startswith("zeronorm: RuntimeError: the sky fell. ")
    assert not (tmp_path / "out").exists()


def test_damaged_records(tmp_path, capsys):
    file = tmp_path / "records.parquet"
    file.write_bytes(b"not parquet")
    assert run(["report", str(tmp_path)]) == 2
    pl.DataFrame({"x": [1]}).write_parquet(file)
    assert run(["report", str(file)]) == 2
    assert run(["report", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert not (tmp_path / "report.html").exists()


# -- What the commands hand over ---------------------------------------------------------------------


def handed_over(monkeypatch, name, *arguments):
    """The keywords with which a command calls the workflow."""
    seen = {}

    def spy(**options):
        seen.update(options)
        raise ValueError("enough")

    from zeronorm.workflow import run as workflow

    monkeypatch.setattr(workflow, name, spy)
    assert run([name, *arguments]) == 2
    return seen


def test_select_hands_over_every_option(monkeypatch, tmp_path):
    options = {
        "--target": ("t", "target", "t"),
        "--method": ("rfe", "method", "rfe"),
        "--features": ("7", "features", "7"),
        "--rule": ("best", "rule", "best"),
        "--metric": ("roc_auc", "metric", "roc_auc"),
        "--permutations": ("5", "permutations", 5),
        "--task": ("regression", "task", "regression"),
        "--groups": ("patient", "sample_groups", "patient"),
        "--id": ("s", "id", "s"),
        "--samples": ("p.csv", "samples", Path("p.csv")),
        "--only": ("o", "only", ("o",)),
        "--min-class-size": ("3", "min_class_size", 3),
        "--keep": ("k", "keep", ("k",)),
        "--ignore": ("i", "ignore", ("i",)),
        "--categorical": ("c", "categorical", ("c",)),
        "--missing": ("drop-rows", "missing", "drop-rows"),
        "--delimiter": (";", "delimiter", ";"),
        "--param": ("C=10", "params", {"C": 10}),
        "--max-features": ("9", "max_features", 9),
        "--cv": ("4", "cv", 4),
        "--repeats": ("3", "repeats", 3),
        "--seed": ("11", "random_state", 11),
        "--jobs": ("2", "n_jobs", 2),
    }
    flags = ["--transpose", "--decimal-comma", "--force", "--resume", "--save-model", "--drop-unlabelled"]
    arguments = [text for flag, (value, _, _) in options.items() for text in (flag, value)]
    seen = handed_over(monkeypatch, "select", "data.csv", *arguments, *flags)
    assert seen["data"] == "data.csv"
    for _, name, value in options.values():
        assert seen[name] == value, name
    for name in ("transpose", "decimal_comma", "force", "resume", "save_model", "drop_unlabelled"):
        assert seen[name] is True


@pytest.mark.parametrize("command", ["select", "compare"])
def test_every_parameter_of_the_workflow_has_an_option(command, monkeypatch):
    known = set(inspect.signature(getattr(zeronorm, command)).parameters)
    more = ["-m", "fisher,rfe"] if command == "compare" else []
    assert set(handed_over(monkeypatch, command, "data.csv", *more)) == known


def test_compare_hands_over_parameters_by_method(monkeypatch):
    seen = handed_over(monkeypatch, "compare", "d.csv", "-m", "rfe,fisher", "-p", "rfe.C=3", "--keep", "a")
    assert seen["params"] == {"rfe": {"C": 3}}
    assert seen["keep"] == ("a",)
    assert run(["compare", "d.csv", "-m", "rfe,fisher", "-p", "C=3"]) == 2


def test_parameters_of_the_library_are_options_here():
    message = "The 'sample_groups' parameter of select is odd. Set cv=3, or set force=True (parameter 'random_state')."
    assert in_flags(message) == "--groups is odd. Set --cv 3, or pass --force (--seed)."
    assert (
        in_flags("Set delimiter=';' or missing='drop-rows'.") == "Set --delimiter ';' or --missing drop-rows."
    )
    assert in_flags("Raise the parameter 'max_features'.") == "Raise --max-features."
    assert in_flags("Set a level (params={'level': 0.2}).") == "Set a level (--param level=0.2)."
    assert in_flags("The 'C' parameter of RFE must be positive. Got -1.") == (
        "The 'C' parameter of RFE must be positive. Got -1."
    )


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
    assert "no column 'věk'" in capsys.readouterr().err


def test_two_tables_are_packed(tmp_path, capsys):
    genes, reading = two_tables(tmp_path)
    packed, rows = tmp_path / "genes.zncols", ["--only", "g0", "--only", "g1", "--only", "věk"]
    assert run(["pack", genes, *reading, "-t", "stan", *rows, "--out", str(packed)]) == 0
    assert "40 samples, 3 features, target 'stan'" in capsys.readouterr().out
    assert run(["select", str(packed), *QUICK, "-k", "2", "-o", str(tmp_path / "out"), "-q"]) == 0
    selected = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))["selected"]
    assert {row["name"] for row in selected} == {"g0", "g1"}


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


def test_one_method_is_described_with_its_parameters(capsys):
    assert run(["methods", "rfe", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["class"] == "RFE"
    rows = {row["name"]: row for row in described["parameters"]}
    assert {"C", "kernel", "step"} <= set(rows)
    assert rows["step"]["type"] == "int or float"
    assert "default=" not in rows["step"]["text"]
    assert run(["methods", "rfe"]) == 0
    assert "kernel" in capsys.readouterr().out
    assert run(["methods", "rfee"]) == 2


def test_the_demo_does_not_replace_results(tmp_path, capsys, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "result.json").write_text("mine")
    assert run(["demo", "--out", str(tmp_path / "out"), "-q"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "out" / "result.json").read_text() == "mine"


def test_names_cannot_move_the_cursor(tmp_path, capsys):
    names = ["\x1b[2Jgone", "\x1b]0;title\x07", *(f"g{i}" for i in range(10))]
    file = write_csv(tmp_path / "d.csv", [*names, "label"], small_rows())
    assert select(file, tmp_path / "out", "--features", "4") == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out
    assert "\x07" not in captured.out
    assert run(["select", str(file), "-t", "\x1b[31mred", "--out", str(tmp_path / "o")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_the_headline_and_chance_are_printed(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "--features", "2", "--permutations", "19") == 0
    printed = capsys.readouterr().out
    assert "2 of 12 features predict label." in printed
    assert "Without any feature it is 50.0 %." in printed
    assert "p = 0.05" in printed


def test_a_data_set_is_described_with_how_to_get_it(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ZERONORM_DATA", str(tmp_path))
    monkeypatch.setenv("ZERONORM_CACHE", str(tmp_path))
    assert run(["datasets", "colon"]) == 0
    assert "Save it with numpy.savez as colon.npz" in capsys.readouterr().out
    assert run(["datasets", "colonn"]) == 2
    assert "Did you mean 'colon'" in capsys.readouterr().err


def test_a_wrong_parameter_names_the_right_one(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "-m", "rfe", "-p", "c=1") == 2
    assert "no parameter 'c'. Did you mean C?" in capsys.readouterr().err


def test_the_progress_bar_names_method_and_fold_and_starts_at_once(data_file, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(RunBar, "_update", lambda _self, **changes: said.append(changes))
    arguments = {"method": "fisher", "features": 2, "cv": 3, "permutations": 2, "verbose": True}
    zeronorm.select(data_file, "label", **arguments)
    texts = [change["description"] for change in said if "description" in change]
    assert texts[:3] == ["fisher, all samples", "fisher, fold 1 of 3", "fisher, fold 2 of 3"]
    assert "permutation 2 of 2, fisher, fold 3 of 3" in texts
    total = next(change["total"] for change in said if "total" in change)
    assert sum(change.get("advance", 0) for change in said) == total == 1 + 3 * 3
    with Progress(True).whole("Reading") as bar:
        assert bar._display.tasks[0].description == "Reading"


def test_help_shows_whole_sentences(capsys):
    assert run([]) == 0
    printed = capsys.readouterr().out
    assert "..." not in printed.partition("Commands:")[2]
    assert "Start with" in printed


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (["--cv", "1"], "at least 2"),
        (["--cv", "many"], "whole number"),
        (["--rule", "first"], "'one-se', 'best'"),
        (["--sed", "3"], "--seed"),
    ],
)
def test_wrong_values_are_answered_in_whole_sentences(option, expected, data_file, capsys):
    assert run(["select", str(data_file), "-t", "label", *option]) == 2
    message = capsys.readouterr().err
    assert message.endswith(". Try `zeronorm select --help`.\n")
    assert "Input should" not in message
    assert "range" not in message
    assert expected in message


@pytest.mark.parametrize("n_rare", [1, 2])
def test_a_quantity_that_was_taken_for_classes_is_pointed_out(n_rare, tmp_path, capsys):
    rows = [(i % 3 if i < 20 else 30, 0.5 * i) for i in range(20 + n_rare)]
    file = write_csv(tmp_path / "data.csv", ["age", "g"], rows)
    assert run(["select", str(file), "-t", "age"]) == 2
    assert "--task regression" in capsys.readouterr().err


def test_a_command_whose_package_is_not_installed_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    program = get_command(app)
    with pytest.raises(
        ValueError, match=r"needs the package 'zeronorm-studies'.* pip install zeronorm-studies"
    ):
        program(["study", "--list"], standalone_mode=False)
    program(["--help"], standalone_mode=False)
    page = capsys.readouterr().out
    assert "select" in page
    assert "study" not in page


def test_every_help_page_lists_examples_that_can_be_copied(capsys):
    for command in ("select", "compare", "pack", "methods", "datasets", "report", "apply", "demo"):
        assert run([command, "--help"]) == 0
        page = capsys.readouterr().out
        assert "\n    zeronorm " in page[page.index("Examples:") :]
        assert " | " not in page
