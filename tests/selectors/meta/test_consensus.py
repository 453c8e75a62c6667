"""Consensus: the aggregation by hand, error control on noise, reproducibility."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import zeronorm
from small_problems import INF
from zeronorm import AROM, L1SVM, RFE, Consensus, FisherScore, SelectionPath
from zeronorm.design import Design
from zeronorm.engines import _cost as cost
from zeronorm.engines._error_control import false_selection_bound
from zeronorm.engines.elimination._smooth_models import least_missed_last
from zeronorm.registry import register
from zeronorm.selection._problem import EmptySelectionWarning
from zeronorm.selectors._base import BaseSelector
from zeronorm.selectors.meta import _consensus as module


@register("test-fixed-order", family="filters", tasks=("binary", "multiclass"), reference="")
class FixedOrder(BaseSelector):
    """Ranks features in a given order, whatever the data."""

    def __init__(self, order=None, n_features_to_select=None):
        self.order = order
        self.n_features_to_select = n_features_to_select

    def _select(self, problem):
        return SelectionPath(order=np.asarray(self.order))


def noise(n=40, p=30, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)), np.repeat([0, 1], n // 2)


def test_aggregations_by_hand():
    X, y = noise(p=4)
    selectors = [FixedOrder([0, 1, 2, 3]), FixedOrder([1, 3, 2, 0]), FixedOrder([0, 2, 1, 3])]
    # ranks by feature: 0: 1, 4, 1; 1: 2, 1, 3; 2: 3, 3, 2; 3: 4, 2, 4
    log_rank = Consensus(selectors).fit(X, y)
    np.testing.assert_allclose(log_rank.mean_log_ranks_, np.log([4, 6, 18, 32]) / 3)
    assert log_rank.path_.order.tolist() == [0, 1, 2, 3]
    mean_rank = Consensus(selectors, aggregation="mean_rank").fit(X, y)
    assert mean_rank.path_.order.tolist() == [0, 1, 2, 3]  # 6 and 6 of 3: the tie goes to the mean log rank
    frequency = Consensus(selectors, aggregation="frequency", subset_size=2).fit(X, y)
    np.testing.assert_allclose(frequency.frequencies_, [2 / 3, 2 / 3, 1 / 3, 1 / 3])
    assert frequency.path_.order.tolist() == [0, 1, 2, 3]


def test_given_weights_are_those_of_the_mean_and_zero_leaves_a_selector_out():
    X, y = noise(p=4)
    selectors = [FixedOrder([0, 1, 2, 3]), FixedOrder([1, 3, 2, 0]), FixedOrder([3, 2, 1, 0])]
    fitted = Consensus(selectors, weights=[3.0, 1.0, 0.0]).fit(X, y)
    np.testing.assert_allclose(fitted.weights_, [0.75, 0.25, 0.0])
    np.testing.assert_allclose(fitted.mean_log_ranks_, np.log([4, 8, 27 * 3, 64 * 2]) / 4)
    assert fitted.path_.order.tolist() == [0, 1, 2, 3]
    assert fitted.ranks_.shape == (3, 4)


def test_one_poor_rank_does_not_outweigh_a_first_rank_with_log_ranks():
    X, y = noise(p=30)
    far = FixedOrder([1, 2, 3, 4, 5, 6, 0, *range(7, 30)])
    near = [FixedOrder(range(30)) for _ in range(3)]
    assert Consensus([*near, far]).fit(X, y).path_.order[0] == 0
    assert Consensus([*near, far], aggregation="mean_rank").fit(X, y).path_.order[0] == 1


def test_an_unstable_selector_counts_less():
    X, y = noise(60, 40)
    settings = {"weights": "stability", "n_subsamples": 10, "subset_size": 3, "random_state": 0}
    fitted = Consensus([FisherScore(), FixedOrder(range(40))], **settings).fit(X, y)
    # The fixed order never changes with the sample, the Fisher score of noise always does.
    assert fitted.weights_.sum() == pytest.approx(1.0)
    assert fitted.weights_[1] > 0.8


def test_the_bound_on_false_selections_holds_on_noise():
    counts = []
    for seed in range(20):
        X, y = noise(60, 40, seed)
        fitted = Consensus([FisherScore()], n_subsamples=20, subset_size=5, random_state=seed).fit(X, y)
        counts.append(np.sum(fitted.frequencies_ >= 0.75))
    bound = fitted.false_selections(0.75)
    assert bound == pytest.approx(5**2 / 40 / 0.5)
    assert np.mean(counts) <= bound


def test_default_methods_find_the_relevant_features():
    X, y = noise(60, 50)
    X[np.ix_(y == 1, [4, 9])] += 2.5
    assert set(Consensus(n_features_to_select=2).fit(X, y).get_support(True)) == {4, 9}


def test_default_methods_for_regression():
    X, _ = noise(60, 30)
    y = 2 * X[:, 3] - X[:, 7] + 0.1 * np.random.default_rng(1).normal(size=60)
    assert set(Consensus(task="regression", n_features_to_select=2).fit(X, y).get_support(True)) == {3, 7}


def test_processes_do_not_change_the_result():
    X, y = noise()
    one, two = (
        Consensus([FisherScore(), FixedOrder(range(30))], n_subsamples=4, random_state=1, n_jobs=jobs).fit(
            X, y
        )
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.path_.order, two.path_.order)
    np.testing.assert_array_equal(one.frequencies_, two.frequencies_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"selectors": []}, "'selectors' parameter of Consensus must be None, a list"),
        ({"selectors": [FisherScore]}, "'selectors' parameter of Consensus must be"),
        (
            {"selectors": [FisherScore(), FisherScore()], "weights": "stability"},
            "must be 'equal' when 'n_subsamples' is below 2",
        ),
        (
            {"selectors": [FisherScore(), FisherScore()], "weights": [1.0]},
            "'weights' parameter of Consensus must be .* 2 numbers",
        ),
        (
            {"selectors": [FisherScore(), FisherScore()], "weights": [0.0, 0.0]},
            "'weights' parameter of Consensus must be .* not all 0",
        ),
    ],
)
def test_bad_input(given, message):
    X, y = noise()
    with pytest.raises(ValueError, match=message):
        Consensus(**given).fit(X, y)


def test_a_bound_needs_halves():
    X, y = noise()
    with pytest.raises(ValueError, match="needs frequencies on halves"):
        Consensus([FisherScore()]).fit(X, y).false_selections()


def test_empty_selections_of_the_selectors_inside_cause_no_warning():
    X, y = noise()
    with pytest.warns(EmptySelectionWarning, match="L1SVM selects no feature"):
        L1SVM(C=1e-7).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Consensus([FisherScore(), L1SVM(C=1e-7)], n_subsamples=2, random_state=0).fit(X, y)


def test_one_warning_names_the_selectors_that_stopped_early_and_a_remedy_that_works():
    X, y = noise()
    X[:, 0] += 3.0 * y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = Consensus([("first", AROM(max_iter=1)), ("second", FisherScore())]).fit(X, y)
    assert not fitted.converged_
    (text,) = [str(warning.message) for warning in caught]
    assert text.startswith("Consensus did not converge: first stopped early")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Consensus([("first", AROM(max_iter=200)), ("second", FisherScore())]).fit(X, y).converged_
        assert Consensus([("second", FisherScore())]).fit(X, y).converged_


def test_selectors_without_any_stability_have_equal_weights():
    is_first = np.zeros((2, 2, 4), dtype=bool)  # two halves, two selectors, four features
    is_first[0, :, :2], is_first[1, :, 2:] = True, True
    consensus = Consensus([FisherScore(), FisherScore()], weights="stability")
    consensus.subset_size_ = 2
    assert consensus._weights(is_first).tolist() == [0.5, 0.5]


# -- the joint order of the first features ----------------------------------------------------------------------


def ridge_objective(X, T, penalty):
    weights = np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ T)
    return 0.5 * np.sum((T - X @ weights) ** 2) + 0.5 * penalty * np.sum(weights**2)


@pytest.mark.parametrize(("n", "p"), [(40, 12), (15, 30)])
def test_the_feature_that_leaves_is_the_one_without_which_the_objective_is_lowest(n, p):
    rng = np.random.default_rng(n)
    X, T = rng.normal(size=(n, p)), rng.normal(size=(n, 2))
    X[:, 3] = X[:, 4] + 0.1 * rng.normal(size=n)
    left, expected = list(range(p)), []
    while len(left) > 1:
        rest = [[other for other in left if other != j] for j in left]
        expected.append(left[int(np.argmin([ridge_objective(X[:, some], T, 2.0) for some in rest]))])
        left.remove(expected[-1])
    order = least_missed_last(X.T @ X, X.T @ T, 2.0)
    assert order.tolist() == [*left, *expected[::-1]]


def test_of_equal_features_the_later_one_leaves_first():
    X, y = noise(30, 4)
    X[:, 2] = X[:, 0]
    order = least_missed_last(X.T @ X, X.T @ (2.0 * y - 1.0)[:, None], 1.0).tolist()
    assert order.index(0) < order.index(2)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_only_the_first_features_are_put_in_order_and_scores_agree(task):
    X, y = noise(60, 40)
    X[:, :3] += 1.5 * y[:, None]
    target = y if task == "classification" else X[:, 0] - X[:, 1] + 1e6
    plain = Consensus(refine=0, task=task).fit(X, target)
    refined = Consensus(refine=10, task=task).fit(X, target)
    before, after = plain.path_.order, refined.path_.order
    assert set(before[:10]) == set(after[:10])
    assert after[:10].tolist() != before[:10].tolist()
    assert after[10:].tolist() == before[10:].tolist()
    assert sorted(refined.scores_) == sorted(plain.scores_)
    assert np.all(np.diff(refined.scores_[np.argsort(refined.ranking_, kind="stable")][20:]) <= 0.0)
    np.testing.assert_array_equal(refined.mean_log_ranks_, plain.mean_log_ranks_)


def test_near_copies_do_not_fill_the_first_ranks():
    """Mean ranks put five near copies before the second source of information, a joint elimination does not."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 200))
    y = (first + 0.7 * second > 0.0).astype(int)
    copies = first[:, None] + 0.05 * rng.normal(size=(200, 5))
    X = np.column_stack([copies, second, rng.normal(size=(200, 20))])
    assert set(Consensus([FisherScore()], refine=0).fit(X, y).path_.order[:5].tolist()) == {0, 1, 2, 3, 4}
    for task, target in (("classification", y), ("regression", first + 0.7 * second)):
        found = Consensus([FisherScore(task=task)], task=task, refine=20).fit(X, target)
        assert 5 in found.path_.order[:3]


