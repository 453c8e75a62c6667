r"""Probabilities of classes from decision values, and how well probabilities fit the classes that were found.

With one score :math:`s_{ic}` per sample and class,

.. math:: P(y_i = c) = \frac{\exp(a s_{ic} + b_c)}{\sum_d \exp(a s_{id} + b_d)},

one slope for all classes and one bias per class. For two classes with the scores :math:`\mp f/2` this is Platt's (1999)
sigmoid of the decision value f. With K parameters for K classes it can be fitted to the few samples of a rare class,
and it needs no normalisation of K separate sigmoids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from zeronorm._types import FloatArray, IntArray

MOST_STEPS = 100
STEEPEST = 1e3  # a slope beyond it, in units of the scores, means that the scores separate the classes
LEVERAGE_TOLERANCE = 1e-4  # change of a leverage, relative to the mean, at which the prior has converged
LEAST_DECREMENT = 1e-18  # Newton's decrement, relative to the number of samples, at which a fit ends


@dataclass(frozen=True)
class ScoreModel:
    """Slope and biases of the probabilities, with the covariance of the slope and the biases after the first.

    ``is_finite`` is False where the likelihood has no single maximum, because the scores separate the classes or are
    the same for all samples.
    """

    slope: float
    biases: FloatArray
    covariance: FloatArray
    is_finite: bool = True


def fit_probabilities(scores: FloatArray, codes: IntArray, weights: FloatArray | None = None) -> ScoreModel:
    r"""The slope and the biases that fit the classes of held-out samples.

    The likelihood is multiplied by Jeffreys' prior (Firth 1993), which removes most of the bias of small samples and
    gives finite slopes for scores that separate the classes. As shown by Heinze and Schemper (2002) for two classes,
    this is the fit to samples that count :math:`1 + h_i`, with a share :math:`h_i` divided equally among the classes,
    where :math:`h_i` is the leverage of the sample. (Platt's own targets, (N + 1)/(N + 2), made slopes of 100 samples
    12 % too small.) A negative slope, which held-out scores have by chance if they say nothing, becomes 0.

    Parameters
    ----------
    scores : one column per class, of samples that the models were not trained on.
    codes : the class of each sample.
    weights : weight of each sample; None: all the same.
    """
    n_samples, n_classes = scores.shape
    w = np.ones(n_samples) if weights is None else weights
    found = _fit_with_prior(scores, np.eye(n_classes)[codes], w, None)
    return found if found.slope >= 0 else _fit_with_prior(scores, np.eye(n_classes)[codes], w, 0.0)


def _fit_with_prior(scores: FloatArray, hits: FloatArray, w: FloatArray, slope: float | None) -> ScoreModel:
    n_samples, n_classes = scores.shape
    leverage = np.full(n_samples, n_classes / n_samples)
    for _ in range(MOST_STEPS):
        extra = leverage[:, None]
        found = fit_scores(scores, (hits + extra / n_classes) / (1 + extra), w * (1 + leverage), slope=slope)
        new = _leverage(scores, found, w, with_slope=slope is None)
        if np.abs(new - leverage).max() <= LEVERAGE_TOLERANCE * new.mean():
            break
        leverage = new
    return found


def _leverage(scores: FloatArray, found: ScoreModel, w: FloatArray, *, with_slope: bool) -> FloatArray:
    """How much each sample, as often as it counts, determines the parameters; the sum is their number."""
    shares = probabilities_of(scores, found.slope, found.biases)
    derivative = _derivatives(scores, with_slope=with_slope)
    inverse = np.linalg.pinv(_hessian(derivative, shares, w), hermitian=True)
    centered = derivative - np.einsum("nc,ncj->nj", shares, derivative)[:, None, :]
    return np.asarray(np.einsum("nc,ncj,jk,nck->n", shares, centered, inverse, centered, optimize=True))


def probabilities_of(scores: FloatArray, slope: float, biases: Any, shrinkage: Any = 1.0) -> FloatArray:
    """The probability of every class; ``shrinkage`` below 1 makes them less certain."""
    return np.asarray(softmax(shrinkage * (slope * scores + np.asarray(biases)), axis=1))


def fit_scores(
    scores: FloatArray,
    targets: FloatArray,
    weights: FloatArray | None = None,
    *,
    slope: float | None = None,
    groups: NDArray[Any] | None = None,
) -> ScoreModel:
    """The maximum of the multinomial likelihood by Newton's method; ``slope`` fixes the slope.

    With ``groups`` the covariance allows for samples of one group that are not independent (the sandwich estimator).
    """
    n_classes = scores.shape[1]
    w = np.ones(len(scores)) if weights is None else weights
    unit = float(np.ptp(scores)) or 1.0
    is_informative = slope is not None or _differ(scores)
    derivative = _derivatives(scores / unit, with_slope=slope is None)
    fixed = (0.0 if slope is None else slope) * scores
    found = np.zeros(derivative.shape[2])

    def loss(at: FloatArray) -> float:
        logits = fixed + derivative @ at
        return float(w @ (logsumexp(logits, axis=1) - np.sum(targets * logits, axis=1)))

    value, is_finite = loss(found), False
    for _ in range(MOST_STEPS):
        shares = softmax(fixed + derivative @ found, axis=1)
        parts = np.einsum("nc,ncj->nj", shares - targets, derivative) * w[:, None]
        hessian = _hessian(derivative, shares, w)
        step = np.linalg.lstsq(hessian, parts.sum(axis=0), rcond=None)[0]
        if float(parts.sum(axis=0) @ step) <= LEAST_DECREMENT * w.sum():
            is_finite = True
            break
        size = 1.0
        while (new := loss(found - size * step)) > value and size > 1e-9:
            size /= 2
        found, value = found - size * step, new
    covariance = _covariance(hessian, parts, groups)
    is_finite = is_finite and is_informative
    own_slope = slope if slope is not None else found[0] / unit
    if slope is None:
        is_finite = is_finite and abs(found[0]) < STEEPEST
        covariance[0] /= unit
        covariance[:, 0] /= unit
    biases = np.concatenate([[0.0], found[len(found) - n_classes + 1 :]])
    return ScoreModel(float(own_slope), biases, covariance, is_finite)


def _differ(scores: FloatArray) -> bool:
    """Whether the scores distinguish samples: whether their differences between classes vary."""
    gaps = scores - scores[:, :1]
    return bool(np.any(np.ptp(gaps, axis=0) > 0.0))


def _derivatives(scores: FloatArray, *, with_slope: bool) -> FloatArray:
    """Derivatives of the logits of every sample and class in the slope and in all biases but the first."""
    n_samples, n_classes = scores.shape
    of_biases = np.broadcast_to(np.eye(n_classes)[:, 1:], (n_samples, n_classes, n_classes - 1))
    return np.concatenate([scores[:, :, None], of_biases], axis=2) if with_slope else np.array(of_biases)


def _hessian(derivative: FloatArray, shares: FloatArray, w: FloatArray) -> FloatArray:
    mean = np.einsum("nc,ncj->nj", shares, derivative)
    whole = np.einsum("n,nc,ncj,nck->jk", w, shares, derivative, derivative, optimize=True)
    return np.asarray(whole - (mean * w[:, None]).T @ mean)


def _covariance(hessian: FloatArray, parts: FloatArray, groups: NDArray[Any] | None) -> FloatArray:
    inverse = np.linalg.pinv(hessian, hermitian=True)
    if groups is None:
        return np.asarray(inverse, dtype=np.float64)
    _, codes = np.unique(groups, return_inverse=True)
    sums = np.zeros((int(codes.max()) + 1, parts.shape[1]))
    np.add.at(sums, codes, parts)
    factor = len(sums) / max(1, len(sums) - 1)
    return np.asarray(factor * inverse @ (sums.T @ sums) @ inverse, dtype=np.float64)
