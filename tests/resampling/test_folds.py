"""The fold loop reads the columns of all sizes once; the results are the same as reading them for each size."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zeronorm import FisherScore
from zeronorm.design import as_design
from zeronorm.resampling import _folds as folds
from zeronorm.resampling._folds import FoldPlan, FoldTask, run_tasks
from zeronorm.resampling._metrics import METRICS
from zeronorm.resampling._scored_paths import KnownPath
from zeronorm.resampling._splits import make_splits
from zeronorm.resampling.predictors._default import default_estimator
from zeronorm.resampling.predictors._standardized import fresh_copy
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Progress
from zeronorm.selection.target import Labels, Real


def task_results(X, y, sizes, estimator, selector=None, is_strict=True):
    plan = FoldPlan(
        X, y, None, sizes, estimator, [], (METRICS["error_rate"], METRICS["auc"]), seed=0, is_strict=is_strict
    )
    splits = make_splits(3, y, None, target=Labels, seed=0)
    tasks = [FoldTask("", selector or FisherScore(), [], split, str(split.index)) for split in splits]
    found = run_tasks(plan, tasks, n_jobs=None, progress=Progress(), description="")
    return [
        {key: value for key, value in size.items() if key != "seconds"}
        for result in found.values()
        for size in result["sizes"]
    ]


def cells_of_each_size(X, y, sizes, *more, **settings):
    """The results of one run per size, in which the columns are read for that size."""
    alone = [task_results(X, y, (size,), *more, **settings) for size in sizes]
    return [result for fold in zip(*alone, strict=True) for result in fold]


@pytest.mark.parametrize("sizes", [(1, 3, 8), (8, 2), (5,), (2, None)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_that_are_read_once_give_the_same_cells(sizes, order, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(45) % 2
    X = np.array(rng.normal(size=(45, 12)) + 0.6 * y[:, None] * rng.random(12), order=order)
    estimator = default_estimator(Labels, n_samples=45)
    read = []
    gather = folds._ReadColumns.take
    monkeypatch.setattr(folds._ReadColumns, "take", lambda self, c: read.append(c) or gather(self, c))
    once = task_results(as_design(X), y, sizes, estimator)
    assert len(read) == (2 * len(once) if len(sizes) > 1 and None not in sizes else 0)
    assert once == cells_of_each_size(as_design(X), y, sizes, estimator)
    assert len(once) == 3 * len(sizes)


def predicted(X, y, task, sizes, estimator, columns=None, n_jobs=None, n_methods=2, **settings):
    """Results of several tasks per fold that need predictions only."""
    metric = METRICS["r2" if task == "regression" else "error_rate"]
    plan = FoldPlan(X, y, None, sizes, estimator, [], (metric,), seed=0, **settings)
    splits = make_splits(3, y, None, target=Real if task == "regression" else Labels, seed=0)
    paths = [SelectionPath(order=np.roll(np.arange(X.shape[1]), 3 * shift)) for shift in range(n_methods)]
    tasks = [
        FoldTask("", KnownPath(path), [], split, f"{split.index} {number}", columns=columns)
        for split in splits
        for number, path in enumerate(paths)
    ]
    found = run_tasks(plan, tasks, n_jobs=n_jobs, progress=Progress(), description="")
    return [[size.get(key) for key in ("selected", "predictions", "metrics", "error")]
            for result in found.values() for size in result["sizes"]]  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("task", ["classification", "multiclass", "regression"])
def test_columns_that_are_standardised_once_give_the_same_cells(task, order, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(48) % (3 if task == "multiclass" else 2)
    X = np.array(5.0 + rng.normal(size=(48, 12)) + 0.6 * y[:, None] * rng.random(12), order=order)
    X[:, 4] = 7.0  # constant
    y = X[:, 0] + rng.normal(size=48) if task == "regression" else y
    estimator = default_estimator(Real if task == "regression" else Labels, n_samples=48)
    calls = []
    standardize = folds.standardized_columns
    monkeypatch.setattr(folds, "standardized_columns", lambda X: calls.append(X.shape) or standardize(X))
    design, sizes = as_design(X), (1, 3, 8)
    each = predicted(design, y, task, sizes, estimator)
    assert calls == [(32, 8)] * 6  # two methods in three folds
    calls.clear()
    assert predicted(design, y, task, sizes, estimator, columns=np.arange(12)) == each
    assert calls == [(32, 12)] * 3  # once for both methods
    calls.clear()
    monkeypatch.setattr(
        folds, "MOST_READ_ONCE", 48 * 8
    )  # all columns would be too many, those of a method are not
    assert predicted(design, y, task, sizes, estimator, columns=np.arange(12)) == each
    assert calls == [(32, 8)] * 6
    calls.clear()
    monkeypatch.setattr(folds, "MOST_READ_ONCE", 0)
    assert predicted(design, y, task, sizes, estimator, columns=np.arange(12)) == each
    assert not calls


def test_workers_read_the_columns_of_their_own_task():
    rng = np.random.default_rng(1)
    y = np.arange(45) % 2
    X = as_design(rng.normal(size=(45, 9)) + y[:, None])
    estimator = default_estimator(Labels, n_samples=45)
    settings = {"task": "classification", "sizes": (1, 4), "estimator": estimator, "columns": np.arange(9)}
    with parallel_config(backend="threading"):
        assert predicted(X, y, n_jobs=2, **settings) == predicted(X, y, **settings)


def test_a_column_that_was_not_read_is_no_other_column():
    y = np.arange(45) % 2
    X = as_design(np.random.default_rng(1).normal(size=(45, 9)))
    estimator = default_estimator(Labels, n_samples=45)
    found = predicted(X, y, "classification", (1, 4), estimator, columns=np.array([0, 1, 2, 4]))
    assert [result[-1] is not None for result in found[:4]] == [False, True, True, True]
    assert all("was not read" in result[-1] for result in found[1:4])


def test_a_missing_number_is_an_error_of_the_predictor():
    y = np.arange(45) % 2
    X = np.random.default_rng(1).normal(size=(45, 9))
    X[3, 2] = np.nan
    estimator = default_estimator(Labels, n_samples=45)
    found = predicted(as_design(X, allow_nan=True), y, "classification", (1, 4), estimator, n_methods=1)
    assert [result[-1] is None for result in found] == [True, False] * 3
    assert all("contains NaN" in result[-1] for result in found[1::2])


class NotNested(BaseEstimator):
    """A path that is not nested: the third feature is the best one, the first two are the best pair."""

    def fit(self, X, y):
        order = np.r_[2, 0, 1, 3 : X.shape[1]]
        self.path_ = SelectionPath(order=order, subsets=(np.array([2]), np.array([0, 1])))
        return self


def test_subsets_that_are_not_nested_are_read_too():
    rng = np.random.default_rng(1)
    y = np.arange(45) % 2
    X = rng.normal(size=(45, 12)) + y[:, None] * rng.random(12)
    estimator = default_estimator(Labels, n_samples=45)
    once = task_results(as_design(X), y, (1, 2), estimator, NotNested())
    assert [result["selected"] for result in once[:2]] == [[2], [0, 1]]
    assert once == cells_of_each_size(as_design(X), y, (1, 2), estimator, NotNested())


def test_a_size_that_cannot_be_is_refused_alone():
    y = np.arange(45) % 2
    X = np.random.default_rng(2).normal(size=(45, 6))
    estimator = default_estimator(Labels, n_samples=45)
    selector = FisherScore(3, always_keep=[4, 5])
    once = task_results(as_design(X), y, (1, 2, 3), estimator, selector, is_strict=False)
    assert [result["error"] is not None for result in once[:3]] == [True, False, False]
    assert once == cells_of_each_size(as_design(X), y, (1, 2, 3), estimator, selector, is_strict=False)


@pytest.mark.parametrize(
    "estimator",
    [
        default_estimator(Labels, n_samples=9),
        default_estimator(Real, n_samples=9),
        make_pipeline(StandardScaler(), SVC()),
    ],
)
def test_a_fresh_copy_is_fitted_apart(estimator):
    before = sorted(vars(estimator))
    copied = fresh_copy(estimator).fit(np.arange(18.0).reshape(9, 2), np.arange(9) % 2)
    assert copied.predict(np.ones((1, 2))).shape == (1,)
    assert sorted(vars(estimator)) == before
    assert not any(
        hasattr(step, "mean_") for step in (estimator, *dict(getattr(estimator, "steps", ())).values())
    )
