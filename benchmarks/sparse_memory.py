"""Which linear methods stay sparse: each is fitted in a process of its own, and its largest memory is measured.

``python benchmarks/sparse_memory.py [N P DENSITY [METHOD ...]]``, by default 1000 × 100,000 at 0.1 %. A method passes
when what the fit adds is at most three times the data, plus four matrices of n × n (p × p for tall data) and fifty
vectors of length p; the dense table alone would be far more. For wide 10⁴ × 10⁶ and tall 10⁶ × 10⁴ give the sizes.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import warnings
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
    *("forward-least-squares", "mutual-information"),
]
PATIENCE_S = 60.0
MOST_SQUARES, MOST_VECTORS = 4, 50


def sparse_problem(n: int, p: int, density: float) -> tuple[Any, Any]:
    """Counts with a few shifted features, two classes."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = sparse.random(n, p, density=density, format="lil", rng=rng)
    X[:, :10] = rng.poisson(0.5 + 1.5 * y[:, None], size=(n, 10))
    return sparse.csr_array(X), y


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fit_in_child(name: str, shape: tuple[int, int], density: float, pipe: Any) -> None:
    from zeronorm.registry import get_method

    X, y = sparse_problem(*shape, density)
    warnings.simplefilter("ignore")
    make: Any = get_method(name).cls
    parameters = {"step": 0.5} if name == "rfe" else {}
    task = {"task": "classification"} if "task" in make().get_params() else {}
    make(n_features_to_select=5, **parameters, **task).fit(X[: min(60, shape[0]), :300], y[:60])  # compile
    before, start = peak_bytes(), time.perf_counter()
    try:
        make(n_features_to_select=10, **parameters, **task).fit(X, y)
    except Exception as error:
        pipe.send((None, f"{type(error).__name__}: {str(error)[:110]}"))
        return
    pipe.send((peak_bytes() - before, time.perf_counter() - start))


def measure(name: str, shape: tuple[int, int], density: float) -> tuple[int | None, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=fit_in_child, args=(name, shape, density, theirs))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(PATIENCE_S) else (None, f"not finished after {PATIENCE_S:g} s")
    except EOFError:
        return None, "the process died"
    finally:
        child.kill()
        child.join()


def main(arguments: list[str]) -> int:
    n, p = (int(float(text)) for text in arguments[:2]) if arguments else (1000, 100_000)
    density = float(arguments[2]) if len(arguments) > 2 else 1e-3
    data = 12 * int(n * p * density)
    allowed = 3 * data + MOST_SQUARES * 8 * min(n, p) ** 2 + MOST_VECTORS * 8 * p
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
