"""The interface of a learner, and the adapter for scikit-learn classifiers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags

from zeronorm._types import FloatArray, Int64Array, written
from zeronorm.engines.weighting._sampling import Draws, Pool, model_cost


class CompiledLearner(BaseEstimator):
    """A classifier that is trained and tested on whole batches of subsets in compiled code.

    ``is_binary`` learners treat more than two classes as one-against-all problems; learners that
    ``need_two_classes`` never get a training set of one class. The sizes are defaults: the share of the samples in a
    training set, its largest size, the test samples for each training sample where many subsets share both, and a
    small number of features in a subset that is worth a second run.
    """

    is_binary: ClassVar[bool] = False
    needs_two_classes: ClassVar[bool] = False
    bootstrap_share: ClassVar[float] = 0.25
    largest_bootstrap: ClassVar[int] = 100
    test_samples: ClassVar[float] = 2.0
    small_subset: ClassVar[int | None] = None

    def check(self, bootstrap_size: int) -> None:
        """Raise an error for settings that cannot work with training sets of the given size."""

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        """Write the error of the subsets ``first`` to ``last`` of a batch into ``out``."""
        raise NotImplementedError

    def as_estimator(self) -> Any:
        """The scikit-learn classifier with the same definition, for full-size training sets."""
        raise NotImplementedError


def check_number(
    learner: Any, name: str, low: float, *, strict: bool = False, high: float | None = None
) -> None:
    """Raise an error for a parameter that is not a number in its range."""
    value = getattr(learner, name)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and (value > low if strict else value >= low) and (high is None or value <= high):
        return
    bound = f"{'above' if strict else 'at least'} {low:g}" + (
        "" if high is None else f" and at most {high:g}"
    )
    raise ValueError(
        f"The '{name}' parameter of {type(learner).__name__} must be a number {bound}. Got {written(value)} instead."
    )


# -- Any scikit-learn classifier as a learner --


PredictionTask = tuple[Any, int, FloatArray, Int64Array, FloatArray]


class ScikitLearner:
    """Adapter from batches of draws to ``fit`` and ``predict`` of a scikit-learn classifier.

    Training sets of one class are never passed to the classifier. A ``random_state`` of None is fixed per subset,
    so that results do not depend on the number of workers.
    """

    needs_two_classes = True
    bootstrap_share, largest_bootstrap = CompiledLearner.bootstrap_share, CompiledLearner.largest_bootstrap
    test_samples, small_subset = CompiledLearner.test_samples, CompiledLearner.small_subset

    def __init__(self, estimator: Any) -> None:
        is_usable = hasattr(estimator, "fit") and hasattr(estimator, "predict") and is_classifier(estimator)
        if not is_usable:
            raise ValueError(
                "The 'learner' parameter must be a scikit-learn classifier, a compiled learner or the "
                f"name of one. Got {written(estimator)} instead."
            )
        self.estimator = estimator
        self.is_binary = not get_tags(estimator).classifier_tags.multi_class

    def check(self, bootstrap_size: int) -> None:
        """No checks: the classifier checks its own parameters."""

    def task(self, pool: Pool, draws: Draws, b: int) -> PredictionTask:
        """The small arrays that one subset needs, ready to be sent to a worker."""
        features = np.unique(draws.features[b])
        train = pool.columns[np.ix_(features, draws.train[b])].T.astype(np.float64)
        test = pool.test_columns[np.ix_(features, draws.test[b])].T.astype(np.float64)
        labels = pool.coding[:, pool.codes[draws.train[b]]]
        return self.estimator, int(draws.seeds[b]), train, labels, test

    def error(self, pool: Pool, draws: Draws, b: int, predicted: Int64Array) -> float:
        """Mean cost over the models of one subset."""
        costs = [model_cost(pool, m, draws.test[b], row) for m, row in enumerate(predicted)]
        return float(np.mean(costs))

    def as_estimator(self) -> Any:
        return clone(self.estimator)


def predict_models(
    estimator: Any, seed: int, train: FloatArray, labels: Int64Array, test: FloatArray
) -> NDArray[np.int64]:
    """Predictions of one classifier per row of labels; a row with a single label is predicted as that label."""
    predicted = np.empty((labels.shape[0], test.shape[0]), np.int64)
    for m, target in enumerate(labels):
        if target.min() == target.max():
            predicted[m] = target[0]
            continue
        model = clone(estimator)
        if "random_state" in model.get_params(deep=False) and model.random_state is None:
            model.set_params(random_state=seed)
        predicted[m] = model.fit(train, target).predict(test)
    return predicted
