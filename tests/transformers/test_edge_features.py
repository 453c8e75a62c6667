"""Edge detectors against the definition, pixel by pixel, and the symmetries of images."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.transformers import EdgeFeatures
from zeronorm.transformers._edge_features import ACROSS, find_edges


def is_edge(image, p, v, min_contrast=0.0):
    """The definition for one pair of pixels, or None outside the image."""
    q, u = p + v, np.array([-v[1], v[0]])
    inside = lambda point: bool(np.all(point >= 0) and np.all(point < image.shape))
    if not (inside(p) and inside(q)):
        return None
    value = lambda point: image[tuple(point)]
    rivals = [(p, p - v), (p, p + u), (p, p - u), (q, q + v), (q, q + u), (q, q - u)]
    others = [abs(value(a) - value(b)) for a, b in rivals if inside(b)]
    return abs(value(q) - value(p)) > max([min_contrast, *others])


def edge_near(image, detector):
    """Whether a detector is on, from every position within its blur."""
    v = np.array(ACROSS[detector.orientation])
    for distance in range(-detector.blur, detector.blur + 1):
        p = np.array([detector.row, detector.column]) + distance * v
        if is_edge(image, p, v):
            rising = image[tuple(p + v)] > image[tuple(p)]
            if detector.polarity in ("", "dark_to_light_" if rising else "light_to_dark_"):
                return True
    return False


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", [(5, 6), (4, 4), (2, 7)])
def test_features_are_the_definition(shape, signed):
    images = np.random.default_rng(0).integers(0, 6, size=(4, *shape)).astype(float)
    edges = EdgeFeatures(shape, blurs=(0, 1, 3), signed=signed)
    found = edges.fit_transform(images.reshape(4, -1))
    expected = [[edge_near(image, detector) for detector in edges.detectors_] for image in images]
    assert np.array_equal(found, expected)
    assert 0.05 < found.mean() < 0.95


def test_every_position_has_a_detector():
    edges = EdgeFeatures((19, 19), blurs=(0,)).fit(np.zeros((2, 361)))
    assert len(edges.detectors_) == 2 * 19 * 18 + 2 * 18 * 18
    assert len(set(edges.get_feature_names_out())) == len(edges.detectors_)


def test_a_step_has_one_edge_per_row():
    image = np.zeros((6, 6))
    image[:, 3:] = 1.0
    _, vertical = find_edges(image[None], ACROSS["vertical"])
    assert np.array_equal(np.argwhere(vertical[0]), [[row, 2] for row in range(6)])
    _, horizontal = find_edges(image[None], ACROSS["horizontal"])
    assert not horizontal.any()


def test_transposed_images_swap_the_orientations():
    images = np.random.default_rng(1).normal(size=(5, 7, 7))
    _, vertical = find_edges(images, ACROSS["vertical"])
    _, horizontal = find_edges(np.swapaxes(images, 1, 2), ACROSS["horizontal"])
    assert np.array_equal(vertical, np.swapaxes(horizontal, 1, 2))


def test_grey_levels_may_be_shifted_and_scaled():
    X = np.random.default_rng(2).integers(0, 256, size=(20, 49)).astype(float)
    edges = EdgeFeatures().fit(X)
    assert edges.image_shape_ == (7, 7)
    assert np.array_equal(edges.transform(X), edges.transform(0.5 * X + 32.0))


def test_blur_only_adds():
    X = np.random.default_rng(3).normal(size=(20, 49))
    sharp = EdgeFeatures(blurs=(0,)).fit_transform(X)
    blurred = EdgeFeatures(blurs=(2,)).fit_transform(X)
    assert np.all(blurred >= sharp)
    assert blurred.sum() > sharp.sum()


def test_contrast_must_exceed_the_minimum():
    X = np.random.default_rng(4).normal(size=(20, 49))
    all_edges, strong = EdgeFeatures(), EdgeFeatures(min_contrast=2.0)
    assert strong.fit_transform(X).sum() < all_edges.fit_transform(X).sum()
    _, found = find_edges(X.reshape(20, 7, 7), ACROSS["vertical"], 2.0)
    assert found[0, 3, 2] == is_edge(X[0].reshape(7, 7), np.array([3, 2]), np.array([0, 1]), 2.0)


def test_rare_features_are_left_out():
    X = np.random.default_rng(5).normal(size=(40, 49))
    frequency = EdgeFeatures().fit_transform(X).mean(axis=0)
    frequent = EdgeFeatures(min_frequency=0.3).fit(X)
    assert len(frequent.detectors_) == np.count_nonzero(frequency >= 0.3)
    assert frequent.transform(X).mean(axis=0).min() >= 0.3


def test_more_images_than_one_block():
    X = np.random.default_rng(6).normal(size=(1100, 16))
    edges = EdgeFeatures().fit(X)
    assert np.array_equal(edges.transform(X)[[0, 600, 1099]], edges.transform(X[[0, 600, 1099]]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_shape": (3, 4)}, "'image_shape' parameter .* with the 16 pixels"),
        ({"orientations": ["upright"]}, "'orientations'"),
        ({"orientations": []}, "'orientations'"),
        ({"blurs": (-1,)}, "'blurs'"),
        ({"blurs": ()}, "'blurs'"),
        ({"min_contrast": -1.0}, "'min_contrast'"),
        ({"min_frequency": 1.5}, "'min_frequency'"),
        ({"min_frequency": 1.0}, "Lower 'min_frequency'"),
        ({"image_shape": (16, 1), "orientations": ["vertical"]}, "have no edges of the chosen orientations"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    X = np.random.default_rng(7).normal(size=(30, 16))
    with pytest.raises(ValueError, match=message):
        EdgeFeatures(**settings).fit(X)
