"""The loop: draw, test, learn, until the steps are done or the weights settle."""

from __future__ import annotations

from dataclasses import dataclass

from zeronorm.engines.weighting.batches import BatchEvaluator
from zeronorm.engines.weighting.state import Checkpoint, RunState
from zeronorm.engines.weighting.steps import MOST_STEPS_BACK, CollapseWatch, Steps, StoppingRule, record_steps
from zeronorm.engines.weighting.updates import UpdateRule
from zeronorm.selection.problem import Advance, Progress

REPORTS_PER_RUN = 200


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    converged: bool
    reason: str


@dataclass
class Run:
    """The parts of a run; ``state`` goes forward with it, its weights being those of ``rule``."""

    state: RunState
    evaluator: BatchEvaluator
    rule: UpdateRule
    steps: Steps
    stopping: StoppingRule
    watch: CollapseWatch
    max_iter: int
    checkpoint: Checkpoint | None = None
    checkpoint_every: int = 1000

    def go(self, progress: Progress, n_jobs: int | None) -> Outcome:
        """Run to the end. A run that is killed leaves its last checkpoint, a finished one leaves none."""
        with self.evaluator.workers(n_jobs), progress.task("Weighting features", self.max_iter) as advance:
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
            if self.checkpoint is not None and state.step % self.checkpoint_every == 0:
                self.checkpoint.save(state)
        return self._end(None)

    def _step(self) -> bool:
        """One step of the algorithm; False when the rule cannot go on."""
        state, evaluator = self.state, self.evaluator
        errors = evaluator.evaluate(self.rule.cumulative, state.seed, state.step)
        state.n_redrawn += evaluator.last_redrawn
        state.add(errors)
        signals = self.steps.signals(state, errors)
        if signals is not None:
            length = self.steps.length(state, self.rule.typical_weight)
            learn = self.rule.learn_relative if self.steps.is_relative else self.rule.learn
            if not learn(evaluator.draws.features, signals, length, state.seed, state.step):
                if not self.steps.is_relative or state.n_steps_back == MOST_STEPS_BACK:
                    return False
                state.n_steps_back += 1
                state.shrinkage /= 2.0
        state.step += 1
        return True

    def _settles(self) -> bool:
        """The stopping rule, unless an earlier law is taken up again."""
        met = self.stopping.is_met(self.state)
        if self.watch.goes_back(self.state):
            self.rule.refresh()
            return False
        return met

    def _end(self, settled: str | None) -> Outcome:
        state = self.state
        if self.watch.is_collapsed(state):
            return Outcome(
                False,
                f"the law collapsed: {state.weights.max():.0%} of the weight is on one feature, and subsets are not "
                "the better for it. Raise max_iter, for smaller steps, or use method='diffusion'.",
            )
        if settled is not None:
            return Outcome(True, settled)
        return Outcome(False, f"the weights still moved after {self.max_iter} steps; raise max_iter or tol.")
