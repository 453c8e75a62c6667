"""The vote of Gadat and Younes on several classes: for each class its own machines, class against rest."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from zeronorm.evaluation import Metric
from zeronorm.selectors.stochastic.ofw import OptimalFeatureWeighting

FloatArray = NDArray[np.float64]


class ClassVoters(ClassifierMixin, BaseEstimator):
    """One law over the features for all classes, and machines on features drawn from it for each class.

    The class with the most votes wins; of several the one with the largest sum of decision values.

    Parameters
    ----------
    selector : learns the law.
    machine : two-class predictor with a ``decision_function``.
    n_voters : machines for each class.
    subset_size : features drawn for each machine, with replacement.
    random_state : seed of the draws and of the law.
    """

    def __init__(
        self,
        selector: OptimalFeatureWeighting,
        machine: Any,
        *,
        n_voters: int = 10,
        subset_size: int = 100,
        random_state: int = 0,
    ) -> None:
        self.selector = selector
        self.machine = machine
        self.n_voters = n_voters
        self.subset_size = subset_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the law, then train the machines of each class."""
        self.classes_ = np.unique(y)
        self.selector_ = clone(self.selector).set_params(random_state=self.random_state).fit(X, y)
        rng = np.random.default_rng(self.random_state)
        weights = self.selector_.weights_ / self.selector_.weights_.sum()
        self.voters_: list[list[tuple[NDArray[np.intp], Any]]] = []
        for label in self.classes_:
            draws = rng.choice(weights.size, size=(self.n_voters, self.subset_size), p=weights)
            subsets = [np.unique(draw) for draw in draws]
            self.voters_.append([(s, clone(self.machine).fit(X[:, s], y == label)) for s in subsets])
        return self

    def decisions(self, X: Any) -> FloatArray:
        """Decision values of all machines, of shape (classes, voters, samples)."""
        values = [[machine.decision_function(X[:, s]) for s, machine in voters] for voters in self.voters_]
        return np.asarray(values, dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the most votes."""
        decisions = self.decisions(X)
        votes, strength = (decisions > 0.0).sum(axis=1), decisions.sum(axis=1)
        best = np.lexsort((strength, votes), axis=0)[-1]
        return cast("NDArray[Any]", self.classes_[best])


def error_of_each_vote(model: ClassVoters, X: Any, y: Any) -> float:
    """Mean over the classes of the error of its majority in telling it from the rest; a draw counts half."""
    share = (model.decisions(X) > 0.0).mean(axis=1)
    belongs = np.asarray([y == label for label in model.classes_])
    against = np.where(belongs, 1.0 - share, share)
    return float(np.mean(0.5 * np.sign(against - 0.5) + 0.5))


def error_of_each_machine(model: ClassVoters, X: Any, y: Any) -> float:
    """Mean error of single machines in telling their class from the rest."""
    says_yes = model.decisions(X) > 0.0
    belongs = np.asarray([y == label for label in model.classes_])[:, None, :]
    return float(np.mean(says_yes != belongs))


VOTE_ERROR = Metric("vote_error", error_of_each_vote, response="model")
MACHINE_ERROR = Metric("machine_error", error_of_each_machine, response="model")
