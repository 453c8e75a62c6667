"""Censored times with ties, made for tests."""

from __future__ import annotations

import numpy as np

OUTCOME = [("event", bool), ("time", float)]


def outcomes(event, time):
    """A structured array of events and times."""
    y = np.empty(len(time), dtype=OUTCOME)
    y["event"], y["time"] = event, time
    return y


def tied(n: int = 60, seed: int = 0, share: float = 0.6):
    """Times on a coarse grid, so that many are equal, and risks with ties that predict them a little."""
    rng = np.random.default_rng(seed)
    risk = np.round(rng.normal(size=n), 1)
    time = np.ceil(8 * rng.exponential(np.exp(-risk)) + 1e-9)
    event = rng.random(n) < share
    event[np.argmin(time)] = True
    return outcomes(event, time), risk
