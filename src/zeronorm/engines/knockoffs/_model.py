r"""The model of the columns from which knockoffs are drawn: common factors and blocks of correlated columns.

.. math:: x = L f + e, \qquad f \sim N(0, I_k), \qquad e \sim N(0, \Psi), \quad \Psi \text{ block diagonal}.

Given x, the factors are drawn from their posterior distribution, the rest :math:`e = x - L f` gets Gaussian knockoffs
:math:`\tilde e` within each block (Candès et al. 2018), and :math:`\tilde x = L f + \tilde e`. Given f, x and
:math:`\tilde x` are exchangeable pair by pair, so they are so without it. With few features there is one block and no
factor; the cost of a draw is O(n p (k + b)) for blocks of b columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from zeronorm._types import FloatArray, IntArray


@dataclass(frozen=True)
class Block:
    """Columns with the maps of :math:`\\tilde e = e K + N C` within them."""

    columns: IntArray
    keep: FloatArray
    root: FloatArray


@dataclass(frozen=True)
class Factors:
    """Loadings (k, p), and the posterior distribution of the factors given x: mean ``x @ project``, covariance root."""

    loadings: FloatArray
    project: FloatArray
    root: FloatArray


@dataclass(frozen=True)
class ColumnModel:
    """The distribution of standardised columns, ready to draw knockoffs.

    ``scale`` holds the standard deviations of :math:`e`; the knockoffs of columns outside all blocks are new noise.
    """

    scale: FloatArray
    blocks: list[Block]
    factors: Factors | None = None

    def draw(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One set of knockoffs of the rows of X."""
        common, rest = None, X
        if self.factors is not None:
            noise = rng.standard_normal((len(X), len(self.factors.loadings)))
            common = (X @ self.factors.project + noise @ self.factors.root) @ self.factors.loadings
            rest = X - common
        copies = rng.standard_normal(X.shape) * self.scale
        for block in self.blocks:
            part = rest[:, block.columns]
            copies[:, block.columns] = part @ block.keep + rng.standard_normal(part.shape) @ block.root
        return copies if common is None else copies + common


def knockoff_factors(correlation: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""The maps of :math:`\tilde X = X (I - \Sigma^{-1} D) + N C`, :math:`C^\top C = 2D - D \Sigma^{-1} D`.

    C is the symmetric root, which rounding errors change little, unlike a triangular or spectral root.
    """
    inverse_gaps = linalg.solve(correlation, np.diag(s), assume_a="pos")
    scale = 2 * np.diag(s) - s[:, None] * inverse_gaps
    values, vectors = linalg.eigh((scale + scale.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.eye(len(s)) - inverse_gaps, root
