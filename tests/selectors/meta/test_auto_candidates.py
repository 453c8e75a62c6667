"""The candidates of AutoSelector: which methods compete, how they are configured and compared."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import get_tags

from small_problems import noise, problem_of
from zeronorm import RFE, AutoSelector, FisherScore, LassoSelector
from zeronorm.datasets import make_linear_toy
from zeronorm.evaluation import nogueira_stability
from zeronorm.resampling._scored_paths import KnownPath
from zeronorm.selection._path import SelectionPath
from zeronorm.selectors.meta import _auto as auto
from zeronorm.selectors.meta._auto import choose_method, names_of_candidates, supported_order
from zeronorm.selectors.meta._consensus import SHORTLIST, Consensus


def test_the_settings_of_the_consensus_inside(monkeypatch):
    asked = []

    class Recorder:
        def __init__(self, members, **params):
            self.members, self.params = members, params

        def _fit(self, design, target, fit_params, *, groups, shared, covariates):
            asked.append((self.params, design.shape, np.asarray(target).tolist(), groups, shared.members_C))
            return self

    monkeypatch.setattr(auto, "Consensus", Recorder)
    members = [("fisher", FisherScore()), ("rfe", RFE())]
    problem = problem_of(
        [0, 1, 0, 1, 1],
        feature_groups=np.array([0, 0, 1]),
        always_keep=np.array([2]),
        sample_groups=np.array([5, 6, 7, 8, 9]),
    )
    target, rows = np.array(list("abcde")), np.array([1, 3])
    auto.AutoSelector()._fitted(members, problem, target, rows, 17, (None, 0.5))
    params, shape, labels, groups, known_C = asked[0]
    assert (shape, labels, groups.tolist(), known_C) == ((2, 3), ["b", "d"], [6, 8], (None, 0.5))
    assert params.pop("feature_groups") is problem.feature_groups
    assert params.pop("always_keep") is problem.always_keep
    assert params == {
        "task": "classification",
        "n_features_to_select": 1.0,
        "refine": 0,  # with two classes
        "random_state": 17,
    }
    given = auto.AutoSelector(selectors=("fisher", "rfe"))
    given._fitted(members, replace(problem, always_keep=np.arange(0), sample_groups=None), target, rows, 17)
    params, _, _, groups, known_C = asked[1]
    assert known_C == ()
    assert (params["always_keep"], params["refine"], groups) == (None, 0, None)


def test_paths_of_the_methods_and_of_their_consensus():
    problem = problem_of([0, 1, 0, 1], feature_groups=None, always_keep=np.array([1]))
    whole = SelectionPath(order=np.array([2, 0, 1]), n_iter=7, converged=False, remedy="wait")
    fitted = SimpleNamespace(ranks_=np.array([[1, 2, 3], [3, 2, 1]]), path_=whole)
    members = [("a", None), ("b", None)]
    found = auto.AutoSelector()._paths(members, fitted, problem)
    assert {name: path.order.tolist() for name, path in found.items()} == {
        "a": [1, 0, 2],
        "b": [1, 2, 0],
        "consensus": [1, 2, 0],
    }
    assert {(path.n_iter, path.converged, path.remedy) for path in found.values()} == {(7, False, "wait")}
    alone = auto.AutoSelector()._paths(
        members[:1], SimpleNamespace(ranks_=fitted.ranks_[:1], path_=whole), problem
    )
    assert list(alone) == ["a"]


@pytest.mark.parametrize(
    ("selectors", "is_sparse", "has_gaps"),
    [
        (("fisher", "golub"), True, False),
        (("relief",), True, True),
        (("relief", "fisher"), True, False),
        (("interval", "fisher"), False, False),
    ],
)
def test_sparse_data_and_missing_values_are_allowed_if_all_methods_allow_them(selectors, is_sparse, has_gaps):
    tags = get_tags(AutoSelector(selectors)).input_tags
    assert (tags.sparse, tags.allow_nan) == (is_sparse, has_gaps)


def known_path():
    return KnownPath(SelectionPath(order=np.arange(3)))


def test_methods_get_the_settings_of_the_selector():
    X = noise(24, 3)
    settings = {"always_keep": [1], "feature_groups": [0, 0, 1]}
    selector = AutoSelector(
        [("own", LassoSelector(n_alphas=5)), "fisher"], task="regression", cv=2, sizes=[2], **settings
    )
    copy = dict(selector.fit(X, X[:, 0] + X[:, 2]).selector_.selectors)["own"]
    assert (copy.task, copy.n_alphas) == ("regression", 5)
    assert (list(copy.always_keep), list(copy.feature_groups)) == ([1], [0, 0, 1])
    with pytest.raises(ValueError, match="'feature_groups' parameter of AutoSelector needs methods"):
        AutoSelector([known_path()], **settings).fit(X, np.arange(24) % 2)


def test_binary_methods_are_left_out_with_three_classes():
    X, y = noise(24, 3), np.arange(24) % 3
    both = AutoSelector(["golub", "fisher", ("own", known_path())], cv=2, sizes=[2], random_state=0).fit(X, y)
    assert [*both.method_scores_] == ["fisher", "own", "consensus"]
    with pytest.raises(ValueError, match=r"holds no method for a multiclass target\. Got \['golub'\]"):
        AutoSelector(["golub"]).fit(X, y)


def test_the_consensus_stays_unless_a_method_is_better_by_more_than_a_standard_error():
    base = np.array([0.5, 0.6, 0.7, 0.6])
    gain = np.array([0.0, 0.2, 0.1, 0.1])  # mean 0.1, standard error 0.0408
    scores = {"a": base + gain, "consensus": base}
    assert choose_method(scores) == "a"
    one_error = gain - gain.mean() + np.std(gain, ddof=1) / 2.0
    assert choose_method({"a": base + one_error, "consensus": base}) == "consensus"
    assert choose_method({"a": base + one_error + 1e-3, "consensus": base}) == "a"
    assert choose_method({"a": base - 0.1, "consensus": base}) == "consensus"
    assert choose_method({"a": base, "b": base + 0.1}) == "b"
    assert choose_method({"a": np.array([0.7]), "consensus": np.array([0.6])}) == "a"  # one fold has no error
    assert choose_method({"a": np.array([0.6]), "consensus": np.array([0.6])}) in ("a", "consensus")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_all_methods_of_the_consensus_have_the_same_weight(task):
    X, y = problem(n_samples=40, n_features=6)
    target = y if task == "classification" else X[:, 0] + 0.5 * X[:, 1] ** 2
    usual = AutoSelector(task=task, cv=2, sizes=[2], random_state=0).fit(X, target)
    names = list(names_of_candidates("binary" if task == "classification" else task))
    assert [name for name, _ in usual.selector_.selectors] == names
    np.testing.assert_allclose(usual.selector_.weights_, 1 / len(names))
    given = AutoSelector(["fisher", "svm-weights"], cv=2, sizes=[2], random_state=0).fit(X, y).selector_
    assert given.weights_.tolist() == [0.5, 0.5]


def problem(seed=0, n_samples=60, n_features=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def test_elimination_on_large_data_removes_tenths(monkeypatch):
    X, _ = problem(n_samples=40)
    monkeypatch.setattr("zeronorm.selectors.meta._consensus.MUCH_WORK", 1.0)
    auto = AutoSelector(cv=2, sizes=[2], random_state=0).fit(X, np.arange(40) % 3)
    elimination = dict(auto.selector_.selectors)["rfe"]
    assert (elimination.step, elimination.loss) == (
        0.1,
        "hinge",
    )  # forty samples and twenty features are not tall


def test_elimination_on_large_tall_data_has_the_squared_loss(monkeypatch):
    X, y = problem(n_samples=600, n_features=3)
    y = y + (X[:, 2] > 1.0)
    for much, expected in ((1e9, (1, "hinge")), (1.0, (0.1, "squared"))):
        monkeypatch.setattr("zeronorm.selectors.meta._consensus.MUCH_WORK", much)
        elimination = dict(AutoSelector(cv=2, sizes=[1], random_state=0).fit(X, y).selector_.selectors)["rfe"]
        assert (elimination.step, elimination.loss) == expected


def test_methods_that_do_not_support_the_target_are_left_out():
    X, _ = problem()
    y = np.arange(60) % 3
    auto = AutoSelector(["fisher", "golub"], cv=2).fit(X, y)
    assert list(auto.method_scores_) == ["fisher"]
    assert auto.verdict() == "One method (fisher) was given."
    with pytest.raises(ValueError, match="holds no method for a multiclass target"):
        AutoSelector(["golub"], cv=2).fit(X, y)


def test_selectors_names_and_pairs_may_be_given():
    X, y = make_linear_toy(40, random_state=0)[:2]
    given = [FisherScore(), "svm-weights", ("mine", RFE())]
    selector = AutoSelector(given, cv=2, random_state=0).fit(X, y)
    assert set(selector.method_scores_) == {"FisherScore", "svm-weights", "mine", "consensus"}
    with pytest.raises(
        ValueError, match=r"different names. Got 'FisherScore' twice; give pairs \(name, selector\)"
    ):
        AutoSelector([FisherScore(), FisherScore()]).fit(X, y)


def test_the_usual_methods_are_refined_jointly_and_given_ones_are_not(monkeypatch):
    X, y = problem(n_samples=30, n_features=6)
    asked = []
    monkeypatch.setattr(Consensus, "_fit", lambda self, *args, **kwargs: asked.append(self.refine) or 1 / 0)
    given = AutoSelector([("fisher", FisherScore())])
    for selector, target, refine in (
        (AutoSelector(), np.arange(30) % 3, SHORTLIST),
        (AutoSelector(), y, 0),
        (given, y, 0),
    ):
        with pytest.raises(ZeroDivisionError):
            selector.fit(X, target)
        assert set(asked) == {refine}
        asked.clear()


def sizes_tried(p, kept=None, **params):
    X, y = noise(20, p), np.arange(20) % 2
    chooser = AutoSelector(["fisher"], always_keep=kept, cv=2, **params)
    return chooser.fit(X, y).cv_results_["size"].tolist()


def test_the_sizes_that_are_tried():
    assert sizes_tried(9, n_features_to_select=4) == [4]
    with pytest.raises(ValueError, match="3 features are always kept"):
        sizes_tried(9, [0, 1, 2], n_features_to_select=2)
    assert sizes_tried(9, sizes=[9, 3]) == [3, 9]
    with pytest.raises(ValueError, match="counts up to the 9 features of X"):
        sizes_tried(9, sizes=[10])
    assert sizes_tried(30) == list(range(1, 31))
    grid = np.array(sizes_tried(1100, [0, 1]))
    assert (grid[0], grid[-1]) == (2, 500)
    assert (grid[1:] / grid[:-1])[grid[1:] > 12].max() < 1.4
    assert sizes_tried(3) == [1, 2, 3]


@settings(max_examples=100, deadline=None)
@given(
    st.permutations(range(8)),
    st.integers(1, 8),
    st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=8, max_size=8),
)
def test_what_every_fold_selects_is_in_and_what_none_selects_is_out(order, size, frequencies):
    order, frequencies = np.asarray(order), np.asarray(frequencies)
    found = supported_order(order, size, frequencies)
    assert sorted(found) == list(range(8))
    first = set(found[:size].tolist())
    always, never = (set(np.flatnonzero(frequencies == value).tolist()) for value in (1.0, 0.0))
    assert len(first & always) == min(size, len(always))
    assert len(first - never) == min(size, 8 - len(never))
    if always <= set(order[:size].tolist()) and not never & set(order[:size].tolist()):
        np.testing.assert_array_equal(found, order)


def test_other_seeds_select_nearly_the_same_features():
    """The seed determines the folds; the order of the features of classes does not depend on them."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 60)), np.arange(60) % 2
    X[:, :8] += np.linspace(1.0, 0.3, 8) * y[:, None]
    fits = [AutoSelector(random_state=seed).fit(X, y) for seed in range(3)]
    lists = [fit.get_support(indices=True) for fit in fits]
    assert nogueira_stability(lists, 60).estimate > 0.8
    sizes = [len(features) for features in lists]
    assert max(abs(size - np.median(sizes)) for size in sizes) <= 0.3 * np.median(sizes)
