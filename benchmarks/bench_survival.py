"""Concordance of selections on survival data, beside peers, and the speed of CoxLasso beside scikit-survival.

``python benchmarks/bench_survival.py [data sets] [--jobs 2] [--seed 1] [--no-speed]`` prints a row per selection. The
ovarian data are read from ZERONORM_DATA, "breast" comes with scikit-survival, "equal" and "scale" are ten simulated
sets each, with features of equal variance, or of very different variances of which the large ones carry the signal.
Peers that are not installed are left out: Coxnet and boosting (scikit-survival), abess, skglm.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from bench_cox import cox_lasso
from zeronorm import AROM, RFE, Consensus, CoxLasso, CoxScore, VarianceScore, ZeroNormLogistic, evaluate

DATA_SETS = ("ovarian_expression", "ovarian_tcga", "breast", "equal", "scale")
SIZES = (5, 10, 20, 50)
N_FOLDS, N_REPEATS, N_SIMULATED = 5, 3, 10


def ranking_of(entry: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Ranks by the position of entry, then by size."""
    ranking = np.empty(len(entry), dtype=np.intp)
    ranking[np.lexsort((-size, entry))] = np.arange(1, len(entry) + 1)
    return ranking


class CoxnetEntry(BaseEstimator):
    """Features in the order in which they enter scikit-survival's l1 path, then by their largest weight."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> CoxnetEntry:
        from sksurv.linear_model import CoxnetSurvivalAnalysis
        from sksurv.util import Surv

        path = CoxnetSurvivalAnalysis(l1_ratio=1.0, n_alphas=100, alpha_min_ratio=0.05)
        target = Surv.from_arrays(y["event"], y["time"])
        weights = np.abs(path.fit(StandardScaler().fit_transform(X), target).coef_)
        entry = np.where(weights.any(axis=1), (weights > 0.0).argmax(axis=1), weights.shape[1])
        self.ranking_ = ranking_of(entry, weights.max(axis=1))
        return self


class Boosted(BaseEstimator):
    """Features in the order in which scikit-survival's componentwise boosting of Cox models takes them."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Boosted:
        from sksurv.ensemble import ComponentwiseGradientBoostingSurvivalAnalysis

        model = ComponentwiseGradientBoostingSurvivalAnalysis(n_estimators=200, learning_rate=0.1)
        model.fit(StandardScaler().fit_transform(X), y)
        taken = [int(learner.component) - 1 for learner in model.estimators_]  # 0 is the intercept
        entry = np.full(X.shape[1], len(taken))
        for step, column in reversed(list(enumerate(taken))):
            if column >= 0:
                entry[column] = step
        self.ranking_ = ranking_of(entry, np.abs(model.coef_[1:]))
        return self


class AbessEntry(BaseEstimator):
    """Features in the order of the smallest best subset of abess that holds them."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> AbessEntry:
        from abess import CoxPHSurvivalAnalysis

        Z, target = StandardScaler().fit_transform(X), np.column_stack([y["time"], y["event"]]).astype(float)
        entry, size = np.full(X.shape[1], len(SIZES)), np.zeros(X.shape[1])
        for step, k in reversed(list(enumerate(SIZES))):
            weights = np.abs(CoxPHSurvivalAnalysis(support_size=k).fit(Z, target, is_normal=False).coef_)
            entry[weights > 0.0], size = step, np.maximum(size, weights)
        self.ranking_ = ranking_of(entry, size)
        return self


class SkglmEntry(BaseEstimator):
    """Features in the order in which they enter skglm's path with the concave penalty MCP."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> SkglmEntry:
        from skglm.datafits import Cox
        from skglm.penalties import MCPenalty
        from skglm.solvers import ProxNewton
        from skglm.utils.jit_compilation import compiled_clone

        Z = np.asfortranarray(StandardScaler().fit_transform(X))
        target = np.column_stack([y["time"], y["event"]]).astype(float)
        datafit = compiled_clone(Cox())
        datafit.initialize(Z, target)
        largest = float(np.abs(Z.T @ datafit.raw_grad(target, np.zeros(len(Z)))).max())
        penalties = largest * np.geomspace(1.0, 0.05, 30)
        solver, w = ProxNewton(fit_intercept=False, max_iter=50), None
        entry, size = np.full(X.shape[1], len(penalties)), np.zeros(X.shape[1])
        for step, alpha in enumerate(penalties):
            penalty = compiled_clone(MCPenalty(alpha=alpha, gamma=3.0))
            start = None if w is None else Z @ w
            w, _, _ = solver.solve(Z, target, datafit, penalty, w_init=w, Xw_init=start)
            entry = np.where((w != 0.0) & (entry == len(penalties)), step, entry)
            size = np.maximum(size, np.abs(w))
        self.ranking_ = ranking_of(entry, size)
        return self


