"""Optimal feature weighting: learn a probability distribution over features from randomly drawn subsets."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design import Design
from zeronorm.engines._column_information import overall_score
from zeronorm.engines.weighting._exact import run_exact, tabulate_energy
from zeronorm.engines.weighting._experiment import (
    Experiment,
    MultiClass,
    default_subset_sizes,
    estimate_energy,
)
from zeronorm.engines.weighting._held_out import HeldOutEnergy, split_off
from zeronorm.engines.weighting._state import Checkpoint, RunState, data_digest
from zeronorm.engines.weighting._steps import (
    AdaptiveSteps,
    CollapseWatch,
    GivenSteps,
    Outcome,
    Steps,
    WeightingRun,
    default_batch_size,
    default_max_iter,
    planned_steps,
)
from zeronorm.engines.weighting._stopping import DEFAULT_TOL, PrintedRule, StoppingRule
from zeronorm.engines.weighting._updates import make_rule
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import SplittingSelector

METHODS = ("exponential", "euclidean", "diffusion", "exact", "exact_euclidean")
EXACT = {"exact": "exponential", "exact_euclidean": "euclidean"}
EXACT_STEPS, EXACT_BATCH = 1000, 1024
LARGEST_MEMORY_BYTES = 1 << 30


@register(
    "ofw",
    family="stochastic",
    tasks=("binary", "multiclass"),
    reference="Gadat & Younes 2007",
    cost="one fit on k features for each of many thousand draws; p only for the vector of weights",
    oracle="the exact gradient as the mean of the stochastic one, and the formulas in NumPy",
    avoid="little time: it needs many small fits; redundant features: equal ones get equal weights",
    misprints="Figure 4 prints + κP and leaves q out of κ; eqs. 10 to 12 are right.",
    test_params=(
        {"max_iter": 40, "batch_size": 2, "random_state": 0},
        {"method": "exponential", "learner": "centroid", "max_iter": 40, "random_state": 0},
    ),
)
class OptimalFeatureWeighting(SplittingSelector):
    r"""Select by optimal feature weighting (OFW), from the errors of classifiers on random subsets.

    OFW learns a probability distribution P over the features that minimises the mean error of classifiers built on k
    features drawn from it,

    .. math:: \mathcal E(P) = \sum_{\omega} g(\omega) \prod_{i=1}^k P(\omega_i),

    where :math:`g(\omega)` is the expected error on a bootstrap sample :math:`T_2` of the base learner
    trained with the features :math:`\omega` on a bootstrap sample :math:`T_1`. Each step draws
    :math:`\omega` (with replacement), :math:`T_1` and :math:`T_2`, measures the error q, and with
    :math:`C(\omega,\delta)`, the number of times that :math:`\delta` was drawn, moves P by one of

    .. math::
        \text{exponential:}\quad & P(\delta) \propto
            P(\delta)\, e^{-\varepsilon_n (C(\omega,\delta) q - \kappa P(\delta))},
            \quad \kappa = q \textstyle\sum_\delta C(\omega,\delta) P(\delta) / \sum_\delta P(\delta)^2 \\
        \text{euclidean:}\quad & P(\delta) \mathrel{-}= \varepsilon_n q \left(
            \tfrac{C(\omega,\delta)}{P(\delta)} - \tfrac1p \textstyle\sum_\mu \tfrac{C(\omega,\mu)}{P(\mu)}
            \right) \\
        \text{diffusion:}\quad & P = \Pi\left(P - \varepsilon_n \tfrac{C(\omega,\cdot) q}{P}
            + \sqrt{\varepsilon_n \sigma}\, \xi_n\right)

    with steps :math:`\varepsilon_n = \varepsilon/(n+c)`, Gaussian :math:`\xi_n` and :math:`\Pi` the projection
    on the simplex. ``method="exact"`` and ``"exact_euclidean"`` follow the full gradient of the exponential and
    of the Euclidean scheme where the sum over all subsets is feasible.
    Figure 4 of the paper prints :math:`+\kappa P` and leaves q out of :math:`\kappa`; its equations 10 to 12,
    used here, are right.

    Use it to find features that are useful in combination, for any classifier, when there is time for many small fits.
    It does not remove redundancy (equal features get equal weights), and it needs small steps: with steps that are too
    large, chance decides which features win. Without a ``step_size`` the steps follow from the data. From the error,
    the part that does not depend on a feature is subtracted before the weight of the feature is changed: the running
    mean, the mean effect of the other features of the subset, and what the subset has in common with the other subsets
    of the step, which share :math:`T_1` and :math:`T_2`. This leaves the mean of the gradient unchanged and removes
    most of its noise, as does a :math:`T_2` twice as large, drawn without replacement. The remainder is divided by its
    standard deviation. A draw changes a weight by at most 10 %, less in long runs, less when the distribution
    concentrates on few features, and later in proportion to 1/n. When the distribution concentrates on one feature, or
    its subsets become worse, the run goes back to an earlier distribution and halves the steps. With a ``step_size``
    the steps and samples are exactly those of the formulas. A feature drawn twice is one active variable of the
    classifier.

    One dense copy of the features under study is held in memory (in single precision when they are
    standardised), unless it is larger than 1 GiB; then each step reads the columns it needs, which is slower.

    Parameters
    ----------
    n_features_to_select
        None: all features with a weight above the uniform one, 1 / (number of features under study).
    subset_size
        None: the square root of the number of features, at most 100; with nearest neighbours, a second run with four
        features is made (without a ``checkpoint`` or ``step_size``), and the run whose subsets have the lower error in
        the end is kept.
    learner
        "linear_svm", "knn", "cart", "lda" and "centroid" are compiled; an instance
        with other settings (``SubsetSVM(C=10)``) or any scikit-learn classifier is possible too.
    bootstrap_size
        It is the size of the training sample of a subset; the test sample has the same size with a ``step_size``, and
        twice the size without (half for nearest neighbours). None: a quarter of the samples, between 20 and 100; half
        of them, between 20 and 200, for nearest neighbours.
    step_size
        The ε of the paper's formulas. None: the steps follow from the data.
    step_offset
        The c of the paper's formulas. None: the number of steps, so that the last step is half as long as the first.
    batch_size
        The gradients of these subsets are averaged. None: as many as together contain each feature about once, between
        4 and 32.
    max_iter
        One iteration is one step. None: 4000 draws of each feature under the uniform distribution, between 20,000 and
        4,000,000 subsets in all. Adaptive steps are shorter in longer runs, and end after 400,000 subsets if each of
        the :math:`1/\sum P^2` features that hold weight was drawn 4000 times by then.
    tol
        The run ends when max|P_n − P_{n−⌊n/window⌋}| ≤ tol·max P_n and the mean error no longer
        decreases; only then it has converged. None: 0.25; in the exact methods 1e-6, over one step.
    window
        See ``tol``.
    stopping
        "settled": the rule of ``tol``. "held_out": a quarter of the samples (by class, whole groups where ``fit`` gets
        ``groups``) is kept out, and the run ends when the smoothed mean error on them has not decreased for half
        of the steps; the weights are those of its minimum. "printed": the paper's rule to the letter,
        max|P_n − P_{n−⌊n/window⌋}| ≤ tol after any step from ``window`` on, with a given ``step_size``; tol=None is a
        quarter of the uniform weight.
    standardize
        "common": columns of mean 0, all divided by the root of their mean variance, for columns in one unit such as
        intensities of a spectrum, where the large ones carry the signal.
    cost
        "balanced": the mean of the error rates of the classes.
    class_weight
        "balanced": in inverse proportion to the class sizes.
    multi_class
        "auto" is "one_vs_rest" for learners of two classes and "native" otherwise.
    fisher_threshold
        The score is that of FisherScore with ``variant="overall"``; the paper uses 0.01. None: all features are kept.
    checkpoint
        A fit with the same data and settings continues from this file; its results are those of an uninterrupted run.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features_in_,)
        P, one weight per feature. ``scores_`` are these weights, except that those below the uniform weight are
        replaced by smaller numbers in the order of the mean weights during the run.
    history_ : History
        Some steps of the run: their numbers ``steps``, the ``mean_error`` and the ``weights``.
    n_redrawn_ : int
        Number of training samples that contained only one class and were drawn again, for learners that need two.
    stop_reason_ : str
        Why the run ended.
    n_steps_back_ : int
        How often the run went back to earlier weights and continued with smaller steps.
    subset_size_ : int
        Number of features in a subset.
    batch_size_ : int
        Number of subsets per step.
    max_iter_ : int
        Largest number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import OptimalFeatureWeighting
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = OptimalFeatureWeighting(2, learner="knn", random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        method: Literal["exponential", "euclidean", "diffusion", "exact", "exact_euclidean"] = "diffusion",
        subset_size: int | None = None,
        learner: Literal["linear_svm", "knn", "cart", "lda", "centroid"] | Any = "linear_svm",
        bootstrap_size: int | None = None,
        step_size: float | None = None,
        step_offset: float | None = None,
        noise: float = 0.001,
        batch_size: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        window: int = 10,
        stopping: Literal["settled", "held_out", "printed"] = "settled",
        cost: Literal["error", "balanced"] = "error",
        class_weight: Literal["balanced"] | Any = None,
        multi_class: MultiClass = "auto",
        fisher_threshold: float | None = None,
        n_evaluations: int = 50,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1000,
        standardize: bool | Literal["common"] = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.method = method
        self.subset_size = subset_size
        self.learner = learner
        self.bootstrap_size = bootstrap_size
        self.step_size = step_size
        self.step_offset = step_offset
        self.noise = noise
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.window = window
        self.stopping = stopping
        self.cost = cost
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.fisher_threshold = fisher_threshold
        self.n_evaluations = n_evaluations
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- the algorithm --------------------------------------------------------------------------

    def _select(self, problem: Problem) -> SelectionPath:
        scores, active = self._preselect(problem)
        codes = np.asarray(problem.y, dtype=np.int64)
        experiment = Experiment.of(self, problem.design.take(active), codes, self.classes_, problem.rng)
        seed = int(problem.rng.integers(2**63))
        runs = [self._run(replace(experiment, subset_size=k), seed, problem) for k in self._sizes(experiment)]
        best = int(np.argmin([state.last_error for state, _, _ in runs]))
        state, outcome, kept = runs[best]
        self._resolve_sizes(kept)
        self._keep(state, outcome, active, problem.n_features)
        return self._path(scores, active, problem, state.step, outcome)

    def _sizes(self, experiment: Experiment) -> tuple[int, ...]:
        """Subset sizes of the runs, of which the one with the lowest error is kept; one size in most cases."""
        is_one = self.subset_size is not None or self.step_size is not None or self.checkpoint is not None
        if is_one or self.method in EXACT:
            return (experiment.subset_size,)
        return default_subset_sizes(experiment.learner, experiment.subset_size)

    def _run(
        self, experiment: Experiment, seed: int, problem: Problem
    ) -> tuple[RunState, Outcome, Experiment]:
        """One run with one subset size."""
        p = experiment.n_features
        state = RunState(seed, np.full(p, 1.0 / p))
        self._resolve_sizes(experiment)
        if self.method in EXACT:
            outcome = self._run_exact(experiment, state)
        else:
            state, outcome = self._run_stochastic(experiment, state, problem)
        return state, outcome, experiment

    def _run_stochastic(
        self, experiment: Experiment, state: RunState, problem: Problem
    ) -> tuple[RunState, Outcome]:
        tester = None
        if self.stopping == "held_out":
            rows = split_off(problem.target, problem.sample_groups, state.seed % 2**32)
            experiment, tester = experiment.kept_out(*rows)
        steps = self._steps(experiment)
        checkpoint = self._open_checkpoint(experiment, steps, state, problem.design)
        if checkpoint is not None:
            state = checkpoint.load() or state
        p, k = state.weights.size, experiment.subset_size
        first_step = steps.length(RunState(0, state.weights), 1.0 / p)
        lag = max(10, -(-p // (k * self.batch_size_)))
        run = WeightingRun(
            state,
            experiment.evaluator(self.batch_size_, shares_samples=steps.is_relative),
            make_rule(self.method, state.weights, noise=self.noise, first_step=first_step),
            steps,
            self._stopping_rule(p, lag, steps),
            CollapseWatch(k, can_go_back=steps.is_relative),
            self.max_iter_,
            checkpoint,
            self.checkpoint_every,
            None if tester is None else HeldOutEnergy(tester.evaluator(self.batch_size_), self.window * lag),
        )
        return state, run.go(problem.progress, self.n_jobs)

    def _stopping_rule(self, n_features: int, lag: int, steps: Steps) -> StoppingRule | PrintedRule:
        if self.stopping != "printed":
            return StoppingRule(self.window, self.tol or DEFAULT_TOL, lag, steps.first_settled)
        if PrintedRule.bytes_needed(n_features, self.max_iter_, self.window) > LARGEST_MEMORY_BYTES:
            raise parameter_error(
                self, "window", "larger with stopping='printed', which holds max_iter / window distributions"
            )
        return PrintedRule(self.window, self.tol or DEFAULT_TOL / n_features)

    def _run_exact(self, experiment: Experiment, state: RunState) -> Outcome:
        evaluator = experiment.evaluator(self.batch_size_)
        with evaluator.workers(self.n_jobs):
            energy = tabulate_energy(evaluator, state.weights.size, self.n_evaluations, state.seed)
        return run_exact(energy, state, scheme=EXACT[self.method], max_iter=self.max_iter_, tol=self.tol)

    # -- parts ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if self.checkpoint is not None and self.method in EXACT:
            raise parameter_error(self, "checkpoint", f"None with method={self.method!r}")
        if self.step_offset is not None and self.step_size is None:
            raise parameter_error(self, "step_offset", "None when 'step_size' is None")
        if self.stopping == "printed" and (self.step_size is None or self.method in EXACT):
            # The first adaptive steps are of length zero, and the exact methods have their own test.
            raise parameter_error(self, "stopping", "another with an exact method or without 'step_size'")
        if self.stopping == "held_out" and self.method in EXACT:
            raise parameter_error(self, "stopping", f"'settled' with method={self.method!r}")
        if self.checkpoint is not None and self.stopping != "settled":
            raise parameter_error(self, "checkpoint", f"None with stopping={self.stopping!r}")

    def _preselect(self, problem: Problem) -> tuple[FloatArray, Int64Array]:
        """Fisher scores (zeros when not needed) and the features above the threshold."""
        threshold = self.fisher_threshold
        if threshold is None:
            return np.zeros(problem.n_features), np.arange(problem.n_features)
        scores = overall_score(problem.column_stats())
        active = np.flatnonzero(scores > threshold)
        if active.size == 0:
            raise parameter_error(
                self, "fisher_threshold", f"None or less than the largest Fisher score, {scores.max():.3g}"
            )
        return scores, active

    def _resolve_sizes(self, experiment: Experiment) -> None:
        """Set the numbers of features, subsets and steps that are None."""
        p, k = experiment.n_features, experiment.subset_size
        self.subset_size_ = k
        if self.method in EXACT:
            self.batch_size_, self.max_iter_ = EXACT_BATCH, self.max_iter or EXACT_STEPS
        else:
            self.batch_size_ = self.batch_size or default_batch_size(p, k)
            self.max_iter_ = self.max_iter or default_max_iter(p, k, self.batch_size_)

    def _steps(self, experiment: Experiment) -> Steps:
        if self.step_size is not None:
            return GivenSteps(float(self.step_size), float(self.step_offset or self.max_iter_))
        return AdaptiveSteps(
            experiment.n_features,
            experiment.subset_size,
            self.batch_size_,
            planned_steps(self.max_iter_, self.batch_size_),
            1.0 / experiment.bootstrap_size,
        )

    def _open_checkpoint(
        self, experiment: Experiment, steps: Steps, state: RunState, design: Design
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = (
            experiment.describe()
            | steps.describe()
            | {
                "method": self.method,
                "noise": self.noise,
                "batch_size": self.batch_size_,
                "tol": self.tol,
                "window": self.window,
                "max_iter": self.max_iter_,
                "data": data_digest(design, experiment.codes),
            }
        )
        if self.random_state is not None:
            settings["seed"] = state.seed
        return Checkpoint(self.checkpoint, settings)

    def _keep(self, state: RunState, outcome: Outcome, active: Int64Array, n_features: int) -> None:
        self.weights_ = np.zeros(n_features)
        self.weights_[active] = state.weights
        self.history_ = state.history
        if active.size < n_features:
            rows = np.zeros((len(state.history.steps), n_features))
            rows[:, active] = state.history.weights
            self.history_.weights = rows
        self.n_redrawn_, self.n_steps_back_ = state.n_redrawn, state.n_steps_back
        self.stop_reason_ = outcome.reason

    def _path(
        self, scores: FloatArray, active: Int64Array, problem: Problem, n_iter: int, outcome: Outcome
    ) -> SelectionPath:
        """Features by weight; those that the Fisher score left out follow by that score."""
        left_out = np.setdiff1d(np.arange(problem.n_features), active)
        ranked = self._ranked_scores(active)
        order = np.concatenate(
            [active[order_by_score(ranked[active])], left_out[order_by_score(scores[left_out])]]
        )
        path = SelectionPath(
            order=order,
            scores=ranked,
            selected_size=int(np.count_nonzero(self.weights_ > 1.0 / active.size)),
            n_iter=n_iter,
            converged=outcome.converged,
            remedy=outcome.reason,
        )
        stats = problem.design.column_stats()
        return path.demote(stats.is_constant(problem.design.dtype))

    def _ranked_scores(self, active: Int64Array) -> FloatArray:
        """Scores: the weights; below the uniform weight, numbers in the order of the mean weights during the run.

        Small weights at the end are zero or noise of the diffusion, while their means show which features kept a
        weight longest.
        """
        bound = 1.0 / active.size
        ranked = self.weights_.copy()
        small = active[ranked[active] < bound]
        if small.size and self.history_.steps.size:
            mean_weights = self.history_.weights[:, small].mean(axis=0)
            ranked[small] = 0.999 * bound * mean_weights / mean_weights.max()
        return ranked

    # -- the energy -----------------------------------------------------------------------------

    def mean_error(
        self,
        X: Any,
        y: Any,
        X_test: Any = None,
        y_test: Any = None,
        *,
        weights: FloatArray | None = None,
        n_subsets: int = 1000,
        random_state: Any = None,
    ) -> float:
        """Mean error of classifiers on subsets drawn from ``weights_`` (or others): the energy E(P).

        Each is trained on a bootstrap sample of X and tested on one of X_test, by default of X too.
        """
        check_is_fitted(self, "weights_")
        distribution = self.weights_ if weights is None else np.asarray(weights, dtype=np.float64)
        test = None if X_test is None else (X_test, y_test)
        return estimate_energy(
            self, distribution, (X, y), test, n_subsets=n_subsets, random_state=random_state
        )
