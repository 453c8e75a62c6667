"""Parts of maximum entropy discrimination: its functions, and the length of a step."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from zeronorm.design import as_design
from zeronorm.solvers.max_entropy import MarginTerms, _exponential_mean, _objective, _search


def test_the_mean_of_an_exponential_and_its_derivatives_have_no_seam():
    """(1 - e⁻ˣ)/x = Σ (-x)^k / (k + 1)!, by the series to the end and by quotients above the seam."""
    x = np.array([0.0, 1e-9, 1e-4, 5e-3, 9.9e-3, 1.01e-2, 0.1, 1.0])
    powers = [(-1.0) ** k / factorial(k + 1) for k in range(25)]
    exact = [
        sum(c * x**k for k, c in enumerate(powers)),
        sum(c * k * x ** (k - 1) for k, c in enumerate(powers) if k > 0),
        sum(c * k * (k - 1) * x ** (k - 2) for k, c in enumerate(powers) if k > 1),
    ]
    for found, wanted, rounding in zip(_exponential_mean(x), exact, (1e-15, 1e-11, 1e-9), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rounding)
    # The last terms of the series, at the seam: without rounding, to the order that they leave out.
    seam = np.array([9.999e-3])
    wanted = [sum(c * k * (k - 1) * seam ** (k - 2) for k, c in enumerate(powers) if k > 1)]
    np.testing.assert_allclose(_exponential_mean(seam)[2], wanted[0], rtol=1e-13)


@pytest.mark.parametrize("stretch", [0.5, 4.0, 100.0])
def test_a_step_is_halved_until_it_gains_its_share(stretch):
    """The first of the lengths s, s/2, ... that gains 1e-4 of what the slope promises; s stops short of the bounds."""
    rng = np.random.default_rng(0)
    design = as_design(rng.normal(size=(12, 5)))
    terms = MarginTerms.labels(np.where(np.arange(12) < 6, 1.0, -1.0), rng.uniform(0.5, 2.0, 12), 3.0)
    multiplier, barrier = rng.uniform(0.2, 0.8, 12), 0.05

    def value(at):
        return _objective(design, terms, 0.5, at)[0] + barrier * float(terms.weight @ np.log(at))

    slope = np.array([(value(multiplier + h) - value(multiplier - h)) / 2e-6 for h in 1e-6 * np.eye(12)])
    step, size = stretch * slope, 1.0
    decrement = float(slope @ step)
    below, above = step < 0, step > 0
    size = min(1.0, 0.99 * np.min(-multiplier[below] / step[below], initial=np.inf))
    size = min(size, 0.99 * np.min((3.0 - multiplier[above]) / step[above], initial=np.inf))
    while value(multiplier + size * step) < value(multiplier) + 1e-4 * size * decrement:
        size /= 2
    current = _objective(design, terms, 0.5, multiplier)
    trial, objective, _ = _search(design, terms, 0.5, multiplier, step, decrement, barrier, current)
    np.testing.assert_allclose(trial, multiplier + size * step)
    assert objective == pytest.approx(_objective(design, terms, 0.5, trial)[0])
