"""The fast correlation-based filter."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._column_information import (
    AS_THEY_ARE,
    SUPERVISED,
    between_over_within,
    code_columns,
    relevances,
    stored_blocks,
    uncertainties,
)
from zeronorm.registry import register
from zeronorm.selection._kinds import exceptions, number
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector

Codes = NDArray[np.int16]

_MOST_VALUES = int(np.iinfo(np.int16).max)
_AT_A_TIME = {"most_columns": 256, "fewest_columns": 4, "values_at_a_time": 1 << 20}
_DECIMALS = 12  # uncertainties that agree to this many decimals are tied


@register(
    "fcbf",
    family="filters",
    tasks=("binary", "multiclass"),
    reference="Yu & Liu 2003; Gadat & Younes 2007, Table 2",
    cost="n p log n for the bins, then n times relevant times kept features",
    oracle="plain loops over features and a recursive search of the bins",
    avoid="features that act only together; few samples, whose bins are coarse",
    test_params=({}, {"bins": 4}),
)
class FCBF(BaseSelector):
    r"""Keep relevant features that no better feature makes redundant.

    Relevance and redundancy are measured by the symmetrical uncertainty of two discrete variables,

    .. math:: SU(u, v) = 2\,\frac{H(u) + H(v) - H(u, v)}{H(u) + H(v)} \in [0, 1].

    Features with :math:`SU(x_k, y)` above ``threshold`` are visited from the best on; each removes all later ones with
    :math:`SU(x_k, x_l) \ge SU(x_l, y)`. The method chooses the number of features itself. The path holds the kept
    features first, then the removed ones, then the irrelevant ones, each group ordered by relevance; of equally
    relevant features the one with the better Fisher score comes first. Forced features come before all others and can
    remove others too.

    Quick on very wide data with many copies of the same information. It looks at one feature, or one pair,
    at a time: features that matter only together are missed. Memory: two bytes per sample and relevant
    feature.

    Parameters
    ----------
    n_features_to_select
        None: the features that no other feature makes redundant.
    threshold
        The score is the symmetrical uncertainty with the target.
    bins
        "mdl": cuts that carry information about the class, as many as the minimum description length rule accepts;
        a column without a cut is irrelevant. A number: that many bins of about equal counts. None: the values are
        categories already.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FCBF
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> X[:, 2] = X[:, 0]  # a copy, which adds nothing
    >>> selector = FCBF().fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(
        threshold=(number(least=0, below=1), "uncertainties lie between 0 and 1")
    )

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        threshold: float = 0.0,
        bins: int | Literal["mdl"] | None = "mdl",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.bins = bins
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        forced = np.zeros(problem.n_features, dtype=bool)
        forced[problem.always_keep] = True
        relevance, candidates, codes, n_codes = self._relevant_codes(problem, forced)
        stats = problem.design.column_stats(problem.y)
        ranks = _ranks(relevance, between_over_within(stats))
        order = np.lexsort((ranks[candidates], ~forced[candidates]))
        candidates, codes, n_codes = candidates[order], codes[order], n_codes[order]
        kept = _keep_predominant(problem, relevance[candidates], codes, n_codes, forced[candidates])
        rest = np.argsort(ranks)
        rest = rest[~np.isin(rest, candidates)]
        order = np.concatenate([candidates[kept], candidates[~kept], rest])
        path = SelectionPath(order=order, scores=relevance, selected_size=max(1, int(kept.sum())))
        return path.demote(stats.is_constant(problem.design.dtype))

    def _relevant_codes(
        self, problem: Problem, forced: NDArray[np.bool_]
    ) -> tuple[FloatArray, IntArray, Codes, IntArray]:
        """Relevance of all features; indices, codes and numbers of values of those that are relevant."""
        labels, bins = problem.y.astype(np.intp), self._bin_rule()
        class_sizes = np.bincount(labels, minlength=problem.n_classes)
        relevance, n_values = np.empty(problem.n_features), np.empty(problem.n_features, dtype=np.intp)
        found: list[tuple[IntArray, Codes]] = []
        for columns, block in stored_blocks(problem.design, **_AT_A_TIME):
            relevances(*block, labels, class_sizes, bins, relevance[columns], n_values[columns])
            if bins == AS_THEY_ARE:
                _require_few_values(n_values[columns], columns.start)
            relevant = np.flatnonzero((relevance[columns] > self.threshold) | forced[columns])
            codes = np.empty((relevant.size, problem.n_samples), dtype=np.int16)
            code_columns(*block, labels, class_sizes, bins, relevant, codes)
            found.append((columns.start + relevant, codes))
        index, kept_codes = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return relevance, index, kept_codes, n_values[index]

    def _bin_rule(self) -> int:
        if self.bins is None:
            return AS_THEY_ARE
        return SUPERVISED if self.bins == "mdl" else int(self.bins)


def _ranks(relevance: FloatArray, tie_break: FloatArray) -> IntArray:
    """Ranks by relevance; ties, frequent with few bins, are broken by the second score."""
    second = np.empty(relevance.size, dtype=np.intp)
    second[order_by_score(tie_break)] = np.arange(relevance.size)
    ranks = np.empty_like(second)
    ranks[np.lexsort((second, -np.round(relevance, _DECIMALS)))] = np.arange(relevance.size)
    return ranks


def _keep_predominant(
    problem: Problem, relevance: FloatArray, codes: Codes, n_codes: IntArray, forced: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mask of the kept features, given in descending relevance: no kept feature before them makes them redundant."""
    kept = np.ones(relevance.size, dtype=bool)
    with problem.progress.task("FCBF", relevance.size) as advance:
        for i in range(relevance.size):
            later = i + 1 + np.flatnonzero(kept[i + 1 :] & ~forced[i + 1 :])
            if kept[i] and later.size:
                shared = np.empty(later.size)
                uncertainties(codes[i], int(n_codes[i]), codes[later], n_codes[later], shared)
                kept[later] = shared < relevance[later] - 10.0**-_DECIMALS
            advance(1)
    return kept


def _require_few_values(n_values: IntArray, first_column: int) -> None:
    if n_values.max() > _MOST_VALUES:
        index = int(np.argmax(n_values > _MOST_VALUES))
        raise ValueError(
            f"FCBF with bins=None takes at most {_MOST_VALUES} different values in a column. Got "
            f"{n_values[index]} in column {first_column + index}; use bins='mdl' or a number of bins."
        )
