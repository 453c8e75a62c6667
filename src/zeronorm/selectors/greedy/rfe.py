"""Recursive feature elimination with a support vector machine."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from zeronorm.criteria.kernels import make_kernel
from zeronorm.engines.elimination.estimator import EstimatorMachines
from zeronorm.engines.elimination.gram import GramMachines
from zeronorm.engines.elimination.kernel import KernelMachines
from zeronorm.engines.elimination.linear import LogisticMachines, TallMachines
from zeronorm.engines.elimination.loop import Elimination, Machines, eliminate
from zeronorm.engines.elimination.sources import CallableSource, KernelSource, PiecesSource, make_source
from zeronorm.engines.price import price_of, target_spread
from zeronorm.registry import register
from zeronorm.selection.kinds import parameter_error
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import WeightedSelector
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.linear import prefers_gram

FEW_SAMPLES = 500
HARDEST = 1e100  # the square of a larger cost is no number: from here on the margin is hard


@register(
    "rfe",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Guyon et al. 2002; Lal et al. 2006, algorithms 1 and 2",
    test_params=(
        {},
        {"task": "regression", "step": 0.5},
        {"loss": "squared", "step": 2},
        {"kernel": "rbf", "step": 3},
        {"learner": "logistic", "step": 3},
    ),
)
class RFE(WeightedSelector):
    r"""Recursive feature elimination with a support vector machine, linear or with any kernel.

    Train, remove the feature with the smallest value, and repeat. For the linear kernel the value is

    .. math:: c_k = \sum_c w_{ck}^2, \qquad w_c = X^\top (\alpha_c^* \circ y_c),

    for any other kernel the change of the squared norm of the weight vector with the dual held fixed,

    .. math:: c_k = \sum_c \bigl| W_c^2 - W_{c,(-k)}^2 \bigr|, \qquad
        W_{c,(-k)}^2 = \sum_{ij} \alpha_i \alpha_j y_i y_j\, k(x_i^{-k}, x_j^{-k}).

    The sum is over the machines of one class against the rest (one machine for two classes or for regression).
    With feature groups, whole groups leave: the linear value of a group is :math:`\sum_{k \in g} |w_k|`.

    Linear elimination one feature at a time is exact and fast: the Gram matrix is down-dated, each training starts
    from the last solution, and only features whose weight can be the smallest by a proven bound are looked at.
    RBF and polynomial kernels without one feature come from the kernel at hand. The default tolerance is tight because
    the order depends on it.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    kernel
        A function ``k(A, B)`` of two arrays of samples, or "precomputed" with ``kernel_pieces``, is possible too. A
        kernel that is not positive semi-definite is shifted until it is, with a warning.
    gamma
        It stays fixed as features leave; "remaining" is 1 / the number of features that are left.
    kernel_pieces
        An array of shape (n_features, n_samples, n_samples), for ``kernel="precomputed"``.
    learner
        "svm", "logistic" (linear, with a ridge penalty), or a scikit-learn estimator with ``coef_`` or
        ``feature_importances_``, which is trained again in every round.
    C
        ``numpy.inf`` is the hard margin, which needs classes that can be separated. When the features that are left
        no longer separate the classes, the rest is ordered by the last values. "auto" chooses it from the data by
        generalised cross-validation on the kernel matrix of all features; ``C_`` reports it.
    loss
        "squared" is (C/2) Σ ξ². "hinge" is linear; for regression it is ε-insensitive.
    standardize
        Constant columns rank last.
    tol
        Largest violation of the optimality conditions.
    max_iter
        Iterations of the solver per training.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        step: int | float = 1,
        kernel: Literal["linear", "poly", "rbf", "precomputed"] | Callable[..., Any] = "linear",
        gamma: float | Literal["auto", "scale", "remaining"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        kernel_pieces: Any = None,
        combine: Literal["sum", "product"] = "sum",
        learner: Literal["svm", "logistic"] | Any = "svm",
        C: float | Literal["auto"] = 1.0,
        loss: Literal["hinge", "squared"] = "hinge",
        epsilon: float = 0.1,
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_pieces = kernel_pieces
        self.combine = combine
        self.learner = learner
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.task = task
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self.C_ = self._price(problem)
        record = Elimination(problem)
        if self.learner == "svm" and self.kernel == "linear":
            self._eliminate_linear(record)
        else:
            machines = self._machines(problem)
            eliminate(machines, record, self.step)
            if isinstance(machines, KernelMachines) and not machines.is_psd:
                warnings.warn(
                    "The kernel of RFE is not positive semi-definite; its diagonal was shifted to train the machine. "
                    "Check the kernel, or use 'rbf' or 'poly'.",
                    UserWarning,
                    stacklevel=5,
                )
        return record.path()

    def _price(self, problem: Problem) -> float:
        """The cost in use; an estimator as the learner has its own."""
        if not isinstance(self.C, str):
            return float(self.C)
        if self.learner not in ("svm", "logistic"):
            return math.nan
        K = None
        if self.learner == "svm" and self.kernel != "linear":
            K = self._kernel_source(problem).matrix(np.arange(problem.n_features))
        distance = problem.task == "regression" and self.loss == "hinge"
        return price_of(self, problem, K=K) * (target_spread(problem) if distance else 1.0)

    def _svm_settings(self) -> dict[str, Any]:
        return {
            "C": self.C_ if self.C_ < HARDEST else math.inf,
            "loss": self.loss,
            "epsilon": self.epsilon,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _eliminate_linear(self, record: Elimination) -> None:
        problem = record.problem
        stop_at = smallest_gram_size(*problem.design.shape)
        if problem.n_features >= stop_at:
            machines = GramMachines(problem, **self._svm_settings())
            one_by_one = isinstance(self.step, numbers.Integral) and self.step == 1
            if one_by_one and problem.feature_groups is None:
                machines.eliminate_one_by_one(record, stop_at)
            else:
                eliminate(machines, record, self.step, stop_at)
        if stop_at > 1 and record.status is not Status.UNBOUNDED:
            eliminate(TallMachines(problem, record.alive, **self._svm_settings()), record, self.step)

    def _machines(self, problem: Problem) -> Machines:
        if self.learner == "svm":
            return KernelMachines(problem, self._kernel_source(problem), **self._svm_settings())
        if self.learner != "logistic":
            return EstimatorMachines(problem, self.learner)
        if problem.task == "regression":
            raise parameter_error(self, "learner", "'svm' or an estimator for task='regression'")
        return LogisticMachines(problem, C=min(self.C_, HARDEST), tol=self.tol, max_iter=self.max_iter)

    def _kernel_source(self, problem: Problem) -> KernelSource:
        n, p = problem.design.shape
        if callable(self.kernel):
            return CallableSource(problem.design, self.kernel)
        if self.kernel == "precomputed":
            return PiecesSource(self.kernel_pieces, self.combine, n, p)
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, design=problem.design
        )
        return make_source(problem.design, kernel, rescale=self.gamma == "remaining")


def smallest_gram_size(n_samples: int, n_features: int) -> int:
    """The number of features down to which machines are trained on the n×n Gram matrix.

    Below, the p×p way is cheaper; for few samples the Gram matrix costs nothing and is kept to the end.
    """
    if n_samples < FEW_SAMPLES:
        return 1
    if not prefers_gram((n_samples, n_features)):
        return n_features + 1
    low, high = 1, n_features
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if prefers_gram((n_samples, middle)) else (middle + 1, high)
    return low
