r"""Means and correlations of the features of a model, for new samples that lack some of them.

Let z be the standardised features of the training samples with the correlation matrix R, P those that the new samples
have and M those of the model that they lack. The linear function of the present features that comes nearest to the
missing ones in mean square is

.. math:: \hat z_M = R_{MP} R_{PP}^{-1} z_P .

A linear model with weights w has the score :math:`w^\top z`, and :math:`w_P^\top z_P + w_M^\top \hat z_M` is the
best linear prediction of this score from the present features: filling in :math:`\hat z_M` is the same as a
least-squares refit of the score. What the refit loses is the residual variance
:math:`\tau^2 = w_M^\top (R_{MM} - R_{MP} R_{PP}^{-1} R_{PM}) w_M`. Neither needs the training samples, only R, which
is kept for the features of the model and a few others that are correlated with them. R is shrunk towards the
identity (Ledoit & Wolf 2004), so that few samples give no large coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Moments:
    """Means, standard deviations and shrunk correlations of features on the training samples.

    Parameters
    ----------
    features : names; those of the model come first.
    mean, scale : mean and standard deviation of each feature.
    correlation : the shrunk correlation matrix.
    """

    features: list[str]
    mean: list[float]
    scale: list[float]
    correlation: list[list[float]]


@dataclass(frozen=True)
class Completion:
    """How missing features of a model are filled in from those that are present.

    Parameters
    ----------
    present, missing : names.
    explained : share of the variance of each missing feature that the present ones explain.
    residual : covariance of the missing features given the present ones, in standard deviations.
    """

    moments: Moments
    present: list[str]
    missing: list[str]
    explained: list[float]
    coefficients: NDArray[np.float64]
    residual: NDArray[np.float64]

    @classmethod
    def of(cls, moments: Moments, model_features: Sequence[str], known: Sequence[str]) -> Completion:
        """The completion of the features of a model from those of the moments that are ``known``."""
        available = set(known)
        present = [name for name in moments.features if name in available]
        missing = [name for name in model_features if name not in available]
        at = {name: index for index, name in enumerate(moments.features)}
        p, m = [at[name] for name in present], [at[name] for name in missing]
        R = np.asarray(moments.correlation, dtype=np.float64)
        coefficients = np.asarray(np.linalg.solve(R[np.ix_(p, p)], R[np.ix_(p, m)]), dtype=np.float64)
        residual = R[np.ix_(m, m)] - R[np.ix_(m, p)] @ coefficients
        explained = (1.0 - np.diag(residual)).clip(0.0, 1.0).tolist()
        return cls(moments, present, missing, explained, coefficients, residual)

    def filled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The missing features from the present ones, a column for each; ``X`` has the columns ``present``."""
        at = {name: index for index, name in enumerate(self.moments.features)}
        mean, scale = np.asarray(self.moments.mean), np.asarray(self.moments.scale)
        p, m = [at[name] for name in self.present], [at[name] for name in self.missing]
        return np.asarray(mean[m] + scale[m] * ((X - mean[p]) / scale[p] @ self.coefficients))
