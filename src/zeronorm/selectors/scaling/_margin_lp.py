"""The best scaling factors of a linear SVM with a hard margin, by one linear program."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from zeronorm.engines._cost import automatic_l1_C, known_cost
from zeronorm.engines._sparse_paths import distinct_columns, first_copies
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSplittingSelector
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._dual import L1SvmHardProgram, l1_svm_program

MANY_FEATURES = 20_000  # of tall sparse data; 10,000 take two minutes, and the time grows with the square


@register(
    "margin-lp",
    family="scaling",
    tasks=("binary",),
    reference="Lal et al. 2006, eq. 19",
    cost="n p for each computation of the reduced costs, and small linear programs",
    oracle="the printed linear program, solved by scipy",
    avoid="classes that overlap, with a hard margin; far more features than samples, where it overfits",
    misprints="The constraint that the squared factors sum to one asks for a division by the ℓ1 norm of w.",
    test_params=({}, {"C": 10.0}),
)
class MarginLP(WeightedSplittingSelector):
    r"""Select by the scaling factors that give a linear SVM the largest margin at a fixed radius.

    For standardised features and a linear kernel the variance of the scaled data is :math:`\sum_k \sigma_k^2`.
    Minimising the radius/margin bound is then

    .. math:: \min_\sigma\ \max_\alpha\ \sum_i \alpha_i
        - \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j \sum_k \sigma_k^2 x_{ik} x_{jk},
        \qquad \alpha_i \ge 0, \quad \sum_i \alpha_i y_i = 0, \quad \sum_k \sigma_k^2 = 1,

    a convex problem in :math:`\sigma^2`, whose dual is the linear program

    .. math:: \max_\alpha\ \sum_i \alpha_i, \qquad \alpha_i \ge 0, \quad \sum_i \alpha_i y_i = 0, \quad
        -1 \le \sum_i \alpha_i y_i x_{ik} \le 1 .

    With the multipliers :math:`\mu^\pm` of its last constraints, :math:`\sigma_k^2 = \mu_k^+ + \mu_k^-`. Now
    :math:`w = \mu^+ - \mu^-` is the weight vector of smallest ℓ1 norm that separates the classes, so this is the
    ℓ1-norm SVM with a hard margin and :math:`\sigma_k^2 = |w_k|`; the printed constraint
    :math:`\sum_k \sigma_k^2 = 1` asks for the division by :math:`\|w\|_1`, which is done here.

    At most as many features as samples have a factor above zero; the others follow by how close they are to their
    constraint. Use it on wide, separable data where few features should suffice. The chapter warns that it overfits
    when there are many more features than samples, and classes that overlap have no such margin: the default is
    therefore a finite C.

    Parameters
    ----------
    n_features_to_select
        None: the features with a scaling factor above zero.
    C
        ``numpy.inf`` is the hard margin of the chapter, which needs classes that can be separated. A finite C
        limits α; the result is the ℓ1-norm SVM with this C. "auto" chooses a finite C from the data, by three folds.
    standardize
        The derivation assumes standardised features.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features_in_,)
        The factors σ.
    coef_ : ndarray
        Weights of the standardised features.
    intercept_ : float or ndarray
        Bias.
    C_ : float
        The ``C`` that was used.
    dual_coef_ : ndarray
        :math:`\alpha_i y_i` of the linear program.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import MarginLP
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = MarginLP(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        C: float | Literal["auto"] = "auto",
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.C = C
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        # The program could use any of several identical columns: only the first is given to it.
        distinct = distinct_columns(first_copies(problem.design))
        design = problem.design.take(distinct)
        known = known_cost(self, problem)
        self.C_ = automatic_l1_C(problem, None) if known is None else known
        program = l1_svm_program(design, problem.target.columns()[:, 0], C=problem.sample_costs(self.C_))
        if isinstance(program, L1SvmHardProgram) and not program.overlap_is_proved:
            _warn_of_many_features(design.n_features)
        model = program.solve()
        if model.status.is_unsolvable:
            Status.UNBOUNDED.check("MarginLP with a hard margin (C=inf)")
        weights = np.zeros(problem.n_features)
        weights[distinct] = model.weights
        share = np.abs(weights) / max(float(np.abs(weights).sum()), np.finfo(float).tiny)
        self.scale_ = np.sqrt(share)
        self.coef_, self.intercept_ = weights[None, :], np.array([model.bias])
        self.dual_coef_ = model.dual_coef
        # A feature without a factor has |x'v| below one: the closer, the better.
        closeness = np.minimum(np.abs(problem.design.transpose_dot(model.dual_coef)), 1.0)
        return SelectionPath.from_scores(
            np.where(share > 0.0, 1.0 + share, closeness),
            last=problem.design.column_stats().is_constant(problem.design.dtype),
            scale=self.scale_,
            selected_size=max(1, int(np.count_nonzero(weights))),
            n_iter=model.n_iter,
            converged=model.converged,
            remedy=model.status.remedy,
        )


def _warn_of_many_features(n_features: int) -> None:
    if n_features >= MANY_FEATURES:
        warnings.warn(
            f"MarginLP with a hard margin (C=inf): where thousands of the {n_features} features are needed to separate "
            "the samples, the linear program may take many minutes. A finite C is quick, C=0.001 for instance.",
            UserWarning,
            stacklevel=5,
        )
