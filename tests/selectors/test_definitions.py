"""Parts of the selectors, each by its definition or at the value where its answer changes."""

from __future__ import annotations

from contextlib import nullcontext as _nothing
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import zeronorm
from small_problems import INF, noise, problem_of
from zeronorm import FisherScore, OptimalFeatureWeighting, as_design
from zeronorm.engines.weighting.steps import AdaptiveSteps, GivenSteps
from zeronorm.selection.path import SelectionPath
from zeronorm.selectors.filters import gram_schmidt_relief, interval, relief
from zeronorm.selectors.greedy import tree
from zeronorm.selectors.meta import auto, consensus, probe_selector, selector_cv
from zeronorm.selectors.meta.consensus import Consensus
from zeronorm.selectors.scaling import adaptive_scaling, ard, kernel_multiplicative_update
from zeronorm.selectors.sparsity import fsv, l1_svm, logistic_lasso, potential_svm
from zeronorm.solvers.lasso import BoxLassoSolution

# -- Filters --


@pytest.mark.parametrize(
    ("few", "kept", "n_probes", "shape"),
    [(4, None, None, (125, 12)), (3, None, 201, None), (3, [0], 200, (67, 12)), (4, None, 203, (51, 12))],
)
def test_few_features_compete_with_themselves_under_permuted_classes(few, kept, n_probes, shape, monkeypatch):
    """So many draws of the classes that each candidate is drawn often enough; of more features columns are permuted."""
    found = []
    monkeypatch.setattr(gram_schmidt_relief, "FEW_FEATURES", few)
    monkeypatch.setattr(
        zeronorm.GramSchmidtRelief, "_stop_by_probes", lambda self, steps, null: found.append(null)
    )
    y = np.arange(12) % 2
    selector = zeronorm.GramSchmidtRelief(n_neighbors=2, n_probes=n_probes, always_keep=kept, random_state=0)
    with pytest.warns(UserWarning, match="selects no feature") if kept is None else _nothing():
        selector.fit(noise(12, 4), y)
    if shape is None:
        assert found[0].columns.shape == (12, n_probes)
    else:
        assert found[0].labels.shape == shape
        np.testing.assert_array_equal(np.sort(found[0].labels, axis=1), np.tile(np.sort(y), (shape[0], 1)))


def test_the_share_of_probes_counts_the_feature_itself_and_those_that_equal_it():
    steps = SimpleNamespace(step_scores=[9.0, 2.0], usable=np.array([True, False, True, True]))
    steps.scores_of = lambda columns: np.array([1.0, 2.0, 3.0, 0.0])
    columns = gram_schmidt_relief._PermutedColumns(np.zeros((1, 4)))
    assert columns.share(steps, of_the_best=False) == pytest.approx(3 / 5)
    assert columns.share(steps, of_the_best=True) == pytest.approx(1 - (2 / 5) ** 3)
    steps.scores_with = lambda labels: np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 4.0]])
    labels = gram_schmidt_relief._PermutedLabels(np.zeros((3, 4), dtype=np.intp))
    assert labels.share(steps, of_the_best=False) == pytest.approx(4 / 7)
    assert labels.share(steps, of_the_best=True) == pytest.approx(3 / 4)


@pytest.mark.parametrize(
    ("separation", "column", "near"), [(0, 2, []), (1, 2, [2]), (2, 0, [0, 1]), (3, 3, [1, 2, 3, 4, 5])]
)
def test_features_less_than_the_separation_away_are_too_near(separation, column, near):
    problem = problem_of(np.arange(20) % 2, noise(20, 7))
    steps = gram_schmidt_relief._Steps(problem, 2, "ratio", separation)
    steps.take(column)
    assert np.flatnonzero(steps.too_near).tolist() == near
    assert not steps.usable[column]  # nothing is left of it
    assert steps.usable.sum() == 7 - len({column, *near})


