"""Spectrum preprocessing against scipy filters and plain loops, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import rank_filter

from zeronorm.transformers import SpectrumPreprocessor

OFF = {"baseline_window": None, "smoothing_window": None, "top_fraction": None, "square_root": False}


def spectra(seed=0, n=5, length=120):
    """Positive spectra: peaks on a descending baseline with noise."""
    rng = np.random.default_rng(seed)
    position = np.arange(length)
    base = 20.0 * np.exp(-position / 60.0)
    peaks = sum(rng.uniform(5, 50, (n, 1)) * np.exp(-0.5 * ((position - c) / 2.0) ** 2) for c in (20, 55, 90))
    return base + peaks + rng.uniform(0.0, 1.0, (n, length))


def only(**step):
    return SpectrumPreprocessor(**(OFF | step))


def plain_baseline(x, window, fraction):
    half, out = window // 2, []
    for j in range(len(x)):
        seen = np.sort(x[max(0, j - half) : j + half + 1])
        out.append(np.median(seen[: max(1, int(np.ceil(fraction * len(seen) - 1e-9)))]))
    return np.asarray(out)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 25), st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_baseline_is_the_median_of_the_lowest_values(seed, length, half, fraction):
    X = np.random.default_rng(seed).integers(0, 9, size=(2, length)).astype(float)
    found = X - only(baseline_window=2 * half + 1, baseline_fraction=fraction).fit_transform(X)
    np.testing.assert_allclose(found, [plain_baseline(x, 2 * half + 1, fraction) for x in X], atol=1e-12)


@pytest.mark.parametrize(("window", "ranks"), [(25, (2,)), (21, (2,)), (29, (2, 3))])
def test_baseline_is_a_rank_filter_away_from_the_borders(window, ranks):
    X = spectra()
    found = X - only(baseline_window=window).fit_transform(X)
    expected = np.mean([rank_filter(X, rank=r, size=(1, window)) for r in ranks], axis=0)
    inner = slice(window // 2, -(window // 2))
    np.testing.assert_allclose(found[:, inner], expected[:, inner], atol=1e-12)


def test_smoothing_is_a_weighted_mean_with_exponential_weights():
    X = spectra()
    found = only(smoothing_window=9, smoothing_width=1.5).fit_transform(X)
    for j in (0, 2, 60, 119):
        near = np.arange(max(0, j - 4), min(120, j + 5))
        weights = np.exp(-np.abs(near - j) / 1.5)
        np.testing.assert_allclose(found[:, j], X[:, near] @ weights / weights.sum(), rtol=1e-12)


def test_smoothing_keeps_a_constant():
    np.testing.assert_allclose(only(smoothing_window=9).fit_transform(np.full((2, 30), 4.0)), 4.0)


def test_division_by_the_median_of_the_top_values():
    X = spectra()
    found = only(top_fraction=0.05).fit_transform(X)
    np.testing.assert_allclose(found, X / np.median(np.sort(X, axis=1)[:, -6:], axis=1)[:, None], rtol=1e-12)


def test_all_steps_follow_one_another():
    X = spectra()
    found = SpectrumPreprocessor(crop=(5, 115), baseline_window=31, final_crop=(10, 100)).fit_transform(X)
    Z = X[:, 5:115]
    Z = Z - np.asarray([plain_baseline(x, 31, 0.2) for x in Z])
    Z = only(smoothing_window=9).fit_transform(Z)
    Z = Z / np.median(np.sort(Z, axis=1)[:, -6:], axis=1)[:, None]
    np.testing.assert_allclose(found, np.sqrt(np.maximum(Z, 0.0))[:, 10:100], rtol=1e-12, atol=1e-12)


@given(st.floats(0.01, 1000.0), st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_the_unit_of_intensity_does_not_matter(factor, seed):
    X = spectra(seed)
    step = SpectrumPreprocessor(baseline_window=31)
    np.testing.assert_allclose(step.fit_transform(factor * X), step.fit_transform(X), atol=1e-6)


def test_names_of_the_positions_that_are_left():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X = pandas.DataFrame(spectra(), columns=[f"m/z {i}" for i in range(120)])
    step = SpectrumPreprocessor(crop=(10, 110), final_crop=(5, 95)).set_output(transform="pandas")
    out = step.fit_transform(X)
    assert list(out.columns) == [f"m/z {i}" for i in range(15, 105)]
    assert list(step.get_feature_names_out()) == list(out.columns)


def test_flat_spectra_stay_flat():
    X = np.vstack([np.full(40, 3.0), np.zeros(40)])
    np.testing.assert_array_equal(SpectrumPreprocessor().fit_transform(X), 0.0)


def test_negative_values_before_the_square_root():
    X = spectra()
    X[2, 7] = -4.0
    found = only(square_root=True).fit_transform(X)
    assert found[2, 7] == 0.0
    with pytest.raises(
        ValueError, match=r"1 values below zero.*spectrum 2 at position 7: -4.*negative='zero'"
    ):
        only(square_root=True, negative="raise").fit_transform(X)
    np.testing.assert_array_equal(only(square_root=False, negative="raise").fit_transform(X), X)


def test_a_negative_height_is_an_error():
    with pytest.raises(ValueError, match=r"cannot scale spectrum 1.*baseline"):
        only(top_fraction=0.05).fit_transform(np.vstack([np.ones(30), -np.ones(30)]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"crop": (0, 121)},
        {"crop": (50, 50)},
        {"crop": (-1, 20)},
        {"crop": 30},
        {"crop": (10, 60), "final_crop": (0, 51)},
        {"baseline_window": 10},
        {"baseline_window": 0},
        {"smoothing_window": 2.5},
        {"baseline_fraction": 0.0},
        {"top_fraction": 1.5},
        {"smoothing_width": 0.0},
        {"negative": "ignore"},
    ],
)
def test_bad_parameters_are_named(parameters):
    with pytest.raises(ValueError, match=f"'{list(parameters)[-1]}' parameter of SpectrumPreprocessor"):
        SpectrumPreprocessor(**parameters).fit(spectra())
