"""The search by exchanges: its predictions, its screening of candidates, and what it stores."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from oracles.logistic import l1_logistic, logistic_objective
from zeronorm import ZeroNormLogistic, as_design
from zeronorm.engines.logistic_exchanges import _kernels as kernels
from zeronorm.engines.logistic_exchanges import _screening as screening
from zeronorm.engines.logistic_exchanges import _splicing as splicing
from zeronorm.engines.logistic_exchanges import _subsets as subsets
from zeronorm.engines.logistic_exchanges._candidates import Candidates
from zeronorm.engines.logistic_exchanges._exchanges import QuadraticModel
from zeronorm.engines.logistic_exchanges._screening import StrongestFeatures, largest
from zeronorm.engines.logistic_exchanges._subsets import LogisticSubsets
from zeronorm.selectors.sparsity._zeronorm_logistic import tangent_factors
from zeronorm.solvers.l1_smooth._logistic import L1Logistic


def planted_problem(seed, n=60, p=12, k=4, correlation=0.0):
    """Labels drawn from a logistic model on a few of the standardised features, which are returned as well."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + np.sqrt(correlation / (1.0 - correlation)) * rng.normal(size=(n, 1))
    X = StandardScaler().fit_transform(X)
    w = np.zeros(p)
    planted = rng.choice(p, k, replace=False)
    w[planted] = rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 2.0, k)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
    y[:2] = 0, 1
    return X, y, sorted(planted.tolist())


def logistic_problem(*args, **kwargs):
    return planted_problem(*args, **kwargs)[:2]


def test_predicted_exchanges_are_exact_for_small_changes():
    """The quadratic model: removing or adding a feature of tiny effect changes the loss as predicted."""
    X, y = logistic_problem(4, n=400, p=5)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=(400, 2))])
    model = LogisticSubsets(as_design(X), (2.0 * y - 1.0)[:, None], np.ones(400), 1e-6)
    fit = model.fit(np.arange(5))
    gain = QuadraticModel(model, fit).additions(Candidates.of(model, np.asarray([5, 6]))).gain
    with_first, with_second = (
        model.fit(np.asarray([0, 1, 2, 3, 4, 5])),
        model.fit(np.asarray([0, 1, 2, 3, 4, 6])),
    )
    assert fit.objective - with_first.objective == pytest.approx(gain[0], rel=0.05)
    assert fit.objective - with_second.objective == pytest.approx(gain[1], rel=0.05)
    back = QuadraticModel(model, with_first)
    assert back.removals().loss[-1] == pytest.approx(gain[0], rel=0.05)
    exact = with_first.objective - with_second.objective
    swap_gains = back.swap_gains(Candidates.of(model, np.asarray([6])))
    assert swap_gains[0, -1] == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predicted_weights_are_one_newton_step(n_classes):
    """One step from the fit, padded with zero or without a feature, to the optimum of its quadratic model."""
    X, _ = logistic_problem(4, n=200, p=8)
    y = np.argmax(X[:, :n_classes] + np.random.default_rng(0).normal(size=(200, n_classes)), axis=1)
    signs = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    model = LogisticSubsets(as_design(X), signs, np.ones(200), 0.5)
    fit = model.fit(np.asarray([0, 2, 5]))
    quadratic = QuadraticModel(model, fit)
    additions = quadratic.additions(Candidates.of(model, np.arange(8)))
    assert additions.columns.tolist() == [1, 3, 4, 6, 7]

    def step(columns, frozen):
        """Minimiser of the model over the weights of ``columns`` and the bias, the rest being zero."""
        rows = np.column_stack([X, np.ones(200)]).T
        result = []
        for coef, sign in zip(fit.coef, signs.T, strict=True):
            w = np.zeros(9)
            w[[0, 2, 5, 8]] = coef
            wrong = 1.0 / (1.0 + np.exp(sign * (w @ rows)))
            ridge = np.diag([0.5] * 8 + [0.0])
            hessian = (rows * wrong * (1.0 - wrong)) @ rows.T + ridge
            gradient = ridge @ w - rows @ (sign * wrong)
            free = [*columns, 8]
            right = -gradient[free] + hessian[np.ix_(free, frozen)] @ w[frozen]
            result.append(w[free] + np.linalg.solve(hessian[np.ix_(free, free)], right))
        return np.asarray(result)

    for j, column in enumerate([1, 3, 4, 6, 7]):
        expected = step(sorted([0, 2, 5, column]), [])
        np.testing.assert_allclose(additions.start(fit, j), expected, atol=1e-5)
    for i, left in enumerate([0, 2, 5]):
        expected = step(sorted({0, 2, 5} - {left}), [left])
        np.testing.assert_allclose(quadratic.removals().start(fit, i), expected, atol=1e-5)


