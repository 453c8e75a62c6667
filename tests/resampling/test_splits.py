"""Splits: repeats that differ, groups that stay whole, and what the fold loop hands to a selector."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, ShuffleSplit

from zeronorm import (
    RFECV,
    AutoSelector,
    FisherScore,
    RadiusMarginScaling,
    SelectionPath,
    SelectorCV,
    evaluate,
)
from zeronorm.design import as_design
from zeronorm.registry import register
from zeronorm.resampling._size_rules import RULES, choose_sizes
from zeronorm.resampling._splits import make_splits, take_columns
from zeronorm.selection.target import Labels, Real
from zeronorm.selectors._base import BaseSelector


def folds(splits):
    return frozenset(frozenset(split.test.tolist()) for split in splits)


@pytest.mark.parametrize("classification", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_repeats_are_different_folds_of_all_samples(classification, grouped):
    y = np.arange(60) % 2 if classification else np.linspace(0, 1, 60)
    groups = np.arange(60) // 3 if grouped else None
    splits = make_splits(5, y, groups, target=Labels if classification else Real, seed=0, repeats=4)
    assert [split.index for split in splits] == list(range(20))
    repeats = [splits[i : i + 5] for i in range(0, 20, 5)]
    assert len({folds(repeat) for repeat in repeats}) == 4
    for repeat in repeats:
        assert sorted(row for split in repeat for row in split.test) == list(range(60))
        for split in repeat:
            assert groups is None or not set(groups[split.train]) & set(groups[split.test])


@pytest.mark.parametrize("cv", [4, KFold(4)])
def test_repeats_that_cannot_differ_are_refused(cv):
    """As many groups as folds, or a splitter without chance, give the same folds each time."""
    y, groups = np.linspace(0, 1, 40), np.arange(40) // 10 if cv == 4 else None
    with pytest.raises(ValueError, match=r"Repeat 2 of 3 has the same folds"):
        make_splits(cv, y, groups, target=Real, seed=0, repeats=3)


def test_a_splitter_without_a_seed_follows_the_seed_of_the_run():
    """Also a splitter that always shuffles and has no such parameter; the user's object is not changed."""
    splitter, y = ShuffleSplit(3, test_size=0.25), np.linspace(0, 1, 40)
    first, again, other = (
        [split.test.tolist() for split in make_splits(splitter, y, None, target=Real, seed=seed)]
        for seed in (0, 0, 1)
    )
    assert first == again != other
    assert splitter.random_state is None


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (([], [1, 2]), "Split 0 of 'cv' has an empty training set"),
        (([1, 2], []), "Split 0 of 'cv' has an empty test set"),
        (([0, 1, 2], [2, 3]), "Split 0 of 'cv' overlaps: 1 rows"),
        (([0, 1], [2, 6]), r"names row 6 in its test set, but there are 6 samples \(0 to 5\)"),
        (([-1, 1], [2, 3]), "names row -1 in its training set"),
    ],
)
def test_splits_that_cannot_be_are_refused(split, message):
    with pytest.raises(ValueError, match=message):
        make_splits([split], np.linspace(0, 1, 6), None, target=Real, seed=0)


def test_columns_of_every_backend_of_the_data():
    X = np.arange(12.0).reshape(3, 4)
    columns = np.array([2, 0])
    for data in (X, as_design(X), sparse.csr_array(X)):
        taken = take_columns(data, columns)
        np.testing.assert_array_equal(taken.toarray() if sparse.issparse(taken) else taken, X[:, [2, 0]])


def test_no_more_folds_than_the_smallest_class_has_samples():
    """RadiusMarginScaling splits again inside; a class of three samples allows three folds."""
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(20), np.ones(3)].astype(int)
    X = rng.normal(size=(23, 4)) + 2 * np.outer(y, [1, 0, 0, 0])
    selector = RadiusMarginScaling(2, bound="validation", cv=10)
    seen = []
    original = RadiusMarginScaling._splits

    def counting(self, problem):
        found = original(self, problem)
        seen.append([np.sum(problem.y[valid] == 1) for _, valid in found])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RadiusMarginScaling, "_splits", counting)
        selector.fit(X, y)
    assert seen[0] == [1, 1, 1]


