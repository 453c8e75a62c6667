"""The columns of wide data that can enter a forward path, and the common factors that all columns share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._dummy_paths import DUMMY, DummyExperiment
from zeronorm.execution import stoppable

MOST_NUMBERS = 4_000_000  # values of a working set that is the whole data (32 MB)
FIRST_COLUMNS = 4096  # columns with the largest products that form the first working set of wider data
NEAR = 0.7  # columns that came this near to the bound of a step join the working set when one was missed
CLOSE = 0.99  # columns nearer than this are checked in double precision
ROUNDING = 1e-6  # share by which a product may exceed the bound
SAMPLE_COLUMNS = 20_000  # columns from which common factors are estimated
MOST_FACTORS = 10
GAP = 2.0  # the eigenvalue of the last factor is larger than the next by this factor
PERVASIVE = 0.2  # share of the columns, counted by their squared loadings, on which a factor must act
LONGEST_SIDE = 5000  # factors are looked for if there are at most this many samples
EXPLAINED = 1e-6  # share of its variance below which a column counts as explained by the common factors


class ForwardData:
    """Columns without the directions of ``removed``, at unit length, and their products with the target.

    Parameters
    ----------
    design : standardised columns.
    removed : orthonormal basis of the removed directions; the first is constant.
    target : the values to explain.
    """

    def __init__(self, design: Design, removed: FloatArray, target: FloatArray) -> None:
        self.design, self.removed = design, removed
        target = target - removed @ (removed.T @ target)
        largest = float(np.abs(target).max(initial=0.0))
        target = target / largest if largest > 0.0 else target  # squares of tiny values would be zero
        self.target = target / np.linalg.norm(target)
        factors = removed[:, 1:]
        found = design.transpose_dot(np.column_stack([self.target, factors]))
        norms = design.squared_norms()
        rest = norms - (found[:, 1:] ** 2).sum(axis=1) if factors.shape[1] else norms
        self.inverse = np.zeros(design.n_features)
        np.divide(
            1.0, np.sqrt(np.maximum(rest, 0.0)), out=self.inverse, where=rest > EXPLAINED * design.n_samples
        )
        self.products = found[:, 0] * self.inverse

    def columns(self, chosen: IntArray) -> FloatArray:
        """The chosen columns at unit length; zero for columns that do not vary."""
        block = self.design.block(chosen)
        if self.removed.shape[1] > 1:
            block -= self.removed @ (self.removed.T @ block)
        block *= self.inverse[chosen]
        return block

    def first_columns(self) -> IntArray:
        """All columns, or those with the largest products if the data are wide."""
        n, p = self.design.shape
        if n * p <= MOST_NUMBERS or p <= FIRST_COLUMNS:
            return np.arange(p)
        return np.sort(np.argpartition(-np.abs(self.products), FIRST_COLUMNS)[:FIRST_COLUMNS])

    def missed(self, experiments: Sequence[DummyExperiment], chosen: IntArray) -> IntArray:
        """Columns outside the working set that come near the bound of a step; none if no column exceeds one.

        If no column exceeds a bound, the paths are those of all columns.
        """
        residuals, bounds = _unique_steps(experiments)
        steps = residuals[:, bounds > 0.0] / bounds[bounds > 0.0]
        ratio = self.design.largest_products(steps) * self.inverse
        ratio[chosen] = 0.0
        close = np.flatnonzero(ratio > CLOSE)
        for part in np.array_split(close, -(-close.size // FIRST_COLUMNS)) if close.size else ():
            if np.abs(self.columns(part).T @ steps).max() > 1.0 + ROUNDING:
                return np.flatnonzero(ratio > NEAR)
        return np.empty(0, dtype=np.intp)


def _unique_steps(experiments: Sequence[DummyExperiment]) -> tuple[FloatArray, FloatArray]:
    """Residuals (one per column) and bounds of all steps; until the first dummy enters, all paths are the same."""
    found: dict[tuple[int, ...], tuple[FloatArray, float]] = {}
    for number, one in enumerate(experiments):
        for step, (residual, bound) in enumerate(zip(one.residuals, one.bounds, strict=True)):
            before = tuple(one.entered[:step])
            key = (-2, number, step) if DUMMY in before else before
            if key not in found or bound < found[key][1]:  # the first dummy may enter at a larger product
                found[key] = residual, bound
    return np.stack([r for r, _ in found.values()], axis=1), np.asarray([b for _, b in found.values()])


def run_on_working_set(
    data: ForwardData, run: Callable[[FloatArray, IntArray], Sequence[DummyExperiment]]
) -> IntArray:
    """Call ``run`` with columns until those left out could not have entered; return the columns of the last call.

    The paths of the last call are those of all columns with the same dummies. A repeated call draws other dummies,
    because which ones are drawn depends on the columns that they compete with.
    """
    chosen = data.first_columns()
    while True:
        experiments = run(data.columns(chosen), chosen)
        if chosen.size == data.design.n_features:
            return chosen
        missed = data.missed(experiments, chosen)
        if missed.size == 0:
            return chosen
        chosen = np.union1d(chosen, missed)


# -- What all columns share --


def sampled_columns(n_features: int, most: int = SAMPLE_COLUMNS) -> IntArray:
    """Evenly spaced columns."""
    return np.unique(np.linspace(0, n_features - 1, min(most, n_features)).astype(np.intp))


def principal_components(design: Design, count: int) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues of the Gram matrix, the largest first, and the vectors of the first ``count`` that are not zero.

    They come from the products of the columns where there are fewer columns than samples.
    """
    n, p = design.shape
    products = design.gram() if n <= p else design.sandwich(np.ones(n))
    values, vectors = stoppable(lambda: np.linalg.eigh(products))
    values, vectors = values[::-1], vectors[:, ::-1]
    count = min(count, int(np.count_nonzero(values > np.finfo(float).eps * n * values[0])))
    found = vectors[:, :count] if n <= p else design.dot(vectors[:, :count]) / np.sqrt(values[:count])
    return values, np.ascontiguousarray(found)


def common_factors(design: Design, n_factors: int | None = None) -> FloatArray:
    """Orthonormal factors that act on many standardised columns, one per column of the result.

    They are the first principal components. None: as many as there are before the largest gap between two
    eigenvalues, if that gap is large and each of them acts on many columns.
    """
    n, p = design.shape
    if n_factors == 0 or (n_factors is None and n > LONGEST_SIDE):
        return np.empty((n, 0))
    sample = design.take(sampled_columns(p))
    if n_factors is not None:
        return principal_components(sample, min(n_factors, n - 3))[1]
    most = min(MOST_FACTORS, n // 10, p // 20)
    if most < 1:
        return np.empty((n, 0))
    values, vectors = principal_components(sample, most)
    ratios = values[:most] / np.maximum(values[1 : most + 1], np.finfo(float).tiny)
    count = int(np.argmax(ratios)) + 1
    if ratios[count - 1] < GAP:
        return np.empty((n, 0))
    factors = np.ascontiguousarray(vectors[:, :count])
    loadings = sample.transpose_dot(factors) ** 2
    acts_on = loadings.sum(axis=0) ** 2 / (loadings**2).sum(axis=0)
    return factors if bool((acts_on >= PERVASIVE * sample.n_features).all()) else np.empty((n, 0))
