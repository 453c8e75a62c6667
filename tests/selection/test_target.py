"""Common behaviour of all kinds of targets: encoding, strata, permutation, metrics and predictors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from zeronorm.datasets import Table
from zeronorm.registry import all_methods
from zeronorm.resampling._metrics import METRICS, parse_metrics
from zeronorm.resampling._splits import make_splits
from zeronorm.resampling.predictors._default import PREDICTORS, default_estimator, gaussian_estimator
from zeronorm.selection.target import (
    KINDS,
    TASKS,
    Binary,
    Labels,
    Multiclass,
    Multilabel,
    NotLabelsError,
    Real,
    TimeToEvent,
    target_for,
)
from zeronorm.workflow._chance import BASELINES

RNG = np.random.default_rng(0)
EXAMPLES = {
    "binary": np.array(["sick", "well"])[RNG.integers(2, size=40)],
    "multiclass": RNG.integers(4, size=40) - 1,
    "multilabel": RNG.integers(2, size=(40, 3)),
    "regression": RNG.normal(size=40),
    "survival": TimeToEvent.prepared({"event": RNG.random(40) < 0.6, "time": RNG.exponential(size=40)}),
}
# The metrics and predictors of survival have tests of their own.
SCORED_TASKS = [task for task in TASKS if task != TimeToEvent.task]
SEVERAL_NUMBERS = RNG.normal(size=(40, 2))


def encoded(kind, y=None):
    y = EXAMPLES[kind] if y is None else y
    return target_for(y, KINDS[kind].task, tuple(KINDS), "Method")


def table_of(y, task):
    n = len(y)
    return Table(np.zeros((n, 1)), y, task, np.array(["a"]), np.zeros(1, dtype=np.intp), "y")


# -- encoding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_encoded_targets_can_be_decoded(kind):
    target = encoded(kind)
    assert type(target) is KINDS[kind]
    np.testing.assert_array_equal(target.labels(), EXAMPLES[kind])
    assert target.labels().dtype == EXAMPLES[kind].dtype
    rows = np.array([3, 3, 17])
    np.testing.assert_array_equal(target.take(rows).labels(), EXAMPLES[kind][rows])


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_codes_follow_the_order_of_the_labels(kind):
    target = encoded(kind)
    assert target.classes.tolist() == sorted(set(EXAMPLES[kind].tolist()))
    assert set(target.values.tolist()) == set(range(target.n_classes))


def test_several_columns_are_labels_only_where_a_method_takes_them():
    y = EXAMPLES["multilabel"]
    assert type(target_for(y, "classification", ("binary", "multilabel"), "Method")) is Multilabel
    with pytest.raises(NotLabelsError):
        target_for(y.astype(float) + 0.5, "classification", ("binary",), "Method")
    assert type(target_for(SEVERAL_NUMBERS, "regression", tuple(KINDS), "Method")) is Real


@pytest.mark.parametrize(
    ("task", "y", "message"),
    [
        ("classification", np.zeros(4), "Method needs samples of at least two classes.*Got one class only"),
        ("regression", np.array([1.0, np.nan]), "NaN: first found in row 1"),
        ("regression", np.array([1.0, np.inf]), "infinity: first found in row 1"),
        ("regression", np.array([1.0, -1e200]), "-1e\\+200. Squares of values"),
    ],
)
def test_targets_that_no_method_can_use(task, y, message):
    with pytest.raises(ValueError, match=message):
        target_for(y, task, tuple(KINDS), "Method")


def test_text_among_the_numbers_of_a_real_target_is_named():
    with pytest.raises(ValueError, match=r"must hold numbers\. Got 'high' in row 1"):
        Real.check_raw([1.0, "high"])
    Labels.check_raw([1.0, "high"])


@pytest.mark.parametrize(
    ("y", "is_doubted"),
    [
        ([0, 1, 0, 1], False),
        (["a", "b", "a", "b"], False),
        ([True, False, True, False], False),
        ([0, 1, 2, 0, 1], True),  # more classes than half of the samples
        ([0.0, 1.0, 0.0, 1.0], True),
        ([[0], [1], [0], [1]], True),
    ],
)
def test_labels_that_scikit_learn_checks(y, is_doubted, monkeypatch):
    asked = []
    monkeypatch.setattr("sklearn.utils.multiclass.check_classification_targets", asked.append)
    target = Labels.encode(np.asarray(y), "Method")
    assert bool(asked) is is_doubted
    np.testing.assert_array_equal(target.labels().ravel(), np.ravel(y))


# -- columns of models ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_column_for_each_model(kind):
    target = encoded(kind)
    columns = target.columns()
    assert columns.shape == (40, {"multiclass": 4, "multilabel": 3}.get(kind, 1))
    given, involved = target.model_columns("one_vs_rest")
    np.testing.assert_array_equal(given, columns)
    assert involved.all()


def test_a_class_is_positive_in_its_own_column():
    two, more, several = encoded("binary"), encoded("multiclass"), encoded("multilabel")
    np.testing.assert_array_equal(two.columns()[:, 0] > 0, EXAMPLES["binary"] == "well")
    np.testing.assert_array_equal(more.columns() > 0, EXAMPLES["multiclass"][:, None] == np.arange(4) - 1)
    np.testing.assert_array_equal(several.columns() > 0, EXAMPLES["multilabel"] == 1)


def test_a_pair_of_classes_involves_their_samples_only():
    y = EXAMPLES["multiclass"]
    columns, involved = encoded("multiclass").model_columns("one_vs_one")
    pairs = [(-1, 0), (-1, 1), (-1, 2), (0, 1), (0, 2), (1, 2)]
    for (first, second), column, inside in zip(pairs, columns.T, involved.T, strict=True):
        np.testing.assert_array_equal(inside, np.isin(y, [first, second]))
        np.testing.assert_array_equal(column[inside] > 0, y[inside] == second)


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_real_target_has_a_midrange_and_a_unit(kind):
    target = encoded(kind, EXAMPLES[kind] if kind != "regression" else 5.0 + 3.0 * EXAMPLES[kind])
    around = target.around_zero()
    if kind != "regression":
        assert around is target
        assert (target.midrange, target.unit()) == (0.0, 1.0)
    else:
        assert around.values.min() == pytest.approx(-around.values.max())
        np.testing.assert_allclose(around.values + target.midrange, target.values)
        assert target.unit() == pytest.approx(3.0 * Real(EXAMPLES[kind]).unit())


def test_a_weight_of_two_is_a_sample_twice_in_the_unit():
    y, weight = EXAMPLES["regression"], np.arange(40) % 2 + 1
    assert Real(y).unit(weight.astype(float)) == pytest.approx(Real(np.repeat(y, weight)).unit())


# -- resampling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_folds_hold_equal_shares_of_the_classes(kind, is_grouped):
    y = np.repeat(np.unique(EXAMPLES[kind]), 20)
    target, groups = encoded(kind, y), np.arange(len(y)) // 2 if is_grouped else None
    assert target.strata_sizes().tolist() == [20] * target.n_classes
    for split in make_splits(5, y, groups, target=target, seed=0):
        assert np.unique(y[split.test], return_counts=True)[1].tolist() == [4] * target.n_classes


@pytest.mark.parametrize("kind", ["multilabel", "regression"])
def test_other_targets_are_not_stratified(kind):
    target = encoded(kind)
    assert target.strata() is None
    assert target.strata_sizes().tolist() == [40]
    assert len(make_splits(5, EXAMPLES[kind], None, target=target, seed=0)) == 5


def rows_of(values):
    return sorted(map(tuple, np.reshape(values, (len(values), -1)).tolist()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_permutation_keeps_the_values_and_changes_their_order(kind):
    target = encoded(kind)
    permuted = target.permuted(np.random.default_rng(1))
    assert rows_of(permuted.labels()) == rows_of(EXAMPLES[kind])
    assert not np.array_equal(permuted.values, target.values)
    np.testing.assert_array_equal(permuted.labels(), np.random.default_rng(1).permutation(EXAMPLES[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_of_whole_groups_is_permuted_between_them(kind):
    groups = RNG.permutation(np.arange(40) // 4)
    by_group = EXAMPLES[kind][:10]
    permuted = encoded(kind, by_group[groups]).permuted(np.random.default_rng(1), groups).labels()
    one_of_each = [permuted[groups == group] for group in range(10)]
    assert all((values == values[0]).all() for values in one_of_each)
    assert rows_of([values[0] for values in one_of_each]) == rows_of(by_group)
    assert not np.array_equal(permuted, by_group[groups])


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_varies_within_groups_is_permuted_within_them(kind):
    groups, y = np.arange(40) // 10, EXAMPLES[kind]
    permuted = encoded(kind).permuted(np.random.default_rng(1), groups).labels()
    for group in range(4):
        assert rows_of(permuted[groups == group]) == rows_of(y[groups == group])
    assert not np.array_equal(permuted, y)


# -- what a target names ----------------------------------------------------------------------------


@pytest.mark.parametrize("task", SCORED_TASKS)
def test_the_baseline_scores_at_chance(task):
    """Error rate: one minus the share of the largest class; balanced: one minus 1 / n_classes; R² of zero."""
    target = TASKS[task]
    y = np.repeat([0, 1, 2], [20, 15, 5]) if target.has_classes else EXAMPLES["regression"]
    baseline = BASELINES[target.baseline]
    assert isinstance(baseline, DummyClassifier if target.has_classes else DummyRegressor)
    predicted = baseline.fit(np.zeros((40, 0)), y).predict(np.zeros((40, 0)))
    at_chance = {"error_rate": 0.5, "balanced_error_rate": 2 / 3, "mse": np.var(y), "r2": 0.0}
    for metric in parse_metrics(None, target):
        assert METRICS[metric.name].tasks == (task,)
        value = metric.function(y, predicted)
        assert value == pytest.approx(at_chance[metric.name], abs=1e-12)


@pytest.mark.parametrize("task", SCORED_TASKS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_predictors_predict_the_target(task, is_sparse):
    target, X = TASKS[task], RNG.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "b", "a") if target.has_classes else X[:, 0]
    assert set(target.predictors.values()) <= set(PREDICTORS)
    for predictor in (
        default_estimator(target, n_samples=40, is_sparse=is_sparse),
        gaussian_estimator(target, is_sparse=is_sparse),
    ):
        assert predictor.fit(X, y).score(X, y) > 0.8


def test_methods_register_kinds_that_exist():
    assert {task for method in all_methods("selector") for task in method.tasks} == set(KINDS)
    assert {cls.task for cls in KINDS.values()} == set(TASKS)


# -- tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        (np.array(["a", "b"] * 10, dtype=object), "classification", "holds text"),
        (np.arange(20) % 5, "classification", "holds 5 whole numbers"),
        (np.arange(20), "regression", "holds many whole numbers"),
        (np.linspace(0.0, 1.0, 20), "regression", "holds numbers that are not whole"),
    ],
)
def test_a_column_is_recognised_by_the_first_target_that_takes_it(y, task, reason):
    found = [target for target in TASKS.values() if target.recognised(y) is not None]
    assert found[0] is TASKS[task]
    assert found[0].recognised(y).startswith(reason)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_a_table_knows_its_target(kind):
    table = table_of(EXAMPLES[kind], KINDS[kind].task)
    assert type(table.target) is KINDS[kind]
    np.testing.assert_array_equal(table.target.labels(), table.y)
    counts = {} if kind == "regression" else {str(c): int((table.y == c).sum()) for c in np.unique(table.y)}
    assert table.class_counts == counts


def test_how_a_report_describes_the_task():
    assert Real.described(0) == "a regression"
    assert Multiclass.described(3) == "a classification with 3 classes"
    assert Binary.described(0) == "a classification"
