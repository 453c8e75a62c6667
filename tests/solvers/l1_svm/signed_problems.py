"""A small problem with signed rows."""

from __future__ import annotations

import numpy as np

from zeronorm.solvers.l1_svm._newton import SignedProblem


def problem_of(n=11, p=4, seed=0, gradient=0.0, loss=0.0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    rows = np.column_stack([sign[:, None] * rng.normal(size=(n, p)), sign])
    target = rng.uniform(0.5, 1.5, n)
    return SignedProblem(
        rows,
        target,
        rng.uniform(0.5, 2.0, n),
        rng.uniform(0.5, 1.5, p),
        gradient * rng.normal(size=p + 1),
        loss,
    )
