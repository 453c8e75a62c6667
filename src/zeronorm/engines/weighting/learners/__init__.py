"""The classifiers inside the loop: thousands of small fits in compiled code, or any classifier of scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from zeronorm.engines.weighting.learners.base import CompiledLearner, ScikitLearner
from zeronorm.engines.weighting.learners.linear import SubsetLDA, SubsetSVM
from zeronorm.engines.weighting.learners.nearest import SubsetCentroid, SubsetKNN
from zeronorm.engines.weighting.learners.tree import SubsetCART

Learner = CompiledLearner | ScikitLearner

COMPILED: dict[str, type[CompiledLearner]] = {
    "linear_svm": SubsetSVM,
    "knn": SubsetKNN,
    "cart": SubsetCART,
    "lda": SubsetLDA,
    "centroid": SubsetCentroid,
}


def resolve_learner(base_estimator: Any, bootstrap_size: int) -> Learner:
    """The learner named or given by the user, its settings checked."""
    learner: Learner
    if isinstance(base_estimator, str):
        if base_estimator not in COMPILED:
            raise ValueError(
                f"The 'base_estimator' parameter names no compiled learner. Got {base_estimator!r}; choose one "
                f"of {', '.join(sorted(COMPILED))}, or pass a scikit-learn classifier."
            )
        learner = COMPILED[base_estimator]()
    elif isinstance(base_estimator, CompiledLearner):
        learner = clone(base_estimator)
    else:
        learner = ScikitLearner(base_estimator)
    learner.check(bootstrap_size)
    return learner
