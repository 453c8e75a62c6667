"""Scaling factors of a selection path."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import zeronorm
from zeronorm.registry import all_methods


@pytest.mark.parametrize("cls", [zeronorm.AdaptiveScaling, zeronorm.RadiusMarginScaling])
def test_constant_columns_alone_have_factors_of_zero(cls):
    fitted = cls().fit(np.ones((6, 3)), np.arange(6) % 2)
    assert fitted.path_.scale.tolist() == fitted.scale_.tolist() == [0.0, 0.0, 0.0]
    assert fitted.path_.order.tolist() == [0, 1, 2]


def data(n=24, p=5, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, p)) + y[:, None] * np.eye(p)[1], y


@pytest.mark.parametrize(
    "method", [m for m in all_methods("selector") if m.family == "scaling"], ids=lambda m: m.name
)
def test_a_path_holds_the_scaling_factors_of_the_method(method):
    """`path_.scale` equals the attribute of the method."""
    selector = method.instances()[0]
    X, y = data(20, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = selector.fit(X, y)
    wanted = {
        "ard": lambda: 1.0 / np.sqrt(fitted.precision_),
        "max-entropy-discrimination": lambda: fitted.inclusion_probability_,
    }.get(method.name, lambda: fitted.scale_)()
    np.testing.assert_array_equal(fitted.path_.scale, wanted)