def test_projected_columns_are_those_of_a_least_squares_fit():
    X = noise(12, 5)
    X[:, 4] = X[:, 0] - 2.0 * X[:, 1]
    columns = gram_schmidt_relief.ProjectedColumns(as_design(X))
    for chosen in (1, 0):
        columns.project_out(chosen)
    basis = np.linalg.qr(X[:, :2])[0]
    left = X - basis @ (basis.T @ X)
    (_, rows), *others = list(columns.blocks())
    assert not others
    np.testing.assert_allclose(rows, left, atol=1e-12)
    np.testing.assert_allclose(columns.project(X), left, atol=1e-12)
    np.testing.assert_allclose(columns.gram, left @ left.T, atol=1e-11)
    np.testing.assert_allclose(columns.norm_sq, (left**2).sum(axis=0), atol=1e-11)
    distances = ((left[:, None] - left) ** 2).sum(axis=2)
    np.testing.assert_allclose(columns.squared_distances(), distances, atol=1e-11)
    assert columns.dependent.tolist() == [True, True, False, False, True]
    before = columns.gram.copy()
    columns.project_out(4)  # adds no direction
    assert columns.basis.shape == (12, 2)
    np.testing.assert_array_equal(columns.gram, before)
    assert columns.has_room
    for chosen in (2, 3):
        columns.project_out(chosen)
    assert not columns.has_room


# -- Several methods or machines at once --


def test_subsets_that_were_named_before_are_judged_where_they_were_named_first():
    paths = {
        "a": SelectionPath(order=np.array([0, 1, 2, 3])),
        "b": SelectionPath(order=np.array([1, 0, 3, 2])),
    }
    found = auto.first_to_name(paths, (1, 2, 3, 4))
    assert found == {
        "a": [("a", 0), ("a", 1), ("a", 2), ("a", 3)],
        "b": [("b", 0), ("a", 1), ("b", 2), ("a", 3)],
    }
    kept = {"a": paths["a"].constrained(None, np.array([2, 3]))}
    assert auto.first_to_name(kept, (1, 2, 3)) == {"a": [("a", 0), ("a", 0), ("a", 2)]}


def test_only_the_usual_methods_outside_the_consensus_have_no_voice():
    members = [("fisher", FisherScore()), ("relief", zeronorm.Relief()), ("gram-schmidt", None)]
    assert zeronorm.AutoSelector()._weights(members) == [1.0, 0.0, 1.0]
    assert zeronorm.AutoSelector(task="regression")._weights(members) == [1.0, 1.0, 0.0]
    assert zeronorm.AutoSelector(selectors=("fisher", "relief"))._weights(members) == [1.0] * 3


def test_frequencies_of_a_consensus():
    consensus = Consensus([FisherScore(), FisherScore()], n_subsamples=2)
    consensus.subset_size_, consensus.weights_ = 2, np.array([0.75, 0.25])
    ranks = np.array([[[1, 2, 3, 4], [4, 3, 2, 1]], [[2, 1, 3, 4], [1, 3, 2, 4]]])
    is_first = ranks <= 2
    alone = consensus._frequencies(is_first[:1], np.log(ranks[0])[None, 0])
    np.testing.assert_allclose(alone, [0.75, 0.75, 0.25, 0.25])
    log_ranks = np.log([[1.0, 4.0, 2.0, 2.0], [3.0, 1.0, 2.0, 4.0]])  # of equal ones the lower index
    np.testing.assert_allclose(consensus._frequencies(is_first, log_ranks), [0.5, 0.5, 1.0, 0.0])


# -- Walks along a price or a penalty --


def test_where_a_number_is_reached_if_its_logarithm_grows_evenly():
    assert l1_svm._share_of_growth(2, 4, 8) == pytest.approx(0.5)
    assert l1_svm._share_of_growth(0, 1, 8) == pytest.approx(0.25)  # none counts as one half
    assert l1_svm._share_of_growth(1, 7, 8) == pytest.approx(0.9)
    assert l1_svm._share_of_growth(10, 11, 1000) == pytest.approx(0.1)


def step(C, support, *weights):
    return l1_svm._Step(C, np.asarray(support, dtype=np.intp), np.asarray(weights, dtype=float))


def test_turns_of_machines():
    """The first machine brings in 4, then 1 and 0, the second 1 and then 3; nobody takes 2."""
    steps = [
        step(1.0, [1, 4], [0.0, 2.0], [5.0, 0.0]),
        step(2.0, [0, 1, 3, 4], [1.0, 3.0, 0.0, 1.0], [0.0, 1.0, 2.0, 0.0]),
    ]
    assert l1_svm._turns(steps, 5).tolist() == [2.0, 0.0, INF, 1.0, 0.0]
    walk = SimpleNamespace(visited=steps[::-1], problem=SimpleNamespace(n_features=5), pull=np.full(5, 0.5))
    walk._entries = lambda: l1_svm._PriceWalk._entries(walk)
    walk._outcome = lambda: {"n_iter": 3}
    path = l1_svm._PriceWalk.path_in_turns(walk, 1.0)
    assert path.own_size == 2
    assert sorted(path.order[:2].tolist()) == [1, 4]
    assert path.order[2:].tolist() == [3, 0, 2]
    assert path.sizes.tolist()[:3] == [2, 3, 4]
    assert l1_svm._PriceWalk.path_in_turns(walk, 2.0).own_size == 4


