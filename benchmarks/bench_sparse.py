"""Linear methods on sparse data, wide and tall: seconds of the processor, and whether the memory stays sparse."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from scipy import sparse

from harness import Measurement, job
from sparse_memory import METHODS, data_and_allowed_bytes, measure, sparse_problem
from zeronorm import L1SVM, MarginLP, MutualInformation

DENSITY = 1e-3
SHAPES = {"1000×100,000": (1000, 100_000), "100,000×1000": (100_000, 1000)}
MEGABYTE = 2**20
MILLION_ROWS = (1_000_000, 10_000)
LINEAR = (
    *("fsv", "l1-svm", "logistic-lasso", "lasso", "svm-weights", "arom", "zeronorm-svm", "rfe"),
    *("zeronorm-logistic", "grafting", "potential-svm", "mutual-information", "fcbf", "margin-lp"),
    *("sparse-kernel-fisher", "ard", "perceptron-rfe"),
)
MOST_S = 120.0  # of the processor, one thread
PATIENCE_S = 600.0  # wall time, on a computer that others use too


def memory_of(name: str, shape: tuple[int, int], most_s: float | None = None) -> Measurement:
    """One fit in a process of its own."""
    data, allowed = data_and_allowed_bytes(*shape, DENSITY)
    target = f"adds at most {allowed / MEGABYTE:.0f} MB to {data / MEGABYTE:.0f} MB of data"
    if most_s is not None:
        target += f" within {most_s:g} s of the processor"
    added, seconds = measure(name, shape, DENSITY, *([] if most_s is None else [PATIENCE_S]))
    if added is None:
        return Measurement(float("nan"), target, False, note=str(seconds))
    reached = added <= allowed and (most_s is None or seconds <= most_s)
    return Measurement(seconds, target, reached, note=f"added {added / MEGABYTE:.0f} MB")


for _name in METHODS:
    for _label, _shape in SHAPES.items():
        job(f"sparse {_label}, {_name}")(partial(memory_of, _name, _shape))

for _name in LINEAR:
    job(f"sparse 1,000,000×10,000, {_name}")(partial(memory_of, _name, MILLION_ROWS, MOST_S))


def processor_time(selector: L1SVM, X: sparse.csr_array, y: np.ndarray, useful: int) -> Measurement:
    """A fit that has to end within ``MOST_S``, with the useful columns, the first ones."""
    selector.fit(X[:2000, :100], y[:2000])  # compile
    start = time.process_time()
    selector.fit(X, y)
    seconds = time.process_time() - start
    found = int(selector.support_[:useful].sum())
    note = f"{found} of the {useful} useful features among {int(selector.support_.sum())}"
    return Measurement(seconds, f"within {MOST_S:g} s", seconds <= MOST_S and found == useful, note=note)


@job("sparse 100,000×10,000, L1SVM with a real target")
def l1_regression() -> Measurement:
    """Ten useful columns, as sparse as the others."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(sparse.random(100_000, 10_000, density=0.003, format="csr", rng=rng))
    y = X[:, :10] @ (3.0 + np.arange(10.0)) + rng.normal(size=100_000)
    return processor_time(L1SVM(10, task="regression"), X, y, 10)


@job("sparse 100,000×10,000, MarginLP with the hard margin of classes that thousands of features separate")
def hard_margin() -> Measurement:
    """The solution is checked by comparing the primal and the dual objective."""
    X, y = sparse_problem(100_000, 10_000, DENSITY)
    MarginLP(2, C=1.0).fit(X[:60, :100], y[:60])  # compile
    start = time.process_time()
    selector = MarginLP(10, C=np.inf).fit(X, y)
    seconds = time.process_time() - start
    primal, dual = (float(np.abs(part).sum()) for part in (selector.coef_, selector.dual_coef_))
    proved = selector.converged_ and abs(primal - dual) <= 1e-6 * primal
    note = f"{np.count_nonzero(selector.coef_)} features with a weight, norm {primal:.4f}, dual {dual:.4f}"
    return Measurement(seconds, f"within {MOST_S:g} s", seconds <= MOST_S and proved, note=note)


@job("sparse 1,000,000×10,000, mutual information with a real target")
def information_of_a_real_target() -> Measurement:
    X, y = sparse_problem(*MILLION_ROWS, DENSITY)
    target = y + np.random.default_rng(0).normal(size=y.size)
    MutualInformation(1, task="regression").fit(X[:100], target[:100])  # compile
    start = time.process_time()
    selector = MutualInformation(10, task="regression").fit(X, target)
    seconds, found = time.process_time() - start, int(selector.support_[:10].sum())
    return Measurement(
        seconds,
        f"within {MOST_S:g} s",
        seconds <= MOST_S and found == 10,
        note=f"{found} of the 10 useful features",
    )


@job("sparse 100,000×5000, L1SVM, 50 features of three classes, of which 5 help")
def l1_more_than_help() -> Measurement:
    rng = np.random.default_rng(0)
    y = np.arange(100_000) % 3
    counts = rng.poisson(0.5 + 1.5 * (np.arange(5) % 3 == y[:, None])).astype(float)
    rest = sparse.random(100_000, 4995, density=DENSITY, format="csr", rng=rng)
    X = sparse.csr_array(sparse.hstack([sparse.csr_array(counts), rest], format="csr"))
    return processor_time(L1SVM(50), X, y, 5)
