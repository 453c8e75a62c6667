r"""Iterative rescaling: train a model on :math:`x * z`, update z by its weights, repeat.

AROM, the zero-norm SVM with any exponent and the kernel multiplicative update share this iteration; they
differ only in the model and in the rule for z. Let :math:`u` be the weights of the model on the rescaled
features, so that :math:`w = z * u` are its weights on the features themselves.

* AROM (Weston et al. 2003) sets :math:`z \leftarrow z * |u|`, that is :math:`z \leftarrow |w|`.
* The zero-norm SVM (Huang et al. 2008) minimises :math:`w^\top \Lambda w + C \sum \xi` with
  :math:`\Lambda = \mathrm{diag}(|w_k|^{-(2-q)})` from the last iterate. Substituting
  :math:`w = \Lambda^{-1/2} u` leaves :math:`\|u\|^2 + C\sum\xi` on the features :math:`x * z` with
  :math:`z = \Lambda^{-1/2} = |w|^{1-q/2}`.

So for q = 0 the two methods are the same iteration; they differ in the loss (and in the factor ½ before
the norm, which makes the C of one twice that of the other). For q = 2 nothing is rescaled: the plain SVM.

In this form the cost C of an error has no fixed unit: the kernel of :math:`x * z` has a diagonal of about the
number of features at the start, and it shrinks with every rescaling. In wide data all weights then shrink
to zero unless C is very large. :class:`UnitFactors` avoids it: the factors are multiplied by one number before each
training, so that the mean diagonal of the kernel stays one. C then means the same for any number of
features and for any unit of the columns, and the iteration does not converge to zero weights.
With a hard margin both iterations are the same.

The zero norm has many local minima, and the start decides which is found. :func:`correlated_start` begins with factors
that follow the correlation of each feature with the target, as the adaptive lasso does where there are more features
than samples (Huang, Ma & Zhang 2008): then both the effect of a feature alone and its effect given the others count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._affine import WIDE
from zeronorm.design._base import SMALL_COPY_BYTES
from zeronorm.design._index import by_descending_value, each, marked
from zeronorm.design._stats import read_only
from zeronorm.engines._cox_scores import working_problem
from zeronorm.execution import in_threads
from zeronorm.selection._path import SelectionPath, Sort, order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status

# -- The path of a method whose iterates have fewer and fewer features, each with its own weights --


@dataclass(frozen=True)
class IteratePath(SelectionPath):
    """Nested supports of iterates, each of which ranks its own features.

    A subset of a size between two iterates has the largest weights of the last iterate with more features
    (Weston et al. 2003). A size that an iterate has exactly is that iterate's support.
    """

    iterates: tuple[tuple[IntArray, FloatArray], ...] = ()

    @classmethod
    def from_iterates(
        cls,
        iterates: Sequence[tuple[IntArray, FloatArray]],
        fallback: FloatArray,
        sort: Sort = by_descending_value,
        **fields: object,
    ) -> IteratePath:
        """``iterates`` are pairs of sorted features and their weights, each inside the one before.

        Features are ordered by how long they survive, then by their last weight. ``fallback`` orders the features
        that were in no iterate.
        """
        distinct: list[tuple[IntArray, FloatArray]] = []
        for features, weight in iterates:
            if distinct and distinct[-1][0].size == features.size:
                distinct.pop()
            distinct.append((features, weight))
        # Scores of features in no iterate lie in [0, 1/2], of those in t iterates in [t, t + 1/2].
        scores = each(np.multiply, _relative(fallback), 0.5)
        del fallback  # vectors of wide data are large
        for level, (features, weight) in enumerate(distinct, start=1):
            scores[features] = level + 0.5 * _relative(weight)
        return cls(
            order=order_by_score(scores, sort=sort),
            subsets=tuple(features for features, _ in distinct),
            iterates=tuple(distinct),
            scores=scores,
            **fields,  # type: ignore[arg-type]
        )

    def beside(self, covariates: IntArray) -> SelectionPath:
        if covariates.size == 0:
            return self
        position = np.delete(np.arange(self.n_features + covariates.size), covariates)
        iterates = tuple((position[features], weight) for features, weight in self.iterates)
        return replace(super().beside(covariates), iterates=iterates)  # type: ignore[call-arg]

    def _ordered(self, subset: IntArray) -> IntArray:
        """The features by the weights of the iterate with this support; forced features and whole groups come first."""
        assert self.subsets is not None
        matching = [i for i, s in enumerate(self.subsets) if np.array_equal(s, subset)]
        if not matching:
            return super()._ordered(subset)
        features, weight = self.iterates[matching[-1]]
        ranking = features[order_by_score(weight)]
        if self.groups is None and self.always_keep.size == 0:
            return ranking
        rank = self.n_features + self.position()  # after all ranked features, in the total order
        rank[ranking] = np.arange(ranking.size)
        rank[self.always_keep] = -1
        if self.groups is not None:
            best = np.full(int(self.groups.max()) + 1, 2 * self.n_features, dtype=np.intp)
            np.minimum.at(best, self.groups, rank)
            # Only forced groups share a rank: they are separated by their code.
            return subset[np.lexsort((rank[subset], self.groups[subset], best[self.groups[subset]]))]
        return subset[np.argsort(rank[subset], kind="stable")]


def _relative(weight: FloatArray) -> FloatArray:
    """Weights as a fraction of the largest."""
    largest = float(weight.max(initial=0.0))
    return each(np.divide, weight, largest) if largest > 0.0 else np.zeros_like(weight)


Rule = Callable[[FloatArray, FloatArray], FloatArray]

# Once the remaining features are this small a share of all, they are held in memory as one dense block.
IN_MEMORY_SHARE = 1 / 8
# Weights this small relative to those of the first iterate: C is too small for any feature to help.
COLLAPSED = 1e-10
SHRUNK = "all weights shrank to zero, because errors cost too little; raise C."
UNFINISHED = "raise max_iter or loosen tol."
# The solver's tolerance is far below what the rescaling needs: a solution at the limit of precision is enough.
ACCURATE = (Status.CONVERGED, Status.STALLED)


class Model(Protocol):
    """A model on rescaled features; ``status`` is the status of the last training."""

    @property
    def status(self) -> Status: ...

    @property
    def settled(self) -> bool:
        """Whether training once more with the same factors would change nothing."""
        ...

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        """Train on x * scale; returns the absolute weight |u_k| of each feature, summed over models."""
        ...

    def keep(self, kept: BoolArray) -> None:
        """Drop the features that are not kept; the rest of the solution is the next start."""
        ...


def multiplicative(scale: FloatArray, abs_weight: FloatArray) -> FloatArray:
    r"""The rule of AROM, :math:`z \leftarrow z * |u|`."""
    return each(np.multiply, scale, abs_weight)


def power_rule(q: float) -> Rule:
    r"""The rule of the q-norm, :math:`z \leftarrow |z * u|^{1 - q/2}`; ``power_rule(0)`` is multiplicative."""
    exponent = 1.0 - 0.5 * q

    def rule(scale: FloatArray, abs_weight: FloatArray) -> FloatArray:
        weight = each(np.multiply, scale, abs_weight)
        return weight if exponent == 1.0 else np.asarray(weight**exponent)

    return rule


def diagonal(factors: FloatArray) -> float:
    """The size of the factors for the ℓ2 norm: the root of the kernel's mean diagonal."""
    return float(np.linalg.norm(factors))


