"""Intervals of measured metrics: exact cases, what must not shrink them, and simulated coverage."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from sklearn import metrics as sk
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from statsmodels.stats.proportion import proportion_confint

from zeronorm import FisherScore, RandomSelector, evaluate
from zeronorm.evaluation import METRICS, Metric, register_metric
from zeronorm.evaluation.significance import compare_methods, metric_interval, paired_test
from zeronorm.evaluation.significance.pooled import excess_of_parts, placements, why_no_interval
from zeronorm.evaluation.summary import compare, error_curves, primary_metric
from zeronorm.resampling.metrics import as_metric

FITTED = "covers the value of the fitted models"
SCRIPT = Path(__file__).parents[2] / "docs" / "trust" / "simulate.py"


@pytest.fixture(scope="module")
def simulate():
    spec = importlib.util.spec_from_file_location("simulate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulate"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def parts(truth, predictions, n_parts=5, repeats=1, **more):
    """Rows of records, the samples dealt out to the test parts in turn."""
    truth, predictions = np.asarray(truth), np.asarray(predictions)
    rows = []
    for split in range(n_parts * repeats):
        test = np.arange(split % n_parts, truth.size, n_parts)
        row = {"test_rows": test, "truth": truth[test], "predictions": predictions[test]}
        row |= {"n_test": test.size, "n_train": truth.size - test.size}
        row |= {name: np.asarray(values)[test] for name, values in more.items()}
        for name in ("error_rate", "balanced_error_rate"):
            row[name] = METRICS[name].function(row["truth"], row["predictions"])
        rows.append(row)
    return rows


def test_no_errors_are_not_certainty():
    """0 of 40: Wilson's interval for 40 samples reaches 8.8 %; the correction for overlap widens it a little."""
    y = np.arange(40) % 2
    low, high = metric_interval(METRICS["error_rate"], parts(y, y))
    _, wilson = proportion_confint(0, 40, method="wilson")
    assert low == 0.0
    assert wilson <= high < 1.4 * wilson
    again = metric_interval(METRICS["error_rate"], parts(y, y, repeats=10))
    assert again[1] >= wilson  # repeating the same success tells nothing new


@pytest.mark.parametrize("name", ["error_rate", "balanced_error_rate"])
def test_one_bad_part_does_not_blow_the_interval_up(name):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(100) % 2)
    predictions = y.copy()
    predictions[::5] = 1 - y[::5]  # all errors in the first part
    low, high = metric_interval(METRICS[name], parts(y, predictions))
    assert 0.08 < low < 0.2 < high < 0.4


def test_samples_of_one_group_count_less():
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(20), 10)
    y = np.arange(200) % 2
    wrong = (rng.random(20) < 0.3)[patients]  # patients are right or wrong as a whole
    rows = parts(y, np.where(wrong, 1 - y, y), test_groups=patients)
    alone = [{key: value for key, value in row.items() if key != "test_groups"} for row in rows]
    narrow = np.diff(metric_interval(METRICS["error_rate"], alone))[0]
    wide = np.diff(metric_interval(METRICS["error_rate"], rows))[0]
    assert wide > 2 * narrow  # sqrt(10) without the bounds


def test_placements_average_to_the_area():
    rng = np.random.default_rng(0)
    row = {"truth": np.arange(30) % 2, "decision": rng.integers(0, 6, 30) + np.arange(30) % 2}
    found = placements(row)
    area = METRICS["auc"].function(row["truth"], row["decision"], [0, 1])
    for label in (0, 1):
        assert found[row["truth"] == label].mean() == pytest.approx(area)


def test_perfect_areas_have_an_interval():
    y = np.arange(40) % 2
    rows = parts(y, y, decision=y - 0.5)
    for row in rows:
        row["auc"] = 1.0
    low, high = metric_interval(METRICS["auc"], rows)
    assert 0.8 < low < 1.0 == high


def test_exact_fits_have_no_interval():
    y = np.linspace(0, 1, 20)
    rows = [row | {"mse": 0.0} for row in parts(y, y)]
    assert metric_interval(METRICS["mse"], rows) is None


def residual_rows(y, predictions, n_parts):
    rows = parts(y > 0, y > 0, n_parts=n_parts)
    for row in rows:
        test = row["test_rows"]
        row |= {"truth": y[test], "predictions": predictions[test]}
        row |= {name: METRICS[name].function(y[test], predictions[test]) for name in ("mse", "mae")}
    return rows


def test_no_interval_has_a_reason():
    y = np.linspace(0, 1, 20)
    rows = [row | {"mse": 0.0, "loss": 0.2} for row in parts(y, y)]
    assert "same in all test parts" in why_no_interval(METRICS["mse"], rows)
    loss = Metric("loss", lambda t, p: 0.2, response="predict_proba")
    assert metric_interval(loss, rows) is None
    assert "same in all test parts" in why_no_interval(loss, rows)
    two = [rows[0], rows[1] | {"loss": 0.3}]
    assert metric_interval(loss, two) is None
    assert "needs at least 3 test parts" in why_no_interval(loss, two)


