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

import numpy as np
from sklearn.base import clone

from fuzz.attempt import instances
from fuzz.inputs import clean_data, is_regression

FORMS = {
    "tall": ((1_000, 60), (4_000, 200), (20_000, 300)),
    "wide": ((120, 1_000), (300, 6_000), (800, 20_000)),
}
LONG_S = 5.0
EVERY_S = 0.05
NEED_SEPARABLE = ("MarginLP",)


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


def noisy_data(selector: Any, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Data with a weak signal, on which iterations are long, except where a hard margin needs separable classes."""
    regression = is_regression(selector)
    X, y = clean_data(regression, n, p)
    if type(selector).__name__ in NEED_SEPARABLE:
        return X, y
    rng = np.random.default_rng(1)
    if regression:
        return X, y + 3.0 * rng.normal(size=n)
    X[:, 1] -= 1.5 * (2 * y - 1)
    return X, np.where(rng.random(n) < 0.25, 1 - y, y)


def slowest_answer(selector: Any, n: int, p: int) -> tuple[float, bool]:
    """Processor seconds that Ctrl-C could have to wait, and whether the fit took longer than ``LONG_S``."""
    X, y = noisy_data(selector, n, p)
    listener = Listener()
    signal.signal(signal.SIGALRM, listener)
    signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
    try:
        clone(selector).fit(X, y)
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    ended = time.process_time()
    if listener.raised is None:
        return max(listener.longest, ended - listener.last), False
    return max(listener.longest, ended - listener.raised), True


def outcome_of(selector: Any, shapes: Any) -> tuple[str, Any]:
    """The first table on which a fit takes long, else the largest, and the seconds that Ctrl-C may wait."""
    found: tuple[str, Any] = ("", 0.0)
    for n, p in shapes:
        try:
            seconds, is_long = slowest_answer(selector, n, p)
        except (ValueError, MemoryError) as error:
            return (f"refuses {n} x {p}", str(error)) if not found[0] else found
        found = f"{n} x {p}" + ("" if is_long else ", ends before"), round(seconds, 2)
        if is_long:
            break
    return found


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    selectors = instances()
    for name in names or list(selectors):
        clone(selectors[name]).fit(*clean_data(is_regression(selectors[name])))  # compiles
        for form, shapes in FORMS.items():
            print(json.dumps([name, form, *outcome_of(selectors[name], shapes)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
