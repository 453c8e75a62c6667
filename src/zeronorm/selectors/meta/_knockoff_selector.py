"""Knockoffs for any selector: control of the false discovery rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import linalg

from zeronorm._types import FloatArray
from zeronorm.design import DenseDesign, Design
from zeronorm.engines import _error_control as error_control
from zeronorm.registry import Registered, register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._wrapping import ErrorControlSelector

# The construction holds a few p x p matrices and takes O(p^3) operations.
MOST_FEATURES = {"equicorrelated": 5000, "sdp": 500}


@dataclass(frozen=True)
class KnockoffPlan:
    """Standardised data, and the matrices from which knockoffs are drawn."""

    X: FloatArray
    keep: FloatArray
    root: FloatArray
    is_fixed: bool
    scores: FloatArray | None = None  # normal scores of X if the knockoffs are drawn on them

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One set of knockoffs."""
        if self.scores is not None:
            drawn = error_control.model_x_knockoffs(self.scores, self.keep, self.root, rng)
            return error_control.with_margins_of(self.X, drawn)
        sample = error_control.fixed_x_knockoffs if self.is_fixed else error_control.model_x_knockoffs
        return sample(self.X, self.keep, self.root, rng)


@register(
    "knockoff-selector",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression"),
    reference="Barber & Candès 2015; Candès et al. 2018; Ren & Barber 2024",
    cost="p³ for the construction, and a fit of the selector on 2p columns for each draw",
    oracle="an SDP solver, and the false discovery rate in simulations",
    avoid="more than 5000 features; fewer than 1/level relevant features: then none passes",
    test_params={"selector": Registered("fisher"), "level": 0.5, "offset": 0, "random_state": 0},
)
class KnockoffSelector(ErrorControlSelector):
    r"""Control the false discovery rate with knockoffs on top of any selector's scores.

    Every feature gets a knockoff: noise with the same correlations, drawn without looking at y. The
    wrapped selector scores features and knockoffs together, :math:`W_j = Z_j - \tilde Z_j`, and the
    features with :math:`W_j \ge T` are kept,

    .. math:: T = \min \Bigl\{ t > 0 : \frac{o + \#\{W_j \le -t\}}{\max(1, \#\{W_j \ge t\})} \le q \Bigr\},

    o being ``offset`` (1 bounds the false discovery rate by the level q, 0 a slightly weaker rate). With several draws
    the e-values :math:`e_j = p\, 1\{W_j \ge T\} / (1 + \#\{W_k \le -T\})` of filters at level q/2 are averaged and the
    largest k features with :math:`e_{(k)} \ge p / (q k)` are kept, which makes the result depend less on the random
    draw.

    ``knockoffs="model_x"`` draws second-order knockoffs: their means and correlations match those of the
    columns. The correlation matrix is given, or that of the sample, shrunk just enough to be invertible.
    The rate is exact for Gaussian columns and a selector of any kind; in simulations it also holds for
    lognormal and heavy-tailed columns with selectors that use only means and correlations.
    ``knockoffs="normal_scores"`` matches the distribution of each column as well: the knockoffs are drawn on
    the normal scores of the ranks (a Gaussian copula). Use it with selectors that use more than
    correlations (trees, neighbours, mutual information); it does not suit columns that share one random
    scale per sample, such as a multivariate t distribution.
    ``knockoffs="fixed_x"`` assumes a linear model with Gaussian noise instead, needs more than twice as
    many samples as features, and a selector that uses the data only through X'X and X'y (such as the
    Lasso). All columns are standardised first; constant ones are never selected.

    Parameters
    ----------
    selector
        It must not have ``feature_groups`` or ``always_keep``.
    n_features_to_select
        None: as many as ``level`` allows.
    level
        Here: the false discovery rate.
    construction
        "equicorrelated" takes up to 5000 features. "sdp" takes up to 500, keeps knockoffs further from their
        originals and often finds more.
    correlation
        Not used with "fixed_x"; with "normal_scores" it is the correlation of the normal scores.
    random_state
        It also determines every ``random_state`` of the wrapped selector that is not set.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features_in_,)
        Mean of :math:`W_j` over the draws; also ``scores_``.
    threshold_ : float
        The threshold T, for one draw; infinite when nothing passes.
    e_values_ : ndarray of shape (n_features_in_,)
        Averaged e-values, for several draws.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FisherScore, KnockoffSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = KnockoffSelector(FisherScore(), n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        selector: Any,
        *,
        n_features_to_select: int | float | None = None,
        level: float = 0.1,
        knockoffs: Literal["model_x", "normal_scores", "fixed_x"] = "model_x",
        construction: Literal["equicorrelated", "sdp"] = "equicorrelated",
        correlation: Any = None,
        offset: Literal[0, 1] = 1,
        n_draws: int = 1,
        estimator: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.selector = selector
        self.n_features_to_select = n_features_to_select
        self.level = level
        self.knockoffs = knockoffs
        self.construction = construction
        self.correlation = correlation
        self.offset = offset
        self.n_draws = n_draws
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_size(problem.n_features)
        standardized = problem.shared.standardized(problem.design)
        constant = standardized.zero_columns
        varying = np.flatnonzero(~constant)
        if varying.size == 0:
            raise ValueError("KnockoffSelector needs a column that varies. Got constant columns only.")
        plan = self._plan(standardized.take(varying), varying)
        target = problem.target.labels()
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        tasks = (delayed(self._one_draw)(plan, target, rng) for rng in problem.rng.spawn(self.n_draws))
        draws, converged = [], True
        with problem.progress.task("Drawing knockoffs", self.n_draws) as advance:
            for path, statistic in parallel(tasks):
                draws.append(statistic)
                converged = converged and path.converged
                advance(1)
        self.statistics_ = np.zeros(problem.n_features)
        self.statistics_[varying] = np.mean(draws, axis=0)
        rank_key, n_passing = self._filter(np.asarray(draws), varying, problem.n_features)
        return SelectionPath(
            order=np.lexsort((-self.statistics_, -rank_key)),
            scores=self.statistics_,
            selected_size=n_passing,
            converged=converged,
            remedy="give the wrapped selector more iterations or a looser tol.",
        ).demote(constant)

    def _filter(
        self, draws: FloatArray, varying: NDArray[np.intp], n_features: int
    ) -> tuple[FloatArray, int]:
        """The values by which features are ranked before their statistics, and how many features pass."""
        if self.n_draws == 1:
            self.threshold_ = knockoff_threshold(draws[0], self.level, self.offset)
            return np.zeros(n_features), int(np.sum(draws[0] >= self.threshold_))
        e_values = np.mean([knockoff_e_values(w, self.level / 2) for w in draws], axis=0)
        self.e_values_ = np.zeros(n_features)
        self.e_values_[varying] = e_values
        return self.e_values_, n_passing_e_values(e_values, self.level)

    def _plan(self, standardized: Design, columns: NDArray[np.intp]) -> KnockoffPlan:
        X = standardized.block(slice(None))
        n, p = X.shape
        is_fixed = self.knockoffs == "fixed_x"
        scores = error_control.normal_scores(X) if self.knockoffs == "normal_scores" else None
        if is_fixed:
            if n <= 2 * p:
                raise ValueError(
                    f"Fixed-X knockoffs need more than twice as many samples as features. Got {n} samples and "
                    f"{p} features that vary; use knockoffs='model_x' or select from fewer features."
                )
            correlation = X.T @ X / n
        elif self.correlation is not None:
            correlation = np.asarray(self.correlation, dtype=np.float64)[np.ix_(columns, columns)]
        else:
            correlation = error_control.conditioned_correlation(X if scores is None else scores)
        smallest = float(linalg.eigvalsh(correlation, subset_by_index=[0, 0])[0])
        if smallest < 1e-10:
            raise ValueError(
                "Knockoffs need features that are not linear combinations of each other. The smallest "
                f"eigenvalue of their correlation matrix is {smallest:.1e}; drop duplicates, or use "
                "knockoffs='model_x' with correlation=None, which shrinks it."
            )
        gaps = (
            error_control.semidefinite_gaps
            if self.construction == "sdp"
            else error_control.equicorrelated_gaps
        )
        keep, root = error_control.knockoff_factors(
            correlation, gaps(correlation) * (1 - error_control.SAFETY)
        )
        return KnockoffPlan(X, keep, root, is_fixed, scores)

    def _one_draw(
        self, plan: KnockoffPlan, target: NDArray[Any], rng: np.random.Generator
    ) -> tuple[SelectionPath, FloatArray]:
        p = plan.X.shape[1]
        both = DenseDesign(np.concatenate([plan.X, plan.draw(rng)], axis=1))
        path, scores, _ = self._fit_shuffled(both, target, rng)
        return path, scores[:p] - scores[p:]

    def _check_parameters(self) -> None:
        self._refuse_column_settings()

    def _check_size(self, n_features: int) -> None:
        if n_features > MOST_FEATURES[self.construction]:
            raise ValueError(
                f"The {self.construction} construction of knockoffs takes up to "
                f"{MOST_FEATURES[self.construction]} features. Got {n_features}; "
                "reduce them first with a filter on other samples, or use ProbeSelector."
            )
        shape = np.shape(self.correlation)
        if self.correlation is not None and shape != (n_features, n_features):
            raise parameter_error(
                self,
                "correlation",
                f"a matrix with one row and one column per feature, shape {(n_features, n_features)}",
                f"shape {shape}",
            )


def knockoff_threshold(statistics: FloatArray, level: float, offset: int) -> float:
    """The smallest t at which the estimated share of false discoveries is within the level, else infinity."""
    for t in np.unique(np.abs(statistics[statistics != 0])):
        false = offset + int(np.sum(statistics <= -t))
        if false <= level * max(1, int(np.sum(statistics >= t))):
            return float(t)
    return float("inf")


def knockoff_e_values(statistics: FloatArray, level: float) -> FloatArray:
    """E-values of one draw, filtered at ``level``."""
    threshold = knockoff_threshold(statistics, level, offset=1)
    false = 1 + int(np.sum(statistics <= -threshold))
    return np.where(statistics >= threshold, statistics.size / false, 0.0)


def n_passing_e_values(e_values: FloatArray, level: float) -> int:
    """How many features the e-value version of Benjamini and Hochberg keeps."""
    p = e_values.size
    enough = np.sort(e_values)[::-1] * np.arange(1, p + 1) * level >= p * (1 - 1e-12)
    return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0
