"""Which algorithm solves a linear problem: a small cost model, and all constants that decide.

The dual on a Gram matrix of n × n numbers is the way for wide data, Newton's method or an interior-point method in the
weights that for tall data. In multiplications, with n samples and p features,

========================================  ==========================================================
build the Gram matrix, and solve on it    :math:`n^2 (p + 100)`
a method in the weights                   20 iterations of :math:`n p^2`, for a regression 4
Newton's method for a smooth loss         5 steps of :math:`n^3/3` or of :math:`n p^2 + p^3/3`
========================================  ==========================================================
"""

from __future__ import annotations

from enum import Enum, auto

from zeronorm.design import Design
from zeronorm.solvers.linear._losses import Loss, SquaredLoss

DEFAULT_MEMORY_BUDGET = 2 << 30  # bytes

# Work of a solution on a Gram matrix, in multiplications for each of its entries.
SOLVE_PER_ENTRY = 100
# Iterations in the weights that take as long as a solution on the Gram matrix. A regression has twice the multipliers:
# as measured, its Gram matrix pays only up to a fifth of these samples.
PRIMAL_ITERATIONS, PRIMAL_ITERATIONS_REGRESSION = 20, 4
NEWTON_STEPS = 5  # for a smooth loss that is not quadratic

# Up to this many samples a Gram matrix is cheap for any number of features: for a loss with kinks that is solved once
# or after much has changed, and for one that starts from dual variables near the solution. Newton's method for a
# squared loss starts from the last solution too, so that it is faster from fewer samples on.
FEW_SAMPLES, FEW_SAMPLES_NEAR, FEW_SAMPLES_SQUARED = 500, 1024, 256

# Sparse data with at least so many samples, and features per sample, are multiplied faster than a Gram matrix is
# factored.
PRODUCT_SAMPLES, PRODUCT_WIDTH = 2000, 2

# A piecewise linear loss on sparse data is solved by multipliers from so many features on; with fewer, factors of p
# by p matrices are as fast, unless there are many samples and a start, from which interior points gain little.
MULTIPLIER_FEATURES, MULTIPLIER_SAMPLES = 1500, 50_000


class Way(Enum):
    """How a problem is solved."""

    GRAM = auto()  # in dual variables, on the Gram matrix
    PRIMAL = auto()  # in the weights
    PROGRAM = auto()  # as a linear program


class Reuse(Enum):
    """What a solution starts from."""

    LITTLE = auto()  # nothing, or a problem with many other features
    NEAR = auto()  # a solution with slightly other factors
    GRAM = auto()  # a solution without one of the features, whose Gram matrix is updated


def choose(loss: Loss, norm: str, shape: tuple[int, int], reuse: Reuse = Reuse.LITTLE) -> Way:
    """The way for a loss, a norm and data of this shape."""
    if norm == "l1":
        return Way.PROGRAM
    return Way.GRAM if prefers_gram(shape, loss, reuse) else Way.PRIMAL


def prefers_gram(
    shape: tuple[int, int],
    loss: Loss,
    reuse: Reuse = Reuse.LITTLE,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> bool:
    """Whether the dual on the n by n Gram matrix is cheaper, first by memory and then by arithmetic."""
    n, p = shape
    gram_bytes, primal_bytes = 8 * n * n, 16 * (p + 1) ** 2
    if min(gram_bytes, primal_bytes) > memory_budget:
        raise ValueError(
            f"A linear model on {n} samples and {p} features needs "
            f"{min(gram_bytes, primal_bytes) / 2**30:.1f} GiB, more than the memory budget of "
            f"{memory_budget / 2**30:.1f} GiB; select features with a filter first."
        )
    if max(gram_bytes, primal_bytes) > memory_budget:
        return gram_bytes <= memory_budget
    if not loss.has_dual:
        steps = 1 if isinstance(loss, SquaredLoss) else NEWTON_STEPS
        return n * n * p + steps * n**3 / 3 <= steps * (n * p * p + p**3 / 3)
    if stays_on_gram(n, loss, reuse):
        return True
    if not loss.has_kinks and p < n and reuse is not Reuse.GRAM:
        return False
    iterations = PRIMAL_ITERATIONS if loss.for_classes_only else PRIMAL_ITERATIONS_REGRESSION
    return n * (p + SOLVE_PER_ENTRY) <= iterations * p * p


def stays_on_gram(n_samples: int, loss: Loss, reuse: Reuse) -> bool:
    """Whether the Gram matrix is preferred for any number of features."""
    if not loss.has_dual:
        return False
    if not loss.has_kinks:
        return n_samples <= FEW_SAMPLES_SQUARED
    return n_samples <= (FEW_SAMPLES if reuse is Reuse.LITTLE else FEW_SAMPLES_NEAR)


def smallest_gram_size(shape: tuple[int, int], loss: Loss, reuse: Reuse) -> int:
    """The number of features from which on the Gram matrix is preferred, at most one more than there are."""
    n, p = shape
    if not prefers_gram(shape, loss, reuse):
        return p + 1
    low, high = 1, p
    while low < high:
        half = (low + high) // 2
        low, high = (low, half) if prefers_gram((n, half), loss, reuse) else (half + 1, high)
    return low


def prefers_products(design: Design) -> bool:
    """Whether products with the data are cheaper than a factor of the Gram matrix."""
    n, p = design.shape
    return design.backend.is_sparse and n >= PRODUCT_SAMPLES and p >= PRODUCT_WIDTH * n


def prefers_multipliers(design: Design, is_warm: bool) -> bool:
    """Whether a piecewise linear loss is solved without p by p matrices."""
    n, p = design.shape
    return design.is_sparse and (p >= MULTIPLIER_FEATURES or (is_warm and n >= MULTIPLIER_SAMPLES))
