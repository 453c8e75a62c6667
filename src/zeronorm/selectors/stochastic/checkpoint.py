"""Saving a run to a file and taking it up again with identical results."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.design import Design
from zeronorm.selectors.stochastic.pool import IntArray
from zeronorm.selectors.stochastic.state import History, RunState


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


def data_digest(design: Design, codes: IntArray) -> str:
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
