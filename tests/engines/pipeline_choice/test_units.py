"""Units of auto: found where they help, kept as they are elsewhere, and part of the predictor and the saved model."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from zeronorm import AutoSelector
from zeronorm.cli._main import run
from zeronorm.engines.pipeline_choice._units import candidates, sizes_of_race
from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors._units import UNITS, InUnits, transformed, unit_of
from zeronorm.result._models import LinearModel


def words(n, rng):
    """Counts of 200 words in texts of very different lengths; the class doubles the frequency of 20 of them."""
    y = np.arange(n) % 2
    rates = np.tile(rng.gamma(0.5, 1.0, 200) + 0.05, (n, 1))
    rates[:, :20] *= np.where(y[:, None] == 1, 2.0, 1.0)
    return rng.poisson(rates * np.exp(rng.normal(1, 1.6, (n, 1)))).astype(float), y


def skewed(n, rng):
    """Exponentials of normal columns, of which eight differ between the classes."""
    y = np.arange(n) % 2
    Z = 1.5 * rng.normal(size=(n, 40))
    Z[:, :8] += 0.8 * (2 * y[:, None] - 1)
    return np.exp(Z), y


def linear(n, rng):
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 40))
    X[:, :6] += 0.5 * (2 * y[:, None] - 1)
    return np.abs(X.min()) + X, y


def error_outside(selector, X, y, n):
    kept = selector.get_support()
    model = selector.predictor_.fit(X[:n][:, kept], y[:n])
    return float(np.mean(model.predict(X[n:][:, kept]) != y[n:]))


@pytest.mark.parametrize(
    ("make", "n", "expected"), [(words, 150, ("rows", "root rows")), (skewed, 110, ("log",))]
)
def test_units_in_which_the_classes_differ_are_found(make, n, expected):
    X, y = make(n + 500, np.random.default_rng(1))
    auto = AutoSelector(random_state=0).fit(X[:n], y[:n])
    usual = AutoSelector(units="standardized", random_state=0).fit(X[:n], y[:n])
    assert auto.units_ in expected
    assert usual.units_ == "standardized"
    assert error_outside(auto, X, y, n) < error_outside(usual, X, y, n) - 0.05
    assert UNITS[auto.units_].text in auto.verdict()


def test_normal_columns_stay_standardised_with_the_same_result():
    X, y = linear(110, np.random.default_rng(0))
    auto = AutoSelector(random_state=0).fit(X, y)
    usual = AutoSelector(units="standardized", random_state=0).fit(X, y)
    assert auto.units_ == "standardized"
    np.testing.assert_array_equal(auto.get_support(), usual.get_support())


def test_sparse_counts_give_the_same_units_and_features_as_dense_ones():
    X, y = words(100, np.random.default_rng(3))
    dense = AutoSelector(units="root rows", cv=2, random_state=0).fit(X, y)
    stored = AutoSelector(units="root rows", cv=2, random_state=0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.get_support(), stored.get_support())


@pytest.mark.parametrize("values", ["measured", "log", "root", "rows", "root rows"])
def test_sparse_values_are_transformed_as_dense_ones(values):
    X = np.random.default_rng(0).poisson(0.5, (12, 7)).astype(float)
    X[3] = 0.0
    found = transformed(sparse.csr_matrix(X), values, 2.0)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), transformed(X, values, 2.0))
    expected = {"measured": X, "log": np.log(1 + X / 2), "root": X**0.5, "rows": Normalizer().transform(X),
                "root rows": Normalizer().transform(X**0.5)}  # fmt: skip
    np.testing.assert_allclose(found.toarray(), expected[values])
    assert unit_of(X) == np.median(X[X > 0]) == unit_of(sparse.csc_matrix(X))


@pytest.mark.parametrize("units", list(UNITS))
def test_a_predictor_in_units_is_the_predictor_of_transformed_columns(units):
    rng = np.random.default_rng(0)
    X, y = skewed(60, rng)
    model = InUnits(StandardizedSVC(kernel="linear"), units, 1.5).fit(X[:40], y[:40])
    Z = transformed(X, UNITS[units].values, 1.5)
    scaler = StandardScaler().fit(Z[:40])
    if UNITS[units].is_common:
        scaler.scale_ = np.full(40, np.sqrt(np.mean(scaler.var_)))
    reference = SVC(kernel="linear", tol=1e-8).fit(scaler.transform(Z[:40]), y[:40])
    expected = reference.decision_function(scaler.transform(Z[40:]))
    np.testing.assert_allclose(model.decision_function(X[40:]), expected, atol=2e-3 * np.abs(expected).max())


def test_logarithms_and_roots_are_tried_for_counts_only():
    assert candidates(np.array([[0.0, 2.0], [1.0, 3.0]]), 200) == tuple(UNITS)
    assert candidates(np.array([[0.0, 2.0], [1.0, 3.0]]), 50) == ("standardized", "common", "log")
    assert candidates(np.array([[0.0, 1.0], [1.0, 1.0]]), 200) == ("standardized", "common", "rows")
    assert candidates(np.array([[-1.0, 2.0]]), 200) == ("standardized", "common", "rows")
    assert sizes_of_race(2000).tolist() == [7, 31, 125, 500]
    assert sizes_of_race(3).tolist() == [1, 3]


def test_units_that_the_data_cannot_have_are_refused():
    X, y = linear(40, np.random.default_rng(0))
    with pytest.raises(ValueError, match="needs values from zero on"):
        AutoSelector(units="log").fit(X - 5.0, y)
    with pytest.raises(ValueError, match="units"):
        AutoSelector(units="inches").fit(X, y)


def test_a_saved_model_predicts_in_the_units_of_the_selection(tmp_path, capsys):
    n = 150
    X, y = words(n, np.random.default_rng(1))
    y = np.array(["first", "second"])[y]
    frame = pd.DataFrame(X, columns=[f"w{k}" for k in range(X.shape[1])])
    table, out = tmp_path / "table.csv", tmp_path / "out"
    frame.assign(topic=y).to_csv(table, index=False)
    command = ["select", str(table), "-t", "topic", "--out", str(out), "--save-model", "--permutations", "0",
               "--cv", "3", "--quiet"]  # fmt: skip
    assert run(command) == 0
    model = LinearModel.load(out)
    assert model.values in ("rows", "root rows")
    assert UNITS[model.values].text in (out / "report.html").read_text(encoding="utf-8")
    kept = X[:, [int(name[1:]) for name in model.features]]
    refit = InUnits(StandardizedSVC(kernel="linear", class_weight="balanced"), model.values, model.unit)
    costs = [
        refit.around(StandardizedSVC(kernel="linear", C=C, class_weight="balanced")) for C in (1.0, 0.1, 0.01)
    ]
    saved = model.decision(kept)[:, 0]
    assert min(np.abs(each.fit(kept, y).decision_function(kept) - saved).max() for each in costs) < 1e-6
    assert run(["apply", str(out), str(table)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    printed = [line for line in lines if len(line) > 1 and set(line) & {"first", "second"}]
    assert [label in line for label, line in zip(model.predict(kept), printed[-n:], strict=True)] == [
        True
    ] * n


def test_files_of_models_on_values_as_measured_are_as_before(tmp_path):
    model = LinearModel("classification", "y", ["a"], [0.0], [1.0], [[1.0]], [0.0], "single", [0, 1])
    model.save(tmp_path / "model.json")
    assert not {"values", "unit"} & set(json.loads((tmp_path / "model.json").read_text(encoding="utf-8")))
    assert LinearModel.load(tmp_path) == model
