"""Saved models: fitted, checked, and applied to new samples."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import zeronorm
from zeronorm.datasets._raw import RawTable
from zeronorm.workflow import _training as training
from zeronorm.workflow._models import LinearModel, fit_model, read_new_samples
from zeronorm.workflow._procedures import Settings

from .conftest import numbers, table_of


def apply_model(model, data, **reading):
    return zeronorm.apply(model, data, **reading).samples


def model_of(scheme, weights, classes, task="classification"):
    p = len(weights[0])
    names = [f"x{j}" for j in range(p)]
    means, scales = [1.0, 2.0][:p], [2.0, 0.5][:p]
    return LinearModel(task, "y", names, means, scales, weights, [0.0] * len(weights), scheme, classes)


def line(*features):
    k = len(features)
    return LinearModel(
        "regression", "y", list(features), [0.0] * k, [1.0] * k, [[1.0] * k], [0.0], "single", []
    )


UNTESTED = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


# -- Fitting and predicting --


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_model_predicts_like_the_predictor_it_came_from(n_classes, tmp_path):
    X, y = make_classification(150, 12, n_informative=6, n_classes=n_classes, class_sep=0.6, random_state=1)
    result = zeronorm.select(X, y, method="fisher", features=5, cv=3, permutations=0)
    columns = [feature.index for feature in result.selected]
    svm = SVC(kernel="linear", class_weight="balanced", tol=1e-10)  # the metric is the balanced error rate
    reference = make_pipeline(StandardScaler(), svm).fit(X[:, columns], y)
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


def test_a_model_of_each_kind_of_columns():
    X, y = numbers(40)
    X[:, 0] += 2.0 * (y == "yes")
    columns = np.array([2, 0])
    gaps = X.copy()
    gaps[3, 0] = np.nan
    table, with_gaps = table_of(X, y), table_of(gaps, y)
    model = fit_model(table, columns, Settings())
    assert model.features == [str(table.feature_names[k]) for k in columns]
    assert (model.task, model.target, model.scheme, model.classes, model.fill) == (
        "classification", "target", "single", ["no", "yes"], [],
    )  # fmt: skip
    np.testing.assert_allclose(model.mean, X[:, columns].mean(axis=0))
    np.testing.assert_allclose(model.scale, X[:, columns].std(axis=0))
    assert fit_model(table, columns, Settings(), with_gaps=table).fill == []
    filled = fit_model(training.filled(with_gaps), columns, Settings(), with_gaps=with_gaps).fill
    np.testing.assert_allclose(filled, np.nanmedian(gaps[:, columns], axis=0))
    assert fit_model(table, np.array([], dtype=int), Settings()) is None
    assert fit_model(table, columns, Settings(predictor=Ridge())) is None
    sparse_model = fit_model(table_of(sparse.csr_matrix(X), y), columns, Settings())
    assert sparse_model.mean == [0.0, 0.0]
    real = fit_model(table_of(X, X[:, 0], task="regression"), columns, Settings())
    assert (real.classes, real.scheme) == ([], "single")
    np.testing.assert_allclose(real.predict(X[:, columns]), X[:, 0], atol=0.2)


def test_predictions_of_each_scheme_by_hand():
    """Standardised, the three samples are (1, 0), (0, 2) and (-1, -2)."""
    X = [[3.0, 2.0], [1.0, 3.0], [-1.0, 1.0]]
    line = model_of("single", [[1.0, 1.0]], [], "regression")
    np.testing.assert_allclose(line.predict(X), [1.0, 2.0, -3.0])
    assert line.coefficients == [1.0, 1.0]
    assert model_of("single", [[1.0, -1.0]], ["a", "b"]).predict(X).tolist() == ["b", "a", "b"]
    by_class = model_of("classes", [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], ["a", "b", "c"])
    assert by_class.predict(X).tolist() == ["a", "b", "c"]
    assert by_class.coefficients is None
    # a against b, a against c, b against c; a positive value is a vote for the first
    pairs = model_of("pairs", [[1.0, -1.0], [1.0, 1.0], [0.0, 1.0]], ["a", "b", "c"])
    assert pairs.predict(X).tolist() == ["a", "b", "c"]


def test_a_decision_of_zero_goes_to_the_first_class_alone_and_to_the_second_of_a_pair():
    def model(scheme, weights, classes):
        rows = len(weights)
        return LinearModel("classification", "y", ["a"], [0.0], [1.0], weights, [0.0] * rows, scheme, classes)

    assert model("single", [[1.0]], ["p", "q"]).predict([[0.0], [1.0]]).tolist() == ["p", "q"]
    # Of p against q, p against r and q against r all are undecided: r has two votes, q has one.
    assert model("pairs", [[1.0]] * 3, ["p", "q", "r"]).predict([[0.0]]).tolist() == ["r"]


# -- Files --


def test_a_model_is_written_in_letters_and_finite_numbers(tmp_path):
    line("größe").save(tmp_path / "model.json")
    assert "größe" in (tmp_path / "model.json").read_text("utf-8")
    assert LinearModel.load(tmp_path).features == ["größe"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(line("a"), mean=[np.nan]).save(tmp_path / "model.json")


@pytest.mark.parametrize("content", ["[1]", "{}", "no json", "null", '{"format": "zeronorm-model"}'])
def test_files_that_are_not_models_are_refused(content, tmp_path):
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(ValueError, match="is not a model of zeronorm"):
        LinearModel.load(tmp_path)
    with pytest.raises(ValueError, match="There is no model at"):
        LinearModel.load(tmp_path / "nothing.json")


def load_with(change, model, folder):
    """The model from a file in which something was changed."""
    model.save(folder / "model.json")
    content = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(content | change))
    return LinearModel.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "is not a model of zeronorm, or"),
        ({"format_version": 9}, "or it has another format version"),
        ({"more": 1}, "the field 'more' is unknown"),
        ({"mean": [1.0]}, "'mean' has 1 values, but 'features' has 2"),
        ({"scale": [1.0, 2.0, 3.0]}, "'scale' has 3 values, but 'features' has 2"),
        ({"fill": [0.0]}, "'fill' has 1 values, but 'features' has 2"),
        ({"weights": []}, "their lengths must be equal"),
        ({"weights": [[1.0]]}, r"'weights\[0\]' has 1 values, but 'features' has 2"),
        ({"weights": [[1.0, 1.0], [1.0, 1.0]]}, "their lengths must be equal"),
        ({"intercepts": [0.0, 0.0]}, "their lengths must be equal"),
        ({"scheme": "pairs", "classes": ["a", "b", "c"]}, "'weights' has 1 rows, but .* needs 3"),
        ({"scheme": "classes", "classes": ["a", "b"]}, "'weights' has 1 rows, but .* needs 2"),
        ({"scheme": "votes"}, "'scheme' must be \"single\" or"),
        ({"scale": [0.0, 1.0]}, r"'scale\[0\]' must be greater than 0, not 0.0"),
        ({"mean": [np.nan, 1.0]}, "it holds NaN, which is no finite number"),
        ({"intercepts": [np.inf]}, "it holds Infinity, which is no finite number"),
        ({"weights": [["1", 2.0]]}, r"'weights\[0\]\[0\]' must be a finite number, not \"1\""),
        ({"fill": [np.nan, 1.0]}, "it holds NaN, which is no finite number"),
    ],
)
def test_a_damaged_model_is_refused(change, message, tmp_path):
    model = model_of("single", [[1.0, 1.0]], ["a", "b"])
    assert load_with({}, model, tmp_path) == model
    with pytest.raises(ValueError, match=message):
        load_with(change, model, tmp_path)


@pytest.mark.parametrize("scheme", ["pairs", "classes"])
def test_a_model_of_three_classes_is_saved_and_loaded(scheme, tmp_path):
    model = model_of(scheme, [[1.0, 1.0]] * 3, ["a", "b", "c"])
    assert load_with({}, model, tmp_path) == model


# -- New samples --


def test_a_model_takes_arrays_of_its_features():
    model = model_of("single", [[1.0, -1.0]], ["a", "b"])
    found = apply_model(model, [[3.0, 2.0], [1.0, 3.0]])
    assert found["prediction"] == ["b", "a"]
    np.testing.assert_allclose(found["decision"], [1.0, -2.0])
    assert "decision" not in apply_model(model_of("classes", [[1.0, 0.0]] * 3, ["a", "b", "c"]), [[3.0, 2.0]])
    with pytest.raises(ValueError, match="'x1' has no finite value in data row 2"):
        apply_model(model, [[3.0, 2.0], [1.0, np.nan]])
    filled = apply_model(replace(model, fill=[0.0, 3.0]), [[3.0, 2.0], [1.0, np.nan]])
    assert filled["prediction"] == ["b", "a"]
    for wrong in ([[1.0, 2.0, 3.0]], [1.0, 2.0]):
        with pytest.raises(ValueError, match="must have the 2 columns x0, x1"):
            apply_model(model, wrong)


def test_new_samples_are_named_by_their_own_column(tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("n,who,a\n7,u1,1\n8,u2,2\n9,u3,3\n")
    assert apply_model(line("a"), file) == {"sample": ["u1", "u2", "u3"], "prediction": [1.0, 2.0, 3.0]}
    assert apply_model(line("a"), file, id="n")["sample"] == ["7", "8", "9"]
    with pytest.raises(ValueError, match="the new data"):
        apply_model(line("a"), file, id="nobody")
    frame = pd.DataFrame({"a": [1.0, 2.0], "who": ["v1", "v2"]}, index=["i1", "i2"])
    assert apply_model(line("a"), frame)["sample"] == ["i1", "i2"]  # the index names them already
    assert "sample" not in apply_model(line("a"), pd.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="'who' of the new data holds text, but the model needs numbers"):
        apply_model(line("who"), file)
    with pytest.raises(ValueError, match="lack 1 of the 1 feature of the model: 'z'"):
        apply_model(line("z"), file)
    turned = tmp_path / "turned.txt"
    turned.write_text("x;s1;s2\na;1,5;2,5\n")
    found = apply_model(line("a"), turned, transpose=True, delimiter=";", decimal_comma=True)
    assert found == {"sample": ["s1", "s2"], "prediction": [1.5, 2.5]}
    raw = read_new_samples(line("a"), file)
    assert isinstance(raw, RawTable)
    assert apply_model(line("a"), raw)["prediction"] == [1.0, 2.0, 3.0]


def test_all_missing_features_are_named_with_columns_of_similar_names(tmp_path):
    frame = pl.DataFrame({"CD4 ": [1.0, 2.0], "sex": ["f", "m"], "age": [30.0, 40.0]})
    model = line("CD4", "age", "sex=f", "race=x", "HLA-DRA", *(f"gene {k}" for k in range(30)))
    with pytest.raises(
        ValueError, match="lack 33 of the 35 features of the model: 'CD4', 'race=x', "
    ) as error:
        apply_model(model, frame)
    assert "They have 'CD4 ' for 'CD4': the same feature with another name?" in str(error.value)
    assert "'gene 0'" in str(error.value)
    assert "and 13 more" in str(error.value)
    assert "'age'" not in str(error.value)


def test_only_the_columns_that_a_model_needs_come_from_the_sheet(tmp_path):
    (tmp_path / "data.csv").write_text("id,a\ns1,1\ns2,2\ns3,3\n")
    (tmp_path / "sheet.csv").write_text("id,b,c\ns2,20,x\ns3,30,x\ns1,10,x\n")
    raw = read_new_samples(line("a", "b"), tmp_path / "data.csv", samples=tmp_path / "sheet.csv", id="id")
    assert sorted(raw.names) == ["a", "b", "id"]
    found = apply_model(line("a", "b"), raw)
    assert found == {"sample": ["s1", "s2", "s3"], "prediction": [11.0, 22.0, 33.0]}


def test_a_model_finds_its_columns_by_name(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "colour": list("rgb") * 20})
    target = frame["a"].to_numpy() + 3.0 * (frame["colour"] == "r").to_numpy()
    result = zeronorm.select(frame, target, method="lasso", features=4, cv=3, permutations=0)
    assert {"a", "colour=r"} <= set(result.features)
    shuffled = frame.select("colour", "b", "a").head(10)
    found = apply_model(result.model, shuffled)
    np.testing.assert_allclose(found["prediction"], target[:10], atol=0.5)
    with pytest.raises(ValueError, match="lack 1 of the 4 features of the model: 'a'"):
        apply_model(result.model, frame.drop("a"))
    with pytest.raises(ValueError, match="no finite value in data row 1"):
        apply_model(result.model, frame.with_columns(a=pl.lit(None, dtype=pl.Float64)))


@pytest.mark.parametrize("column", ["sex", "is=sex", "sex="])
def test_a_model_finds_levels_of_text_in_a_second_sheet(column, tmp_path):
    """A column name may itself contain the equals sign that separates a column and its level."""
    model = LinearModel(
        "regression", "y", ["a", f"{column}=f"], [0.0, 0.0], [1.0, 1.0], [[2.0, 10.0]], [0.5], "single", []
    )
    (tmp_path / "data.csv").write_text("id,a,other\ns1,1,5\ns2,2,5\ns3,3,5\n")
    (tmp_path / "sheet.csv").write_text(f"id,{column},noise\ns3,f,x\ns1,m,y\ns2,f,z\n")
    found = apply_model(model, tmp_path / "data.csv", samples=tmp_path / "sheet.csv", id="id")
    assert found == {"sample": ["s1", "s2", "s3"], "prediction": [2.5, 14.5, 16.5]}


def test_a_model_fills_gaps_of_new_samples_and_knows_renamed_columns(gappy, tmp_path):
    X, y = gappy
    names = ["a", "a", *(f"g{k}" for k in range(2, 10))]
    lines = [
        ",".join([*names, "y"]),
        *(",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)),
    ]
    (tmp_path / "d.csv").write_text("\n".join(lines).replace("nan", "") + "\n")
    result = zeronorm.select(tmp_path / "d.csv", "y", **UNTESTED)
    assert result.features == ["a (2)", "a"] or result.features == ["a", "a (2)"]
    result.model.save(tmp_path / "model.json")
    model = LinearModel.load(tmp_path / "model.json")
    columns = [0 if name == "a" else 1 for name in model.features]
    np.testing.assert_allclose(model.fill, np.nanmedian(X[:, columns], axis=0))
    predicted = apply_model(model, tmp_path / "d.csv")["prediction"]
    by_hand = np.where(np.isnan(X[:, columns]), model.fill, X[:, columns])
    assert predicted == model.predict(by_hand).tolist()
    complete = replace(model, fill=[])
    with pytest.raises(ValueError, match="no finite value"):
        apply_model(complete, tmp_path / "d.csv")


def test_new_samples_are_read_in_the_notation_of_the_training_samples(tmp_path):
    rng = np.random.default_rng(0)
    values = 3000.0 * rng.normal(size=(40, 3)).round(6)
    labels = np.where(values[:, 0] > 0.0, "high", "low")

    def german(value):
        return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))

    file = tmp_path / "german.csv"
    rows = [";".join([*map(german, row), label]) for row, label in zip(values, labels, strict=True)]
    file.write_text("a;b;c;y\n" + "\n".join(rows) + "\n")
    result = zeronorm.select(file, "y", method="fisher", features=1, cv=2, permutations=0)
    found = apply_model(result.model, file)
    assert np.mean(np.asarray(found["prediction"]) == labels) > 0.9
