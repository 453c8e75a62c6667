"""Cox's proportional hazards model with a ridge penalty, for any number of features."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from zeronorm.registry import register
from zeronorm.resampling.predictors._cox import RidgeCox
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._kinds import parameter_error


@register(
    "cox-regression",
    kind="model",
    family="sparsity",
    tasks=("survival",),
    reference="Cox 1972; Efron 1977",
    cost="n p min(n, p) for each of about 6 Newton steps",
    oracle="lifelines, scikit-survival, and finite differences of the likelihood of all risk sets",
    avoid="hazards that are not proportional: effects that change in the course of time",
    test_params=({}, {"C": 0.1, "ties": "breslow"}),
)
class CoxRegression(CheckedParameters, RidgeCox):
    r"""Cox's proportional hazards model with a ridge penalty.

    .. math:: \min_w\ \tfrac12 \|w\|_2^2 - C\,\ell(w), \qquad
              \ell(w) = \sum_{i: \text{event}} \Bigl[x_i \cdot w - \log \sum_{t_j \ge t_i} e^{x_j \cdot w}\Bigr]

    with standardised features and the partial likelihood :math:`\ell`, in which Efron's approximation accounts for
    events at the same time. The hazard of a sample is that of the baseline times :math:`e^{x \cdot w}`; the baseline
    is Breslow's estimate. With more features than samples the problem is solved in coefficients of the
    samples, so that p may be large; with few features n may be large. With strata in the target the samples at risk
    are those of one stratum, and the baseline of the curves is that of all strata together.

    Parameters
    ----------
    C
        Cost of the partial likelihood; small values shrink the weights.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Log hazard ratios for one unit of each feature.
    mean_, scale_ : ndarray of shape (n_features_in_,)
        Means and standard deviations of the features.
    event_times_ : ndarray
        Distinct times of events.
    baseline_hazard_ : ndarray
        Cumulative hazard, at these times, of a sample with mean features.
    n_iter_ : int
        Number of Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.models import CoxRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 8))
    >>> time = rng.exponential(np.exp(-X[:, 0] - X[:, 1]))  # the first two features shorten it
    >>> y = {"event": time < 2.0, "time": np.minimum(time, 2.0)}
    >>> model = CoxRegression().fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    >>> model.predict_survival_function(X[:3], [0.5, 1.0]).shape
    (3, 2)
    """

    def __init__(self, C: float = 1.0, *, ties: Literal["efron", "breslow"] = "efron") -> None:
        super().__init__(C, ties=ties)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features).
        y : times and events: a structured array, or a table with two columns.
        """
        self._validate_params()
        return super().fit(X, y)

    def _check_parameters(self) -> None:
        if math.isinf(self.C):
            raise parameter_error(self, "C", "finite: the likelihood alone may have no largest value")