class Growing:
    """A walk whose number of features is a known function of the price."""

    def __init__(self, size_at, first=1.0, pull=None):
        self.size_at, self.visited, self.without_slack = size_at, [], False
        self.pull = np.zeros(20) if pull is None else pull
        self.solve(first)

    def solve(self, C):
        size = self.size_at(C)
        self.visited.append(step(C, range(size), [1.0] * size))
        return size

    @property
    def last_support(self):
        return self.visited[-1].support

    @property
    def prices(self):
        return [step.C for step in self.visited]


def test_prices_grow_by_a_quarter_of_a_step_at_first_then_twice_as_far():
    prices = np.array([1.0, 16.0, 256.0])
    walk = Growing(lambda C: int(np.log2(C)) + 1)
    l1_svm._PriceWalk.grow_to(walk, 4, prices)
    np.testing.assert_allclose(walk.prices, [1.0, 2.0, 8.0])  # shares 1/4 and 1/2
    walk = Growing(lambda C: 1)
    l1_svm._PriceWalk.grow_to(walk, 4, prices)
    np.testing.assert_allclose(
        walk.prices, [1.0, 2.0, 8.0, 128.0, 256.0]
    )  # no step is longer, none goes beyond
    walk = Growing(lambda C: 0)
    l1_svm._PriceWalk.grow_to(walk, 1, np.array([1.0, 4.0, 16.0]))
    np.testing.assert_allclose(walk.prices, 2.0 ** np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]))
    walk = Growing(lambda C: 4)
    l1_svm._PriceWalk.grow_to(walk, 4, prices)
    assert walk.prices == [1.0]
    walk.without_slack = True
    l1_svm._PriceWalk.grow_to(walk, 5, prices)
    assert walk.prices == [1.0]


@pytest.mark.parametrize(("n_pulling", "ratio"), [(8, 2.0), (9, 2.0**0.5), (20, 2.0**0.5)])
def test_steps_are_short_where_too_many_features_would_come_in_at_once(n_pulling, ratio):
    """With a price of twice as much so many pulls would pass 1; with one of √2 times as much none does."""
    walk = Growing(lambda C: 1 if C == 1.0 else 4, pull=np.where(np.arange(20) < n_pulling, 0.5, 0.0))
    l1_svm._PriceWalk.grow_to(walk, 4, np.array([1.0, 16.0, 256.0]))
    np.testing.assert_allclose(walk.prices, [1.0, ratio])


def test_an_interval_of_prices_is_shortened_until_one_has_the_size():
    walk = Growing(lambda C: int(C), first=8.0)
    walk.solve(2.0)
    l1_svm._PriceWalk.look_for_size(walk, 4)
    np.testing.assert_allclose(walk.prices, [2.0, 8.0, 4.0])  # the middle, in the logarithm
    walk = Growing(lambda C: int(C), first=1.0)
    walk.solve(64.0)
    l1_svm._PriceWalk.look_for_size(walk, 8)
    np.testing.assert_allclose(walk.prices[2], 8.0)  # where the number would be if it grew as a power
    assert [s.support.size for s in walk.visited].count(8) == 1
    walk = Growing(lambda C: 2 if C < 5.0 else 7, first=1.0)
    walk.solve(25.0)
    l1_svm._PriceWalk.look_for_size(walk, 4)
    assert len(walk.prices) == 2 + l1_svm.BISECTIONS
    np.testing.assert_allclose(walk.prices[2:4], [5.0, 5.0**0.5])
    assert abs(walk.prices[-1] - 5.0) < 0.1
    for sizes, asked in (((3, 5), 5), ((2, 3), 4), ((5, 6), 4)):
        walk = Growing(lambda C, sizes=sizes: sizes[C > 1.0], first=1.0)
        walk.solve(2.0)
        l1_svm._PriceWalk.look_for_size(walk, asked)
        assert len(walk.prices) == 2  # found, or not between