@pytest.mark.parametrize(("n_parts", "factor"), [(2, 1.26), (10, 1.5), (100, 3.0)])
def test_residuals_get_halls_interval_with_the_factor_of_the_parts(n_parts, factor):
    """By hand, of 100 squared normal residuals: variance 1.2 + 0.03 k times that of independent samples, 3 at most."""
    rng = np.random.default_rng(5)
    y, error = rng.normal(size=(2, 100))
    squares = error**2
    spread = max(squares.var(ddof=1), 2 * squares.mean() ** 2)
    skewness = max(stats.skew(squares, bias=False), 2.0) / 10
    limits = [
        squares.mean()
        - np.sqrt(factor * spread / 100) * 3 / skewness * (np.cbrt(1 + skewness * (t - skewness / 6)) - 1)
        for t in stats.t.ppf([0.975, 0.025], 99)
    ]
    assert metric_interval(METRICS["mse"], residual_rows(y, y + error, n_parts)) == pytest.approx(limits)


def test_squared_residuals_are_taken_for_no_less_spread_than_normal_ones():
    y = np.random.default_rng(1).normal(size=60)
    low, high = metric_interval(METRICS["mse"], residual_rows(y, y + np.tile([-1.0, 1.001], 30), 5))
    assert 0 < low < 0.75
    assert high > 1.5  # nearly equal residuals would make an interval of hardly any width


@pytest.mark.parametrize("unit", [1e-7, 1e7])
@pytest.mark.parametrize(("name", "power"), [("mse", 2), ("mae", 1)])
def test_the_interval_of_residuals_follows_the_unit(name, power, unit):
    rng = np.random.default_rng(4)
    y = rng.normal(size=60)
    predictions = y + rng.normal(size=60)
    plain = metric_interval(METRICS[name], residual_rows(y, predictions, 5))
    other = metric_interval(METRICS[name], residual_rows(unit * y, unit * predictions, 5))
    np.testing.assert_allclose(other, np.array(plain) * unit**power, rtol=1e-9)


@pytest.mark.parametrize(("n_parts", "excess"), [(2, 0.28), (10, 1.4), (20, 2.8), (200, 9.0)])
def test_more_folds_widen_an_interval(n_parts, excess):
    """1.96 standard errors lie between half and each limit p, with 1 + 0.14 k (4p(1 - p))^1.5 the variance."""
    y = np.arange(200) % 2
    wrong = np.where(np.arange(200) // 2 % 4 < 2, 1 - y, y)  # half of each class
    for limit in metric_interval(METRICS["error_rate"], parts(y, wrong, n_parts=n_parts)):
        factor = 1 + excess * (4 * limit * (1 - limit)) ** 1.5
        error = np.sqrt(factor * limit * (1 - limit) / 200)
        assert abs(limit - 0.5) == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-6)


def new_divisions(y, wrong, n_parts, seed=0):
    """Rows of one pass for each row of ``wrong``, every pass with a division of its own."""
    rng, rows = np.random.default_rng(seed), []
    for outcomes in wrong:
        order = rng.permutation(y.size)
        found = parts(y[order], np.where(outcomes, 1 - y, y)[order], n_parts=n_parts)
        rows += [row | {"test_rows": order[row["test_rows"]]} for row in found]
    return rows


@pytest.mark.parametrize(("n_parts", "changed"), [(10, 2), (10, 40), (2, 40)])
def test_what_repeats_change_decides_the_width(n_parts, changed):
    """By hand, of 200 samples: ``changed`` of them err in one of two passes, others always, 0.25 each on average."""
    y, always = np.arange(200) % 2, 50 - changed // 2
    wrong = np.zeros((2, 200), dtype=bool)
    wrong[:, :always] = True
    wrong[0, always : always + changed // 2] = wrong[1, always + changed // 2 : always + changed] = True
    p = 52 / 204  # two pseudo-errors of each kind
    disagreed = (changed / 200 / 2) / (p * (1 - p))
    most = 0.1 + 0.3 * n_parts * disagreed
    for limit in metric_interval(METRICS["error_rate"], new_divisions(y, wrong, n_parts)):
        excess = min(most, 0.14 * n_parts * (4 * limit * (1 - limit)) ** 1.5)
        error = np.sqrt(max(0.3, 1 + excess - disagreed / 2) * limit * (1 - limit) / 200)
        assert abs(limit - 0.25) == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-6)


@pytest.mark.parametrize("n_parts", [5, 10])
def test_the_same_division_again_tells_nothing_new(n_parts):
    """Agreement of repeats that are no new divisions is no sign of stability."""
    y = np.arange(100) % 2
    wrong = np.where(np.arange(100) % 3 == 0, 1 - y, y)
    once, again = (parts(y, wrong, n_parts=n_parts, repeats=repeats) for repeats in (1, 5))
    for name in ("error_rate", "balanced_error_rate"):
        assert metric_interval(METRICS[name], again) == pytest.approx(metric_interval(METRICS[name], once))


