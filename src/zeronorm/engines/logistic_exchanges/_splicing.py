"""Best subsets of every size by beam search over the sizes, with splicing and swaps at each size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.logistic_exchanges._candidates import Candidates
from zeronorm.engines.logistic_exchanges._exchanges import Additions, QuadraticModel, Removals, without
from zeronorm.engines.logistic_exchanges._screening import StrongestFeatures
from zeronorm.engines.logistic_exchanges._subsets import SubsetFit, Subsets
from zeronorm.selection._path import order_by_score
from zeronorm.selection._problem import Advance

Proposal = tuple[IntArray, Callable[[], FloatArray]]  # a subset, and a function that gives starting weights

IMPROVEMENT = 1e-9  # relative gain that counts as an improvement
BEAM_PER_FEATURE = 3  # subsets of one size from which the neighbouring sizes are built,
NARROWEST, WIDEST = 8, 32  # at least and at most; also the number of exact fits tried
SPLICED = 4  # features exchanged at once
ALL_SWAPPED = 64  # up to this number all swaps are tried exactly
SWAPPED = 8  # beyond it, this many, the most promising first
SCREENED = 100  # candidates by the gradient of the loss
TAKEN_OVER = 60  # candidates of the best subset of a beam that the others use too
LOOKED_AT = 20  # those of them with the largest gradients, whose gain is predicted
NEIGHBOURS = 10  # candidates by correlation with each feature of a subset
BEYOND = 3  # sizes above the largest requested, so that it is also reached from above
FEW_FEATURES = 200  # up to this number all features are candidates
STORED = 1000  # columns kept in memory, or a share of all
STORED_SHARE = 1 / 8
# With many samples fewer columns, but at least those that one size needs.
FEWEST_STORED, STORED_BYTES = 32, 1 << 24
PASSES = 10
MANY_SAMPLES = 100_000  # from this number on a subsample is searched first,
PART_OF_SAMPLES = 25_000  # of about this size,
NARROWEST_AFTER, WIDEST_AFTER = 2, 4  # and its subsets and their neighbours are scored on all samples

Beams = dict[int, list[SubsetFit]]


def best_subsets(model: Subsets, eligible: IntArray, forced: IntArray, variance: FloatArray) -> SubsetSearch:
    """Create the search for a problem; with many samples, a wide search in a subsample guides a narrow one in all.

    The subsample has equally many samples of each class, or all there are, with weights that keep the class totals.
    """
    if model.design.n_samples < MANY_SAMPLES:
        return SubsetSearch(model, eligible, forced, variance)
    part = model.part(PART_OF_SAMPLES)
    stats = part.design.column_stats(sample_weight=part.weight)
    vary = ~stats.is_constant(part.design.dtype)
    in_part = SubsetSearch(part, eligible[vary[eligible]], forced, np.where(vary, stats.variance, 1.0))
    return SubsetSearch(model, eligible, forced, variance, in_part)


class SubsetSearch:
    """Searches for the best subsets of ``eligible`` features that contain all ``forced`` ones.

    The sizes are visited upwards, to a few beyond the largest requested, and downwards, until no best
    subset changes. Each size keeps a beam of subsets, including some that are not local optima: the second best
    at one size often leads to the best at the next. The best of a beam is improved by splicing (exchanging the
    weakest features for the most promising others) and by swaps, whose effect on the quadratic model of the
    loss is known for all pairs.

    Parameters
    ----------
    model : the objective
    eligible : features that may be chosen, sorted, without the forced ones
    forced : features in every subset, sorted
    variance : weighted variance of each feature, for screening
    in_part : the search in a subsample, whose subsets this one starts with
    """

    def __init__(
        self,
        model: Subsets,
        eligible: IntArray,
        forced: IntArray,
        variance: FloatArray,
        in_part: SubsetSearch | None = None,
    ) -> None:
        self.model = model
        self.eligible = eligible
        self.forced = forced
        self.variance = variance
        self.in_part = in_part
        self.beams: dict[int, list[SubsetFit]] = {forced.size: [model.fit(forced)]}
        self._strongest = StrongestFeatures(model, eligible, variance)
        self._known_removals: dict[bytes, Removals] = {}
        self._promising: dict[bytes, IntArray] = {}
        self._neighbours: dict[int, IntArray] = {}
        self._searched: set[bytes] = set()
        self._used: set[tuple[bytes, int]] = set()

    def run(self, largest: int, advance: Advance) -> tuple[list[SubsetFit], int]:
        """The best subset found of each size up to ``largest``, and the number of passes over the sizes."""
        if self.in_part is not None:
            self.in_part.run(largest, lambda _: None)
            self.in_part.model.forget(np.empty(0, dtype=np.intp))
        smallest = self.forced.size
        largest = min(largest, smallest + self.eligible.size)
        n_passes = self._pass_over_sizes(smallest, largest, advance) if largest > smallest else 1
        return [self.beams[size][0] for size in range(smallest, max(smallest, largest) + 1)], n_passes

    def _pass_over_sizes(self, smallest: int, largest: int, advance: Advance) -> int:
        turn = min(largest + BEYOND, smallest + self.eligible.size)
        upwards = range(smallest + 1, turn + 1)
        downwards = range(turn - 1, smallest, -1)
        self._improve(self.beams[smallest][0])
        for size in upwards:
            self._visit(size, size - 1)
            advance(int(size <= largest))
        for n_passes in range(2, PASSES + 1):
            came_from = 1 if n_passes % 2 == 0 else -1
            sizes = downwards if n_passes % 2 == 0 else upwards
            changed = [self._visit(size, size + came_from) and size <= largest for size in sizes]
            if not any(changed):
                break
        return n_passes

    # -- from one size to the next --------------------------------------------------------------

    def _visit(self, size: int, source: int) -> bool:
        """Build subsets from the beam of a neighbouring size and improve the best; True when it changed."""
        before = self.beams[size][0] if size in self.beams else None
        if before is None and self.in_part is not None:
            for found in self.in_part.beams.get(size, [])[: self._beam_width(size)]:
                self._enter(self.model.fit_below(self._beam_limit(size), found.columns, found.coef.copy()))
        bases = [base for base in self.beams[source] if (base.key, size) not in self._used]
        self._used.update((base.key, size) for base in bases)
        tried: set[bytes] = set()
        for columns, start in self._additions(bases) if size > source else self._removals(bases):
            key = columns.tobytes()
            if key not in tried:
                tried.add(key)
                self._enter(self.model.fit_below(self._beam_limit(size), columns, start()))
                if len(tried) == self._beam_width(size):
                    break
        self._improve(self.beams[size][0])
        self._save_memory(size)
        return before is not None and self.beams[size][0] is not before

    def _additions(self, bases: list[SubsetFit]) -> Iterator[Proposal]:
        """Subsets with one feature more, the smallest predicted objective first."""
        if not bases:
            return
        candidates = Candidates.of(self.model, self._candidates_of_beam(bases[0].size))
        few = self.eligible.size <= FEW_FEATURES
        found: list[Additions] = []
        for base in bases:
            quadratic = QuadraticModel(self.model, base)
            self._known_removals[base.key] = quadratic.removals()
            found.append(quadratic.additions(candidates, None if few else LOOKED_AT))
        predicted = [base.objective - additions.gain for base, additions in zip(bases, found, strict=True)]
        for b, j in _smallest_first(predicted):
            columns = np.sort(np.append(bases[b].columns, found[b].columns[j]))
            yield columns, partial(found[b].start, bases[b], j)

    def _removals(self, bases: list[SubsetFit]) -> Iterator[Proposal]:
        """Subsets with one feature less, the smallest predicted objective first; forced ones are kept."""
        found = [self._removals_from(base) for base in bases]
        predicted = [
            np.where(self._is_forced(base), np.inf, base.objective + removals.loss)
            for base, removals in zip(bases, found, strict=True)
        ]
        for b, i in _smallest_first(predicted):
            if np.isfinite(predicted[b][i]):
                yield without(bases[b].columns, i), partial(found[b].start, bases[b], i)

    def _removals_from(self, fit: SubsetFit) -> Removals:
        if fit.key not in self._known_removals:
            self._known_removals[fit.key] = QuadraticModel(self.model, fit).removals()
        return self._known_removals[fit.key]

    def _is_forced(self, fit: SubsetFit) -> NDArray[np.bool_]:
        return np.isin(fit.columns, self.forced) if self.forced.size else np.zeros(fit.size, dtype=bool)

    def _beam_width(self, size: int) -> int:
        """Width of the beam, proportional to the size within limits; narrower after a search in a subsample."""
        least, most = (NARROWEST, WIDEST) if self.in_part is None else (NARROWEST_AFTER, WIDEST_AFTER)
        return min(max(BEAM_PER_FEATURE * size, least), most)

    def _beam_limit(self, size: int) -> float:
        beam = self.beams.get(size, [])
        return beam[-1].objective if len(beam) == self._beam_width(size) else np.inf

    def _enter(self, fit: SubsetFit | None) -> None:
        if fit is None:
            return
        beam = self.beams.setdefault(fit.size, [])
        if fit.key in [known.key for known in beam]:
            return
        # Equally good subsets stay in the order in which they were found, regardless of rounding.
        index = len(beam)
        while index and beam[index - 1].objective * (1.0 - IMPROVEMENT) > fit.objective:
            index -= 1
        beam.insert(index, fit)
        del beam[self._beam_width(fit.size) :]

    # -- at one size ----------------------------------------------------------------------------

    def _improve(self, fit: SubsetFit | None) -> None:
        """Splice and swap until the objective no longer improves."""
        while fit is not None and fit.key not in self._searched:
            self._searched.add(fit.key)
            candidates = Candidates.of(self.model, self._candidates(fit))
            quadratic = QuadraticModel(self.model, fit)
            gain = quadratic.additions(candidates).gain
            promising = candidates.columns[order_by_score(gain)]
            self._promising[fit.key] = promising
            moves = chain(
                self._splices(fit, quadratic.removals().loss, promising),
                self._swaps(fit, quadratic.swap_gains(candidates), candidates.columns),
            )
            goal = fit.objective * (1.0 - IMPROVEMENT)
            better = (self.model.fit_below(goal, columns, fit.start_on(columns)) for columns in moves)
            fit = next((found for found in better if found is not None), None)
            self._enter(fit)

    def _splices(self, fit: SubsetFit, loss: FloatArray, promising: IntArray) -> Iterator[IntArray]:
        """Exchange the weakest features for the most promising candidates, several at once."""
        order = order_by_score(-loss)
        leaving = order[~self._is_forced(fit)[order]]
        for count in range(min(SPLICED, leaving.size, promising.size), 1, -1):
            yield np.sort(np.append(np.delete(fit.columns, leaving[:count]), promising[:count]))

    def _swaps(self, fit: SubsetFit, gain: FloatArray, candidates: IntArray) -> Iterator[IntArray]:
        """Swap one feature for another; ``gain`` is predicted for [candidate, feature of the fit]."""
        shape = gain.shape
        gain = np.where(self._is_forced(fit), -np.inf, gain).ravel()
        count = gain.size if gain.size <= ALL_SWAPPED else SWAPPED
        if count == 0:
            return
        best = np.argpartition(-gain, count - 1)[:count]
        for pair in best[np.lexsort((best, -gain[best]))]:
            entering, leaving = np.unravel_index(pair, shape)
            if np.isfinite(gain[pair]):
                yield np.sort(np.append(without(fit.columns, leaving), candidates[entering]))

    # -- candidates -----------------------------------------------------------------------------

    def _candidates_of_beam(self, size: int) -> IntArray:
        """Candidates for a subset of a beam; it takes over those of the best, with which it shares most features."""
        best = self.beams[size][0]
        if self.eligible.size <= FEW_FEATURES:
            return self.eligible
        promising = self._promising.get(best.key)
        if promising is None:
            promising = self._candidates(best)
        return np.unique(np.concatenate([promising[:TAKEN_OVER], best.columns]))

    def _candidates(self, fit: SubsetFit) -> IntArray:
        """Features with a large gradient of the loss, or correlated with a feature of the subset."""
        if self.eligible.size <= FEW_FEATURES:
            return np.setdiff1d(self.eligible, fit.columns, assume_unique=True)
        residuals = self.model.residuals(fit, self.model.rows_and_ones(fit.columns))
        missing = np.asarray([c for c in fit.columns.tolist() if c not in self._neighbours], dtype=np.intp)
        queries = [(residuals, SCREENED + fit.size)]
        queries += [(vector[None], NEIGHBOURS + 1) for vector in self._centred(missing)]
        steepest, *found = self._strongest.search(queries)
        self._neighbours.update(zip(missing.tolist(), found, strict=True))
        similar = [self._neighbours[column] for column in fit.columns.tolist()]
        return np.setdiff1d(np.concatenate([steepest, *similar]), fit.columns)

    def _centred(self, columns: IntArray) -> FloatArray:
        """Centred columns times the sample weights, one per row."""
        values, weight = self.model.rows(columns), self.model.weight
        return np.asarray(weight * (values - (values @ weight / weight.sum())[:, None]))

    def _save_memory(self, size: int) -> None:
        """Free what is stored for subsets outside the beams, and most columns."""
        active = {fit.key for beam in self.beams.values() for fit in beam}
        self._known_removals = {key: known for key, known in self._known_removals.items() if key in active}
        self._promising = {key: known for key, known in self._promising.items() if key in active}
        fitting = max(FEWEST_STORED, STORED_BYTES // (8 * self.model.design.n_samples))
        if self.model.n_stored > min(max(STORED, int(STORED_SHARE * self.variance.size)), fitting):
            self.model.forget(np.unique(np.concatenate([fit.columns for fit in self.beams[size]])))


def _smallest_first(values: list[FloatArray]) -> Iterator[tuple[int, int]]:
    """Yield (index of an array, index of a value in it) in ascending order of all values."""
    if values:
        ends = np.cumsum([array.size for array in values])
        order = order_by_score(-np.concatenate(values))
        arrays = np.searchsorted(ends, order, side="right")
        starts = ends - [array.size for array in values]
        yield from zip(arrays.tolist(), (order - starts[arrays]).tolist(), strict=True)
