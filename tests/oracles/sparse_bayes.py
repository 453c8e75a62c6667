"""The evidence of linear models, by dense covariance matrices and by numerical integration."""

from __future__ import annotations

import numpy as np
from scipy.integrate import dblquad
from scipy.optimize import minimize
from scipy.stats import norm


def gaussian_log_evidence(X, y, precision, noise_variance):
    """Log density of y under N(0, C) with a flat prior on the bias, by integrating the bias out of the density.

    C is built over the samples; log ∫ N(y - b | 0, C) db has a closed form.
    """
    n = len(y)
    inside = np.isfinite(precision)
    C = noise_variance * np.eye(n) + (X[:, inside] / precision[inside]) @ X[:, inside].T
    solved = np.linalg.solve(C, np.column_stack([y, np.ones(n)]))
    total = solved[:, 1].sum()
    quadratic = y @ solved[:, 0] - (y @ solved[:, 1]) ** 2 / total
    return -0.5 * (quadratic + np.linalg.slogdet(C)[1] + np.log(total) + (n - 1) * np.log(2.0 * np.pi))


def bernoulli_log_evidence_by_integration(x, labels, precision):
    """log ∫∫ Π σ(±(w x + b)) N(w | 0, 1/precision) dw db for one feature and a flat bias."""
    sign = 2.0 * labels - 1.0

    def density(b, w):
        return np.exp(-np.logaddexp(0.0, -sign * (w * x + b)).sum()) * norm.pdf(w, scale=precision**-0.5)

    value, _ = dblquad(density, -12.0, 12.0, -12.0, 12.0, epsabs=1e-12, epsrel=1e-6)
    return np.log(value)


def laplace_mode(X, labels, precision, weight):
    """Bias and weights of largest log posterior, by a generic optimiser."""
    sign = 2.0 * labels - 1.0

    def negative(u):
        margin = sign * (X @ u[1:] + u[0])
        slope = -weight * sign * np.exp(-np.logaddexp(0.0, margin))
        value = weight @ np.logaddexp(0.0, -margin) + 0.5 * precision @ u[1:] ** 2
        return value, np.concatenate([[slope.sum()], X.T @ slope + precision * u[1:]])

    start = np.zeros(X.shape[1] + 1)
    return minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