def test_areas_get_the_factor_of_the_parts():
    """By hand: 40 samples in five parts, 1 + (0.1 + 0.14 k)(4a(1 - a))^1.5 times Newcombe's variance."""
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    rows = parts(y, y, decision=rng.normal(size=40) + y)
    for row in rows:
        row["auc"] = METRICS["auc"].function(row["truth"], row["decision"], [0, 1])
    area = np.mean([row["auc"] for row in rows])
    for a in metric_interval(METRICS["auc"], rows):
        spread = a / (2 - a) + 2 * a * a / (1 + a) - 2 * a * a
        variance = (a * (1 - a) * 5 + 19 * spread) / 400
        factor = 1 + 0.8 * (4 * a * (1 - a)) ** 1.5
        assert abs(a - area) == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(factor * variance), rel=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_groups_widen_an_interval(grouped):
    """By hand, at each limit p: the factor of the folds times that of the groups."""
    rng = np.random.default_rng(3)
    n, y, patients = 60, np.arange(60) % 2, np.arange(60) // 4
    wrong = (rng.random(n) < np.repeat(rng.uniform(0.1, 0.6, 15), 4)).astype(float)
    more = {"test_groups": patients} if grouped else {}
    rows = parts(y, np.where(wrong > 0, 1 - y, y), **more)
    sums = np.bincount(patients, weights=wrong - wrong.mean())
    together = 15 / 14 * np.sum(sums**2) / np.sum((wrong - wrong.mean()) ** 2) if grouped else 1.0
    assert grouped == (together > 1)
    for limit in metric_interval(METRICS["error_rate"], rows):
        factor = (1 + 0.7 * (4 * limit * (1 - limit)) ** 1.5) * together
        error = np.sqrt(factor * limit * (1 - limit) / n)
        assert abs(limit - wrong.mean()) == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-6)


def test_groups_without_spread_count_as_one_sample_each():
    y = np.arange(40) % 2
    rows = parts(y, y, test_groups=np.arange(40) // 4)
    _, high = metric_interval(METRICS["error_rate"], rows)
    factor = 1 + 0.7 * (4 * high * (1 - high)) ** 1.5
    assert high == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(factor * high * (1 - high) / 10), rel=1e-6)


def test_the_interval_of_an_area_by_hand():
    """Hanley and McNeil's variance with the mean class size, its first term once for each part, times the factor."""
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3 // 2  # 40 and 20
    decision = rng.normal(size=60) + y
    rows = parts(y, y, n_parts=4, decision=decision)
    for row in rows:
        row["auc"] = METRICS["auc"].function(row["truth"], row["decision"], [0, 1])
    area = np.mean([row["auc"] for row in rows])
    for a in metric_interval(METRICS["auc"], rows):
        spread = a / (2 - a) + 2 * a**2 / (1 + a) - 2 * a**2
        variance = (4 * a * (1 - a) + (60 / 2 - 1) * spread) / (40 * 20)
        factor = 1 + (0.1 + 0.14 * 4) * (4 * a * (1 - a)) ** 1.5
        assert abs(a - area) == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(factor * variance), rel=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_other_functions_of_predictions_get_the_jackknife(grouped):
    """By hand: samples or groups are left out one at a time, and the variance is three times that of the jackknife."""
    rng = np.random.default_rng(6)
    y = rng.normal(size=36)
    predictions, patients = y + rng.normal(size=36), np.arange(36) // 3
    rows = parts(y, predictions, n_parts=3, **({"test_groups": patients} if grouped else {}))
    metric = as_metric("explained_variance")
    for row in rows:
        row[metric.name] = metric.function(row["truth"], row["predictions"])
    whole = metric.function(y, predictions)
    units = patients if grouped else np.arange(36)
    left = [metric.function(y[units != u], predictions[units != u]) for u in np.unique(units)]
    m = len(left)
    half = stats.t.ppf(0.975, m - 1) * np.sqrt(3 * (m - 1) / m * np.sum((left - np.mean(left)) ** 2))
    low, high = metric_interval(metric, rows)
    center = np.mean([row[metric.name] for row in rows])
    assert low == pytest.approx(min(whole - half, center))
    assert high == pytest.approx(min(1.0, whole + half))


