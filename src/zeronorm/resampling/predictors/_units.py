"""Units in which samples are compared: values as measured or transformed, and one scale for each column or for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from zeronorm._types import FloatArray
from zeronorm.resampling.predictors._standardized import standardized_columns

Values = Literal["measured", "log", "root", "rows", "root rows"]
UnitsName = Literal["standardized", "common", "log", "root", "rows", "root rows"]


@dataclass(frozen=True)
class SampleUnits:
    """How the values are transformed, and whether each column has its own scale or all have a common one.

    ``text`` describes the units after the words "on the".
    """

    values: Values
    is_common: bool
    text: str

    @property
    def needs_nonnegative(self) -> bool:
        """Whether the transformation is defined for values from zero on only."""
        return self.values in ("log", "root", "root rows")


UNITS: dict[UnitsName, SampleUnits] = {
    "standardized": SampleUnits("measured", False, "standardised features"),
    "common": SampleUnits("measured", True, "features with one common scale"),
    "log": SampleUnits("log", False, "standardised logarithms log(1 + x/u) of the features"),
    "root": SampleUnits("root", False, "standardised square roots of the features"),
    "rows": SampleUnits("rows", True, "features divided by the length of each sample"),
    "root rows": SampleUnits(
        "root rows", True, "square roots of the features divided by their length in each sample"
    ),
}


def transformed(X: Any, values: Values, unit: float = 1.0) -> Any:
    r"""The values of samples in other units; a sparse matrix stays sparse.

    "log": :math:`\log(1 + x/u)` with the ``unit`` u; "root": :math:`\sqrt x`; "rows": :math:`x / \|x\|` for each
    sample; "root rows": both, the root first. Negative values count as zero for logarithms and roots.
    """
    if sparse.issparse(X):
        found = sparse.csr_array(X, dtype=np.float64)
        found.data = _of_values(found.data, values, unit)
        lengths = (
            np.sqrt(found.multiply(found).sum(axis=1)) if values.endswith("rows") else np.ones(X.shape[0])
        )
        return sparse.csr_array(sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ found)
    found = _of_values(np.asarray(X, dtype=np.float64), values, unit)
    if not values.endswith("rows"):
        return found
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(lengths > 0.0, lengths, 1.0)


def _of_values(X: FloatArray, values: Values, unit: float) -> FloatArray:
    if values == "log":
        return np.asarray(np.log1p(np.maximum(X, 0.0) / unit))
    return np.sqrt(np.maximum(X, 0.0)) if values.startswith("root") else X


def unit_of(X: Any) -> float:
    """The unit of the logarithm: the median of the positive values."""
    values = X.data if sparse.issparse(X) else X
    positive = values[values > 0.0]
    return float(np.median(positive)) if positive.size else 1.0


def common_scale(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The centred columns over the root of their mean variance, their means and this scale, once for each column."""
    means = X.mean(axis=0)
    centred = X - means
    scale = float(np.sqrt(np.mean(centred**2))) or 1.0
    return centred / scale, means, np.full(X.shape[1], scale)


class InUnits(BaseEstimator):
    """A predictor that standardises its columns (`OnStandardized`), in other units.

    Parameters
    ----------
    predictor : unfitted predictor of standardised columns.
    units : name of the units.
    unit : unit of the logarithm.
    """

    def __init__(self, predictor: Any, units: UnitsName = "standardized", unit: float = 1.0) -> None:
        self.predictor = predictor
        self.units = units
        self.unit = unit

    def around(self, predictor: Any) -> InUnits:
        """Another unfitted predictor in these units."""
        return InUnits(predictor, self.units, self.unit)

    def fit(self, X: Any, y: Any) -> Self:
        """Transform the samples, then scale the columns and fit the predictor."""
        units = UNITS[self.units]
        scaled = (common_scale if units.is_common else standardized_columns)(self._transformed(X))
        self.predictor_ = clone(self.predictor).fit_standardized(*scaled, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the samples, given as measured."""
        check_is_fitted(self, "predictor_")
        return np.asarray(self.predictor_.predict(self._transformed(X)))

    @available_if(lambda self: hasattr(self.predictor, "decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values of the samples, given as measured."""
        check_is_fitted(self, "predictor_")
        return np.asarray(self.predictor_.decision_function(self._transformed(X)))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, in the order of the decision values."""
        return np.asarray(self.predictor_.classes_)

    def _transformed(self, X: Any) -> FloatArray:
        dense = X.toarray() if sparse.issparse(X) else X
        return np.asarray(transformed(dense, UNITS[self.units].values, self.unit))

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.predictor)
