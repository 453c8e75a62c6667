"""The random baseline is uniform and repeatable."""

from __future__ import annotations

import numpy as np

from zeronorm import RandomSelector


def test_every_feature_is_chosen_equally_often():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 5)), np.arange(6) % 2
    runs = 600
    chosen = sum(RandomSelector(2, random_state=seed).fit(X, y).support_ for seed in range(runs))
    standard_error = np.sqrt(runs * 0.4 * 0.6)
    assert np.all(np.abs(chosen - 0.4 * runs) < 4 * standard_error)


def test_the_target_does_not_matter():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 8)), np.arange(10) % 2
    a, b = (RandomSelector(random_state=3).fit(X, labels).path_.order for labels in (y, 1 - y))
    assert a.tolist() == b.tolist()
