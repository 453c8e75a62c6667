"""Sparsity terms: concave and ℓ1 SVMs, best subsets of logistic regression."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import highspy
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from harness import Measurement, job, load, timed, under, wide_problem
from zeronorm import FSV, L1SVM, ZeroNormLogistic
from zeronorm.design import as_design
from zeronorm.solvers.l1_svm._dual import L1SvmInteriorProgram

SIZES = range(1, 20)
N_PROBLEMS = 20
FIRST_SEED = 3000  # draws that had no part in choosing the settings of the search


def lymphoma() -> tuple[np.ndarray, np.ndarray]:
    """96×4026, malignant or not; missing values are replaced by the mean of their column."""
    with np.load(Path(os.environ["ZERONORM_DATA"]) / "lymphoma.npz") as data:
        X, y = data["X"].astype(np.float64), data["y_malignant"]
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X), y


def fsv_on_lymphoma(selector: FSV) -> Measurement:
    """77 training samples, as in Huang et al. (2008), Table 2: 23.6 s there."""
    X, y = lymphoma()
    X, _, y, _ = train_test_split(X, y, train_size=77, stratify=y, random_state=0)
    selector.fit(X[:, :100], y)
    measured = under(1.5, lambda: selector.fit(X, y))
    note = f"{int((selector.coef_ != 0).sum())} features with a weight after {selector.n_iter_} programs"
    return Measurement(measured.ours_s, measured.target, measured.reached, note=note)


@job("FSV to 20 features, lymphoma 77×4026")
def fsv_overlapping() -> Measurement:
    return fsv_on_lymphoma(FSV(20))


@job("FSV of separable classes, lymphoma 77×4026")
def fsv_separable() -> Measurement:
    return fsv_on_lymphoma(FSV(20, sparsity=None))


@job("L1SVM, whole path, 100×100,000")
def l1_svm_wide() -> Measurement:
    X, y = wide_problem(100, 100_000)
    return under(5.0, lambda: L1SVM(20, C=1.0).fit(X, y))


def against_liblinear(X: np.ndarray, y: np.ndarray, C: float) -> Measurement:
    """Time of one exact solution and of scikit-learn's (squared hinge) with as many features, ±10 %."""
    ours = L1SVM(C=C, n_steps=1)
    ours_s, _ = timed(lambda: ours.fit(X, y), repeat=5)
    n_ours = int((ours.coef_ != 0).sum())
    scaled = StandardScaler()
    low, high = 1e-6 * C, 1e3 * C
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(30):
            peer_C = float(np.sqrt(low * high))
            peer = LinearSVC(penalty="l1", dual=False, C=peer_C)
            peer.fit(scaled.fit_transform(X), y)
            n_peer = int((peer.coef_ != 0).sum())
            if abs(n_peer - n_ours) <= 0.1 * n_ours:
                break
            low, high = (peer_C, high) if n_peer < n_ours else (low, peer_C)
        # Each side starts from the data as they are.
        peer_s, _ = timed(lambda: peer.fit(scaled.fit_transform(X), y), repeat=5)
    note = f"{n_ours} features, peer {n_peer}"
    matched = abs(n_peer - n_ours) <= 0.1 * n_ours
    target = "at most 3 × LinearSVC(penalty='l1')"
    return Measurement(ours_s, target, bool(matched and ours_s <= 3 * peer_s), "LinearSVC", peer_s, note)


@job("L1SVM against liblinear, 100×100,000")
def l1_svm_liblinear_wide() -> Measurement:
    return against_liblinear(*wide_problem(100, 100_000), C=0.045)


@job("L1SVM against liblinear, lymphoma 96×4026")
def l1_svm_liblinear_lymphoma() -> Measurement:
    return against_liblinear(*lymphoma(), C=0.1)


def l1_svm_job(title: str, name: str, C: float) -> None:
    """Register the comparison on one data set at one C."""

    @job(f"L1SVM against liblinear, {title}, C={C:g}")
    def measure() -> Measurement:
        return against_liblinear(*load(name), C=C)


# Few data and many, tall and wide, few features with a weight and nearly all.
for title, name, costs in (
    ("sonar 208×60", "sonar", (0.1, 1.0)),
    ("ionosphere 351×34", "ionosphere", (0.01, 0.1, 1.0)),
    ("spambase 4601×57", "spambase", (0.001, 0.01, 0.1)),
    ("twonorm 7400×20", "twonorm", (0.001, 0.01)),
    ("madelon 2600×500", "madelon", (0.01, 0.1)),
    ("colon 62×2000", "colon", (0.1, 1.0)),
    ("leukemia 72×7129", "leukemia", (0.1,)),
    ("arcene 200×10,000", "arcene", (0.1, 1.0)),
):
    for cost in costs:
        l1_svm_job(title, name, cost)


