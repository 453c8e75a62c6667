"""Linear support vector machine on the small Gram matrix of a bootstrap sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.engines.weighting.learners.base import CompiledLearner, check_number
from zeronorm.engines.weighting.pool import Pool, labels_of, machine_cost
from zeronorm.engines.weighting.sampling import Draws, distinct, gather
from zeronorm.solvers.svm.smo import smo


class SubsetSVM(CompiledLearner):
    r"""Linear SVM, :math:`\tfrac12\|w\|^2 + C\sum\xi`, the bias not penalised.

    Parameters
    ----------
    C : cost of a margin violation.
    tol : largest violation of the optimality conditions; a search over many subsets needs no more digits.
    max_iter : most steps of the solver for one machine.
    """

    is_binary = True
    needs_two_classes = True

    def __init__(self, C: float = 1.0, *, tol: float = 0.01, max_iter: int = 10_000) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def check(self, bootstrap_size: int) -> None:
        check_number(self, "C", 0.0, strict=True)
        check_number(self, "tol", 0.0, strict=True)
        check_number(self, "max_iter", 1)

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        settings = (float(self.C), float(self.tol), int(self.max_iter))
        svm_errors(pool, draws, settings, first, last, out)

    def as_estimator(self) -> Any:
        from sklearn.svm import SVC

        return SVC(kernel="linear", C=self.C)


@kernel
def svm_errors(
    pool: Pool, draws: Draws, settings: tuple[float, float, int], first: int, last: int, out: FloatArray
) -> None:
    """Errors of a range of subsets; the machines of a subset share its Gram matrix."""
    n_machines = pool.coding.shape[0]
    for b in range(first, last):
        features = distinct(draws.features[b])
        train = gather(pool.columns, features, draws.train[b])
        test = gather(pool.test_columns, features, draws.test[b])
        K = small_gram(train)
        total = 0.0
        for m in range(n_machines):
            labels = labels_of(pool.coding[m], pool.codes, draws.train[b])
            predicted = svm_predict(K, train, labels, test, settings)
            total += machine_cost(pool, m, draws.test[b], predicted)
        out[b] = total / n_machines


@kernel
def small_gram(train: FloatArray) -> FloatArray:
    """Inner products of the samples (columns of ``train``)."""
    n = train.shape[1]
    K = np.zeros((n, n))
    for f in range(train.shape[0]):
        row = train[f]
        for i in range(n):
            value = row[i]
            for j in range(n):
                K[i, j] += value * row[j]
    return K


@kernel
def svm_predict(
    K: FloatArray, train: FloatArray, labels: Any, test: FloatArray, settings: tuple[float, float, int]
) -> Any:
    """Labels 0 or 1 of the test samples; those of a training set of one label are that label."""
    C, tol, max_iter = settings
    n = labels.shape[0]
    predicted = np.empty(test.shape[1], np.int64)
    if labels.min() == labels.max():
        predicted[:] = labels[0]
        return predicted
    sign = 2.0 * labels - 1.0
    alpha = np.zeros(n)
    f = np.zeros(n)
    upper = np.full(n, C)
    smo(K, np.zeros(n), np.arange(n), sign, np.full(n, -1.0), upper, alpha, f, tol, max_iter)
    scores = np.full(test.shape[1], bias_from(sign, upper, alpha, f))
    for k in range(train.shape[0]):
        w = 0.0
        for i in range(n):
            w += sign[i] * alpha[i] * train[k, i]
        for j in range(test.shape[1]):
            scores[j] += w * test[k, j]
    for j in range(test.shape[1]):
        predicted[j] = 1 if scores[j] > 0.0 else 0
    return predicted


@kernel
def bias_from(sign: FloatArray, upper: FloatArray, alpha: FloatArray, f: FloatArray) -> float:
    """The bias in the middle of the interval that the optimality conditions leave."""
    low, high = -np.inf, np.inf
    for i in range(alpha.shape[0]):
        residual = sign[i] - f[i]
        if (alpha[i] < upper[i]) if sign[i] > 0.0 else (alpha[i] > 0.0):
            low = max(low, residual)
        if (alpha[i] > 0.0) if sign[i] > 0.0 else (alpha[i] < upper[i]):
            high = min(high, residual)
    return 0.5 * (low + high)