@pytest.mark.parametrize(("grouped", "n_parts"), [(False, 3), (True, 3), (False, 36)])
def test_the_interval_of_r2_is_that_of_the_share_it_leaves_unexplained(grouped, n_parts):
    """By hand: the logarithm of mean squared residual over variance, whose variance is that of single samples."""
    rng = np.random.default_rng(6)
    y = rng.normal(size=36) + 5.0
    predictions, patients = y + rng.normal(size=36), np.arange(36) // 3
    rows = parts(y, predictions, n_parts=n_parts, **({"test_groups": patients} if grouped else {}))
    for row in rows:
        row["r2"] = METRICS["r2"].for_target(y).function(row["truth"], row["predictions"])
    squares, variation = (y - predictions) ** 2, (y - y.mean()) ** 2
    by_sample = squares / squares.mean() - variation / variation.mean()
    unexplained = squares.mean() / y.var(ddof=1)
    variance, degrees = by_sample.var(ddof=1) / 36, 35
    if grouped:
        totals = by_sample.reshape(12, 3).sum(axis=1)
        variance, degrees = variance * max(1.0, 12 / 11 * np.sum(totals**2) / np.sum(by_sample**2)), 11
    half = stats.t.ppf(0.975, degrees) * np.sqrt(min(6.0, 1.7 + 0.15 * n_parts) * variance)
    low, high = metric_interval(METRICS["r2"], rows)
    assert low == pytest.approx(1 - unexplained * np.exp(half))
    assert high == pytest.approx(1 - unexplained * np.exp(-half))
    exact = parts(y, y, n_parts=3)
    for row in exact:
        row["r2"] = 1.0
    assert metric_interval(METRICS["r2"], exact) is None


