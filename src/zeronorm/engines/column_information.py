"""What one column tells about the target: how far classes stand apart in it, its correlation, its values in bins.

Serves FisherScore, GolubScore, WelchScore, FCBF, MutualInformation, Relief, GramSchmidtRelief and the preselection of
OptimalFeatureWeighting.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._threads import in_threads
from zeronorm._types import FloatArray
from zeronorm.design import ColumnStats, StandardizedDesign, is_constant_range
from zeronorm.selection.problem import Problem, column_index


def safe_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """0/0 is 0; a positive number over 0 is the largest finite ratio, doubled."""
    return _safe_ratio_of(lambda part: numerator[part], lambda part: denominator[part], numerator.size)


# Of which the vectors in between stay close to the processor; with fewer, many threads wait for the interpreter.
_NUMBERS_AT_A_TIME = 1 << 16


def _safe_ratio_of(
    numerator: Callable[[slice], FloatArray], denominator: Callable[[slice], FloatArray], size: int
) -> FloatArray:
    """The same for vectors that are computed part by part, by several threads where they are long."""
    ratio, usual = np.empty(size), []

    def divide(first: int, last: int) -> None:
        for start in range(first, last, _NUMBERS_AT_A_TIME):
            part = slice(start, min(start + _NUMBERS_AT_A_TIME, last))
            below = denominator(part)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                np.divide(numerator(part), below, out=ratio[part])
                usual.append(below.min(initial=np.inf) > 0 and ratio[part].max(initial=0.0) < np.inf)

    in_threads(divide, size)
    return ratio if all(usual) else _unusual_ratio(numerator(slice(None)), denominator(slice(None)))


def _unusual_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    ratio = np.zeros_like(numerator)
    proper = denominator > 0
    with np.errstate(over="ignore"):  # a denominator next to zero counts as zero
        np.divide(numerator, denominator, out=ratio, where=proper)
    perfect = (~proper | np.isinf(ratio)) & (numerator > 0)
    if np.any(perfect):
        ratio[perfect] = 2.0 * max(1.0, float(ratio[~perfect].max(initial=0.0)))
    return ratio


def two_class_score(stats: ColumnStats) -> FloatArray:
    """Squared distance of the two class means over the sum of the class variances."""
    mean, variance = stats.class_mean, stats.class_variance
    return _safe_ratio_of(
        lambda part: np.square(mean[1, part] - mean[0, part]),
        lambda part: variance[1, part] + variance[0, part],
        mean.shape[1],
    )


def between_over_within(stats: ColumnStats) -> FloatArray:
    """Variance between the class means over the variance within the classes."""
    share = (stats.weight / stats.weight.sum())[:, None]
    between = (share * (stats.class_mean - stats.mean) ** 2).sum(axis=0)
    within = (share * stats.class_variance).sum(axis=0)
    return safe_ratio(between, within)


def overall_score(stats: ColumnStats) -> FloatArray:
    """Distances of the class means from the overall mean over the sum of the unbiased class variances."""
    weight = stats.weight[:, None]
    unbiased = stats.class_variance * weight / np.maximum(weight - 1.0, 1.0)
    between = ((stats.class_mean - stats.mean) ** 2).sum(axis=0)
    return safe_ratio(between, unbiased.sum(axis=0))


def squared_correlation(
    design: StandardizedDesign, y: FloatArray, sample_weight: FloatArray | None
) -> FloatArray:
    """Squared correlation of each column with a real target; 0 where one of them is constant."""
    if is_constant_range(y.min(keepdims=True), y.max(keepdims=True))[0]:
        return np.zeros(design.n_features)
    weight = np.ones(y.size) if sample_weight is None else sample_weight
    around_zero = y - y[0]  # the mean of large values would be rounded
    around_zero /= np.abs(around_zero).max()  # squares of tiny values would underflow
    around_zero -= np.average(around_zero, weights=weight)
    norm = np.sqrt(weight.sum() * (weight * around_zero**2).sum())
    return np.square(design.transpose_dot(weight * around_zero / norm))


# -- Compiled discretisation of columns, and symmetrical uncertainty of discrete columns --


# Instead of a number of bins.
SUPERVISED, AS_THEY_ARE = -1, 0


@kernel
def code_columns(columns, labels, n_classes, bins, codes, n_codes):
    """Write a bin number for each value of each row of ``columns`` and the number of bins used."""
    n = columns.shape[1]
    starts_bin = np.zeros(n, dtype=np.bool_)
    for f in range(columns.shape[0]):
        order = np.argsort(columns[f])
        x = columns[f][order]
        starts_bin[:] = False
        if bins == SUPERVISED:
            _supervised_bins(x, labels[order], n_classes, starts_bin)
        else:
            _plain_bins(x, bins, starts_bin)
        code = 0
        for i in range(n):
            if starts_bin[i]:
                code += 1
            codes[f, order[i]] = code
        n_codes[f] = code + 1


@kernel
def _plain_bins(x, bins, starts_bin):
    """One bin per distinct value, or bins of about equal counts that keep equal values together."""
    n, current = x.shape[0], 0
    for i in range(1, n):
        if x[i] != x[i - 1]:
            place = i * bins // n
            starts_bin[i] = bins == AS_THEY_ARE or place > current
            current = max(current, place)


@kernel
def _supervised_bins(x, labels, n_classes, starts_bin):
    """Recursive cuts of least class entropy, each accepted if it shortens the description (Fayyad & Irani)."""
    n = x.shape[0]
    stack = np.empty((n + 1, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    left, right = np.zeros(n_classes), np.zeros(n_classes)
    while depth > 0:
        depth -= 1
        first, last = stack[depth]
        cut = _best_cut(x, labels, first, last, left, right)
        if cut > first and _cut_pays(labels, first, cut, last, left, right):
            starts_bin[cut] = True
            stack[depth, 0], stack[depth, 1] = first, cut
            stack[depth + 1, 0], stack[depth + 1, 1] = cut, last
            depth += 2


@kernel
def _best_cut(x, labels, first, last, left, right):
    """Start of the right part of the best cut, the first of equally good ones; ``first`` if there is none."""
    left[:], right[:] = 0.0, 0.0
    for i in range(first, last):
        right[labels[i]] += 1.0
    best, best_bits = first, np.inf
    for i in range(first + 1, last):
        left[labels[i - 1]] += 1.0
        right[labels[i - 1]] -= 1.0
        if x[i] != x[i - 1]:
            bits = total_bits(left) + total_bits(right)
            if bits < best_bits - 1e-9:
                best, best_bits = i, bits
    return best


@kernel
def _cut_pays(labels, first, cut, last, left, right):
    """The minimum description length rule for one cut."""
    left[:], right[:] = 0.0, 0.0
    for i in range(first, cut):
        left[labels[i]] += 1.0
    for i in range(cut, last):
        right[labels[i]] += 1.0
    both = left + right
    n = last - first
    k, k_left, k_right = (both > 0.0).sum(), (left > 0.0).sum(), (right > 0.0).sum()
    gain = (total_bits(both) - total_bits(left) - total_bits(right)) / n
    # log2(3^k - 2) without overflow for many classes.
    choices = k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0 ** (-float(k)))
    change = k * total_bits(both) / n
    change -= k_left * total_bits(left) / (cut - first) + k_right * total_bits(right) / (last - cut)
    return gain > (np.log2(n - 1.0) + choices - change) / n


@kernel
def total_bits(counts):
    """Entropy of a distribution given by counts, times their sum."""
    total, bits = 0.0, 0.0
    for count in counts:
        if count > 0.0:
            total += count
            bits -= count * np.log2(count)
    return bits + total * np.log2(total) if total > 0.0 else 0.0


@kernel
def uncertainties(column, n_values, others, n_others, result):
    """Symmetrical uncertainty of one discrete column with each of the others."""
    n = column.shape[0]
    own_bits = total_bits(np.bincount(column, minlength=n_values).astype(np.float64))
    for f in range(others.shape[0]):
        width = n_others[f]
        table = np.zeros(n_values * width)
        margin = np.zeros(width)
        for i in range(n):
            table[column[i] * width + others[f, i]] += 1.0
            margin[others[f, i]] += 1.0
        other_bits = total_bits(margin)
        shared = own_bits + other_bits - total_bits(table)
        total = own_bits + other_bits
        result[f] = max(0.0, 2.0 * shared / total) if total > 0.0 else 0.0


# -- Which columns hold categories instead of quantities --


def parse_discrete_features(discrete: Any, problem: Problem) -> NDArray[np.bool_]:
    """Mask of the columns named in ``discrete_features``: None, "all", a mask, or a list of columns."""
    p = problem.n_features
    if discrete is None:
        return np.zeros(p, dtype=bool)
    if isinstance(discrete, str) and discrete == "all":
        return np.ones(p, dtype=bool)
    given = np.asarray(discrete)
    if given.dtype == bool:
        if given.shape != (p,):
            raise ValueError(
                f"The 'discrete_features' mask must have one entry per column. Got shape {given.shape} for "
                f"{p} columns."
            )
        return given.copy()
    mask = np.zeros(p, dtype=bool)
    for column in discrete:
        mask[column_index(column, p, problem.design.feature_names, "discrete_features")] = True
    return mask
