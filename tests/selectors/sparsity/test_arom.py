"""AROM: inner problems, planted solutions, exhaustive optima, and every mode."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import zeronorm
from oracles.multiclass_qp import primal_weston_watkins
from oracles.qp import PRECISE, primal_svm, primal_svr
from small_problems import INF, noise, problem_of
from zeronorm import AROM, FisherScore
from zeronorm.selectors.sparsity import _arom as arom


def planted(n=40, p=60, *, seed=0, gap=0.4):
    """Two classes that two features separate; samples near the boundary are left out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * n, p))
    other = min(11, p - 1)
    X = X[np.abs(X[:, 3] - X[:, other]) > gap][:n]
    return X, np.where(X[:, 3] > X[:, other], 1, -1)


def three_classes(n=60, p=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, p))
    X[:, 2] += 5.0 * (y == 0)
    X[:, 7] += 5.0 * (y == 1)
    return X, y


# -- inner problems ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.5, np.inf])
def test_the_first_model_is_an_svm(C):
    X, y = planted()
    with pytest.warns(ConvergenceWarning):
        selector = AROM(C=C, standardize=False, max_iter=1, scaling="paper").fit(X, y)
    weights, bias, _ = primal_svm(X, y, C, "squared_hinge")
    np.testing.assert_allclose(selector.coef_[0], weights, atol=1e-5)
    assert selector.intercept_[0] == pytest.approx(bias, abs=1e-5)


def test_the_second_model_is_trained_on_rescaled_data():
    X, y = planted()
    first, _, _ = primal_svm(X, y, 2.0, "squared_hinge")
    z = np.abs(first) * (np.abs(first) > 1e-3 * np.abs(first).max())
    second, _, _ = primal_svm(X * z, y, 2.0, "squared_hinge")
    with pytest.warns(ConvergenceWarning):
        selector = AROM(C=2.0, standardize=False, max_iter=2, scaling="paper").fit(X, y)
    np.testing.assert_allclose(selector.coef_[0], z * second, atol=1e-4 * np.abs(z * second).max())


def test_the_first_regression_is_a_support_vector_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    y = X[:, 1] - X[:, 4] + 0.1 * rng.normal(size=40)
    with pytest.warns(ConvergenceWarning):
        selector = AROM(
            C=2.0, task="regression", epsilon=0.05, standardize=False, max_iter=1, scaling="paper"
        ).fit(X, y)
    weights, _, _ = primal_svr(X, y, 2.0, 0.05, "squared_epsilon_insensitive")
    np.testing.assert_allclose(selector.coef_[0], weights, atol=1e-4)


def test_the_first_joint_model_is_that_of_weston_and_watkins():
    X, y = three_classes(24, 10)
    with pytest.warns(ConvergenceWarning):
        selector = AROM(
            C=1.0, multi_class="weston_watkins", standardize=False, max_iter=1, scaling="paper"
        ).fit(X, y)
    weights, _ = primal_weston_watkins(X, y, 3, 1.0, "squared_hinge")
    np.testing.assert_allclose(selector.coef_.T, weights, atol=1e-4)


@pytest.mark.parametrize("C", [0.1, np.inf])
def test_the_first_joint_linear_program(C):
    X, y = three_classes(24, 10)
    selector = AROM(
        norm="l1", C=C, multi_class="weston_watkins", standardize=False, max_iter=1, scaling="paper"
    )
    with pytest.warns(ConvergenceWarning):
        selector.fit(X, y)
    W, b = cp.Variable((10, 3)), cp.Variable(3)
    loss, constraints = 0.0, []
    for i, own in enumerate(y):
        for other in {0, 1, 2} - {int(own)}:
            margin = X[i] @ (W[:, own] - W[:, other]) + b[own] - b[other]
            if np.isinf(C):
                constraints.append(margin >= 1)
            else:
                loss += C * cp.pos(1 - margin)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.abs(W)) + loss), constraints)
    problem.solve(solver=cp.CLARABEL, **PRECISE)
    ours = np.abs(selector.coef_).sum()
    decision = X @ selector.coef_.T + selector.intercept_
    for i, own in enumerate(y):
        for other in {0, 1, 2} - {int(own)}:
            missing = max(0.0, 1.0 - decision[i, own] + decision[i, other])
            ours += C * missing if np.isfinite(C) else (np.inf if missing > 1e-6 else 0.0)
    assert ours == pytest.approx(problem.value, rel=1e-6)


