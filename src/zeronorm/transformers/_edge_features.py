"""Binary edge detectors of grey images, with orientation, position and blur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from zeronorm.design import in_memory
from zeronorm.registry import register
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._kinds import parameter_error

Step = tuple[int, int]
# The step across an edge of each orientation, in rows and columns.
ACROSS: dict[str, Step] = {
    "vertical": (0, 1),
    "horizontal": (1, 0),
    "falling": (1, -1),
    "rising": (1, 1),
}
IMAGES_AT_A_TIME = 512


class EdgeDetector(NamedTuple):
    """One feature: an edge of this orientation and polarity within ``blur`` steps of a position."""

    orientation: str
    polarity: str
    row: int
    column: int
    blur: int

    @property
    def name(self) -> str:
        return f"{self.polarity}{self.orientation}_r{self.row}_c{self.column}_b{self.blur}"


@register(
    "edge-features",
    kind="transformer",
    family="images",
    tasks=(),
    reference="Amit & Geman 1999; Fleuret & Geman 2001; Gadat & Younes 2007, section 5.2",
    cost="images × pixels × orientations × blurs",
    oracle="the definition, pixel by pixel",
    avoid="colour images, or images that are not aligned beyond a few pixels",
    test_params=({}, {"signed": True, "blurs": (0, 2), "min_frequency": 0.05}),
)
class EdgeFeatures(CheckedParameters, TransformerMixin, BaseEstimator):
    r"""Turn grey images into binary features that show where edges are.

    There is an edge between the neighbouring pixels p and q = p + v when their contrast exceeds that of
    the six other pairs around them,

    .. math:: |I(q) - I(p)| > \max\{|I(p) - I(p - v)|, |I(p) - I(p \pm u)|,
        |I(q) - I(q + v)|, |I(q) - I(q \pm u)|\},

    with u at right angles to v; pairs beyond the border do not count. The four steps v give vertical,
    horizontal and two diagonal edges. A feature of blur b is 1 when there is such an edge at most b steps
    across from its position, so that slightly displaced images have similar features. The features do not change when
    grey levels are shifted or multiplied.

    Gadat and Younes take the definition from other papers and report 1926 features of 19×19 images and
    2418 of 16×16 after a preselection they do not state; the numbers here differ.

    Parameters
    ----------
    image_shape
        None: square images, or one row when the number of pixels is not a square.

    Attributes
    ----------
    detectors_ : list
        Orientation, polarity, row, column and blur of each feature.
    image_shape_ : tuple of int
        Rows and columns of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.transformers import EdgeFeatures
    >>> image = np.zeros((1, 36))
    >>> image[:, 18:] = 1.0  # dark above, light below
    >>> edges = EdgeFeatures(orientations=["horizontal"], blurs=[0]).fit(image)
    >>> edges.get_feature_names_out()[edges.transform(image)[0] == 1].tolist()[:2]
    ['horizontal_r2_c0_b0', 'horizontal_r2_c1_b0']
    """

    def __init__(
        self,
        image_shape: tuple[int, int] | None = None,
        *,
        orientations: Sequence[str] = ("vertical", "horizontal", "falling", "rising"),
        blurs: Sequence[int] = (0, 1),
        signed: bool = False,
        min_contrast: float = 0.0,
        min_frequency: float = 0.0,
    ) -> None:
        self.image_shape = image_shape
        self.orientations = orientations
        self.blurs = blurs
        self.signed = signed
        self.min_contrast = min_contrast
        self.min_frequency = min_frequency

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the size of the images and which features are frequent enough."""
        self._validate_params()
        X = validate_data(self, in_memory(X, self), dtype=(np.float64, np.float32))
        self.image_shape_ = self._resolve_shape(X.shape[1])
        detectors = list(self._all_detectors())
        if not detectors:
            raise ValueError(
                f"Images of {self.image_shape_[0]} × {self.image_shape_[1]} pixels have no edges of the chosen "
                f"orientations. Got X with {X.shape[1]} feature(s); set 'image_shape'."
            )
        self._kept = np.arange(len(detectors))
        if self.min_frequency > 0:
            frequency = np.mean(self._detect(X), axis=0)
            self._kept = np.flatnonzero(frequency >= self.min_frequency)
            if self._kept.size == 0:
                raise ValueError(
                    f"No edge is on in a share of {self.min_frequency:g} of the images; the most frequent one has "
                    f"{frequency.max():.3g}. Lower 'min_frequency'."
                )
        self.detectors_ = [detectors[i] for i in self._kept]
        self._n_features_out = len(self.detectors_)
        return self

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """0/1 features, one row per image."""
        check_is_fitted(self)
        X = validate_data(self, in_memory(X, self), reset=False, dtype=(np.float64, np.float32))
        return self._detect(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features: orientation, position and blur."""
        check_is_fitted(self)
        return np.asarray([detector.name for detector in self.detectors_], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return cast("Tags", tags)

    # -- settings -------------------------------------------------------------------------------

    def _resolve_shape(self, n_pixels: int) -> tuple[int, int]:
        if self.image_shape is None:
            side = int(np.sqrt(n_pixels) + 0.5)
            return (side, side) if side * side == n_pixels else (1, n_pixels)
        rows, columns = (int(size) for size in self.image_shape)
        if rows * columns != n_pixels:
            raise parameter_error(
                self, "image_shape", f"rows and columns of images with the {n_pixels} pixels that X has"
            )
        return rows, columns

    def _all_detectors(self) -> Any:
        """All features of images of the learned size, in the order of the columns of ``_detect``."""
        polarities = ("dark_to_light_", "light_to_dark_") if self.signed else ("",)
        for orientation in self.orientations:
            top, bottom, left, right = _positions(self.image_shape_, ACROSS[orientation])
            for polarity in polarities:
                for blur in self.blurs:
                    for row in range(top, bottom):
                        for column in range(left, right):
                            yield EdgeDetector(orientation, polarity, row, column, int(blur))

    # -- edges ----------------------------------------------------------------------------------

    def _detect(self, X: NDArray[Any]) -> NDArray[np.uint8]:
        out = np.empty((X.shape[0], self._kept.size), dtype=np.uint8)
        for start in range(0, X.shape[0], IMAGES_AT_A_TIME):
            images = X[start : start + IMAGES_AT_A_TIME].reshape(-1, *self.image_shape_).astype(np.float64)
            parts = [
                edges for o in self.orientations for edges in self._detect_orientation(images, ACROSS[o])
            ]
            out[start : start + len(images)] = np.concatenate(parts, axis=1)[:, self._kept]
        return out

    def _detect_orientation(self, images: NDArray[np.float64], across: Step) -> list[NDArray[np.bool_]]:
        """Features of one orientation, one array per polarity and blur."""
        contrast, is_edge = find_edges(images, across, self.min_contrast)
        signs = (is_edge & (contrast > 0), is_edge & (contrast < 0)) if self.signed else (is_edge,)
        top, bottom, left, right = _positions(self.image_shape_, across)
        parts = []
        for edges in signs:
            for blur in self.blurs:
                near = edges.copy()
                for distance in range(1, int(blur) + 1):
                    offset = (distance * across[0], distance * across[1])
                    near |= _shifted(edges, offset) | _shifted(edges, (-offset[0], -offset[1]))
                parts.append(near[:, top:bottom, left:right].reshape(len(images), -1))
        return parts


def find_edges(
    images: NDArray[np.float64], across: Step, min_contrast: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Contrast I(p + v) - I(p) at every pixel p (0 where p + v is outside), and whether it is an edge."""
    along = (-across[1], across[0])
    back = (-across[0], -across[1])
    opposite = (-along[0], -along[1])
    contrast = _contrast(images, across)
    rivals = np.full(images.shape, float(min_contrast))
    for step in (back, along, opposite):
        np.maximum(rivals, np.abs(_contrast(images, step)), out=rivals)
    for step in (across, along, opposite):  # the pairs next to q, shifted to p
        np.maximum(rivals, _shifted(np.abs(_contrast(images, step)), across), out=rivals)
    return contrast, np.abs(contrast) > rivals


def _contrast(images: NDArray[np.float64], step: Step) -> NDArray[np.float64]:
    """I(p + step) - I(p), and 0 where p + step is outside."""
    shifted = _shifted(images, step)
    inside = _shifted(np.ones((1, *images.shape[1:]), dtype=bool), step)
    return np.where(inside, shifted - images, 0.0)


def _shifted(images: NDArray[Any], step: Step) -> NDArray[Any]:
    """The images shifted so that p holds the value at p + step; 0 outside."""
    out = np.zeros_like(images)
    rows, columns = images.shape[1:]
    to_rows, from_rows = _overlap(rows, step[0])
    to_columns, from_columns = _overlap(columns, step[1])
    out[:, to_rows, to_columns] = images[:, from_rows, from_columns]
    return out


def _overlap(size: int, shift: int) -> tuple[slice, slice]:
    """Slices of the positions i with i + shift inside, and of the positions i + shift."""
    low, high = max(0, -shift), max(0, min(size, size - shift))
    high = max(low, high)
    return slice(low, high), slice(low + shift, high + shift)


def _positions(shape: tuple[int, int], across: Step) -> tuple[int, int, int, int]:
    """First and past-the-last row and column of the pixels p with p + v inside."""
    rows, _ = _overlap(shape[0], across[0])
    columns, _ = _overlap(shape[1], across[1])
    return rows.start, rows.stop, columns.start, columns.stop
