r"""The best dual bound for a family of subsets, from the convex relaxation over their indicators.

The relaxation (Xie & Deng 2020; Hazimeh, Mazumder & Saab 2022) is

.. math:: \min_{w, b, z}\ \tfrac12 \sum_j \frac{w_j^2}{z_j} + \sum_i C_i L(w \cdot x_i + b, y_i), \qquad
          0 \le z_j \le 1,\ \sum_j z_j \le k,

and its dual is the maximum over α of the bound in ``_bounds``. It is minimised over the few columns that are in use:
the loss is replaced by its quadratic model (Newton's method), on which coordinate descent finds the weights, with a
multiplier λ for the number of features. The decision values give α, and one pass over all columns gives the bound and
the columns that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._chunked import DEFAULT_MEMORY_BUDGET
from zeronorm.engines.certificates._bounds import CompetingUnits, DualBound, Objective, Units
from zeronorm.engines.certificates._columns import ColumnsInUse
from zeronorm.engines.certificates._conjugates import DualLoss, SquaredError
from zeronorm.engines.certificates._kernels import descend_at_size, shares

FEWEST_ADDED = 30  # units that join the columns in use after a pass over the data
VIOLATION = 3e-3  # relative excess of a value over the threshold that is left alone
MOST_ROUNDS = 30  # passes over the data
MOST_NEWTON_STEPS = 25  # between two passes
HALVINGS = 30
BIAS_DOUBLINGS, BIAS_HALVINGS = 6, 50
PRECISION = 1e-8  # of the weights on a quadratic model, in its value relative to the objective
SIZE_SLACK = 1e-2  # features by which the relaxed size may differ from the size asked for
UNDECIDED = 0.1  # a relaxation ends within this share of what its bound lacks to the cutoff
NEWTON_GAIN = 1e-4  # relative decrease at which Newton's method ends
WIDTHS = (
    2.0,
    1.0,
    0.5,
    0.3,
    0.2,
    0.1,
)  # over which the kink of the hinge loss is rounded, from round to round
FLAT = 1e-2  # least curvature of a loss in the quadratic model, relative to the largest possible


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The solution of a relaxation.

    ``units`` are those in use, with the indicators ``z``; ``weights`` (features × models) belong to ``columns``.
    """

    bound: float
    dual: DualBound
    units: IntArray
    z: FloatArray
    columns: IntArray
    weights: FloatArray
    bias: FloatArray
    multiplier: float
    n_rounds: int


@dataclass(frozen=True, eq=False)
class Start:
    """Where a relaxation starts: weights of some columns, the units to use, a multiplier."""

    units: IntArray
    columns: IntArray
    weights: FloatArray
    bias: FloatArray
    multiplier: float
    alpha: FloatArray

    @classmethod
    def at(cls, solution: Relaxed) -> Start:
        """Start from the solution of a similar relaxation."""
        used = solution.units[solution.z > 0.0]
        return cls(
            used, solution.columns, solution.weights, solution.bias, solution.multiplier, solution.dual.alpha
        )


