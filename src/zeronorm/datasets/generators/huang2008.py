"""The artificial data set of Huang, King and Lyu (ICDM 2008), which is Breiman's twonorm."""

from __future__ import annotations

import numpy as np

from zeronorm.datasets.generators.synthetic import Seed, SyntheticData, random_signs


def make_twonorm(n_samples: int = 400, *, n_features: int = 20, random_state: Seed = None) -> SyntheticData:
    r"""Two overlapping normal classes; every feature is equally relevant.

    The classes have unit variance around :math:`\pm(a, \dots, a)`, :math:`a = 2/\sqrt{p}`, so that the Bayes
    error is :math:`\Phi(-2) = 2.3\,\%` for every p.
    """
    rng = np.random.default_rng(random_state)
    y = random_signs(n_samples, rng)
    centre = 2.0 / np.sqrt(n_features)
    X = rng.normal(size=(n_samples, n_features)) + centre * y[:, None]
    return SyntheticData(X, y, np.arange(n_features))
