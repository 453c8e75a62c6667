"""ForwardLeastSquares against matching pursuit, a fresh fit per candidate, and explicit projections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import OrthogonalMatchingPursuit

import zeronorm
from small_problems import noise
from zeronorm import ForwardLeastSquares, as_design
from zeronorm.engines._orthogonal import OrthogonalSearch


def correlated_problem(seed: int, n: int = 40, p: int = 15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    X *= rng.uniform(0.1, 10.0, size=p)
    y = X[:, 2] - 0.5 * X[:, 5] + X[:, 7] + rng.normal(size=n)
    return X, y


def residual_sum_of_squares(X, y, columns, intercept=True):
    A = X[:, list(columns)]
    if intercept:
        A = np.column_stack([np.ones(len(y)), A])
    return float(((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2).sum())


def greedy_by_fresh_fits(X, y, k, start=()):
    chosen = list(start)
    while len(chosen) < k:
        rest = [j for j in range(X.shape[1]) if j not in chosen]
        chosen.append(min(rest, key=lambda j: residual_sum_of_squares(X, y, [*chosen, j])))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_residual_gain_is_orthogonal_matching_pursuit(seed):
    X, y = correlated_problem(seed)
    s = ForwardLeastSquares(10, task="regression").fit(X, y)
    unit = (X - X.mean(axis=0)) / X.std(axis=0)
    for k in range(1, 11):
        peer = OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(unit, y)
        assert s.path_.support(k).tolist() == np.flatnonzero(peer.coef_).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_joint_gain_is_a_fresh_fit_per_candidate(seed):
    X, y = correlated_problem(seed)
    s = ForwardLeastSquares(10, gain="joint", task="regression").fit(X, y)
    assert s.path_.order[:10].tolist() == greedy_by_fresh_fits(X, y, 10)


def test_the_criteria_differ_on_columns_that_help_only_together():
    rng = np.random.default_rng(0)
    common, signal = rng.normal(size=(2, 200))
    near = signal + common
    X = np.column_stack([near, near + 0.05 * (signal - common), signal - common + 2.0 * rng.normal(size=200)])
    joint = ForwardLeastSquares(2, gain="joint", task="regression").fit(X, signal)
    residual = ForwardLeastSquares(2, gain="residual", task="regression").fit(X, signal)
    assert joint.get_support(indices=True).tolist() == [0, 1]
    assert residual.get_support(indices=True).tolist() == [1, 2]


@pytest.mark.parametrize("gain", ["residual", "joint"])
def test_objective_is_the_residual_of_each_visited_subset(gain):
    X, y = correlated_problem(7)
    path = ForwardLeastSquares(12, gain=gain, task="regression").fit(X, y).path_
    assert path.sizes.tolist() == list(range(1, 13))
    expected = [residual_sum_of_squares(X, y, path.support(k)) for k in range(1, 13)]
    assert np.allclose(path.objective, expected, rtol=1e-10)


@pytest.mark.parametrize("gain", ["residual", "joint"])
def test_without_standardising_there_is_no_intercept(gain):
    X, y = correlated_problem(3)
    X += 1.0
    s = ForwardLeastSquares(4, gain=gain, task="regression", standardize=False).fit(X, y)
    expected = [residual_sum_of_squares(X, y, s.path_.order[:k], intercept=False) for k in range(1, 5)]
    assert np.allclose(s.path_.objective, expected, rtol=1e-10)


def test_forced_features_are_fitted_first():
    X, y = correlated_problem(4)
    s = ForwardLeastSquares(6, gain="joint", task="regression", always_keep=[9, 0]).fit(X, y)
    assert s.path_.order[:6].tolist() == greedy_by_fresh_fits(X, y, 6, start=[0, 9])
    assert s.path_.objective[0] == pytest.approx(residual_sum_of_squares(X, y, [0, 9]))


def test_a_forced_feature_may_depend_on_another():
    X, y = correlated_problem(4)
    X[:, 3] = 2.0 * X[:, 1] + 1.0
    s = ForwardLeastSquares(4, gain="joint", task="regression", always_keep=[1, 3]).fit(X, y)
    expected = greedy_by_fresh_fits(X, y, 4, start=[1, 3])
    assert s.path_.order[:4].tolist() == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_scores_are_cosines_of_explicitly_projected_columns(seed, centred, weighted):
    rng = np.random.default_rng(seed)
    n, p = 20, 12
    X, Y = rng.normal(size=(n, p)), rng.normal(size=(n, 2))
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else None
    design = as_design(X)
    design = design.standardized(sample_weight=weight) if centred else design
    search = OrthogonalSearch(design, Y, weight)
    rows = np.repeat(np.arange(n), 1 if weight is None else weight.astype(int))
    for column in rng.permutation(p)[:5]:
        search.add(int(column))
    fitted = X[rows][:, search.selected]
    if centred:
        fitted = np.column_stack([np.ones(len(rows)), fitted])
    q, _ = np.linalg.qr(fitted)
    left = X[rows] - q @ (q.T @ X[rows])
    basis, _ = np.linalg.qr(Y[rows] - q @ (q.T @ Y[rows]))
    expected = ((basis.T @ left) ** 2).sum(axis=0) / (left**2).sum(axis=0)
    rest = np.setdiff1d(np.arange(p), search.selected)
    assert np.allclose(search.scores[rest], expected[rest], rtol=1e-8)
    assert search.dimension == pytest.approx(len(rows) - np.linalg.matrix_rank(fitted))


@pytest.mark.parametrize("mean", [0.0, 10.0, 1e5])
def test_large_means_do_not_change_the_order(mean):
    X, y = correlated_problem(5)
    X /= X.std(axis=0)
    plain = ForwardLeastSquares(8, gain="joint", task="regression").fit(X, y)
    moved = ForwardLeastSquares(8, gain="joint", task="regression").fit(X + mean, y)
    assert moved.path_.order[:8].tolist() == plain.path_.order[:8].tolist()


@pytest.mark.parametrize("gain", ["residual", "joint"])
def test_search_ends_when_the_samples_are_used_up(gain):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(8, 30)), rng.normal(size=8)
    s = ForwardLeastSquares(20, gain=gain, task="regression").fit(X, y)
    assert s.support_.sum() == 20
    assert s.path_.sizes.max() <= 7  # one dimension goes to the intercept
    assert s.path_.objective[-1] < 1e-12 * ((y - y.mean()) ** 2).sum()


def test_copies_of_a_selected_column_come_last():
    X, y = correlated_problem(8)
    X[:, 11] = -3.0 * X[:, 7] + 4.0
    order = ForwardLeastSquares(14, gain="joint", task="regression").fit(X, y).path_.order
    assert order[-1] in (7, 11)


def test_a_constant_target_is_refused():
    X, _ = correlated_problem(0)
    with pytest.raises(ValueError, match="The target y must vary"):
        ForwardLeastSquares(task="regression").fit(X, np.full(len(X), 3.7))


def test_an_unknown_gain_is_refused():
    X, y = correlated_problem(0)
    with pytest.raises(ValueError, match="'gain' parameter of ForwardLeastSquares must be"):
        ForwardLeastSquares(gain="aic", task="regression").fit(X, y)


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


@pytest.mark.parametrize(("p", "n_taken"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_half_of_the_features_are_selected_by_default(p, n_taken):
    X = noise(20, p)
    y = X.sum(axis=1) + 0.1 * noise(20, 1, 1)[:, 0]
    for selector in (
        zeronorm.GramSchmidt(stop="size", task="regression"),
        zeronorm.ForwardLeastSquares(task="regression"),
    ):
        assert selector.fit(X, y).path_.n_iter == n_taken
