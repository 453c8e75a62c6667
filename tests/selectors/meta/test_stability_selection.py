"""StabilitySelection: bounds by hand, halves, false selections on noise."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small_problems import noise
from zeronorm import FisherScore, LassoSelector, StabilitySelection
from zeronorm.engines._error_control import draw_halves, false_selection_bound


def make_data(n=60, p=40, shift=2.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, :3] += shift * y[:, None]
    return X, y


def test_finds_the_informative_features():
    X, y = make_data()
    fitted = StabilitySelection(FisherScore(), random_state=0).fit(X, y)
    assert np.flatnonzero(fitted.support_).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(fitted.support_, fitted.frequencies_ >= 0.75)
    assert fitted.false_selections_ <= 1.0
    assert fitted.subset_size_ == 4  # 16 / 40 / (2 * 0.75 - 1) = 0.8, while 5 features would give 1.25


def test_a_hundred_subsamples_as_its_authors_advise():
    """Meinshausen & Bühlmann (2010); the bounds hold for pairs of halves, of which there are fifty."""
    assert StabilitySelection(FisherScore()).n_subsamples == 100


def test_frequencies_match_a_plain_loop():
    X, y = make_data(shift=0.5)
    fitted = StabilitySelection(FisherScore(), subset_size=5, n_subsamples=10, random_state=3).fit(X, y)
    halves = draw_halves(60, y, 10, True, np.random.default_rng(3))
    counts = np.zeros(40)
    for rows in halves:
        counts[FisherScore().fit(X[rows], y[rows]).path_.support(5)] += 1
    np.testing.assert_allclose(fitted.frequencies_, counts / 10)
    np.testing.assert_allclose(fitted.scores_, fitted.frequencies_)
    assert np.all(np.diff(fitted.frequencies_[fitted.path_.order]) <= 0)


def test_bounds_by_hand():
    """p = 1000, q = 50: theta q = 2.5."""
    assert false_selection_bound(50, 1000, 0.9) == pytest.approx(2.5 / 0.8)
    # 50 pairs: 1/(2b) = 0.01; at 0.9: 4 (0.1 + 0.01) / 1.02; at 0.6: 1 / (2 (0.2 - 0.01))
    assert false_selection_bound(50, 1000, 0.9, n_pairs=50) == pytest.approx(2.5 * 0.44 / 1.02)
    assert false_selection_bound(50, 1000, 0.6, n_pairs=50) == pytest.approx(2.5 / 0.38)
    # So large a share of all features that the unimodal bound does not hold: the worst case.
    assert false_selection_bound(500, 1000, 0.6, n_pairs=50) == pytest.approx(250 / 0.2)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100), st.floats(0.51, 1.0), st.integers(1, 100))
def test_unimodal_bound_is_never_worse_and_both_grow_with_the_subset(size, threshold, n_pairs):
    worst = false_selection_bound(size, 100, threshold)
    assert false_selection_bound(size, 100, threshold, n_pairs=n_pairs) <= worst
    assert worst < false_selection_bound(size + 1, 100, threshold)


@pytest.mark.parametrize("in_pairs", [True, False])
@pytest.mark.parametrize("n", [40, 41])
def test_halves(in_pairs, n):
    strata = np.r_[np.zeros(12, dtype=int), np.ones(n - 12, dtype=int)]
    halves = draw_halves(n, strata, 6, in_pairs, np.random.default_rng(0))
    assert [len(rows) for rows in halves] == [20] * 6
    for rows in halves:
        assert len(set(rows)) == 20
        assert abs(np.sum(strata[rows] == 0) - 6) <= 1
    disjoint = [not set(halves[i]) & set(halves[i + 1]) for i in (0, 2, 4)]
    assert disjoint == [in_pairs] * 3
    plain = draw_halves(n, None, 2, in_pairs, np.random.default_rng(0))
    assert len(np.unique(plain[0])) == 20


@pytest.mark.parametrize(
    ("sampling", "assumption"),
    [("halves", "worst_case"), ("complementary_pairs", "worst_case"), ("complementary_pairs", "unimodal")],
)
def test_expected_false_selections_stay_below_the_bound(sampling, assumption):
    rng = np.random.default_rng(4)
    y = np.arange(40) % 2
    false = []
    for seed in range(30):
        X = rng.normal(size=(40, 30))
        X[:, 0] += 2 * y
        selector = StabilitySelection(
            FisherScore(), threshold=0.6, subset_size=4, n_subsamples=30, sampling=sampling, assumption=assumption,
            random_state=seed,
        )  # fmt: skip
        fitted = selector.fit(X, y)
        false.append(fitted.support_[1:].sum())
    assert np.mean(false) <= fitted.false_selections_ + 3 * np.std(false) / np.sqrt(30)
    assert np.mean(false) > 0  # the setting is loose enough for the bound to be tried


def test_processes_do_not_change_the_result():
    X, y = make_data(shift=0.5)
    one = StabilitySelection(FisherScore(), n_subsamples=8, random_state=0).fit(X, y)
    with joblib.parallel_config(backend="threading"):  # the contract suite does it with processes
        two = StabilitySelection(FisherScore(), n_subsamples=8, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.frequencies_, two.frequencies_)


def test_nothing_may_pass():
    X, y = make_data(shift=0.0)
    fitted = StabilitySelection(FisherScore(), threshold=1.0, subset_size=1, random_state=0).fit(X, y)
    assert fitted.n_features_ == 0


BAD_INPUT = {
    "threshold": ({"threshold": 0.5}, "'threshold' parameter"),
    "false selections": ({"false_selections": 0}, "'false_selections' parameter"),
    "too strict": ({"false_selections": 0.01}, "even subsets of one feature allow 0.05 false selections"),
    "subset": ({"subset_size": 41}, "at most the number of features of X, 40"),
    "subsamples": ({"n_subsamples": 1}, "'n_subsamples' parameter"),
    "sampling": ({"sampling": "bootstrap"}, "'sampling' parameter"),
    "assumption": ({"assumption": "exact"}, "'assumption' parameter"),
    "no pairs": (
        {"sampling": "halves", "assumption": "unimodal"},
        "must be 'worst_case' with",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(case):
    X, y = make_data()
    given, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        StabilitySelection(FisherScore(), **given).fit(X, y)


def test_under_a_shared_factor_the_bound_holds_for_what_it_counts():
    """Features correlated with a relevant one are chosen often and not counted, as ``assumption_`` states."""
    rng = np.random.default_rng(0)
    p, n, n_draws = 40, 60, 25
    frequencies, bound = np.zeros(p), 0.0
    kept = np.zeros((n_draws, p), dtype=bool)
    for draw in range(n_draws):
        factor, y = rng.normal(size=(n, 1)), np.repeat([0, 1], n // 2)
        X = rng.normal(size=(n, p))
        X[:, :10] += factor + 1.2 * y[:, None]  # one relevant cause and its followers
        selector = StabilitySelection(
            FisherScore(), n_subsamples=20, false_selections=2.0, random_state=draw
        ).fit(X, y)
        frequencies += selector.frequencies_ / n_draws
        kept[draw], bound = selector.support_, selector.false_selections_
    counted = frequencies < selector.subset_size_ / p
    assert kept[:, counted].sum(axis=1).mean() <= bound
    assert kept[:, :10].sum(axis=1).mean() > bound
    assert f"below {selector.subset_size_}/{p}" in selector.assumption_


def test_subsets_of_stability_selection_have_at_most_all_features():
    def size(p, **params):
        selector = StabilitySelection(FisherScore(), n_subsamples=2, **params)
        return selector.fit(noise(12, p), np.arange(12) % 2).subset_size_

    assert size(5, subset_size=5) == 5
    with pytest.raises(ValueError, match="at most the number of features of X, 5"):
        size(5, subset_size=6)
    # With q of p features and threshold 3/4 the bound is 2 q² / p: six of a hundred allow 0.72, ten allow 2.
    for allowed, found in ((2.0, 10), (1.99, 9), (0.02, 1)):
        assert size(100, threshold=0.75, false_selections=allowed) == found
    with pytest.raises(ValueError, match=r"even subsets of one feature allow 0\.02 false selections"):
        size(100, threshold=0.75, false_selections=0.019)


# -- The integrated bound, q-values, the default selector and groups of samples --


def test_works_without_arguments():
    X, y = make_data()
    fitted = StabilitySelection(random_state=0).fit(X, y)
    assert set(np.flatnonzero(fitted.support_)) == {0, 1, 2}
    clone = StabilitySelection(bound="integrated", random_state=0).fit(X, y)
    assert np.all(clone.q_values_[:3] < clone.q_values_[3:].min())


def test_integrated_bound_gives_q_values_and_expected_false_selections():
    X, y = make_data(p=100, shift=3.0)
    fitted = StabilitySelection(FisherScore(), bound="integrated", random_state=0).fit(X, y)
    assert np.flatnonzero(fitted.support_).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(fitted.support_, fitted.q_values_ <= 0.1)
    assert fitted.n_false_expected_.shape == (100,)
    assert np.all(np.diff(fitted.n_false_expected_) >= 0)
    assert fitted.false_selections_ == fitted.n_false_expected_[2] <= 0.3
    assert "permuted target" in fitted.assumption_
    assert fitted.stability_paths_.shape[1] == fitted.permuted_path_.size
    best = fitted.path_.order[: len(fitted.stability_paths_)]
    at = fitted.subset_size_ - 1
    np.testing.assert_allclose(fitted.stability_paths_[:, at], fitted.frequencies_[best])
    paper = StabilitySelection(FisherScore(), bound="integrated", n_permutations=0, random_state=0).fit(X, y)
    assert paper.permuted_path_.size == 0
    assert "too small" in paper.assumption_
    assert paper.subset_size_ >= fitted.subset_size_


def test_noise_is_selected_in_no_more_data_sets_than_the_level():
    rng = np.random.default_rng(0)
    n_draws, level = 30, 0.1
    any_selected = [
        StabilitySelection(FisherScore(), bound="integrated", level=level, n_subsamples=40, random_state=i)
        .fit(rng.normal(size=(40, 60)), np.arange(40) % 2)
        .support_.any()
        for i in range(n_draws)
    ]
    assert np.mean(any_selected) <= level + 2 * np.sqrt(level * (1 - level) / n_draws)


def test_halves_of_whole_patients_keep_the_bound():
    """16 patients with 4 samples each, no feature related to the label: 1.92 were kept, of 0.98 expected."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(16), 4)
    kept, split = [], []
    for seed in range(30):
        X = (2.0 * rng.normal(size=(16, 100)))[groups] + rng.normal(size=(64, 100))
        y = rng.permutation(np.arange(16) % 2)[groups]
        selector = StabilitySelection(FisherScore(), n_subsamples=50, random_state=seed)
        kept.append(selector.fit(X, y, groups=groups).n_features_)
        bound = selector.false_selections_
        split.append(selector.fit(X, y).n_features_)
    assert np.mean(kept) <= bound
    assert np.mean(split) > bound  # halves that divide patients are not independent


