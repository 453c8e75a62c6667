"""Linear models of one target, for tests."""

from __future__ import annotations

import numpy as np

from zeronorm.design import Design, as_design
from zeronorm.solvers.linear import LOGISTIC, EpsilonInsensitiveLoss, HingeLoss, LinearProblem, solve

LOSSES = {
    "hinge": HingeLoss(),
    "squared_hinge": HingeLoss(squared=True),
    "logistic": LOGISTIC,
    "epsilon_insensitive": EpsilonInsensitiveLoss(0.1),
    "squared_epsilon_insensitive": EpsilonInsensitiveLoss(0.1, squared=True),
}


def problem_of(y, C=1.0, loss="hinge", **settings):
    y = np.asarray(y, dtype=float)
    costs = np.broadcast_to(np.asarray(C, dtype=float), y.shape)
    return LinearProblem(LOSSES.get(loss, loss), y[:, None], costs[:, None], **settings)


def fit(X, y, *, C=1.0, loss="hinge", epsilon=None, start=None, **settings):
    """The solution for one target; ``start`` is a solution of a similar problem."""
    if epsilon is not None:
        loss = EpsilonInsensitiveLoss(epsilon, squared=loss.startswith("squared"))
    design = X if isinstance(X, Design) else as_design(X)
    state = None if start is None else start.state
    return solve(problem_of(y, C, loss), design, state, **settings)
