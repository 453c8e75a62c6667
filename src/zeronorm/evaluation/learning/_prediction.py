"""From the records of growing training sets to a law, and to what would be measured with more samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from zeronorm._types import FloatArray
from zeronorm.evaluation._records import columns_of
from zeronorm.evaluation.learning._answer import LearningCurve, LearningPoint, Prediction, Verdict
from zeronorm.evaluation.learning._power_law import PowerLaws, fit_power_laws
from zeronorm.evaluation.learning._subsets import GrowingSplits
from zeronorm.evaluation.significance._pooled import (
    has_outcomes,
    metric_interval,
    outcomes_of,
    pool_outcomes,
)
from zeronorm.resampling._metrics import Metric

FACTORS = (2, 4)  # multiples of the samples at which the error is predicted
N_BOOTSTRAP = 2000
SMALL_GAIN = 0.1  # share of the error: a smaller gain is no help
LEAST_EXPECTED = 0.05  # share of the error that must be expected as a gain


def curve_of_records(
    records: Any,
    drawn: GrowingSplits,
    metric: Metric,
    y: NDArray[Any],
    chance: float,
    *,
    confidence: float,
    seed: int,
) -> LearningCurve:
    """The curve, from the records of all splits; ``chance`` is the value without features."""
    columns = columns_of(records)
    values = np.array(columns[metric.name], dtype=np.float64)
    if np.isnan(values).any():
        error = next((each for each in columns["error"] if each is not None), "the metric is not defined")
        raise ValueError(
            f"The procedure failed on {int(np.isnan(values).sum())} of {len(values)} growing training sets: {error}. "
            "Use more samples, or a simpler procedure."
        )
    sign = -1.0 if metric.greater_is_better else 1.0
    by_draw = _means(values, drawn)
    m = _means(np.array(columns["n_train"], dtype=np.float64), drawn).mean(axis=0)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    by_step = [[rows[at] for at in np.flatnonzero(drawn.step == step)] for step in range(drawn.n_steps)]
    least = float(min(sign * bound for bound in metric.bounds))
    test = _test_variance(metric, by_step[-1])
    noise = Noise.of(sign * by_draw, m, test, least, _shared_by_sizes(metric, by_step, test))
    law, drop, predictions = noise.predictions(np.random.default_rng([seed, len(y)]), confidence)
    now = float(law.at(m[-1])[0])
    gain = sign * chance - now
    at_chance = bool(gain <= stats.norm.ppf(0.975) * np.sqrt(test))

    def shown(value: float) -> float:
        return float(np.clip(sign * value, *metric.bounds))

    return LearningCurve(
        metric=metric.name,
        n_samples=len(y),
        n_draws=len(by_draw),
        points=tuple(
            LearningPoint(
                float(size),
                float(values_at.mean()),
                float(values_at.std(ddof=1)) if len(values_at) > 1 else None,
            )
            for size, values_at in zip(m, by_draw.T, strict=True)
        ),
        a=float(law.a[0]),
        b=float(law.b[0]),
        c=float(law.c[0]),
        now=shown(now),
        chance=chance,
        predictions=tuple(
            Prediction(factor, shown(value), *sorted((shown(low), shown(high))))
            for factor, (value, low, high) in zip(FACTORS, predictions, strict=True)
        ),
        verdict="cannot be told" if at_chance else _verdict(gain, now - least, law, drop),
        at_chance=at_chance,
        confidence=confidence,
    )


def _means(values: FloatArray, drawn: GrowingSplits) -> FloatArray:
    """Means over the folds, one row per draw and one column per size."""
    shape = (int(drawn.draw.max()) + 1, drawn.n_steps)
    group = drawn.draw * drawn.n_steps + drawn.step
    return np.asarray((np.bincount(group, values) / np.bincount(group)).reshape(shape))


def _test_variance(metric: Metric, rows: list[dict[str, Any]]) -> float:
    """Variance of the measured value at all samples; without an interval of the metric, that of the folds."""
    interval = metric_interval(metric, rows)
    if interval is not None:
        return float(((interval[1] - interval[0]) / (2.0 * stats.norm.ppf(0.975))) ** 2)
    n_samples = len({row for fold in rows for row in fold["test_rows"]})
    values = [fold[metric.name] for fold in rows]
    return float(np.var(values, ddof=1) * np.mean([fold["n_test"] for fold in rows]) / n_samples)


def _shared_by_sizes(metric: Metric, by_step: list[list[dict[str, Any]]], test: float) -> FloatArray:
    """The covariance of the values of all sizes over the test samples, scaled to ``test`` at the largest.

    It comes from the mean outcome of each sample at each size. Metrics without outcomes of single samples have a common
    shift only.
    """
    common = np.full((len(by_step), len(by_step)), test)
    if metric.outcomes not in ("mean", "class mean") or not has_outcomes(metric, by_step[-1]):
        return common
    pooled = [pool_outcomes(rows, outcomes_of(metric)) for rows in by_step]
    outcomes, labels = np.column_stack([each.mean for each in pooled]), pooled[0].labels
    parts = (
        [labels == label for label in np.unique(labels)] if metric.outcomes == "class mean" else [slice(None)]
    )
    found = (
        np.sum([np.cov(outcomes[part].T) / len(outcomes[part]) for part in parts], axis=0) / len(parts) ** 2
    )
    return found * test / found[-1, -1] if found[-1, -1] > 0.0 else common


@dataclass(frozen=True, eq=False)
class Noise:
    """The mean values of the sizes with the variances of their noise; smaller is better.

    A mean over the draws varies because the training sets are drawn: with ``train / m`` for m samples, as the variance
    of most estimates. All sizes are tested on the same samples, whose noise (``test``, the variance from the interval
    of the metric at all samples) shifts the curve and, as far as the models of different sizes err on different samples
    (``shared``, the covariance of the sizes), changes its form.
    """

    m: FloatArray
    mean: FloatArray
    train: float
    draws: int
    test: float
    least: float
    shared: FloatArray

    @classmethod
    def of(cls, by_draw: FloatArray, m: FloatArray, test: float, least: float, shared: FloatArray) -> Noise:
        """From the values of all draws; ``train`` is that of the draws or of the residuals, whichever is larger."""
        draws, mean = len(by_draw), by_draw.mean(axis=0)
        law = fit_power_laws(m, mean[None, :], m, least)
        fitted = np.array([law.at(size)[0] for size in m])
        of_fit = float(np.sum(m * (mean - fitted) ** 2) / (len(m) - 3)) * draws
        of_draws = float(np.mean(m * by_draw.var(axis=0, ddof=1))) if draws > 1 else 0.0
        return cls(m, mean, max(of_fit, of_draws), draws, test, least, shared)

    def predictions(
        self, rng: np.random.Generator, confidence: float
    ) -> tuple[PowerLaws, FloatArray, list[tuple[float, float, float]]]:
        """The law, the drops from all to twice as many samples in the bootstrap, and value and limits by factor."""
        law = fit_power_laws(self.m, self.mean[None, :], self.m, self.least)
        fitted = np.array([law.at(size)[0] for size in self.m])
        errors = rng.normal(size=(N_BOOTSTRAP, len(self.m))) * np.sqrt(self.train / (self.m * self.draws))
        common = rng.multivariate_normal(np.zeros(len(self.m)), self.shared, size=N_BOOTSTRAP, method="eigh")
        shift = common[:, -1]
        again = fit_power_laws(self.m, fitted + errors + common - shift[:, None], self.m, self.least)
        largest = float(self.m[-1])
        then = np.sqrt(self.test) * rng.normal(size=N_BOOTSTRAP)
        tail = 50.0 * (1.0 - confidence)
        found = []
        for factor in FACTORS:
            value = float(law.at(factor * largest)[0])
            # What is measured then has the noise of so many times as many test samples.
            drawn = again.at(factor * largest) + shift + then / np.sqrt(factor)
            low, high = np.percentile(drawn, (tail, 100.0 - tail))
            found.append((value, min(float(low), value), max(float(high), value)))
        return law, again.at(largest) - again.at(2.0 * largest), found


def _verdict(gain: float, error: float, law: PowerLaws, drop: FloatArray) -> Verdict:
    """Whether twice as many samples would lower the error, by what the law and its bootstrap say.

    ``gain`` is how much better than chance the procedure is, ``error`` how much worse than the best possible value; a
    metric without one is compared with the gain.
    """
    scale = error if np.isfinite(error) else gain
    low, high = np.percentile(drop, (5.0, 95.0))
    expected = float((law.at(law.unit) - law.at(2.0 * law.unit))[0])
    if high < SMALL_GAIN * scale or scale <= 0.0:
        return "does not help"
    return "helps" if low > 0.0 and expected > LEAST_EXPECTED * scale else "cannot be told"