class GroupReader(BaseEstimator):
    """Remembers the groups and the first column it was fitted on."""

    calls: list = []  # noqa: RUF012

    def fit(self, X, y, groups=None):
        GroupReader.calls.append((X[:, 0].astype(int).tolist(), groups.tolist()))
        self.path_ = SelectionPath(order=np.arange(X.shape[1]))
        return self


def test_a_selector_is_given_the_groups_of_its_own_training_rows():
    GroupReader.calls = []
    X = np.column_stack([np.arange(24), np.random.default_rng(0).normal(size=24)])
    groups = np.repeat(np.arange(8), 3)
    evaluate(GroupReader(), X, np.arange(24) % 2, cv=4, sizes=[1], groups=groups)
    assert len(GroupReader.calls) == 4
    for rows, given in GroupReader.calls:
        assert given == groups[rows].tolist()
        assert len(rows) == 18


def test_groups_are_in_the_records():
    X = np.random.default_rng(0).normal(size=(24, 2))
    groups = np.repeat(list("abcdefgh"), 3)
    records = evaluate(GroupReader(), X, np.arange(24) % 2, cv=4, sizes=[1], groups=groups)
    for rows, found in zip(records["test_rows"].to_list(), records["test_groups"].to_list(), strict=True):
        assert found == groups[rows].tolist()


@register("test-in-order", family="filters", tasks=("binary",), reference="")
class InOrder(BaseSelector):
    """Ranks columns in their order."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def _select(self, problem):
        return SelectionPath(order=np.arange(problem.n_features))


def test_the_rule_reaches_the_selection():
    """The first feature predicts nearly all; the second adds less than a standard error."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 6)) + np.outer(y, [2.0, 0.4, 0.0, 0.0, 0.0, 0.0])
    chosen = {}
    for rule in RULES:
        fitted = SelectorCV(InOrder(), rule=rule, sizes=range(1, 7), random_state=0).fit(X, y)
        scores = fitted.cv_results_["scores"]
        assert fitted.n_features_ == fitted.sizes_[rule] == choose_sizes(np.arange(1, 7), scores)[rule] + 1
        chosen[rule] = fitted.n_features_
    mean = scores.mean(axis=0)
    threshold = mean.max() - scores[:, mean.argmax()].std(ddof=1) / np.sqrt(len(scores))
    assert chosen["fewest"] == 1 + int(np.flatnonzero(mean >= threshold)[0]) < chosen["all"]


def test_a_class_with_fewer_samples_than_folds_is_named_once_with_a_remedy():
    y = np.repeat([0, 1], [20, 3])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_splits(5, y, None, target=Labels, seed=0)
        make_splits(3, y, None, target=Labels, seed=0)
        make_splits(ShuffleSplit(5, random_state=0), y, None, target=Labels, seed=0)
    (text,) = [str(warning.message) for warning in caught]
    assert "has 3 samples for 5 folds" in text
    assert "use fewer folds" in text


@pytest.mark.parametrize("n", [4, 5, 6, 8])
@pytest.mark.parametrize("make", [RFECV, AutoSelector, lambda task: SelectorCV(FisherScore(task=task))])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_few_samples_have_fewer_folds_with_a_note(n, make, task):
    X = np.random.default_rng(0).normal(size=(n, 5))
    y = np.arange(n) % 2 if task == "classification" else X[:, 0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        s = make(task=task).fit(X, y)
    assert s.support_.any()
    assert any("folds are used instead of" in str(w.message) for w in said)
    assert not any("R^2" in str(w.message) for w in said)


@pytest.mark.parametrize("make", [RFECV, AutoSelector, lambda task: SelectorCV(FisherScore(task=task))])
def test_too_few_samples_for_two_folds_are_refused(make):
    with pytest.raises(ValueError, match="too few samples for cross-validation"):
        make(task="regression").fit(np.eye(3), [0.5, 1.5, 2.0])


def test_folds_of_a_real_target_hold_two_samples():
    with pytest.warns(UserWarning, match="3 folds are used instead of 5"):
        splits = make_splits(5, np.arange(6.0), None, target=Real, seed=0)
    assert [split.test.size for split in splits] == [2, 2, 2]
    with pytest.warns(UserWarning, match="the samples have 2 groups"):
        splits = make_splits(5, np.arange(20.0), np.arange(20) % 2, target=Real, seed=0)
    assert len(splits) == 2
