r"""Intervals of a metric that was measured by resampling one data set.

They are for the mean error, on new samples, of the models that were fitted on the training sets of this data set. What
the procedure would reach with other data sets of the same size is another question, which one data set cannot answer
(docs/trust has the figures).

They come from the outcomes of single samples, averaged over the repeats, not from the few values of the test
folds: five test folds without an error do not give an interval of 0.0 % to 0.0 %. For stable procedures the variance
of independent samples is enough (Bayle et al. 2020; Austern & Zhou 2020). Where a few of many features are chosen it is
too small, because every sample influences the models that others are tested on, the more so the more the training sets
overlap. The variance is therefore multiplied by :math:`1 + 0.14 k\,(4p(1-p))^{3/2}` for shares p measured in k test
folds, with an excess over 1 of at most 9: a procedure that rarely errs is stable. For areas the excess is
:math:`0.1 + 0.14 k`. The limits of an interval are the most distant values p that a test would not reject, with the
factor at that p. Repeats show how often the same sample is predicted right in one repeat and wrong in another. They
average out this share d of the variance, and it bounds the excess of an error rate by 0.1 + 0.3 k d. For residuals the
factor is :math:`1.2 + 0.03 k`, at most 3, and for the logarithm of the share that R² leaves unexplained
:math:`1.7 + 0.15 k`, at most 6.
How often the intervals cover is simulated in docs/trust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from zeronorm._types import FloatArray, IntArray
from zeronorm.evaluation.significance._effects import standard_error
from zeronorm.resampling._metrics import (
    Metric,
    absolute_residuals,
    squared_residuals,
    target_variance,
)
from zeronorm.resampling.survival._curves import event_and_time

# Intervals: the excess over 1 of the variance of a measured error (around the error of its models), relative to the
# variance of independent samples, for the least stable procedures.
EXCESS_PER_FOLD, LARGEST_EXCESS = 0.14, 9.0  # of shares and areas
AREA_EXCESS = 0.1  # added for areas
PAIRS_OF_FEW = (
    2.0  # over the number of events in a fold: added to the variance of a concordance, relative to it
)
# Repeats show how often a sample is predicted right in one and wrong in another. That share bounds the excess.
AGREED_EXCESS, DISAGREED_PER_FOLD = 0.1, 0.3
RESIDUAL_EXCESS, RESIDUAL_PER_FOLD, LARGEST_RESIDUAL = 0.2, 0.03, 2.0
EXPLAINED_OVERLAP, EXPLAINED_PER_FOLD, LARGEST_EXPLAINED = 1.7, 0.15, 6.0  # the whole factor for R²
INDEPENDENT_EXPLAINED = 1.2  # for R² on new samples, where no training sets overlap (docs/trust)
JACKKNIFE_OVERLAP = 3.0  # the whole factor for other functions of a real target and its predictions
LABEL_ERRORS = (
    1.0  # for functions of labels the factor is that of an error rate, this many standard errors higher
)
COMMON_VARIANCE = (
    0.35  # share of the variance that all folds have in common, for metrics without outcomes of samples
)
FEWEST_ERRORS = 5  # wrong predictions needed to show how large rare losses are
FEWEST_OF_CLASS = 5  # samples of each class that a test fold needs for areas and similar metrics
MANY_FOLDS, EXCESS_OF_FOLD, MOST_EXCESS = (
    10,
    0.2,
    8.0,
)  # tests: the excess with more than ten folds, up to a limit
# Repeats average out a share of the variance, but never all.
SMALLEST_OVERLAP, SMALLEST_AREA_OVERLAP = 0.3, 0.5
PSEUDO_ERRORS = 2.0  # added to each kind of outcome, as by Agresti & Coull (1998)
MOST_BLOCKS = 50
FEWEST_VALUES = 3  # fewest test folds, or blocks of samples, for a variance
GRID = 101  # grid points of the search for the limit of an interval

# Squared and absolute residuals: where large ones are rare, a few residuals vary too little and too symmetrically.
# Variance over the squared mean is taken as at least that of normal residuals, skewness as about two thirds of theirs.
LEAST_SCALE: dict[Any, float] = {squared_residuals: 2.0, absolute_residuals: float(np.pi / 2 - 1)}
LEAST_SKEWNESS: dict[Any, float] = {squared_residuals: 2.0, absolute_residuals: 0.7}

# Columns of the records with the outcomes of single samples.
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
    """The outcomes of all test folds by sample."""
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
    """Interval of the mean of ``metric`` over the test folds.

    With the given confidence it holds the mean value, on new samples of the same kind, of the models that were
    fitted on the training sets. It may cover less often the value that the procedure would have on average over other
    data sets (docs/trust).

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
    if found is None or not np.all(np.isfinite(found)):
        return None
    center = float(values.mean())
    low, high = max(metric.bounds[0], min(found[0], center)), min(metric.bounds[1], max(found[1], center))
    return (low, high) if high > low else None


