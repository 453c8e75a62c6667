"""False discovery rate and power of knockoffs, ours beside knockpy's and hidimstat's, for the page on trust.

Run ``python docs/trust/knockoff_power.py`` (``--sets 50``, ``--only "colon, real"``); the rows are written to
``docs/trust/knockoff_power.csv``. The peers come with ``pip install zeronorm[bench]``; those that are not installed
are left out. All see the same data and the same level; the peers estimate the correlation by Ledoit and Wolf, knockpy
with minimum-variance knockoffs and its best statistic (masked likelihood ratios; for classes, where those take
minutes, its logistic Lasso), hidimstat with its default, the cross-validated Lasso.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from simulate import autoregressive, blocks, write

from zeronorm import FisherScore, KnockoffSelector, LassoSelector
from zeronorm.datasets import load_dataset

LEVEL, N_RELEVANT = 0.2, 12
Select = Callable[[np.ndarray, np.ndarray, bool, int], np.ndarray]


def factors(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Three common factors that explain half of the variance of an average column."""
    return 0.6 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))


def colon(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Genes of the colon data (Alon et al. 1999), drawn at random."""
    X = _colon()
    return X[:n, rng.choice(X.shape[1], p, replace=False)]


@cache
def _colon() -> np.ndarray:
    return np.asarray(load_dataset("colon").X)


# Columns, samples, features, weight of each relevant feature, whether the target has classes.
SETTINGS: dict[str, tuple[Callable[..., np.ndarray], int, int, float, bool]] = {
    "autoregressive, real": (autoregressive, 200, 100, 0.35, False),
    "autoregressive, classes": (autoregressive, 200, 100, 0.7, True),
    "blocks, real": (blocks, 200, 100, 0.35, False),
    "factors, real": (factors, 200, 100, 0.35, False),
    "factors, classes": (factors, 200, 400, 0.9, True),
    "colon, real": (colon, 62, 100, 0.7, False),
    "colon, classes": (colon, 62, 100, 1.4, True),
}


def ours(wrapped: type | None = None, n_draws: int = 1) -> Select:
    """KnockoffSelector around a selector, or with its own statistic."""

    def select(X: np.ndarray, y: np.ndarray, is_class: bool, seed: int) -> np.ndarray:
        task = "classification" if is_class else "regression"
        selector = None if wrapped is None else wrapped(**({} if is_class else {"task": task}))
        settings = {"level": LEVEL, "n_draws": n_draws, "random_state": seed, "task": task}
        return KnockoffSelector(selector, **settings).fit(X, y).support_

    return select


def knockpy(X: np.ndarray, y: np.ndarray, is_class: bool, seed: int) -> np.ndarray:
    """knockpy's filter."""
    from knockpy.knockoff_filter import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002  knockpy draws from the global generator
    peer = KnockoffFilter(
        ksampler="gaussian", fstat="lasso" if is_class else "mlr", knockoff_kwargs={"method": "mvr"}
    )
    return np.asarray(peer.forward(X=X, y=y.astype(float), fdr=LEVEL, shrinkage="ledoitwolf"), dtype=bool)


def hidimstat(X: np.ndarray, y: np.ndarray, is_class: bool, seed: int) -> np.ndarray:
    """hidimstat's model-X knockoffs."""
    from hidimstat import ModelXKnockoff

    target = np.where(y > 0, 1.0, -1.0) if is_class else y
    peer = ModelXKnockoff(random_state=seed)
    peer.fit_importance(X, target)
    return np.asarray(peer.fdr_selection(fdr=LEVEL) > 0)


METHODS: dict[str, Select] = {
    "masked likelihood ratio": ours(),
    "masked likelihood ratio, 10 draws": ours(n_draws=10),
    "LassoSelector": ours(LassoSelector),
    "FisherScore": ours(FisherScore),
    "hidimstat": hidimstat,
    "knockpy": knockpy,
}
PEERS = ("knockpy", "hidimstat")


def rows(sets: int, peer_sets: int, only: list[str]) -> Iterator[dict[str, Any]]:
    """One row for each setting and method."""
    for number, (name, (draw, n, p, weight, is_class)) in enumerate(SETTINGS.items()):
        if only and name not in only:
            continue
        for method, select in METHODS.items():
            is_peer = method in PEERS
            if (is_peer and find_spec(method) is None) or (method == "FisherScore" and not is_class):
                continue
            count = peer_sets if is_peer else sets
            found = [
                _false_and_found(draw, n, p, weight, is_class, select, (number, part))
                for part in range(count)
            ]
            false, power, seconds = np.asarray(found).T
            yield {
                "columns and target": name, "statistic": method, "n": n, "features": p, "level": LEVEL,
                "false discovery rate": round(float(false.mean()), 3),
                "standard error": round(float(false.std() / np.sqrt(count)), 3),
                "power": round(float(power.mean()), 3),
                "error of the power": round(float(power.std() / np.sqrt(count)), 3),
                "median s": round(float(np.median(seconds)), 2), "data sets": count,
            }  # fmt: skip


def _false_and_found(
    draw: Callable[..., np.ndarray], n: int, p: int, weight: float, is_class: bool, select: Select, seed: Any
) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    X = draw(n, p, rng)
    relevant = rng.choice(p, N_RELEVANT, replace=False)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = Z[:, relevant] @ rng.choice([-weight, weight], N_RELEVANT) + rng.normal(size=n)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no power, and what the peers warn of
        kept = np.flatnonzero(
            select(X, (y > 0).astype(int) if is_class else y, is_class, int(rng.integers(2**31)))
        )
    false = float(np.mean(~np.isin(kept, relevant))) if kept.size else 0.0
    return false, float(np.isin(relevant, kept).mean()), time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, default=100, help="data sets per row")
    parser.add_argument("--peer-sets", type=int, default=20, help="the same for the peers, which take longer")
    parser.add_argument("--only", action="append", default=[], choices=list(SETTINGS), help="a setting")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the table")
    arguments = parser.parse_args()
    print(write("knockoff_power", rows(arguments.sets, arguments.peer_sets, arguments.only), arguments.out))
