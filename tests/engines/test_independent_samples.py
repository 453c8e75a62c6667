"""Samples of groups as rows with independent noise: generalised least squares, means, and contrasts within groups."""

import numpy as np
import pytest
from scipy import stats

from zeronorm.design import DenseDesign
from zeronorm.design._combined_rows import CombinedRowsDesign
from zeronorm.engines._independent_samples import (
    IndependentSamples,
    independent_samples,
    means_of_groups,
    variance_ratio,
)
from zeronorm.testing import check_design

GROUPS = np.array(["c", "a", "b", "a", "c", "c", "d", "a", "c", "b"])  # 4, 3, 2 and 1 samples
CODES = np.unique(GROUPS, return_inverse=True)[1]
N = GROUPS.size
SIZES = np.bincount(CODES)
MEMBERS = np.equal.outer(CODES, np.arange(4)).astype(float)
TARGETS = {
    "effects": np.random.default_rng(0).normal(size=N) + 2.0 * np.array([1.0, -1.0, 0.0, 3.0])[CODES],
    "diagnosis": np.array([1.0, -1.0, -1.0, 1.0])[CODES],
    "paired": np.random.default_rng(1).normal(size=3)[[0, 0, 0, 1, 1, 2, 0, 2, 2, 1]],
}


def centred(columns):
    return columns - columns.mean(axis=0)


def test_least_squares_on_the_combinations_are_generalised_least_squares():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(N, 3)), TARGETS["effects"]
    combined = independent_samples(y[:, None], GROUPS)
    order = np.argsort(CODES, kind="stable")
    theta = variance_ratio(y[order, None], SIZES, np.empty((N, 0)))
    assert theta > 0.0
    inverse = np.linalg.inv(np.eye(N) + theta * MEMBERS @ MEMBERS.T)
    with_intercept = np.column_stack([np.ones(N), X])
    expected = np.linalg.solve(with_intercept.T @ inverse @ with_intercept, with_intercept.T @ inverse @ y)
    found = np.linalg.lstsq(centred(combined.dot(X)), combined.dot(y), rcond=None)[0]
    np.testing.assert_allclose(found, expected[1:], rtol=1e-9)
    W = combined.dot(np.eye(N))
    np.testing.assert_allclose(W @ np.linalg.inv(inverse) @ W.T, np.eye(N), atol=1e-10)


@pytest.mark.parametrize("kind", TARGETS)
def test_the_intercept_becomes_a_constant_and_the_maps_are_adjoint(kind):
    groups = np.tile(np.arange(5), 2) if kind == "paired" else GROUPS
    y = np.repeat([0.0, 1.0], 5) if kind == "paired" else TARGETS[kind]
    combined = independent_samples(y[:, None], groups)
    W = combined.dot(np.eye(N))
    assert W.shape == ({"effects": 10, "diagnosis": 4, "paired": 6}[kind], N)
    assert np.ptp(W.sum(axis=1)) < 1e-12
    np.testing.assert_allclose(combined.transpose_dot(np.eye(len(W))), W.T, atol=1e-12)


def test_a_target_of_the_groups_gives_their_means():
    X = np.random.default_rng(3).normal(size=(N, 2))
    means = MEMBERS.T @ X / MEMBERS.sum(axis=0)[:, None]
    np.testing.assert_allclose(
        independent_samples(TARGETS["diagnosis"][:, None], GROUPS).dot(X), means, atol=1e-12
    )
    mixed = TARGETS["diagnosis"].copy()
    mixed[0] *= -1.0  # one sample of one group
    np.testing.assert_allclose(independent_samples(mixed[:, None], GROUPS).dot(X), means, atol=1e-12)
    np.testing.assert_allclose(means_of_groups(GROUPS).dot(X), means, atol=1e-12)


def test_paired_samples_are_compared_within_their_groups():
    """Least squares on the contrasts are those with an effect of each group (the within estimator)."""
    rng = np.random.default_rng(4)
    groups, y = np.tile(np.arange(5), 2), np.repeat([0.0, 1.0], 5)
    X = rng.normal(size=(10, 2)) + 5.0 * rng.normal(size=5)[groups][:, None]
    combined = independent_samples(y[:, None], groups)
    effects = np.column_stack([X, np.equal.outer(groups, np.arange(5)).astype(float)])
    expected = np.linalg.lstsq(effects, y, rcond=None)[0][:2]
    found = np.linalg.lstsq(centred(combined.dot(X)), centred(combined.dot(y)), rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_variance_ratio_of_equal_groups_is_that_of_an_analysis_of_variance():
    y = np.random.default_rng(6).normal(size=(8, 5)) + 2.0 * np.random.default_rng(7).normal(size=(8, 1))
    f = stats.f_oneway(*y).statistic
    found = variance_ratio(y.reshape(-1, 1), np.full(8, 5), np.empty((40, 0)))
    assert found == pytest.approx((f - 1.0) / 5.0, rel=1e-3)
    assert variance_ratio(np.tile([0.0, 1, 2, 3], 5)[:, None], np.full(5, 4), np.empty((20, 0))) == 0.0


def test_the_variance_ratio_has_the_largest_restricted_likelihood():
    """The likelihood of the residuals, with the covariance matrix written out."""
    rng = np.random.default_rng(8)
    sizes = np.array([2, 3, 4, 5, 6, 3])
    members = np.repeat(np.eye(6), sizes, axis=0)
    F = np.column_stack([np.ones(23), rng.normal(size=(23, 2))])
    y = F.sum(axis=1) + members @ rng.normal(size=6) + rng.normal(size=23)
    basis = np.linalg.svd(F)[0][:, 3:]  # contrasts that are zero for the fixed effects

    def likelihood(theta):
        covariance = basis.T @ (np.eye(23) + theta * members @ members.T) @ basis
        rest = basis.T @ y
        scale = rest @ np.linalg.solve(covariance, rest) / 20
        return -0.5 * (20 * np.log(scale) + np.linalg.slogdet(covariance)[1])

    found = variance_ratio(y[:, None], sizes, F[:, 1:])
    grid = np.geomspace(0.01, 100.0, 2001)
    assert found == pytest.approx(grid[np.argmax([likelihood(theta) for theta in grid])], rel=0.01)


@pytest.mark.parametrize("groups", [None, np.arange(N), np.zeros(N)], ids=["none", "single", "one"])
def test_samples_without_groups_of_several_stay_as_they_are(groups):
    assert independent_samples(TARGETS["effects"][:, None], groups) is None


def test_combined_rows_are_a_design():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 7))
    combined = IndependentSamples(np.argsort(CODES, kind="stable"), SIZES, np.full(4, 0.5), 1.0)
    check_design(lambda: CombinedRowsDesign(DenseDesign(X), combined), combined.dot(X))
