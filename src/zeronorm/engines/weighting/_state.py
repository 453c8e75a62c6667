"""The state of a run, in memory or in a checkpoint file, from which the run can be continued."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, Int64Array, written
from zeronorm.design import Design


@dataclass
class History:
    """The trajectory, thinned to a geometric grid of steps.

    Row i holds the state after ``steps[i]`` steps: the ``weights`` then, and the mean error of all subsets
    tried since the row before, an estimate of the energy E(P) on the way.
    """

    steps: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    mean_error: FloatArray = field(default_factory=lambda: np.empty(0))
    weights: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def append(self, step: int, mean_error: float, weights: FloatArray) -> None:
        previous = self.weights.reshape(-1, weights.size)
        self.steps = np.append(self.steps, step)
        self.mean_error = np.append(self.mean_error, mean_error)
        self.weights = np.vstack([previous, weights])

    def safe_record(self, largest_weight: float) -> int:
        """The row with the lowest mean error among those with all weights up to ``largest_weight``; -1 if none."""
        if self.steps.size == 0:
            return -1
        allowed = self.weights.max(axis=1) <= largest_weight
        if not allowed.any():
            return -1
        return int(np.argmin(np.where(allowed, self.mean_error, np.inf)))


@dataclass
class ErrorSums:
    """Running mean and variance of errors that come in batches."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, errors: FloatArray) -> None:
        self.count += errors.size
        self.total += float(errors.sum())
        self.squares += float(errors @ errors)

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def deviation(self) -> float:
        return float(np.sqrt(max(0.0, self.squares / self.count - self.mean**2)))


@dataclass
class RunState:
    """The state of a run after ``step`` steps.

    ``recent`` are the errors since the last row of the history, ``current`` those since the last test of the
    stopping rule, whose ``windows`` (step, mean error, variance of the mean, largest weight), ``lagged`` weights and
    ``next_test`` follow. The rest belongs to adaptive steps: the errors
    of the ``pilot``, the running ``mean_error``, ``effects`` of the features, ``variance`` of the residuals and their
    ``covariance`` between subsets of a step, ``shrinkage``, ``n_steps_back``, and the ``draws_per_feature`` that holds
    weight.
    """

    seed: int
    weights: FloatArray
    step: int = 0
    n_redrawn: int = 0
    next_test: int = -1
    n_steps_back: int = 0
    mean_error: float = 0.0
    shrinkage: float = 1.0
    variance: float = 0.0
    covariance: float = 0.0
    draws_per_feature: float = 0.0
    recent: ErrorSums = field(default_factory=ErrorSums)
    current: ErrorSums = field(default_factory=ErrorSums)
    pilot: ErrorSums = field(default_factory=ErrorSums)
    pilot_means: ErrorSums = field(default_factory=ErrorSums)
    effects: FloatArray = field(default_factory=lambda: np.empty(0))
    windows: FloatArray = field(default_factory=lambda: np.empty((0, 4)))
    lagged: FloatArray | None = None
    history: History = field(default_factory=History)

    @property
    def last_error(self) -> float:
        """Mean error of the subsets in the last window, or in the last row of the trajectory before any window."""
        return float(self.windows[-1, 1] if len(self.windows) else self.history.mean_error[-1])

    @property
    def correlation(self) -> float:
        """Correlation of the errors of subsets that share their samples."""
        together = max(0.0, self.covariance)
        return together / (together + self.variance) if together > 0.0 else 0.0

    def add(self, errors: FloatArray) -> None:
        """Add the errors of one step."""
        self.recent.add(errors)
        self.current.add(errors)

    def record(self) -> None:
        """Append the current state to the trajectory."""
        if self.recent.count:
            self.history.append(self.step, self.recent.mean, self.weights)
        self.recent = ErrorSums()

    def close_window(self) -> None:
        """Append the mean error since the last test."""
        if self.current.count:
            # The errors of subsets that share their samples are correlated, so their mean has a larger variance.
            before = self.windows[-1, 0] if len(self.windows) else 0.0
            batch_size = self.current.count / max(1.0, self.step - before)
            together = max(0.0, self.covariance) * (batch_size - 1.0)
            variance = (self.current.deviation**2 + together) / self.current.count
            row = [self.step, self.current.mean, variance, self.weights.max()]
            self.windows = np.vstack([self.windows, row])
        self.current = ErrorSums()


# -- Saving a run to a file and resuming it with identical results --


class Checkpoint:
    """A checkpoint file that always holds a complete state: it is replaced, never rewritten in place.

    ``settings`` describes the run; a file of another run raises an error that lists the settings that differ.
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
        except (OSError, ValueError, KeyError, EOFError, TypeError) as error:
            raise ValueError(
                f"The checkpoint {self.path} cannot be read ({error}). Delete it to start again."
            ) from error
        self._check(settings)
        return state

    def save(self, state: RunState) -> None:
        """Write the state to a temporary file, then replace the checkpoint by it."""
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
                f"{n}: {written(settings.get(n))} saved, {written(self.settings.get(n))} now"
                for n in differing
            )
            raise ValueError(
                f"The checkpoint {self.path} belongs to another run ({found}). Use the same data and "
                "settings, or delete the file to start again."
            )


def data_digest(design: Design, codes: Int64Array) -> str:
    """A hash of the features and the classes."""
    digest = hashlib.sha256(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
    for _, block in design.iter_blocks():
        digest.update(np.ascontiguousarray(block.T).tobytes())
    return digest.hexdigest()


COUNTERS = ("step", "n_redrawn", "next_test", "n_steps_back")
NUMBERS = ("mean_error", "shrinkage", "variance", "covariance", "draws_per_feature")
SUMS = ("recent", "current", "pilot", "pilot_means")


def _pack(state: RunState) -> dict[str, Any]:
    sums = [getattr(state, name) for name in SUMS]
    return {
        "seed": np.uint64(state.seed),
        "weights": state.weights,
        "counters": np.asarray([getattr(state, name) for name in COUNTERS], dtype=np.int64),
        "numbers": np.asarray([getattr(state, name) for name in NUMBERS]),
        "sums": np.asarray([(s.count, s.total, s.squares) for s in sums]),
        "windows": state.windows,
        "effects": state.effects,
        "lagged": np.empty(0) if state.lagged is None else state.lagged,
        "history_steps": state.history.steps,
        "history_error": state.history.mean_error,
        "history_weights": state.history.weights,
    }


def _unpack(saved: Any) -> RunState:
    fields: dict[str, Any] = {
        "seed": int(saved["seed"]),
        "weights": saved["weights"],
        "windows": saved["windows"],
        "effects": saved["effects"],
    }
    fields |= {name: int(value) for name, value in zip(COUNTERS, saved["counters"], strict=True)}
    fields |= {name: float(value) for name, value in zip(NUMBERS, saved["numbers"], strict=True)}
    for name, (count, total, squares) in zip(SUMS, saved["sums"], strict=True):
        fields[name] = ErrorSums(int(count), float(total), float(squares))
    if saved["lagged"].size:
        fields["lagged"] = saved["lagged"]
    history = History(saved["history_steps"], saved["history_error"], saved["history_weights"])
    return RunState(history=history, **fields)
