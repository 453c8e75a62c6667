"""Selected features with their effects and directions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import f_classif, r_regression

import zeronorm
from zeronorm.result._sentences import compared_classes, effect_name
from zeronorm.selection._path import SelectionPath
from zeronorm.workflow._features import describe_selected, selected_effects, univariate_effects
from zeronorm.workflow._inputs import DataOptions, load_data

from .conftest import numbers, table_of


def test_univariate_tests_agree_with_scipy_and_scikit_learn(problem):
    X, y = problem
    two = univariate_effects(load_data(X, DataOptions(target=y)))
    expected = stats.ttest_ind(X[y == "up"], X[y == "down"], equal_var=False).pvalue
    np.testing.assert_allclose(two.p_value, expected)
    np.testing.assert_allclose(two.q_value, stats.false_discovery_control(expected))
    positive = univariate_effects(load_data(np.exp(X), DataOptions(target=y)))
    ratio = np.exp(X)[y == "up"].mean(axis=0) / np.exp(X)[y == "down"].mean(axis=0)
    np.testing.assert_allclose(positive.fold_change, ratio)
    assert np.isnan(two.fold_change).all()
    labels = np.arange(len(y)) % 3
    three = univariate_effects(load_data(X, DataOptions(target=labels)))
    np.testing.assert_allclose(three.p_value, f_classif(X, labels)[1])
    target = X[:, 2] + X[:, 3]
    numbers = univariate_effects(load_data(X, DataOptions(target=target)))
    np.testing.assert_allclose(numbers.difference, r_regression(X, target), atol=1e-12)
    assert numbers.p_value[4] == pytest.approx(stats.pearsonr(X[:, 4], target).pvalue)


def test_the_table_says_direction_and_effect(selection, problem):
    X, y = problem
    frame = selection.to_frame()
    first = frame.row(0, named=True)
    column = X[:, int(first["name"][1:]) - 1]
    up, down = column[y == "up"], column[y == "down"]
    assert first["mean in up"] == pytest.approx(up.mean())
    pooled = np.sqrt((np.sum((up - up.mean()) ** 2) + np.sum((down - down.mean()) ** 2)) / (len(y) - 2))
    assert first["effect"] == pytest.approx((up.mean() - down.mean()) / pooled)
    assert first["direction"] == f"higher in {'up' if up.mean() > down.mean() else 'down'}"
    assert np.sign(first["coefficient"]) == np.sign(first["effect"])


def test_effects_by_hand():
    X, y = numbers(20, 3)
    X = X + 5.0
    found = univariate_effects(table_of(X, y))
    yes, no = X[y == "yes"], X[y == "no"]
    np.testing.assert_allclose(found.class_means, [no.mean(axis=0), yes.mean(axis=0)])
    np.testing.assert_array_equal(np.sign(found.difference), np.sign(yes.mean(axis=0) - no.mean(axis=0)))
    target = X[:, 1] + X[:, 0] ** 2
    found = univariate_effects(table_of(X, target, task="regression"))
    wanted = [stats.pearsonr(column, target) for column in X.T]
    np.testing.assert_allclose(found.difference, [one.statistic for one in wanted])
    np.testing.assert_allclose(found.p_value, [one.pvalue for one in wanted])
    assert found.kind == "correlation"


def described(X, y, **options):
    """All features as selected ones, in the order of their columns."""
    path = SelectionPath.from_scores(np.arange(X.shape[1], 0.0, -1.0))
    table, columns = table_of(X, y, **options), np.arange(X.shape[1])
    return describe_selected(table, path, columns, selected_effects(table, columns), {}, None)


def test_the_direction_of_a_feature():
    rng = np.random.default_rng(0)
    target = rng.normal(size=30)
    X = np.column_stack([target, -target, np.ones(30)]) + 0.1 * rng.normal(size=(30, 1)) * [1.0, 1.0, 0.0]
    words = [feature.direction for feature in described(X, target, task="regression")]
    assert words == ["rises with the target", "falls with the target", "none"]
    y = np.repeat(["a", "b", "c"], 10)
    means = {"a": (1.0, 3.0, 1.0), "b": (2.0, 2.0, 1.0), "c": (1.5, 1.0, 1.0)}
    words = [feature.direction for feature in described(np.array([means[label] for label in y]), y)]
    assert words == ["higher in b", "higher in a", "none"]


def test_effects_without_bound_and_ratios_of_negative_values_are_left_empty():
    X, y = numbers(20, 3)
    X[:, 1], X[:, 2] = y == "yes", y == "no"
    finite, *unbounded = described(X, y)
    assert type(finite.effect) is float
    assert finite.fold_change is None  # some values are negative
    assert [feature.effect for feature in unbounded] == [None, None]  # +inf and -inf


def test_effects_of_classes_of_unequal_size_by_hand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + 6.0
    X[:, 2] = 1.0
    y = np.array(["a"] * 6 + ["b"] * 14)
    found = univariate_effects(table_of(X, y))
    a, b = X[:6], X[6:]
    pooled = np.sqrt((5 * a.var(axis=0, ddof=1) + 13 * b.var(axis=0, ddof=1)) / 18)
    wanted = (b.mean(axis=0) - a.mean(axis=0))[:2] / pooled[:2]
    np.testing.assert_allclose(found.difference, [*wanted, 0.0])
    np.testing.assert_allclose(found.fold_change, b.mean(axis=0) / a.mean(axis=0))
    assert (found.kind, found.p_value[2], found.q_value[2]) == ("cohens_d", 1.0, 1.0)
    X[0, 0] = -1.0  # a ratio needs values from zero on
    assert np.isnan(univariate_effects(table_of(X, y)).fold_change).tolist() == [True, False, False]
    three = np.array(list("aaabbbbbbbcccccccccc"))
    found = univariate_effects(table_of(X, three))
    between = sum(np.sum(three == c) * (X[three == c].mean(axis=0) - X.mean(axis=0)) ** 2 for c in "abc")
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.difference[:2], between[:2] / total[:2])
    assert (found.kind, np.isnan(found.fold_change).all()) == ("eta_squared", True)


def test_a_feature_with_one_value_in_each_class_is_not_one_without_effect():
    y = np.arange(12) % 2
    X = np.column_stack([np.random.default_rng(0).normal(size=12), y, 1.0 - y])
    found = univariate_effects(table_of(X, y))
    assert found.difference[1:].tolist() == [np.inf, -np.inf]
    assert (found.p_value[1:] < 1e-12).all()
    result = zeronorm.select(X, y, method="fisher", features=1, cv=2)
    assert (result.selected[0].effect, result.selected[0].direction) == (None, "higher in 1")


def test_features_without_an_effect():
    one = SimpleNamespace(effect_kind="", class_means=None)
    two = SimpleNamespace(effect_kind="cohens_d", class_means={"a": 1.0, "b": 2.0})
    three = SimpleNamespace(effect_kind="eta_squared", class_means={"a": 1.0, "b": 2.0, "c": 3.0})
    assert [effect_name(some) for some in ([], [one], [one, two], [three])] == [
        "effect", "effect", "Cohen's d", "η²",
    ]  # fmt: skip
    assert compared_classes([one, two]) == ("b", "a")
    assert compared_classes([three]) is compared_classes([one]) is None


def test_the_fields_of_a_selected_feature():
    X, y = numbers(20)
    table = table_of(X, y)
    path = SelectionPath.from_scores([1.0, 4.0, 3.0, 2.0])
    columns = np.array([1, 3])
    effects = selected_effects(table, columns)
    (first, second) = describe_selected(table, path, columns, effects, {1: 0.75}, None)
    effects = univariate_effects(table)
    assert (first.rank, second.rank, first.index, second.index) == (1, 2, 1, 3)
    assert (first.score, second.score, first.frequency, second.frequency) == (4.0, 2.0, 0.75, 0.0)
    assert (first.effect, second.effect) == pytest.approx(tuple(effects.difference[[1, 3]]))
    assert (first.p_value, second.q_value) == pytest.approx((effects.p_value[1], effects.q_value[3]))
    assert (first.effect_kind, first.coefficient, first.fold_change) == ("cohens_d", None, None)
    assert (first.mean, first.scale) == pytest.approx((X[:, 1].mean(), X[:, 1].std()))
    nothing = np.array([], dtype=int)
    assert describe_selected(table, path, nothing, selected_effects(table, nothing), {}, None) == []


def test_features_that_are_the_target_are_no_division_by_zero():
    X, y = numbers(24)
    X[:, 1] = y == "yes"
    found = univariate_effects(table_of(X, y))
    assert found.p_value[1] < 1e-8
    three = np.arange(24) % 3
    X[:, 1] = three
    assert univariate_effects(table_of(X, three)).p_value[1] < 1e-8
    real = univariate_effects(table_of(X, X[:, 2], task="regression"))
    assert real.difference[2] == pytest.approx(1.0)
    assert real.p_value[2] < 1e-8
    few = univariate_effects(table_of(X[:3], X[:3, 0] ** 2, task="regression"))
    np.testing.assert_allclose(few.p_value, [stats.pearsonr(x, X[:3, 0] ** 2).pvalue for x in X[:3].T])


# -- Dependent samples --


def grouped(seed, n_features=200, n_patients=14, n_each=4):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_patients), n_each))
    X = rng.normal(size=(n_patients, n_features))[groups] + 0.3 * rng.normal(size=(len(groups), n_features))
    return X, groups


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_p_values_of_features_are_those_of_the_means_of_the_groups(task):
    X, groups = grouped(0)
    own = np.arange(14) % 2 if task == "classification" else np.random.default_rng(1).normal(size=14)
    table = table_of(X, own[groups], sample_groups=groups, task=task)
    means = np.array([X[groups == group].mean(axis=0) for group in range(14)])
    if task == "classification":
        expected = stats.ttest_ind(means[own == 0], means[own == 1], equal_var=False).pvalue
    else:
        expected = [stats.pearsonr(column, own).pvalue for column in means.T]
    found = univariate_effects(table)
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-8)
    assert np.mean(found.p_value < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    alone = univariate_effects(table_of(X, own[groups], task=task))
    assert np.mean(alone.p_value < 0.05) > 0.2  # what independent samples would assume
    np.testing.assert_array_equal(found.difference, alone.difference)


def test_p_values_of_paired_samples_compare_the_means_of_each_class_in_a_group():
    X, groups = grouped(2)
    y = np.zeros(len(groups), dtype=int)
    for group in range(14):
        y[np.flatnonzero(groups == group)[:2]] = 1
    found = univariate_effects(table_of(X, y, sample_groups=groups)).p_value
    means = [[X[(groups == group) & (y == k)].mean(axis=0) for group in range(14)] for k in (0, 1)]
    np.testing.assert_allclose(
        found, stats.ttest_ind(*map(np.array, means), equal_var=False).pvalue, rtol=1e-8
    )
