"""Rules that choose the number of features from the scores of all sizes in all folds."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.selection._path import TIE_TOLERANCE

SizeRule = Literal["fewest", "recommended", "all"]
RULES: tuple[SizeRule, ...] = get_args(SizeRule)
# The curve of scores is smoothed by local lines with Gaussian weights of this standard deviation in the logarithm of
# the size. It, the tolerances (in standard errors, from and to) and the least unit of the tolerances (a share of the
# difference between the best and the worst size) were chosen on the data sets `TUNING` of the studies. Inner curves of
# two disjoint sets of six repeats on 12 outer splits of four of them: with one tolerance, the middle, the two chosen
# sizes differed by more than 40 % in 42 % of the draws, with the mean over tolerances in 29 %; the errors outside were
# 6.9 and 6.8 % ("fewest": 7.2 % with 10 features, 7.2 % with 8).
SMOOTHING = 0.35
TOLERANCES = {"fewest": (0.5, 1.5), "recommended": (0.0, 1.0)}
SHARE_OF_RANGE = 0.04
N_TOLERANCES = 20  # for the mean over them


def choose_sizes(
    sizes: NDArray[np.intp],
    scores: FloatArray,
    *,
    n_folds: int | None = None,
    no_features: float | None = None,
) -> dict[SizeRule, int]:
    r"""The index of the size that each rule chooses; the sizes of the rules increase in their order.

    With :math:`\hat s_k` the smoothed mean score of size k, :math:`k^*` its best size and :math:`\hat\sigma` the root
    mean square of the standard errors of all sizes, size

    .. math:: k(t) = \min\{k : \hat s_k \ge \hat s_{k^*} - t \hat\sigma\}

    is nearly as good as the best, by the tolerance t. Curves are often flat, and k(t) for a single t changes with the
    folds; so a rule is the geometric mean of k(t) over a range of t (the nearest size that was tried):

    - "all": t = 0, the best size. More features do not help.
    - "recommended": t from 0 to 1, half a standard error in the mean.
    - "fewest": t from ½ to 1½, one standard error in the mean.

    Where 4 % of the difference between the best and the worst size are more than :math:`\hat\sigma`, they take its
    place. Smoothing blurs a step of the curve, such as that at the two features of an interaction; so a size whose own
    mean is above the best of the smoothed curve, for "recommended" by half of that unit, is good enough for every t.

    Parameters
    ----------
    sizes : numbers of features, ascending.
    scores : one row per fold and one column per size; greater is better.
    n_folds : folds of one repeat, whose test samples are disjoint; None: all rows. Repeats make the means more precise,
        but the standard error stays that of one repeat, since all repeats use the same samples.
    no_features : the score without any feature, which a model that shrinks its weights reaches with useless ones.
        The smallest size is chosen if none is better by more than one standard error.
    """
    mean = scores.mean(axis=0)
    smooth = smoothed(sizes, mean)
    errors = standard_errors(scores, n_folds)
    best, top = _first_at_least(mean, float(mean.max())), _first_at_least(smooth, float(smooth.max()))
    if no_features is not None and mean[best] - errors[best] <= no_features and len(scores) > 1:
        return dict.fromkeys(RULES, 0)
    unit = max(float(np.sqrt(np.mean(errors**2))), SHARE_OF_RANGE * float(smooth[top] - smooth.min()))
    log_size = np.log(np.asarray(sizes, dtype=np.float64))
    slack = TIE_TOLERANCE * float(np.abs(smooth).max())

    def mean_size(least: float, most: float) -> int:
        """The index of the size nearest to the geometric mean of the smallest that are good enough."""
        tolerances = unit * np.linspace(least, most, N_TOLERANCES)
        is_enough = mean > smooth[top] + (0.5 - least) * unit + slack
        reaches = is_enough | (smooth >= smooth[top] - tolerances[:, None] - slack)
        return int(np.argmin(np.abs(log_size - log_size[reaches.argmax(axis=1)].mean())))

    fewest, recommended = (mean_size(*TOLERANCES[rule]) for rule in ("fewest", "recommended"))
    return {"fewest": fewest, "recommended": recommended, "all": top}


def smoothed(sizes: NDArray[np.intp], mean: FloatArray) -> FloatArray:
    """The mean scores, each replaced with the value of a line fitted to the scores of similar sizes.

    At size s the line is fitted in log(size) with the weights exp(-(log(t/s))² / (2 h²)), h = ``SMOOTHING``.
    """
    x = np.log(np.asarray(sizes, dtype=np.float64))
    offset = x[None, :] - x[:, None]
    weight = np.exp(-0.5 * (offset / SMOOTHING) ** 2)
    total, first, second = ((weight * offset**power).sum(axis=1) for power in range(3))
    spread = total * second - first**2
    # A size without neighbours keeps its own score.
    is_alone = spread <= TIE_TOLERANCE * np.maximum(total**2, 1.0)
    value = (second * (weight @ mean) - first * ((weight * offset) @ mean)) / np.where(is_alone, 1.0, spread)
    return np.where(is_alone, mean, value)


def standard_errors(scores: FloatArray, n_folds: int | None = None) -> FloatArray:
    """The standard error of the mean of each size: the standard deviation over all rows, over √(folds of a repeat)."""
    rows = len(scores)
    deviation = scores.std(axis=0, ddof=1) if rows > 1 else np.zeros(scores.shape[1])
    return np.asarray(deviation / np.sqrt(min(rows, n_folds or rows)))


def _first_at_least(mean: FloatArray, threshold: float) -> int:
    """The smallest size that reaches the threshold, up to rounding."""
    return int(np.flatnonzero(mean >= threshold - TIE_TOLERANCE * np.abs(mean).max())[0])
