"""One classification problem and one learner, ready to try subsets of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design, StandardizedDesign
from zeronorm.selectors.stochastic.batches import BatchEvaluator
from zeronorm.selectors.stochastic.coding import machine_coding
from zeronorm.selectors.stochastic.learners.resolve import Learner, resolve_learner
from zeronorm.selectors.stochastic.learners.scikit import ScikitLearner
from zeronorm.selectors.stochastic.pool import FloatArray, IntArray, Pool
from zeronorm.selectors.stochastic.settings import class_costs, resolve_bootstrap_size, resolve_subset_size
from zeronorm.selectors.stochastic.source import Source


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
        codes: IntArray,
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
    def codes(self) -> IntArray:
        return self.source.pool.codes

    def tested_on(self, test_design: Design, test_codes: IntArray) -> Experiment:
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
