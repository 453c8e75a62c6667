"""Predictors on the selected features: linear, Gaussian, or any estimator."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import zeronorm
from zeronorm.cli._main import run
from zeronorm.report._chart import ReportData
from zeronorm.report._text import methods_section
from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.result._models import GaussianModel
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow._inputs import DataOptions, load_data
from zeronorm.workflow._models import LinearModel
from zeronorm.workflow._procedures import Settings, build_procedure, predictor_notes

from .conftest import numbers, table_of

QUICK = {"features": 2, "permutations": 0, "cv": 3}


def crossed(n_samples=120, n_classes=2, seed=0):
    """No single feature separates the classes, but the angle of the first two does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 6))
    angle = (np.arctan2(X[:, 1], X[:, 0]) % np.pi) / np.pi
    return X, (angle * n_classes).astype(int)


def test_a_gaussian_model_finds_nonlinear_boundaries():
    X, y = crossed()
    values = {
        name: zeronorm.select(X, y, method="relief", predictor=name, **QUICK).procedure
        for name in ("linear", "gaussian")
    }
    assert values["linear"]["value"] > 0.35
    assert values["gaussian"]["value"] < 0.15
    assert values["gaussian"]["beats_chance"]
    assert not values["linear"]["beats_chance"]


@pytest.fixture(scope="module")
def nonlinear_answer():
    """The answer of auto to classes that only a nonlinear predictor separates, from a table with a gap."""
    X, y = crossed(n_samples=150)
    X[3, 4] = np.nan
    return X, y, zeronorm.select(X, y, method="auto", permutations=0, cv=2)


def test_the_predictor_that_auto_chooses_is_that_of_the_folds_and_of_the_model(nonlinear_answer):
    X, y, result = nonlinear_answer
    assert result.procedure["value"] < 0.2  # a linear predictor has about one half
    assert [feature.index for feature in result.selected][:2] in ([0, 1], [1, 0])
    assert isinstance(result.model, GaussianModel)
    predicted = zeronorm.apply(result.model, X[:, [feature.index for feature in result.selected]]).samples
    assert np.mean(np.asarray(predicted["prediction"]) != y) < 0.1
    assert "Gaussian kernel (C = " in result.provenance["predictor"]


def test_a_predictor_of_the_user_is_used_instead_of_that_of_auto(nonlinear_answer):
    X, y, _ = nonlinear_answer
    result = zeronorm.select(X, y, method="auto", predictor="linear", features=2, permutations=0, cv=2)
    assert not isinstance(result.model, GaussianModel)
    assert result.procedure["value"] > 0.3


def test_evaluate_uses_the_predictor_of_the_selector_unless_it_is_given_one():
    class WithTree(zeronorm.FisherScore):
        predictor_ = DecisionTreeClassifier(random_state=0)

    X, y = crossed()
    own = zeronorm.evaluate(WithTree(2), X, y, metrics="error_rate")
    tree = zeronorm.evaluate(
        zeronorm.FisherScore(2), X, y, metrics="error_rate", estimator=DecisionTreeClassifier(random_state=0)
    )
    linear = zeronorm.evaluate(
        WithTree(2), X, y, metrics="error_rate", estimator=StandardizedSVC(kernel="linear")
    )
    assert own["error_rate"].to_list() == tree["error_rate"].to_list()
    assert own["error_rate"].to_list() != linear["error_rate"].to_list()


def test_sizes_and_methods_are_chosen_with_the_same_predictor():
    X, y = crossed()
    result = zeronorm.select(
        X, y, method="relief", predictor="gaussian", permutations=0, cv=3, max_features=6
    )
    assert {0, 1} <= {feature.index for feature in result.selected}
    assert any("Gaussian kernel" in note for note in result.notes)
    table = load_data(X, DataOptions(target=y))
    for name in ("auto", "relief"):
        inside = build_procedure(name, table, Settings(predictor="gaussian"), [2])
        assert inside.estimator.kernel == "rbf"
        assert build_procedure(name, table, Settings(), [2]).estimator is None


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(("n_classes", "scheme"), [(2, "single"), (3, "pairs")])
def test_a_saved_model_of_classes_predicts_as_that_of_scikit_learn(tmp_path, n_classes, scheme, few):
    """LIBSVM solves it for many samples; for few samples our solver is more precise than LIBSVM."""
    X, y = crossed(60 if few else 240, n_classes=n_classes)
    result = zeronorm.select(
        X, y, method="relief", predictor="gaussian", out=tmp_path / "out", save_model=True, **QUICK
    )
    model = LinearModel.load(tmp_path / "out")
    assert model.scheme == scheme
    assert all(feature.coefficient is None for feature in result.selected)
    columns = [feature.index for feature in result.selected]
    svm = SVC(
        decision_function_shape="ovo",
        class_weight="balanced",
        gamma=1 / len(columns),
        tol=1e-10 if few else 1e-3,
    )
    theirs = make_pipeline(StandardScaler(), svm).fit(X[:, columns], y)
    new = np.random.default_rng(5).normal(size=(40, len(columns)))
    decision = theirs.decision_function(new).reshape(40, -1)
    np.testing.assert_allclose(model.decision(new), decision, atol=1e-5 if few else 1e-6)
    assert zeronorm.apply(model, new).samples["prediction"] == theirs.predict(new).tolist()


