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
# the size. It and the two tolerances below were chosen on the data sets `TUNING` of the studies, on the inner curves of
# 72 outer splits and the errors outside: with three repeats 12.9 % error with a median of 23 features, and 18 % of the
# chosen sizes farther than 30 % from their median over the seeds; the largest mean without smoothing has 12.5 % with 38
# features and 25 %, one standard error 13.7 % with 14 features and 28 %.
SMOOTHING = 0.35
STANDARD_ERRORS = 0.5  # of the best size
SHARE_OF_RANGE = 0.02  # of the difference between the best and the worst size


def choose_sizes(
    sizes: NDArray[np.intp],
    scores: FloatArray,
    *,
    n_folds: int | None = None,
    no_features: float | None = None,
) -> dict[SizeRule, int]:
    """The index of the size that each rule chooses; the sizes of the rules increase in their order.

    - "all": the best mean score of the smoothed curve. More features do not help.
    - "recommended": the smallest size whose smoothed score is nearly as good, that is within half a standard
      error, or within a fiftieth of the difference between the best and the worst size where that is more; or whose own
      mean is better than the best of the smoothed curve by as much.
    - "fewest": the smallest size within one standard error of the best mean, without smoothing (Breiman et al. 1984).

    Parameters
    ----------
    sizes : numbers of features, ascending.
    scores : one row per fold and one column per size; greater is better.
    n_folds : folds of one repeat, whose test samples are disjoint; None: all rows. Repeats make the means more precise,
        but the standard error stays that of one repeat, since all repeats use the same samples.
    no_features : the score without any feature, which a model that shrinks its weights reaches with useless ones.
    """
    mean = scores.mean(axis=0)
    smooth = smoothed(sizes, mean)
    error = standard_errors(scores, n_folds)
    best, top = _first_at_least(mean, float(mean.max())), _first_at_least(smooth, float(smooth.max()))
    good_enough = float(mean[best]) - float(error[best])
    if no_features is not None and good_enough <= no_features and len(scores) > 1:
        return dict.fromkeys(RULES, 0)
    tolerance = max(STANDARD_ERRORS * float(error[top]), SHARE_OF_RANGE * float(smooth[top] - smooth.min()))
    # Smoothing blurs a step of the curve, such as that at the two features of an interaction: a size whose own mean is
    # above the whole smoothed curve is good enough as well.
    is_enough = (smooth >= smooth[top] - tolerance) | (mean >= smooth[top] + tolerance)
    is_enough[top] = True
    recommended = min(top, int(np.flatnonzero(is_enough)[0]))
    return {
        "fewest": min(recommended, _first_at_least(mean, good_enough)),
        "recommended": recommended,
        "all": top,
    }


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
