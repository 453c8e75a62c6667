"""Stability: how similar the subsets are that a method selects on different samples of the data.

All measures take the selections either as a boolean table (one row per run, one column per feature)
or as lists of selected columns together with ``n_features``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from zeronorm._types import BoolArray
from zeronorm.design import Design, as_design
from zeronorm.evaluation._records import columns_of, frame_of_rows
from zeronorm.evaluation.significance._effects import EffectSize

BLOCK_WIDTH = 1024
FEWEST_RUNS = 5  # for an interval


def as_masks(selections: Any, n_features: int | None = None) -> BoolArray:
    """Selections as a boolean table of runs by features."""
    if isinstance(selections, np.ndarray) and selections.ndim == 2 and selections.dtype == bool:
        masks = selections
    elif n_features is None:
        raise ValueError("Lists of selected columns need 'n_features', the number of all features.")
    else:
        masks = np.zeros((len(selections), n_features), dtype=bool)
        for mask, columns in zip(masks, selections, strict=True):
            indices = np.asarray(columns, dtype=np.intp)
            if indices.size and (indices.min() < 0 or indices.max() >= n_features):
                raise ValueError(
                    f"A selection names column {int(indices.max())}, but there are {n_features} features."
                )
            mask[indices] = True
    if len(masks) < 2:
        raise ValueError(f"Stability needs at least two selections. Got {len(masks)}.")
    return masks


def jaccard_stability(selections: Any, n_features: int | None = None) -> float:
    r"""Mean over all pairs of :math:`|A \cap B| / |A \cup B|`; two empty selections count as equal.

    Parameters
    ----------
    selections : list of arrays
        The selected positions of each run, or one boolean mask per run.
    n_features : int or None, default=None
        Number of features of the data. None is possible for masks only.

    Returns
    -------
    float
        1 when all selections are equal.

    Examples
    --------
    >>> from zeronorm.evaluation import jaccard_stability
    >>> selections = [[0, 1, 2], [0, 1, 3], [0, 1, 2]]
    >>> round(jaccard_stability(selections, 10), 3)
    0.667
    """
    masks = as_masks(selections, n_features)
    shared, sizes = _intersections(masks), masks.sum(axis=1)
    union = sizes[:, None] + sizes[None, :] - shared
    ratio = np.where(union > 0, shared / np.maximum(union, 1), 1.0)
    return _mean_of_pairs(ratio)


def hamming_distance(selections: Any, n_features: int | None = None) -> float:
    """Mean over all pairs of the share of features that are in one selection only (0 is most stable).

    Parameters
    ----------
    selections : list of arrays
        The selected positions of each run, or one boolean mask per run.
    n_features : int or None, default=None
        Number of features of the data. None is possible for masks only.

    Returns
    -------
    float
        0 when all selections are equal.

    Examples
    --------
    >>> from zeronorm.evaluation import hamming_distance
    >>> selections = [[0, 1, 2], [0, 1, 3], [0, 1, 2]]
    >>> round(hamming_distance(selections, 10), 3)
    0.133
    """
    masks = as_masks(selections, n_features)
    sizes = masks.sum(axis=1)
    return _mean_of_pairs((sizes[:, None] + sizes[None, :] - 2 * _intersections(masks)) / masks.shape[1])


def kuncheva_stability(selections: Any, n_features: int | None = None) -> float:
    r"""Mean over all pairs of :math:`(r p - k^2) / (k (p - k))`, r features shared of k selected.

    Corrected for chance: 1 for equal selections, 0 expected for random ones. All selections must
    have the same size k, not 0 and not p; ``nogueira_stability`` is the same measure for any sizes.

    Parameters
    ----------
    selections : list of arrays
        The selected positions of each run, or one boolean mask per run.
    n_features : int or None, default=None
        Number of features of the data. None is possible for masks only.

    Returns
    -------
    float
        1 when all selections are equal.

    Examples
    --------
    >>> from zeronorm.evaluation import kuncheva_stability
    >>> selections = [[0, 1, 2], [0, 1, 3], [0, 1, 2]]
    >>> round(kuncheva_stability(selections, 10), 3)
    0.683
    """
    masks = as_masks(selections, n_features)
    sizes, p = np.unique(masks.sum(axis=1)), masks.shape[1]
    if sizes.size != 1 or not 0 < sizes[0] < p:
        raise ValueError(
            f"Kuncheva's index needs selections of one size between 1 and {p - 1}. "
            f"Got the sizes {sizes.tolist()}; use nogueira_stability for different sizes."
        )
    k = int(sizes[0])
    return _mean_of_pairs((_intersections(masks) * p - k**2) / (k * (p - k)))


def nogueira_stability(
    selections: Any, n_features: int | None = None, *, confidence: float = 0.95
) -> EffectSize:
    r"""Stability of Nogueira, Sechidis & Brown (2018) with its confidence interval.

    With :math:`\hat p_f` the frequency of feature f over M runs, :math:`s_f^2 = \frac{M}{M-1} \hat p_f
    (1 - \hat p_f)` and :math:`\bar k` the mean size,

    .. math:: \hat\Phi = 1 - \frac{\frac1p \sum_f s_f^2}{\frac{\bar k}{p} (1 - \frac{\bar k}{p})}.

    The interval is :math:`\hat\Phi \pm t_{M-1} \sqrt{v}` with the jackknife variance :math:`v = \frac{M-1}{M}
    \sum_i (\hat\Phi_{(i)} - \bar\Phi)^2`, :math:`\hat\Phi_{(i)}` being the stability without run i. The paper's
    asymptotic variance covers too rarely with few runs (0.64 instead of 0.95 with five); the jackknife holds its
    level from five runs on (docs/trust). With fewer runs, or runs that are all the same, there is no interval
    and its limits are NaN. Runs are taken as independent: over the folds of one data set, which share most
    samples, the interval is about other draws of folds, not about other data.

    Parameters
    ----------
    selections : list of arrays
        The selected positions of each run, or one boolean mask per run.
    n_features : int or None, default=None
        Number of features of the data. None is possible for masks only.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    EffectSize
        The stability as ``estimate``, with its interval ``low`` to ``high``.

    Examples
    --------
    >>> from zeronorm.evaluation import nogueira_stability
    >>> selections = [[0, 1, 2], [0, 1, 3], [0, 1, 2]]
    >>> round(nogueira_stability(selections, 10).estimate, 3)
    0.683
    """
    masks = as_masks(selections, n_features)
    _mean_share(masks)
    m, p = masks.shape
    masks = _selected_once(masks)
    counts = masks.sum(axis=0)
    estimate = _stability(counts, m, p)
    if m < FEWEST_RUNS:
        return EffectSize(estimate, np.nan, np.nan, confidence)
    without = np.asarray([_stability(counts - mask, m - 1, p) for mask in masks])
    variance = (m - 1) / m * float(np.sum((without - without.mean()) ** 2))
    if not variance > 0.0:
        return EffectSize(estimate, np.nan, np.nan, confidence)
    half = float(stats.t.ppf((1 + confidence) / 2, m - 1)) * np.sqrt(variance)
    return EffectSize(estimate, max(-1.0, estimate - half), min(1.0, estimate + half), confidence)


def _stability(counts: NDArray[Any], n_runs: int, p: int) -> float:
    """The measure from the number of runs that select each of some features; no run selects the rest of the p features.

    NaN where it is not defined.
    """
    total = int(counts.sum())
    if total in (0, n_runs * p):
        return float("nan")
    frequency, share = counts / n_runs, total / (n_runs * p)
    variance = n_runs / (n_runs - 1) * float(np.sum(frequency * (1 - frequency))) / p
    return 1 - variance / (share * (1 - share))


def correlation_stability(
    selections: Any, X: Any, *, threshold: float = 0.0, n_features: int | None = None
) -> float:
    r"""Stability that forgives swapping correlated features (Sechidis et al. 2019).

    .. math:: \hat\Phi_C = 1 - \frac{\operatorname{tr}(C S)}{\operatorname{tr}(C \Sigma_0)},

    with S the covariance of the selections over the runs, :math:`\Sigma_0` its expectation for
    random selections of the same sizes and :math:`C_{fg} = |\rho_{fg}|` where it reaches
    ``threshold``, else 0. With C the identity this is ``nogueira_stability``. Reads X in blocks; the
    cost grows with the square of the number of features.

    Parameters
    ----------
    selections : list of arrays
        The selected positions of each run, or one boolean mask per run.
    X : array-like of shape (n_samples, n_features)
        The data, for the correlations.
    threshold : float, default=0.0
        Correlations with a smaller absolute value count as 0.
    n_features : int or None, default=None
        Number of features of the data. None is possible for masks only.

    Returns
    -------
    float
        1 when all selections are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.evaluation import correlation_stability
    >>> selections = [[0, 1, 2], [0, 1, 3], [0, 1, 2]]
    >>> X = np.random.default_rng(0).normal(size=(20, 4))
    >>> X[:, 3] = X[:, 2]  # these two can replace each other
    >>> round(correlation_stability(selections, X, threshold=0.9), 3)
    1.0
    """
    design = as_design(X)
    masks = as_masks(selections, design.n_features if n_features is None else n_features)
    m, p = masks.shape
    if design.n_features != p:
        raise ValueError(f"X has {design.n_features} features, but the selections have {p}.")
    share = _mean_share(masks)
    sizes = masks.sum(axis=1).astype(np.float64)
    ever = np.flatnonzero(masks.any(axis=0))
    centered = masks[:, ever] - masks[:, ever].mean(axis=0)
    selected = design.take(ever).standardized().block(slice(None))
    similar = _similarity(selected, selected, threshold)
    observed = float(np.sum((centered @ similar) * centered)) / (m - 1)
    off_diagonal = (float(np.mean(sizes**2)) - float(sizes.mean())) / max(1, p * p - p) - share**2
    expected = p * share * (1 - share) + off_diagonal * (_total_similarity(design, threshold) - p)
    return float(1 - observed / expected)


def _similarity(
    left: NDArray[np.float64], right: NDArray[np.float64], threshold: float
) -> NDArray[np.float64]:
    """Absolute correlations of standardised columns, those below the threshold set to 0."""
    similar: NDArray[np.float64] = np.abs(left.T @ right) / left.shape[0]
    if left is right:
        np.fill_diagonal(similar, 1.0)  # also for constant columns, which correlate with nothing
    similar[similar < threshold] = 0.0
    return similar


def _total_similarity(design: Design, threshold: float) -> float:
    """Sum of all entries of the similarity matrix, block by block."""
    standardized = design.standardized()
    total = 0.0
    for columns, left in standardized.iter_blocks(BLOCK_WIDTH):
        total += float(_similarity(left, left, threshold).sum())
        for start in range(0, columns.start, BLOCK_WIDTH):
            right = standardized.block(slice(start, start + BLOCK_WIDTH))
            total += 2 * float(_similarity(left, right, threshold).sum())
    return total


def stability_of_records(records: Any, n_features: int, *, confidence: float = 0.95) -> Any:
    """A frame with the stability of every method and size in the records of ``evaluate``.

    Columns: ``method, size, mean_size, n_splits, jaccard, hamming, nogueira, low, high``; a measure that
    is not defined (all or no features selected) is empty.

    Parameters
    ----------
    records : DataFrame
        What ``evaluate`` returned.
    n_features : int
        Number of features of the data.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    DataFrame
        One row per method and size: ``method``, ``size``, ``mean_size``, ``n_splits``, ``jaccard``,
        ``hamming``, ``nogueira``, ``low``, ``high``. A measure that is not defined (no feature or all
        features selected) is empty.

    Examples
    --------
    >>> from zeronorm import FisherScore, evaluate
    >>> from zeronorm.datasets import make_linear_toy
    >>> from zeronorm.evaluation import stability_of_records
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> records = evaluate(FisherScore(), X, y, sizes=[2, 5])
    >>> stability_of_records(records, X.shape[1])["size"].to_list()
    [2, 5]
    """
    columns = columns_of(records)
    selections: dict[tuple[str, int | None], list[Any]] = {}
    for method, size, selected in zip(columns["method"], columns["size"], columns["selected"], strict=True):
        if selected is not None:
            selections.setdefault((method, size), []).append(selected)
    rows = []
    for (method, size), found in selections.items():
        masks = as_masks(found, n_features)
        share = masks.mean()
        corrected = nogueira_stability(masks, confidence=confidence) if 0 < share < 1 else None
        rows.append(
            {
                "method": method,
                "size": size,
                "mean_size": float(masks.sum(axis=1).mean()),
                "n_splits": len(found),
                "jaccard": jaccard_stability(masks),
                "hamming": hamming_distance(masks),
                "nogueira": None if corrected is None else corrected.estimate,
                "low": None if corrected is None or np.isnan(corrected.low) else corrected.low,
                "high": None if corrected is None or np.isnan(corrected.high) else corrected.high,
            }
        )
    return frame_of_rows(rows)


def _intersections(masks: BoolArray) -> NDArray[np.float64]:
    as_float = _selected_once(masks).astype(np.float64)
    return as_float @ as_float.T


def _selected_once(masks: BoolArray) -> BoolArray:
    """The columns that at least one run selects."""
    return masks[:, masks.any(axis=0)]


def _mean_of_pairs(values: NDArray[np.float64]) -> float:
    return float(values[np.triu_indices(len(values), k=1)].mean())


def _mean_share(masks: BoolArray) -> float:
    share = float(masks.mean())
    if share in (0.0, 1.0):
        found = "no feature" if share == 0.0 else "every feature"
        raise ValueError(
            f"Stability corrected for chance is not defined when {found} is selected in all runs; "
            "use jaccard_stability."
        )
    return share
