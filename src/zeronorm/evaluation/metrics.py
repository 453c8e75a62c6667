"""Measures of a prediction or a selection, each with its direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import get_scorer, get_scorer_names

Response = Literal["predict", "decision", "selected", "model"]


@dataclass(frozen=True)
class Metric:
    """A named measure.

    Parameters
    ----------
    function : called as ``response`` says: ``f(y_true, predictions)`` for "predict",
        ``f(y_true, decision_values, classes)`` for "decision", ``f(selected_columns)`` for "selected",
        ``f(model, X_test, y_true)`` (a scikit-learn scorer) for "model".
    greater_is_better : the direction.
    """

    name: str
    function: Callable[..., float]
    response: Response = "predict"
    greater_is_better: bool = False


def error_rate(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of wrong predictions."""
    return float(np.mean(np.asarray(y_true) != np.asarray(y_pred)))


def balanced_error_rate(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean over the classes in ``y_true`` of the share of wrong predictions."""
    truth = np.asarray(y_true)
    _, codes = np.unique(truth, return_inverse=True)
    wrong = np.bincount(codes, weights=truth != np.asarray(y_pred))
    return float(np.mean(wrong / np.bincount(codes)))


def area_under_curve(y_true: ArrayLike, decision: ArrayLike, classes: ArrayLike | None = None) -> float:
    r"""Area under the ROC curve, as a Mann–Whitney statistic; ties count one half.

    .. math:: \mathrm{AUC} = \frac{\sum_{i: y_i = +} r_i - n_+ (n_+ + 1) / 2}{n_+ n_-}

    with :math:`r_i` the rank of the decision value. Decision values with one column per class give
    the mean of the one-against-rest areas.
    """
    truth, values = np.asarray(y_true), np.asarray(decision, dtype=np.float64)
    labels = np.unique(truth) if classes is None else np.asarray(classes)
    if values.ndim == 1:
        return _binary_area(truth == labels[-1], values)
    areas = [_binary_area(truth == label, values[:, c]) for c, label in enumerate(labels)]
    return float(np.mean(areas))


def _binary_area(positive: NDArray[np.bool_], values: NDArray[np.float64]) -> float:
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if n_positive == 0 or n_negative == 0:
        raise ValueError(
            "The area under the ROC curve is not defined: the test part has samples of one class only. "
            "Use stratified splits with larger test parts, or another metric."
        )
    rank_sum = rankdata(values)[positive].sum()
    return float((rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def mean_squared_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean of the squared residuals."""
    return float(np.mean((np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float)) ** 2))


def mean_absolute_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean of the absolute residuals."""
    return float(np.mean(np.abs(np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float))))


def explained_variation(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """One minus the residual over the total sum of squares (R²)."""
    truth = np.asarray(y_true, dtype=float)
    total = float(np.mean((truth - truth.mean()) ** 2))
    if total == 0.0:
        raise ValueError(
            "R² is not defined: the targets of the test part do not vary. Use larger test parts or 'mse'."
        )
    return 1.0 - mean_squared_error(truth, y_pred) / total


def probe_fraction(probes: Iterable[int], name: str = "probe_fraction") -> Metric:
    """A metric: the share of the selected features that are among the ``probes`` (column numbers)."""
    known = np.unique(np.fromiter(probes, dtype=np.intp))

    def share(selected: ArrayLike) -> float:
        return float(np.mean(np.isin(np.asarray(selected), known)))

    return Metric(name, share, response="selected")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("error_rate", error_rate),
        Metric("balanced_error_rate", balanced_error_rate),
        Metric("auc", area_under_curve, response="decision", greater_is_better=True),
        Metric("mse", mean_squared_error),
        Metric("mae", mean_absolute_error),
        Metric("r2", explained_variation, greater_is_better=True),
    )
}
DEFAULT_METRICS = {"classification": ("error_rate", "balanced_error_rate"), "regression": ("mse", "r2")}


def parse_metrics(metrics: Any, task: str) -> tuple[Metric, ...]:
    """The metrics a user named: names, ``Metric`` objects, or a mapping from name to scorer."""
    if metrics is None:
        metrics = DEFAULT_METRICS[task]
    if isinstance(metrics, (str, Metric)):
        metrics = (metrics,)
    if isinstance(metrics, Mapping):
        parsed = tuple(_renamed(_parse_metric(value), name) for name, value in metrics.items())
    else:
        parsed = tuple(_parse_metric(value) for value in metrics)
    names = [metric.name for metric in parsed]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or not parsed:
        found = f"Got {repeated} more than once." if repeated else "Got none."
        raise ValueError(f"The 'metrics' parameter must name one or more different metrics. {found}")
    return parsed


def _parse_metric(metric: Any) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric in METRICS:
            return METRICS[metric]
        if metric in get_scorer_names():
            return Metric(metric, get_scorer(metric), response="model", greater_is_better=True)
        raise ValueError(
            f"The 'metrics' parameter names {metric!r}, which is not known. Use one of {sorted(METRICS)}, "
            "a scorer name of scikit-learn, or a Metric."
        )
    if callable(metric):
        function = getattr(metric, "_score_func", metric)  # a scorer of make_scorer is named by its measure
        name = str(getattr(function, "__name__", "scorer"))
        return Metric(name, metric, response="model", greater_is_better=True)
    raise ValueError(
        f"The 'metrics' parameter must hold names, scorers or Metric objects. Got {metric!r} instead."
    )


def _renamed(metric: Metric, name: str) -> Metric:
    return Metric(name, metric.function, metric.response, metric.greater_is_better)
