"""Gram–Schmidt Relief against projected copies of the data and plain loops."""

from __future__ import annotations

import warnings
from contextlib import nullcontext as _nothing
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import zeronorm
from oracles.relief import class_pairs, mean_hit_and_miss
from small_problems import noise, problem_of
from zeronorm import GramSchmidtRelief, Relief, as_design
from zeronorm.selectors.filters import _gram_schmidt_relief as gram_schmidt_relief
from zeronorm.selectors.filters._gram_schmidt_relief import FEW_FEATURES


def redundant(seed=0, n=36, p=9, q=3):
    """Three informative columns, near copies of them, and noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, q, n)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 3.0, p)
    X[:, :3] += 2.0 * np.outer(y, rng.normal(size=3))
    X[:, 3] = X[:, 0] + 0.05 * rng.normal(size=n)
    return X, y


def naive_steps(X, y, k, count, contrast="ratio"):
    """Choose, project every remaining column explicitly, find neighbours and score again."""
    X = (X - X.mean(0)) / X.std(0)
    chosen, values = [], []
    for _ in range(count):
        hit, miss = mean_hit_and_miss(X, list(y), k, metric="euclidean", column_scaling="none")
        with np.errstate(all="ignore"):
            score = miss / hit if contrast == "ratio" else miss - hit
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        chosen.append(best)
        values.append(score[best])
        q = X[:, best] / np.linalg.norm(X[:, best])
        X = X - np.outer(q, q @ X)
    return chosen, values


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("contrast", ["ratio", "difference"])
def test_agrees_with_the_naive_version(seed, contrast):
    X, y = redundant(seed)
    s = GramSchmidtRelief(5, n_neighbors=2, contrast=contrast).fit(X, y)
    chosen, values = naive_steps(X, y, 2, 5, contrast)
    assert s.path_.order[:5].tolist() == chosen
    np.testing.assert_allclose(s.step_scores_, values, rtol=1e-9)


def test_first_feature_is_that_of_relief():
    X, y = redundant()
    standardised = (X - X.mean(0)) / X.std(0)
    relief = Relief(1, n_neighbors=2, metric="euclidean", column_scaling="none").fit(standardised, y)
    assert GramSchmidtRelief(1, n_neighbors=2).fit(X, y).path_.order[0] == relief.path_.order[0]


def test_a_copy_is_never_chosen_after_its_original():
    X, y = redundant()
    X[:, 5] = 3.0 * X[:, 1] - 2.0
    X[:, 6] = X[:, 0] - X[:, 1]
    s = GramSchmidtRelief(X.shape[1], n_neighbors=2).fit(X, y)
    dependent = 2  # one copy and one combination
    assert len(s.step_scores_) == X.shape[1] - dependent
    kept = s.path_.order[:-dependent]
    assert np.linalg.matrix_rank(X[:, kept] - X[:, kept].mean(0)) == kept.size


def test_sparse_data():
    X, y = redundant()
    X[np.abs(X) < 0.7] = 0.0
    dense, thin = (GramSchmidtRelief(4, n_neighbors=2).fit(data, y) for data in (X, sparse.csc_array(X)))
    assert dense.path_.order.tolist() == thin.path_.order.tolist()
    np.testing.assert_allclose(thin.step_scores_, dense.step_scores_, rtol=1e-9)


def test_forced_features_are_projected_out_first():
    X, y = redundant()
    s = GramSchmidtRelief(3, n_neighbors=2, always_keep=[7]).fit(X, y)
    Z = (X - X.mean(0)) / X.std(0)
    q = Z[:, 7] / np.linalg.norm(Z[:, 7])
    Z -= np.outer(q, q @ Z)
    hit, miss = mean_hit_and_miss(Z, list(y), 2, metric="euclidean", column_scaling="none")
    score = np.divide(miss, hit, out=np.zeros_like(hit), where=np.arange(hit.size) != 7)
    assert s.path_.order[:2].tolist() == [7, int(np.argmax(score))]


def test_probe_stop_keeps_the_signal_and_its_risk_grows():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 20))
    X[:, [4, 11]] += 3.0 * (2 * y - 1)[:, None] * np.array([1.0, -1.0])
    s = GramSchmidtRelief(random_state=0, level=0.1).fit(X, y)
    assert s.support_[4] or s.support_[11]
    assert np.all(np.diff(s.risk_) >= 0)
    assert np.all(s.risk_[:-1] <= 0.1)
    assert s.support_.sum() == max(1, np.count_nonzero(s.risk_ <= 0.1))


def mean_difference(columns, pairs):
    pairs = np.asarray(pairs)
    return np.abs(columns[pairs[:, 0].astype(int)] - columns[pairs[:, 1].astype(int)]).mean(axis=0)


def plain_scores(neighbours_in, columns, y, k):
    """Ratios of plain sums over hits and misses found by brute force."""
    hits, misses = class_pairs(neighbours_in, list(y), k, np.zeros(neighbours_in.shape[1], bool), "euclidean")
    return mean_difference(columns, misses) / mean_difference(columns, hits)


@pytest.mark.filterwarnings("ignore:GramSchmidtRelief selects no feature")
@pytest.mark.parametrize("seed", [0, 1])
def test_risk_among_many_features_is_the_frequency_of_better_permuted_columns(seed):
    """A simulation with other draws and plain sums over the same neighbours gives the same share."""
    rng = np.random.default_rng(seed)
    n, p = 40, FEW_FEATURES + 1
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, p))
    s = GramSchmidtRelief(n_neighbors=3, n_probes=4000, level=0.001, random_state=seed).fit(X, y)
    Z = (X - X.mean(0)) / X.std(0)
    draws = rng.permuted(Z[:, rng.integers(0, p, 4000)], axis=0)
    share = np.mean(plain_scores(Z, draws, y, 3) >= s.step_scores_[0])
    standard_error = np.sqrt(2 * max(share * (1 - share), 1 / 4000) / 4000)
    assert abs(s.risk_[0] - share) < 4 * standard_error + 1 / (1 + s.n_probes)
    assert s.risk_[0] >= 1 / (1 + s.n_probes)  # never 0: the feature itself counts


@pytest.mark.filterwarnings("ignore:GramSchmidtRelief selects no feature")
@pytest.mark.parametrize("correction", [None, "max"])
def test_risk_among_few_features_is_the_frequency_of_better_scores_under_permuted_classes(correction):
    rng = np.random.default_rng(4)
    n, p, n_sets = 40, 6, 60
    y = (np.arange(n) < 12).astype(int)
    X = rng.normal(size=(n, p))
    s = GramSchmidtRelief(
        n_neighbors=3, correction=correction, level=0.99, n_probes=3000, random_state=0
    ).fit(X, y)
    Z = (X - X.mean(0)) / X.std(0)
    scores = np.asarray([plain_scores(Z, Z, rng.permutation(y), 3) for _ in range(n_sets)])
    if correction == "max":
        scores = scores.max(axis=1)
    frequency = np.mean(scores >= s.step_scores_[0])
    assert 0.02 < frequency < 0.98  # otherwise the comparison is meaningless
    assert abs(s.risk_[0] - frequency) < 4 * np.sqrt(frequency * (1 - frequency) * (1 / n_sets + p / 3000))


@pytest.mark.parametrize("columns", ["normal", "two values"])
def test_few_features_and_unequal_classes_keep_the_level_on_noise(columns):
    """Probes that do not take part in the search for neighbours would accept noise at four times the level."""
    rng = np.random.default_rng(3)
    n_found, n_runs = 0, 60
    for seed in range(n_runs):
        X = rng.normal(size=(40, 3)) if columns == "normal" else (rng.random((40, 4)) < 0.4).astype(float)
        y = rng.permutation((np.arange(40) < (10 if columns == "normal" else 20)).astype(int))
        s = GramSchmidtRelief(n_neighbors=2, correction="max", n_probes=200, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            n_found += s.fit(X, y).risk_[0] <= 0.1
    assert n_found <= 0.1 * n_runs + 2 * np.sqrt(0.1 * 0.9 * n_runs)


def test_the_corrected_stop_holds_its_level_on_noise():
    rng = np.random.default_rng(5)
    found = {None: 0, "max": 0}
    for seed in range(40):
        X, y = rng.normal(size=(24, 60)), rng.permutation(np.arange(24) % 2)
        for correction in found:
            s = GramSchmidtRelief(n_neighbors=2, correction=correction, level=0.1, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found[correction] += s.fit(X, y).risk_[0] <= 0.1
    assert found["max"] <= 0.1 * 40 + 2 * np.sqrt(0.1 * 0.9 * 40)
    assert found[None] > 20  # without the correction the best of sixty is mostly accepted


def test_too_few_probes_for_the_correction_are_refused():
    X, y = redundant()
    with pytest.raises(ValueError, match=r"'n_probes' parameter.*None or greater than 9/0.01"):
        GramSchmidtRelief(n_neighbors=2, correction="max", level=0.01, n_probes=300).fit(X, y)


@pytest.mark.parametrize("always_keep", [None, [4]])
def test_chosen_features_keep_their_distance(always_keep):
    X, y = redundant(p=14)
    s = GramSchmidtRelief(4, n_neighbors=2, min_separation=3, always_keep=always_keep).fit(X, y)
    free = GramSchmidtRelief(4, n_neighbors=2, always_keep=always_keep).fit(X, y)
    assert np.diff(np.flatnonzero(s.support_)).min() >= 3 > np.diff(np.flatnonzero(free.support_)).min()


def test_a_separation_of_one_has_no_effect():
    X, y = redundant()
    plain, apart = (GramSchmidtRelief(5, n_neighbors=2, min_separation=m).fit(X, y) for m in (None, 1))
    assert plain.path_.order.tolist() == apart.path_.order.tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_neighbors": 0},
        {"contrast": "sum"},
        {"correction": "min"},
        {"min_separation": 0},
        {"level": 0.0},
        {"n_probes": 10},
    ],
)
def test_bad_parameters_are_named(parameters):
    X, y = redundant()
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of GramSchmidtRelief"):
        GramSchmidtRelief(**parameters).fit(X, y)


def test_few_hits_are_reported():
    X, y = redundant()
    y = (np.arange(len(y)) > 1).astype(int)
    with pytest.warns(UserWarning, match="GramSchmidtRelief found fewer than n_neighbors=4 hits"):
        GramSchmidtRelief(2).fit(X, y)


def test_an_empty_selection_is_reported():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    with pytest.warns(UserWarning, match="selects no feature by its own rule.*raise level"):
        selector = GramSchmidtRelief(n_neighbors=3, level=1e-6, random_state=0).fit(X, y)
    assert selector.support_.sum() == 1


@pytest.mark.parametrize(
    ("shares", "correction", "n_chosen", "risk"),
    [
        ([0.1, 0.1, 0.9], None, 2, [0.1, 0.19, 0.919]),
        ([0.2, 0.5, 0.1], None, 1, [0.2, 0.6]),
        ([0.25, 0.0, 0.0, 0.5], "max", 3, [0.25, 0.25, 0.25, 0.625]),  # at the level is not beyond it
    ],
)
def test_features_are_taken_while_the_risk_is_within_the_level(shares, correction, n_chosen, risk):
    left = list(range(len(shares)))
    taken, asked = [], []
    steps = SimpleNamespace(
        best=lambda: left[len(taken)] if len(taken) < len(left) else None, take=taken.append
    )

    def share(steps, *, of_the_best):
        asked.append(of_the_best)
        return shares[len(taken)]

    selector = zeronorm.GramSchmidtRelief(level=0.25, correction=correction)
    found = selector._stop_by_probes(steps, SimpleNamespace(share=share))
    np.testing.assert_allclose(found, risk)
    assert len(taken) == n_chosen
    assert set(asked) == {correction == "max"}


@pytest.mark.parametrize(
    ("params", "n_candidates", "count"),
    [
        ({}, 50, 500),
        ({"correction": "max", "level": 0.1}, 500, 50_000),
        ({"n_probes": 300}, 50, 300),
        ({"n_probes": 300, "correction": "max", "level": 0.1}, 31, 300),
        ({"n_probes": 300, "correction": "max", "level": 0.1}, 33, None),
    ],
)
def test_how_many_probes_are_drawn(params, n_candidates, count):
    """The best of 31 in 301 has the chance 1 - (1 - 1/301)^31 = 0.098, of 33 it has 0.104."""
    selector = zeronorm.GramSchmidtRelief(**params)
    if count is None:
        with pytest.raises(ValueError, match=r"greater than 33/0\.1"):
            selector._probe_count(n_candidates)
    else:
        assert selector._probe_count(n_candidates) == count


def test_probes_of_many_features_are_columns_with_their_values_in_another_order():
    X = noise(9, 4)
    X[:, 2] = 5.0
    problem = problem_of(np.arange(9) % 2, X, rng=np.random.default_rng(0))
    probes = gram_schmidt_relief._permuted_columns(problem, np.array([False, False, True, False]), 50)
    assert probes.shape == (9, 50)
    sources = {tuple(np.sort(column)): k for k, column in enumerate(X.T)}
    drawn = [sources[tuple(np.sort(probe))] for probe in probes.T]
    assert set(drawn) == {0, 1, 3}
    assert not any(np.array_equal(probe, X[:, k]) for probe, k in zip(probes.T, drawn, strict=True))
    nothing = gram_schmidt_relief._permuted_columns(problem, np.ones(4, dtype=bool), 3)
    np.testing.assert_array_equal(nothing, np.zeros((9, 3)))


@pytest.mark.parametrize(
    ("few", "kept", "n_probes", "shape"),
    [(4, None, None, (125, 12)), (3, None, 201, None), (3, [0], 200, (67, 12)), (4, None, 203, (51, 12))],
)
def test_few_features_compete_with_themselves_under_permuted_classes(few, kept, n_probes, shape, monkeypatch):
    """There are enough permutations for every candidate; with more features, columns are permuted instead."""
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
