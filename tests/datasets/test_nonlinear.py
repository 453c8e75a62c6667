"""The nonlinear problems: their true features predict, their noise columns do not, and linear models are poor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zeronorm.datasets import nonlinear_problems
from zeronorm.datasets._nonlinear import MEDIAN_OF_CHI_SQUARE_3

PROBLEMS = nonlinear_problems()
# Corral is a threshold of a sum for most of its 16 inputs.
NEARLY_LINEAR = {"corral"}


def error(model, X, y):
    return 1.0 - cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=5).mean()


def test_there_are_twelve_of_the_stated_sizes():
    assert len(PROBLEMS) == 12
    for name, problem in PROBLEMS.items():
        X, y, relevant = problem(0)
        assert 200 <= X.shape[0] <= 600, name
        assert 2 <= relevant.size <= 5, name
        assert 50 <= X.shape[1] - relevant.size <= 200, name
        assert set(y.tolist()) == {0, 1}, name
        assert 0.25 < y.mean() < 0.75, name


@pytest.mark.parametrize("name", PROBLEMS)
def test_true_features_predict_and_a_linear_model_does_not(name):
    X, y, relevant = PROBLEMS[name](0)
    kept = X[:, relevant]
    nonlinear = min(error(SVC(C=C, gamma=gamma), kept, y) for C in (10.0, 100.0) for gamma in (0.5, 4.0))
    assert nonlinear < 0.09
    if name not in NEARLY_LINEAR:
        assert error(LogisticRegression(), kept, y) > nonlinear + 0.15


@pytest.mark.parametrize("name", PROBLEMS)
def test_noise_columns_have_the_values_of_true_ones_in_another_order(name):
    X, _, relevant = PROBLEMS[name](1)
    true = {tuple(column) for column in np.sort(X[:, relevant], axis=0).T}
    assert {tuple(column) for column in np.sort(X, axis=0).T} == true


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_seed_decides(name):
    first, same, other = (PROBLEMS[name](seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.X, same.X)
    np.testing.assert_array_equal(first.y, same.y)
    assert not np.array_equal(first.X, other.X)
    positions = {tuple(PROBLEMS[name](seed).relevant) for seed in range(5)}
    assert len(positions) > 1


def test_half_of_the_samples_of_the_shell_are_inside():
    assert chi2.median(3) == pytest.approx(MEDIAN_OF_CHI_SQUARE_3, abs=1e-6)
