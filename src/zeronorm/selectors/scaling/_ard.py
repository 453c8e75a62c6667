"""Automatic relevance determination: a prior variance for each feature, most of which go to zero."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.engines._column_information import has_stored_columns
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers.sparse_bayes._posterior import BernoulliLikelihood, GaussianLikelihood
from zeronorm.solvers.sparse_bayes._sequential import SparseBayes, solve_sparse_bayes

MANY_SAMPLES = 100_000  # of dense data; from here on a fit may take many minutes, and a warning says so first


@register(
    "ard",
    family="scaling",
    tasks=("binary", "multiclass", "regression"),
    reference="Tipping 2001; Tipping & Faul 2003; Lal et al. 2006, section 3.2",
    cost="n p for each feature that enters or leaves, m³ for the m features in the model",
    oracle="the fixed point against the sequential one, scikit-learn's ARDRegression, slopes by finite differences",
    avoid="far more features than samples without n_features_to_select: the evidence overfits",
    test_params=(
        {},
        {"task": "regression"},
        {"method": "fixed_point"},
        {"prior_shape": 0.5, "prior_rate": 0.01},
    ),
)
class ARD(WeightedSelector):
    r"""Select by automatic relevance determination (sparse Bayesian learning).

    The weight of feature k has the prior :math:`N(0, 1/\beta_k)`, and the precisions :math:`\beta` maximise the
    evidence :math:`P(y \mid \beta) = \int P(y \mid w)\,P(w \mid \beta)\,dw`. At the maximum

    .. math:: \beta_k = \frac{1 - \beta_k \Sigma_{kk}}{w_k^2}, \qquad
        \Sigma = \bigl(-\nabla^2 \log P(w \mid y)\bigr)^{-1},

    or :math:`\beta_k = \infty`: the feature is not in the model (without a hyperprior, see below).
    :math:`\beta_k^{-1/2}` is the scaling factor of the feature and orders the features in the model; the others follow
    by how near they are to raising the evidence. The bias has a flat prior. Regression has normal noise, whose variance
    is estimated too; classification has a logistic link, and the integral is found by Laplace's approximation. With
    more than two classes there is one classifier for each class against the rest, and all of them share the precision
    of a feature.

    The precisions have a flat prior (on their logarithms), unless ``prior_shape`` :math:`a` and ``prior_rate``
    :math:`b` give them a Gamma density, which makes the prior of a weight a Student t density. Then
    :math:`\log P(y \mid \beta) + \sum_k (a \log\beta_k - b\beta_k)` is maximised, and

    .. math:: \beta_k = \frac{1 - \beta_k \Sigma_{kk} + 2a}{w_k^2 + 2b}.

    All precisions are finite then: irrelevant features have a precision of :math:`a/b` or more and stay in the model
    with small weights. A feature counts as selected when the data determine its weight more than the prior does,
    :math:`1 - \beta_k\Sigma_{kk} > 1/2`.

    Use it when a few features carry the signal and you do not want to tune a parameter. With many more features than
    samples the evidence overfits: chance combinations of features explain the noise, and many are kept. Then select
    fewer (``n_features_to_select``), or give a ``noise_variance``. Of several nearly equal features only one is kept.
    The evidence has many local maxima, of which one is found.

    Parameters
    ----------
    n_features_to_select
        None: all features with finite precision; with a hyperprior, those whose weight the data determine more than the
        prior.
    prior_shape
        :math:`a`; 0 with ``prior_rate=0`` is the flat prior.
    prior_rate
        :math:`b`; with a small value (1e-4) weights can be almost zero, with a large one all features stay in the
        model.
    min_noise
        Without it the evidence of wide data grows without limit as the noise vanishes.
    method
        "sequential" adds, deletes and re-estimates single features and is fast on wide data; "fixed_point" starts
        with all features and iterates the equation above, at a cost of p³ for each iteration. A hyperprior is always
        iterated with all features, at a cost of n² p.
    tol
        Largest change of a log precision in the last iteration; a feature is added if the log evidence grows by ten
        times this.
    max_iter
        One iteration visits every feature that is in the model.

    Attributes
    ----------
    precision_ : ndarray
        :math:`\beta`, infinite for features that are not in the model; with a hyperprior all are finite.
    coef_ : ndarray
        The most probable weights of the standardised features, one row per classifier.
    intercept_ : float or ndarray
        The most probable bias, one number per classifier.
    log_evidence_ : float
        The logarithm of the evidence.
    noise_variance_ : float
        Regression: the variance of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import ARD
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = ARD(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: Literal["classification", "regression"] = "classification",
        noise_variance: float | None = None,
        min_noise: float = 1e-3,
        prior_shape: float = 0.0,
        prior_rate: float = 0.0,
        method: Literal["sequential", "fixed_point"] = "sequential",
        standardize: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.task = task
        self.noise_variance = noise_variance
        self.min_noise = min_noise
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.method = method
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        if problem.n_samples >= MANY_SAMPLES and not has_stored_columns(problem.design):
            warnings.warn(
                f"ARD changes one feature at a time, each time with the dense columns of all features in the model: "
                f"with {problem.n_samples} samples that may take many minutes. To save time, use a subset of the "
                "samples, or the best columns of FisherScore.",
                UserWarning,
                stacklevel=4,
            )
        likelihood = self._likelihood(problem)
        solution = solve_sparse_bayes(
            problem.design,
            likelihood,
            method=self.method,
            tol=self.tol,
            max_iter=self.max_iter,
            hyperprior=(float(self.prior_shape), float(self.prior_rate)),
        )
        self.precision_ = solution.precision
        self.coef_ = solution.weights.T
        self.intercept_ = solution.bias
        self.log_evidence_ = solution.log_evidence
        if isinstance(likelihood, GaussianLikelihood):
            self.noise_variance_ = likelihood.noise_variance
        if self.prior_rate and solution.active.size == 0:
            warn_of_empty_selection(self, problem, "raise prior_rate")
        return SelectionPath.from_scores(
            relevance_scores(solution),
            selected_size=solution.active.size,
            last=problem.design.column_stats().is_constant(problem.design.dtype) if self.prior_rate else None,
            scale=1.0 / np.sqrt(solution.precision),
            n_iter=solution.n_iter,
            converged=solution.status.converged,
            remedy="raise max_iter, or loosen tol.",
        )

    def _check_parameters(self) -> None:
        if (self.prior_shape == 0) != (self.prior_rate == 0):
            given, other = (
                ("prior_rate", "prior_shape") if self.prior_shape == 0 else ("prior_shape", "prior_rate")
            )
            raise parameter_error(self, given, f"0 with {other}=0, since a Gamma density needs both")

    def _likelihood(self, problem: Problem) -> GaussianLikelihood | BernoulliLikelihood:
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        if not problem.target.has_classes:
            return GaussianLikelihood(
                problem.target.columns()[:, 0], weight, self.noise_variance, self.min_noise
            )
        return BernoulliLikelihood((problem.target.columns() + 1.0) / 2.0, weight)


def relevance_scores(solution: SparseBayes) -> FloatArray:
    """Scores: the scaling factors of the columns in the model, and below them the other columns by q²/s."""
    scale = 1.0 / np.sqrt(solution.precision)
    lowest = float(scale[solution.active].min(initial=np.inf))
    lowest = lowest if np.isfinite(lowest) else 1.0
    outside = solution.relevance / (1.0 + solution.relevance)
    return np.where(np.isfinite(solution.precision), scale, 0.5 * lowest * outside)