def test_the_first_linear_program():
    X, y = planted(30, 20)
    with pytest.warns(ConvergenceWarning):
        selector = AROM(norm="l1", C=np.inf, standardize=False, max_iter=1).fit(X, y)
    n, p = X.shape
    signed = y[:, None] * np.column_stack([X, -X, np.ones(n), -np.ones(n)])
    cost = np.concatenate([np.ones(2 * p), np.zeros(2)])
    expected = linprog(cost, A_ub=-signed, b_ub=-np.ones(n))
    assert np.abs(selector.coef_).sum() == pytest.approx(expected.fun, rel=1e-8)


# -- selected features ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "l1", "switch"])
@pytest.mark.parametrize("C", [10.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_planted_features_are_recovered(norm, C, seed):
    X, y = planted(80, 60, seed=seed)
    selector = AROM(2, norm=norm, C=C).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [3, 11]
    assert selector.converged_


def smallest_separating_size(X, y):
    for size in range(1, X.shape[1] + 1):
        for columns in combinations(range(X.shape[1]), size):
            part = np.column_stack([X[:, columns], np.ones(len(X))])
            found = linprog(
                np.zeros(part.shape[1]), A_ub=-y[:, None] * part, b_ub=-np.ones(len(X)), bounds=(None, None)
            )
            if found.status == 0:
                return size
    return None


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_against_the_exhaustive_zero_norm(norm):
    """A local minimum is feasible, so never below the optimum, and most often equal to it."""
    excess = []
    for seed in range(12):
        X, y = planted(14, 8, seed=seed, gap=0.2)
        selector = AROM(norm=norm, C=np.inf, standardize=False).fit(X, y)
        assert np.min(y * (X @ selector.coef_[0] + selector.intercept_[0])) > 1.0 - 1e-5
        excess.append(np.count_nonzero(selector.coef_) - smallest_separating_size(X, y))
    assert min(excess) >= 0
    assert np.mean(np.asarray(excess) == 0) >= 0.5
    assert max(excess) <= 2


def test_counting_slacks_ignores_mislabelled_samples():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    X = X[np.abs(X[:, 0]) > 0.5][:100]
    y = np.sign(X[:, 0])
    wrong = np.argsort(-np.abs(X[:, 0]))[:4]  # far on the wrong side: costly for a squared loss
    y[wrong] *= -1.0
    for norm in ("l2", "l1"):
        selector = AROM(1, norm=norm, slack_norm=0, C=1.0, standardize=False).fit(X, y)
        margin = y * (X @ selector.coef_[0] + selector.intercept_[0])
        assert np.flatnonzero(margin < 0.5).tolist() == sorted(wrong)
        assert np.flatnonzero(selector.support_).tolist() == [0]


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("multi_class", ["coupled", "uncoupled", "one_vs_one", "weston_watkins"])
@pytest.mark.parametrize("C", [10.0, np.inf])
def test_several_classes(multi_class, C, norm):
    X, y = three_classes()
    selector = AROM(2, multi_class=multi_class, C=C, norm=norm).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [2, 7]
    assert selector.coef_.shape == (3, 30)


def test_models_of_several_classes_share_their_features_only_when_coupled():
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 20))
    for k in range(3):
        X[:, k] += 6.0 * (y == k)
    coupled = AROM(C=np.inf).fit(X, y)
    uncoupled = AROM(C=np.inf, multi_class="uncoupled").fit(X, y)
    shared = [frozenset(np.flatnonzero(row).tolist()) for row in coupled.coef_]
    own = [frozenset(np.flatnonzero(row).tolist()) for row in uncoupled.coef_]
    assert len(set(shared)) == 1
    assert len(set(own)) == 3
    assert np.count_nonzero(coupled.support_) <= len(frozenset.union(*own))


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_several_labels(norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    Y = np.column_stack([X[:, 1] > 0, X[:, 5] > 0]).astype(int)
    X[:, [1, 5]] += 0.5 * (2 * Y - 1)
    selector = AROM(2, norm=norm).fit(X, Y)
    assert np.flatnonzero(selector.support_).tolist() == [1, 5]


@pytest.mark.parametrize("norm", ["l2", "l1", "switch"])
def test_regression(norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 120))
    y = 2.0 * X[:, 3] - X[:, 40] + 0.05 * rng.normal(size=50)
    selector = AROM(2, norm=norm, task="regression").fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [3, 40]


