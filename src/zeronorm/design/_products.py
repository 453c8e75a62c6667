"""Products of a design with vectors and matrices: of stored values by their backend, of others corrected or in blocks.

A product of shifted and scaled values is that of the stored values and a correction of rank one. The correction loses
digits where means are large compared with deviations; blocks of columns, shifted as they are used, do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design import _outer_products as outer_products
from zeronorm.design import _ways as ways
from zeronorm.design._affine import Affine
from zeronorm.design._blocks import blocks, column_slices, is_tall, row_blocks, scratch_blocks
from zeronorm.design._gram import bands, parts_of

if TYPE_CHECKING:
    from zeronorm.design._base import Design

PRODUCTS_IN_MEMORY = 4_000_000  # products of columns with vectors that are held at a time (32 MB)


def cross_gram(design: Design, other: Design, scale_sq: FloatArray | None) -> FloatArray:
    """Return X diag(s) Z' for two designs, either of which may be shifted and scaled."""
    if design.backend.transforms or (design.affine is None and other.affine is None):
        return design._cross_gram(other, scale_sq)
    if not (ways.corrects(design) and ways.corrects(other)):
        return cross_gram_of_blocks(design, other, scale_sq)
    left, right = _affine_of(design), _affine_of(other)
    weight = left.factor * right.factor
    weight = weight if scale_sq is None else weight * scale_sq
    stored, other_stored = design._stored or design, other._stored or other
    own_side = stored._dot(weight * right.mean)
    other_side = other_stored._dot(weight * left.mean)
    product: FloatArray = stored._cross_gram(other_stored, weight)
    product += float((weight * left.mean) @ right.mean)
    return product - own_side[:, None] - other_side


def _affine_of(design: Design) -> Affine:
    return Affine.checked(design.n_features, None, None, None) if design.affine is None else design.affine


def cross_gram_of_blocks(design: Design, other: Design, scale_sq: FloatArray | None) -> FloatArray:
    result = np.zeros((design.n_samples, other.n_samples), order="F")
    for columns in column_slices(design, min(design._block_width(), other._block_width())):
        left, right = design.block(columns), other.block(columns)
        if scale_sq is not None:
            left *= scale_sq[columns]
        outer_products.add_product(result, left, right)
    return result


def gram_adjoint(design: Design, M: FloatArray) -> FloatArray:
    """Return x_k' M x_k for every column."""
    affine, stored = design.affine, design._stored
    if affine is None or stored is None or design.backend.transforms:
        return design._gram_adjoint(M)
    if not ways.corrects(design):
        return gram_adjoint_of_blocks(design, M)
    cross = stored._transpose_dot(M.sum(axis=0) + M.sum(axis=1))
    corrected = stored._gram_adjoint(M) - affine.mean * cross + affine.mean**2 * M.sum()
    return np.asarray(corrected * affine.factor**2)


def gram_adjoint_of_blocks(design: Design, M: FloatArray) -> FloatArray:
    result = np.empty(design.n_features)
    for columns, block in blocks(design):
        product = (block.T @ M.T).T if block.flags.f_contiguous else M @ block
        result[columns] = column_products(block, product)
    return result


def dot(design: Design, w: FloatArray) -> FloatArray:
    """Return X w for a vector, or for each column of a matrix."""
    affine, stored = design.affine, design._stored
    if affine is None or stored is None:
        return design._dot(w)
    if ways.corrects_vectors(design):
        weighted = (affine.factor * w.T).T
        return np.asarray(stored._dot(weighted) - affine.mean @ weighted)
    return design._dot(w) if design.backend.transforms else dot_of_blocks(design, w)


def dot_of_blocks(design: Design, w: FloatArray) -> FloatArray:
    result = np.zeros((design.n_samples, *w.shape[1:]))
    if is_tall(design):
        for rows, block in row_blocks(design):
            result[rows] = block @ w
        return result
    for columns, block in blocks(design):
        result += block @ w[columns]
    return result


def transpose_dot(design: Design, V: FloatArray) -> FloatArray:
    """Return X' V for a vector, or for each column of a matrix."""
    affine, stored = design.affine, design._stored
    if affine is None or stored is None:
        return design._transpose_dot(V)
    if not ways.corrects_vectors(design):
        transforms = design.backend.transforms
        return design._transpose_dot(V) if transforms else transpose_dot_of_blocks(design, V)
    product = np.require(stored._transpose_dot(V), requirements="W")
    total = -V.sum(axis=0)

    def correct(here: Affine, columns: slice) -> None:
        for row, negative in zip(np.atleast_2d(product[columns].T), np.atleast_1d(total), strict=True):
            row += here.mean * negative
            row *= here.factor

    affine.in_pieces(correct)
    return product


