r"""Covariates: columns that are in every model besides the features, such as age, sex or a batch.

They are not penalised, not counted and not selected. With :math:`Z` the covariates, a linear model of the features
:math:`x` is :math:`f = x \cdot w + z \cdot v + b` with :math:`v` and :math:`b` free. As these are free, only the space
that :math:`[1, Z]` spans matters: it is held as an orthonormal basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._residual import EXPLAINED

DEPENDENT = 1e-8  # of the largest singular value of standardised covariates: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class Covariates:
    """The covariates of some samples, with the weights of the samples.

    Parameters
    ----------
    columns : one column per covariate, as given.
    weight : of the samples; None: all are one.
    """

    columns: FloatArray
    weight: FloatArray | None = None

    def take(self, rows: IntArray) -> Covariates:
        """The covariates of some samples."""
        return Covariates(self.columns[rows], None if self.weight is None else self.weight[rows])

    @cached_property
    def root_weight(self) -> FloatArray:
        return np.ones(len(self.columns)) if self.weight is None else np.sqrt(self.weight)

    @cached_property
    def orthonormal(self) -> FloatArray:
        r"""Columns U with :math:`U^\top U = 1` that span :math:`\sqrt{W} Z` beside :math:`\sqrt{W} 1`.

        Constant covariates and those that depend on others add no column.
        """
        root = self.root_weight[:, None]
        total = float(root.ravel() @ root.ravel())
        centred = root * (self.columns - (root**2 * self.columns).sum(axis=0) / total)
        for _ in range(2):  # twice: large means leave a rounding error along the constant
            centred -= root * (root * centred).sum(axis=0) / total
        length = np.linalg.norm(centred, axis=0)
        size = np.linalg.norm(root * self.columns, axis=0)
        varies = length > DEPENDENT * size
        left, values, _ = np.linalg.svd(centred[:, varies] / length[varies], full_matrices=False)
        return np.ascontiguousarray(left[:, values > DEPENDENT * values.max(initial=0.0)])

    @cached_property
    def basis(self) -> FloatArray:
        """Columns of weighted mean zero and variance one, uncorrelated, that span the covariates beside a constant."""
        root = self.root_weight
        return np.asarray(self.orthonormal * np.sqrt(root @ root) / root[:, None])

    @property
    def rank(self) -> int:
        """The number of independent covariates that vary."""
        return int(self.orthonormal.shape[1])

    def residuals(self, targets: FloatArray) -> FloatArray:
        """What remains of each column after its weighted regression on the covariates and a constant."""
        root = self.root_weight[:, None]
        residual = root * (targets - (root**2 * targets).sum(axis=0) / float(root.ravel() @ root.ravel()))
        for _ in range(2):
            residual = residual - self.orthonormal @ (self.orthonormal.T @ residual)
        return np.asarray(residual / root)


def in_residual_deviations(design: Design, covariates: Covariates) -> Design:
    """Standardised columns in units of the standard deviation of what the covariates leave of them.

    A model with covariates is then the same whatever multiples of them are added to a feature. Columns of which
    nothing is left are zero.
    """
    weight = covariates.weight
    weighted = covariates.basis if weight is None else weight[:, None] * covariates.basis
    total = len(weighted) if weight is None else float(weight.sum())
    left = 1.0 - ((design.transpose_dot(weighted) / total) ** 2).sum(axis=1)
    explained = left <= EXPLAINED
    if design.affine is not None:
        explained |= design.affine.zero_columns
    return design.transformed(
        scale=np.where(explained, 1.0, np.sqrt(np.maximum(left, EXPLAINED))), zero_columns=explained
    )


def check_room(covariates: Covariates, owner: str) -> None:
    """Raise an error if the covariates leave nothing to explain: every target is then a combination of them."""
    (n_samples, count), rank = covariates.columns.shape, covariates.rank
    if n_samples - 1 - rank < 2:
        raise ValueError(
            f"The 'adjust' parameter of {owner} names {count} covariates, which explain any target of {n_samples} "
            f"samples: {rank} of them are independent, and features need at least 2 more samples than that and one. "
            "Name fewer covariates, or add samples."
        )