def test_the_steepest_candidates_have_the_same_predictions():
    X, y = logistic_problem(4, n=100, p=30)
    model = LogisticSubsets(as_design(X), (2.0 * y - 1.0)[:, None], np.ones(100), 1e-6)
    quadratic, candidates = (
        QuadraticModel(model, model.fit(np.arange(5))),
        Candidates.of(model, np.arange(30)),
    )
    every, some = quadratic.additions(candidates), quadratic.additions(candidates, 8)
    assert some.columns.size == 8
    positions = np.searchsorted(every.columns, some.columns)
    np.testing.assert_allclose(some.gain, every.gain[positions], rtol=1e-12)
    assert np.argmax(every.gain) in positions


def test_dependent_features_have_finite_predictions():
    """A copy in the subset leaves the Hessian without an inverse, and a copy of it gains nothing."""
    X, y = logistic_problem(4, n=100, p=6)
    X = np.column_stack([X, X[:, 0], X[:, 1]])
    model = LogisticSubsets(as_design(X), (2.0 * y - 1.0)[:, None], np.ones(100), 1e-12)
    quadratic = QuadraticModel(model, model.fit(np.asarray([0, 1, 2, 6])))
    found = quadratic.additions(Candidates.of(model, np.asarray([3, 7])))
    alone = QuadraticModel(model, model.fit(np.asarray([0, 1, 2]))).additions(
        Candidates.of(model, np.asarray([3]))
    )
    assert found.gain[0] == pytest.approx(alone.gain[0], rel=1e-4)
    assert found.gain[1] == pytest.approx(0.0, abs=1e-6)
    assert np.all(np.isfinite(quadratic.swap_gains(Candidates.of(model, np.asarray([3, 7])))))
    assert np.all(np.isfinite(quadratic.removals().loss))


@pytest.mark.parametrize("kind", ["normal", "many equal", "all equal", "few large"])
@pytest.mark.parametrize("count", [1, 37, 2000])
def test_the_largest_of_many_values_are_those_of_a_sort(kind, count):
    values = np.random.default_rng(0).normal(size=20_000)
    if kind == "many equal":
        values = np.round(values)
    if kind == "all equal":
        values[:] = 1.0
    if kind == "few large":
        values = np.where(np.arange(20_000) % 1000 == 7, values, -1.0)
    expected = np.lexsort((np.arange(20_000), -values))[:count]
    assert largest(values, count).tolist() == expected.tolist()


