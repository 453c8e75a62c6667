"""Parameters that exclude each other, and choices of the methods at the value where they change."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import zeronorm
from zeronorm import L1SVM, RFE, FisherScore, LassoSelector, OptimalFeatureWeighting
from zeronorm.registry import get_method
from zeronorm.selection import problem as problem_module
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selection.target import KINDS
from zeronorm.selectors.filters import gflip, gram_schmidt_relief
from zeronorm.selectors.greedy import tree
from zeronorm.selectors.meta import auto, consensus, selector_cv
from zeronorm.selectors.meta.auto import AutoSelector, choose_method
from zeronorm.selectors.meta.consensus import Consensus
from zeronorm.selectors.meta.probe_selector import JoinedDesign
from zeronorm.selectors.meta.selector_cv import SelectorCV, choose_size
from zeronorm.selectors.sparsity import l1_svm

INF = float("inf")
REGRESSION = {"task": "regression"}


@pytest.mark.parametrize(
    ("method", "wrong", "right"),
    [
        ("lasso", {"method": "lars", "norm_bound": 1.0}, [{"method": "lars"}, {"norm_bound": 1.0}]),
        ("zeronorm-svm", {"loss": "probit", "q": INF}, [{"loss": "probit"}, {"q": INF}]),
        ("arom", {"multi_class": "weston_watkins", "norm": "switch"}, [{"multi_class": "weston_watkins"}]),
        ("arom", {"multi_class": "weston_watkins", "slack_norm": 0}, [{"norm": "switch"}, {"slack_norm": 0}]),
        ("arom", {"C": INF, **REGRESSION}, [{"C": INF}, {"C": 1.0, **REGRESSION}, {"C": "auto", **REGRESSION}]),
        ("arom", {"C": INF, "slack_norm": 0}, [{"C": 1e9, "slack_norm": 0}]),
        ("ofw", {"checkpoint": "x", "method": "exact"}, [{"checkpoint": "x"}, {"method": "exact"}]),
        ("ofw", {"checkpoint": "x", "method": "exact_euclidean"}, [{"checkpoint": "x", "method": "euclidean"}]),
        ("ofw", {"step_offset": 1.0}, [{"step_size": 1.0}, {"step_size": 1.0, "step_offset": 1.0}]),
        ("grafting", {"loss": "logistic", **REGRESSION}, [{"loss": "logistic"}, REGRESSION]),
        ("grafting", {"loss": "squared_hinge", **REGRESSION}, [{"loss": "squared_error", **REGRESSION}]),
        ("tree", {"criterion": "squared_error"}, [{"criterion": "squared_error", **REGRESSION}]),
        ("tree", {"criterion": "gini", **REGRESSION}, [{"criterion": "gini"}, {"criterion": "auto", **REGRESSION}]),
        ("tree", {"n_trees": 2, "criterion": "error"}, [{"criterion": "error"}, {"n_trees": 2}]),
        ("tree", {"n_trees": 2, "ccp_alpha": "auto"}, [{"ccp_alpha": "auto"}, {"n_trees": 2, "ccp_alpha": 0.1}]),
        ("radius-margin-scaling", {"discard": "curvature", "bound": "span"}, [{"discard": "curvature"}]),
        ("radius-margin-scaling", {"discard": "curvature", "bound": "validation"}, [{"bound": "validation"}]),
        ("max-entropy-discrimination", {"epsilon": 0.0, **REGRESSION}, [{"epsilon": 0.0}, REGRESSION]),
        ("max-entropy-discrimination", {"C": 1.0}, [{"C": 1.001}, {"C": 1.0, **REGRESSION}]),
        ("ard", {"prior_shape": 1.0}, [{"prior_shape": 1.0, "prior_rate": 1.0}, {}]),
        ("ard", {"prior_rate": 1.0}, []),
        ("consensus", {"weights": "stability"}, [{"weights": "stability", "n_subsamples": 1}, {"weights": "equal"}]),
    ],
)  # fmt: skip
def test_parameters_that_exclude_each_other(method, wrong, right):
    cls = get_method(method).cls
    with pytest.raises(ValueError, match=f"parameter of {cls.__name__} must be"):
        cls(**wrong)._validate_params()
    for params in right:
        cls(**params)._validate_params()


def test_parameters_of_stability_selection_that_exclude_each_other():
    fisher = FisherScore()
    with pytest.raises(ValueError, match="'worst_case' with sampling='halves'"):
        zeronorm.StabilitySelection(fisher, sampling="halves", assumption="unimodal")._validate_params()
    zeronorm.StabilitySelection(fisher, sampling="halves")._validate_params()
    zeronorm.StabilitySelection(fisher, assumption="unimodal")._validate_params()


@pytest.mark.parametrize("cls", [zeronorm.KnockoffSelector, zeronorm.ProbeSelector])
@pytest.mark.parametrize("setting", [{"feature_groups": [0, 0, 1]}, {"always_keep": [0]}])
def test_columns_cannot_be_named_where_others_are_mixed_in(cls, setting):
    cls(FisherScore())._validate_params()
    with pytest.raises(ValueError, match=f"cannot have '{next(iter(setting))}'"):
        cls(FisherScore(**setting))._validate_params()
    with pytest.raises(ValueError, match="cannot have"):
        cls(make_pipeline(StandardScaler(), FisherScore(**setting)))._validate_params()


# -- Selectors inside others --


def test_the_selector_inside_searches_and_pipelines():
    lasso = LassoSelector(task="regression")
    inside = [
        lasso,
        make_pipeline(StandardScaler(), lasso),
        GridSearchCV(lasso, {"n_alphas": [5]}),
        RandomizedSearchCV(make_pipeline(StandardScaler(), lasso), {"lassoselector__n_alphas": [5]}),
    ]
    for selector in inside:
        whole = SelectorCV(selector)
        assert whole._innermost() is lasso
        assert whole.task == "regression"
        assert whole._tasks() == lasso._tasks()
    foreign = SelectorCV(StandardScaler())
    assert (foreign.task, foreign._tasks()) == ("classification", SelectorCV._method.tasks)
    assert SelectorCV(SimpleNamespace(task="regression")).task == "regression"


def problem_of(y, X=None, task="binary", **more):
    X = np.random.default_rng(0).normal(size=(len(y), 3)) if X is None else X
    target = KINDS[task](np.asarray(y), more.pop("classes", None))
    return Problem(design=zeronorm.as_design(X), target=target, **more)


def test_labels_as_the_user_gave_them():
    names = np.array(["p", "q", "r"])
    assert problem_of([1, 0, 1], classes=names[:2]).target.labels().tolist() == ["q", "p", "q"]
    assert problem_of([2, 0, 1], classes=names, task="multiclass").target.labels().tolist() == ["r", "p", "q"]
    assert problem_of([0.5, 2.0, 1.0], task="regression").target.labels().tolist() == [0.5, 2.0, 1.0]


# -- Which method, which size --


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


def test_sizes_by_both_rules():
    """Means 0.70, 0.78, 0.80, 0.80; the standard error of the best is 0.0289."""
    spread = np.array([-0.05, 0.0, 0.05])[:, None]
    scores = np.array([[0.70, 0.78, 0.80, 0.80]]) + spread
    assert choose_size(scores, "best") == 2  # of equally good ones the smallest
    assert choose_size(scores, "one_se") == 1
    assert choose_size(scores - [[0.0, 0.01, 0.0, 0.0]], "one_se") == 2
    assert choose_size(scores[:1], "one_se") == 2  # one fold has no standard error
    found = selector_cv.summary(np.array([1, 2, 3, 4]), scores, [], [])
    np.testing.assert_allclose(found["mean"], [0.70, 0.78, 0.80, 0.80])
    np.testing.assert_allclose(found["std"], 0.05)
    np.testing.assert_allclose(found["standard_error"], 0.05 / np.sqrt(3))
    one = selector_cv.summary(np.array([1, 2, 3, 4]), scores[:1], [], [])
    assert one["std"].tolist() == one["standard_error"].tolist() == [0.0] * 4


def path_of(p, **more):
    path = SelectionPath.from_scores(np.arange(float(p), 0.0, -1.0))
    return path.constrained(more.get("groups"), np.asarray(more.get("kept", []), dtype=np.intp))


def test_the_sizes_that_are_tried():
    grid = SelectorCV(FisherScore())._sizes_to_try(path_of(5))
    assert grid.tolist() == [1, 2, 3, 5]  # powers of the fourth root of five, rounded
    kept = SelectorCV(FisherScore())._sizes_to_try(path_of(200, kept=[0, 1, 2]))
    assert (kept[0], kept[-1]) == (3, 200)
    assert len(kept) == 20
    assert SelectorCV(FisherScore(), sizes=[4, 2, 4])._sizes_to_try(path_of(4)).tolist() == [2, 4]
    with pytest.raises(ValueError, match="counts up to the 4 features of X"):
        SelectorCV(FisherScore(), sizes=[5])._sizes_to_try(path_of(4))
    own = AutoSelector()
    assert own._sizes_to_try({"a": path_of(9)}, 4).tolist() == [4]
    assert own._sizes_to_try({"a": path_of(9, kept=[0, 1, 2])}, 2).tolist() == [3]
    assert AutoSelector(sizes=[9, 3])._sizes_to_try({"a": path_of(9)}, None).tolist() == [3, 9]
    with pytest.raises(ValueError, match="counts up to the 9 features of X"):
        AutoSelector(sizes=[10])._sizes_to_try({"a": path_of(9)}, None)
    paths = {"a": path_of(1100, kept=[0]), "b": path_of(1100, kept=[0, 1])}
    grid = own._sizes_to_try(paths, None)
    assert (grid[0], grid[-1]) == (2, 1000)
    assert own._sizes_to_try({"a": path_of(3)}, None).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("counts", "neighbours"), [((30, 22), 10), ((30, 21), 9), ((30, 4), 1), ((30, 3), None)]
)
def test_relief_has_as_many_neighbours_as_there_are(counts, neighbours, monkeypatch):
    y = np.repeat([0, 1], counts)
    members = [("fisher", FisherScore()), ("relief", zeronorm.Relief())]
    found = dict(auto._with_neighbours_at_hand(members, problem_of(y)))
    assert "fisher" in found
    assert getattr(found.get("relief"), "n_neighbors", None) == neighbours
    work = float(y.size) ** 2 * 3
    monkeypatch.setattr(auto, "MOST_DISTANCES", work - 1)
    assert "relief" not in dict(auto._with_neighbours_at_hand(members, problem_of(y)))
    monkeypatch.setattr(auto, "MOST_DISTANCES", work)
    assert ("relief" in dict(auto._with_neighbours_at_hand(members, problem_of(y)))) is (
        neighbours is not None
    )
    real = problem_of(np.arange(float(sum(counts))), task="regression")
    assert dict(auto._with_neighbours_at_hand(members, real))["relief"].n_neighbors == 10


def test_elimination_takes_tenths_where_it_is_much_work(monkeypatch):
    wide = problem_of([0, 1], np.zeros((2, 5)))  # 20 multiplications
    for most, settings in ((20.0, {}), (19.9, {"step": 0.1})):
        monkeypatch.setattr(consensus, "MUCH_WORK", most)
        assert consensus.quick_elimination(wide) == settings
    tall = problem_of(np.arange(3000) % 2, np.zeros((3000, 3)))
    assert consensus.quick_elimination(tall) == {"step": 0.1, "loss": "squared"}
    few, many = (
        dict(consensus.default_roster("classification", settings, ("rfe", "fisher")))
        for settings in ({}, {"step": 0.1})
    )
    assert (few["rfe"].step, many["rfe"].step) == (RFE().step, 0.1)
    roster = consensus.default_roster("regression", {})
    assert [name for name, _ in roster] == list(consensus.DEFAULT_METHODS["regression"])
    assert all(selector.task == "regression" for _, selector in roster)
    X = np.zeros((4, 3))
    assert consensus.work_of_elimination(problem_of([0, 1, 0, 1], X)) == 4 * 3 * 3
    three = problem_of([0, 1, 2, 1], X, "multiclass", classes=np.arange(3))
    assert consensus.work_of_elimination(three) == 4 * 3 * 3 * 3
    assert consensus.work_of_elimination(problem_of([0, 1], np.zeros((2, 5)))) == 2 * 5 * 2


def test_weights_of_a_consensus():
    is_first = np.zeros((4, 2, 6), dtype=bool)
    is_first[:, 0, :2] = True  # the first selector chooses the same two each time
    for part in range(4):
        is_first[part, 1, [part, 5]] = True

    def weights(given, parts=is_first, size=2):
        chosen = Consensus([FisherScore(), FisherScore()], weights=given, n_subsamples=4)
        chosen.subset_size_ = size
        return chosen._weights(parts)

    assert weights([3.0, 1.0]).tolist() == [0.75, 0.25]
    assert weights([0.0, 1.0]).tolist() == [0.0, 1.0]
    for wrong in ([1.0], [0.0, 0.0], [-1.0, 2.0], [INF, 1.0]):
        with pytest.raises(ValueError, match="2 numbers from 0, not all 0"):
            weights(wrong)
    assert weights("equal").tolist() == [0.5, 0.5]
    share = np.array([0.25, 0.25, 0.25, 0.25, 0.0, 1.0])
    stability = 1.0 - (4 / 3 * share * (1 - share)).mean() / (1 / 3 * 2 / 3)
    assert 0.0 < stability < 1.0
    np.testing.assert_allclose(weights("stability"), np.array([1.0, stability]) / (1.0 + stability))
    assert weights("stability", is_first[:, :1]).tolist() == [1.0]


def test_how_many_features_are_put_in_order_again():
    for params, count in (
        ({}, 100),
        ({"aggregation": "frequency"}, 0),
        ({"selectors": [FisherScore()]}, 0),
        ({"refine": 7}, 7),
        ({"refine": 7, "aggregation": "frequency"}, 7),
    ):
        assert Consensus(**params)._length_of_shortlist() == count


@pytest.mark.parametrize(
    ("size", "p", "found"), [(None, 12, 3), (None, 13, 4), (None, 2, 1), (4, 12, 4), (40, 12, 12)]
)
def test_how_many_features_of_each_selector_count(size, p, found):
    X = np.random.default_rng(0).normal(size=(20, p))
    chosen = Consensus([FisherScore()], subset_size=size, refine=0).fit(X, np.arange(20) % 2)
    assert chosen.subset_size_ == found


# -- As few samples and as many features as a method takes --


def noise(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def test_neighbours_of_mutual_information_are_other_samples():
    y = np.arange(6) % 2
    zeronorm.MutualInformation(n_neighbors=5).fit(noise(6), y)
    with pytest.raises(ValueError, match="less than the number of samples, 6"):
        zeronorm.MutualInformation(n_neighbors=6).fit(noise(6), y)
    problem = problem_of([0, 1, 2, 3], task="multiclass", classes=np.arange(4))
    with pytest.raises(ValueError, match="one class with two samples or more"):
        zeronorm.MutualInformation()._check_neighbors(problem)
    zeronorm.MutualInformation()._check_neighbors(
        problem_of([0, 1, 2, 2], task="multiclass", classes=np.arange(3))
    )
    zeronorm.MutualInformation()._check_neighbors(problem_of([0.0, 1.0, 2.0, 3.0], task="regression"))


def test_halves_of_the_data_need_two_samples_of_each_class():
    names = np.array(["p", "q"])
    splitter = zeronorm.IntervalSelector()._splitter(problem_of([0, 1, 0, 1], classes=names))
    assert splitter.get_n_splits() == 10
    with pytest.raises(ValueError, match=r"Got one of class .*'q'"):
        zeronorm.IntervalSelector()._splitter(problem_of([0, 1, 0, 0], classes=names))
    real = problem_of([0.5, 1.0, 2.0, 3.0], task="regression")
    assert zeronorm.IntervalSelector(task="regression")._splitter(real).get_n_splits() == 10
    assert (
        zeronorm.IntervalSelector(cv=2)._splitter(problem_of([0, 1, 0, 0], classes=names)).get_n_splits() == 2
    )


def test_margins_of_gflip_by_hand():
    """Samples 0, 2 | 3, 3 | 9 on a line: to the nearest miss 3, 1, 1, 1, to the nearest hit 2, 2, 0, 0."""
    x = np.array([0.0, 2.0, 3.0, 3.0, 9.0])
    bounds = np.array([0, 2, 4, 5])  # the last is alone in its class and does not count
    nothing = np.zeros((5, 5))
    margins = np.array([0.5, -0.5, 0.5, 0.5])
    assert gflip.total_utility(x, 1.0, bounds, nothing, gflip.LINEAR, 1.0) == pytest.approx(margins.sum())
    wanted = (1.0 / (1.0 + np.exp(-3.0 * margins))).sum()
    assert gflip.total_utility(x, 1.0, bounds, nothing, gflip.SIGMOID, 3.0) == pytest.approx(wanted)
    assert gflip.total_utility(x, 1.0, bounds, nothing, gflip.ZERO_ONE, 1.0) == 3.0
    whole = (x[:, None] - x) ** 2
    assert (
        gflip.total_utility(x, -1.0, bounds, whole, gflip.ZERO_ONE, 1.0) == 0.0
    )  # without the column all are equal
    with pytest.raises(ValueError, match="Got 3 classes of one sample each"):
        gflip._Flips(problem_of([0, 1, 2], task="multiclass"), 0, 1.0)


def test_a_score_at_the_threshold_is_shrunken_away():
    X, y = noise(12), np.arange(12) % 2
    scores = zeronorm.ShrunkenCentroids(threshold=0.0).fit(X, y).scores_
    ordered = np.sort(scores)[::-1]
    for threshold, alive in ((0.0, 3), (ordered[2], 2), (ordered[1], 1), (np.nextafter(ordered[1], 0.0), 2)):
        path = zeronorm.ShrunkenCentroids(threshold=float(threshold)).fit(X, y).path_
        assert path.own_size == alive
    whole = zeronorm.ShrunkenCentroids().fit(X, y)
    assert whole.path_.own_size is None
    np.testing.assert_allclose(whole.thresholds_, [ordered[1], ordered[2], 0.0])
    with pytest.raises(ValueError, match=r"more samples than classes.* Got 2 samples"):
        zeronorm.ShrunkenCentroids().fit(X[:2], y[:2])
    zeronorm.ShrunkenCentroids().fit(X[:3], y[:3])


def test_variances_of_two_classes_need_two_samples_each():
    X, y = noise(5), np.array([0, 0, 1, 1, 1])
    zeronorm.WelchScore().fit(X, y)
    with pytest.raises(ValueError, match="Got weight 1 for class"):
        zeronorm.WelchScore().fit(X[1:], y[1:])
    X[:, 1] = y  # no variance within the classes
    X[:, 2] = 7.0
    p_values = zeronorm.WelchScore().fit(X, y).pvalues_
    assert (p_values[1], p_values[2]) == (0.0, 1.0)
    assert p_values[0] == pytest.approx(stats.ttest_ind(X[:2, 0], X[2:, 0], equal_var=False).pvalue)


def test_more_features_than_there_are_is_told_as_scikit_learn_does():
    X, y = noise(20), np.arange(20) % 2
    assert RFE(LogisticRegression(), n_features_to_select=3).fit(X, y).n_features_ == 3
    with pytest.warns(UserWarning, match="n_features_to_select=4 > n_features=3"):
        assert RFE(LogisticRegression(), n_features_to_select=4).fit(X, y).n_features_ == 3
    assert RFE(LogisticRegression()).fit(X, y).n_features_ == 1
    assert zeronorm.RFECV(cv=2, min_features_to_select=3)._fewest(3) == 3
    with pytest.warns(UserWarning, match="min_features_to_select=4 > n_features=3"):
        assert zeronorm.RFECV(cv=2, min_features_to_select=4)._fewest(3) == 3


def test_fixed_knockoffs_need_more_than_twice_the_samples():
    selector = zeronorm.KnockoffSelector(FisherScore(), knockoffs="fixed_x", level=0.5, random_state=0)
    with pytest.raises(ValueError, match="Got 12 samples and 6 features that vary"):
        selector.fit(noise(12, 6), np.arange(12) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(noise(13, 6), np.arange(13) % 2)
    assert selector.statistics_.shape == (6,)
    wrong = zeronorm.KnockoffSelector(FisherScore(), correlation=np.eye(5))
    with pytest.raises(ValueError, match=r"shape \(6, 6\)"):
        wrong._check_size(6)
    wrong._check_size(5)


def test_subsets_of_stability_selection_have_at_most_all_features():
    fisher = FisherScore()
    assert zeronorm.StabilitySelection(fisher, subset_size=5)._size_of_subsets(5) == 5
    with pytest.raises(ValueError, match="at most the number of features of X, 5"):
        zeronorm.StabilitySelection(fisher, subset_size=6)._size_of_subsets(5)
    # With q of p features and threshold 3/4 the bound is 2 q² / p: six of a hundred allow 0.72, ten allow 2.
    for allowed, size in ((2.0, 10), (1.99, 9), (0.02, 1)):
        chosen = zeronorm.StabilitySelection(fisher, threshold=0.75, false_selections=allowed)
        assert chosen._size_of_subsets(100) == size
    with pytest.raises(ValueError, match=r"even subsets of one feature allow 0\.02 false selections"):
        zeronorm.StabilitySelection(fisher, threshold=0.75, false_selections=0.019)._size_of_subsets(100)


def test_folds_of_a_validation_bound_hold_all_classes():
    selector = zeronorm.RadiusMarginScaling(bound="validation", cv=4)
    assert len(selector._splits(problem_of([0, 1] * 4))) == 4
    assert len(selector._splits(problem_of([0, 1, 1, 0, 1, 1]))) == 2  # no more than a class has samples
    with pytest.raises(ValueError, match="Got a class with one sample"):
        selector._splits(problem_of([0, 1, 1, 1]))
    rows, four = np.arange(4), problem_of([0, 1, 0, 1], classes=np.arange(2))
    for train, valid, is_right in (
        (rows, rows, True),
        (rows[:2], rows[2:], True),
        (rows[[0, 2]], rows[2:], False),
        (rows, rows[:0], False),
    ):
        own = zeronorm.RadiusMarginScaling(bound="validation", cv=[(train, valid)])
        if is_right:
            assert len(own._splits(four)) == 1
        else:
            with pytest.raises(ValueError, match="must leave samples of every class"):
                own._splits(four)


def test_features_that_optimal_feature_weighting_looks_at():
    X, y = noise(20, 4), np.arange(20) % 2
    problem = problem_of(y, X, classes=np.arange(2))
    scores, active = OptimalFeatureWeighting(fisher_threshold=None)._preselect(problem)
    assert (scores.tolist(), active.tolist()) == ([0.0] * 4, [0, 1, 2, 3])
    scores, active = OptimalFeatureWeighting(fisher_threshold=0.0)._preselect(problem)
    assert active.size == 4
    ordered = np.sort(scores)
    _, active = OptimalFeatureWeighting(fisher_threshold=float(ordered[1]))._preselect(problem)
    assert active.tolist() == sorted(np.argsort(scores)[2:].tolist())  # above it, not at it
    with pytest.raises(ValueError, match="less than the largest Fisher score"):
        OptimalFeatureWeighting(fisher_threshold=float(ordered[-1]))._preselect(problem)


def test_weights_below_the_uniform_one_are_ranked_by_the_way():
    selector = OptimalFeatureWeighting()
    selector.weights_ = np.array([0.5, 0.25, 0.2, 0.05, 0.0])
    way = np.array([[0.3, 0.2, 0.1, 0.2, 0.0], [0.3, 0.2, 0.1, 0.4, 0.0]])
    selector.history_ = SimpleNamespace(weights=way, steps=np.arange(2))
    found = selector._ranked_scores(np.array([0, 1, 2, 3]))
    np.testing.assert_allclose(found, [0.5, 0.25, 0.999 * 0.25 / 3, 0.999 * 0.25, 0.0])
    selector.history_ = SimpleNamespace(weights=way[:0], steps=np.arange(0))
    np.testing.assert_array_equal(selector._ranked_scores(np.array([0, 1, 2, 3])), selector.weights_)


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
    selector = zeronorm.ProbeSelector(FisherScore(), **params)
    if draws is None:
        with pytest.raises(ValueError, match=r"too few for the level|needs \d+ draws"):
            selector._draws_of_probes(12)
    else:
        assert selector._draws_of_probes(12) == draws


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


@pytest.mark.parametrize(
    ("shares", "correction", "n_chosen", "risk"),
    [
        ([0.1, 0.1, 0.9], None, 2, [0.1, 0.19, 0.919]),
        ([0.2, 0.5, 0.1], None, 1, [0.2, 0.6]),
        ([0.25, 0.0, 0.0, 0.5], "max", 3, [0.25, 0.25, 0.25, 0.625]),  # at the level is not beyond it
    ],
)
def test_features_are_taken_while_the_risk_is_within_the_level(shares, correction, n_chosen, risk):
    left = list(range(len(shares)))
    taken, asked = [], []
    steps = SimpleNamespace(
        best=lambda: left[len(taken)] if len(taken) < len(left) else None, take=taken.append
    )

    def share(steps, *, of_the_best):
        asked.append(of_the_best)
        return shares[len(taken)]

    selector = zeronorm.GramSchmidtRelief(level=0.25, correction=correction)
    found = selector._stop_by_probes(steps, SimpleNamespace(share=share))
    np.testing.assert_allclose(found, risk)
    assert len(taken) == n_chosen
    assert set(asked) == {correction == "max"}


@pytest.mark.parametrize(
    ("params", "n_candidates", "count"),
    [
        ({}, 50, 500),
        ({"correction": "max", "level": 0.1}, 500, 50_000),
        ({"n_probes": 300}, 50, 300),
        ({"n_probes": 300, "correction": "max", "level": 0.1}, 31, 300),
        ({"n_probes": 300, "correction": "max", "level": 0.1}, 33, None),
    ],
)
def test_how_many_probes_are_drawn(params, n_candidates, count):
    """The best of 31 in 301 has the chance 1 - (1 - 1/301)^31 = 0.098, of 33 it has 0.104."""
    selector = zeronorm.GramSchmidtRelief(**params)
    if count is None:
        with pytest.raises(ValueError, match=r"greater than 33/0\.1"):
            selector._probe_count(n_candidates)
    else:
        assert selector._probe_count(n_candidates) == count


@pytest.mark.parametrize(
    ("n", "p", "params", "size"),
    [
        (200, 50, {}, 30),  # 200 / (log 50 · log log 200) = 30.7
        (4, 1000, {}, 1),
        (200, 7, {}, 7),
        (100_000, 5000, {}, 100),
        (200, 50, {"max_features": 70}, 50),
        (200, 50, {"max_features": 3}, 3),
        (200, 2, {}, 2),
    ],
)
def test_the_largest_subsets_that_samples_support(n, p, params, size):
    problem = problem_of(np.arange(4) % 2, np.zeros((4, p)))
    assert zeronorm.ZeroNormLogistic(**params)._largest_size(problem, float(n)) == size
    asked = problem_of(np.arange(4) % 2, np.zeros((4, p)), n_features_to_select=2)
    assert zeronorm.ZeroNormLogistic()._largest_size(asked, float(n)) == 2


def test_a_target_far_from_zero_is_as_good_as_one_near_it():
    X = noise(40, 6)
    y = X[:, 1] - 0.5 * X[:, 4] + 0.05 * noise(40, 1, 1)[:, 0]
    near, far = (L1SVM(task="regression", n_steps=6).fit(X, target) for target in (y, 2.0**-10 * y + 2.0**20))
    assert near.path_.order.tolist() == far.path_.order.tolist()
    assert near.path_.own_size == far.path_.own_size


@pytest.mark.parametrize("name", ["interval", "gflip", "grafting"])
def test_steps_whose_number_nobody_knows_are_counted_one_by_one(name, monkeypatch):
    steps = []

    @contextmanager
    def bar(description, total):
        assert total is None
        yield SimpleNamespace(advance=lambda count=0, text="": steps.append(count))

    monkeypatch.setattr(problem_module, "_bar", bar)
    X, y = noise(30, 6), np.arange(30) % 2
    selector = (
        get_method(name).instances()[0].set_params(verbose=True).fit(X + 2.0 * y[:, None] * np.eye(6)[0], y)
    )
    assert set(steps) == {1}
    if name == "interval":
        assert len(steps) == len(selector.intervals_) - 1


def test_probes_of_many_features_are_columns_with_their_values_in_another_order():
    X = noise(9, 4)
    X[:, 2] = 5.0
    problem = problem_of(np.arange(9) % 2, X, rng=np.random.default_rng(0))
    probes = gram_schmidt_relief._permuted_columns(problem, np.array([False, False, True, False]), 50)
    assert probes.shape == (9, 50)
    sources = {tuple(np.sort(column)): k for k, column in enumerate(X.T)}
    drawn = [sources[tuple(np.sort(probe))] for probe in probes.T]
    assert set(drawn) == {0, 1, 3}
    assert not any(np.array_equal(probe, X[:, k]) for probe, k in zip(probes.T, drawn, strict=True))
    nothing = gram_schmidt_relief._permuted_columns(problem, np.ones(4, dtype=bool), 3)
    np.testing.assert_array_equal(nothing, np.zeros((9, 3)))


def test_the_error_of_every_size_on_the_way_of_gram_schmidt():
    X = noise(30, 5)
    y = X[:, 1] - 0.5 * X[:, 3] + 0.3 * noise(30, 1, 1)[:, 0]
    for kept in (None, [0, 4]):
        path = zeronorm.GramSchmidt(4, stop="size", task="regression", always_keep=kept).fit(X, y).path_
        sizes = [1, 2, 3, 4] if kept is None else [2, 3, 4]
        assert path.sizes.tolist()[: len(sizes)] == sizes
        centred, left = y - y.mean(), []
        for size in path.visited_sizes:
            columns = X[:, path.order[:size]] - X[:, path.order[:size]].mean(axis=0)
            rest = centred - columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
            left.append(rest @ rest)
        np.testing.assert_allclose(path.objective / path.objective[0], np.asarray(left) / left[0])


@pytest.mark.parametrize(("asked", "sizes"), [(None, [1, 50]), (7, [1, 7])])
def test_prices_beyond_the_chosen_one_order_fifty_features_or_as_many_as_are_asked_for(
    asked, sizes, monkeypatch
):
    grown = []
    monkeypatch.setattr(l1_svm._PriceWalk, "grow_to", lambda self, size, prices: grown.append(size))
    L1SVM(asked, n_steps=4).fit(noise(30, 9), np.arange(30) % 2)
    assert grown == sizes
    grown.clear()
    L1SVM(asked, C=1.0, n_steps=4).fit(noise(30, 9), np.arange(30) % 2)
    assert grown == []  # the price is given


def test_a_leaf_that_costs_just_what_a_branch_saves_ends_there():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], dtype=np.float32)
    nodes = tree.grow_by_error(X, np.array([0, 0, 1, 1, 1, 0]), 2, max_depth=None, min_leaf=1)
    costs = nodes.collapse_costs()
    assert nodes.feature[0] == 0
    for level in np.unique(costs[costs > 0.0]):
        at, below = nodes.pruned(float(level)), nodes.pruned(float(np.nextafter(level, 0.0)))
        np.testing.assert_array_equal(at.left < 0, costs <= level)
        np.testing.assert_array_equal(below.left < 0, costs < level)
    assert nodes.pruned(0.0).left.tolist() == nodes.left.tolist()
    assert nodes.pruned(float(costs[0])).used(1).tolist() == [False]


def test_every_training_part_of_an_interval_needs_two_classes():
    X, y = noise(8, 4), np.array(list("aabbaabb"))
    rows = np.arange(8)
    parts = [(rows[y == "a"], rows[y == "b"]), (rows[:4], rows[4:])]
    with pytest.raises(ValueError, match="IntervalSelector"):
        zeronorm.IntervalSelector(learner=DummyClassifier(), cv=parts).fit(X, y)
    zeronorm.IntervalSelector(learner=DummyClassifier(), cv=parts[1:]).fit(X, y)


# -- What is refused and what is told --


@pytest.mark.parametrize(
    "ask",
    [
        lambda X: FisherScore().get_support(),
        lambda X: FisherScore().transform(X),
        lambda X: zeronorm.WelchScore().pvalues_,
        lambda X: Consensus([FisherScore()], n_subsamples=4).false_selections(),
        lambda X: OptimalFeatureWeighting().mean_error(X, X[:, 0] > 0),
    ],
)
def test_nothing_is_answered_before_the_fit(ask):
    with pytest.raises(NotFittedError):
        ask(noise(8))


def test_elimination_refuses_what_scikit_learn_refuses():
    X, y = noise(12), np.arange(12) % 2
    for selector in (
        RFE(LogisticRegression()),
        zeronorm.RFECV(LogisticRegression(), cv=2),
        zeronorm.RFECV(cv=2),
    ):
        with pytest.raises(ValueError, match="None: first found in row 2"):
            selector.fit(X, [0, 1, None, *y[3:].tolist()])
        fitted = selector.fit(X, y)
        assert fitted.get_support().sum() >= 1
    for call, words in (("predict", "depth"), ("score", "depth")):
        fitted = zeronorm.RFECV(LogisticRegression(), cv=2).fit(X, y)
        given = (X,) if call == "predict" else (X, y)
        with pytest.raises((TypeError, ValueError), match=words):
            getattr(fitted, call)(*given, depth=3)
    rows = np.arange(12)
    with pytest.raises(ValueError, match="RFECV"):
        zeronorm.RFECV(cv=[(rows[y == 0], rows[y == 1])]).fit(X, y)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gram-schmidt-relief", {"level": 0.003}),
        ("gram-schmidt", {"level": 1e-6}),
        ("max-entropy-discrimination", {"inclusion_prior": 1e-6, "C": 1.1}),
        ("l1-svm", {"C": 1e-6}),
        ("svm-weights", {"norm": "l1", "C": 1e-6}),
        ("fsv", {"sparsity": 0.99, "alpha": 1.0}),
    ],
)
def test_an_empty_answer_is_told_with_a_remedy(name, params):
    """Noise, and parameters so strict that nothing passes; with a number asked for there is nothing to tell."""
    X, y = noise(20, 4, 5), np.arange(20) % 2
    cls = get_method(name).cls
    with pytest.warns(UserWarning, match=f"{cls.__name__}.*(raise|lower)"):
        cls(**params).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cls(n_features_to_select=2, **params).fit(X, y).n_features_ == 2


def test_weights_of_rounding_are_no_weights():
    walk = SimpleNamespace(unit=1.0, problem=SimpleNamespace(design=zeronorm.as_design(np.eye(4))))
    walk.weights = np.array([[1.0, 1e-10, 0.0, -2e-9], [0.5, 0.0, 1e-12, 0.0]])
    l1_svm._PriceWalk._drop_rounding(walk)
    np.testing.assert_array_equal(walk.weights, [[1.0, 0.0, 0.0, -2e-9], [0.5, 0.0, 0.0, 0.0]])
    walk.weights = np.array([[1e-8, 0.0, 0.0, 0.0], [1e-10, 0.0, 0.0, 0.0]])  # the second decides nothing
    l1_svm._PriceWalk._drop_rounding(walk)
    np.testing.assert_array_equal(walk.weights, [[1e-8, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])


def test_the_cost_of_a_leaf_is_chosen_from_two_samples_of_a_class_on():
    """Noise: no leaf pays. With one sample of a class there is nothing to test on."""
    data = noise(12, 2).astype(np.float32)

    def grow(data, y):
        return tree.grow_by_error(data, y, 2, max_depth=None, min_leaf=1)

    for n_rare, is_chosen in ((1, False), (2, True), (5, True)):
        y = (np.arange(12) < n_rare).astype(int)
        assert (tree.chosen_cost(grow, data, y, "binary", 0) > 0.0) is is_chosen
