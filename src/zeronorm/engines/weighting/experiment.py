"""One classification problem and one learner, ready to try subsets of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design import Design, StandardizedDesign, as_design
from zeronorm.engines.weighting.batches import BatchEvaluator, Source
from zeronorm.engines.weighting.learners.base import ScikitLearner
from zeronorm.engines.weighting.learners.resolve import Learner, resolve_learner
from zeronorm.engines.weighting.pool import Pool
from zeronorm.engines.weighting.settings import (
    class_costs,
    machine_coding,
    resolve_bootstrap_size,
    resolve_subset_size,
)
from zeronorm.resampling.seeding import generator_from


@dataclass(frozen=True)
class Experiment:
    """The data, the learner and the sizes of the samples that a setting of the selector asks for."""

    design: Design
    source: Source
    learner: Learner
    subset_size: int
    bootstrap_size: int

    @classmethod
    def of(
        cls,
        selector: Any,
        design: Design,
        codes: Int64Array,
        classes: NDArray[Any],
        rng: np.random.Generator,
        n_features: int | None = None,
    ) -> Experiment:
        """From the parameters of a selector; ``n_features`` when subsets are drawn from more than the design."""
        subset_size = resolve_subset_size(selector, n_features or design.n_features)
        bootstrap_size = resolve_bootstrap_size(selector, design.n_samples, len(classes))
        learner = resolve_learner(selector.base_estimator, bootstrap_size)
        coding, n_labels = machine_coding(len(classes), selector.multi_class, learner.is_binary, rng)
        costs = class_costs(selector, classes, codes)
        none: FloatArray = np.empty((0, 0))
        pool = Pool(none, codes, none, codes, coding, n_labels, costs, selector.cost == "balanced")
        return cls(design, Source(design, pool), learner, subset_size, bootstrap_size)

    @property
    def n_features(self) -> int:
        return self.design.n_features

    @property
    def codes(self) -> Int64Array:
        return self.source.pool.codes

    def tested_on(self, test_design: Design, test_codes: Int64Array) -> Experiment:
        """The same with test samples of their own, seen in the units of the training samples."""
        if isinstance(self.design, StandardizedDesign):
            view = self.design
            test_design = StandardizedDesign(
                test_design, view.mean, view.scale, zero_columns=view.zero_columns
            )
        pool = self.source.pool._replace(test_codes=np.ascontiguousarray(test_codes, dtype=np.int64))
        return replace(self, source=Source.with_test_set(self.design, pool, test_design))

    def evaluator(self, batch_size: int) -> BatchEvaluator:
        """A tester of batches of subsets."""
        return BatchEvaluator(
            self.source,
            self.learner,
            batch_size=batch_size,
            subset_size=self.subset_size,
            bootstrap_size=self.bootstrap_size,
        )

    def describe(self) -> dict[str, Any]:
        """What a checkpoint must agree on."""
        learner = self.learner.estimator if isinstance(self.learner, ScikitLearner) else self.learner
        pool = self.source.pool
        return {
            "subset_size": self.subset_size,
            "bootstrap_size": self.bootstrap_size,
            "base_estimator": repr(learner),
            "coding": pool.coding.tolist(),
            "class_cost": pool.class_cost.tolist(),
            "balanced": pool.balanced,
            "features": self.n_features,
        }


# -- The energy of a law over features, estimated by drawing subsets from it --


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


def _columns(X: Any, n_features: int, active: Int64Array) -> Design:
    design = as_design(X)
    if design.n_features != n_features:
        raise ValueError(
            f"The weights are for {n_features} features. Got X with {design.n_features} instead."
        )
    return design.take(active)


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> Int64Array:
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(f"y_test holds classes that y does not: {', '.join(map(str, unknown[:5]))}.")
    return np.searchsorted(classes, labels).astype(np.int64)