def hostile_columns(rng, n, p):
    """Noise columns, some with an outlier, some copies of others, some constant."""
    X = rng.standard_normal((n, p))
    X[3, 10:40] = 60.0
    X[:, 50:60] = X[:, 60:70]
    X[:, 80:85] = 2.0
    return X


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("n_vectors", [1, 3])
def test_the_coarse_copy_finds_the_strongest_features(order, standardize, n_vectors, monkeypatch):
    """Against a sort of all products, without a pass over the data; vectors are dense or have few large entries."""
    monkeypatch.setattr(screening, "COARSE_FROM", 1)
    monkeypatch.setattr(screening, "MOST_IN_DOUBT", 0.2)
    rng = np.random.default_rng(0)
    X = hostile_columns(rng, 60, 5000)
    X[:, 100] += 5.0 * X[:, 101]
    design = as_design(np.asarray(X, dtype=np.float32, order=order))
    design = design.standardized() if standardize else design
    variance = np.maximum(design.column_stats().variance, 1e-12)
    eligible = np.setdiff1d(np.arange(5000), [0, 1, *range(80, 85)])
    model = LogisticSubsets(design, np.ones((60, 1)), np.ones(60), 1e-6)
    strongest = StrongestFeatures(model, eligible, variance)
    scale = rng.standard_normal((n_vectors, 60))
    few = scale * np.exp(-np.arange(60.0))[rng.permutation(60)]
    similar = np.repeat(X[None, :, 101] - X[:, 101].mean(), n_vectors, axis=0)
    monkeypatch.setattr(design, "transpose_dot", None)
    values = design.block(slice(None))
    queries = [(scale, 30), (few, 30), (similar, 11)]
    for (vectors, count), found in zip(queries, strongest.search(queries), strict=True):
        score = ((vectors @ values) ** 2).sum(axis=0)[eligible] / variance[eligible]
        score = np.round(score / score.max(), 12)
        expected = eligible[np.lexsort((eligible, -score))[:count]]
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_the_store_of_columns_grows_and_shrinks_in_place(make, monkeypatch):
    monkeypatch.setattr(subsets, "BLOCK_BYTES", 1)
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(30, 20)).astype(float)
    model = LogisticSubsets(as_design(make(X)), np.ones((30, 1)), np.ones(30), 1e-3)
    for _ in range(30):
        columns = np.sort(rng.choice(20, rng.integers(1, 8), replace=False))
        np.testing.assert_array_equal(model.rows(columns), X[:, columns].T)
        if rng.random() < 0.4:
            kept = np.sort(rng.choice(20, rng.integers(0, 6), replace=False))
            model.forget(kept)
            assert model.n_stored == kept.size
            np.testing.assert_array_equal(model.rows(kept), X[:, kept].T)


def test_decays_and_losses_are_those_of_the_library():
    margins = np.concatenate(
        [np.linspace(-40.0, 40.0, 1001), [0.0, 1e-300, -700.0, 740.0, 1e5, np.inf, np.nan]]
    )
    small, losses = np.empty_like(margins), np.empty_like(margins)
    kernels.decays(margins, small)
    kernels.losses_of_decays(margins, small, losses)
    np.testing.assert_allclose(small[:-1], np.exp(-np.abs(margins[:-1])), rtol=1e-15, atol=1e-323)
    np.testing.assert_allclose(losses[:-2], np.logaddexp(0.0, -margins[:-2]), rtol=1e-14, atol=1e-300)
    assert np.isnan(losses[-1])


def test_kept_features_are_no_candidates():
    """A constant feature and the strongest one are forced; the others are the best additions to them."""
    X, y, planted = planted_problem(3, n=80, p=8, k=3)
    X = np.column_stack([X, np.full(80, 2.0)])
    kept = [planted[0], 8]
    path = ZeroNormLogistic(4, max_features=4, always_keep=kept, standardize=False).fit(X, y).path_
    assert np.all(np.isfinite(path.scores))
    for size in (3, 4):
        found = set(path.support(size).tolist())
        assert len(found) == size
        assert found >= set(kept)
        pairs = combinations([j for j in range(8) if j != planted[0]], size - 2)
        best = min(pairs, key=lambda s: logistic_objective(X[:, [planted[0], *s]], 2.0 * y - 1.0))
        assert found == {*kept, *best}


@pytest.mark.parametrize("penalty", ["log", "l0.5", "scad", "mcp"])
def test_a_penalty_of_zero_has_the_slope_at_zero(penalty):
    """Constant columns have no gradient: the path of penalties starts and ends at zero."""
    np.testing.assert_array_equal(tangent_factors(penalty, np.zeros(3), 0.0, 0.1), np.ones(3))


def test_files_within_the_budget_are_copied_coarsely(tmp_path, monkeypatch):
    """The same subsets, and the file is read only for statistics and the copy instead of for each query."""
    X, y = logistic_problem(11, n=60, p=1500, k=6)
    np.save(tmp_path / "x.npy", X)
    design = as_design(tmp_path / "x.npy", memory_budget=4 * X.size)
    n_read = []
    monkeypatch.setattr(design, "_transpose_dot", lambda V: n_read.append(1) or X.T @ V)
    without = ZeroNormLogistic(4, standardize=False).fit(design, y).path_
    n_before = len(n_read)
    monkeypatch.setattr(screening, "COARSE_FROM", 1)
    with_copy = ZeroNormLogistic(4, standardize=False).fit(design, y).path_
    assert [s.tolist() for s in with_copy.subsets] == [s.tolist() for s in without.subsets]
    assert len(n_read) - n_before == 1 < n_before  # for the gradients that order the other features