class Relaxation:
    """Solves relaxations of one objective for families of subsets.

    Parameters
    ----------
    objective : what is minimised
    units : the features, or groups of them
    deadline : a function that is true when no time is left
    """

    def __init__(
        self, objective: Objective, units: Units, deadline: Callable[[], bool] = lambda: False
    ) -> None:
        self.objective = objective
        self.units = units
        self.deadline = deadline
        self.store = ColumnsInUse(objective)
        self.n_passes = 0
        self.was_interrupted = False
        self._remaining: tuple[IntArray, Design] | None = None

    def begin(self, deadline: Callable[[], bool]) -> None:
        """Consider all columns again, for another search, which ends at this deadline."""
        self._remaining, self.deadline, self.was_interrupted = None, deadline, False

    @property
    def must_end(self) -> bool:
        """Whether no time is left, or Ctrl-C was pressed."""
        return self.was_interrupted or self.deadline()

    def restrict(self, units: IntArray) -> None:
        """Consider only these units from now on; their columns are kept together for the passes over the data.

        While they would take more memory than blocks of data on disk may, all columns are considered.
        """
        columns = self.units.columns(units)
        if 8 * self.objective.design.n_samples * columns.size > DEFAULT_MEMORY_BUDGET:
            return
        if self._remaining is None or columns.size < 0.7 * self._remaining[0].size:
            self._remaining = (columns, self.objective.design.take(columns).in_memory())

    def bound_at(self, alpha: FloatArray) -> DualBound:
        """The bound at the feasible point near ``alpha``; one pass over the remaining columns."""
        self.n_passes += 1
        if self._remaining is None:
            return DualBound.at(self.objective, self.units, alpha)
        columns, design = self._remaining

        def products(alpha: FloatArray) -> FloatArray:
            q = np.zeros(self.units.code.size)
            q[columns] = self.objective.squared_products(alpha, columns, design)
            return self.units.gains(q, self.objective.max_weight)

        return DualBound.from_products(self.objective, alpha, products)

    def first_start(self, candidates: CompetingUnits, bias: FloatArray) -> Start:
        """Start from the units with the largest effect on the model without features."""
        decisions = np.broadcast_to(bias, self.objective.targets.shape)
        at_zero = self.bound_at(self.objective.dual_at(decisions))
        density = np.where(candidates.free, at_zero.q / self.units.sizes, -1.0)
        count = min(max(3 * candidates.size, FEWEST_ADDED), int(candidates.free.sum()))
        best = np.argpartition(-density, count - 1)[:count] if count else np.empty(0, dtype=np.intp)
        columns = np.empty(0, dtype=np.intp)
        multiplier = max(0.5 * float(density.max(initial=0.0)), 1e-300)
        weights = np.empty((0, self.objective.targets.shape[1]))
        return Start(best, columns, weights, bias, multiplier, np.zeros_like(at_zero.alpha))

    def solve(
        self, candidates: CompetingUnits, start: Start, *, cutoff: float = np.inf, tol: float = 1e-4
    ) -> Relaxed:
        """Maximise the bound for these subsets, until it reaches ``cutoff`` or is within ``tol`` of the best.

        The bound returned is the best of all rounds. After Ctrl-C it is that of the rounds so far, if there is one.
        """
        best: Relaxed | None = None
        try:
            for best in self._rounds(candidates, start, cutoff, tol):  # noqa: B007
                pass
        except KeyboardInterrupt:
            self.was_interrupted = True
            if best is None:
                raise
        assert best is not None
        return best

    def _rounds(
        self, candidates: CompetingUnits, start: Start, cutoff: float, tol: float
    ) -> Iterator[Relaxed]:
        """The best solution so far, after each pass over the data."""
        state = _Restricted.begin(self, candidates, start)
        best: Relaxed | None = None
        alpha = start.alpha
        skipped = len(WIDTHS) // 2 if alpha.any() else 0
        for n_rounds in range(1, MOST_ROUNDS + 1):
            loss = self.objective.smoothed(WIDTHS[min(n_rounds + skipped, len(WIDTHS)) - 1], alpha)
            state.minimize(loss)
            alpha = self.objective.dual_at(state.decisions, loss)
            dual = self.bound_at(alpha)
            bound = dual.over(candidates)
            before = -np.inf if best is None else best.bound
            if best is None or bound > best.bound:
                best = state.result(bound, dual, n_rounds)
            yield best
            missing = state.violators(dual)
            value = state.value(self.objective.loss)
            if bound >= cutoff or self.must_end:
                break
            # In a node it is enough to leave a tenth of what is missing to the cutoff.
            enough = max(tol * value, UNDECIDED * (min(cutoff, value) - best.bound))
            progress = not self.objective.loss.is_smooth and (
                n_rounds + skipped <= len(WIDTHS) or bound - before > 0.1 * enough
            )
            if not (missing.size or progress) or value - best.bound <= enough:
                break
            state.extend(missing)