def test_prices_up_to_the_one_that_is_given():
    problem = problem_of(np.arange(20) % 2, noise(20))
    assert l1_svm._prices(problem, 3.0, 1).tolist() == [3.0]
    path = l1_svm._prices(problem, 3.0, 4)
    assert (len(path), path[-1]) == (4, pytest.approx(3.0))
    hard = l1_svm._prices(problem, INF, 4)
    assert len(hard) == 12
    assert hard[-1] / hard[0] == pytest.approx(l1_svm.SEPARABLE_BY)


def walk_of_norms(norm_at):
    """A walk along penalties whose machines have a known norm."""
    machines = SimpleNamespace(
        n_features=2,
        support=np.array([0]),
        largest_penalty=1.0,
        loss=0.5,
        loss_without_features=1.0,
        absolute_weights=lambda: np.ones(2),
    )

    def solve(penalties):
        machines.norm = norm_at(penalties[0])

    machines.solve = solve
    return logistic_lasso._PenaltyWalk(machines, np.arange(2), 2)


def test_when_a_walk_along_penalties_ends():
    walk = walk_of_norms(lambda penalty: 1.0 - penalty)
    walk.visit(0.5)
    assert [walk.ends(bound, None) for bound in (0.4, 0.5, 0.6)] == [True, True, False]
    assert not walk.ends(None, None)
    for loss, is_end in ((0.011, False), (0.009, True)):
        walk.machines.loss = loss
        assert walk.ends(None, None) is is_end
        assert walk.ends(None, 3) is is_end
    walk.machines.loss = 1.0
    for n_found, asked, is_end in ((500, 3, True), (499, 3, False), (599, 300, False), (600, 300, True)):
        walk.supports[-1] = np.arange(n_found)
        assert walk.ends(None, asked) is is_end
        assert not walk.ends(None, None)


def test_a_walk_along_penalties_meets_its_bound():
    walk = walk_of_norms(lambda penalty: 1.0 - penalty)
    for penalty in (1.0, 0.7, 0.4, 0.1):
        walk.visit(penalty)
    walk.meet(0.5)
    np.testing.assert_allclose(walk.penalties, [1.0, 0.7, 0.5], atol=1e-6)
    np.testing.assert_allclose(walk.norms, [0.0, 0.3, 0.5], atol=1e-6)
    assert len(walk.supports) == len(walk.strengths) == 3
    walk = walk_of_norms(lambda penalty: 1.0 - penalty)
    walk.visit(0.5)
    walk.meet(0.5)  # as large as the bound is not beyond it
    np.testing.assert_allclose(walk.penalties, [0.5, 0.5], atol=1e-6)
    grid = zeronorm.LogisticLasso(n_alphas=3)._grid
    wide, square = (problem_of([0, 1, 0], np.zeros((3, p))) for p in (4, 3))
    np.testing.assert_allclose(grid(wide, 2.0), [2.0, 0.2, 0.02])
    np.testing.assert_allclose(grid(square, 2.0), 2.0 * np.geomspace(1.0, 1e-3, 3))


def test_tolerances_of_a_potential_machine_fall_below_the_entry_of_the_first_feature():
    grid = zeronorm.PotentialSVM(n_steps=2)._grid
    np.testing.assert_allclose(grid(5.0), [0.5, 0.05])
    given = zeronorm.PotentialSVM(epsilon=0.2, n_steps=2)._grid
    np.testing.assert_allclose(given(5.0), [1.0, 0.2])
    np.testing.assert_allclose(given(0.1), [0.2, 0.2])


def test_copies_fill_up_in_order():
    solution = BoxLassoSolution(
        np.array([0, 1, 2, 4]), np.array([1.0, -0.7, 2.0, -0.5]), None, np.array([1.0, -1, 1, 1, -1]), True
    )
    same = potential_svm._filled_in_order(solution, [], 2.0)
    assert (same.columns.tolist(), same.weights.tolist()) == ([0, 1, 2, 4], [1.0, -0.7, 2.0, -0.5])
    found = potential_svm._filled_in_order(solution, [np.array([1, 3, 4]), np.array([0, 2])], 1.0)
    assert found.columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(found.weights, [1.0, -1.0, 1.0, 0.2])
    exact = potential_svm._filled_in_order(
        BoxLassoSolution(np.array([1]), np.array([1.0]), None, np.ones(3), True), [np.arange(3)], 1.0
    )
    assert (exact.columns.tolist(), exact.weights.tolist()) == ([0], [1.0])


