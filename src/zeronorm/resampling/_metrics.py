"""Measures of a prediction or a selection: one object each, and the only list of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics as sk
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.registry import load_extensions
from zeronorm.selection._kinds import METRIC_NAMES
from zeronorm.selection.target import TASKS, Labels, Real, Target

Response = Literal["predict", "decision", "selected", "model"]
Outcomes = Literal["none", "mean", "class mean", "ranks", "share explained"]


@dataclass(frozen=True)
class Metric:
    """A named measure, with all that a table, a figure, a comparison or an interval needs to know of it.

    Parameters
    ----------
    name : str
        Name of its column in the records.
    function : callable
        Called as ``response`` says: ``f(y_true, predictions)`` for "predict", ``f(y_true, decision_values,
        classes)`` for "decision", ``f(selected_columns)`` for "selected", ``f(model, X_test, y_true)`` (a
        scikit-learn scorer) for "model".
    response : {"predict", "decision", "selected", "model"}, default='predict'
        What the function looks at.
    greater_is_better : bool, default=False
        The direction.
    label : str, default=''
        The measure in words; empty takes the name.
    unit : {"", "%"}, default=''
        "%" shows shares in per cent.
    bounds : tuple of two floats, default=(-inf, inf)
        Smallest and largest possible value.
    outcomes : {"none", "mean", "class mean", "ranks", "share explained"}, default='none'
        How the value comes from single samples, which decides its interval: the mean of one outcome per
        sample (``sample_outcomes``), the mean over the classes of such means, the share of ordered pairs of
        samples, one minus the mean outcome over the variance of the target, or in no simple way.
    sample_outcomes : callable or None, default=None
        ``f(y_true, predictions)`` with one outcome per sample.
    tasks : tuple of str, default=('classification', 'regression')
        The tasks it measures.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.evaluation import Metric
    >>> metric = Metric("worst_error", lambda y, found: float(np.max(np.abs(y - found))))
    >>> metric.function(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    0.5
    """

    name: str
    function: Callable[..., float]
    response: Response = "predict"
    greater_is_better: bool = False
    label: str = ""
    unit: Literal["", "%"] = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    outcomes: Outcomes = "none"
    sample_outcomes: Callable[[ArrayLike, ArrayLike], FloatArray] | None = None
    tasks: tuple[str, ...] = tuple(TASKS)

    @property
    def text(self) -> str:
        """The measure in words."""
        return self.label or self.name.replace("_", " ")

    def score(self, value: Any) -> Any:
        """The value, or values, turned so that greater is better."""
        return value if self.greater_is_better else -value

    def for_target(self, y: NDArray[Any]) -> Metric:
        """The same metric for test parts of this target: R² counts its whole variation, not that of each part."""
        is_number = np.issubdtype(np.asarray(y).dtype, np.number)
        if self.outcomes != "share explained" or not is_number or np.ptp(y) == 0.0:
            return self
        return replace(self, function=ExplainedShare(target_variance(y)))

    def format(self, value: float | None) -> str:
        """Shares in per cent, other values with three significant digits and, if possible, no exponent."""
        if value is None:
            return "–"
        if self.unit == "%":
            return f"{100 * value:.1f} %"
        return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"

    def measure(
        self, model: Any, X: Any, y: NDArray[Any], predictions: Any, decision: Any, columns: IntArray
    ) -> float:
        """The value on a test part; an error where it is not defined."""
        if self.response == "predict":
            value = self.function(y, predictions)
        elif self.response == "selected":
            value = self.function(columns)
        elif self.response == "model":
            value = self.function(model, X, y)
        elif decision is None:
            raise ValueError(
                f"{type(model).__name__} has neither decision_function nor predict_proba; use another 'estimator'."
            )
        else:
            value = self.function(y, decision, model.classes_)
        if not np.isfinite(value):
            raise ValueError(
                f"The metric {self.name!r} is {value} on this test part with {len(columns)} features. Use larger or "
                "stratified test parts, or another metric."
            )
        return float(value)


def sample_errors(y_true: ArrayLike, y_pred: ArrayLike) -> FloatArray:
    """1 for every wrong prediction, else 0."""
    return np.asarray(np.asarray(y_true) != np.asarray(y_pred), dtype=np.float64)


def sample_hits(y_true: ArrayLike, y_pred: ArrayLike) -> FloatArray:
    """1 for every right prediction, else 0."""
    return 1.0 - sample_errors(y_true, y_pred)


def share_of_right_predictions(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """What ``score`` of a classifier is."""
    return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))


def share_of_explained_variance(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """What ``score`` of a regressor is; of a target that does not vary, 1 where it is met and else 0."""
    truth, predicted = np.asarray(y_true, dtype=np.float64), np.asarray(y_pred, dtype=np.float64)
    if truth.ndim != 1 or truth.size < 2 or truth.shape != predicted.shape:
        return float(sk.r2_score(truth, predicted))
    left, total = float(np.sum((truth - predicted) ** 2)), float(np.sum((truth - truth.mean()) ** 2))
    return 1.0 - left / total if total > 0.0 else float(left == 0.0)


def squared_residuals(y_true: ArrayLike, y_pred: ArrayLike) -> FloatArray:
    """One squared residual per sample."""
    return np.asarray((np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float)) ** 2)


def absolute_residuals(y_true: ArrayLike, y_pred: ArrayLike) -> FloatArray:
    """One absolute residual per sample."""
    return np.asarray(np.abs(np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float)))


def error_rate(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of wrong predictions.

    Parameters
    ----------
    y_true : array-like
        True labels.
    y_pred : array-like
        Predicted labels.

    Returns
    -------
    float
        A number between 0 and 1.

    Examples
    --------
    >>> from zeronorm.evaluation import error_rate
    >>> error_rate([0, 0, 0, 1], [0, 0, 1, 1])
    0.25
    """
    return float(sample_errors(y_true, y_pred).mean())


def balanced_error_rate(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean over the classes in ``y_true`` of the share of wrong predictions.

    Parameters
    ----------
    y_true : array-like
        True labels.
    y_pred : array-like
        Predicted labels.

    Returns
    -------
    float
        A number between 0 and 1.

    Examples
    --------
    >>> from zeronorm.evaluation import balanced_error_rate
    >>> round(balanced_error_rate([0, 0, 0, 1], [0, 0, 1, 1]), 3)  # a third of the 0s, none of the 1s
    0.167
    """
    _, codes = np.unique(np.asarray(y_true), return_inverse=True)
    wrong = np.bincount(codes, weights=sample_errors(y_true, y_pred))
    return float(np.mean(wrong / np.bincount(codes)))


def area_under_curve(y_true: ArrayLike, decision: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Area under the ROC curve; ties count one half.

    Decision values with one column per class give the mean of the one-against-rest areas.

    Parameters
    ----------
    y_true : array-like
        True labels.
    decision : array-like
        Decision values: one per sample for two classes, otherwise one column per class.
    classes : array-like or None, default=None
        The classes in the order of the columns. None: those in ``y_true``, in ascending order.

    Returns
    -------
    float
        1 for a perfect order, 0.5 for chance.

    Examples
    --------
    >>> from zeronorm.evaluation import area_under_curve
    >>> area_under_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    truth, values = np.asarray(y_true), np.asarray(decision, dtype=np.float64)
    labels = np.unique(truth) if classes is None else np.asarray(classes)
    if values.ndim == 1:
        return _binary_area(truth == labels[-1], values)
    return float(np.mean([_binary_area(truth == label, values[:, c]) for c, label in enumerate(labels)]))


def _binary_area(positive: NDArray[np.bool_], values: FloatArray) -> float:
    if positive.all() or not positive.any():
        raise ValueError(
            "The area under the ROC curve is not defined: the test part has samples of one class only. "
            "Use stratified splits with larger test parts, or another metric."
        )
    return float(sk.roc_auc_score(positive, values))


def explained_variation(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """One minus the residual over the total sum of squares (R²)."""
    truth = np.asarray(y_true, dtype=float)
    if truth.size == 0 or np.all(truth == truth[0]):
        raise ValueError(
            "R² is not defined: the targets of the test part do not vary. Use larger test parts or 'mse'."
        )
    return float(sk.r2_score(truth, np.asarray(y_pred, dtype=float)))


def target_variance(y: ArrayLike) -> float:
    """The variance of a target, by one degree of freedom less than it has samples."""
    return float(np.var(np.asarray(y, dtype=float), ddof=1))


@dataclass(frozen=True)
class ExplainedShare:
    """R² of a test part: one minus its mean squared residual over the variance of the whole target.

    The few targets of a part vary by chance much less, or more, than all. Divided by their own variation, R² had a mean
    of -0.73 over ten parts of four samples where the fitted models explained 0.45 of the variation (docs/trust).
    """

    variance: float

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike) -> float:
        return 1.0 - float(np.mean(squared_residuals(y_true, y_pred))) / self.variance


def probe_fraction(probes: Iterable[int], name: str = "probe_fraction") -> Metric:
    """A metric: the share of the selected features that are among the ``probes`` (column numbers).

    Parameters
    ----------
    probes : iterable of int
        Positions of the probe columns.
    name : str, default='probe_fraction'
        Name of the metric.

    Returns
    -------
    Metric
        For the ``metrics`` of ``evaluate``.

    Examples
    --------
    >>> from zeronorm.evaluation import probe_fraction
    >>> probe_fraction([3, 4]).function([0, 3])
    0.5
    """
    known = np.unique(np.fromiter(probes, dtype=np.intp))

    def share(selected: ArrayLike) -> float:
        return float(np.mean(np.isin(np.asarray(selected), known)))

    return Metric(name, share, "selected", label="share of probes", unit="%", bounds=(0.0, 1.0))


# The order is that of preference: the first that the records hold is shown first.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "balanced_error_rate",
            balanced_error_rate,
            label="balanced error rate",
            unit="%",
            bounds=(0.0, 1.0),
            outcomes="class mean",
            sample_outcomes=sample_errors,
            tasks=(Labels.task,),
        ),
        Metric(
            "error_rate",
            error_rate,
            label="error rate",
            unit="%",
            bounds=(0.0, 1.0),
            outcomes="mean",
            sample_outcomes=sample_errors,
            tasks=(Labels.task,),
        ),
        Metric(
            "mse",
            sk.mean_squared_error,
            label="mean squared error",
            bounds=(0.0, math.inf),
            outcomes="mean",
            sample_outcomes=squared_residuals,
            tasks=(Real.task,),
        ),
        Metric(
            "mae",
            sk.mean_absolute_error,
            label="mean absolute error",
            bounds=(0.0, math.inf),
            outcomes="mean",
            sample_outcomes=absolute_residuals,
            tasks=(Real.task,),
        ),
        Metric(
            "r2",
            explained_variation,
            greater_is_better=True,
            label="R²",
            bounds=(-math.inf, 1.0),
            outcomes="share explained",
            sample_outcomes=squared_residuals,
            tasks=(Real.task,),
        ),
        Metric(
            "auc",
            area_under_curve,
            response="decision",
            greater_is_better=True,
            label="area under the ROC curve",
            bounds=(0.0, 1.0),
            outcomes="ranks",
            tasks=(Labels.task,),
        ),
    )
}
METRIC_NAMES.update(METRICS)


def register_metric(metric: Metric) -> Metric:
    """Make a metric known by its name, so that summaries and reports understand its column.

    Parameters
    ----------
    metric : Metric
        The metric to add.

    Returns
    -------
    Metric
        The same metric.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.evaluation import METRICS, Metric, register_metric
    >>> worst = register_metric(Metric("worst_error", lambda y, found: float(np.max(np.abs(y - found)))))
    >>> worst.text, METRICS.pop("worst_error") is worst
    ('worst error', True)
    """
    if metric.name in METRICS and METRICS[metric.name] != metric:
        raise ValueError(f"There is already a metric named {metric.name!r}. Choose another name.")
    METRICS[metric.name] = metric
    METRIC_NAMES.add(metric.name)
    return metric


def as_metric(metric: Any, parameter: str = "metrics") -> Metric:
    """A ``Metric``, a name of ours, a scorer name of scikit-learn, or a scorer, as a ``Metric``."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric not in METRICS:
            load_extensions()
        if metric in METRICS:
            return METRICS[metric]
        if metric in SHARES:
            return SHARES[metric]
        if metric in get_scorer_names():
            return replace(_of_scorer(get_scorer(metric), metric), bounds=_bounds_of_scorer(metric))
        raise ValueError(
            f"The '{parameter}' parameter names {written(metric)}, which is not known. Use one of {sorted(METRICS)}, "
            "a scorer name of scikit-learn, or a Metric (register_metric makes its name known)."
        )
    if callable(metric):
        function = getattr(metric, "_score_func", metric)  # a scorer of make_scorer is named by its measure
        return _of_scorer(metric, str(getattr(function, "__name__", "scorer")))
    raise ValueError(
        f"The '{parameter}' parameter must hold names, scorers or Metric objects. Got {written(metric)} instead."
    )


def _share_right(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))


def _balanced_share_right(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    _, codes = np.unique(np.asarray(y_true), return_inverse=True)
    right = np.bincount(codes, weights=np.asarray(y_true) == np.asarray(y_pred))
    return float(np.mean(right / np.bincount(codes)))


# Scorers of scikit-learn that are asked for thousands of times, without its checks of the labels each time: those
# take longer than fitting a small predictor.
SHARES = {
    "accuracy": Metric(
        "accuracy",
        _share_right,
        greater_is_better=True,
        bounds=(0.0, 1.0),
        outcomes="mean",
        sample_outcomes=sample_hits,
    ),
    "balanced_accuracy": Metric(
        "balanced_accuracy",
        _balanced_share_right,
        greater_is_better=True,
        bounds=(0.0, 1.0),
        outcomes="class mean",
        sample_outcomes=sample_hits,
    ),
}
BETWEEN_0_AND_1 = ("average_precision", "f1", "jaccard", "precision", "recall", "roc_auc", "top_k_accuracy")


def _bounds_of_scorer(name: str) -> tuple[float, float]:
    """Values that a scorer of scikit-learn can take, so that no interval and no axis goes beyond them."""
    if name.startswith("neg_"):
        return (-math.inf, 0.0)
    if name.startswith(BETWEEN_0_AND_1):
        return (0.0, 1.0)
    if name == "matthews_corrcoef":
        return (-1.0, 1.0)
    is_share_explained = name in ("r2", "explained_variance") or name.startswith("d2_")
    return (-math.inf, 1.0 if is_share_explained else math.inf)


def _of_scorer(scorer: Any, name: str) -> Metric:
    """Scorers are greater-is-better; those that read plain predictions are given them instead of the model."""
    measure = getattr(scorer, "_score_func", None)
    if measure is None or getattr(scorer, "_response_method", None) != "predict":
        return Metric(name, scorer, "model", greater_is_better=True)
    return Metric(name, _Signed(measure, scorer._sign, dict(scorer._kwargs)), greater_is_better=True)


@dataclass(frozen=True)
class _Signed:
    """A function of truth and predictions, turned as its scorer turns it; can be sent to other processes."""

    measure: Callable[..., float]
    sign: int
    options: Mapping[str, Any]

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike) -> float:
        return float(self.sign * self.measure(y_true, y_pred, **self.options))


def parse_metrics(metrics: Any, target: Target | type[Target]) -> tuple[Metric, ...]:
    """The metrics a user named: names, ``Metric`` objects, or a mapping from name to scorer."""
    if metrics is None:
        metrics = target.metrics
    if isinstance(metrics, (str, Metric)) or callable(metrics):
        metrics = (metrics,)
    if isinstance(metrics, Mapping):
        parsed = tuple(replace(as_metric(value), name=name) for name, value in metrics.items())
    else:
        parsed = tuple(as_metric(value) for value in metrics)
    names = [metric.name for metric in parsed]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or not parsed:
        found = f"Got {repeated} more than once." if repeated else "Got none."
        raise ValueError(f"The 'metrics' parameter must name one or more different metrics. {found}")
    return parsed


def scoring_metric(scoring: Any, estimator: Any) -> Metric:
    """What a parameter ``scoring`` means; None is the estimator's own ``score``."""
    if scoring is None and getattr(type(estimator), "score", None) is ClassifierMixin.score:
        # Without predicting, and checking the predictions, a second time.
        return Metric("score", share_of_right_predictions, greater_is_better=True)
    if scoring is None and getattr(type(estimator), "score", None) is RegressorMixin.score:
        return Metric("score", share_of_explained_variance, greater_is_better=True)
    if scoring is None:
        return Metric("score", check_scoring(estimator), "model", greater_is_better=True)
    return as_metric(scoring, "scoring")
