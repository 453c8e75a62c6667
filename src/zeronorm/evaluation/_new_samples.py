"""How good the predictions for new samples are: metrics with intervals, classes, calibration, and what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from zeronorm._types import FloatArray, IntArray
from zeronorm.evaluation._probabilities import fit_scores
from zeronorm.evaluation.significance._pooled import PooledOutcomes, metric_interval
from zeronorm.resampling._metrics import METRICS, Metric, as_metric

Limits = tuple[float | None, float | None]
N_BINS = 10
FEWEST_IN_BIN = 5
CONFIDENCE = 0.95
CERTAIN = 1e-12  # probabilities nearer to 0 than this are taken as this


@dataclass(frozen=True)
class Predicted:
    """New samples with their true values and predictions; ``decision`` are decision values of two classes.

    ``model`` and the features ``X`` are needed by metrics of predicted survival curves.
    """

    truth: NDArray[Any]
    predictions: NDArray[Any]
    decision: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    model: Any = None
    X: Any = None

    def row(self, inside: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """The samples as a row of records: one test fold without training samples."""
        kept = np.ones(len(self.truth), dtype=bool) if inside is None else inside
        return {
            "truth": self.truth[kept],
            "predictions": self.predictions[kept],
            "decision": None if self.decision is None else self.decision[kept],
            "test_rows": np.flatnonzero(kept),
            "test_groups": None if self.groups is None else self.groups[kept],
            "n_train": 0,
            "n_test": int(kept.sum()),
        }


def measured(metric: Metric, predicted: Predicted) -> dict[str, Any] | None:
    """Value and 95 % interval of a metric on new samples; None where it is not defined."""
    row = predicted.row()
    try:
        if metric.response == "decision":
            if predicted.decision is None:
                return None
            value = metric.function(predicted.truth, predicted.decision, None)
        elif metric.response == "predict":
            value = metric.function(predicted.truth, predicted.predictions)
        elif predicted.model is not None and hasattr(metric.function, "outcomes"):
            outcomes = metric.function.outcomes(predicted.model, predicted.X, predicted.truth)
            return {"metric": metric.name, **_mean_of(outcomes, metric, predicted.groups)}
        else:
            return None
    except ValueError:
        return None
    if not np.isfinite(value):
        return None
    low, high = metric_interval(metric, [{**row, metric.name: value}]) or (None, None)
    return {"metric": metric.name, "value": float(value), "low": low, "high": high}


def _mean_of(outcomes: FloatArray, metric: Metric, groups: NDArray[Any] | None) -> dict[str, Any]:
    """The mean of the outcomes of single samples with its t interval; without one where they are fewer than two."""
    pooled = PooledOutcomes(outcomes, np.zeros(len(outcomes)), None, groups)
    value, n_units = float(outcomes.mean()), len(outcomes) if groups is None else len(np.unique(groups))
    if n_units < 2:
        return {"value": value, "low": None, "high": None}
    t = float(stats.t.ppf((1 + CONFIDENCE) / 2, n_units - 1))
    half = t * math.sqrt(float(outcomes.var(ddof=1)) * pooled.clustering / pooled.n)
    low, high = metric.bounds
    return {"value": value, "low": max(low, value - half), "high": min(high, value + half)}


def class_rates(predicted: Predicted, classes: Sequence[Any]) -> list[dict[str, Any]]:
    """For every class: how many samples it has, and which share of them, and of the others, is predicted right.

    These are sensitivity and specificity for this class, with Wilson's intervals, which allow for sample groups.
    """
    rows = []
    for label in classes:
        inside, called = predicted.truth == label, predicted.predictions == label
        rows.append(
            {
                "class": label,
                "n": int(inside.sum()),
                "predicted": int(called.sum()),
                "sensitivity": _share(called == inside, inside, predicted.groups),
                "specificity": _share(called == inside, ~inside, predicted.groups),
            }
        )
    return rows


def _share(
    right: NDArray[np.bool_], inside: NDArray[np.bool_], groups: NDArray[Any] | None
) -> dict[str, Any] | None:
    """The share of right predictions among some samples, with its interval; None without samples."""
    if not inside.any():
        return None
    as_labels = Predicted(np.ones(len(right), dtype=int), right.astype(int), groups=groups)
    value = float(right[inside].mean())
    accuracy = as_metric("accuracy")
    low, high = metric_interval(accuracy, [{**as_labels.row(inside), accuracy.name: value}]) or (None, None)
    return {"value": value, "low": low, "high": high}


# -- Calibration --------------------------------------------------------------------------------------


def calibration_of_classes(
    codes: IntArray, probabilities: FloatArray, groups: NDArray[Any] | None = None
) -> dict[str, Any]:
    r"""Calibration slope and, for two classes, calibration intercept of probabilities.

    .. math:: \operatorname{logit} P(y = c) = \alpha_c + \beta \log p_c

    The slope β is 1 for calibrated probabilities, below 1 for too extreme ones; the intercept is that with β = 1, and
    0 if the class is as frequent as predicted (Cox 1958). A value is None where the likelihood has no maximum.
    """
    scores = np.log(np.maximum(probabilities, CERTAIN))
    found: dict[str, Any] = {"slope": None, "intercept": None}
    hits = np.eye(probabilities.shape[1])[codes]
    if len(np.unique(codes)) < 2:
        return found
    free = fit_scores(scores, hits, groups=groups)
    if free.is_finite:
        found["slope"] = normal_limits(free.slope, float(free.covariance[0, 0]))
    if probabilities.shape[1] == 2:
        fixed = fit_scores(scores, hits, slope=1.0, groups=groups)
        if fixed.is_finite:
            found["intercept"] = normal_limits(float(fixed.biases[1]), float(fixed.covariance[0, 0]))
    return found


def normal_quantile(confidence: float) -> float:
    """The half-width of a two-sided interval, in standard errors."""
    return float(stats.norm.ppf((1 + confidence) / 2))


def normal_limits(value: float, variance: float) -> dict[str, float]:
    """A value with its 95 % interval."""
    half = normal_quantile(CONFIDENCE) * math.sqrt(max(variance, 0.0))
    return {"value": value, "low": value - half, "high": value + half}


def calibration_bins(probability: FloatArray, hit: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Mean probability and share of hits, with Wilson's interval, in groups of samples of like probability."""
    rows = []
    for part in alike(probability, n_bins_of(probability)):
        share = _share(hit[part], np.ones(part.size, dtype=bool), None) or {}
        rows.append({"n": int(part.size), "predicted": float(probability[part].mean()), **share})
    return rows


