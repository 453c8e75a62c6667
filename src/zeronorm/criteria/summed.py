"""One criterion summed over the machines of one class against the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from zeronorm.criteria.base import Criterion, CriterionValue, FloatArray


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
