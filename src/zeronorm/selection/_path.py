"""The path of a selection: the subsets that a selector visited, from which a subset of any size follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design._index import MANY, by_descending_value
from zeronorm.execution import in_threads, long_vector

TIE_TOLERANCE = 1e-10
LARGE_RATIO = 1e3  # ratios below this are compared with the tolerance of this value


Sort = Callable[[FloatArray], tuple[IntArray, FloatArray]]


def order_by_score(scores: ArrayLike, *, ratios: bool = False, sort: Sort = by_descending_value) -> IntArray:
    """Feature indices, best score first.

    Scores closer than ``TIE_TOLERANCE`` times the largest magnitude are tied and the lower index
    wins, so that rounding on another platform or backend does not change the order. ``ratios`` are scores without an
    upper bound: one feature that nearly equals the target could make all others tied. Their tolerance is
    ``TIE_TOLERANCE`` times the score itself, or times ``LARGE_RATIO`` where that is larger. ``sort`` is the sorting
    function of the design, which may be faster.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0:
        return np.empty(0, dtype=np.intp)
    by_value, descending = sort(values)
    largest = _largest_magnitude(values, descending)
    smallest = min(largest, LARGE_RATIO) if ratios else largest
    _put_ties_in_order(by_value, descending, smallest, largest)
    return by_value


def _put_ties_in_order(order: IntArray, descending: FloatArray, smallest: float, largest: float) -> None:
    """Sort the indices of tied values, which are neighbours; each is compared with the value before it."""
    tied = np.zeros(order.size + 1, dtype=bool)  # whether a value is tied with the one before it

    def compare(first: int, last: int) -> None:
        before, after = descending[first : last - 1], descending[first + 1 : last]
        with np.errstate(invalid="ignore"):  # equal infinities differ by NaN and are tied
            tied[first + 1 : last] = ~(before - after > TIE_TOLERANCE * np.clip(before, smallest, largest))

    in_threads(lambda first, last: compare(max(first - 1, 0), last), order.size)
    if not (tied[1:-1] & (order[1:] < order[:-1])).any():
        return
    in_run = np.flatnonzero(tied[:-1] | tied[1:])
    run = np.cumsum(~tied[in_run])
    n_bits = int(order.size).bit_length()
    order[in_run] = np.sort((run << n_bits) | order[in_run]) & ((1 << n_bits) - 1)


def _largest_magnitude(values: FloatArray, descending: FloatArray) -> float:
    ends = np.abs(descending[[0, -1]])
    if not np.isfinite(ends).all():
        ends = np.abs(values[np.isfinite(values)])
    return float(ends.max(initial=0.0))


@kernel
def _write_ranks(best_first: IntArray, n_chosen: int, ranking: IntArray, first: int, last: int) -> None:
    """Write rank 1 for the chosen features, then 2, 3, …"""
    for i in range(first, last):
        ranking[best_first[i]] = max(1, i + 2 - n_chosen)


def _raised(best_first: IntArray, scores: FloatArray) -> FloatArray:
    """Scores raised to the highest score of all features ranked behind; each thread first finds that of its range."""
    raised, highest, size = long_vector(scores.size), {}, scores.size

    def look(first: int, last: int) -> None:
        raised[first:last] = scores[first:last]
        highest[first] = _highest(best_first, scores, first, last) if last - first < size else -np.inf

    in_threads(look, size)
    behind, so_far = {}, -np.inf
    for first in sorted(highest, reverse=True):
        behind[first], so_far = so_far, max(so_far, highest[first])
    in_threads(lambda a, b: _raise_scores(best_first, scores, behind[a], raised, a, b), size)
    return raised


@kernel
def _highest(best_first: IntArray, scores: FloatArray, first: int, last: int) -> float:
    highest = -np.inf
    for i in range(first, last):
        highest = max(highest, scores[best_first[i]])
    return highest


@kernel
def _raise_scores(
    best_first: IntArray, scores: FloatArray, highest: float, raised: FloatArray, first: int, last: int
) -> None:
    for i in range(last - 1, first - 1, -1):
        score = scores[best_first[i]]
        if score < highest:
            raised[best_first[i]] = highest
        else:
            highest = score


