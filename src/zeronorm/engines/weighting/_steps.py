"""The loop of a run (draw, test, update) and its step sizes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting._batches import BatchEvaluator
from zeronorm.engines.weighting._held_out import HeldOutEnergy
from zeronorm.engines.weighting._state import Checkpoint, RunState
from zeronorm.engines.weighting._stopping import PrintedRule, StoppingRule
from zeronorm.engines.weighting._updates import UpdateRule, centre_errors, common_share, learn_effects
from zeronorm.selection._problem import Advance, Progress

REPORTS_PER_RUN = 200

# -- Step sizes of the paper, given by the user --


@dataclass(frozen=True)
class GivenSteps:
    r"""Step sizes :math:`\varepsilon_n = \varepsilon / (n + c)` on the errors without scaling."""

    size: float
    offset: float

    is_relative = False
    first_settled = 0

    def at(self, n: int) -> float:
        return self.size / (n + self.offset)

    def length(self, state: RunState, typical_weight: float) -> float:
        return self.at(state.step)

    def signals(self, state: RunState, errors: FloatArray, features: Int64Array) -> FloatArray | None:
        return errors

    def is_enough(self, state: RunState) -> bool:
        """Whether the run may end before its largest number of steps: never."""
        return False

    def describe(self) -> dict[str, float]:
        """Settings that must agree with those of a checkpoint."""
        return {"step_size": self.size, "step_offset": self.offset}


# -- Adaptive step sizes, estimated from the draws --

# Draws from the uniform distribution that estimate the mean and the variance of the errors.
PILOT_DRAWS = 400
LARGEST_PILOT_SHARE = 0.1
# Memory of the running mean error, in draws.
MEMORY = 100
LARGEST_SIGNAL = 3.0
# How fast the effects of the features are learned, divided by the number of features drawn.
EFFECT_RATE = 0.1
# Memory of the variance of the signals, in draws.
SCALE_MEMORY = 2000
# The first steps change a weight by at most this fraction for a signal of one,
LARGEST_CHANGE = 0.1
# and noise alone changes its logarithm by about this much over a tenth of the planned draws.
CHANCE = 1.0
CHANCE_SHARE = 0.1
# The step sizes decrease as 1/n after this fraction of the planned steps.
OFFSET_SHARE = 0.3


@dataclass(frozen=True)
class AdaptiveSteps:
    r"""Steps in units of the typical weight, on centred errors in units of their standard deviation.

    The signal for the feature :math:`\omega_i` of a subset is the error q of the subset minus its prediction without
    that feature,

    .. math:: \Big(q - m - \sum_{j \ne i} (e(\omega_j) - \bar e) - c\,h\Big) / s,

    with m the mean error of the draws before, e the effects of the features, learned by least squares on the way,
    h the mean residual of the other subsets of the step, which share the samples, c the multiple of it that
    predicts best, and s the standard deviation of the numerator. None of it depends on :math:`\omega_i`, and a number
    h that does not depend on :math:`\omega_i` does not change the mean step: :math:`E\,1\{\omega_i = \delta\} h =
    P(\delta)\,E h` has no component along the simplex in the metric of either scheme. Only the clipping of signals
    at three standard deviations biases the mean.

    A weight near the typical one, :math:`\bar P = \sum_\delta P(\delta)^2`, is drawn :math:`k \bar P` times per
    subset, each time with a signal of variance one. Steps of relative length

    .. math:: a_n = \min\left(0.1, \frac{\sigma}{\sqrt{k B / p}}\right) \frac{1}{\sqrt{p \bar P}}
        \Big/ \left(1 + \frac nc\right)

    hence move its logarithm by :math:`\sigma` at most if B draws contain nothing but noise. They decrease
    as the distribution concentrates on few features, which are drawn more often, and as 1/n after c steps.
    """

    n_features: int
    subset_size: int
    batch_size: int
    planned_steps: int
    smallest_error: float

    is_relative = True

    @property
    def offset(self) -> float:
        return max(1.0, OFFSET_SHARE * self.planned_steps)

    @property
    def first_settled(self) -> int:
        """Least number of steps before the distribution may count as converged."""
        return int(self.planned_steps / 2)

    @property
    def pilot_draws(self) -> int:
        share = LARGEST_PILOT_SHARE * self.planned_steps * self.batch_size
        return max(self.batch_size, int(min(PILOT_DRAWS, share)))

    def length(self, state: RunState, typical_weight: float) -> float:
        """The relative change of a typical weight by one draw with a signal of one."""
        draws = CHANCE_SHARE * self.planned_steps * self.batch_size
        first = min(LARGEST_CHANGE, CHANCE / float(np.sqrt(self.subset_size / self.n_features * draws)))
        contiguous = float(np.sqrt(self.n_features * typical_weight))
        return state.shrinkage * first / contiguous / (1.0 + state.step / self.offset)

    def signals(self, state: RunState, errors: FloatArray, features: Int64Array) -> FloatArray | None:
        """Centred and scaled errors for each drawn feature; None while the first draws are collected."""
        if state.pilot.count < self.pilot_draws:
            self._start(state, errors)
            return None
        level = float(state.effects @ state.weights)
        centred = np.empty(features.shape)
        known = (state.mean_error, common_share(state.correlation, errors.size))
        together = centre_errors(features, errors, *known, state.effects, level, centred)
        rest = learn_effects(features, centred, level, EFFECT_RATE / self.subset_size, state.effects)
        scale = max(float(np.sqrt(state.variance)), 0.5 * self.smallest_error)
        state.mean_error += _forgotten(MEMORY, errors.size) * (float(errors.mean()) - state.mean_error)
        forgotten = _forgotten(SCALE_MEMORY, errors.size)
        state.variance += forgotten * (rest - state.variance)
        state.covariance += forgotten * (together - state.covariance)
        return np.clip(centred / scale, -LARGEST_SIGNAL, LARGEST_SIGNAL)

    def _start(self, state: RunState, errors: FloatArray) -> None:
        """Estimate from the first draws the mean of the errors and their variance within and between samples."""
        state.pilot.add(errors)
        state.pilot_means.add(errors.mean(keepdims=True))
        whole, of_means, size = state.pilot.deviation**2, state.pilot_means.deviation**2, errors.size
        state.mean_error = state.pilot.mean
        state.variance = (whole - of_means) * size / (size - 1) if size > 1 else whole
        state.covariance = whole - state.variance
        state.effects = np.zeros(self.n_features)

    def is_enough(self, state: RunState) -> bool:
        """Whether the planned steps are done and features that hold weight were drawn often enough."""
        return state.step >= self.planned_steps and state.draws_per_feature >= DRAWS_PER_FEATURE

    def describe(self) -> dict[str, float]:
        """Settings that must agree with those of a checkpoint."""
        return {"planned_steps": self.planned_steps}


Steps = GivenSteps | AdaptiveSteps


def _forgotten(memory: int, n_draws: int) -> float:
    """The weight of a number of new draws in a running mean."""
    return 1.0 - float((1.0 - 1.0 / memory) ** n_draws)


# -- Number of steps and batch size --

# How often a run draws each feature that holds weight, under the uniform distribution all of them.
DRAWS_PER_FEATURE = 4000
FEWEST_DRAWS, PLANNED_DRAWS, MOST_DRAWS = 20_000, 400_000, 4_000_000
SMALLEST_BATCH, LARGEST_BATCH = 4, 32


def default_batch_size(n_features: int, subset_size: int) -> int:
    """Number of subsets per step that together contain each feature about once, between 4 and 32."""
    return int(np.clip(n_features // subset_size, SMALLEST_BATCH, LARGEST_BATCH))


def default_max_iter(n_features: int, subset_size: int, batch_size: int) -> int:
    """Steps in which a uniform distribution draws each feature 4000 times, with 20 000 to 4 000 000 subsets in all."""
    draws = np.clip(DRAWS_PER_FEATURE * n_features / subset_size, FEWEST_DRAWS, MOST_DRAWS)
    return int(np.ceil(draws / batch_size))


def planned_steps(max_iter: int, batch_size: int) -> int:
    r"""Steps that the step sizes are planned for, with at most 400 000 subsets.

    A run goes on after them while features that hold weight were drawn fewer than 4000 times. These are counted by
    :math:`\sum_n k B \sum_\delta P_n(\delta)^2`: the weight is on about :math:`1 / \sum P^2` features.
    """
    return min(max_iter, -(-PLANNED_DRAWS // batch_size))


# -- Recovery from a collapse --

# A larger weight of one feature, where three or more are drawn, is a collapse unless the errors decreased; two
# equally good features have about half each.
COLLAPSED_WEIGHT = 2.0 / 3.0
SAFE_WEIGHT = 0.25
MOST_STEPS_BACK = 5


@dataclass(frozen=True)
class CollapseWatch:
    """Detects a distribution that collapses to one feature or yields worse subsets, and restores a better one."""

    subset_size: int
    can_go_back: bool

    def is_collapsed(self, state: RunState) -> bool:
        """Whether one feature has most of the weight, and the errors did not decrease."""
        if self.subset_size < 3 or state.weights.size < 3 or state.weights.max() <= COLLAPSED_WEIGHT:
            return False
        if self.can_go_back and state.n_steps_back == 0:
            return True
        return _excess(state.windows, state.windows[:-1, 3] <= COLLAPSED_WEIGHT) > -2.0

    @staticmethod
    def is_worse(state: RunState) -> bool:
        """Whether the errors of the subsets increased significantly."""
        return _excess(state.windows, np.ones(len(state.windows[:-1]), dtype=bool)) > 4.0

    def goes_back(self, state: RunState) -> bool:
        """Restore an earlier distribution with half the step if needed; called after each window. True if restored."""
        if not self.can_go_back or state.n_steps_back == MOST_STEPS_BACK:
            return False
        collapsed = self.is_collapsed(state)
        if not collapsed and not self.is_worse(state):
            return False
        earlier = state.history.safe_record(SAFE_WEIGHT if collapsed else 1.0)
        if earlier < 0:
            return False
        state.weights[:] = state.history.weights[earlier]
        state.mean_error = float(state.history.mean_error[earlier])
        state.shrinkage /= 2.0
        state.n_steps_back += 1
        state.lagged = state.weights.copy()
        return True


def _excess(windows: FloatArray, compared: NDArray[np.bool_]) -> float:
    """Number of standard errors by which the last mean error exceeds the lowest of the compared windows.

    The window with the lowest mean tends to have a small variance by chance: the larger variance is used for both.
    """
    if not compared.any():
        return 0.0
    lengths, means = np.diff(windows[:, 0], prepend=0.0), windows[:, 1]
    best = int(np.argmin(np.where(compared, means[:-1], np.inf)))
    of_steps = max(windows[window, 2] * lengths[window] for window in (best, -1))
    chance = float(np.sqrt(of_steps / lengths[best] + of_steps / lengths[-1]))
    return float(means[-1] - means[best]) / chance if chance > 0 else 0.0


def record_steps(max_iter: int, size: int = 40) -> Int64Array:
    """Steps, on a geometric grid that ends at ``max_iter``, at which the trajectory is kept."""
    return np.unique(np.geomspace(1, max_iter, min(size, max_iter)).round().astype(np.int64))


# -- The loop: draw, test, update, until the steps are done or the weights converge --


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    converged: bool
    reason: str


@dataclass
class WeightingRun:
    """The components of a run; ``state`` is updated in it and shares its weights with ``rule``."""

    state: RunState
    evaluator: BatchEvaluator
    rule: UpdateRule
    steps: Steps
    stopping: StoppingRule | PrintedRule
    watch: CollapseWatch
    max_iter: int
    checkpoint: Checkpoint | None = None
    checkpoint_every: int = 1000
    held_out: HeldOutEnergy | None = None

    def go(self, progress: Progress, n_jobs: int | None) -> Outcome:
        """Run to the end; a killed run leaves its last checkpoint, a finished one deletes it."""
        testers = nullcontext() if self.held_out is None else self.held_out.workers(n_jobs)
        task = progress.task("Weighting features", self.max_iter)
        with self.evaluator.workers(n_jobs), testers, task as advance:
            advance(self.state.step)
            outcome = self._loop(advance)
        if self.checkpoint is not None:
            self.checkpoint.remove()
        return outcome

    def _loop(self, advance: Advance) -> Outcome:
        state = self.state
        recorded = set(record_steps(self.max_iter).tolist())
        report_every = max(1, self.max_iter // REPORTS_PER_RUN)
        while state.step < self.max_iter:
            if not self._step():
                state.record()
                return Outcome(False, f"stopped at step {state.step}: {self.rule.failure}")
            if state.step in recorded:
                state.record()
            if state.step % report_every == 0:
                advance(report_every)
            if self.stopping.is_due(state) and self._settles():
                state.record()
                return self._end(f"the weights settled after {state.step} steps")
            if self.held_out is not None and self.held_out.stops(state, self.rule.cumulative):
                break
            if self.steps.is_enough(state):
                break
            if self.checkpoint is not None and state.step % self.checkpoint_every == 0:
                self.checkpoint.save(state)
        return self._end(None)

    def _step(self) -> bool:
        """One step of the algorithm; False when the rule cannot go on."""
        state, evaluator = self.state, self.evaluator
        errors = evaluator.evaluate(self.rule.cumulative, state.seed, state.step)
        state.n_redrawn += evaluator.last_redrawn
        state.add(errors)
        signals = self.steps.signals(state, errors, evaluator.draws.features)
        if signals is not None:
            length = self.steps.length(state, self.rule.typical_weight)
            learn = self.rule.learn_relative if self.steps.is_relative else self.rule.learn
            if not learn(evaluator.draws.features, signals, length, state.seed, state.step):
                if not self.steps.is_relative or state.n_steps_back == MOST_STEPS_BACK:
                    return False
                state.n_steps_back += 1
                state.shrinkage /= 2.0
        state.draws_per_feature += float(evaluator.draws.features.size) * self.rule.typical_weight
        state.step += 1
        return True

    def _settles(self) -> bool:
        """Apply the stopping rule, unless an earlier distribution is restored."""
        met = self.stopping.is_met(self.state)
        if self.watch.goes_back(self.state):
            self.rule.refresh()
            return False
        return met

    def _end(self, settled: str | None) -> Outcome:
        state = self.state
        if self.held_out is not None and self.held_out.restore(state):
            self.rule.refresh()
            return Outcome(True, self.held_out.reason)
        if self.watch.is_collapsed(state):
            return Outcome(
                False,
                f"the distribution collapsed: {state.weights.max():.0%} of the weight is on one feature, and the error "
                "of the subsets did not decrease. Raise max_iter, for smaller steps, or use method='diffusion'.",
            )
        if settled is not None:
            return Outcome(True, settled)
        return Outcome(False, f"the weights still moved after {state.step} steps; raise max_iter or tol.")
