"""The paired test of two methods on the same folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluation.made_rows import fold_rows
from zeronorm.evaluation import METRICS
from zeronorm.evaluation.significance import paired_test
from zeronorm.evaluation.significance._pooled import excess_of_folds, placements


@pytest.mark.parametrize(("n_folds", "factor"), [(20, 5.0), (200, 9.0)])
def test_more_than_ten_folds_widen_a_difference(n_folds, factor):
    """The factor is one more for every five folds, nine at most; at p = 1/2 it is 4.1 with ten folds."""
    y = np.arange(200) % 2
    wrong = [np.where((np.arange(200) // 2 + shift) % 4 < 2, 1 - y, y) for shift in (0, 1)]
    width = {}
    for k in (10, n_folds):
        a, b = (fold_rows(y, predicted, n_folds=k) for predicted in wrong)
        effect = paired_test(METRICS["error_rate"], a, b)[1]
        width[k] = effect.high - effect.low
    assert width[n_folds] / width[10] == pytest.approx(np.sqrt(factor / 4.1))


def test_equal_differences_are_not_certainty():
    """One more error in each of five folds: 5 against 0 discordant samples of 50."""
    y = np.zeros(50, dtype=int)
    worse = y.copy()
    worse[:5] = 1
    p_value, effect = paired_test(METRICS["error_rate"], fold_rows(y, worse), fold_rows(y, y))
    assert 0.05 < p_value < 0.3
    assert effect.estimate == pytest.approx(0.1)
    assert effect.low < 0 < effect.estimate < effect.high


@pytest.mark.parametrize("name", ["error_rate", "balanced_error_rate", "mse"])
def test_the_paired_test_by_hand(name):
    """Two passes over 60 samples of 20 patients: the moments with half a square added, and both factors."""
    rng = np.random.default_rng(8)
    y = np.arange(60) % 3 // 2  # 40 and 20
    patients, is_residual = np.arange(60) // 3, name == "mse"
    wrong = rng.random((2, 2, 60)) < np.repeat(rng.uniform(0.1, 0.7, (2, 1, 20)), 3, axis=2)
    predictions = y + rng.normal(size=(2, 2, 60)) if is_residual else np.where(wrong, 1 - y, y)
    outcomes = (predictions - y) ** 2 if is_residual else wrong.astype(float)
    a, b = ([r for one in passes for r in fold_rows(y, one, test_groups=patients)] for passes in predictions)
    for row in (*a, *b):
        row["mse"] = np.mean((row["predictions"] - row["truth"]) ** 2)
    d = (outcomes[0] - outcomes[1]).mean(axis=0)
    added = np.mean(d**2) if is_residual else 1.0
    classes = [y == 0, y == 1] if name == "balanced_error_rate" else [np.ones(60, bool)]
    means = [d[c].mean() for c in classes]
    variances = [(np.sum(d[c] ** 2) + added / 2 / len(classes)) / c.sum() ** 2 for c in classes]
    level = np.mean([outcomes.mean(axis=(0, 1))[c].mean() for c in classes])
    excess = 1.6 * (0.6 + 0.25 * 5)  # the selections are not known
    overlap = 1 + 12 / 48 + excess if is_residual else 1 + excess * 4 * level * (1 - level)
    sums = np.bincount(patients, weights=d - d.mean())
    together = max(1.0, 20 / 19 * np.sum(sums**2) / np.sum((d - d.mean()) ** 2))
    error = np.sqrt(overlap * together * np.sum(variances)) / len(classes)
    scale = stats.t(19)
    p_value, effect = paired_test(METRICS[name], a, b, confidence=0.9)
    assert p_value == pytest.approx(2 * scale.sf(abs(np.mean(means)) / error))
    assert effect.low == pytest.approx(np.mean(means) - scale.ppf(0.95) * error)
    assert effect.high == pytest.approx(np.mean(means) + scale.ppf(0.95) * error)
    assert effect.estimate == pytest.approx(np.mean([r[name] for r in a]) - np.mean([r[name] for r in b]))
    assert together > 1


@pytest.mark.parametrize("n", [24, 38, 40, 43, 147])
def test_ten_folds_of_unequal_size_are_not_more_than_ten(n):
    """Mean sizes of the folds give 10.000000000000002 for some n."""
    y = np.arange(n) % 2
    assert excess_of_folds(1.5, fold_rows(y, y, n_folds=10)) == 1.5
    assert excess_of_folds(1.5, fold_rows(y, y, n_folds=11)) == pytest.approx(2.2)


def area_rows(y, decision, passes):
    """Rows of ``passes`` draws of decisions, one test fold each."""
    rows = []
    for values in decision[:passes]:
        row = {
            "test_rows": np.arange(y.size),
            "truth": y,
            "decision": values,
            "predictions": (values > 0).astype(int),
        }
        row |= {"n_test": y.size, "n_train": 4 * y.size, "auc": METRICS["auc"].function(y, values, [0, 1])}
        rows.append(row | {"error_rate": np.mean(row["predictions"] != y)})
    return rows


@pytest.mark.parametrize("name", ["error_rate", "auc"])
def test_further_passes_average_out_noise_only(name):
    """Ten repetitions average out the noise between them, but not all: a new data set would change more."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    noise = rng.normal(size=(2, 10, 60))
    width = {}
    for passes in (1, 10):
        a, b = (area_rows(y, 0.5 * (2 * y - 1) + part, passes) for part in noise)
        effect = paired_test(METRICS[name], a, b)[1]
        width[passes] = effect.high - effect.low
    assert np.sqrt(0.1) < width[10] / width[1] < 0.9


