"""ProbeSelector: its level, its p-values, and that probes are not left in the data."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.linear_model import LogisticRegression

import zeronorm
from small_problems import noise
from zeronorm import FisherScore, ProbeSelector, SelectionPath, as_design
from zeronorm.design._joined import JoinedDesign
from zeronorm.engines._error_control import adjust_p_values
from zeronorm.registry import register
from zeronorm.selectors._base import BaseSelector
from zeronorm.selectors.meta import _probe_selector as probe_selector
from zeronorm.selectors.meta._probe_selector import draw_probes


def make_data(n=50, p=20, shift=1.5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, :3] += shift * y[:, None]
    return X, y


@register("test-lazy", family="filters", tasks=("binary",), reference="")
class AllTheSame(BaseSelector):
    """Every feature has the same score, so that only ties decide."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def _select(self, problem):
        return SelectionPath.from_scores(np.ones(problem.n_features))


@pytest.mark.parametrize("probes", ["permuted", "gaussian"])
def test_finds_the_informative_features(probes):
    X, y = make_data(shift=2.0)
    fitted = ProbeSelector(FisherScore(), level=0.02, probes=probes, n_probes=200, random_state=0).fit(X, y)
    assert fitted.support_[:3].all()
    assert fitted.n_features_ <= 5


def test_probes_are_not_left_in_the_data():
    X, y = make_data()
    fitted = ProbeSelector(FisherScore(), n_probes=70, random_state=0).fit(X, y)
    assert fitted.path_.n_features == 20
    assert sorted(fitted.path_.order) == list(range(20))
    assert fitted.n_features_in_ == 20
    assert fitted.transform(X).shape[1] == fitted.n_features_
    assert fitted.p_values_.shape == (20,)


def test_p_values_by_counting():
    """With Gaussian probes the p-values approach the tail probabilities of the F statistic."""
    X, y = make_data(shift=0.5, p=6)
    fitted = ProbeSelector(
        FisherScore(variant="between"), probes="gaussian", n_probes=4000, random_state=0
    ).fit(X, y)
    exact = stats.ttest_ind(X[y == 0], X[y == 1]).pvalue  # equal class sizes: the Fisher score is t squared
    error = np.sqrt(exact * (1 - exact) / 4000)
    assert np.all(np.abs(fitted.p_values_ - exact) < 4 * error + 1 / 4001)


@pytest.mark.parametrize("probes", ["permuted", "gaussian"])
def test_false_selection_rate_is_the_level(probes):
    """On pure noise the rate is the level, rounded down to what the number of probes can resolve: 4 of 40."""
    rng = np.random.default_rng(1)
    y = np.arange(30) % 2
    kept = []
    for seed in range(150):
        X = rng.normal(size=(30, 10))
        selector = ProbeSelector(FisherScore(), level=0.1, probes=probes, n_probes=39, random_state=seed)
        kept.append(selector.fit(X, y).n_features_)
    expected = 10 * 4 / 40
    # The features of one draw share their probes; the standard error of the mean is estimated from the draws.
    assert abs(np.mean(kept) - expected) < 3 * np.std(kept) / np.sqrt(150)


def test_ties_do_not_favour_the_data():
    X, y = make_data(shift=0.0)
    p_values = np.concatenate(
        [
            ProbeSelector(AllTheSame(), n_probes=20, n_features_to_select=1, random_state=seed)
            .fit(X, y)
            .p_values_
            for seed in range(40)
        ]
    )
    assert abs(p_values.mean() - 0.5) < 0.1


def test_controls_are_adjusted_p_values():
    X, y = make_data(shift=1.0)
    common = {"level": 0.2, "n_probes": 300, "random_state": 0}
    rate = ProbeSelector(FisherScore(), **common).fit(X, y)
    for control, method in (("fdr", "benjamini-hochberg"), ("fwer", "holm")):
        fitted = ProbeSelector(FisherScore(), control=control, **common).fit(X, y)
        np.testing.assert_array_equal(fitted.p_values_, rate.p_values_)
        np.testing.assert_array_equal(fitted.support_, adjust_p_values(rate.p_values_, method) <= 0.2)
    np.testing.assert_array_equal(rate.support_, rate.p_values_ <= 0.2)


