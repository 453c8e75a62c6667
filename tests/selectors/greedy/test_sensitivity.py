"""SensitivityElimination: analytic answers against differences of f, special cases, the three searches, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import zeronorm
from small_problems import noise, problem_of
from zeronorm import RFE, SensitivityElimination
from zeronorm.criteria._kernels import PolynomialKernel, RBFKernel
from zeronorm.datasets._generators import make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.engines.sensitivity._models import KernelModel, LinearFunction, NetworkModel
from zeronorm.engines.sensitivity._search import NumericalModel, Sensitivity
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import TASKS, Labels


def svm(problem):
    """Settings of the SVMs inside; classes have no epsilon."""
    epsilon = None if problem.target.has_classes else 0.1
    return {"C": 1.0, "loss": "hinge", "epsilon": epsilon, "tol": 1e-9}


def data(seed=0, n=40, p=6, task="binary"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = X[:, 1] + X[:, 3] * X[:, 4]
    y = {"binary": signal > 0, "multiclass": np.digitize(signal, [-0.7, 0.7]), "regression": signal}[task]
    return StandardScaler().fit_transform(X), y if task == "regression" else y.astype(int)


def make(model, task="binary"):
    X, y = data(task=task)
    target = TASKS["regression" if task == "regression" else "classification"].of(y)
    problem = Problem(design=as_design(X), target=target, rng=np.random.default_rng(0))
    trained = model(problem)
    trained.train(np.array([0, 1, 3, 4, 5]))
    return trained, X[:, [0, 1, 3, 4, 5]]


def kernel_function(model, X):
    """f of kernel SVMs at any point, from its definition (the bias does not matter)."""

    def f(Z):
        square = (Z**2).sum(1)[:, None] + (X**2).sum(1)[None, :] - 2 * Z @ X.T
        if isinstance(model.kernel, RBFKernel):
            return np.exp(-model.kernel.gamma * square) @ model.models.V
        kernel = model.kernel
        return (kernel.gamma * Z @ X.T + kernel.coef0) ** kernel.degree @ model.models.V

    return f


def network_function(model, X):
    network = model.models.network
    return lambda Z: np.tanh(Z @ network.hidden_weights + network.hidden_bias) @ network.output_weights


def linear_function(model, X):
    return lambda Z: Z @ model.models.weights()


MODELS = {
    "linear": (lambda problem: LinearFunction(problem, **svm(problem)), linear_function),
    "rbf": (lambda problem: KernelModel(problem, RBFKernel(0.2), **svm(problem)), kernel_function),
    "poly": (
        lambda problem: KernelModel(problem, PolynomialKernel(3, 0.3, 0.8), **svm(problem)),
        kernel_function,
    ),
    "network": (
        lambda problem: NetworkModel(problem, n_hidden=4, penalty=0.01, tol=1e-6, max_iter=2000),
        network_function,
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_answers_match_differences_of_the_function(name, task):
    build, function = MODELS[name]
    model, X = make(build, task)
    f = function(model, X)
    part, h = slice(1, 4), 1e-4
    block = X[:, part]
    shift = np.random.default_rng(1).normal(size=block.shape)
    slopes, curvatures = model.slopes(part, block), model.curvatures(part, block)
    changes = model.changes(part, block, shift)
    for j in range(3):
        moved = {}
        for label, step in (("up", h), ("down", -h), ("shift", shift[:, j])):
            Z = X.copy()
            Z[:, 1 + j] += step
            moved[label] = f(Z)
        assert np.allclose(slopes[:, j], (moved["up"] - moved["down"]) / (2 * h), atol=1e-6)
        assert np.allclose(curvatures[:, j], (moved["up"] - 2 * f(X) + moved["down"]) / h**2, atol=1e-5)
        assert np.allclose(changes[:, j], moved["shift"] - f(X), atol=1e-9)


def test_numerical_answers_match_the_analytic_ones():
    model, X = make(MODELS["rbf"][0])
    numerical, _ = make(
        lambda problem: NumericalModel(problem, SVC(kernel="rbf", gamma=0.2, C=1.0, tol=1e-9), 1e-3)
    )
    part, block = slice(0, 5), X
    shift = block.mean(axis=0) - block
    assert np.allclose(numerical.slopes(part, block), model.slopes(part, block), atol=1e-5)
    assert np.allclose(numerical.curvatures(part, block), model.curvatures(part, block), atol=1e-4)
    assert np.allclose(numerical.changes(part, block, shift), model.changes(part, block, shift), atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_the_objective_is_stationary_so_its_slope_in_the_scale_matches_retraining(name, task):
    """∂G/∂σ of eq. 9 from SVMs trained at σ = 1 ± h, against the sum of eq. 10."""
    build, _ = MODELS[name]
    X, y = data(task=task)
    values, h, column = [], 1e-3, 1
    for sigma in (1.0, 1.0 + h, 1.0 - h):
        Z = X.copy()
        Z[:, column] *= sigma
        problem = Problem(design=as_design(Z), target=Labels.of(y), rng=np.random.default_rng(0))
        model = build(problem)
        model.train(np.arange(6))
        if sigma == 1.0:
            slope = Sensitivity("objective", 1, "l2").values(model, problem)[column]
        values.append(training_objective(model, name))
    assert slope == pytest.approx(abs(values[1] - values[2]) / (2 * h), rel=0.02, abs=2e-4)


def training_objective(model, name):
    if name == "network":
        return model.models.value
    if name == "linear":
        return model.models.solution.objective
    return sum(dual.objective for dual in model.models.duals)


def test_zero_and_second_order_agree_for_a_quadratic_function():
    model, X = make(lambda problem: KernelModel(problem, PolynomialKernel(2, 0.4, 1.0), **svm(problem)))
    exact = Sensitivity("output", 0, "l2").responses(model, slice(0, 5), X)
    second = Sensitivity("output", 2, "l2").responses(model, slice(0, 5), X)
    assert np.allclose(exact, second, atol=1e-10)


def test_norms_are_over_samples_and_classes():
    model, X = make(MODELS["rbf"][0], "multiclass")
    t = model.slopes(slice(0, 5), X)
    problem = model.problem
    assert np.allclose(
        Sensitivity("output", 1, "l1").values(model, problem), np.abs(t).sum(axis=(0, 2)) / len(X)
    )
    assert np.allclose(
        Sensitivity("output", 1, "l2").values(model, problem), np.sqrt((t**2).sum(axis=(0, 2)) / len(X))
    )


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_linear_sensitivity_is_recursive_feature_elimination(task):
    X, y = data(1, n=50, p=9, task=task)
    kind = "regression" if task == "regression" else "classification"
    expected = RFE(task=kind, C=10.0, epsilon=0.1).fit(X, y).path_.order
    for settings in ({}, {"order": 0, "norm": "l2"}, {"sensitivity_of": "objective"}):
        s = SensitivityElimination(kernel="linear", task=kind, **settings).fit(X, y)
        assert np.array_equal(s.path_.order, expected)


@pytest.mark.parametrize("settings", [{}, {"order": 0}, {"order": 2}, {"sensitivity_of": "objective"}])
def test_nonlinear_toy(settings):
    for seed in range(2):
        X, y = make_nonlinear_toy(150, random_state=seed)[:2]
        s = SensitivityElimination(2, step=2, **settings).fit(X, y)
        assert set(s.path_.support(2).tolist()) == {0, 1}


def brute_force_additions(X, y, n_steps, gamma):
    """Features in the order of a forward search with scikit-learn's SVM and numerical derivatives."""
    chosen = []
    for _ in range(n_steps):
        values = {}
        for j in set(range(X.shape[1])) - set(chosen):
            columns = sorted([*chosen, j])
            model = SVC(C=10.0, gamma=gamma, tol=1e-9).fit(X[:, columns], y)
            up, down = X[:, columns].copy(), X[:, columns].copy()
            up[:, columns.index(j)] += 1e-4
            down[:, columns.index(j)] -= 1e-4
            slope = (model.decision_function(up) - model.decision_function(down)) / 2e-4
            values[j] = np.sqrt(np.mean(slope**2))
        chosen.append(max(values, key=values.get))
    return chosen


