"""SelectorCV: the rule, the direction of the score, honest folds, bad input."""

from __future__ import annotations

import copy
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import zeronorm
from small_problems import problem_of
from zeronorm import AROM, L1SVM, AutoSelector, FisherScore, RandomSelector, SelectionPath, SelectorCV
from zeronorm.evaluation import METRICS
from zeronorm.registry import register
from zeronorm.selectors._base import BaseSelector
from zeronorm.selectors.meta import _selector_cv as selector_cv


@register("test-random-order", family="filters", tasks=("binary",), reference="")
class RandomOrder(BaseSelector):
    """A random order of the features."""

    def __init__(self, n_features_to_select=None, *, random_state=None):
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _select(self, problem):
        return SelectionPath.from_scores(problem.rng.random(problem.n_features))


def make_data(n=60, p=15, informative=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, :informative] += 1.2 * y[:, None]
    return X, y


def test_scores_match_a_plain_loop():
    X, y = make_data()
    cv = StratifiedKFold(4)
    fitted = SelectorCV(FisherScore(), cv=cv, sizes=[9, 1, 3]).fit(X, y)
    expected = np.empty((4, 3))
    for i, (train, test) in enumerate(cv.split(X, y)):
        path = FisherScore().fit(X[train], y[train]).path_
        for j, size in enumerate([1, 3, 9]):
            columns = path.support(size)
            model = make_pipeline(StandardScaler(), SVC(kernel="linear", class_weight="balanced"))
            model.fit(X[train][:, columns], y[train])
            expected[i, j] = balanced_accuracy_score(y[test], model.predict(X[test][:, columns]))
            assert fitted.cv_results_["selected"][i][j].tolist() == columns.tolist()
    results = fitted.cv_results_
    assert results["size"].tolist() == [1, 3, 9]
    np.testing.assert_allclose(results["scores"], expected)
    np.testing.assert_allclose(results["mean"], expected.mean(axis=0))
    np.testing.assert_allclose(results["standard_error"], expected.std(axis=0, ddof=1) / 2)
    assert fitted.n_features_ == [1, 3, 9][int(np.argmax(expected.mean(axis=0)))]
    whole = FisherScore().fit(X, y).path_
    assert np.array_equal(fitted.path_.order, whole.order)
    assert np.flatnonzero(fitted.support_).tolist() == whole.support(fitted.n_features_).tolist()


def test_direction_of_the_metric():
    """A maximised metric and its negation, minimised, choose the same size."""

    def negated(y_true, y_pred):
        return -balanced_accuracy_score(y_true, y_pred)

    X, y = make_data(seed=3)
    chosen = set()
    for scoring in (
        "balanced_accuracy",
        make_scorer(balanced_accuracy_score),
        make_scorer(negated, greater_is_better=False),
    ):
        fitted = SelectorCV(FisherScore(), scoring=scoring, random_state=0).fit(X, y)
        chosen.add(fitted.n_features_)
        best = fitted.cv_results_["mean"].max()
        assert best > fitted.cv_results_["mean"].min()
        assert best == fitted.cv_results_["mean"][fitted.cv_results_["size"] == fitted.n_features_][0]
    assert len(chosen) == 1
    upside_down = make_scorer(balanced_accuracy_score, greater_is_better=False)
    assert SelectorCV(FisherScore(), scoring=upside_down, random_state=0).fit(X, y).n_features_ not in chosen


def test_metrics_and_scorers_are_one_abstraction():
    """A metric, its name, and scikit-learn's scorer of the same measure choose the same size."""
    X, y = make_data(seed=3)
    names = ("balanced_error_rate", METRICS["balanced_error_rate"], "balanced_accuracy")
    fits = [SelectorCV(FisherScore(), scoring=s, cv=3, random_state=0).fit(X, y) for s in names]
    assert len({fit.n_features_ for fit in fits}) == 1
    for fit in fits[:2]:
        np.testing.assert_allclose(fit.cv_results_["scores"], fits[2].cv_results_["scores"] - 1)
    with pytest.raises(ValueError, match=r"'scoring' parameter of SelectorCV must be .* Got 'acuracy'"):
        SelectorCV(FisherScore(), scoring="acuracy", cv=3).fit(X, y)


def test_seeds_come_from_random_state():
    """One random_state, one result; another gives other folds and other seeds inside; folds do not share a seed."""
    X, y = make_data()
    cv = StratifiedKFold(3)  # the same folds for all

    def subsets(random_state):
        fitted = SelectorCV(RandomOrder(), cv=cv, sizes=[3], random_state=random_state).fit(X, y)
        return [chosen[0].tolist() for chosen in fitted.cv_results_["selected"]]

    assert subsets(0) == subsets(0)
    assert subsets(0) != subsets(1)
    assert len({tuple(chosen) for chosen in subsets(0)}) > 1