def test_family_wise_error_on_noise():
    rng = np.random.default_rng(2)
    y = np.arange(30) % 2
    false = [
        ProbeSelector(FisherScore(), level=0.2, control="fwer", n_probes=100, random_state=seed)
        .fit(rng.normal(size=(30, 8)), y)
        .n_features_
        > 0
        for seed in range(120)
    ]
    assert np.mean(false) <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 120)


def test_nothing_may_pass():
    X, y = make_data(shift=0.0)
    fitted = ProbeSelector(FisherScore(), level=0.001, n_probes=1000, random_state=0).fit(X, y)
    assert fitted.n_features_ == 0
    assert not fitted.support_.any()
    assert sorted(fitted.ranking_) == list(range(2, 22))
    assert fitted.path_.support(3).size == 3
    with pytest.raises(ValueError, match="selected no feature at level"):
        fitted.set_params(estimator=LogisticRegression()).fit(X, y)


def test_repeats_pool_their_probes_and_do_not_depend_on_processes():
    X, y = make_data(shift=1.0)
    common = {"n_probes": 20, "n_repeats": 6, "random_state": 0}
    one = ProbeSelector(FisherScore(), **common).fit(X, y)
    with joblib.parallel_config(backend="threading"):  # the contract suite does it with processes
        two = ProbeSelector(FisherScore(), n_jobs=2, **common).fit(X, y)
    np.testing.assert_array_equal(one.p_values_, two.p_values_)
    counts = one.p_values_ * (1 + 6 * 20) - 1
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert one.p_values_.min() == pytest.approx(1 / 121)


def test_permuted_probes_are_shuffled_columns():
    X, _ = make_data(p=5)
    X[:, 2] = 7.0
    noise = draw_probes(as_design(X), 10, "permuted", np.random.default_rng(0))
    columns = sorted(np.sort(X, axis=0).T.tolist()) * 2
    assert sorted(np.sort(noise, axis=0).T.tolist()) == sorted(columns)  # every column exactly twice
    assert not any(np.array_equal(noise[:, i], X[:, j]) for i in range(10) for j in (0, 1, 3, 4))


def test_gaussian_probes_have_the_scale_of_the_data():
    X = np.random.default_rng(0).normal(size=(2000, 3)) * [1, 10, 100] + [5, 50, 500]
    noise = draw_probes(as_design(X), 3, "gaussian", np.random.default_rng(0))
    np.testing.assert_allclose(noise.std(axis=0), X.std(axis=0), rtol=0.1)
    np.testing.assert_allclose(noise.mean(axis=0), X.mean(axis=0), rtol=0.1)


