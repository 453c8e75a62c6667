"""Evaluation: what the protocol costs beyond the fits it runs."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from harness import Measurement, job, load, timed
from zeronorm import ZeroNormSVM, evaluate

SIZES = (1, 2, 5, 10, 20, 50, 100)


def bare_fits(
    selector: ZeroNormSVM, estimator: object, X: np.ndarray, y: np.ndarray, cv: StratifiedShuffleSplit
) -> None:
    for train, test in cv.split(X, y):
        path = clone(selector).fit(X[train], y[train]).path_
        for size in SIZES:
            support = path.support(size)
            clone(estimator).fit(X[np.ix_(train, support)], y[train]).predict(X[np.ix_(test, support)])


@job("evaluate, overhead over the bare fits")
def overhead() -> Measurement:
    X, y = load("colon")
    cv = StratifiedShuffleSplit(150, test_size=12, random_state=0)
    selector, estimator = ZeroNormSVM(20, C=10.0), make_pipeline(StandardScaler(), SVC(kernel="linear"))

    def protocol() -> None:
        evaluate({"zeronorm-svm": selector}, X, y, cv=cv, sizes=SIZES, estimator=estimator, n_jobs=1)

    def processor_s(run: object) -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    protocol()
    runs = [
        (processor_s(protocol), processor_s(lambda: bare_fits(selector, estimator, X, y, cv)))
        for _ in range(5)
    ]
    ours_s, bare_s = (min(column) for column in zip(*runs, strict=True))
    extra = 100.0 * (ours_s / bare_s - 1.0)
    return Measurement(
        ours_s, "overhead under 5 %", extra < 5.0, "the same fits in a loop", bare_s, f"{extra:.1f} %"
    )


@job("evaluate, 500 splits × 7 sizes, colon 62×2000")
def many_splits() -> Measurement:
    X, y = load("colon")
    cv = StratifiedShuffleSplit(500, test_size=12, random_state=0)
    seconds, records = timed(
        lambda: evaluate({"zeronorm-svm": ZeroNormSVM(20, C=10.0)}, X, y, cv=cv, sizes=SIZES, n_jobs=2)
    )
    return Measurement(seconds, "under 60 s", seconds < 60, note=f"{len(records)} records")
