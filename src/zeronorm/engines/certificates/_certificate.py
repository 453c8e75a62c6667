"""What is proved about a subset: how much better another subset of the same size can be, and the dual point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.certificates._bounds import CompetingUnits, Objective, Units
from zeronorm.engines.certificates._conjugates import dual_loss
from zeronorm.engines.certificates._proof import ROUNDING_GAP, Proof, ProofStatus, SearchState, relative_gap


@dataclass(frozen=True, eq=False)
class Certificate:
    """A subset, its objective, and a bound below which no subset of this size can be.

    Attributes
    ----------
    support : ndarray of int
        The features of the subset.
    size : int
        The largest number of features of the subsets it is compared with.
    objective : float
        ½‖w‖² + C Σ loss of the model trained on these features, rounded up.
    bound : float
        No subset of ``size`` features has a smaller objective; rounded down.
    status : {"optimal", "gap", "limit"}
        "optimal": the gap is at most 1e-6. "gap": the tolerance was reached. "limit": the time or the number
        of nodes was reached first.
    loss, C, max_weight : str, float, float
        What the objective is, and the largest absolute weight of the compared models; infinite without a bound.
    alpha : ndarray of shape (n_samples, n_models)
        Dual variables that prove ``dual_bound`` without any search; see `check`.
    dual_bound : float
        The bound at ``alpha``. A larger ``bound`` comes from ``n_nodes`` steps of branch and bound.
    better : ndarray of int or None
        A subset with a smaller objective, if one was found.
    better_objective : float
        Its objective; that of the subset itself if none was found.
    n_nodes : int
        Number of divided nodes of branch and bound.
    seconds : float
        Time of the search.
    history : tuple
        Triples (seconds, bound, objective of the best subset), in the course of the search.
    state : SearchState or None
        With it a later search continues.
    """

    support: IntArray
    size: int
    objective: float
    bound: float
    status: str
    loss: str
    C: float
    max_weight: float
    alpha: FloatArray
    dual_bound: float
    better: IntArray | None
    better_objective: float
    n_nodes: int
    seconds: float
    history: tuple[tuple[float, float, float], ...]
    state: SearchState | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """How much smaller the objective of another subset can be, relative to this one; rounded up."""
        return relative_gap(self.objective, self.bound)

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that no subset has an objective smaller by more than 1e-6 of it."""
        return self.status == ProofStatus.OPTIMAL.value

    def sentence(self) -> str:
        """What is proved, as text for a report."""
        features = "1 feature" if self.size == 1 else f"{self.size} features"
        if math.isfinite(self.max_weight):
            features += f" with weights of at most {self.max_weight:.3g}"
        if self.is_optimal:
            return f"No subset of {features} has a smaller objective (proved to one part in a million)."
        percent = math.ceil(1000.0 * self.gap) / 10.0
        text = f"No subset of {features} is better by more than {percent:.1f} % in this objective."
        if self.better is not None:
            lower = math.floor(1000.0 * relative_gap(self.objective, self.better_objective)) / 10.0
            text += f" A subset that is better by {lower:.1f} % was found."
        return text

    def state_for(self, objective: Objective, size: int, loss: str, C: float) -> SearchState | None:
        """The state from which a search with these settings continues; an error if it was another problem."""
        own, asked = (
            f"size {k}, loss {name!r}, C {c:.17g}, max_weight {m:.17g}"
            for k, name, c, m in (
                (self.size, self.loss, self.C, self.max_weight),
                (size, loss, C, objective.max_weight),
            )
        )
        if own != asked:
            raise ValueError(f"The earlier search had {own}; it cannot continue with {asked}.")
        return self.state

    def check(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute ``dual_bound`` again, for single features and up to rounding, from the columns as they were used.

        ``X`` holds the standardised columns if the method standardises, ``y`` one column per model: -1 and 1, or the
        real target.
        """
        X, targets = np.asarray(X, dtype=float), np.asarray(y, dtype=float).reshape(len(self.alpha), -1)
        cost = self.C * (np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float))
        loss, v = dual_loss(self.loss), self.alpha / cost[:, None]
        if np.any(self.alpha.sum(axis=0) != 0.0) or not np.allclose(loss.feasible(v, targets), v, atol=1e-12):
            raise ValueError("The dual variables of this certificate do not belong to these targets.")
        q = np.sum((X.T @ self.alpha) ** 2, axis=1)
        M = min(self.max_weight, float(np.sqrt(q.max())))  # a larger one changes nothing
        values = np.where(q > M**2, M * (2.0 * np.sqrt(q) - M), q)
        return float(
            np.sum(cost[:, None] * loss.dual(v, targets)) - 0.5 * np.sort(values)[-self.size :].sum()
        )


def certificate_of(
    proof: Proof, objective: Objective, support: IntArray, value: float, name: str, C: float
) -> Certificate:
    """The certificate of a subset with this objective, from a search of the subsets of its size."""
    is_better = proof.best.objective < value * (1.0 - 1e-9)
    bound = min(proof.bound, value)
    status = proof.status
    if relative_gap(value, bound) <= ROUNDING_GAP:
        status = ProofStatus.OPTIMAL
    elif status is ProofStatus.OPTIMAL:
        status = ProofStatus.GAP
    return Certificate(
        support=support,
        size=proof.candidates.size,
        objective=value,
        bound=bound,
        status=status.value,
        loss=name,
        C=C,
        max_weight=objective.max_weight,
        alpha=proof.root.dual.alpha,
        dual_bound=min(proof.root.bound, bound),
        better=proof.best.columns if is_better else None,
        better_objective=proof.best.objective if is_better else value,
        n_nodes=proof.n_nodes,
        seconds=proof.seconds,
        history=tuple(proof.history),
        state=proof.state,
    )


def all_subsets(objective: Objective, groups: IntArray | None, size: int, forced: IntArray) -> CompetingUnits:
    """The subsets of at most this many features that hold the forced ones."""
    units = Units.of(objective.design.n_features, groups)
    inside = np.zeros(units.sizes.size, dtype=bool)
    inside[units.code[forced]] = True
    return CompetingUnits(units, size, inside, ~inside)