def transpose_dot_of_blocks(design: Design, V: FloatArray) -> FloatArray:
    result = np.zeros((design.n_features, *V.shape[1:]))
    if is_tall(design):
        for rows, block in row_blocks(design):
            result += block.T @ V[rows]
        return result
    for columns, block in blocks(design):
        result[columns] = block.T @ V
    return result


def largest_products(design: Design, V: FloatArray) -> FloatArray:
    """Return, for each column, the largest absolute value in a row of X' V."""
    if design.affine is None or design.backend.transforms:
        return design._largest_products(V)
    return largest_products_of_blocks(design, V)


def largest_products_of_blocks(design: Design, V: FloatArray) -> FloatArray:
    result = np.empty(design.n_features)
    if design.is_sparse:
        for columns in column_slices(design, max(1, PRODUCTS_IN_MEMORY // V.shape[1])):
            chosen = design.take(range(columns.start, columns.stop))
            result[columns] = np.abs(transpose_dot(chosen, V)).max(axis=1)
        return result
    narrow: FloatArray = V.astype(np.float32 if design.dtype == np.float32 else np.float64)
    for columns, block in scratch_blocks(design, narrow.dtype):
        product = block.T @ narrow
        result[columns] = np.maximum(product.max(axis=1), -product.min(axis=1))
    return result


def sandwich(design: Design, d: FloatArray) -> FloatArray:
    """Return X' diag(d) X."""
    affine, stored = design.affine, design._stored
    if affine is None or stored is None or design.backend.transforms:
        return design._sandwich(d)
    if not ways.corrects(design):
        return sandwich_of_blocks(design, d)
    side = 0.5 * d.sum() * affine.mean - stored._transpose_dot(d)
    product = stored._sandwich(d)
    for rows in bands(design.n_features):
        correction = np.outer(side[rows], affine.mean)
        # In place: a sum of both would hold a third matrix with NumPy on Python 3.14.
        correction += np.outer(affine.mean[rows], side)
        product[rows] += correction
        product[rows] *= np.outer(affine.factor[rows], affine.factor)
    return product


def sandwich_of_blocks(design: Design, d: FloatArray) -> FloatArray:
    if d.min(initial=0.0) < 0.0:
        positive, negative = np.maximum(d, 0.0), np.maximum(-d, 0.0)
        return sandwich_of_blocks(design, positive) - sandwich_of_blocks(design, negative)
    n, p = design.shape
    result = outer_products.symmetric_accumulator(p)
    root = np.sqrt(d)

    def add(part: range, accumulator: FloatArray) -> None:
        chosen = design if len(part) == n else design.take_rows(slice(part.start, part.stop))
        for _, block in row_blocks(chosen, root[part.start : part.stop]):
            outer_products.add_outer_square(accumulator, block.T)

    outer_products.add_in_parts(result, add, parts_of(design, p, n))
    return outer_products.symmetric_result(result)


def squared_norms(design: Design) -> FloatArray:
    """Return the squared Euclidean norm of each column."""
    affine, n = design.affine, design.n_samples
    if affine is None or (design.backend.transforms and not affine.has_unit_variance):
        return design._squared_norms()
    if affine.has_unit_variance:
        if not affine.zero_columns.any():
            return np.broadcast_to(float(n), design.n_features)  # takes no memory
        return np.where(affine.zero_columns, 0.0, float(n))
    if not design.backend.is_sparse or n == 0:
        return squared_norms_of_blocks(design)
    stats = design.column_stats()
    return n * (stats.variance + stats.mean**2)


def squared_norms_of_blocks(design: Design) -> FloatArray:
    result = np.empty(design.n_features)
    for columns, block in blocks(design):
        result[columns] = column_products(block, block)
    return result


def column_range(design: Design) -> tuple[FloatArray, FloatArray]:
    """Return the minimum and the maximum of each column; NaN for columns that hold NaN."""
    affine, (low, high) = design.affine, (design._stored or design)._column_range()
    if affine is None:
        return low, high
    return (low - affine.mean) * affine.factor, (high - affine.mean) * affine.factor


def column_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the inner product of each column of ``left`` with the same column of ``right``."""
    products: FloatArray = np.einsum("ij,ij->j", left, right)
    return products
