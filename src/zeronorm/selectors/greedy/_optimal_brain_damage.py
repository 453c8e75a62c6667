"""Optimal Brain Damage: prune a neural network until few inputs are left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zeronorm.engines.elimination._loop import Elimination, eliminate
from zeronorm.engines.sensitivity._network import NetworkModels
from zeronorm.execution import one_thread_if_small
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector

CANNOT_FIT = (
    "the trained network is no better than a constant; decrease penalty, increase n_hidden or max_iter, "
    "or look at the data: the order of the features means little."
)


@register(
    "optimal-brain-damage",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="LeCun et al. 1990; Lal et al. 2006, section 2.3",
    cost="n p h for each step of a network with h hidden units; a few hundred steps for each round",
    oracle="finite differences of the objective, and a plain loop of rounds",
    avoid="thousands of features; results that must not depend on the initial weights: there are local minima",
    test_params=(
        {"n_hidden": 3, "step": 0.3, "random_state": 0},
        {"n_hidden": 3, "step": 0.3, "random_state": 0, "task": "regression"},
        {"n_hidden": 3, "rule": "first_layer", "random_state": 0},
    ),
)
class OptimalBrainDamage(WeightedSelector):
    r"""Train a neural network with one hidden layer, delete its least useful weights, continue training, and repeat.

    The usefulness of a weight is measured by its saliency: the increase of the objective, to second order, when the
    weight is set to zero at a minimum,

    .. math:: s_i = \tfrac12 h_{ii} w_i^2, \qquad h_{ii} = \partial^2 T / \partial w_i^2 .

    The second derivatives are exact. Weights of both layers are deleted; a feature is removed when all its weights to
    the hidden layer are deleted. ``rule="first_layer"`` removes whole features instead, those with the smallest
    :math:`\sum_q w_{pq}^2` over hidden units q; for a network trained with a quadratic penalty this is to first order
    the change of the objective when the feature is scaled down.

    The objective T is the mean loss (logistic for classes, one against the rest for more than two; squared for a
    real target, which is standardised) plus :math:`\tfrac\lambda2` times the sum of squared weights. Each training
    starts from the last weights, so only the first one takes long.

    Use it for a few hundred features at most with effects that linear methods miss. The penalty matters most: if it
    is too small and samples are few, the network fits noise features; if it is too large, the network stays linear or
    constant. Training ends in a local minimum: try several ``random_state``. ``RFE`` and ``BoundElimination`` with an
    RBF kernel have no local minima.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    rule
        "saliency" removes weights of the network, "first_layer" removes features.
    step
        With ``rule="saliency"`` it refers to weights of the network instead of features.
    tol
        Largest entry of the gradient at the end of a training.
    max_iter
        Iterations of L-BFGS in each training.
    random_state
        It determines the initial weights of the network.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import OptimalBrainDamage
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = OptimalBrainDamage(2, n_hidden=3, step=2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        rule: Literal["saliency", "first_layer"] = "saliency",
        n_hidden: int = 10,
        weight_decay: float = 0.03,
        step: int | float = 0.1,
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: Any = None,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.rule = rule
        self.n_hidden = n_hidden
        self.weight_decay = weight_decay
        self.step = step
        self.task = task
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        models = NetworkModels(
            problem, n_hidden=self.n_hidden, penalty=self.weight_decay, tol=self.tol, max_iter=self.max_iter
        )
        record = Elimination(problem)
        with one_thread_if_small(max(problem.n_features, self.n_hidden)):
            models.train()
            fits = models.fits()
            if self.rule == "saliency":
                prune_weights(models, record, self.step)
            else:
                eliminate(models, record, self.step)
        path = record.path()
        return path if fits else replace(path, converged=False, remedy=CANNOT_FIT)


def prune_weights(models: NetworkModels, record: Elimination, step: int | float) -> None:
    """Delete weights in rounds until one feature, or only forced ones, are left."""
    problem = record.problem
    fewest = max(1, problem.always_keep.size)
    with problem.progress.task("Pruning the network", problem.n_features) as advance:
        while True:
            saliency = models.saliencies()
            record.sizes.append(models.active.size)
            record.scores[models.active] = np.maximum(saliency[0], 0.0).sum(axis=1)
            if models.active.size <= fewest:
                break
            gone = models.prune(saliency, step, problem.always_keep)
            if gone.size:
                record.remove(gone)
                models.remove(gone)
                advance(gone.size)
            models.train()
    record.note(models)