# -- the path ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_one_fit_gives_subsets_of_any_size(norm):
    X, y = planted(30, 40, seed=2)
    whole = AROM(norm=norm, C=np.inf).fit(X, y)
    for k in (1, 2, 5, 17, 40):
        single = AROM(k, norm=norm, C=np.inf).fit(X, y)
        np.testing.assert_array_equal(np.flatnonzero(single.support_), whole.path_.support(k))


def test_features_without_a_weight_in_the_first_program_follow_by_reduced_cost():
    X, y = planted(20, 50, seed=1)
    selector = AROM(norm="l1", C=np.inf, standardize=False).fit(X, y)
    n_first = int(selector.path_.sizes[-1])
    assert n_first <= 20
    order = selector.path_.order
    from zeronorm.design import as_design
    from zeronorm.solvers.l1_svm._program import L1SvmProgram

    gradient = np.abs(L1SvmProgram(as_design(X), y, C=np.inf).solve().gradient)
    np.testing.assert_allclose(gradient[order[n_first:]], np.sort(gradient[order[n_first:]])[::-1])


def test_selected_size_is_the_number_of_features_at_convergence():
    X, y = planted(80, 60)
    selector = AROM(C=np.inf).fit(X, y)
    assert selector.support_.sum() == np.count_nonzero(selector.coef_) == selector.path_.selected_size


def test_retraining_uses_the_data_before_rescaling():
    X, y = planted(60, 40)
    selector = AROM(2, estimator=SVC(kernel="linear")).fit(X, y)
    columns = np.flatnonzero(selector.support_)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = SVC(kernel="linear").fit(standardised[:, columns], y)
    np.testing.assert_allclose(selector.estimator_.coef_, expected.coef_, atol=1e-10)


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_hard_constraints_on_inseparable_classes(norm):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 2
    with pytest.raises(ValueError, match="AROM with hard constraints"):
        AROM(norm=norm, C=np.inf).fit(X, y)
    with pytest.raises(ValueError, match="use a finite C"):
        AROM(C=np.inf).fit(X, y)


def test_identical_columns_are_merged_and_reported():
    X, y = planted(60, 20)
    X[:, 7] = X[:, 3]
    X[:, 1] = X[:, 11]
    selector = AROM(2).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [1, 3]
    assert selector.representative_[[1, 3, 7, 11]].tolist() == [1, 3, 3, 1]
    assert set(selector.path_.order[-2:].tolist()) == {7, 11}
    again = AROM(2).fit(X, y)
    np.testing.assert_array_equal(again.path_.order, selector.path_.order)


