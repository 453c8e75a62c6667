"""The files and the output of select, compare and report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm.cli._main import run
from zeronorm.workflow._result import Result

from .conftest import QUICK, select, selected_names, small_rows, write_csv

FILES = {"selected.csv", "result.json", "records.parquet", "figures.parquet", "report.html"}


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
    assert result.provenance["command"].startswith(f"zeronorm select {data_file} --target label")
    X = np.asarray([row[:-1] for row in small_rows()])
    for feature in result.selected:
        assert feature.column == int(feature.name[1:])
        assert feature.mean == pytest.approx(X[:, feature.column].mean())
        assert feature.scale == pytest.approx(X[:, feature.column].std())


def test_auto_size_and_json_output(data_file, tmp_path, capsys):
    assert select(data_file, tmp_path / "out", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert "nearly the best smoothed score" in printed["size"]["rule"]
    assert 1 <= len(printed["selected"]) <= 12
    assert printed["format"] == "zeronorm-result"


def test_the_same_seed_gives_the_same_files(data_file, tmp_path):
    for name in ("a", "b"):
        select(data_file, tmp_path / name, "-q", "--seed", "3")
    assert (tmp_path / "a/selected.csv").read_bytes() == (tmp_path / "b/selected.csv").read_bytes()


def test_method_auto_says_what_it_chose(data_file, tmp_path, capsys):
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
    printed = " ".join(capsys.readouterr().out.split())
    assert "note: The features are those of the consensus of arom and zeronorm-svm" in printed
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


@pytest.mark.filterwarnings("ignore")
def test_the_meta_methods_of_the_list_can_be_selected_with(data_file, tmp_path):
    for method in ("consensus", "probe-selector"):
        out = tmp_path / method
        assert select(data_file, out, "--method", method, "--features", "2", "--cv", "2", "-q") == 0
        assert len(selected_names(out)) == 2


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


def test_other_files_in_the_folder_are_left_alone(data_file, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert select(data_file, out, "--features", "2", "-q") == 0
    assert (out / "mine.txt").read_text() == "mine"


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


def test_on_noise_the_verdict_comes_before_the_names(tmp_path, capsys):
    rows = [[*row[:-1], "ab"[i * 7 % 40 % 2]] for i, row in enumerate(small_rows())]
    file = write_csv(tmp_path / "noise.csv", [*(f"g{i}" for i in range(12)), "label"], rows)
    assert select(file, tmp_path / "out", "--features", "2", "--permutations", "19") == 0
    printed = capsys.readouterr().out
    verdict = printed.index("No evidence that these 2 features predict label.")
    assert verdict < printed.index("2 of 12 features selected by")
    assert printed.count("No evidence") == 1


def test_the_installed_program_selects(data_file, tmp_path):
    program = Path(sys.executable).parent / "zeronorm"
    if not program.exists():
        pytest.skip("the package is not installed with its program")
    options = "--target label --method fisher --features 2 --cv 3 --permutations 0 --out out"
    command = f"'{program}' select data.csv {options} | tail -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "report: out/report.html\n"
    assert done.stderr == ""
    assert (tmp_path / "out" / "report.html").exists()
