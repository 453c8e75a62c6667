"""FSV: each program against scipy's, the objective, planted solutions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import zeronorm
from oracles.linear_programs import joint_l1_model, l1_model
from small_problems import INF, noise, problem_of
from zeronorm import FSV, L1SVM
from zeronorm.selectors.sparsity import _fsv as fsv
from zeronorm.solvers._status import Status


def separable(seed, n=40, p=100, relevant=2):
    """Two classes separated by a margin along a few features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    score = X[:, :relevant].sum(axis=1)
    X[:, 0] += signs * (1.0 + np.abs(score)) - score
    return StandardScaler().fit_transform(X), (signs > 0).astype(int)


def overlapping(seed, n=60, p=40):
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(rng.normal(size=(n, p)))
    return X, (X[:, :3].sum(axis=1) + 1.5 * rng.normal(size=n) > 0.4).astype(int)


@pytest.mark.filterwarnings("ignore:FSV selects no feature")
@pytest.mark.parametrize("sparsity", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_increases(seed, sparsity):
    X, y = overlapping(seed)
    values = FSV(sparsity=sparsity).fit(X, y).objective_
    assert np.all(np.diff(values) <= 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_objective_never_increases_for_separable_classes(seed):
    X, y = separable(seed)
    values = FSV(sparsity=None).fit(X, y).objective_
    assert np.all(np.diff(values) <= 1e-9)


def test_of_features_in_the_last_program_the_larger_weight_scores_higher():
    X, y = overlapping(0)
    selector = FSV(sparsity=0.02, standardize=False).fit(X, y)
    size = np.abs(selector.coef_)
    kept = np.flatnonzero(size)
    assert kept.size > 3
    assert np.argsort(selector.scores_[kept]).tolist() == np.argsort(size[kept]).tolist()
    assert selector.scores_[kept].min() > np.delete(selector.scores_, kept).max()


def test_last_objective_is_that_of_the_formula():
    X, y = overlapping(1)
    s = FSV(sparsity=0.1, alpha=3.0).fit(X, y)
    slack = np.maximum(0, 1 - (2 * y - 1) * (X @ s.coef_ + s.intercept_))
    errors = slack[y == 1].mean() + slack[y == 0].mean()
    value = 0.9 * errors + 0.1 * np.sum(1 - np.exp(-3.0 * np.abs(s.coef_)))
    assert s.objective_[-1] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_result_solves_its_own_linear_program(seed):
    """At convergence the weights are optimal for the costs that they define."""
    X, y = overlapping(seed)
    s = FSV(sparsity=0.05).fit(X, y)
    penalty = 0.05 * 5.0 * np.exp(-5.0 * np.abs(s.coef_))
    cost = np.where(y == 1, 0.95 / (y == 1).sum(), 0.95 / (y == 0).sum())
    slack = np.maximum(0, 1 - (2 * y - 1) * (X @ s.coef_ + s.intercept_))
    _, value = l1_model(X, 2.0 * y - 1.0, cost, penalty)
    assert penalty @ np.abs(s.coef_) + cost @ slack == pytest.approx(value, rel=1e-7)


def test_the_first_program_is_the_l1_svm():
    X, y = separable(0)
    s = FSV(sparsity=None, max_iter=1)
    with pytest.warns(UserWarning, match="did not converge"):
        s.fit(X, y)
    w, _ = l1_model(X, 2.0 * y - 1.0, np.inf)
    assert np.allclose(s.coef_, w, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_fewer_features_than_the_l1_svm(seed):
    X, y = separable(seed)
    concave, convex = FSV(sparsity=None).fit(X, y), L1SVM(C=np.inf).fit(X, y)
    assert concave.support_.sum() <= convex.support_.sum()
    assert np.min((2 * y - 1) * (X @ concave.coef_ + concave.intercept_)) >= 1 - 1e-6


def test_planted_features_are_found():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 200))
    score = X[:, 10] - X[:, 20]
    X, y = X[np.abs(score) > 0.4], (score[np.abs(score) > 0.4] > 0).astype(int)
    s = FSV(sparsity=None).fit(X, y)
    assert np.flatnonzero(s.support_).tolist() == [10, 20]


def test_growing_alpha_does_not_need_more_features():
    X, y = separable(3)
    fixed, growing = FSV(sparsity=None).fit(X, y), FSV(sparsity=None, growth=2.0).fit(X, y)
    assert growing.converged_
    assert growing.support_.sum() <= fixed.support_.sum()


def test_overlapping_classes_need_a_sparsity():
    X, y = overlapping(0, p=3)
    with pytest.raises(ValueError, match="set 'sparsity'"):
        FSV(sparsity=None).fit(X, y)


def test_all_weights_zero_falls_back_to_the_reduced_costs():
    X, y = overlapping(0)
    s = FSV(5, sparsity=0.999).fit(X, y)
    assert not s.coef_.any()
    assert s.support_.sum() == 5
    assert np.all(np.isfinite(s.scores_))


def test_duplicated_columns_tie_the_same_way():
    X, y = separable(1, p=12)
    orders = [FSV(sparsity=None).fit(np.hstack([X, X]), y).path_.order.tolist() for _ in range(2)]
    assert orders[0] == orders[1]
    assert orders[0][0] < 12


def test_two_samples_and_one_feature():
    assert FSV().fit([[0.0], [1.0]], [0, 1]).support_.tolist() == [True]


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"alpha": 0}, "alpha"),
        ({"growth": 0.5}, "growth"),
        ({"sparsity": 1.0}, "sparsity"),
        ({"tol": 0}, "tol"),
    ],
)
def test_bad_parameters(params, name):
    X, y = overlapping(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        FSV(**params).fit(X, y)


def test_an_empty_answer_is_reported():
    X, y = overlapping(0)
    with pytest.warns(UserWarning, match="FSV selects no feature by its own rule.*lower sparsity"):
        selector = FSV(sparsity=0.9).fit(X, y)
    assert not selector.coef_.any()
    assert FSV(sparsity=0.02).fit(X, y).coef_.any()  # the remedy works


def test_mirrored_columns_are_one_feature():
    X, y = overlapping(0)
    plain, doubled = FSV(sparsity=0.02).fit(X, y), FSV(sparsity=0.02).fit(np.hstack([X, -X, X + 1.0]), y)
    assert np.flatnonzero(doubled.support_).tolist() == np.flatnonzero(plain.support_).tolist()
    np.testing.assert_allclose(doubled.coef_[: X.shape[1]], plain.coef_, atol=1e-7)


def test_several_classes_share_their_features():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 15))
    X[:, 2] += 4.0 * (y == 0)
    X[:, 7] += 4.0 * (y == 1)
    selector = FSV(sparsity=0.05).fit(X, y)
    assert np.flatnonzero(FSV(2).fit(X, y).support_).tolist() == [2, 7]
    assert selector.coef_.shape == (3, 15)
    assert np.all(np.diff(selector.objective_) <= 1e-9)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    value = 0.05 * np.sum(1 - np.exp(-5.0 * np.abs(selector.coef_).sum(axis=0)))
    for c in range(3):
        side = np.where(y == c, 1.0, -1.0)
        slack = np.maximum(0, 1 - side * (standardised @ selector.coef_[c] + selector.intercept_[c]))
        value += 0.95 * (slack[side > 0].mean() + slack[side < 0].mean())
    assert selector.objective_[-1] == pytest.approx(value, rel=1e-6)


