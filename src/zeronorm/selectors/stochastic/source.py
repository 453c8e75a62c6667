"""Where the values of the drawn features and samples come from: memory, or the design piece by piece."""

from __future__ import annotations

import numpy as np

from zeronorm.design import Design
from zeronorm.selectors.stochastic.pool import FloatArray, Pool
from zeronorm.selectors.stochastic.sampling import Draws

# Beyond this the columns are not copied as a whole: what a step needs is read when it is needed.
LARGEST_COPY_BYTES = 1 << 30


class Source:
    """The features under study, as a pool that compiled code can index.

    Steps touch random features of random samples, so the features are held as one dense copy, one row per
    feature. Where the copy would be too large, ``pool`` has no columns and ``pool_for`` reads a small pool
    for each step.
    """

    def __init__(self, design: Design, pool: Pool, *, largest_copy_bytes: int = LARGEST_COPY_BYTES) -> None:
        self.design = design
        self.is_held = 8 * design.n_samples * design.n_features <= largest_copy_bytes
        if self.is_held:
            columns = design.block(slice(None)).T
            pool = pool._replace(columns=columns, test_columns=columns)
        self.pool = pool

    @classmethod
    def with_test_set(cls, design: Design, pool: Pool, test_design: Design) -> Source:
        """Training samples from one design, test samples from another, both held in memory."""
        source = cls(design, pool, largest_copy_bytes=2**62)
        source.pool = source.pool._replace(test_columns=test_design.block(slice(None)).T)
        return source

    def pool_for(self, draws: Draws) -> tuple[Pool, Draws]:
        """A pool with the drawn values, and the draws as positions in it."""
        if self.is_held:
            return self.pool, draws
        features, in_features = _positions(draws.features)
        rows, in_rows = _positions(np.concatenate([draws.train, draws.test], axis=1))
        size = draws.train.shape[1]
        columns: FloatArray = self.design.take_rows(rows).block(features).T
        codes = self.pool.codes[rows]
        pool = self.pool._replace(columns=columns, codes=codes, test_columns=columns, test_codes=codes)
        train, test = np.ascontiguousarray(in_rows[:, :size]), np.ascontiguousarray(in_rows[:, size:])
        return pool, draws._replace(features=in_features, train=train, test=test)


def _positions(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, inverse = np.unique(drawn, return_inverse=True)
    return values, np.ascontiguousarray(inverse.reshape(drawn.shape), dtype=np.int64)
