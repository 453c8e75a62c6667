"""The LASSO for times to an event: Cox's partial likelihood under a bound on the sum of absolute weights."""

from __future__ import annotations

from typing import Any, Literal

from zeronorm.engines._penalty_walk import follow_penalties
from zeronorm.engines._sparse_paths import scatter_columns, without_copies
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers.l1_smooth._cox import CoupledCox


@register(
    "cox-lasso",
    family="sparsity",
    tasks=("survival",),
    reference="Tibshirani 1997; Simon, Friedman, Hastie & Tibshirani 2011",
    papers={
        "Tibshirani 1997": (
            "R. Tibshirani. The lasso method for variable selection in the Cox model. Statistics in Medicine 16, "
            "385–395, 1997.",
            "10.1002/(SICI)1097-0258(19970228)16:4<385::AID-SIM380>3.0.CO;2-3",
        ),
        "Simon, Friedman, Hastie & Tibshirani 2011": (
            "N. Simon, J. Friedman, T. Hastie and R. Tibshirani. Regularization paths for Cox's proportional hazards "
            "model via coordinate descent. Journal of Statistical Software 39(5), 1–13, 2011.",
            "10.18637/jss.v039.i05",
        ),
    },
    cost="n p for each of 5 to 10 passes over the data, and 100 small problems",
    oracle="the optimality conditions with all risk sets, scikit-survival's path, and a convex solver",
    avoid="keeping all of several correlated features; interpreting weights as effects: they are shrunk",
    test_params=({"n_alphas": 5}, {"norm_bound": 0.5, "n_alphas": 3, "ties": "breslow"}),
)
class CoxLasso(WeightedSelector):
    r"""Select with the LASSO for times to an event: Cox's partial likelihood under a bound on the absolute weights.

    .. math:: \max_w\ \ell(w) \quad \text{subject to} \quad \sum_k |w_k| \le \sigma_0, \qquad
              \ell(w) = \sum_{i: \text{event}} \Bigl[x_i \cdot w - \log \sum_{t_j \ge t_i} e^{x_j \cdot w}\Bigr]

    The problem with a penalty :math:`\lambda \sum_k |w_k|` on :math:`-\ell / n` has the same solutions. It is solved
    on a grid of descending λ, each from the last solution, by Newton's method with coordinate descent, to the
    optimality conditions of all features. Only columns that can get a weight are used, so that the data may be wide,
    sparse or on disk. With a ``norm_bound`` the λ that meets the bound is found between the steps and the path ends
    there. Features are ordered by the λ at which they enter; those that never do, by the slope of the likelihood
    without features. Where a number of features is asked for, the path ends at 500 features, or at twice that number.

    Use it as a convex, reproducible first choice for times to an event. It shrinks the weights, and selects one or a
    few of a group of correlated features.

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
    coef_ : ndarray of shape (n_features_in_,)
        Log hazard ratios of the standardised features at the end of the path.
    penalty_ : float
        λ at the end of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import CoxLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 8))
    >>> time = rng.exponential(np.exp(-X[:, 0] - X[:, 1]))  # the first two features shorten it
    >>> y = {"event": time < 2.0, "time": np.minimum(time, 2.0)}
    >>> selector = CoxLasso(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        norm_bound: float | None = None,
        ties: Literal["efron", "breslow"] = "efron",
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
        self.ties = ties
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
        models = CoupledCox(merged, self.ties, float(self.tol))
        walk = follow_penalties(models, distinct, problem, int(self.n_alphas), self.norm_bound)
        self.coef_ = scatter_columns(distinct, problem.n_features, models.weights()[0])
        self.penalty_ = walk.penalties[-1]
        return walk.path()