@pytest.mark.parametrize("n_folds", [5, 10, 30])
def test_r2_of_few_samples_is_that_of_all_of_them(n_folds):
    """Ten parts of three samples each had a mean R² of -2.4 where the predictions explained 0.43 of the variation."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] + X[:, 1] + rng.normal(size=30)
    records = evaluate(
        {"f": SelectKBest(f_regression, k=2), "random": RandomSelector(2, task="regression", random_state=0)},
        *(X, y), cv=n_folds, task="regression", estimator=LinearRegression(), random_state=0,
    )  # fmt: skip
    rows = [row for row in records.iter_rows(named=True) if row["method"] == "f"]
    truth, found = (np.concatenate([row[name] for row in rows]) for name in ("truth", "predictions"))
    own = error_curves(records, "r2")[0].own
    assert own.mean == pytest.approx(1 - np.mean((truth - found) ** 2) / y.var(ddof=1))
    assert own.low < own.mean < own.high < 1.0
    tests = [compare_methods(records, name).row(0, named=True) for name in ("mse", "r2")]
    assert tests[0]["p_value"] == pytest.approx(tests[1]["p_value"])
    for name, other in (("difference", "difference"), ("low", "high"), ("high", "low")):
        assert tests[1][name] == pytest.approx(-tests[0][other] / y.var(ddof=1))


@pytest.mark.parametrize(("few", "many", "wider"), [(1, 2, "Bonett"), (2, 4, "Wilson"), (25, 25, "Bonett")])
def test_a_mean_over_classes_has_the_wider_of_two_intervals(few, many, wider):
    """By hand, of 50 samples each: Price and Bonett's with one pseudo-error of each kind in a class, or Wilson's."""
    y = np.arange(100) % 2
    predictions = np.where(np.arange(100) // 2 < np.where(y == 0, few, many), 1 - y, y)
    shares = np.asarray([few + 1, many + 1]) / 52
    variance = np.sum(shares * (1 - shares) / 52) / 4
    _, high = metric_interval(METRICS["balanced_error_rate"], parts(y, predictions))
    z = stats.norm.ppf(0.975) * np.sqrt(1 + 0.7 * (4 * high * (1 - high)) ** 1.5)
    beyond = {
        "Bonett": high - shares.mean() - z * np.sqrt(variance),
        "Wilson": high - (few + many) / 100 - z * np.sqrt(high * (1 - high) / 100),
    }
    assert beyond[wider] == pytest.approx(0, abs=1e-9)
    assert max(beyond.values()) > 1e-4


@pytest.mark.parametrize(("n_parts", "factor"), [(20, 5.0), (200, 9.0)])
def test_more_than_ten_folds_widen_a_difference(n_parts, factor):
    """One more for every five parts, nine at most; at p = 1/2 the paired test has 3.25 with ten parts."""
    y = np.arange(200) % 2
    wrong = [np.where((np.arange(200) // 2 + shift) % 4 < 2, 1 - y, y) for shift in (0, 1)]
    width = {}
    for k in (10, n_parts):
        a, b = (parts(y, predicted, n_parts=k) for predicted in wrong)
        effect = paired_test(METRICS["error_rate"], a, b)[1]
        width[k] = effect.high - effect.low
    assert width[n_parts] / width[10] == pytest.approx(np.sqrt(factor / 3.25))


def test_equal_differences_are_not_certainty():
    """One more error in each of five parts: 5 against 0 discordant samples of 50."""
    y = np.zeros(50, dtype=int)
    worse = y.copy()
    worse[:5] = 1
    p_value, effect = paired_test(METRICS["error_rate"], parts(y, worse), parts(y, y))
    assert 0.05 < p_value < 0.3
    assert effect.estimate == pytest.approx(0.1)
    assert effect.low < 0 < effect.estimate < effect.high


@pytest.mark.parametrize("name", ["error_rate", "balanced_error_rate", "mse"])
def test_the_paired_test_by_hand(name):
    """Two passes over 60 samples of 20 patients: the moments with a pair of differences added, and both factors."""
    rng = np.random.default_rng(8)
    y = np.arange(60) % 3 // 2  # 40 and 20
    patients, is_residual = np.arange(60) // 3, name == "mse"
    wrong = rng.random((2, 2, 60)) < np.repeat(rng.uniform(0.1, 0.7, (2, 1, 20)), 3, axis=2)
    predictions = y + rng.normal(size=(2, 2, 60)) if is_residual else np.where(wrong, 1 - y, y)
    outcomes = (predictions - y) ** 2 if is_residual else wrong.astype(float)
    a, b = ([r for one in passes for r in parts(y, one, test_groups=patients)] for passes in predictions)
    for row in (*a, *b):
        row["mse"] = np.mean((row["predictions"] - row["truth"]) ** 2)
    by_pass = outcomes[0] - outcomes[1]
    d = by_pass.mean(axis=0)
    squares, added = (d**2, np.mean(d**2)) if is_residual else (np.mean(by_pass**2, axis=0), 1.0)
    classes = [y == 0, y == 1] if name == "balanced_error_rate" else [np.ones(60, bool)]
    more = 2 / len(classes)  # one difference of each sign, divided among the classes
    means = [d[c].sum() / (c.sum() + more) for c in classes]
    variances = [
        ((squares[c].sum() + more * added) / (c.sum() + more) - m**2) / (c.sum() + more)
        for c, m in zip(classes, means, strict=True)
    ]
    level = np.mean([outcomes.mean(axis=(0, 1))[c].mean() for c in classes])
    overlap = 1 + 1.5 + 12 / 48 if is_residual else 1 + 2.25 * 4 * level * (1 - level)
    sums = np.bincount(patients, weights=d - d.mean())
    together = max(1.0, 20 / 19 * np.sum(sums**2) / np.sum((d - d.mean()) ** 2))
    error = np.sqrt(overlap * together * np.sum(variances)) / len(classes)
    scale = stats.t(59) if is_residual else stats.norm
    p_value, effect = paired_test(METRICS[name], a, b, confidence=0.9)
    assert p_value == pytest.approx(2 * scale.sf(abs(np.mean(means)) / error))
    assert effect.low == pytest.approx(np.mean(means) - scale.ppf(0.95) * error)
    assert effect.high == pytest.approx(np.mean(means) + scale.ppf(0.95) * error)
    assert effect.estimate == pytest.approx(np.mean([r[name] for r in a]) - np.mean([r[name] for r in b]))
    assert together > 1


def area_rows(y, decision, passes):
    """Rows of ``passes`` draws of decisions, one test part each."""
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


@pytest.mark.parametrize("n", [24, 38, 40, 43, 147])
def test_ten_parts_of_unequal_size_are_not_more_than_ten(n):
    """Mean sizes of the parts give 10.000000000000002 for some n."""
    y = np.arange(n) % 2
    assert excess_of_parts(1.5, parts(y, y, n_parts=10)) == 1.5
    assert excess_of_parts(1.5, parts(y, y, n_parts=11)) == pytest.approx(2.2)


@pytest.mark.parametrize("name", ["error_rate", "auc"])
def test_further_passes_do_not_make_a_difference_more_certain(name):
    """Ten passes average the noise of the passes out, not what a new data set would change."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    noise = rng.normal(size=(2, 10, 60))
    width = {}
    for passes in (1, 10):
        a, b = (area_rows(y, 0.5 * (2 * y - 1) + part, passes) for part in noise)
        effect = paired_test(METRICS[name], a, b)[1]
        width[passes] = effect.high - effect.low
    assert 0.9 < width[10] / width[1] < 1.1  # 0.4 from mean outcomes


