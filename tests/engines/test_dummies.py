"""Virtual dummies, forward paths among them, and the estimate of false discoveries."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import lars_path

from zeronorm.design import DenseDesign
from zeronorm.engines import _virtual_dummies as virtual
from zeronorm.engines._dummy_calibration import (
    Calibration,
    Round,
    best_selection,
    deflated_occurrences,
    false_shares,
    most_relevant,
    occurrence_table,
    voting_levels,
    widest,
)
from zeronorm.engines._dummy_paths import DUMMY, DummyExperiment, LeastAngleExperiment, advance
from zeronorm.engines._dummy_relevance import MOST_CANDIDATES, relevance_probabilities
from zeronorm.engines._dummy_screening import (
    ForwardData,
    common_factors,
    principal_components,
    run_on_working_set,
)
from zeronorm.engines._inclusion import SLABS, inclusion_probabilities
from zeronorm.engines._virtual_dummies import DummyPool, UniformDummies

N, P = 60, 40


def centred(n):
    return np.full((n, 1), n**-0.5)


def problem(n=N, p=P, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X[:, :4].sum(axis=1) + 2 * rng.normal(size=n)
    X -= X.mean(axis=0)
    y -= y.mean()
    return X / np.linalg.norm(X, axis=0), y / np.linalg.norm(y)


def begun(kind, X, y, n_dummies, seed=0):
    pool = DummyPool(UniformDummies(centred(y.size)), n_dummies, np.random.default_rng(seed))
    return kind(X, X.T @ y, y, pool)


# -- paths -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Regressors in active set degenerate")
def test_the_least_angle_path_is_that_of_scikit_learn_on_features_and_dummies():
    X, y = problem()
    one = begun(LeastAngleExperiment, X, y, 30)
    advance([one], X, 8)
    alphas, active, _ = lars_path(np.column_stack([X, one.pool.first]), y, method="lar")
    steps = len(one.entered)
    assert one.n_dummies == 8
    assert [j if j < P else DUMMY for j in active[:steps]] == one.entered
    np.testing.assert_allclose(one.bounds, alphas[:steps] * N, rtol=1e-8)


def test_the_orthogonal_path_refits_after_every_step():
    X, y = problem()
    one = begun(DummyExperiment, X, y, 30)
    advance([one], X, 5)
    both = np.column_stack([X, one.pool.first])
    entered = []
    for step in one.entered:
        fit = np.linalg.lstsq(both[:, entered], y, rcond=None)[0] if entered else np.empty(0)
        best = int(np.argmax(np.abs(both.T @ (y - both[:, entered] @ fit))))
        entered.append(best)
        assert step == (best if best < P else DUMMY)


@pytest.mark.parametrize("kind", [DummyExperiment, LeastAngleExperiment])
def test_virtual_dummies_enter_as_explicit_ones_do(kind, monkeypatch):
    X, y = problem()
    found = {}
    for all_drawn in (0, 10**9):
        monkeypatch.setattr(virtual, "ALL_DRAWN", all_drawn)
        found[all_drawn] = []
        for seed in range(300):
            one = begun(kind, X, y, 2000, seed + all_drawn % 7919)
            advance([one], X, 3)
            first = [b for b, j in zip(one.bounds, one.entered, strict=True) if j == DUMMY][:3]
            found[all_drawn].append([*first, len(one.entered)])
    for lazy, explicit in zip(np.transpose(found[0]), np.transpose(found[10**9]), strict=True):
        assert stats.ks_2samp(lazy, explicit).pvalue > 1e-3


def test_all_hidden_dummies_are_found_in_a_zone_that_holds_all():
    pool = DummyPool(UniformDummies(centred(N)), 700, np.random.default_rng(0))
    drawn = pool.reveal(problem()[1], 0.0)
    assert drawn.shape == (N, 700)
    assert pool.n_hidden == 0
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=0), 1.0)
    np.testing.assert_allclose(drawn.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("bound", [0.15, 0.35])
def test_dummies_in_a_zone_are_distributed_as_explicit_ones_there(bound):
    rng = np.random.default_rng(3)
    residual = rng.normal(size=64)
    residual = (residual - residual.mean()) / np.linalg.norm(residual - residual.mean())
    shape = UniformDummies(centred(64))
    explicit = shape.draw(60_000, rng)
    products = residual @ explicit
    inside = np.abs(products) >= bound
    drawn = shape.draw_zone(residual, bound, 60_000, 1.0, rng)
    assert abs(drawn.shape[1] - inside.sum()) < 4 * np.sqrt(2 * inside.sum())
    assert np.abs(residual @ drawn).min() >= bound * (1 - 1e-9)
    assert stats.ks_2samp(residual @ drawn, products[inside]).pvalue > 1e-3


# -- the working set -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DummyExperiment, LeastAngleExperiment])
def test_no_column_outside_the_working_set_could_have_entered(kind, monkeypatch):
    from zeronorm.engines import _dummy_screening as screening

    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 600))
    X[:, 7] = X[:, 3] + 0.5 * X[:, 7]
    y = 3 * X[:, 3] - 3 * X[:, 7] + X[:, 11] + 0.3 * rng.normal(size=80)  # column 3 hides behind column 7
    data = ForwardData(DenseDesign(X).standardized(), centred(80), y - y.mean())

    monkeypatch.setattr(screening, "FIRST_COLUMNS", 5)
    monkeypatch.setattr(screening, "MOST_NUMBERS", 0)
    last, sizes = [], []

    def run(columns, chosen):
        pools = [
            DummyPool(UniformDummies(centred(80)), 600, np.random.default_rng(seed)) for seed in range(4)
        ]
        last[:] = [kind(columns, data.products[chosen], data.target, pool) for pool in pools]
        advance(last, columns, 8)
        sizes.append(chosen.size)
        return last

    chosen = run_on_working_set(data, run)
    assert 5 == sizes[0] < sizes[-1] == chosen.size < 600  # the first working set was not enough
    every = data.columns(np.arange(600))
    for one in last:
        for residual, bound in zip(one.residuals, one.bounds, strict=True):
            assert np.abs(residual @ every).max() <= bound * (1 + 1e-6)


# -- the estimate ----------------------------------------------------------------------------------------


def test_deflated_occurrences_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    table = np.cumsum(rng.random((30, 3)) * 0.3, axis=1)
    p, n_dummies = 200, 400
    expected = np.zeros(30)
    for j in range(30):
        for t in range(3):
            step = table[:, t] - (table[:, t - 1] if t else 0.0)
            voted = sum(step[i] for i in range(30) if table[i, 2] > 0.5)
            expected[j] += (1 - (p - table[:, t].sum()) / (n_dummies - t) / voted) * step[j]
    np.testing.assert_allclose(deflated_occurrences(table, p, n_dummies), expected)
    votes = voting_levels(20)
    np.testing.assert_allclose(votes, np.arange(0.5, 0.96, 0.05))
    shares = false_shares(table[:, -1], expected, votes)
    above = table[:, -1] > votes[0]
    assert shares[0] == pytest.approx(min(1.0, np.mean(1 - expected[above])))


def test_occurrences_count_the_features_before_each_dummy():
    X, y = problem()
    experiments = [begun(DummyExperiment, X, y, 40, seed) for seed in range(4)]
    advance(experiments, X, 2)
    table = occurrence_table(experiments, P, 2)
    for t in range(2):
        counts = np.zeros(P)
        for one in experiments:
            end = [i for i, j in enumerate(one.entered) if j == DUMMY][t]
            counts[[j for j in one.entered[:end] if j != DUMMY]] += 1
        np.testing.assert_allclose(table[:, t], counts / 4)


def made_rounds():
    votes = np.array([0.5, 0.75])
    first = Round(1, 10, np.array([0.9, 0.8, 0.6]), np.array([0.97, 0.93, 0.2]), votes)
    second = Round(2, 10, np.array([0.9, 0.9, 0.9]), np.array([0.95, 0.95, 0.83]), votes)
    return [first, second]


def test_the_best_selection_has_most_within_the_level():
    rounds = made_rounds()
    np.testing.assert_allclose(rounds[0].false_share, [0.3, 0.05])
    np.testing.assert_allclose(rounds[1].false_share, [0.09, 0.09])
    for level, expected in ((0.1, (rounds[1], 0.75, 3, 0.09)), (0.06, (rounds[0], 0.75, 2, 0.05))):
        found = best_selection(rounds, level)
        assert (found.round, found.vote, found.kept.size) == expected[:3]
        assert found.false_share == pytest.approx(expected[3])
        assert np.array_equal(np.flatnonzero(found.q_values <= level), found.kept)
    assert best_selection(rounds, 0.01).kept.size == 0
    assert best_selection(rounds, 0.01).q_values.min() == pytest.approx(0.05)


def test_two_paths_are_joined_by_the_larger_occurrences():
    rounds = made_rounds()
    other = Round(1, 40, np.array([0.1, 1.0, 0.7]), np.array([0.0, 0.99, 0.5]), rounds[0].votes)
    joined = widest([rounds, [other]])
    assert (joined.stop_after, joined.n_dummies) == (2, 10)
    assert joined.occurrences.tolist() == [0.9, 1.0, 0.9]
    assert joined.deflated.tolist() == [0.95, 0.99, 0.83]


def test_dummies_become_more_until_the_estimate_is_within_the_level():
    X, y = problem(seed=2)
    calls = []

    def start(multiple):
        calls.append(multiple)
        return [begun(DummyExperiment, X, y, multiple * P, (multiple, seed)) for seed in range(10)]

    rounds = Calibration(P, 0.05, range(1, 7), 30).rounds(start, X)
    assert calls == list(range(1, calls[-1] + 1))
    assert rounds[0].n_dummies == calls[-1] * P
    assert calls[-1] == 6 or rounds[0].at_reference() <= 0.05


# -- relevance ------------------------------------------------------------------------------------------


def unit(X):
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=0)


def enumerated(X, y, n, n_features):
    """The probabilities by a sum over all models, each with its own fit."""
    m = X.shape[1]
    logs, members = [], []
    for size in range(m + 1):
        count = np.log(size + 1) + sum(np.log((n_features - i) / (i + 1)) for i in range(size))
        for chosen in combinations(range(m), size):
            own = X[:, list(chosen)]
            for tau_sq in SLABS * n:
                covariance = np.eye(len(y)) + tau_sq * own @ own.T  # of y, in units of the noise
                log_det = np.linalg.slogdet(covariance)[1]
                rest = y @ np.linalg.solve(covariance, y)
                logs.append(-0.5 * log_det - 0.5 * n * np.log(rest) - count)
                members.append(np.isin(np.arange(m), chosen))
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(members) / weights.sum()


@pytest.mark.parametrize("start", [[], [1, 2]])
def test_inclusion_probabilities_are_those_of_all_models(start):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 7))
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=40)
    X[:, 2] = X[:, 0] + X[:, 3] + 0.5 * rng.normal(size=40)
    X = unit(X)
    y = unit((3 * X[:, [0]] + 2 * X[:, [3]] + 1.5 * X[:, [6]]) + 0.35 * rng.normal(size=(40, 1)))[:, 0]
    found = inclusion_probabilities(X, y, 40.0, 30, np.array(start, dtype=int), np.random.default_rng(1))
    wanted = enumerated(X, y, 40.0, 30)
    assert np.ptp(wanted) > 0.8
    assert np.abs(found - wanted).max() < 0.05


def correlated(rng, n=80, p=20):
    """Columns in blocks of five, correlated by 0.7, of unit length."""
    shared = np.repeat(rng.normal(size=(n, p // 5)), 5, axis=1)
    return unit(np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.normal(size=(n, p)))


def test_relevance_is_calibrated_on_data_of_its_model():
    """Among columns with a probability near w a share of about w is relevant."""
    rng = np.random.default_rng(0)
    prior = 1.0 / np.arange(1, 22)
    weights, hits = [], []
    for _ in range(80):
        X = correlated(rng)
        relevant = rng.permutation(20)[: rng.choice(21, p=prior / prior.sum())]
        effects = rng.normal(size=relevant.size) * np.sqrt(rng.choice(SLABS[:6]) * 79)
        y = X[:, relevant] @ effects + rng.normal(size=80)
        weights.append(relevance_probabilities(X, y - y.mean(), 79.0, 20, np.arange(0), rng))
        hits.append(np.isin(np.arange(20), relevant))
    weights, hits = np.concatenate(weights), np.concatenate(hits)
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        inside = (weights > low) & (weights <= high)
        assert inside.sum() > 40
        assert abs(hits[inside].mean() - weights[inside].mean()) < 3 * np.sqrt(0.25 / inside.sum())


def test_copies_share_their_relevance_and_few_samples_show_none():
    X = correlated(np.random.default_rng(0))
    X = np.column_stack([X, X[:, 0]])
    rng = np.random.default_rng(2)
    noise = rng.normal(size=80)
    for size in (0.0, 0.01, 0.3):
        y = 4 * X[:, 0] + size * (noise - noise.mean())
        shares = relevance_probabilities(X, y, 79.0, 21, np.array([0]), rng)
        assert np.abs(shares[[0, 20]] - 0.5).max() < 0.15
        assert shares[1:20].max() < 0.2
    assert (relevance_probabilities(X, y, 1.0, 21, np.array([0]), rng) == 0).all()


def test_candidates_hold_what_may_stand_for_an_entered_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 900))
    X[:, 5] = X[:, 700] + 0.5 * rng.normal(size=60)  # hidden behind the effect of column 1
    X = unit(X)
    y = 10 * X[:, 1] + X[:, 700]
    found = relevance_probabilities(X, y, 59.0, 900, np.array([1, 5]), rng)
    assert np.count_nonzero(found) == MOST_CANDIDATES
    assert (found[[1, 700]] > 0.9).all()
    assert found[5] < 0.1


def test_the_most_relevant_are_kept_within_the_level():
    one = Round(2, 40, np.array([1.0, 0.9, 0.5, 0.8, 0.6]), np.ones(5), voting_levels(10))
    found = most_relevant(one, np.array([0.95, 0.7, 1.0, 0.45, 0.9]), 0.2)
    assert found.kept.tolist() == [
        0,
        1,
        4,
    ]  # the third did not enter often enough, the fourth is rather irrelevant
    assert found.false_share == pytest.approx((0.05 + 0.1 + 0.3) / 3)
    assert found.q_values.tolist() == pytest.approx([0.05, 0.15, 1.0, 1.0, 0.075])
    assert most_relevant(one, np.array([0.95, 0.7, 1.0, 0.45, 0.9]), 0.04).kept.size == 0


# -- common factors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30, 90), (90, 30)])
def test_principal_components_come_from_the_smaller_side(shape):
    X = np.random.default_rng(0).normal(size=shape)
    X[:, 3] = X[:, 4]
    X -= X.mean(axis=0)
    values, vectors = principal_components(DenseDesign(X), 5)
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(values[:5], singular[:5] ** 2)
    np.testing.assert_allclose(np.abs(left[:, :5].T @ vectors), np.eye(5), atol=1e-8)
    assert principal_components(DenseDesign(X), 60)[1].shape[1] == 29


def test_common_factors_are_found_where_many_columns_share_them():
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(100, 2))
    noise = rng.normal(size=(100, 300))
    shared = factors @ rng.normal(size=(2, 300)) + noise
    found = common_factors(DenseDesign(shared).standardized())
    assert found.shape == (100, 2)
    inside = found @ (found.T @ (factors - factors.mean(axis=0)))
    assert np.linalg.norm(inside) > 0.97 * np.linalg.norm(factors - factors.mean(axis=0))
    block = noise.copy()
    block[:, :10] += 3 * factors[:, :1]  # a few columns: not a factor that all share
    for X in (noise, block):
        assert common_factors(DenseDesign(X).standardized()).shape == (100, 0)
