"""G-flip against a naive evaluation of the margin."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import zeronorm
from small_problems import INF, noise, problem_of
from zeronorm import GFlip
from zeronorm.selectors.filters import _gflip as gflip

UTILITIES = {
    "linear": lambda margin: margin,
    "sigmoid": lambda margin: 1.0 / (1.0 + np.exp(-margin)),
    "zero_one": lambda margin: float(margin > 1e-12),
}


def problem(seed=0, n=30, p=10, q=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, q, n)
    y[: 2 * q] = np.arange(2 * q) % q
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 4.0, p)
    X[:, :3] += 3.0 * np.outer(y, rng.normal(size=3))
    return X, y


def naive_margin(X, y, subset, utility="linear"):
    """Sum over samples of u(margin) with all distances computed from scratch."""
    Z = ((X - X.mean(0)) / X.std(0))[:, sorted(subset)]
    total = 0.0
    for i in range(len(y)):
        distance = np.sqrt(((Z - Z[i]) ** 2).sum(axis=1))
        hits = [distance[j] for j in range(len(y)) if y[j] == y[i] and j != i]
        misses = [distance[j] for j in range(len(y)) if y[j] != y[i]]
        if hits:
            total += UTILITIES[utility](0.5 * (min(misses) - min(hits)))
    return total


def naive_gflip(X, y, seed, utility):
    rng = np.random.default_rng(seed)
    subset, changed = set(), True
    while changed:
        changed = False
        for feature in rng.permutation(X.shape[1]):
            inside, outside = subset | {int(feature)}, subset - {int(feature)}
            gain = naive_margin(X, y, inside, utility) - naive_margin(X, y, outside, utility)
            better = inside if gain > 1e-9 else outside if gain < -1e-9 else subset
            changed |= better != subset
            subset = better
    return subset


@pytest.mark.parametrize("utility", list(UTILITIES))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agrees_with_naive_margins(utility, seed):
    X, y = problem(seed)
    s = GFlip(utility=utility, random_state=seed).fit(X, y)
    subset = naive_gflip(X, y, seed, utility)
    assert set(np.flatnonzero(s.support_)) == subset
    assert s.margin_ == pytest.approx(naive_margin(X, y, subset, utility), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_single_flip_raises_the_margin(seed):
    X, y = problem(seed, q=2)
    s = GFlip(random_state=seed).fit(X, y)
    assert s.converged_
    subset = set(np.flatnonzero(s.support_))
    for feature in range(X.shape[1]):
        flipped = naive_margin(X, y, subset ^ {feature})
        change = s.margin_ - flipped if feature in subset else flipped - s.margin_
        assert flipped <= s.margin_ + 1e-9
        assert s.scores_[feature] == pytest.approx(change, abs=1e-9)


def test_forced_features_never_leave():
    X, y = problem(n=40)
    X[:, 9] = np.random.default_rng(0).normal(size=40)
    s = GFlip(always_keep=[9], random_state=0).fit(X, y)
    assert s.support_[9]
    assert s.margin_ == pytest.approx(naive_margin(X, y, np.flatnonzero(s.support_)), rel=1e-9)


def test_a_sample_alone_in_its_class_does_not_count():
    X, y = problem(q=2)
    y[11] = 2
    s = GFlip(random_state=1).fit(X, y)
    assert s.margin_ == pytest.approx(naive_margin(X, y, np.flatnonzero(s.support_)), rel=1e-9)
    with pytest.raises(ValueError, match="at least one class must have two samples"):
        GFlip().fit(X[:10], np.arange(10))


def test_too_few_rounds_are_reported():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        s = GFlip(max_iter=1, random_state=0).fit(X, y)
    assert not s.converged_


@pytest.mark.parametrize(
    "parameters", [{"utility": "cubic"}, {"slope": 0.0}, {"slope": np.nan}, {"max_iter": 0}]
)
def test_bad_parameters_are_named(parameters):
    X, y = problem()
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of GFlip"):
        GFlip(**parameters).fit(X, y)


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
    assert path.selected_size == 1
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


@pytest.mark.parametrize(
    ("params", "utility"),
    [
        ({"utility": "linear"}, lambda margin: margin),
        ({"utility": "sigmoid", "slope": 3.0}, lambda margin: 1.0 / (1.0 + np.exp(-3.0 * margin))),
        ({"utility": "zero_one"}, lambda margin: margin > 0.0),
    ],
)
def test_margins_of_gflip_by_hand(params, utility):
    """Samples 0, 2 | 3, 3 | 9 on a line: to the nearest miss 3, 1, 1, 1, to the nearest hit 2, 2, 0, 0.

    The last is alone in its class and does not count. Without the column all margins are zero.
    """
    x, y = np.array([0.0, 2.0, 3.0, 3.0, 9.0]), [0, 0, 1, 1, 2]
    with_it, without = (np.sum(utility(np.array(margins))) for margins in ([0.5, -0.5, 0.5, 0.5], [0.0] * 4))
    fitted = zeronorm.GFlip(standardize=False, **params).fit(x[:, None], y)
    assert fitted.margin_ == pytest.approx(with_it)
    assert fitted.path_.scores[0] == pytest.approx(with_it - without)


def test_margins_need_a_class_of_two():
    with pytest.raises(ValueError, match="Got 3 classes of one sample each"):
        zeronorm.GFlip().fit(noise(3), [0, 1, 2])


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


def test_too_little_memory_is_said_before_the_work(monkeypatch):
    monkeypatch.setattr("zeronorm.execution._memory.available_bytes", lambda: 1 << 30)
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    with pytest.raises(
        MemoryError, match=r"20000 samples, which needs 3\.0 GiB of memory, and 1\.0 GiB are free"
    ):
        GFlip().fit(X, np.arange(len(X)) % 2)