def test_a_copy_or_mirror_image_is_ranked_behind_other_features():
    X, y = noise(80, 40)
    X[:, 0] += 2.5 * y
    X[:, 1] += y
    X[:, 7] = 3.0 - 1.8 * X[:, 0]  # in another unit
    X[:, 9] = X[:, 1]
    order = Consensus().fit(X, y).path_.order.tolist()
    sources = {0: "a", 7: "a", 1: "b", 9: "b"}
    for pair in (order[:2], order[-2:]):
        assert {sources.get(feature) for feature in pair} == {"a", "b"}


def test_the_order_of_given_selectors_and_of_frequencies_is_not_refined():
    X, y = noise(60, 20)
    X[:, :3] += y[:, None]
    for settings in ({"selectors": [FisherScore(), AROM()]}, {"aggregation": "frequency"}):
        found = [
            Consensus(**settings, refine=refine).fit(X, y).path_.order.tolist() for refine in ("auto", 0)
        ]
        assert found[0] == found[1]
    of_default = [Consensus(refine=refine).fit(X, y).path_.order.tolist() for refine in ("auto", 100, 0)]
    assert of_default[0] == of_default[1] != of_default[2]


def test_few_samples_of_a_real_target_have_a_larger_penalty(monkeypatch):
    X, y = noise(40, 60)
    target = X[:, :20].sum(axis=1) + y

    def orders():
        tasks = (("classification", X, y), ("regression", X[:, :39], target), ("regression", X, target))
        return [Consensus(task=task).fit(features, t).path_.order for task, features, t in tasks]

    *others, real = orders()
    monkeypatch.setattr(module, "PENALTY_OF_FEW", 3.0)
    *others_again, real_with_less = orders()
    for order, again in zip(others, others_again, strict=True):
        np.testing.assert_array_equal(order, again)
    assert real.tolist() != real_with_less.tolist()
    correlation = np.abs(np.corrcoef(X.T, target)[-1, :-1])
    first = [np.mean(correlation[order[:10]]) for order in (real, real_with_less)]
    assert first[0] > first[1]  # with a large penalty what a feature is worth alone counts for more


