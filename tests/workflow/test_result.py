"""Results as files: JSON with a schema, CSV, Parquet, report, model; and back."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import jsonschema
import numpy as np
import polars as pl
import pytest
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import zeronorm
from zeronorm.workflow import files, places
from zeronorm.workflow.models import LinearModel, apply_model
from zeronorm.workflow.result import figure_cells, figures_from, finite, schema

QUICK = {"method": "fisher", "features": 3, "cv": 3}


@pytest.fixture(scope="module")
def selection(problem):
    return zeronorm.select(*problem, **QUICK, permutations=3)


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


def test_the_raw_cells_of_figures_are_in_a_table_of_their_own(selection, tmp_path):
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
    with pytest.raises(ValueError, match="does not hold the cells of figures"):
        zeronorm.Result.load(folder)


def test_cells_of_any_kind_and_depth_go_to_a_table_and_back():
    figures = {
        "one": {"whole": 3, "part": 0.5, "words": "a\nb", "yes": True, "nothing": None, "empty": []},
        "two": {"cube": [[[1.0, None], []], [[2, "x"]]], "ragged": [1, [2.5], [[False]]], "rows": [[], [1]]},
    }
    table = figure_cells(figures)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    assert figures_from(rows) == figures


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


def test_the_table_says_direction_and_effect(selection, problem):
    X, y = problem
    frame = selection.to_frame()
    first = frame.row(0, named=True)
    column = X[:, int(first["name"][1:]) - 1]
    up, down = column[y == "up"], column[y == "down"]
    assert first["mean in up"] == pytest.approx(up.mean())
    pooled = np.sqrt((np.sum((up - up.mean()) ** 2) + np.sum((down - down.mean()) ** 2)) / (len(y) - 2))
    assert first["effect"] == pytest.approx((up.mean() - down.mean()) / pooled)
    assert first["direction"] == f"higher in {'up' if up.mean() > down.mean() else 'down'}"
    assert np.sign(first["coefficient"]) == np.sign(first["effect"])


def test_univariate_tests_agree_with_scipy_and_scikit_learn(problem):
    from scipy import stats
    from sklearn.feature_selection import f_classif, r_regression

    from zeronorm.workflow.features import univariate_effects
    from zeronorm.workflow.inputs import DataOptions, load_data

    X, y = problem
    two = univariate_effects(load_data(X, DataOptions(target=y)))
    expected = stats.ttest_ind(X[y == "up"], X[y == "down"], equal_var=False).pvalue
    np.testing.assert_allclose(two.p_value, expected)
    np.testing.assert_allclose(two.q_value, stats.false_discovery_control(expected))
    positive = univariate_effects(load_data(np.exp(X), DataOptions(target=y)))
    ratio = np.exp(X)[y == "up"].mean(axis=0) / np.exp(X)[y == "down"].mean(axis=0)
    np.testing.assert_allclose(positive.fold_change, ratio)
    assert np.isnan(two.fold_change).all()
    labels = np.arange(len(y)) % 3
    three = univariate_effects(load_data(X, DataOptions(target=labels)))
    np.testing.assert_allclose(three.p_value, f_classif(X, labels)[1])
    target = X[:, 2] + X[:, 3]
    numbers = univariate_effects(load_data(X, DataOptions(target=target)))
    np.testing.assert_allclose(numbers.difference, r_regression(X, target), atol=1e-12)
    assert numbers.p_value[4] == pytest.approx(stats.pearsonr(X[:, 4], target).pvalue)


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


def test_charts_come_from_the_report(selection):
    import matplotlib

    matplotlib.use("Agg")
    for plot in (selection.plot_errors, selection.plot_stability, selection.plot_path):
        assert plot().axes


# -- CSV ------------------------------------------------------------------------------------------------


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


# -- Output folder ----------------------------------------------------------------------------------------


def test_leftovers_of_killed_processes_go_and_those_of_living_ones_stay(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    dead = tmp_path / f".zeronorm-{places._host()}-{ended.stdout.strip()}-abc"
    living = tmp_path / f".zeronorm-{places._host()}-{os.getpid()}-abc"
    foreign = tmp_path / ".zeronorm-other-1-abc"
    old = tmp_path / ".zeronorm-old"
    for folder in (dead, living, foreign, old):
        folder.mkdir()
    os.utime(old, (0, 0))
    places.remove_leftovers(tmp_path)
    assert {folder.name for folder in tmp_path.iterdir()} == {living.name, foreign.name}


def test_an_interrupted_run_goes_on_where_it_stopped(problem, tmp_path, monkeypatch):
    from zeronorm.workflow import chance

    whole = zeronorm.select(*problem, **QUICK, permutations=2)
    real = chance.permutation_test
    monkeypatch.setattr(chance, "permutation_test", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        zeronorm.select(*problem, **QUICK, permutations=2, out=tmp_path / "out")
    kept = list((tmp_path / "out" / "journal").glob("*.json"))
    assert len(kept) == 3
    monkeypatch.setattr(chance, "permutation_test", real)
    with pytest.raises(ValueError, match="resume=True"):
        zeronorm.select(*problem, **QUICK, permutations=2, out=tmp_path / "out")
    fits = []
    fit = zeronorm.FisherScore.fit
    monkeypatch.setattr(zeronorm.FisherScore, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    resumed = zeronorm.select(*problem, **QUICK, permutations=2, out=tmp_path / "out", resume=True)
    assert len(fits) == 1 + 2 * 3  # on all samples and on permuted targets, not again on the three folds
    assert resumed.procedure | {"seconds": 0} == whole.procedure | {"seconds": 0}
    assert sorted(os.listdir(tmp_path / "out")) == [
        "figures.parquet",
        "records.parquet",
        "report.html",
        "result.json",
        "selected.csv",
    ]


# -- Models -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_model_predicts_like_the_predictor_it_came_from(n_classes, tmp_path):
    X, y = make_classification(150, 12, n_informative=6, n_classes=n_classes, class_sep=0.6, random_state=1)
    result = zeronorm.select(X, y, method="fisher", features=5, cv=3, permutations=0)
    columns = [feature.index for feature in result.selected]
    reference = make_pipeline(StandardScaler(), SVC(kernel="linear", tol=1e-10)).fit(X[:, columns], y)
    result.save(tmp_path / "out", model=True)
    model = LinearModel.load(tmp_path / "out")
    np.testing.assert_array_equal(model.predict(X[:, columns]), reference.predict(X[:, columns]))
    if n_classes == 2:
        np.testing.assert_allclose(
            model.decision(X[:, columns])[:, 0],
            reference.decision_function(X[:, columns]),
            rtol=1e-5,
            atol=1e-5,
        )


def test_a_model_finds_its_columns_by_name(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "colour": list("rgb") * 20})
    target = frame["a"].to_numpy() + 3.0 * (frame["colour"] == "r").to_numpy()
    result = zeronorm.select(frame, target, method="lasso", features=4, cv=3, permutations=0)
    assert {"a", "colour=r"} <= set(result.features)
    shuffled = frame.select("colour", "b", "a").head(10)
    found = apply_model(result.model, shuffled)
    np.testing.assert_allclose(found["prediction"], target[:10], atol=0.5)
    with pytest.raises(ValueError, match="no column 'a'"):
        apply_model(result.model, frame.drop("a"))
    with pytest.raises(ValueError, match="no finite value in data row 1"):
        apply_model(result.model, frame.with_columns(a=pl.lit(None, dtype=pl.Float64)))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"format_version": 9},
        {"mean": [1.0]},
        {"scale": [0.0, 1.0, 1.0]},
        {"scheme": "votes"},
        {"weights": []},
        {"more": 1},
    ],
)
def test_a_damaged_model_is_refused(change, selection, tmp_path):
    selection.model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(content | change))
    with pytest.raises(ValueError, match="model"):
        LinearModel.load(tmp_path)


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
