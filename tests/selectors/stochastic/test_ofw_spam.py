"""The spam experiment of the paper (section 5.2.2), on the data in the folder ZERONORM_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from zeronorm import OptimalFeatureWeighting
from zeronorm.engines.weighting.learners._nearest import SubsetKNN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("ZERONORM_DATA"), reason="ZERONORM_DATA is not set: no spambase.npz"
    ),
]

# The words of Fig. 18; "[" is the square bracket of the data.
FIGURE_18 = {
    *("remove", "business", "boxbracket", "report", "receive", "internet", "free", "people", "000", "direct"),
    *("exclamation", "dollar", "cs", "857", "415", "project", "table", "conference", "lab", "labs", "edu"),
    *("650", "85", "george"),
}


def spam():
    with np.load(Path(os.environ["ZERONORM_DATA"]) / "spambase.npz", allow_pickle=False) as data:
        X, y = data["X"][:, :54].astype(np.float64), data["y"]
        words = np.array([name.split("_")[-1] for name in data["feature_names"][:54]])
    rows = np.random.default_rng(0).permutation(len(y))
    return X[rows], y[rows], words


def test_learned_words_beat_uniform_draws_on_the_test_set():
    X, y, words = spam()
    train, test = slice(0, 3450), slice(3450, None)
    selector = OptimalFeatureWeighting(
        learner=SubsetKNN(4),
        subset_size=15,
        bootstrap_size=100,
        random_state=0,
        n_jobs=2,
    ).fit(X[train], y[train])
    uniform = np.full(54, 1 / 54)
    errors = [
        selector.mean_error(X[train], y[train], X[test], y[test], weights=P, n_subsets=3000, random_state=1)
        for P in (uniform, selector.weights_)
    ]
    top = words[selector.path_.order[:24]]
    shared = sorted(set(top.tolist()) & FIGURE_18)
    print(
        f"SPAM: test error {errors[0]:.4f} under uniform draws, {errors[1]:.4f} under the learned distribution"
    )
    print(f"SPAM: the top 24 share {len(shared)} words with Fig. 18: {', '.join(shared)}")
    assert errors[1] < errors[0] - 0.03
