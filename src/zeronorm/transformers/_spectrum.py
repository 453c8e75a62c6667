"""Preprocessing of mass spectra."""

# mypy: allow-untyped-defs

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve1d
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.design import in_memory
from zeronorm.registry import register
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._kinds import parameter_error

Crop = tuple[int, int] | None


@register(
    "spectrum-preprocessor",
    kind="transformer",
    family="spectra",
    tasks=("any",),
    reference="Guyon et al. 2003, section 2.1",
    cost="n p times the width of the windows",
    oracle="scipy's filters and plain loops, step by step",
    avoid="columns that are not neighbouring positions of one signal",
    test_params=(
        {},
        {"baseline_window": None, "smoothing_window": 3, "square_root": False, "top_fraction": None},
    ),
)
class SpectrumPreprocessor(CheckedParameters, TransformerMixin, BaseEstimator):
    r"""Turn raw spectra into comparable features: one row per spectrum, one column per position.

    The steps, each of which can be switched off:

    1. ``crop`` the range of positions;
    2. subtract the baseline: at each position the median of the lowest ``baseline_fraction`` of the values
       in a window around it;
    3. smooth with weights :math:`\exp(-|d| / \text{smoothing\_width})` over the distances d in a window;
    4. divide each spectrum by the median of its highest ``top_fraction`` of values;
    5. take the square root, which makes the variance of counts nearly constant;
    6. ``final_crop`` the cropped range again, to remove border effects.

    Windows are cut off at the borders, and smoothing weights then sum to one over the remaining positions. The paper
    gives neither the baseline window nor the width of the exponential: the default window of 201 reaches as far as the
    100 positions that the paper cuts off at each border, the default width is a choice of this library. Its ranges
    1401:11100 and 101:9600 are ``crop=(1400, 11100)`` and ``final_crop=(100, 9600)`` here.

    Baseline subtraction leaves some values below zero by construction. Before the square root they become
    zero, or raise an error with ``negative="raise"``. A spectrum whose highest values have a median of zero
    (a flat one) is not divided; a negative median is an error. Every spectrum is processed independently,
    so nothing is learnt from the training data.

    Parameters
    ----------
    negative
        "zero" sets negative values to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.transformers import SpectrumPreprocessor
    >>> spectra = np.random.default_rng(0).poisson(20, size=(3, 50)).astype(float)
    >>> SpectrumPreprocessor(crop=(10, 40), baseline_window=11).fit_transform(spectra).shape
    (3, 30)
    """

    def __init__(
        self,
        *,
        crop: Crop = None,
        baseline_window: int | None = 201,
        baseline_fraction: float = 0.2,
        smoothing_window: int | None = 9,
        smoothing_width: float = 2.0,
        top_fraction: float | None = 0.05,
        square_root: bool = True,
        negative: Literal["zero", "raise"] = "zero",
        final_crop: Crop = None,
    ) -> None:
        self.crop = crop
        self.baseline_window = baseline_window
        self.baseline_fraction = baseline_fraction
        self.smoothing_window = smoothing_window
        self.smoothing_width = smoothing_width
        self.top_fraction = top_fraction
        self.square_root = square_root
        self.negative = negative
        self.final_crop = final_crop

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters against the number of positions; the values of X are not used."""
        self._validate_params()
        X = validate_data(self, in_memory(X, self), dtype=(np.float64, np.float32))
        self._first = _crop(self.crop, X.shape[1], "crop")
        self._final = _crop(self.final_crop, self._first.stop - self._first.start, "final_crop")
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Preprocess spectra, one per row."""
        check_is_fitted(self)
        X = validate_data(self, in_memory(X, self), reset=False, dtype=(np.float64, np.float32))
        spectra = np.array(X[:, self._first], dtype=np.float64, order="C")
        if self.baseline_window is not None:
            spectra -= _baseline(spectra, self.baseline_window, self.baseline_fraction)
        if self.smoothing_window is not None:
            spectra = _smooth(spectra, self.smoothing_window, self.smoothing_width)
        if self.top_fraction is not None:
            spectra /= _heights(spectra, self.top_fraction)[:, None]
        if self.square_root:
            spectra = self._square_root(spectra)
        return np.ascontiguousarray(spectra[:, self._final]).astype(X.dtype, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the positions that are left after both crops."""
        check_is_fitted(self)
        names: NDArray[Any] = _check_feature_names_in(self, input_features)
        return names[self._first][self._final]

    def _square_root(self, spectra: FloatArray) -> FloatArray:
        if self.negative == "raise" and spectra.min(initial=0.0) < 0.0:
            row, column = np.argwhere(spectra < 0.0)[0]
            raise ValueError(
                f"SpectrumPreprocessor found {np.count_nonzero(spectra < 0.0)} values below zero before the square "
                f"root, the first in spectrum {row} at position {self._first.start + column}: "
                f"{spectra[row, column]:g}. Use negative='zero' to set them to zero, or square_root=False."
            )
        return np.sqrt(np.maximum(spectra, 0.0))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _crop(crop: Any, length: int, name: str) -> slice:
    if crop is None:
        return slice(0, length)
    if not crop[0] < crop[1] <= length:
        must_be = f"None or two positions (first, last + 1) within the {length} positions there are"
        raise parameter_error("SpectrumPreprocessor", name, must_be, crop)
    return slice(int(crop[0]), int(crop[1]))


def _baseline(spectra: FloatArray, window: int, fraction: float) -> FloatArray:
    baseline = np.empty_like(spectra)
    lower_median(spectra, min(window // 2, spectra.shape[1]), float(fraction), baseline)
    return baseline


def _smooth(spectra: FloatArray, window: int, width: float) -> FloatArray:
    half = min(window // 2, spectra.shape[1])
    weights = np.exp(-np.abs(np.arange(-half, half + 1)) / width)
    total = convolve1d(np.ones(spectra.shape[1]), weights, mode="constant")
    return np.asarray(convolve1d(spectra, weights, axis=1, mode="constant") / total)


def _heights(spectra: FloatArray, fraction: float) -> FloatArray:
    """Median of the highest values of each spectrum; 1 where it is zero."""
    length = spectra.shape[1]
    count = max(1, math.ceil(fraction * length - 1e-9))
    top = np.partition(spectra, length - count, axis=1)[:, length - count :]
    heights: FloatArray = np.median(top, axis=1)
    if heights.min(initial=0.0) < 0.0:
        row = int(np.argmin(heights))
        raise ValueError(
            f"SpectrumPreprocessor cannot scale spectrum {row}: the median of its highest values is negative, "
            f"{heights[row]:g}. Subtract a baseline first, or use top_fraction=None."
        )
    return np.where(heights > 0.0, heights, 1.0)


# -- Compiled order statistics of a moving window --


@kernel
def lower_median(spectra, half, fraction, baseline):
    """Median of the lowest ``fraction`` of the values at most ``half`` positions away, for every position.

    Windows end at the borders of the spectrum. The sorted window is kept from one position to the next.
    """
    n, length = spectra.shape
    window = np.empty(2 * half + 1)
    for i in range(n):
        x, size = spectra[i], 0
        for j in range(min(half, length)):
            size = _insert(window, size, x[j])
        for j in range(length):
            if j + half < length:
                size = _insert(window, size, x[j + half])
            if j - half > 0:
                size = _remove(window, size, x[j - half - 1])
            lowest = max(1, int(np.ceil(fraction * size - 1e-9)))
            baseline[i, j] = 0.5 * (window[(lowest - 1) // 2] + window[lowest // 2])


@kernel
def _insert(window, size, value):
    index = np.searchsorted(window[:size], value)
    for k in range(size, index, -1):
        window[k] = window[k - 1]
    window[index] = value
    return size + 1


@kernel
def _remove(window, size, value):
    index = np.searchsorted(window[:size], value)
    for k in range(index, size - 1):
        window[k] = window[k + 1]
    return size - 1
