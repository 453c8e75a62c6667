r"""Samples of groups (patients, batches) turned into rows whose noise is independent.

With a random effect :math:`b_g` of each group the target of sample i of group g is

.. math:: y_{gi} = x_{gi}^\top \beta + b_g + \varepsilon_{gi}, \qquad
          \operatorname{Var}(b_g) = \theta \sigma^2, \quad \operatorname{Var}(\varepsilon_{gi}) = \sigma^2.

An orthogonal map of the m samples of a group gives the root of m times their mean and m - 1 contrasts. The noise of all
of them is independent; that of the first has the variance :math:`(1 + m \theta) \sigma^2`. So

.. math:: \tilde x_{g1} = \sqrt{m}\, \bar x_g / \sqrt{1 + m \theta}, \qquad \tilde x_{g2}, \dots, \tilde x_{gm}
          \text{ the contrasts}

and the same for y make a linear model with independent noise of equal variance: generalised least squares (Aitken
1936). :math:`\theta` is estimated by restricted maximum likelihood (Patterson & Thompson 1971): of

.. math:: (n - k) \log S(\theta) + \sum_g \log(1 + m_g \theta) + \log |\tilde F^\top \tilde F|

it has the smallest value, with the residual sum of squares S of the combined target after a regression on k columns F,
the intercept and the features that are known to matter. Where these differ in how much they vary within groups, the
:math:`\theta` of the target is not that of its noise; so features are selected and :math:`\theta` is estimated again
until the selection stays.

The intercept, which the map turns into :math:`\sqrt{m / (1 + m \theta)}` for each mean, is turned into a constant
column by a reflection.

What the target says decides which rows there are: a target with one value in most groups (the diagnosis of a patient)
describes groups, whose means are the samples; one with the same values in nearly all groups (tumour and normal tissue
of each patient) is compared within groups, by the contrasts alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.selection._sample_groups import group_codes, is_paired, members_of

EQUAL = 1e-12  # square of the difference of two unit vectors below which they are equal
THETAS = (1e-4, 1e4)  # range of the variance between groups in units of that within
MOST_REPETITIONS = 4  # of the selection with other weights; usually one or two change it

Selected = TypeVar("Selected")


@dataclass(frozen=True)
class IndependentSamples:
    """Combinations of samples with independent noise.

    Parameters
    ----------
    order : the samples, sorted by group.
    sizes : number of samples of each group.
    of_means : factor of the root of the group size times the group mean; 0 leaves the means out.
    of_contrasts : factor of the contrasts; 0 leaves them out.
    is_weighted : whether the factors follow from an estimated random effect.
    """

    order: IntArray
    sizes: IntArray
    of_means: FloatArray
    of_contrasts: float
    is_weighted: bool = False

    @property
    def n_rows(self) -> int:
        """Number of independent samples; without means one row for the intercept is added to the contrasts."""
        return int(self._kept.size)

    def dot(self, columns: FloatArray) -> FloatArray:
        """The combinations of a vector or of each column."""
        factor = self._factor[(slice(None), *(np.newaxis,) * (columns.ndim - 1))]
        return self._reflected((self.rotated(columns[self.order]) * factor)[self._kept])

    def transpose_dot(self, V: FloatArray) -> FloatArray:
        """The transposed map."""
        placed = np.zeros((self.order.size, *V.shape[1:]))
        placed[self._kept] = self._reflected(V)
        placed *= self._factor[(slice(None), *(np.newaxis,) * (V.ndim - 1))]
        found = np.empty_like(placed)
        found[self.order] = self.rotated(placed)
        return found

    @cached_property
    def _starts(self) -> IntArray:
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def _factor(self) -> FloatArray:
        factor = np.full(self.order.size, self.of_contrasts)
        factor[self._starts] = self.of_means
        return factor

    @cached_property
    def _kept(self) -> IntArray:
        is_kept = self._factor > 0.0
        is_kept[0] = True  # of contrasts alone a zero, in which the reflection places the intercept
        return np.flatnonzero(is_kept)

    def rotated(self, columns: FloatArray) -> FloatArray:
        """The root of the size times the mean of each group, and contrasts: a reflection, so its own inverse."""
        starts = self._starts
        roots = np.sqrt(self.sizes)[(slice(None), *(np.newaxis,) * (columns.ndim - 1))]
        means = np.add.reduceat(columns, starts, axis=0) / roots
        shift = (means - columns[starts]) / np.maximum(roots - 1.0, np.finfo(float).tiny)
        found = columns - np.repeat(shift, self.sizes, axis=0)
        found[starts] = means
        return np.asarray(found)

    @cached_property
    def _reflection(self) -> FloatArray:
        """The direction along which the intercept and the constant vector are exchanged; zero if they are equal."""
        intercept = np.zeros(self.order.size)
        intercept[self._starts] = np.sqrt(self.sizes) * self.of_means
        intercept = intercept[self._kept]
        intercept[0] = intercept[0] or 1.0  # of contrasts alone
        direction = intercept / np.linalg.norm(intercept) - intercept.size**-0.5
        length = float(direction @ direction)
        return direction * 0.0 if length < EQUAL else np.asarray(direction / np.sqrt(length))

    def _reflected(self, columns: FloatArray) -> FloatArray:
        along = self._reflection
        return np.asarray(columns - 2.0 * np.multiply.outer(along, along @ columns))


def independent_samples(columns: FloatArray, groups: NDArray[Any] | None) -> IndependentSamples | None:
    """The combinations of samples with independent noise; None if there are no groups of several samples.

    ``columns`` are the target, one number or one indicator per class for each sample.
    """
    codes = None if groups is None else group_codes(groups)
    if groups is None or codes is None or not 1 < int(codes.max()) + 1 < codes.size:
        return None
    members, sizes = members_of(codes), np.bincount(codes)
    if describes_groups(columns, members):
        return means_of_groups(groups)
    order = np.concatenate(members)
    if is_paired(np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1), members):
        return IndependentSamples(order, sizes, np.zeros(sizes.size), 1.0)
    return weighted_samples(columns, groups, columns[:, :0])


def means_of_groups(groups: NDArray[Any]) -> IndependentSamples:
    """The mean of each group."""
    members = members_of(group_codes(groups))
    sizes = np.asarray([rows.size for rows in members])
    return IndependentSamples(np.concatenate(members), sizes, sizes**-0.5, 0.0)


def describes_groups(columns: FloatArray, members: list[IntArray]) -> bool:
    """Whether most groups of several samples have one value of the target."""
    is_pure = [bool(np.all(columns[rows] == columns[rows[0]])) for rows in members if rows.size > 1]
    return 2 * sum(is_pure) > len(is_pure)


def weighted_samples(columns: FloatArray, groups: NDArray[Any], features: FloatArray) -> IndependentSamples:
    """Means and contrasts with the weights of the random effect that remains beside these features."""
    members = members_of(group_codes(groups))
    sizes, order = np.asarray([rows.size for rows in members]), np.concatenate(members)
    theta = variance_ratio(columns[order], sizes, features[order, : order.size // 2])
    return IndependentSamples(order, sizes, 1.0 / np.sqrt(1.0 + theta * sizes), 1.0, is_weighted=True)


def variance_ratio(columns: FloatArray, sizes: IntArray, features: FloatArray) -> float:
    r"""The restricted maximum likelihood estimate of :math:`\theta`, summed over the columns of the target.

    Samples are sorted by group; ``features`` are those that explain a part of the target.
    """
    order = np.arange(len(columns))
    rotated = IndependentSamples(order, sizes, np.ones(sizes.size), 1.0)
    known = np.column_stack([np.ones(order.size), features])
    fixed, target = (rotated.rotated(part) for part in (known, columns - columns.mean(axis=0)))
    starts = np.cumsum(sizes) - sizes

    def minus_likelihood(log_theta: float) -> float:
        weight = np.ones((order.size, 1))
        variance = 1.0 + np.exp(log_theta) * sizes
        weight[starts, 0] = variance**-0.5
        basis, triangle = np.linalg.qr(fixed * weight)
        rest = target * weight
        rest -= basis @ (basis.T @ rest)
        scale = (order.size - fixed.shape[1]) * np.log((rest**2).sum(axis=0))
        determinant = np.log(variance).sum() + 2.0 * np.log(np.abs(np.diag(triangle))).sum()
        return float((scale + determinant).sum())

    found = minimize_scalar(minus_likelihood, bounds=np.log(THETAS), method="bounded")
    return 0.0 if minus_likelihood(-np.inf) <= found.fun else float(np.exp(found.x))


def select_repeatedly(
    combined: IndependentSamples | None,
    columns: FloatArray,
    groups: NDArray[Any] | None,
    design: Design,
    select: Callable[[IndependentSamples | None], tuple[Selected, IntArray]],
) -> Selected:
    """Select from the combined samples, and again with the weights that follow from the selected features.

    ``select`` returns a selection and its features.
    """
    found, kept = select(combined)
    if groups is None or combined is None or not combined.is_weighted:
        return found
    for _ in range(MOST_REPETITIONS):
        if kept.size == 0:
            break
        before = kept
        found, kept = select(weighted_samples(columns, groups, design.block(np.sort(kept))))
        if np.array_equal(np.sort(kept), np.sort(before)):
            break
    return found