def _interval(metric: Metric, rows: Sequence[Row], values: FloatArray, confidence: float) -> Interval | None:
    z = float(stats.norm.ppf((1 + confidence) / 2))
    if not has_outcomes(metric, rows):
        return None if _what_is_missing(metric, rows) else _interval_of_folds(rows, values, confidence)
    if metric.outcomes == "ranks":
        return _area_interval(rows, values, z)
    if metric.outcomes == "none":
        return _jackknife_interval(metric, rows, confidence)
    if metric.outcomes == "pairs":
        return _concordance_interval(metric, rows, values, z)
    pooled = pool_outcomes(rows, outcomes_of(metric))
    if metric.outcomes == "share explained":
        return _explained_interval(pooled, rows, confidence)
    if metric.outcomes == "class mean":
        return _class_mean_interval(pooled, rows, z)
    if metric.bounds == (0.0, 1.0):
        return _share_interval(pooled, rows, z)
    return _positive_interval(metric, pooled, rows, confidence)


def why_no_interval(metric: Metric, rows: Sequence[Row]) -> str:
    """The reason why ``metric_interval`` gives no interval for these rows, if it is known."""
    values = np.asarray([row[metric.name] for row in rows], dtype=np.float64)
    if values.size > 1 and values.max() == values.min():
        return "no interval: the value is the same in all test folds"
    if not has_outcomes(metric, rows) and values.size < FEWEST_VALUES:
        return f"no interval: that of this metric needs at least {FEWEST_VALUES} test folds"
    return "" if has_outcomes(metric, rows) else _what_is_missing(metric, rows)


def _what_is_missing(metric: Metric, rows: Sequence[Row]) -> str:
    """The reason why the values of the test folds are not enough for an interval of a metric; empty if they are.

    Where hardly any prediction is wrong, most of a mean loss comes from samples that were not drawn. Intervals of log
    loss and Brier score covered as little as 0.63 there, those of average precision 0.82 in folds with few positives.
    """
    needed = ("truth", "predictions", "test_rows")
    if metric.response == "selected" or any(row.get(name) is None for row in rows for name in needed):
        return ""
    if _are_times(rows):
        return ""
    truth, predictions, samples = (np.concatenate([np.asarray(row[name]) for row in rows]) for name in needed)
    if not np.isin(predictions, truth).all():
        return ""
    if np.mean(truth != predictions) * np.unique(samples).size < FEWEST_ERRORS:
        return (
            f"no interval: fewer than {FEWEST_ERRORS} wrong predictions do not show how large rare losses are"
        )
    _, counts = np.unique(truth, return_counts=True)
    if metric.bounds[1] != 0.0 and counts.min() / len(rows) < FEWEST_OF_CLASS:
        return (
            f"no interval: this metric needs at least {FEWEST_OF_CLASS} samples of each class in a test fold"
        )
    return ""


def has_outcomes(metric: Metric, rows: Sequence[Row]) -> bool:
    """Whether the rows hold the outcomes of single samples that the metric needs."""
    needed = {"ranks": "decision"}.get(metric.outcomes, "predictions")
    if metric.outcomes == "none" and (metric.response != "predict" or _are_times(rows)):
        return False
    return all(row.get(name) is not None for row in rows for name in ("truth", "test_rows", needed))


