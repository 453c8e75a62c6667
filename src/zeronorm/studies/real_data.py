"""Two-class data sets of the systematic comparison, each with probes appended."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine

from zeronorm.studies.declared.guyon2003_spectra import spectra
from zeronorm.studies.study import Arm, Data, Sample, folds, resplits, sample_of

# -- Data and methods of the experiments of Huang, King and Lyu (2008) --


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


N_PROBES = 100
NAMED = (
    "arcene",
    "dexter",
    "madelon",
    "leukemia",
    "lung_gordon",
    "sonar",
    "ionosphere",
    "spambase",
)
RIBOSOMAL = 2


@cache
def yeast() -> Sample:
    """Genes of the ribosome against the other four classes."""
    X, y = sample_of("brown_yeast")
    return X, (y == RIBOSOMAL).astype(int)


@cache
def digits_four_and_nine() -> Sample:
    """The pair of digits that is easiest to confuse, from the training part."""
    X, y = sample_of("usps")
    kept = np.isin(y, (4, 9))
    return X[kept], (y[kept] == 9).astype(int)


SHAPED: dict[str, Callable[[], Sample]] = {
    "colon": colon,
    "lymphoma": lymphoma,
    "breast": breast,
    "prostate": spectra,
    "usps 4 or 9": digits_four_and_nine,
    "yeast": yeast,
}


def append_probes(X: Any, n_probes: int, seed: int = 0) -> Any:
    """Drawn columns with their rows in another order; missing values stay where the rows put them."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, X.shape[1], size=n_probes)
    rows = rng.permutation(X.shape[0])
    probes = X[rows][:, columns]
    return sp.hstack([X, probes]).tocsr() if sp.issparse(X) else np.hstack([X, probes])


@cache
def probed(name: str) -> Sample:
    X, y = SHAPED[name]() if name in SHAPED else sample_of(name)
    return append_probes(X, N_PROBES), y


def real_data(n_folds: int) -> tuple[Data, ...]:
    """The 14 data sets; those with a published second part give their training part."""
    return tuple(folds(name, partial(probed, name), n_folds=n_folds) for name in sorted((*NAMED, *SHAPED)))


@cache
def embedded(name: str) -> Sample:
    X, y = load_wine(return_X_y=True) if name == "wine" else load_breast_cancer(return_X_y=True)
    X, y = X[y < 2][:200], y[y < 2][:200]
    return append_probes(X, N_PROBES), y


def quick_data(n_folds: int) -> tuple[Data, ...]:
    return tuple(folds(name, partial(embedded, name), n_folds=n_folds) for name in ("wine", "tumours"))
