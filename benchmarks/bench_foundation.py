"""Foundation: RFE against scikit-learn, warm starts, import time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from harness import Measurement, against, job, load, timed, wide_problem
from zeronorm import RFE
from zeronorm.design import as_design
from zeronorm.engines.elimination._scan import remove_column, train_models
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import solve_svm_dual
from zeronorm.solvers.svm._tracked_set import TrackedSets, forget_column


def rfe_against_scikit_learn(name: str, target: float) -> Measurement:
    X, y = load(name)
    Z = StandardScaler().fit_transform(X)
    ours = RFE(n_features_to_select=1, C=1.0, tol=1e-6)
    theirs = ReferenceRFE(SVC(kernel="linear", C=1.0, tol=1e-6), n_features_to_select=1)
    ours.fit(X, y)
    ours_s, _ = timed(lambda: ours.fit(X, y), repeat=5)
    theirs_s, _ = timed(lambda: theirs.fit(Z, y))
    same = float(np.mean(ours.path_.ranking() == theirs.ranking_))
    reached = theirs_s / ours_s >= target and same >= 0.98
    note = f"same rank for {100 * same:.1f} % of the features"
    return Measurement(
        ours_s, f"at least {target:g} ×, same ranking", reached, "scikit-learn RFE(SVC)", theirs_s, note
    )


@job("RFE one at a time, colon 62×2000")
def rfe_colon() -> Measurement:
    return rfe_against_scikit_learn("colon", 25)


@job("RFE one at a time, leukemia 72×7129")
def rfe_leukemia() -> Measurement:
    return rfe_against_scikit_learn("leukemia", 75)


@job("RFE one at a time, 100×100,000")
def rfe_wide() -> Measurement:
    small, large = wide_problem(100, 10_000), wide_problem(100, 100_000)
    RFE(n_features_to_select=1, C=1.0).fit(*wide_problem(20, 50))
    small_s, _ = timed(lambda: RFE(n_features_to_select=1, C=1.0).fit(*small), repeat=3)
    large_s, _ = timed(lambda: RFE(n_features_to_select=1, C=1.0).fit(*large))
    growth = large_s / small_s
    note = f"10,000 features: {small_s:.2f} s, growth {growth:.1f} ×"
    return Measurement(large_s, "under 30 s, growth at most 12 ×", large_s < 30 and growth <= 12, note=note)


@job("RFE tall, 5000×50")
def rfe_tall() -> Measurement:
    X, y = wide_problem(5000, 50)
    Z = StandardScaler().fit_transform(X)
    # LIBLINEAR's C Σ ξ² is our (C/2) Σ ξ² at half the C; the scaling of the intercept frees the bias.
    model = LinearSVC(C=0.5, dual=False, tol=1e-4, intercept_scaling=100.0)
    return against(
        1.0,
        lambda: RFE(n_features_to_select=1, C=1.0, loss="squared").fit(X, y),
        lambda: ReferenceRFE(model, n_features_to_select=1).fit(Z, y),
        "scikit-learn RFE(LinearSVC)",
        repeat=3,
    )


def warm_start(X: np.ndarray, y: np.ndarray, n_removed: int) -> Measurement:
    """Median time to solve again after one column has left, against a solution from nothing."""
    Z = np.ascontiguousarray(StandardScaler().fit_transform(X))
    model = BoxDual.classification(np.where(y == 1, 1.0, -1.0), np.ones(len(y)), squared=False)
    fixed = (model.ridge, model.sample, model.sign[None], model.linear[None], model.upper[None])
    K, sets = as_design(Z).gram(), TrackedSets.room_for(1, len(y))
    alpha, f, v = (np.zeros((1, len(y))) for _ in range(3))
    cold_s = statistics.median(timed(lambda: solve_svm_dual(K, model.sign))[0] for _ in range(20))
    libsvm = SVC(kernel="precomputed", tol=1e-6)
    libsvm_s = statistics.median(timed(lambda: libsvm.fit(K, y))[0] for _ in range(20))

    def train() -> None:
        train_models(K, *fixed, alpha, f, v, sets, 1e-6, 100_000)

    def follow(x: np.ndarray) -> None:
        forget_column(sets, model.sample, x)
        train()

    train()
    warm = []
    for j in np.random.default_rng(0).permutation(Z.shape[1])[:n_removed]:
        x = np.ascontiguousarray(Z[:, j])
        remove_column(K, f, v, x)
        warm.append(timed(lambda x=x: follow(x))[0])
    warm_s = statistics.median(warm)
    anew = solve_svm_dual(K, model.sign)
    assert np.isclose(model.objective(alpha[0], f[0]), anew.objective, rtol=1e-6)
    note = (
        f"warm {1e6 * warm_s:.0f} µs, cold {1e6 * cold_s:.0f} µs, cold LIBSVM {1e6 * libsvm_s:.0f} µs; "
        f"1/{libsvm_s / warm_s:.0f} of LIBSVM, 1/{cold_s / warm_s:.1f} of our own cold solve"
    )
    return Measurement(
        warm_s, "at most 1/20 of a cold solve", cold_s / warm_s >= 20, "cold solve", cold_s, note
    )


@job("SVM dual, warm start after one feature leaves, 500×2000")
def warm_start_many_samples() -> Measurement:
    return warm_start(*wide_problem(500, 2000), 200)


@job("SVM dual, warm start after one feature leaves, colon 62×2000")
def warm_start_colon() -> Measurement:
    return warm_start(*load("colon"), 300)


# scikit-learn imports scipy.linalg anyway; what is measured is loading the compiled loops.
FIRST_CALL = """
import numba, numpy as np, scipy.linalg, time
from zeronorm.solvers.svm._dual import solve_svm_dual
start = time.process_time()
solve_svm_dual(np.eye(4), [1., -1., 1., -1.])
print(time.process_time() - start)
"""


def printed_seconds(code: str, **environment: str) -> float:
    """What a new process prints; processor time, since these jobs do one thing on one core."""
    settings = {**os.environ, **environment}
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=settings
    )
    return float(run.stdout)


@job("import zeronorm")
def import_time() -> Measurement:
    code = "import sklearn.svm, time; start = time.process_time(); import zeronorm; print(time.process_time() - start)"
    extra = statistics.median(printed_seconds(code) for _ in range(5))
    return Measurement(extra, "at most 0.3 s beyond sklearn.svm", extra <= 0.3)


@job("first call of a solver in a later process")
def cached_start() -> Measurement:
    printed_seconds(FIRST_CALL)
    seconds = statistics.median(printed_seconds(FIRST_CALL) for _ in range(3))
    return Measurement(seconds, "at most 0.3 s", seconds <= 0.3)


@job("first call of a solver on a machine")
def first_compilation() -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        seconds = printed_seconds(FIRST_CALL, NUMBA_CACHE_DIR=folder)
    return Measurement(seconds, "at most 5 s", seconds <= 5.0)
