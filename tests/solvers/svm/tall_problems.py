"""Small and sparse tall problems."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from zeronorm.design import as_design
from zeronorm.solvers.svm._box_dual import BoxDual

N, P = 12, 3


def problem_of(kind):
    rng = np.random.default_rng(0)
    X, cost = rng.normal(size=(N, P)), rng.uniform(0.5, 2.0, N)
    if kind == "partly hard":
        cost[[1, 5, 6]] = np.inf
    y = np.where(np.arange(N) % 2, 1.0, -1.0)
    if kind.endswith("regression"):
        return X, BoxDual.regression(rng.normal(size=N), cost, 0.3, kind.startswith("squared"))
    return X, BoxDual.classification(y, cost, kind.startswith("squared"))


def tall_sparse(seed=0, n=400, p=30, density=0.1):
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, density=density, format="csr", rng=rng)
    decision = X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
    return as_design(X).standardized(), decision
