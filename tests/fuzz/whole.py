"""The whole matrix, all selectors on all rows, in several processes, with counts.

``python -m fuzz.whole [JOBS [MINUTES [FILE]]]`` writes the counts and the defects to FILE every minute and prints them
at the end. No case begins after MINUTES. Its exit status is 1 if there are defects.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.attempt import DEFECTS, instances
from fuzz.inputs import ROWS
from fuzz.runner import run_cases, table

LIMIT_S = 300.0  # on a busy machine; on a quiet one the slowest case takes two seconds


def report(outcomes: list[tuple[Any, str, str]], total: int) -> str:
    """Counts by kind and one line for each defect."""
    defects = [f"{case}: {kind}: {seen}" for case, kind, seen in outcomes if kind in DEFECTS]
    return "\n".join([f"{len(outcomes)} of {total} cases: {table(outcomes)}", *sorted(defects)])


def main(jobs: int, minutes: float, file: Path | None) -> int:
    end = time.monotonic() + 60.0 * minutes
    cases = [(selector, row) for selector in instances() for row in ROWS]
    np.random.default_rng(0).shuffle(cases)  # a run that ends early has tried some of each
    outcomes: list[tuple[Any, str, str]] = []

    def until_the_end(some: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for case in some:
            if time.monotonic() > end:
                return
            yield tuple(case)

    def work(some: list[tuple[str, str]]) -> None:
        for case, outcome, seen in run_cases("fuzz.worker matrix", until_the_end(some), LIMIT_S):
            outcomes.append((case, outcome, seen))

    threads = [threading.Thread(target=work, args=(cases[k::jobs],)) for k in range(jobs)]
    for thread in threads:
        thread.start()
    while active := [thread for thread in threads if thread.is_alive()]:
        active[0].join(60.0)
        if file is not None:
            file.write_text(report(list(outcomes), len(cases)), encoding="utf-8")
    print(report(outcomes, len(cases)))
    return int(any(kind in DEFECTS for _, kind, _ in outcomes))


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    sys.exit(
        main(
            int(given.get(0, os.cpu_count() or 1)),
            float(given.get(1, 600.0)),
            Path(given[2]) if 2 in given else None,
        )
    )
