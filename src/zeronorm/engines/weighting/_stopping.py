"""The rules that end a run when its weights no longer change."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.engines.weighting._state import RunState

DEFAULT_TOL = 0.25
# A decrease of the errors by less than this fraction over half of the run does not count.
SMALL_FALL = 0.02


@dataclass(frozen=True)
class StoppingRule:
    """Stops a run when the weights changed little in its last part and the errors no longer decrease.

    After n steps the paper's test is max |P_n - P_{n - ⌊n/μ⌋}| ≤ a max P_n, with the window μ and the tolerance a.
    The test is made on a geometric grid of n, each point the lagged step of the next, so that one snapshot is
    enough. It starts at a lag that draws every feature about once, because a single batch without errors
    changes nothing. Thousands of small weights can change together although each changes little: so the mean
    error in the last window must not be significantly, and by 2 %, below that at half of the run.
    """

    window: int
    tol: float
    first_lag: int
    first_settled: int = 0

    @property
    def first_test(self) -> int:
        return self.window * max(1, self.first_lag)

    def is_due(self, state: RunState) -> bool:
        """Whether the step is on the grid."""
        return state.step == (self.first_test if state.next_test < 0 else state.next_test)

    def is_met(self, state: RunState) -> bool:
        """Whether the distribution has converged; stores a snapshot and the mean error of the window in the state."""
        state.close_window()
        settled = False
        if state.lagged is not None and state.step >= self.first_settled:
            change = float(np.abs(state.weights - state.lagged).max())
            settled = change <= self.tol * float(state.weights.max()) and not self._errors_fall(state)
        state.lagged = state.weights.copy()
        state.next_test = next_grid_step(state.step, self.window)
        return settled

    @staticmethod
    def _errors_fall(state: RunState) -> bool:
        """Whether the errors decreased since half of the run, or no error is known from then."""
        steps, means, variances, _ = state.windows.T
        before = int(np.searchsorted(steps, state.step / 2, side="right")) - 1
        if before < 0:
            return True
        chance = 2.0 * float(np.sqrt(variances[before] + variances[-1]))
        return bool(means[before] - means[-1] > max(chance, SMALL_FALL * means[before]))


def next_grid_step(n: int, window: int) -> int:
    """The smallest m with m - ⌊m/window⌋ = n."""
    m = n * window // (window - 1)
    while m - m // window < n:
        m += 1
    while (m - 1) - (m - 1) // window >= n:
        m -= 1
    return m


# -- The paper's rule --


@dataclass(frozen=True)
class PrintedRule:
    """The paper's loop, "while |P_{n - ⌊n/μ⌋} - P_n|_∞ > α" (Figures 3 to 5), tested after every step.

    As printed, the loop ends at n = 0, where both distributions are the same; so it is tested once ⌊n/μ⌋ ≥ 1. The last
    ⌊n/μ⌋ distributions are held in memory.
    """

    window: int
    tol: float
    _earlier: deque[FloatArray] = field(default_factory=deque, repr=False)

    def is_due(self, state: RunState) -> bool:
        """Every step is tested."""
        return True

    def is_met(self, state: RunState) -> bool:
        """Whether no weight changed by more than α in the last ⌊n/μ⌋ steps."""
        lag = state.step // self.window
        self._earlier.append(state.weights.copy())
        while len(self._earlier) > lag + 1:
            self._earlier.popleft()
        if lag < 1 or len(self._earlier) <= lag:
            return False
        return float(np.abs(self._earlier[0] - state.weights).max()) <= self.tol

    @staticmethod
    def bytes_needed(n_features: int, max_iter: int, window: int) -> int:
        """Memory of the distributions that are held at the end of the longest run."""
        return 8 * n_features * (max_iter // window + 1)
