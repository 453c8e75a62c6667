"""The status of a solver run: what happened, and what to do about it."""

from __future__ import annotations

import warnings
from enum import IntEnum


class UnsolvableError(ValueError):
    """The problem as posed has no solution."""


class Status(IntEnum):
    """How a solver run ended; higher is worse. The numbers are those that the compiled kernels return."""

    CONVERGED = 0
    STALLED = 1
    ITERATION_LIMIT = 2
    UNBOUNDED = 3
    INFEASIBLE = 4
    FAILED = 5

    @property
    def message(self) -> str:
        """What happened."""
        return _MESSAGES[self]

    @property
    def remedy(self) -> str:
        """What to do about it (empty after convergence)."""
        return _REMEDIES[self]

    @property
    def converged(self) -> bool:
        """Whether the answer meets the tolerance."""
        return self is Status.CONVERGED

    @property
    def is_unsolvable(self) -> bool:
        """Whether the problem has no solution, such as a hard margin of classes that overlap."""
        return self in (Status.UNBOUNDED, Status.INFEASIBLE)

    @property
    def as_good_as_it_gets(self) -> bool:
        """Whether more iterations would not help: the tolerance is met, or rounding prevents it."""
        return self in (Status.CONVERGED, Status.STALLED)

    def describe(self) -> str:
        """The message and the remedy as one sentence."""
        return f"{self.message}; {self.remedy}." if self.remedy else f"{self.message}."

    def check(self, where: str) -> None:
        """Raise when there is no solution, warn when it is not yet accurate, else do nothing."""
        if self.is_unsolvable:
            raise UnsolvableError(f"{where}: {self.describe()}")
        if not self.converged:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(f"{where}: {self.describe()}", ConvergenceWarning, stacklevel=3)


class Ended:
    """The result of a solver, with the status in which the solver ended."""

    status: Status

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status.converged


class Certified(Ended):
    """A result with a primal and a dual objective, between which the optimum lies."""

    primal_objective: float
    objective: float

    @property
    def gap(self) -> float:
        """Primal minus dual objective, never negative."""
        return max(self.primal_objective - self.objective, 0.0)


_MESSAGES = {
    Status.CONVERGED: "The solution meets the tolerance",
    Status.ITERATION_LIMIT: "The iteration limit was reached before the tolerance",
    Status.STALLED: "The tolerance is below what double precision can resolve on these data",
    Status.UNBOUNDED: (
        "The problem has no solution at working precision: with a hard margin, the two classes "
        "cannot be separated"
    ),
    Status.INFEASIBLE: "No point satisfies all the constraints",
    Status.FAILED: "The solver ended without a solution",
}
_REMEDIES = {
    Status.CONVERGED: "",
    Status.ITERATION_LIMIT: "increase max_iter",
    Status.STALLED: "increase tol",
    Status.UNBOUNDED: "use a finite C",
    Status.INFEASIBLE: "relax the constraints",
    Status.FAILED: "standardize the features, or scale the costs to similar magnitudes",
}
