"""The classification problem and the learner that the settings of a selector describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design import Design, as_design
from zeronorm.engines.weighting._batches import BatchEvaluator, Source
from zeronorm.engines.weighting._sampling import Pool
from zeronorm.engines.weighting.learners import Learner, resolve_learner
from zeronorm.engines.weighting.learners._base import ScikitLearner
from zeronorm.resampling._seeds import generator_from
from zeronorm.selection._kinds import parameter_error

LARGEST_DEFAULT_SUBSET = 100
SMALLEST_DEFAULT_BOOTSTRAP = 20


def resolve_subset_size(owner: Any, n_features: int) -> int:
    """Number of features in a subset: by default about the square root of all, at most 100."""
    if owner.subset_size is None:
        return min(n_features, LARGEST_DEFAULT_SUBSET, int(np.ceil(np.sqrt(n_features))))
    if owner.subset_size > n_features:
        raise parameter_error(
            owner, "subset_size", f"at most the number of features under study, {n_features}"
        )
    return int(owner.subset_size)


def default_subset_sizes(learner: Learner, usual: int) -> tuple[int, ...]:
    """The usual number of features in a subset, after a smaller one that suits the learner."""
    small = learner.small_subset
    return (usual,) if small is None or usual <= small else (small, usual)


def resolve_bootstrap_size(owner: Any, learner: Learner, n_samples: int, n_classes: int) -> int:
    """Number of samples in a bootstrap sample: by default a share of all, at least 20."""
    if owner.bootstrap_size is None:
        usual = max(SMALLEST_DEFAULT_BOOTSTRAP, int(learner.bootstrap_share * n_samples))
        return max(min(learner.largest_bootstrap, usual), 2 * n_classes)
    return int(owner.bootstrap_size)


def class_costs(owner: Any, classes: NDArray[Any], codes: Int64Array) -> FloatArray:
    """The cost of a mistake on each class."""
    weights = owner.class_weight
    if weights is None:
        return np.ones(len(classes))
    if owner.cost == "balanced":
        # The balanced error already weights the classes equally.
        raise parameter_error(owner, "class_weight", "None with cost='balanced'")
    if weights == "balanced":
        return np.asarray(compute_class_weight("balanced", classes=np.arange(len(classes)), y=codes))
    unknown = [label for label in weights if label not in set(classes.tolist())]
    costs = np.asarray([weights.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    if unknown or not np.all(np.isfinite(costs)) or costs.min() <= 0:
        known = ", ".join(map(str, classes.tolist()[:5]))
        raise parameter_error(
            owner, "class_weight", f"a mapping of positive weights for classes of y ({known})"
        )
    return costs


# -- Reduction of a multi-class problem to binary problems --


MultiClass = Literal["auto", "native", "one_vs_rest", "output_code"]
# Up to this many classes all splits in two are used; with more, random splits.
MOST_EXHAUSTIVE = 6


def model_coding(
    n_classes: int, multi_class: MultiClass, is_binary: bool, rng: np.random.Generator
) -> tuple[Int64Array, int]:
    """Label of each class in each model (one row per model), and the number of labels."""
    if multi_class == "auto":
        multi_class = "one_vs_rest" if is_binary else "native"
    if n_classes == 2 or multi_class == "native":
        if is_binary and n_classes > 2:
            raise ValueError(
                f"The base learner handles two classes only, but y has {n_classes}; set multi_class='one_vs_rest'."
            )
        return np.arange(n_classes, dtype=np.int64)[None, :], n_classes
    if multi_class == "one_vs_rest":
        return np.eye(n_classes, dtype=np.int64), 2
    return _output_codes(n_classes, rng), 2


def _output_codes(n_classes: int, rng: np.random.Generator) -> Int64Array:
    """Splits of the classes in two parts (Dietterich and Bakiri 1995), the last class always labelled 0."""
    if n_classes <= MOST_EXHAUSTIVE:
        numbers = np.arange(1, 2 ** (n_classes - 1))
        bits = (numbers[:, None] >> np.arange(n_classes)[None, :]) & 1
        return bits.astype(np.int64)
    n_models = int(np.ceil(10 * np.log2(n_classes)))
    codes = np.zeros((n_models, n_classes), dtype=np.int64)
    for row in codes:
        while row.min() == row.max():
            row[:-1] = rng.integers(0, 2, size=n_classes - 1)
    return codes


# -- The problem and the learner --


@dataclass(frozen=True)
class Experiment:
    """The data, the learner and the sample sizes given by the parameters of a selector."""

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
        """Create from the parameters of a selector; ``n_features`` if subsets are drawn from more than the design."""
        subset_size = resolve_subset_size(selector, n_features or design.n_features)
        learner = resolve_learner(selector.learner)
        bootstrap_size = resolve_bootstrap_size(selector, learner, design.n_samples, len(classes))
        learner.check(bootstrap_size)
        coding, n_labels = model_coding(len(classes), selector.multi_class, learner.is_binary, rng)
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
        """The same experiment with separate test samples, in the units of the training samples."""
        affine = self.design.affine
        if affine is not None:
            test_design = test_design.transformed(affine.mean, affine.scale, zero_columns=affine.zero_columns)
        return replace(self, source=self.source.tested_on(test_design, test_codes))

    def kept_out(self, learning: Int64Array, others: Int64Array) -> tuple[Experiment, Experiment]:
        """Two experiments that train on the first samples; one tests on them too, the other on the other samples."""
        pool = self.source.pool
        codes = np.ascontiguousarray(pool.codes[learning])
        design = self.design.take_rows(learning)
        source = Source(design, pool._replace(codes=codes, test_codes=codes))
        first = replace(self, design=design, source=source)
        tester = source.tested_on(self.design.take_rows(others), pool.codes[others])
        return first, replace(first, source=tester)

    def evaluator(self, batch_size: int, *, shares_samples: bool = False) -> BatchEvaluator:
        """Create a tester of batches of subsets, with separate bootstrap samples for each or common samples.

        Common test samples are drawn from those that are not in the training sample.
        """
        wanted = int(self.learner.test_samples * self.bootstrap_size)
        test_size = min(wanted, self.source.pool.test_codes.size)
        return BatchEvaluator(
            self.source,
            self.learner,
            batch_size=batch_size,
            subset_size=self.subset_size,
            bootstrap_size=self.bootstrap_size,
            test_size=test_size if shares_samples else None,
            shares_samples=shares_samples,
        )

    def describe(self) -> dict[str, Any]:
        """Settings that must agree with those of a checkpoint."""
        learner = self.learner.estimator if isinstance(self.learner, ScikitLearner) else self.learner
        pool = self.source.pool
        return {
            "subset_size": self.subset_size,
            "bootstrap_size": self.bootstrap_size,
            "learner": repr(learner),
            "coding": pool.coding.tolist(),
            "class_cost": pool.class_cost.tolist(),
            "balanced": pool.balanced,
            "features": self.n_features,
        }


# -- The energy of a distribution over features, estimated by drawing subsets from it --


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
        design = design.standardized(common=selector.standardize == "common")
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
