"""The path of L1SVM over the costs: which costs are solved, rounding, and the order in which features enter."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import zeronorm
from small_problems import INF, noise, problem_of
from zeronorm import L1SVM
from zeronorm.selectors.sparsity import _l1_svm as l1_svm


def test_a_target_far_from_zero_is_as_good_as_one_near_it():
    X = noise(40, 6)
    y = X[:, 1] - 0.5 * X[:, 4] + 0.05 * noise(40, 1, 1)[:, 0]
    near, far = (L1SVM(task="regression", n_steps=6).fit(X, target) for target in (y, 2.0**-10 * y + 2.0**20))
    assert near.path_.order.tolist() == far.path_.order.tolist()
    assert near.path_.selected_size == far.path_.selected_size


@pytest.mark.parametrize(("asked", "sizes"), [(None, [1, 50]), (7, [1, 7])])
def test_costs_beyond_the_chosen_one_order_fifty_features_or_as_many_as_are_asked_for(
    asked, sizes, monkeypatch
):
    grown = []
    monkeypatch.setattr(l1_svm._CostPath, "grow_to", lambda self, size, costs: grown.append(size))
    L1SVM(asked, n_steps=4).fit(noise(30, 9), np.arange(30) % 2)
    assert grown == sizes
    grown.clear()
    L1SVM(asked, C=1.0, n_steps=4).fit(noise(30, 9), np.arange(30) % 2)
    assert grown == []  # C is given


def test_weights_of_rounding_are_no_weights():
    walk = SimpleNamespace(unit=1.0, problem=SimpleNamespace(design=zeronorm.as_design(np.eye(4))))
    walk.weights = np.array([[1.0, 1e-10, 0.0, -2e-9], [0.5, 0.0, 1e-12, 0.0]])
    l1_svm._CostPath._drop_rounding(walk)
    np.testing.assert_array_equal(walk.weights, [[1.0, 0.0, 0.0, -2e-9], [0.5, 0.0, 0.0, 0.0]])
    walk.weights = np.array([[1e-8, 0.0, 0.0, 0.0], [1e-10, 0.0, 0.0, 0.0]])  # the second decides nothing
    l1_svm._CostPath._drop_rounding(walk)
    np.testing.assert_array_equal(walk.weights, [[1e-8, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])


def test_where_a_number_is_reached_if_its_logarithm_grows_evenly():
    assert l1_svm._share_of_growth(2, 4, 8) == pytest.approx(0.5)
    assert l1_svm._share_of_growth(0, 1, 8) == pytest.approx(0.25)  # none counts as one half
    assert l1_svm._share_of_growth(1, 7, 8) == pytest.approx(0.9)
    assert l1_svm._share_of_growth(10, 11, 1000) == pytest.approx(0.1)


def step(C, support, *weights):
    return l1_svm._Step(C, np.asarray(support, dtype=np.intp), np.asarray(weights, dtype=float))


def test_turns_of_models():
    """Features 4, then 1 and 0 enter the first model, 1 and then 3 the second; 2 enters none."""
    steps = [
        step(1.0, [1, 4], [0.0, 2.0], [5.0, 0.0]),
        step(2.0, [0, 1, 3, 4], [1.0, 3.0, 0.0, 1.0], [0.0, 1.0, 2.0, 0.0]),
    ]
    assert l1_svm._turns(steps, 5).tolist() == [2.0, 0.0, INF, 1.0, 0.0]
    walk = SimpleNamespace(
        visited=steps[::-1], problem=SimpleNamespace(n_features=5), gradient=np.full(5, 0.5)
    )
    walk._entries = lambda: l1_svm._CostPath._entries(walk)
    walk._outcome = lambda: {"n_iter": 3}
    path = l1_svm._CostPath.path_in_turns(walk, 1.0)
    assert path.selected_size == 2
    assert sorted(path.order[:2].tolist()) == [1, 4]
    assert path.order[2:].tolist() == [3, 0, 2]
    assert path.sizes.tolist()[:3] == [2, 3, 4]
    assert l1_svm._CostPath.path_in_turns(walk, 2.0).selected_size == 4


class Growing:
    """A walk whose number of features is a known function of C."""

    def __init__(self, size_at, first=1.0, gradient=None):
        self.size_at, self.visited, self.without_slack = size_at, [], False
        self.gradient = np.zeros(20) if gradient is None else gradient
        self.solve(first)

    def solve(self, C):
        size = self.size_at(C)
        self.visited.append(step(C, range(size), [1.0] * size))
        return size

    @property
    def last_support(self):
        return self.visited[-1].support

    @property
    def costs(self):
        return [step.C for step in self.visited]


def test_costs_grow_by_a_quarter_of_a_step_at_first_then_twice_as_far():
    costs = np.array([1.0, 16.0, 256.0])
    walk = Growing(lambda C: int(np.log2(C)) + 1)
    l1_svm._CostPath.grow_to(walk, 4, costs)
    np.testing.assert_allclose(walk.costs, [1.0, 2.0, 8.0])  # shares 1/4 and 1/2
    walk = Growing(lambda C: 1)
    l1_svm._CostPath.grow_to(walk, 4, costs)
    np.testing.assert_allclose(
        walk.costs, [1.0, 2.0, 8.0, 128.0, 256.0]
    )  # no longer step, and none beyond the last cost
    walk = Growing(lambda C: 0)
    l1_svm._CostPath.grow_to(walk, 1, np.array([1.0, 4.0, 16.0]))
    np.testing.assert_allclose(walk.costs, 2.0 ** np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]))
    walk = Growing(lambda C: 4)
    l1_svm._CostPath.grow_to(walk, 4, costs)
    assert walk.costs == [1.0]
    walk.without_slack = True
    l1_svm._CostPath.grow_to(walk, 5, costs)
    assert walk.costs == [1.0]


@pytest.mark.parametrize(("n_nonzero", "ratio"), [(8, 2.0), (9, 2.0**0.5), (20, 2.0**0.5)])
def test_steps_are_short_where_too_many_features_would_come_in_at_once(n_nonzero, ratio):
    """With twice the C the gradients of ``n_nonzero`` features would pass 1; with √2 times the C none does."""
    walk = Growing(lambda C: 1 if C == 1.0 else 4, gradient=np.where(np.arange(20) < n_nonzero, 0.5, 0.0))
    l1_svm._CostPath.grow_to(walk, 4, np.array([1.0, 16.0, 256.0]))
    np.testing.assert_allclose(walk.costs, [1.0, ratio])


def test_an_interval_of_costs_is_shortened_until_one_has_the_size():
    walk = Growing(lambda C: int(C), first=8.0)
    walk.solve(2.0)
    l1_svm._CostPath.look_for_size(walk, 4)
    np.testing.assert_allclose(walk.costs, [2.0, 8.0, 4.0])  # the mean of the logarithms
    walk = Growing(lambda C: int(C), first=1.0)
    walk.solve(64.0)
    l1_svm._CostPath.look_for_size(walk, 8)
    np.testing.assert_allclose(walk.costs[2], 8.0)  # where the number would be if it grew as a power
    assert [s.support.size for s in walk.visited].count(8) == 1
    walk = Growing(lambda C: 2 if C < 5.0 else 7, first=1.0)
    walk.solve(25.0)
    l1_svm._CostPath.look_for_size(walk, 4)
    assert len(walk.costs) == 2 + l1_svm.BISECTIONS
    np.testing.assert_allclose(walk.costs[2:4], [5.0, 5.0**0.5])
    assert abs(walk.costs[-1] - 5.0) < 0.1
    for sizes, asked in (((3, 5), 5), ((2, 3), 4), ((5, 6), 4)):
        walk = Growing(lambda C, sizes=sizes: sizes[C > 1.0], first=1.0)
        walk.solve(2.0)
        l1_svm._CostPath.look_for_size(walk, asked)
        assert len(walk.costs) == 2  # found at once, or not between the two


def test_costs_up_to_the_one_that_is_given():
    problem = problem_of(np.arange(20) % 2, noise(20))
    assert l1_svm._costs(problem, 3.0, 1).tolist() == [3.0]
    path = l1_svm._costs(problem, 3.0, 4)
    assert (len(path), path[-1]) == (4, pytest.approx(3.0))
    hard = l1_svm._costs(problem, INF, 4)
    assert len(hard) == 12
    assert hard[-1] / hard[0] == pytest.approx(l1_svm.SEPARABLE_BY)


def test_models_of_pairs_see_the_samples_of_two_classes():
    problem = problem_of([0, 1, 2, 1, 0], task="multiclass", classes=np.arange(3))
    pairs = l1_svm._tasks(problem, "one_vs_one")
    assert [(rows.tolist(), signs.tolist()) for rows, signs in pairs] == [
        ([0, 1, 3, 4], [-1.0, 1.0, 1.0, -1.0]),
        ([0, 2, 4], [-1.0, 1.0, -1.0]),
        ([1, 2, 3], [-1.0, 1.0, -1.0]),
    ]
    rest = l1_svm._tasks(problem, "one_vs_rest")
    assert [rows for rows, _ in rest] == [None] * 3
    np.testing.assert_array_equal([signs for _, signs in rest], problem.target.columns().T)
    two = l1_svm._tasks(problem_of([0, 1, 1]), "one_vs_one")
    assert [(rows, signs.tolist()) for rows, signs in two] == [(None, [-1.0, 1.0, 1.0])]
