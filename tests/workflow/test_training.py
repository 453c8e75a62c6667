"""Folds, seeds and processes of a run; missing values filled from training samples only."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import zeronorm
from zeronorm.datasets import TableOptions, build_table
from zeronorm.datasets._raw import RawTable
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._procedures import Settings

from .conftest import numbers, table_of

QUICK = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


# -- Gaps --


def test_gaps_are_filled_with_medians_of_the_samples_at_hand():
    X, y = numbers(9)
    X[0, 0] = X[3, 2] = np.nan
    table = table_of(X, y)
    assert table.n_missing == 2
    whole = training.filled(table)
    assert whole.n_missing == 0
    np.testing.assert_allclose(whole.X, np.where(np.isnan(X), np.nanmedian(X, axis=0), X))
    complete = table_of(np.nan_to_num(X), y)
    assert training.filled(complete) is complete
    plain = procedures.build_procedure("fisher", complete, Settings(features=2), [2])
    assert training.selector_for(complete, plain) is plain
    assert isinstance(training.selector_for(table, plain), training.OnFilled)
    steps = training.on_filled(LogisticRegression())
    assert [type(step).__name__ for _, step in steps.steps] == ["MedianFill", "LogisticRegression"]
    fitted = training.selector_for(table, plain).fit(X, y)
    alone = zeronorm.FisherScore(2).fit(whole.X, y)
    np.testing.assert_array_equal(fitted.get_support(), alone.support_)
    assert fitted.path_.order.tolist() == alone.path_.order.tolist()
    assert fitted.converged_ is True
    tags = training.MedianFill().__sklearn_tags__().input_tags
    assert tags.allow_nan
    assert tags.sparse


def test_gaps_are_filled_and_the_features_found(gappy):
    X, y = gappy
    result = zeronorm.select(X, y, **QUICK)
    assert set(result.features) == {"x1", "x2"}
    assert result.procedure["failed"] == []
    assert any("training samples" in note for note in result.notes)


def records_of(X, y, **settings):
    table = build_table(
        RawTable.from_matrix(X, targets={"y": y}, default_target="y"), TableOptions(task="classification")
    )
    found = Settings(features=2, cv=4, **settings)
    selector = procedures.build_procedure("fisher", table, found, [2])
    return table, training.evaluate_procedures({"fisher": selector}, table, found, [])


def test_filling_never_sees_the_test_fold(gappy):
    X, y = gappy
    _, before = records_of(X, y)
    test_rows = np.asarray(before["test_rows"][0])
    poisoned = X.copy()
    known = ~np.isnan(poisoned[test_rows])
    poisoned[test_rows] = np.where(known, 1e6, np.nan)
    _, after = records_of(poisoned, y)
    assert before["selected"][0].to_list() == after["selected"][0].to_list()
    # A test sample without any value is predicted from the medians of the training samples.
    empty = X.copy()
    empty[test_rows[0]] = np.nan
    with_poison = poisoned.copy()
    with_poison[test_rows[0]] = np.nan
    first, second = (records_of(data, y)[1]["predictions"][0].to_list()[0] for data in (empty, with_poison))
    assert first == second


def test_filling_agrees_with_filling_by_hand(gappy):
    X, y = gappy
    table, records = records_of(X, y)
    for row in records.iter_rows(named=True):
        test = np.asarray(row["test_rows"])
        train = np.setdiff1d(np.arange(len(y)), test)
        filled = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
        selector = zeronorm.FisherScore(n_features_to_select=2).fit(filled[train], y[train])
        assert row["selected"] == selector.get_support(indices=True).tolist()
    assert table.n_missing == int(np.isnan(X).sum())


def test_gaps_with_an_inner_choice_groups_and_a_comparison(gappy):
    X, y = gappy
    groups = np.repeat(np.arange(20), 2)
    chosen = zeronorm.select(
        X,
        y,
        method="fisher",
        max_features=4,
        cv=3,
        permutations=0,
        sample_groups=groups,
        task="classification",
    )
    assert chosen.procedure["value"] < 0.3
    compared = zeronorm.compare(X, y, methods="fisher,golub", features=2, cv=3)
    assert compared.table[0]["value"] < 0.2
    with pytest.raises(ValueError, match=r"missing='median'"):
        zeronorm.select(X, y, missing="error", **QUICK)


def test_groups_reach_a_procedure_on_filled_samples_that_knows_them():
    X, y = numbers(24)
    X[0, 0] = np.nan
    groups = np.arange(24) // 2
    assert training.OnFilled(Plain()).fit(X, y, groups=groups).procedure_.groups_ is groups
    training.OnFilled(zeronorm.FisherScore(2)).fit(X, y, groups=groups)  # has no parameter for groups


def test_a_procedure_on_filled_samples_says_whether_it_converged():
    X, y = numbers(24)
    X[0, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = training.OnFilled(zeronorm.RFE(max_iter=1, C=1e4)).fit(X, y)
    assert short.converged_ is False
    assert training.OnFilled(zeronorm.RFE()).fit(X, y).converged_ is True


# -- Folds, seeds and processes --


def test_outer_splits_follow_the_seed_the_repeats_and_the_task():
    X, _ = numbers(24)
    table = table_of(X, np.where(np.arange(24) < 6, "rare", "common"))
    splits = training.outer_splits(table, Settings(cv=3, repeats=2, random_state=5))
    assert len(splits) == 6
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(24))
        assert np.sum(table.y[split.test] == "rare") == 2  # each class by its share
    first, second = ([split.test.tolist() for split in splits[k : k + 3]] for k in (0, 3))
    assert first != second
    again = training.outer_splits(table, Settings(cv=3, repeats=2, random_state=5))
    other = training.outer_splits(table, Settings(cv=3, repeats=2, random_state=6))
    tests = [[split.test.tolist() for split in some] for some in (splits, again, other)]
    assert tests[0] == tests[1] != tests[2]
    real = table_of(X, X[:, 0], task="regression")
    assert [len(split.test) for split in training.outer_splits(real, Settings(cv=5))] == [5, 5, 5, 5, 4]


def test_processes_start_where_the_work_is_large():
    """The limit is on values times fits, so five times as many fits reach it with a fifth of the values."""
    plain = table_of(*numbers(30, 4))
    fixed, chosen = Settings(features=2, cv=4, repeats=2), Settings(cv=4, repeats=2)

    def largest_for_one_process(settings):
        low, high = 1, 10**9
        while low < high:
            tried = (low + high + 1) // 2
            table = replace(plain, X=np.broadcast_to(0.0, (10, tried)))
            alone = training.n_processes(table, settings) == 1
            assert training.n_processes(table, settings) == (1 if alone else -1)
            assert training.n_processes(table, replace(settings, n_jobs=3)) == 3
            low, high = (tried, high) if alone else (low, tried - 1)
        return low

    limit = largest_for_one_process(fixed)
    assert limit == 5 * largest_for_one_process(chosen)
    assert limit == 2 * largest_for_one_process(replace(fixed, repeats=4))
    assert limit == 2 * largest_for_one_process(replace(fixed, cv=8))
    assert 1e5 < 10 * limit < 1e9  # a process takes seconds to start


class Plain(BaseEstimator):
    """A selector that records its arguments."""

    def __init__(self, n_jobs=None, random_state=None):
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        self.ranking_ = np.arange(1, X.shape[1] + 1)
        return self


def test_the_fit_on_all_samples_has_processes_seed_and_groups():
    X, y = numbers(24)
    groups = np.arange(24) // 2
    fitted = training.fit_procedure(
        Plain(), table_of(X, y, sample_groups=groups), Settings(n_jobs=3, random_state=4)
    )
    assert fitted.n_jobs == 3
    assert fitted.groups_.tolist() == groups.tolist()
    again = training.fit_procedure(Plain(), table_of(X, y), Settings(n_jobs=3, random_state=4))
    other = training.fit_procedure(Plain(random_state=7), table_of(X, y), Settings(random_state=5))
    assert again.groups_ is None
    assert again.random_state == fitted.random_state
    assert (other.random_state, other.n_jobs) == (7, 1)
    seeds = training.fold_seeds({"a": Plain(), "b": Plain(random_state=7)}, 3, Settings(random_state=4))
    assert list(seeds) == ["a"]  # the others have one already
    assert seeds["a"]["all samples"] == {"random_state": fitted.random_state}
    assert len({part["random_state"] for part in seeds["a"]["training parts"]}) == 3
