"""What the base class does for all selectors."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from zeronorm import RFECV, FisherScore
from zeronorm.registry import all_methods
from zeronorm.selection import problem

TALKING = [
    m
    for kind in ("selector", "meta")
    for m in all_methods(kind)
    if "verbose" in m.instances()[0].get_params(deep=False)
    and m.cls is not RFECV  # which counts as scikit-learn does
]
STOPS_EARLY = {"fsv", "perceptron-rfe"}  # far before the largest number of steps


@pytest.mark.parametrize("change", [-1, 1])
def test_predictions_need_the_columns_of_the_fit(change):
    X, y = make_classification(40, 6, random_state=0)
    fitted = FisherScore(2, estimator=LogisticRegression()).fit(X, y)
    other = np.ones((3, 6 + change))
    for call in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.transform):
        with pytest.raises(ValueError, match=f"X has {6 + change} features, but FisherScore is expecting 6"):
            call(other)
    assert fitted.n_features_in_ == 6
    assert fitted.predict(X).shape == (40,)


class Bar:
    def __init__(self, total):
        self.total, self.done = total, 0

    def advance(self, steps=0, text=""):
        self.done += steps


@pytest.mark.parametrize("method", TALKING, ids=lambda m: m.name)
def test_progress_ends_near_what_was_announced(method, monkeypatch):
    X, y = make_classification(40, 8, n_informative=3, n_redundant=0, random_state=0)
    X = np.abs(X)
    X[:, 0] += 10 * y  # hard margins need classes that can be separated
    bars = []

    @contextmanager
    def bar(description, total):
        bars.append(Bar(total))
        yield bars[-1]

    monkeypatch.setattr(problem, "_bar", bar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        method.instances()[0].set_params(verbose=True).fit(X, y)
    for shown in bars:
        if shown.total is not None:
            least = 1 if method.name in STOPS_EARLY else shown.total - 1
            assert least <= shown.done <= shown.total


def test_of_equal_columns_the_first_stays_longest():
    """In the order of the built-in machine; with an estimator it is that of scikit-learn, where the first leaves."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    noise = rng.normal(size=(40, 2))
    X = np.column_stack([noise, noise, 3.0 * y + rng.normal(size=40)])
    ranking = RFECV(cv=3).fit(X, y).ranking_
    assert ranking[4] == 1
    assert ranking[0] < ranking[2]
    assert ranking[1] < ranking[3]