PEERS: dict[str, tuple[str, Any]] = {
    "Coxnet, order of entry": ("sksurv", CoxnetEntry()),
    "componentwise boosting of Cox models": ("sksurv", Boosted()),
    "abess": ("abess", AbessEntry()),
    "skglm, MCP, order of entry": ("skglm", SkglmEntry()),
}


def load_survival(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, with the median of all samples where values are missing, and events and times."""
    with np.load(Path(os.environ["ZERONORM_DATA"]) / f"{name}.npz", allow_pickle=True) as data:
        X = data["X"].astype(np.float64)
        y = np.empty(len(X), dtype=[("event", bool), ("time", float)])
        y["event"], y["time"] = data["event"], data["time"]
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), y


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """The 198 patients that come with scikit-survival: 76 genes and four clinical variables, distant metastasis."""
    import pandas as pd
    from sksurv.datasets import load_breast_cancer

    X, outcome = load_breast_cancer()
    y = np.empty(len(X), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = outcome["e.tdm"], outcome["t.tdm"]
    return pd.get_dummies(X, drop_first=True).to_numpy(float), y


def simulated(seed: int, scale: bool, n: int = 150, p: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of 20 features with the correlation 0.4, of which 15 features act; about a third is censored."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.normal(size=(n, p // 20)), 20, axis=1)
    X = np.sqrt(0.6) * rng.normal(size=(n, p)) + np.sqrt(0.4) * common
    deviation = np.exp(0.6 * rng.normal(size=p)) if scale else np.ones(p)
    acting = rng.choice(p, 15, replace=False, p=deviation**2 / np.sum(deviation**2))
    time = rng.exponential(np.exp(-0.45 * X[:, acting] @ rng.choice([-1.0, 1.0], 15)))
    end = rng.uniform(0.0, np.quantile(time, 0.85), n)
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= end, np.minimum(time, end)
    return X * deviation, y


def tables(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The data sets of a name; results are means over them."""
    if name in ("equal", "scale"):
        return [simulated(seed, name == "scale") for seed in range(N_SIMULATED)]
    return [breast_cancer() if name == "breast" else load_survival(name)]


def concordance(name: str, seed: int, n_jobs: int) -> Iterator[tuple[str, list[float]]]:
    """Mean concordance by selection and size, over repeated folds with equal shares of events."""
    selectors: dict[str, Any] = {
        "Consensus": Consensus(task="survival"),
        "variance filter": VarianceScore(),
        "CoxScore": CoxScore(),
        "CoxLasso": CoxLasso(SIZES[-1]),
        "RFE": RFE(task="survival", step=0.3),
        "AROM": AROM(task="survival"),
        "best subsets up to 20 (ZeroNormLogistic)": ZeroNormLogistic(20, task="survival"),
        "SVM of ranks (RFE)": RFE(task="survival", loss="ranking", step=0.3),
    }
    selectors |= {
        peer: selector for peer, (module, selector) in PEERS.items() if importlib.util.find_spec(module)
    }
    found = tables(name)
    repeats = N_REPEATS if len(found) == 1 else 1
    folds = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=repeats, random_state=seed)
    for method, selector in selectors.items():
        means = []
        for X, y in found:
            splits = list(folds.split(X, y["event"]))
            records = evaluate(
                {method: selector}, X, y, cv=splits, sizes=SIZES, task="survival", n_jobs=n_jobs
            )
            table = records.to_pandas()
            failed = table["error"].dropna().unique()
            if len(failed):
                raise RuntimeError(f"{name}, {method}: {failed[0]}")
            means.append(table.groupby("size")["concordance"].mean().loc[list(SIZES)])
        yield method, np.mean(means, axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=DATA_SETS, help="of data sets")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--no-speed", action="store_true", help="concordance alone")
    options = parser.parse_args()
    for name in options.names:
        print(f"{name}: concordance with {', '.join(map(str, SIZES))} features", flush=True)
        for method, values in concordance(name, options.seed, options.jobs):
            print(f"  {method}: " + "  ".join(f"{value:.3f}" for value in values), flush=True)
    if not options.no_speed and importlib.util.find_spec("sksurv"):
        measured = cox_lasso()
        print(f"l1 path 200 x 20,000: {measured.peer} takes {measured.ratio:.1f} times as long as CoxLasso")


if __name__ == "__main__":
    main()
