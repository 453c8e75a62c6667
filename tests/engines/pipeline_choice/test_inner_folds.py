"""The folds in which auto compares its candidates: more repeats of few samples, a subsample of many."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from zeronorm.engines.pipeline_choice import _inner_folds as inner_folds
from zeronorm.engines.pipeline_choice._inner_folds import thinned, usual_folds, usual_repeats
from zeronorm.resampling._splits import Split
from zeronorm.selection.target import Labels, Real


def test_rare_classes_stay_whole_in_a_part_of_the_samples():
    y = np.repeat([0, 1], [20_000, 25])
    asked = SimpleNamespace(target=Labels.of(y), n_samples=y.size, n_features=50)
    (split,) = thinned([Split(0, np.arange(5, y.size), np.arange(5))], asked, seed=0)
    assert np.bincount(y[split.train])[1] == 25
    assert split.train.size == pytest.approx(5000, abs=40)


def test_a_part_of_the_samples_has_the_size_that_the_work_allows(monkeypatch):
    asked = SimpleNamespace(target=Real.of(np.zeros(9000)), n_samples=9000, n_features=300)
    splits = [Split(0, np.arange(6000), np.arange(6000, 9000))]

    def kept(work):
        monkeypatch.setattr(inner_folds, "WORK_OF_A_FOLD", work)
        (split,) = thinned(splits, asked, seed=0)
        return split.train.size + split.test.size

    assert [kept(work) for work in (1.0, 3000.0 * 300**2, 1e99)] == [2000, 3000, 5000]
    few = SimpleNamespace(target=Real.of(np.zeros(2000)), n_samples=2000, n_features=300)
    assert thinned(splits, few, seed=0) is splits


def test_fewer_samples_are_divided_more_often_and_groups_count_once():
    counts = [20, 99, 100, 999, 1000, 10**6]
    repeats = [usual_repeats(n, None) for n in counts]
    assert repeats == sorted(repeats, reverse=True)
    assert repeats[0] > repeats[-1] == 1
    assert [usual_folds(n, None) for n in (199, 200)] == [5, 3]
    groups = np.repeat(np.arange(90), 20)
    assert usual_repeats(1800, groups) == usual_repeats(90, None)
    assert usual_folds(1800, groups) == usual_folds(90, None)
