"""Edge features of the image experiments of Gadat and Younes (2007)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from sklearn.datasets import load_digits

from zeronorm.studies.study import Data, Trial
from zeronorm.studies.trials import Sample, sample_of, second_part_of
from zeronorm.transformers import EdgeFeatures


def edges_of_parts(first: Sample, second: Sample, shape: tuple[int, int]) -> Trial:
    """Binary edge detectors chosen on the training images."""
    (X, y), (X_test, y_test) = first, second
    edges = EdgeFeatures(shape, min_frequency=0.01).fit(X)
    stacked = np.vstack([edges.transform(X), edges.transform(X_test)]).astype(np.float32)
    n = len(y)
    return Trial(stacked, np.concatenate([y, y_test]), np.arange(n), np.arange(n, n + len(y_test)))


@cache
def usps_trial() -> Trial:
    return edges_of_parts(sample_of("usps"), second_part_of("usps"), (16, 16))


@cache
def faces_trial() -> Trial:
    name = "mit_cbcl_faces"
    return edges_of_parts(sample_of(name), second_part_of(name), (19, 19))


@cache
def digits_trial(n_classes: int) -> Trial:
    """Small embedded digits for quick versions."""
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    half = min(300, len(y) // 2)
    return edges_of_parts((X[:half], y[:half]), (X[half : 2 * half], y[half : 2 * half]), (8, 8))


def one_split(label: str, make: Callable[[], Trial], version: int = 1) -> Data:
    """Training and test part as published."""

    def draw(trial: int) -> Trial:
        return make()

    return Data(label, draw, 1, version=version)