@pytest.mark.parametrize(
    ("params", "zero_tol"),
    [
        ({}, 1e-3),
        ({"q": 0.99}, 1e-3),
        ({"q": 1.0}, 1e-4),
        ({"q": 1.99}, 1e-4),
        ({"q": 2.0}, 0.0),
        ({"zero_tol": 0.3}, 0.3),
    ],
)
def test_what_counts_as_zero_by_exponent(params, zero_tol):
    assert zeronorm.ZeroNormSVM(**params)._zero_tol() == zero_tol


@pytest.mark.parametrize(
    ("params", "price", "is_apart"),
    [
        ({}, 1.0, True),
        ({}, INF, False),
        ({}, None, False),
        ({"q": 1.0}, 1.0, False),
        ({"q": 0.99}, 1.0, True),
        ({"scaling": "paper"}, 1.0, False),
        ({"start": "equal"}, 1.0, False),
        ({"start": "correlation", "q": 2.0}, INF, True),
    ],
)
def test_when_factors_start_apart(params, price, is_apart):
    selector = zeronorm.ZeroNormSVM(**params)
    selector.C_ = price
    assert bool(selector._starts_apart()) is is_apart


def test_prices_of_errors_are_means_within_both_sides():
    y = np.array([0, 0, 0, 1])
    price = fsv._price(problem_of(y), np.array([-1.0, -1.0, -1.0, 1.0]), 0.25)
    np.testing.assert_allclose(price, [0.25, 0.25, 0.25, 0.75])
    weighted = problem_of(y, sample_weight=np.array([1.0, 2.0, 1.0, 5.0]))
    np.testing.assert_allclose(fsv._price(weighted, 2.0 * y - 1.0, 0.25), [0.1875, 0.375, 0.1875, 0.75])
    real = problem_of([0.5, 1.0, -2.0, 3.0], task="regression")
    np.testing.assert_allclose(fsv._price(real, real.y, 0.2), 0.2)
    assert fsv._price(problem_of(y), 2.0 * y - 1.0, None).tolist() == [INF] * 4


# -- Scaling factors --


def test_iterates_with_fewer_features_are_forgotten_but_for_the_first():
    sizes = (3, 5, 4, 2)
    result = SimpleNamespace(iterates=[(np.arange(size), size) for size in sizes])
    kernel_multiplicative_update._forget_smaller(result, 4)
    assert [size for _, size in result.iterates] == [3, 5, 4]


def test_relevant_columns_stand_before_all_others():
    solution = SimpleNamespace(
        precision=np.array([4.0, INF, 0.25, INF]),
        active=np.array([0, 2]),
        relevance=np.array([0.0, 3.0, 0.0, 1.0]),
    )
    np.testing.assert_allclose(ard.relevance_scores(solution), [0.5, 0.1875, 2.0, 0.125])
    solution.precision, solution.active = np.full(4, INF), np.empty(0, dtype=int)
    np.testing.assert_allclose(ard.relevance_scores(solution), [0.0, 0.375, 0.0, 0.25])


# -- Laws over features --


def test_numbers_that_the_user_left_open():
    experiment = SimpleNamespace(n_features=50, subset_size=5, bootstrap_size=40)
    selector = OptimalFeatureWeighting(method="exact", max_iter=None)
    selector._resolve_sizes(experiment)
    assert (selector.subset_size_, selector.batch_size_, selector.max_iter_) == (5, 1024, 1000)
    selector = OptimalFeatureWeighting(batch_size=3, max_iter=20, step_size=0.5)
    selector._resolve_sizes(experiment)
    assert (selector.subset_size_, selector.batch_size_, selector.max_iter_) == (5, 3, 20)
    assert selector._steps(experiment) == GivenSteps(0.5, 20.0)
    selector.step_offset = 4.0
    assert selector._steps(experiment) == GivenSteps(0.5, 4.0)
    selector.step_size = None
    steps, wanted = selector._steps(experiment), AdaptiveSteps(50, 5, 3, 20, 1 / 40)
    assert type(steps) is AdaptiveSteps
    assert steps.describe() == wanted.describe()


# -- Trees --


def test_columns_of_a_tree_keep_their_differences_in_single_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5)) * [1.0, 1.0, 1e-30, 1e30, 0.0] + [0.0, 1e9, 0.0, 0.0, 3.0]
    data = tree._single_precision(as_design(X))
    assert data.dtype == np.float32
    np.testing.assert_array_equal(data[:, 0], X[:, 0].astype(np.float32))  # as they are
    np.testing.assert_allclose(data[:, 1], X[:, 1] - X[:, 1].mean(), atol=1e-6)
    assert np.unique(data[:, 4]).size == 1
    for column in (2, 3):  # a power of two brings the range next to one
        ratio = data[:, column] / X[:, column]
        assert np.ptp(ratio) <= 1e-6 * ratio[0]
        assert 1.0 <= np.ptp(data[:, column]) <= 2.0
        assert np.log2(ratio[0]) == pytest.approx(round(np.log2(ratio[0])), abs=1e-5)


