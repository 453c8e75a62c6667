"""Ctrl-C during a fit: the longest time for which a fit does not listen, and the time until it ends.

``python -m fuzz.interrupts NAME …`` fits each selector on tall and on wide tables that grow until a fit takes longer
than ``LONG_S``, and prints one JSON line per selector and form: its name, the table and the seconds. A timer sends
signals all the time; the longest gap between two that Python handles is the longest time that Ctrl-C could have to
wait, at whichever moment it came. The processor's time is counted, as the clock says little on a busy machine.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings
from typing import Any

from sklearn.base import clone

from fuzz.attempt import instances
from fuzz.inputs import clean_data, is_regression

FORMS = {
    "tall": ((1_000, 60), (4_000, 200), (20_000, 300)),
    "wide": ((120, 1_000), (300, 6_000), (800, 20_000)),
}
LONG_S = 5.0
EVERY_S = 0.05


class Listener:
    """Counts how long Python does not handle signals, and raises KeyboardInterrupt after ``LONG_S``."""

    def __init__(self) -> None:
        self.start = self.last = time.process_time()
        self.longest = 0.0
        self.raised: float | None = None

    def __call__(self, *_: Any) -> None:
        now = time.process_time()
        self.longest = max(self.longest, now - self.last)
        self.last = now
        if self.raised is None and now - self.start > LONG_S:
            self.raised = now
            raise KeyboardInterrupt


def slowest_answer(selector: Any, n: int, p: int) -> float | None:
    """Processor seconds that Ctrl-C could have to wait; None where the fit ends before ``LONG_S``."""
    X, y = clean_data(is_regression(selector), n, p)
    listener = Listener()
    signal.signal(signal.SIGALRM, listener)
    signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
    try:
        clone(selector).fit(X, y)
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if listener.raised is None:
        return None
    return max(listener.longest, time.process_time() - listener.raised)


def outcome_of(selector: Any, shapes: Any) -> tuple[str, Any]:
    """The first table on which a fit takes long, and the seconds."""
    for n, p in shapes:
        try:
            seconds = slowest_answer(selector, n, p)
        except (ValueError, MemoryError) as error:
            return "refuses", str(error)
        if seconds is not None:
            return f"{n} x {p}", round(seconds, 2)
    return "ends too soon", 0.0


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    selectors = instances()
    for name in names or list(selectors):
        clone(selectors[name]).fit(*clean_data(is_regression(selectors[name])))  # compiles
        for form, shapes in FORMS.items():
            print(json.dumps([name, form, *outcome_of(selectors[name], shapes)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
