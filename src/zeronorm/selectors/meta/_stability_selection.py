"""Selection of features that are chosen on most random halves of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._error_control import false_selection_bound
from zeronorm.engines._half_samples import half_samples
from zeronorm.engines._integrated_paths import integrate_paths, most_sizes, shares_by_size
from zeronorm.registry import Registered, get_method, register
from zeronorm.resampling._fitted_path import fitted_path
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._kinds import exceptions, number, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Target
from zeronorm.selectors._wrapping import ErrorControlSelector, fit_inside

ASSUMPTIONS = {
    "halves": "if the irrelevant features are exchangeable, that is, equally likely to be chosen on half of the data; "
    "irrelevant features that share a cause with relevant ones break this",
    "worst_case": "counting as false the features that are chosen on half of the data with a probability below "
    "{share}; an irrelevant feature that follows a relevant one can exceed it and is then not counted",
    "unimodal": "counting as false the features that are chosen on half of the data with a probability below {share}, "
    "and if their selection frequencies have unimodal distributions",
    "permuted": "if irrelevant features are no more stable than all features are with a permuted target; irrelevant "
    "features that follow relevant ones break this",
    "independent_pairs": "if an irrelevant feature is selected on different pairs of halves independently; all pairs "
    "come from the same samples, so the number is too small",
}
SHOWN_SIZES, SHOWN_FEATURES = 20, 20  # of ``stability_paths_``, at least and at most


@register(
    "stability-selection",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Meinshausen & Bühlmann 2010; Shah & Samworth 2013; Melikechi & Miller 2025",
    cost="a fit of the selector on each of 100 halves; three times that with bound='integrated'",
    oracle="the bounds by hand, a plain loop over the definition, and false selections on noise",
    avoid="few samples: halves of them have little power",
    test_params=(
        {
            "selector": Registered("fisher"),
            "n_features_to_select": 1,
            "subset_size": 1,
            "n_subsamples": 6,
            "random_state": 0,
        },
        {"bound": "integrated", "n_features_to_select": 1, "n_subsamples": 6, "random_state": 0},
    ),
    papers={
        "Melikechi & Miller 2025": (
            "Melikechi, O. & Miller, J. W. (2025). Integrated path stability selection. Journal of the American "
            "Statistical Association.",
            "https://arxiv.org/abs/2403.15877",
        )
    },
)
class StabilitySelection(ErrorControlSelector):
    r"""Keep the features that the wrapped selector chooses on most halves of the data.

    On each of B halves the wrapped selector chooses its best q features. A feature is kept when it
    was chosen in at least a share :math:`\tau` of them. The expected number of false selections is
    at most

    - ``sampling="halves"`` (Meinshausen & Bühlmann, for exchangeable irrelevant features):

      .. math:: E[V] \le \frac{1}{2\tau - 1} \frac{q^2}{p}

    - ``sampling="complementary_pairs"`` (Shah & Samworth; B/2 pairs of disjoint halves): the same
      number without that assumption, counting features chosen with a probability below q/p as
      false; with ``assumption="unimodal"``, for unimodal distributions of the frequencies,

      .. math:: E[V] \le C(\tau, B/2)\, \frac{q^2}{p}, \qquad
          C(\tau, b) = \begin{cases} \frac{1}{2 (2\tau - 1 - 1/(2b))} & \tau \le 3/4 \\
          \frac{4 (1 - \tau + 1/(2b))}{1 + 1/b} & \tau > 3/4 \end{cases}

    (scaled by :math:`\theta q`, :math:`\theta = q/p`; C(τ, b) holds for :math:`\tau > \min(1/2 +
    \theta^2, 1/2 + 1/(2b) + 3\theta^2/4)`).

    ``bound="integrated"`` (Melikechi & Miller) uses the shares :math:`\pi_j(k)` of the halves on which feature j is
    among the first k, for all sizes k up to K, and gives each feature a q-value:

    .. math:: s_j = \frac1K \sum_{k=1}^K \max(2 \pi_j(k) - 1, 0)^3, \qquad
        E[V(\tau)] \le \frac{1}{\tau K} \sum_{k=1}^K b(k), \qquad
        q_j = \min_{\tau \le s_j} \frac{E[V(\tau)]}{\#\{s \ge \tau\}}

    where V counts the irrelevant features with a score of at least :math:`\tau`, and b(k) is the sum of
    :math:`\max(2 \pi_j(k) - 1, 0)^3` over all features with a permuted target, a mean over ``n_permutations``. K is the
    largest size for which the mean of b is at most 0.05. ``n_permutations=0`` takes the paper's b(k), which assumes
    that pairs of halves are independent of each other; they share their samples, and in simulations more features are
    false than it states.

    With ``groups`` in ``fit`` (several samples of each patient) the halves consist of whole groups.

    Parameters
    ----------
    selector
        None: least angle regression, ``LassoSelector(method="lars")``.
    n_features_to_select
        None: the features that reach ``threshold``, or with a q-value of at most ``level``.
    bound
        "frequency": the frequency of one size. "integrated": all sizes, with a q-value for each feature.
    level
        Here: the false discovery rate, used with ``bound="integrated"``.
    n_permutations
        Used with ``bound="integrated"``. 0: the bound of independent pairs.
    threshold
        Here: the fraction of the halves in which a feature must be selected, above 0.5; used with
        ``bound="frequency"``.
    false_selections
        It determines ``subset_size`` with ``bound="frequency"``.
    subset_size
        Here: the features selected on each half. None: the largest number that keeps the bound. With
        ``bound="integrated"`` the size K, if fewer than the bound allows.
    sampling
        "complementary_pairs" uses both halves of each split, "halves" independent halves (not if "integrated").
    assumption
        "unimodal" assumes a unimodal distribution of the frequencies and is sharper; used with
        ``bound="frequency"``.
    random_state
        It also determines every ``random_state`` of the wrapped selector that is not set.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features_in_,)
        Share of the halves in which each feature was among the first ``subset_size_``; also ``scores_`` with
        ``bound="frequency"``. With "integrated", ``scores_`` are the integrated ones.
    subset_size_ : int
        The number q of features chosen on each half, or the largest size K.
    false_selections_ : float
        The bound for this q and threshold, or on the false ones among the features within ``level``.
    q_values_ : ndarray of shape (n_features_in_,)
        The smallest false discovery rate at which a feature is selected; only with ``bound="integrated"``.
    n_false_expected_ : ndarray of shape (n_features_in_,)
        Bound on the expected number of false features among the first 1, 2, … of ``path_``; only with
        ``bound="integrated"``.
    stability_paths_ : ndarray of shape (n_features, n_sizes)
        Share of the halves on which each of the first features of ``path_`` is among the first 1, 2, …; only with
        ``bound="integrated"``.
    permuted_path_ : ndarray of shape (n_sizes,)
        The largest such share of any feature with a permuted target; empty without permutations.
    assumption_ : str
        What the bound assumes and counts, as text; report it together with the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FisherScore, StabilitySelection
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = StabilitySelection(FisherScore(), n_subsamples=20, false_selections=2.0, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(
        threshold=(number(above=0.5, most=1), "the bound holds for frequencies above one half")
    )

    def __init__(
        self,
        selector: Any = None,
        *,
        n_features_to_select: int | float | None = None,
        bound: Literal["frequency", "integrated"] = "frequency",
        level: float = 0.1,
        n_permutations: int = 2,
        threshold: float = 0.75,
        false_selections: float = 1.0,
        subset_size: int | None = None,
        n_subsamples: int = 100,
        sampling: Literal["complementary_pairs", "halves"] = "complementary_pairs",
        assumption: Literal["worst_case", "unimodal"] = "worst_case",
        estimator: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.selector = selector
        self.n_features_to_select = n_features_to_select
        self.bound = bound
        self.level = level
        self.n_permutations = n_permutations
        self.threshold = threshold
        self.false_selections = false_selections
        self.subset_size = subset_size
        self.n_subsamples = n_subsamples
        self.sampling = sampling
        self.assumption = assumption
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _wrapped(self) -> Any:
        return get_method("lasso").cls(method="lars") if self.selector is None else self.selector

    def _select(self, problem: Problem) -> SelectionPath:
        return self._by_frequency(problem) if self.bound == "frequency" else self._by_integral(problem)

    def _by_frequency(self, problem: Problem) -> SelectionPath:
        p = problem.n_features
        self.subset_size_ = self._size_of_subsets(p)
        self.false_selections_ = self._bound_for(self.subset_size_, p)
        self.assumption_ = ASSUMPTIONS[
            self.sampling if self.sampling == "halves" else self.assumption
        ].format(share=f"{self.subset_size_}/{p}")
        chosen, position, converged = np.zeros(p), np.zeros(p), True
        with problem.progress.task("Subsampling", self.n_subsamples) as advance:
            for path in self._paths_on_halves(problem, problem.target, self.subset_size_):
                chosen[path.support(self.subset_size_)] += 1
                position += path.position()
                converged = converged and path.converged
                advance(1)
        self.frequencies_ = chosen / self.n_subsamples
        n_kept = int(np.sum(self.frequencies_ >= self.threshold - 1e-12))
        return self._ranked(self.frequencies_, position, n_kept, converged)

    def _by_integral(self, problem: Problem) -> SelectionPath:
        self._check_subset_size(problem.n_features)
        targets = [problem.target]
        targets += [
            problem.target.permuted(problem.rng, problem.sample_groups) for _ in range(self.n_permutations)
        ]
        positions = np.empty((len(targets), self.n_subsamples, problem.n_features), dtype=np.int32)
        converged = True
        most = max(most_sizes(problem.n_features, self.n_subsamples, self.subset_size), SHOWN_SIZES)
        with problem.progress.task("Subsampling", positions.shape[0] * self.n_subsamples) as advance:
            for rows, target in zip(positions, targets, strict=True):
                for half, path in enumerate(self._paths_on_halves(problem, target, most)):
                    rows[half] = path.position()
                    converged = converged and path.converged
                    advance(1)
        found = integrate_paths(positions[0], list(positions[1:]), self.subset_size)
        n_sizes = min(max(found.largest_size, SHOWN_SIZES), problem.n_features)
        self.subset_size_, self.q_values_ = found.largest_size, found.q_values
        self.frequencies_ = np.mean(positions[0] < found.largest_size, axis=0)
        self.assumption_ = ASSUMPTIONS["permuted" if self.n_permutations else "independent_pairs"]
        path = self._ranked(
            found.scores, positions[0].sum(axis=0), int(np.sum(found.q_values <= self.level)), converged
        )
        self.stability_paths_ = shares_by_size(positions[0][:, path.order[:SHOWN_FEATURES]], n_sizes)
        permuted = [shares_by_size(one, n_sizes).max(axis=0) for one in positions[1:]]
        self.permuted_path_ = np.max(permuted, axis=0) if permuted else np.zeros(0)
        self.n_false_expected_ = np.maximum.accumulate(found.expected_false[path.order])
        self.false_selections_ = (
            float(self.n_false_expected_[path.selected_size - 1]) if path.selected_size else 0.0
        )
        return path

    def _ranked(
        self, scores: FloatArray, position: NDArray[Any], n_kept: int, converged: bool
    ) -> SelectionPath:
        """The path in the order of the scores, then of the mean position on the halves."""
        return SelectionPath(
            order=np.lexsort((position, -scores)),
            scores=scores,
            selected_size=n_kept,
            converged=converged,
            remedy="give the wrapped selector more iterations or a looser tol.",
        )

    def _paths_on_halves(self, problem: Problem, target: Target, most: int) -> Iterator[SelectionPath]:
        """The path of the wrapped selector on each half of the samples, of which the first ``most`` features count."""
        selector = self._ended_after(min(most, problem.n_features))
        in_pairs = self.sampling == "complementary_pairs"
        halves = half_samples(
            target, problem.sample_groups, problem.rng, count=self.n_subsamples, in_pairs=in_pairs
        )
        labels, groups = target.labels(), problem.sample_groups
        fits = (
            delayed(self._one_half)(selector, problem.design, labels, groups, rows, rng, problem.adjust)
            for rows, rng in zip(halves, problem.rng.spawn(len(halves)), strict=True)
        )
        yield from Parallel(n_jobs=self.n_jobs, return_as="generator")(fits)

    def _ended_after(self, n_features: int) -> Any:
        """The wrapped selector; least angle regression, a pass for each step, ends with this many features."""
        selector: Any = self._wrapped()
        is_forward = (
            isinstance(selector, get_method("lasso").cls) and getattr(selector, "method", "") == "lars"
        )
        if not is_forward or selector.n_features_to_select is not None:
            return selector
        return clone(selector).set_params(n_features_to_select=n_features)

    def _one_half(
        self,
        selector: Any,
        design: Design,
        labels: NDArray[Any],
        groups: NDArray[Any] | None,
        rows: IntArray,
        rng: np.random.Generator,
        adjust: Covariates | None,
    ) -> SelectionPath:
        own = None if groups is None else groups[rows]
        part = None if adjust is None else adjust.take(rows)
        fitted = fit_inside(selector, design.take_rows(rows), labels[rows], rng, own, adjust=part)
        return fitted_path(fitted, design.n_features)

    def _check_parameters(self) -> None:
        if getattr(self._holder_of_adjust(), "adjust", None) is not None:
            self._refuse_column_settings()
        if self.sampling == "halves" and self.assumption == "unimodal":
            raise parameter_error(self, "assumption", "'worst_case' with sampling='halves'")
        if self.bound == "frequency":
            return
        if self.sampling == "halves":
            raise parameter_error(self, "sampling", "'complementary_pairs' with bound='integrated'")
        if self.n_subsamples % 2:
            raise parameter_error(self, "n_subsamples", "an even number with bound='integrated'")

    def _check_subset_size(self, n_features: int) -> None:
        if self.subset_size is not None and self.subset_size > n_features:
            raise parameter_error(self, "subset_size", f"at most the number of features of X, {n_features}")

    def _size_of_subsets(self, n_features: int) -> int:
        if self.subset_size is None:
            possible = range(1, max(2, n_features))
            sizes = [q for q in possible if self._bound_for(q, n_features) <= self.false_selections]
            if not sizes:
                raise ValueError(
                    f"With {n_features} features and threshold {self.threshold} even subsets of one feature allow "
                    f"{self._bound_for(1, n_features):.3g} false selections, more than {self.false_selections}. "
                    "Raise 'false_selections' or 'threshold', or give 'subset_size'."
                )
            return sizes[-1]
        self._check_subset_size(n_features)
        return int(self.subset_size)

    def _bound_for(self, size: int, n_features: int) -> float:
        n_pairs = self.n_subsamples // 2 if self.assumption == "unimodal" else None
        bound = false_selection_bound(size, n_features, self.threshold, n_pairs=n_pairs)
        return min(bound, float(n_features))  # no more than all features can be false
