"""Summaries of records: error by number of features, selection frequencies, stability, comparison of methods."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from zeronorm.evaluation._records import columns_of, metric_columns, rows_by_method
from zeronorm.evaluation._stability import stability_of_records
from zeronorm.evaluation.significance import (
    adjust_p_values,
    compare_methods,
    corrected_resampled_t,
    score_matrix_of_records,
)
from zeronorm.evaluation.significance._pooled import POOLED_COLUMNS, metric_interval, why_no_interval
from zeronorm.resampling._metrics import METRICS, Metric, as_metric


@dataclass(frozen=True)
class CurvePoint:
    """Mean of a metric over the test folds, with a 95 % interval for the models that were fitted in these folds.

    The limits are None where there is no interval; ``no_interval`` is the reason, if it is known.
    """

    size: float
    mean: float
    low: float | None
    high: float | None
    n_splits: int
    no_interval: str = ""


@dataclass(frozen=True)
class Curve:
    """The points of one method by size, and the point of the size that it chooses."""

    method: str
    points: tuple[CurvePoint, ...]
    own: CurvePoint | None


def primary_metric(records: Any) -> str:
    """The metric that is shown first: the first of ``METRICS`` in the records, else a scorer of scikit-learn."""
    names = metric_columns(records)
    for name in (*(known for known in METRICS if known in names), *names):
        with contextlib.suppress(ValueError):
            return as_metric(name).name
    raise ValueError(
        f"The records have no metric that is known by name; their metric columns are {names}. Evaluate one of "
        f"{list(METRICS)} or a scorer of scikit-learn, or register a metric with register_metric."
    )


def error_curves(records: Any, metric: str | Metric) -> tuple[Curve, ...]:
    """Mean and interval of ``metric`` for every method and size.

    The intervals are those of ``metric_interval``: for the models that were fitted in the folds, with allowance for
    the overlap of the training sets.
    """
    columns, measure = columns_of(records), as_metric(metric)
    groups: dict[str, dict[int | None, list[int]]] = {}
    for row, (method, size) in enumerate(zip(columns["method"], columns["size"], strict=True)):
        if columns[measure.name][row] is not None:
            groups.setdefault(method, {}).setdefault(size, []).append(row)
    curves = []
    for method, by_size in groups.items():
        points = [_point(columns, rows, measure) for size, rows in by_size.items() if size is not None]
        own = _point(columns, by_size[None], measure) if None in by_size else None
        curves.append(Curve(method, tuple(sorted(points, key=lambda point: point.size)), own))
    return tuple(curves)


def _point(columns: Any, rows: list[int], metric: Metric) -> CurvePoint:
    names = (metric.name, "n_train", "n_test", *POOLED_COLUMNS)
    folds = [{name: columns[name][row] for name in names if name in columns} for row in rows]
    selected = float(np.mean([columns["n_selected"][row] for row in rows]))
    low, high = metric_interval(metric, folds) or (None, None)
    mean = float(np.mean([fold[metric.name] for fold in folds]))
    reason = why_no_interval(metric, folds) if low is None else ""
    return CurvePoint(selected, mean, low, high, len(folds), reason)


def metric_label(metric: str | Metric) -> str:
    """The name of the metric in tables and figures."""
    return as_metric(metric).text


def format_metric(value: float | None, metric: str | Metric) -> str:
    """A value of the metric as it is shown."""
    return as_metric(metric).format(value)


# -- How often features were selected, and how alike the selections are --


@dataclass(frozen=True)
class Frequencies:
    """Share of the outer folds in which each feature was selected, most frequent first.

    ``expected`` is the share that a random choice of as many features would have.
    """

    method: str
    shares: tuple[tuple[int, float], ...]
    n_splits: int
    expected: float


@dataclass(frozen=True)
class StabilityPoint:
    """Similarity of the subsets of one method at one size (None where not defined)."""

    method: str
    size: int | None
    mean_size: float
    nogueira: float | None
    low: float | None
    high: float | None
    jaccard: float


def selection_frequencies(records: Any, method: str, n_features: int, size: int | None = None) -> Frequencies:
    """Frequencies of one method at one size; None is the size that it chooses."""
    columns = columns_of(records)
    counts: Counter[int] = Counter()
    n_splits = n_selected = 0
    for name, row_size, selected in zip(columns["method"], columns["size"], columns["selected"], strict=True):
        if name == method and row_size == size and selected is not None:
            counts.update(int(index) for index in selected)
            n_splits += 1
            n_selected += len(selected)
    shares = sorted(
        ((index, count / n_splits) for index, count in counts.items()), key=lambda p: (-p[1], p[0])
    )
    expected = n_selected / max(1, n_splits * n_features)
    return Frequencies(method, tuple(shares), n_splits, expected)


def stabilities(records: Any, n_features: int) -> tuple[StabilityPoint, ...]:
    """Stability of every method and size with at least two selections."""
    columns = columns_of(records)
    counts = Counter(
        (method, size)
        for method, size, selected in zip(
            columns["method"], columns["size"], columns["selected"], strict=True
        )
        if selected is not None
    )
    if not counts or min(counts.values()) < 2:
        return ()
    table = columns_of(stability_of_records(records, n_features))
    fields = ("method", "size", "mean_size", "nogueira", "low", "high", "jaccard")
    return tuple(StabilityPoint(*row) for row in zip(*(table[name] for name in fields), strict=True))


# -- Which of several methods to prefer, from their scores on the same folds --


LEVEL = 0.05


@dataclass(frozen=True)
class Choice:
    """The method with the best mean, those significantly worse than it, and the preferred one.

    ``sizes`` are the mean numbers of features by method. ``is_tested`` is False where the folds allow no test. ``tied``
    are the methods with the best mean, ``near`` those within one standard error of it that are not significantly worse.
    """

    methods: tuple[str, ...]
    best: str
    worse: tuple[str, ...]
    preferred: str
    is_tested: bool
    sizes: Mapping[str, float]
    tied: tuple[str, ...]
    near: tuple[str, ...]

    @property
    def equals(self) -> tuple[str, ...]:
        """The best method and those not significantly worse."""
        return tuple(name for name in self.methods if name not in self.worse)

    @property
    def sentence(self) -> str:
        """The choice in sentences that claim no more than the tests show."""
        rest = [name for name in self.equals if name != self.best]
        have, are = ("has", "is") if len(self.tied) == 1 else ("have", "are")
        if len(self.tied) == len(self.methods) > 1:
            start = "All methods have the same mean"
        elif not self.is_tested:
            start = f"{_listed(self.tied)} {have} the best mean; there are too few test folds to test the differences"
        elif not self.worse:
            start = (
                f"{_listed(self.tied)} {have} the best mean, but {are} not significantly better than any other "
                "method"
            )
        elif not rest:
            start = f"{self.best} is significantly better than every other method"
        else:
            start = (
                f"{self.best} is significantly better than {_listed(self.worse)}; between it and {_listed(rest)} "
                "no significant difference was found"
            )
        return f"{start}. {self._sizes_sentence}" if rest else f"{start}."

    @property
    def preferred_because(self) -> str:
        """Why the preferred method is preferred, as a clause that names ties."""
        if len(self.near) == 1:
            return "the only method within one standard error of the best"
        alike = [name for name in self.near if self.sizes[name] == self.sizes[self.preferred]]
        if len(alike) == 1:
            return "fewest features within one standard error of the best"
        if len(alike) == len(self.near):
            return "best mean; all methods within one standard error of it use the same number of features"
        others = _listed([name for name in alike if name != self.preferred])
        return f"fewest features within one standard error of the best, as many as {others}"

    @property
    def _sizes_sentence(self) -> str:
        """Which of the methods that are not significantly worse use the fewest features."""
        fewest = min(self.sizes[name] for name in self.equals)
        smallest = [name for name in self.equals if self.sizes[name] == fewest]
        among = "" if not self.worse else " that are not significantly worse"
        count = f"{fewest:.1f}".removesuffix(".0")
        if len(smallest) == len(self.equals):
            return f"All methods{among} use the same number of features ({count})."
        verb = "uses" if len(smallest) == 1 else "use"
        return f"Of the methods{among}, {_listed(smallest)} {verb} the fewest features ({count})."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def choose_method(
    scores: Mapping[str, Any],
    sizes: Mapping[str, float],
    *,
    n_train: float,
    n_test: float,
    p_values: Mapping[frozenset[str], float] | None = None,
) -> Choice:
    """Compare methods by their scores over the same folds (greater is better).

    All pairs are tested, with Holm's correction, so that with probability 0.95 no difference is claimed that is
    not there, whichever method turns out best. Of the methods not significantly worse than the best one and
    within one standard error of its mean, the one with the fewest features is preferred: few folds find few
    differences, so the tests alone would be too lenient.

    Parameters
    ----------
    scores : one value per fold for each method.
    sizes : number of features of each method.
    n_train, n_test : mean numbers of training and test samples.
    p_values : adjusted p-values of all pairs; None makes corrected resampled t-tests.
    """
    values = {name: np.asarray(found, dtype=np.float64) for name, found in scores.items()}
    means = {name: float(found.mean()) for name, found in values.items()}
    best = min(values, key=lambda name: (-means[name], sizes[name]))
    if p_values is None:
        p_values = _test_all_pairs(values, n_train, n_test)
    worse = tuple(
        name for name in values if name != best and p_values.get(frozenset((best, name)), 1.0) < LEVEL
    )
    n_folds = len(values[best])
    scale = float(values[best].std(ddof=1)) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    lowest = means[best] - scale
    near = [n for n in values if n not in worse and means[n] >= lowest - 1e-12 * abs(lowest)]
    preferred = min(near, key=lambda name: (sizes[name], -means[name], name))
    is_tested = bool(p_values) or len(values) < 2
    tied = tuple(name for name in values if means[name] >= means[best] - 1e-12 * abs(means[best]))
    return Choice(tuple(values), best, worse, preferred, is_tested, dict(sizes), tied, tuple(near))


def _test_all_pairs(values: Mapping[str, Any], n_train: float, n_test: float) -> dict[frozenset[str], float]:
    """Adjusted p-values of the pairs whose differences can be tested."""
    found = {}
    for a, b in combinations(values, 2):
        try:
            test = corrected_resampled_t(values[a], values[b], n_train=n_train, n_test=n_test)
        except ValueError:  # too few folds, or the same difference in all
            continue
        found[frozenset((a, b))] = test.p_value
    adjusted = adjust_p_values(list(found.values())) if found else ()
    return dict(zip(found, map(float, adjusted), strict=True))


@dataclass(frozen=True)
class MethodRow:
    """One method in the table of a comparison."""

    method: str
    mean: float
    n_selected: float
    fit_seconds: float


@dataclass(frozen=True)
class Difference:
    """Difference of the metric between two methods (first minus second), with a 95 % interval."""

    method: str
    reference: str
    difference: float
    low: float
    high: float
    adjusted_p_value: float
    test: str


# Descriptions of the tests of ``compare_methods``.
TESTS = {
    "paired": "the paired test of single samples (its variance allows for overlapping training sets)",
    "corrected_t": "the corrected resampled t-test of the test folds (with allowance for unstable selections)",
}


@dataclass(frozen=True)
class ScoreTable:
    """Row against column: folds won minus folds lost by McNemar's test; error rates on the diagonal."""

    methods: tuple[str, ...]
    scores: tuple[tuple[int, ...], ...]
    error_rates: tuple[float, ...]
    n_folds: int


