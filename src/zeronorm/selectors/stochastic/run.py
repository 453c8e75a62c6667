"""The loop: draw, test, learn, until the steps are done or the weights settle."""

from __future__ import annotations

from dataclasses import dataclass

from zeronorm.selectors.progress import Advance, Progress
from zeronorm.selectors.stochastic.batches import BatchEvaluator
from zeronorm.selectors.stochastic.checkpoint import Checkpoint
from zeronorm.selectors.stochastic.schedule import StepSchedule, StoppingRule, record_steps
from zeronorm.selectors.stochastic.state import RunState
from zeronorm.selectors.stochastic.updates import UpdateRule

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
    schedule: StepSchedule
    stopping: StoppingRule
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
            if self.stopping.is_met(state):
                state.record()
                return Outcome(True, f"the weights settled after {state.step} steps")
            if self.checkpoint is not None and state.step % self.checkpoint_every == 0:
                self.checkpoint.save(state)
        if self.stopping.tol is None:
            return Outcome(True, f"all {self.max_iter} steps were done")
        return Outcome(False, f"the weights still moved after {self.max_iter} steps; raise max_iter or tol.")

    def _step(self) -> bool:
        """One step of the algorithm; False when the rule cannot go on."""
        state, evaluator = self.state, self.evaluator
        errors = evaluator.evaluate(self.rule.cumulative, state.seed, state.step)
        state.n_redrawn += evaluator.last_redrawn
        state.error_sum += float(errors.sum())
        state.error_count += errors.size
        step_size = self.schedule.at(state.step)
        if not self.rule.learn(evaluator.draws.features, errors, step_size, state.seed, state.step):
            return False
        state.step += 1
        return True
