"""The interface of a criterion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design import Design


@dataclass(frozen=True, eq=False)
class FactoredMatrix:
    r"""A symmetric matrix :math:`\mathrm{diag}(d) + V \mathrm{diag}(c) V^\top` with few columns in V."""

    diagonal: FloatArray
    vectors: FloatArray
    weights: FloatArray

    def dense(self) -> FloatArray:
        """The matrix itself."""
        matrix = (self.vectors * self.weights) @ self.vectors.T
        matrix.flat[:: self.diagonal.size + 1] += self.diagonal
        return np.asarray(matrix)

    def forms(self, design: Design) -> FloatArray:
        """x'Mx for every column x of the data, computed from products with a few vectors."""
        result = np.empty(design.n_features)
        for columns, block in design.iter_blocks():
            result[columns] = (block.T @ self.vectors) ** 2 @ self.weights
            result[columns] += self.diagonal @ np.square(block, out=block)
        return result

    def __add__(self, other: FactoredMatrix) -> FactoredMatrix:
        return FactoredMatrix(
            self.diagonal + other.diagonal,
            np.hstack([self.vectors, other.vectors]),
            np.concatenate([self.weights, other.weights]),
        )

    def __rmul__(self, factor: float) -> FactoredMatrix:
        return FactoredMatrix(factor * self.diagonal, self.vectors, factor * self.weights)


@dataclass(frozen=True, eq=False)
class CriterionValue:
    """The value of a criterion, its symmetric gradient with respect to the kernel matrix, and the warm-start state.

    ``factored`` is the same gradient where it is a diagonal matrix plus one of low rank. With a linear kernel the
    derivatives for all features then take only a few matrix-vector products.
    """

    value: float
    gradient: FloatArray
    warm: Any
    converged: bool = True
    factored: FactoredMatrix | None = None

    @classmethod
    def from_factors(
        cls, value: float, factored: FactoredMatrix, warm: Any, converged: bool = True
    ) -> CriterionValue:
        """A criterion value from a gradient in factored form."""
        return cls(value, factored.dense(), warm, converged, factored)


class Criterion(ABC):
    """A measure of a kernel matrix against the labels; smaller is better."""

    @abstractmethod
    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        """Value and gradient at ``K`` for labels ``y`` in {-1, +1}; ``warm`` is the state of an earlier call."""


def with_ridge(K: FloatArray, C: float) -> FloatArray:
    """K + I/C: a soft margin with squared slacks is a hard margin on this matrix."""
    if np.isinf(C):
        return K
    ridged = K.copy()
    ridged.flat[:: K.shape[0] + 1] += 1.0 / C
    return ridged


# -- One criterion summed over the one-vs-rest classifiers --


@dataclass(frozen=True)
class Summed(Criterion):
    """The sum of a criterion over the columns of ``y``, which all share the kernel matrix."""

    criterion: Criterion

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        starts = [None] * y.shape[1] if warm is None else warm
        values = [self.criterion.evaluate(K, y[:, c], starts[c]) for c in range(y.shape[1])]
        factors = [value.factored for value in values if value.factored is not None]
        return CriterionValue(
            sum(value.value for value in values),
            np.sum([value.gradient for value in values], axis=0),
            [value.warm for value in values],
            all(value.converged for value in values),
            reduce(add, factors) if len(factors) == len(values) else None,
        )
