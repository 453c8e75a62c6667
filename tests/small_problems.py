"""Small problems for tests of the selectors' parts, and a classifier that shows what reaches it."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from zeronorm import as_design
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import KINDS

INF = float("inf")


def noise(n, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def problem_of(y, X=None, task="binary", **more):
    X = noise(len(y)) if X is None else X
    target = KINDS[task](np.asarray(y), more.pop("classes", None))
    return Problem(design=as_design(X), target=target, **more)


class Remembering(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was given."""

    def fit(self, X, y, groups=None, sample_weight=None):
        self.groups_, self.weight_, self.classes_ = groups, sample_weight, np.unique(y)
        self.coef_ = np.abs(X).sum(axis=0)[None, :]
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))