def _are_times(rows: Sequence[Row]) -> bool:
    """Whether the target has events and times: predicted risks of different folds then cannot be compared."""
    truth = rows[0].get("truth") if rows else None
    return truth is not None and len(truth) > 0 and isinstance(truth[0], (dict, tuple, np.void))


def outcomes_of(metric: Metric) -> Callable[[Row], FloatArray]:
    """The function from a row to one outcome per sample."""
    if metric.outcomes == "ranks":
        return placements
    function = metric.sample_outcomes
    if function is None:
        raise ValueError(f"The metric {metric.name!r} does not define what single samples contribute to it.")
    return lambda row: function(row["truth"], row["predictions"])


def _share_interval(pooled: PooledOutcomes, rows: Sequence[Row], z: float) -> Interval:
    """Wilson's interval, with the factor for overlapping training sets at each possible share."""
    p = _shrunk(pooled.mean, PSEUDO_ERRORS)
    everyone = np.ones(pooled.n, dtype=bool)
    overlap = _overlap(p * (1 - p) / pooled.n, pooled, [everyone], rows)
    return _accepted(
        float(pooled.mean.mean()), lambda share: overlap(share) * share * (1 - share) / pooled.n, z
    )


def _class_mean_interval(pooled: PooledOutcomes, rows: Sequence[Row], z: float) -> Interval:
    """A mean of shares, with pseudo-outcomes divided among the classes (Price & Bonett 2004)."""
    members = [pooled.labels == label for label in np.unique(pooled.labels)]
    pseudo = PSEUDO_ERRORS / len(members)
    shares = np.asarray([_shrunk(pooled.mean[inside], pseudo) for inside in members])
    counts = np.asarray([inside.sum() + 2 * pseudo for inside in members])
    variance = float(np.sum(shares * (1 - shares) / counts)) / len(members) ** 2
    overlap = _overlap(variance, pooled, members, rows)
    low, high = _accepted(float(shares.mean()), lambda share: overlap(share) * variance, z)
    # By chance all classes may have fewer errors than expected, and so seem to vary less: the limits are at least
    # as wide as those of classes that all have the error of the limit.
    unit = float(np.sum([1 / inside.sum() for inside in members])) / len(members) ** 2
    mean = float(np.mean([pooled.mean[inside].mean() for inside in members]))
    widest = _accepted(mean, lambda share: overlap(share) * share * (1 - share) * unit, z)
    return min(low, widest[0]), max(high, widest[1])


def _shrunk(outcomes: FloatArray, pseudo: float) -> float:
    return float((outcomes.sum() + pseudo) / (outcomes.size + 2 * pseudo))


def _overlap(
    variance: float,
    pooled: PooledOutcomes,
    members: Sequence[NDArray[np.bool_]],
    rows: Sequence[Row],
    *,
    of_areas: bool = False,
) -> Callable[[Any], Any]:
    """The factor for overlapping training sets and groups by the true share, less what repeats average out.

    With ten folds and repeats an excess of 1.4 over the variance of independent samples belongs to methods that change
    their prediction of every other sample between repeats; stable methods need almost none. Areas need more.
    """
    n_folds, averaged, most = number_of_folds(rows), 0.0, np.inf
    excess = min(LARGEST_EXCESS, EXCESS_PER_FOLD * n_folds + of_areas * AREA_EXCESS)
    excess = excess if has_training_samples(rows) else 0.0
    if pooled.by_repeat is not None:
        within = pooled.by_repeat.var(axis=0, ddof=1)
        varied = sum(float(within[inside].mean()) / int(inside.sum()) for inside in members)
        disagreed = min(1.0, varied / (1 if of_areas else len(members) ** 2) / variance)
        averaged = (1 - 1 / len(pooled.by_repeat)) * disagreed
        if not of_areas and n_folds <= MANY_FOLDS and _all_folds_differ(rows):
            most = AGREED_EXCESS + DISAGREED_PER_FOLD * n_folds * disagreed
    least = SMALLEST_AREA_OVERLAP if of_areas else SMALLEST_OVERLAP

    def factor(share: Any) -> Any:
        added = np.minimum(most, excess * (4 * share * (1 - share)) ** 1.5)
        return np.maximum(least, 1 + added - averaged) * pooled.clustering

    return factor


