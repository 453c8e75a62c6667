"""Relevance vector machines: sparse Bayesian learning with a kernel column for each training sample."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from zeronorm._types import FloatArray, written
from zeronorm.design import as_design, in_memory
from zeronorm.execution import require_memory
from zeronorm.registry import register
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._problem import warn_about_target_outliers, warn_of_long_fit
from zeronorm.selection.target import Real
from zeronorm.solvers.sparse_bayes._posterior import BernoulliLikelihood, GaussianLikelihood, Likelihood
from zeronorm.solvers.sparse_bayes._sequential import SparseBayes, solve_sparse_bayes

KERNELS = ("rbf", "linear", "poly")
KERNEL_COPIES = 2  # matrices of all pairs of samples that training holds: the kernel and its scaled columns

# Of regression, measured with 500 (4 s) and 1000 samples (77 s).
SECONDS_PER_FOURTH_POWER = 6e-11


class _RelevanceVectorModel(CheckedParameters, BaseEstimator):
    """Base class of the classifier and the regressor: kernel columns, training and outputs."""

    kernel: Literal["rbf", "linear", "poly"]
    gamma: float | Literal["scale", "auto"]
    degree: int
    coef0: float
    tol: float
    max_iter: int

    def _require_memory(self, n_samples: int) -> None:
        """Raise an error if the kernel of all pairs of samples would not fit into the free memory."""
        require_memory(
            KERNEL_COPIES * 8 * n_samples**2,
            f"{type(self).__name__} holds the kernel of all pairs of {n_samples} samples, which",
            "use a random subset of the samples.",
        )

    def _learn(self, X: FloatArray, likelihood: Likelihood) -> SparseBayes:
        self._gamma = self._width(X)
        columns = self._kernel_columns(X, X)
        # Columns of unit size make the start and the tolerance independent of the units of the kernel.
        size = np.sqrt(np.mean(columns**2, axis=0))
        size[size == 0.0] = 1.0
        solution = solve_sparse_bayes(
            as_design(columns / size), likelihood, tol=self.tol, max_iter=self.max_iter
        )
        order = np.argsort(solution.active)
        chosen = solution.active[order]
        self.relevance_ = chosen
        self.relevance_vectors_ = X[chosen]
        self.dual_coef_ = (solution.weights[chosen] / size[chosen, None]).T
        self.intercept_ = solution.bias
        self.log_evidence_ = solution.log_evidence
        self.n_iter_, self.converged_ = solution.n_iter, solution.status.converged
        indices = np.concatenate([[0], 1 + order])
        scale = np.concatenate([[1.0], 1.0 / size[chosen]])
        self._covariance = solution.covariance[:, indices][:, :, indices] * (scale[:, None] * scale)
        if not self.converged_:
            name = type(self).__name__
            warnings.warn(
                f"{name} did not converge: raise max_iter, or loosen tol.", ConvergenceWarning, stacklevel=3
            )
        return solution

    def _width(self, X: FloatArray) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        variance = float(X.var()) if self.gamma == "scale" else 1.0
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0

    def _kernel_columns(self, X: FloatArray, vectors: FloatArray) -> FloatArray:
        settings: dict[str, Any] = {
            "rbf": {"gamma": self._gamma},
            "linear": {},
            "poly": {"gamma": self._gamma, "degree": self.degree, "coef0": self.coef0},
        }[self.kernel]
        return cast("FloatArray", pairwise_kernels(X, vectors, metric=self.kernel, **settings))

    def _columns_of(self, X: Any) -> FloatArray:
        """Columns of the design: a constant, and the kernel with each relevance vector."""
        check_is_fitted(self)
        X = validate_data(self, in_memory(X, self), dtype=np.float64, reset=False)
        ones = np.ones((X.shape[0], 1))
        if self.relevance_.size == 0:
            return ones
        return np.hstack([ones, self._kernel_columns(X, self.relevance_vectors_)])

    def _outputs(self, columns: FloatArray) -> FloatArray:
        return np.asarray(columns @ np.hstack([self.intercept_[:, None], self.dual_coef_]).T)

    def _output_variance(self, columns: FloatArray) -> FloatArray:
        """Posterior variance of the outputs, samples × outputs."""
        return np.stack([np.sum((columns @ c) * columns, axis=1) for c in self._covariance], axis=1)


@register(
    "relevance-vector-classifier",
    kind="model",
    family="scaling",
    tasks=("binary", "multiclass"),
    reference="Tipping 2001; Tipping & Faul 2003",
    cost="n × n in memory; n m² for each step with m vectors",
    oracle="ARD on the columns of the kernel matrix",
    avoid="more than a few thousand samples; selecting input features: it selects samples",
)
class RelevanceVectorClassifier(ClassifierMixin, _RelevanceVectorModel):
    r"""Classifier that keeps few training samples, found by sparse Bayesian learning.

    .. math:: f(x) = \sum_k w_k\,k(x, x_k) + b, \qquad w_k \sim N(0, 1/\beta_k),

    with a logistic link. The precisions :math:`\beta` maximise the evidence in Laplace's approximation, as in
    :class:`zeronorm.ARD`; most become infinite, and the samples with a finite precision are the relevance vectors.
    Usually they are far fewer than the support vectors of an SVM. The width of the kernel has to be chosen, but no cost
    C of errors. More than two classes have one classifier for each class against the rest, with common relevance
    vectors; the probabilities are scaled to sum to one.

    Training needs the full kernel matrix in memory.

    Parameters
    ----------
    tol
        Largest change of a log precision in the last iteration.

    Attributes
    ----------
    relevance_ : ndarray of int
        Rows of the training data that are relevance vectors.
    relevance_vectors_ : ndarray
        The relevance vectors.
    dual_coef_ : ndarray
        Weights of the relevance vectors, one row per output.
    intercept_ : float or ndarray
        The bias.
    log_evidence_ : float
        Logarithm of the marginal likelihood at the end of the training.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the iteration reached ``tol``.
    classes_ : ndarray
        The classes.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.models import RelevanceVectorClassifier
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> model = RelevanceVectorClassifier().fit(X, y)
    >>> len(model.relevance_)
    3
    >>> round(model.score(X, y), 2)
    1.0
    """

    def __init__(
        self,
        *,
        kernel: Literal["rbf", "linear", "poly"] = "rbf",
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the weights and find the relevance vectors."""
        self._validate_params()
        X, y = validate_data(self, in_memory(X, self), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                "RelevanceVectorClassifier needs samples of at least two classes in y. "
                f"Got one class only: {written(self.classes_[0])}."
            )
        self._require_memory(len(X))
        targets = (codes[:, None] == np.arange(self.classes_.size)).astype(np.float64)
        targets = targets[:, 1:] if self.classes_.size == 2 else targets
        self._learn(X, BernoulliLikelihood(targets, np.ones(len(y))))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds: of the second of two classes, or one column for each class against the rest."""
        outputs = self._outputs(self._columns_of(X))
        return outputs[:, 0] if self.classes_.size == 2 else outputs

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities at the most probable weights."""
        outputs = self._outputs(self._columns_of(X))
        if self.classes_.size == 2:
            return np.hstack([expit(-outputs), expit(outputs)])
        # Logarithms, since the probabilities of all classes against the rest may round to zero.
        return np.asarray(softmax(log_expit(outputs), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each sample."""
        decision = self.decision_function(X)
        codes = (decision > 0.0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[codes])


@register(
    "relevance-vector-regressor",
    kind="model",
    family="scaling",
    tasks=("regression",),
    reference="Tipping 2001; Tipping & Faul 2003",
    cost="n × n in memory; n m² for each step with m vectors",
    oracle="ARD on the columns of the kernel matrix",
    avoid="more than a few thousand samples; selecting input features: it selects samples",
)
class RelevanceVectorRegressor(RegressorMixin, _RelevanceVectorModel):
    r"""Regression with few training samples, found by sparse Bayesian learning.

    .. math:: y = \sum_k w_k\,k(x, x_k) + b + \varepsilon, \qquad w_k \sim N(0, 1/\beta_k), \quad
        \varepsilon \sim N(0, \sigma^2).

    The precisions :math:`\beta` and the noise maximise the evidence, as in :class:`zeronorm.ARD`. The predictive
    variance is that of the noise plus that of the posterior; with an RBF kernel the
    latter vanishes far from the relevance vectors, so the predictive variance is too small there.

    Parameters
    ----------
    tol
        Largest change of a log precision in the last iteration.

    Attributes
    ----------
    relevance_ : ndarray of int
        Rows of the training data that are relevance vectors.
    relevance_vectors_ : ndarray
        The relevance vectors.
    dual_coef_ : ndarray
        Weights of the relevance vectors, one row per output.
    intercept_ : float or ndarray
        The bias.
    noise_variance_ : float
        The variance of the noise.
    log_evidence_ : float
        Logarithm of the marginal likelihood at the end of the training.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the iteration reached ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from zeronorm.models import RelevanceVectorRegressor
    >>> X, y = make_regression(n_samples=60, n_features=8, n_informative=2, random_state=0)
    >>> model = RelevanceVectorRegressor(kernel="linear").fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    def __init__(
        self,
        *,
        kernel: Literal["rbf", "linear", "poly"] = "rbf",
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        noise_variance: float | None = None,
        min_noise: float = 1e-6,
        tol: float = 1e-3,
        max_iter: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.noise_variance = noise_variance
        self.min_noise = min_noise
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the weights and find the relevance vectors."""
        self._validate_params()
        Real.check_raw(y)
        X, y = validate_data(
            self,
            in_memory(X, self),
            y,
            dtype=np.float64,
            ensure_min_samples=2,
            y_numeric=True,
        )
        target = Real.encode(y, type(self).__name__).values
        self._require_memory(target.size)
        warn_about_target_outliers(type(self).__name__, target, other_methods=False)
        warn_of_long_fit(
            "RelevanceVectorRegressor",
            SECONDS_PER_FOURTH_POWER * float(target.size) ** 4,
            f"{target.size} samples",
            "fit a subsample, or set max_iter=100",
        )
        likelihood = GaussianLikelihood(target, np.ones(target.size), self.noise_variance, self.min_noise)
        self._learn(X, likelihood)
        self.noise_variance_ = likelihood.noise_variance
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predicted targets, with ``return_std`` also their standard deviations."""
        columns = self._columns_of(X)
        mean = self._outputs(columns)[:, 0]
        if not return_std:
            return mean
        return mean, np.sqrt(self.noise_variance_ + self._output_variance(columns)[:, 0])