def test_sparse_data_give_the_same_result():
    X, y = make_data()
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0.0
    dense = ProbeSelector(FisherScore(), random_state=0).fit(X, y)
    sparse = ProbeSelector(FisherScore(), random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(dense.p_values_, sparse.p_values_)


def test_joined_designs_behave_like_the_joined_array():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    joined = JoinedDesign(as_design(sp.csc_array(A)), as_design(B))
    both = np.hstack([A, B])
    np.testing.assert_array_equal(joined.block(slice(None)), both)
    order = np.array([5, 0, 6, 2])
    part = joined.take(order).take_rows([3, 1])
    np.testing.assert_array_equal(part.block(slice(None)), both[np.ix_([3, 1], order)])
    np.testing.assert_allclose(joined.gram(), both @ both.T)
    np.testing.assert_allclose(joined.take(order).transpose_dot(np.ones(7)), both[:, order].sum(axis=0))
    with pytest.raises(ValueError, match="same samples"):
        JoinedDesign(as_design(A), as_design(B[:3]))


BAD_INPUT = {
    "level": ({"level": 0.0}, "greater than 0 and less than 1"),
    "probes": ({"probes": "uniform"}, "'probes' parameter"),
    "control": ({"control": "none"}, "'control' parameter"),
    "count": ({"n_probes": 0}, "'n_probes' parameter"),
    "repeats": ({"n_repeats": 1.5}, "'n_repeats' parameter"),
    "resolution": ({"level": 0.01, "n_probes": 20, "n_repeats": 1}, "Use at least 99 probes"),
    "groups": ({"selector": FisherScore(feature_groups=np.arange(20))}, "cannot have 'feature_groups'"),
    "forced": ({"selector": FisherScore(always_keep=[1])}, "cannot have 'always_keep'"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(case):
    X, y = make_data()
    given, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        ProbeSelector(**({"selector": FisherScore()} | given)).fit(X, y)


@pytest.mark.parametrize("control", ["rate", "fdr", "fwer"])
def test_the_number_of_draws_follows_from_level_and_control(control):
    """With the default number of probes an obvious feature passes, whatever is controlled."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), np.repeat([0, 1], 30)
    X[y == 1, 4] += 6.0
    selector = ProbeSelector(FisherScore(), level=0.1, control=control, random_state=0).fit(X, y)
    assert selector.support_[4]
    tests = 1 if control == "rate" else 30
    assert tests / (1 + 30 * selector.n_repeats_) <= 0.1
    assert selector.n_repeats_ == (1 if control == "rate" else 10)


def test_too_few_probes_for_the_control_are_refused_with_the_number_needed():
    X, y = np.random.default_rng(0).normal(size=(20, 30)), np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="Use at least 599 probes"):
        ProbeSelector(FisherScore(), control="fwer", n_repeats=1).fit(X, y)


@pytest.mark.parametrize(("shift", "size", "n_chosen"), [(0.0, None, 0), (4.0, None, 1), (0.0, 2, 2)])
def test_a_selector_that_limits_errors_may_choose_nothing(shift, size, n_chosen):
    X, y = noise(40, 3, 1), np.arange(40) % 2
    X[:, 1] += shift * y
    selector = ProbeSelector(
        FisherScore(), n_features_to_select=size, level=0.05, random_state=0, estimator=LogisticRegression()
    )
    if not n_chosen:
        with pytest.raises(ValueError, match="selected no feature at level"):
            selector.fit(X, y)
        selector.set_params(estimator=None)
    fitted = selector.fit(X, y)
    assert fitted.n_features_ == fitted.support_.sum() == n_chosen
    order = fitted.path_.order
    assert fitted.ranking_[order].tolist() == {0: [2, 3, 4], 1: [1, 2, 3], 2: [1, 1, 2]}[n_chosen]
    if n_chosen:
        assert fitted.estimator_.coef_.shape == (1, n_chosen)


@pytest.mark.parametrize(
    ("params", "draws"),
    [
        ({"level": 0.1}, (12, 1)),
        ({"level": 0.05}, (12, 2)),
        ({"level": 0.1, "n_probes": 9}, (9, 1)),
        ({"level": 0.1, "n_probes": 8}, (8, 2)),
        ({"level": 0.1, "control": "fdr"}, (12, 10)),
        ({"level": 0.1, "control": "fwer", "n_probes": 119}, (119, 1)),
        ({"level": 0.1, "n_probes": 3, "n_repeats": 3}, (3, 3)),
        ({"level": 0.1, "n_probes": 4, "n_repeats": 2}, None),
        ({"level": 0.1, "n_probes": 4, "n_repeats": 2, "n_features_to_select": 1}, (4, 2)),
        ({"level": 0.0012, "control": "fdr", "n_probes": 10}, (10, 1000)),
        ({"level": 0.0011, "control": "fdr", "n_probes": 10}, None),
    ],
)
def test_enough_probes_for_a_feature_to_pass(params, draws):
    """A p-value of 1 / (1 + probes) must reach the level, divided by the twelve features where it is corrected."""
    selector = ProbeSelector(FisherScore(), random_state=0, **params)
    X, y = noise(20, 12), np.arange(20) % 2
    if draws is None:
        with pytest.raises(ValueError, match=r"too few for the level|needs \d+ draws"):
            selector.fit(X, y)
        return
    n_probes, n_repeats = draws
    assert selector.fit(X, y).n_repeats_ == n_repeats
    ahead = selector.p_values_ * (1 + n_probes * n_repeats)  # the feature itself and the probes ahead of it
    np.testing.assert_allclose(ahead, np.round(ahead), atol=1e-6)
    assert ahead.max() <= 1 + n_probes * n_repeats


def test_designs_side_by_side():
    left, right = zeronorm.as_design(noise(4, 2)), zeronorm.as_design(noise(4, 3, 1))
    both = JoinedDesign(left, right)
    whole = np.column_stack([left.block(slice(None)), right.block(slice(None))])
    np.testing.assert_array_equal(both.block(slice(None)), whole)
    np.testing.assert_array_equal(
        both.take([4, 1, 2]).take_rows([3, 0]).block([2, 0]), whole[np.ix_([3, 0], [2, 4])]
    )
    with pytest.raises(ValueError, match="Got 4 and 5 samples"):
        JoinedDesign(left, zeronorm.as_design(noise(5)))


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
