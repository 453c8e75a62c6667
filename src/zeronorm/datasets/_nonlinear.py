"""Twelve classification problems that no linear model solves: a few true features among noise columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets._generators import Seed, SyntheticData, append_probes, random_signs

Draw = Callable[[int, np.random.Generator], tuple[NDArray[np.float64], NDArray[np.bool_]]]


# The squared radius of the sphere that holds half of a standard normal distribution in three dimensions.
MEDIAN_OF_CHI_SQUARE_3 = 2.365974


class NonlinearProblem(NamedTuple):
    """A generator ``problem(seed)`` of samples whose true features are known.

    The noise columns are permuted copies of the true ones, so that no statistic of a column alone tells them apart, and
    all columns stand in random order.

    Parameters
    ----------
    draw : callable
        Gives the true features and whether each sample is of class 1, from the number of samples and a generator of
        random numbers.
    n_samples : int
        Number of samples.
    n_noise : int
        Number of noise columns.

    Examples
    --------
    >>> from zeronorm.datasets import nonlinear_problems
    >>> X, y, relevant = nonlinear_problems()["xor"](0)
    >>> X.shape, relevant.size
    ((300, 52), 2)
    """

    draw: Draw
    n_samples: int
    n_noise: int

    def __call__(self, random_state: Seed = None) -> SyntheticData:
        """Draw the samples: ``(X, y, relevant)`` with y in {0, 1}."""
        rng = np.random.default_rng(random_state)
        signal, y = self.draw(self.n_samples, rng)
        X = append_probes(signal, self.n_noise, random_state=rng)
        order = rng.permutation(X.shape[1])
        relevant = np.sort(np.argsort(order)[: signal.shape[1]])
        return SyntheticData(np.ascontiguousarray(X[:, order]), y.astype(np.int64), relevant)


def nonlinear_problems() -> dict[str, NonlinearProblem]:
    """Twelve nonlinear problems by name: two to five true features, 50 to 200 noise columns, 200 to 600 samples.

    Returns
    -------
    dict of str to NonlinearProblem
        Each value is a generator: called with a seed it returns ``(X, y, relevant)``.

    Examples
    --------
    >>> from zeronorm.datasets import nonlinear_problems
    >>> list(nonlinear_problems())[:3]
    ['xor', 'three_way_xor', 'circle']
    """
    return {
        "xor": NonlinearProblem(_xor, 300, 50),
        "three_way_xor": NonlinearProblem(_three_way_xor, 600, 50),
        "circle": NonlinearProblem(_circle, 300, 100),
        "rings": NonlinearProblem(_rings, 300, 100),
        "saddle": NonlinearProblem(_saddle, 300, 50),
        "monk": NonlinearProblem(_monk, 600, 50),
        "checkerboard": NonlinearProblem(_checkerboard, 600, 50),
        "product": NonlinearProblem(_product, 400, 100),
        "two_products": NonlinearProblem(_two_products, 600, 100),
        "spirals": NonlinearProblem(_spirals, 600, 100),
        "corral": NonlinearProblem(_corral, 200, 200),
        "shell": NonlinearProblem(_shell, 400, 200),
    }


def _xor(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 where x₁x₂ > 0."""
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    return X, X.prod(axis=1) > 0.0


def _three_way_xor(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Normal clouds around the corners of a cube; class 1 where the product of the corner is positive."""
    corners = random_signs(3 * n, rng).reshape(n, 3)
    return corners + rng.normal(0.0, 0.4, size=(n, 3)), corners.prod(axis=1) > 0


def _circle(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 within the circle that holds half of a normal distribution, x₁² + x₂² < 2 ln 2."""
    X = rng.normal(size=(n, 2))
    return X, (X**2).sum(axis=1) < 2.0 * np.log(2.0)


def _rings(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 is the ring of radius 2 between those of radius 1 and 3 (half of the samples), with radial noise."""
    ring = rng.choice([1.0, 2.0, 2.0, 3.0], size=n)
    radius, angle = ring + rng.normal(0.0, 0.15, size=n), rng.uniform(0.0, 2.0 * np.pi, size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring == 2.0


def _saddle(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 where x₁² > x₂²."""
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] ** 2 > X[:, 1] ** 2


def _monk(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 where exactly two of five ternary features have their first value (the second monk's problem has six)."""
    X = rng.integers(1, 4, size=(n, 5)).astype(np.float64)
    return X, np.count_nonzero(X == 1.0, axis=1) == 2


def _checkerboard(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 on the dark fields of a board of four by four."""
    X = rng.uniform(0.0, 4.0, size=(n, 2))
    return X, np.floor(X).sum(axis=1) % 2 == 1


def _product(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 where x₁x₂ + x₃/2 > 0."""
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + X[:, 2] / 2.0 > 0.0


def _two_products(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 where x₁x₂ + x₃x₄ > 0."""
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0.0


def _spirals(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Two spirals of one and a quarter turns around each other, a class each."""
    is_second = rng.random(n) < 0.5
    turn = 2.5 * np.pi * np.sqrt(rng.uniform(0.02, 1.0, size=n))
    angle = turn + np.pi * is_second
    X = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)])
    return X + rng.normal(0.0, 0.4, size=(n, 2)), is_second


def _corral(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 where (x₁ and x₂) or (x₃ and x₄), all binary."""
    X = rng.integers(0, 2, size=(n, 4)).astype(np.float64)
    return X, np.logical_or(X[:, :2].all(axis=1), X[:, 2:].all(axis=1)).astype(bool)


def _shell(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Class 1 within the sphere that holds half of a normal distribution in three dimensions."""
    X = rng.normal(size=(n, 3))
    return X, (X**2).sum(axis=1) < MEDIAN_OF_CHI_SQUARE_3
