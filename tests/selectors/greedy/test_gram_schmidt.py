"""GramSchmidt against explicit orthogonalisation, fresh fits, and simulated noise."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import ForwardLeastSquares, GramSchmidt

# Some tests are about how often noise is refused.
pytestmark = pytest.mark.filterwarnings("ignore:GramSchmidt selects no feature")


def sparse_regression(seed: int, n: int = 50, p: int = 20, noise: float = 0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    y = 2.0 * X[:, 3] - X[:, 8] + 0.7 * X[:, 11] + noise * rng.normal(size=n)
    return X, y


def explicit_gram_schmidt(X, y, k):
    """The textbook: project all columns and the target at every step."""
    X, y = X - X.mean(axis=0), y - y.mean()
    order, cosines = [], []
    for _ in range(k):
        cos_sq = (X.T @ y) ** 2 / np.maximum((X**2).sum(axis=0), 1e-300) / (y @ y)
        cos_sq[order] = -1.0
        best = int(np.argmax(cos_sq))
        order.append(best)
        cosines.append(cos_sq[best])
        q = X[:, best] / np.linalg.norm(X[:, best])
        X = X - np.outer(q, q @ X)
        y = y - q * (q @ y)
    return order, cosines


def wilks_order(X, y, k):
    """Stepwise discriminant analysis: the smallest Wilks' lambda, each computed from scratch."""
    within = (
        X - np.vstack([X[y == c].mean(axis=0) for c in np.unique(y)])[np.unique(y, return_inverse=True)[1]]
    )
    total = X - X.mean(axis=0)
    chosen: list[int] = []
    for _ in range(k):
        rest = [j for j in range(X.shape[1]) if j not in chosen]

        def wilks(j, chosen=tuple(chosen)):
            columns = [*chosen, j]
            W, T = within[:, columns], total[:, columns]
            return np.linalg.slogdet(W.T @ W)[1] - np.linalg.slogdet(T.T @ T)[1]

        chosen.append(min(rest, key=wilks))
    return chosen


# -- the order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_order_is_that_of_explicit_orthogonalisation(seed):
    X, y = sparse_regression(seed)
    s = GramSchmidt(12, task="regression").fit(X, y)
    order, cosines = explicit_gram_schmidt(X, y, 12)
    assert s.path_.order[:12].tolist() == order
    assert np.allclose(s.squared_cosines_, cosines, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_order_is_that_of_joint_forward_least_squares(seed):
    X, y = sparse_regression(seed)
    ours = GramSchmidt(15, task="regression").fit(X, y)
    peer = ForwardLeastSquares(15, gain="joint", task="regression").fit(X, y)
    assert ours.path_.order.tolist() == peer.path_.order.tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classes_are_selected_as_in_stepwise_discriminant_analysis(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 12)) + 0.4 * rng.normal(size=(n_classes, 12))[y]
    s = GramSchmidt(6).fit(X, y)
    assert s.path_.order[:6].tolist() == wilks_order(X, y, 6)


def test_a_well_explained_target_keeps_its_scores_accurate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    weights = 10.0 ** -np.arange(10)
    y = X @ weights
    order = GramSchmidt(8, task="regression").fit(X, y).path_.order[:8]
    assert order.tolist() == explicit_gram_schmidt(X, y, 8)[0]


def test_samples_of_weight_two_count_twice_in_every_rule():
    X, y = sparse_regression(1)
    weight = np.where(np.arange(len(y)) < 10, 2.0, 1.0)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    for stop in ("probe", "fisher", "loo"):
        weighted = GramSchmidt(6, stop=stop, task="regression").fit(X, y, sample_weight=weight)
        repeated = GramSchmidt(6, stop=stop, task="regression").fit(X[rows], y[rows])
        assert np.allclose(weighted.stop_values_, repeated.stop_values_, rtol=1e-8)


def test_the_planted_features_are_found_and_nothing_else():
    X, y = sparse_regression(6, n=100, p=200)
    s = GramSchmidt(correction="max", task="regression").fit(X, y)
    assert s.get_support(indices=True).tolist() == [3, 8, 11]


# -- the probe on pure noise ------------------------------------------------------------------------------


def noise_rate(
    n_runs: int, n_features: int, level: float, correction=None, n_classes: int = 0, seed: int = 0
):
    """Share of runs in which anything is accepted although there is nothing to find."""
    rng = np.random.default_rng(seed)
    task = "classification" if n_classes else "regression"
    selector = GramSchmidt(level=level, correction=correction, task=task)
    accepted = 0
    for _ in range(n_runs):
        X = rng.normal(size=(25, n_features))
        y = rng.permutation(np.arange(25) % n_classes) if n_classes else rng.normal(size=25)
        accepted += selector.fit(X, y).n_accepted_ > 0
    return accepted / n_runs


def assert_rate(n_runs: int, expected: float, **noise):
    error = np.sqrt(expected * (1.0 - expected) / n_runs)
    assert abs(noise_rate(n_runs, **noise) - expected) < 3.0 * error


NOISE = [
    pytest.param(0.1, {"n_features": 1, "level": 0.1}, id="one column"),
    pytest.param(1 - 0.95**8, {"n_features": 8, "level": 0.05}, id="eight columns"),
    pytest.param(0.1, {"n_features": 8, "level": 0.1, "correction": "max"}, id="best of eight"),
    pytest.param(0.1, {"n_features": 1, "level": 0.1, "n_classes": 3}, id="one column, three classes"),
    pytest.param(1 - 0.95**8, {"n_features": 8, "level": 0.05, "n_classes": 3}, id="eight, three classes"),
    pytest.param(
        0.1, {"n_features": 8, "level": 0.1, "correction": "max", "n_classes": 4}, id="best of eight, four classes"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "noise"), NOISE)