def test_the_test_of_areas_widens_where_methods_are_unstable():
    """By hand: placements of either class, half a pair of differences of 1 added, 1 + 2.25 (4a(1 - a))^1.5."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    decision = rng.normal(size=(2, 1, 80)) + 1.5 * y
    a, b = (area_rows(y, values, 1) for values in decision)
    p_value, _ = paired_test(METRICS["auc"], a, b)
    placed = [placements(rows[0]) for rows in (a, b)]
    differences = [np.r_[placed[0] - placed[1]][y == label] for label in (0, 1)]
    means = [d.sum() / (d.size + 1) for d in differences]
    variances = [(np.sum(d**2) + 1) / (d.size + 1) - m**2 for d, m in zip(differences, means, strict=True)]
    area = (a[0]["auc"] + b[0]["auc"]) / 2
    error = np.sqrt((1 + 2.25 * (4 * area * (1 - area)) ** 1.5) * sum(variances) / 41)
    assert p_value == pytest.approx(2 * stats.norm.sf(abs(np.mean(means)) / error))


def test_any_scorer_goes_through_the_whole_chain():
    """A scorer of scikit-learn and a metric of a user: curves, intervals, comparison, direction."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 6)) + 1.2 * np.outer(y, np.arange(6) == 5)
    selectors = {"first": FisherScore(1), "all": FisherScore(6)}
    for metric in ("f1", "neg_log_loss", "average_precision"):
        records = evaluate(selectors, X, y, cv=4, metrics=metric, estimator=LogisticRegression())
        assert primary_metric(records) == metric
        curve = error_curves(records, metric)[0]
        assert curve.own.low < curve.own.mean < curve.own.high
        found = compare(records, metric)
        means = [row.mean for row in found.rows]
        assert means == sorted(means, reverse=True)
        assert found.choice.best == found.rows[0].method
    own = register_metric(Metric("misses", lambda t, p: float(np.sum(t > p)), label="missed cases"))
    try:
        records = evaluate(selectors, X, y, cv=4, metrics=own)
        assert primary_metric(records) == "misses"
        means = [row.mean for row in compare(records, "misses").rows]
        assert means == sorted(means)
    finally:
        del METRICS["misses"]


def scorer_rows(name, y, predictions, n_parts=5):
    metric = as_metric(name)
    return metric, [
        row | {name: metric.function(row["truth"], row["predictions"])}
        for row in parts(y, predictions, n_parts)
    ]


@pytest.mark.parametrize("name", ["f1", "matthews_corrcoef", "precision", "recall", "jaccard", "f1_macro"])
def test_scorers_of_labels_without_errors_are_not_certain(name):
    """A jackknife alone gives a width of 0, or of rounding: Matthews' correlation was covered in 0.48."""
    y = np.arange(40) % 2
    low, high = metric_interval(*scorer_rows(name, y, y))
    assert high == 1.0
    assert 0.5 < low < 0.95


@pytest.mark.parametrize(
    ("name", "same"), [("accuracy", "error_rate"), ("balanced_accuracy", "balanced_error_rate")]
)
def test_accuracies_have_the_interval_of_the_errors(name, same):
    y = np.arange(60) % 2
    wrong = np.where(np.arange(60) % 7 == 0, 1 - y, y)
    metric, rows = scorer_rows(name, y, wrong)
    low, high = metric_interval(metric, rows)
    assert metric_interval(METRICS[same], rows) == pytest.approx((1 - high, 1 - low))


def test_the_jackknife_of_labels_adds_two_samples_to_each_class():
    """By hand, for the recall of 50 samples with 10 misses in 5 parts: one of each kind is added."""
    y = np.arange(100) % 2
    predictions = np.where((np.arange(100) < 20) & (y == 1), 0, y)
    metric, rows = scorer_rows("recall", y, predictions)
    low, high = metric_interval(metric, rows)
    center = 41 / 52
    p = 12 / 104 + np.sqrt(12 / 104 * 92 / 104 / 100)
    factor = 1 + 0.7 * (4 * p * (1 - p)) ** 1.5
    assert (low + high) / 2 == pytest.approx(center)
    # Blocks of two and three samples: the variance of independent ones up to the unevenness of the blocks.
    expected = stats.t.ppf(0.975, 49) * np.sqrt(factor * center * (1 - center) / 52)
    assert (high - low) / 2 == pytest.approx(expected, rel=0.25)


def test_losses_of_models_that_hardly_err_have_no_interval():
    """Most of a mean loss comes from rare samples; four errors do not show them."""
    y = np.arange(100) % 2
    for errors, is_there in ((4, False), (5, True)):
        predictions = np.where(np.arange(100) < errors, 1 - y, y)
        rows = [row | {"neg_log_loss": -0.1 - 0.01 * i} for i, row in enumerate(parts(y, predictions))]
        assert (metric_interval(as_metric("neg_log_loss"), rows) is not None) == is_there
        assert ("5 wrong predictions" in why_no_interval(as_metric("neg_log_loss"), rows)) != is_there


def test_average_precision_needs_samples_of_each_class_in_a_part():
    y = np.arange(100) % 2
    for n_parts, is_there in ((20, False), (10, True)):
        rows = parts(y, np.where(np.arange(100) % 6 == 0, 1 - y, y), n_parts)
        rows = [row | {"average_precision": 0.8 + 0.01 * i} for i, row in enumerate(rows)]
        assert (metric_interval(as_metric("average_precision"), rows) is not None) == is_there
        assert ("samples of each class" in why_no_interval(as_metric("average_precision"), rows)) != is_there


def test_r2_has_an_interval_around_its_value():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80)
    records = evaluate(
        SelectKBest(f_regression, k=3), X, y, cv=5, task="regression", estimator=LinearRegression()
    )
    own = error_curves(records, "r2")[0].own
    assert own.low < 0.5 < own.high < 1.0


