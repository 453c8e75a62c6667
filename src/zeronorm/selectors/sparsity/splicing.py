"""Best subsets of every size: a beam over the sizes, splicing and swaps at each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.path import order_by_score
from zeronorm.selectors.progress import Advance
from zeronorm.selectors.sparsity.logistic_subsets import Exchanges, LogisticSubsets, SubsetFit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

IMPROVEMENT = 1e-9  # relative gain that counts
BEAM_WIDTH = 16  # subsets of one size from which the neighbouring sizes are built
TRIED = 20  # exact fits per size when it is built from a neighbouring size
SPLICED = 4  # features exchanged at once
ALL_SWAPPED = 64  # up to here all swaps are tried exactly
SWAPPED = 8  # beyond, this many, the most promising first
SCREENED = 100  # candidates by the slope of the loss
TAKEN_OVER = 60  # candidates of the best subset of a beam that the others look at
NEIGHBOURS = 10  # candidates by correlation, for each feature of a subset
AT_ONCE = 6  # features whose neighbours one pass over the data finds
FEW_FEATURES = 200  # up to here all features are candidates
STORED = 1000  # columns kept in memory, or a share of all
STORED_SHARE = 1 / 8
PASSES = 10


class SubsetSearch:
    """Searches subsets of ``eligible`` features that hold all ``forced`` ones.

    The sizes are visited upwards and downwards until no best subset changes. Each size keeps a beam of
    subsets, also such as are no local optima: what is second best at one size often leads to the best at
    the next. The best of a beam is improved by splicing (the weakest features against the most
    promising others) and by swaps, whose effect on the quadratic model of the loss is known for all pairs.

    Parameters
    ----------
    model : the objective
    eligible : features that may be chosen, sorted, without the forced ones
    forced : features in every subset, sorted
    variance : weighted variance of each feature, for screening
    """

    def __init__(
        self, model: LogisticSubsets, eligible: IntArray, forced: IntArray, variance: FloatArray
    ) -> None:
        self.model = model
        self.eligible = eligible
        self.forced = forced
        self.variance = variance
        self.beams: dict[int, list[SubsetFit]] = {forced.size: [model.fit(forced)]}
        self._exchanges: dict[bytes, Exchanges] = {}
        self._neighbours: dict[int, IntArray] = {}
        self._searched: set[bytes] = set()
        self._used: set[tuple[bytes, int]] = set()

    @property
    def best(self) -> dict[int, SubsetFit]:
        """The best subset found of each size."""
        return {size: beam[0] for size, beam in sorted(self.beams.items())}

    def run(self, largest: int, advance: Advance) -> int:
        """Search all sizes up to ``largest``; returns the number of passes."""
        smallest = self.forced.size
        largest = min(largest, smallest + self.eligible.size)
        upwards = range(smallest + 1, largest + 1)
        downwards = range(largest - 1, smallest, -1)
        for size in upwards:
            self._visit(size, size - 1)
            advance(1)
        for n_passes in range(1, PASSES):
            came_from = 1 if n_passes % 2 else -1
            sizes = downwards if n_passes % 2 else upwards
            changed = [self._visit(size, size + came_from) for size in sizes]
            if not any(changed):
                break
        return n_passes + 1 if largest > smallest else 1

    # -- from size to size ----------------------------------------------------------------------

    def _visit(self, size: int, source: int) -> bool:
        """Build subsets from the beam of a neighbouring size, improve the best; True when it changed."""
        before = self.beams[size][0] if size in self.beams else None
        tried: set[bytes] = set()
        for _, base, columns in sorted(self._proposals(size, source), key=lambda proposal: proposal[0]):
            key = columns.tobytes()
            if key not in tried and len(tried) < TRIED:
                tried.add(key)
                self._enter(self.model.fit_below(self._beam_limit(size), columns, base))
        self._improve(self.beams[size][0])
        self._save_memory(size)
        return before is not None and self.beams[size][0] is not before

    def _proposals(self, size: int, source: int) -> Iterator[tuple[float, SubsetFit, IntArray]]:
        """Predicted objective, where it comes from, and subset."""
        for base in self.beams[source]:
            if (base.key, size) in self._used:
                continue
            self._used.add((base.key, size))
            exchanges = self._exchanges_of(base)
            if size > source:
                for j in order_by_score(exchanges.gain)[:TRIED]:
                    columns = np.sort(np.append(base.columns, exchanges.candidates[j]))
                    yield base.objective - exchanges.gain[j], base, columns
            else:
                for i in self._removable(base, exchanges)[:TRIED]:
                    yield base.objective + exchanges.loss[i], base, np.delete(base.columns, i)

    def _removable(self, fit: SubsetFit, exchanges: Exchanges) -> IntArray:
        """Places in the subset, the least needed feature first, without the forced ones."""
        order = order_by_score(-exchanges.loss)
        return order[~np.isin(fit.columns[order], self.forced)] if self.forced.size else order

    def _beam_limit(self, size: int) -> float:
        beam = self.beams.get(size, [])
        return beam[-1].objective if len(beam) == BEAM_WIDTH else np.inf

    def _enter(self, fit: SubsetFit | None) -> None:
        if fit is None:
            return
        beam = self.beams.setdefault(fit.size, [])
        if any(known.key == fit.key for known in beam):
            return
        # Equally good subsets keep the order in which they were found, whatever the rounding.
        place = sum(known.objective * (1.0 - IMPROVEMENT) <= fit.objective for known in beam)
        beam.insert(place, fit)
        del beam[BEAM_WIDTH:]

    # -- at one size ----------------------------------------------------------------------------

    def _improve(self, fit: SubsetFit | None) -> None:
        """Splice and swap until nothing improves."""
        while fit is not None and fit.key not in self._searched:
            self._searched.add(fit.key)
            exchanges = self._exchanges_of(fit)
            if exchanges.swap_gain is None:
                exchanges = self._exchanges[fit.key] = self.model.exchanges(fit, self._candidates(fit))
            goal = fit.objective * (1.0 - IMPROVEMENT)
            better = (
                self.model.fit_below(goal, columns, fit)
                for moves in (self._splices(fit, exchanges), self._swaps(fit, exchanges))
                for columns in moves
            )
            fit = next((found for found in better if found is not None), None)
            self._enter(fit)

    def _splices(self, fit: SubsetFit, exchanges: Exchanges) -> Iterable[IntArray]:
        leaving = self._removable(fit, exchanges)
        entering = order_by_score(exchanges.gain)
        for count in range(min(SPLICED, leaving.size, entering.size), 1, -1):
            kept = np.delete(fit.columns, leaving[:count])
            yield np.sort(np.append(kept, exchanges.candidates[entering[:count]]))

    def _swaps(self, fit: SubsetFit, exchanges: Exchanges) -> Iterable[IntArray]:
        gain = exchanges.swap_gain
        assert gain is not None
        shape = gain.shape
        if self.forced.size:
            gain = np.where(np.isin(fit.columns, self.forced), -np.inf, gain)
        gain = gain.ravel()
        count = gain.size if gain.size <= ALL_SWAPPED else SWAPPED
        if count == 0:
            return
        best = np.argpartition(-gain, count - 1)[:count]
        for pair in best[np.lexsort((best, -gain[best]))]:
            candidate, leaving = np.unravel_index(pair, shape)
            if np.isfinite(gain[pair]):
                yield np.sort(np.append(np.delete(fit.columns, leaving), exchanges.candidates[candidate]))

    # -- candidates -----------------------------------------------------------------------------

    def _exchanges_of(self, fit: SubsetFit) -> Exchanges:
        if fit.key not in self._exchanges:
            swaps = self.eligible.size <= FEW_FEATURES or self._leader(fit) is None
            self._exchanges[fit.key] = self.model.exchanges(fit, self._candidates(fit), swaps=swaps)
        return self._exchanges[fit.key]

    def _candidates(self, fit: SubsetFit) -> IntArray:
        """Features worth a closer look: steep slope of the loss, or similar to a feature of the subset.

        Other subsets of a beam share most features with its best, and take over what was promising there.
        """
        if self.eligible.size <= FEW_FEATURES:
            return np.setdiff1d(self.eligible, fit.columns, assume_unique=True)
        leader = self._leader(fit)
        if leader is not None:
            known = self._exchanges[leader.key]
            promising = known.candidates[order_by_score(known.gain)[:TAKEN_OVER]]
            return np.setdiff1d(np.append(promising, leader.columns), fit.columns)
        steepest = self._steepest(fit)
        self._find_neighbours(fit.columns, steepest)
        found = [steepest, *(self._neighbours[column] for column in fit.columns.tolist())]
        return np.setdiff1d(np.concatenate(found), fit.columns)

    def _leader(self, fit: SubsetFit) -> SubsetFit | None:
        """The best of the beam that a subset belongs to, if that is another one and was looked at."""
        beam = self.beams.get(fit.size, [])
        return beam[0] if beam and beam[0].key != fit.key and beam[0].key in self._exchanges else None

    def _steepest(self, fit: SubsetFit) -> IntArray:
        """The steepest first."""
        slope_sq = np.zeros(self.variance.size)
        for residual in self.model.residuals(fit)[0]:
            slope_sq += self.model.design.transpose_dot(residual) ** 2
        return self._strongest(slope_sq, SCREENED + fit.size)

    def _find_neighbours(self, columns: IntArray, soon: IntArray) -> None:
        """Features similar to these columns, and, as one pass does for several, to some that may follow."""
        missing = [column for column in columns.tolist() if column not in self._neighbours]
        if not missing:
            return
        more = [
            column for column in soon.tolist() if column not in self._neighbours and column not in missing
        ]
        batch = np.asarray(missing + more[: max(0, AT_ONCE - len(missing))], dtype=np.intp)
        values, weight = self.model.rows(batch), self.model.weight
        centred = weight * (values - (values @ weight / weight.sum())[:, None])
        covariance = self.model.design.transpose_dot(np.ascontiguousarray(centred.T))
        for column, covariances in zip(batch.tolist(), covariance.T, strict=True):
            self._neighbours[column] = self._strongest(covariances**2, NEIGHBOURS + 1)

    def _strongest(self, slope_sq: FloatArray, count: int) -> IntArray:
        values = slope_sq[self.eligible] / self.variance[self.eligible]
        count = min(count, values.size)
        chosen = np.argpartition(-values, count - 1)[:count]
        return self.eligible[chosen[np.lexsort((chosen, -values[chosen]))]]

    def _save_memory(self, size: int) -> None:
        """Keep the exchanges of the beams alone, and few columns."""
        alive = {fit.key for beam in self.beams.values() for fit in beam}
        self._exchanges = {key: value for key, value in self._exchanges.items() if key in alive}
        if self.model.n_stored > max(STORED, int(STORED_SHARE * self.variance.size)):
            self.model.forget(np.unique(np.concatenate([fit.columns for fit in self.beams[size]])))
