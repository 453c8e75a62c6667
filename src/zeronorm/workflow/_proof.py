"""How far the selected features are from the best subset of their size, for methods that train a linear model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm.engines.certificates._gap import TASKS_OF_LOSSES, optimality_gap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.engines.certificates._certificate import Certificate

TIME_LIMIT_S = (
    10.0  # of the search; colon, leukaemia and lymphoma need 1 to 3 s of processor time for 20 features
)
NODES = 20  # of branch and bound; as long as the time suffices, the bound is the same on every computer
MOST_FEATURES = 128  # for larger subsets the gap says little


@dataclass(frozen=True)
class SubsetGap:
    """What is proved about the selected subset; ``better`` names one with a smaller objective, if one was found."""

    loss: str
    C: float
    size: int
    objective: float
    bound: float
    gap: float
    status: str
    sentence: str
    better: list[str]


def proved_gap(table: Table, columns: NDArray[np.intp], method: Any) -> dict[str, Any]:
    """The gap of the selected columns in the objective of the method's own loss, as plain values.

    Empty for methods that train no linear model, for data on disk, where it would take many passes, for more than 128
    features, and with covariates.
    """
    loss = method._certified_loss() if hasattr(method, "_certified_loss") else None
    is_small = 0 < columns.size <= MOST_FEATURES
    has_covariates = table.covariates is not None  # the bounds are about models of the features alone
    if (
        has_covariates
        or loss is None
        or not is_small
        or table.target.kind not in TASKS_OF_LOSSES
        or _is_on_disk(table.X)
    ):
        return {}
    found = _own_certificate(method, columns) or optimality_gap(
        table.X,
        table.y,
        np.sort(columns),
        loss=loss,
        task="classification" if table.target.has_classes else "regression",
        feature_groups=getattr(method, "feature_groups", None),
        always_keep=getattr(method, "always_keep", None),
        time_limit=TIME_LIMIT_S,
        max_nodes=NODES,
    )
    better = [] if found.better is None else [str(table.feature_names[i]) for i in found.better]
    return asdict(
        SubsetGap(
            found.loss,
            found.C,
            found.size,
            found.objective,
            found.bound,
            found.gap,
            found.status,
            found.sentence(),
            better,
        )
    )


def _own_certificate(method: Any, columns: NDArray[np.intp]) -> Certificate | None:
    """What the method itself has proved about these columns."""
    certificates: dict[int, Certificate] = getattr(method, "certificates_", {})
    found = certificates.get(columns.size)
    return found if found is not None and np.array_equal(found.support, np.sort(columns)) else None


def _is_on_disk(X: Any) -> bool:
    backend = getattr(X, "backend", None)
    return bool(backend is not None and backend.is_on_disk)
