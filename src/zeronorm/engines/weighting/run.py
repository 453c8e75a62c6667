"""The loop: draw, test, learn, until the steps are done or the weights settle."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm._types import Int64Array
from zeronorm.design import Design
from zeronorm.engines.weighting.batches import BatchEvaluator
from zeronorm.engines.weighting.state import History, RunState, StepSchedule, StoppingRule, record_steps
from zeronorm.engines.weighting.updates import UpdateRule
from zeronorm.selection.progress import Advance, Progress

# -- Saving a run to a file and taking it up again with identical results --


class Checkpoint:
    """One file that always holds a complete state: it is replaced, never rewritten in place.

    ``settings`` describes the run; a file of another run is refused, with the settings that differ.
    """

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.path = Path(path)
        self.settings = json.loads(json.dumps(settings, default=repr))

    def load(self) -> RunState | None:
        """The saved state, or None when there is no file."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as saved:
                settings = json.loads(str(saved["settings"]))
                state = _unpack(saved)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ValueError(
                f"The checkpoint {self.path} cannot be read ({error}). Delete it to start anew."
            ) from error
        self._check(settings)
        return state

    def save(self, state: RunState) -> None:
        """Write the state beside the file, then put it in its place."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(self.path.name + ".tmp")
        with temporary.open("wb") as file:
            np.savez(file, settings=np.array(json.dumps(self.settings)), **_pack(state))
        temporary.replace(self.path)

    def remove(self) -> None:
        """Delete the file of a finished run, so that the next fit starts anew."""
        self.path.unlink(missing_ok=True)

    def _check(self, settings: dict[str, Any]) -> None:
        names = sorted(set(settings) | set(self.settings))
        differing = [name for name in names if settings.get(name) != self.settings.get(name)]
        if differing:
            found = ", ".join(
                f"{n}: {settings.get(n)!r} saved, {self.settings.get(n)!r} now" for n in differing
            )
            raise ValueError(
                f"The checkpoint {self.path} belongs to another run ({found}). Use the same data and "
                "settings, or delete the file to start anew."
            )


def data_digest(design: Design, codes: Int64Array) -> str:
    """A fingerprint of the features and the classes."""
    digest = hashlib.sha256(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
    for _, block in design.iter_blocks():
        digest.update(np.ascontiguousarray(block.T).tobytes())
    return digest.hexdigest()


def _pack(state: RunState) -> dict[str, Any]:
    counters = [state.step, state.n_redrawn, state.error_count, state.next_test]
    return {
        "seed": np.uint64(state.seed),
        "weights": state.weights,
        "counters": np.asarray(counters, dtype=np.int64),
        "error_sum": np.float64(state.error_sum),
        "lagged": np.empty(0) if state.lagged is None else state.lagged,
        "history_steps": state.history.steps,
        "history_error": state.history.mean_error,
        "history_weights": state.history.weights,
    }


def _unpack(saved: Any) -> RunState:
    step, n_redrawn, error_count, next_test = (int(v) for v in saved["counters"])
    lagged = saved["lagged"]
    return RunState(
        seed=int(saved["seed"]),
        weights=saved["weights"],
        step=step,
        n_redrawn=n_redrawn,
        error_sum=float(saved["error_sum"]),
        error_count=error_count,
        lagged=lagged if lagged.size else None,
        next_test=next_test,
        history=History(saved["history_steps"], saved["history_error"], saved["history_weights"]),
    )


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
