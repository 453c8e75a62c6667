"""Recursive feature elimination with a support vector machine."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone, is_regressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria._kernels import make_kernel
from zeronorm.design import Design, check_container
from zeronorm.engines._cost import C_of, epsilon_of, known_cost
from zeronorm.engines.elimination._estimator import (
    Refits,
    Rounds,
    eliminate_with_estimator,
    feature_importances,
)
from zeronorm.engines.elimination._kernel import (
    CallableSource,
    KernelModels,
    KernelSource,
    PiecesSource,
    make_source,
)
from zeronorm.engines.elimination._known_models import KnownRanker, known_model
from zeronorm.engines.elimination._linear import LinearModels
from zeronorm.engines.elimination._loop import Elimination, FollowingCost, eliminate
from zeronorm.engines.elimination._one_by_one import OneByOne
from zeronorm.execution import one_thread_for_little_work
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, parse_always_keep, parse_feature_groups
from zeronorm.selection.target import Labels, Real
from zeronorm.selectors._base import BaseSelector, WeightedSplittingSelector
from zeronorm.selectors._requirements import require_for_survival, require_labels, require_real_target
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import (
    LOGISTIC,
    ROBUST_LOSSES,
    LinearProblem,
    Reuse,
    loss_for,
    smallest_gram_size,
)

HARDEST = 1e100  # the square of a larger C overflows: from here on the margin is hard


def estimator_has(name: str) -> Callable[[Any], bool]:
    """Condition for ``available_if``: whether ``estimator`` has a method; otherwise its own error is raised."""

    def check(selector: Any) -> bool:
        if selector.estimator is None:
            return False
        getattr(getattr(selector, "estimator_", selector.estimator), name)
        return True

    return check


class EstimatorElimination(BaseSelector):
    """Base class of RFE and RFECV: with an estimator they behave like scikit-learn's classes of the same name."""

    estimator: Any
    step: Any
    verbose: Any
    importance_getter: Any

    def _task_name(self) -> str:
        if self.estimator is None:
            return super()._task_name()
        return (Real if is_regressor(self.estimator) else Labels).task

    def _read(self, X: Any, y: Any) -> tuple[Any, Any]:
        if isinstance(X, Design):
            self._check_names_of(X)
            return X.block(slice(None)), self._check_target_alone(y, X)
        check_container(X)
        require_labels(y)
        checked = validate_data(
            self, X, y, accept_sparse="csc", ensure_all_finite=False, multi_output=True, ensure_min_samples=2
        )
        return cast("tuple[Any, Any]", checked)

    def _ranker(self, X: Any, y: Any, fit_params: dict[str, Any]) -> Refits | KnownRanker:
        estimator = self._working_estimator()
        refits = Refits(estimator, X, y, fit_params, self.importance_getter, int(self.verbose))
        model = known_model(estimator, X, y, fit_params) if self.importance_getter == "auto" else None
        return refits if model is None else KnownRanker(model, refits)

    def _working_estimator(self) -> Any:
        return self.estimator

    def _eliminate(self, X: Any, y: Any, fit_params: dict[str, Any], n_stop: int) -> None:
        """Eliminate down to ``n_stop`` features, and fit the estimator on those."""
        p = X.shape[1]
        names = getattr(self, "feature_names_in_", None)
        groups = parse_feature_groups(getattr(self, "feature_groups", None), p, names)
        forced = parse_always_keep(getattr(self, "always_keep", None), p, names)
        plain = groups is None and forced.size == 0 and not self.verbose
        rounds = None
        with one_thread_for_little_work(*X.shape):
            ranker = self._ranker(X, y, fit_params)
            if plain and self.step == 1 and isinstance(ranker, KnownRanker):
                rounds = ranker.one_by_one(n_stop)
            if rounds is None:
                rounds = eliminate_with_estimator(
                    ranker, p, n_stop=n_stop, step=self.step, groups=groups, forced=forced
                )
        left = np.flatnonzero(rounds.support)
        # Known models have checked the settings of the estimator.
        unchecked = isinstance(ranker, KnownRanker) or get_config()["skip_parameter_validation"]
        with config_context(skip_parameter_validation=unchecked):
            self.estimator_ = clone(self.estimator).fit(X[:, left], y, **fit_params)
        values = feature_importances(self.estimator_, self.importance_getter)
        self._store_rounds(rounds, values, forced, groups)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_

    def _store_rounds(
        self, rounds: Rounds, last_values: FloatArray, forced: IntArray, groups: IntArray | None
    ) -> None:
        self.path_ = rounds.path(last_values, forced).constrained(groups, forced)
        self.support_, self.ranking_ = rounds.support, rounds.ranking
        self.n_features_ = int(rounds.support.sum())
        if self.estimator is None:
            self.ranking_ = self.path_.ranking(self.n_features_)
        self.scores_ = self.path_.feature_scores(self.n_features_)
        self.n_iter_, self.converged_ = len(rounds.sizes) + 1, True

    # -- the protocol of scikit-learn's RFE -----------------------------------------------------

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, method, **params).estimator[method])
        return params

    def _selected_columns(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.transform(X)

    @available_if(estimator_has("predict"))
    def predict(self, X: Any, **predict_params: Any) -> NDArray[Any]:
        """Predictions of ``estimator_`` from the selected features; parameters need metadata routing."""
        _raise_for_params(predict_params, self, "predict")
        params = self._routed("predict", predict_params)
        return cast("NDArray[Any]", self._trained().predict(self._selected_columns(X), **params))

    @available_if(estimator_has("score"))
    def score(self, X: Any, y: Any, **score_params: Any) -> float:
        """Score of ``estimator_`` on the selected features."""
        params = self._routed("score", score_params)
        return cast("float", self._trained().score(self._selected_columns(X), y, **params))

    @available_if(estimator_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Decision values of ``estimator_`` from the selected features."""
        return cast("NDArray[Any]", self._trained().decision_function(self._selected_columns(X)))

    @available_if(estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities of ``estimator_`` from the selected features."""
        return cast("NDArray[Any]", self._trained().predict_proba(self._selected_columns(X)))

    @available_if(estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of the class probabilities of ``estimator_``."""
        return cast("NDArray[Any]", self._trained().predict_log_proba(self._selected_columns(X)))

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata to ``fit``, ``predict`` and ``score`` of ``estimator``."""
        if self.estimator is None:
            return super().get_metadata_routing()
        mapping = MethodMapping()
        for method in ("fit", "predict", "score"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags = deepcopy(inner.classifier_tags)
            tags.regressor_tags = deepcopy(inner.regressor_tags)
            for kind in (tags.classifier_tags, tags.regressor_tags):
                if kind is not None:
                    kind.poor_score = True
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


@register(
    "rfe",
    family="greedy",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Guyon et al. 2002; Lal et al. 2006, algorithms 1 and 2",
    cost="n² p at the start, then little for each feature; n² p for each round with other kernels",
    oracle="scikit-learn's RFE(SVC(kernel='linear')): the same order of elimination",
    avoid="many copies of one feature, which share its weight and are removed early",
    test_params=(
        {},
        {"task": "regression", "step": 0.5},
        {"loss": "squared", "step": 2},
        {"kernel": "rbf", "step": 3},
        {"learner": "logistic", "step": 3},
        {"multi_class": "one_vs_one"},
        {"task": "survival", "step": 0.5},
    ),
)
class RFE(EstimatorElimination, WeightedSplittingSelector):
    r"""Recursive feature elimination with a support vector machine, linear or with any kernel.

    Train, remove the feature with the smallest criterion, and repeat. For the linear kernel the criterion is

    .. math:: c_k = \sum_c w_{ck}^2, \qquad w_c = X^\top (\alpha_c^* \circ y_c),

    for any other kernel the change of the squared norm of the weight vector with the dual held fixed,

    .. math:: c_k = \sum_c \bigl| W_c^2 - W_{c,(-k)}^2 \bigr|, \qquad
        W_{c,(-k)}^2 = \sum_{ij} \alpha_i \alpha_j y_i y_j\, k(x_i^{-k}, x_j^{-k}).

    The sum is over the models of one class against the rest, or of all pairs of classes (``multi_class``); two classes
    and regression have a single model. With feature groups, whole groups are removed: the linear criterion of a group
    is :math:`\sum_{k \in g} |w_k|`.

    Linear elimination one feature at a time is exact and fast: the Gram matrix is down-dated, each training starts from
    the last solution, and only features whose weight can be the smallest by a proven bound are examined. For RBF and
    polynomial kernels, the kernel without one feature is computed from the current kernel. The default tolerance is
    tight because the order depends on it.

    **As a replacement for scikit-learn's RFE.** With an ``estimator`` this class does what the class of that name in
    scikit-learn does: the estimator ranks the features by ``importance_getter``, is refitted in every round, and
    predicts. A fractional ``step`` then refers to the number of all features, features that are removed together share
    a rank, the lower index is removed first among equal values, and the columns are not standardised. The settings of
    the support vector machine below (``kernel`` to ``max_iter``) do not apply. Ridge, LinearRegression,
    RidgeClassifier, LinearSVC, LogisticRegression, and SVC and SVR with a linear kernel are not refitted: their exact
    solution is followed as features leave, which gives the ranking scikit-learn finds when ``tol`` is tight. (LinearSVC
    with the hinge loss is refitted when there are more than 200 samples and more than 200 features.)

    Parameters
    ----------
    estimator
        Here it also ranks the features, by its weights. None: the support vector machine described above ranks,
        and there is no ``predict``.
    n_features_to_select
        None: half of the features.
    kernel
        A function ``k(A, B)`` of two arrays of samples, or "precomputed" with ``kernel_pieces``, is possible too. A
        kernel that is not positive semi-definite is shifted until it is, with a warning.
    gamma
        It stays fixed as features are removed; "remaining" is 1 / the number of remaining features.
    kernel_pieces
        An array of shape (n_features, n_samples, n_samples), for ``kernel="precomputed"``.
    learner
        "svm" or "logistic" (linear, with a ridge penalty); other models are given as ``estimator``.
    C
        ``numpy.inf`` is the hard margin, which needs classes that can be separated. When the remaining features
        no longer separate the classes, they are ordered by their last criterion. "auto" chooses it from the data by
        leave-one-out errors on the kernel matrix of all features; ``C_`` reports it. For linear models it then
        grows as features are removed, in inverse proportion to the diagonal of the kernel.
    loss
        "squared" is (C/2) Σ ξ². "hinge" is linear; for regression it is ε-insensitive. For regression with a linear
        kernel also "huber", which counts errors beyond ε linearly, and "quantile". For times to an event "ranking"
        is the squared hinge of pairs of samples in the wrong order.
    epsilon
        "auto" is a tenth of the scale of the target; 1.345 times that scale for ``loss="huber"``.
    task
        "survival" trains Cox models by the partial likelihood, with Efron's ties and C as its cost, unless ``loss`` is
        "ranking"; it needs the linear kernel.
    multi_class
        For more than two classes: one model for each class against the rest, or one for each pair of classes, trained
        on the samples of the two. A feature is removed from all models at once.
    standardize
        Constant columns rank last.
    tol
        Largest violation of the optimality conditions.
    max_iter
        Iterations of the solver per training.

    Attributes
    ----------
    C_ : float
        The ``C`` that was used. Not set with an ``estimator``.
    epsilon_ : float or None
        The ``epsilon`` that was used. None in classification; not set with an ``estimator``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from zeronorm import RFE
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = RFE(n_features_to_select=2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]

    As a replacement for scikit-learn's class, with an estimator that ranks and predicts:

    >>> selector = RFE(Ridge(), n_features_to_select=2).fit(X, y)
    >>> selector.predict(X[:3]).shape
    (3,)
    """

    _linear_loss = "hinge"

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_features_to_select: int | float | None = None,
        step: int | float = 1,
        verbose: int | bool = 0,
        importance_getter: str | Callable[..., Any] = "auto",
        kernel: Literal["linear", "poly", "rbf", "precomputed"] | Callable[..., Any] = "linear",
        gamma: float | Literal["auto", "scale", "remaining"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        kernel_pieces: Any = None,
        combine: Literal["sum", "product"] = "sum",
        learner: Literal["svm", "logistic"] = "svm",
        C: float | Literal["auto"] = "auto",
        loss: Literal["hinge", "squared", "huber", "quantile", "ranking"] = "hinge",
        epsilon: float | Literal["auto"] = "auto",
        quantile: float = 0.5,
        task: Literal["classification", "regression", "survival"] = "classification",
        multi_class: Literal["one_vs_rest", "one_vs_one"] = "one_vs_rest",
        standardize: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.verbose = verbose
        self.importance_getter = importance_getter
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
        self.quantile = quantile
        self.task = task
        self.multi_class = multi_class
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Rank the features and select the best.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, or real targets for regression.
        sample_weight : one non-negative weight per sample; a weight of two equals a duplicated sample.
        groups : one label per sample; with ``C="auto"`` samples of one group are left out together. An ``estimator``
            gets them if its ``fit`` takes them.
        **fit_params : passed to ``fit`` of ``estimator``.
        """
        if self.estimator is None:
            return super().fit(X, y, sample_weight, groups, **fit_params)
        if sample_weight is not None:
            fit_params["sample_weight"] = sample_weight
        if groups is not None and has_fit_parameter(self.estimator, "groups"):
            fit_params["groups"] = groups
        self._validate_params()
        params = self._routed("fit", fit_params)
        X, y = self._read(X, y)
        self._eliminate(X, y, params, self._size_as_scikit_learn(X.shape[1]))
        return self

    def _fit(self, X: Any, y: Any, fit_params: dict[str, Any], **given: Any) -> Self:
        if self.estimator is None:
            return super()._fit(X, y, fit_params, **given)
        given.pop("shared", None)  # the estimator of the user cannot use it
        return self.fit(X, y, **given, **fit_params)

    def _size_as_scikit_learn(self, n_features: int) -> int:
        size = self.n_features_to_select
        if isinstance(size, numbers.Integral) and not isinstance(size, bool) and size > n_features:
            warnings.warn(
                f"Found n_features_to_select={size} > n_features={n_features}. No feature is removed.",
                UserWarning,
                stacklevel=3,
            )
            return n_features
        return self._requested_size(n_features) or max(1, n_features // 2)

    def _follows_target_outliers(self) -> bool:
        return self.loss == "squared"

    def _check_adjusted(self) -> None:
        if self.kernel != "linear":
            raise parameter_error(self, "kernel", "'linear' with 'adjust'")

    def _select(self, problem: Problem) -> SelectionPath:
        self.C_ = self._cost(problem)
        self.epsilon_ = epsilon_of(self, problem)
        record = Elimination(problem)
        if self.learner == "svm" and self.kernel != "linear":
            self._eliminate_with_kernel(record)
        else:
            self._eliminate_linear(record)
        return record.path()

    def _cost(self, problem: Problem) -> float:
        """The value of C that is used."""
        known = known_cost(self, problem)
        if known is not None:
            return known
        K = None
        if self.learner == "svm" and self.kernel != "linear":
            K = self._kernel_source(problem).matrix(np.arange(problem.n_features))
        is_linear = self.loss in ("hinge", "quantile")  # C then has the unit 1 / y
        unit = problem.target.unit(problem.sample_weight) if is_linear else 1.0
        return C_of(self, problem, K=K) * unit

    def _check_parameters(self) -> None:
        if self.estimator is None:
            require_for_survival(self, learner="svm", kernel="linear", loss="hinge")
        if self.estimator is not None and self.adjust is not None:
            raise parameter_error(self, "adjust", "None with an 'estimator', which ranks by its own weights")
        if self.estimator is None and self.loss in ROBUST_LOSSES:
            require_real_target(self)
            if self.learner != "svm" or self.kernel != "linear":
                raise parameter_error(self, "loss", "'hinge' or 'squared' with this learner or kernel")

    def _eliminate_with_kernel(self, record: Elimination) -> None:
        problem = record.problem
        models = KernelModels(
            problem,
            self._kernel_source(problem),
            C=self._finite_or_hard(),
            loss=self.loss,
            epsilon=self.epsilon_,
            tol=self.tol,
            max_iter=self.max_iter,
            multi_class=self.multi_class,
        )
        eliminate(models, record, self.step)
        if not models.is_psd:
            warnings.warn(
                "The kernel of RFE is not positive semi-definite; its diagonal was shifted to train the model. "
                "Check the kernel, or use 'rbf' or 'poly'.",
                UserWarning,
                stacklevel=5,
            )

    def _finite_or_hard(self) -> float:
        return self.C_ if self.C_ < HARDEST else math.inf

    def _eliminate_linear(self, record: Elimination) -> None:
        problem, linear = record.problem, self._linear_problem(record.problem)
        settings: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "cost_follows": isinstance(self.C, str),
        }
        active = None
        if self._is_one_by_one(problem, linear):
            stop_at = smallest_gram_size(problem.design.shape, linear.loss, Reuse.GRAM)
            if problem.n_features >= stop_at:
                OneByOne(problem, linear, **settings).eliminate(record, stop_at)
                if stop_at == 1 or record.status is Status.UNBOUNDED:
                    return
                active = record.active
                if settings["cost_follows"]:
                    linear = linear.costlier(FollowingCost.of(problem).growth(active))
        eliminate(LinearModels(problem, linear, active, **settings), record, self.step)

    def _is_one_by_one(self, problem: Problem, linear: LinearProblem) -> bool:
        one_by_one = isinstance(self.step, numbers.Integral) and self.step == 1
        return one_by_one and problem.feature_groups is None and linear.loss.has_dual

    def _linear_problem(self, problem: Problem) -> LinearProblem:
        problem = problem.around_zero()
        if self.learner == "svm":
            loss = loss_for(problem.target, self.loss, self.epsilon_, self.quantile)
            return LinearProblem.of(problem, loss, self._finite_or_hard(), pairing=self.multi_class)
        if not problem.target.has_classes:
            raise parameter_error(self, "learner", "'svm' for task='regression'")
        return LinearProblem.of(problem, LOGISTIC, min(self.C_, HARDEST), pairing=self.multi_class)

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
