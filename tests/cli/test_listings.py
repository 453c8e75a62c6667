"""The commands methods and datasets: lists and descriptions."""

from __future__ import annotations

import json

from zeronorm.cli._main import run


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


def test_a_data_set_is_described_with_how_to_get_it(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ZERONORM_DATA", str(tmp_path))
    monkeypatch.setenv("ZERONORM_CACHE", str(tmp_path))
    assert run(["datasets", "colon"]) == 0
    assert "Save it with numpy.savez as colon.npz" in capsys.readouterr().out
    assert run(["datasets", "colonn"]) == 2
    assert "Did you mean 'colon'" in capsys.readouterr().err