@pytest.mark.parametrize("norm", ["l2", "l1", "switch"])
def test_the_smallest_problems(norm):
    one_feature = AROM(norm=norm, C=np.inf).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    assert one_feature.support_.tolist() == [True]
    two_samples = AROM(1, norm=norm, C=np.inf).fit([[0.0, 5.0, 1.0], [1.0, -5.0, 1.0]], [0, 1])
    assert two_samples.support_.sum() == 1
    assert np.isfinite(two_samples.scores_).all()


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_features_without_any_information(norm):
    X = np.tile([[1.0, 2.0, 0.0], [-1.0, 0.5, 1.0]], (4, 1))
    y = np.repeat([0, 1], 4)
    selector = AROM(2, norm=norm, C=1.0).fit(X, y)
    assert selector.path_.order.tolist() == [0, 1, 2]
    assert np.isfinite(selector.scores_).all()


def test_wrong_parameters_are_explained():
    X, y = planted()
    for parameters, message in (
        ({"norm": "l3"}, "'norm' parameter of AROM must be 'l2', 'l1' or 'switch'. Got 'l3'"),
        ({"slack_norm": 1}, "'slack_norm' parameter"),
        ({"multi_class": "all"}, "'multi_class' parameter"),
        ({"C": 0.0}, "'C' parameter of AROM must be a finite number greater than 0"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"slack_norm": 0, "C": np.inf}, "must be finite with slack_norm=0"),
        ({"task": "regression", "C": np.inf}, "must be finite with task='regression'"),
        ({"multi_class": "weston_watkins", "norm": "switch"}, "'multi_class' parameter of AROM must be"),
    ):
        with pytest.raises(ValueError, match=message):
            AROM(**parameters).fit(X, y)


def test_an_empty_answer_is_reported():
    X, y = planted()
    with pytest.warns(UserWarning, match="AROM selects no feature by its own rule.*raise C"):
        AROM(norm="l1", C=1e-4).fit(X, y)
    AROM(2, norm="l1", C=1e-4).fit(X, y)


# -- several labels, errors and warnings ---------------------------------------------------------------


def test_several_labels_must_be_labels():
    X = noise(20)
    y = np.column_stack([X[:, 0] > 0.0, X[:, 1] > 0.0, X[:, 0] > 0.5]).astype(int)
    selector = zeronorm.AROM().fit(X, y)
    assert selector.coef_.shape == (3, 3)
    with pytest.raises(ValueError, match="label type"):
        selector.fit(X, X)
    with pytest.raises(ValueError, match=r"1d array|bad input shape|label type"):
        FisherScore().fit(X, y)


def test_the_error_for_an_infinite_cost_names_the_reason():
    X, y = noise(8), np.arange(8) % 2
    with pytest.raises(ValueError, match="finite with task='regression'"):
        zeronorm.AROM(C=INF, task="regression").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="finite with slack_norm=0"):
        zeronorm.AROM(C=INF, slack_norm=0).fit(X, y)


@pytest.mark.parametrize(("task", "has_epsilon"), [("classification", False), ("regression", True)])
def test_an_empty_answer_of_rescaling_names_the_epsilon_where_there_is_one(task, has_epsilon, monkeypatch):
    empty = SimpleNamespace(
        iterates=[], status=SimpleNamespace(check=lambda what: None), trained=np.arange(0), fallback=None
    )
    monkeypatch.setattr(arom, "rescale_until_sparse", lambda *given, **more: empty)
    remedies = []
    monkeypatch.setattr(
        arom, "warn_of_empty_selection", lambda selector, problem, remedy: remedies.append(remedy)
    )
    y = np.arange(6) % 2 if task == "classification" else noise(6, 1)[:, 0]
    problem = problem_of(y, noise(6), "binary" if task == "classification" else task)
    selector = zeronorm.AROM(task=task, start="equal")
    selector.representative_, selector.C_ = np.arange(3), 1.0
    selector.epsilon_ = 0.1 if has_epsilon else None
    model = SimpleNamespace(weights=np.zeros((0, 1)), bias=np.array([0.5]))
    assert selector._run(problem, model, None) is empty
    assert remedies == ["raise C or lower epsilon" if has_epsilon else "raise C"]
    assert (selector.coef_.tolist(), selector.intercept_.tolist()) == ([[0.0, 0.0, 0.0]], [0.5])
