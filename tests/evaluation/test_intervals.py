"""Intervals of measured metrics: exact cases, and what must not shrink them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from statsmodels.stats.proportion import proportion_confint

from evaluation.made_rows import fold_rows
from zeronorm import RandomSelector, evaluate
from zeronorm.evaluation import METRICS, Metric
from zeronorm.evaluation._summary import error_curves
from zeronorm.evaluation.significance import compare_methods, metric_interval
from zeronorm.evaluation.significance._pooled import placements, why_no_interval
from zeronorm.resampling._metrics import as_metric


def residual_rows(y, predictions, n_folds):
    rows = fold_rows(y > 0, y > 0, n_folds=n_folds)
    for row in rows:
        test = row["test_rows"]
        row |= {"truth": y[test], "predictions": predictions[test]}
        row |= {name: METRICS[name].function(y[test], predictions[test]) for name in ("mse", "mae")}
    return rows


def test_no_errors_are_not_certainty():
    """0 of 40: Wilson's interval for 40 samples reaches 8.8 %; the correction for overlap widens it a little."""
    y = np.arange(40) % 2
    low, high = metric_interval(METRICS["error_rate"], fold_rows(y, y))
    _, wilson = proportion_confint(0, 40, method="wilson")
    assert low == 0.0
    assert wilson <= high < 1.4 * wilson
    again = metric_interval(METRICS["error_rate"], fold_rows(y, y, repeats=10))
    assert again[1] >= wilson  # repeating the same success tells nothing new


@pytest.mark.parametrize("name", ["error_rate", "balanced_error_rate"])
def test_one_bad_part_does_not_blow_the_interval_up(name):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(100) % 2)
    predictions = y.copy()
    predictions[::5] = 1 - y[::5]  # all errors in the first fold
    low, high = metric_interval(METRICS[name], fold_rows(y, predictions))
    assert 0.08 < low < 0.2 < high < 0.4


def test_samples_of_one_group_count_less():
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(20), 10)
    y = np.arange(200) % 2
    wrong = (rng.random(20) < 0.3)[patients]  # patients are right or wrong as a whole
    rows = fold_rows(y, np.where(wrong, 1 - y, y), test_groups=patients)
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
    rows = fold_rows(y, y, decision=y - 0.5)
    for row in rows:
        row["auc"] = 1.0
    low, high = metric_interval(METRICS["auc"], rows)
    assert 0.8 < low < 1.0 == high


def test_exact_fits_have_no_interval():
    y = np.linspace(0, 1, 20)
    rows = [row | {"mse": 0.0} for row in fold_rows(y, y)]
    assert metric_interval(METRICS["mse"], rows) is None


def test_no_interval_has_a_reason():
    y = np.linspace(0, 1, 20)
    rows = [row | {"mse": 0.0, "loss": 0.2} for row in fold_rows(y, y)]
    assert "same in all test folds" in why_no_interval(METRICS["mse"], rows)
    loss = Metric("loss", lambda t, p: 0.2, response="predict_proba")
    assert metric_interval(loss, rows) is None
    assert "same in all test folds" in why_no_interval(loss, rows)
    two = [rows[0], rows[1] | {"loss": 0.3}]
    assert metric_interval(loss, two) is None
    assert "needs at least 3 test folds" in why_no_interval(loss, two)


@pytest.mark.parametrize(("n_folds", "factor"), [(2, 1.26), (10, 1.5), (100, 3.0)])
def test_residuals_get_halls_interval_with_the_factor_of_the_parts(n_folds, factor):
    """By hand, of 100 squared normal residuals: variance 1.2 + 0.03 k times that of independent samples, 3 at most."""
    rng = np.random.default_rng(5)
    y, error = rng.normal(size=(2, 100))
    squares = error**2
    scale = max(squares.var(ddof=1), 2 * squares.mean() ** 2)
    skewness = max(stats.skew(squares, bias=False), 2.0) / 10
    limits = [
        squares.mean()
        - np.sqrt(factor * scale / 100) * 3 / skewness * (np.cbrt(1 + skewness * (t - skewness / 6)) - 1)
        for t in stats.t.ppf([0.975, 0.025], 99)
    ]
    assert metric_interval(METRICS["mse"], residual_rows(y, y + error, n_folds)) == pytest.approx(limits)


def test_squared_residuals_are_taken_for_no_less_scale_than_normal_ones():
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


