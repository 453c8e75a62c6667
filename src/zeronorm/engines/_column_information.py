"""Scores of single columns: distances between classes, correlation with the target, entropy of binned values.

Used by FisherScore, GolubScore, WelchScore, FCBF, MutualInformation, Relief, GramSchmidtRelief and the preselection of
OptimalFeatureWeighting.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import ColumnStats, Design, is_constant_range
from zeronorm.design._chunked import ChunkedDesign
from zeronorm.design._finite import are_trusted
from zeronorm.execution import in_threads, long_vector
from zeronorm.selection._problem import Problem, column_index


def safe_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide element by element; 0/0 is 0, and a positive number over 0 is twice the largest finite ratio."""
    return _safe_ratio_of(lambda part: numerator[part], lambda part: denominator[part], numerator.size)


# Chunk length: intermediate vectors of this length fit in the cache; with shorter ones threads wait for Python.
_NUMBERS_AT_A_TIME = 1 << 16


def _safe_ratio_of(
    numerator: Callable[[slice], FloatArray], denominator: Callable[[slice], FloatArray], size: int
) -> FloatArray:
    """Compute ``safe_ratio`` in chunks, with several threads where the vectors are long."""
    ratio, usual = long_vector(size), []

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
    ratio, perfect = _ratio_and_perfect(numerator, denominator)
    if np.any(perfect):
        ratio[perfect] = _above_all(float(ratio[~perfect].max(initial=0.0)))
    return ratio