@pytest.mark.parametrize(("shared", "unlike"), [(4, 0.0), (3, 0.25), (0, 1.0)])
def test_methods_that_select_the_same_in_all_folds_have_the_variance_of_independent_samples(shared, unlike):
    y = np.arange(100) % 2
    wrong = [np.where((np.arange(100) // 2 + shift) % 4 < 2, 1 - y, y) for shift in (0, 1)]
    a, b = (fold_rows(y, predicted) for predicted in wrong)
    for fold, rows in enumerate(zip(a, b, strict=True)):
        for row in rows:
            row["selected"] = [*range(shared), *range(10 + 4 * fold, 14 + 4 * fold - shared)]
    d = (wrong[0] != y).astype(float) - (wrong[1] != y)
    p = np.mean([predicted != y for predicted in wrong])
    error = np.sqrt((1 + 1.85 * unlike * 4 * p * (1 - p)) * (np.sum(d**2) + 0.5)) / 100
    _, effect = paired_test(METRICS["error_rate"], a, b)
    assert effect.high - effect.low == pytest.approx(2 * stats.norm.ppf(0.975) * error)


def test_the_test_of_areas_widens_where_methods_are_unstable():
    """By hand: placements of either class, half the mean square added, the factor 1 + 1.85 (4a(1 - a))^1.5."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    decision = rng.normal(size=(2, 1, 80)) + 1.5 * y
    a, b = (area_rows(y, values, 1) for values in decision)
    p_value, _ = paired_test(METRICS["auc"], a, b)
    placed = [placements(rows[0]) for rows in (a, b)]
    differences = [np.r_[placed[0] - placed[1]][y == label] for label in (0, 1)]
    means = [d.mean() for d in differences]
    added = np.mean(np.concatenate(differences) ** 2) / 4
    variances = [(np.sum(d**2) + added) / d.size**2 for d in differences]
    area = (a[0]["auc"] + b[0]["auc"]) / 2
    error = np.sqrt((1 + 1.85 * (4 * area * (1 - area)) ** 1.5) * sum(variances))
    assert p_value == pytest.approx(2 * stats.norm.sf(abs(np.mean(means)) / error))
