"""The candidates of AutoSelector: which methods compete, how they are configured and compared."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.utils import get_tags

import zeronorm
from small_problems import noise, problem_of
from zeronorm import RFE, AutoSelector, FisherScore, LassoSelector
from zeronorm.datasets import make_linear_toy
from zeronorm.selection._path import SelectionPath
from zeronorm.selectors.meta import _auto as auto
from zeronorm.selectors.meta._auto import choose_method
from zeronorm.selectors.meta._consensus import SHORTLIST, Consensus


@pytest.mark.parametrize(
    ("gain", "sizes", "n_splits", "is_told"),
    [
        ([0.2, 0.2, 0.2], (2, 50, 51), 3, True),
        ([0.06, 0.06, 0.06], (2, 50, 51), 3, True),
        ([0.04, 0.04, 0.04], (2, 50, 51), 3, False),
        ([0.1, 0.2, 0.3], (2, 50, 51), 3, True),  # 3.5 standard errors
        ([0.05, 0.2, 0.3], (2, 50, 51), 3, False),  # 2.5 of them
        ([0.2, 0.2, 0.2], (51, 60, 70), 3, False),
        ([0.2], (2, 50, 51), 1, False),
    ],
)
def test_nonlinearity_is_reported_where_it_is_clearly_better(gain, sizes, n_splits, is_told, monkeypatch):
    @np.vectorize
    def chosen(fold, size):
        return 0.5 if size <= 50 else 9.0

    class Plan(SimpleNamespace):
        pass

    monkeypatch.setattr(auto, "replace", lambda plan, **given: Plan(**given))
    asked = []

    def score_folds(self, plan, ranked, splits, progress):
        asked.append((plan.sizes, [list(paths) for paths in ranked]))
        return {"relief": 0.5 + np.asarray(gain)[splits][:, None] + np.zeros((1, len(plan.sizes)))}, {}

    monkeypatch.setattr(auto.AutoSelector, "_score_folds", score_folds)
    splits = list(range(n_splits))
    scores = chosen(np.arange(n_splits)[:, None], np.asarray(sizes))
    ranked = [{"relief": None, "fisher": None}] * n_splits
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        auto.AutoSelector()._warn_of_nonlinearity(Plan(sizes=sizes, metrics=(None,)), ranked, splits, scores)
    assert bool(caught) is is_told
    if sizes[0] == 2 and n_splits > 1:
        assert asked == [((size,), [["relief"]]) for size in (2, 50) for _ in range(n_splits)]
    else:
        assert asked == []
    if is_told:
        mean = 0.5 + np.mean(gain)
        assert f"(mean score {mean:.2f})" in str(caught[0].message)
        assert "(0.50)" in str(caught[0].message)


def test_the_settings_of_the_consensus_inside(monkeypatch):
    asked = []

    class Recorder:
        def __init__(self, members, **params):
            self.members, self.params = members, params

        def _fit(self, design, target, fit_params, *, groups, shared):
            asked.append((self.params, design.shape, np.asarray(target).tolist(), groups, shared.members_C))
            return self

    monkeypatch.setattr(auto, "Consensus", Recorder)
    members = [("fisher", FisherScore()), ("relief", zeronorm.Relief())]
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
        "weights": [1.0, 0.0],
        "refine": 100,
        "random_state": 17,
    }
    given = auto.AutoSelector(selectors=("fisher", "relief"))
    given._fitted(members, replace(problem, always_keep=np.arange(0), sample_groups=None), target, rows, 17)
    params, _, _, groups, known_C = asked[1]
    assert known_C == ()
    assert (params["always_keep"], params["refine"], params["weights"], groups) == (None, 0, [1.0, 1.0], None)


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
    return auto.KnownPath(SelectionPath(order=np.arange(3)))


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


@pytest.mark.parametrize(
    ("counts", "neighbours"), [((30, 22), 10), ((30, 21), 9), ((30, 4), 1), ((30, 3), None)]
)
def test_relief_has_no_more_neighbours_than_the_classes_have(counts, neighbours, monkeypatch):
    y = np.repeat([0, 1], counts)
    members = [("fisher", FisherScore()), ("relief", zeronorm.Relief())]
    found = dict(auto._with_possible_neighbors(members, problem_of(y)))
    assert "fisher" in found
    assert getattr(found.get("relief"), "n_neighbors", None) == neighbours
    work = float(y.size) ** 2 * 3
    monkeypatch.setattr(auto, "MOST_DISTANCES", work - 1)
    assert "relief" not in dict(auto._with_possible_neighbors(members, problem_of(y)))
    monkeypatch.setattr(auto, "MOST_DISTANCES", work)
    assert ("relief" in dict(auto._with_possible_neighbors(members, problem_of(y)))) is (
        neighbours is not None
    )
    real = problem_of(np.arange(float(sum(counts))), task="regression")
    assert dict(auto._with_possible_neighbors(members, real))["relief"].n_neighbors == 10


def test_equal_subsets_are_scored_where_they_were_selected_first():
    paths = {
        "a": SelectionPath(order=np.array([0, 1, 2, 3])),
        "b": SelectionPath(order=np.array([1, 0, 3, 2])),
    }
    found = auto.first_to_name(paths, (1, 2, 3, 4))
    assert found == {
        "a": [("a", 0), ("a", 1), ("a", 2), ("a", 3)],
        "b": [("b", 0), ("a", 1), ("b", 2), ("a", 3)],
    }
    kept = {"a": paths["a"].constrained(None, np.array([2, 3]))}
    assert auto.first_to_name(kept, (1, 2, 3)) == {"a": [("a", 0), ("a", 0), ("a", 2)]}


def test_gram_schmidt_has_no_weight_by_default_and_given_methods_all_have_one():
    X, y = problem(n_samples=40, n_features=6)
    target = X[:, 0] + 0.5 * X[:, 1] ** 2
    usual = AutoSelector(task="regression", cv=2, sizes=[2], random_state=0).fit(X, target).selector_
    weight = dict(zip((name for name, _ in usual.selectors), usual.weights_, strict=True))
    assert weight.pop("gram-schmidt") == 0.0
    np.testing.assert_allclose([*weight.values()], 1.0 / len(weight))
    given = (
        AutoSelector(["fisher", zeronorm.Relief(n_neighbors=3)], cv=2, sizes=[2], random_state=0)
        .fit(X, y)
        .selector_
    )
    assert given.weights_.tolist() == [0.5, 0.5]


def problem(seed=0, n_samples=60, n_features=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def test_relief_is_compared_but_has_no_weight_in_the_consensus():
    X, y = problem(n_samples=40)
    auto = AutoSelector(cv=2, sizes=[2], random_state=0).fit(X, y)
    assert [*auto.method_scores_] == ["fisher", "arom", "l1-svm", "rfe", "relief", "consensus"]
    np.testing.assert_allclose(auto.selector_.weights_, [0.25, 0.25, 0.25, 0.25, 0.0])


def test_on_large_data_relief_is_left_out_and_elimination_removes_tenths(monkeypatch):
    X, y = problem(n_samples=40)
    monkeypatch.setattr("zeronorm.selectors.meta._auto.MOST_DISTANCES", 1.0)
    monkeypatch.setattr("zeronorm.selectors.meta._consensus.MUCH_WORK", 1.0)
    auto = AutoSelector(cv=2, sizes=[2], random_state=0).fit(X, y)
    assert "relief" not in auto.method_scores_
    elimination = dict(auto.selector_.selectors)["rfe"]
    assert (elimination.step, elimination.loss) == (
        0.1,
        "hinge",
    )  # forty samples and twenty features are not tall


def test_elimination_on_large_tall_data_has_the_squared_loss(monkeypatch):
    X, y = problem(n_samples=90, n_features=3)
    for much, settings in ((1e9, (1, "hinge")), (1.0, (0.1, "squared"))):
        monkeypatch.setattr("zeronorm.selectors.meta._consensus.MUCH_WORK", much)
        elimination = dict(AutoSelector(cv=2, sizes=[1], random_state=0).fit(X, y).selector_.selectors)["rfe"]
        assert (elimination.step, elimination.loss) == settings


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
    for selector, refine in ((AutoSelector(), SHORTLIST), (AutoSelector([("fisher", FisherScore())]), 0)):
        with pytest.raises(ZeroDivisionError):
            selector.fit(X, y)
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
    grid = sizes_tried(1100, [0, 1])
    assert (grid[0], grid[-1]) == (2, 1000)
    assert sizes_tried(3) == [1, 2, 3]
