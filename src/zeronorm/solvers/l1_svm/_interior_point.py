r"""A primal-dual interior-point method for the ℓ1 SVM, which ends in an exact solution.

With one row z of signed data for each side of the loss of each sample the problem is

.. math:: \min_{w, b}\ \sum_k c_k |w_k| + \sum_i C_i \xi_i, \qquad z_i \cdot (w, b) + \xi_i - t_i = h_i,
    \qquad \xi, t \ge 0,

with multipliers :math:`0 \le \alpha \le C` of the rows. With :math:`w = w^+ - w^-` the slopes
:math:`c_k \mp z_k \cdot \alpha` are the multipliers of :math:`w^\pm`. The two vectors
:math:`x = (t, \xi, w^+, w^-)` and :math:`s = (\alpha, C - \alpha, c - g, c + g)` with :math:`g = Z^\top \alpha` hold
all complementary pairs, whose products vanish at the solution. A Newton step leads to the system of
:mod:`zeronorm.solvers.l1_svm._newton` with
:math:`\Theta_i = 1/(t_i/\alpha_i + \xi_i/(C_i - \alpha_i))` and
:math:`D_k = 1/(w_k^+/(c_k - g_k) + w_k^-/(c_k + g_k))`.

Two things make it fast. First, a row far from the kink of its loss is fixed at its bound, a feature that will hardly
get a weight is left out, and the method continues with the others. Second, it need not converge: once its steps show
which rows lie on the kink and which features have a weight, two small linear systems give the solution, and equal
primal and dual objectives over all rows and features prove that it is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.execution import one_thread
from zeronorm.solvers.l1_svm._newton import (
    TINY,
    Guess,
    NotPositiveDefinite,
    Reduction,
    SignedProblem,
    balanced_multipliers,
    newton_system,
    start_point,
    vertex,
)
from zeronorm.solvers.svm._tall import TO_THE_BOUND

T = TypeVar("T", np.float64, np.bool_)

MAX_ITER = 50  # where many rows lie on the kink the steps get short, and the simplex method is faster
ENOUGH_ITER = 100  # after these, nothing is left out any more
CLOSE = 1e-2  # relative gap from which an exact solution is tried
CLOSED = 1e-10  # relative gap below which more steps are useless
FAR = 0.02  # a row is fixed where its multiplier is this small relative to its distance from the kink
FAINT = 0.02  # a feature may be left out where its part of the objective is this small relative to its slope
GRADIENTS = (
    0.6  # smallest gradient, relative to the penalty, at balanced multipliers of a feature to start with
)
WORTH_STARTING = 0.5  # the start leaves features out only where at most this share of them is kept
FEW_DATA = 20_000  # entries; with fewer, nothing is left out
OPEN = 4.0  # a slope whose square exceeds this multiple of the gap will not become zero any more
FIX_FROM = 0.5  # relative gap from which rows are fixed and features left out
WORTH_FIXING = 0.8  # rows and features are left out only where at most this share of either is kept


@dataclass(frozen=True, eq=False)
class CertifiedModel:
    """Weights (the bias last), and multipliers of all rows that prove them optimal."""

    weights: FloatArray
    alpha: FloatArray
    objective: float
    n_iter: int


def solve_l1_interior(
    rows: FloatArray, target: FloatArray, cost: FloatArray, penalty: FloatArray
) -> CertifiedModel | None:
    """The solution for signed ``rows`` with the sign last; None where it is not unique or not found.

    Costs and penalties are positive and finite.
    """
    problem = SignedProblem(rows, target, cost, penalty, np.zeros(penalty.size + 1))
    # Overflow is harmless: a result is either proved optimal or discarded.
    # The matrices are small, so that one thread is faster than several.
    with np.errstate(all="ignore"), one_thread():
        method = _InteriorPoint(problem)
        found = method.without_features()
        if found is None:
            method.start_with_few_features()
            found = method.run()
        while found is None and method.go_back():
            found = method.run()
    return found


@dataclass
class _Step:
    """A step: changes of both vectors and of the bias."""

    x: FloatArray
    s: FloatArray
    bias: float


@dataclass(frozen=True, eq=False)
class _Saved:
    """An earlier iterate, and the reduced problem it belongs to."""

    left: Reduction
    x: FloatArray
    s: FloatArray
    bias: float


class _InteriorPoint:
    """Mehrotra's predictor-corrector steps, on fewer and fewer rows and features."""

    def __init__(self, problem: SignedProblem) -> None:
        self.left = Reduction.none_of(problem)
        self.balanced = balanced_multipliers(problem)
        self.x, self.s = start_point(problem, self.balanced)
        self.bias = 0.0
        self.distance = max(float(np.abs(problem.target).mean()), TINY)
        self.last_sizes = (0, 0)
        self.n_iter = 0
        self.closed = False
        self.far = FAR if problem.rows.size > FEW_DATA else 0.0
        self.earlier: list[_Saved] = []
        self.wrong: tuple[Int64Array, Int64Array] | None = (
            None  # rows and features that a solution showed to be left out wrongly
        )
        self.may_fix = np.ones(problem.target.size, dtype=bool)
        self.may_drop = np.ones(problem.penalty.size, dtype=bool)

    def _parts(self, pairs: NDArray[T]) -> tuple[NDArray[T], NDArray[T], NDArray[T], NDArray[T]]:
        """Views of a vector of pairs: two blocks with one entry per row, then two blocks with one entry per feature."""
        n, p = self.left.samples.size, self.left.features.size
        return pairs[:n], pairs[n : 2 * n], pairs[2 * n : 2 * n + p], pairs[2 * n + p :]

    def without_features(self) -> CertifiedModel | None:
        """The model without features whose bias suits the side of larger total cost; None where it is not optimal."""
        weights = np.zeros(self.left.features.size + 1)
        heavier = self.left.problem.cost @ self.left.problem.rows[:, -1] >= 0.0
        weights[-1] = self.distance if heavier else -self.distance
        return self._certified(weights, self.balanced)

    def run(self) -> CertifiedModel | None:
        """Iterate until an exact solution is found and proved."""
        for _ in range(MAX_ITER):
            self.n_iter += 1
            gap, objective = self._residuals()
            self.closed = gap <= CLOSED * objective
            if not gap > CLOSED * objective:
                return None
            error = max(
                gap,
                objective - self.left.problem.loss - float(self._parts(self.s)[0] @ self.left.problem.target),
            )
            if self.far > 0.0 and error <= FIX_FROM * objective:
                gap, objective = self._fix(error, objective) or (gap, objective)
            close = gap <= CLOSE * objective
            try:
                self._factorise(precise=close)
            except NotPositiveDefinite:
                return None
            predicted = self._step(0.0, None)
            if close:
                found = self._finish(predicted)
                if found is not None or self.wrong is not None:
                    return found
            ahead = self._products_after(predicted, *self._lengths(predicted, 1.0))
            step = self._step((ahead / gap) ** 3 * gap / self.x.size, predicted)
            primal, dual = self._lengths(step, TO_THE_BOUND)
            self.x += primal * step.x
            self.bias += primal * step.bias
            self.s += dual * step.s
        return None

    # -- one step -------------------------------------------------------------------------------

    def _residuals(self) -> tuple[float, float]:
        """Update residuals of the linear conditions; returns the sum of complementary products and the objective."""
        problem = self.left.problem
        t, xi, up, down = self._parts(self.x)
        weights = np.append(up - down, self.bias)
        gradient = self._parts(self.s)[0] @ problem.rows + problem.gradient
        short = problem.target - problem.rows @ weights
        self.missing = short - xi + t
        slopes = self.s[2 * t.size :]
        self.missing_slopes = (
            np.concatenate([problem.penalty - gradient[:-1], problem.penalty + gradient[:-1]]) - slopes
        )
        self.off_balance = -float(gradient[-1])
        return float(self.x @ self.s), max(problem.objective(weights, short), TINY)

    def _factorise(self, precise: bool) -> None:
        self.ratio = self.x / self.s
        t, xi, up, down = self._parts(self.ratio)
        self.stiffness = 1.0 / (up + down)
        rows = self.left.problem.rows
        self.system = newton_system(
            rows, 1.0 / (t + xi), self.stiffness, rows if precise else self.left.coarse
        )

    def _step(self, product: float, earlier: _Step | None) -> _Step:
        """Solve the linearised conditions for equal products, corrected by the products of an earlier step."""
        n, p = self.left.samples.size, self.left.features.size
        aim = product - self.x * self.s
        if earlier is not None:
            aim -= earlier.x * earlier.s
        aim /= self.s
        right = self.missing - aim[n : 2 * n] + aim[:n]
        parts = aim[2 * n :] - self.ratio[2 * n :] * self.missing_slopes
        drift = parts[:p] - parts[p:]
        change, alpha = self.system.solve(right, drift, self.off_balance)
        gradient = self.stiffness * (change[:-1] - drift)
        s = np.concatenate([alpha, -alpha, -gradient, gradient])
        s[2 * n :] += self.missing_slopes
        return _Step(aim - self.ratio * s, s, float(change[-1]))

    def _lengths(self, step: _Step, share: float) -> tuple[float, float]:
        """The largest step lengths of x and s, at most one."""
        return _longest(self.x, step.x, share), _longest(self.s, step.s, share)

    def _products_after(self, step: _Step, primal: float, dual: float) -> float:
        return float((self.x + primal * step.x) @ (self.s + dual * step.s))

    # -- fewer rows and features ----------------------------------------------------------------

    def _fix(self, gap: float, objective: float) -> tuple[float, float] | None:
        """Fix the multipliers of rows far from the kink at their bounds and leave out features far from a weight.

        Returns the gap of the reduced problem and its objective.
        """
        alpha, spare, _, _ = self._parts(self.s)
        t, xi, _, _ = self._parts(self.x)
        # Multipliers of separable classes stay far below their cost.
        unit = self.far * np.minimum(self.left.problem.cost, alpha.max()) / self.distance
        at_zero = alpha < unit * t
        at_cost = (spare < unit * xi) & ~at_zero
        at_zero &= self.may_fix[self.left.samples]
        at_cost &= self.may_fix[self.left.samples]
        rows_stay = ~(at_zero | at_cost)
        features_stay = self._features_in_play(gap, objective) | ~self.may_drop[self.left.features]
        if not 0 < rows_stay.sum() <= WORTH_FIXING * rows_stay.size:
            rows_stay[:], at_cost[:] = True, False
        if not 0 < features_stay.sum() <= WORTH_FIXING * features_stay.size:
            features_stay[:] = True
        if rows_stay.all() and features_stay.all():
            return None
        self._restrict(rows_stay, at_cost, features_stay)
        return self._residuals()

    def start_with_few_features(self) -> None:
        """Leave out features with a small gradient at balanced multipliers."""
        gradient = np.abs(self.balanced @ self.left.whole.rows)[:-1] / self.left.whole.penalty
        stay = (gradient >= GRADIENTS) | ~self.may_drop
        if self.far > 0.0 and 0 < stay.sum() <= WORTH_STARTING * stay.size:
            every = np.ones(self.left.samples.size, dtype=bool)
            self._restrict(every, ~every, stay)

    def go_back(self) -> bool:
        """Return to the last saved point that holds all that was left out wrongly; False where that would not help.

        Rows and features known to be needed are not left out again; where they are not known, nothing is left out.
        """
        if not self.earlier or self.far == 0.0:
            return False
        rows, features = self.wrong or (np.arange(0), np.arange(0))
        if rows.size + features.size and self.n_iter <= ENOUGH_ITER:
            self.may_fix[rows] = False
            self.may_drop[features] = False
            self._return_to([saved for saved in self.earlier if saved.left.has(rows, features)][-1])
            return True
        if self.wrong is None and self._has_converged():
            return False
        self.far = 0.0
        self._return_to(self.earlier[0])
        return True

    def _has_converged(self) -> bool:
        """Whether the reduced problem is solved; as no vertex was found, its solution is then not unique."""
        met = np.abs(self.missing_slopes) <= CLOSE * np.tile(self.left.problem.penalty, 2)
        return self.closed and bool(met.all())

    def _return_to(self, saved: _Saved) -> None:
        self.earlier = self.earlier[: self.earlier.index(saved)]
        self.wrong = None
        self.left = saved.left
        self.x, self.s, self.bias = saved.x, saved.s, saved.bias
        if not self.earlier:
            self.start_with_few_features()

    def _features_in_play(self, gap: float, objective: float) -> BoolArray:
        """Features with a part in the objective, or with a slope that may still become zero within the gap."""
        _, _, up, down = self._parts(self.x)
        _, _, up_slope, down_slope = self._parts(self.s)
        penalty = self.left.problem.penalty
        slope = np.minimum(up_slope, down_slope) / penalty
        share = penalty * np.maximum(up, down) / objective
        return np.asarray((share > FAINT * slope) | (slope**2 < OPEN * gap / objective))

    def _restrict(self, rows_stay: BoolArray, at_cost: BoolArray, features_stay: BoolArray) -> None:
        self.earlier.append(_Saved(self.left, self.x, self.s, self.bias))
        self.left = self.left.restricted(rows_stay, at_cost, features_stay)
        pairs = np.concatenate([rows_stay, rows_stay, features_stay, features_stay])
        self.x, self.s = self.x[pairs], self.s[pairs]

    # -- the end --------------------------------------------------------------------------------

    def _finish(self, affine: _Step) -> CertifiedModel | None:
        """Solve exactly for the rows on the kink and the features with a weight that the affine step indicates."""
        guess = self._guess(affine)
        sizes = (guess.kink.size, guess.active.size)
        settled = sizes == self.last_sizes
        self.last_sizes = sizes
        if sizes[0] <= sizes[1] or not (settled or sizes[0] <= 2 * (sizes[1] + 1)):
            return None
        found = vertex(self.left.problem, guess, self._parts(self.s)[0])
        if found is None:
            return None
        weights, alpha = self.left.lifted(*found)
        model = self._certified(weights, alpha)
        if model is None and self.left.problem.proven_objective(*found) is not None:
            self.wrong = self.left.contradicted(weights, alpha)
        return model

    def _guess(self, affine: _Step) -> Guess:
        """Guess the solution: of a complementary pair, the factor that the step shrinks by more than half is zero."""
        vanishing_x, vanishing_s = affine.x < -0.5 * self.x, affine.s < -0.5 * self.s
        at_zero, at_cost, _, _ = self._parts(vanishing_s)
        _, _, no_up, no_down = self._parts(vanishing_x)
        active = np.flatnonzero(~(no_up & no_down))
        return Guess(
            kink=np.flatnonzero(~(at_zero | at_cost)),
            at_cost=at_cost,
            active=active,
            signs=np.where(no_up[active], -1.0, 1.0),
        )

    def _certified(self, weights: FloatArray, alpha: FloatArray) -> CertifiedModel | None:
        objective = self.left.whole.proven_objective(weights, alpha)
        return None if objective is None else CertifiedModel(weights, alpha, objective, self.n_iter)


def _longest(value: FloatArray, change: FloatArray, share: float) -> float:
    """The step length, at most one, that goes ``share`` of the way to where the first value becomes zero."""
    fastest = -float((change / value).min())
    return 1.0 if fastest <= share else share / fastest
