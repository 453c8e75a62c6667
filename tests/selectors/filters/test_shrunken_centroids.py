"""The whole threshold path against scikit-learn's nearest centroids, one threshold at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

import zeronorm
from small_problems import noise
from zeronorm import ShrunkenCentroids

THRESHOLDS = (0.05, 0.3, 0.8, 1.5, 2.5, 4.0, 8.0)


def three_classes(seed=0, n=60, p=25):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=(0.6, 0.3, 0.1))
    y[:3] = (0, 1, 2)
    X = rng.normal(size=(n, p)) * rng.uniform(0.3, 3.0, p)
    return X + np.outer(y == 1, rng.normal(size=p)) + np.outer(y == 2, rng.normal(size=p)), y


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_centroids_and_survivors_agree_with_scikit_learn(threshold, seed):
    X, y = three_classes(seed)
    reference = NearestCentroid(shrink_threshold=threshold).fit(X, y).centroids_
    s = ShrunkenCentroids(threshold=threshold).fit(X, y)
    np.testing.assert_allclose(s.centroids_at(threshold), reference, rtol=1e-10, atol=1e-12)
    active = np.ptp(reference, axis=0) > 1e-12
    np.testing.assert_array_equal(s.scores_ > threshold, active)
    if active.any():
        np.testing.assert_array_equal(s.support_, active)
    else:
        assert s.support_.sum() == 1


def test_thresholds_count_the_survivors():
    X, y = three_classes()
    s = ShrunkenCentroids().fit(X, y)
    for k in range(1, X.shape[1] + 1):
        threshold = s.thresholds_[k - 1]
        assert np.count_nonzero(s.scores_ > threshold) == k
        assert np.array_equal(np.flatnonzero(s.scores_ > threshold), s.path_.support(k))


def test_bad_thresholds():
    X, y = three_classes()
    for bad in (-1.0, np.inf, np.nan, "auto", True):
        with pytest.raises(ValueError, match="'threshold' parameter of ShrunkenCentroids"):
            ShrunkenCentroids(threshold=bad).fit(X, y)


def test_classes_of_one_sample():
    X, y = three_classes()
    lone = np.r_[0, 1, np.flatnonzero(y == 0)[:10]]
    y = y.copy()
    y[:2] = (1, 2)
    assert np.isfinite(ShrunkenCentroids().fit(X[lone], y[lone]).scores_).all()
    with pytest.raises(ValueError, match="more samples than classes"):
        ShrunkenCentroids().fit(X[:4], np.arange(4))


def test_a_score_at_the_threshold_is_shrunken_away():
    X, y = noise(12), np.arange(12) % 2
    scores = zeronorm.ShrunkenCentroids(threshold=0.0).fit(X, y).scores_
    ordered = np.sort(scores)[::-1]
    for threshold, active in ((0.0, 3), (ordered[2], 2), (ordered[1], 1), (np.nextafter(ordered[1], 0.0), 2)):
        path = zeronorm.ShrunkenCentroids(threshold=float(threshold)).fit(X, y).path_
        assert path.selected_size == active
    whole = zeronorm.ShrunkenCentroids().fit(X, y)
    assert whole.path_.selected_size is None
    np.testing.assert_allclose(whole.thresholds_, [ordered[1], ordered[2], 0.0])
    with pytest.raises(ValueError, match=r"more samples than classes.* Got 2 samples"):
        zeronorm.ShrunkenCentroids().fit(X[:2], y[:2])
    zeronorm.ShrunkenCentroids().fit(X[:3], y[:3])
