"""Scores of known rankings: the same as those of selectors that return them, each subset scored once."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC

from zeronorm.resampling._folds import FoldPlan
from zeronorm.resampling._metrics import METRICS
from zeronorm.resampling._scored_paths import first_to_name, score_paths
from zeronorm.resampling._splits import make_splits
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Progress
from zeronorm.selection.target import Labels


def test_equal_subsets_are_scored_where_they_were_selected_first():
    paths = {
        "a": SelectionPath(order=np.array([0, 1, 2, 3])),
        "b": SelectionPath(order=np.array([1, 0, 3, 2])),
    }
    found = first_to_name(paths, (1, 2, 3, 4))
    assert found == {
        "a": [("a", 0), ("a", 1), ("a", 2), ("a", 3)],
        "b": [("b", 0), ("a", 1), ("b", 2), ("a", 3)],
    }
    kept = {"a": paths["a"].constrained(None, np.array([2, 3]))}
    assert first_to_name(kept, (1, 2, 3)) == {"a": [("a", 0), ("a", 0), ("a", 2)]}


def test_scores_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 4)) + 0.8 * y[:, None]
    splits = make_splits(4, y, None, target=Labels, seed=0)
    ranked = [{name: SelectionPath(order=rng.permutation(4)) for name in "ab"} for _ in splits]
    plan = FoldPlan(
        X, y, None, (1, 3), SVC(kernel="linear"), [], (METRICS["error_rate"],), seed=0, is_strict=True
    )
    scores, selected = score_paths(plan, ranked, splits, None, Progress())
    for name in "ab":
        for fold, split in enumerate(splits):
            for at, size in enumerate((1, 3)):
                columns = np.sort(ranked[fold][name].order[:size])
                np.testing.assert_array_equal(selected[name][fold][at], columns)
                model = SVC(kernel="linear").fit(X[split.train][:, columns], y[split.train])
                correct = model.score(X[split.test][:, columns], y[split.test])
                np.testing.assert_allclose(scores[name][fold, at], correct - 1.0)
