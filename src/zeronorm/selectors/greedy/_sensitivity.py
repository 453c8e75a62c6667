"""Selection by the sensitivity of a trained function to its inputs."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from zeronorm.criteria._kernels import LinearKernel, PolynomialKernel, RBFKernel, make_kernel
from zeronorm.engines._cost import epsilon_of
from zeronorm.engines.sensitivity._models import KernelModel, LinearFunction, NetworkModel, SensitiveModel
from zeronorm.engines.sensitivity._search import SEARCHES, NumericalModel, Sensitivity
from zeronorm.registry import register
from zeronorm.selection._kinds import POSITIVE, exceptions
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector


@register(
    "sensitivity",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Leray & Gallinari 1999; Lal et al. 2006, section 2.1",
    cost="one training for each feature that leaves: n² p and n³ with kernels",
    oracle="differences of the function itself",
    avoid="functions with steps such as trees (unless order=0); thousands of features",
    test_params=(
        {"step": 2},
        {"kernel": "poly", "search": "nested", "order": 0, "step": 2, "task": "regression"},
        {"learner": "network", "n_hidden": 3, "sensitivity_of": "objective", "step": 3, "random_state": 0},
    ),
)
class SensitivityElimination(BaseSelector):
    r"""Keep the features to which a trained function is most sensitive.

    A learner is trained, its function f is evaluated at every training sample, and the value of a feature is the norm
    over samples k (and over classes, one against the rest) of

    .. math:: t_{i,k} = \left.\frac{\partial f}{\partial x^i}\right|_{x = x_k} \quad (\texttt{order=1}).

    ``order=0`` takes the change of f when the feature is replaced by its mean :math:`\bar x^i`, and ``order=2`` the
    second-order approximation of this change,
    :math:`\delta\, \partial_i f + \tfrac12 \delta^2\, \partial_i^2 f` with :math:`\delta = \bar x^i - x_k^i`.

    ``sensitivity_of="objective"`` measures the training objective instead: how it changes, to first order, when the
    feature is scaled down,

    .. math:: \Bigl| \sum_k L'(f(x_k), y_k)\, x_{k,i}\, \frac{\partial f}{\partial x^i}(x_k) \Bigr| .

    For a linear support vector machine the first is :math:`|w_i|` and the second :math:`w_i^2`: both rank as ``RFE``
    does. Derivatives are exact for the built-in learners and numerical for any other.

    ``search="backward"`` trains, removes the least sensitive feature, and repeats. ``"forward"`` trains once with
    each feature outside, and adds the one to which the function is most sensitive; ``"nested"`` adds twice and then
    removes the worst, so that early choices can be undone. Both need about as many trainings per step as there are
    features: for a few hundred features at most.

    Use it with a learner that fits well: "output" uses the target only through f. A kernel SVM with C and γ so small
    that most dual variables are at the bound is nearly linear and hides interactions; the default C is 10 for that
    reason. Of two redundant features each appears half as important; backward search corrects for that. Functions with
    steps, such as trees, have no derivatives: use ``order=0``.

    Kernels need a matrix of n_samples × n_samples.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    search
        "backward" removes, "forward" adds, "nested" adds two features and removes one.
    sensitivity_of
        "output" is the trained function, "objective" the training objective; ``order`` and ``norm`` are used only with
        "output".
    norm
        It is taken over samples and classes.
    learner
        "svm", "network" (one hidden layer, as in OptimalBrainDamage), or a scikit-learn estimator; the first of
        ``decision_function``, ``predict_proba`` and ``predict`` that it has is used.
    kernel
        Used with ``learner="svm"``.
    C
        Used with ``learner="svm"``.
    loss
        Used with ``learner="svm"``; "squared" is (C/2) Σ ξ².
    n_hidden
        Used with ``learner="network"``.
    weight_decay
        Used with ``learner="network"``.
    max_iter
        Iterations of L-BFGS in each training of the network.
    random_state
        It determines the initial weights of the network.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import SensitivityElimination
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 3.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = SensitivityElimination(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(C=(POSITIVE, "with infinite C the function may not exist"))

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        search: Literal["backward", "forward", "nested"] = "backward",
        sensitivity_of: Literal["output", "objective"] = "output",
        order: Literal[0, 1, 2] = 1,
        norm: Literal["l1", "l2"] = "l2",
        learner: Literal["svm", "network"] | Any = "svm",
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        gamma: float | Literal["auto", "scale"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        C: float = 10.0,
        loss: Literal["hinge", "squared"] = "hinge",
        epsilon: float = 0.1,
        n_hidden: int = 10,
        weight_decay: float = 0.03,
        max_iter: int = 1000,
        difference_step: float = 1e-3,
        step: int | float = 1,
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        tol: float = 1e-6,
        random_state: Any = None,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.search = search
        self.sensitivity_of = sensitivity_of
        self.order = order
        self.norm = norm
        self.learner = learner
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.n_hidden = n_hidden
        self.weight_decay = weight_decay
        self.max_iter = max_iter
        self.difference_step = difference_step
        self.step = step
        self.task = task
        self.standardize = standardize
        self.tol = tol
        self.random_state = random_state
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _follows_target_outliers(self) -> bool:
        return self.loss == "squared"

    def _select(self, problem: Problem) -> SelectionPath:
        model = self._model(problem)
        measure = Sensitivity(self.sensitivity_of, self.order, self.norm)
        path = SEARCHES[self.search](problem, model, measure, self.step)
        # A network that learns nothing has weights that are zero only up to the tolerance of the training.
        floor = self.tol if isinstance(model, NetworkModel) else 0.0
        if not np.any(path.feature_scores() > floor):
            warnings.warn(
                "No feature changes the output of the learner that SensitivityElimination trained, so the order of the "
                "features has no meaning. Use order=0 for learners with steps, such as trees, or another learner.",
                UserWarning,
                stacklevel=4,
            )
        return path

    def _model(self, problem: Problem) -> SensitiveModel:
        if isinstance(self.learner, str) and self.learner == "network":
            return NetworkModel(
                problem,
                n_hidden=self.n_hidden,
                penalty=self.weight_decay,
                tol=self.tol,
                max_iter=self.max_iter,
            )
        if not (isinstance(self.learner, str) and self.learner == "svm"):
            return NumericalModel(problem, self.learner, self.difference_step)
        kernel = make_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            design=problem.design,
        )
        settings: dict[str, Any] = {"C": self.C, "loss": self.loss, "tol": self.tol}
        settings["epsilon"] = epsilon_of(self, problem)
        if isinstance(kernel, LinearKernel):
            return LinearFunction(problem, **settings)
        assert isinstance(kernel, (PolynomialKernel, RBFKernel))
        return KernelModel(problem, kernel, **settings)