def test_selectors_names_and_pairs_may_be_given():
    X = np.random.default_rng(0).normal(size=(40, 6))
    y = X[:, 0] + 0.1 * X[:, 1]
    given = [FisherScore(task="regression"), "lasso", ("mine", RFE(task="regression"))]
    selector = Consensus(given, task="regression", random_state=0).fit(X, y)
    assert selector.ranks_.shape == (3, 6)
    assert (selector.ranks_[:, 0] == 1).all()


def test_methods_share_one_view_of_the_data_and_rank_as_they_would_alone(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = rng.normal(size=(30, 80)) + 2.0
    X[:, :4] += y[:, None]
    views, costs = [], []
    standardize, find = Design.standardized, cost._automatic_C
    monkeypatch.setattr(
        Design, "standardized", lambda *args, **more: views.append(args) or standardize(*args, **more)
    )
    monkeypatch.setattr(cost, "_automatic_C", lambda *args: costs.append(args) or find(*args))
    members = [AROM(), L1SVM(), RFE()]
    together = Consensus(members).fit(X, y)
    assert len(views) == 1
    assert len(costs) == 1  # of AROM and RFE
    for ranks, member in zip(together.ranks_, members, strict=True):
        np.testing.assert_array_equal(ranks, member.fit(X, y).path_.position() + 1)


def test_weights_that_are_given_are_shares():
    X, y = noise(20, 6)

    def weights(given):
        return Consensus([FisherScore(), FisherScore()], weights=given, refine=0).fit(X, y).weights_

    assert weights([3.0, 1.0]).tolist() == [0.75, 0.25]
    assert weights([0.0, 1.0]).tolist() == [0.0, 1.0]
    assert weights("equal").tolist() == [0.5, 0.5]
    for wrong, text in (
        ([1.0], "2 numbers from 0, not all 0"),
        ([0.0, 0.0], "2 numbers from 0, not all 0"),
        ([-1.0, 2.0], "each a finite number of at least 0"),
        ([INF, 1.0], "each a finite number of at least 0"),
    ):
        with pytest.raises(ValueError, match=text):
            weights(wrong)


def test_weights_by_stability():
    is_first = np.zeros((4, 2, 6), dtype=bool)
    is_first[:, 0, :2] = True  # the first selector chooses the same two each time
    for half in range(4):
        is_first[half, 1, [half, 5]] = True

    def weights(halves):
        chosen = Consensus([FisherScore(), FisherScore()], weights="stability", n_subsamples=4)
        chosen.subset_size_ = 2
        return chosen._weights(halves)

    share = np.array([0.25, 0.25, 0.25, 0.25, 0.0, 1.0])
    stability = 1.0 - (4 / 3 * share * (1 - share)).mean() / (1 / 3 * 2 / 3)
    assert 0.0 < stability < 1.0
    np.testing.assert_allclose(weights(is_first), np.array([1.0, stability]) / (1.0 + stability))
    assert weights(is_first[:, :1]).tolist() == [1.0]


def test_frequencies_of_a_consensus():
    consensus = Consensus([FisherScore(), FisherScore()], n_subsamples=2)
    consensus.subset_size_, consensus.weights_ = 2, np.array([0.75, 0.25])
    ranks = np.array([[[1, 2, 3, 4], [4, 3, 2, 1]], [[2, 1, 3, 4], [1, 3, 2, 4]]])
    is_first = ranks <= 2
    alone = consensus._frequencies(is_first[:1], np.log(ranks[0])[None, 0])
    np.testing.assert_allclose(alone, [0.75, 0.75, 0.25, 0.25])
    log_ranks = np.log([[1.0, 4.0, 2.0, 2.0], [3.0, 1.0, 2.0, 4.0]])  # of equal ones the lower index
    np.testing.assert_allclose(consensus._frequencies(is_first, log_ranks), [0.5, 0.5, 1.0, 0.0])
    many = (
        np.random.default_rng(0).integers(0, 3, size=(2, 64)).astype(float)
    )  # ties that a quick sort disarranges
    consensus.subset_size_ = 30
    wanted = [
        np.isin(np.arange(64), sorted(range(64), key=lambda k, row=row: (row[k], k))[:30]) for row in many
    ]
    np.testing.assert_allclose(
        consensus._frequencies(np.ones((2, 2, 64), dtype=bool), many), np.mean(wanted, axis=0)
    )


def test_the_bound_of_a_consensus_is_that_of_its_subsets():
    X, y = noise(24, 9)[0], np.arange(24) % 2
    fitted = zeronorm.Consensus([FisherScore()], n_subsamples=4, random_state=0).fit(X, y)
    assert fitted.subset_size_ == 3
    assert fitted.false_selections() == false_selection_bound(3, 9, 0.75)
    assert fitted.false_selections(0.9) == false_selection_bound(3, 9, 0.9)