def largest(factors: FloatArray) -> float:
    """The size of the factors for the ℓ1 norm, which is not summed over features."""
    return float(factors.max(initial=0.0))


@dataclass(frozen=True)
class UnitFactors:
    """Scales factors to size one, in units of the standard deviations of the columns."""

    scale: FloatArray | BoolArray
    size: Callable[[FloatArray], float] = diagonal

    @classmethod
    def of(cls, problem: Problem, size: Callable[[FloatArray], float] = diagonal) -> UnitFactors:
        """Create for the columns of a problem; standardised ones need not be read again."""
        design = problem.design
        if design.affine is not None:
            return cls(~design.affine.zero_columns, size)
        return cls(np.sqrt(design.column_stats(None, problem.sample_weight).variance), size)

    def __call__(self, features: IntArray, scale: FloatArray) -> FloatArray:
        all_one = self.scale.dtype == bool and bool(self.scale.all())
        found = self.size(scale if all_one else scale * self.scale[features])
        if not 0.0 < found < np.inf:
            return scale
        return (
            uniform(scale[0] / found, scale.size) if scale.strides == (0,) else each(np.divide, scale, found)
        )


def correlated_start(
    problem: Problem, units: UnitFactors | None, pairing: str = "one_vs_rest", model: int | None = None
) -> FloatArray:
    r"""Factors :math:`z_k = \sqrt{\overline{r_k^2} + 1/N}` from the correlations with the targets of the models.

    Independent variables have a squared correlation of 1/N on average over N samples: the term 1/N makes smaller
    correlations nearly irrelevant, and no feature gets a factor of zero.

    Parameters
    ----------
    units : provides the standard deviations of the columns; None: they are computed.
    model : the only model whose target is used; None: the mean of the squares over all.
    """
    targets, involved = working_problem(problem).target.around_zero().model_columns(pairing)
    if model is not None:
        targets, involved = targets[:, [model]], involved[:, [model]]
    weight = involved * (1.0 if problem.sample_weight is None else problem.sample_weight[:, None])
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    targets = targets / np.maximum(
        np.abs(targets).max(axis=0), np.finfo(float).tiny
    )  # squares would underflow
    targets = targets - (weight * targets).sum(axis=0) / total
    targets = problem.residuals(targets)
    length = np.sqrt(total * (weight * targets**2).sum(axis=0))
    direction = weight * targets / np.where(length > 0.0, length, 1.0)
    products = problem.residual_design().transpose_dot(direction)
    squared = _mean_squares(products)
    del products  # vectors of wide data are large
    scale = (UnitFactors.of(problem) if units is None else units).scale
    if scale.dtype != bool:
        squared /= np.where(scale > 0.0, scale, 1.0) ** 2
    chance = float(np.mean(1.0 / total))

    def root(first: int, last: int) -> None:
        squared[first:last] += chance
        np.sqrt(squared[first:last], out=squared[first:last])

    in_threads(root, squared.size)
    return squared