def test_every_inner_fold_has_its_own_seed_and_one_seed_gives_one_result():
    X, y = np.random.default_rng(0).normal(size=(40, 30)), np.arange(40) % 2
    first, again, other = (
        SelectorCV(RandomSelector(), sizes=[5], random_state=seed).fit(X, y).cv_results_["selected"]
        for seed in (3, 3, 4)
    )
    chosen = [tuple(fold[0]) for fold in first]
    assert len(set(chosen)) == len(chosen)
    assert chosen == [tuple(fold[0]) for fold in again]
    assert not set(chosen) & {tuple(fold[0]) for fold in other}


def test_finds_the_number_of_informative_features():
    X, y = make_data(n=300, p=30)
    fitted = SelectorCV(FisherScore(), sizes=range(1, 31), rule="fewest", random_state=0).fit(X, y)
    assert fitted.support_[:3].all()
    assert fitted.n_features_ <= 5


def test_works_in_pipelines_and_predicts():
    X, y = make_data(n=200)  # the best classifier reaches 85 %
    pipeline = make_pipeline(StandardScaler(), SelectorCV(FisherScore(), cv=3, random_state=0), SVC())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7
    predicting = SelectorCV(FisherScore(), estimator=LogisticRegression(), cv=3, random_state=0).fit(X, y)
    assert predicting.estimator_.coef_.shape == (1, predicting.n_features_)
    assert predicting.score(X, y) > 0.7


def test_selection_in_a_fold_never_uses_its_test_samples():
    X, y = make_data()
    folds = list(StratifiedKFold(3).split(X, y))
    plain = SelectorCV(FisherScore(), cv=folds, sizes=[2, 5]).fit(X, y)
    for i, (_, test) in enumerate(folds):
        poisoned = X.copy()
        poisoned[test] = np.random.default_rng(1).normal(scale=1e6, size=(len(test), X.shape[1]))
        again = SelectorCV(FisherScore(), cv=folds, sizes=[2, 5]).fit(poisoned, y)
        for mine, theirs in zip(
            plain.cv_results_["selected"][i], again.cv_results_["selected"][i], strict=True
        ):
            assert np.array_equal(mine, theirs)


def test_splitter_is_not_mutated():
    X, y = make_data()
    cv = StratifiedShuffleSplit(2, random_state=np.random.RandomState(0))
    state = copy.deepcopy(cv.random_state.get_state()[1])
    SelectorCV(FisherScore(), cv=cv, sizes=[1, 2]).fit(X, y)
    assert np.array_equal(cv.random_state.get_state()[1], state)


def test_groups_stay_together():
    X, y = make_data()
    groups = np.repeat(np.arange(15), 4)
    for cv in (3, GroupKFold(3)):
        fitted = SelectorCV(FisherScore(), cv=cv, sizes=[1, 2]).fit(X, y, groups=groups)
        for train, test in fitted.cv_results_["splits"]:
            assert not set(groups[train]) & set(groups[test])
    with pytest.raises(ValueError, match="divides sample groups"), pytest.warns(match="groups"):
        SelectorCV(FisherScore(), cv=KFold(4, shuffle=True, random_state=0)).fit(X, y, groups=groups)


def test_parallel_folds_give_the_same_result():
    X, y = make_data()
    one = SelectorCV(FisherScore(), random_state=0).fit(X, y)
    with joblib.parallel_config(backend="threading"):  # the contract suite does it with processes
        two = clone(one).set_params(n_jobs=2).fit(X, y)
    assert np.array_equal(one.cv_results_["scores"], two.cv_results_["scores"])


