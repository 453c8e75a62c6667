"""L1SVM against the full linear program and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from oracles.linear_programs import l1_model
from zeronorm import L1SVM, as_design
from zeronorm.selectors.sparsity import _l1_svm as l1_svm
from zeronorm.selectors.sparsity._l1_svm import MANY_FEATURES, _CostPath
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm import _dual as l1_svm_tall
from zeronorm.solvers.l1_svm._dual import L1SvmDualProgram, L1SvmInteriorProgram
from zeronorm.solvers.l1_svm._program import L1SvmProgram


def classes(seed, n=40, p=60, noise=1.0):
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(rng.normal(size=(n, p)))
    score = X[:, :4].sum(axis=1) + noise * rng.normal(size=n)
    return X, (score > 0.3).astype(int)


def objective(selector, X, y, C, epsilon=None):
    f = X @ selector.coef_[0] + selector.intercept_[0]
    errors = np.maximum(0, 1 - y * f) if epsilon is None else np.maximum(0, np.abs(y - f) - epsilon)
    return np.abs(selector.coef_).sum() + np.sum(C * errors)


@pytest.mark.filterwarnings("ignore:L1SVM selects no feature")
@pytest.mark.parametrize("C", [0.05, 0.3, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_classification_matches_the_full_program(seed, C):
    X, y = classes(seed)
    selector = L1SVM(C=C).fit(X, y)
    w, value = l1_model(X, 2.0 * y - 1.0, C)
    assert objective(selector, X, 2.0 * y - 1.0, C) == pytest.approx(value, rel=1e-7)
    assert selector.support_.sum() == max(1, np.count_nonzero(np.abs(w) > 1e-7))


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_regression_matches_the_full_program(C):
    X, _ = classes(3)
    y = X[:, 0] - 2 * X[:, 5] + 0.3 * np.random.default_rng(0).normal(size=len(X)) + 4.0
    selector = L1SVM(C=C, epsilon=0.2, task="regression").fit(X, y)
    _, value = l1_model(X, y, C, epsilon=0.2)
    assert objective(selector, X, y, C, epsilon=0.2) == pytest.approx(value, rel=1e-7)


def test_column_generation_solves_the_whole_program():
    X, y = classes(1, n=30, p=1500)
    selector = L1SVM(C=0.5, n_steps=1).fit(X, y)
    _, value = l1_model(X, 2.0 * y - 1.0, 0.5)
    assert objective(selector, X, 2.0 * y - 1.0, 0.5) == pytest.approx(value, rel=1e-7)


def test_sample_weights_multiply_the_cost():
    X, y = classes(2)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, size=len(y))
    selector = L1SVM(C=0.4, standardize=False).fit(X, y, sample_weight=weight)
    _, value = l1_model(X, 2.0 * y - 1.0, 0.4 * weight)
    assert objective(selector, X, 2.0 * y - 1.0, 0.4 * weight) == pytest.approx(value, rel=1e-7)


def test_hard_margin_matches_the_full_program():
    X, y = classes(4, n=30, p=80, noise=0.0)
    selector = L1SVM(C=np.inf).fit(X, y)
    _, value = l1_model(X, 2.0 * y - 1.0, np.inf)
    assert np.abs(selector.coef_).sum() == pytest.approx(value, rel=1e-6)
    assert np.min((2 * y - 1) * (X @ selector.coef_[0] + selector.intercept_[0])) >= 1 - 1e-6


def test_hard_margin_of_overlapping_classes_is_an_error():
    X, y = classes(5, n=60, p=3, noise=3.0)
    with pytest.raises(ValueError, match="use a finite C"):
        L1SVM(C=np.inf).fit(X, y)


def test_a_path_over_tall_data_is_the_same_by_both_methods(monkeypatch):
    X, y = classes(3, n=300, p=20, noise=3.0)
    paths = []
    for few in (0, 10**9):
        monkeypatch.setattr(l1_svm_tall, "FEW_DATA", few)
        paths.append(L1SVM(8, C=0.2).fit(X, y).path_)
    assert paths[0].order.tolist() == paths[1].order.tolist()
    assert paths[0].sizes.tolist() == paths[1].sizes.tolist()


@pytest.mark.parametrize("C", [0.12, 0.16, 0.213])
def test_path_has_a_solution_with_the_number_of_features_asked_for(C):
    X, y = classes(0)
    k = np.count_nonzero(np.abs(l1_model(X, 2.0 * y - 1.0, C)[0]) > 1e-7)
    selector = L1SVM(k, C=5.0).fit(X, y)
    assert selector.support_.sum() == k
    assert k in selector.path_.sizes


def test_weights_are_those_at_the_end_of_the_path_whatever_size_is_looked_for():
    X, y = classes(0)
    np.testing.assert_array_equal(L1SVM(5, C=5.0).fit(X, y).coef_, L1SVM(C=5.0).fit(X, y).coef_)


@pytest.mark.parametrize(("size", "is_larger"), [(3, False), (25, True)])
def test_no_costs_far_beyond_the_chosen_one_are_solved(size, is_larger, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 200))
    y = (X[:, 0] - X[:, 1] + 2.0 * rng.normal(size=50) > 0).astype(int)
    visited, solve = [], l1_svm._CostPath.solve

    def noted(walk, C):
        visited.append((C, solve(walk, C)))
        return visited[-1][1]

    monkeypatch.setattr(l1_svm._CostPath, "solve", noted)
    selector = L1SVM(size).fit(X, y)
    assert selector.support_.sum() == size
    at_chosen = next(found for C, found in visited if selector.C_ == C)
    assert (at_chosen < size) == is_larger
    assert any(found > size for C, found in visited if selector.C_ < C) == is_larger
    assert max(C for C, _ in visited) < 1000.0 ** (1 / 9) * selector.C_  # less than one step of the path
    if is_larger:
        assert size in selector.path_.sizes


def test_rounding_is_no_weight():
    """The solution jumps from no feature to eleven; smaller sizes are cut from it and do not come from rounding."""
    X, y = classes(0)
    costs = np.geomspace(0.1, 0.13, 30)
    weights = [l1_model(X, 2.0 * y - 1.0, C)[0] for C in costs]
    sizes = {np.count_nonzero(np.abs(w) > 1e-7) for w in weights}
    smallest = min(sizes - {0})
    selector = L1SVM(3, C=5.0).fit(X, y)
    assert smallest > 3
    assert selector.support_.sum() == 3
    assert selector.path_.sizes.min() > 3


def test_more_features_than_weights_are_filled_by_reduced_cost():
    X, y = classes(6, n=20, p=50)
    selector = L1SVM(40, C=1.0).fit(X, y)
    kept = np.flatnonzero(selector.coef_[0])
    assert selector.support_.sum() == 40
    assert selector.support_[kept].all()


def test_pairs_of_classes_match_full_programs_on_their_samples():
    X, _ = classes(0, n=60, p=25)
    y = np.digitize(X[:, 3] + X[:, 8], [-0.7, 0.7])
    weight = np.random.default_rng(1).integers(1, 3, size=len(y)).astype(float)
    s = L1SVM(C=0.2, n_steps=3, multi_class="one_vs_one", standardize=False).fit(X, y, sample_weight=weight)
    found = np.zeros(X.shape[1], dtype=bool)
    for model, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = (y == a) | (y == b)
        sign = np.where(y[rows] == b, 1.0, -1.0)
        w, value = l1_model(X[rows], sign, 0.2 * weight[rows])
        margin = sign * (X[rows] @ s.coef_[model] + s.intercept_[model])
        loss = float(np.sum(0.2 * weight[rows] * np.maximum(0.0, 1.0 - margin)))
        assert np.abs(s.coef_[model]).sum() + loss == pytest.approx(value, rel=1e-7)
        found |= np.abs(w) > 1e-7
    assert np.array_equal(s.support_, found)


def test_classes_are_taken_against_the_rest():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = StandardScaler().fit_transform(rng.normal(size=(60, 15)) + 1.5 * (y[:, None] == np.arange(15)))
    together = L1SVM(C=0.1).fit(X, y)
    alone = [L1SVM(C=0.1).fit(X, y == c) for c in range(3)]
    assert np.allclose(together.coef_, np.vstack([model.coef_ for model in alone]), atol=1e-8)
    assert np.array_equal(together.support_, np.any([model.support_ for model in alone], axis=0))


def test_a_small_cost_selects_no_feature():
    X, y = classes(0)
    with pytest.warns(UserWarning, match="L1SVM selects no feature by its own rule.*raise C"):
        selector = L1SVM(C=1e-4).fit(X, y)
    assert not selector.coef_.any()
    assert selector.support_.sum() == 1  # the closest to entering
    L1SVM(3, C=1e-4).fit(X, y)  # no warning where three features are asked for
    target = X[:, 0] + X[:, 1]
    with pytest.warns(UserWarning, match="raise C or lower epsilon"):
        L1SVM(C=1.0, epsilon=1e3, task="regression").fit(X, target)


def test_duplicated_columns_select_the_first():
    X, y = classes(0, p=10)
    chosen = [L1SVM(3, C=1.0).fit(np.hstack([X, X]), y).path_.order[:1].tolist() for _ in range(3)]
    assert chosen[0] == chosen[1] == chosen[2]
    assert chosen[0][0] < 10


def test_two_samples():
    assert L1SVM().fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]).support_.tolist() == [True, False]


@pytest.mark.parametrize(
    ("params", "name"),
    [({"C": 0.0}, "C"), ({"n_steps": 0}, "n_steps"), ({"epsilon": -1, "task": "regression"}, "epsilon")],
)
def test_bad_parameters(params, name):
    X, y = classes(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        L1SVM(**params).fit(X, y)


@pytest.mark.parametrize("epsilon", [None, 0.2])
@pytest.mark.parametrize("other", [L1SvmDualProgram, L1SvmInteriorProgram])
@pytest.mark.parametrize("C", [0.01, 0.1])
def test_the_two_programs_agree_on_tall_data(C, epsilon, other):
    X, y = classes(0, n=150, p=12, noise=3.0)
    target = 2.0 * y - 1.0 if epsilon is None else X[:, 0] + np.random.default_rng(0).normal(size=150)
    cost = np.random.default_rng(1).uniform(0.5, 2.0, size=12)
    wide = L1SvmProgram(as_design(X), target, C=1.0, epsilon=epsilon)
    tall = other(as_design(X), target, C=1.0, epsilon=epsilon)
    for program in (wide, tall):
        program.set_cost(C)
    a, b = wide.solve(cost), tall.solve(cost)
    _, value = l1_model(X, target, C, cost, epsilon)
    assert a.objective == pytest.approx(value, rel=1e-8)
    assert b.objective == pytest.approx(value, rel=1e-8)
    assert np.allclose(a.weights, b.weights, atol=1e-7)
    assert a.slack.sum() == pytest.approx(b.slack.sum(), rel=1e-7)  # the bias need not be unique
    assert np.all(np.abs(b.gradient) <= cost * (1 + 1e-7))


def test_the_dual_program_reports_that_no_hard_margin_exists():
    X, y = classes(5, n=60, p=3, noise=3.0)
    found = L1SvmDualProgram(as_design(X), 2.0 * y - 1.0, C=np.inf).solve()
    assert found.status is Status.INFEASIBLE


def test_the_automatic_path_ends_soon_after_the_chosen_cost():
    """Programs with many features take most of the time and are not needed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 300)), np.arange(150) % 2
    X[:, :10] += 0.8 * y[:, None]
    found = L1SVM().fit(X, y)
    sizes = [subset.size for subset in found.path_.subsets]
    assert found.n_features_ < MANY_FEATURES <= max(sizes) < 100
    assert [size for size in sorted(sizes) if size >= MANY_FEATURES] == [max(sizes)]
    assert found.path_.support(50).size == 50