def _all_folds_differ(rows: Sequence[Row]) -> bool:
    """Whether the repeats are different splits, so that they show the effect of other training sets."""
    return len({np.sort(np.asarray(row["test_rows"])).tobytes() for row in rows}) == len(rows)


def _accepted(measured: float, variance: Callable[[Any], Any], z: float) -> Interval:
    """The lowest and highest share p that differ from the measured one by at most z standard errors at p."""

    def excess(share: Any) -> Any:
        return (measured - share) ** 2 - z * z * variance(share)

    def limit(bound: float) -> float:
        start = measured + 1e-12 * np.sign(bound - measured)
        grid = np.linspace(start, bound, GRID)
        last = int(np.flatnonzero(excess(grid) <= 0).max(initial=0))
        if last == GRID - 1 or measured == bound:
            return bound
        return float(optimize.brentq(excess, grid[last], grid[last + 1]))

    return limit(0.0), limit(1.0)


def _area_interval(rows: Sequence[Row], values: FloatArray, z: float) -> Interval | None:
    """The lowest and highest area a that differ from the measured one by less than z standard errors at a.

    The variance is that of Hanley & McNeil (1982) with Newcombe's (2006) mean sample size; pairs of samples
    in different test folds are not compared, which multiplies its first term by the number of folds.
    """
    pooled = pool_outcomes(rows, placements)
    labels, counts = np.unique(pooled.labels, return_counts=True)
    if labels.size != 2:
        return None
    n_folds = max(1.0, pooled.n / float(np.mean([row["n_test"] for row in rows])))
    area = float(values.mean())

    def variance(a: Any) -> Any:
        scale = a / (2 - a) + 2 * a * a / (1 + a) - 2 * a * a
        return (a * (1 - a) * n_folds + (pooled.n / 2 - 1) * scale) / np.prod(counts)

    shrunk = (area * pooled.n + PSEUDO_ERRORS) / (pooled.n + 2 * PSEUDO_ERRORS)
    members = [pooled.labels == label for label in labels]
    overlap = _overlap(float(variance(shrunk)), pooled, members, rows, of_areas=True)
    return _accepted(area, lambda a: overlap(a) * variance(a), z)


def _concordance_interval(metric: Metric, rows: Sequence[Row], values: FloatArray, z: float) -> Interval:
    """The lowest and highest concordance c that differ from the measured one by less than z standard errors at c.

    The variance is that of Hájek's projection, scaled by c(1 - c), and enlarged for the few events of a fold, which
    alone form pairs; it is at least the variance of the area under a ROC curve at chance with as many positive samples
    as there are events.
    """
    pooled = pool_outcomes(rows, outcomes_of(metric))
    n_events = max(1, sum(bool(event) for event in event_and_time(list(pooled.labels))[0]))
    center = float(values.mean())
    shrunk = (center * pooled.n + PSEUDO_ERRORS) / (pooled.n + 2 * PSEUDO_ERRORS)
    each = pooled.mean[None] if pooled.by_repeat is None else pooled.by_repeat
    alone = float(np.mean(each.var(axis=1, ddof=1))) / pooled.n if pooled.n > 1 else 0.0
    in_pairs = 1 + PAIRS_OF_FEW * number_of_folds(rows) / n_events
    unit = in_pairs * max(alone / (shrunk * (1 - shrunk)), 1 / (3 * n_events))
    everyone = np.ones(pooled.n, dtype=bool)
    overlap = _overlap(unit * shrunk * (1 - shrunk), pooled, [everyone], rows, of_areas=True)
    return _accepted(center, lambda c: overlap(c) * unit * c * (1 - c), z)


def placements(row: Row) -> FloatArray:
    """For every sample, the share of correctly ordered samples of the other class in the same test fold."""
    truth, decision = np.asarray(row["truth"]), np.asarray(row["decision"], dtype=np.float64)
    positive = truth == np.unique(truth)[-1]
    found = np.empty(truth.size)
    found[positive] = _share_below(decision[positive], decision[~positive])
    found[~positive] = 1.0 - _share_below(decision[~positive], decision[positive])
    return found


