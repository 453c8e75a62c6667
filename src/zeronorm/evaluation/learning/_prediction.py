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
from zeronorm.evaluation.significance._pooled import metric_interval
from zeronorm.resampling._metrics import Metric

FACTORS = (2, 4)  # multiples of the samples at which the error is predicted
N_BOOTSTRAP = 2000
SMALL_GAIN, SMALLEST_GAIN = (
    0.1,
    0.02,
)  # share of the error that is no help, and that is not even expected to be one


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
    full = np.flatnonzero(drawn.step == drawn.n_steps - 1)
    rows = [{name: cells[row] for name, cells in columns.items()} for row in full]
    least = float(min(sign * bound for bound in metric.bounds))
    noise = Noise.of(sign * by_draw, m, _test_variance(metric, rows), least)
    law, drop, predictions = noise.predictions(np.random.default_rng([seed, len(y)]), confidence)
    now = float(law.at(m[-1])[0])
    gain = sign * chance - now
    at_chance = bool(gain <= stats.norm.ppf(0.975) * np.sqrt(noise.test))

    def shown(value: float) -> float:
        return float(np.clip(sign * value, *metric.bounds))

    return LearningCurve(
        metric=metric.name,
        n_samples=len(y),
        n_draws=len(by_draw),
        points=tuple(
            LearningPoint(
                float(size), float(cells.mean()), float(cells.std(ddof=1)) if len(cells) > 1 else None
            )
            for size, cells in zip(m, by_draw.T, strict=True)
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
    cell = drawn.draw * drawn.n_steps + drawn.step
    return np.asarray((np.bincount(cell, values) / np.bincount(cell)).reshape(shape))


def _test_variance(metric: Metric, rows: list[dict[str, Any]]) -> float:
    """Variance of the measured value at all samples; without an interval of the metric, that of the folds."""
    interval = metric_interval(metric, rows)
    if interval is not None:
        return float(((interval[1] - interval[0]) / (2.0 * stats.norm.ppf(0.975))) ** 2)
    n_samples = len({row for fold in rows for row in fold["test_rows"]})
    values = [fold[metric.name] for fold in rows]
    return float(np.var(values, ddof=1) * np.mean([fold["n_test"] for fold in rows]) / n_samples)


@dataclass(frozen=True, eq=False)
class Noise:
    """The mean values of the sizes with the variances of their noise; smaller is better.

    A mean over the draws varies because the training sets are drawn: with ``train / m`` for m samples, as the variance
    of most estimates. All sizes share the noise of the test samples and of the models on one data set (``test``, from
    the interval of the metric at all samples), which shifts the curve and does not change its form.
    """

    m: FloatArray
    mean: FloatArray
    train: float
    draws: int
    test: float
    least: float

    @classmethod
    def of(cls, by_draw: FloatArray, m: FloatArray, test: float, least: float) -> Noise:
        """From the values of all draws; ``train`` is that of the draws or of the residuals, whichever is larger."""
        draws, mean = len(by_draw), by_draw.mean(axis=0)
        law = fit_power_laws(m, mean[None, :], m, least)
        fitted = np.array([law.at(size)[0] for size in m])
        of_fit = float(np.sum(m * (mean - fitted) ** 2) / (len(m) - 3)) * draws
        of_draws = float(np.mean(m * by_draw.var(axis=0, ddof=1))) if draws > 1 else 0.0
        return cls(m, mean, max(of_fit, of_draws), draws, test, least)

    def predictions(
        self, rng: np.random.Generator, confidence: float
    ) -> tuple[PowerLaws, FloatArray, list[tuple[float, float, float]]]:
        """The law, the drops from all to twice as many samples in the bootstrap, and value and limits by factor."""
        law = fit_power_laws(self.m, self.mean[None, :], self.m, self.least)
        fitted = np.array([law.at(size)[0] for size in self.m])
        errors = rng.normal(size=(N_BOOTSTRAP, len(self.m))) * np.sqrt(self.train / (self.m * self.draws))
        again = fit_power_laws(self.m, fitted + errors, self.m, self.least)
        largest = float(self.m[-1])
        shift = rng.normal(size=N_BOOTSTRAP)
        tail = 50.0 * (1.0 - confidence)
        found = []
        for factor in FACTORS:
            value = float(law.at(factor * largest)[0])
            # What is measured then has the same noise, with so many times as many samples.
            drawn = again.at(factor * largest) + shift * np.sqrt(self.test * (1.0 + 1.0 / factor))
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
    return "helps" if low > 0.0 and expected > SMALLEST_GAIN * scale else "cannot be told"
