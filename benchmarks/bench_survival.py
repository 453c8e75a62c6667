"""Concordance of selections on survival data of ovarian cancer, and the speed of CoxLasso beside scikit-survival.

``python benchmarks/bench_survival.py [--jobs 2] [--seed 1] [--no-speed]`` reads the data from ZERONORM_DATA and
prints a row per selection; the order of entry of Coxnet and the speed need scikit-survival.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from bench_cox import cox_lasso
from zeronorm import Consensus, CoxScore, VarianceScore, evaluate

DATA_SETS = ("ovarian_expression", "ovarian_tcga")
SIZES = (5, 10, 20, 50)
N_FOLDS, N_REPEATS = 5, 3


class CoxnetEntry(BaseEstimator):
    """Features in the order in which they enter scikit-survival's l1 path, then by their largest weight."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> CoxnetEntry:
        from sksurv.linear_model import CoxnetSurvivalAnalysis
        from sksurv.util import Surv

        path = CoxnetSurvivalAnalysis(l1_ratio=1.0, n_alphas=100, alpha_min_ratio=0.05)
        target = Surv.from_arrays(y["event"], y["time"])
        weights = np.abs(path.fit(StandardScaler().fit_transform(X), target).coef_)
        entry = np.where(weights.any(axis=1), (weights > 0.0).argmax(axis=1), weights.shape[1])
        self.ranking_ = np.empty(len(weights), dtype=np.intp)
        self.ranking_[np.lexsort((-weights.max(axis=1), entry))] = np.arange(1, len(weights) + 1)
        return self


def load_survival(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, with the median of all samples where values are missing, and events and times."""
    with np.load(Path(os.environ["ZERONORM_DATA"]) / f"{name}.npz", allow_pickle=True) as data:
        X = data["X"].astype(np.float64)
        y = np.empty(len(X), dtype=[("event", bool), ("time", float)])
        y["event"], y["time"] = data["event"], data["time"]
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), y


def concordance(name: str, seed: int, n_jobs: int) -> dict[str, list[float]]:
    """Mean concordance by selection and size, over repeated folds with equal shares of events."""
    X, y = load_survival(name)
    folds = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=N_REPEATS, random_state=seed)
    selectors: dict[str, Any] = {
        "Consensus": Consensus(task="survival"),
        "variance filter": VarianceScore(),
        "CoxScore": CoxScore(),
    }
    if importlib.util.find_spec("sksurv"):
        selectors["Coxnet, order of entry"] = CoxnetEntry()
    splits = list(folds.split(X, y["event"]))
    records = evaluate(selectors, X, y, cv=splits, sizes=SIZES, task="survival", n_jobs=n_jobs).to_pandas()
    failed = records["error"].dropna().unique()
    if len(failed):
        raise RuntimeError(f"{name}: {failed[0]}")
    means = records.groupby(["method", "size"])["concordance"].mean()
    return {method: [float(means[method, size]) for size in SIZES] for method in selectors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--no-speed", action="store_true", help="concordance alone")
    options = parser.parse_args()
    for name in DATA_SETS:
        print(f"{name}: concordance with {', '.join(map(str, SIZES))} features", flush=True)
        for method, values in concordance(name, options.seed, options.jobs).items():
            print(f"  {method}: " + "  ".join(f"{value:.3f}" for value in values), flush=True)
    if not options.no_speed and importlib.util.find_spec("sksurv"):
        measured = cox_lasso()
        print(f"l1 path 200 x 20,000: {measured.peer} takes {measured.ratio:.1f} times as long as CoxLasso")


if __name__ == "__main__":
    main()
