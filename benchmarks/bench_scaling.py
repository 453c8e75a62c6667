"""Scaling factors: cost of a gradient, descents to convergence, kernel multiplicative updates."""

from __future__ import annotations

import numpy as np

from harness import Measurement, job, load, timed, under, wide_problem
from zeronorm import KernelMultiplicativeUpdate, RadiusMarginScaling
from zeronorm.criteria import LinearKernel, RadiusMargin, RBFKernel, ScaledKernel, Summed
from zeronorm.design import as_design
from zeronorm.engines.factor_descent._criterion import ScaledCriterion


def _gradient_against_gram(limit: float, kernel: ScaledKernel) -> Measurement:
    """One evaluation of R²W² with the slopes of all features: Gram matrix, SVM, sphere and slopes together."""
    X, y = wide_problem(100, 10_000)
    design = as_design((X - X.mean(axis=0)) / X.std(axis=0))
    scale_sq = np.random.default_rng(0).uniform(0.5, 1.5, size=10_000)
    objective = ScaledCriterion(
        design, kernel, Summed(RadiusMargin(1.0, "radius", 1e-6)), 2.0 * y[:, None] - 1.0
    )
    objective(scale_sq)  # compile
    # In turn, so that both meet the same load of the computer.
    gradients, grams = [], []
    for k in range(15):
        objective.last = None
        shifted = scale_sq * (1.0 + 0.01 * k)
        gradients.append(timed(lambda at=shifted: objective(at))[0])
        grams.append(timed(lambda at=shifted: objective.design.gram(at))[0])
    ours, gram = float(np.median(gradients)), float(np.median(grams))
    note = f"{ours / gram:.2f} × the Gram matrix; cold start of the SVMs"
    return Measurement(
        ours, f"at most {limit:g} × the Gram matrix", ours <= limit * gram, "Gram matrix", gram, note
    )


@job("gradient of R2W2, linear, 100x10000")
def gradient_linear() -> Measurement:
    return _gradient_against_gram(3.0, LinearKernel())


@job("gradient of R2W2, rbf, 100x10000")
def gradient_rbf() -> Measurement:
    return _gradient_against_gram(10.0, RBFKernel(1e-4))


def _to_convergence(limit_s: float, kernel: str) -> Measurement:
    X, y = load("colon")
    RadiusMarginScaling(kernel=kernel, max_iter=1, step=None, tol=1e6).fit(X, y)  # compile
    fitted = []
    measured = under(limit_s, lambda: fitted.append(RadiusMarginScaling(kernel=kernel).fit(X, y)))
    s = fitted[0]
    note = f"{s.n_iter_} steps, converged: {s.converged_}, {s.path_.selected_size} factors above zero, then down to one"
    return Measurement(**{**measured.__dict__, "note": note, "reached": measured.reached and s.converged_})


@job("radius-margin scaling, linear, 62x2000")
def descent_linear() -> Measurement:
    return _to_convergence(3.0, "linear")


@job("radius-margin scaling, rbf, 62x2000")
def descent_rbf() -> Measurement:
    return _to_convergence(20.0, "rbf")


@job("kernel multiplicative update, rbf, to 100, 326x9500")
def multiplicative_update() -> Measurement:
    X, y = wide_problem(326, 9500, n_relevant=50)
    KernelMultiplicativeUpdate(5, C=10.0, max_iter=2, tol=1e6).fit(X[:, :50], y)  # compile
    fitted = []
    measured = under(
        60.0, lambda: fitted.append(KernelMultiplicativeUpdate(100, C=10.0, stop_at=100).fit(X, y))
    )
    note = f"{fitted[0].n_iter_} SVMs trained, {fitted[0].n_features_} features kept"
    return Measurement(**{**measured.__dict__, "note": note})
