r"""Monomials of features as candidate columns, and the backward removal of those that are not needed."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._index import Index, as_selector
from zeronorm.engines._error_control import probe_tail

LARGEST_NUMBER = 5_000_000
CONSTANT = 1e-12  # standard deviation, relative to the mean, below which a monomial is constant
PERFECT = 1e-14  # residual below which a fit counts as exact, relative to the target


class MonomialDesign(Design):
    """The monomials of degree 1 to ``degree`` in the columns of a design, computed block by block.

    The columns of degree one come first, in the order of the features, so that monomial j is feature j.
    One dense copy of the features is held; the monomials, which are many more, are not.
    """

    def __init__(self, features: FloatArray, factors: IntArray) -> None:
        super().__init__((features.shape[0], factors.shape[1]), np.dtype(np.float64))
        self._features = features  # the last column holds ones, for monomials of lower degree
        self.factors = factors  # one row per factor, one column per monomial

    @classmethod
    def of(cls, design: Design, degree: int) -> MonomialDesign:
        """All monomials of the columns of a design."""
        n, p = design.shape
        number = comb(p + degree, degree) - 1
        if number > LARGEST_NUMBER:
            raise ValueError(
                f"The 'degree' parameter must leave at most {LARGEST_NUMBER:,} monomials. Got degree={degree} "
                f"for {p} features, which makes {number:,}; lower it or preselect features with a filter."
            )
        features = np.ones((n, p + 1), order="F")
        for columns, block in design.iter_blocks():
            features[:, columns] = block
        return cls(features, factor_table(p, degree))

    def _fill(self, columns: Index, out: FloatArray) -> None:
        chosen = as_selector(columns)
        np.copyto(out, self._features[:, self.factors[0, chosen]])
        for factor in self.factors[1:]:
            out *= self._features[:, factor[chosen]]

    def _take(self, columns: Index) -> MonomialDesign:
        return MonomialDesign(self._features, self.factors[:, as_selector(columns)])

    def _take_rows(self, rows: Index) -> MonomialDesign:
        return MonomialDesign(self._features[as_selector(rows)], self.factors)

    def centred(self, sample_weight: Any = None) -> Design:
        """The monomials minus their means; those that are constant up to rounding become zero."""
        stats = self.column_stats(sample_weight=sample_weight)
        constant = np.sqrt(stats.variance) <= CONSTANT * np.abs(stats.mean)
        return self.transformed(stats.mean, zero_columns=constant)

    def features_of(self, monomial: int) -> tuple[int, ...]:
        """The factors of a monomial: (1, 1, 4) stands for the square of feature 1 times feature 4."""
        one = self._features.shape[1] - 1
        return tuple(int(f) for f in self.factors[:, monomial] if f != one)

    def best_by_feature(self, scores: FloatArray) -> FloatArray:
        """For each feature the highest score of a monomial that contains it."""
        best = np.zeros(self._features.shape[1])
        for factor in self.factors:
            np.maximum.at(best, factor, scores)
        return best[:-1]


def factor_table(n_features: int, degree: int) -> IntArray:
    """Factors of all monomials, ascending in each; missing factors are numbered ``n_features``."""
    current = np.arange(n_features, dtype=np.intp)[None, :]
    tables = []
    for power in range(1, degree + 1):
        padding = np.full((degree - power, current.shape[1]), n_features, dtype=np.intp)
        tables.append(np.vstack([current, padding]))
        if power == degree:
            break  # the monomials of the next degree are not needed
        # Extend each monomial by every feature that does not precede its last factor.
        counts = n_features - current[-1]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        offset = np.arange(counts.sum()) - np.repeat(starts, counts)
        extended = np.repeat(current, counts, axis=1)
        current = np.vstack([extended, extended[-1] + offset])
    return np.hstack(tables)


def needed_columns(
    columns: FloatArray, target_basis: FloatArray, dimension: float, level: float, n_protected: int = 0
) -> list[int]:
    """Remove columns one at a time, the least significant first, while any fails the partial F test.

    ``dimension`` is that of the space of the columns and the target; the first ``n_protected`` columns
    are never removed. Returns the positions of the kept columns.
    """
    kept = list(range(columns.shape[1]))
    while len(kept) > n_protected:
        cos_sq = partial_cosines(columns[:, kept], target_basis)
        significance = probe_tail(cos_sq, dimension - len(kept) + 1, target_basis.shape[1])
        significance[:n_protected] = 0.0
        weakest = len(kept) - 1 - int(np.argmax(significance[::-1]))  # of ties, the last to enter
        if significance[weakest] <= level:
            break
        del kept[weakest]
    return kept


def needed_by_leave_one_out(
    columns: FloatArray, targets: FloatArray, leverage: FloatArray, weight: FloatArray, n_protected: int = 0
) -> list[int]:
    r"""Remove columns one at a time while the leave-one-out error does not rise (Rivals & Personnaz 2003).

    Let :math:`u` be column j projected off all others, at unit length. Without it the least-squares fit has residuals
    :math:`e + u u^\top y` and the leverages :math:`h - u \circ u`, so each candidate needs one pass over the samples,

    .. math:: E_j = \frac1n \sum_i \left(\frac{e_i + u_i\, u^\top y}{1 - h_i + u_i^2}\right)^2 .

    The column with the lowest :math:`E_j` is removed if that is no higher than the error with it. ``leverage`` is the
    leverage of the intercept, ``weight`` the sample weights, by whose root columns and targets are multiplied; the
    first ``n_protected`` columns are never removed. Returns the positions of the kept columns.
    """
    kept = list(range(columns.shape[1]))
    error = np.inf
    while kept:
        basis, directions = directions_off_the_others(columns[:, kept])
        products = directions.T @ targets
        residual = targets - basis @ (basis.T @ targets)
        slack = 1.0 - (leverage + (basis**2).sum(axis=1)) / weight
        error = min(error, _leave_one_out_error(residual, slack, weight))
        without = np.full(len(kept), np.inf)
        for j in range(n_protected, len(kept)):
            u = directions[:, j]
            without[j] = _leave_one_out_error(
                residual + np.outer(u, products[j]), slack + u**2 / weight, weight
            )
        weakest = len(kept) - 1 - int(np.argmin(without[::-1]))  # of ties, the last to enter
        if without[weakest] > error or n_protected == len(kept):
            break
        del kept[weakest]
    return kept


def _leave_one_out_error(residual: FloatArray, slack: FloatArray, weight: FloatArray) -> float:
    if slack.min() < PERFECT:
        return np.inf  # a sample of leverage one
    return float(((residual**2).sum(axis=1) / slack**2).sum() / weight.sum())


def directions_off_the_others(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Orthonormal basis of independent columns, and each column projected off all others, at unit length.

    The projection of column j off the others is a multiple of column j of :math:`Z (Z^\top Z)^{-1}`.
    """
    basis, triangle = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))
    coordinates = np.linalg.solve(triangle, np.eye(len(triangle)))
    coordinates /= np.linalg.norm(coordinates, axis=1)[:, None]
    return basis, basis @ coordinates.T


def partial_cosines(columns: FloatArray, target_basis: FloatArray) -> FloatArray:
    r"""Squared cosine of each column with the target, both projected off all other columns.

    With :math:`h` the products of the projected column at unit length with the target and :math:`E` the Gram
    matrix of the residual target, the squared cosine is :math:`s / (1 + s)`, :math:`s = h^\top E^{-1} h`.
    """
    basis, directions = directions_off_the_others(columns)
    residual = target_basis - basis @ (basis.T @ target_basis)
    products = directions.T @ target_basis
    gram = residual.T @ residual + PERFECT * np.eye(residual.shape[1])
    ratio = np.einsum("jr,rj->j", products, np.linalg.solve(gram, products.T))
    return np.asarray(ratio / (1.0 + ratio))
