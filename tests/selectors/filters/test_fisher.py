"""The Fisher score against its formulas and the F test."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from zeronorm import FisherScore


def two_classes(seed=0, n=30, p=12):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    return rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p) + np.outer(y, rng.normal(size=p)), y


def test_two_class_formula():
    X, y = two_classes()
    a, b = X[y == 1], X[y == 0]
    expected = (a.mean(0) - b.mean(0)) ** 2 / (a.var(0) + b.var(0))
    np.testing.assert_allclose(FisherScore().fit(X, y).scores_, expected, rtol=1e-12)


def test_overall_variant_uses_the_overall_mean_and_unbiased_variances():
    X, y = two_classes()
    parts = [X[y == c] for c in (0, 1)]
    expected = sum((a.mean(0) - X.mean(0)) ** 2 for a in parts) / sum(a.var(0, ddof=1) for a in parts)
    np.testing.assert_allclose(FisherScore(variant="overall").fit(X, y).scores_, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_more_classes_are_ordered_as_by_the_f_test(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 50)
    X = rng.normal(size=(50, 20)) + np.outer(y, rng.normal(size=20))
    order = np.argsort(-f_classif(X, y)[0])
    assert FisherScore().fit(X, y).path_.order.tolist() == order.tolist()


def test_separation_without_spread_scores_best_and_finite():
    X, y = two_classes()
    X[:, 3] = y
    scores = FisherScore().fit(X, y).scores_
    assert np.argmax(scores) == 3
    assert np.isfinite(scores).all()


def test_unknown_variant_is_named():
    X, y = two_classes()
    with pytest.raises(ValueError, match="'variant' parameter of FisherScore"):
        FisherScore(variant="within").fit(X, y)
