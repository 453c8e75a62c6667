r"""Sparse Bayesian learning: one prior precision for each column, by type-II maximum likelihood.

The evidence, as a function of the prior variance :math:`v_k = 1/\beta_k` of one column with everything else
fixed, is up to a constant

.. math:: \ell(v_k) = \tfrac12 \sum_c \Bigl[ \frac{v_k q_{kc}^2}{1 + v_k s_{kc}} - \log(1 + v_k s_{kc}) \Bigr],

with :math:`s_{kc} = \phi_k^\top C_{c,-k}^{-1} \phi_k`, :math:`q_{kc} = \phi_k^\top C_{c,-k}^{-1} \hat y_c` for the
outputs c that share the column's precision. With one output the maximum is :math:`v_k = (q^2 - s)/s^2`, or 0 when
:math:`q^2 \le s`: the column is inactive (Tipping & Faul 2003). Precisions are re-estimated, and columns added and
removed, in this way; each such step increases the evidence of the normal model, whose covariance is
:math:`C = B^{-1} + \Phi A^{-1} \Phi^\top`.

All columns are evaluated only to find the most promising candidates; the steps themselves are made on a small
working set. With many samples sparse columns stay sparse, and thousands of them may be relevant: the posterior and the
statistics need only weighted inner products of columns, computed from the stored values in one pass.

With a Gamma hyperprior (Tipping 2001), :math:`a \log\beta_k - b\beta_k` for each column is added to the log evidence.
Then no precision is infinite and no column is removed: all columns are iterated, on a matrix of samples by samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.blas import dtrmm
from threadpoolctl import threadpool_limits

from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.design import Design
from zeronorm.execution import require_memory
from zeronorm.solvers._status import Status
from zeronorm.solvers.sparse_bayes._posterior import (
    LOG_2PI,
    Columns,
    DualMode,
    Likelihood,
    Posterior,
    StoredColumns,
    best_variances,
    projected_inverse,
    update_precisions,
)

_CANDIDATES = 32  # columns added to the working set after all columns were evaluated
_ADDITIONS = 10  # columns added between two passes over the working set
_PASSES = 25  # passes over the working set before all columns are evaluated again
_GAIN = 10.0  # gain in log evidence that a new column must bring, in units of the tolerance
_LEAST_CHANGE = 0.1  # of a precision, in units of the tolerance
_LOOSE_TOL = 0.5  # tolerance as long as more columns may be added
_DEPENDENT = (
    1e-10  # share of its squared norm outside the span of the others below which a column adds nothing
)
_TOGETHER = 8  # vectors in one product with sparse data
_MANY_SAMPLES = 20_000  # of sparse data: with more, its relevant columns stay sparse,
_MANY_CANDIDATES = 512  # and up to this many are added at a time
_MANY_ACTIVE = (
    300  # columns; with more, all precisions change together: one by one takes the cube of their number
)
_COLUMNS_AT_A_TIME = 1024
_MOST_ENTRIES = (
    5  # additions of one column: with labels each posterior changes the evidence, and steps could cycle
)
_LEAST_DAMPING = 1.0 / 64.0
_LEAST_DETERMINED = 1e-4  # the fixed-point iteration removes weights that the data determine less than this


@dataclass(frozen=True, eq=False)
class SparseBayes:
    """The result of sparse Bayesian learning; inactive columns have infinite precision."""

    precision: FloatArray
    weights: FloatArray
    bias: FloatArray
    log_evidence: float
    relevance: FloatArray
    """Mean over outputs of q²/s of each inactive column; above one, adding the column would increase the evidence."""
    active: Int64Array
    covariance: FloatArray
    """The covariance of the bias and the active weights, for each output."""
    n_iter: int
    status: Status
    history: tuple[float, ...]
    """The log evidence after each pass; with a hyperprior, plus the log density of the hyperprior."""


def solve_sparse_bayes(
    design: Design,
    likelihood: Likelihood,
    *,
    method: Literal["sequential", "fixed_point"] = "sequential",
    tol: float = 1e-3,
    max_iter: int = 1000,
    hyperprior: tuple[float, float] = (0.0, 0.0),
) -> SparseBayes:
    """Maximise the evidence over the precisions of the columns.

    ``tol`` bounds the last change of every log precision, and ten times ``tol`` is the gain in log evidence for
    which a column is still added. ``max_iter`` bounds the number of passes over the working set. ``hyperprior`` holds
    the shape a and rate b of the Gamma density of the precisions, both positive, or both zero for none.
    """
    # One thread: the products are many and small.
    with threadpool_limits(limits=1, user_api="blas"):
        if hyperprior != (0.0, 0.0):
            return solve_with_hyperprior(design, likelihood, hyperprior, tol, max_iter)
        state = _State(design, likelihood, tol, max_iter)
        if method == "fixed_point":
            state.iterate_fixed_point()
        else:
            state.ascend()
        return state.result()


def best_variance(s: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The prior variance of largest evidence for each row, shared by the outputs (columns), and its gain."""
    variance, gain = np.empty(s.shape[0]), np.empty(s.shape[0])
    best_variances(s, q, variance, gain)
    return variance, gain