def test_unused_features_stand_below_half_of_the_least_importance():
    importance, used = np.array([0.6, 0.0, 0.4, 0.0, 0.0]), np.array([True, True, True, False, False])
    found = tree._ranked_scores(importance, used, np.array([0.0, 0.0, 0.0, 0.5, 1.1]))
    np.testing.assert_allclose(found, [0.6, 0.4, 0.4, 0.1, 0.2])
    nothing = tree._ranked_scores(np.zeros(2), np.zeros(2, dtype=bool), np.array([0.3, 0.8]))
    np.testing.assert_allclose(nothing, [0.15, 0.4])


def test_the_association_of_a_column_is_the_share_of_its_variance():
    X, y = noise(30, 4), np.arange(30) % 3
    X[:, 3] = 1.0
    three = problem_of(y, X, "multiclass", classes=np.arange(3))
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    wanted = ((means[y] - X.mean(axis=0)) ** 2).mean(axis=0)[:3] / X.var(axis=0)[:3]
    np.testing.assert_allclose(tree._association(three), [*wanted, 0.0], atol=1e-12)
    real = problem_of(X[:, 0] + noise(30, 1, 1)[:, 0], X, "regression")
    wanted = [np.corrcoef(x, real.y)[0, 1] ** 2 for x in X.T[:3]]
    np.testing.assert_allclose(tree._association(real)[:3], wanted, atol=1e-12)


def split(values, labels, min_leaf=1, n_classes=2):
    return tree.fewest_errors(np.asarray(values, dtype=np.float32), np.eye(n_classes)[labels], min_leaf)


def test_the_split_with_the_fewest_errors_by_hand():
    column = [[1.0], [2.0], [4.0], [8.0]]
    assert split(column, [0, 0, 1, 1]) == (0, 3.0)
    assert split(column, [0, 1, 1, 1]) == (0, 1.5)
    assert split(column, [0, 1, 1, 1], min_leaf=2) == (0, 3.0)
    assert split(column, [0, 1, 1, 1], min_leaf=3) is None
    assert split(column[:3], [0, 1, 1], min_leaf=2) is None
    assert split([[1.0], [1.0], [1.0], [1.0]], [0, 0, 1, 1]) is None  # nothing to cut between
    assert split([[1.0], [2.0], [2.0], [2.0]], [0, 0, 1, 1]) == (0, 1.5)
    assert split([[0.0, 1.0], [1.0, 2.0], [2.0, 4.0], [3.0, 8.0]], [0, 0, 1, 1]) == (
        0,
        1.5,
    )  # the lowest column
    # One error each: the purer one.
    assert split([[0, 0], [1, 1], [2, 3], [3, 4], [4, 2], [5, 5]], [0, 0, 1, 0, 1, 1]) == (0, 1.5)
    close = np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0))
    assert split([[close[0]], [close[1]]], [0, 1])[1] < close[1]
    assert tree.fewest_errors(np.array([[2.0], [1.0]], dtype=np.float32), np.eye(2)[[0, 1]], 1) == (0, 1.5)


def test_growth_ends_at_the_depth_and_where_a_node_is_pure():
    data = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    y = np.array([0, 1, 0, 0])
    whole = tree.grow_by_error(data, y, 2, max_depth=None, min_leaf=1)
    assert whole.left.tolist() == [1, 2, -1, -1, -1]
    assert whole.right.tolist() == [4, 3, -1, -1, -1]
    assert whole.threshold.tolist()[:2] == [1.5, 0.5]
    assert whole.cost.tolist() == [0.25, 0.25, 0.0, 0.0, 0.0]
    assert whole.value.tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert tree.grow_by_error(data, y, 2, max_depth=1, min_leaf=1).left.tolist() == [1, -1, -1]
    assert tree.grow_by_error(data, y, 2, max_depth=0, min_leaf=1).left.tolist() == [-1]
    assert tree.grow_by_error(data, np.zeros(4, dtype=int), 2, max_depth=None, min_leaf=1).left.tolist() == [
        -1
    ]
    np.testing.assert_array_equal(whole.predictions(data, np.array([0.0, 1.0])), [y, np.zeros(4)])
    np.testing.assert_allclose(whole.importance(2), [1.0, 0.0])