def nonlinear(n_samples=90):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, 4))
    return X, 1000.0 + 50.0 * np.sin(2.0 * X[:, 0]) + rng.normal(size=n_samples)


def test_a_saved_model_of_regression_predicts_in_the_unit_of_the_target(tmp_path):
    X, y = nonlinear()
    result = zeronorm.select(
        X, y, method="gram-schmidt", predictor="gaussian", out=tmp_path / "out", save_model=True, **QUICK
    )
    model = LinearModel.load(tmp_path / "out")
    columns = [feature.index for feature in result.selected]
    theirs = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
    ).fit(X[:, columns], y)
    np.testing.assert_allclose(model.predict(X[:, columns]), theirs.predict(X[:, columns]), rtol=1e-6)


@pytest.mark.parametrize(("name", "kernel"), [("linear", "linear"), ("gaussian", "rbf")])
def test_a_model_of_sparse_data_predicts_as_that_of_scikit_learn(name, kernel):
    X = np.random.default_rng(0).poisson(2.0, size=(80, 6)).astype(float)
    y = (X[:, 0] + X[:, 1] > 4).astype(int)
    result = zeronorm.select(sparse.csr_matrix(X), y, method="fisher", predictor=name, **QUICK)
    chosen = X[:, [feature.index for feature in result.selected]]
    # The Gaussian kernel depends on differences only, so the width that suits the data is that of centred columns.
    scaler = StandardScaler(with_mean=kernel == "rbf")
    theirs = make_pipeline(scaler, SVC(kernel=kernel, class_weight="balanced")).fit(chosen, y)
    np.testing.assert_allclose(
        result.model.decision(chosen)[:, 0], theirs.decision_function(chosen), atol=1e-6
    )


def test_a_damaged_model_is_refused(tmp_path):
    X, y = crossed()
    zeronorm.select(
        X, y, method="fisher", predictor="gaussian", out=tmp_path / "out", save_model=True, **QUICK
    )
    file = tmp_path / "out" / "model.json"
    content = json.loads(file.read_text())
    for change, match in (
        ({"support": content["support"][1:]}, "their lengths must be equal"),
        ({"support": [row[:1] for row in content["support"]]}, "their lengths must be equal"),
        ({"gamma": "wide"}, "'gamma' must be a finite number, not \"wide\""),
    ):
        file.write_text(json.dumps(content | change))
        with pytest.raises(ValueError, match=match):
            LinearModel.load(file)


def test_an_estimator_of_the_user_predicts_everywhere(tmp_path):
    X, y = crossed()
    tree = DecisionTreeClassifier(max_depth=4)
    result = zeronorm.select(X, y, method="fisher", predictor=tree, **QUICK)
    again = zeronorm.select(X, y, method="fisher", predictor=tree, **QUICK)
    assert result.model is None
    assert result.procedure["value"] == again.procedure["value"]
    assert any("DecisionTreeClassifier" in note for note in result.notes)
    with pytest.raises(ValueError, match="'save_model' parameter applies to the predictors of zeronorm only"):
        zeronorm.select(X, y, predictor=tree, out=tmp_path / "out", save_model=True)
    with pytest.raises(ValueError, match="no model to save"):
        result.save(tmp_path / "saved", model=True)


@pytest.mark.parametrize("wrong", ["rbf", SVC, 3, None])
def test_what_is_no_predictor_is_refused(wrong):
    X, y = crossed(40)
    with pytest.raises(
        ValueError, match=r"'predictor' parameter must be one of \('auto', 'linear', 'gaussian'\)"
    ):
        zeronorm.compare(X, y, methods="fisher", predictor=wrong)


def test_too_many_samples_for_a_gaussian_model_are_an_error_at_once():
    y = np.arange(20_001) % 2
    with pytest.raises(ValueError, match="supports up to 20000 samples; the table has 20001"):
        zeronorm.select(y[:, None] * np.ones(3), y, method="fisher", predictor="gaussian", features=1)


