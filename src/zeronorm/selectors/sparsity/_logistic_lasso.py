"""The generalized LASSO: logistic loss under a bound on the sum of absolute weights."""

from __future__ import annotations

from typing import Any

from zeronorm.engines._penalty_walk import follow_penalties
from zeronorm.engines._sparse_paths import scatter_columns, without_copies
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers.l1_smooth._logistic import CoupledLogistic


@register(
    "logistic-lasso",
    family="sparsity",
    tasks=("binary", "multiclass"),
    reference="Roth 2004; Lal et al. 2006, section 4.4",
    cost="n p for each of 5 to 10 passes over the data, and 100 small problems",
    oracle="a convex solver, and the optimality conditions",
    avoid="keeping all of several correlated features; interpreting weights as effects: they are shrunk",
    test_params=({"n_alphas": 5}, {"norm_bound": 0.5, "n_alphas": 3}),
)
class LogisticLasso(WeightedSelector):
    r"""Select with the generalized LASSO: logistic loss under a bound on the sum of absolute weights.

    .. math:: \min_{w, b}\ \sum_i s_i \log(1 + e^{-y_i (w \cdot x_i + b)})
              \quad \text{subject to} \quad \sum_k |w_k| \le \sigma_0

    The problem with a penalty :math:`\lambda \sum_k |w_k|` on the mean loss has the same solutions. It is solved
    on a grid of descending λ, each from the last solution, by reweighted least squares, each step of which is a
    LASSO that scikit-learn solves. Only columns that can get a weight are used. With a ``norm_bound`` the λ that
    meets the bound is found between the steps and the path ends there. Features are ordered by the λ at which
    they enter; those that never do, by the slope of the loss without features. Where a number of features is asked
    for, the path ends at 500 features, or at twice that number.

    Several classes have one classifier for each class against the rest, all with the same λ; the support is the union,
    and the bound holds for the sum over all classifiers.

    Use it as a convex, reproducible first choice when the loss should be that of a probability model. It shrinks the
    weights, and selects one or a few of a group of correlated features.

    Parameters
    ----------
    n_features_to_select
        None: the features with a weight at ``norm_bound``, or at the end of the path.
    norm_bound
        In the formula σ₀. A bound above the norm of the solution without penalty has no effect.
    tol
        Largest violation of the optimality conditions, relative to the largest slope without features.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardised features at the end of the path, one row per classifier.
    intercept_ : float or ndarray
        Bias at the end of the path, one number per classifier.
    penalty_ : float
        λ at the end of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import LogisticLasso
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = LogisticLasso(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "logistic"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        norm_bound: float | None = None,
        n_alphas: int = 100,
        tol: float = 1e-7,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.norm_bound = norm_bound
        self.n_alphas = n_alphas
        self.tol = tol
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        merged, distinct = without_copies(problem)  # copies could share a weight in any way
        models = CoupledLogistic(merged, float(self.tol))
        walk = follow_penalties(models, distinct, problem, int(self.n_alphas), self.norm_bound)
        self.coef_ = scatter_columns(distinct, problem.n_features, walk.models.weights())
        self.intercept_ = walk.models.bias()
        self.penalty_ = walk.penalties[-1]
        return walk.path()
