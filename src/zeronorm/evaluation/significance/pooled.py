r"""Intervals of a metric that was measured by resampling one data set.

They come from the outcomes of single samples, averaged over the repeats, not from the few values of the test
parts: five test parts without an error do not make an error of 0.0 % to 0.0 %. The variance of independent
samples is too small, because training parts overlap and models depend on the samples that others are tested on.
The corrected variance of Nadeau & Bengio (2003), :math:`1/J + n_{test}/n_{train}` instead of :math:`1/J`, is
:math:`1 + n/n_{train}` times as large for the J parts of a cross-validation: 3 times with two of them, twice with
many. Intervals use that factor, at least 2.5, which unstable procedures need; of shares in proportion to
:math:`4p(1-p)` and of areas to :math:`\min(1, 6a(1-a))`: a procedure that hardly errs is stable. With more than ten
parts the excess of the factor over 1 grows with their number. How often the intervals cover is simulated in docs/trust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from zeronorm._types import FloatArray, IntArray
from zeronorm.evaluation.significance.effects import standard_error
from zeronorm.resampling.metrics import (
    Metric,
    absolute_residuals,
    explained_variation,
    squared_residuals,
)

LEAST_OVERLAP = (
    2.5  # variance with overlapping training parts over that of independent samples, at its least stable
)
MANY_PARTS, EXCESS_OF_PART, MOST_EXCESS = (
    10,
    0.2,
    8.0,
)  # the excess over 1 with more than ten parts, up to a limit
SMALLEST_OVERLAP = 0.5  # repeats average a part of the variance out, but never all
PSEUDO_ERRORS = 2.0  # added to each kind of outcome, as by Agresti & Coull (1998)
MOST_BLOCKS = 50

# Squares and sizes of residuals: what a few of them show is too narrow and too symmetric where large ones are rare.
# Variance over the squared mean is at least that of normal residuals, skewness about two thirds of theirs.
LEAST_SPREAD: dict[Any, float] = {squared_residuals: 2.0, absolute_residuals: float(np.pi / 2 - 1)}
LEAST_SKEWNESS: dict[Any, float] = {squared_residuals: 2.0, absolute_residuals: 0.7}
FEWEST_TO_TRAIN, MOST_EXPLAINED = 45, 0.7

# Columns of the records that tell what happened to single samples.
POOLED_COLUMNS = ("truth", "predictions", "decision", "test_rows", "test_groups")

Row = Mapping[str, Any]
Interval = tuple[float, float]


@dataclass(frozen=True)
class PooledOutcomes:
    """One outcome per tested sample, averaged over the repeats.

    ``by_repeat`` has one row per repeat where every repeat tests every sample once, else it is None.
    """

    mean: FloatArray
    labels: NDArray[Any]
    by_repeat: FloatArray | None
    groups: NDArray[Any] | None

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.mean.size)

    @property
    def clustering(self) -> float:
        """Variance with dependent samples of one group over that of independent samples."""
        if self.groups is None:
            return 1.0
        _, codes = np.unique(self.groups, return_inverse=True)
        n_groups = int(codes.max()) + 1
        centered = self.mean - self.mean.mean()
        alone = float(np.sum(centered**2))
        if alone == 0.0 or n_groups < 2:
            return self.n / n_groups
        together = float(np.sum(np.bincount(codes, weights=centered) ** 2)) * n_groups / (n_groups - 1)
        return max(1.0, together / alone)


def pool_outcomes(rows: Sequence[Row], outcomes: Callable[[Row], FloatArray]) -> PooledOutcomes:
    """The outcomes of all test parts by sample."""
    samples = np.concatenate([np.asarray(row["test_rows"], dtype=np.intp) for row in rows])
    values = np.concatenate([outcomes(row) for row in rows])
    _, first, codes, counts = np.unique(samples, return_index=True, return_inverse=True, return_counts=True)
    mean = np.bincount(codes, weights=values) / counts
    labels = np.concatenate([np.asarray(row["truth"]) for row in rows])[first]
    groups = None
    if rows[0].get("test_groups") is not None:
        groups = np.concatenate([np.asarray(row["test_groups"]) for row in rows])[first]
    return PooledOutcomes(mean, labels, _by_repeat(values, codes, counts), groups)


def _by_repeat(values: FloatArray, codes: IntArray, counts: IntArray) -> FloatArray | None:
    n_repeats = int(counts[0])
    if np.any(counts != n_repeats) or n_repeats < 2:
        return None
    order = np.argsort(codes, kind="stable")  # occurrences of one sample in the order of the splits
    return values[order].reshape(len(counts), n_repeats).T


# -- Intervals --


def metric_interval(metric: Metric, rows: Sequence[Row], *, confidence: float = 0.95) -> Interval | None:
    """Interval of the mean of ``metric`` over the test parts.

    Parameters
    ----------
    metric : Metric
        The metric.
    rows : list of dict
        Records of one method at one size: the metric, ``n_train``, ``n_test`` and, for an interval from
        samples, ``truth``, ``predictions``, ``test_rows``, ``decision`` and ``test_groups``.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    tuple of two floats or None
        Lower and upper limit. None where there is no interval of positive width.

    Examples
    --------
    >>> from zeronorm.evaluation import METRICS
    >>> from zeronorm.evaluation.significance import metric_interval
    >>> from zeronorm import FisherScore, RandomSelector, evaluate
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> methods = {"fisher": FisherScore(), "random": RandomSelector(random_state=0)}
    >>> records = evaluate(methods, X, y, sizes=[2])
    >>> rows = [row for row in records.iter_rows(named=True) if row["method"] == "random"]
    >>> low, high = metric_interval(METRICS["error_rate"], rows)
    >>> low < 0.5 < high
    True
    """
    values = np.asarray([row[metric.name] for row in rows], dtype=np.float64)
    found = _interval(metric, rows, values, confidence)
    if found is None or not np.all(np.isfinite(found)) or why_no_interval(metric, rows):
        return None
    center = float(values.mean())
    low, high = max(metric.bounds[0], min(found[0], center)), min(metric.bounds[1], max(found[1], center))
    return (low, high) if high > low else None


def _interval(metric: Metric, rows: Sequence[Row], values: FloatArray, confidence: float) -> Interval | None:
    z = float(stats.norm.ppf((1 + confidence) / 2))
    if not has_outcomes(metric, rows):
        return _interval_of_parts(rows, values, confidence)
    if metric.outcomes == "ranks":
        return _area_interval(rows, values, z)
    if metric.outcomes == "none":
        return _jackknife_interval(metric, rows, confidence)
    pooled = pool_outcomes(rows, outcomes_of(metric))
    if metric.outcomes == "class mean":
        return _class_mean_interval(pooled, rows, z)
    if metric.bounds == (0.0, 1.0):
        return _share_interval(pooled, rows, z)
    return _positive_interval(metric, pooled, rows, values, confidence)


def why_no_interval(metric: Metric, rows: Sequence[Row]) -> str:
    """The reason why residuals of such training parts get no interval; empty where they get one.

    Models on few samples that explain most of the target have found decisive features. On other samples they would
    miss one now and then, and err several times as much; one data set does not show how often.
    """
    n_train = float(np.mean([row["n_train"] for row in rows]))
    if metric.function is explained_variation and n_train < FEWEST_TO_TRAIN:
        return (
            f"no interval: that of R² does not hold with training parts of {n_train:.0f} samples; from "
            f"{FEWEST_TO_TRAIN} training samples there is one"
        )
    if metric.sample_outcomes not in LEAST_SPREAD or not has_outcomes(metric, rows):
        return ""
    pooled = pool_outcomes(rows, outcomes_of(metric))
    is_squared = metric.sample_outcomes is squared_residuals
    deviation = np.abs(pooled.labels - (np.mean if is_squared else np.median)(pooled.labels))
    left = float(pooled.mean.mean()) / max(float(np.mean(deviation ** (2 if is_squared else 1))), 1e-300)
    if n_train >= FEWEST_TO_TRAIN or 1 - left ** (1 if is_squared else 2) <= MOST_EXPLAINED:
        return ""
    return (
        f"no interval: training parts of {n_train:.0f} samples may miss a decisive feature of this target, and one "
        f"data set cannot tell how often; from {FEWEST_TO_TRAIN} training samples there is one"
    )


def has_outcomes(metric: Metric, rows: Sequence[Row]) -> bool:
    """Whether the rows tell what happened to single samples, as far as the metric needs it."""
    needed = {"ranks": "decision"}.get(metric.outcomes, "predictions")
    if metric.outcomes == "none" and metric.response != "predict":
        return False
    return all(row.get(name) is not None for row in rows for name in ("truth", "test_rows", needed))


def outcomes_of(metric: Metric) -> Callable[[Row], FloatArray]:
    """The function from a row to one outcome per sample."""
    if metric.outcomes == "ranks":
        return placements
    function = metric.sample_outcomes
    if function is None:
        raise ValueError(f"The metric {metric.name!r} does not say what single samples contribute to it.")
    return lambda row: function(row["truth"], row["predictions"])


def _share_interval(pooled: PooledOutcomes, rows: Sequence[Row], z: float) -> Interval:
    p = _shrunk(pooled.mean, PSEUDO_ERRORS)
    overlap = _overlap(4 * p * (1 - p), p * (1 - p) / pooled.n, pooled.by_repeat, rows)
    return _wilson(float(pooled.mean.mean()), pooled.n / (overlap * pooled.clustering), z)


def _class_mean_interval(pooled: PooledOutcomes, rows: Sequence[Row], z: float) -> Interval:
    """A mean of shares, with pseudo-outcomes divided among the classes (Price & Bonett 2004)."""
    members = [pooled.labels == label for label in np.unique(pooled.labels)]
    pseudo = PSEUDO_ERRORS / len(members)
    shares = np.asarray([_shrunk(pooled.mean[inside], pseudo) for inside in members])
    counts = np.asarray([inside.sum() + 2 * pseudo for inside in members])
    variance = float(np.sum(shares * (1 - shares) / counts)) / len(members) ** 2
    by_repeat = pooled.by_repeat
    if by_repeat is not None:
        by_repeat = np.stack([by_repeat[:, inside].mean(axis=1) for inside in members], axis=1)
    center = float(shares.mean())
    factor = _overlap(4 * center * (1 - center), variance, by_repeat, rows) * pooled.clustering
    half = z * float(np.sqrt(factor * variance))
    return center - half, center + half


def _shrunk(outcomes: FloatArray, pseudo: float) -> float:
    return float((outcomes.sum() + pseudo) / (outcomes.size + 2 * pseudo))


def _overlap(instability: float, variance: float, by_repeat: FloatArray | None, rows: Sequence[Row]) -> float:
    """The factor for overlapping training parts, less what the repeats have averaged out."""
    factor = 1 + excess_of_parts(_largest_overlap(rows) - 1, rows) * instability
    if by_repeat is not None:
        n_repeats = len(by_repeat)
        factor -= (1 - 1 / n_repeats) * float(by_repeat.mean(axis=1).var(ddof=1)) / variance
    return max(SMALLEST_OVERLAP, factor)


def _largest_overlap(rows: Sequence[Row]) -> float:
    """The factor of Nadeau and Bengio, 1 + n / n_train, within limits."""
    return max(LEAST_OVERLAP, 2.0 + ratio_of_parts(rows))


def _wilson(share: float, n: float, z: float) -> Interval:
    center = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    return center - half, center + half


def _area_interval(rows: Sequence[Row], values: FloatArray, z: float) -> Interval | None:
    """Areas that differ from the measured one by less than z of their own standard errors.

    The variance is that of Hanley & McNeil (1982) with Newcombe's (2006) mean sample size; pairs of samples
    in different test parts are not compared, which multiplies its first term by the number of parts.
    """
    pooled = pool_outcomes(rows, placements)
    labels, counts = np.unique(pooled.labels, return_counts=True)
    if labels.size != 2:
        return None
    n_parts = max(1.0, pooled.n / float(np.mean([row["n_test"] for row in rows])))
    area = float(values.mean())

    def variance(a: float) -> float:
        spread = a / (2 - a) + 2 * a * a / (1 + a) - 2 * a * a
        return float((a * (1 - a) * n_parts + (pooled.n / 2 - 1) * spread) / np.prod(counts))

    shrunk = (area * pooled.n + PSEUDO_ERRORS) / (pooled.n + 2 * PSEUDO_ERRORS)
    by_repeat = None
    if pooled.by_repeat is not None:
        by_repeat = np.stack([pooled.by_repeat[:, pooled.labels == c].mean(axis=1) for c in labels], axis=1)
    instability = min(1.0, 6 * shrunk * (1 - shrunk))
    factor = z * z * _overlap(instability, variance(shrunk), by_repeat, rows) * pooled.clustering

    def excess(a: float) -> float:
        return (area - a) ** 2 - factor * variance(a)

    tiny = 1e-9
    has_low, has_high = area > tiny and excess(area - tiny) < 0 < excess(0.0), area < 1 - tiny
    low = optimize.brentq(excess, 0.0, area - tiny) if has_low else 0.0
    high = (
        optimize.brentq(excess, area + tiny, 1.0)
        if has_high and excess(area + tiny) < 0 < excess(1.0)
        else 1.0
    )
    return float(low), float(high)


def placements(row: Row) -> FloatArray:
    """For every sample, the share of samples of the other class on its right side in the same test part."""
    truth, decision = np.asarray(row["truth"]), np.asarray(row["decision"], dtype=np.float64)
    positive = truth == np.unique(truth)[-1]
    above = decision[positive][:, None] - decision[~positive][None, :]
    ordered = (above > 0) + 0.5 * (above == 0)
    found = np.empty(truth.size)
    found[positive], found[~positive] = ordered.mean(axis=1), ordered.mean(axis=0)
    return found


def _positive_interval(
    metric: Metric, pooled: PooledOutcomes, rows: Sequence[Row], values: FloatArray, confidence: float
) -> Interval | None:
    """Mean of outcomes that are skewed to the right, by Hall's (1992) transformed t statistic."""
    n, spread = pooled.n, float(pooled.mean.var(ddof=1)) if pooled.n > 2 else 0.0
    if spread <= 1e-20 * float(pooled.mean.max(initial=0.0)) ** 2:
        return None
    center, kind = float(pooled.mean.mean()), metric.sample_outcomes
    spread = max(spread, LEAST_SPREAD.get(kind, 0.0) * center**2)
    error = float(np.sqrt(_largest_overlap(rows) * pooled.clustering * spread / n))
    if len(values) > 1:
        # Models that differ much between the training parts show in the spread of the parts.
        error = max(error, standard_error(values, ratio_of_parts(rows)))
    skewness = max(float(stats.skew(pooled.mean, bias=False)), LEAST_SKEWNESS.get(kind, 1e-3)) / np.sqrt(n)
    t = float(stats.t.ppf((1 + confidence) / 2, n - 1))

    def transformed(x: float) -> float:
        return float(3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1))

    return center - error * transformed(t), center - error * transformed(-t)


