"""When a forward search should end: the rules that judge the next candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod

from zeronorm.selectors.greedy.orthogonal import OrthogonalSearch
from zeronorm.selectors.probes import ProbeRisk, probe_tail


class StopRule(ABC):
    """Judges candidates one after the other; ``values`` holds the number each verdict was based on."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.n_accepted = 0
        self.has_refused = False

    def judge(self, search: OrthogonalSearch, column: int) -> bool:
        """Tell whether the search should go on with ``column``; after a refusal the answer stays no."""
        value = self._value(search, column)
        self.has_refused = self.has_refused or not self._accepts(value)
        self.values.append(value)
        self.n_accepted += not self.has_refused
        return not self.has_refused

    @abstractmethod
    def _value(self, search: OrthogonalSearch, column: int) -> float:
        """The number the verdict on the next column is based on."""

    @abstractmethod
    def _accepts(self, value: float) -> bool:
        """Whether the number allows the column in."""


class ProbeStop(StopRule):
    """Ends when the risk of having selected a random probe passes a level."""

    def __init__(self, level: float, correction: str | None) -> None:
        super().__init__()
        self.level = level
        self.risk = ProbeRisk(correction)

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        cos_sq = float(search.scores[column])
        self.risk.value = self.risk.after(cos_sq, search.dimension, search.target_rank, search.n_candidates)
        return self.risk.value

    def _accepts(self, value: float) -> bool:
        return value <= self.level


class FisherStop(StopRule):
    """Ends at the first feature that the partial F test does not find significant at a level."""

    def __init__(self, level: float) -> None:
        super().__init__()
        self.level = level

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        return float(probe_tail(search.scores[column], search.dimension, search.target_rank))

    def _accepts(self, value: float) -> bool:
        return value <= self.level


class LeaveOneOutStop(StopRule):
    """Ends at the first feature that does not lower the leave-one-out error."""

    def __init__(self) -> None:
        super().__init__()
        self.error: float | None = None

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        if self.error is None:
            self.error = search.leave_one_out_error()
        return search.leave_one_out_error(column)

    def _accepts(self, value: float) -> bool:
        assert self.error is not None  # _value came first
        is_lower = value < self.error
        self.error = value
        return is_lower


class SizeStop(StopRule):
    """Ends at a number of features only; the value is the share of the target each one explains."""

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        return float(search.scores[column])

    def _accepts(self, value: float) -> bool:
        return True
