"""Any scikit-learn estimator as the learner of an elimination: plain refits, no shortcuts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from zeronorm._types import FloatArray, IntArray
from zeronorm.selection.problem import Problem
from zeronorm.solvers.status import Status


class EstimatorMachines:
    """``Machines`` of the elimination loop around an estimator with ``coef_`` or ``feature_importances_``."""

    def __init__(self, problem: Problem, estimator: Any) -> None:
        self.problem, self.estimator = problem, estimator
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.target = problem.y if problem.task == "regression" else np.asarray(problem.classes)[problem.y]
        self.fit_params: dict[str, Any] = {}
        if problem.sample_weight is not None and has_fit_parameter(estimator, "sample_weight"):
            self.fit_params["sample_weight"] = problem.sample_weight
        self.weight_sq = np.empty(0)

    def train(self) -> None:
        columns = np.ascontiguousarray(self.problem.design.block(self.alive))
        fitted = clone(self.estimator).fit(columns, self.target, **self.fit_params)
        self.n_iter += 1
        self.weight_sq = self._squared_weights(fitted)

    def _squared_weights(self, fitted: Any) -> FloatArray:
        if hasattr(fitted, "coef_"):
            coefficients = fitted.coef_
            dense = coefficients.toarray() if hasattr(coefficients, "toarray") else np.asarray(coefficients)
            return np.asarray((np.atleast_2d(dense) ** 2).sum(axis=0))
        if hasattr(fitted, "feature_importances_"):
            return np.asarray(fitted.feature_importances_, dtype=np.float64) ** 2
        raise ValueError(
            "The 'learner' parameter of RFE must be 'svm', 'logistic' or an estimator with coef_ or "
            f"feature_importances_ after fit. Got {type(fitted).__name__}, which has neither."
        )

    def importance(self) -> FloatArray:
        """Squared weights summed over classes, or squared importances."""
        return self.weight_sq

    def group_importance(self, unit: IntArray) -> FloatArray:
        """Absolute weights summed over the group."""
        return np.bincount(unit, weights=np.sqrt(self.weight_sq)).astype(np.float64)

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
