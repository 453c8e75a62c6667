"""Cox's proportional hazards model with a ridge penalty, and its curves of survival."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from zeronorm._types import FloatArray
from zeronorm.design import as_design
from zeronorm.resampling.predictors._covariates import DEVIATION
from zeronorm.resampling.survival._concordance import concordance
from zeronorm.resampling.survival._curves import StepFunction
from zeronorm.selection.target import TimeToEvent
from zeronorm.solvers.linear import CoxLoss, LinearProblem, solve
from zeronorm.solvers.linear._cox import RiskSets, Ties

LARGEST_EXPONENT = 700.0  # of a number that is finite
SOLUTION_TOL = 1e-9


class RidgeCox(BaseEstimator):  # type: ignore[misc]
    """Cox regression; ``predict`` returns log risks.

    Parameters
    ----------
    C : cost of the partial likelihood, added to half of the squared weights of the standardised columns.
    ties : "efron" or "breslow".
    n_covariates : number of last columns whose weights have practically no penalty.
    """

    def __init__(self, C: float = 1.0, *, ties: Ties = "efron", n_covariates: int = 0) -> None:
        self.C = C
        self.ties = ties
        self.n_covariates = n_covariates

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features).
        y : times and events: a structured array, or a table with two columns.
        """
        X, y = validate_data(
            self,
            X,
            TimeToEvent.prepared(y),
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_min_samples=2,
        )
        target = TimeToEvent.encode(y, type(self).__name__)
        design = as_design(X).standardized(with_mean=True)
        if self.n_covariates:
            unit = np.repeat([1.0, 1.0 / DEVIATION], [X.shape[1] - self.n_covariates, self.n_covariates])
            design = design.transformed(scale=unit)
        assert design.affine is not None
        problem = LinearProblem(
            CoxLoss(self.ties, target.stratum), target.columns(), np.full((len(y), 1), float(self.C))
        )
        found = solve(problem, design, tol=SOLUTION_TOL)
        self.n_iter_ = max(1, found.n_iter)
        self.coef_: FloatArray = found.weights[:, 0] / design.affine.scale
        self.mean_, self.scale_ = np.asarray(design.affine.mean), np.asarray(design.affine.scale)
        self._centre = float(self.mean_ @ self.coef_)
        sets = RiskSets(target.time, target.event, np.ones(len(y)), "breslow").at(self.predict(X))
        times = target.time[sets.sets.order][sets.sets.deaths]
        self._hazard = StepFunction(times, np.cumsum(np.exp(-sets.log_denominator)), 0.0)
        self.event_times_ = np.unique(times)
        self.baseline_hazard_ = self._hazard(self.event_times_)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Log risks, relative to a sample with mean features; greater where the event is expected earlier."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
        return np.asarray(X @ self.coef_ - self._centre, dtype=np.float64)

    def predict_survival_function(self, X: Any, times: ArrayLike | None = None) -> NDArray[np.float64]:
        """Probability of no event up to each time: one row for each sample; ``times`` are by default those of events.

        .. math:: S(t \\mid x) = \\exp(-\\Lambda_0(t) e^{x \\cdot w})

        with Breslow's cumulative baseline hazard.
        """
        risk = np.exp(np.minimum(self.predict(X), LARGEST_EXPONENT))
        hazard = self._hazard(self.event_times_ if times is None else times)
        return np.asarray(np.exp(-np.outer(risk, hazard)))

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance of the predicted risks."""
        risk = self.predict(X)
        return concordance(TimeToEvent.of(y).values, risk)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = TimeToEvent.needs_positive
        tags.input_tags.sparse = True
        return tags
