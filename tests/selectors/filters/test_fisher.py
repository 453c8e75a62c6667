"""The Fisher score against its formulas and the F test."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import f_classif, f_regression

from zeronorm import FisherScore, GolubScore, Relief, WelchScore, as_design
from zeronorm.design import pack
from zeronorm.design._blocks import column_slices


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


def test_separation_without_variance_scores_best_and_finite():
    X, y = two_classes()
    X[:, 3] = y
    scores = FisherScore().fit(X, y).scores_
    assert np.argmax(scores) == 3
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("method", [FisherScore(), GolubScore(), WelchScore(), Relief(contrast="ratio")])
def test_a_column_next_to_the_label_does_not_tie_all_others(method):
    X, y = two_classes(n=60)
    X[:, 5] += 3.0 * X[:, 5].std() * y
    others = method.fit(np.delete(X, 3, axis=1), y).path_.order
    X[:, 3] = y + 1e-9 * X[:, 3]
    order = method.fit(X, y).path_.order
    assert order[0] == 3
    if not isinstance(method, Relief):  # its neighbours are found in all columns
        assert order[1:].tolist() == np.delete(np.arange(12), 3)[others].tolist()
    assert np.argmax(order == 5) == 1


def real_target(seed=0, n=40, p=15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p)
    return X, X @ rng.normal(size=p) + rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_a_real_target_is_ordered_as_by_the_f_test(seed):
    X, y = real_target(seed)
    selector = FisherScore(task="regression").fit(X, y)
    assert selector.path_.order.tolist() == np.argsort(-f_regression(X, y)[0]).tolist()
    expected = np.corrcoef(X, y, rowvar=False)[-1, :-1] ** 2
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-10)


def test_the_correlation_does_not_depend_on_the_unit_of_the_target():
    X, y = real_target()
    expected = FisherScore(task="regression").fit(X, y).scores_
    for other in (1e147 * y, 1e-140 * y, -y, 1e9 + y):
        found = FisherScore(task="regression").fit(X + 1e6, other).scores_
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_constant_target_has_no_correlation():
    X, _ = real_target()
    assert not FisherScore(task="regression").fit(X, np.full(40, 0.1)).scores_.any()


def test_unknown_variant_is_named():
    X, y = two_classes()
    with pytest.raises(ValueError, match="'variant' parameter of FisherScore"):
        FisherScore(variant="within").fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_a_file_are_those_of_the_array(tmp_path, dtype):
    """Block by block, with perfect features in one block, the largest other score in another, and constant features."""
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 3000)).astype(dtype)
    X[:, 2900] += 9 * y
    X[:, [5, 1500]], X[:, [7, 2000]] = y[:, None], 3.0
    design = as_design(pack(X, tmp_path / "x.zncols"), memory_budget=1 << 18)
    assert len(list(column_slices(design))) > 3
    for weight in (None, rng.integers(1, 4, size=20)):
        on_disk = FisherScore(4).fit(design, y, sample_weight=weight)
        in_memory = FisherScore(4).fit(np.asfortranarray(X), y, sample_weight=weight)
        np.testing.assert_array_equal(on_disk.scores_, in_memory.scores_)
        np.testing.assert_array_equal(on_disk.ranking_, in_memory.ranking_)


def test_values_in_a_file_that_cannot_be_used_are_named(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(20, 3000)), np.arange(20) % 2
    for value, message in (
        (np.nan, "NaN: first found in row 4, column 2500"),
        (1e200, "contains 1e.200: first"),
    ):
        X[4, 2500] = value
        np.save(tmp_path / "x.npy", np.asfortranarray(X))
        with pytest.raises(ValueError, match=message):
            FisherScore(2).fit(as_design(tmp_path / "x.npy", memory_budget=1 << 18, check_finite=False), y)
