"""The order of least angles against the path with weights, which solves a system of equations at each step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zeronorm import LassoSelector, StabilitySelection
from zeronorm.design import as_design
from zeronorm.solvers import _least_angles
from zeronorm.solvers._lasso import follow_lasso_path
from zeronorm.solvers._least_angles import least_angle_supports


def supports_with_weights(X, q, most_steps):
    return [step.columns for step in follow_lasso_path(X, q, removes=False, most_steps=most_steps)]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(30, 12), (12, 50), (40, 90)]),
    st.sampled_from(["independent", "correlated", "dependent"]),
)
def test_supports_are_those_of_the_path_with_weights(seed, shape, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    if kind == "correlated":
        X += 3.0 * rng.normal(size=(shape[0], 1))
    if kind == "dependent":
        X[:, 5] = 0.8 * X[:, 0] + 0.7 * X[:, 1]
        X[:, 6] = 0.6 * X[:, 2] - 1.3 * X[:, 3]
    X -= X.mean(axis=0)
    q = X.T @ (X[:, 0] - X[:, 2] + rng.normal(size=shape[0]))
    found = least_angle_supports(as_design(X), q, 500)
    expected = supports_with_weights(as_design(X), q, 500)
    assert [s.tolist() for s in found] == [s.tolist() for s in expected]
    assert len(least_angle_supports(as_design(X), q, 3)) == 4


@pytest.mark.parametrize("seed", range(8))
def test_of_three_dependent_columns_two_enter(seed):
    """With two of them in the fit, the third reaches the penalty at once and adds nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 10))
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]
    last = least_angle_supports(as_design(X), X.T @ (X[:, 0] + rng.normal(size=40)), 500)[-1]
    assert np.setdiff1d(np.arange(10), last).tolist() in ([0], [1], [3])


def test_features_that_enter_together_share_a_step():
    found = least_angle_supports(as_design(np.eye(4)), np.array([3.0, -3.0, 1.0, 0.0]), 9)
    assert [s.tolist() for s in found] == [[], [0, 1], [0, 1, 2]]
    assert [s.size for s in least_angle_supports(as_design(np.eye(3)), np.zeros(3), 9)] == [0]


@pytest.mark.parametrize("n_permutations", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_q_values_are_those_of_the_path_with_weights(n_permutations, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 80))
    y = X[:, :4].sum(axis=1) + rng.normal(size=60)
    selector = StabilitySelection(
        LassoSelector(method="lars", task="regression"),
        bound="integrated",
        n_subsamples=10,
        n_permutations=n_permutations,
        random_state=seed,
    )
    fast = selector.fit(X, y).q_values_
    monkeypatch.setattr(_least_angles, "SMALL_COPY_BYTES", 0)  # no room for the basis
    np.testing.assert_array_equal(selector.fit(X, y).q_values_, fast)
    assert fast.min() < 1.0
