"""Linear classifiers: the support vector machine (SVM) and discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting._sampling import Draws, Pool, labels_of, model_cost, subset_data
from zeronorm.engines.weighting.learners._base import CompiledLearner, check_number
from zeronorm.engines.weighting.learners._nearest import label_means
from zeronorm.solvers.svm._smo import smo


class SubsetSVM(CompiledLearner):
    r"""Linear SVM, :math:`\tfrac12\|w\|^2 + C\sum\xi`, the bias not penalised.

    Parameters
    ----------
    C : cost of a margin violation.
    tol : largest violation of the optimality conditions; a search over many subsets needs no higher accuracy.
    max_iter : largest number of solver steps for one model.
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
    """Errors of a range of subsets; the models of a subset share its Gram matrix."""
    for b in range(first, last):
        train, test = subset_data(pool, draws, b)
        K = small_gram(train)
        total = 0.0
        for m in range(pool.coding.shape[0]):
            labels = labels_of(pool.coding[m], pool.codes, draws.train[b])
            predicted = svm_predict(K, train, labels, test, settings)
            total += model_cost(pool, m, draws.test[b], predicted)
        out[b] = total / pool.coding.shape[0]


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
    """Predicted labels 0 or 1 of the test samples; with a single training label, that label."""
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
    """The bias: the midpoint of the interval that the optimality conditions allow."""
    low, high = -np.inf, np.inf
    for i in range(alpha.shape[0]):
        residual = sign[i] - f[i]
        if (alpha[i] < upper[i]) if sign[i] > 0.0 else (alpha[i] > 0.0):
            low = max(low, residual)
        if (alpha[i] > 0.0) if sign[i] > 0.0 else (alpha[i] < upper[i]):
            high = min(high, residual)
    return 0.5 * (low + high)


# -- Discriminant analysis --

# Least diagonal of the covariance, for classes that are a single point each.
SMALLEST_VARIANCE = 1e-12


class SubsetLDA(CompiledLearner):
    r"""Linear discriminant analysis with a shrunken covariance.

    .. math:: \hat\Sigma = (1-s)\,S + s\,\frac{\operatorname{tr} S}{k} I

    with S the covariance within the classes; the largest :math:`\mu_c^\top\hat\Sigma^{-1}x -
    \tfrac12\mu_c^\top\hat\Sigma^{-1}\mu_c + \log\pi_c` wins, the priors being those of the training sample.

    Parameters
    ----------
    shrinkage : s, above 0 because a small sample has a singular covariance, at most 1.
    """

    def __init__(self, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def check(self, bootstrap_size: int) -> None:
        check_number(self, "shrinkage", 0.0, strict=True, high=1.0)

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        lda_errors(pool, draws, float(self.shrinkage), first, last, out)

    def as_estimator(self) -> Any:
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=self.shrinkage)


@kernel
def lda_errors(pool: Pool, draws: Draws, shrinkage: float, first: int, last: int, out: FloatArray) -> None:
    """Errors of a range of subsets."""
    for b in range(first, last):
        train, test = subset_data(pool, draws, b)
        total = 0.0
        for m in range(pool.coding.shape[0]):
            labels = labels_of(pool.coding[m], pool.codes, draws.train[b])
            predicted = lda_predict(train, labels, test, pool.n_labels, shrinkage)
            total += model_cost(pool, m, draws.test[b], predicted)
        out[b] = total / pool.coding.shape[0]


@kernel
def lda_predict(
    train: FloatArray, labels: Int64Array, test: FloatArray, n_labels: int, shrinkage: float
) -> Int64Array:
    """For each test sample the label with the largest discriminant."""
    means, counts = label_means(train, labels, n_labels)
    factor = shrunken_covariance(train, labels, means, shrinkage)
    cholesky_in_place(factor)
    best = np.full(test.shape[1], -np.inf)
    predicted = np.zeros(test.shape[1], np.int64)
    for label in range(n_labels):
        if counts[label] == 0.0:
            continue
        direction = means[label].copy()
        solve_cholesky(factor, direction)
        offset = np.log(counts[label] / labels.shape[0])
        for f in range(direction.shape[0]):
            offset -= 0.5 * direction[f] * means[label, f]
        for j in range(test.shape[1]):
            score = offset
            for f in range(direction.shape[0]):
                score += direction[f] * test[f, j]
            if score > best[j]:
                best[j] = score
                predicted[j] = label
    return predicted


@kernel
def shrunken_covariance(
    train: FloatArray, labels: Int64Array, means: FloatArray, shrinkage: float
) -> FloatArray:
    """Covariance within the labels, shrunk towards a multiple of the identity."""
    k, n = train.shape
    residual = np.empty((n, k))
    for f in range(k):
        for i in range(n):
            residual[i, f] = train[f, i] - means[labels[i], f]
    S = np.zeros((k, k))
    for i in range(n):
        row = residual[i]
        for f in range(k):
            value = (1.0 - shrinkage) * row[f] / n
            for g in range(k):
                S[f, g] += value * row[g]
    trace = 0.0
    for f in range(k):
        for i in range(n):
            trace += residual[i, f] * residual[i, f] / n
    for f in range(k):
        S[f, f] += shrinkage * trace / k + SMALLEST_VARIANCE
    return S


@kernel
def cholesky_in_place(A: FloatArray) -> None:
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor."""
    for j in range(A.shape[0]):
        for i in range(j, A.shape[0]):
            value = A[i, j]
            for k in range(j):
                value -= A[i, k] * A[j, k]
            A[i, j] = np.sqrt(value) if i == j else value / A[j, j]


@kernel
def solve_cholesky(L: FloatArray, b: FloatArray) -> None:
    """Replace b by the solution of L L' x = b."""
    n = b.shape[0]
    for i in range(n):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]