@dataclass(frozen=True)
class Comparison:
    """The comparison of several methods on the same splits, as a report shows it."""

    metric: str
    rows: tuple[MethodRow, ...]
    differences: tuple[Difference, ...]
    scores: ScoreTable | None
    choice: Choice
    failed: tuple[str, ...]

    @property
    def preferred(self) -> str:
        """The preferred method: the one with the fewest features among those close to the best."""
        return self.choice.preferred

    @property
    def tested_by(self) -> str:
        """A sentence that names the test of the p-values."""
        if not self.differences:
            return "There are no p-values: the test folds allow no test."
        return f"p-values are those of {TESTS[self.differences[0].test]}, with Holm's correction."

    @property
    def verdict(self) -> str:
        """The result of the tests as a sentence."""
        return self.choice.sentence


def compare(records: Any, metric: str | Metric) -> Comparison | None:
    """The comparison at the sizes that the methods choose; None with fewer than two methods without failures."""
    measure = as_metric(metric)
    name = measure.name
    complete, failed = _complete_methods(records, name)
    if len(complete) < 2:
        return None
    kept = _rows_of(records, complete)
    by_method = rows_by_method(kept, None, (name, "n_selected", "fit_seconds", "n_train", "n_test"))
    rows = [
        MethodRow(method, *(_mean(found, key) for key in (name, "n_selected", "fit_seconds")))
        for method, found in by_method.items()
    ]
    differences = _differences(kept, measure)
    choice = choose_method(
        {method: [measure.score(row[name]) for row in found] for method, found in by_method.items()},
        {row.method: row.n_selected for row in rows},
        n_train=_mean(by_method[complete[0]], "n_train"),
        n_test=_mean(by_method[complete[0]], "n_test"),
        p_values={frozenset((d.method, d.reference)): d.adjusted_p_value for d in differences},
    )
    rows.sort(key=lambda row: (row.method != choice.best, -measure.score(row.mean), row.n_selected))
    return Comparison(name, tuple(rows), differences, _scores(kept), choice, failed)


