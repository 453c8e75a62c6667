"""Where the values of the drawn features and samples come from: memory, or the design piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design, StandardizedDesign
from zeronorm.selectors.stochastic.pool import Pool
from zeronorm.selectors.stochastic.sampling import Draws

# Beyond this the columns are not copied as a whole: what a step needs is read when it is needed.
LARGEST_COPY_BYTES = 1 << 30


class Source:
    """The features under study, as a pool that compiled code can index.

    Steps touch random features of random samples, so the features are held as one dense copy, one row per
    feature. Where the copy would be too large, ``pool`` has no columns and ``pool_for`` reads a small pool
    for each step. Standardised values are rounded to single precision: their last digits depend on the
    home of the data, and a learner that draws a boundary would make a different choice of them.
    """

    def __init__(self, design: Design, pool: Pool, *, largest_copy_bytes: int = LARGEST_COPY_BYTES) -> None:
        self.design = design
        self.is_held = _bytes_of(design) <= largest_copy_bytes
        if self.is_held:
            columns = _columns_of(design)
            pool = pool._replace(columns=columns, test_columns=columns)
        self.pool = pool

    @classmethod
    def with_test_set(cls, design: Design, pool: Pool, test_design: Design) -> Source:
        """Training samples from one design, test samples from another, both held in memory."""
        source = cls(design, pool, largest_copy_bytes=2**62)
        source.pool = source.pool._replace(test_columns=_columns_of(test_design))
        return source

    def pool_for(self, draws: Draws) -> tuple[Pool, Draws]:
        """A pool with the drawn values, and the draws as positions in it."""
        if self.is_held:
            return self.pool, draws
        features, in_features = _positions(draws.features)
        rows, in_rows = _positions(np.concatenate([draws.train, draws.test], axis=1))
        size = draws.train.shape[1]
        columns = _columns_of(self.design.take_rows(rows).take(features))
        codes = self.pool.codes[rows]
        pool = self.pool._replace(columns=columns, codes=codes, test_columns=columns, test_codes=codes)
        train, test = np.ascontiguousarray(in_rows[:, :size]), np.ascontiguousarray(in_rows[:, size:])
        return pool, draws._replace(features=in_features, train=train, test=test)


def _dtype_of(design: Design) -> type[np.floating[Any]]:
    return np.float32 if isinstance(design, StandardizedDesign) else np.float64


def _bytes_of(design: Design) -> int:
    return design.n_samples * design.n_features * np.dtype(_dtype_of(design)).itemsize


def _columns_of(design: Design) -> NDArray[np.floating[Any]]:
    """All values, one row per feature."""
    columns = np.empty((design.n_features, design.n_samples), dtype=_dtype_of(design))
    for part, block in design.iter_blocks():
        columns[part] = block.T
    return columns


def _positions(drawn: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values, inverse = np.unique(drawn, return_inverse=True)
    return values, np.ascontiguousarray(inverse.reshape(drawn.shape), dtype=np.int64)
