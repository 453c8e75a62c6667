"""Data for sparse Bayesian learning."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solvers.problems import classification, regression
from zeronorm.design import as_design
from zeronorm.solvers.sparse_bayes._posterior import BernoulliLikelihood, GaussianLikelihood
from zeronorm.solvers.sparse_bayes._sequential import _State


def labels(n=120, p=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = np.column_stack([2.0 * X[:, 0], -2.0 * X[:, 0] + X[:, 1], 2.0 * X[:, 2]])[:, :n_classes]
    y = np.argmax(signal + rng.gumbel(size=signal.shape), axis=1)
    targets = (y[:, None] == np.arange(n_classes)).astype(float)
    return X, targets[:, 1:] if n_classes == 2 else targets


def counts(n=150, p=30, seed=1):
    X = np.random.default_rng(seed).poisson(0.4, size=(n, p)).astype(float)
    return as_design(X).standardized(), as_design(sparse.csc_array(X)).standardized()


N, P = 25, 10


WEIGHT = np.linspace(0.5, 1.5, N)


def state_of(kind, make=np.asarray, active=(), precision=(), tol=1e-3):
    X, y = regression(N, P) if kind == "target" else classification(N, P, noise=2.0)
    if kind == "target":
        likelihood = GaussianLikelihood(y, WEIGHT, noise_variance=0.4)
    else:
        codes = np.arange(N) % 3 if kind == "classes" else (y > 0).astype(int)
        targets = np.eye(3)[codes] if kind == "classes" else codes[:, None].astype(float)
        likelihood = BernoulliLikelihood(targets, WEIGHT)
    state = _State(as_design(make(X)), likelihood, tol, 100)
    if len(active):
        state._hold(np.array(active))
        state.precision = np.array([0.0, *precision])
        state.posterior = state._posterior(np.zeros((likelihood.n_outputs, len(active) + 1)))
    return X, y, state