def _share_below(values: FloatArray, others: FloatArray) -> FloatArray:
    """For every value the share of the others that are below it; equal ones count one half."""
    ordered = np.sort(others)
    counts = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(counts / (2.0 * others.size))


def _residual_overlap(rows: Sequence[Row]) -> float:
    """The factor for overlapping training sets in means of residuals."""
    if not has_training_samples(rows):
        return 1.0
    return 1 + min(LARGEST_RESIDUAL, RESIDUAL_EXCESS + RESIDUAL_PER_FOLD * number_of_folds(rows))


def _positive_interval(
    metric: Metric, pooled: PooledOutcomes, rows: Sequence[Row], confidence: float
) -> Interval | None:
    """Mean of outcomes that are skewed to the right, by Hall's (1992) transformed t statistic."""
    n, scale = pooled.n, float(pooled.mean.var(ddof=1)) if pooled.n > 2 else 0.0
    if scale <= 1e-20 * float(pooled.mean.max(initial=0.0)) ** 2:
        return None
    center, kind = float(pooled.mean.mean()), metric.sample_outcomes
    scale = max(scale, LEAST_SCALE.get(kind, 0.0) * center**2)
    error = float(np.sqrt(_residual_overlap(rows) * pooled.clustering * scale / n))
    skewness = max(float(stats.skew(pooled.mean, bias=False)), LEAST_SKEWNESS.get(kind, 1e-3)) / np.sqrt(n)
    t = float(stats.t.ppf((1 + confidence) / 2, n - 1))

    def transformed(x: float) -> float:
        return float(3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1))

    return center - error * transformed(t), center - error * transformed(-t)


def _explained_interval(pooled: PooledOutcomes, rows: Sequence[Row], confidence: float) -> Interval | None:
    """Interval of R² by the logarithm of the unexplained share, a ratio of two means over the same samples."""
    if pooled.n < FEWEST_VALUES:
        return None
    target = np.asarray(pooled.labels, dtype=np.float64)
    variation = (target - target.mean()) ** 2
    left_over = float(pooled.mean.mean())
    if left_over <= 1e-20 * float(variation.max()):
        return None
    share = PooledOutcomes(
        pooled.mean / left_over - variation / variation.mean(), pooled.labels, None, pooled.groups
    )
    factor = INDEPENDENT_EXPLAINED
    if has_training_samples(rows):
        factor = min(LARGEST_EXPLAINED, EXPLAINED_OVERLAP + EXPLAINED_PER_FOLD * number_of_folds(rows))
    n_units = pooled.n if pooled.groups is None else np.unique(pooled.groups).size
    error = np.sqrt(factor * share.clustering * float(share.mean.var(ddof=1)) / pooled.n)
    half = float(stats.t.ppf((1 + confidence) / 2, n_units - 1) * error)
    unexplained = left_over / target_variance(target)
    return 1 - unexplained * float(np.exp(half)), 1 - unexplained * float(np.exp(-half))


def explained_unit(metric: Metric, rows: Sequence[Row]) -> float:
    """What one outcome of a sample adds to n times the metric, with n samples; 1 except for R²."""
    if metric.outcomes != "share explained":
        return 1.0
    return -1.0 / target_variance(pool_outcomes(rows, outcomes_of(metric)).labels)


def _jackknife_interval(metric: Metric, rows: Sequence[Row], confidence: float) -> Interval | None:
    """Interval of any function of truth and predictions, by a jackknife over blocks of samples."""
    truth, predictions, units = (
        np.concatenate([np.asarray(row[name]) for row in rows])
        for name in ("truth", "predictions", _unit_column(rows))
    )
    _, codes = np.unique(units, return_inverse=True)
    overlap = JACKKNIFE_OVERLAP if has_training_samples(rows) else 1.0
    if np.isin(predictions, truth).all():
        overlap = _label_overlap(float(np.mean(truth != predictions)), int(codes.max()) + 1, rows)
        truth, predictions, codes = _with_pseudo_samples(truth, predictions, codes)
    blocks = np.random.default_rng(0).permutation(int(codes.max()) + 1)[codes] % MOST_BLOCKS
    try:
        center = metric.function(truth, predictions)
        without = [metric.function(truth[blocks != b], predictions[blocks != b]) for b in np.unique(blocks)]
    except ValueError:  # not defined without some block
        return None
    left = np.asarray(without, dtype=np.float64)
    n_blocks = left.size
    if n_blocks < FEWEST_VALUES or np.ptp(left) <= 1e-12 * np.abs(left).max(initial=0.0):
        return None
    error = np.sqrt(overlap * (n_blocks - 1) / n_blocks * np.sum((left - left.mean()) ** 2))
    half = float(stats.t.ppf((1 + confidence) / 2, n_blocks - 1) * error)
    return center - half, center + half