@dataclass(eq=False)
class _Restricted:
    """The relaxation on the columns in use, and its present solution."""

    relaxation: Relaxation
    candidates: CompetingUnits
    units: IntArray
    bias: FloatArray
    multiplier: float
    flattest: float = FLAT  # least curvature in the model: larger after steps that were too long
    weights: FloatArray = field(init=False)
    columns: IntArray = field(init=False)

    @classmethod
    def begin(cls, relaxation: Relaxation, candidates: CompetingUnits, start: Start) -> _Restricted:
        allowed = candidates.free | candidates.inside
        chosen = np.union1d(start.units[allowed[start.units]], np.flatnonzero(candidates.inside))
        state = cls(relaxation, candidates, np.empty(0, np.intp), start.bias.copy(), start.multiplier)
        state.columns, state.weights = start.columns, start.weights
        state._use(chosen)
        return state

    def extend(self, units: IntArray) -> None:
        """Use more units."""
        if units.size:
            self._use(np.union1d(self.units, units))

    def _use(self, units: IntArray) -> None:
        """Arrange the columns of the units one after the other; weights of columns that stay are kept."""
        known = dict(zip(self.columns.tolist(), self.weights, strict=True))
        features = self.relaxation.units
        if features.are_single:
            self.columns, widths = units, np.ones(units.size, dtype=np.int64)
        else:
            members = [np.flatnonzero(features.code == u) for u in units]
            self.columns = np.concatenate([*members, np.empty(0, dtype=np.intp)])
            widths = np.array([m.size for m in members], dtype=np.int64)
        self.units = units
        self.starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        self.sizes = features.sizes[units].astype(np.float64)
        self.reach = self.relaxation.objective.max_weight * np.sqrt(self.sizes)
        self.inside = self.candidates.inside[units]
        nothing = np.zeros(self.bias.size)
        self.weights = np.array([known.get(c, nothing) for c in self.columns.tolist()]).reshape(
            self.columns.size, self.bias.size
        )
        self.block = self.relaxation.store.block(self.columns)
        self.decisions = self.block @ self.weights + self.bias

    # -- the quadratic model ----------------------------------------------------------------------

    def minimize(self, loss: DualLoss) -> None:
        """Newton's method with a line search."""
        value = self.value(loss)
        for _ in range(MOST_NEWTON_STEPS):
            before = value
            value = self._newton_step(loss)
            if isinstance(loss, SquaredError) or before - value <= NEWTON_GAIN * abs(value):
                break
        self._balance(loss)

    def _balance(self, loss: DualLoss) -> None:
        """Find the bias at which the dual variables sum to zero, by bisection; then their projection changes little."""
        objective = self.relaxation.objective
        if isinstance(loss, SquaredError):
            return
        low, high = np.full(self.bias.size, -1.0), np.full(self.bias.size, 1.0)

        def imbalance(shift: FloatArray) -> FloatArray:
            return objective.cost @ loss.slope(self.decisions + shift, objective.targets)

        for _ in range(BIAS_DOUBLINGS):
            low, high = (
                np.where(imbalance(low) > 0.0, 2.0 * low, low),
                np.where(imbalance(high) < 0.0, 2.0 * high, high),
            )
        for _ in range(BIAS_HALVINGS):
            centre = 0.5 * (low + high)
            above = imbalance(centre) > 0.0
            low, high = np.where(above, low, centre), np.where(above, centre, high)
        self.bias = self.bias + 0.5 * (low + high)
        self.decisions = self.decisions + 0.5 * (low + high)

    def _newton_step(self, loss: DualLoss) -> float:
        objective = self.relaxation.objective
        slope = objective.cost[:, None] * loss.slope(self.decisions, objective.targets)
        H, curvature_sum, mean = self._hessian(loss)
        shift = (
            -slope.sum(axis=0) / curvature_sum
        )  # the best change of the bias, without a change of the weights
        gradient = self.block.T @ slope + mean * (shift * curvature_sum)
        W = self.weights.T.copy(order="C")
        scale = max(abs(objective.value(self.decisions, self.weights)), 1e-300)
        multiplier = descend_at_size(
            H,
            W,
            np.ascontiguousarray(gradient.T),
            self.starts,
            self._steepness(H),
            self.sizes,
            self.inside,
            self.reach,
            float(self.candidates.room),
            self.multiplier,
            PRECISION * scale,
            SIZE_SLACK,
        )
        self.multiplier = multiplier or self.multiplier * 1e-9
        change = W.T - self.weights
        bias_change = shift - np.sum(mean * change, axis=0)
        return self._line_search(loss, change, bias_change)

    def _hessian(self, loss: DualLoss) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Second derivatives of the loss in the weights, per model, after elimination of the bias; weighted means."""
        objective, store = self.relaxation.objective, self.relaxation.store
        if store.keeps_gram:
            H = np.broadcast_to(store.gram(self.columns), (self.bias.size, *[self.columns.size] * 2))
            total = np.full(self.bias.size, objective.cost.sum())
            return np.ascontiguousarray(H), total, np.zeros((self.columns.size, self.bias.size))
        curvature = objective.cost[:, None] * loss.curvature(self.decisions, objective.targets)
        curvature = np.maximum(curvature, self.flattest * loss.largest_curvature * objective.cost[:, None])
        total = curvature.sum(axis=0)
        mean = (self.block.T @ curvature) / total
        H = np.empty((self.bias.size, self.columns.size, self.columns.size))
        for c in range(self.bias.size):
            root = self.block * np.sqrt(curvature[:, c])[:, None]
            H[c] = root.T @ root - total[c] * np.outer(mean[:, c], mean[:, c])
        return H, total, mean

    def _steepness(self, H: FloatArray) -> FloatArray:
        """An upper bound of the curvature along the features of each unit."""
        found = np.empty(self.units.size)
        if self.relaxation.units.are_single:
            found = np.einsum("cjj->cj", H).max(axis=0, initial=0.0)
            return np.asarray(np.maximum(found, 1e-12 * max(float(found.max(initial=0.0)), 1e-300)))
        diagonal = np.einsum("cjj->cj", H)
        for u in range(self.units.size):
            part = slice(self.starts[u], self.starts[u + 1])
            if part.stop - part.start == 1:
                found[u] = diagonal[:, part].max(initial=0.0)
            else:
                found[u] = max(np.linalg.eigvalsh(h[part, part])[-1] for h in H)
        return np.maximum(found, 1e-12 * max(float(found.max(initial=0.0)), 1e-300))

    def _line_search(self, loss: DualLoss, change: FloatArray, bias_change: FloatArray) -> float:
        """Take the largest step, halved from one, that decreases the objective."""
        weights, bias, decisions = self.weights, self.bias, self.decisions
        along = self.block @ change + bias_change
        before = self.value(loss)
        step = 1.0
        for _ in range(HALVINGS):
            self.weights, self.bias = weights + step * change, bias + step * bias_change
            self.decisions = decisions + step * along
            value = self.value(loss)
            if value <= before or isinstance(loss, SquaredError):
                if step == 1.0:
                    self.flattest = max(0.3 * self.flattest, FLAT)
                return value
            step *= 0.5
            self.flattest = min(3.0 * self.flattest, 1.0)
        self.weights, self.bias, self.decisions = weights, bias, decisions
        return before

    def value(self, loss: DualLoss) -> float:
        """The objective of the relaxation, for the best indicators at these weights."""
        objective = self.relaxation.objective
        losses = float((objective.cost @ loss.value(self.decisions, objective.targets)).sum())
        norms = (
            np.sqrt(np.add.reduceat(np.sum(self.weights**2, axis=1), self.starts[:-1]))
            if self.columns.size
            else np.empty(0)
        )
        return losses + self._penalty(norms)

    def _penalty(self, norms: FloatArray) -> float:
        """The smallest sum of squares over indicators: for k single features, half the squared k-support norm.

        It is the largest value over λ of the separable penalty less λ times the room; λ is found between two of the
        values at which an indicator reaches one.
        """
        fixed = 0.5 * float(np.sum(norms[self.inside] ** 2))
        free = ~self.inside & (norms > 0.0)
        size, r = self.sizes[free], norms[free] / np.sqrt(self.sizes[free])
        room = float(self.candidates.room)
        if size.sum() <= room:
            return fixed + 0.5 * float(np.sum(norms[free] ** 2))
        order = np.argsort(-r, kind="stable")
        size, r = size[order], r[order]
        whole = np.concatenate([[0.0], np.cumsum(size)])  # features whose indicator is one
        rest = np.concatenate([np.cumsum((size * r)[::-1])[::-1], [0.0]])
        left = room - whole
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.where(left > 0.0, rest / left, np.inf)
        first = int(np.argmax(np.append(r, 0.0) <= theta))
        largest = self.relaxation.objective.max_weight
        if theta[first] > largest:  # the sum of the smallest indicators, r / largest, exceeds the room
            return fixed + 0.5 * largest * float(rest[0])
        squares = 0.5 * float(np.sum(size[:first] * r[:first] ** 2))
        return fixed + squares + 0.5 * float(rest[first]) ** 2 / float(left[first])

    # -- the next round ---------------------------------------------------------------------------

    def violators(self, dual: DualBound) -> IntArray:
        """Units not in use whose value exceeds the smallest of those that are chosen, the largest first."""
        last, _ = self.candidates.thresholds(dual.q)
        density = dual.q if self.relaxation.units.are_single else dual.q / self.relaxation.units.sizes
        limit = min(2.0 * self.multiplier, last) * (1.0 + VIOLATION)
        found = np.flatnonzero(density > limit)
        found = np.setdiff1d(found[self.candidates.free[found]], self.units, assume_unique=True)
        count = max(FEWEST_ADDED, self.units.size // 4)
        if found.size > count:
            found = found[np.argpartition(-density[found], count - 1)[:count]]
        return found

    def result(self, bound: float, dual: DualBound, n_rounds: int) -> Relaxed:
        """The present solution."""
        z = shares(
            np.ascontiguousarray(self.weights.T),
            self.starts,
            self.sizes,
            self.inside,
            self.reach,
            self.multiplier,
        )
        return Relaxed(
            bound, dual, self.units, z, self.columns, self.weights, self.bias, self.multiplier, n_rounds
        )
