"""Which linear methods stay sparse: each is fitted in a process of its own, and its largest memory is measured.

``python benchmarks/sparse_memory.py [N P DENSITY [METHOD ...]]``, by default 1000 × 100,000 at 0.1 %. A method passes
when what the fit adds is at most three times the data, plus four matrices of n × n (p × p for tall data) and fifty
vectors of length p (n for tall data); the dense table alone would be far more. For wide 10⁴ × 10⁶ and tall 10⁶ × 10⁴
give the sizes. Times are seconds of the processor; a fit that takes longer than PATIENCE_S on the clock is given up.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

METHODS = [
    *(
        "fisher",
        "welch",
        "golub",
        "shrunken-centroids",
        "rfe",
        "gram-schmidt",
        "grafting",
        "svm-weights",
        "l1-svm",
    ),
    *("lasso", "logistic-lasso", "fsv", "arom", "zeronorm-svm", "zeronorm-logistic", "potential-svm"),
    *("forward-least-squares", "mutual-information", "fcbf", "margin-lp", "sparse-kernel-fisher", "ard"),
    "perceptron-rfe",
]
# With the hard margin of MarginLP these classes, which overlap, are refused.
PARAMETERS: dict[str, dict[str, Any]] = {"rfe": {"step": 0.5}, "margin-lp": {"C": 0.001}}
PATIENCE_S = float(os.environ.get("PATIENCE_S", 120.0))
COMPILING_S = 300.0
INFORMATIVE_DENSITY = 0.7  # of the ten features that tell the classes apart
MOST_SQUARES, MOST_VECTORS = 4, 50


def sparse_problem(n: int, p: int, density: float) -> tuple[Any, Any]:
    """Counts with a few shifted features, two classes."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    informative = rng.poisson(0.5 + 1.5 * y[:, None], size=(n, 10)).astype(float)
    rest = sparse.random(n, p - 10, density=density, format="csr", rng=rng)
    return sparse.hstack([sparse.csr_array(informative), sparse.csr_array(rest)], format="csr"), y


def peak_bytes(process: int | str = "self") -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def forget_peak() -> None:
    """Reset the peak memory, so that making the data and compiling do not count."""
    Path("/proc/self/clear_refs").write_text("5")


def fit_in_child(name: str, shape: tuple[int, int], density: float, pipe: Any) -> None:
    from zeronorm.registry import get_method

    X, y = sparse_problem(*shape, density)
    warnings.simplefilter("ignore")
    make: Any = get_method(name).cls
    parameters = PARAMETERS.get(name, {})
    task = {"task": "classification"} if "task" in make().get_params() else {}
    make(n_features_to_select=5, **parameters, **task).fit(X[: min(60, shape[0]), :300], y[:60])  # compile
    forget_peak()
    before, start = peak_bytes(), time.process_time()
    pipe.send(before)
    try:
        make(n_features_to_select=10, **parameters, **task).fit(X, y)
    except Exception as error:
        pipe.send((None, f"{type(error).__name__}: {str(error)[:110]}"))
        return
    pipe.send((peak_bytes() - before, time.process_time() - start))


def measure(
    name: str, shape: tuple[int, int], density: float, patience_s: float = PATIENCE_S
) -> tuple[int | None, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=fit_in_child, args=(name, shape, density, theirs))
    child.start()
    theirs.close()
    try:
        if not ours.poll(COMPILING_S):
            return None, f"nothing compiled after {COMPILING_S:g} s"
        before = ours.recv()
        if ours.poll(patience_s):
            return ours.recv()
        added = (peak_bytes(child.pid) - before) / 2**20
        return None, f"not finished after {patience_s:g} s, so far {added:.0f} MB added"
    except EOFError:
        return None, "the process died"
    finally:
        child.kill()
        child.join()


def data_and_allowed_bytes(n: int, p: int, density: float) -> tuple[int, int]:
    """Size of the sparse data, and what a fit may add."""
    data = 12 * int(n * p * density + INFORMATIVE_DENSITY * 10 * n)
    return data, 3 * data + MOST_SQUARES * 8 * min(n, p) ** 2 + MOST_VECTORS * 8 * max(n, p)


def main(arguments: list[str]) -> int:
    n, p = (int(float(text)) for text in arguments[:2]) if arguments else (1000, 100_000)
    density = float(arguments[2]) if len(arguments) > 2 else 1e-3
    data, allowed = data_and_allowed_bytes(n, p, density)
    megabyte = 2**20
    print(
        f"{n} × {p} at {density:g}: sparse {data / megabyte:.0f} MB, dense {8 * n * p / megabyte:.0f} MB, ",
        end="",
    )
    print(f"allowed {allowed / megabyte:.0f} MB")
    for name in arguments[3:] or METHODS:
        added, seconds = measure(name, (n, p), density)
        if added is None:
            print(f"{name:<24} {'':>9} {'':>9}  FAILED   {seconds}", flush=True)
            continue
        verdict = "yes" if added <= allowed else "NO"
        print(f"{name:<24} {added / megabyte:>6.0f} MB {seconds:>7.1f} s  {verdict}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