def test_a_share_of_the_samples_is_the_least_size_of_a_leaf():
    problem = problem_of(np.arange(20) % 2, noise(20), classes=np.arange(2))
    data = noise(20).astype(np.float32)
    for least, size in ((0.2, 4), (0.21, 5), (0.001, 1), (3, 3)):
        grow = zeronorm.TreeSelector(criterion="error", min_samples_leaf=least)._grower(problem, 0)
        nodes = grow(data, problem.y)
        wanted = tree.grow_by_error(data, problem.y, 2, max_depth=None, min_leaf=size)
        np.testing.assert_array_equal(nodes.feature, wanted.feature)
        np.testing.assert_array_equal(nodes.threshold, wanted.threshold)
        counts = np.bincount(list(nodes.paths(data))[-1])
        assert counts[counts > 0].min() >= size


# -- Paths and probes --


def test_a_path_of_intervals_grows_outwards():
    path = interval._path([(0, 8), (2, 6), (3, 5)], [0.3, 0.2, 0.4], 8, 1)
    assert path.order.tolist() == [3, 4, 2, 5, 1, 6, 0, 7]
    assert (path.own_size, path.n_iter) == (4, 3)
    assert path.visited_sizes.tolist() == [8, 4, 2]
    assert path.objective.tolist() == [0.3, 0.2, 0.4]
    one = interval._path([(0, 3)], [0.5], 3, 0)
    assert (one.order.tolist(), one.own_size) == ([1, 0, 2], 3)


@pytest.mark.parametrize(("cv", "n_splits", "n_folds"), [(None, 10, 2), (3, 3, 3)])
def test_splits_of_an_interval_keep_groups_whole(cv, n_splits, n_folds):
    y, groups = np.arange(24) % 2, np.arange(24) // 4
    problem = problem_of(
        y, noise(24), classes=np.arange(2), sample_groups=groups, rng=np.random.default_rng(0)
    )
    splits = zeronorm.IntervalSelector(cv=cv)._splits(problem, y)
    assert len(splits) == n_splits
    for first in range(0, n_splits, n_folds):
        tested = np.concatenate([test for _, test in splits[first : first + n_folds]])
        assert sorted(tested) == list(range(24))
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
    assert (
        len({tuple(test) for _, test in splits}) > n_folds or cv is not None
    )  # each repeat has a seed of its own


def test_features_are_kept_apart_from_better_ones_that_stay():
    path = SelectionPath(order=np.array([2, 3, 0, 4, 1, 5]))
    found = relief.keep_apart(path, 2, np.array([False, False, False, False, True, False]))
    assert found.order.tolist() == [2, 0, 5, 3, 4, 1]
    assert found.own_size == 3
    same = relief.keep_apart(path, 1, np.zeros(6, dtype=bool))
    assert (same.order.tolist(), same.own_size) == (path.order.tolist(), 6)


@pytest.mark.parametrize(("n_probes", "p"), [(1200, 3), (513, 4), (2, 5)])
def test_probes_come_from_all_columns_equally_often(n_probes, p):
    X = noise(9, p)
    probes = probe_selector.draw_probes(as_design(X), n_probes, "permuted", np.random.default_rng(0))
    assert probes.shape == (9, n_probes)
    sources = {tuple(np.sort(column)): k for k, column in enumerate(X.T)}
    drawn = np.bincount([sources[tuple(np.sort(probe))] for probe in probes.T], minlength=p)
    assert drawn.max() - drawn.min() <= 1
    assert len({tuple(probe) for probe in probes.T}) > 0.9 * n_probes
    normal = probe_selector.draw_probes(
        as_design(X * 10.0 + 50.0), 60 * p, "gaussian", np.random.default_rng(0)
    )
    np.testing.assert_allclose(normal.mean(axis=0).mean(), (X * 10.0 + 50.0).mean(), atol=3.0)
    np.testing.assert_allclose(normal.std(axis=0).mean() / (10.0 * X.std(axis=0)).mean(), 1.0, atol=0.15)


def test_columns_in_random_order_are_scored_in_their_own():
    X, y = noise(30, 5) + np.eye(5)[2] * (np.arange(30) % 2)[:, None], np.arange(30) % 2
    selector = zeronorm.ProbeSelector(FisherScore())
    path, scores, position = selector._fit_shuffled(as_design(X), y, np.random.default_rng(3))
    alone = FisherScore().fit(X, y)
    np.testing.assert_allclose(scores, alone.path_.scores)
    assert np.argsort(position).tolist() == alone.path_.order.tolist()
    assert path.order.tolist() != alone.path_.order.tolist()