@dataclass(frozen=True)
class SelectionPath:
    """The subsets a method visited, and a total order of the features.

    Parameters
    ----------
    order : ndarray of int
        All features, best first.
    subsets : tuple of ndarray or None, default=None
        The visited subsets. None when every visited subset consists of the first features of ``order`` (a
        nested path).
    visited_sizes : ndarray of int or None, default=None
        For a nested path, the sizes of the visited subsets. None means all sizes.
    objective : ndarray or None, default=None
        One value per visited subset; smaller is better.
    scores : ndarray or None, default=None
        One value per feature; larger is better.
    scale : ndarray or None, default=None
        Final scaling factors, for methods that have them.
    selected_size : int or None, default=None
        The number of features that the method itself selects.
    groups : ndarray of int or None, default=None
        Group code per feature; subsets are then unions of whole groups.
    always_keep : ndarray of int, default=empty
        Features that belong to every subset.
    covariates : ndarray of int, default=empty
        Columns that are in every model but in no subset; they come last in ``order``.
    n_iter : int, default=1
        Number of iterations.
    converged : bool, default=True
        Whether the computation converged.
    remedy : str, default=''
        What to do if it did not converge.

    Examples
    --------
    >>> from zeronorm import SelectionPath
    >>> path = SelectionPath.from_scores([0.3, 0.9, 0.1])
    >>> path.order.tolist(), path.support(2).tolist()
    ([1, 0, 2], [0, 1])
    """

    order: IntArray
    subsets: tuple[IntArray, ...] | None = None
    visited_sizes: IntArray | None = None
    objective: FloatArray | None = None
    scores: FloatArray | None = None
    scale: FloatArray | None = None
    selected_size: int | None = None
    groups: IntArray | None = None
    always_keep: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    covariates: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_iter: int = 1
    converged: bool = True
    remedy: str = ""

    # -- constructors ---------------------------------------------------------------------------

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        last: NDArray[np.bool_] | None = None,
        ratios: bool = False,
        **fields: object,
    ) -> SelectionPath:
        """Rank by score (``ratios``: see `order_by_score`); features marked in ``last`` come after all others."""
        values = np.asarray(scores, dtype=np.float64)
        order = order_by_score(values, ratios=ratios)
        path = cls(order=order, scores=values, **fields)  # type: ignore[arg-type]
        return path if last is None else path.demote(last)

    @classmethod
    def from_elimination(
        cls, eliminated: ArrayLike, *, sizes: ArrayLike | None = None, **fields: object
    ) -> SelectionPath:
        """A path from ``eliminated``, the features in the order of their removal, those never removed last."""
        order = np.asarray(eliminated, dtype=np.intp)[::-1].copy()
        visited = None if sizes is None else np.asarray(sizes, dtype=np.intp)
        return cls(order=order, visited_sizes=visited, **fields)  # type: ignore[arg-type]

    @classmethod
    def from_subsets(
        cls,
        subsets: Iterable[ArrayLike],
        *,
        n_features: int,
        tie_break: ArrayLike | None = None,
        order: ArrayLike | None = None,
        **fields: object,
    ) -> SelectionPath:
        """A path from the visited subsets, in the order of the visits.

        Without an ``order``, features are ordered by the smallest visited subset that holds them,
        then by ``tie_break`` (larger is better), then by index.
        """
        ragged = tuple(np.sort(np.asarray(s, dtype=np.intp)) for s in subsets)
        if order is None:
            first_size = np.full(n_features, n_features + 1, dtype=np.float64)
            for subset in ragged:
                if subset.size:
                    first_size[subset] = np.minimum(first_size[subset], subset.size)
            tie_rank = np.arange(n_features)
            if tie_break is not None:
                tie_rank = np.empty(n_features, dtype=np.intp)
                tie_rank[order_by_score(tie_break)] = np.arange(n_features)
            order = np.lexsort((tie_rank, first_size))
        kept = tuple(s for s in ragged)
        return cls(order=np.asarray(order, dtype=np.intp), subsets=kept, **fields)  # type: ignore[arg-type]

    # -- access ---------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        return int(self.order.size)

    @property
    def n_candidates(self) -> int:
        """The number of features that can be selected: all columns but the covariates."""
        return self.n_features - int(self.covariates.size)

    @property
    def is_nested(self) -> bool:
        return self.subsets is None

    @property
    def sizes(self) -> IntArray:
        """Sizes of the visited subsets, without repetition, ascending."""
        if self.subsets is not None:
            visited: IntArray = np.unique(np.fromiter(map(len, self.subsets), np.intp))
            return np.asarray(visited[visited >= max(1, self.always_keep.size)])
        return (
            self.whole_sizes() if self.visited_sizes is None else self._whole(np.unique(self.visited_sizes))
        )

    def whole_sizes(self) -> IntArray:
        """Sizes at which ``order`` can be cut without splitting a group, visited or not."""
        return self._whole(np.arange(1, self.n_candidates + 1))

    def visited(self, k: int) -> IntArray:
        """The visited subset of size ``k`` with the best objective, the later one on ties."""
        self._check_size(k)
        if self.subsets is None:
            if k not in self.sizes:
                raise KeyError(f"no subset of size {k} was visited; visited sizes: {_preview(self.sizes)}")
            return np.sort(self.order[:k])
        steps = [i for i, s in enumerate(self.subsets) if s.size == k]
        if not steps:
            raise KeyError(f"no subset of size {k} was visited; visited sizes: {_preview(self.sizes)}")
        if self.objective is None:
            return self.subsets[steps[-1]]
        best = min(float(self.objective[i]) for i in steps)
        return self.subsets[[i for i in steps if float(self.objective[i]) == best][-1]]

    def support(self, k: int) -> IntArray:
        """The features for size ``k`` (sorted indices), for any ``k`` from 1 to the number of candidates."""
        self._check_size(k)
        if self.subsets is None:
            return self._prefix(self.order, k)
        sizes = self.sizes
        if k in sizes:
            return self.visited(k)
        larger = sizes[sizes > k]
        if larger.size:
            return self._prefix(self._ordered(self.visited(int(larger[0]))), k)
        largest = self.visited(int(sizes[-1])) if sizes.size else np.empty(0, dtype=np.intp)
        rest = self.order[~np.isin(self.order, largest)]
        return self._prefix(np.concatenate([self._ordered(largest), rest]), k)

    def mask(self, k: int) -> NDArray[np.bool_]:
        """``support(k)`` as a boolean mask over all features."""
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.support(k)] = True
        return mask

    def position(self) -> IntArray:
        """Position of each feature in ``order``, starting at 0."""
        position = np.empty(self.n_features, dtype=np.intp)
        position[self.order] = np.arange(self.n_features)
        return position

    def ranking(self, k: int | None = None) -> IntArray:
        """1 for the features of ``support(k)``, then 2, 3, … in ``order``; without k, 1, 2, … throughout."""
        if k is None:
            return self.position() + 1
        best_first, n_chosen = self._chosen_first(k)
        ranking: IntArray = long_vector(self.n_features, np.intp)
        if self.n_features >= MANY:
            in_threads(lambda a, b: _write_ranks(best_first, n_chosen, ranking, a, b), self.n_features)
            return ranking
        rank = np.arange(2 - n_chosen, self.n_features + 2 - n_chosen)
        rank[:n_chosen] = 1
        ranking[best_first] = rank
        return ranking

    def feature_scores(self, k: int | None = None) -> FloatArray:
        """One value per feature, larger is better, in agreement with ``ranking(k)``.

        A path without scores uses positions. Scores that were measured in different rounds, such as the weight of a
        feature when it was eliminated, are raised to the highest score of all features ranked behind it.
        """
        if self.scores is None:
            return (self.n_features - self.position()).astype(np.float64)
        best_first = self.order if k is None else self._chosen_first(k)[0]
        if self.n_features >= MANY:
            return _raised(best_first, self.scores)
        agreeing = self.scores.copy()
        ordered = self.scores[best_first]
        if (ordered[:-1] >= ordered[1:]).all():
            return agreeing
        raised = np.maximum.accumulate(ordered[::-1])[::-1]
        changed = np.flatnonzero(raised != ordered)
        agreeing[best_first[changed]] = raised[changed]
        return agreeing

    def _chosen_first(self, k: int) -> tuple[IntArray, int]:
        """All features, those of ``support(k)`` first, each group in ``order``; and the size of the support."""
        support = self.support(k)
        if self.subsets is None:  # the support is the beginning of the order
            return self.order, support.size
        if np.array_equal(np.sort(self.order[: support.size]), support):
            return self.order, support.size
        chosen = np.zeros(self.n_features, dtype=bool)
        chosen[support] = True
        is_chosen = chosen[self.order]
        return np.concatenate([self.order[is_chosen], self.order[~is_chosen]]), support.size

    # -- constraints ----------------------------------------------------------------------------

    def demote(self, last: NDArray[np.bool_]) -> SelectionPath:
        """Move the marked features behind all others, keeping the order otherwise."""
        if not np.any(last):
            return self
        flags = last[self.order]
        scores = self.scores
        if scores is not None and not np.all(last):
            scores = np.where(last, np.minimum(scores, scores[~last].min()), scores)
        return replace(self, order=np.concatenate([self.order[~flags], self.order[flags]]), scores=scores)

    def constrained(self, groups: IntArray | None, always_keep: IntArray) -> SelectionPath:
        """The same path with whole groups only and with the forced features in every subset.

        A group has the position of its best member, and is in a subset if any member is.
        """
        if groups is None and always_keep.size == 0:
            return self
        forced = np.zeros(self.n_features, dtype=bool)
        forced[always_keep] = True
        if groups is not None:
            forced = np.isin(groups, groups[forced])
        order = self.order[np.argsort(~forced[self.order], kind="stable")]
        if groups is not None:
            order = _gather_groups(order, groups)
        subsets = self.subsets
        if subsets is not None:
            subsets = tuple(_whole_subset(s, forced, groups) for s in subsets)
        return replace(self, order=order, subsets=subsets, groups=groups, always_keep=np.flatnonzero(forced))

    def beside(self, covariates: IntArray) -> SelectionPath:
        """The same path where these columns are covariates, in addition to the columns it was made for."""
        if covariates.size == 0:
            return self
        n_columns = self.n_features + covariates.size
        position = np.delete(np.arange(n_columns), covariates)
        groups = None
        if self.groups is not None:  # the covariates are the last group, which no subset reaches
            groups = np.full(n_columns, int(self.groups.max()) + 1, dtype=np.intp)
            groups[position] = self.groups
        return replace(
            self,
            order=np.concatenate([position[self.order], covariates]),
            subsets=None if self.subsets is None else tuple(position[subset] for subset in self.subsets),
            scores=None
            if self.scores is None
            else _scattered(self.scores, position, n_columns, self.scores.min()),
            scale=None if self.scale is None else _scattered(self.scale, position, n_columns, 0.0),
            groups=groups,
            always_keep=position[self.always_keep],
            covariates=covariates,
        )

    def alone(self) -> SelectionPath:
        """The path of the candidates, where the covariates are the last columns."""
        if self.covariates.size == 0:
            return self
        p = self.n_candidates
        return replace(
            self,
            order=self.order[:p],
            scores=None if self.scores is None else self.scores[:p],
            scale=None if self.scale is None else self.scale[:p],
            groups=None if self.groups is None else self.groups[:p],
            covariates=self.covariates[:0],
        )

    def predictors(self, support: IntArray) -> IntArray:
        """The columns of a model on these features: the covariates too."""
        return np.union1d(support, self.covariates) if self.covariates.size else support

    # -- checks and cuts ------------------------------------------------------------------------

    def _check_size(self, k: int) -> None:
        if not 1 <= k <= self.n_candidates:
            raise ValueError(f"The size must be between 1 and {self.n_candidates} features. Got {k} instead.")
        if k < self.always_keep.size:
            raise ValueError(
                f"{self.always_keep.size} features are always kept (with their groups), more than the size "
                f"asked for. Got {k}; ask for at least {self.always_keep.size}."
            )

    def _ordered(self, subset: IntArray) -> IntArray:
        return subset[np.argsort(self.position()[subset], kind="stable")]

    def _whole(self, sizes: IntArray) -> IntArray:
        """The sizes at which ``order`` can be cut: after all forced features, and between two groups."""
        sizes = sizes[sizes >= self.always_keep.size]
        if self.groups is None:
            return sizes
        codes = self.groups[self.order]
        is_end = np.append(codes[1:] != codes[:-1], True)
        return np.asarray(sizes[is_end[sizes - 1]])

    def _prefix(self, ordered: IntArray, k: int) -> IntArray:
        """The first ``k`` of ``ordered``, reduced to whole groups."""
        if self.groups is None or k >= ordered.size:
            return np.sort(ordered[:k])
        codes = self.groups[ordered]
        cut = k
        while cut > 0 and codes[cut - 1] == codes[cut]:
            cut -= 1
        if cut == 0:
            first = int(np.count_nonzero(self.groups == codes[0]))
            raise ValueError(
                f"No whole feature group fits into {k} features: the first group has {first}. "
                f"Ask for at least {first} features."
            )
        return np.sort(ordered[:cut])


def _scattered(values: FloatArray, position: IntArray, size: int, elsewhere: float) -> FloatArray:
    found = np.full(size, elsewhere)
    found[position] = values
    return found


def _gather_groups(order: IntArray, groups: IntArray) -> IntArray:
    """The order with the members of each group together, at the position of the best member."""
    n_groups = int(groups.max()) + 1
    first_position = np.full(n_groups, order.size, dtype=np.intp)
    np.minimum.at(first_position, groups[order], np.arange(order.size))
    return order[np.argsort(first_position[groups[order]], kind="stable")]


def _whole_subset(subset: IntArray, forced: NDArray[np.bool_], groups: IntArray | None) -> IntArray:
    mask = forced.copy()
    mask[subset] = True
    if groups is not None:
        mask = np.isin(groups, groups[mask])
    return np.flatnonzero(mask)


def _preview(sizes: Sequence[int] | IntArray) -> str:
    shown = ", ".join(str(int(s)) for s in sizes[:10])
    return shown + (", …" if len(sizes) > 10 else "")
