"""The loss that a target and a ``loss`` parameter name."""

from __future__ import annotations

from zeronorm.selection.target import Target, TimeToEvent
from zeronorm.solvers.linear._cox import CoxLoss
from zeronorm.solvers.linear._losses import Loss, svm_loss
from zeronorm.solvers.linear._ranking import RankingLoss


def loss_for(target: Target, name: str, epsilon: float | None = None, quantile: float = 0.5) -> Loss:
    """For times to an event the ranking hinge or, by any other name, the partial likelihood."""
    if not isinstance(target, TimeToEvent):
        return svm_loss(name, epsilon, quantile)
    return RankingLoss(target.stratum) if name == "ranking" else CoxLoss(strata=target.stratum)
