"""Knockoffs: control of the false discovery rate."""

from __future__ import annotations

import math
import warnings
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import linalg

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import DenseDesign, Design
from zeronorm.engines._independent_samples import (
    IndependentSamples,
    independent_samples,
    means_of_groups,
    select_repeatedly,
)
from zeronorm.engines.knockoffs import _filter as knockoff_filter
from zeronorm.engines.knockoffs._covariance import estimated_model, given_model
from zeronorm.engines.knockoffs._fixed import FixedColumns
from zeronorm.engines.knockoffs._gaps import GAPS
from zeronorm.engines.knockoffs._likelihood_ratio import masked_likelihood_ratios
from zeronorm.engines.knockoffs._model import ColumnModel
from zeronorm.engines.knockoffs._normal_scores import normal_scores, with_margins_of
from zeronorm.registry import Registered, register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import EmptySelectionWarning, Problem, Progress
from zeronorm.selection._sample_groups import group_codes
from zeronorm.selection.target import Target
from zeronorm.selectors._wrapping import ErrorControlSelector

N_SORT_COLUMNS = 8  # first columns by which samples are sorted


@dataclass(frozen=True)
class KnockoffPlan:
    """Standardised data, and the model from which knockoffs are drawn."""

    X: FloatArray
    model: ColumnModel | FixedColumns
    scores: FloatArray | None = None  # normal scores of X if the knockoffs are drawn on them

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One set of knockoffs."""
        if self.scores is not None:
            return with_margins_of(self.X, self.model.draw(self.scores, rng))
        return self.model.draw(self.X, rng)


@dataclass(frozen=True)
class IndependentRows:
    """The samples, or combinations of those of each group, in an order that depends on their values only."""

    design: Design
    labels: NDArray[Any]  # for a wrapped selector
    columns: FloatArray  # for the likelihood ratios
    is_class: bool


@register(
    "knockoff-selector",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression"),
    reference="Barber & Candès 2015; Candès et al. 2018; Spector & Fithian 2022; Ren & Barber 2024",
    cost="n p² for blocks of correlated features; per draw some hundred times n p, or a selector on 2p columns",
    oracle="an SDP solver, exact posterior probabilities, and the false discovery rate in simulations",
    avoid="fewer than 1/level relevant features: then none passes",
    test_params={
        "selector": Registered("fisher"),
        "level": 0.9,
        "offset": 0,
        "n_draws": 1,
        "random_state": 0,
    },
    papers={
        "Spector & Fithian 2022": (
            "Spector, A. & Fithian, W. (2022). Asymptotically optimal knockoff statistics via the masked likelihood "
            "ratio. arXiv:2212.08766.",
            "https://arxiv.org/abs/2212.08766",
        )
    },
)
class KnockoffSelector(ErrorControlSelector):
    r"""Control the false discovery rate with knockoffs.

    Every feature gets a knockoff: noise with the same correlations, drawn without looking at y. A statistic compares
    feature and knockoff, and the features with :math:`W_j \ge T` are kept,

    .. math:: T = \min \Bigl\{ t > 0 : \frac{o + \#\{W_j \le -t\}}{\max(1, \#\{W_j \ge t\})} \le q \Bigr\},

    o being ``offset`` (1 bounds the false discovery rate by the level q, 0 a slightly weaker rate). Exchanging a
    feature and its knockoff changes the sign of :math:`W_j`. With ``selector=None`` the statistic is the masked
    likelihood ratio: the log odds, in a linear model with few features, that the feature and not its knockoff belongs
    in the model. A selector compares scores of features and knockoffs, :math:`W_j = Z_j - \tilde Z_j`.

    With several draws the e-values :math:`e_j = p\, 1\{W_j \ge T\} / (1 + \#\{W_k \le -T\})` are averaged and the
    largest k features with :math:`e_{(k)} \ge p / (q k)` are kept, which makes the result depend less on the random
    draw and bounds the rate by q in any case. T is then that of level q/2 while 2/q features exceed t, else that of q.

    At least 1/level features are kept or none, and to find k of p features takes about
    :math:`2 k \log(p/k)` samples; a warning is given before the work begins if the data have fewer.

    ``knockoffs="model_x"`` draws second-order knockoffs: their means and correlations match those of the
    columns. The correlation matrix is given, or that of the sample, shrunk just enough to be invertible. More than 300
    columns are modelled by common factors and blocks of up to 300 correlated columns. The rate is exact for Gaussian
    columns with a known correlation and a selector of any kind; in simulations it also holds for estimated
    correlations and for lognormal and heavy-tailed columns with statistics that use only means and correlations.
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
        None: the masked likelihood ratio. A selector must not have ``feature_groups`` or ``always_keep``.
    n_features_to_select
        None: as many as ``level`` allows.
    level
        Here: the false discovery rate.
    task
        None: that of ``selector``, or classification without one.
    construction
        "equicorrelated": all knockoffs are equally far from their features. "mvr" (minimum variance) and "sdp"
        (semidefinite) choose the distances one by one and find more where the correlation is known.
    correlation
        Not used with "fixed_x"; with "normal_scores" it is the correlation of the normal scores.
    offset
        Used with one draw.
    n_draws
        Ten draws make the selection stable from seed to seed, with fewer false features; one draw finds more where
        signals are weak or hardly 1/level features can be found (see the page on trust).
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
    >>> from zeronorm import KnockoffSelector
    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(300, 40))
    >>> y = X[:, :12].sum(axis=1) + rng.normal(size=300) > 0  # the first twelve features matter
    >>> selector = KnockoffSelector(level=0.1, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()  # one of thirteen is false
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 35]
    """

    task: Any = None  # a parameter here, not the task of the wrapped selector

    def __init__(
        self,
        selector: Any = None,
        *,
        n_features_to_select: int | float | None = None,
        level: float = 0.1,
        task: Literal["classification", "regression"] | None = None,
        knockoffs: Literal["model_x", "normal_scores", "fixed_x"] = "model_x",
        construction: Literal["equicorrelated", "mvr", "sdp"] = "equicorrelated",
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
        self.task = task
        self.knockoffs = knockoffs
        self.construction = construction
        self.correlation = correlation
        self.offset = offset
        self.n_draws = n_draws
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, or real targets with ``task="regression"``.
        groups : one label per sample; samples of one group, such as those of one patient, may depend on each other.
            They are combined into rows with independent noise, as in ``DummySelector``: a random effect of each group,
            the means of the groups if the target is the same for all samples of a group, or differences within groups.
            With a selector each group is replaced by its mean, and must have samples of one class.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        return self._fit(X, y, fit_params, groups=groups)

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_correlation(problem.n_features)
        order = _order_by_content(problem.design)
        design, target = problem.design.take_rows(order), problem.target.take(order)
        groups = None if problem.sample_groups is None else problem.sample_groups[order]
        combined = independent_samples(target.columns(), groups)
        if groups is not None and combined is not None and self.selector is not None:
            combined = means_of_groups(groups)
        n_rows = design.n_samples if combined is None else combined.n_rows
        n_varying = int(np.sum(_varies(problem.shared.standardized(design))))
        if n_varying == 0:
            raise ValueError("KnockoffSelector needs a column that varies. Got constant columns only.")
        self._warn_of_no_power(n_rows, n_varying)
        streams = problem.rng.spawn(self.n_draws)

        def select(combined: IndependentSamples | None) -> tuple[SelectionPath, IntArray]:
            rows = self._independent_rows(design, target, groups, combined)
            path = self._select_from(problem, rows, streams)
            return path, path.order[: path.selected_size]

        return select_repeatedly(combined, target.columns(), groups, design, select)

    def _select_from(
        self, problem: Problem, rows: IndependentRows, streams: list[np.random.Generator]
    ) -> SelectionPath:
        """The path of features of independent rows."""
        standardized = problem.shared.standardized(rows.design)
        varies = _varies(standardized)
        varying = np.flatnonzero(varies)
        plan = self._plan(standardized.take(varying), varying)
        draws, converged = self._draws(plan, rows, problem.progress, streams)
        self.statistics_ = np.zeros(problem.n_features)
        self.statistics_[varying] = np.mean(draws, axis=0)
        rank_key, n_passing = self._filter(draws, varying, problem.n_features)
        return SelectionPath(
            order=np.lexsort((-self.statistics_, -rank_key)),
            scores=self.statistics_,
            selected_size=n_passing,
            converged=converged,
            remedy="give the wrapped selector more iterations or a looser tol.",
        ).demote(~varies)

    def _draws(
        self,
        plan: KnockoffPlan,
        rows: IndependentRows,
        progress: Progress,
        streams: list[np.random.Generator],
    ) -> tuple[FloatArray, bool]:
        """The statistics of each draw, and whether all fits converged."""
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        tasks = (delayed(self._one_draw)(plan, rows, rng) for rng in deepcopy(streams))
        draws, all_converged = [], True
        with progress.task("Drawing knockoffs", self.n_draws) as advance:
            for statistic, converged in parallel(tasks):
                draws.append(statistic)
                all_converged = all_converged and converged
                advance(1)
        return np.asarray(draws), all_converged

    def _one_draw(
        self, plan: KnockoffPlan, rows: IndependentRows, rng: np.random.Generator
    ) -> tuple[FloatArray, bool]:
        copies = plan.draw(rng)
        if self.selector is None:
            return masked_likelihood_ratios(plan.X, copies, rows.columns, rows.is_class, rng), True
        p = plan.X.shape[1]
        path, scores, _ = self._fit_shuffled(
            DenseDesign(np.concatenate([plan.X, copies], axis=1)), rows.labels, rng
        )
        return scores[:p] - scores[p:], path.converged

    def _filter(self, draws: FloatArray, varying: IntArray, n_features: int) -> tuple[FloatArray, int]:
        """The values by which features are ranked before their statistics, and how many features pass."""
        if self.n_draws == 1:
            self.threshold_ = knockoff_filter.knockoff_threshold(draws[0], self.level, self.offset)
            return np.zeros(n_features), int(np.sum(draws[0] >= self.threshold_))
        e_values = np.mean([knockoff_filter.knockoff_e_values(w, self.level) for w in draws], axis=0)
        self.e_values_ = np.zeros(n_features)
        self.e_values_[varying] = e_values
        return self.e_values_, knockoff_filter.n_passing_e_values(e_values, self.level)

    def _plan(self, standardized: Design, columns: IntArray) -> KnockoffPlan:
        X = standardized.block(slice(None))
        n, p = X.shape
        gaps = GAPS[self.construction]
        scores = normal_scores(X) if self.knockoffs == "normal_scores" else None
        if self.knockoffs == "fixed_x":
            if n <= 2 * p:
                raise ValueError(
                    f"Fixed-X knockoffs need more than twice as many samples as features. Got {n} samples and "
                    f"{p} features that vary; use knockoffs='model_x' or select from fewer features."
                )
            return KnockoffPlan(X, FixedColumns.of(_invertible(X.T @ X / n), gaps))
        if self.correlation is None:
            return KnockoffPlan(X, estimated_model(X if scores is None else scores, gaps), scores)
        correlation = np.asarray(self.correlation, dtype=np.float64)[np.ix_(columns, columns)]
        return KnockoffPlan(X, given_model(_invertible(correlation), gaps), scores)

    # -- samples that are independent -----------------------------------------------------------

    def _independent_rows(
        self,
        design: Design,
        target: Target,
        groups: NDArray[Any] | None,
        combined: IndependentSamples | None,
    ) -> IndependentRows:
        """The samples, or combinations of those of each group with independent noise."""
        columns = target.columns()
        if groups is None or combined is None:
            return IndependentRows(design, target.labels(), columns, target.has_classes)
        rows, columns = DenseDesign(combined.dot(design.block(slice(None)))), combined.dot(columns)
        if np.ptp(columns, axis=0).max() <= 1e-12 * np.abs(columns).max():
            raise ValueError(
                f"KnockoffSelector with {type(self.selector).__name__} compares means of groups of samples, and the "
                f"target has the same mean in all {len(columns)} groups. Use selector=None, which compares samples "
                "within the groups, or give the differences within each group as samples."
            )
        first = np.unique(group_codes(groups), return_index=True)[1]
        is_mixed = target.has_classes and bool(
            np.any(target.values != target.values[first][group_codes(groups)])
        )
        if is_mixed and self.selector is not None:
            raise ValueError(
                "KnockoffSelector replaces each group of samples by its mean, and some groups have samples of several "
                f"classes, which {type(self.selector).__name__} cannot use. Use selector=None, or one class per group."
            )
        is_class = target.has_classes and not is_mixed
        labels = target.take(first).labels() if is_class else columns[:, 0]
        order = _order_by_content(rows)
        return IndependentRows(rows.take_rows(order), labels[order], columns[order], is_class)

    # -- what the data can give -----------------------------------------------------------------

    def _warn_of_no_power(self, n_samples: int, n_features: int) -> None:
        """Warn, before the work begins, that nothing can be expected to pass the filter."""
        if self.n_features_to_select is not None:
            return
        fewest = math.ceil(1 / self.level - 1e-9) if self.offset == 1 or self.n_draws > 1 else 1
        needed = knockoff_filter.samples_needed(n_features, fewest)
        if n_features < fewest:
            reason = f"the data have {n_features} features that vary"
        elif n_samples < needed:
            reason = (
                f"finding {fewest} of {n_features} features takes about {math.ceil(needed)} independent samples, and "
                f"the data have {n_samples}"
            )
        else:
            return
        warnings.warn(
            f"KnockoffSelector will probably select nothing: with level={self.level} it keeps at least {fewest} "
            f"features or none, and {reason}. Raise 'level', select from fewer features, or ask for a number of "
            "features ('n_features_to_select').",
            EmptySelectionWarning,
            stacklevel=5,
        )

    # -- parameters -----------------------------------------------------------------------------

    def _task_name(self) -> str:
        if self.selector is None:
            return self.task or "classification"
        inner = self._innermost()
        own = inner._task_name() if hasattr(inner, "_task_name") else getattr(inner, "task", "classification")
        return str(own)

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.selector is None or super()._accepts_sparse

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return self.selector is not None and super()._allow_nan

    def _check_parameters(self) -> None:
        self._refuse_column_settings()
        if self.selector is None and self.knockoffs == "fixed_x":
            raise parameter_error(
                self, "selector", "a selector, such as LassoSelector(), with knockoffs='fixed_x'", None
            )
        if self.selector is not None and self.task not in (None, self._task_name()):
            raise parameter_error(
                self, "task", f"None or that of 'selector', {self._task_name()!r}", self.task
            )

    def _check_correlation(self, n_features: int) -> None:
        shape = np.shape(self.correlation)
        if self.correlation is not None and shape != (n_features, n_features):
            raise parameter_error(
                self,
                "correlation",
                f"a matrix with one row and one column per feature, shape {(n_features, n_features)}",
                f"shape {shape}",
            )


def _invertible(correlation: FloatArray) -> FloatArray:
    """The correlation matrix; an error if it is singular."""
    smallest = float(linalg.eigvalsh(correlation, subset_by_index=[0, 0])[0])
    if smallest < 1e-10:
        raise ValueError(
            "Knockoffs need features that are not linear combinations of each other. The smallest "
            f"eigenvalue of their correlation matrix is {smallest:.1e}; drop duplicates, or use "
            "knockoffs='model_x' with correlation=None, which shrinks it."
        )
    return correlation


def _varies(standardized: Design) -> BoolArray:
    """Which columns vary."""
    assert standardized.affine is not None
    return np.asarray(~standardized.affine.zero_columns)


def _order_by_content(design: Design) -> IntArray:
    """An order of the rows that does not depend on the order in which they are given, so that the draws do not."""
    few = design.block(np.arange(min(design.n_features, N_SORT_COLUMNS)))
    return np.lexsort(few.T[::-1])
