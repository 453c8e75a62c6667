"""A real target: one number per sample, or several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, written
from zeronorm.design._stats_kernels import LARGEST_VALUE
from zeronorm.selection.target._base import Target


class Real(Target):
    """Real numbers, one or several per sample."""

    kind = "regression"
    task = "regression"
    estimator_type = "regressor"
    has_classes = False
    metrics = ("mse", "r2")
    scoring = "r2"
    predictors: ClassVar = {"linear": "ridge", "gaussian": "gaussian svr"}
    baseline = "mean"
    smooth_loss = "squared_error"

    @classmethod
    def check_raw(cls, y: Any) -> None:
        values = np.asarray(y)
        if y is None or values.dtype.kind not in "OUS":
            return
        for row, value in enumerate(values.ravel()):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"A real target y must hold numbers. Got {written(value):.60} in row {row}; use "
                    "task='classification' for classes."
                ) from None

    @classmethod
    def encode(cls, y: NDArray[Any], owner: str) -> Real:
        target = cls.of(y)
        _require_finite(target.values)
        largest = target.values.flat[np.abs(target.values).argmax()]
        if abs(largest) > LARGEST_VALUE:
            raise ValueError(
                f"Input y contains {largest:.3g}. Squares of values beyond {LARGEST_VALUE:.0e} overflow; rescale the "
                "target first."
            )
        return target

    @classmethod
    def of(cls, y: NDArray[Any]) -> Real:
        return cls(np.asarray(y, dtype=np.float64))

    @classmethod
    def recognised(cls, y: NDArray[Any]) -> str | None:
        if y.dtype.kind not in "iuf":
            return None
        distinct = np.unique(y)
        whole = np.all(distinct == np.round(distinct))
        numbers = "many whole numbers" if whole else "numbers that are not whole"
        return f"holds {numbers}, so the task is taken as {cls.task}."

    def columns(self) -> FloatArray:
        return np.asarray(self.values, dtype=np.float64).reshape(self.n_samples, -1)

    @property
    def midrange(self) -> float:
        return 0.5 * float(self.values.min() + self.values.max())

    def around_zero(self) -> Self:
        return replace(self, values=self.values - self.midrange)

    def unit(self, weight: FloatArray | None = None) -> float:
        """Median absolute deviation, scaled to equal the standard deviation of a normal distribution."""
        weight = np.ones(self.n_samples) if weight is None else weight
        scales = []
        for y in self.columns().T:
            distance = np.abs(y - weighted_median(y, weight))
            scale = 1.4826 * weighted_median(distance, weight)
            scales.append(scale if scale > 0.0 else float(np.sqrt(np.average(distance**2, weights=weight))))
        found = float(np.mean(scales))
        return found if found > 0.0 else 1.0

    @classmethod
    def described(cls, n_classes: int) -> str:
        return "a regression"


def weighted_median(values: FloatArray, weight: FloatArray) -> float:
    """The weighted median: half of the weight lies below it; the mean of the two nearest values if ambiguous."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    low, high = np.searchsorted(share, [0.5 - 1e-12, 0.5 + 1e-12])
    return float(0.5 * (values[order[low]] + values[order[min(high, values.size - 1)]]))


def _require_finite(values: FloatArray) -> None:
    unusable = np.flatnonzero(~np.isfinite(values))
    if unusable.size:
        row = int(unusable[0])
        if np.isnan(values.flat[row]):
            raise ValueError(
                f"Input y contains NaN: first found in row {row}; drop samples without a target."
            )
        raise ValueError(
            f"Input y contains infinity: first found in row {row}; drop or correct such samples."
        )