def test_weights_of_samples_are_refused_with_a_remedy():
    X, y = make_data()
    with pytest.raises(TypeError, match=r"sample_weight.*Leave them out, or set 'estimator'.*LassoSelector"):
        StabilitySelection().fit(X, y, sample_weight=np.ones(60))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sampling": "halves"}, "'complementary_pairs' with bound='integrated'"),
        ({"n_subsamples": 7}, "an even number with bound='integrated'"),
        ({"subset_size": 41}, "at most the number of features of X, 40"),
        ({"n_permutations": -1}, "'n_permutations' parameter"),
        ({"level": 1.0}, "'level' parameter"),
    ],
)
def test_bad_input_of_the_integrated_bound(given, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        StabilitySelection(FisherScore(), bound="integrated", **given).fit(X, y)


@pytest.mark.parametrize("bound", ["frequency", "integrated"])
def test_least_angle_paths_end_where_later_features_do_not_count(bound, monkeypatch):
    """Same result as with whole paths, which take twice the time or more."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 150))
    y = X[:, :4].sum(axis=1) + rng.normal(size=60)
    wrapped = LassoSelector(method="lars", task="regression")
    options = {"bound": bound, "n_subsamples": 10, "random_state": 0}
    short = StabilitySelection(wrapped, **options).fit(X, y)
    monkeypatch.setattr(StabilitySelection, "_ended_after", lambda self, n: self.selector)
    whole = StabilitySelection(wrapped, **options).fit(X, y)
    assert np.array_equal(short.frequencies_, whole.frequencies_)
    assert np.array_equal(short.scores_, whole.scores_)
    if bound == "integrated":
        assert np.array_equal(short.q_values_, whole.q_values_)
        assert np.array_equal(short.permuted_path_, whole.permuted_path_)
        assert short.subset_size_ == whole.subset_size_ < 30