def _jackknife_interval(metric: Metric, rows: Sequence[Row], confidence: float) -> Interval | None:
    """Any function of truth and predictions: leave out one block of samples after the other."""
    samples = np.concatenate([np.asarray(row["test_rows"], dtype=np.intp) for row in rows])
    truth = np.concatenate([np.asarray(row["truth"]) for row in rows])
    predictions = np.concatenate([np.asarray(row["predictions"]) for row in rows])
    units = samples
    if rows[0].get("test_groups") is not None:
        units = np.concatenate([np.asarray(row["test_groups"]) for row in rows])
    _, codes = np.unique(units, return_inverse=True)
    blocks = np.random.default_rng(0).permutation(int(codes.max()) + 1)[codes] % MOST_BLOCKS
    try:
        center = metric.function(truth, predictions)
        without = [metric.function(truth[blocks != b], predictions[blocks != b]) for b in np.unique(blocks)]
    except ValueError:  # not defined without some block
        return None
    left = np.asarray(without, dtype=np.float64)
    n_blocks = left.size
    if n_blocks < 3:
        return None
    error = np.sqrt(_largest_overlap(rows) * (n_blocks - 1) / n_blocks * np.sum((left - left.mean()) ** 2))
    half = float(stats.t.ppf((1 + confidence) / 2, n_blocks - 1) * error)
    return (center - half, center + half) if half > 0 else None


def _interval_of_parts(rows: Sequence[Row], values: FloatArray, confidence: float) -> Interval | None:
    """The corrected t interval of Nadeau & Bengio, for metrics that single samples do not explain."""
    if values.size < 3 or values.max() == values.min():
        return None
    half = float(stats.t.ppf((1 + confidence) / 2, values.size - 1)) * standard_error(
        values, ratio_of_parts(rows)
    )
    return float(values.mean()) - half, float(values.mean()) + half


def excess_of_parts(excess: float, rows: Sequence[Row]) -> float:
    """An excess of variance that holds up to ten test parts, for the number of parts of these rows.

    Models that share nearly all samples are right or wrong together: leaving one sample out, the error of an unstable
    procedure varies up to seven times as much over data sets as that of independent samples.
    """
    n_parts = 1 + float(np.mean([row["n_train"] for row in rows]) / np.mean([row["n_test"] for row in rows]))
    n_parts = round(n_parts, 6)  # ten parts of unequal size are ten
    return excess if n_parts <= MANY_PARTS else max(excess, min(MOST_EXCESS, EXCESS_OF_PART * n_parts))


def ratio_of_parts(rows: Sequence[Row]) -> float:
    return float(np.mean([row["n_test"] / row["n_train"] for row in rows]))
