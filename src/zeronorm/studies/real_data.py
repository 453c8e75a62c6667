"""Two-class data sets of the systematic comparison, each with probes appended."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine

from zeronorm.studies.declared.guyon2003_spectra import spectra
from zeronorm.studies.huang import breast, colon, lymphoma
from zeronorm.studies.study import Data
from zeronorm.studies.trials import Sample, folds, sample_of

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
