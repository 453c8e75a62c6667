"""The energy of a law over features, estimated by drawing subsets from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design, as_design
from zeronorm.selectors.base import generator_from
from zeronorm.selectors.stochastic.experiment import Experiment
from zeronorm.selectors.stochastic.pool import FloatArray, IntArray


def estimate_energy(
    selector: Any,
    weights: FloatArray,
    train: tuple[Any, Any],
    test: tuple[Any, Any] | None,
    *,
    n_subsets: int,
    random_state: Any,
) -> float:
    """Mean error over ``n_subsets`` draws, with the settings of a fitted selector."""
    rng = generator_from(random_state)
    active = np.flatnonzero(weights)
    design = _columns(train[0], weights.size, active)
    if selector.standardize:
        design = design.standardized()
    classes, codes = np.unique(np.asarray(train[1]), return_inverse=True)
    experiment = Experiment.of(
        selector, design, codes.astype(np.int64), classes, rng, n_features=weights.size
    )
    experiment = replace(experiment, subset_size=selector.subset_size_)
    if test is not None:
        test_design = _columns(test[0], weights.size, active)
        experiment = experiment.tested_on(test_design, _codes(np.asarray(test[1]), classes))
    evaluator = experiment.evaluator(n_subsets)
    with evaluator.workers(selector.n_jobs):
        errors = evaluator.evaluate(np.cumsum(weights[active]), int(rng.integers(2**63)), 0)
    return float(errors.mean())


def _columns(X: Any, n_features: int, active: IntArray) -> Design:
    design = as_design(X)
    if design.n_features != n_features:
        raise ValueError(
            f"The weights are for {n_features} features. Got X with {design.n_features} instead."
        )
    return design.take(active)


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(f"y_test holds classes that y does not: {', '.join(map(str, unknown[:5]))}.")
    return np.searchsorted(classes, labels).astype(np.int64)
