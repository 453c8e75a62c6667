"""Processor seconds of DummySelector and StabilitySelection beside trexselector and ipss, on the same data.

``python benchmarks/bench_error_control.py [--only trex|ipss] [--features 1000 10000]`` prints the seconds of all
threads and child processes, and their ratio; both packages come with ``pip install zeronorm[bench]``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from zeronorm import DummySelector, LassoSelector, StabilitySelection

LEVEL = 0.2
N_RELEVANT = 10


def planted(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns, of which ten determine a real target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X[:, :N_RELEVANT].sum(axis=1) + 2.0 * rng.standard_normal(n)


def seconds_of(call: Callable[[], Any]) -> float:
    """Processor seconds of this process and its children."""
    before = sum(os.times()[:4])
    with contextlib.redirect_stdout(io.StringIO()):
        call()
    return sum(os.times()[:4]) - before


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Print the seconds of both; ours runs twice, since the first run compiles."""
    ours()
    own, other = seconds_of(ours), seconds_of(theirs)
    print(f"{name}: ours {own:.2f} s, theirs {other:.2f} s, ratio {own / other:.2f}", flush=True)


def dummies(n_features: int) -> None:
    """Both select among 300 samples of this many features."""
    from trexselector import trex

    X, y = planted(300, n_features)
    ours = DummySelector(level=LEVEL, task="regression", random_state=0)
    compare(
        f"trexselector 300 x {n_features}",
        lambda: ours.fit(X, y),
        lambda: trex(X, y, tFDR=LEVEL, seed=0, verbose=False),
    )


def integrated_paths(n_features: int) -> None:
    """Both integrate 50 pairs of halves of 500 samples, with the l1 norm; without and with our permuted targets."""
    from ipss import ipss

    X, y = planted(500, n_features)
    for n_permutations in (0, 2):
        ours = StabilitySelection(
            LassoSelector(method="lars", task="regression"),
            bound="integrated",
            level=LEVEL,
            n_permutations=n_permutations,
            random_state=0,
        )
        compare(
            f"ipss 500 x {n_features}, {n_permutations} permuted targets",
            lambda ours=ours: ours.fit(X, y),
            lambda: ipss(X, y, selector="l1", target_fdr=LEVEL),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["trex", "ipss"])
    parser.add_argument("--features", type=int, nargs="*", help="1000 10000 for T-Rex, 5000 for paths")
    options = parser.parse_args()
    if options.only != "ipss":
        for n_features in options.features or (1000, 10_000):
            dummies(n_features)
    if options.only != "trex":
        for n_features in options.features or (5000,):
            integrated_paths(n_features)


if __name__ == "__main__":
    main()