def solved_by_highs(X: np.ndarray, signs: np.ndarray, C: float, solver: str) -> float:
    """The same program, primal form, by one method of HiGHS on one thread; returns the objective."""
    n, p = X.shape
    signed = signs[:, None] * X
    model = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("parallel", "off"), ("solver", solver)):
        model.setOptionValue(option, value)
    matrix = sp.csc_array(np.hstack([signed, -signed, signs[:, None], np.eye(n)]))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = matrix.shape[1], n
    lp.col_cost_ = np.concatenate([np.ones(2 * p), [0.0], np.full(n, C)])
    lp.col_lower_ = np.concatenate([np.zeros(2 * p), [-np.inf], np.zeros(n)])
    lp.col_upper_ = np.full(matrix.shape[1], np.inf)
    lp.row_lower_, lp.row_upper_ = np.ones(n), np.full(n, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    model.passModel(lp)
    model.run()
    return float(model.getInfo().objective_function_value)


def against_highs(X: np.ndarray, y: np.ndarray, C: float) -> Measurement:
    """One exact solution by our interior-point method and by both methods of HiGHS; the faster is the peer."""
    X = StandardScaler().fit_transform(X)
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    ours_s, model = timed(lambda: L1SvmInteriorProgram(as_design(X), signs, C=C).solve(), repeat=3)
    peers = {}
    for solver in ("ipm", "simplex"):
        peers[solver], objective = timed(lambda solver=solver: solved_by_highs(X, signs, C, solver), repeat=3)
        if abs(objective - model.objective) > 1e-6 * abs(objective):
            raise RuntimeError(f"{solver} ends at {objective}, ours at {model.objective}.")
    fastest = min(peers, key=lambda solver: peers[solver])
    note = ", ".join(f"{solver} {seconds:.3g} s" for solver, seconds in peers.items())
    target = "faster than both methods of HiGHS"
    return Measurement(ours_s, target, ours_s < peers[fastest], f"HiGHS {fastest}", peers[fastest], note)


def highs_job(title: str, name: str, C: float) -> None:
    """Register the comparison on one data set at one C."""

    @job(f"ℓ1-SVM interior point against HiGHS, {title}, C={C:g}")
    def measure() -> Measurement:
        return against_highs(*load(name), C=C)


for title, name, C in (
    ("sonar 208×60", "sonar", 0.1),
    ("ionosphere 351×34", "ionosphere", 0.1),
    ("spambase 4601×57", "spambase", 0.01),
    ("colon 62×2000", "colon", 0.1),
):
    highs_job(title, name, C)


def logistic_problem(seed: int, n: int = 500, p: int = 5000, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Independent Gaussian features, ten of them in a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    relevant = rng.choice(p, k, replace=False)
    w = rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 1.5, k)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X[:, relevant] @ w))).astype(int)


@job("ZeroNormLogistic sizes 0–19, 500×5000: time")
def best_subset_time() -> Measurement:
    from abess import LogisticRegression

    largest = max(SIZES)
    ZeroNormLogistic(largest).fit(*logistic_problem(100, 100, 300))
    ours, peers = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + 5):
        X, y = logistic_problem(seed)
        ours.append(timed(lambda X=X, y=y: ZeroNormLogistic(largest).fit(X, y))[0])
        peer = LogisticRegression(support_size=range(largest + 1))
        peers.append(timed(lambda X=X, y=y, peer=peer: peer.fit(X, y))[0])
    ours_s, peer_s = float(np.median(ours)), float(np.median(peers))
    return Measurement(
        ours_s, "at most 2 × abess", bool(ours_s <= 2 * peer_s), "abess", peer_s, "5 problems, median"
    )


def refitted(X: np.ndarray, y: np.ndarray, columns: np.ndarray) -> float:
    """The objective on these features, whoever selected them."""
    selector = ZeroNormLogistic(columns.size, always_keep=columns.tolist(), max_features=columns.size)
    return float(selector.fit(X, y).path_.objective[-1])


@job("ZeroNormLogistic sizes 1–19, 500×5000: objective")
def best_subset_objective() -> Measurement:
    """abess returns one size per call; without a penalty on the number of features it returns the largest."""
    from abess import LogisticRegression

    excesses, seconds, peer_seconds = [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + N_PROBLEMS):
        X, y = logistic_problem(seed)
        spent, selector = timed(lambda X=X, y=y: ZeroNormLogistic(max(SIZES)).fit(X, y))
        seconds.append(spent)
        for k, value in zip(SIZES, selector.path_.objective, strict=True):
            peer = LogisticRegression(support_size=range(k + 1), ic_coef=0.0)
            peer_s, _ = timed(lambda X=X, y=y, peer=peer: peer.fit(X, y))
            excesses.append(value / refitted(X, y, np.flatnonzero(peer.coef_)) - 1.0)
        peer_seconds.append(peer_s)
    excess = np.asarray(excesses)
    note = (
        f"worse at {np.sum(excess > 1e-6)}, better at {np.sum(excess < -1e-6)} of {excess.size} sizes; "
        f"largest excess {excess.max():.2%}"
    )
    target = f"no worse than abess at any size of {N_PROBLEMS} problems (relative 1e-6)"
    return Measurement(
        float(np.median(seconds)),
        target,
        bool(excess.max() <= 1e-6),
        "abess",
        float(np.median(peer_seconds)),
        note,
    )