def _ratio_and_perfect(numerator: FloatArray, denominator: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the ratio, zero where the denominator is zero, and the mask of infinite ratios."""
    ratio = np.zeros_like(numerator)
    proper = denominator > 0
    with np.errstate(over="ignore"):  # a denominator close to zero counts as zero
        np.divide(numerator, denominator, out=ratio, where=proper)
    return ratio, (~proper | np.isinf(ratio)) & (numerator > 0)


def _above_all(largest: float) -> float:
    """Score of features that separate the classes perfectly: above the largest score of the others."""
    return 2.0 * max(1.0, largest)


def two_class_score(stats: ColumnStats) -> FloatArray:
    """Squared distance of the two class means over the sum of the class variances."""
    mean, variance = stats.class_mean, stats.class_variance
    return _safe_ratio_of(
        lambda part: np.square(mean[1, part] - mean[0, part]),
        lambda part: variance[1, part] + variance[0, part],
        mean.shape[1],
    )


def two_class_score_by_part(design: ChunkedDesign, problem: Problem) -> tuple[FloatArray, BoolArray] | None:
    """Compute ``two_class_score`` block by block and the mask of constant features; None if rounding is too large."""
    score, constant = long_vector(design.n_features), np.empty(design.n_features, dtype=bool)
    perfect, largest, doubts = [np.empty(0, dtype=np.intp)], [0.0], []

    def use(columns: slice, stats: ColumnStats) -> None:
        if not are_trusted(stats, design.dtype):
            doubts.append(columns)
            return
        mean, variance = stats.class_mean, stats.class_variance
        ratio, is_perfect = _ratio_and_perfect(np.square(mean[1] - mean[0]), variance[1] + variance[0])
        score[columns], constant[columns] = ratio, stats.is_constant(design.dtype)
        perfect.append(columns.start + np.flatnonzero(is_perfect))
        largest.append(float(ratio[~is_perfect].max(initial=0.0) if is_perfect.any() else ratio.max()))

    design.use_column_stats(use, problem.y, problem.sample_weight)
    if doubts:
        return None
    score[np.concatenate(perfect)] = _above_all(max(largest))
    return score, constant


def between_over_within(stats: ColumnStats) -> FloatArray:
    """Variance between the class means over the variance within the classes."""
    share = (stats.weight / stats.weight.sum())[:, None]
    between = (share * (stats.class_mean - stats.mean) ** 2).sum(axis=0)
    within = (share * stats.class_variance).sum(axis=0)
    return safe_ratio(between, within)


def overall_score(stats: ColumnStats) -> FloatArray:
    """Squared distances of the class means from the overall mean over the sum of the unbiased class variances."""
    weight = stats.weight[:, None]
    unbiased = stats.class_variance * weight / np.maximum(weight - 1.0, 1.0)
    between = ((stats.class_mean - stats.mean) ** 2).sum(axis=0)
    return safe_ratio(between, unbiased.sum(axis=0))


def squared_correlation(design: Design, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
    """Squared correlation of each column with a real target; 0 where one of them is constant."""
    if is_constant_range(y.min(keepdims=True), y.max(keepdims=True))[0]:
        return np.zeros(design.n_features)
    weight = np.ones(y.size) if sample_weight is None else sample_weight
    around_zero = y - y[0]  # the mean of large values would be rounded
    around_zero /= np.abs(around_zero).max()  # squares of tiny values would underflow
    around_zero -= np.average(around_zero, weights=weight)
    norm = np.sqrt(weight.sum() * (weight * around_zero**2).sum())
    return np.square(design.transpose_dot(weight * around_zero / norm))


# -- Sorted values of a column; the zeros that a sparse column does not store cost no time --


class StoredBlock(NamedTuple):
    """A block of columns: stored values, their rows, the bounds of the columns, and the value of all other rows."""

    data: FloatArray
    rows: NDArray[Any]
    starts: NDArray[Any]
    elsewhere: FloatArray

    @property
    def n_columns(self) -> int:
        return self.elsewhere.size


def has_stored_columns(design: Design) -> bool:
    """Whether the columns are sparse and can be read without conversion."""
    return design.is_sparse and design.stored_columns(np.empty(0, dtype=np.intp)) is not None


def stored_blocks(
    design: Design, *, most_columns: int, fewest_columns: int, values_at_a_time: int
) -> Iterator[tuple[slice, StoredBlock]]:
    """Yield all columns in order, in blocks of about this many stored values; dense columns store all values."""
    n, p = design.shape
    is_stored, first, per_column = has_stored_columns(design), 0, n
    while first < p:
        width = min(most_columns, max(fewest_columns, values_at_a_time // max(1, per_column)))
        columns = slice(first, min(first + width, p))
        index = np.arange(columns.start, columns.stop)
        found = design.stored_columns(index) if is_stored else None
        if found is None:
            data = np.ascontiguousarray(design.block(columns).T).ravel()
            # The array types of sparse matrices, for which the loops are compiled in any case.
            rows = np.tile(np.arange(n, dtype=np.int32), index.size)
            starts = (np.arange(index.size + 1) * n).astype(np.int32)
            yield columns, StoredBlock(data, rows, starts, np.zeros(index.size))
        else:
            stored, shift = found
            per_column = stored.nnz // index.size
            data = stored.data - np.repeat(shift, np.diff(stored.indptr))
            yield columns, StoredBlock(data, stored.indices, stored.indptr, -shift)
        first = columns.stop


@kernel
def sorted_entries(data, rows, starts, elsewhere, f, labels, class_sizes):
    """Return column f in ascending order: values, classes, and the number of samples with this value and class.

    Samples with a negative label are ignored; ``class_sizes`` are the numbers of all other samples by class.
    """
    n_stored, n_classes = starts[f + 1] - starts[f], class_sizes.shape[0]
    values, classes = np.empty(n_stored + n_classes), np.empty(n_stored + n_classes, dtype=np.intp)
    numbers = np.ones(n_stored + n_classes, dtype=np.int64)
    not_stored = class_sizes.copy()
    size = 0
    for index in range(starts[f], starts[f + 1]):
        label = labels[rows[index]]
        if label >= 0:
            values[size], classes[size] = data[index], label
            not_stored[label] -= 1
            size += 1
    for c in range(n_classes):
        if not_stored[c] > 0:
            values[size], classes[size], numbers[size] = elsewhere[f], c, not_stored[c]
            size += 1
    order = np.argsort(values[:size])
    return _merged(values[order], classes[order], numbers[order], n_classes)


@kernel
def _merged(values, classes, numbers, n_classes):
    """Merge entries of the same value and class; the entries are sorted by value."""
    found = np.zeros(n_classes, dtype=np.int64)
    size, first = 0, 0
    while first < values.shape[0]:
        last = first + 1
        while last < values.shape[0] and values[last] == values[first]:
            last += 1
        if last == first + 1:
            values[size], classes[size], numbers[size] = values[first], classes[first], numbers[first]
            size += 1
        else:
            value = values[first]
            for i in range(first, last):
                found[classes[i]] += numbers[i]
            for i in range(first, last):  # writes never overtake reads
                c = classes[i]
                if found[c] > 0:
                    values[size], classes[size], numbers[size] = value, c, found[c]
                    found[c] = 0
                    size += 1
        first = last
    return values[:size], classes[:size], numbers[:size]


# -- Compiled discretisation of columns, and symmetrical uncertainty of discrete columns --


# Code used instead of a number of bins.
SUPERVISED, AS_THEY_ARE = -1, 0


@kernel
def relevances(data, rows, starts, elsewhere, labels, class_sizes, bins, result, n_codes):
    """Symmetrical uncertainty of the classes with the bins of each column, and the numbers of bins."""
    n_classes = class_sizes.shape[0]
    class_bits = total_bits(class_sizes.astype(np.float64))
    for f in range(result.shape[0]):
        x, classes, numbers = sorted_entries(data, rows, starts, elsewhere, f, labels, class_sizes)
        starts_bin = _bins(x, classes, numbers, n_classes, bins)
        width = starts_bin.sum() + 1
        table, margin, code = np.zeros(n_classes * width), np.zeros(width), 0
        for i in range(x.shape[0]):
            if starts_bin[i]:
                code += 1
            table[classes[i] * width + code] += numbers[i]
            margin[code] += numbers[i]
        result[f] = _symmetrical(class_bits, total_bits(margin), total_bits(table))
        n_codes[f] = width


@kernel
def code_columns(data, rows, starts, elsewhere, labels, class_sizes, bins, columns, codes):
    """Write the bin number of each sample in these columns of the block, one row of ``codes`` for each."""
    for index in range(columns.shape[0]):
        f = columns[index]
        x, classes, numbers = sorted_entries(data, rows, starts, elsewhere, f, labels, class_sizes)
        first_values = x[_bins(x, classes, numbers, class_sizes.shape[0], bins)]
        codes[index, :] = np.searchsorted(first_values, elsewhere[f], side="right")
        for i in range(starts[f], starts[f + 1]):
            codes[index, rows[i]] = np.searchsorted(first_values, data[i], side="right")


@kernel
def _bins(x, classes, numbers, n_classes, bins):
    """Mask of the entries that start a new bin."""
    starts_bin = np.zeros(x.shape[0], dtype=np.bool_)
    if bins == SUPERVISED:
        _supervised_bins(x, classes, numbers, n_classes, starts_bin)
    else:
        _plain_bins(x, numbers, bins, starts_bin)
    return starts_bin


@kernel
def _plain_bins(x, numbers, bins, starts_bin):
    """One bin per distinct value, or bins of about equal counts that keep equal values together."""
    n, below, current = numbers.sum(), 0, 0
    for i in range(1, x.shape[0]):
        below += numbers[i - 1]
        if x[i] != x[i - 1]:
            bin_number = below * bins // n
            starts_bin[i] = bins == AS_THEY_ARE or bin_number > current
            current = max(current, bin_number)


@kernel
def _supervised_bins(x, classes, numbers, n_classes, starts_bin):
    """Cut recursively where the class entropy is least, while that shortens the description (Fayyad & Irani)."""
    stack = np.empty((x.shape[0] + 1, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, x.shape[0]
    depth = 1
    left, right = np.zeros(n_classes), np.zeros(n_classes)
    while depth > 0:
        depth -= 1
        first, last = stack[depth]
        cut = _best_cut(x, classes, numbers, first, last, left, right)
        if cut > first and _cut_pays(classes, numbers, first, cut, last, left, right):
            starts_bin[cut] = True
            stack[depth, 0], stack[depth, 1] = first, cut
            stack[depth + 1, 0], stack[depth + 1, 1] = cut, last
            depth += 2


@kernel
def _best_cut(x, classes, numbers, first, last, left, right):
    """Index where the right side of the best cut starts, the first of ties; ``first`` if there is no cut."""
    left[:], right[:] = 0.0, 0.0
    for i in range(first, last):
        right[classes[i]] += numbers[i]
    best, best_bits = first, np.inf
    for i in range(first + 1, last):
        left[classes[i - 1]] += numbers[i - 1]
        right[classes[i - 1]] -= numbers[i - 1]
        if x[i] != x[i - 1]:
            bits = total_bits(left) + total_bits(right)
            if bits < best_bits - 1e-9:
                best, best_bits = i, bits
    return best


@kernel
def _cut_pays(classes, numbers, first, cut, last, left, right):
    """Whether a cut satisfies the minimum description length criterion."""
    left[:], right[:] = 0.0, 0.0
    for i in range(first, cut):
        left[classes[i]] += numbers[i]
    for i in range(cut, last):
        right[classes[i]] += numbers[i]
    both = left + right
    n = both.sum()
    k, k_left, k_right = (both > 0.0).sum(), (left > 0.0).sum(), (right > 0.0).sum()
    gain = (total_bits(both) - total_bits(left) - total_bits(right)) / n
    # log2(3^k - 2) without overflow for many classes.
    choices = k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0 ** (-float(k)))
    change = k * total_bits(both) / n
    change -= k_left * total_bits(left) / left.sum() + k_right * total_bits(right) / right.sum()
    return gain > (np.log2(n - 1.0) + choices - change) / n


@kernel
def total_bits(counts):
    """Entropy of the distribution given by ``counts``, times their sum."""
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
        result[f] = _symmetrical(own_bits, total_bits(margin), total_bits(table))


@kernel
def _symmetrical(one_bits, other_bits, joint_bits):
    """Symmetrical uncertainty from the entropies of two variables and of their pairs."""
    total = one_bits + other_bits
    return max(0.0, 2.0 * (total - joint_bits) / total) if total > 0.0 else 0.0


# -- Which columns are categorical --


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


def explained_share(problem: Problem) -> FloatArray:
    """Share of the variance of each column that the target explains."""
    design = problem.design
    if not problem.target.has_classes:
        centred = problem.y - problem.y.mean()
        scale = design.column_stats().variance * problem.n_samples * float(centred @ centred)
        return safe_ratio(design.transpose_dot(centred) ** 2, scale)
    stats = design.column_stats(problem.y)
    share = (stats.weight / stats.weight.sum())[:, None]
    return safe_ratio((share * (stats.class_mean - stats.mean) ** 2).sum(axis=0), stats.variance)