@pytest.mark.parametrize("gain", ["residual", "joint"])
@pytest.mark.parametrize("kept", [None, [0], [0, 4]])
def test_the_error_of_every_size_on_the_way_of_forward_selection(gain, kept):
    X = noise(30, 5)
    y = X[:, 1] - 0.5 * X[:, 3] + 0.3 * noise(30, 1, 1)[:, 0]
    path = zeronorm.ForwardLeastSquares(4, gain=gain, task="regression", always_keep=kept).fit(X, y).path_
    sizes = list(range(max(1, len(kept or [])), 5))
    assert path.visited_sizes.tolist() == sizes
    assert path.n_iter == 4 - len(kept or [])
    left = []
    for size in sizes:
        columns = np.column_stack([np.ones(30), X[:, path.order[:size]]])
        rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        left.append(rest @ rest)
    np.testing.assert_allclose(path.objective / path.objective[0], np.asarray(left) / left[0])
    asked = zeronorm.ForwardLeastSquares(task="regression").fit(X, y)
    assert asked.n_iter_ == 2  # half of five


def test_of_several_targets_a_feature_enters_with_the_first():
    X, y = noise(40, 4), np.arange(40) % 3
    X[:, 1] += y == 1
    X[:, 2] += 2.0 * (y == 2)
    whole = zeronorm.LassoSelector(method="lars").fit(X, y).path_
    each = [zeronorm.LassoSelector(method="lars").fit(X, y == c).path_.scores for c in range(3)]
    np.testing.assert_allclose(whole.scores, np.max(each, axis=0))
    assert (whole.own_size, whole.n_iter) == (4, 5)


def test_sizes_are_scored_as_the_chooser_says():
    problem = problem_of([0, 1, 0, 1], sample_groups=np.arange(4))
    chooser = zeronorm.SelectorCV(FisherScore(), scoring="accuracy")
    plan = selector_cv.plan_of_sizes(chooser, problem, "X", problem.y, np.array([1, 3]), 5)
    assert (plan.X, plan.sizes, plan.seed, plan.is_strict, plan.lifts_sizes) == ("X", (1, 3), 5, True, True)
    assert plan.y is problem.y
    assert plan.groups is problem.sample_groups
    assert [metric.name for metric in plan.metrics] == ["accuracy"]
    given = zeronorm.SelectorCV(FisherScore(), sizes=[2], estimator=LogisticRegression())
    plan = selector_cv.plan_of_sizes(given, problem, "X", problem.y, np.array([2]), 5)
    assert plan.estimator is given.estimator
    assert plan.unset_in_estimator == ["random_state"]
    assert not plan.lifts_sizes


@pytest.mark.parametrize(
    ("p", "refine", "n_refined"), [(1, "auto", 0), (2, "auto", 2), (3, 2, 2), (3, 1, 0), (3, 9, 3)]
)
def test_two_features_can_be_put_in_order(p, refine, n_refined, monkeypatch):
    asked = [0]

    def refined(path, problem, count):
        asked.append(count)
        return path

    monkeypatch.setattr(consensus, "_refined", refined)
    monkeypatch.setattr(consensus, "default_roster", lambda *given: [("fisher", FisherScore())])
    Consensus(refine=refine).fit(noise(12, p), np.arange(12) % 2)
    assert asked[-1] == n_refined


def test_the_norm_of_factors_by_default_is_half_way():
    """Between one factor of length √m and m factors of one, in the logarithm."""
    for m, q in ((9, 1.0), (16, 0.5), (25, 2.0)):
        ends = np.sqrt(m), m ** (1.0 / q)
        assert adaptive_scaling.default_norm(m, q) == pytest.approx(np.sqrt(ends[0] * ends[1]))
    design = as_design(noise(6, 3))
    factors = adaptive_scaling.NormedFactors(SimpleNamespace(design=design), 0.5, 7.0)
    scale = np.sqrt(factors.scale_sq(np.array([1.5, 0.5, 1.0])))
    assert (scale**0.5).sum() ** 2 == pytest.approx(7.0)
    np.testing.assert_allclose(scale**0.5 / (scale**0.5).sum(), [0.5, 1 / 6, 1 / 3])


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
