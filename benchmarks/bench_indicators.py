"""Whether the relaxed indicators of the best subset select well: test errors beside AROM, ZeroNormSVM and others.

``python benchmarks/bench_indicators.py`` prints mean test errors of a linear SVM on the selected features: the linear
toy problem (15 draws of 30 and 50 training points) and, with ZERONORM_DATA, sonar, ionosphere and colon (3 folds, two
divisions). An entry such as "z logistic 10" has the loss and C times the number of samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zeronorm import AROM, FisherScore, ZeroNormLogistic, ZeroNormSVM, as_design
from zeronorm.datasets import make_linear_toy
from zeronorm.datasets._catalogue import find_local
from zeronorm.engines.certificates._bounds import Objective
from zeronorm.engines.certificates._certificate import all_subsets
from zeronorm.engines.certificates._conjugates import dual_loss
from zeronorm.engines.certificates._refit import refit
from zeronorm.engines.certificates._relaxation import Relaxation

NOTHING = np.empty(0, dtype=np.intp)
METHODS = {m.__name__: m for m in (AROM, ZeroNormSVM, ZeroNormLogistic, FisherScore)}
RELAXED = [f"z {loss} {cost}" for loss in ("hinge", "squared_hinge", "logistic") for cost in (10, 100)]
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def by_indicators(X: np.ndarray, y: np.ndarray, size: int, loss: str, cost: float) -> np.ndarray:
    """The features with the largest indicators; those of equal indicators by their value in the bound."""
    n = len(y)
    objective = Objective(as_design(np.asfortranarray(X)), y[:, None], np.full(n, cost / n), dual_loss(loss))
    candidates = all_subsets(objective, None, size, NOTHING)
    relaxation = Relaxation(objective, candidates.units)
    found = relaxation.solve(candidates, relaxation.first_start(candidates, refit(objective, NOTHING).bias))
    value = found.dual.q * (1e-6 / found.dual.q.max())
    value[found.units] += found.z
    return np.argsort(-value)[:size]


def selected(name: str, X: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    if name in METHODS:
        return METHODS[name](size).fit(X, y).get_support(indices=True)
    _, loss, cost = name.split()
    return by_indicators(X, y, size, loss, float(cost))


def toy(n_train: int) -> Iterator[Draw]:
    for draw in range(15):
        X, y, _ = make_linear_toy(n_train + 500, random_state=np.random.default_rng(1000 + draw))
        yield X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def real(name: str) -> Iterator[Draw]:
    with np.load(find_local(name), allow_pickle=True) as table:
        X, y = table["X"].astype(float), table["y"]
    X = np.log10(X) if name == "colon" else X
    for seed in range(2):
        for train, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y):
            yield X[train], y[train], X[test], y[test]


def show(name: str, draws: Iterator[Draw], size: int) -> None:
    errors: dict[str, list[float]] = {method: [] for method in (*METHODS, *RELAXED)}
    for X, y, X_test, y_test in draws:
        scaler, codes = StandardScaler().fit(X), np.where(y == np.unique(y)[-1], 1.0, -1.0)
        Z, Z_test = scaler.transform(X), scaler.transform(X_test)
        for method, found in errors.items():
            columns = selected(method, Z, codes, size)
            model = SVC(kernel="linear").fit(Z[:, columns], y)
            found.append(100.0 * float(np.mean(model.predict(Z_test[:, columns]) != y_test)))
    means = ", ".join(f"{method} {np.mean(found):.1f}" for method, found in errors.items())
    print(f"{name}, {size} features: {means}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    for n_train in (30, 50):
        for size in (2, 6):
            show(f"toy, {n_train} points", toy(n_train), size)
    for name, size in (("sonar", 5), ("sonar", 10), ("ionosphere", 5), ("colon", 5), ("colon", 20)):
        if find_local(name) is not None:
            show(name, real(name), size)


if __name__ == "__main__":
    main()
