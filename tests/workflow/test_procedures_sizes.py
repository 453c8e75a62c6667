"""The numbers of features that are tried, and the number of inner folds."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow._procedures import Settings, inner_folds, inner_notes, sizes_to_try

from .conftest import numbers, table_of

# -- Sizes --


@pytest.mark.parametrize(
    ("settings", "smallest", "largest"),
    [
        ({}, 1, 40),
        ({"features": 2}, 1, 16),
        ({"features": 6}, 1, 24),
        ({"features": 30}, 1, 40),
        ({"max_features": 7}, 1, 7),
        ({"features": 5, "max_features": 3}, 1, 5),
        ({"max_features": 9, "keep": ("x3", "x5")}, 2, 9),
    ],
)
def test_sizes_go_from_what_must_be_in_to_well_beyond_what_is_asked_for(settings, smallest, largest):
    X, y = numbers(30, 40)
    table = table_of(X, y)
    keep = tuple(str(table.feature_names[int(name[1:])]) for name in settings.get("keep", ()))
    sizes = sizes_to_try(table, Settings(**{**settings, "keep": keep}))
    assert (sizes[0], sizes[-1]) == (smallest, largest)
    assert sizes == sorted(set(sizes))
    ratios = np.diff(np.log(sizes[len(sizes) // 2 :]))
    assert ratios.max() < 2 * ratios.min() + 0.2  # the large ones are evenly spaced in the logarithm


def test_sizes_begin_where_the_largest_group_fits():
    X, y = numbers(30, 10)
    groups = [0, 0, 0, 0, 1, 1, 2, 3, 4, 5]
    assert sizes_to_try(table_of(X, y, feature_groups=groups), Settings())[0] == 4
    with pytest.raises(ValueError, match="asks for 11 features, but the table has 10"):
        sizes_to_try(table_of(X, y), Settings(features=11))
    assert sizes_to_try(table_of(X, y), Settings(features=10))[-1] == 10


def test_every_small_size_is_tried_and_no_large_one_is_far_from_the_next():
    X = np.zeros((4, 2000)) + np.arange(4)[:, None]
    table = table_of(X, np.array(["a", "b"] * 2))
    sizes = np.asarray(procedures.sizes_to_try(table, Settings()))
    assert sizes[:12].tolist() == list(range(1, 13))
    assert sizes[-1] == 128
    assert (sizes[1:] / sizes[:-1])[12:].max() < 1.4
    narrow = table_of(X[:, :50], np.array(["a", "b"] * 2))
    assert procedures.sizes_to_try(narrow, Settings()) == list(range(1, 51))
    assert procedures.sizes_to_try(table, Settings(features=4))[-1] == 16
    assert procedures.sizes_to_try(table, Settings(features=5))[-1] == 20


# -- Inner folds --


@pytest.mark.parametrize(
    ("n_rare", "cv", "inner"), [(10, 5, 5), (5, 5, 4), (6, 3, 3), (4, 4, 3), (3, 3, 2), (7, 5, 5), (4, 3, 2)]
)
def test_there_are_as_many_inner_folds_as_the_training_samples_allow(n_rare, cv, inner):
    """The size of the smallest class without its samples in the largest test fold."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.where(np.arange(30) < n_rare, "rare", "common")
    assert inner_folds(table_of(X, y), Settings(cv=cv)) == inner
    notes = inner_notes(table_of(X, y), Settings(cv=cv), "rfe")
    assert [f"based on {inner} inner folds" in note for note in notes] == ([] if inner == cv else [True])
    assert inner_notes(table_of(X, y), Settings(cv=cv, features=2), "rfe") == []


def test_groups_and_too_few_samples_limit_the_folds_inside():
    X, y = numbers(30, 3)
    assert inner_folds(table_of(X, y, sample_groups=np.arange(30) // 6), Settings(cv=5)) == 4
    assert inner_folds(table_of(X, X[:, 0], task="regression"), Settings(cv=10)) == 10
    with pytest.raises(ValueError, match="one sample of the smallest class"):
        inner_folds(table_of(X, np.arange(30) < 2), Settings(cv=2))


def test_folds_inside_follow_the_smallest_class_groups_or_samples():
    X, y = numbers(12)
    assert procedures.inner_folds(table_of(X, X[:, 0], task="regression"), Settings(cv=5)) == 5
    assert (
        procedures.inner_folds(table_of(X, y), Settings(cv=5)) == 4
    )  # 6 of a class, 2 in the largest test fold
    grouped = table_of(X, y, sample_groups=np.arange(12) // 4)
    assert procedures.inner_folds(grouped, Settings(cv=3)) == 2
    with pytest.raises(ValueError, match="one group of samples"):
        procedures.inner_folds(grouped, Settings(cv=2))  # the largest test fold takes two of three groups
    note = procedures.inner_notes(grouped, Settings(cv=3, features=2), "auto")
    assert note == [
        "Choices inside the outer folds are based on 2 inner folds: there are too few samples for 3."
    ]
    assert procedures.inner_notes(grouped, Settings(cv=3), "probe-selector") == []


@pytest.mark.parametrize(("n_per_class", "cv", "inner"), [(5, 5, 4), (3, 3, 2), (20, 5, 5)])
def test_few_samples_of_a_class_leave_fewer_folds_inside(n_per_class, cv, inner):
    y = np.arange(2 * n_per_class) % 2
    X = np.random.default_rng(0).normal(size=(len(y), 30)) + 3.0 * y[:, None]
    result = zeronorm.select(X, y, method="fisher", cv=cv, permutations=0, max_features=4)
    assert any(f"based on {inner} inner folds" in note for note in result.notes) == (inner != cv)
    assert result.procedure["failed"] == []


def test_too_few_samples_for_inner_choices_are_an_error_with_a_remedy_that_works():
    y = np.arange(4) % 2
    X = np.random.default_rng(0).normal(size=(4, 30)) + 3.0 * y[:, None]
    with pytest.raises(ValueError, match="Name a method and set the 'features' parameter to a number"):
        zeronorm.select(X, y, method="fisher", cv=2, permutations=0)
    assert len(zeronorm.select(X, y, method="fisher", features=2, cv=2, permutations=0).selected) == 2