def three_classes(gap=4.0, n=60):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 15))
    X[:, 2] += gap * (y == 0)
    X[:, 7] += gap * (y == 1)
    return StandardScaler().fit_transform(X), y


def joint_loss(s, X, y):
    """The slacks of the joint constraints, averaged within each class."""
    values = X @ s.coef_.T + s.intercept_
    missing = 1.0 - values[np.arange(len(y)), y][:, None] + values
    missing[np.arange(len(y)), y] = 0.0
    slack = np.maximum(missing, 0.0).sum(axis=1)
    return sum(slack[y == c].mean() for c in range(3))


@pytest.mark.parametrize("sparsity", [0.02, 0.1])
def test_all_classes_in_one_program(sparsity):
    """It descends on the printed objective and ends at an optimum for the costs that its weights define."""
    X, y = three_classes(gap=2.0)
    s = FSV(sparsity=sparsity, multi_class="weston_watkins").fit(X, y)
    size = np.abs(s.coef_).sum(axis=0)
    loss = (1.0 - sparsity) * joint_loss(s, X, y)
    assert np.all(np.diff(s.objective_) <= 1e-9)
    assert len(s.objective_) > 2
    assert s.objective_[-1] == pytest.approx(loss + sparsity * np.sum(1 - np.exp(-5.0 * size)), rel=1e-6)
    penalty = sparsity * 5.0 * np.exp(-5.0 * size)
    best = joint_l1_model(X, y, (1.0 - sparsity) / np.bincount(y)[y], penalty)
    assert loss + penalty @ size == pytest.approx(best, rel=1e-6)
    assert FSV(2, multi_class="weston_watkins").fit(X, y).get_support(indices=True).tolist() == [2, 7]


