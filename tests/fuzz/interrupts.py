"""Ctrl-C during a fit: the processor time until the fit stops.

``python -m fuzz.interrupts NAME …`` fits each selector on growing data, sends itself the signal after a while, and
prints one JSON line per selector: its name, the outcome and the seconds. The processor's time is counted, as the
clock says little on a busy machine.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress

from sklearn.base import clone

from fuzz.attempt import instances
from fuzz.inputs import clean_data, is_regression

SHAPES = ((120, 1_000), (300, 6_000), (800, 20_000))
WAIT_S = 1.0


def heard_after(selector, n: int, p: int) -> float | None:
    """Seconds from the signal to the KeyboardInterrupt; None where the fit ends before."""
    X, y = clean_data(is_regression(selector), n, p)
    sent: list[float] = []

    def send() -> None:
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(WAIT_S, send)
    timer.start()
    try:
        clone(selector).fit(X, y)
    except KeyboardInterrupt:
        return time.process_time() - sent[0]
    finally:
        timer.cancel()
        with suppress(KeyboardInterrupt):
            timer.join()
    return None


def main(names: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    warnings.simplefilter("ignore")
    selectors = instances()
    for name in names or list(selectors):
        clone(selectors[name]).fit(*clean_data(is_regression(selectors[name])))  # compiles
        outcome: list = ["ends too soon", 0.0]
        for n, p in SHAPES:
            try:
                seconds = heard_after(selectors[name], n, p)
            except (ValueError, MemoryError) as error:
                outcome = ["refuses", str(error)]
                break
            except KeyboardInterrupt:  # after the fit
                seconds = None
            if seconds is not None:
                outcome = [f"{n} x {p}", round(seconds, 2)]
                break
        print(json.dumps([name, *outcome]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