def test_the_command_takes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = crossed(60)
    np.savetxt("data.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,f,y", comments="")
    arguments = ["select", "data.csv", "-t", "y", "-m", "relief", "-k", "2", "--permutations", "0"]
    assert run([*arguments, "--predictor", "gaussian", "--save-model", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["procedure"]["value"] < 0.35
    assert run(["apply", printed["folder"], "data.csv"]) == 0
    assert run([*arguments, "--predictor", "rbf"]) == 2
    assert "linear" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("predictor", "is_right"),
    [
        ("linear", True),
        ("gaussian", True),
        (Ridge(), True),
        (Ridge, False),
        ("ridge", False),
        (SimpleNamespace(fit=1, predict=1), False),
        (SimpleNamespace(fit=1, get_params=1), False),
        (SimpleNamespace(predict=1, get_params=1), False),
    ],
)
def test_what_a_predictor_is(predictor, is_right):
    if is_right:
        assert Settings(predictor=predictor).predictor is predictor
    else:
        with pytest.raises(ValueError, match="'predictor' parameter must be one of"):
            Settings(predictor=predictor)


def test_the_predictor_of_a_run():
    X, y = numbers()
    table = table_of(X, y)
    own = LogisticRegression()
    assert procedures.predictor_of(table, Settings(predictor=own)) is own
    assert procedures.predictor_of(table, Settings(predictor="gaussian")).kernel == "rbf"
    assert procedures.predictor_of(table, Settings()).kernel == "linear"
    sparse_table = table_of(sparse.csr_matrix(X), y)
    for name in ("linear", "gaussian"):
        steps = procedures.predictor_of(sparse_table, Settings(predictor=name))
        assert steps[0].with_mean is False  # sparse columns are not centred
    tall = replace(table, X=np.zeros((5001, 1)))
    assert isinstance(procedures.predictor_of(tall, Settings())[-1], LinearSVC)


def test_a_gaussian_model_takes_up_to_20000_samples():
    plain = table_of(*numbers())
    most, more = (replace(plain, X=np.broadcast_to(0.0, (n, 1))) for n in (20_000, 20_001))
    assert procedures.predictor_of(most, Settings(predictor="gaussian")).kernel == "rbf"
    with pytest.raises(ValueError, match="supports up to 20000 samples; the table has 20001"):
        procedures.predictor_of(more, Settings(predictor="gaussian"))
    procedures.predictor_of(more, Settings())


def test_a_predictor_other_than_the_linear_one_has_a_note():
    own = LogisticRegression()
    assert [len(predictor_notes(Settings(predictor=p))) for p in ("linear", "gaussian", own)] == [0, 1, 1]
    assert "Gaussian kernel" in predictor_notes(Settings(predictor="gaussian"))[0]
    assert "LogisticRegression()" in predictor_notes(Settings(predictor=own))[0]


def rare_class(seed, n_positive=12):
    """120 samples, few of them positive; three of five features differ by one standard deviation."""
    y = np.zeros(120, dtype=int)
    y[:n_positive] = 1
    X = np.random.default_rng(seed).normal(size=(120, 5))
    X[:, :3] += y[:, None]
    return X, y


def balanced_error(seed, **options):
    X, y = rare_class(seed)
    return zeronorm.select(X, y, method="fisher", features=3, permutations=0, **options).procedure["value"]


def test_the_balanced_error_of_a_rare_class_is_that_of_a_predictor_with_balanced_weights():
    """Without weights the mean is about 40 %: the predictor gives all samples to the large class."""
    assert np.mean([balanced_error(seed) for seed in range(10)]) <= 0.28
    plain = SVC(kernel="linear")
    assert np.mean([balanced_error(seed, predictor=plain) for seed in range(10)]) > 0.35


@pytest.mark.parametrize("predictor", ["linear", "gaussian"])
@pytest.mark.parametrize(
    ("metric", "weight"),
    [
        (None, "balanced"),
        ("balanced_error_rate", "balanced"),
        ("balanced_accuracy", "balanced"),
        ("recall_macro", "balanced"),
        ("error_rate", None),
        ("auc", None),
    ],
)
def test_the_class_weights_follow_the_metric_in_the_folds_inside_them_and_at_the_end(
    tmp_path, metric, weight, predictor
):
    X, y = rare_class(0)
    result = zeronorm.select(
        X,
        y,
        method="fisher",
        predictor=predictor,
        metric=metric,
        out=tmp_path / "out",
        save_model=True,
        **QUICK,
    )
    chosen = X[:, [feature.index for feature in result.selected]]
    kernel = "linear" if predictor == "linear" else "rbf"
    tol = 1e-10 if kernel == "linear" else 1e-3  # LIBSVM fits 120 samples with a Gaussian kernel
    svm = SVC(kernel=kernel, class_weight=weight, tol=tol)
    theirs = make_pipeline(StandardScaler(), svm).fit(chosen, y)
    decision = LinearModel.load(tmp_path / "out").decision(chosen)[:, 0]
    np.testing.assert_allclose(decision, theirs.decision_function(chosen), atol=1e-5)
    described = result.provenance["predictor"]
    assert ("balanced class weights" in described) == (weight == "balanced")
    assert described in methods_section(ReportData(result, result.records))


def test_auto_and_the_choice_of_a_size_weigh_the_classes_as_the_folds_do(monkeypatch):
    X, y = rare_class(0)
    found = []
    fit = StandardizedSVC.fit_standardized

    def spy(self, *args):
        found.append(self.class_weight)
        return fit(self, *args)

    monkeypatch.setattr(StandardizedSVC, "fit_standardized", spy)
    for method in ("fisher", "auto"):
        for metric, weight in ((None, "balanced"), ("error_rate", None)):
            found.clear()
            zeronorm.select(X, y, method=method, metric=metric, permutations=0, cv=3)
            assert set(found) == {weight}
