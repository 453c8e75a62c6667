"""Runs cases in worker processes, so that a hang or a crash ends only one case and is counted."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
START_S = 300.0  # imports on a busy machine


class Worker:
    """A process that answers one case at a time."""

    def __init__(self, module: str) -> None:
        path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-m", *module.split()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.answers: queue.Queue[str | None] = queue.Queue()
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def ask(self, case: Any, limit_s: float) -> tuple[str, str]:
        """Outcome of one case; a worker that is late or dead is of no further use."""
        assert self.process.stdin is not None
        try:
            print(json.dumps(case), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return "process death", f"before the case, status {self.process.wait()}"
        for limit in (START_S, limit_s):
            try:
                answer = self.answers.get(timeout=limit)
            except queue.Empty:
                return "hang", f"no answer in {limit:.0f} s"
            if answer is None:
                return "process death", f"status {self.process.wait()}"
        _, outcome, seen = json.loads(answer)
        return outcome, seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.listener.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                pipe.close()


def run_cases(module: str, cases: Iterable[Any], limit_s: float) -> Iterator[tuple[Any, str, str]]:
    """Each case with its outcome; a new worker after each hang or death."""
    worker = Worker(module)
    try:
        for case in cases:
            outcome, seen = worker.ask(case, limit_s)
            if outcome in ("hang", "process death"):
                worker.close()
                worker = Worker(module)
            yield case, outcome, seen
    finally:
        worker.close()


def table(outcomes: Iterable[tuple[Any, str, str]]) -> str:
    """Counts by kind, in one line."""
    counts = Counter(outcome for _, outcome, _ in outcomes)
    return ", ".join(f"{kind}: {count}" for kind, count in counts.most_common())
