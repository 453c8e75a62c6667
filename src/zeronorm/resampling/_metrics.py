"""Metrics of predictions and selections: one object each, in one list."""

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
from zeronorm.selection.target import Labels, Real, Target

Response = Literal["predict", "decision", "selected", "model"]
Outcomes = Literal["none", "mean", "class mean", "ranks", "share explained", "pairs"]


@dataclass(frozen=True)
class Metric:
    """A named metric, with everything that tables, figures, comparisons and intervals need.

    Parameters
    ----------
    name : str
        Name of its column in the records.
    function : callable
        Called as ``response`` says: ``f(y_true, predictions)`` for "predict", ``f(y_true, decision_values,
        classes)`` for "decision", ``f(selected_columns)`` for "selected", ``f(model, X_test, y_true)`` (a
        scikit-learn scorer) for "model".
    response : {"predict", "decision", "selected", "model"}, default='predict'
        What the function is called with.
    greater_is_better : bool, default=False
        Whether a greater value is better.
    label : str, default=''
        Name of the metric in tables and figures; empty takes ``name``.
    unit : {"", "%"}, default=''
        "%" shows shares in per cent.
    bounds : tuple of two floats, default=(-inf, inf)
        Smallest and largest possible value.
    outcomes : {"none", "mean", "class mean", "ranks", "share explained", "pairs"}, default='none'
        How the value comes from single samples, which decides its interval: the mean of one outcome per
        sample (``sample_outcomes``), the mean over the classes of such means, the share of ordered pairs of
        samples of two classes, one minus the mean outcome over the variance of the target, the share of ordered pairs
        of times (with the parts of the samples in it as ``sample_outcomes``), or in no simple way.
    sample_outcomes : callable or None, default=None
        ``f(y_true, predictions)`` with one outcome per sample.
    tasks : tuple of str, default=('classification', 'regression')
        The tasks that it can be used for.
    is_balanced : bool, default=False
        Whether all classes count the same, whatever their sizes. The default predictors then have balanced class
        weights.
    of_target : callable or None, default=None
        ``f(y)`` with the function for test folds of the target y, where all samples of y say something that those of
        a test fold do not, such as when they were censored.

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
    tasks: tuple[str, ...] = (Labels.task, Real.task)
    is_balanced: bool = False
    of_target: Callable[[NDArray[Any]], Callable[..., float]] | None = None

    @property
    def text(self) -> str:
        """The label, or the name where there is none."""
        return self.label or self.name.replace("_", " ")

    def score(self, value: Any) -> Any:
        """The value, or values, with the sign changed where needed so that greater is better."""
        return value if self.greater_is_better else -value

    def for_target(self, y: NDArray[Any]) -> Metric:
        """The metric for test folds of this target: R² then divides by the variance of all samples."""
        if self.of_target is not None and np.asarray(y).dtype.names:
            return replace(self, function=self.of_target(y))
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
        """The value on the test samples of a fold; an error where it is not defined."""
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
                f"The metric {self.name!r} is {value} on this test fold with {len(columns)} features. Use larger or "
                "stratified test folds, or another metric."
            )
        return float(value)


def sample_errors(y_true: ArrayLike, y_pred: ArrayLike) -> FloatArray:
    """1 for every wrong prediction, else 0."""
    return np.asarray(np.asarray(y_true) != np.asarray(y_pred), dtype=np.float64)


def sample_hits(y_true: ArrayLike, y_pred: ArrayLike) -> FloatArray:
    """1 for every right prediction, else 0."""
    return 1.0 - sample_errors(y_true, y_pred)


def share_of_right_predictions(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Accuracy, the ``score`` of a classifier."""
    return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))


def share_of_explained_variance(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """R², the ``score`` of a regressor; for a constant target 1 where all predictions are equal to it, else 0."""
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
            "The area under the ROC curve is not defined: the test fold has samples of one class only. "
            "Use stratified splits with larger test folds, or another metric."
        )
    return float(sk.roc_auc_score(positive, values))


def explained_variation(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """One minus the residual over the total sum of squares (R²)."""
    truth = np.asarray(y_true, dtype=float)
    if truth.size == 0 or np.all(truth == truth[0]):
        raise ValueError(
            "R² is not defined: the targets of the test fold do not vary. Use larger test folds or 'mse'."
        )
    return float(sk.r2_score(truth, np.asarray(y_pred, dtype=float)))


def target_variance(y: ArrayLike) -> float:
    """The variance of a target, with n - 1 degrees of freedom."""
    return float(np.var(np.asarray(y, dtype=float), ddof=1))


@dataclass(frozen=True)
class ExplainedShare:
    """R² of a test fold: one minus its mean squared residual over the variance of the whole target.

    By chance the few targets of a fold vary much less, or more, than all. Divided by the variance within the fold, R²
    had a mean of -0.73 over ten folds of four samples where the models explained 0.45 of the variance (docs/trust).
    """

    variance: float

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike) -> float:
        return 1.0 - float(np.mean(squared_residuals(y_true, y_pred))) / self.variance


def probe_fraction(probes: Iterable[int], name: str = "probe_fraction") -> Metric:
    """A metric: the share of the selected features that are among the ``probes`` (column indices).

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


# In order of preference: the first one in the records is shown first.
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
            is_balanced=True,
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
    """Register a metric by its name, so that summaries and reports can use its column.

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
    """The ``Metric`` for a ``Metric``, one of our names, a scorer name of scikit-learn, or a scorer."""
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
            return replace(
                _of_scorer(get_scorer(metric), metric),
                bounds=_bounds_of_scorer(metric),
                is_balanced=metric.endswith("_macro"),
            )
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


# Scorers of scikit-learn that are called thousands of times, without the checks of the labels in every call: these
# checks take longer than fitting a small predictor.
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
        is_balanced=True,
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
    """The ``Metric`` of a scorer; where the scorer uses plain predictions, it gets these instead of the model."""
    measure = getattr(scorer, "_score_func", None)
    if measure is None or getattr(scorer, "_response_method", None) != "predict":
        return Metric(name, scorer, "model", greater_is_better=True)
    return Metric(name, _Signed(measure, scorer._sign, dict(scorer._kwargs)), greater_is_better=True)


@dataclass(frozen=True)
class _Signed:
    """A function of truth and predictions with the sign of its scorer; it can be pickled for other processes."""

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
    """The ``Metric`` for a parameter ``scoring``; None means the ``score`` method of the estimator."""
    if scoring is None and getattr(type(estimator), "score", None) is ClassifierMixin.score:
        # Without predicting, and checking the predictions, a second time.
        return Metric("score", share_of_right_predictions, greater_is_better=True)
    if scoring is None and getattr(type(estimator), "score", None) is RegressorMixin.score:
        return Metric("score", share_of_explained_variance, greater_is_better=True)
    if scoring is None:
        return Metric("score", check_scoring(estimator), "model", greater_is_better=True)
    return as_metric(scoring, "scoring")
