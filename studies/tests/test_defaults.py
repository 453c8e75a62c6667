"""The peers of the study of the defaults."""

from __future__ import annotations

import numpy as np
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.svm import SVC

from zeronorm_studies.declared.defaults import SIZES, scores_by_elimination


def table(n_features):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return rng.normal(size=(40, n_features)) + y[:, None] * (np.arange(n_features) < 5), y


def test_the_sizes_of_the_study_are_filled_without_ties():
    """A step of a tenth of all features would tie hundreds of ranks, and sizes up to 50 would be filled at random."""
    scores = np.sort(scores_by_elimination(SVC(kernel="linear"), *table(1500)))[::-1]
    assert np.all(np.diff(scores[: max(SIZES) + 1]) < 0.0)


def test_few_features_leave_one_at_a_time_as_in_scikit_learn():
    X, y = table(60)
    wanted = ReferenceRFE(SVC(kernel="linear"), n_features_to_select=1, step=1).fit(X, y).ranking_
    np.testing.assert_array_equal(
        np.argsort(-scores_by_elimination(SVC(kernel="linear"), X, y)), np.argsort(wanted)
    )
