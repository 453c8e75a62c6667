"""Any scikit-learn classifier as the learner inside the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from zeronorm.selectors.stochastic.pool import FloatArray, IntArray, Pool, machine_cost
from zeronorm.selectors.stochastic.sampling import Draws

PredictionTask = tuple[Any, int, FloatArray, IntArray, FloatArray]


class ScikitLearner:
    """Bridge from batches of draws to ``fit`` and ``predict``.

    Training samples of one class are never handed to the classifier. A ``random_state`` the user left
    unset is fixed per subset, so that results do not depend on the number of workers.
    """

    needs_two_classes = True

    def __init__(self, estimator: Any) -> None:
        is_usable = hasattr(estimator, "fit") and hasattr(estimator, "predict") and is_classifier(estimator)
        if not is_usable:
            raise ValueError(
                "The 'base_estimator' parameter must be a scikit-learn classifier, a compiled learner or the "
                f"name of one. Got {estimator!r} instead."
            )
        self.estimator = estimator
        self.is_binary = not get_tags(estimator).classifier_tags.multi_class

    def check(self, bootstrap_size: int) -> None:
        """All settings are the classifier's own business."""

    def task(self, pool: Pool, draws: Draws, b: int) -> PredictionTask:
        """The small arrays that one subset needs, ready to be sent to a worker."""
        features = np.unique(draws.features[b])
        train = pool.columns[np.ix_(features, draws.train[b])].T.astype(np.float64)
        test = pool.test_columns[np.ix_(features, draws.test[b])].T.astype(np.float64)
        labels = pool.coding[:, pool.codes[draws.train[b]]]
        return self.estimator, int(draws.seeds[b]), train, labels, test

    def error(self, pool: Pool, draws: Draws, b: int, predicted: IntArray) -> float:
        """Mean cost over the machines of one subset."""
        costs = [machine_cost(pool, m, draws.test[b], row) for m, row in enumerate(predicted)]
        return float(np.mean(costs))

    def as_estimator(self) -> Any:
        return clone(self.estimator)


def predict_machines(
    estimator: Any, seed: int, train: FloatArray, labels: IntArray, test: FloatArray
) -> NDArray[np.int64]:
    """Predictions of one classifier per row of labels; a row of one label is predicted as that label."""
    predicted = np.empty((labels.shape[0], test.shape[0]), np.int64)
    for m, target in enumerate(labels):
        if target.min() == target.max():
            predicted[m] = target[0]
            continue
        machine = clone(estimator)
        if "random_state" in machine.get_params(deep=False) and machine.random_state is None:
            machine.set_params(random_state=seed)
        predicted[m] = machine.fit(train, target).predict(test)
    return predicted
