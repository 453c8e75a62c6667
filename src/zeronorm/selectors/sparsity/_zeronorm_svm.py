"""The zero-norm support vector machine by iterated quadratic programs, and its family of q-norms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray
from zeronorm.design._base import Design
from zeronorm.engines._cost import C_of, automatic_C, known_cost
from zeronorm.engines._early_stopping import EarlyStopping, split_off
from zeronorm.engines._sparse_paths import distinct_columns, first_copies
from zeronorm.engines.rescaling._between import ProbitStep
from zeronorm.engines.rescaling._iteration import (
    SHRUNK,
    UnitFactors,
    correlated_start,
    power_rule,
    rescale_until_sparse,
)
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.registry import register
from zeronorm.selection._kinds import INFINITE, exceptions, number, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSplittingSelector
from zeronorm.selectors._requirements import require_for_survival
from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import SQUARED_ERROR, HingeLoss, LinearProblem, loss_for
from zeronorm.solvers.svm._dual import per_sample


@register(
    "zeronorm-svm",
    family="sparsity",
    tasks=("binary", "multiclass", "survival"),
    reference="Huang, King & Lyu 2008",
    cost="n² p for each of the first iterations, then little",
    oracle="SVC for q = 2, L1SVM for q = 1, the reweighted programs solved one by one",
    avoid="a list that must be stable: of interchangeable features one is kept, by a small margin",
    misprints="Eq. 9 prints the weights one step too late; the recipe for q = ∞ does not converge.",
    test_params=({}, {"q": 1.0}, {"loss": "probit"}, {"task": "survival"}),
)
class ZeroNormSVM(WeightedSplittingSelector):
    r"""Support vector machine with the zero-norm of its weights, by iterated reweighting.

    .. math:: w^{(t)}, b^{(t)} = \arg\min_{w, b}\ C \sum_i \xi_i + w^\top \Lambda^{(t-1)} w, \qquad
        y_i (w \cdot x_i + b) \ge 1 - \xi_i,\ \xi_i \ge 0, \qquad
        \Lambda^{(t)} = \mathrm{diag}\bigl(|w_k^{(t)}|^{-(2-q)}\bigr)

    with :math:`\Lambda^{(0)} = I`. At convergence the second term is :math:`\sum_k |w_k|^q`: for q = 0 the number of
    features, for q = 1 the ℓ1 norm, for q = 2 the plain SVM (one step). The paper's equation 9 prints the weights one
    step too late; they are those of the iterate just found.

    Substituting :math:`w = \Lambda^{-1/2} u` shows that q = 0 is the ℓ2-AROM iteration with the hinge loss:
    ``ZeroNormSVM(C)`` is AROM with hinge slacks at C/2 (the paper has no ½ before the norm), q = 2 is ``SVC(C=C/2)``,
    and q = 1 agrees with ``L1SVM(C=C/2)``, which is much faster: for q = 1 superfluous weights shrink only
    geometrically. The only difference from AROM is the loss.

    For q = ∞ the program :math:`\min\ t + C\sum\xi_i` with :math:`|w_k| \le t` is solved at once (the recipe printed in
    the paper does not converge). Its weights are not sparse: most are at the bound t, and those are ordered by their
    multipliers.

    The zero-norm has many local minima, and :math:`w = 0` is one of them: when C is too small for the number
    of features at the start, all weights shrink to zero. The features are then ordered by the last
    iterate in which their weights differ, and a warning asks for a larger C.

    With ``validation_fraction`` the iteration ends before the error on samples that are kept out of it rises (early
    stopping; Lal et al. 2006, section 4.3).

    Columns equal up to sign and shift (copies, mirror images, an indicator and its complement) are merged before the
    start, because the iteration would give them equal weights: the weight goes to the first, the others rank last (see
    ``representative_``).

    Parameters
    ----------
    n_features_to_select
        None: the features kept at the end of the iteration.
    q
        0 counts the features; ``numpy.inf`` is the largest weight.
    loss
        "probit": the model from which the paper derives the method, where labels are signs of scores with normal
        noise. "ranking": for times to an event the squared hinge of pairs of samples in the wrong order.
    C
        Factor of the hinge loss. "auto" chooses it from the data, by leave-one-out on the kernel matrix. The norm has
        no factor ½ here, so this C is twice that of scikit-learn's SVC, of RFE and of SVMWeights: C = 2 here is C = 1
        there. ``numpy.inf`` is the hard margin, which needs classes that can be separated. Not used with
        ``loss="probit"``.
    multi_class
        The classifiers share :math:`|w_k| = \sum_c |w_{ck}|`.
    task
        "survival" replaces the slacks by Cox's negative log partial likelihood, with Efron's ties, unless ``loss`` is
        "ranking"; q is then finite.
    standardize
        Weights are compared, so all columns should have the same unit.
    zero_tol
        Such features are removed for good. None: 1e-3; 1e-4 when q ≥ 1, where small weights may be
        correct; 0 when q = 2.
    tol
        The iteration ends when no scaling factor changes by more than this, relative to the largest.
    max_iter
        One iteration trains one model.
    scaling
        "unit" rescales :math:`\Lambda^{-1/2}` before each training, so that the mean diagonal of the kernel is one in
        standard deviations of the columns: C then means the same for any number of features. "paper" is the formula
        above as it stands.
    start
        The first factors :math:`\Lambda^{-1/2}`. "equal": ones, as in the paper. "correlation": :math:`\sqrt{r_k^2 +
        1/N}` with the correlation of feature and labels (its mean square over classifiers), so that a feature that is
        informative alone starts with a larger factor. "auto": "correlation" for the hinge loss with a finite C, q < 1
        and ``scaling="unit"``, else "equal". From q = 1 on the iteration has one solution, whatever the start.
    validation_fraction
        The iteration ends before an iterate whose error on these samples is above the lowest by more than one standard
        error of the difference. They are chosen by their values within each class, whole groups where ``fit`` gets
        ``groups``; C and ``coef_`` come from the other samples. None: no early stopping. Not with ``q=inf``.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardised features in the last iterate, one row per classifier.
    intercept_ : float or ndarray
        Bias in the last iterate, one number per classifier.
    C_ : float or None
        The ``C`` that was used. None for the probit model.
    validation_errors_ : ndarray or None
        With ``validation_fraction`` the mean error of each iterate on the validation samples, the last of which may be
        the one that ended the iteration.
    representative_ : ndarray of shape (n_features_in_,), dtype int
        For each feature the first one that it is a copy of, up to sign and shift.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import ZeroNormSVM
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = ZeroNormSVM(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "hinge"

    _parameter_exceptions = exceptions(
        q=(number(least=0, most=2) | INFINITE, "the largest weight is a norm as well")
    )

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        q: float = 0.0,
        loss: Literal["hinge", "probit", "ranking"] = "hinge",
        C: float | Literal["auto"] = "auto",
        multi_class: Literal["one_vs_rest", "one_vs_one"] = "one_vs_rest",
        task: Literal["classification", "survival"] = "classification",
        standardize: bool = True,
        zero_tol: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        scaling: Literal["unit", "paper"] = "unit",
        start: Literal["auto", "correlation", "equal"] = "auto",
        validation_fraction: float | None = None,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.q = q
        self.loss = loss
        self.C = C
        self.multi_class = multi_class
        self.task = task
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.scaling = scaling
        self.start = start
        self.validation_fraction = validation_fraction
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust

    def _check_adjusted(self) -> None:
        if np.isinf(self.q):
            raise parameter_error(self, "q", "finite with 'adjust'")
        if self.validation_fraction is not None:
            raise parameter_error(self, "validation_fraction", "None with 'adjust'")

    def _select(self, problem: Problem) -> SelectionPath:
        self.representative_ = first_copies(problem.design)
        problem, stopping = split_off(self, problem, HingeLoss(), self.multi_class)
        self.C_ = None if self.loss == "probit" else self._cost(problem)
        path = self._smallest_bound(problem) if np.isinf(self.q) else self._rescale(problem, stopping)
        self.validation_errors_ = None if stopping is None else np.array(stopping.errors)
        return path

    def _rescale(self, problem: Problem, stopping: EarlyStopping | None) -> SelectionPath:
        model = self._model(problem)
        units = UnitFactors.of(problem) if self.scaling == "unit" else None
        result = rescale_until_sparse(
            model,
            problem.design,
            distinct_columns(self.representative_),
            power_rule(self.q),
            zero_tol=self._zero_tol(),
            tol=self.tol,
            max_iter=self.max_iter,
            units=units,
            start=correlated_start(problem, units, self.multi_class) if self._starts_apart() else None,
            stops=None if stopping is None else partial(model.stops_early, stopping),
        )
        if not result.iterates:
            result.status.check("ZeroNormSVM with a hard margin (C=inf)")
        self.coef_ = np.zeros((model.bias.size, problem.n_features))
        if result.trained.size:
            self.coef_[:, result.trained] = model.weights.T
        self.intercept_ = model.bias
        if self.loss == "probit" and result.remedy == SHRUNK:
            result.remedy = "all weights shrank to zero; use loss='hinge' with a larger C."
        return result.path()

    def _starts_apart(self) -> bool:
        """Whether the first factors follow the correlations."""
        if self.start != "auto":
            return self.start == "correlation"
        return self.C_ is not None and np.isfinite(self.C_) and self.q < 1.0 and self.scaling == "unit"

    def _cost(self, problem: Problem) -> float:
        if not np.isinf(self.q):
            return C_of(self, problem, "diagonal" if self.scaling == "unit" else "raw")
        # p weights at the bound t have the Euclidean norm t √p.
        known = known_cost(self, problem)
        if known is not None:
            return known
        found = automatic_C(problem)
        return found.unit / float(np.sqrt(found.diagonal))

    def _model(self, problem: Problem) -> RescaledModels:
        if self.loss == "probit":
            ridge = LinearProblem.of(problem, SQUARED_ERROR, 1.0, pairing=self.multi_class)
            return RescaledModels(ridge, ProbitStep(ridge.targets, self.tol))
        assert self.C_ is not None
        loss = loss_for(problem.target, self.loss)
        return RescaledModels(LinearProblem.of(problem, loss, self.C_ / 2.0, pairing=self.multi_class))

    def _smallest_bound(self, problem: Problem) -> SelectionPath:
        """Solve one linear program per classifier; weights at the bound are ordered by their multipliers."""
        scores = np.zeros(problem.n_features)
        models = []
        assert self.C_ is not None
        linear = LinearProblem.of(problem, HingeLoss(), self.C_, pairing=self.multi_class)
        for target, cost in zip(linear.targets.T, linear.costs.T, strict=True):
            model = solve_linf_svm(problem.design, target, C=cost)
            model.status.check("ZeroNormSVM with q=inf")
            models.append(model)
            pressure = np.abs(model.gradient)
            scores += np.abs(model.weights) / max(model.bound, 1e-300)
            scores += pressure / max(float(pressure.max()), 1e-300)
        scores[self.representative_ != np.arange(problem.n_features)] = 0.0
        self.coef_ = np.array([model.weights for model in models])
        self.intercept_ = np.array([model.bias for model in models])
        return SelectionPath.from_scores(scores)

    def _zero_tol(self) -> float:
        if self.zero_tol is not None:
            return self.zero_tol
        if self.q < 1.0:
            return 1e-3
        return 1e-4 if self.q < 2.0 else 0.0

    def _check_parameters(self) -> None:
        require_for_survival(self, loss="hinge", validation_fraction=None)
        if self.task == "survival" and np.isinf(self.q):
            raise parameter_error(self, "q", "finite with task='survival'")
        if self.loss == "probit" and np.isinf(self.q):
            raise parameter_error(self, "loss", "'hinge' with q=inf")
        if self.validation_fraction is not None and np.isinf(self.q):
            raise parameter_error(self, "validation_fraction", "None with q=inf, which has no iteration")


# -- The support vector machine whose largest weight is as small as possible, by a linear program --


@dataclass(frozen=True, eq=False)
class LinfSvm:
    """A linear SVM with bounded weights; ``gradient`` is x'v, nonzero only where the weight is at the bound."""

    weights: FloatArray
    bias: float
    bound: float
    gradient: FloatArray
    objective: float
    status: Status


def solve_linf_svm(design: Design, y: ArrayLike, *, C: float | ArrayLike) -> LinfSvm:
    r"""Minimise :math:`t + \sum_i C_i \xi_i` with :math:`|w_k| \le t` and hinge slacks; C may be infinite.

    The program has two rows for each feature and a dense copy of the data.
    """
    labels = np.asarray(y, dtype=np.float64)
    n, p = design.shape
    cost = per_sample(C, n)
    hard = np.isinf(cost)
    margins = sp.csc_array(labels[:, None] * design.block(np.arange(p)))
    identity, ones = sp.eye_array(p), sp.csc_array(np.ones((p, 1)))
    matrix = sp.block_array(
        [
            [None, margins, sp.csc_array(labels[:, None]), sp.eye_array(n)],
            [ones, -identity, None, None],
            [ones, identity, None, None],
        ]
    )
    program = LinearProgram(
        cost=np.concatenate([[1.0], np.zeros(p + 1), np.where(hard, 0.0, cost)]),
        matrix=matrix,
        row_lower=np.concatenate([np.ones(n), np.zeros(2 * p)]),
        row_upper=np.inf,
        col_lower=np.concatenate([[0.0], np.full(p + 1, -np.inf), np.zeros(n)]),
        col_upper=np.concatenate([np.full(p + 2, np.inf), np.where(hard, 0.0, np.inf)]),
    )
    found = program.solve()
    return LinfSvm(
        weights=found.x[1 : p + 1],
        bias=float(found.x[p + 1]),
        bound=float(found.x[0]),
        gradient=design.transpose_dot(labels * found.row_duals[:n]),
        objective=found.objective,
        status=found.status,
    )