def test_the_coarse_copy_changes_no_subset(monkeypatch):
    X, y = logistic_problem(11, n=60, p=1500, k=6)
    without = ZeroNormLogistic(8).fit(X, y).path_
    monkeypatch.setattr(screening, "COARSE_FROM", 1)
    with_copy = ZeroNormLogistic(8).fit(X, y).path_
    assert [s.tolist() for s in with_copy.subsets] == [s.tolist() for s in without.subsets]
    np.testing.assert_allclose(with_copy.objective, without.objective, rtol=1e-9)


def test_data_that_bytes_cannot_represent_are_read(monkeypatch):
    """Without standardising, the step of a column far from zero is larger than its deviations."""
    X, y = logistic_problem(3, n=60, p=400, k=3)
    expected = ZeroNormLogistic(3, standardize=False).fit(X + 1000.0, y).path_
    monkeypatch.setattr(screening, "COARSE_FROM", 1)
    found = ZeroNormLogistic(3, standardize=False).fit(X + 1000.0, y).path_
    assert [s.tolist() for s in found.subsets] == [s.tolist() for s in expected.subsets]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_candidates_that_stay_sparse_change_no_subset(n_classes, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.poisson(0.15, size=(150, 400)) * rng.uniform(0.5, 2.0, size=(150, 400))
    y = np.argmax(X[:, :n_classes] @ np.eye(n_classes) + 0.3 * rng.normal(size=(150, n_classes)), axis=1)
    dense = ZeroNormLogistic(4).fit(X, y).path_
    monkeypatch.setattr(subsets, "SMALL_COPY_BYTES", 0)
    sparse_path = ZeroNormLogistic(4).fit(sparse.csr_array(X), y).path_
    assert [s.tolist() for s in sparse_path.subsets] == [s.tolist() for s in dense.subsets]
    np.testing.assert_allclose(sparse_path.objective, dense.objective, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_begins_in_a_subsample_finds_the_same(seed, n_classes, monkeypatch):
    X, y, _ = planted_problem(seed, n=1500, p=300, k=5, correlation=0.3)
    if n_classes == 3:
        y = np.where((X[:, 7] > 1.8) & (y == 0), 2, y)  # a rare class
    X[:, 4] *= np.arange(1500) % 150 == 0  # constant in most subsamples
    weight = np.random.default_rng(seed).integers(0, 3, 1500).astype(float)
    wide = ZeroNormLogistic(6).fit(X, y, sample_weight=weight).path_
    sizes = []
    monkeypatch.setattr(splicing, "MANY_SAMPLES", 800)
    monkeypatch.setattr(splicing, "PART_OF_SAMPLES", 300)
    take_part = LogisticSubsets.part

    def watched(model, n_samples):
        part = take_part(model, n_samples)
        sizes.append(part.weight.size)
        for sign in (-1.0, 1.0):
            total = model.weight[model.signs[0] == sign].sum()
            assert part.weight[part.signs[0] == sign].sum() == pytest.approx(total)
        return part

    monkeypatch.setattr(LogisticSubsets, "part", watched)
    narrow = ZeroNormLogistic(6).fit(X, y, sample_weight=weight).path_
    assert len(sizes) == 1
    assert 200 <= sizes[0] <= 300
    np.testing.assert_allclose(narrow.objective, wide.objective, rtol=1e-6)
    assert narrow.support(5).tolist() == wide.support(5).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_weighted_l1_problem_matches_a_convex_solver(seed):
    X, y = logistic_problem(seed, n=40, p=90, k=6)
    signs, share = 2.0 * y - 1.0, np.full(40, 1 / 40)
    penalty = np.random.default_rng(seed).uniform(0.02, 0.08, size=90)
    model = L1Logistic(as_design(X), signs, share, 1e-7)
    found = model.solve(penalty, model.empty)
    w, _, objective = l1_logistic(X, signs, penalty=penalty)
    assert found.converged
    value = found.loss + penalty[found.columns] @ np.abs(found.weights)
    assert value == pytest.approx(objective, rel=1e-6)
    slope = np.abs(X.T @ found.residual)
    assert slope.max() <= penalty[slope.argmax()] * (1 + 1e-6)
    assert set(found.columns) == set(np.flatnonzero(np.abs(w) > 1e-5))
