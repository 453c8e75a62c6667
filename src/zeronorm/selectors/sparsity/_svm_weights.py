"""A baseline: features ranked by the weights of one support vector machine."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.engines._cost import C_of, automatic_l1_C, epsilon_of, known_cost
from zeronorm.engines.rescaling._between import Between, L1SlackRescaling, SlackRescaling
from zeronorm.engines.rescaling._iteration import UNFINISHED
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSplittingSelector
from zeronorm.selectors._requirements import require_for_survival, require_real_target
from zeronorm.solvers.linear import ROBUST_LOSSES, LinearProblem, loss_for


@register(
    "svm-weights",
    family="sparsity",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Weston et al. 2003, section 5; Huang et al. 2008",
    cost="n² p; one SVM",
    oracle="LIBSVM and liblinear through scikit-learn, linear programs, and all sets of errors one by one",
    avoid="redundant features, which share one weight: RFE and AROM repeat the step for that reason",
    test_params=(
        {},
        {"norm": "l1"},
        {"task": "regression"},
        {"slack_norm": 0, "C": 1.0},
        {"task": "survival"},
    ),
)
class SVMWeights(WeightedSplittingSelector):
    r"""Rank features by the weights of a single support vector machine trained on all of them.

    .. math:: s_k = \sum_c |w_{ck}|, \qquad \min_{w, b}\ \tfrac12\|w\|_2^2 + C\sum_i \xi_i
        \quad\text{or}\quad \|w\|_1 + C \sum_i \xi_i

    The sum is over the classifiers of one class against the rest, or of all pairs of classes. This is the first step of
    RFE and of AROM: a baseline that shows what their further steps add. Weston et al. and Huang et al.
    find it about as good as ranking by correlation. The ℓ1 SVM has at most as many weights as samples; features
    without one follow by how close they came to one (their reduced cost).

    With ``slack_norm=0`` the number of errors is counted instead (Weston et al., section 4.1 with p = 2 and q = 0):

    .. math:: \min_{w, b}\ \tfrac12\|w\|_2^2 + C\,\|\xi\|_0
        \quad\text{with}\quad \|\xi\|_0 \to \sum_i \ln(\epsilon + \xi_i),

    by the multiplicative rescaling of AROM, applied to the slacks and not to the features: the SVM is trained again
    with the costs :math:`C/\max(\xi_i, \epsilon)` until they no longer change. Samples far on the wrong side then have
    little influence. The minimum that is found may be a local one.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    C
        ``numpy.inf`` is the hard margin, for classes that can be separated. "auto" chooses it from the data: by
        leave-one-out on the kernel matrix, or by three folds for ``norm="l1"``.
    slack_norm
        1: the sum of the slacks. 0: their number, so that few samples are misclassified.
    multi_class
        The weights of the classifiers are summed.
    task
        "survival" trains Cox models by the partial likelihood, with Efron's ties and C as its cost, unless ``loss`` is
        "ranking".
    loss
        "hinge" is linear; for regression it is ε-insensitive. "squared" is (C/2) Σ ξ². For regression also "huber",
        which counts errors beyond ε linearly, and "quantile". ``norm="l1"`` needs "hinge". For times to an event
        "ranking" is the squared hinge of pairs of samples in the wrong order (survival SVM).
    epsilon
        "auto" is a tenth of the scale of the target; 1.345 times that scale for ``loss="huber"``.
    zero_tol
        Used with ``slack_norm=0``: slacks up to this fraction of the margin count as zero.
    tol
        Used with ``slack_norm=0``: largest relative change of a cost (``norm="l1"``: no slack changes by more than
        ``zero_tol``).
    max_iter
        Used with ``slack_norm=0``: one iteration trains one model.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardised features, one row per model.
    intercept_ : float or ndarray
        Bias, one number per model.
    C_ : float
        The ``C`` that was used.
    epsilon_ : float or None
        The ``epsilon`` that was used. None in classification.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import SVMWeights
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = SVMWeights(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "hinge"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        norm: Literal["l2", "l1"] = "l2",
        loss: Literal["hinge", "squared", "huber", "quantile", "ranking"] = "hinge",
        C: float | Literal["auto"] = "auto",
        slack_norm: Literal[0, 1] = 1,
        multi_class: Literal["one_vs_rest", "one_vs_one"] = "one_vs_rest",
        task: Literal["classification", "regression", "survival"] = "classification",
        epsilon: float | Literal["auto"] = "auto",
        quantile: float = 0.5,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 100,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.norm = norm
        self.loss = loss
        self.C = C
        self.slack_norm = slack_norm
        self.multi_class = multi_class
        self.task = task
        self.epsilon = epsilon
        self.quantile = quantile
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust

    def _follows_target_outliers(self) -> bool:
        return self.loss == "squared"

    def _check_adjusted(self) -> None:
        if self.norm != "l2":
            raise parameter_error(self, "norm", "'l2' with 'adjust'")

    def _select(self, problem: Problem) -> SelectionPath:
        epsilon = self.epsilon_ = epsilon_of(self, problem)
        self.C_ = self._cost(problem)
        loss = loss_for(problem.target, self.loss, epsilon, self.quantile)
        linear = LinearProblem.of(problem, loss, self.C_, pairing=self.multi_class, norm=self.norm)
        model = RescaledModels(linear, self._between(linear))
        scores, n_iter = self._train(model, problem)
        if model.status.is_unsolvable:
            model.status.check("SVMWeights with a hard margin (C=inf)")
        selected_size = None
        if self.norm == "l1":
            selected_size = int(np.count_nonzero(scores))
            if selected_size == 0:
                warn_of_empty_selection(self, problem, "raise C")
            # Features without a weight rank below all that have one.
            smallest = float(scores[scores > 0.0].min(initial=1.0))
            gradient = model.first_gradient
            closeness = gradient / max(float(gradient.max()), 1e-300)
            scores = np.where(scores > 0.0, scores, 0.5 * smallest * closeness)
        self.coef_, self.intercept_ = model.weights.T, model.bias
        return SelectionPath.from_scores(
            scores,
            selected_size=selected_size,
            n_iter=n_iter,
            converged=model.status.converged and model.settled,
            remedy=UNFINISHED if model.status.converged else model.status.remedy,
        )

    def _between(self, linear: LinearProblem) -> Between:
        if self.slack_norm != 0:
            return Between()
        if self.norm == "l1":
            return L1SlackRescaling(linear.costs, self.zero_tol)
        return SlackRescaling(linear.costs, self.zero_tol, self.tol)

    def _train(self, model: RescaledModels, problem: Problem) -> tuple[FloatArray, int]:
        """Train once, or until the rescaled slacks no longer change; returns the absolute weights, and how often."""
        scale = np.ones(problem.n_features)
        scores, n_iter = model.train(problem.design, scale), 1
        with problem.progress.task("Rescaling slacks", self.max_iter) as advance:
            while not (model.settled or model.status.is_unsolvable) and n_iter < self.max_iter:
                scores, n_iter = model.train(problem.design, scale), n_iter + 1
                advance(1)
        return scores, n_iter

    def _check_parameters(self) -> None:
        require_for_survival(self, norm="l2", loss="hinge", slack_norm=1)
        if self.loss in ROBUST_LOSSES:
            require_real_target(self)
            if self.slack_norm == 0:
                raise parameter_error(self, "loss", "'hinge' or 'squared' with slack_norm=0")
        if self.norm == "l1" and self.loss != "hinge":
            raise parameter_error(self, "loss", "'hinge' with norm='l1'")
        if self.slack_norm == 0 and not isinstance(self.C, str) and np.isinf(self.C):
            raise parameter_error(self, "C", "finite with slack_norm=0")

    def _cost(self, problem: Problem) -> float:
        known = known_cost(self, problem)
        if known is not None:
            return known
        if self.norm == "l1":
            return automatic_l1_C(problem, self.epsilon_)
        # The cost of an absolute error has the unit 1 / y, that of a squared error has no unit.
        is_linear = self.loss in ("hinge", "quantile")
        return C_of(self, problem) * (problem.target.unit(problem.sample_weight) if is_linear else 1.0)
