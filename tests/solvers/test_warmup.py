"""The warm-up calls each compiled loop once, on a problem whose solution is known."""

from __future__ import annotations

import numpy as np

from zeronorm.solvers import _geometry as geometry
from zeronorm.solvers import warmup
from zeronorm.solvers.svm import _smo as smo


def test_every_loop_is_called_once_for_a_warmup(monkeypatch):
    called = []
    for module, name in ((smo, "refresh"), (geometry, "project_in_place")):
        own = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, own=own, name=name: called.append((name, own(*a), a)))
    warmup()
    assert [name for name, _, _ in called] == ["refresh", "project_in_place"]
    np.testing.assert_allclose(called[1][2][0], [0.0, 1.0])
    K, ridge, sample, sign, alpha, f = called[0][2]
    np.testing.assert_allclose(f, K @ (sign * alpha))
    # Two samples at distance √2: both multipliers are 2 over the squared distance, or C.
    np.testing.assert_allclose(alpha, min(1.0, 2.0 / (2.0 + 1.0 - 2 * 0.5)))
    assert (ridge.tolist(), sample.tolist()) == ([0.0, 0.0], [0, 1])
