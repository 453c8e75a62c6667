"""Lines that few data reach: empty ends, hard margins, groups of samples, many columns, words of an error."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import zeronorm
from small_problems import INF, noise, problem_of
from zeronorm import FisherScore, as_design
from zeronorm.criteria import make_kernel
from zeronorm.engines.error_control import false_selection_bound
from zeronorm.selectors.filters import welch
from zeronorm.selectors.greedy import tree
from zeronorm.selectors.meta import consensus
from zeronorm.selectors.scaling import jcfo, kernel_multiplicative_update
from zeronorm.selectors.sparsity import arom, fsv, l1_svm, lasso, sparse_kernel_fisher
from zeronorm.solvers.status import Status


def test_several_labels_are_labels():
    X = noise(20)
    y = np.column_stack([X[:, 0] > 0.0, X[:, 1] > 0.0, X[:, 0] > 0.5]).astype(int)
    selector = zeronorm.AROM().fit(X, y)
    assert selector.coef_.shape == (3, 3)
    with pytest.raises(ValueError, match="label type"):
        selector.fit(X, X)
    with pytest.raises(ValueError, match=r"1d array|bad input shape|label type"):
        FisherScore().fit(X, y)


def test_rounds_that_end_too_early_still_value_every_feature():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 5)) + 2.0 * y[:, None] * [1.0, 0.0, 1.0, 0.0, 0.0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)

    def margin(member):
        distances = np.sqrt(((X[:, None] - X)[:, :, member] ** 2).sum(axis=2)) + np.diag([INF] * 20)
        same = y[:, None] == y
        nearest = (np.where(kind, distances, INF).min(axis=1) for kind in (~same, same))
        return 0.5 * float(np.subtract(*nearest).sum())

    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        selector = zeronorm.GFlip(max_iter=1, random_state=0).fit(X, y)
    member = selector.support_
    assert selector.margin_ == pytest.approx(margin(member))
    flipped = np.array([margin(member ^ (np.arange(5) == k)) for k in range(5)])
    gain = np.where(member, margin(member) - flipped, flipped - margin(member))
    np.testing.assert_allclose(selector.path_.scores, gain, atol=1e-9)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_halves_of_an_interval_are_the_same_for_every_candidate(task):
    y = np.arange(12) % 2 if task == "binary" else noise(12, 1)[:, 0]
    problem = problem_of(y, noise(12), task, classes=np.arange(2) if task == "binary" else None)
    splitter = zeronorm.IntervalSelector()._splitter(problem)
    first, again = (
        [test.tolist() for _, test in splitter.split(np.zeros((12, 1)), y if task == "binary" else None)]
        for _ in range(2)
    )
    assert first == again
    assert [len(test) for test in first] == [6] * 10
    assert len({tuple(test) for test in first}) > 2


def test_the_class_without_a_variance_is_named():
    stats = SimpleNamespace(weight=np.array([4.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="Got weight 1 for class 'q'"):
        welch._require_variances(stats, SimpleNamespace(classes=np.array(["p", "q", "r"]).astype(object)))
    with pytest.raises(ValueError, match=r"Got weight 1 for class .*1\b"):
        welch._require_variances(stats, SimpleNamespace(classes=None))


@pytest.mark.parametrize(("p", "n_taken"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_half_of_the_features_are_taken_where_nobody_says_how_many(p, n_taken):
    X = noise(20, p)
    y = X.sum(axis=1) + 0.1 * noise(20, 1, 1)[:, 0]
    for selector in (
        zeronorm.GramSchmidt(stop="size", task="regression"),
        zeronorm.ForwardLeastSquares(task="regression"),
    ):
        assert selector.fit(X, y).path_.n_iter == n_taken


def test_the_bound_of_a_consensus_is_that_of_its_subsets():
    X, y = noise(24, 9), np.arange(24) % 2
    fitted = zeronorm.Consensus([FisherScore()], n_subsamples=4, random_state=0).fit(X, y)
    assert fitted.subset_size_ == 3
    assert fitted.false_selections() == false_selection_bound(3, 9, 0.75)
    assert fitted.false_selections(0.9) == false_selection_bound(3, 9, 0.9)


@pytest.mark.parametrize(("task", "y"), [("binary", [0, 1, 0, 1]), ("regression", [0.5, 1.0, 2.0, 1.5])])
def test_the_gram_matrix_is_weighed_by_the_kind_of_target(task, y, monkeypatch):
    asked = []
    monkeypatch.setattr(consensus, "MUCH_WORK", 0.0)
    for is_preferred, settings in ((True, {"step": 0.1}), (False, {"step": 0.1, "loss": "squared"})):

        def prefers(shape, *, regression, answer=is_preferred):
            asked.append((shape, regression))
            return answer

        monkeypatch.setattr(consensus, "prefers_gram", prefers)
        assert consensus.quick_elimination(problem_of(y, task=task)) == settings
    assert asked == [((4, 3), task == "regression")] * 2


@pytest.mark.parametrize("cls", [zeronorm.AdaptiveScaling, zeronorm.RadiusMarginScaling])
def test_constant_columns_alone_have_factors_of_zero(cls):
    fitted = cls().fit(np.ones((6, 3)), np.arange(6) % 2)
    assert fitted.path_.scale.tolist() == fitted.scale_.tolist() == [0.0, 0.0, 0.0]
    assert fitted.path_.order.tolist() == [0, 1, 2]


def test_a_climb_that_never_rests_says_so(monkeypatch):
    X = noise(20, 4)
    design = as_design(X)
    y = np.where(X[:, 1] > 0.0, 1.0, -1.0)
    kernel = make_kernel("linear", design=design)
    model = jcfo.SparseProbit(design, y, kernel, np.full(4, 0.5), (0.1, 1.0), 5)
    before = model.objective
    monkeypatch.setattr(jcfo, "_CLIMB_RESTARTS", 0)
    assert model.climb(1e-3) is False
    assert model.objective == before
    monkeypatch.setattr(jcfo, "_CLIMB_RESTARTS", 50)
    assert model.climb(1e-3) is True
    assert model.objective > before


def test_validation_folds_of_groups_hold_every_class():
    """Eight groups of one class each: of two folds each tests two groups of either class."""
    y, groups = np.repeat(np.arange(8) % 2, 3), np.repeat(np.arange(8), 3)
    X = noise(24)
    for seed in range(6):
        problem = problem_of(
            y, X, classes=np.arange(2), sample_groups=groups, rng=np.random.default_rng(seed)
        )
        splits = zeronorm.RadiusMarginScaling(bound="validation", cv=2)._splits(problem)
        assert len(splits) == 2
        for train, valid in splits:
            assert not set(groups[train]) & set(groups[valid])
            assert np.bincount(y[valid]).tolist() == [6, 6]


def test_words_of_a_price_that_must_be_finite():
    with pytest.raises(ValueError, match="finite with task='regression'"):
        zeronorm.AROM(C=INF, task="regression")._validate_params()
    with pytest.raises(ValueError, match="finite with slack_norm=0"):
        zeronorm.AROM(C=INF, slack_norm=0)._validate_params()


@pytest.mark.parametrize(("task", "has_tube"), [("classification", False), ("regression", True)])
def test_an_empty_answer_of_rescaling_names_the_tube_where_there_is_one(task, has_tube, monkeypatch):
    empty = SimpleNamespace(
        iterates=[], status=SimpleNamespace(check=lambda what: None), trained=np.arange(0), fallback=None
    )
    monkeypatch.setattr(arom, "rescale_until_sparse", lambda *given, **more: empty)
    told = []
    monkeypatch.setattr(arom, "warn_of_empty_answer", lambda selector, problem, remedy: told.append(remedy))
    y = np.arange(6) % 2 if task == "classification" else noise(6, 1)[:, 0]
    problem = problem_of(y, noise(6), "binary" if task == "classification" else task)
    selector = zeronorm.AROM(task=task, start="equal")
    selector.representative_, selector.C_ = np.arange(3), 1.0
    machine = SimpleNamespace(weights=np.zeros((0, 1)), bias=np.array([0.5]))
    assert selector._run(problem, machine) is empty
    assert told == ["raise C or lower epsilon" if has_tube else "raise C"]
    assert (selector.coef_.tolist(), selector.intercept_.tolist()) == ([[0.0, 0.0, 0.0]], [0.5])


@pytest.mark.parametrize(
    ("task", "words"), [("classification", "can separate"), ("regression", "meets up to epsilon")]
)
def test_programs_without_a_solution(task, words):
    selector = zeronorm.FSV(task=task)
    selector._check_solution(Status.CONVERGED)
    with pytest.raises(ValueError, match=words):
        selector._check_solution(Status.INFEASIBLE)
    with pytest.raises(RuntimeError, match="a linear program was not solved"):
        selector._check_solution(Status.FAILED)


def test_costs_of_features_follow_their_weights_and_grow(monkeypatch):
    """The weights rest after the second program; with the concave sum twice as steep they rest for good."""
    costs = []

    class Programs:
        def __init__(self, problem, sparsity, epsilon, unit):
            self.rate, self.first_pull = 0.5, np.ones(3)

        def solve(self, cost):
            costs.append(cost)
            size = np.array([1.0, 0.0, 0.25])
            return fsv._Step(size[None, :], np.array([0.5]), size, 2.0, Status.CONVERGED)

    monkeypatch.setattr(fsv, "_SharedPrograms", Programs)
    selector = zeronorm.FSV(alpha=3.0, growth=2.0, standardize=False).fit(noise(8), np.arange(8) % 2)
    size = np.array([1.0, 0.0, 0.25])
    np.testing.assert_allclose(costs, [[3.0] * 3, 3.0 * np.exp(-3.0 * size), 6.0 * np.exp(-6.0 * size)])
    saved = 2.0 + 0.5 * (1.0 - np.exp(-np.multiply.outer([3.0, 3.0, 6.0], size))).sum(axis=1)
    np.testing.assert_allclose(selector.objective_, saved)
    assert (selector.n_iter_, selector.converged_, selector.n_features_) == (3, True, 2)
    costs.clear()
    assert zeronorm.FSV(alpha=3.0, growth=1.0).fit(noise(8), np.arange(8) % 2).n_iter_ == 2
    with pytest.warns(ConvergenceWarning):
        zeronorm.FSV(alpha=3.0, growth=2.0, max_iter=2).fit(noise(8), np.arange(8) % 2)


def test_machines_of_pairs_see_the_samples_of_two_classes():
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


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("most_features", [100, 2])
def test_descent_on_many_columns_is_that_on_all_of_them(n_targets, most_features, monkeypatch):
    monkeypatch.setattr(lasso, "MOST_JOINING", 2)
    X = as_design(noise(30, 12))
    Y = noise(30, n_targets, 1) + X.block([3, 7])[:, :n_targets] * 2.0
    penalties = np.abs(X.transpose_dot(Y)).max() * np.geomspace(1.1, 0.004, 12)
    whole = lasso._descend(X, Y, penalties, 1e-12)
    monkeypatch.setattr(lasso, "SMALL_DATA", 359)
    steps = lasso._descend(X, Y, penalties, 1e-12, most_features)
    sizes = [step.columns.size for step in whole]
    n_steps = next((k + 1 for k, size in enumerate(sizes) if size > most_features), 12)
    assert (n_steps < 12) == (most_features == 2)
    assert sizes[0] == 0
    assert sizes[-1] >= 5
    assert len(steps) == n_steps
    for found, wanted in zip(steps, whole, strict=False):
        assert found.penalty == wanted.penalty
        assert found.columns.tolist() == wanted.columns.tolist()
        np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-5)


def test_rounds_that_do_not_suffice_are_told(monkeypatch):
    problem = problem_of(np.arange(20) % 2, noise(20, 4) + (np.arange(20) % 2)[:, None])
    fisher = sparse_kernel_fisher._Fisher(problem)
    assert fisher.solve(0.5, 1e-9, 1000).converged
    monkeypatch.setattr(sparse_kernel_fisher, "MAX_ROUNDS", 1)
    other = sparse_kernel_fisher._Fisher(problem)
    assert not other.solve(0.5, 1e-9, 1000).converged


@pytest.mark.parametrize("coef0", [0.0, 0.5])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_forms_of_a_polynomial_kernel_of_one_feature(coef0, degree):
    """Double sums of v with itself; the coefficients of each v sum to zero."""
    kernel = make_kernel("poly", gamma=0.7, degree=degree, coef0=coef0, design=as_design(np.eye(3)))
    block, V = noise(9, 4), noise(9, 2, 1)
    V = V - V.mean(axis=0)
    wanted = [[v @ (0.7 * np.outer(x, x) + coef0) ** degree @ v for v in V.T] for x in block.T]
    np.testing.assert_allclose(kernel_multiplicative_update._polynomial_forms(kernel, block, V), wanted)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_splits_of_several_blocks_are_those_of_one(n_classes, monkeypatch):
    """Few values make many ties: fewer errors come first, then the lower impurity, then the lower column."""
    rng = np.random.default_rng(n_classes)
    cases = []
    for _ in range(60):
        data = rng.integers(0, 3, size=(9, 4)).astype(np.float32)
        cases.append((data, np.eye(n_classes)[rng.integers(0, n_classes, 9)]))
    whole = [tree.fewest_errors(data, indicator, 1) for data, indicator in cases]
    assert {found[0] for found in whole if found is not None} == {0, 1, 2, 3}
    monkeypatch.setattr(tree, "MOST_ENTRIES", 1)
    assert [tree.fewest_errors(data, indicator, 1) for data, indicator in cases] == whole
