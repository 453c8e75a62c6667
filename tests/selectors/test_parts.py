"""More parts of the selectors, each by its definition: data as a method sees them, rules, what is handed on."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import zeronorm
from small_problems import INF, noise, problem_of
from zeronorm import RFECV, FisherScore, OptimalFeatureWeighting, as_design
from zeronorm.criteria import make_kernel
from zeronorm.engines.elimination.known_models import KnownRanker
from zeronorm.engines.neighbours.kernels import ABSOLUTE, MISMATCH, SQUARED
from zeronorm.selection.path import SelectionPath
from zeronorm.selectors.filters import fcbf, gflip
from zeronorm.selectors.filters.relief import column_ranges
from zeronorm.selectors.greedy import grafting, gram_schmidt, perceptron_rfe
from zeronorm.selectors.meta import auto
from zeronorm.selectors.scaling.jcfo import SparseProbit
from zeronorm.selectors.scaling.max_entropy_discrimination import MaxEntropyDiscrimination
from zeronorm.selectors.sparsity import arom, fsv, lasso
from zeronorm.selectors.sparsity.sparse_kernel_fisher import _Fisher
from zeronorm.selectors.stochastic import ofw
from zeronorm.solvers.lasso import LassoStep

# -- Columns and targets as a method sees them --


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("small", [60, 59])
def test_least_squares_without_a_bias(task, weighted, small, monkeypatch):
    """Products of centred columns and targets, as the weights count them; data of up to a size as a dense copy."""
    monkeypatch.setattr(lasso, "SMALL_DATA", small)
    X = noise(15, 4) + np.array([5.0, 0.0, -3.0, 1.0])
    y = noise(15, 1, 1)[:, 0] if task == "regression" else np.arange(15) % (2 if task == "binary" else 3)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 15) if weighted else None
    classes = None if task == "regression" else np.unique(y)
    factor, Y = lasso.centred_least_squares(problem_of(y, X, task, sample_weight=weight, classes=classes))
    targets = {"binary": 2.0 * y - 1.0, "multiclass": np.eye(3)[y.astype(int) % 3], "regression": y}[task]
    targets = targets.reshape(15, -1)
    w = np.ones(15) if weight is None else weight
    centred, left = (A - np.average(A, axis=0, weights=w) for A in (X, targets))
    block = factor.block(np.arange(4))
    np.testing.assert_allclose(block.T @ block, (centred * w[:, None]).T @ centred, atol=1e-10)
    np.testing.assert_allclose(factor.transpose_dot(Y), (centred * w[:, None]).T @ left, atol=1e-10)
    is_turned = small == 60 and task != "multiclass"
    assert block.shape == ((4, 4) if is_turned else (15, 4))


def test_a_feature_enters_at_the_penalty_of_the_breakpoint_before():
    steps = [LassoStep.of(penalty, np.arange(1), np.ones(1)) for penalty in (8.0, 4.0, 1.0)]
    np.testing.assert_allclose(lasso._levels_of_entry(steps), [8.0, 8.0, 4.0])
    assert lasso._levels_of_entry([LassoStep.of(0.0, np.arange(1), np.ones(1))])[0] > 0.0


@pytest.mark.parametrize("at_a_time", [8, 1])
def test_how_far_a_solution_is_from_the_optimality_conditions(at_a_time, monkeypatch):
    """Orthogonal columns pull 4, -3 and 1; less a weight of their own."""
    monkeypatch.setattr(lasso, "STEPS_AT_A_TIME", at_a_time)
    X, y = as_design(np.eye(3)), np.array([4.0, -3.0, 1.0])
    steps = [
        LassoStep.of(4.0, np.arange(0), np.zeros(0)),
        LassoStep.of(2.0, np.array([0, 1]), np.array([2.0, -1.0])),
        LassoStep.of(2.0, np.array([0, 1]), np.array([2.0, -0.5])),  # the second should be larger
        LassoStep.of(0.5, np.array([0]), np.array([3.5])),  # the second should be in
        LassoStep.of(1.0, np.array([0, 1]), np.array([3.0, 4.0])),  # and have the other sign
    ]
    np.testing.assert_allclose(lasso._violations(X, y, steps), np.array([0, 0, 0.5, 2.5, 8.0]) / 4.0)


@pytest.mark.parametrize("norm_bound", [None, 1.5])
def test_solutions_of_one_target_on_a_grid_are_exact(norm_bound):
    X = as_design(noise(30, 6))
    y = X.block(slice(None))[:, 1] - X.block(slice(None))[:, 4] + 0.3 * noise(30, 1, 1)[:, 0]
    steps = lasso._grid_path(X, y[:, None], 9, norm_bound, 100)
    assert lasso._violations(X, y, steps).max() < 1e-9
    if norm_bound is None:
        np.testing.assert_allclose(
            [step.penalty for step in steps], np.abs(X.transpose_dot(y)).max() * np.geomspace(1, 1e-3, 9)
        )
    else:
        assert np.abs(steps[-1].weights).sum() == pytest.approx(norm_bound, rel=1e-6)
        assert all(np.abs(step.weights).sum() <= norm_bound for step in steps[:-1])


@pytest.mark.parametrize("home", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_within_the_classes(home, weighted):
    X, y = np.round(noise(20, 4)), np.arange(20) % 2
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 20) if weighted else None
    fisher = _Fisher(problem_of(y, home(X), sample_weight=weight))
    w = np.ones(20) if weight is None else weight
    means = np.array([np.average(X[y == c], axis=0, weights=w[y == c]) for c in (0, 1)])
    Z = np.sqrt(w)[:, None] * (X - means[y])
    np.testing.assert_allclose(fisher.within(X), Z, atol=1e-12)
    v = noise(20, 1, 3)[:, 0]
    np.testing.assert_allclose(fisher.adjoint(v), Z.T @ v, atol=1e-12)
    np.testing.assert_allclose(fisher.mean_difference, means[1] - means[0], atol=1e-12)
    for columns in ([3, 1], [1], [1, 3], [2, 1], [3], [0, 1, 2, 3]):
        part = Z[:, columns]
        np.testing.assert_allclose(fisher._products_of(np.array(columns)), part.T @ part, atol=1e-11)
    solution = SimpleNamespace(columns=np.array([2, 0]), weights=np.array([0.5, -2.0]))
    assert fisher.bias(solution) == pytest.approx(1.0 - 0.5 * means[1, 2] + 2.0 * means[1, 0])
    assert fisher.full(solution).tolist() == [-2.0, 0.0, 0.5, 0.0]


def test_of_columns_with_equally_distant_means_the_first_begins():
    x = np.array([0.0, 1.0, 4.0, 6.0])
    y = np.array([0, 0, 1, 1])
    fisher = _Fisher(problem_of(y, np.column_stack([np.ones(4), 0.5 * x, -x, x])))
    assert fisher.first == 2
    alone = _Fisher(problem_of(y, x[:, None]))  # no second one: a number in proportion to the spread within
    assert alone.entry_of_second() == pytest.approx(
        2.0 * (2.0 / 4.5) * 4.0
    )  # four samples have more than 2.5


@pytest.mark.parametrize("scaling", ["range", "none"])
@pytest.mark.parametrize(("metric", "kind"), [("manhattan", ABSOLUTE), ("euclidean", SQUARED)])
def test_distances_of_relief_are_sums_over_scaled_columns(scaling, metric, kind):
    X = noise(10, 4) * [1.0, 100.0, 0.0, 1.0] + [0.0, 0.0, 7.0, 0.0]
    problem = problem_of(np.arange(10) % 2, X)
    ranges = column_ranges(problem.design)
    constant = np.array([False, False, True, False])
    selector = zeronorm.Relief(column_scaling=scaling, metric=metric)
    (part,) = selector._column_parts(problem, ranges, constant)
    factor = (
        np.where(constant, 0.0, 1.0 / np.ptp(X + constant, axis=0).clip(1e-300))
        if scaling == "range"
        else ~constant
    )
    np.testing.assert_allclose(part.columns.factor, factor)
    np.testing.assert_allclose(part.columns.shift, X.min(axis=0))
    assert (part.index.tolist(), part.kind) == ([0, 1, 2, 3], kind)
    selector.discrete_features = [1, 3]
    parts = selector._column_parts(problem, ranges, constant)
    assert [(p.index.tolist(), p.kind) for p in parts] == [([0, 2], kind), ([1, 3], MISMATCH)]
    np.testing.assert_allclose(parts[1].columns.factor, np.asarray(factor)[[1, 3]])
    selector.discrete_features = "all"
    assert [p.kind for p in selector._column_parts(problem, ranges, constant)] == [MISMATCH]


@pytest.mark.parametrize(
    ("params", "y", "unit"),
    [({}, [1.0, 3.0, 5.0, 7.0], 5.0**0.5), ({"standardize": False}, [1.0, 3.0, 5.0, 7.0], 1.0), ({}, [2.0] * 4, 1.0)],
)  # fmt: skip
def test_the_unit_of_a_target_is_its_deviation(params, y, unit):
    selector = MaxEntropyDiscrimination(task="regression", epsilon=0.5, C=2.0, **params)
    _, centre, found = selector._terms(problem_of(y, task="regression"), np.ones(4))
    assert (centre, found) == (np.mean(y), pytest.approx(unit))
    weighted = np.array([3.0, 1.0, 0.5, 0.5])
    _, centre, found = selector._terms(problem_of(y, task="regression", sample_weight=weighted), weighted)
    assert centre == pytest.approx(np.average(y, weights=weighted))
    labels = selector._terms(problem_of([0, 1, 0, 1]), np.ones(4))
    assert labels[1:] == (0.0, 1.0)


def test_values_of_a_column_that_are_too_many_for_categories():
    fcbf._require_few_values(np.array([3, 32767]), 5)
    with pytest.raises(ValueError, match="Got 32768 in column 6"):
        fcbf._require_few_values(np.array([3, 32768, 40000]), 5)
    assert [zeronorm.FCBF(bins=bins)._bin_rule() for bins in (None, "mdl", 4)] == [
        fcbf.AS_THEY_ARE,
        fcbf.SUPERVISED,
        4,
    ]


def test_a_relevance_at_the_threshold_is_none():
    """Two columns that know nothing of each other: 1, 4, 7 and 9 of ten in each cell are of the second class."""
    X = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 10, axis=0)
    y = np.concatenate([np.arange(10) < count for count in (1, 4, 7, 9)]).astype(int)
    scores = zeronorm.FCBF(bins=None).fit(X, y).scores_
    assert scores[0] > scores[1] > 0.0
    for threshold, size in ((scores[1], 1), (np.nextafter(scores[1], 0.0), 2)):
        assert zeronorm.FCBF(bins=None, threshold=float(threshold)).fit(X, y).path_.own_size == size


def test_equal_relevance_is_decided_by_the_second_score():
    relevance = np.array([0.5, 0.7, 0.5 + 1e-14, 0.7 - 1e-9, 0.5])
    found = fcbf._ranks(relevance, np.array([1.0, 0.0, 3.0, 9.0, 2.0]))
    assert found.tolist() == [4, 0, 2, 1, 3]


# -- Rules --


@pytest.mark.parametrize(
    ("rule", "values", "accepted"),
    [
        (gram_schmidt.ProbeStop(0.25, None), [0.1, 0.25, 0.26, 0.1], [True, True, False, False]),
        (gram_schmidt.FisherStop(0.25), [0.25, 0.3, 0.0], [True, False, False]),
        (gram_schmidt.SizeStop(), [0.9, 0.1, 0.0], [True, True, True]),
    ],
)
def test_rules_go_on_up_to_their_level_and_never_after_a_refusal(rule, values, accepted, monkeypatch):
    coming = iter(values)
    monkeypatch.setattr(rule, "_value", lambda search, column: next(coming))
    assert [rule.judge(None, 0) for _ in values] == accepted
    assert (rule.values, rule.n_accepted) == (values, sum(accepted))


def test_the_leave_one_out_rule_goes_on_while_the_error_falls():
    errors = {None: 5.0, 0: 4.0, 1: 4.0, 2: 1.0}
    search = SimpleNamespace(leave_one_out_error=lambda column=None: errors[column])
    rule = gram_schmidt.LeaveOneOutStop()
    assert [rule.judge(search, column) for column in (0, 1, 2)] == [True, False, False]
    assert (rule.values, rule.n_accepted) == ([4.0, 4.0, 1.0], 1)


def test_values_of_the_rules():
    search = SimpleNamespace(scores=np.array([0.2, 0.5]), dimension=9, target_rank=1, n_candidates=4)
    size = gram_schmidt.SizeStop()
    assert size._value(search, 1) == 0.5
    tail = gram_schmidt.FisherStop(0.1)._value(search, 1)
    assert tail == pytest.approx(float(gram_schmidt.probe_tail(0.5, 9, 1)))
    plain, best = gram_schmidt.ProbeStop(0.1, None), gram_schmidt.ProbeStop(0.1, "max")
    assert [plain._value(search, 1), plain._value(search, 1)] == pytest.approx(
        [tail, tail + tail * (1 - tail)]
    )
    assert best._value(search, 1) == pytest.approx(1 - (1 - tail) ** 4)


def known_ranker(as_itself):
    ranker = KnownRanker.__new__(KnownRanker)
    ranker.refits, ranker.stands_in_as_itself = "refits", as_itself
    return ranker


@pytest.mark.parametrize(
    ("scoring", "as_itself", "is_known"),
    [
        (None, False, True),
        ("f1", False, True),
        ("roc_auc", False, False),
        ("roc_auc", True, True),
        (len, True, False),
    ],
)
def test_models_that_only_predict_serve_scores_of_predictions(scoring, as_itself, is_known, monkeypatch):
    ranker = known_ranker(as_itself)
    monkeypatch.setattr(RFECV, "_ranker", lambda self, X, y, fit_params: ranker)
    found = RFECV(LogisticRegression(), scoring=scoring)._scored_ranker(None, None, {})
    assert found is (ranker if is_known else "refits")


@pytest.mark.parametrize(
    ("gain", "sizes", "n_splits", "is_told"),
    [
        ([0.2, 0.2, 0.2], (2, 50, 51), 3, True),
        ([0.06, 0.06, 0.06], (2, 50, 51), 3, True),
        ([0.04, 0.04, 0.04], (2, 50, 51), 3, False),
        ([0.1, 0.2, 0.3], (2, 50, 51), 3, True),  # 3.5 standard errors
        ([0.05, 0.2, 0.3], (2, 50, 51), 3, False),  # 2.5 of them
        ([0.2, 0.2, 0.2], (51, 60, 70), 3, False),
        ([0.2], (2, 50, 51), 1, False),
    ],
)
def test_curves_are_told_of_where_they_are_clearly_better(gain, sizes, n_splits, is_told, monkeypatch):
    @np.vectorize
    def chosen(fold, size):
        return 0.5 if size <= 50 else 9.0

    class Plan(SimpleNamespace):
        pass

    monkeypatch.setattr(auto, "replace", lambda plan, **given: Plan(**given))
    asked = []

    def score_folds(self, plan, ranked, splits, progress):
        asked.append((plan.sizes, [list(paths) for paths in ranked]))
        return {"relief": 0.5 + np.asarray(gain)[splits][:, None] + np.zeros((1, len(plan.sizes)))}, {}

    monkeypatch.setattr(auto.AutoSelector, "_score_folds", score_folds)
    splits = list(range(n_splits))
    scores = chosen(np.arange(n_splits)[:, None], np.asarray(sizes))
    ranked = [{"relief": None, "fisher": None}] * n_splits
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        auto.AutoSelector()._warn_of_curves(Plan(sizes=sizes), ranked, splits, scores)
    assert bool(caught) is is_told
    if sizes[0] == 2 and n_splits > 1:
        assert asked == [((size,), [["relief"]]) for size in (2, 50) for _ in range(n_splits)]
    else:
        assert asked == []
    if is_told:
        mean = 0.5 + np.mean(gain)
        assert f"(mean score {mean:.2f})" in str(caught[0].message)
        assert "(0.50)" in str(caught[0].message)


# -- Margins, corrections, factors --


def test_flips_are_made_where_they_raise_the_margins():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 5)) + 2.0 * y[:, None] * [1.0, 0.0, 1.0, 0.0, 0.0]
    flips = gflip._Flips(problem_of(y, X, always_keep=np.array([3])), gflip.LINEAR, 1.0)
    assert flips.member.tolist() == [False, False, False, True, False]

    def margin(member):
        distances = np.sqrt(((X[:, None] - X)[:, :, member] ** 2).sum(axis=2)) + np.diag([INF] * 20)
        same = y[:, None] == y
        nearest = (np.where(kind, distances, INF).min(axis=1) for kind in (~same, same))
        return 0.5 * float(np.subtract(*nearest).sum())

    assert flips.round(np.arange(5), change=False) == 0
    assert flips.margin == pytest.approx(margin(flips.member))
    for column in (0, 1, 2, 4):
        member = flips.member.copy()
        member[column] = True
        assert flips.after[column] == pytest.approx(margin(member))
    path = flips.path()
    assert path.own_size == 1
    gain = flips.after - flips.margin
    np.testing.assert_allclose(path.scores[[0, 1, 2, 4]], gain[[0, 1, 2, 4]])
    assert path.scores[3] == pytest.approx(gain[[0, 1, 2, 4]].max())  # as good as the best of the others
    member, n_flips = flips.member.copy(), 0
    for column in (4, 2, 0, 1):
        other = member.copy()
        other[column] ^= True
        if margin(other) > margin(member) + 1e-10:
            member, n_flips = other, n_flips + 1
    assert flips.round(np.array([4, 2, 3, 0, 1]), change=True) == n_flips > 0
    assert flips.member.tolist() == member.tolist()
    assert flips.margin == pytest.approx(margin(member))
    inside = [column for column in (0, 1, 2, 4) if member[column]]
    flips.round(np.arange(5), change=False)
    np.testing.assert_allclose(flips.path().scores[inside], flips.margin - flips.after[inside])


@pytest.mark.parametrize("power", [2.0, 3.5])
def test_norms_of_rows_in_any_storage(power):
    X = np.round(noise(6, 4)) * (noise(6, 4, 1) > 0.0)
    shift = np.array([0.5, -1.0, 0.0, 2.0])
    rows = perceptron_rfe.SparseRows(sparse.csr_array(X), shift)
    wanted = np.linalg.norm(X - shift, power, axis=1)
    np.testing.assert_allclose(rows.norms(power), wanted)
    np.testing.assert_allclose(perceptron_rfe.row_norms(X - shift, power), wanted)
    w = np.array([1.0, 2.0, -1.0, 0.5])
    np.testing.assert_allclose(rows @ w, (X - shift) @ w)
    assert rows.shape == (6, 4)


@pytest.mark.parametrize(("p", "power"), [(2, 2.0), (7, 2.0), (21, np.log(21)), (40, np.log(40))])
def test_the_power_of_a_perceptron_follows_the_features_that_are_left(p, power):
    problem = problem_of([0, 1, 0, 1], noise(4, p))
    machines = perceptron_rfe.PerceptronMachines(problem, 0.5, None, 3)
    assert machines.power == pytest.approx(power)
    assert perceptron_rfe.PerceptronMachines(problem, 0.5, 2.5, 3).power == 2.5
    machines.remove(np.array([0]))
    assert machines.alive.tolist() == list(range(1, p))


def test_how_many_weights_a_margin_pays_for():
    problem = problem_of([0, 1, 0, 1], noise(4, 4))
    machines = perceptron_rfe.PerceptronMachines(problem, 0.5, 2.0, 3)
    machines.solution = SimpleNamespace(margin=2.0, weights=np.array([0.3, -0.2, 0.1, 0.4, 9.0]))
    # With power 2 the budget is (a (1 - a) margin)² = 1/4.
    assert machines.n_affordable(np.array([0.3, 0.4, 0.5])) == 2
    assert machines.n_affordable(np.array([0.3, 0.401, 0.5])) == 1
    np.testing.assert_allclose(machines.importance(), [0.3, 0.2, 0.1, 0.4])
    np.testing.assert_allclose(machines.group_importance(np.array([0, 1, 1, 0])), [0.5, 0.05**0.5])
    machines.solution.margin = -1.0
    assert machines.n_affordable(np.array([0.0, 1e-9])) == 1
    machines.fixed_power = 3.0  # q = 3/2, and the values are |w|^(1/2)
    np.testing.assert_allclose(machines.importance(), np.sqrt([0.3, 0.2, 0.1, 0.4]))
    machines.solution.margin = 4.0
    assert machines.n_affordable(np.array([0.5, 0.9, 0.6])) == 2


def probit(scale, penalties=(0.1, 1.0)):
    X = noise(20, 4)
    design = as_design(X)
    y = np.where(X[:, 1] > 0.0, 1.0, -1.0)
    return SparseProbit(design, y, make_kernel("linear", design=design), np.asarray(scale), penalties, 5)


def test_negligible_factors_leave_unless_the_likelihood_would_fall():
    model = probit([0.5, 1.0, 0.0009, 0.0])
    assert model.features.tolist() == [0, 1, 2]
    before = model.objective
    assert model.prune()
    assert (model.features.tolist(), model.scale.tolist()) == ([0, 1], [0.5, 1.0])
    assert model.objective == pytest.approx(model._objective(model.beta, model.bias, model.K, model.scale))
    assert model.objective >= before
    assert not model.prune()  # nothing is negligible
    falling = probit([0.5, 1.0, 0.0009, 0.0])
    falling.objective += 1.0
    assert not falling.prune()
    assert falling.features.size == 3
    empty = probit(np.zeros(4))
    assert not empty.prune()
    assert empty.climb(1e-3)


def test_factors_of_zero_take_their_columns_along():
    model = probit([0.5, 1.0, 0.25, 0.1])
    model._set_scale(np.array([0.0, 2.0, 0.0, 0.3]))
    assert (model.features.tolist(), model.scale.tolist()) == ([1, 3], [2.0, 0.3])
    Z = noise(20, 4)[:, [1, 3]] * [2.0, 0.3]
    np.testing.assert_allclose(model.K, Z @ Z.T)
    model._set_scale(np.array([1.0, 1.0]))
    assert model.features.tolist() == [1, 3]


# -- What is handed on --


def test_what_a_run_of_weights_is_made_of(monkeypatch):
    made = []

    class Run(SimpleNamespace):
        def __init__(self, *parts):
            made.append(parts)

        def go(self, progress, n_jobs):
            return "outcome"

    monkeypatch.setattr(ofw, "WeightingRun", Run)
    X, y = noise(30, 41), np.arange(30) % 2
    for params, lag in (({"batch_size": 1}, 21), ({"batch_size": 2}, 11), ({"batch_size": 5}, 10)):
        selector = OptimalFeatureWeighting(
            subset_size=2,
            learner="centroid",
            max_iter=30,
            window=7,
            checkpoint_every=50,
            random_state=0,
            **params,
        )
        problem = problem_of(y, X, classes=np.arange(2))
        selector.classes_ = problem.classes
        experiment = ofw.Experiment.of(selector, problem.design, y, problem.classes, problem.rng)
        selector._resolve_sizes(experiment)
        state = ofw.RunState(3, np.full(41, 1 / 41))
        assert selector._run_stochastic(experiment, state, problem) == (state, "outcome")
        run_state, _, _, steps, stopping, watch, max_iter, checkpoint, every = made[-1]
        assert (stopping.window, stopping.tol, stopping.first_lag) == (7, ofw.DEFAULT_TOL, lag)
        assert stopping.first_settled == steps.first_settled
        assert (run_state, max_iter, checkpoint, every) == (state, 30, None, 50)
        assert watch == ofw.CollapseWatch(2, can_go_back=True)
    selector.tol = 0.3
    selector._run_stochastic(experiment, state, problem)
    assert made[-1][4].tol == 0.3


def test_weights_and_their_history_among_all_features():
    history = SimpleNamespace(steps=np.arange(2), weights=np.array([[0.5, 0.5], [0.2, 0.8]]))
    state = SimpleNamespace(weights=np.array([0.3, 0.7]), history=history, n_redrawn=4, n_steps_back=1)
    selector = OptimalFeatureWeighting()
    selector._keep(state, SimpleNamespace(reason="because"), np.array([1, 3]), 4)
    assert selector.weights_.tolist() == [0.0, 0.3, 0.0, 0.7]
    assert selector.history_.weights.tolist() == [[0.0, 0.5, 0.0, 0.5], [0.0, 0.2, 0.0, 0.8]]
    assert (selector.n_redrawn_, selector.n_steps_back_, selector.stop_reason_) == (4, 1, "because")


def test_what_an_automatic_selector_asks_of_its_consensus(monkeypatch):
    asked = []

    class Recorder:
        def __init__(self, members, **params):
            self.members, self.params = members, params

        def fit(self, design, target, groups=None):
            asked.append((self.params, design.shape, np.asarray(target).tolist(), groups))
            return self

    monkeypatch.setattr(auto, "Consensus", Recorder)
    members = [("fisher", FisherScore()), ("relief", zeronorm.Relief())]
    problem = problem_of(
        [0, 1, 0, 1, 1],
        feature_groups=np.array([0, 0, 1]),
        always_keep=np.array([2]),
        sample_groups=np.array([5, 6, 7, 8, 9]),
    )
    target, rows = np.array(list("abcde")), np.array([1, 3])
    auto.AutoSelector()._fitted(members, problem, target, rows, 17)
    params, shape, labels, groups = asked[0]
    assert (shape, labels, groups.tolist()) == ((2, 3), ["b", "d"], [6, 8])
    assert params.pop("feature_groups") is problem.feature_groups
    assert params.pop("always_keep") is problem.always_keep
    assert params == {
        "task": "classification",
        "n_features_to_select": 1.0,
        "weights": [1.0, 0.0],
        "refine": 100,
        "random_state": 17,
    }
    given = auto.AutoSelector(selectors=("fisher", "relief"))
    given._fitted(members, replace(problem, always_keep=np.arange(0), sample_groups=None), target, rows, 17)
    params, _, _, groups = asked[1]
    assert (params["always_keep"], params["refine"], params["weights"], groups) == (None, 0, [1.0, 1.0], None)


def test_paths_of_the_methods_and_of_their_consensus():
    problem = problem_of([0, 1, 0, 1], feature_groups=None, always_keep=np.array([1]))
    whole = SelectionPath(order=np.array([2, 0, 1]), n_iter=7, converged=False, remedy="wait")
    fitted = SimpleNamespace(ranks_=np.array([[1, 2, 3], [3, 2, 1]]), path_=whole)
    members = [("a", None), ("b", None)]
    found = auto.AutoSelector()._paths(members, fitted, problem)
    assert {name: path.order.tolist() for name, path in found.items()} == {
        "a": [1, 0, 2],
        "b": [1, 2, 0],
        "consensus": [1, 2, 0],
    }
    assert {(path.n_iter, path.converged, path.remedy) for path in found.values()} == {(7, False, "wait")}
    alone = auto.AutoSelector()._paths(
        members[:1], SimpleNamespace(ranks_=fitted.ranks_[:1], path_=whole), problem
    )
    assert list(alone) == ["a"]


@pytest.mark.parametrize(("own_size", "size", "n_chosen"), [(0, None, 0), (1, None, 1), (0, 2, 2)])
def test_a_selector_that_limits_errors_may_choose_nothing(own_size, size, n_chosen):
    selector = zeronorm.ProbeSelector(FisherScore())
    path = SelectionPath.from_scores([1.0, 3.0, 2.0], own_size=own_size)
    selector._store(path.constrained(None, np.arange(0)), SimpleNamespace(n_features_to_select=size))
    assert selector.n_features_ == selector.support_.sum() == n_chosen
    expected = {0: [4, 2, 3], 1: [3, 1, 2], 2: [2, 1, 1]}[n_chosen]
    assert selector.ranking_.tolist() == expected
    selector.estimator = LogisticRegression()
    problem = problem_of([0, 1, 0, 1])
    routed = SimpleNamespace(estimator=SimpleNamespace(fit={}))
    if n_chosen:
        selector._retrain(noise(4), np.array([0, 1, 0, 1]), problem, routed)
        assert selector.estimator_.coef_.shape == (1, n_chosen)
    else:
        with pytest.raises(ValueError, match="selected no feature at level"):
            selector._retrain(noise(4), np.array([0, 1, 0, 1]), problem, routed)


@pytest.mark.parametrize(("construction", "most"), [("equicorrelated", 5000), ("sdp", 500)])
def test_how_many_features_knockoffs_are_made_of(construction, most):
    selector = zeronorm.KnockoffSelector(FisherScore(), construction=construction)
    selector._check_size(most)
    with pytest.raises(ValueError, match=f"up to {most} features"):
        selector._check_size(most + 1)


def test_features_pass_the_filter_at_the_threshold():
    varying = np.array([0, 2, 3, 4, 5])
    draws = np.array([[5.0, 4.0, 3.0, -2.5, 2.0], [5.0, 4.0, 3.0, -1.0, 2.0]])
    one = zeronorm.KnockoffSelector(FisherScore(), level=0.34)
    key, n_passing = one._filter(draws[:1], varying, 6)
    assert (key.tolist(), n_passing, one.threshold_) == ([0.0] * 6, 3, 3.0)
    none = zeronorm.KnockoffSelector(FisherScore(), level=0.1)
    assert none._filter(draws[:1], varying, 6)[1] == 0
    several = zeronorm.KnockoffSelector(FisherScore(), level=0.68, n_draws=2)
    key, n_passing = several._filter(draws, varying, 6)
    # At half the level: thresholds 3 and 2, each with no statistic below its negative.
    np.testing.assert_allclose(key, [5.0, 0.0, 5.0, 5.0, 0.0, 2.5])
    np.testing.assert_array_equal(several.e_values_, key)
    assert n_passing == 4


# -- Iterations --


def alma(X, y, power, accuracy, max_epochs):
    """ALMA of Gentile 2001, line by line: rows of unit norm, the dual weights computed afresh every time."""
    rows = X / np.linalg.norm(X, power, axis=1)[:, None]
    theta, k = np.zeros(X.shape[1]), 1

    def weights():
        length = np.linalg.norm(theta, power)
        return np.sign(theta) * np.abs(theta) ** (power - 1.0) / (length ** (power - 2.0) if length else 1.0)

    n_epochs, is_clean = 0, False
    while n_epochs < max_epochs and not is_clean:
        before = k
        for row, label in zip(rows, y, strict=True):
            if label * (weights() @ row) <= (1.0 - accuracy) * np.sqrt(8.0 * (power - 1.0) / k) / accuracy:
                theta = theta + np.sqrt(2.0 / ((power - 1.0) * k)) * label * row
                theta = theta / max(1.0, np.linalg.norm(theta, power))
                k += 1
        n_epochs, is_clean = n_epochs + 1, k == before
    length = np.linalg.norm(theta, power)
    unit = np.sign(theta) * (np.abs(theta) / length) ** (power - 1.0)
    return unit, float(np.min(y * (rows @ unit))), k - 1, n_epochs, is_clean


@pytest.mark.parametrize("power", [2.0, 3.5])
@pytest.mark.parametrize(("accuracy", "max_epochs"), [(0.5, 30), (0.9, 3)])
@pytest.mark.parametrize("is_stored", [False, True])
def test_the_large_margin_perceptron_line_by_line(power, accuracy, max_epochs, is_stored):
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    X = np.round(noise(12, 4) + 3.0 * y[:, None] * [1.0, 0.0, 0.0, 1.0]) * (noise(12, 4, 1) > -0.7)
    shift = np.array([0.5, 0.0, -0.25, 0.1])
    rows = perceptron_rfe.SparseRows(sparse.csr_array(X), shift) if is_stored else X - shift
    found = perceptron_rfe.solve_alma(rows, y, power=power, accuracy=accuracy, max_epochs=max_epochs)
    weights, margin, n_corrections, n_epochs, is_clean = alma(X - shift, y, power, accuracy, max_epochs)
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    assert found.margin == pytest.approx(margin, abs=1e-9)
    assert (found.n_corrections, found.n_epochs, found.is_clean) == (n_corrections, n_epochs, is_clean)


class Falling:
    """A model that loses features at known iterations and comes to rest."""

    def __init__(self, rises, leaving):
        self.rises, self.leaving = iter(rises), leaving
        self.features, self.objective, self.n_steps, self.n_climbs = np.arange(4), -10.0, 0, 0

    @property
    def scale(self):
        return 1.0 + self.features + 0.1 * self.n_steps

    def step(self):
        self.n_steps += 1
        rise = next(self.rises)
        self.objective += rise
        return rise

    def prune(self):
        gone = self.leaving.get(self.n_steps)
        self.features = self.features[self.features != gone] if gone is not None else self.features
        return gone is not None

    def climb(self, tol):
        self.n_climbs += 1
        self.objective += 1.0
        return True


def test_an_iteration_ends_where_nothing_rises_and_nothing_leaves():
    """A rise of 0.009 or less at an objective of about -8 with the tolerance 0.001."""
    selector = zeronorm.JCFO(tol=1e-3, max_iter=9)
    model = Falling([1.0, 1.0, 0.001, 0.02, 0.008], {1: 0, 3: 3})
    left_at, converged = selector._iterate(model, problem_of([0, 1], noise(2, 4)))
    assert (converged, model.n_steps, model.n_climbs) == (True, 5, 1)
    np.testing.assert_allclose(np.diff(selector.objective_), [1.0, 1.0, 0.001, 0.02, 0.008, 1.0])
    scale = np.array([1.0, 2.5, 3.5, 4.2])
    np.testing.assert_allclose(left_at, (np.array([1, 6, 6, 3]) + scale / (1.0 + scale)) / 7.0)
    short = zeronorm.JCFO(tol=1e-3, max_iter=2)
    model = Falling([1.0, 1.0], {1: 0})
    left_at, converged = short._iterate(model, problem_of([0, 1], noise(2, 4)))
    assert (converged, model.n_climbs, len(short.objective_)) == (False, 0, 3)
    scale = np.array([1.0, 2.1, 3.1, 4.1])
    np.testing.assert_allclose(left_at, (np.array([1, 2, 2, 2]) + scale / (1.0 + scale)) / 3.0)


def growth_of(penalty_l1, penalty_l0=0.0):
    X, y = noise(20, 3), noise(20, 1, 1)[:, 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    objective = grafting.PenalizedLoss(
        grafting.LOSSES["squared_error"], y, np.full(20, 0.05), penalty_l1, 0.0
    )
    return grafting._Growth(as_design(X), objective, penalty_l0, 1e-9), X, y


def test_a_model_grows_by_the_steepest_feature_while_that_pays():
    growth, X, y = growth_of(0.0)
    slope = X.T @ (y - y.mean()) / 20
    np.testing.assert_allclose(np.abs(growth.gradient) / np.abs(slope), growth.gradient[0] / -slope[0])
    steepest = np.abs(growth.gradient)
    assert growth.step()
    assert growth.active == [np.argmax(steepest)]
    weight = np.linalg.lstsq(X[:, growth.active], y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(growth.model.w, weight, atol=1e-7)
    path = growth.path()
    rest = np.abs(growth.gradient) / np.abs(growth.gradient).max()
    rest[growth.active] = 2.0
    assert path.order.tolist() == np.argsort(-rest).tolist()
    assert (path.own_size, path.n_iter, path.converged) == (1, 1, True)
    np.testing.assert_allclose(path.objective, [growth.model.value])
    highest = float(steepest.max())
    assert not growth_of(highest * 1.0001)[0].step()  # the penalty holds it back
    assert growth_of(highest * 0.9999)[0].step()
    gain = growth_of(0.0)[0].model.value - growth.model.value
    assert not growth_of(0.0, 1.001 * gain)[0].step()  # a feature costs more than it gains
    assert growth_of(0.0, 0.999 * gain)[0].step()


# -- Programs and prices --


@pytest.mark.parametrize(
    ("params", "price", "is_correlated"),
    [
        ({}, 1.0, True),
        ({}, INF, False),
        ({"norm": "l1"}, 1.0, False),
        ({"scaling": "paper"}, 1.0, False),
        ({"start": "equal"}, 1.0, False),
        ({"start": "correlation", "norm": "l1"}, INF, True),
    ],
)
@pytest.mark.parametrize(
    ("multi_class", "pairing"), [("coupled", "one_vs_rest"), ("one_vs_one", "one_vs_one")]
)
def test_where_rescaling_starts(params, price, is_correlated, multi_class, pairing, monkeypatch):
    asked = []
    monkeypatch.setattr(arom, "correlated_start", lambda *given: asked.append(given))
    selector = zeronorm.AROM(multi_class=multi_class, **params)
    selector.C_ = price
    assert selector._start("problem", "units", 3) is None
    assert asked == ([("problem", "units", pairing, 3)] if is_correlated else [])


def test_supports_of_programs_in_the_order_of_their_end():
    def program(size):
        return SimpleNamespace(size=np.asarray(size))

    steps = [program([4.0, 2.0, 1.0, 0.0]), program([0.0, 1.0, 2.0, 1e-12])]
    path = fsv._path_of_programs(steps, np.array([1.0, 1.0, 1.0, 0.5]), False)
    np.testing.assert_allclose(path.scores, [1.5, 2.25, 2.5, 0.25])
    assert path.order.tolist() == [2, 1, 0, 3]
    assert (path.own_size, path.n_iter, path.converged) == (2, 2, False)
    nothing = fsv._path_of_programs([program(np.zeros(4))], np.array([1.0, 4.0, 2.0, 0.0]), True)
    np.testing.assert_allclose(nothing.scores, [0.125, 0.5, 0.25, 0.0])
    assert (nothing.own_size, nothing.converged) == (0, True)


def test_settings_that_a_checkpoint_must_agree_on(monkeypatch):
    monkeypatch.setattr(ofw, "Checkpoint", lambda path, settings: (path, settings))
    monkeypatch.setattr(ofw, "data_digest", lambda design, codes: f"{design} {codes}")
    experiment = SimpleNamespace(describe=lambda: {"learner": "a"}, codes="codes")
    steps, state = SimpleNamespace(describe=lambda: {"step_size": 2.0}), SimpleNamespace(seed=5)
    selector = OptimalFeatureWeighting(checkpoint="file", noise=0.3, tol=0.1, window=4)
    selector.batch_size_, selector.max_iter_ = 6, 70
    path, settings = selector._open_checkpoint(experiment, steps, state, "design")
    assert path == "file"
    assert settings == {
        "learner": "a",
        "step_size": 2.0,
        "method": selector.method,
        "noise": 0.3,
        "batch_size": 6,
        "tol": 0.1,
        "window": 4,
        "max_iter": 70,
        "data": "design codes",
    }
    selector.random_state = 0
    assert selector._open_checkpoint(experiment, steps, state, "design")[1]["seed"] == 5
    selector.checkpoint = None
    assert selector._open_checkpoint(experiment, steps, state, "design") is None


@pytest.mark.parametrize(
    ("selectors", "is_sparse", "has_gaps"),
    [
        (("fisher", "golub"), True, False),
        (("relief",), True, True),
        (("relief", "fisher"), True, False),
        (("interval", "fisher"), False, False),
    ],
)
def test_a_choice_takes_what_all_its_methods_take(selectors, is_sparse, has_gaps):
    selector = auto.AutoSelector(selectors=selectors)
    assert (selector._accepts_sparse, selector._allow_nan) == (is_sparse, has_gaps)


def known_path():
    return auto.KnownPath(SelectionPath(order=np.arange(3)))


def test_methods_are_configured_as_the_whole():
    selector = auto.AutoSelector(task="regression", always_keep=[1], feature_groups=[0, 0, 1])
    copy = selector._configured(zeronorm.LassoSelector(n_alphas=5))
    assert (copy.task, copy.always_keep, copy.feature_groups, copy.n_alphas) == (
        "regression",
        [1],
        [0, 0, 1],
        5,
    )
    with pytest.raises(ValueError, match="'feature_groups' parameter of AutoSelector needs methods"):
        selector._configured(known_path())
    assert isinstance(auto.AutoSelector()._configured(known_path()), auto.KnownPath)
    classes = problem_of([0, 1, 2, 0], task="multiclass", classes=np.arange(3))
    both = auto.AutoSelector(selectors=("golub", "fisher", ("own", known_path())))
    assert [name for name, _ in both._candidates(classes)] == ["fisher", "own"]
    with pytest.raises(ValueError, match=r"holds no method for a multiclass target\. Got \['golub'\]"):
        auto.AutoSelector(selectors=("golub",))._candidates(classes)


# -- Repairs of a path --


def test_a_path_is_repaired_from_the_first_step_that_is_wrong(monkeypatch):
    X, y = as_design(np.eye(4)), np.array([8.0, -4.0, 2.0, 1.0])

    def at(penalty):
        weights = np.sign(y) * np.maximum(np.abs(y) - penalty, 0.0)
        return LassoStep.of(penalty, np.arange(4), weights)

    right = [at(penalty) for penalty in (8.0, 4.0, 2.0, 1.0)]
    wrong = [*right[:2], *(LassoStep(s.penalty, s.columns[1:], s.weights[1:]) for s in right[2:])]
    monkeypatch.setattr(lasso, "follow_lasso_path", lambda X, pull, **limits: wrong)
    steps, optimal = zeronorm.LassoSelector(task="regression")._path_of_one_target(X, y[:, None], y, 9)
    assert optimal
    assert [step.penalty for step in steps] == [8.0, 4.0, 2.0, 1.0]
    for found, wanted in zip(steps, right, strict=True):
        assert found.columns.tolist() == wanted.columns.tolist()
        np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-9)
    monkeypatch.setattr(lasso, "follow_lasso_path", lambda X, pull, **limits: right)
    same, optimal = zeronorm.LassoSelector(task="regression")._path_of_one_target(X, y[:, None], y, 9)
    assert (same, optimal) == (right, True)


def test_a_bound_beyond_the_grid_ends_at_the_smallest_penalty():
    y = np.array([80.0, -40.0, 20.0, 10.0])[:, None]
    steps = lasso._grid_path(as_design(np.eye(4)), y, 3, 1e6, 9)
    np.testing.assert_allclose(
        [step.penalty for step in steps], 80.0 * np.array([1.0, 10.0**-1.5, 1e-3, 1e-6])
    )
    assert lasso._joining(np.array([1.0, 2.0, 1.0 + 1e-9]), 1.0, np.arange(0)).tolist() == [1, 2]


@pytest.mark.parametrize("cls", [zeronorm.Relief, zeronorm.GramSchmidtRelief])
def test_the_order_of_columns_matters_where_neighbours_are_kept_apart(cls):
    assert not cls()._depends_on_column_order
    assert cls(min_separation=2)._depends_on_column_order
    assert zeronorm.IntervalSelector()._depends_on_column_order
