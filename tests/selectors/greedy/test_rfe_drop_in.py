"""RFE and RFECV as replacements of scikit-learn's classes: its own tests, and the same rankings at tight tolerances."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.feature_selection import RFECV as ReferenceRFECV
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm import RFE, RFECV
from zeronorm.engines.elimination._known_models import known_model

# -- scikit-learn's own tests, with our classes under their names -----------------------------------------

reference_tests = importlib.import_module("sklearn.feature_selection.tests.test_rfe")


def _reference_cases():
    for name in dir(reference_tests):
        function = getattr(reference_tests, name)
        if not name.startswith("test_") or not callable(function):
            continue
        cases = [{}]
        for mark in getattr(function, "pytestmark", []):
            if mark.name == "parametrize":
                cases = [{**case, **new} for case in cases for new in _arguments(*mark.args)]
        arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
        for number, case in enumerate(cases):
            if "global_random_seed" in arguments:
                case["global_random_seed"] = 42
            yield pytest.param(function, case, id=f"{name}-{number}")


def _arguments(names, values):
    keys = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    for value in values:
        yield dict(zip(keys, value if len(keys) > 1 else [value], strict=True))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("function", "case"), list(_reference_cases()))
def test_the_tests_of_scikit_learn(function, case, monkeypatch):
    ours = {ReferenceRFE: RFE, ReferenceRFECV: RFECV}
    monkeypatch.setattr(reference_tests, "RFE", RFE)
    monkeypatch.setattr(reference_tests, "RFECV", RFECV)
    case = {key: ours.get(value, value) if isinstance(value, type) else value for key, value in case.items()}
    monkeypatch.setattr("sys.stdout", sys.stdout)  # one of the tests replaces it
    function(**case)


# -- the same rankings ------------------------------------------------------------------------------------

CLASSIFIERS = {
    "svc": SVC(kernel="linear", tol=1e-8),
    # libsvm has kernel values in single precision: on these data 1e-8 takes it 75 million steps, 1e-7 takes 69.
    "svc weighted": SVC(kernel="linear", C=0.1, class_weight={0: 1.0, 1: 2.0}, tol=1e-7),
    "linear svc": LinearSVC(tol=1e-10, max_iter=10**6, dual=False),
    "linear svc scaled": LinearSVC(
        C=0.05, intercept_scaling=3.0, class_weight="balanced", tol=1e-10, dual=False
    ),
    # The last digits take liblinear many times as long and change no ranking.
    "linear svc, hinge": LinearSVC(loss="hinge", C=0.02, intercept_scaling=2.0, tol=1e-7, max_iter=10**6),
    "logistic": LogisticRegression(C=0.3, tol=1e-8, max_iter=10**4),
    "ridge classifier": RidgeClassifier(alpha=2.0),
}
REGRESSORS = {
    "ridge": Ridge(alpha=0.7),
    "ridge through the origin": Ridge(alpha=0.7, fit_intercept=False),
    "least squares": LinearRegression(),
    "svr": SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-8),
}
TALL, WIDE = (60, 25), (30, 80)
# Each step with one of the shapes; what is left of all pairs is slow.
STEPS_AND_SHAPES = [
    (1, TALL),
    (1, WIDE),
    (3, WIDE),
    (0.2, TALL),
    pytest.param(3, TALL, marks=pytest.mark.slow),
    pytest.param(0.2, WIDE, marks=pytest.mark.slow),
]


def classes(seed, shape, n_classes=2):
    X, y = make_classification(*shape, n_informative=6, n_classes=n_classes, class_sep=0.5, random_state=seed)
    return X * np.geomspace(0.5, 2.0, shape[1]), np.array(["a", "b", "c"])[y]


def numbers(seed, shape):
    X, y = make_regression(*shape, n_informative=6, noise=3.0, random_state=seed)
    return X + 5.0, y / 10.0


def is_known(estimator, X, y):
    return known_model(estimator, X, y, {}) is not None


@pytest.mark.parametrize(("step", "shape"), STEPS_AND_SHAPES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_known_classifiers_rank_as_in_scikit_learn(name, step, shape):
    X, y = classes(0, shape)
    if "1" in str(CLASSIFIERS[name].get_params().get("class_weight")):
        y = (y == "b").astype(int)
    assert is_known(CLASSIFIERS[name], X, y)
    settings = {"n_features_to_select": 3, "step": step}
    ours, theirs = (cls(CLASSIFIERS[name], **settings).fit(X, y) for cls in (RFE, ReferenceRFE))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.estimator_.coef_, theirs.estimator_.coef_)
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("name", ["svc", "linear svc", "linear svc, hinge", "ridge classifier", "logistic"])
def test_known_classifiers_with_three_classes(name):
    X, y = classes(1, (60, 20), 3)
    assert is_known(CLASSIFIERS[name], X, y)
    ours, theirs = (cls(CLASSIFIERS[name], n_features_to_select=2).fit(X, y) for cls in (RFE, ReferenceRFE))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()


@pytest.mark.parametrize(("step", "shape"), STEPS_AND_SHAPES)
@pytest.mark.parametrize("name", REGRESSORS)
def test_known_regressors_rank_as_in_scikit_learn(name, step, shape):
    X, y = numbers(2, shape)
    assert is_known(REGRESSORS[name], X, y)
    ours, theirs = (
        cls(REGRESSORS[name], n_features_to_select=3, step=step).fit(X, y) for cls in (RFE, ReferenceRFE)
    )
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    "estimator", [SVC(kernel="linear", tol=1e-8), Ridge(), LinearSVC(tol=1e-10, dual=False)]
)
def test_sample_weights_reach_known_models(estimator):
    X, y = classes(3, (50, 15))
    y = (y == "a").astype(int)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, 50)
    ours, theirs = (
        cls(estimator, n_features_to_select=2).fit(X, y, sample_weight=weight) for cls in (RFE, ReferenceRFE)
    )
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()


@pytest.mark.parametrize(
    "estimator",
    [SVC(kernel="linear", C=-1.0), LinearSVC(C="a"), LogisticRegression(C=-1.0), Ridge(alpha=-1.0)],
)
def test_wrong_settings_raise_the_error_of_the_estimator(estimator):
    X, y = classes(23, (30, 9))
    name = type(estimator).__name__
    with pytest.raises(ValueError, match=f"parameter of {name} must be"):
        RFE(estimator).fit(X, (y == "a").astype(int))


@pytest.mark.parametrize("standardize", [True, False])
def test_standardize_has_no_effect_when_an_estimator_ranks(standardize):
    X, y = classes(4, (50, 15))
    ours = RFE(Ridge(), n_features_to_select=2, standardize=standardize).fit(X, (y == "a") * 1.0)
    assert (
        ours.ranking_.tolist()
        == ReferenceRFE(Ridge(), n_features_to_select=2).fit(X, (y == "a") * 1.0).ranking_.tolist()
    )


def test_identical_columns_leave_in_the_order_of_scikit_learn():
    X, y = classes(5, (40, 10))
    X[:, 7] = X[:, 2]
    ours, theirs = (cls(CLASSIFIERS["svc"], n_features_to_select=2).fit(X, y) for cls in (RFE, ReferenceRFE))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()


def test_any_other_estimator_is_refitted():
    X, y = classes(6, (60, 12))
    forest = RandomForestClassifier(10, random_state=0)
    assert not is_known(forest, X, y)
    ours, theirs = (cls(forest, n_features_to_select=4, step=2).fit(X, y) for cls in (RFE, ReferenceRFE))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()


def test_subclasses_and_unusual_settings_are_refitted():
    class Mine(Ridge):
        pass

    X, y = numbers(7, (30, 8))
    labels = (y > 0).astype(int)
    for estimator in (Mine(), Ridge(positive=True), SVR()):
        assert not is_known(estimator, X, y)
    for estimator in (
        SVC(),
        LinearSVC(loss="hinge", multi_class="crammer_singer"),
        LinearSVC(penalty="l1", dual=False),
        LogisticRegression(solver="liblinear"),
    ):
        assert not is_known(estimator, X, labels)
    assert known_model(Ridge(), X, y, {"sample_weight": np.arange(30.0)}) is None
    wide = np.random.default_rng(0).normal(size=(210, 220))
    assert not is_known(LinearSVC(loss="hinge"), wide, np.arange(210) % 2)


def test_groups_and_forced_features_hold_with_an_estimator():
    X, y = numbers(8, (40, 8))
    groups = [0, 0, 1, 1, 2, 2, 3, 3]
    s = RFE(Ridge(), n_features_to_select=4, feature_groups=groups, always_keep=[5]).fit(X, y)
    assert s.support_[[4, 5]].all()
    assert all(s.support_[2 * g] == s.support_[2 * g + 1] for g in range(4))
    assert s.support_.sum() == 4


def test_an_estimator_without_weights_is_refused():
    X, y = classes(9, (30, 9))
    with pytest.raises(ValueError, match="'estimator' parameter must have coef_"):
        RFE(KNeighborsClassifier()).fit(X, y)


# -- cross-validation -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_cross_validated_results_are_those_of_scikit_learn(name, step):
    estimator = {**CLASSIFIERS, **REGRESSORS}[name]
    X, y = numbers(10, (45, 14)) if name in REGRESSORS else classes(10, (45, 14))
    if name not in REGRESSORS:
        y = (y == "b").astype(int)
    ours, theirs = (cls(estimator, step=step, cv=3).fit(X, y) for cls in (RFECV, ReferenceRFECV))
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()
    assert ours.n_features_ == theirs.n_features_
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for key, expected in theirs.cv_results_.items():
        # libsvm reaches about five digits of its weights at its tightest tolerance that ends.
        np.testing.assert_allclose(ours.cv_results_[key], expected, rtol=1e-5, atol=1e-5, err_msg=key)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))


@pytest.mark.parametrize("name", ["svc", "linear svc", "ridge classifier", "logistic"])
def test_cross_validated_scores_of_three_named_classes(name):
    X, y = classes(29, (60, 11), 3)
    ours, theirs = (cls(CLASSIFIERS[name], cv=3).fit(X, y) for cls in (RFECV, ReferenceRFECV))
    for key in ("mean_test_score", "split0_test_score", "split2_ranking"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-12)


def test_r2_of_two_targets_and_of_rounds_left_to_the_estimator():
    X, y = numbers(30, (40, 30))
    for target in (np.column_stack([y, -2.0 * y + X[:, 0]]), y):
        # With as many features as samples in a fold, least squares is left to the estimator.
        ours, theirs = (cls(LinearRegression(), cv=4).fit(X, target) for cls in (RFECV, ReferenceRFECV))
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-6
        )


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "accuracy"])
def test_scorers_of_decision_values_and_probabilities(scoring):
    X, y = classes(11, (60, 10))
    y = (y == "b").astype(int)
    for estimator in (CLASSIFIERS["logistic"], CLASSIFIERS["svc"]):
        if scoring == "neg_log_loss" and isinstance(estimator, SVC):
            continue
        ours, theirs = (cls(estimator, cv=3, scoring=scoring).fit(X, y) for cls in (RFECV, ReferenceRFECV))
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-5
        )


def test_groups_of_samples_reach_the_folds():
    X, y = numbers(12, (40, 8))
    groups = np.arange(40) // 5
    ours, theirs = (
        cls(Ridge(), cv=GroupKFold(4)).fit(X, y, groups=groups) for cls in (RFECV, ReferenceRFECV)
    )
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


@pytest.mark.parametrize("cls", [RFE, RFECV])
def test_metadata_is_routed_to_the_estimator(cls):
    X, y = numbers(13, (40, 8))
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 40)
    reference = {RFE: ReferenceRFE, RFECV: ReferenceRFECV}[cls]
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("r2").set_score_request(sample_weight=True)
        settings = {"scoring": scorer} if cls is RFECV else {}
        ours, theirs = (
            c(Ridge().set_fit_request(sample_weight=True), **settings).fit(X, y, sample_weight=weight)
            for c in (cls, reference)
        )
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()


@pytest.mark.parametrize("cls", [RFE, ReferenceRFE])
def test_metadata_that_the_estimator_did_not_ask_for_is_refused(cls):
    X, y = numbers(13, (40, 8))
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cls(Ridge()).fit(X, y, sample_weight=np.ones(40))
        plain = cls(Ridge().set_fit_request(sample_weight=False))
        with pytest.raises(TypeError, match="sample_weight"):
            plain.fit(X, y, sample_weight=np.ones(40))


def test_without_an_estimator_a_model_on_standardised_columns_ranks():
    X, y = classes(14, (60, 12))
    s = RFECV(cv=3).fit(X, y)
    assert not hasattr(s, "predict")
    assert s.cv_results_["n_features"].tolist() == list(range(1, 13))
    alone = RFE(n_features_to_select=s.n_features_).fit(X, y)
    assert s.support_.tolist() == alone.support_.tolist()
