"""The rules that choose a number of features: nested, honest about noise, and as they are stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zeronorm import AutoSelector, FisherScore, PerceptronRFE, SelectorCV
from zeronorm.resampling._size_rules import RULES, choose_sizes, smoothed, standard_errors
from zeronorm.selectors.meta._auto import usual_sizes

GRID = np.array([1, 2, 4, 8])
tables = st.lists(st.lists(st.integers(0, 10), min_size=4, max_size=4), min_size=2, max_size=6)


def test_the_rules_are_geometric_means_over_tolerances_by_hand():
    """A line in the logarithm of the size, which smoothing leaves as it is, with the standard error of one step."""
    sizes, step = 2 ** np.arange(9), 0.05
    line = 0.4 + step * np.arange(9)
    noise = np.array([-1.0, 0.0, 1.0]) * step * np.sqrt(3.0)  # its standard error is a step
    chosen = choose_sizes(sizes, line + noise[:, None])
    # The smallest within t steps is the last for t < 1 and the one before from there on.
    assert chosen == {"fewest": 7, "recommended": 8, "all": 8}
    # Within 4t steps: 0, 1, 2 and 3 for a quarter of the tolerances each; and 2, 3, 4 and 5.
    assert choose_sizes(sizes, line + 4.0 * noise[:, None]) == {"fewest": 4, "recommended": 6, "all": 8}
    assert choose_sizes(sizes, line[None])["fewest"] == 8  # one fold has no standard error


def test_sizes_vary_less_with_the_folds_than_by_a_single_tolerance():
    sizes = usual_sizes(400)
    truth = 0.9 - 0.3 / sizes**0.7
    rng = np.random.default_rng(0)
    several, one = [], []
    for _ in range(400):
        shared, own = rng.normal(scale=0.08, size=(5, 1)), rng.normal(scale=0.04, size=(5, sizes.size))
        scores = truth + shared + own
        several.append(sizes[choose_sizes(sizes, scores)["recommended"]])
        smooth = smoothed(sizes, scores.mean(axis=0))
        least = smooth.max() - 0.5 * standard_errors(scores)[smooth.argmax()]
        one.append(sizes[np.flatnonzero(smooth >= least)[0]])
    assert np.std(np.log(several)) < 0.9 * np.std(np.log(one))
    assert np.median(several) == pytest.approx(np.median(one), rel=0.5)


def test_all_is_the_peak_of_the_smoothed_curve():
    sizes = np.arange(1, 41)
    truth = 0.9 - 0.04 * np.log(sizes / 10.0) ** 2  # best at ten
    noise = np.random.default_rng(0).normal(scale=0.02, size=(5, 40))
    chosen = choose_sizes(sizes, truth + noise)
    assert sizes[chosen["all"]] == pytest.approx(10, abs=3)
    assert chosen["all"] == int(np.argmax(smoothed(sizes, (truth + noise).mean(axis=0))))


@settings(max_examples=60, deadline=None)
@given(tables)
def test_the_rules_are_nested_and_an_exchange_of_folds_changes_nothing(values):
    scores = np.asarray(values, dtype=float) / 10
    chosen = choose_sizes(GRID, scores)
    assert list(chosen) == list(RULES)
    assert chosen["fewest"] <= chosen["recommended"] <= chosen["all"]
    assert choose_sizes(GRID, scores[::-1]) == chosen


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(1, 5), st.integers(-20, 20))
def test_neither_the_unit_nor_the_origin_of_the_scores_matters(values, unit, origin):
    scores = np.asarray(values, dtype=float)
    assert choose_sizes(GRID, 2.0**unit * scores + origin) == choose_sizes(GRID, scores)


def test_no_size_is_larger_than_needed_where_all_are_equally_good():
    assert choose_sizes(GRID, np.full((5, 4), 0.8)) == dict.fromkeys(RULES, 0)


def test_a_step_at_a_pair_of_features_is_found_although_the_curve_is_smoothed():
    """Two features that act only together: chance with one, nearly perfect with two, worse with more."""
    sizes = np.arange(1, 31)
    curve = np.where(sizes == 1, 0.5, 1.0 - 0.06 * np.log(sizes))
    scores = curve + np.array([-0.01, 0.0, 0.01])[:, None]
    chosen = choose_sizes(sizes, scores)
    assert sizes[chosen["fewest"]] == sizes[chosen["recommended"]] == 2


def test_the_smallest_size_is_chosen_where_none_is_better_than_no_feature():
    scores = np.array([[-0.4, 0.0, 0.1], [-0.2, 0.1, 0.2], [-0.3, -0.1, 0.0]])  # the last has 0.1 ± 0.06
    sizes = np.array([1, 2, 3])
    assert [choose_sizes(sizes, scores, no_features=least)["fewest"] for least in (None, 0.0, 0.05)] == [
        2,
        2,
        0,
    ]
    assert set(choose_sizes(sizes, scores, no_features=0.05).values()) == {0}


def test_repeats_do_not_shrink_the_standard_error():
    """All repeats use the same samples, so the error of the mean stays that of the folds of one repeat."""
    scores = np.random.default_rng(1).normal(size=(5, 3))
    once, thrice = standard_errors(scores), standard_errors(np.tile(scores, (3, 1)), n_folds=5)
    np.testing.assert_allclose(once, scores.std(axis=0, ddof=1) / np.sqrt(5))
    np.testing.assert_allclose(thrice, np.tile(scores, (3, 1)).std(axis=0, ddof=1) / np.sqrt(5))


def test_smoothing_leaves_a_line_in_the_logarithm_of_the_size_and_sizes_far_from_others():
    sizes = np.array([1, 2, 3, 4, 6, 9, 13])
    line = 0.3 + 0.1 * np.log(sizes)
    np.testing.assert_allclose(smoothed(sizes, line), line)
    apart = np.array([1, 1000])
    np.testing.assert_allclose(smoothed(apart, np.array([0.2, 0.9])), [0.2, 0.9])


def test_smoothing_is_a_weighted_least_squares_line():
    sizes, mean = np.array([1, 2, 3, 5, 8]), np.array([0.5, 0.7, 0.6, 0.8, 0.75])
    x = np.log(sizes)
    for i, value in enumerate(smoothed(sizes, mean)):
        weight = np.exp(-0.5 * ((x - x[i]) / 0.35) ** 2)
        assert value == pytest.approx(np.polyval(np.polyfit(x, mean, 1, w=np.sqrt(weight)), x[i]))


@pytest.mark.parametrize("selector", [SelectorCV(FisherScore()), AutoSelector()])
@pytest.mark.parametrize(("former", "present"), [("one_se", "fewest"), ("best", "all")])
def test_the_error_for_a_former_name_of_a_rule_names_the_present_one(selector, former, present):
    selector.set_params(rule=former)
    message = (
        f"must be 'fewest', 'recommended' or 'all' .'{former}' is now '{present}'.. Got '{former}' instead"
    )
    with pytest.raises(ValueError, match=message):
        selector.fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_other_rules_have_no_former_names():
    with pytest.raises(
        ValueError, match=r"The 'rule' parameter of PerceptronRFE must be [^(]* Got 'best' instead"
    ):
        PerceptronRFE(rule="best").fit(np.zeros((4, 2)), [0, 1, 0, 1])
