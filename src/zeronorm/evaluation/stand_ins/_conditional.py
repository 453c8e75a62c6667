r"""Tests of the association of one column with the target, given other columns.

With :math:`Q` the projection on what is orthogonal to the intercept and the given columns, :math:`e = Qx`, and
:math:`V` an orthonormal basis of the d columns of :math:`QY` (d = 1 for two classes and real targets, one less than
the number of classes for more),

.. math:: R^2 = \lVert V^\top e\rVert^2 / \lVert e\rVert^2, \qquad t^2 = \nu\,\frac{R^2}{1 - R^2}, \qquad
          \frac{t^2}{d} \sim F(d, \nu)

without association, where :math:`\nu` is the number of samples minus the rank of the given columns, minus d. With
d = 1 it is the test of the partial correlation. The noncentrality :math:`\lambda^2` of :math:`t^2` is what the column
adds to the given ones, in units of noise.

A column f takes over what j adds if little of it is left once f is given too. With :math:`t_j` given the others, and
:math:`t_{j|f}` given the others and f, the hypothesis that at least the share :math:`\delta` is left,
:math:`\lambda_{j|f} \ge \sqrt\delta\,\lambda_j`, is rejected where

.. math:: z = \frac{|t_{j|f}| - \sqrt\delta\,|t_j|}{\sigma}, \qquad
          \sigma^2 = 1 + \frac{t_{j|f}^2}{2\nu} + \delta\Bigl(1 + \frac{t_j^2}{2\nu}\Bigr) - 2\sqrt\delta\,c

is small (Fieller 1954, for the ratio of two estimates). Their correlation c is :math:`\pm\sqrt{1 - \rho^2}` with the
correlation :math:`\rho` of j and f given the others, and the sign of :math:`t_j t_{j|f}`. A :math:`t_{j|f}` that is not
significant is therefore not enough: :math:`t_j` must be so large that what is left would have been seen. The opposite
hypothesis, that at most a share is left, is rejected where :math:`t_{j|f}^2 / d` is large for a noncentral F
distribution whose noncentrality is this share of :math:`t_j^2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from zeronorm._types import FloatArray
from zeronorm.engines._error_control import probe_tail

SAME_DIRECTION = (
    1e-10  # share of a squared norm that is left where a column depends linearly on the given ones
)


@dataclass(frozen=True, eq=False)
class GivenColumns:
    """The given columns: an orthonormal basis of them and the intercept, and the target without its part in them."""

    basis: FloatArray  # (n, rank)
    residual: FloatArray  # of the target columns, (n, q)

    @classmethod
    def of(cls, columns: FloatArray, target: FloatArray) -> GivenColumns:
        """From the columns (possibly none) and the columns of the target."""
        n = len(target)
        stacked = np.column_stack([np.full(n, n**-0.5), standardized(columns)])
        basis = orthonormal(stacked)
        return cls(basis, target - basis @ (basis.T @ target))

    @cached_property
    def target_basis(self) -> FloatArray:
        """An orthonormal basis of the target columns without their part in the given columns."""
        return orthonormal(self.residual)

    @property
    def dof(self) -> int:
        """Degrees of freedom of the test of one more column."""
        return int(len(self.residual) - self.basis.shape[1] - self.target_basis.shape[1])

    def rest_of(self, columns: FloatArray) -> FloatArray:
        """The columns without their part in the given ones; exactly zero where nothing is left."""
        rest = columns - self.basis @ (self.basis.T @ columns)
        rest -= self.basis @ (self.basis.T @ rest)
        before = np.einsum("ij,ij->j", columns, columns)
        rest[:, np.einsum("ij,ij->j", rest, rest) <= SAME_DIRECTION * before] = 0.0
        return rest


@dataclass(frozen=True, eq=False)
class TakeOver:
    """One column j and candidates f for its part, all given the same other columns.

    Parameters
    ----------
    dof : degrees of freedom with the other columns given.
    rank : dimension d of the target.
    t : statistic of j given the others (signed where d is 1).
    correlation : of j with each f, given the others.
    t_candidates : statistic of each f given the others.
    t_left : statistic of j given the others and f.
    """

    dof: int
    rank: int
    t: float
    correlation: FloatArray
    t_candidates: FloatArray
    t_left: FloatArray

    @property
    def p_alone(self) -> float:
        """p-value of j given the others."""
        return float(p_of(np.array([self.t]), self.rank, self.dof)[0])

    @property
    def p_candidates(self) -> FloatArray:
        """p-value of each f given the others."""
        return p_of(self.t_candidates, self.rank, self.dof)

    def p_at_most(self, share: float) -> FloatArray:
        """p-value of the hypothesis that at most this share of what j adds is left once f is given.

        With the share 0 it is that of j given the others and f.
        """
        dof = self.dof - 1
        if dof < 1 or share == 0.0:
            return p_of(self.t_left, self.rank, dof)
        return np.asarray(stats.ncf.sf(self.t_left**2 / self.rank, self.rank, dof, share * self.t**2))

    def p_at_least(self, share: float) -> FloatArray:
        """p-value of the hypothesis that at least this share of what j adds is left once f is given."""
        left, root = np.abs(self.t_left), np.sqrt(share)
        # |t|² is on average d − 1 too large where the target has d columns.
        alone = np.sqrt(max(0.0, self.t**2 - (self.rank - 1)))
        sign = np.sign(self.t * self.t_left) if self.rank == 1 else -1.0
        common = sign * np.sqrt(np.clip(1.0 - self.correlation**2, 0.0, 1.0))
        nu = 2.0 * max(1, self.dof - 1)
        variance = 1.0 + left**2 / nu + share * (1.0 + alone**2 / nu) - 2.0 * root * common
        return np.asarray(stats.norm.cdf((left - root * alone) / np.sqrt(variance)))


def take_over(given: GivenColumns, column: FloatArray, candidates: FloatArray) -> TakeOver:
    """The statistics of a column and of candidates for its part, from their values (candidates as columns)."""
    V, d = given.target_basis, given.target_basis.shape[1]
    e, F = given.rest_of(column[:, None])[:, 0], given.rest_of(candidates)
    norm_sq, norms = float(e @ e), np.sqrt(np.einsum("ij,ij->j", F, F))
    A = F / np.where(norms > 0.0, norms, 1.0)
    v, B = V.T @ e, V.T @ A  # (d,), (d, m)
    shared = e @ A
    # What f leaves of j and of the target: rank-one changes of e'e, V'e and V'V.
    left_sq = np.maximum(norm_sq - shared**2, 0.0)
    left_sq = np.where(left_sq > SAME_DIRECTION * norm_sq, left_sq, 0.0)
    left = v[:, None] - B * shared
    unexplained = np.maximum(1.0 - (B**2).sum(axis=0), SAME_DIRECTION)
    explained = (left**2).sum(axis=0) + (B * left).sum(axis=0) ** 2 / unexplained
    signs = _sign(v[:1])[0], _sign(B[0]), _sign(left[0]) if d == 1 else np.ones(len(shared))
    return TakeOver(
        dof=given.dof,
        rank=d,
        t=float(signs[0] * _statistic(np.array([float(v @ v)]), np.array([norm_sq]), given.dof)[0]),
        correlation=np.asarray(shared / np.sqrt(norm_sq) if norm_sq > 0.0 else np.zeros(len(shared))),
        t_candidates=signs[1] * _statistic((B**2).sum(axis=0), (norms > 0.0).astype(float), given.dof),
        t_left=signs[2] * _statistic(explained, left_sq, given.dof - 1),
    )


def _sign(values: FloatArray) -> FloatArray:
    return np.where(values < 0.0, -1.0, 1.0)


def _statistic(explained: FloatArray, total: FloatArray, dof: int) -> FloatArray:
    """The root of ν R² / (1 − R²); 0 for a column of which nothing is left."""
    share = np.where(total > 0.0, explained / np.where(total > 0.0, total, 1.0), 0.0)
    share = np.clip(share, 0.0, 1.0 - SAME_DIRECTION)
    return np.asarray(np.sqrt(max(0, dof) * share / (1.0 - share)))


def p_of(t: FloatArray, rank: int, dof: int) -> FloatArray:
    """p-values of statistics with ``rank`` and ``dof`` degrees of freedom; 1 where none are left."""
    if dof < 1:
        return np.ones_like(t)
    return probe_tail(t**2 / (t**2 + dof), rank + dof, rank)


def standardized(columns: FloatArray) -> FloatArray:
    """Columns with mean 0 and variance 1; constant ones become 0."""
    centred = columns - columns.mean(axis=0) if columns.size else columns
    scale = centred.std(axis=0) if columns.size else np.ones(columns.shape[1])
    return np.asarray(np.where(scale > 0.0, centred / np.where(scale > 0.0, scale, 1.0), 0.0))


def orthonormal(columns: FloatArray) -> FloatArray:
    """An orthonormal basis of the columns, without directions that the others have."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(U[:, s > np.sqrt(SAME_DIRECTION) * max(float(s.max(initial=0.0)), 1e-300)])
