"""The learning curve of a procedure: its error on growing parts of the samples, and what more samples would change."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from zeronorm._types import FloatArray, written
from zeronorm.evaluation._protocol import evaluate
from zeronorm.evaluation._records import columns_of, frame_of_rows
from zeronorm.evaluation.learning._power_law import PowerLaws, fit_power_laws
from zeronorm.evaluation.learning._subsets import GrowingSplits, growing_splits
from zeronorm.evaluation.significance._pooled import metric_interval
from zeronorm.resampling._metrics import Metric, as_metric, parse_metrics
from zeronorm.selection.target import TASKS

N_SIZES, DRAWS = 6, 5
FACTORS = (2, 4)  # multiples of the samples at which the error is predicted
N_BOOTSTRAP = 2000
SMALL_GAIN, SMALLEST_GAIN = (
    0.1,
    0.02,
)  # share of the error that is no help, and that is not even expected to be one
Verdict = Literal["helps", "does not help", "cannot be told"]


@dataclass(frozen=True)
class LearningPoint:
    """One size: mean number of training samples, mean of the metric, and its standard deviation over the draws."""

    n_train: float
    value: float
    deviation: float | None


@dataclass(frozen=True)
class Prediction:
    """The expected value with so many times as many samples, and an interval for what would be measured."""

    factor: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LearningCurve:
    """A learning curve with its fitted law and predictions.

    Parameters
    ----------
    metric : name of the metric.
    n_samples : number of samples.
    n_draws : number of draws of folds and nested training sets.
    points : the sizes, ascending; the last is that of the training samples of a whole fold.
    a, b, c : the law a + b (m / m_max)^−c, of the metric or, where greater is better, of its negative.
    now : value of the law at all samples.
    predictions : at 2 and 4 times as many samples.
    verdict : "helps", "does not help" or "cannot be told": whether twice as many samples would improve the metric.
    confidence : of the intervals.
    """

    metric: str
    n_samples: int
    n_draws: int
    points: tuple[LearningPoint, ...]
    a: float
    b: float
    c: float
    now: float
    predictions: tuple[Prediction, ...]
    verdict: Verdict
    confidence: float

    def at(self, n_train: float) -> float:
        """The value of the fitted law with so many training samples."""
        value = float(self.a + self.b * (n_train / self.points[-1].n_train) ** -self.c)
        return -value if as_metric(self.metric).greater_is_better else value

    def sentence(self) -> str:
        """What more samples would change, in words."""
        metric, twice = as_metric(self.metric), self.predictions[0]
        found, now = metric.format(twice.value), metric.format(self.now)
        interval = f"{metric.format(twice.low)} to {metric.format(twice.high)}"
        if self.verdict == "helps":
            change = "raise" if metric.greater_is_better else "lower"
            return f"Twice as many samples would be expected to {change} the {metric.text} from {now} to {found} ({interval})."
        if self.verdict == "does not help":
            return (
                f"More samples are not expected to help: with twice as many the {metric.text} would be expected to be "
                f"{found} ({interval}), and it is {now} now."
            )
        return (
            f"Whether more samples would help cannot be told from these {self.n_samples}: with twice as many the "
            f"{metric.text} would be expected to be {found} ({interval}), and it is {now} now."
        )

    def to_frame(self) -> Any:
        """The measured sizes and the predictions as a polars (else pandas) frame."""
        return frame_of_rows(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One row per measured size and per prediction."""
        largest = self.points[-1].n_train
        measured = [
            {"kind": "measured", "n_train": p.n_train, "value": p.value, "low": None, "high": None}
            for p in self.points
        ]
        return measured + [
            {
                "kind": "predicted",
                "n_train": p.factor * largest,
                "value": p.value,
                "low": p.low,
                "high": p.high,
            }
            for p in self.predictions
        ]

    def to_dict(self) -> dict[str, Any]:
        """All values as a dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> LearningCurve:
        """The inverse of ``to_dict``."""
        points = tuple(LearningPoint(**each) for each in content["points"])
        predictions = tuple(Prediction(**each) for each in content["predictions"])
        return cls(**{**content, "points": points, "predictions": predictions})


def learning_curve(
    selector: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    draws: int = DRAWS,
    n_sizes: int = N_SIZES,
    estimator: Any = None,
    metric: Any = None,
    groups: Any = None,
    task: str = "classification",
    confidence: float = 0.95,
    n_jobs: int | None = None,
    journal: Any = None,
    random_state: int = 0,
    verbose: Any = False,
) -> LearningCurve:
    """Measure the error of a procedure on growing parts of the samples, and predict it for more samples.

    In every fold the whole procedure, with the selection inside, is fitted on nested subsets of the training samples
    that have the same mix of classes and divide no sample group; all test samples of the fold are predicted. This is
    repeated with other folds and subsets. The inverse power law a + b m^−c is fitted to the mean values. "Twice as
    many samples" means twice as many in the same folds, so that the value at all samples is comparable with that of
    ``evaluate``.

    The intervals are for the value that would be measured in the same way with so many samples. They hold the noise of
    the fitted points (parametric bootstrap), of the test samples now and then, and of one data set among others. They
    assume that the new samples are like these, and that the law continues to hold.

    Parameters
    ----------
    selector : selector
        The procedure. Choices, such as that of the number of features, belong inside it.
    X : array-like, sparse matrix, data frame or Design
        The features.
    y : array-like
        Labels, or real targets with ``task="regression"``.
    cv : int, splitter or list, default=5
        The folds.
    draws : int, default=5
        How many times folds and subsets are drawn.
    n_sizes : int, default=6
        Number of sizes, in equal ratios.
    estimator : estimator or None, default=None
        The predictor. None: as in ``evaluate``.
    metric : str, Metric or None, default=None
        The metric. None: the first of those of ``evaluate``.
    groups : array-like or None, default=None
        One label per sample, where samples belong together.
    task : {"classification", "regression"}, default='classification'
        What y holds.
    confidence : float, default=0.95
        Confidence of the intervals.
    n_jobs : int or None, default=None
        Number of processes.
    journal : path or None, default=None
        Folder for finished fits, as in ``evaluate``.
    random_state : int, default=0
        Seed.
    verbose : bool, int or RunBar, default=False
        Show progress.

    Returns
    -------
    LearningCurve
        Measured points, the law, predictions for 2 and 4 times as many samples, and a sentence.

    Examples
    --------
    >>> from zeronorm import FisherScore, learning_curve
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> curve = learning_curve(FisherScore(5), X, y, draws=2)
    >>> [prediction.factor for prediction in curve.predictions]
    [2, 4]
    """
    _check(draws=(draws, 1), n_sizes=(n_sizes, 4))
    if not 0.5 <= confidence < 1.0:
        raise ValueError(
            f"The 'confidence' parameter must be at least 0.5 and below 1. Got {written(confidence)} instead."
        )
    if task not in TASKS:
        raise ValueError(
            f"The 'task' parameter must be {' or '.join(map(repr, TASKS))}. Got {written(task)} instead."
        )
    y = np.asarray(y)
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and len(groups) != len(y):
        raise ValueError(f"'groups' has {len(groups)} entries, but y has {len(y)}.")
    drawn = growing_splits(y, groups, TASKS[task], cv=cv, draws=draws, n_sizes=n_sizes, seed=random_state)
    measured = as_metric(metric) if metric is not None else parse_metrics(None, TASKS[task])[0]
    records = evaluate(
        {"procedure": selector},
        X,
        y,
        cv=drawn.splits,
        estimator=estimator,
        metrics=[measured],
        groups=groups,
        task=task,
        n_jobs=n_jobs,
        journal=journal,
        random_state=random_state,
        verbose=verbose,
    )
    return curve_of_records(records, drawn, measured, y, confidence=confidence, seed=random_state)


def _check(**counts: tuple[Any, int]) -> None:
    for name, (value, least) in counts.items():
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
            raise ValueError(
                f"The {name!r} parameter must be a count of at least {least}. Got {written(value)} instead."
            )


# -- From records to a curve --------------------------------------------------------------------------------------------


def curve_of_records(
    records: Any, drawn: GrowingSplits, metric: Metric, y: NDArray[Any], *, confidence: float, seed: int
) -> LearningCurve:
    """The curve, from the records of all splits."""
    columns = columns_of(records)
    values = np.array(columns[metric.name], dtype=np.float64)
    if np.isnan(values).any():
        error = next(each for each in columns["error"] if each is not None)
        raise ValueError(
            f"The procedure failed on {int(np.isnan(values).sum())} of {len(values)} growing training sets: {error}. Use "
            "more samples, or a simpler procedure."
        )
    n_train = np.array(columns["n_train"], dtype=np.float64)
    shape = (int(drawn.draw.max()) + 1, drawn.n_steps)
    by_draw = _means(values, drawn, shape)
    m = _means(n_train, drawn, shape).mean(axis=0)
    full = np.flatnonzero(drawn.step == drawn.n_steps - 1)
    rows = [{name: cells[row] for name, cells in columns.items()} for row in full]
    sign = -1.0 if metric.greater_is_better else 1.0
    least = -metric.bounds[1] if metric.greater_is_better else metric.bounds[0]
    noise = _Noise.of(
        sign * by_draw, m, _test_variance(metric, rows, values[full]), len(full) / shape[0], least
    )
    rng = np.random.default_rng([seed, len(y)])
    law, drop, predictions = noise.predictions(rng, confidence)
    now = float(law.at(m[-1])[0])

    def shown(value: float) -> float:
        return float(np.clip(sign * value, *metric.bounds))

    return LearningCurve(
        metric=metric.name,
        n_samples=len(y),
        n_draws=shape[0],
        points=tuple(
            LearningPoint(
                float(size), float(column.mean()), float(column.std(ddof=1)) if shape[0] > 1 else None
            )
            for size, column in zip(m, by_draw.T, strict=True)
        ),
        a=float(law.a[0]),
        b=float(law.b[0]),
        c=float(law.c[0]),
        now=shown(now),
        predictions=tuple(
            Prediction(factor, shown(value), *sorted((shown(low), shown(high))))
            for factor, (value, low, high) in zip(FACTORS, predictions, strict=True)
        ),
        verdict=_verdict(now - max(least, -np.inf) if np.isfinite(least) else abs(now), now, law, drop),
        confidence=confidence,
    )


def _means(values: FloatArray, drawn: GrowingSplits, shape: tuple[int, int]) -> FloatArray:
    """Means over the folds, one row per draw and one column per size."""
    cell = np.ravel_multi_index((drawn.draw, drawn.step), shape)
    sums, counts = np.bincount(cell, values, np.prod(shape)), np.bincount(cell, minlength=np.prod(shape))
    return np.asarray((sums / counts).reshape(shape))


def _test_variance(metric: Metric, rows: list[dict[str, Any]], values: FloatArray) -> float:
    """Variance of the measured value at all samples, because the test samples are few."""
    interval = metric_interval(metric, rows)
    if interval is None:
        return float(
            values.var(ddof=1)
            / max(1, len(values) // max(1, len({tuple(r["test_rows"]) for r in rows}) // 5))
        )
    return float(((interval[1] - interval[0]) / (2.0 * stats.norm.ppf(0.975))) ** 2)


@dataclass(frozen=True, eq=False)
class _Noise:
    """The mean values of the sizes with the variances of their noise; smaller is better.

    A mean over the draws varies because the training sets are drawn: with ``train / m`` for m samples, as the variance of
    most estimates. All sizes share the noise of the test samples (``test``), and of the data set: to first order the mean
    over all subsets of size m of n samples has the variance m/n of that of one subset, which is the same for all m.
    """

    m: FloatArray
    mean: FloatArray
    train: float
    draws: int
    folds: float
    test: float
    least: float

    @classmethod
    def of(cls, by_draw: FloatArray, m: FloatArray, test: float, folds: float, least: float) -> _Noise:
        draws, mean = len(by_draw), by_draw.mean(axis=0)
        law = fit_power_laws(m, mean[None, :], m, least)
        fitted = np.array([law.at(size)[0] for size in m])
        of_fit = float(np.sum(m * (mean - fitted) ** 2) / (len(m) - 3)) * draws
        of_draws = float(np.mean(m * by_draw.var(axis=0, ddof=1))) if draws > 1 else 0.0
        return cls(m, mean, max(of_fit, of_draws), draws, folds, test, least)

    def predictions(
        self, rng: np.random.Generator, confidence: float
    ) -> tuple[PowerLaws, FloatArray, list[tuple[float, float, float]]]:
        """The law, the drops from all to twice as many samples of the bootstrap, and value and interval of each factor."""
        law = fit_power_laws(self.m, self.mean[None, :], self.m, self.least)
        fitted = np.array([law.at(size)[0] for size in self.m])
        errors = rng.normal(size=(N_BOOTSTRAP, len(self.m))) * np.sqrt(self.train / (self.m * self.draws))
        again = fit_power_laws(self.m, fitted + errors, self.m, self.least)
        largest = float(self.m[-1])
        common = self.test  # now, for all sizes together
        shift = rng.normal(size=N_BOOTSTRAP)
        tail = 50.0 * (1.0 - confidence)
        found = []
        for factor in FACTORS:
            value = float(law.at(factor * largest)[0])
            # What is measured then has the same kinds of noise, with so many times as many samples.
            drawn = again.at(factor * largest) + shift * np.sqrt(common * (1.0 + 1.0 / factor))
            low, high = np.percentile(drawn, (tail, 100.0 - tail))
            found.append((value, min(float(low), value), max(float(high), value)))
        return law, again.at(largest) - again.at(2.0 * largest), found


def _verdict(error: float, now: float, law: PowerLaws, drop: FloatArray) -> Verdict:
    """Whether twice as many samples would lower the error, by how much the law and its bootstrap say they do."""
    low, high = np.percentile(drop, (5.0, 95.0))
    expected = now - float(law.at(2.0 * law.unit)[0])
    if high < SMALL_GAIN * error or error <= 0.0:
        return "does not help"
    return "helps" if low > 0.0 and expected > SMALLEST_GAIN * error else "cannot be told"
