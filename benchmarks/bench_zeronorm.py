"""The zero-norm family: cost in units of one linear SVM, wide data, sparse kernel SVMs."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from harness import Measurement, job, load, timed, under, wide_problem
from zeronorm import AROM, L1SVM, RFE, FisherScore, ZeroNormLogistic, ZeroNormSVM
from zeronorm.engines.logistic_exchanges import _screening as screening
from zeronorm.models import SparseKernelSVC


def lymphoma() -> tuple[np.ndarray, np.ndarray]:
    """96×4026, malignant or not; missing values are replaced by the mean of their column."""
    with np.load(Path(os.environ["ZERONORM_DATA"]) / "lymphoma.npz") as data:
        X, y = data["X"].astype(np.float64), data["y_malignant"]
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X), y


def in_units_of_one_model(selector: AROM | ZeroNormSVM) -> Measurement:
    X, y = lymphoma()
    Z = StandardScaler().fit_transform(X)
    model = SVC(kernel="linear", C=selector.C)
    selector.fit(X, y)
    model.fit(Z, y)
    ours_s, _ = timed(lambda: selector.fit(X, y), repeat=11)
    svm_s, _ = timed(lambda: model.fit(Z, y), repeat=11)
    note = f"{ours_s / svm_s:.1f} × one SVM, {selector.n_iter_} SVMs trained"
    target = "at most 5 × one SVC(kernel='linear')"
    return Measurement(ours_s, target, ours_s <= 5 * svm_s, "SVC(kernel='linear')", svm_s, note)


@job("ℓ2-AROM to 20 features, lymphoma 96×4026")
def arom_lymphoma() -> Measurement:
    return in_units_of_one_model(AROM(20, C=np.inf))


@job("ZeroNormSVM to 20 features, lymphoma 96×4026")
def zeronorm_lymphoma() -> Measurement:
    return in_units_of_one_model(ZeroNormSVM(20, C=10.0))


def on_wide_data(selector: AROM | ZeroNormSVM) -> Measurement:
    X, y = wide_problem(100, 100_000)
    selector.fit(X[:, :200], y)
    measurement = under(3.0, lambda: selector.fit(X, y))
    found = int(selector.support_[:10].sum())
    note = f"{found} of the 10 relevant features among 20"
    return Measurement(measurement.ours_s, measurement.target, measurement.reached, note=note)


@job("ℓ2-AROM to 20 features, 100×100,000")
def arom_wide() -> Measurement:
    return on_wide_data(AROM(20, C=np.inf))


@job("ZeroNormSVM to 20 features, 100×100,000")
def zeronorm_wide() -> Measurement:
    return on_wide_data(ZeroNormSVM(20, C=100.0))


def few_vectors(name: str, n_folds: int, ours: SparseKernelSVC, model: SVC) -> Measurement:
    """Accuracy within one standard error of the SVM, with a tenth of its support vectors."""
    X, y = load(name)
    scores, counts, seconds = [], [], []
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
        fitted = [timed(lambda m=m, train=train: m.fit(X[train], y[train]))[0] for m in (ours, model)]
        seconds.append(fitted)
        scores.append([ours.score(X[test], y[test]), model.score(X[test], y[test])])
        counts.append([ours.support_.size, model.support_.size])
    (our_accuracy, accuracy), (our_count, count) = np.mean(scores, axis=0), np.mean(counts, axis=0)
    standard_error = float(np.std(scores, axis=0, ddof=1)[1] / np.sqrt(n_folds))
    note = (
        f"accuracy {100 * our_accuracy:.2f} % with {our_count:.1f} vectors; "
        f"SVM {100 * accuracy:.2f} ± {100 * standard_error:.2f} % with {count:.1f}"
    )
    reached = our_accuracy >= accuracy - standard_error and our_count <= count / 10
    our_s, svm_s = np.mean(seconds, axis=0)
    target = "accuracy within one standard error, a tenth of the vectors"
    return Measurement(float(our_s), target, bool(reached), "SVC", float(svm_s), note)


@job("SparseKernelSVC, Titanic, 10 folds")
def titanic() -> Measurement:
    return few_vectors("titanic", 10, SparseKernelSVC(C=1.0), SVC(C=1.0))


@job("SparseKernelSVC, Twonorm, 5 folds")
def twonorm() -> Measurement:
    ours = SparseKernelSVC(C=10.0, gamma=0.01, n_candidates=1500, random_state=0)
    return few_vectors("twonorm", 5, ours, SVC(C=1.0, gamma=0.01))


# -- The cost C chosen from the data --


def chosen_cost(make: Callable[..., Any]) -> Measurement:
    """The cost of ``C="auto"`` in units of a fit with the C that it chose; 200 × 100,000."""
    X, y = wide_problem(200, 100_000, n_relevant=20)
    chosen = float(make(C="auto").fit(X, y).C_)
    auto_s, _ = timed(lambda: make(C="auto").fit(X, y), repeat=3)
    fixed_s, _ = timed(lambda: make(C=chosen).fit(X, y), repeat=3)
    note = f"C = {chosen:.3g}, {auto_s / fixed_s:.1f} × the fixed fit"
    return Measurement(
        auto_s, "at most 5 × the fit with this C", auto_s <= 5.0 * fixed_s, "C fixed", fixed_s, note
    )


def without_collapse(selector: Any) -> Measurement:
    """Defaults on 200 × 10⁶, float32: no warning, and the relevant features are found."""
    X, y = wide_problem(200, 100, n_relevant=20)
    noise = np.random.default_rng(1).standard_normal((200, 10**6), dtype=np.float32)
    noise[:, :20] = X[:, :20]
    selector.fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        seconds, _ = timed(lambda: selector.fit(noise, y))
    found = int(selector.support_[:20].sum())
    note = f"{found} of the 20 relevant features among 20; {len(said)} warnings"
    return Measurement(seconds, "no warning, most features relevant", not said and found > 10, note=note)


for _make in (AROM, ZeroNormSVM, L1SVM, partial(RFE, step=0.5)):
    _name = getattr(_make, "func", _make).__name__
    job(f"{_name}, C chosen, 200×100,000")(partial(chosen_cost, partial(_make, n_features_to_select=20)))
    job(f"{_name}, defaults, 200×10⁶")(partial(without_collapse, _make(n_features_to_select=20)))


def processor_seconds(selector: Any, X: np.ndarray, y: np.ndarray) -> float:
    start = time.process_time()
    selector.fit(X, y)
    return time.process_time() - start


@job("ZeroNormLogistic to 20 features, 200×10⁶, processor time")
def zeronorm_logistic_wide() -> Measurement:
    """The search with a coarse copy of the data against the same search with a pass over all data for every step."""
    y = np.arange(200) % 2
    X = np.random.default_rng(0).standard_normal((200, 10**6), dtype=np.float32)
    X[:, :20] += y[:, None]
    ours, peer = ZeroNormLogistic(20), ZeroNormLogistic(20)
    ours.fit(X[:, :30_000], y)  # compile
    FisherScore(20).fit(X[:, :30_000], y)
    ours_s, fisher_s = processor_seconds(ours, X, y), processor_seconds(FisherScore(20), X, y)
    copied, screening.COARSE_FROM = screening.COARSE_FROM, X.size + 1
    try:
        peer_s = processor_seconds(peer, X, y)
    finally:
        screening.COARSE_FROM = copied
    same = bool((ours.support_ == peer.support_).all())
    note = f"{'the same' if same else 'OTHER'} features; {ours_s / fisher_s:.0f} × FisherScore ({fisher_s:.2f} s)"
    target = "at least 3 × faster than by passes over the data alone, the same features"
    return Measurement(ours_s, target, same and peer_s >= 3 * ours_s, "passes alone", peer_s, note)
