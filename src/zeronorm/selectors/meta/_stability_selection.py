"""Selection of features that are chosen on most random halves of the data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from zeronorm._types import IntArray
from zeronorm.design import Design
from zeronorm.engines._error_control import draw_halves, false_selection_bound
from zeronorm.registry import Registered, register
from zeronorm.selection._kinds import exceptions, number, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._wrapping import ErrorControlSelector

ASSUMPTIONS = {
    "halves": "if the irrelevant features are exchangeable, that is, equally likely to be chosen on half of the data; "
    "irrelevant features that share a cause with relevant ones break this",
    "worst_case": "counting as false the features that are chosen on half of the data with a probability below "
    "{share}; an irrelevant feature that follows a relevant one can exceed it and is then not counted",
    "unimodal": "counting as false the features that are chosen on half of the data with a probability below {share}, "
    "and if their selection frequencies have unimodal distributions",
}


@register(
    "stability-selection",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression"),
    reference="Meinshausen & Bühlmann 2010; Shah & Samworth 2013",
    cost="a fit of the selector on each of 100 halves",
    oracle="the bounds by hand, and false selections on noise",
    avoid="few samples: halves of them have little power",
    test_params={
        "selector": Registered("fisher"),
        "n_features_to_select": 1,
        "subset_size": 1,
        "n_subsamples": 6,
        "random_state": 0,
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

    Parameters
    ----------
    n_features_to_select
        None: the features that reach ``threshold``.
    threshold
        Here: the fraction of the halves in which a feature must be selected, above 0.5.
    false_selections
        It determines ``subset_size``.
    subset_size
        Here: the features selected on each half. None: the largest number that keeps the bound.
    sampling
        "complementary_pairs" uses both halves of each split, "halves" independent halves.
    assumption
        "unimodal" assumes a unimodal distribution of the frequencies and is sharper.
    random_state
        It also determines every ``random_state`` of the wrapped selector that is not set.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features_in_,)
        Share of the halves in which each feature was chosen; also ``scores_``.
    subset_size_ : int
        The number q of features chosen on each half.
    false_selections_ : float
        The bound for this q and threshold.
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
        selector: Any,
        *,
        n_features_to_select: int | float | None = None,
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

    def _select(self, problem: Problem) -> SelectionPath:
        p, target = problem.n_features, problem.target.labels()
        self.subset_size_ = self._size_of_subsets(p)
        self.false_selections_ = self._bound_for(self.subset_size_, p)
        self.assumption_ = ASSUMPTIONS[
            self.sampling if self.sampling == "halves" else self.assumption
        ].format(share=f"{self.subset_size_}/{p}")
        strata = problem.target.strata()
        halves = draw_halves(
            problem.n_samples, strata, self.n_subsamples, self.sampling == "complementary_pairs", problem.rng
        )
        seeds = problem.rng.spawn(len(halves))
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        fits = (
            delayed(self._one_half)(problem.design, target, rows, rng)
            for rows, rng in zip(halves, seeds, strict=True)
        )
        chosen, position, converged = np.zeros(p), np.zeros(p), True
        with problem.progress.task("Subsampling", len(halves)) as advance:
            for path in parallel(fits):
                chosen[path.support(self.subset_size_)] += 1
                position += path.position()
                converged = converged and path.converged
                advance(1)
        self.frequencies_ = chosen / len(halves)
        return SelectionPath(
            order=np.lexsort((position, -chosen)),
            scores=self.frequencies_,
            selected_size=int(np.sum(self.frequencies_ >= self.threshold - 1e-12)),
            converged=converged,
            remedy="give the wrapped selector more iterations or a looser tol.",
        )

    def _one_half(
        self, design: Design, target: NDArray[Any], rows: IntArray, rng: np.random.Generator
    ) -> SelectionPath:
        return self._wrapped_path(design.take_rows(rows), target[rows], rng)[1]

    def _check_parameters(self) -> None:
        if self.sampling == "halves" and self.assumption == "unimodal":
            raise parameter_error(self, "assumption", "'worst_case' with sampling='halves'")

    def _size_of_subsets(self, n_features: int) -> int:
        if self.subset_size is None:
            sizes = [
                q for q in range(1, n_features) if self._bound_for(q, n_features) <= self.false_selections
            ]
            if not sizes:
                raise ValueError(
                    f"With {n_features} features and threshold {self.threshold} even subsets of one feature allow "
                    f"{self._bound_for(1, n_features):.3g} false selections, more than {self.false_selections}. "
                    "Raise 'false_selections' or 'threshold', or give 'subset_size'."
                )
            return sizes[-1]
        if self.subset_size > n_features:
            raise parameter_error(self, "subset_size", f"at most the number of features of X, {n_features}")
        return int(self.subset_size)

    def _bound_for(self, size: int, n_features: int) -> float:
        return false_selection_bound(
            size,
            n_features,
            self.threshold,
            n_pairs=self.n_subsamples // 2 if self.assumption == "unimodal" else None,
        )
