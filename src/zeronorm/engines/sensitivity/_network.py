"""A neural network with masked weights, for elimination of features or of single weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design, contiguous
from zeronorm.engines.elimination._loop import count_to_remove
from zeronorm.selection._path import order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.solvers._neural_network import NetworkObjective, NeuralNetwork, TrainedNetwork, train_network
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear._losses import LOSSES

SMALLEST_GAIN = 1e-3  # relative to the objective of a constant model


class NetworkModels:
    """One network for all classes as ``Models`` of the elimination loop.

    There is one output per class (one for two classes or for a real target, which is standardised first).
    """

    def __init__(self, problem: Problem, *, n_hidden: int, penalty: float, tol: float, max_iter: int) -> None:
        self.problem = problem
        self.targets = network_targets(problem)
        self.penalty, self.tol, self.max_iter = penalty, tol, max_iter
        self.active: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.first = NeuralNetwork.random(problem.n_features, n_hidden, self.targets.shape[1], problem.rng)
        self.network = self.first
        self.value = np.inf
        self._objective: NetworkObjective | None = None

    # -- training --------------------------------------------------------------------------------

    @property
    def objective(self) -> NetworkObjective:
        """The objective on the remaining features."""
        if self._objective is None:
            self._objective = self._objective_of(contiguous(self.problem.design.take(self.active)))
        return self._objective

    def _objective_of(self, design: Design) -> NetworkObjective:
        loss = LOSSES[self.problem.target.smooth_loss]
        return NetworkObjective(design, self.targets, loss, self.penalty, self.problem.sample_weight)

    def train(self) -> None:
        trained = self._train(self.network)
        self.network, self.value = trained.network, trained.value
        self.status = max(self.status, trained.status)
        self.n_iter += trained.n_iter

    def _train(self, start: NeuralNetwork) -> TrainedNetwork:
        return train_network(self.objective, start, tol=self.tol, max_iter=self.max_iter)

    def fits(self) -> bool:
        """Whether the trained network is better than a constant model."""
        hidden, output = np.zeros_like(self.network.hidden_mask), np.zeros_like(self.network.output_mask)
        constant = self._train(self.network.masked(hidden, output))
        return self.value < constant.value * (1.0 - SMALLEST_GAIN)

    # -- features ----------------------------------------------------------------------------------

    def importance(self) -> FloatArray:
        r"""Squared weights from each feature to the hidden layer, :math:`\sum_q w_{pq}^2`."""
        return np.asarray((self.network.hidden_weights**2).sum(axis=1))

    def group_importance(self, unit: IntArray) -> FloatArray:
        """Sum of the importances over each group."""
        return np.bincount(unit, weights=self.importance()).astype(np.float64)

    def remove(self, features: IntArray) -> None:
        stay = ~np.isin(self.active, features)
        self.active = self.active[stay]
        self.network = self.network.take(stay)
        self._objective = None

    def continue_with(self, features: IntArray) -> None:
        """Continue with some of the features; with others restart from the initial random weights."""
        if np.isin(features, self.active).all():
            self.remove(np.setdiff1d(self.active, features))
            return
        self.active = features
        self.network = self.first.take(features)
        self._objective = None

    # -- single weights ------------------------------------------------------------------------------

    def saliencies(self) -> tuple[FloatArray, FloatArray]:
        r"""Saliency :math:`h w^2 / 2` of the weights of both layers: the second-order increase without each weight."""
        hidden, output = self.objective.diagonal_hessian(self.network)
        network = self.network
        return 0.5 * hidden * network.hidden_weights**2, 0.5 * output * network.output_weights**2

    def prune(self, saliency: tuple[FloatArray, FloatArray], step: int | float, forced: IntArray) -> IntArray:
        """Delete the weights of lowest saliency and return the features without any weight, the worst first.

        All weights of forced features are kept or, without any, the best hidden weight; so is the best output weight.
        """
        hidden, output = saliency
        free_hidden, free_output = self.network.hidden_mask.copy(), self.network.output_mask.copy()
        free_output[_best(output, free_output)] = False
        if forced.size:
            free_hidden[np.isin(self.active, forced)] = False
        else:
            free_hidden[_best(hidden, free_hidden)] = False
        candidates = np.concatenate([np.flatnonzero(free_hidden), hidden.size + np.flatnonzero(free_output)])
        values = np.concatenate([hidden.ravel(), output.ravel()])[candidates]
        deleted = np.zeros(hidden.size + output.size, dtype=bool)
        worst = order_by_score(values)[::-1][: count_to_remove(step, candidates.size)]
        deleted[candidates[worst]] = True
        self.network = self.network.masked(
            self.network.hidden_mask & ~deleted[: hidden.size].reshape(hidden.shape),
            self.network.output_mask & ~deleted[hidden.size :].reshape(output.shape),
        )
        gone = np.flatnonzero(~self.network.hidden_mask.any(axis=1))
        return self.active[gone[order_by_score(hidden.sum(axis=1)[gone])[::-1]]]


def _best(values: FloatArray, among: NDArray[np.bool_]) -> tuple[np.intp, ...]:
    """Index of the largest value among some."""
    return np.unravel_index(np.argmax(np.where(among, values, -np.inf)), values.shape)


def network_targets(problem: Problem) -> FloatArray:
    """Targets ±1 per class; a real target is standardised, which changes no ranking."""
    targets = problem.target.columns()
    if problem.target.has_classes:
        return targets
    weight = problem.sample_weight
    mean = np.average(targets, axis=0, weights=weight)
    scale = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weight))
    return np.asarray((targets - mean) / np.where(scale > 0.0, scale, 1.0))
