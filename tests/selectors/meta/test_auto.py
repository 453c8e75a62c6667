"""The choice of a method: same folds, the consensus unless one is clearly better, groups kept together."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from zeronorm import (
    AROM,
    L1SVM,
    RFE,
    AutoSelector,
    FisherScore,
    RandomSelector,
    SelectorCV,
    evaluate,
)
from zeronorm.engines.pipeline_choice import _inner_folds as inner_folds
from zeronorm.execution import thread_controller
from zeronorm.registry import all_methods
from zeronorm.resampling._size_rules import smoothed
from zeronorm.resampling.predictors._ridge import RIDGE_PENALTIES
from zeronorm.selection._shared import SharedValues
from zeronorm.selectors.meta import _auto as auto_module
from zeronorm.selectors.meta._auto import choose_method


def problem(seed=0, n_samples=60, n_features=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def test_a_method_replaces_the_consensus_only_if_it_is_clearly_better():
    consensus = np.array([0.80, 0.70, 0.90, 0.80])
    gain = np.array([0.03, -0.01, 0.05, 0.03])
    error = np.std(gain, ddof=1) / 2
    assert gain.mean() > error
    assert choose_method({"a": consensus + gain, "consensus": consensus}) == "a"
    small = gain - gain.mean() + 0.99 * error
    assert choose_method({"a": consensus + small, "consensus": consensus}) == "consensus"
    assert choose_method({"a": consensus - 0.1, "consensus": consensus}) == "consensus"
    assert choose_method({"a": consensus}) == "a"


def test_the_consensus_is_kept_where_methods_are_alike():
    X, y = problem(n_samples=40)
    auto = AutoSelector([("one", FisherScore()), ("two", FisherScore())], cv=3, random_state=0).fit(X, y)
    assert auto.chosen_ == "consensus"
    np.testing.assert_array_equal(auto.path_.order, FisherScore().fit(X, y).path_.order)
    assert "No method was better" in auto.verdict()


def test_results_do_not_depend_on_the_number_of_jobs():
    X, y = problem(n_samples=40)
    one, two = (AutoSelector(cv=2, sizes=[1, 3], n_jobs=jobs, random_state=3).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.path_.order, two.path_.order)
    for name, scores in one.method_scores_.items():
        np.testing.assert_array_equal(scores, two.method_scores_[name])


def test_every_method_is_cross_validated_as_it_would_be_alone():
    X, y = problem()
    folds = list(StratifiedKFold(3).split(X, y))
    methods = [("fisher", FisherScore()), ("random", RandomSelector())]
    auto = AutoSelector(methods, cv=folds, random_state=4).fit(X, y)
    assert auto.chosen_ == "fisher"
    alone = SelectorCV(FisherScore(), cv=folds, sizes=range(1, 21)).fit(X, y)
    np.testing.assert_array_equal(auto.cv_results_["scores"], alone.cv_results_["scores"])
    assert auto.sizes_ == alone.sizes_
    np.testing.assert_array_equal(auto.support_, alone.support_)
    assert "2 methods (fisher, random)" in auto.verdict()


def test_costs_are_found_on_all_samples_and_not_again_in_the_folds(monkeypatch):
    X, y = problem()
    costs = []
    rank = auto_module.AutoSelector._rank_folds

    def spy(*args):
        costs.append(args[-1])
        return rank(*args)

    monkeypatch.setattr(auto_module.AutoSelector, "_rank_folds", spy)
    candidates = [("fisher", FisherScore()), ("l1-svm", L1SVM()), ("rfe", RFE(C=0.5))]
    auto = AutoSelector(candidates, cv=3, random_state=4).fit(X, y)
    cost = L1SVM().fit(X, y).C_
    assert costs == [(None, cost, None)]
    assert auto.selector_.costs_ == [None, cost, None]
    assert candidates[1][1].C == "auto"


@pytest.mark.parametrize(("n_kept", "is_own"), [(110, False), (90, True)])
def test_a_small_part_of_the_samples_finds_its_own_costs(monkeypatch, n_kept, is_own):
    monkeypatch.setattr(inner_folds, "FEWEST_TO_CHOOSE", n_kept)
    monkeypatch.setattr(inner_folds, "WORK_OF_A_FOLD", 1.0)
    monkeypatch.setattr(inner_folds, "FEW_OF_A_CLASS", 2)
    costs = []
    rank = auto_module.AutoSelector._rank_folds

    def spy(*args):
        costs.append(args[-1])
        return rank(*args)

    monkeypatch.setattr(auto_module.AutoSelector, "_rank_folds", spy)
    auto = AutoSelector(cv=2, sizes=[2], random_state=0).fit(*problem(n_samples=400))
    found = auto.selector_.costs_
    assert [C is not None for C in found] == [True, True]  # arom, zeronorm-svm
    assert costs[0] == (() if is_own else tuple(found))


TUNED = [method for method in all_methods("selector") if method.cls().get_params().get("C") == "auto"]
TUNED_TARGETS = [
    (method.cls, task)
    for method in TUNED
    for task in ("binary", "multiclass", "regression")
    if task in method.tasks
]
TUNED_TARGETS += [(partial(AROM, norm="switch"), task) for task in ("binary", "multiclass", "regression")]


@pytest.mark.parametrize(("method", "task"), TUNED_TARGETS)
def test_a_cost_found_before_serves_as_if_it_had_been_found_again(method, task):
    X, y = problem(n_features=15)
    if task == "multiclass":
        y = y + (X[:, 2] > 0.5)
    if task == "regression":
        y = X[:, 0] - 2.0 * X[:, 1]
    settings = {"task": "regression"} if task == "regression" else {}
    chosen = method(**settings).fit(X, y)
    again = method(**settings)._fit(X, y, {}, shared=SharedValues(C=chosen.C_))
    np.testing.assert_array_equal(again.ranking_, chosen.ranking_)
    assert again.get_support().sum() == chosen.get_support().sum()
    assert pytest.approx(chosen.C_) == again.C_
    assert again.C == "auto"
    other = method(**settings)._fit(X, y, {}, shared=SharedValues(C=0.5 * chosen.C_))
    assert other.C_ < chosen.C_


def chessboard(n_samples=120):
    """Classes that no linear classifier separates: they depend on the product of the signs of two features."""
    X = np.random.default_rng(5).normal(size=(n_samples, 8))
    return X, (X[:, 2] * X[:, 5] > 0).astype(int)


@pytest.mark.parametrize(
    "settings", [{}, {"estimator": SVC()}, {"estimator": make_pipeline(StandardScaler(), SVC(C=10.0))}]
)
@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_relief_finds_what_linear_methods_miss(settings, scoring):
    X, y = chessboard()
    auto = AutoSelector(cv=3, sizes=[1, 2, 4], scoring=scoring, random_state=0, **settings).fit(X, y)
    assert auto.chosen_ == "relief"
    assert sorted(auto.get_support(indices=True)) == [2, 5]
    assert auto.frequencies_[[2, 5]].tolist() == [1.0, 1.0]
    assert "relief" in auto.verdict()
    assert "nonlinearly" in auto.verdict()


def test_little_work_is_done_in_one_thread(monkeypatch):
    used = []

    class Watching(FisherScore):
        def _select(self, problem):
            used.append(("ranking", max(blas_threads())))
            return super()._select(problem)

    class Scorer(SVC):
        def fit(self, X, y):
            used.append(("scoring", max(blas_threads())))
            return super().fit(X, y)

    X, y = problem(n_samples=40, n_features=6)
    settings = {"estimator": Scorer(kernel="linear"), "cv": 2, "sizes": [2], "random_state": 0}
    with threadpool_limits(limits=2, user_api="blas"):
        AutoSelector([("one", Watching())], **settings).fit(X, y)
        assert set(used) == {
            ("ranking", 1),
            ("scoring", 1),
            ("scoring", 2),
        }  # the last is the estimator on all samples
        assert used[-1] == ("scoring", 2)
        assert used.count(("scoring", 2)) == 1
        used.clear()
        monkeypatch.setattr(auto_module, "WORK_OF_ONE_THREAD", 1)
        AutoSelector([("one", Watching())], **settings).fit(X, y)
    assert set(used) == {("ranking", 2), ("scoring", 2)}


def blas_threads():
    return [pool["num_threads"] for pool in thread_controller().info() if pool["user_api"] == "blas"]


def test_folds_are_ranked_on_data_in_one_piece(monkeypatch):
    X, y = problem(n_samples=40, n_features=6)
    orders = {}
    for scattered in (False, True):
        pieces = []

        class Watching(RFE):
            def _select(self, problem):
                pieces.append(problem.design._stored._memory is not None)  # noqa: B023
                return super()._select(problem)

        if scattered:
            monkeypatch.setattr("zeronorm.selectors.meta._auto.in_one_piece", lambda design: design)
        fitted = AutoSelector([("one", Watching())], cv=2, random_state=0).fit(X, y)
        assert pieces == [True] + 2 * [not scattered]
        orders[scattered] = [found[0] for found in fitted.cv_results_["selected"]]
    for one, other in zip(orders[False], orders[True], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_part_of_many_samples_decides_and_all_of_them_rank(monkeypatch):
    X, y = problem(n_samples=60)
    whole = AutoSelector(cv=3, sizes=[2, 4], random_state=0).fit(X, y)
    monkeypatch.setattr("zeronorm.engines.pipeline_choice._inner_folds.WORK_OF_A_FOLD", 1.0)
    monkeypatch.setattr("zeronorm.engines.pipeline_choice._inner_folds.FEWEST_TO_CHOOSE", 45)
    monkeypatch.setattr("zeronorm.engines.pipeline_choice._inner_folds.FEW_OF_A_CLASS", 1)
    part = AutoSelector(cv=3, sizes=[2, 4], random_state=0).fit(X, y)
    both = zip(part.cv_results_["splits"], whole.cv_results_["splits"], strict=True)
    for rows, all_rows in ((some, every) for folds in both for some, every in zip(*folds, strict=True)):
        assert set(rows) < set(all_rows)
        np.testing.assert_allclose(np.bincount(y[rows]), 0.75 * np.bincount(y[all_rows]), atol=0.5)
    np.testing.assert_array_equal(part.selector_.path_.order, whole.selector_.path_.order)
    given = AutoSelector(["fisher"], cv=3, sizes=[2, 4], random_state=0).fit(X, y)
    assert sum(len(test) for _, test in given.cv_results_["splits"]) == 60


def test_subsets_that_several_methods_select_are_scored_once():
    X, y = problem(n_samples=40, n_features=6)
    fits = []

    class Counting(SVC):
        def fit(self, X, y):
            fits.append(X.shape[1])
            return super().fit(X, y)

    methods = [("one", FisherScore()), ("two", FisherScore()), ("random", RandomSelector(random_state=1))]
    settings = {"cv": 2, "sizes": [2, 6], "random_state": 0}
    auto = AutoSelector(methods, estimator=Counting(kernel="linear"), **settings).fit(X, y)
    assert fits.count(6) == 2  # all features, once a fold
    assert fits.count(2) <= 2 * 3  # the two alike, the random one, the consensus
    for name in ("one", "two"):
        alone = AutoSelector([("it", FisherScore())], estimator=SVC(kernel="linear"), **settings).fit(X, y)
        np.testing.assert_array_equal(auto.method_scores_[name], alone.method_scores_["it"])


def test_the_number_of_features_can_be_fixed_and_columns_forced():
    X, y = problem()
    auto = AutoSelector(["fisher", "lasso"], n_features_to_select=3, always_keep=[19], cv=3).fit(X, y)
    assert auto.support_.sum() == 3
    assert auto.support_[19]
    with pytest.raises(ValueError, match=r"does not\. Leave it out"):
        AutoSelector([("cv", SelectorCV(FisherScore()))], always_keep=[1], cv=3).fit(X, y)


@pytest.mark.parametrize(("n_samples", "n_groups", "folds"), [(199, None, 5), (200, None, 3), (240, 120, 5)])
def test_many_samples_are_compared_in_fewer_folds(n_samples, n_groups, folds):
    X, y = problem(n_samples=n_samples, n_features=4)
    groups = None if n_groups is None else np.arange(n_samples) % n_groups
    auto = AutoSelector(["fisher"], random_state=0).fit(X, y, groups=groups)
    assert len(auto.method_scores_["fisher"]) == folds


def test_groups_reach_the_inner_folds():
    X, y = problem()
    groups = np.repeat(np.arange(20), 3)
    auto = AutoSelector(["fisher"], cv=4, random_state=0).fit(X, y, groups=groups)
    for train, test in auto.cv_results_["splits"]:
        assert not set(groups[train]) & set(groups[test])


def test_it_can_be_evaluated_as_a_whole():
    X, y = problem()
    records = evaluate({"auto": AutoSelector(["fisher", "svm-weights"], cv=2, sizes=[1, 2, 4])}, X, y, cv=3)
    assert records["error"].null_count() == 3
    assert records["error_rate"].mean() < 0.2


def test_methods_inside_issue_no_warnings_that_do_not_apply_to_auto():
    X, y = problem(n_samples=40)
    methods = [("fast", AROM(max_iter=1)), ("none", L1SVM(C=1e-7))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AutoSelector(methods, cv=3, random_state=0).fit(X, y)
    (text,) = [str(warning.message) for warning in caught]
    assert text.startswith("AutoSelector did not converge: fast stopped early")
    assert "'selectors'" in text


def test_a_real_target_is_scored_by_a_ridge_regression_with_chosen_penalty():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 30))
    y = X[:, 4] + 0.5 * rng.normal(size=24)
    auto = AutoSelector(task="regression", cv=3, sizes=[1, 30], random_state=0).fit(X, y)
    assert [*auto.method_scores_] == ["consensus"]
    ridge = make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGE_PENALTIES))
    for (train, test), score in zip(auto.cv_results_["splits"], auto.cv_results_["scores"], strict=True):
        whole = ridge.fit(X[train], y[train]).score(X[test], y[test])
        assert score[1] == pytest.approx(max(whole, -1.0), rel=1e-9)


@pytest.mark.filterwarnings(
    "ignore::zeronorm.selection._problem.TargetOutlierWarning"
)  # just what is asked for here
def test_no_fold_of_a_real_target_counts_for_less_than_minus_one():
    X, _ = problem(n_samples=12, n_features=4)
    y = np.r_[np.zeros(11), 1e3] + X[:, 0]
    settings = {"task": "regression", "cv": 4, "random_state": 0}
    bounded = AutoSelector(["fisher"], **settings).fit(X, y).cv_results_["scores"]
    free = AutoSelector(["fisher"], scoring="r2", **settings).fit(X, y).cv_results_["scores"]
    assert free.min() < -1.0
    np.testing.assert_array_equal(bounded, np.maximum(free, -1.0))


def test_the_folds_and_their_scores_are_stored():
    X, y = problem(n_samples=40, n_features=8)
    auto = AutoSelector(
        [("fisher", FisherScore()), ("random", RandomSelector())], cv=4, sizes=[1, 3, 8], random_state=1
    )
    auto.fit(X, y)
    assert list(auto.method_scores_) == ["fisher", "random", "consensus"]
    assert all(scores.shape == (4,) for scores in auto.method_scores_.values())
    assert auto.verdict().startswith("2 methods (fisher, random) were compared on the same inner folds.")
    results = auto.cv_results_
    assert list(results["size"]) == [1, 3, 8]
    assert auto.method_scores_[auto.chosen_].tolist() in results["scores"].T.tolist()
    best = smoothed(results["size"], results["mean"]).argmax()
    np.testing.assert_array_equal(auto.method_scores_[auto.chosen_], results["scores"][:, best])
    np.testing.assert_allclose(results["mean"], results["scores"].mean(axis=0))
    np.testing.assert_allclose(results["standard_error"], results["scores"].std(axis=0, ddof=1) / 2.0)
    alone = AutoSelector(["fisher"], cv=3, random_state=1).fit(X, y)
    assert alone.verdict() == "One method (fisher) was given."
    assert alone.chosen_ == "fisher"


def test_few_features_are_selected_for_a_target_of_noise():
    """Ridge regression with a chosen penalty predicts as well with all of the features as with one of them."""
    for seed in (2, 3, 7):  # 48, 48 and 60 of 60 features without the rule
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(80, 60)), rng.normal(size=80)
        assert AutoSelector(task="regression", random_state=0).fit(X, y).n_features_ == 1