class _State:
    """The state of the algorithm: active columns with their precisions, and methods that change them."""

    def __init__(self, design: Design, likelihood: Likelihood, tol: float, max_iter: int) -> None:
        self.design = design
        self.likelihood = likelihood
        self.tol = tol
        self.max_iter = max_iter
        self.n_iter = 0
        self.settled = False
        self.n_entries = np.zeros(design.n_features, dtype=np.int64)
        self.last_step = np.zeros(design.n_features)  # of the logarithms of the precisions
        self.damping = np.ones(design.n_features)  # of these steps
        self.history: list[float] = []
        self._kept_squares: dict[int, FloatArray] = {}
        self._kept_statistics: tuple[Posterior, FloatArray, FloatArray] | None = None
        nothing = np.empty(0, dtype=np.intp)
        self.is_stored = (
            design.is_sparse
            and design.n_samples >= _MANY_SAMPLES
            and design.stored_columns(nothing) is not None
        )
        self.n_candidates, self.n_additions = _CANDIDATES, _ADDITIONS
        if self.is_stored:
            self.n_candidates = self.n_additions = _MANY_CANDIDATES
        self._hold(np.empty(0, dtype=np.int64))
        self.precision: FloatArray = np.zeros(1)
        self.posterior = self._posterior(np.zeros((likelihood.n_outputs, 1)))

    # -- bookkeeping ----------------------------------------------------------------------------

    def _hold(self, active: Int64Array) -> None:
        self.active = active
        self.columns: Columns = self._read(active)
        if not isinstance(self.columns, StoredColumns):
            ones = np.ones((self.design.n_samples, 1))
            self.columns = np.hstack([ones, self.columns]) if active.size else ones

    def _read(self, columns: Int64Array) -> Columns:
        """These columns with the constant one, dense or sparse."""
        stored = self.design.stored_columns(columns) if self.is_stored else None
        return self.design.block(columns) if stored is None else StoredColumns(*stored)

    def _posterior(self, start: FloatArray) -> Posterior:
        return self.likelihood.posterior(self.columns, self.precision, start)

    def result(self) -> SparseBayes:
        s, q, _ = self._statistics()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(s > 0.0, q**2 / s, 0.0).mean(axis=1)
        ratio[self.active] = 0.0
        precision = np.full(self.design.n_features, np.inf)
        precision[self.active] = self.precision[1:]
        weights = np.zeros((self.design.n_features, self.likelihood.n_outputs))
        weights[self.active] = self.posterior.mean[:, 1:].T
        return SparseBayes(
            precision=precision,
            weights=weights,
            bias=self.posterior.mean[:, 0].copy(),
            log_evidence=self.posterior.log_evidence,
            relevance=ratio,
            active=self.active,
            covariance=self.posterior.covariance,
            n_iter=self.n_iter,
            status=Status.CONVERGED if self.settled else Status.ITERATION_LIMIT,
            history=tuple(self.history),
        )

    # -- statistics of inactive columns -----------------------------------------------------------

    def _statistics(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """S and Q of all columns (outputs as columns of the arrays), and the gain of adding each.

        They are kept, because the result needs them again for the last posterior.
        """
        if self._kept_statistics is None or self._kept_statistics[0] is not self.posterior:
            self._kept_statistics = self.posterior, *self._computed_statistics()
        _, s, q = self._kept_statistics
        return s, q, best_variance(s, q)[1]

    def _computed_statistics(self) -> tuple[FloatArray, FloatArray]:
        design = self.design
        n_outputs = self.likelihood.n_outputs
        s, q = np.empty((design.n_features, n_outputs)), np.empty((design.n_features, n_outputs))
        if isinstance(self.columns, StoredColumns):
            for c in range(n_outputs):
                s[:, c], q[:, c] = self._stored_statistics(self.columns, c)
            return s, q
        whiteners = [self._whitener(c) for c in range(n_outputs)]
        if design.is_sparse:
            for c in range(n_outputs):
                s[:, c], q[:, c] = self._sparse_statistics(whiteners[c], c)
            return s, q
        for position, block in design.iter_blocks():
            for c in range(n_outputs):
                own = self._own_squares(block, position, c)
                projected = whiteners[c] @ block
                outside = own - np.einsum("ij,ij->j", projected, projected)
                s[position, c] = np.where(outside > _DEPENDENT * own, outside, 0.0)
                q[position, c] = np.where(s[position, c] > 0.0, self.posterior.residual[c] @ block, 0.0)
        return s, q

    def _sparse_statistics(self, whitener: FloatArray, c: int) -> tuple[FloatArray, FloatArray]:
        """S and Q for one output, computed without making sparse columns dense."""
        curvature = self.posterior.curvature[c]
        stats = self.design.column_stats(sample_weight=curvature)
        own = curvature.sum() * (stats.variance + stats.mean**2)
        outside = own.copy()
        for start in range(0, len(whitener), _TOGETHER):
            outside -= (self.design.transpose_dot(whitener[start : start + _TOGETHER].T) ** 2).sum(axis=1)
        s = np.where(outside > _DEPENDENT * own, outside, 0.0)
        return s, np.where(s > 0.0, self.design.transpose_dot(self.posterior.residual[c]), 0.0)

    def _stored_statistics(self, columns: StoredColumns, c: int) -> tuple[FloatArray, FloatArray]:
        """S and Q for one output where the relevant columns are sparse as well, so that few products are nonzero."""
        curvature, root = self.posterior.curvature[c], self.posterior.root[c]
        stats = self.design.column_stats(sample_weight=curvature)
        own = curvature.sum() * (stats.variance + stats.mean**2)
        outside = own.copy()
        for start in range(0, own.size, _COLUMNS_AT_A_TIME):
            part = slice(start, min(start + _COLUMNS_AT_A_TIME, own.size))
            others = self._read(np.arange(part.start, part.stop))
            assert isinstance(others, StoredColumns)
            # A triangular root halves the work.
            explained = dtrmm(1.0, root.T, columns.gram(curvature, others)[:, 1:], lower=1)
            outside[part] -= np.einsum("ij,ij->j", explained, explained)
        s = np.where(outside > _DEPENDENT * own, outside, 0.0)
        return s, np.where(s > 0.0, self.design.transpose_dot(self.posterior.residual[c]), 0.0)

    def _own_squares(self, block: FloatArray, position: slice, c: int) -> FloatArray:
        """x'Bx of the columns of a block; kept where B only changes by a factor."""
        curvature = self.posterior.curvature[c]
        if not self.likelihood.rigid_curvature:
            return np.asarray(curvature @ block**2)
        if position.start not in self._kept_squares:
            self._kept_squares[position.start] = curvature @ block**2 / curvature[0]
        return np.asarray(curvature[0] * self._kept_squares[position.start])

    def _whitener(self, c: int) -> FloatArray:
        """The matrix W with W'W = B Φ Σ Φ' B."""
        assert not isinstance(self.columns, StoredColumns)
        weighted = self.columns * self.posterior.curvature[c][:, None]
        return np.asarray(self.posterior.root[c].T @ weighted.T)

    # -- the sequential algorithm -----------------------------------------------------------------

    def ascend(self) -> None:
        """Evaluate all columns and work on the most promising ones, until no column gains."""
        while self.n_iter < self.max_iter:
            _, _, gain = self._statistics()
            gain[self.active] = 0.0
            gain[self.n_entries >= _MOST_ENTRIES] = 0.0
            promising = np.flatnonzero(gain > _GAIN * self.tol)
            if promising.size == 0 and self.settled:
                return
            if promising.size > self.n_candidates:
                order = np.argsort(-gain[promising], kind="stable")
                promising = np.sort(promising[order[: self.n_candidates]])
            self._work_on(promising)
        self.settled = False

    def _work_on(self, candidates: Int64Array) -> None:
        n_columns = candidates.size + 3 * (self.active.size + self.n_additions)
        require_memory(
            8 * n_columns * (n_columns if self.is_stored else self.design.n_samples),
            f"The columns of {self.active.size} relevant features of {self.design.n_samples} samples",
            "select features with a filter first, or use fewer samples.",
        )
        pool, exhausted = self._read(candidates), candidates.size == 0
        enough = self.tol if exhausted else max(self.tol, _LOOSE_TOL)
        if self.is_stored and candidates.size == self.n_candidates:
            enough = np.inf  # more columns will follow; the precisions are found together with theirs
        for _ in range(min(_PASSES, self.max_iter - self.n_iter)):
            self.n_iter += 1
            exhausted = exhausted or self._add_from(pool, candidates) == 0
            change = self._re_estimate()
            self.settled = exhausted and change <= self.tol
            if exhausted and change <= enough:
                return

    def _re_estimate(self) -> float:
        """One pass over the active columns; returns the largest change of a log precision."""
        if self.active.size > _MANY_ACTIVE and self.is_stored:
            return self._re_estimate_together()
        updated = self.precision.copy()
        mean, covariance = self.posterior.mean.copy(), self.posterior.covariance
        for _ in range(self.likelihood.n_passes):
            update_precisions(mean, covariance, updated, _LEAST_CHANGE * self.tol)
        return self._changed_to(updated)

    def _re_estimate_together(self) -> float:
        """Re-estimate all precisions at once, each as if the others stayed the same.

        This suits columns that are nearly orthogonal. Where it lowers the evidence, they change one after the other.
        """
        before = self.active, self.columns, self.precision, self.posterior, self.last_step.copy()
        scale = np.sum(self.posterior.root[:, 1:] ** 2, axis=2)
        s = np.maximum(1.0 / scale - self.precision[1:], 0.0)
        variance, _ = best_variance(
            np.ascontiguousarray(s.T), np.ascontiguousarray((self.posterior.mean[:, 1:] / scale).T)
        )
        with np.errstate(divide="ignore"):
            change = self._changed_to(np.append(0.0, 1.0 / variance))
        if self.posterior.log_evidence < before[3].log_evidence - self.tol:
            self.active, self.columns, self.precision, self.posterior, self.last_step = before
            self.history.pop()
            updated, mean, covariance = (
                self.precision.copy(),
                self.posterior.mean.copy(),
                self.posterior.covariance,
            )
            update_precisions(mean, covariance, updated, _LEAST_CHANGE * self.tol)
            change = self._changed_to(updated)
        return change

    def _changed_to(self, updated: FloatArray) -> float:
        """Set new precisions; returns the largest change of a logarithm, infinite where columns are removed."""
        kept = np.isfinite(updated)
        change = np.inf
        if kept.all():
            change = float(np.max(np.abs(np.log(updated[1:] / self.precision[1:])), initial=0.0))
        if not self.likelihood.rigid_curvature:
            updated = self._without_swings(updated)
        self._keep(kept, updated)
        return change

    def _without_swings(self, updated: FloatArray) -> FloatArray:
        """Damp oscillating steps: half of a step that reverses direction, a quarter of the next reversal, and so on.

        With labels the curvature depends on the weights, and full steps might oscillate for ever.
        """
        step, damping = np.log(updated[1:] / self.precision[1:]), self.damping[self.active]
        turns_back = np.sign(step) * np.sign(self.last_step[self.active]) < 0.0
        damping = np.where(
            turns_back, np.maximum(0.5 * damping, _LEAST_DAMPING), np.minimum(2.0 * damping, 1.0)
        )
        step *= damping
        self.damping[self.active] = damping
        self.last_step[self.active] = np.where(np.isfinite(step), step, 0.0)
        return np.append(0.0, self.precision[1:] * np.exp(step))

    def _refresh(self, start: FloatArray) -> None:
        self.posterior = self._posterior(start)
        self.posterior = self.likelihood.improved(self.columns, self.precision, self.posterior)
        self.history.append(self.posterior.log_evidence)

    def _add_from(self, pool: Columns, names: Int64Array) -> int:
        """Add the columns of the pool that raise the evidence most, one after the other."""
        free = np.flatnonzero(~np.isin(names, self.active) & (self.n_entries[names] < _MOST_ENTRIES))
        if free.size == 0:
            return 0
        block = pool.take(free) if isinstance(pool, StoredColumns) else pool[:, free]
        precisions = self._additions(block)
        if not precisions:
            return 0
        entering = np.fromiter(precisions, dtype=np.int64)
        start = np.hstack([self.posterior.mean, np.zeros((self.likelihood.n_outputs, entering.size))])
        if isinstance(self.columns, StoredColumns):
            assert isinstance(block, StoredColumns)
            self.columns = self.columns.joined(block.take(entering))
        else:
            assert not isinstance(block, StoredColumns)
            self.columns = np.hstack([self.columns, block[:, entering]])
        self.active = np.concatenate([self.active, names[free[entering]]])
        self.n_entries[names[free[entering]]] += 1
        self.precision = np.concatenate([self.precision, np.fromiter(precisions.values(), dtype=np.float64)])
        self._refresh(start)
        return entering.size

    def _additions(self, block: Columns) -> dict[int, float]:
        """Positions and precisions of the columns to add; each takes the earlier ones into account."""
        inner, q = self._inner_products(block)
        chosen: dict[int, float] = {}
        while len(chosen) < self.n_additions:
            s = np.ascontiguousarray(np.diagonal(inner, axis1=1, axis2=2).T)
            variance, gain = best_variance(s, q)
            gain[list(chosen)] = 0.0
            if gain.max() <= _GAIN * self.tol:
                break
            best = int(np.flatnonzero(gain >= gain.max() * (1.0 - 1e-9))[0])
            chosen[best] = 1.0 / variance[best]
            column = inner[:, :, best].copy()
            factor = variance[best] / (1.0 + variance[best] * s[best])
            q -= (factor * q[best]) * column.T
            inner -= factor[:, None, None] * column[:, :, None] * column[:, None, :]
        return chosen

    def _inner_products(self, block: Columns) -> tuple[FloatArray, FloatArray]:
        """F'C⁻¹F for each output, and F'C⁻¹y with outputs as columns."""
        if isinstance(block, StoredColumns):
            return self._stored_products(block)
        inner = np.empty((self.likelihood.n_outputs, block.shape[1], block.shape[1]))
        for c in range(self.likelihood.n_outputs):
            explained = self._whitener(c) @ block
            inner[c] = block.T @ (block * self.posterior.curvature[c][:, None]) - explained.T @ explained
        return inner, np.ascontiguousarray(block.T @ self.posterior.residual.T)

    def _stored_products(self, block: StoredColumns) -> tuple[FloatArray, FloatArray]:
        assert isinstance(self.columns, StoredColumns)
        size, posterior = block.shape[1] - 1, self.posterior
        inner = np.empty((self.likelihood.n_outputs, size, size))
        for c, curvature in enumerate(posterior.curvature):
            explained = posterior.root[c].T @ self.columns.gram(curvature, block)[:, 1:]
            inner[c] = block.gram(curvature)[1:, 1:] - explained.T @ explained
        q = np.stack([block.transpose_dot(residual)[1:] for residual in posterior.residual], axis=1)
        return inner, np.ascontiguousarray(q)

    # -- the fixed-point iteration, as a reference ----------------------------------------------------

    def iterate_fixed_point(self) -> None:
        r"""Start with all columns and iterate :math:`\beta_k = \sum_c (1 - \beta_k \Sigma_{kk}) / \sum_c \mu_k^2`."""
        self._hold(np.arange(self.design.n_features, dtype=np.int64))
        self.precision = np.ones(self.columns.shape[1])
        self.precision[0] = 0.0
        self._refresh(np.zeros((self.likelihood.n_outputs, self.columns.shape[1])))
        while self.n_iter < self.max_iter and not self.settled:
            self.n_iter += 1
            scale = np.sum(self.posterior.root**2, axis=2)
            determined = np.sum(1.0 - self.precision * scale, axis=0)
            squares = np.sum(self.posterior.mean**2, axis=0)
            kept = (determined > _LEAST_DETERMINED * self.likelihood.n_outputs) & (squares > 0.0)
            kept[0] = True
            updated = np.divide(determined, squares, out=np.zeros(squares.size), where=squares > 0.0)
            change = np.abs(np.log(updated[kept][1:] / self.precision[kept][1:]))
            self.settled = bool(kept.all() and np.max(change, initial=0.0) <= self.tol)
            updated[0] = 0.0
            self._keep(kept, updated)

    def _keep(self, kept: BoolArray, precision: FloatArray) -> None:
        self.active = self.active[kept[1:]]
        if isinstance(self.columns, StoredColumns):
            self.columns = self.columns.take(np.flatnonzero(kept[1:]))
        else:
            self.columns = self.columns[:, kept]
        self.precision = precision[kept]
        self._refresh(self.posterior.mean[:, kept])


# -- With a Gamma hyperprior no column is removed --------------------------------------------------


def solve_with_hyperprior(
    design: Design, likelihood: Likelihood, hyperprior: tuple[float, float], tol: float, max_iter: int
) -> SparseBayes:
    r"""Iterate :math:`\beta_k = (\sum_c \gamma_{kc} + 2a) / (\sum_c \mu_{kc}^2 + 2b)` with half steps in the logarithm.

    :math:`\gamma_{kc} = 1 - \beta_k\Sigma_{kk} = v_k\, x_k^\top P_c x_k` is how well the data determine a weight
    and :math:`\mu_{kc} = v_k\, x_k^\top r_c`; both need only matrices of samples by samples. Full steps could oscillate
    between two values. A column counts as active when the data determine its weight more than the prior does.
    """
    shape, rate = hyperprior
    precision, mode, history = np.ones(design.n_features), None, []
    settled, n_iter = False, 0
    while True:
        mode = likelihood.dual_mode(K := np.ascontiguousarray(design.gram(1.0 / precision)), mode)
        determined, log_evidence = _determined(design, mode, K, precision)
        weights = design.transpose_dot(mode.residual.T) / precision[:, None]
        history.append(log_evidence + float(np.sum(shape * np.log(precision) - rate * precision)))
        if settled or n_iter == max_iter:
            break
        n_iter += 1
        aim = (determined.sum(axis=1) + 2.0 * shape) / (np.sum(weights**2, axis=1) + 2.0 * rate)
        change = float(np.abs(np.log(aim / precision)).max())
        change = max(change, 2.0 * likelihood.re_estimate(mode, float(determined.sum()) + 1.0))
        precision = np.sqrt(aim * precision)
        settled = change <= tol
    return SparseBayes(
        precision=precision,
        weights=weights,
        bias=mode.bias,
        log_evidence=log_evidence,
        relevance=np.zeros(design.n_features),
        active=np.flatnonzero(determined.mean(axis=1) > 0.5),
        covariance=np.empty((likelihood.n_outputs, 0, 0)),
        n_iter=n_iter,
        status=Status.CONVERGED if settled else Status.ITERATION_LIMIT,
        history=tuple(history),
    )


def _determined(
    design: Design, mode: DualMode, K: FloatArray, precision: FloatArray
) -> tuple[FloatArray, float]:
    """γ of each column and output, and the log evidence."""
    found, log_evidence = [], mode.log_likelihood
    for residual, curvature in zip(mode.residual, mode.curvature, strict=True):
        P, _, total, log_determinant = projected_inverse(K, curvature)
        found.append(design.gram_adjoint(P) / precision)
        log_evidence -= 0.5 * float(residual @ K @ residual + log_determinant + np.log(total) - LOG_2PI)
    return np.column_stack(found), log_evidence