# -- Simulations: small ones here, the full tables with the script --


def rejected_at_most(share, level, n):
    return share <= level + 3 * np.sqrt(level * (1 - level) / n)


def test_intervals_cover_in_a_small_simulation(simulate):
    rows = list(simulate.coverage(sets=40, seed=1, quick=True))
    assert min(row["smallest width"] for row in rows) > 0
    for row in rows:
        assert rejected_at_most(1 - row[FITTED], 0.05, 40), row


def test_a_cross_validated_error_varies_more_than_independent_samples(simulate):
    row = next(simulate.spread(sets=200, seed=1, quick=True))
    assert 0.1 < row["error rate"] < 0.2
    assert 0.9 < row["variance, times that of independent samples"] < 2.0


def test_tests_keep_their_size_in_a_small_simulation(simulate):
    for row in simulate.size(sets=60, seed=1, quick=True):
        assert row["rejected"] == "refused" or rejected_at_most(row["rejected"], 0.05, 60), row


def test_unstable_methods_keep_their_size_and_clear_differences_are_found(simulate):
    for row in simulate.size_unstable(sets=25, seed=1, quick=True):
        assert rejected_at_most(row["rejected"], 0.05, 25), row
    for row in simulate.many_folds(sets=25, seed=1, quick=True):
        assert rejected_at_most(row["rejected"], 0.05, 25), row
        assert rejected_at_most(1 - row[FITTED], 0.05, 25), row
    rows = [row for row in simulate.power(sets=25, seed=1, quick=True) if row["metric"] == "error_rate"]
    assert all(row["rejected"] > 0.3 for row in rows if row["test"] == "paired")
    assert rows[1]["test"] == "corrected t"
    assert rows[1]["rejected"] > 0.1


def test_the_verdict_is_true_in_a_small_simulation(simulate):
    rows = list(simulate.verdict(sets=40, seed=1, quick=True))
    assert all(rejected_at_most(row["claims a false one"], 0.05, 40) for row in rows)
    assert rows[1]["claims a difference"] > 0.3  # where methods differ, it says so


def test_stability_covers_in_a_small_simulation(simulate):
    for row in simulate.stability(sets=150, seed=1, quick=True):
        assert rejected_at_most(1 - row["covered"], 0.05, 150), row


def test_further_settings_cover_in_a_small_simulation(simulate):
    """No errors at all, repeats, absolute errors and R²."""
    rows = list(simulate.edges(sets=20, seed=1, quick=True))
    assert {row["metric"] for row in rows} >= {"error_rate", "auc", "mae", "r2"}
    for row in rows:
        assert rejected_at_most(1 - row[FITTED], 0.05, 20), row


def test_unstable_selections_are_covered_in_a_small_simulation(simulate):
    """One of 500 features, none of which tells anything; plain Wilson intervals cover about 0.75 of these errors."""
    rows = list(simulate.coverage_unstable(sets=40, seed=1, quick=True))
    assert {row["metric"] for row in rows} == {"error_rate", "balanced_error_rate", "auc", "mse", "mae", "r2"}
    for row in rows:
        assert rejected_at_most(1 - row[FITTED], 0.05, 40), row


def test_scorers_are_covered_in_a_small_simulation(simulate):
    """F1, Matthews' correlation and others from predictions, log loss and others from the test parts."""
    rows = list(simulate.other_metrics(sets=40, seed=1, quick=True))
    assert {row["metric"] for row in rows} == {*simulate.RATIOS, *simulate.MODEL_METRICS}
    for row in rows:
        assert row[FITTED] == "refused" or rejected_at_most(1 - row[FITTED], 0.05, 40), row


@pytest.mark.parametrize(("n", "share"), [(20, 0.0), (20, 0.05), (40, 0.3), (100, 0.01)])
def test_what_independent_samples_attain(simulate, n, share):
    found = simulate.exact_coverage(n, share)
    chance = stats.binom.pmf(np.arange(n + 1), n, share)
    for name, method in (("Wilson", "wilson"), ("Clopper and Pearson", "beta")):
        low, high = np.transpose([proportion_confint(count, n, method=method) for count in range(n + 1)])
        inside = (np.nan_to_num(low) <= share + 1e-12) & (share <= np.nan_to_num(high, nan=1.0))
        assert found[name] == pytest.approx(chance[inside].sum())
    assert found["mid-p"] <= found["Clopper and Pearson"]