def test_feature_groups_and_forced_features_of_the_wrapped_selector():
    X, y = make_data(p=12)
    grouped = SelectorCV(FisherScore(feature_groups=np.arange(12) // 3), cv=3, random_state=0).fit(X, y)
    assert grouped.n_features_ % 3 == 0
    assert grouped.cv_results_["size"][0] == 3
    forced = SelectorCV(FisherScore(always_keep=[8, 9]), cv=3, random_state=0).fit(X, y)
    assert forced.support_[[8, 9]].all()
    assert forced.cv_results_["size"][0] == 2


def test_other_selectors_and_sparse_data():
    X, y = make_data()
    foreign = SelectorCV(SelectKBest(k=3), cv=3, sizes=[1, 3], random_state=0).fit(X, y)
    ours = SelectorCV(FisherScore(), cv=3, sizes=[1, 3], random_state=0).fit(sp.csr_array(X), y)
    assert foreign.n_features_ in (1, 3)
    assert ours.n_features_ in (1, 3)
    assert foreign.support_[:3].any()


def test_the_size_can_be_fixed():
    X, y = make_data()
    assert SelectorCV(FisherScore(), n_features_to_select=7, cv=3).fit(X, y).n_features_ == 7


@register("test-first-columns", family="filters", tasks=("binary", "multiclass", "regression"), reference="")
class FirstColumns(BaseSelector):
    """Columns in their original order, for a real target."""

    def __init__(self, n_features_to_select=None, *, task="regression"):
        self.n_features_to_select = n_features_to_select
        self.task = task

    def _select(self, problem):
        return SelectionPath(order=np.arange(problem.n_features))


def test_regression_selectors_are_scored_as_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=50)
    fitted = SelectorCV(FirstColumns(), rule="fewest", random_state=0).fit(X, y)
    assert fitted.n_features_ == 2
    assert fitted.cv_results_["mean"].max() > 0.9


BAD_INPUT = {
    "rule": ({"rule": "median"}, "'rule' parameter"),
    "size": ({"sizes": [0]}, "'sizes' parameter of SelectorCV must be None or a list"),
    "too large": ({"sizes": [16]}, "up to the 15 features of X. Got .16. instead"),
    "empty": ({"sizes": []}, "one or more entries"),
    "overlap": ({"cv": [(range(40), range(30, 60))]}, "overlaps"),
    "nan score": ({"scoring": lambda model, X, y: float("nan")}, "is nan on this test fold with 1 features"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(case):
    X, y = make_data()
    params, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        SelectorCV(FisherScore(), **params).fit(X, y)


def test_one_warning_names_the_selector_that_stopped_early():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 12))
    X[:, 0] += 3.0 * y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SelectorCV(AROM(max_iter=1), cv=2, random_state=0).fit(X, y)
        SelectorCV(L1SVM(C=1e-7), cv=2, random_state=0).fit(X, y)  # its selected size is not used
    (text,) = [str(warning.message) for warning in caught]
    assert text == (
        "SelectorCV did not converge: AROM inside it stopped early; there, raise max_iter or loosen tol."
    )


def test_the_summary_of_the_scores():
    scores = np.array([[0.70, 0.78, 0.80, 0.80]]) + np.array([-0.05, 0.0, 0.05])[:, None]
    found = selector_cv.summary(np.array([1, 2, 3, 4]), scores, [], [])
    np.testing.assert_allclose(found["mean"], [0.70, 0.78, 0.80, 0.80])
    np.testing.assert_allclose(found["std"], 0.05)
    np.testing.assert_allclose(found["standard_error"], 0.05 / np.sqrt(3))
    one = selector_cv.summary(np.array([1, 2, 3, 4]), scores[:1], [], [])
    assert one["std"].tolist() == one["standard_error"].tolist() == [0.0] * 4


def sizes_tried(p, kept=(), **params):
    X, y = np.random.default_rng(0).normal(size=(20, p)), np.arange(20) % 2
    chooser = SelectorCV(FisherScore(always_keep=list(kept)), cv=2, **params)
    return chooser.fit(X, y).cv_results_["size"].tolist()


def test_the_sizes_that_are_tried():
    assert sizes_tried(5) == [1, 2, 3, 5]  # powers of the fourth root of five, rounded
    kept = sizes_tried(200, kept=[0, 1, 2])
    assert (kept[0], kept[-1], len(kept)) == (3, 200, 20)
    assert sizes_tried(4, sizes=[4, 2, 4]) == [2, 4]
    with pytest.raises(ValueError, match="counts up to the 4 features of X"):
        sizes_tried(4, sizes=[5])


def test_sizes_are_scored_as_the_chooser_says():
    problem = problem_of([0, 1, 0, 1], sample_groups=np.arange(4))
    chooser = zeronorm.SelectorCV(FisherScore(), scoring="accuracy")
    plan = selector_cv.plan_of_sizes(chooser, problem, "X", problem.y, np.array([1, 3]), 5)
    assert (plan.X, plan.sizes, plan.seed, plan.is_strict, plan.lifts_sizes) == ("X", (1, 3), 5, True, True)
    assert plan.y is problem.y
    assert plan.groups is problem.sample_groups
    assert [metric.name for metric in plan.metrics] == ["accuracy"]
    given = zeronorm.SelectorCV(FisherScore(), sizes=[2], estimator=LogisticRegression())
    plan = selector_cv.plan_of_sizes(given, problem, "X", problem.y, np.array([2]), 5)
    assert plan.estimator is given.estimator
    assert plan.unset_in_estimator == ["random_state"]
    assert not plan.lifts_sizes


@pytest.mark.parametrize("selector", [SelectorCV(FisherScore(), cv=3), AutoSelector(cv=3)])
def test_a_rare_class_counts_as_much_as_the_others(selector):
    """The share of right predictions would be highest without any feature."""
    y = np.repeat([0, 1], [108, 12])
    X = np.random.default_rng(0).normal(size=(120, 8))
    X[:, :3] += 1.2 * y[:, None]
    found = {
        scoring: clone(selector).set_params(random_state=0, scoring=scoring).fit(X, y)
        for scoring in (None, "balanced_accuracy", "accuracy")
    }
    scores = {scoring: fitted.cv_results_["mean"] for scoring, fitted in found.items()}
    np.testing.assert_array_equal(scores[None], scores["balanced_accuracy"])
    assert scores[None].max() < 0.88 <= scores["accuracy"].min()
    assert set(found[None].get_support(indices=True)) & {0, 1, 2}