def n_bins_of(values: FloatArray) -> int:
    """How many groups of samples there are."""
    return max(1, min(N_BINS, len(values) // FEWEST_IN_BIN))


def alike(values: FloatArray, n_bins: int) -> list[IntArray]:
    """Groups of samples with like values, about equal in size; equal values are in one group."""
    edges = np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins)) if len(values) else np.empty(0)
    codes = np.searchsorted(edges, values, side="left")
    return [np.flatnonzero(codes == code) for code in np.unique(codes)]


def bins_of_numbers(truth: FloatArray, predictions: FloatArray) -> list[dict[str, Any]]:
    """Mean prediction and mean true value, with its t interval, in groups of samples of like predictions."""
    rows = []
    for part in alike(predictions, n_bins_of(predictions)):
        value = float(truth[part].mean())
        half = math.nan
        if part.size > 1:
            t = float(stats.t.ppf((1 + CONFIDENCE) / 2, part.size - 1))
            half = t * float(truth[part].std(ddof=1)) / math.sqrt(part.size)
        limits = (
            {"low": None, "high": None} if math.isnan(half) else {"low": value - half, "high": value + half}
        )
        rows.append(
            {"n": int(part.size), "predicted": float(predictions[part].mean()), "value": value, **limits}
        )
    return rows