def test_metrics_of_the_simulation_are_those_of_scikit_learn(simulate):
    rng = np.random.default_rng(0)
    truth, decision = np.arange(30) % 2, rng.normal(size=30) + np.arange(30) % 2
    found = (decision > 0.5).astype(int)
    for name in simulate.RATIOS:
        assert simulate.ratio_metric(name).function(truth, found) == pytest.approx(
            as_metric(name).function(truth, found)
        )
    probability = special.expit(decision)
    expected = {
        "neg_log_loss": -sk.log_loss(truth, probability),
        "neg_brier_score": -sk.brier_score_loss(truth, probability),
        "average_precision": sk.average_precision_score(truth, decision),
    }
    for name, value in expected.items():
        assert simulate._of_decision(name, truth, decision) == pytest.approx(value)


def test_true_values_of_the_simulation_are_those_of_many_samples(simulate):
    rng = np.random.default_rng(0)
    center, share, n = np.array([0.7, 0.0, 0.3]), 0.3, 200_000
    weights, offset = np.array([[1.5, 0.4, 0.0]]), np.array([0.2])
    y = (rng.random(n) < share).astype(int)
    decision = (rng.normal(size=(n, 3)) + (2 * y - 1)[:, None] * center) @ weights[0] + offset[0]
    shares = simulate.confusion(y, decision > 0)
    for name, value in simulate.other_values(weights, offset, center, share).items():
        if name in simulate.RATIOS:
            assert value[0] == pytest.approx(float(simulate.RATIOS[name](*shares)), abs=0.006)
        else:
            assert value[0] == pytest.approx(simulate._of_decision(name, y, decision), abs=0.006)


def test_the_gaussian_predictor_is_covered_in_a_small_simulation(simulate):
    for row in simulate.gaussian(sets=10, seed=1, quick=True):
        assert rejected_at_most(1 - row[FITTED], 0.05, 10), row


def test_small_training_parts_have_an_interval_of_their_own_models(simulate):
    """20 training samples and an R² of 0.9: data sets differ in what is found, the models fitted here are covered."""
    rng = np.random.default_rng(0)
    runs = simulate.regression_runs(n=40, r2=0.9, heavy=False, folds=2, repeats=1, sets=60, rng=rng)
    for name in ("mse", "mae", "r2"):
        row = simulate._covered(runs, name)
        assert row["without interval"] == 0
        assert rejected_at_most(1 - row[FITTED], 0.05, 60), row
        assert row["covers the expected value"] < 0.85  # not promised


def test_the_test_of_residuals_has_its_size_with_two_folds_and_ten_repeats(simulate):
    """With the variance factor of error rates it rejected 0.138 of equal procedures."""
    rows = list(simulate._sizes_for_targets(40, 0.9, 2, 10, 150, np.random.default_rng(5)))
    paired = [row for row in rows if row["test"] == "paired"]
    assert [row["metric"] for row in paired] == ["mse", "mae", "r2"]
    assert all(rejected_at_most(row["rejected"], 0.05, 150) for row in paired)


N_DRAWN = 40  # data sets a row in the slow test: all tables take about ten minutes of one core
TABLES = (
    *("coverage", "coverage_unstable", "edges", "gaussian", "many_folds", "other_metrics"),
    *("size", "size_unstable", "verdict", "stability"),
)


def among_many_rows(share, level, n):
    """No larger share than a row of this level has by chance, but once in 10,000; there are some 500 rows."""
    return round(share * n) <= stats.binom.isf(1e-4, n, level)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_full_tables(simulate, name):
    """All settings of the committed tables, drawn again with another seed, within their simulation error."""
    covered, rejected = [], []
    for row in simulate.TABLES[name](sets=N_DRAWN, seed=7):
        n_sets = row["data sets"]
        if row.get(FITTED, "refused") != "refused":
            covered.append(row[FITTED])
            assert among_many_rows(1 - row[FITTED], 0.08, n_sets - row.get("without interval", 0)), row
        if row.get("rejected", "refused") != "refused":
            rejected.append(row["rejected"])
            assert among_many_rows(row["rejected"], 0.05, n_sets), row
        if name == "verdict":
            assert among_many_rows(row["claims a false one"], 0.05, n_sets), row
        elif name == "stability":
            assert among_many_rows(1 - row["covered"], 0.07, n_sets), row
    # Together the rows are known to within half a point: the mean setting is covered, and not by chance alone.
    assert np.mean(covered or [1.0]) >= 0.95
    assert np.mean(rejected or [0.0]) <= 0.05


def test_intervals_of_other_metrics_count_the_overlap_of_training_parts():
    """By hand: the variance of the mean is s² (1/J + n_test/n_train + 0.35) with the J parts of one pass."""
    from zeronorm.evaluation.significance.pooled import _interval_of_parts

    for passes in (1, 3):
        values = np.tile([0.1, 0.2, 0.15, 0.3, 0.25], passes)
        rows = [{"n_test": 20, "n_train": 80}] * values.size
        half = stats.t.ppf(0.975, 4) * values.std(ddof=1) * np.sqrt(1 / 5 + 20 / 80 + 0.35)
        low, high = _interval_of_parts(rows, values, 0.95)
        np.testing.assert_allclose([low, high], [values.mean() - half, values.mean() + half])