def test_rate_of_selecting_noise(expected, noise):
    assert_rate(250, expected, **noise)


@pytest.mark.slow
@pytest.mark.parametrize(("expected", "noise"), NOISE)
def test_rate_of_selecting_noise_over_2000_runs(expected, noise):
    assert_rate(2000, expected, seed=1, **noise)


def probe_frequencies(n_runs: int, k: int, seed: int):
    """How often a probe appended to fixed data is among the first 1, …, k, and the risks of the data."""
    X, y = sparse_regression(4, n=15, p=12, noise=6.0)
    risks = GramSchmidt(k, task="regression").fit(X, y).stop_values_
    rng = np.random.default_rng(seed)
    counts = np.zeros(k)
    for _ in range(n_runs):
        with_probe = np.column_stack([X, rng.normal(size=len(y))])
        order = GramSchmidt(k, task="regression").fit(with_probe, y).path_.order[:k]
        counts += np.cumsum(order == X.shape[1])
    return counts / n_runs, risks


def assert_risks_bound_frequencies(n_runs: int, seed: int):
    frequency, risk = probe_frequencies(n_runs, 4, seed)
    error = np.sqrt(risk * (1.0 - risk) / n_runs)
    assert 0.005 < risk[0] < 0.5  # otherwise there is nothing to count
    assert abs(frequency[0] - risk[0]) < 3.0 * error[0]
    assert np.all(frequency <= risk + 3.0 * error)


def test_risk_bounds_the_frequency_of_a_probe():
    assert_risks_bound_frequencies(300, seed=0)


@pytest.mark.slow
def test_risk_bounds_the_frequency_of_a_probe_over_2000_runs():
    assert_risks_bound_frequencies(2000, seed=2)


# -- monomials --------------------------------------------------------------------------------------------


def test_a_product_is_found_where_its_factors_alone_have_no_effect():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 8))
    y = X[:, 2] * X[:, 5] + 0.5 * X[:, 6] ** 2 + 0.1 * rng.normal(size=80)
    s = GramSchmidt(degree=2, level=0.001, correction="max", task="regression").fit(X, y)
    assert sorted(s.get_support(indices=True)) == [2, 5, 6]
    # Standardised features: the product of shifted factors brings the factors themselves along.
    assert {(2, 5), (6, 6)} <= set(s.monomials_)


def test_backward_removal_drops_what_a_later_monomial_made_redundant():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 100))
    noise = rng.normal(size=(100, 2))
    X = np.column_stack([a + b + 0.3 * noise[:, 0], a, b])
    y = a + b + 0.05 * noise[:, 1]
    s = GramSchmidt(degree=2, stop="fisher", level=0.001, task="regression").fit(X, y)
    assert s.path_.n_iter > len(s.monomials_)
    assert sorted(s.monomials_) == [(1,), (2,)]
    assert s.get_support(indices=True).tolist() == [1, 2]
    assert s.path_.order.tolist()[-1] == 0


def test_forced_features_stay_as_monomials_of_degree_one():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    s = GramSchmidt(degree=2, always_keep=[4], correction="max", task="regression").fit(X, y)
    assert s.monomials_[0] == (4,)
    assert s.support_[[0, 1, 4]].all()


def test_a_forced_constant_leaves_the_choice_of_the_others_alone():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    X[:, 4], X[:, 5] = 1.0, X[:, 3]
    for stop in ("probe", "fisher", "loo"):
        free, forced = (
            GramSchmidt(degree=2, always_keep=keep, stop=stop, level=0.001, task="regression").fit(X, y)
            for keep in (None, [4])
        )
        assert forced.monomials_ == [(4,), *free.monomials_]
    s = GramSchmidt(degree=2, always_keep=[3, 5], level=0.001, task="regression").fit(X, y)  # copies
    assert s.support_[[0, 1, 3, 5]].all()


def test_the_leave_one_out_rule_also_removes_monomials():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 6))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=40)
    kept = {
        level: GramSchmidt(degree=2, stop="loo", level=level, task="regression").fit(X, y).monomials_
        for level in (1e-8, 0.5)
    }
    assert kept[1e-8] == kept[0.5]  # no test of significance is made
    assert {(0, 1), (2,)} <= set(kept[0.5])


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"stop": "aic"}, "'stop' parameter of GramSchmidt must be 'probe'"),
        ({"correction": "min"}, "'correction' parameter of GramSchmidt must be None or 'max'"),
        ({"degree": 0}, "'degree' parameter of GramSchmidt must be a whole number of at least 1"),
        ({"degree": 1.5}, "'degree' parameter of GramSchmidt must be a whole number of at least 1"),
        ({"level": 1.0}, "'level' parameter of GramSchmidt must be a number greater than 0 and less than 1"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    X, y = sparse_regression(0)
    with pytest.raises(ValueError, match=message):
        GramSchmidt(task="regression", **params).fit(X, y)


def test_more_features_than_samples_and_a_perfect_fit():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(10, 200))
    y = X[:, 17] * 3.0 + 1.0
    s = GramSchmidt(task="regression").fit(X, y)
    assert s.get_support(indices=True).tolist() == [17]
    assert sorted(s.path_.order) == list(range(200))