def _unit_column(rows: Sequence[Row]) -> str:
    return "test_rows" if rows[0].get("test_groups") is None else "test_groups"


def _label_overlap(error: float, n: int, rows: Sequence[Row]) -> float:
    """The factor of error rates, at the limit of the error of independent samples that is nearer to one half."""
    p = (error * n + PSEUDO_ERRORS) / (n + 2 * PSEUDO_ERRORS)
    p = min(0.5, min(p, 1 - p) + LABEL_ERRORS * float(np.sqrt(p * (1 - p) / n)))
    excess = min(LARGEST_EXCESS, EXCESS_PER_FOLD * number_of_folds(rows)) * has_training_samples(rows)
    return float(1 + excess * (4 * p * (1 - p)) ** 1.5)


def _with_pseudo_samples(
    truth: NDArray[Any], predictions: NDArray[Any], codes: IntArray
) -> tuple[NDArray[Any], NDArray[Any], IntArray]:
    """A right and a wrong prediction of each of the two largest classes, added so that the error is never exactly 0."""
    labels, counts = np.unique(truth, return_counts=True)
    if labels.size < 2:
        return truth, predictions, codes
    a, b = labels[np.argsort(-counts, kind="stable")[:2]]
    n = int(codes.max()) + 1
    passes = max(1, round(truth.size / n)) if n > 1 else 1
    added = [np.repeat(np.asarray(labels_of), passes) for labels_of in ([a, a, b, b], [a, b, b, a])]
    new = np.repeat(n + np.arange(4), passes)
    return np.r_[truth, added[0]], np.r_[predictions, added[1]], np.r_[codes, new]


def _interval_of_folds(rows: Sequence[Row], values: FloatArray, confidence: float) -> Interval | None:
    """A t interval of the values of the test folds, for metrics that are not a mean over single samples.

    The variance is that of Nadeau & Bengio for the folds of one repetition (further ones add no samples), plus a share
    that models have in common when they choose a few of many features.
    """
    if values.size < FEWEST_VALUES or values.max() == values.min():
        return None
    n_folds = min(float(values.size), number_of_folds(rows))
    error = standard_error(values, ratio_of_folds(rows) + 1 / n_folds - 1 / values.size + COMMON_VARIANCE)
    half = float(stats.t.ppf((1 + confidence) / 2, max(FEWEST_VALUES, n_folds) - 1)) * error
    return float(values.mean()) - half, float(values.mean()) + half


def excess_of_folds(excess: float, rows: Sequence[Row]) -> float:
    """The excess of variance in tests: ``excess`` up to ten test folds, and more with more folds.

    Models that share nearly all samples are right or wrong together: in leave-one-out cross-validation the error of an
    unstable procedure varies up to seven times as much over data sets as that of independent samples.
    """
    n_folds = number_of_folds(rows)
    return excess if n_folds <= MANY_FOLDS else max(excess, min(MOST_EXCESS, EXCESS_OF_FOLD * n_folds))


def number_of_folds(rows: Sequence[Row]) -> float:
    """Number of test folds in one repetition of cross-validation."""
    n_folds = 1 + float(np.mean([row["n_train"] for row in rows]) / np.mean([row["n_test"] for row in rows]))
    return round(n_folds, 6)  # ten folds of unequal size are ten


def has_training_samples(rows: Sequence[Row]) -> bool:
    """Whether the samples were divided into training and test samples; not so for one model on new samples."""
    return any(row["n_train"] > 0 for row in rows)


def ratio_of_folds(rows: Sequence[Row]) -> float:
    return float(np.mean([row["n_test"] / row["n_train"] for row in rows]))
