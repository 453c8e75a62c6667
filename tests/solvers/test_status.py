"""Each status of a solver raises, warns or does nothing."""

from __future__ import annotations

import pytest
from sklearn.exceptions import ConvergenceWarning

from zeronorm.solvers._status import Status, UnsolvableError


def test_each_status_raises_warns_or_does_nothing():
    assert Status.CONVERGED.check("here") is None
    for status in (Status.STALLED, Status.ITERATION_LIMIT, Status.FAILED):
        with pytest.warns(ConvergenceWarning, match=r"^here: "):
            status.check("here")
    for status in (Status.UNBOUNDED, Status.INFEASIBLE):
        with pytest.raises(UnsolvableError, match=r"^here: "):
            status.check("here")
    good = [status.as_good_as_it_gets for status in Status]
    assert good == [True, True, False, False, False, False]
    assert [int(status) for status in Status] == list(range(6))
    assert Status.CONVERGED < Status.STALLED < Status.FAILED
