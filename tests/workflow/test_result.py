"""A result: its JSON with a schema, its figures, its text; saved and loaded again."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm.result._plain import figure_values, figures_from, finite
from zeronorm.result._record import SelectedFeature, schema
from zeronorm.workflow._models import GaussianModel
from zeronorm.workflow._result import Result

QUICK = {"method": "fisher", "features": 3, "cv": 3}


def named_result(**changes):
    data = {"n_samples": 10, "n_features": 30, "target": "größe"}
    return Result(**{"kind": "selection", "data": data, "methods": [], **changes})


# -- JSON --


@pytest.fixture(scope="module")
def regression(problem):
    X, _ = problem
    return zeronorm.select(X, X[:, 0] + 0.1 * X[:, 5], method="lasso", features=3, cv=3, permutations=0)


@pytest.fixture(scope="module")
def comparison(problem):
    return zeronorm.compare(*problem, methods=["fisher", "golub"], features=3, cv=3)


@pytest.mark.parametrize("name", ["selection", "regression", "comparison"])
def test_the_json_file_keeps_its_schema(name, request):
    result = request.getfixturevalue(name)
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(result.to_json()), schema())


def test_the_schema_refuses_what_is_missing_or_wrong(selection):
    content = json.loads(selection.to_json())
    for wrong in (
        {"procedure": {**content["procedure"], "p_value": 2.0}},
        {"format_version": 1},
        {"extra": 1},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content | wrong, schema())
    del content["procedure"]["chance"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema())


def test_numbers_that_are_not_finite_become_null(selection):
    values = {"a": np.nan, "b": [np.inf, -np.inf, np.float32(1.5)], "c": np.array([np.nan, 2.0])}
    assert finite(values) == {"a": None, "b": [None, None, 1.5], "c": [None, 2.0]}
    broken = zeronorm.Result(**{**vars(selection), "size": {"x": float("nan"), "y": [float("inf")]}})
    assert json.loads(broken.to_json())["size"] == {"x": None, "y": [None]}
    assert "NaN" not in broken.to_json()
    assert "Infinity" not in broken.to_json()


def plain_result(**changes):
    data = {"n_samples": 10, "n_features": 30, "target": "y", "source": "", "task": "classification"}
    data |= {"class_counts": {}, "sample_groups": None, "sha256": None}
    methods = [{"name": "a", "label": "a", "class": "A", "reference": "", "parameters": {}}]
    return Result(**{"kind": "selection", "data": data, "methods": methods, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "not a result of zeronorm"),
        ({"format_version": 1}, "format version 1, but this program reads 2"),
        ({"selected": [{"rank": 1}]}, "is incomplete"),
        ({"names": {"a": "b"}}, "is incomplete"),
        ({"kind": None, "more": 1}, "is incomplete"),
    ],
)
def test_files_that_are_not_results_are_refused(change, message):
    content = json.loads(plain_result(names={3: "g"}).to_json())
    assert Result.from_json(json.dumps(content)).names == {3: "g"}
    with pytest.raises(ValueError, match=message):
        Result.from_json(json.dumps(content | change))
    with pytest.raises(ValueError, match="not valid JSON"):
        Result.from_json("{")
    with pytest.raises(ValueError, match="not a result"):
        Result.from_json("[]")


@pytest.mark.parametrize("name", ["selection", "comparison"])
def test_saved_and_loaded_is_the_same(name, request, tmp_path):
    result = request.getfixturevalue(name)
    result.save(tmp_path / "out")
    again = zeronorm.Result.load(tmp_path / "out")
    assert json.loads(again.to_json()) == json.loads(result.to_json())
    assert again.records.equals(result.records)
    assert again.headline == result.headline
    with pytest.raises(ValueError, match="force=True"):
        result.save(tmp_path / "out")
    result.save(tmp_path / "out", force=True)
    page = again.report(tmp_path / "page.html")
    assert page.read_text() == (tmp_path / "out" / "report.html").read_text()


def test_results_are_compared_without_their_records_and_written_in_letters():
    result = named_result()
    assert replace(result, records=1, model=2) == result
    assert replace(result, kind="comparison") != result
    assert (result.records, result.model) == (None, None)
    assert '"größe"' in result.to_json()
    assert GaussianModel("regression", "y", ["a"], [0.0], [1.0], [[1.0]], [0.0], "single", []).gamma == 1.0


# -- Figures --


def test_the_values_of_figures_have_their_own_table(selection, tmp_path):
    folder = selection.save(tmp_path / "out")
    assert "figures" not in json.loads((folder / "result.json").read_text())
    cells = pl.read_parquet(folder / "figures.parquet")
    assert set(cells["figure"]) == set(selection.figures)
    shown = cells.filter(pl.col("figure") == "features", pl.col("part") == "values").sort("i", "j")
    expected = [value for row in finite(selection.figures["features"]["values"]) for value in row]
    assert shown["number"].to_list() == expected
    assert zeronorm.Result.load(folder).figures == finite(selection.figures)
    (folder / "figures.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match=r"figures\.parquet' is damaged or not Parquet"):
        zeronorm.Result.load(folder)
    pl.DataFrame({"x": [1]}).write_parquet(folder / "figures.parquet")
    with pytest.raises(ValueError, match="does not hold the values of figures"):
        zeronorm.Result.load(folder)


def test_values_of_any_kind_and_depth_go_to_a_table_and_back():
    figures = {
        "one": {"whole": 3, "part": 0.5, "words": "a\nb", "yes": True, "nothing": None, "empty": []},
        "two": {"cube": [[[1.0, None], []], [[2, "x"]]], "ragged": [1, [2.5], [[False]]], "rows": [[], [1]]},
    }
    table = figure_values(figures)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    assert figures_from(rows) == figures


def test_values_of_figures_have_their_kind_and_indices():
    cells = figure_values({"f": {"a": [[1, True], [None, "x"]], "b": 2.5, "c": [], "d": float("nan")}})
    rows = list(zip(*cells.values(), strict=True))
    assert list(cells) == ["figure", "part", "i", "j", "k", "kind", "number", "text"]
    assert rows == [
        ("f", "a", 0, 0, None, "int", 1.0, None),
        ("f", "a", 0, 1, None, "bool", 1.0, None),
        ("f", "a", 1, 0, None, "NoneType", None, None),
        ("f", "a", 1, 1, None, "str", None, "x"),
        ("f", "b", None, None, None, "float", 2.5, None),
        ("f", "c", None, None, None, "list", None, None),
        ("f", "d", None, None, None, "NoneType", None, None),
    ]
    assert finite({1: (np.float64(2.0), {"x"}), None: True}) == {1: [2.0, "{'x'}"], "None": True}


def test_charts_come_from_the_report(selection):
    import matplotlib

    matplotlib.use("Agg")
    for plot in (selection.plot_errors, selection.plot_stability, selection.plot_path):
        assert plot().axes


def test_charts_are_drawn_on_the_given_axes(monkeypatch):
    seen = []
    monkeypatch.setattr("zeronorm.report.figure", lambda *given, **named: seen.append((given, named)))
    result = named_result(records="records")
    for plot, chart in (
        (result.plot_errors, "error"),
        (result.plot_stability, "stability"),
        (result.plot_path, "path"),
    ):
        plot("here")
        assert seen.pop() == ((chart, "records", result), {"ax": "here"})


# -- Text --


def test_notebooks_show_text_not_markup(problem):
    X, y = problem
    frame = pl.DataFrame({f"<b>{i}</b>": X[:, i] for i in range(30)}).with_columns(label=pl.Series(y))
    page = zeronorm.select(frame, "label", **QUICK, permutations=0)._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_a_result_prints_in_a_few_lines(selection):
    text = repr(selection)
    assert selection.headline in text
    assert selection.features[0] in text
    assert len(text) < 1500


def selected_features(count):
    return [
        SelectedFeature(rank=k + 1, name=f"g{k}", column=k, index=k, score=1.0, mean=0.0, scale=1.0)
        for k in range(count)
    ]


def test_ten_features_are_printed_and_the_others_counted():
    ten, more = (repr(named_result(selected=selected_features(count))) for count in (10, 12))
    assert ten.endswith("g8, g9")
    assert more.endswith("g8, g9 and 2 more")


def test_chance_of_a_result_and_names_of_features():
    result = plain_result(names={3: "g"})
    assert (result.name_of(3), result.name_of(4), result.chance) == ("g", "feature 4", None)
    assert plain_result(procedure={"chance": 0.4}, table=[{"chance": 0.3}]).chance == 0.4
    assert plain_result(table=[{"chance": 0.3}, {"chance": 0.2}]).chance == 0.3
    with pytest.raises(ValueError, match="Nothing was selected, so there is no table"):
        result.to_frame()
