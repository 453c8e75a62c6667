"""Selection of features that enter forward paths before dummies: control of the false discovery rate (T-Rex)."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._combined_rows import CombinedRowsDesign
from zeronorm.engines._cox_scores import working_problem
from zeronorm.engines._dummy_calibration import (
    Calibration,
    Round,
    Selection,
    best_selection,
    most_relevant,
    widest,
)
from zeronorm.engines._dummy_paths import DummyExperiment, LeastAngleExperiment
from zeronorm.engines._dummy_relevance import relevance_probabilities
from zeronorm.engines._dummy_screening import ForwardData, common_factors, run_on_working_set
from zeronorm.engines._independent_samples import IndependentSamples, independent_samples, select_repeatedly
from zeronorm.engines._virtual_dummies import DummyPool, UniformDummies
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.selectors._wrapping import PossiblyEmptySelector

PATHS = {"orthogonal": DummyExperiment, "least_angle": LeastAngleExperiment}


@register(
    "dummy-selector",
    family="meta",
    tasks=("binary", "regression", "survival"),
    reference="Machkour et al. 2025",
    cost="two to five passes over the data; the number of dummies costs nothing",
    oracle="scikit-learn's LARS on features and explicit dummies, and the false discovery rate in simulations",
    avoid="nonlinear effects; several classes",
    test_params=(
        {"n_features_to_select": 0.2, "random_state": 0},
        {"n_features_to_select": 0.2, "task": "regression", "path": "least_angle", "random_state": 0},
    ),
)
class DummySelector(PossiblyEmptySelector):
    r"""Control the false discovery rate by features that compete with columns of noise (the T-Rex selector).

    In each of K experiments L dummies, columns of standardised normal noise, are added to the p features, and a
    forward path on all of them stops when T dummies have entered. :math:`\Phi_T(j)` is the share of the experiments
    in which feature j entered before. The features with :math:`\Phi_T(j) > v` are kept, and the share of false ones
    among them is estimated by

    .. math:: \widehat{\mathrm{FDP}}(v, T, L) =
              \frac{\sum_{j: \Phi_T(j) > v} (1 - \Phi'_T(j))}{\#\{j: \Phi_T(j) > v\}},

    .. math:: \Phi'_T(j) = \sum_{t \le T} \Bigl(1 - \frac{p - \sum_i \Phi_t(i)}{L - t + 1} \Big/
              \sum_{i: \Phi_T(i) > 1/2} \Delta\Phi_t(i)\Bigr) \Delta\Phi_t(j).

    L is p, 2p, … until the estimate at v = 0.75 and T = 1 is within the level; then T grows while that at the highest
    v is; at last T and v are chosen such that most features are kept with an estimate within the level. It can happen
    that no feature passes; ``support_`` is then empty.

    Dummies are virtual: only those are drawn that exceed the features in some step, from their distribution given
    that they do, so that 10 p dummies for millions of features take neither time nor memory. Of wide data only
    the columns that can enter are kept in memory; a last pass over all columns confirms that no other could.

    Two kinds of path are run: orthogonal matching pursuit finds strong effects that least-angle regression, the path
    of the paper, finds late, and least-angle regression more of the weak ones. With least-angle paths L is at once as
    large as allowed, so that T changes the estimate in fine steps.

    Dummies cannot show which of several correlated features is relevant, so that the estimate is too low where columns
    are correlated. ``neighbors="weighed"`` takes the features with :math:`\Phi_T(j) > 1/2` on one of the paths as
    candidates. With all columns that may stand for them in a Bayesian linear model, :math:`w_j` is the probability
    that feature j is relevant, over all sets of features. Those with the largest :math:`w_j \ge 1/2` are kept, as
    long as the mean of :math:`1 - w_j` is within the level. What all features share is removed first
    (``n_factors``).

    With ``groups`` in ``fit`` (several samples of each patient) features and target are first combined into rows with
    independent noise: by generalised least squares with a random effect of each group, or, where the target is the same
    for all samples of a group, into the means of the groups. A target with the same values in nearly all groups, such
    as tumour and normal tissue, is compared within groups.

    Parameters
    ----------
    n_features_to_select
        None: as many as ``level`` allows.
    level
        Here: the false discovery rate.
    task
        "survival": times to an event give way to their martingale residuals (see `CoxScore`).
    path
        "orthogonal": the column with the largest product with the residual of the least-squares fit (orthogonal
        matching pursuit). "least_angle": least-angle regression, as in the paper. "both": both of them.
    neighbors
        "weighed": the share of false features follows from the probability that each is relevant, which is small if
        others can stand for it. "ignored": from the dummies, as in the paper.
    n_factors
        "auto": those before the largest gap between eigenvalues, if they act on many features.

    Attributes
    ----------
    relative_occurrences_ : ndarray of shape (n_features_in_,)
        :math:`\Phi_T(j)`; ``scores_`` adds 1 for selected features, and a small multiple of the correlation with the
        target to order equal ones.
    q_values_ : ndarray of shape (n_features_in_,)
        Estimated share of false features in the smallest selection, at this T and v, that contains the feature; 1 for
        features that did not enter often enough, or are more likely irrelevant than relevant.
    estimated_fdp_ : float
        Estimated share of false features among the selected ones; 0 if there are none.
    voting_level_ : float
        The share v.
    n_dummies_ : int
        The number L of dummies of an experiment.
    stop_after_ : int
        The number T of dummies after which a path stops.
    n_factors_ : int
        Number of common factors that were removed.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import DummySelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 500))
    >>> y = X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=80)  # the first three features are relevant
    >>> selector = DummySelector(level=0.2, task="regression", random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        *,
        n_features_to_select: int | float | None = None,
        level: float = 0.1,
        path: Literal["both", "orthogonal", "least_angle"] = "both",
        neighbors: Literal["weighed", "ignored"] = "weighed",
        n_experiments: int = 20,
        most_dummies: int = 10,
        n_factors: int | Literal["auto"] = "auto",
        task: Literal["classification", "regression", "survival"] = "classification",
        estimator: Any = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.level = level
        self.path = path
        self.neighbors = neighbors
        self.n_experiments = n_experiments
        self.most_dummies = most_dummies
        self.n_factors = n_factors
        self.task = task
        self.estimator = estimator
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, real targets with ``task="regression"``, or times and events with ``task="survival"``.
        groups : one label per sample; samples of one group, such as those of one patient, may depend on each other.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        return self._fit(X, y, fit_params, groups=groups)

    def _select(self, problem: Problem) -> SelectionPath:
        design = problem.shared.standardized(problem.design)
        target = np.asarray(working_problem(problem).y, dtype=np.float64)
        target = target - target.mean()
        if not np.any(np.abs(target) > 0.0):
            raise ValueError(
                "The target y must vary, but all its values are the same: there is nothing for a feature to "
                "explain. Check y, or the samples that were chosen."
            )
        seed = int(problem.rng.integers(2**63))

        def select(combined: IndependentSamples | None) -> tuple[SelectionPath, IntArray]:
            with problem.progress.task("Running random experiments"):
                path = self._select_from(*self._forward_data(design, target, combined), seed)
            return path, path.order[: path.selected_size]

        columns, groups = target[:, None], problem.sample_groups
        return select_repeatedly(independent_samples(columns, groups), columns, groups, design, select)

    def _select_from(self, data: ForwardData, distribution: UniformDummies, seed: int) -> SelectionPath:
        """The path of features of samples with independent noise."""
        p = data.design.n_features
        names = PATHS if self.path == "both" else (self.path,)
        rounds: dict[str, list[Round]] = {}
        last = np.empty((0, 0))

        def run(columns: FloatArray, chosen: IntArray) -> list[DummyExperiment]:
            nonlocal last
            last, started = columns, []
            for number, name in enumerate(names):

                def start(multiple: int, name: str = name, number: int = number) -> list[DummyExperiment]:
                    streams = np.random.default_rng([seed, number, multiple]).spawn(self.n_experiments)
                    pools = (DummyPool(distribution, multiple * p, rng) for rng in streams)
                    products = data.products[chosen]
                    begun = [PATHS[name](columns, products, data.target, pool) for pool in pools]
                    started.extend(begun)
                    return begun

                rounds[name] = self._calibration(name, p, distribution).rounds(start, columns)
            return started

        chosen = run_on_working_set(data, run)
        if self.neighbors == "ignored":
            every = (best_selection(one, self.level) for one in rounds.values())
            found = max(every, key=lambda one: one.kept.size)
        else:
            found = self._most_relevant(list(rounds.values()), last, data, distribution, seed)
        return self._path_of(found, chosen, data)

    def _most_relevant(
        self,
        paths: list[list[Round]],
        columns: FloatArray,
        data: ForwardData,
        distribution: UniformDummies,
        seed: int,
    ) -> Selection:
        """Of the columns that entered before dummies, those that are relevant with the largest probabilities."""
        joined = widest(paths)
        relevance = relevance_probabilities(
            columns,
            data.target,
            float(distribution.dimension),
            data.design.n_features,
            np.flatnonzero(joined.occurrences > joined.votes[0]),
            np.random.default_rng([seed, len(PATHS)]),
        )
        return most_relevant(joined, relevance, self.level)

    def _calibration(self, path: str, n_features: int, distribution: UniformDummies) -> Calibration:
        """Least-angle paths have all dummies, so that they stop at finer steps; orthogonal ones lose power by that."""
        multiples = range(1, self.most_dummies + 1)
        return Calibration(
            n_features,
            self.level,
            multiples if path == "orthogonal" else multiples[-1:],
            max(1, -(-distribution.dimension // 2)),
        )

    def _forward_data(
        self, design: Design, target: FloatArray, combined: IndependentSamples | None
    ) -> tuple[ForwardData, UniformDummies]:
        """The columns and the target without common factors, and the distribution of the dummies."""
        if combined is not None:
            design = CombinedRowsDesign(design, combined).in_memory(if_small=True).standardized()
            target = combined.dot(target)
        n = design.n_samples
        factors = common_factors(design, None if self.n_factors == "auto" else int(self.n_factors))
        removed = np.column_stack([np.full((n, 1), n**-0.5), factors])
        self.n_factors_ = factors.shape[1]
        return ForwardData(design, removed, target), UniformDummies(removed)

    def _path_of(self, found: Selection, chosen: IntArray, data: ForwardData) -> SelectionPath:
        p = data.design.n_features
        self.n_dummies_, self.stop_after_ = found.round.n_dummies, found.round.stop_after
        self.voting_level_, self.estimated_fdp_ = found.vote, found.false_share
        self.relative_occurrences_ = np.zeros(p)
        self.relative_occurrences_[chosen] = found.round.occurrences
        self.q_values_ = np.ones(p)
        self.q_values_[chosen] = found.q_values
        is_kept = np.zeros(p, dtype=bool)
        is_kept[chosen[found.kept]] = True
        # Occurrences differ by 1/K or more, so that the correlations order equal ones only.
        scores = is_kept + self.relative_occurrences_ + np.abs(data.products) / (2 * self.n_experiments)
        return SelectionPath(
            order=order_by_score(scores, sort=data.design.backend.by_descending_value),
            scores=scores,
            selected_size=int(found.kept.size),
            n_iter=found.round.stop_after,
        )
