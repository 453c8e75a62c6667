"""Any scikit-learn estimator as a function of its inputs, with numerical derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.sensitivity.models import SensitiveModel
from zeronorm.selection.problem import Problem
from zeronorm.solvers.status import Status

SMALLEST_PROBABILITY = 1e-12
OUTPUTS = ("decision_function", "predict_proba", "predict")


class NumericalModel(SensitiveModel):
    """An estimator seen through ``decision_function``, else ``predict_proba``, else ``predict``.

    Derivatives are central differences with a step given in standard deviations of the column.
    """

    def __init__(self, problem: Problem, estimator: Any, step: float) -> None:
        self.problem, self.estimator, self.step = problem, estimator, step
        self.output = _output_name(estimator, problem)
        self.columns = np.arange(problem.n_features)
        self.target = problem.y if problem.task == "regression" else np.asarray(problem.classes)[problem.y]
        self.n_trained = 0
        self.X = np.empty((0, 0))
        self.f = np.empty((0, 0))
        self.fitted: Any = None

    @property
    def status(self) -> Status:
        return Status.CONVERGED

    @property
    def n_iter(self) -> int:
        return self.n_trained

    def train(self, columns: IntArray) -> None:
        self.columns = columns
        self.X = np.ascontiguousarray(self.problem.design.block(columns))
        self.fitted = clone(self.estimator).fit(self.X, self.target)
        self.n_trained += 1
        self.f = self._evaluate()

    def slopes(self, part: slice, block: FloatArray) -> FloatArray:
        h = self._widths(block)
        return (self._moved(part, block + h) - self._moved(part, block - h)) / (2.0 * h[:, None])

    def curvatures(self, part: slice, block: FloatArray) -> FloatArray:
        h = self._widths(block)
        both = self._moved(part, block + h) + self._moved(part, block - h)
        return (both - 2.0 * self.f[:, None, :]) / h[:, None] ** 2

    def changes(self, part: slice, block: FloatArray, shift: FloatArray) -> FloatArray:
        return self._moved(part, block + shift) - self.f[:, None, :]

    def loss_slopes(self) -> FloatArray:
        """Of the squared loss (regression, labels), the hinge loss (decisions) or the log loss (probabilities)."""
        if self.problem.task == "regression":
            return self.f - self.problem.targets()
        signs = self.problem.targets()
        if self.f.shape[1] not in (signs.shape[1], self.problem.n_classes):
            raise ValueError(
                "sensitivity_of='objective' of SensitivityElimination needs one output per class. "
                f"Got {self.f.shape[1]} outputs for {self.problem.n_classes} classes from {self.output} of "
                f"{type(self.estimator).__name__}; use sensitivity_of='output'."
            )
        if self.output == "decision_function":
            return np.where(signs * self.f < 1.0, -signs, 0.0)
        is_class = (self.problem.y[:, None] == np.arange(self.f.shape[1])).astype(np.float64)
        if self.output == "predict":
            return np.asarray(self.f - is_class)
        return np.asarray(-is_class / np.maximum(self.f, SMALLEST_PROBABILITY))

    def _widths(self, block: FloatArray) -> FloatArray:
        spread = block.std(axis=0)
        return self.step * np.where(spread > 0.0, spread, 1.0)

    def _moved(self, part: slice, values: FloatArray) -> FloatArray:
        """f with each column of ``part`` in turn replaced by new values."""
        result = np.empty(values.shape + self.f.shape[1:])
        for j, column in enumerate(range(part.start, part.stop)):
            kept = self.X[:, column].copy()
            self.X[:, column] = values[:, j]
            result[:, j] = self._evaluate()
            self.X[:, column] = kept
        return result

    def _evaluate(self) -> FloatArray:
        values = np.asarray(getattr(self.fitted, self.output)(self.X))
        if self.output == "predict" and self.problem.task != "regression":
            values = values[:, None] == np.asarray(self.problem.classes)
        return np.asarray(values, dtype=np.float64).reshape(self.X.shape[0], -1)


def _output_name(estimator: Any, problem: Problem) -> str:
    names = ("predict",) if problem.task == "regression" else OUTPUTS
    for name in names:
        if hasattr(estimator, name):
            return name
    raise ValueError(
        "The 'learner' parameter of SensitivityElimination must be 'svm', 'network' or an estimator with one of "
        f"{names}. Got {estimator!r}, which has none."
    )