@pytest.mark.parametrize(("n_folds", "excess"), [(2, 0.28), (10, 1.4), (20, 2.8), (200, 9.0)])
def test_more_folds_widen_an_interval(n_folds, excess):
    """1.96 standard errors lie between half and each limit p, with 1 + 0.14 k (4p(1 - p))^1.5 the variance."""
    y = np.arange(200) % 2
    wrong = np.where(np.arange(200) // 2 % 4 < 2, 1 - y, y)  # half of each class
    for limit in metric_interval(METRICS["error_rate"], fold_rows(y, wrong, n_folds=n_folds)):
        factor = 1 + excess * (4 * limit * (1 - limit)) ** 1.5
        error = np.sqrt(factor * limit * (1 - limit) / 200)
        assert abs(limit - 0.5) == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-6)


def new_divisions(y, wrong, n_folds, seed=0):
    """Rows of one repetition for each row of ``wrong``, each with other folds."""
    rng, rows = np.random.default_rng(seed), []
    for outcomes in wrong:
        order = rng.permutation(y.size)
        found = fold_rows(y[order], np.where(outcomes, 1 - y, y)[order], n_folds=n_folds)
        rows += [row | {"test_rows": order[row["test_rows"]]} for row in found]
    return rows


@pytest.mark.parametrize(("n_folds", "changed"), [(10, 2), (10, 40), (2, 40)])
def test_what_repeats_change_decides_the_width(n_folds, changed):
    """By hand, of 200 samples: ``changed`` of them err in one of two passes, others always, 0.25 each on average."""
    y, always = np.arange(200) % 2, 50 - changed // 2
    wrong = np.zeros((2, 200), dtype=bool)
    wrong[:, :always] = True
    wrong[0, always : always + changed // 2] = wrong[1, always + changed // 2 : always + changed] = True
    p = 52 / 204  # two pseudo-errors of each kind
    disagreed = (changed / 200 / 2) / (p * (1 - p))
    most = 0.1 + 0.3 * n_folds * disagreed
    for limit in metric_interval(METRICS["error_rate"], new_divisions(y, wrong, n_folds)):
        excess = min(most, 0.14 * n_folds * (4 * limit * (1 - limit)) ** 1.5)
        error = np.sqrt(max(0.3, 1 + excess - disagreed / 2) * limit * (1 - limit) / 200)
        assert abs(limit - 0.25) == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-6)


@pytest.mark.parametrize("n_folds", [5, 10])
def test_the_same_division_again_tells_nothing_new(n_folds):
    """Repeats with the same folds always agree, which is no sign of stability."""
    y = np.arange(100) % 2
    wrong = np.where(np.arange(100) % 3 == 0, 1 - y, y)
    once, again = (fold_rows(y, wrong, n_folds=n_folds, repeats=repeats) for repeats in (1, 5))
    for name in ("error_rate", "balanced_error_rate"):
        assert metric_interval(METRICS[name], again) == pytest.approx(metric_interval(METRICS[name], once))


def test_areas_get_the_factor_of_the_parts():
    """By hand: 40 samples in five folds, 1 + (0.1 + 0.14 k)(4a(1 - a))^1.5 times Newcombe's variance."""
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    rows = fold_rows(y, y, decision=rng.normal(size=40) + y)
    for row in rows:
        row["auc"] = METRICS["auc"].function(row["truth"], row["decision"], [0, 1])
    area = np.mean([row["auc"] for row in rows])
    for a in metric_interval(METRICS["auc"], rows):
        scale = a / (2 - a) + 2 * a * a / (1 + a) - 2 * a * a
        variance = (a * (1 - a) * 5 + 19 * scale) / 400
        factor = 1 + 0.8 * (4 * a * (1 - a)) ** 1.5
        assert abs(a - area) == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(factor * variance), rel=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_groups_widen_an_interval(grouped):
    """By hand, at each limit p: the factor of the folds times that of the groups."""
    rng = np.random.default_rng(3)
    n, y, patients = 60, np.arange(60) % 2, np.arange(60) // 4
    wrong = (rng.random(n) < np.repeat(rng.uniform(0.1, 0.6, 15), 4)).astype(float)
    more = {"test_groups": patients} if grouped else {}
    rows = fold_rows(y, np.where(wrong > 0, 1 - y, y), **more)
    sums = np.bincount(patients, weights=wrong - wrong.mean())
    together = 15 / 14 * np.sum(sums**2) / np.sum((wrong - wrong.mean()) ** 2) if grouped else 1.0
    assert grouped == (together > 1)
    for limit in metric_interval(METRICS["error_rate"], rows):
        factor = (1 + 0.7 * (4 * limit * (1 - limit)) ** 1.5) * together
        error = np.sqrt(factor * limit * (1 - limit) / n)
        assert abs(limit - wrong.mean()) == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-6)