def _mean_squares(products: FloatArray) -> FloatArray:
    if products.shape[1] > 1:
        return np.asarray(np.square(products).mean(axis=1))
    return each(np.multiply, products[:, 0], products[:, 0])


def uniform(value: float, size: int) -> FloatArray:
    """A vector of equal numbers; a long one is a broadcast view, which takes no memory."""
    return np.broadcast_to(np.float64(value), size) if size >= WIDE else np.full(size, value)


@dataclass
class Rescaling:
    """Result of the iterations.

    Attributes
    ----------
    iterates : the remaining features of each iterate and their absolute weights in the units of the data.
    removed : the features that were removed after the first iterate, and their weights in it.
    sort : sorts by descending value, as the design does it.
    fallback : values that order features that are in no iterate; None: the weights in the first model.
    trained_scale : the factors z that the last model was trained with.
    n_iter : number of models trained.
    converged : whether z converged to weights other than zero.
    remedy : what to do if it did not.
    status : status of the last training.
    """

    n_features: int
    trained_scale: FloatArray
    sort: Sort = by_descending_value
    trained_on: IntArray | None = None  # None: on all features, or on none yet
    removed: tuple[IntArray, FloatArray] = field(
        default_factory=lambda: (np.empty(0, dtype=np.intp), np.empty(0))
    )
    fallback: FloatArray | None = None
    largest_at_first: float = 0.0
    iterates: list[tuple[IntArray, FloatArray]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    remedy: str = UNFINISHED
    status: Status = Status.CONVERGED

    @property
    def active(self) -> IntArray:
        """The features of the last iterate."""
        return self.iterates[-1][0] if self.iterates else np.empty(0, dtype=np.intp)

    @property
    def trained(self) -> IntArray:
        """The features that the last model was trained on."""
        return np.arange(self.trained_scale.size) if self.trained_on is None else self.trained_on

    @property
    def first(self) -> FloatArray:
        """The weights of all features in the first iterate, or ``fallback`` if it is given."""
        if self.fallback is not None:
            return self.fallback
        first = np.zeros(self.n_features)
        for features, weight in (self.removed, *self.iterates[:1]):
            first[features] = weight
        return first

    @property
    def scale(self) -> FloatArray:
        """The factors of the last model; zero for features that it was not trained on."""
        scale = np.zeros(self.n_features)
        scale[self.trained] = self.trained_scale
        return scale

    def path(self) -> IteratePath:
        """The path of the supports of all iterates; features are ordered by when they were removed."""
        return IteratePath.from_iterates(
            self.iterates,
            self.first,
            self.sort,
            scale=self.scale,
            selected_size=max(1, self.active.size),
            n_iter=self.n_iter,
            converged=self.converged,
            remedy=self.remedy,
        )


def rescale_until_sparse(
    model: Model,
    design: Design,
    candidates: IntArray,
    rule: Rule,
    *,
    zero_tol: float,
    tol: float,
    max_iter: int,
    units: UnitFactors | None = None,
    start: FloatArray | None = None,
    stops: Callable[[IntArray], bool] | None = None,
) -> Rescaling:
    r"""Train, rescale and drop features until the scaling factors converge.

    Parameters
    ----------
    candidates : the features to begin with; all others count as zero from the start.
    rule : computes the new factors from the old ones and the absolute weights.
    zero_tol : weights up to this fraction of the largest count as zero, and their features are removed.
    tol : largest relative change of a factor at convergence.
    units : scales the factors to size one before each training; None leaves them as the rule gives them.
    start : the first factors of all features; None: equal ones.
    stops : whether the model, just trained on these features, ends the run and is no iterate.

    If no hard margin exists with the remaining features, the run ends and the iterates before are kept. If that
    happens in the first iteration, the caller must report it: ``status`` is then
    ``UNBOUNDED`` or ``INFEASIBLE`` and there is no iterate.
    """
    n_features = design.n_features
    result = Rescaling(n_features, np.empty(0), design.backend.by_descending_value)
    active = candidates
    del candidates  # vectors of wide data are large
    kept_design = design if active.size == n_features else design.take(active)
    in_units = units if units is not None else _as_they_are
    scale = in_units(active, uniform(1.0, active.size) if start is None else start[active])
    del start
    resting = active.size == 0
    while result.n_iter < max_iter and not resting:
        abs_weight = model.train(kept_design, scale)
        result.n_iter += 1
        if model.status.is_unsolvable:
            result.status = Status.CONVERGED if result.iterates else model.status
            resting = True
            break
        if stops is not None and stops(active):
            resting = True
            break
        kept = _note(result, model.status, active, scale, abs_weight, zero_tol)
        n_kept = int(np.count_nonzero(kept))
        if n_kept == active.size:
            new_scale = rule(scale, abs_weight)
        else:
            new_scale = rule(marked(scale, kept), marked(abs_weight, kept))
            active = result.active if n_kept else active[:0]
        del abs_weight
        new_scale = in_units(active, new_scale)
        resting = _is_at_rest(result, model, scale, new_scale, tol)
        if n_kept < kept.size and not resting:
            kept_design = _narrowed(design, kept_design, active, kept)
            model.keep(kept)
        scale = new_scale
    result.converged = resting and result.remedy == UNFINISHED and result.status in ACCURATE
    if result.status not in ACCURATE:
        result.remedy = result.status.remedy
    return result


def _as_they_are(features: IntArray, scale: FloatArray) -> FloatArray:
    return scale


def _note(
    result: Rescaling,
    status: Status,
    active: IntArray,
    scale: FloatArray,
    abs_weight: FloatArray,
    zero_tol: float,
) -> BoolArray:
    """Store an iterate; returns which features are kept."""
    weight = each(np.multiply, scale, abs_weight)
    largest_weight = float(weight.max(initial=0.0))
    kept: BoolArray = each(np.greater, weight, zero_tol * largest_weight, bool)
    if result.n_iter == 1:
        result.removed = marked(active, kept, False), marked(weight, kept, False)
        result.largest_at_first = largest_weight
    result.status = status
    result.trained_on, result.trained_scale = None if active.size == result.n_features else active, scale
    if kept.all():
        result.iterates.append((active, weight))
    elif kept.any():
        result.iterates.append((marked(active, kept), marked(weight, kept)))
    return kept


def _is_at_rest(
    result: Rescaling, model: Model, scale: FloatArray, new_scale: FloatArray, tol: float
) -> bool:
    """Whether the factors have converged, or no feature is left to remove."""
    if new_scale.size == 0:
        return True
    if result.iterates[-1][1].max() <= COLLAPSED * result.largest_at_first:
        result.remedy = SHRUNK
        return True
    if new_scale.size < scale.size or not model.settled:
        return False
    return bool(np.abs(new_scale / scale - 1.0).max() <= tol)


def _narrowed(design: Design, kept_design: Design, active: IntArray, kept: BoolArray) -> Design:
    """The design of the remaining features, taken from the block in memory or from the whole design."""
    is_small = design.backend.in_one_array and 8 * design.n_samples * active.size <= SMALL_COPY_BYTES
    if IN_MEMORY_SHARE * design.n_features < active.size and not is_small:
        return design.take(read_only(active))
    return kept_design.take(np.flatnonzero(kept)).in_memory()
