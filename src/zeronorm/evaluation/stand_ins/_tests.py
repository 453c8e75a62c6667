"""Which other features can take over the part of each selected one: candidates, tests, and what they decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._error_control import adjust_p_values
from zeronorm.evaluation.stand_ins._conditional import (
    SAME_DIRECTION,
    GivenColumns,
    TakeOver,
    orthonormal,
    standardized,
    take_over,
)

NEGLIGIBLE = (
    0.02  # share of what a feature adds that need not be gone; a copy with the correlation 0.99 loses it
)
LEAST_CORRELATION = 0.5  # with the selected feature, given the others, of a feature that is tested
MOST_COVERS = 8  # selected features that are tried as those that cover another
MOST_CANDIDATES = 100  # tested for one selected feature, the most correlated first
NO_COLUMNS = np.empty(0, dtype=np.intp)
VALUES_AT_ONCE = 1 << 24  # of the products with all features, 128 MiB


@dataclass(frozen=True, eq=False)
class Tested:
    """The tests of one selected feature.

    Parameters
    ----------
    index : the selected feature.
    p_value : of the feature given the other selected ones, times the number of all features, from which it was chosen.
    dof : degrees of freedom of its test.
    n_features : number of all features.
    covered_by : the fewest other selected features without which this one would be significant; empty if none are.
    n_correlated : number of features that are correlated with it, given the others.
    candidates : those that were tested.
    found : the statistics of the candidates; None where there are none.
    p_candidates, p_left, p_loss : adjusted over the candidates, of the hypotheses that a candidate is not associated
        with the target given the others; that at most a negligible share of what the feature adds is left once the
        candidate is given (both by Holm); that more than the accepted share is left (by a fixed sequence).
    """

    index: int
    p_value: float
    dof: int
    n_features: int
    covered_by: tuple[int, ...]
    n_correlated: int
    candidates: IntArray
    found: TakeOver | None
    p_candidates: FloatArray
    p_left: FloatArray
    p_loss: FloatArray

    def is_substitute(self, level: float) -> Any:
        """Which candidates take over what the feature adds, as far as tests can show it."""
        p_claim = np.maximum(self.p_candidates, self.p_loss)
        return (self.p_value <= level) & (p_claim <= level) & (self.p_left > level)

    def is_open(self, level: float) -> Any:
        """Which candidates might, but the samples are too few to tell.

        That something is lost with a candidate is shown only if it would be for the best of all features, since the
        feature was selected on the same samples and fits them better than others would.
        """
        is_lost = self.p_left * self.n_features <= level
        is_candidate = (self.p_value <= level) & (self.p_candidates <= level)
        return is_candidate & ~is_lost & ~self.is_substitute(level)


def run_tests(
    design: Design,
    support: IntArray,
    target: FloatArray,
    collapse: Callable[[FloatArray], FloatArray],
    level: float,
    largest_loss: float,
    adjust: IntArray = NO_COLUMNS,
) -> list[Tested]:
    """The tests of all selected features.

    Parameters
    ----------
    design : all features.
    support : the selected ones.
    target : columns of the target, one row per independent sample.
    collapse : from columns of all samples to those of independent samples, such as means of sample groups.
    level : of each family of tests.
    largest_loss : share of what a feature adds that may be left once a substitute is given.
    adjust : columns that are always given too, the covariates.
    """
    selected = design.block(np.append(support, adjust))
    k, n_features = len(support), design.n_features - len(adjust)
    correlated = _correlated(design, support, adjust, standardized(selected))
    values = collapse(selected)
    given = [GivenColumns.of(np.delete(values, at, axis=1), target) for at in range(k)]
    alone = [take_over(given[at], values[:, at], values[:, :0]) for at in range(k)]
    p_values = np.minimum(1.0, n_features * np.array([each.p_alone for each in alone]))
    tested = []
    for at in range(k):
        candidates, n_correlated = correlated[at]
        is_shown = p_values[at] <= level
        found, adjusted = None, [np.ones(0)] * 3
        if is_shown and candidates.size:
            found = take_over(given[at], values[:, at], collapse(design.block(candidates)))
            p_values_of = (found.p_candidates, found.p_at_most(NEGLIGIBLE))
            adjusted = [adjust_p_values(each, "holm") for each in p_values_of]
            adjusted.append(in_sequence(found.p_at_least(largest_loss)))
        cover = [] if is_shown else _cover(values, k, target, at, level)
        tested.append(
            Tested(
                index=int(support[at]),
                p_value=float(p_values[at]),
                dof=given[at].dof,
                n_features=n_features,
                covered_by=tuple(int(support[other]) for other in cover),
                n_correlated=n_correlated,
                candidates=candidates if is_shown else candidates[:0],
                found=found,
                p_candidates=adjusted[0],
                p_left=adjusted[1],
                p_loss=adjusted[2],
            )
        )
    return tested


def in_sequence(p_values: FloatArray) -> FloatArray:
    """P-values of hypotheses that are tested one after the other, each at the full level, until one is not rejected.

    The order must not depend on the target (fixed sequence, Westfall & Krishen 2001). Here it is that of the
    correlations: what a copy does not take over, a feature that is less alike does not either.
    """
    return np.asarray(np.maximum.accumulate(p_values))


def _correlated(
    design: Design, support: IntArray, adjust: IntArray, selected: FloatArray
) -> list[tuple[IntArray, int]]:
    """For each selected feature, the others that are correlated with it given the rest, and their number.

    One pass over the data: products with a basis of the selected features and covariates give all partial correlations.
    """
    n, k = len(selected), len(support)
    basis = orthonormal(selected)
    rest = [_rest_in(basis, selected, at) for at in range(k)]  # coordinates of each, given the others
    found: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in range(k)]
    whole, width = design.standardized(), max(1, VALUES_AT_ONCE // max(1, basis.shape[1]))
    for start in range(0, design.n_features, width):
        stop = min(start + width, design.n_features)
        products = whole.take(slice(start, stop)).transpose_dot(basis)
        unexplained = np.maximum(n - np.einsum("ij,ij->i", products, products), 0.0)
        unexplained[np.isin(np.arange(start, stop), [*support, *adjust])] = np.inf
        for at, direction in enumerate(rest):
            part = products @ direction
            left = unexplained + part**2  # of the column, given the other selected ones
            with np.errstate(invalid="ignore", divide="ignore"):
                correlation = np.where(left > SAME_DIRECTION * n, np.abs(part) / np.sqrt(left), 0.0)
            above = np.flatnonzero(correlation >= LEAST_CORRELATION)
            found[at].append((above + start, correlation[above]))
    return [_strongest(parts) for parts in found]


def _rest_in(basis: FloatArray, selected: FloatArray, at: int) -> FloatArray:
    """The direction of one selected feature given the others, of length 1 (0 if nothing is left), in the basis."""
    coordinates = basis.T @ selected
    others = orthonormal(np.delete(coordinates, at, axis=1))
    own = coordinates[:, at] - others @ (others.T @ coordinates[:, at])
    length = float(np.linalg.norm(own))
    return own / length if length > 1e-6 * np.linalg.norm(coordinates[:, at]) else np.zeros_like(own)


def _strongest(parts: list[tuple[IntArray, FloatArray]]) -> tuple[IntArray, int]:
    indices, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(-values, kind="stable")[:MOST_CANDIDATES]
    return indices[order].astype(np.intp), len(indices)


def _cover(values: FloatArray, k: int, target: FloatArray, at: int, level: float) -> list[int]:
    """The fewest of the most similar selected features without which this one is significant; empty if none suffice."""
    scaled = standardized(values)
    similarity = np.abs(scaled.T @ scaled[:, at]) / len(scaled)
    similarity[at], similarity[k:] = 0.0, 0.0  # neither itself nor covariates
    alike = np.argsort(-similarity, kind="stable")[:MOST_COVERS]
    alike = alike[similarity[alike] >= LEAST_CORRELATION]
    for count in range(1, len(alike) + 1):
        given = GivenColumns.of(np.delete(values, [at, *alike[:count]], axis=1), target)
        if take_over(given, values[:, at], values[:, :0]).p_alone * len(alike) <= level:
            return [int(other) for other in alike[:count]]
    return []
