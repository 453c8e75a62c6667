"""Joint classifier and feature optimisation: few samples and few features at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register
from zeronorm.selectors.scaling.kernel_choice import chosen_kernel
from zeronorm.selectors.scaling.sparse_probit import SparseProbit
from zeronorm.selectors.sparsity.copies import first_copies
from zeronorm.selectors.sparsity.parameters import check_positive

FloatArray = NDArray[np.float64]


@register(
    "jcfo",
    family="scaling",
    tasks=("binary",),
    reference="Krishnapuram, Hartemink, Carin & Figueiredo 2004; Lal et al. 2006, section 3.4",
    test_params=({"max_iter": 20}, {"kernel": "rbf", "max_iter": 20}),
)
class JCFO(BaseSelector):
    r"""Select with a kernel machine that is sparse in the samples and in the features.

    .. math:: P(y = 1 \mid x) = \Phi\Bigl(\sum_j \beta_j\,k(\sigma * x, \sigma * x_j) + b\Bigr)

    with Laplacian priors on the weights :math:`\beta` and on the scaling factors :math:`\sigma \ge 0`. The most
    probable values are found by expectation-maximisation: the expected scores

    .. math:: v_i = f(x_i) + y_i\,\frac{\varphi(f(x_i))}{\Phi(y_i f(x_i))},

    then :math:`\beta = S(I + S K^\top K S)^{-1} S K^\top v` with S diagonal,
    :math:`S_{jj}^2 = |\beta_j|/\gamma_1`, then some steps of constrained descent in :math:`\sigma`, whose prior acts as
    :math:`\tfrac12 \sum_k (\gamma_2/\sigma_k)\,\sigma_k^2`. The bias has a flat prior. The penalised likelihood never
    decreases; it has local maxima, and the iteration starts with all :math:`\sigma_k = p^{-1/2}`.

    Use it for small samples where a nonlinear rule of few features is expected and a probability is wanted.
    An iteration costs some products of order n²p and one of n³. A feature that has reached zero does
    not come back; the scaling factor orders the others, and the last iterations with it those that left.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for all features with a scaling factor.
    kernel : "linear", "poly" or "rbf".
    gamma, degree, coef0 : of the kernel, applied to the scaled features. None for one over the number of features.
    sample_penalty : :math:`\gamma_1`, rate of the prior of the weights of the samples.
    feature_penalty : :math:`\gamma_2`, rate of the prior of the scaling factors.
    gradient_steps : steps in the scaling factors for each step of expectation-maximisation.
    standardize : scale columns to unit variance first.
    tol : the iteration ends when the penalised log-likelihood rises by less than this, relative to one plus its
        size.
    max_iter : largest number of iterations.
    estimator, feature_groups, always_keep : as in all selectors.

    Attributes
    ----------
    scale_ : :math:`\sigma`.
    dual_coef_, intercept_ : :math:`\beta` of all training samples, and the bias.
    objective_ : the penalised log-likelihood after each iteration.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        kernel: Literal["linear", "poly", "rbf"] = "linear",
        gamma: float | None = 1.0,
        degree: int = 2,
        coef0: float = 1.0,
        sample_penalty: float = 0.1,
        feature_penalty: float = 1.0,
        gradient_steps: int = 5,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sample_penalty = sample_penalty
        self.feature_penalty = feature_penalty
        self.gradient_steps = gradient_steps
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        check_positive(self, "sample_penalty", "feature_penalty", "gradient_steps", "tol", "max_iter")
        p = problem.n_features
        model = SparseProbit(
            problem.design,
            problem.signs,
            chosen_kernel(self, p),
            self._start(problem),
            (self.sample_penalty, self.feature_penalty),
            self.gradient_steps,
        )
        left_at, converged = self._iterate(model, problem)
        self.scale_ = np.zeros(p)
        self.scale_[model.features] = model.scale
        self.dual_coef_, self.intercept_ = model.beta, model.bias
        smallest = float(model.scale.min(initial=1.0))
        scores = np.where(self.scale_ > 0.0, self.scale_, 0.5 * smallest * left_at)
        return SelectionPath.from_scores(
            scores,
            own_size=model.features.size,
            scale=self.scale_,
            n_iter=len(self.objective_) - 1,
            converged=converged,
            remedy="raise max_iter, or loosen tol.",
        )

    def _start(self, problem: Problem) -> FloatArray:
        """Equal scaling factors; of identical columns only the first takes part."""
        first = first_copies(problem.design) == np.arange(problem.n_features)
        return np.where(first, problem.n_features**-0.5, 0.0)

    def _iterate(self, model: SparseProbit, problem: Problem) -> tuple[FloatArray, bool]:
        """Run to the end; returns for each feature the last iteration that had it (0 to 1), and whether it rests."""
        self.objective_ = [model.objective]
        last_seen = np.zeros(problem.n_features)
        last_scale = np.zeros(problem.n_features)
        with problem.progress.task("Maximising", self.max_iter) as advance:
            for iteration in range(1, self.max_iter + 1):
                last_seen[model.features] = iteration
                last_scale[model.features] = model.scale
                rise = model.step()
                pruned = model.prune()
                self.objective_.append(model.objective)
                advance(1)
                if rise <= self.tol * (1.0 + abs(model.objective)) and not pruned:
                    break
            else:
                return _order_of_leaving(last_seen, last_scale), False
        return _order_of_leaving(last_seen, last_scale), True


def _order_of_leaving(last_seen: FloatArray, last_scale: FloatArray) -> FloatArray:
    """Later is better, then the larger scaling factor; between 0 and 1."""
    within = last_scale / (1.0 + last_scale)
    return np.asarray((last_seen + within) / (last_seen.max(initial=0.0) + 1.0))