def test_forward_search_equals_brute_force():
    X, y = data(2, n=60, p=7)
    s = SensitivityElimination(4, search="forward", gamma=0.2, standardize=False).fit(X, y)
    assert s.path_.order[:4].tolist() == brute_force_additions(X, y, 4, 0.2)


def test_nested_search_can_undo_a_choice():
    """A feature that is the best alone but redundant given two others is removed again."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    X = np.column_stack([a + b + 0.3 * rng.normal(size=200), a, b, rng.normal(size=(200, 3))])
    y = (a + b > 0).astype(int)
    forward = SensitivityElimination(2, search="forward", kernel="linear", C=1.0).fit(X, y)
    nested = SensitivityElimination(2, search="nested", kernel="linear", C=1.0).fit(X, y)
    assert forward.path_.support(1).tolist() == [0]
    assert forward.path_.support(2).tolist() != [1, 2]
    assert nested.path_.support(2).tolist() == [1, 2]
    assert not nested.path_.is_nested


@pytest.mark.parametrize("search", ["forward", "nested"])
def test_growing_searches_keep_groups_and_forced_features(search):
    X, y = data(3, p=8)
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    s = SensitivityElimination(4, search=search, feature_groups=groups, always_keep=[7]).fit(X, y)
    for k in range(2, 9, 2):
        mask = s.path_.mask(k)
        assert mask[6:].all()
        assert all(len(set(mask[groups == g])) == 1 for g in range(4))


def test_permuted_columns_permute_the_path():
    X, y = data(4, p=8)
    permutation = np.random.default_rng(0).permutation(8)
    for search in ("backward", "forward", "nested"):
        plain = SensitivityElimination(3, search=search).fit(X, y).path_
        permuted = SensitivityElimination(3, search=search).fit(X[:, permutation], y).path_
        assert sorted(permutation[permuted.support(3)]) == plain.support(3).tolist()


@pytest.mark.parametrize(
    "learner", [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(random_state=0), NearestCentroid()]
)
def test_any_classifier_can_be_the_learner(learner):
    X, y = data(5, n=80, p=6)
    X[:, 2] += 3.0 * y
    s = SensitivityElimination(1, learner=learner, order=0).fit(X, y)
    assert np.flatnonzero(s.support_).tolist() == [2]
    assert s.n_iter_ >= 1


@pytest.mark.parametrize("learner", [RidgeClassifier(), GaussianNB(), NearestCentroid()])
def test_the_objective_of_any_classifier(learner):
    X, y = data(6, n=80, p=5, task="multiclass")
    s = SensitivityElimination(2, learner=learner, sensitivity_of="objective", difference_step=0.1).fit(X, y)
    assert np.all(np.isfinite(s.scores_))


def test_regressors_use_their_predictions():
    X, y = data(7, n=60, p=6, task="regression")
    for learner in (Ridge(), GaussianProcessRegressor(alpha=1e-2, optimizer=None)):
        s = SensitivityElimination(3, learner=learner, task="regression", sensitivity_of="objective").fit(
            X, y
        )
        assert 1 in np.flatnonzero(s.support_)


def test_the_network_finds_an_interaction():
    X, y = data(8, n=300, p=8)
    s = SensitivityElimination(3, learner="network", random_state=0).fit(X, y)
    assert set(np.flatnonzero(s.support_)) == {1, 3, 4}


def test_functions_with_steps_are_reported():
    X, y = data(9, n=60)
    s = SensitivityElimination(2, learner=DecisionTreeClassifier(random_state=0), difference_step=1e-9)
    with pytest.warns(UserWarning, match="order=0"):
        s.fit(X, y)
    assert np.all(np.isfinite(s.scores_))


def test_outputs_that_are_not_classes_are_refused():
    X, y = data(10, task="multiclass")
    y = y + 3 * (X[:, 0] > 0)
    learner = SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match="one output per class"):
        SensitivityElimination(2, learner=learner, sensitivity_of="objective").fit(X, y)
    with pytest.raises(ValueError, match="'learner' parameter of SensitivityElimination"):
        SensitivityElimination(2, learner=StandardScaler()).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search", "x"),
        ("sensitivity_of", "x"),
        ("order", 3),
        ("norm", "l3"),
        ("learner", "x"),
        ("C", np.inf),
        ("step", 0),
        ("n_hidden", 0),
        ("weight_decay", 0.0),
        ("difference_step", 0.0),
        ("epsilon", -1.0),
        ("loss", "x"),
        ("degree", 0),
    ],
)
def test_bad_parameters_are_named(name, value):
    X, y = data()
    with pytest.raises(ValueError, match=f"'{name}' parameter of SensitivityElimination"):
        SensitivityElimination(2, **{name: value}).fit(X, y)


@pytest.mark.parametrize("settings", [{}, {"order": 0, "search": "nested"}, {"learner": "network"}])
def test_two_samples_and_identical_samples_stay_finite(settings):
    s = SensitivityElimination(1, random_state=0, **settings)
    s.fit(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]]), [0, 1])
    assert np.all(np.isfinite(s.scores_))
    with pytest.warns(UserWarning, match="No feature changes the output"):
        s.fit(np.ones((6, 3)), [0, 1] * 3)
    assert np.all(np.isfinite(s.scores_))


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"learner": "network"}, "NetworkModel"),
        ({"learner": "svm", "kernel": "linear"}, "LinearFunction"),
        ({"learner": "svm", "kernel": "poly"}, "KernelModel"),
        ({"learner": LogisticRegression()}, "NumericalModel"),
    ],
)
def test_which_function_is_differentiated(params, kind):
    problem = problem_of(np.arange(10) % 2, noise(10), classes=np.arange(2), rng=np.random.default_rng(0))
    model = zeronorm.SensitivityElimination(random_state=0, **params)._model(problem)
    assert type(model).__name__ == kind