def _differences(records: Any, metric: Metric) -> tuple[Difference, ...]:
    """The differences of all pairs of methods; empty where the test folds allow no test."""
    try:
        table = columns_of(compare_methods(records, metric))
    except ValueError:
        return ()
    fields = ("method", "reference", "difference", "low", "high", "adjusted_p_value", "test")
    return tuple(Difference(*row) for row in zip(*(table[name] for name in fields), strict=True))


def _complete_methods(records: Any, metric: str) -> tuple[list[str], tuple[str, ...]]:
    columns = columns_of(records)
    state: dict[str, bool] = {}
    for name, size, value in zip(columns["method"], columns["size"], columns[metric], strict=True):
        if size is None:
            state[name] = state.get(name, True) and value is not None
    return [name for name, whole in state.items() if whole], tuple(
        n for n, whole in state.items() if not whole
    )


def _rows_of(records: Any, methods: list[str]) -> Any:
    """The rows of these methods at the sizes that they choose."""
    if hasattr(records, "iloc"):
        return records[records["method"].isin(methods) & records["size"].isna()]
    import polars as pl

    return records.filter(pl.col("method").is_in(methods) & pl.col("size").is_null())


def _mean(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _scores(records: Any) -> ScoreTable | None:
    """The score matrix of McNemar's tests; None for regression, where there are no labels."""
    columns = columns_of(records)
    if any(
        isinstance(label, dict) for fold in columns["truth"][:1] for label in fold[:1]
    ):  # times to an event
        return None
    labels = {label for fold in columns["truth"] for label in fold}
    if any(label not in labels for fold in columns["predictions"] for label in fold):
        return None
    matrix = score_matrix_of_records(records)
    return ScoreTable(
        methods=matrix.methods,
        scores=tuple(tuple(int(v) for v in row) for row in matrix.scores),
        error_rates=tuple(float(v) for v in matrix.error_rates),
        n_folds=matrix.n_folds,
    )
