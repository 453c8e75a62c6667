"""Nearest class mean in a bootstrap sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting.learners.base import CompiledLearner
from zeronorm.engines.weighting.pool import Pool, labels_of, machine_cost
from zeronorm.engines.weighting.sampling import Draws, distinct, gather


class SubsetCentroid(CompiledLearner):
    """The class whose mean is nearest (Euclidean distance); the lower class wins a tie."""

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        centroid_errors(pool, draws, first, last, out)

    def as_estimator(self) -> Any:
        from sklearn.neighbors import NearestCentroid

        return NearestCentroid()


@kernel
def centroid_errors(pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
    """Errors of a range of subsets."""
    n_machines = pool.coding.shape[0]
    for b in range(first, last):
        features = distinct(draws.features[b])
        train = gather(pool.columns, features, draws.train[b])
        test = gather(pool.test_columns, features, draws.test[b])
        total = 0.0
        for m in range(n_machines):
            labels = labels_of(pool.coding[m], pool.codes, draws.train[b])
            predicted = centroid_predict(train, labels, test, pool.n_labels)
            total += machine_cost(pool, m, draws.test[b], predicted)
        out[b] = total / n_machines


@kernel
def centroid_predict(train: FloatArray, labels: Int64Array, test: FloatArray, n_labels: int) -> Int64Array:
    """Label of the nearest mean of each test sample; labels absent from the training sample never win."""
    means, counts = label_means(train, labels, n_labels)
    predicted = np.empty(test.shape[1], np.int64)
    for j in range(test.shape[1]):
        best = np.inf
        for label in range(n_labels):
            if counts[label] == 0.0:
                continue
            distance_sq = 0.0
            for f in range(train.shape[0]):
                distance_sq += (test[f, j] - means[label, f]) * (test[f, j] - means[label, f])
            if distance_sq < best:
                best = distance_sq
                predicted[j] = label
    return predicted


@kernel
def label_means(train: FloatArray, labels: Int64Array, n_labels: int) -> tuple[FloatArray, FloatArray]:
    """Mean of each label (one row each; zero for absent labels), and the number of its samples."""
    means = np.zeros((n_labels, train.shape[0]))
    counts = np.zeros(n_labels)
    for i in range(labels.shape[0]):
        counts[labels[i]] += 1.0
    for f in range(train.shape[0]):
        for i in range(labels.shape[0]):
            means[labels[i], f] += train[f, i]
        for label in range(n_labels):
            means[label, f] /= max(counts[label], 1.0)
    return means, counts
