"""Scaling factors that minimise an estimate of the error of a support vector machine."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.model_selection import check_cv

from zeronorm.criteria import Criterion, CrossValidation, RadiusMargin, Span, Summed
from zeronorm.engines.factor_descent._criterion import ScaledCriterion, chosen_kernel, distinct_columns
from zeronorm.engines.factor_descent._discarding import Discarding
from zeronorm.registry import register
from zeronorm.resampling._splits import make_splits
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_long_fit
from zeronorm.selectors._base import SplittingSelector

# Measured with 500 (3.3 s) and 1000 samples (22 s) of two classes.
SECONDS_PER_CUBE = 2.2e-8

SOLVER_TOL = 1e-8


@register(
    "radius-margin-scaling",
    family="scaling",
    tasks=("binary", "multiclass"),
    reference="Weston et al. 2000; Chapelle et al. 2002; Lal et al. 2006, section 3.1",
    cost="n² p and n³ for each step of the descent",
    oracle="finite differences of the true bound",
    avoid="more than a few thousand samples; far more features than samples, where it may overfit",
    misprints="The chapter prints a first derivative in the curvature rule; it must be the second.",
    test_params=({}, {"kernel": "linear", "bound": "radius", "constraint": "box", "step": 3}),
)
class RadiusMarginScaling(SplittingSelector):
    r"""Scale every feature so that a bound on the leave-one-out error is smallest; small factors are discarded.

    The kernel sees scaled features, :math:`k_\sigma(x, x') = k(\sigma * x, \sigma * x')`, and the factors minimise

    .. math:: G(\sigma) = R^2(\sigma)\, W^2(\sigma),

    with :math:`W^2 = \|w\|^2` the inverse squared margin of an SVM with squared slacks (a ridge 1/C on the kernel
    matrix) and :math:`R^2` the squared radius or the variance of the samples in feature space. They are found by
    descent with

    .. math:: \frac{\partial W^2}{\partial\sigma_k^2} = -\sum_{ij} v_i v_j \frac{\partial K_{ij}}{\partial\sigma_k^2},
        \qquad
        \frac{\partial R^2}{\partial\sigma_k^2} = \sum_i \beta_i \frac{\partial K_{ii}}{\partial\sigma_k^2}
        - \sum_{ij} \beta_i \beta_j \frac{\partial K_{ij}}{\partial\sigma_k^2}, \qquad v = \alpha * y .

    The whole gradient costs about as much as the kernel matrix. ``bound`` chooses G: "radius" with the smallest
    enclosing sphere; "variance" (default), :math:`R^2 = \frac1n\sum_i K_{ii} - \frac1{n^2}\sum_{ij} K_{ij}`,
    smoother and less sensitive to outliers; "span", an estimate of the leave-one-out error; "validation", a smooth
    error on held-out folds. The last two are less smooth and end in local minima more often. For more than two
    classes G is summed over classifiers of one class against the rest, which share σ.

    With a hard margin and a linear kernel, G does not change when all factors are multiplied by one number. A
    constraint therefore fixes their size: the mean of their squares is one (default), or each lies between 0 and 1
    (``constraint="box"``).

    After the descent, features whose factor is zero are discarded, and then the least valuable ones according to
    ``discard``; the factors of the remaining features are then optimised again, until one feature is left. "scale"
    discards small factors; "removal" takes each feature out in turn, trains again and compares G (expensive);
    "curvature" discards small

    .. math:: \sigma_k^2\, \frac{\partial^2 (R^2 W^2)}{\partial \sigma_k^2} .

    The chapter prints a first derivative there; the text and the comparison with optimal brain damage ask for the
    second.

    Use it with a nonlinear kernel when features matter together: it finds the pair of the nonlinear toy problem,
    which no score of single features does. It needs an n × n matrix per step, so use at most a few thousand samples;
    with far more features than samples it may overfit.

    Parameters
    ----------
    n_features_to_select
        None: the features that keep a scaling factor in the first descent.
    C
        The errors ξ cost (C/2) Σ ξ². ``numpy.inf`` is the hard margin, which needs classes that can be separated.
        Where classes overlap, take a smaller C: with a larger one G itself prefers noise. For small C, with equally
        large classes and V the variance of K alone, :math:`G = n - 1 + C\,(n V - (1 - \frac1n)\, y^\top K y) +
        O(C^2)`, whose gradient with a linear kernel orders features as FisherScore does. Of three features shifted
        by half a standard deviation (100 samples, 20 features, 8 draws) the first three selected hold 1.1 on
        average with C = 1, 1.6 with C = 0.1, 2.0 with C = 0.01, 2.3 with ``kernel="linear", C=0.1`` (FisherScore:
        2.4). No local minimum is to blame: with C = 1, G is 88 at the factors found, 116 at the best factors of the
        three alone, and descents from these or from random factors end within 0.2 % of 88.
    constraint
        "sum": the squared factors have the mean 1. "box": each factor lies between 0 and 1.
    discard
        "scale": small factors. "removal": training again without each feature in turn. "curvature": small second
        derivatives (with the bounds "variance" and "radius").
    step
        Features discarded per round. None: one descent, whose factors order the features.
    cv
        Used with ``bound="validation"``. A splitter with one split is a validation set.
    zero_tol
        Here this applies to the scaling factors.
    tol
        The descent ends when the relative decrease of the bound that a step can bring is smaller than this.
    max_iter
        One iteration is one step of a descent.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features_in_,)
        The factors σ of the first descent, over all features.
    objective_ : float or ndarray
        The value of G at these factors.
    representative_ : ndarray of shape (n_features_in_,), dtype int
        For each feature the first one that it is a copy of, up to sign and shift (up to sign, for "poly"); only
        that one is given a factor, its copies rank last.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import RadiusMarginScaling
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = RadiusMarginScaling(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        bound: Literal["variance", "radius", "span", "validation"] = "variance",
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        C: float = 1.0,
        constraint: Literal["sum", "box"] = "sum",
        discard: Literal["scale", "removal", "curvature"] = "scale",
        step: int | float | None = 0.5,
        gamma: float | Literal["auto", "scale"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        cv: Any = 5,
        steepness: float = 5.0,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 1000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.bound = bound
        self.kernel = kernel
        self.C = C
        self.constraint = constraint
        self.discard = discard
        self.step = step
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.steepness = steepness
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        kernel = chosen_kernel(self, problem.design)
        varying, self.representative_ = distinct_columns(problem.design, kernel)
        self.scale_, self.objective_ = np.zeros(problem.n_features), 0.0
        if varying.size == 0:
            return SelectionPath.from_scores(self.scale_, scale=self.scale_)
        warn_of_long_fit(
            "RadiusMarginScaling",
            SECONDS_PER_CUBE * float(problem.n_samples) ** 3 * problem.target.columns().shape[1],
            f"{problem.n_samples} samples",
            "use a subsample, or step=None for one descent only",
            stacklevel=5,
        )
        criterion = Summed(self._criterion(problem))
        objective = ScaledCriterion(problem.design.take(varying), kernel, criterion, problem.target.columns())
        rounds = Discarding(
            self.discard, self.step, self.constraint == "box", self.zero_tol, self.tol, self.max_iter
        )
        rounds.run(objective, problem.progress)
        assert rounds.first is not None
        self.scale_[varying] = np.sqrt(rounds.first.point)
        self.objective_ = rounds.first.value
        return rounds.path(varying, self.scale_)

    def _criterion(self, problem: Problem) -> Criterion:
        if self.bound == "span":
            return Span(self.C, SOLVER_TOL)
        if self.bound == "validation":
            return CrossValidation.from_splits(self._splits(problem), self.C, self.steepness, SOLVER_TOL)
        return RadiusMargin(self.C, self.bound, SOLVER_TOL)

    def _splits(self, problem: Problem) -> list[Any]:
        """Folds whose training samples hold all classes; at most as many as the smallest class has samples."""
        smallest = int(np.bincount(problem.y).min())
        if smallest < 2:
            raise ValueError(
                "RadiusMarginScaling with bound='validation' needs at least two samples of every class. "
                "Got a class with one sample; use bound='variance'."
            )
        cv = min(self.cv, smallest) if isinstance(self.cv, int) else self.cv
        splits = list(check_cv(cv, problem.y, classifier=True).split(np.zeros(problem.n_samples), problem.y))
        if problem.sample_groups is not None:
            seed = int(problem.rng.integers(2**31))
            found = make_splits(cv, problem.y, problem.sample_groups, target=problem.target, seed=seed)
            splits = [(split.train, split.test) for split in found]
        for train, valid in splits:
            if np.unique(problem.y[train]).size < problem.n_classes or valid.size == 0:
                raise ValueError(
                    "The 'cv' parameter of RadiusMarginScaling must leave samples of every class for training and some "
                    "for validation. Got a split without; use a stratified splitter."
                )
        return splits

    def _check_parameters(self) -> None:
        if self.discard == "curvature" and self.bound in ("span", "validation"):
            raise parameter_error(self, "discard", f"'scale' or 'removal' with bound={self.bound!r}")
