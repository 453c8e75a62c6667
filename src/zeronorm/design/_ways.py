"""Which algorithm computes a product: a cost model whose constants are named and measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from zeronorm.design._base import Design

# Up to these means, in units of the scale, a product of the stored data is corrected for the means afterwards.
LARGEST_SPARSE_MEAN = 1e4
LARGEST_DENSE_MEAN = 10.0
# From this number of multiplications on, wide data are multiplied in single precision: 0.05 instead of 0.1 s.
PAIRS_WORTH_SINGLE = 1 << 32
WIDE_SHAPE = 4
# Multiplications that take one thread about 2 ms: fewer are one product in one thread.
LITTLE_WORK = 1 << 26
# Fewer multiplications take less time than setting the number of threads of BLAS.
WORTH_A_LIMIT = 1 << 20
# As many bytes stay in the processor cache while they are shifted, scaled and multiplied.
ONE_BLOCK_BYTES = 4 << 20
# Up to this size of a Gram matrix, each thread that works on blocks of a file sums its own.
_BYTES_OF_A_SUM = 4 << 20


def corrects(design: Design) -> bool:
    """Whether products are corrected for the means: sparse data, with no mean so large that most digits were lost."""
    if not design.backend.is_sparse:
        return False
    return design.affine is None or design.affine.largest_mean <= LARGEST_SPARSE_MEAN


def corrects_vectors(design: Design) -> bool:
    """Whether products with vectors are corrected, which saves dense data a pass if it loses no digits.

    On a device it saves several passes, so larger means are allowed.
    """
    is_sparse_or_device = design.backend.is_sparse or design.backend.transforms
    limit = LARGEST_SPARSE_MEAN if is_sparse_or_device else LARGEST_DENSE_MEAN
    return design.affine is None or design.affine.largest_mean <= limit


def product_type(design: Design) -> DTypeLike:
    """Floating-point type of the products in a Gram matrix; they are summed in double precision.

    Single precision for wide data in single precision whose columns have unit variance: their products lose no more
    than the rounding of the data. Data with many samples are excluded: their Gram matrix is singular up to rounding
    errors.
    """
    n, p = design.shape
    has_unit_variance = design.affine is not None and design.affine.has_unit_variance
    is_single = design.dtype == np.float32 and has_unit_variance and not design.backend.is_sparse
    return np.float32 if is_single and p >= WIDE_SHAPE * n and n * n * p >= PAIRS_WORTH_SINGLE else np.float64


def sums_in_threads(design: Design) -> bool:
    """Whether each thread that works on blocks of a file holds a Gram matrix of its own."""
    return design.backend.reads_ahead and 8 * design.n_samples**2 <= _BYTES_OF_A_SUM
