"""Tests of two methods on the same splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from zeronorm._types import FloatArray, written
from zeronorm.engines._error_control import adjust_p_values
from zeronorm.evaluation._records import frame_of_rows, rows_by_method
from zeronorm.evaluation.significance._effects import EffectSize, paired_differences
from zeronorm.evaluation.significance._pooled import (
    COMMON_VARIANCE,
    LEAST_SCALE,
    MANY_FOLDS,
    POOLED_COLUMNS,
    PooledOutcomes,
    Row,
    excess_of_folds,
    explained_unit,
    has_outcomes,
    number_of_folds,
    outcomes_of,
    pool_outcomes,
    ratio_of_folds,
)
from zeronorm.resampling._metrics import Metric, as_metric

FEWEST_FOLDS, FEWEST_IN_FOLD = 3, 4  # for the corrected t-test

# In the paired test: variance with overlapping training sets over that of independent samples, simulated in
# docs/trust. The excess over 1 grows with the share of the selected features that another fold does not select, and
# with the number of folds: the more the training sets overlap, the less of the variation they show.
EXCESS_OF_SELECTION, EXCESS_PER_FOLD = 0.6, 0.25  # for errors and areas
EXCESS_OF_REPEATS = 1.6  # times as much, where repetitions average out what the folds show

Rows = Sequence[Row]


@dataclass(frozen=True)
class CorrectedT:
    """Result of the corrected resampled t-test.

    Parameters
    ----------
    statistic : float
        The t statistic.
    df : int
        Degrees of freedom.
    p_value : float
        The p-value.
    difference : EffectSize
        Difference a minus b, with its interval.
    """

    statistic: float
    df: int
    p_value: float
    difference: EffectSize


def corrected_resampled_t(
    a: ArrayLike,
    b: ArrayLike,
    *,
    n_train: float,
    n_test: float,
    n_repeats: int = 1,
    common: float = COMMON_VARIANCE,
    confidence: float = 0.95,
) -> CorrectedT:
    r"""Test for J resplits of one data set (after Nadeau & Bengio 2003), two-sided.

    .. math:: t = \frac{\bar d}{\sqrt{(1/J + n_{test}/n_{train} + c)\, \hat\sigma^2}}, \qquad df = J - 1

    The training sets overlap, so the differences :math:`d_j = a_j - b_j` vary too little; the second
    term corrects for it. The third, c, is for what all models of one data set have in common: a method that
    chooses a few of many features may find a decisive one in this data set and miss it in another, and no test fold
    shows that. With c = 0, the test of Nadeau and Bengio, up to 0.15 of equal methods of that kind were rejected at the
    level 0.05 (docs/trust). With ``n_repeats`` repetitions of cross-validation J is the number of folds of one
    repetition: further ones make the mean less variable, but add no samples. In simulations (docs/trust) the test
    keeps its level with at least three folds of at least four samples in a repetition; with fewer it raises an error,
    as it does for differences that are all the same, since their variance is zero.

    Parameters
    ----------
    a : array-like
        The metric of method a on each test fold.
    b : array-like
        The metric of method b on the same test folds.
    n_train : float
        Number of training samples in a split.
    n_test : float
        Number of test samples in a split.
    n_repeats : int, default=1
        Number of repetitions of cross-validation.
    common : float, default=0.35
        Share c of the variance of a difference that all test folds have in common. 0 is the test of Nadeau and Bengio,
        which holds its level only for methods that choose much the same features in every data set.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    CorrectedT
        Statistic, p-value and difference.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import corrected_resampled_t
    >>> a, b = [0.20, 0.25, 0.30, 0.22, 0.28], [0.25, 0.30, 0.28, 0.30, 0.33]
    >>> round(corrected_resampled_t(a, b, n_train=80, n_test=20).p_value, 2)
    0.27
    """
    if n_train < 1 or n_test < 1:
        raise ValueError(f"'n_train' and 'n_test' must be at least 1. Got {n_train} and {n_test}.")
    if not 0 <= common < np.inf:
        raise ValueError(f"'common' must be a number of at least 0. Got {common}.")
    d = paired_differences(a, b)
    n_folds = d.size // n_repeats
    if n_folds < FEWEST_FOLDS or n_test < FEWEST_IN_FOLD:
        raise ValueError(
            f"The corrected resampled t-test needs at least {FEWEST_FOLDS} test folds of at least {FEWEST_IN_FOLD} "
            f"samples: with fewer it rejects too often. Got {n_folds} folds of {n_test:g} samples; use compare_methods "
            "on records with predictions, or more folds."
        )
    error = float(np.sqrt((1 / n_folds + n_test / n_train + common) * d.var(ddof=1)))
    center, half = float(d.mean()), float(stats.t.ppf((1 + confidence) / 2, n_folds - 1)) * error
    effect = EffectSize(center, center - half, center + half, confidence)
    if not np.any(d):
        return CorrectedT(0.0, n_folds - 1, 1.0, effect)
    if error <= 1e-14 * np.abs(d).max(initial=0.0):  # up to rounding
        raise ValueError(
            f"The corrected resampled t-test needs differences that vary. Got {float(d[0]):.6g} on all {d.size} test "
            "folds; use compare_methods on records with predictions, or more repeats."
        )
    t = center / error
    return CorrectedT(t, n_folds - 1, float(2 * stats.t.sf(abs(t), n_folds - 1)), effect)


# -- Sample by sample --


def paired_test(metric: Metric, a: Rows, b: Rows, *, confidence: float = 0.95) -> tuple[float, EffectSize]:
    """Two-sided p-value and difference (a minus b) of two methods on the same test folds.

    The normal test (for residuals and groups of samples the t test) of the mean of paired differences, one per sample,
    with the variance for overlapping training sets. Half the square of one difference is added, so that equal ones
    do not give a variance of zero. For errors and areas the variance of independent samples is multiplied by
    1 + c u q. Here u is the mean share of the selected features that another fold does not select (1 where the records
    do not hold selections), q is 4p(1 - p) with the mean error p of both methods, or (4a(1 - a))^1.5 with their mean
    area a, and c = 0.6 + 0.25 k for k folds, 1.6 times that with repetitions: methods that err often and select other
    features in other folds would select others still on other data. With more than ten folds, which hardly
    differ, c u is replaced by 3.1 or, if larger, by 0.2 k, at most 8. For residuals q is 1 (1/2 with more than ten
    folds), and n_test / n_train is added (docs/trust).

    Parameters
    ----------
    metric : Metric
        The metric.
    a : list of dict
        Records of the first method at one size, as in ``metric_interval``.
    b : list of dict
        Records of the second method on the same test folds.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    tuple of float and EffectSize
        The p-value and the difference.

    Examples
    --------
    >>> from zeronorm.evaluation import METRICS
    >>> from zeronorm.evaluation.significance import paired_test
    >>> from zeronorm import FisherScore, RandomSelector, evaluate
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(200, random_state=0)
    >>> methods = {"fisher": FisherScore(), "random": RandomSelector(random_state=0)}
    >>> records = evaluate(methods, X, y, sizes=[2])
    >>> rows = list(records.iter_rows(named=True))
    >>> a, b = ([row for row in rows if row["method"] == name] for name in methods)
    >>> p_value, difference = paired_test(METRICS["error_rate"], a, b)
    >>> p_value < 0.01, difference.estimate < 0
    (True, True)
    """
    first, second = (pool_outcomes(rows, outcomes_of(metric)) for rows in (a, b))
    unit = explained_unit(metric, a)
    difference = unit * (first.mean - second.mean)
    is_residual = metric.sample_outcomes in LEAST_SCALE
    by_class = metric.outcomes in ("class mean", "ranks")
    labels = first.labels if by_class else np.zeros(first.n)
    center, variance = _paired_moments(metric, difference, labels)
    clustering = PooledOutcomes(difference, labels, None, first.groups).clustering
    level = np.mean([(first.mean + second.mean)[labels == kind].mean() / 2 for kind in np.unique(labels)])
    error = float(np.sqrt(_paired_overlap(metric, a, b, float(level)) * clustering * variance))
    n_units = first.n if first.groups is None else np.unique(first.groups).size
    scale = stats.t(n_units - 1) if is_residual or first.groups is not None else stats.norm
    estimate = float(np.mean([row[metric.name] for row in a]) - np.mean([row[metric.name] for row in b]))
    half = float(scale.ppf((1 + confidence) / 2)) * error
    p_value = 1.0 if error == 0.0 else float(2 * scale.sf(abs(center) / error))
    return p_value, EffectSize(
        estimate, min(center - half, estimate), max(center + half, estimate), confidence
    )


def _paired_moments(metric: Metric, difference: FloatArray, labels: NDArray[Any]) -> tuple[float, float]:
    """The mean difference and its variance for independent samples under equality, as when signs are flipped.

    Half the square of one difference is added, divided among the classes, so that the variance is never zero.
    """
    is_error = metric.bounds == (0.0, 1.0) and metric.outcomes not in ("ranks", "pairs")
    added = 1.0 if is_error else float(np.sqrt(np.mean(difference**2)))
    kinds = np.unique(labels)
    centers, variances = [], []
    for kind in kinds:
        inside = labels == kind
        n = int(inside.sum())
        centers.append(difference[inside].sum() / n)
        variances.append((np.sum(difference[inside] ** 2) + added**2 / (2 * kinds.size)) / n**2)
    # A mean over the classes weighs each by 1 / C; an area is the mean of the placements of either class.
    weight = 1.0 if metric.outcomes == "ranks" else 1.0 / kinds.size**2
    return float(np.mean(centers)), weight * float(np.sum(variances))


def _paired_overlap(metric: Metric, a: Rows, b: Rows, level: float) -> float:
    """The factor for overlapping training sets at the mean error or area of two methods."""
    if metric.sample_outcomes in LEAST_SCALE:
        return (
            1
            + ratio_of_folds(a)
            + _excess_of_selections(a, b) / (1 if number_of_folds(a) <= MANY_FOLDS else 2)
        )
    # For outcomes that are not shares, the level does not show how much the methods may vary.
    varied = 4 * level * (1 - level) if metric.bounds == (0.0, 1.0) else 1.0
    is_area = metric.outcomes in ("ranks", "pairs")
    return 1 + _excess_of_selections(a, b) * float(varied ** (1.5 if is_area else 1.0))


def _excess_of_selections(a: Rows, b: Rows) -> float:
    """The excess of the variance; with more than ten folds all selections are alike, whatever the procedure."""
    excess = EXCESS_OF_SELECTION + EXCESS_PER_FOLD * min(number_of_folds(a), MANY_FOLDS)
    if number_of_folds(a) > MANY_FOLDS:
        return excess_of_folds(excess, a)
    is_repeated = (
        sum(row["n_test"] for row in a) > np.unique(np.concatenate([r["test_rows"] for r in a])).size
    )
    unlike = (_unlikeness([row.get("selected") for row in rows]) for rows in (a, b))
    return excess * (EXCESS_OF_REPEATS if is_repeated else 1.0) * float(np.mean(list(unlike)))


def _unlikeness(selections: Sequence[Any]) -> float:
    """Mean share of the features of one fold that another fold does not select; 1 where it is not known.

    Over J folds a feature that c of them select is common to c(c - 1) of the J(J - 1) ordered pairs.
    """
    if len(selections) < 2 or any(selected is None for selected in selections):
        return 1.0
    features = np.concatenate([np.asarray(selected, dtype=np.intp) for selected in selections])
    _, counts = np.unique(features, return_counts=True)
    if counts.size == 0:
        return 0.0  # nothing is selected, always
    return 1.0 - float(np.sum(counts * (counts - 1.0))) / ((len(selections) - 1.0) * float(counts.sum()))


# -- All pairs of methods in the records of ``evaluate`` --


def compare_methods(
    records: Any,
    metric: str | Metric,
    *,
    size: int | None = None,
    reference: str | None = None,
    test: str = "auto",
    correction: str = "holm",
    confidence: float = 0.95,
) -> Any:
    """Differences of a metric between methods at one size, with intervals and corrected p-values.

    Parameters
    ----------
    records : DataFrame
        What ``evaluate`` returned.
    metric : str or Metric
        The metric to compare.
    size : int or None, default=None
        Number of features to compare at. None: the size that each method chooses.
    reference : str or None, default=None
        Method that all others are compared with. None compares all pairs.
    test : {"auto", "paired", "corrected_t"}, default='auto'
        "paired" compares sample by sample (``paired_test``), "corrected_t" the means of the test folds.
        "auto": the first where the records and the metric allow it.
    correction : str, default='holm'
        Correction for several comparisons, see ``adjust_p_values``.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    polars.DataFrame or pandas.DataFrame
        One row per pair: ``method``, ``reference``, ``difference`` (method minus reference), ``low``, ``high``,
        ``p_value``, ``adjusted_p_value``, ``n_splits``, ``test`` ("paired" or "corrected_t", the one that was made).

    Examples
    --------
    >>> from zeronorm.evaluation.significance import compare_methods
    >>> from zeronorm import FisherScore, RandomSelector, evaluate
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> methods = {"fisher": FisherScore(), "random": RandomSelector(random_state=0)}
    >>> records = evaluate(methods, X, y, sizes=[2])
    >>> compare_methods(records, "error_rate", size=2)["method"].to_list()
    ['fisher']
    """
    if test == "wilcoxon":
        raise ValueError(
            "The 'test' parameter must not be 'wilcoxon': the test folds of one data set are not independent, and the "
            "signed rank test would reject far too often. Use 'paired', or signed_rank on independent data sets."
        )
    if test not in ("auto", "paired", "corrected_t"):
        raise ValueError(
            f"The 'test' parameter must be 'auto', 'paired' or 'corrected_t'. Got {written(test)} instead."
        )
    measure = as_metric(metric)
    optional = (*POOLED_COLUMNS, "selected")
    by_method = rows_by_method(records, size, (measure.name, "n_train", "n_test"), optional)
    has_samples = measure.outcomes != "none" and all(
        has_outcomes(measure, rows) for rows in by_method.values()
    )
    if test == "paired" and not has_samples:
        raise ValueError(
            f"The 'test' parameter cannot be 'paired' for the metric {measure.name!r}: the records do not hold what "
            "single samples contribute to it. Use 'corrected_t'."
        )
    made = "paired" if has_samples and test != "corrected_t" else "corrected_t"
    rows: list[dict[str, Any]] = []
    for method, other in _pairs(list(by_method), reference):
        a, b = by_method[method], by_method[other]
        if made == "paired":
            p_value, effect = paired_test(measure, a, b, confidence=confidence)
        else:
            p_value, effect = _corrected(measure.name, a, b, confidence)
        rows.append(
            {
                "method": method,
                "reference": other,
                "difference": effect.estimate,
                "low": effect.low,
                "high": effect.high,
                "p_value": p_value,
                "n_splits": len(a),
                "test": made,
            }
        )
    for row, adjusted in zip(rows, adjust_p_values([r["p_value"] for r in rows], correction), strict=True):
        row["adjusted_p_value"] = float(adjusted)
    return frame_of_rows(rows)


def _corrected(
    name: str, a: list[dict[str, Any]], b: list[dict[str, Any]], confidence: float
) -> tuple[float, EffectSize]:
    left, right = ([row[name] for row in rows] for rows in (a, b))
    n_train, n_test = (float(np.mean([row[key] for row in a])) for key in ("n_train", "n_test"))
    result = corrected_resampled_t(
        left, right, n_train=n_train, n_test=n_test, n_repeats=_passes(a), confidence=confidence
    )
    return result.p_value, result.difference


def _passes(rows: list[dict[str, Any]]) -> int:
    """Number of repetitions of cross-validation: how often each sample is tested."""
    if any(row.get("test_rows") is None for row in rows):
        return 1
    _, counts = np.unique(np.concatenate([row["test_rows"] for row in rows]), return_counts=True)
    return int(counts.max())


def _pairs(methods: list[str], reference: str | None) -> list[tuple[str, str]]:
    if reference is None:
        pairs = list(combinations(methods, 2))
    elif reference in methods:
        pairs = [(name, reference) for name in methods if name != reference]
    else:
        raise ValueError(
            f"The 'reference' parameter must be one of {methods}. Got {written(reference)} instead."
        )
    if not pairs:
        raise ValueError(f"A comparison needs at least two methods. Got {methods}.")
    return pairs
