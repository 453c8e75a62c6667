r"""Forward selection by orthogonalisation that never stores the projected columns.

With :math:`Q` an orthonormal basis of the selected columns, the projected column
:math:`x_j^\perp = x_j - Q Q^\top x_j` enters only through its squared norm and its inner products with
the residual target. Both change by a term of rank one when a column is added, and that term needs one
product :math:`X^\top q`: one pass over the data per step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.selection._path import TIE_TOLERANCE, order_by_score
from zeronorm.selection._problem import Problem

DEPENDENT = 1e-10  # share of its squared norm below which a projected column counts as dependent
EXPLAINED = 1e-7  # share of its norm below which a direction of the target counts as explained
FIRST_ROOM = 15  # directions allocated first; the array doubles when it is full
STALE = 1e-3  # products with the residual are recomputed after it has shrunk by this factor


class OrthogonalSearch:
    """The state of a forward selection: selected columns, residual target, and a score for every column.

    Parameters
    ----------
    design : the candidate columns. A standardised design is a model with an intercept, any other
        a model through the origin.
    targets : one column per target.
    sample_weight : a weight of two equals a duplicated sample.
    joint : score projected columns (the drop of the residual after refitting) or, if False, the
        columns as they are against the residual.
    covariates : orthonormal directions, beside the intercept, that are in the fit from the start.
    """

    def __init__(
        self,
        design: Design,
        targets: FloatArray,
        sample_weight: FloatArray | None = None,
        *,
        joint: bool = True,
        covariates: FloatArray | None = None,
    ) -> None:
        self.design = design
        self.joint = joint
        n, p = design.shape
        self.weight = np.ones(n) if sample_weight is None else sample_weight
        self.n_effective = float(self.weight.sum())
        self._root_weight = np.sqrt(self.weight)
        self._basis = np.empty((n, min(n, p, FIRST_ROOM) + 1), order="F")
        self.rank = 0
        self.selected: list[int] = []
        self.independent: list[int] = []  # the selected columns that added a direction
        has_intercept = design.affine is not None
        if has_intercept:
            # Centred before lengths are compared: next to a large mean the rest would look negligible.
            targets = targets - targets.mean(axis=0)
        residual = self._root_weight[:, None] * targets
        if has_intercept:
            self._extend_basis(self._root_weight / np.linalg.norm(self._root_weight))
            residual = self._projected(residual)
        n_covariates = 0 if covariates is None else covariates.shape[1]
        for direction in range(n_covariates):
            assert covariates is not None
            self._extend_basis(self._unit_length(covariates[:, direction]))
        if n_covariates:
            residual = self._projected(residual)
        self.target_basis, self._target_scale = _orthonormal(residual, float(np.linalg.norm(targets)))
        self._residual = self.target_basis.copy()
        stats = design.column_stats(sample_weight=sample_weight)
        self._full_norm_sq = self.n_effective * (stats.variance + stats.mean**2)
        self._norm_sq = self._full_norm_sq.copy()
        self._selectable = self._full_norm_sq > 0.0
        if n_covariates:  # a column that the covariates explain adds nothing
            known = self._basis[:, self.rank - n_covariates : self.rank]
            self._norm_sq -= (design.transpose_dot(self._root_weight[:, None] * known) ** 2).sum(axis=1)
            self._selectable &= self._norm_sq > DEPENDENT * self._full_norm_sq
            self._full_norm_sq = np.where(self._selectable, self._norm_sq, self._full_norm_sq)
        self._refresh_products()
        self.scores = self._score()

    # -- results read by the methods --------------------------------------------------------------

    @property
    def dimension(self) -> float:
        """Dimension of the space of the projected columns."""
        return self.n_effective - self.rank

    @property
    def intercept_leverage(self) -> FloatArray:
        """Leverage of the intercept for each sample, summed over copies of a sample; 0 without an intercept."""
        has_intercept = self.design.affine is not None
        return self.weight / self.n_effective if has_intercept else np.zeros(self.weight.size)

    @property
    def scaled_targets(self) -> FloatArray:
        """The targets of the equivalent problem without weights, centred where there is an intercept."""
        return np.asarray(self.target_basis * self._target_scale)

    @property
    def target_rank(self) -> int:
        """Dimension of the part of the target that is not yet explained."""
        return int(self._directions.shape[1])

    @property
    def n_candidates(self) -> int:
        """Number of columns that could still be added."""
        return int(np.count_nonzero(self._selectable))

    @property
    def can_grow(self) -> bool:
        """Whether the residual is not zero and a candidate column is left."""
        return self.target_rank > 0 and self.rank < len(self._residual) and bool(self._selectable.any())

    @property
    def residual_sum_of_squares(self) -> float:
        """Squared residuals of the least-squares fit to all targets."""
        return float(((self._residual * self._target_scale) ** 2).sum())

    def leave_one_out_error(self, column: int | None = None) -> float:
        r"""Leave-one-out mean squared error, with one more column if given.

        .. math:: \frac1n \sum_i \left(\frac{e_i}{1 - h_i}\right)^2

        with the leverages :math:`h_i` on the diagonal of :math:`Q Q^\top`; infinite when a sample has
        leverage one.
        """
        leverage = (self._basis[:, : self.rank] ** 2).sum(axis=1)
        residual = self._residual
        direction = None if column is None else self._direction(column)
        if direction is not None:
            leverage += direction**2
            residual = residual - np.outer(direction, direction @ residual)
        slack = 1.0 - leverage / self.weight
        if slack.min() < DEPENDENT:
            return np.inf
        squares = ((residual * self._target_scale) ** 2).sum(axis=1)
        return float((squares / slack**2).sum() / self.n_effective)

    def best(self) -> int:
        """The column with the highest score; of tied columns the first."""
        highest = float(self.scores.max())
        return int(np.argmax(self.scores >= highest - TIE_TOLERANCE * abs(highest)))

    def order(self) -> IntArray:
        """Selected columns in the order of selection, then the others by their score."""
        rest = order_by_score(self.scores)
        chosen = np.asarray(self.selected, dtype=np.intp)
        return np.concatenate([chosen, rest[~np.isin(rest, chosen)]])

    # -- growing --------------------------------------------------------------------------------

    def add(self, column: int) -> None:
        """Select a column, project the others and the target on its orthogonal complement and score all columns."""
        self.selected.append(column)
        self._selectable[column] = False
        direction = self._direction(column)
        if direction is None:  # a forced column may depend on those before it
            self.scores[column] = 0.0
            return
        self._extend_basis(direction)
        self.independent.append(column)
        explained = direction @ self._residual
        self._residual -= np.outer(direction, explained)
        if self.joint:
            self._downdate(direction, explained)
        else:
            self._refresh_products()
        latest = self._score()
        # When the residual is zero, the scores before this step order the remaining columns.
        self.scores = latest if self.target_rank else np.where(self._selectable, self.scores, 0.0)

    def columns(self, chosen: Sequence[int]) -> FloatArray:
        """The chosen columns of the equivalent problem without weights, as a dense array."""
        return np.asarray(self._root_weight[:, None] * self.design.block(np.asarray(chosen, dtype=np.intp)))

    def _direction(self, column: int) -> FloatArray | None:
        """The projected column at unit length, or None when it depends on the selected ones."""
        projected = self._projected(self.columns([column])[:, 0])
        length_sq = float(projected @ projected)
        if self.rank >= len(projected) or length_sq <= DEPENDENT * self._full_norm_sq[column]:
            return None
        return np.asarray(projected / np.sqrt(length_sq))

    def _unit_length(self, direction: FloatArray) -> FloatArray:
        """The part of a direction beside the basis, at length one."""
        beside = self._projected(direction)
        return np.asarray(beside / np.linalg.norm(beside))

    def _extend_basis(self, direction: FloatArray) -> None:
        if self.rank == self._basis.shape[1]:
            grown = np.empty((len(direction), 2 * self.rank), order="F")
            grown[:, : self.rank] = self._basis
            self._basis = grown
        self._basis[:, self.rank] = direction
        self.rank += 1

    def _projected(self, columns: FloatArray) -> FloatArray:
        basis = self._basis[:, : self.rank]
        for _ in range(2):  # twice: the first projection leaves a rounding error along the basis
            columns = columns - basis @ (basis.T @ columns)
        return columns

    def _downdate(self, direction: FloatArray, explained: FloatArray) -> None:
        cosines = self.design.transpose_dot(self._root_weight * direction)
        self._norm_sq -= cosines**2
        self._selectable &= self._norm_sq > DEPENDENT * self._full_norm_sq
        self._products -= np.outer(cosines, explained)
        self._update_directions()
        if self.target_rank and self._smallest < STALE * self._smallest_when_fresh:
            self._refresh_products()

    def _refresh_products(self) -> None:
        if self._residual.shape[1] == 1:
            products = self.design.transpose_dot(self._root_weight * self._residual[:, 0])[:, None]
        else:
            products = self.design.transpose_dot(self._root_weight[:, None] * self._residual)
        self._products = products
        self._update_directions()
        self._smallest_when_fresh = self._smallest

    def _update_directions(self) -> None:
        """Update the combinations of the targets whose residuals are orthonormal, without explained ones."""
        _, lengths, combinations = np.linalg.svd(self._residual, full_matrices=False)
        unexplained = lengths > EXPLAINED
        self._smallest = float(lengths[unexplained].min(initial=np.inf))
        self._directions = combinations[unexplained].T / lengths[unexplained]

    def _score(self) -> FloatArray:
        """Squared cosines of the candidates with the residual target, 0 for all other columns."""
        norm_sq = self._norm_sq if self.joint else self._full_norm_sq
        inner_sq = ((self._products @ self._directions) ** 2).sum(axis=1)
        cos_sq = np.zeros(len(norm_sq))
        np.divide(inner_sq, norm_sq, out=cos_sq, where=self._selectable)
        return np.minimum(cos_sq, 1.0)


def least_squares_search(problem: Problem, design: Design | None = None, *, joint: bool) -> OrthogonalSearch:
    """Start a search for the target of a problem, with the forced features already selected."""
    search = OrthogonalSearch(
        problem.design if design is None else design,
        problem.target.columns(),
        problem.sample_weight,
        joint=joint,
        covariates=None if problem.adjust is None else problem.adjust.orthonormal,
    )
    if search.target_rank == 0 and problem.adjust is None:
        raise ValueError(
            "The target y must vary, but all its values are the same: there is nothing for a feature to "
            "explain. Check y, or the samples that were chosen."
        )
    for column in problem.always_keep:
        search.add(int(column))
    return search


def _orthonormal(targets: FloatArray, size: float) -> tuple[FloatArray, FloatArray]:
    """Orthonormal basis of the targets and the length of each basis vector in them."""
    left, lengths, _ = np.linalg.svd(targets, full_matrices=False)
    kept = lengths > DEPENDENT * size
    if not kept.any():
        kept[0], lengths[0], left[:, 0] = True, 0.0, 0.0
    return left[:, kept], lengths[kept]
