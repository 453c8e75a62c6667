"""Data and methods of the experiments of Huang, King and Lyu (2008)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

from zeronorm.studies.study import Arm, Data
from zeronorm.studies.trials import Sample, resplits, sample_of

ALL_FEATURE_ERRORS = {"Sonar": 27.86, "Breast": 2.63, "Colon": 13.33, "Lymphoma": 4.21}
SIZES = {
    "Sonar": (2, 6, 10, 14, 18, 22, 34, 42, 50),
    "Breast": (2, 4, 6, 8),
    "Colon": (20, 40, 60, 80, 250, 500, 1000),
    "Lymphoma": (20, 40, 60, 80, 250, 500, 1000),
}
TEST_SHARE = 0.2


@cache
def colon() -> Sample:
    """Colon data with the decimal logarithm of the intensities."""
    X, y = sample_of("colon")
    return np.log10(X), y


@cache
def breast() -> Sample:
    """The complete rows of the Wisconsin data."""
    X, y = sample_of("breast_cancer_wisconsin_original")
    complete = ~(np.isnan(X) | (X < 0)).any(axis=1)
    return X[complete], y[complete]


def sonar() -> Sample:
    return sample_of("sonar")


def lymphoma() -> Sample:
    """Malignant (62) against other (34)."""
    return sample_of("lymphoma", "y_malignant")


@cache
def wine() -> Sample:
    """A small embedded data set, first two classes, for quick versions."""
    X, y = load_wine(return_X_y=True)
    return X[y < 2], y[y < 2]


def papers_data(n_trials: int) -> tuple[Data, ...]:
    """The four data sets of Table 1."""
    loaders: dict[str, Callable[[], Sample]] = {
        "Sonar": sonar,
        "Breast": breast,
        "Colon": colon,
        "Lymphoma": lymphoma,
    }
    return tuple(
        resplits(name, load, n_trials=n_trials, test_size=TEST_SHARE) for name, load in loaders.items()
    )


def embedded_data(n_trials: int) -> Data:
    return resplits("Wine", wine, n_trials=n_trials, test_size=TEST_SHARE)


def accuracy_arms(sizes: tuple[int, ...], data: str) -> list[Arm]:
    """The four selectors on one data set; labels carry it, since sizes differ between data sets."""
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "ZeroNormSVM": ("zeronorm-svm", {"C": 10.0, "scaling": "paper"}),
        "AROM": ("arom", {"C": 10.0, "scaling": "paper"}),
        "FSV": ("fsv", {}),
        "SVM weights": ("svm-weights", {"C": 1.0}),
    }
    return [
        Arm(f"{label}, {data}", method, params, sizes=sizes, only=(data,))
        for label, (method, params) in methods.items()
    ]
