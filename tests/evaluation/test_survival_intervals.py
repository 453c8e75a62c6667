"""Intervals and tests of the concordance, and groups of samples by held-out risk, from records made by hand.

The predictions are given, not fitted, so that folds are independent: intervals then cover more often than 95 %.
docs/trust/survival.py simulates fitted models.
"""

from __future__ import annotations

import numpy as np
import pytest

from resampling.survival.made_times import outcomes
from zeronorm.evaluation._risk_groups import risk_groups
from zeronorm.evaluation.significance import metric_interval, paired_test
from zeronorm.resampling._metrics import METRICS
from zeronorm.resampling.survival._concordance import concordance
from zeronorm.resampling.survival._curves import kaplan_meier
from zeronorm.resampling.survival._log_rank import log_rank_test


def made_rows(rng, *, n=100, signal=1.0, folds=5, repeats=1, noise=1.0, as_dicts=False):
    """Records of predictions that are correlated with the true log hazards."""
    hazard = rng.normal(size=n)
    time, end = rng.exponential(np.exp(-signal * hazard)), rng.exponential(2.0, size=n)
    y = outcomes(time <= end, np.minimum(time, end))
    return rows_of(y, signal * hazard + noise * rng.normal(size=n), rng, folds, repeats, as_dicts)


def rows_of(y, risk, rng, folds=5, repeats=1, as_dicts=False):
    rows = []
    for _ in range(repeats):
        fold = rng.permutation(len(y)) % folds
        for j in range(folds):
            test = np.flatnonzero(fold == j)
            truth = y[test]
            pairs = [{"event": bool(e), "time": float(t)} for e, t in truth.tolist()]
            rows.append(
                {
                    "truth": pairs if as_dicts else truth,
                    "predictions": risk[test],
                    "test_rows": test,
                    "n_test": test.size,
                    "n_train": len(y) - test.size,
                    "concordance": concordance(truth, risk[test]),
                    "selected": [0, 1],
                }
            )
    return rows


def test_intervals_cover_the_true_concordance():
    big = made_rows(np.random.default_rng(0), n=20_000, folds=1)
    truth, covered = big[0]["concordance"], 0
    for seed in range(100):
        low, high = metric_interval(METRICS["concordance"], made_rows(np.random.default_rng(seed + 1)))
        assert 0.0 <= low < high <= 1.0
        covered += low <= truth <= high
    assert covered >= 93


def test_intervals_are_narrower_with_more_samples_and_wider_in_groups():
    rng = np.random.default_rng(3)
    widths = [np.ptp(metric_interval(METRICS["concordance"], made_rows(rng, n=n))) for n in (60, 240, 960)]
    assert widths[0] > 1.5 * widths[1] > 2.25 * widths[2]
    rows = made_rows(np.random.default_rng(4), n=100)
    fourfold = rows_of(
        np.repeat(np.concatenate([row["truth"] for row in rows]), 4),
        np.repeat(np.concatenate([row["predictions"] for row in rows]), 4),
        rng,
    )
    alone = np.ptp(metric_interval(METRICS["concordance"], fourfold))
    grouped = [{**row, "test_groups": [str(i // 4) for i in row["test_rows"]]} for row in fourfold]
    assert np.ptp(metric_interval(METRICS["concordance"], grouped)) > 1.3 * alone


def test_records_of_files_have_the_same_interval():
    arrays = made_rows(np.random.default_rng(5))
    dicts = made_rows(np.random.default_rng(5), as_dicts=True)
    for name in ("concordance", "uno_concordance"):
        found = [
            metric_interval(METRICS[name], [{**row, name: row["concordance"]} for row in rows])
            for rows in (arrays, dicts)
        ]
        assert found[0] == pytest.approx(found[1])


def test_a_perfect_order_has_an_interval_and_the_baseline_too():
    rng = np.random.default_rng(6)
    y = outcomes(np.ones(60, bool), rng.exponential(size=60))
    low, high = metric_interval(METRICS["concordance"], rows_of(y, -y["time"], rng))
    assert 0.8 < low < high == 1.0
    low, high = metric_interval(METRICS["concordance"], rows_of(y, np.zeros(60), rng))
    assert low < 0.5 < high


def test_other_metrics_have_intervals_of_the_folds():
    rows = made_rows(np.random.default_rng(7))
    values = [0.9, 1.1, 0.8, 1.0, 1.2]
    with_slope = [{**row, "calibration_slope": v} for row, v in zip(rows, values, strict=True)]
    low, high = metric_interval(METRICS["calibration_slope"], with_slope)
    assert low < 1.0 < high


def test_methods_are_compared_pair_by_pair():
    rng = np.random.default_rng(8)
    hazard = rng.normal(size=200)
    time = rng.exponential(np.exp(-2 * hazard))
    y = outcomes(rng.random(200) < 0.7, time)
    good, poor = (
        rows_of(y, hazard, np.random.default_rng(1)),
        rows_of(y, 0.1 * hazard + rng.normal(size=200), np.random.default_rng(1)),
    )
    p_value, difference = paired_test(METRICS["concordance"], good, poor)
    assert p_value < 0.001
    assert difference.low > 0
    assert paired_test(METRICS["concordance"], good, good)[0] == 1.0


def test_risk_groups_are_those_of_each_fold():
    rows = made_rows(np.random.default_rng(9), n=60, signal=2.0, noise=0.5)
    for row, shift in zip(
        rows, (0, 100, -50, 7, 3), strict=True
    ):  # models of different folds have different scales
        row["predictions"] = row["predictions"] + shift
    found = risk_groups(rows)
    assert found.names == ("low risk", "high risk")
    assert np.bincount(found.group).tolist() == [30, 30]
    low, high = found.curves()
    part = found.group == 1
    own = kaplan_meier(found.event[part], found.time[part])
    assert np.array_equal(high.values, own.values)
    assert low(1.0) > high(1.0)
    fold = np.repeat(np.arange(5), [len(row["predictions"]) for row in rows])
    plain = log_rank_test(found.event, found.time, found.group, fold)
    assert found.test.statistic == pytest.approx(plain.statistic / 1.8)  # 1.1 + 0.14 × 5
    assert found.at_risk(np.array([0.0])).ravel().tolist() == [30, 30]


def test_risk_groups_of_many_events_are_thirds_of_the_first_repetition():
    found = risk_groups(made_rows(np.random.default_rng(10), n=300, repeats=3))
    assert found.names == ("low risk", "medium risk", "high risk")
    assert found.group.size == 300
    assert risk_groups([]) is None
    equal = made_rows(np.random.default_rng(11))
    assert risk_groups([{**row, "predictions": np.zeros(row["n_test"])} for row in equal]) is None


def test_risk_groups_without_signal_are_rarely_different():
    below = [
        risk_groups(made_rows(np.random.default_rng(seed), n=60, signal=0.0)).test.p_value <= 0.05
        for seed in range(200)
    ]
    assert np.mean(below) <= 0.05