def test_groups_without_scale_count_as_one_sample_each():
    y = np.arange(40) % 2
    rows = fold_rows(y, y, test_groups=np.arange(40) // 4)
    _, high = metric_interval(METRICS["error_rate"], rows)
    factor = 1 + 0.7 * (4 * high * (1 - high)) ** 1.5
    assert high == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(factor * high * (1 - high) / 10), rel=1e-6)


def test_the_interval_of_an_area_by_hand():
    """Hanley and McNeil's variance with the mean class size, its first term once for each fold, times the factor."""
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3 // 2  # 40 and 20
    decision = rng.normal(size=60) + y
    rows = fold_rows(y, y, n_folds=4, decision=decision)
    for row in rows:
        row["auc"] = METRICS["auc"].function(row["truth"], row["decision"], [0, 1])
    area = np.mean([row["auc"] for row in rows])
    for a in metric_interval(METRICS["auc"], rows):
        scale = a / (2 - a) + 2 * a**2 / (1 + a) - 2 * a**2
        variance = (4 * a * (1 - a) + (60 / 2 - 1) * scale) / (40 * 20)
        factor = 1 + (0.1 + 0.14 * 4) * (4 * a * (1 - a)) ** 1.5
        assert abs(a - area) == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(factor * variance), rel=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_other_functions_of_predictions_get_the_jackknife(grouped):
    """By hand: samples or groups are left out one at a time, and the variance is three times that of the jackknife."""
    rng = np.random.default_rng(6)
    y = rng.normal(size=36)
    predictions, patients = y + rng.normal(size=36), np.arange(36) // 3
    rows = fold_rows(y, predictions, n_folds=3, **({"test_groups": patients} if grouped else {}))
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


@pytest.mark.parametrize(("grouped", "n_folds"), [(False, 3), (True, 3), (False, 36)])
def test_the_interval_of_r2_is_that_of_the_share_it_leaves_unexplained(grouped, n_folds):
    """By hand: the logarithm of mean squared residual over variance, whose variance is that of single samples."""
    rng = np.random.default_rng(6)
    y = rng.normal(size=36) + 5.0
    predictions, patients = y + rng.normal(size=36), np.arange(36) // 3
    rows = fold_rows(y, predictions, n_folds=n_folds, **({"test_groups": patients} if grouped else {}))
    for row in rows:
        row["r2"] = METRICS["r2"].for_target(y).function(row["truth"], row["predictions"])
    squares, variation = (y - predictions) ** 2, (y - y.mean()) ** 2
    by_sample = squares / squares.mean() - variation / variation.mean()
    unexplained = squares.mean() / y.var(ddof=1)
    variance, degrees = by_sample.var(ddof=1) / 36, 35
    if grouped:
        totals = by_sample.reshape(12, 3).sum(axis=1)
        variance, degrees = variance * max(1.0, 12 / 11 * np.sum(totals**2) / np.sum(by_sample**2)), 11
    half = stats.t.ppf(0.975, degrees) * np.sqrt(min(6.0, 1.7 + 0.15 * n_folds) * variance)
    low, high = metric_interval(METRICS["r2"], rows)
    assert low == pytest.approx(1 - unexplained * np.exp(half))
    assert high == pytest.approx(1 - unexplained * np.exp(-half))
    exact = fold_rows(y, y, n_folds=3)
    for row in exact:
        row["r2"] = 1.0
    assert metric_interval(METRICS["r2"], exact) is None


@pytest.mark.parametrize("n_folds", [5, 10, 30])
def test_r2_of_few_samples_is_that_of_all_of_them(n_folds):
    """Ten folds of three samples each had a mean R² of -2.4 where the predictions explained 0.43 of the variation."""
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
    _, high = metric_interval(METRICS["balanced_error_rate"], fold_rows(y, predictions))
    z = stats.norm.ppf(0.975) * np.sqrt(1 + 0.7 * (4 * high * (1 - high)) ** 1.5)
    beyond = {
        "Bonett": high - shares.mean() - z * np.sqrt(variance),
        "Wilson": high - (few + many) / 100 - z * np.sqrt(high * (1 - high) / 100),
    }
    assert beyond[wider] == pytest.approx(0, abs=1e-9)
    assert max(beyond.values()) > 1e-4
