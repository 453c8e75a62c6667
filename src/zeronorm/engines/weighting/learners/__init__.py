"""The classifiers that test subsets: compiled learners for thousands of small fits, or any of scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from zeronorm.engines.weighting.learners._base import CompiledLearner, ScikitLearner
from zeronorm.engines.weighting.learners._linear import SubsetLDA, SubsetSVM
from zeronorm.engines.weighting.learners._nearest import SubsetCentroid, SubsetKNN
from zeronorm.engines.weighting.learners._tree import SubsetCART

__all__ = [
    "COMPILED",
    "Learner",
    "SubsetCART",
    "SubsetCentroid",
    "SubsetKNN",
    "SubsetLDA",
    "SubsetSVM",
    "resolve_learner",
]

Learner = CompiledLearner | ScikitLearner

COMPILED: dict[str, type[CompiledLearner]] = {
    "linear_svm": SubsetSVM,
    "knn": SubsetKNN,
    "cart": SubsetCART,
    "lda": SubsetLDA,
    "centroid": SubsetCentroid,
}


def resolve_learner(given: Any, bootstrap_size: int = 10**9) -> Learner:
    """Return the learner that the user named or gave, with settings checked for training sets of the given size."""
    learner: Learner
    if isinstance(given, str):
        learner = COMPILED[given]()
    elif isinstance(given, CompiledLearner):
        learner = clone(given)
    else:
        learner = ScikitLearner(given)
    learner.check(bootstrap_size)
    return learner