def calibration_of_numbers(
    truth: FloatArray, predictions: FloatArray, groups: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Intercept and slope of the regression of the true values on the predictions, with 95 % intervals.

    The covariance is that of MacKinnon and White (HC3), which allows for errors that grow with the value, or, with
    groups, the sandwich estimator of clusters. None where all predictions are equal.
    """
    n = len(truth)
    if n < 3 or np.ptp(predictions) == 0.0:
        return {"slope": None, "intercept": None}
    design = np.column_stack([np.ones(n), predictions - predictions.mean()])
    inverse = np.linalg.inv(design.T @ design)
    fitted = inverse @ design.T @ truth
    left = truth - design @ fitted
    if groups is None:
        leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
        parts, n_units = design * (left / np.maximum(1 - leverage, 1e-9))[:, None], n
    else:
        _, codes = np.unique(groups, return_inverse=True)
        n_units = int(codes.max()) + 1
        parts = np.zeros((n_units, 2))
        np.add.at(parts, codes, design * left[:, None])
        parts *= math.sqrt(n_units / max(1, n_units - 1))
    covariance = inverse @ (parts.T @ parts) @ inverse
    # The intercept at a prediction of 0, from that at the mean prediction.
    at_zero = np.array([1.0, -predictions.mean()])
    t = float(stats.t.ppf((1 + CONFIDENCE) / 2, max(1, n_units - 2)))
    found = {}
    for name, direction in (("intercept", at_zero), ("slope", np.array([0.0, 1.0]))):
        value, error = (
            float(direction @ fitted),
            math.sqrt(max(0.0, float(direction @ covariance @ direction))),
        )
        found[name] = {"value": value, "low": value - t * error, "high": value + t * error}
    return found


# -- Against what was expected ------------------------------------------------------------------------


def against_expected(found: Mapping[str, Any], expected: Mapping[str, Any], metric: Metric) -> dict[str, Any]:
    r"""The difference between the value that was found and the one that was expected, with a 95 % interval.

    The limits follow from the intervals of the two values (the square-and-add method, Zou & Donner 2008):

    .. math:: d \pm \sqrt{(f - l_f)^2 + (u_e - e)^2}

    for the lower limit, and likewise for the upper one. A mean of squared or absolute errors is compared by its
    logarithm. The verdict is "worse" where this interval shows that the new samples are predicted worse, "compatible"
    elsewhere, and empty where one of the values has no interval. There is no verdict "better": a model of all samples
    is better than those of the folds, so that a better value shows nothing about the new samples. How often cohorts of
    the same kind are called worse is simulated in docs/trust.
    """
    values = [
        found["low"],
        found["value"],
        found["high"],
        expected["low"],
        expected["value"],
        expected["high"],
    ]
    if any(value is None for value in values):
        return {"difference": None, "difference_low": None, "difference_high": None, "verdict": ""}
    is_scale = metric.bounds == (0.0, math.inf) and min(values) > 0.0
    l1, f, u1, l0, e, u0 = (math.log(value) if is_scale else float(value) for value in values)
    low, high = f - e - math.hypot(f - l1, u0 - e), f - e + math.hypot(u1 - f, e - l0)
    is_worse = high < 0.0 if metric.greater_is_better else low > 0.0
    if is_scale:  # as factors of the expected value
        low, high = (expected["value"] * math.expm1(limit) for limit in (low, high))
    return {
        "difference": float(found["value"] - expected["value"]),
        "difference_low": low,
        "difference_high": high,
        "verdict": "worse" if is_worse else "compatible",
    }


def known_metric(name: str) -> Metric | None:
    """The metric of this name; None for one that is not known here."""
    try:
        return METRICS[name] if name in METRICS else as_metric(name)
    except ValueError:
        return None