def test_one_program_separates_all_classes_or_says_that_it_cannot():
    X, y = three_classes(gap=12.0)
    s = FSV(sparsity=None, multi_class="weston_watkins").fit(X, y)
    assert joint_loss(s, X, y) == pytest.approx(0.0, abs=1e-7)
    assert s.get_support(indices=True).tolist() == [2, 7]
    with pytest.raises(ValueError, match="needs classes that a linear classifier can separate"):
        FSV(sparsity=None, multi_class="weston_watkins").fit(X[:, :2], y)


def test_in_one_program_a_weight_of_two_is_a_duplicated_sample():
    X, y = three_classes(gap=1.5)
    weight = 1.0 + (np.arange(len(y)) % 2)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    joint = FSV(sparsity=0.05, multi_class="weston_watkins", standardize=False)
    weighted = joint.fit(X, y, sample_weight=weight).objective_
    np.testing.assert_allclose(weighted, joint.fit(X[twice], y[twice]).objective_, rtol=1e-7)


def test_two_classes_have_one_program_anyway():
    X, y = overlapping(0)
    joint, plain = FSV(multi_class="weston_watkins").fit(X, y), FSV().fit(X, y)
    np.testing.assert_array_equal(joint.coef_, plain.coef_)


def test_a_joint_program_beyond_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("zeronorm.execution._memory.available_bytes", lambda: 1 << 27)
    X = np.random.default_rng(0).normal(size=(60, 20_000))
    with pytest.raises(
        MemoryError, match=r"joint linear program of 3 classes needs .* use one program for each class"
    ):
        FSV(multi_class="weston_watkins").fit(X, np.arange(60) % 3)