def test_a_cost_that_selects_nothing_is_raised_in_small_steps():
    rng = np.random.default_rng(3)
    found = L1SVM().fit(rng.normal(size=(80, 500)), np.arange(80) % 2)
    assert 1 <= found.n_features_ <= 20


def test_models_of_several_classes_take_turns():
    """Three features separate one class easily; they do not all come before the one feature of each other class."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 20))
    X[:, :3] += 3.0 * (y == 0)[:, None]
    X[:, 3] += 1.2 * (y == 1)
    X[:, 4] += 1.2 * (y == 2)
    selector = L1SVM(3).fit(X, y)
    first = selector.get_support(indices=True)
    assert {3, 4} < set(first.tolist())
    own = L1SVM().fit(X, y)
    np.testing.assert_array_equal(own.support_, own.coef_.any(axis=0))
    assert {3, 4} < set(own.path_.order[:3].tolist())


def test_more_features_than_help_are_reached_without_far_larger_solutions(monkeypatch):
    """Beyond the useful features all noise enters at once; solutions with hundreds of features take long."""
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 3
    X = rng.normal(size=(1500, 400))
    X[:, :5] += 2.5 * (np.arange(5) % 3 == y[:, None])
    sizes, solve = [], _CostPath.solve
    monkeypatch.setattr(_CostPath, "solve", lambda walk, C: sizes.append(solve(walk, C)) or sizes[-1])
    selector = L1SVM(20).fit(X, y)
    assert selector.support_.sum() == 20
    assert selector.support_[:5].all()
    assert max(sizes) <= 30


def test_features_without_a_weight_are_in_the_order_of_their_gradient():
    """With a C this small every multiplier equals C, and the gradient of a feature is its product with the labels."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 15)
    X = rng.normal(size=(30, 8)) + np.outer(y, rng.normal(size=8))
    with pytest.warns(UserWarning, match="raise C"):
        found = L1SVM(C=1e-4, n_steps=1, standardize=False).fit(X, y)
    assert not found.coef_.any()
    np.testing.assert_array_equal(found.path_.order, np.argsort(-np.abs(X.T @ y)))
