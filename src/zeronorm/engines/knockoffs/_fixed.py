"""Knockoffs of fixed columns, whose sample correlations are exact (Barber & Candès 2015)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from zeronorm._types import FloatArray
from zeronorm.engines.knockoffs._gaps import SAFETY, Gaps
from zeronorm.engines.knockoffs._model import knockoff_factors


@dataclass(frozen=True)
class FixedColumns:
    """The maps of :math:`\\tilde X = X K + U C` with random U orthogonal to X and to the constant; needs n > 2p."""

    keep: FloatArray
    root: FloatArray

    @classmethod
    def of(cls, correlation: FloatArray, gaps: Gaps) -> FixedColumns:
        """The maps for standardised columns with this sample correlation."""
        return cls(*knockoff_factors(correlation, gaps(correlation) * (1 - SAFETY)))

    def draw(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One set of knockoffs."""
        n, p = X.shape
        spanned = np.column_stack([np.ones(n), X])
        basis, _ = linalg.qr(spanned, mode="economic")
        free = rng.standard_normal((n, p))
        free -= basis @ (basis.T @ free)
        free -= basis @ (basis.T @ free)  # repeated, for orthogonality to full precision
        directions, _ = linalg.qr(free, mode="economic")
        return np.asarray(X @ self.keep + np.sqrt(n) * directions @ self.root)