@pytest.mark.parametrize("sparsity", [0.02, None])
@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_regression_finds_the_same_features_in_any_unit(sparsity, unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    y = unit * (2.0 * X[:, 3] - X[:, 7] + 0.02 * rng.normal(size=60))
    selector = FSV(sparsity=sparsity, task="regression").fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [3, 7]
    assert np.all(np.diff(selector.objective_) <= 1e-9)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    rest = np.abs(y - standardised @ selector.coef_ - selector.intercept_)
    if sparsity is None:
        assert rest.max() <= selector.epsilon_ * (1 + 1e-6)
    else:
        assert np.median(rest) < 0.2 * unit


def test_features_are_scored_by_their_last_program():
    def program(size):
        return SimpleNamespace(size=np.asarray(size))

    steps = [program([4.0, 2.0, 1.0, 0.0]), program([0.0, 1.0, 2.0, 1e-12])]
    path = fsv._path_of_programs(steps, np.array([1.0, 1.0, 1.0, 0.5]), False)
    np.testing.assert_allclose(path.scores, [1.5, 2.25, 2.5, 0.25])
    assert path.order.tolist() == [2, 1, 0, 3]
    assert (path.selected_size, path.n_iter, path.converged) == (2, 2, False)
    nothing = fsv._path_of_programs([program(np.zeros(4))], np.array([1.0, 4.0, 2.0, 0.0]), True)
    np.testing.assert_allclose(nothing.scores, [0.125, 0.5, 0.25, 0.0])
    assert (nothing.selected_size, nothing.converged) == (0, True)


def test_costs_of_errors_are_averaged_within_each_class():
    y = np.array([0, 0, 0, 1])
    cost = fsv._cost(problem_of(y), np.array([-1.0, -1.0, -1.0, 1.0]), 0.25)
    np.testing.assert_allclose(cost, [0.25, 0.25, 0.25, 0.75])
    weighted = problem_of(y, sample_weight=np.array([1.0, 2.0, 1.0, 5.0]))
    np.testing.assert_allclose(fsv._cost(weighted, 2.0 * y - 1.0, 0.25), [0.1875, 0.375, 0.1875, 0.75])
    real = problem_of([0.5, 1.0, -2.0, 3.0], task="regression")
    np.testing.assert_allclose(fsv._cost(real, real.y, 0.2), 0.2)
    assert fsv._cost(problem_of(y), 2.0 * y - 1.0, None).tolist() == [INF] * 4


@pytest.mark.parametrize(
    ("task", "message"), [("classification", "can separate"), ("regression", "meets up to epsilon")]
)
def test_programs_without_a_solution(task, message):
    selector = zeronorm.FSV(task=task)
    selector.epsilon_ = None if task == "classification" else 0.1
    selector._check_solution(Status.CONVERGED)
    with pytest.raises(ValueError, match=message):
        selector._check_solution(Status.INFEASIBLE)
    with pytest.raises(RuntimeError, match="a linear program was not solved"):
        selector._check_solution(Status.FAILED)


def test_costs_of_features_follow_their_weights_and_grow(monkeypatch):
    """The weights converge after the second program, and do not change when alpha is doubled."""
    penalties = []

    class Programs:
        def __init__(self, problem, sparsity, epsilon, unit):
            self.rate, self.first_gradient = 0.5, np.ones(3)

        def solve(self, penalty):
            penalties.append(penalty)
            size = np.array([1.0, 0.0, 0.25])
            return fsv._Step(size[None, :], np.array([0.5]), size, 2.0, Status.CONVERGED)

    monkeypatch.setattr(fsv, "_SharedPrograms", Programs)
    selector = zeronorm.FSV(alpha=3.0, growth=2.0, standardize=False).fit(noise(8), np.arange(8) % 2)
    size = np.array([1.0, 0.0, 0.25])
    np.testing.assert_allclose(penalties, [[3.0] * 3, 3.0 * np.exp(-3.0 * size), 6.0 * np.exp(-6.0 * size)])
    saved = 2.0 + 0.5 * (1.0 - np.exp(-np.multiply.outer([3.0, 3.0, 6.0], size))).sum(axis=1)
    np.testing.assert_allclose(selector.objective_, saved)
    assert (selector.n_iter_, selector.converged_, selector.n_features_) == (3, True, 2)
    penalties.clear()
    assert zeronorm.FSV(alpha=3.0, growth=1.0).fit(noise(8), np.arange(8) % 2).n_iter_ == 2
    with pytest.warns(ConvergenceWarning):
        zeronorm.FSV(alpha=3.0, growth=2.0, max_iter=2).fit(noise(8), np.arange(8) % 2)
