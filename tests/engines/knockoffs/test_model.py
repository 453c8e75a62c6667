"""The model of the columns: second moments of features and knockoffs, factors, blocks."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.engines.knockoffs import _covariance, _gaps
from zeronorm.engines.knockoffs._covariance import (
    conditioned_correlation,
    correlated_blocks,
    estimated_model,
    given_model,
    leading_factors,
)
from zeronorm.engines.knockoffs._fixed import FixedColumns
from zeronorm.engines.knockoffs._gaps import GAPS
from zeronorm.engines.knockoffs._model import Block, ColumnModel, knockoff_factors
from zeronorm.engines.knockoffs._normal_scores import normal_scores, with_margins_of


def toeplitz(p, rho=0.5):
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def draw_gaussian(n, correlation, rng):
    return rng.standard_normal((n, len(correlation))) @ np.linalg.cholesky(correlation).T


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("gaps", GAPS.values())
def test_model_x_knockoffs_have_the_joint_covariance(gaps):
    """Cov([X, X~]) = [[S, S - D], [S - D, S]], here from one large draw."""
    rng = np.random.default_rng(0)
    correlation = toeplitz(5, 0.6)
    s = gaps(correlation) * (1 - _gaps.SAFETY)
    X = draw_gaussian(200_000, correlation, rng)
    copies = given_model(correlation, gaps).draw(X, rng)
    joint = np.cov(np.hstack([X, copies]), rowvar=False)
    mixed = correlation - np.diag(s)
    expected = np.block([[correlation, mixed], [mixed, correlation]])
    assert np.abs(joint - expected).max() < 0.02  # entries have a standard error of about 0.003


def test_fixed_x_knockoffs_are_exact():
    rng = np.random.default_rng(1)
    X = draw_gaussian(40, toeplitz(6), rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    correlation = X.T @ X / 40
    s = _gaps.semidefinite_gaps(correlation) * (1 - _gaps.SAFETY)
    copies = FixedColumns.of(correlation, _gaps.semidefinite_gaps).draw(X, rng)
    np.testing.assert_allclose(copies.T @ copies / 40, correlation, atol=1e-10)
    np.testing.assert_allclose(X.T @ copies / 40, correlation - np.diag(s), atol=1e-10)
    np.testing.assert_allclose(copies.mean(axis=0), 0, atol=1e-12)


def test_the_correlation_is_shrunk_no_more_than_its_inverse_needs():
    X = np.random.default_rng(2).normal(size=(20, 60))
    X[:, 1] = X[:, 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    correlation = conditioned_correlation(X)
    np.testing.assert_allclose(np.diag(correlation), 1.0)
    assert np.linalg.eigvalsh(correlation).min() == pytest.approx(_covariance.SMALLEST_EIGENVALUE)
    assert correlation[0, 1] == pytest.approx(
        1 - _covariance.SMALLEST_EIGENVALUE
    )  # the sample's smallest one is 0
    tall = np.random.default_rng(3).normal(size=(4000, 5))
    tall = (tall - tall.mean(axis=0)) / tall.std(axis=0)
    np.testing.assert_allclose(conditioned_correlation(tall), np.corrcoef(tall.T), atol=1e-12)


def test_knockoffs_on_normal_scores_have_the_margins_and_the_rank_correlations_of_the_data():
    rng = np.random.default_rng(0)
    X = np.exp(1.5 * draw_gaussian(4000, toeplitz(4, 0.6), rng))
    scores = normal_scores(X)
    correlation = conditioned_correlation(scores)
    copies = with_margins_of(X, given_model(correlation, _gaps.equicorrelated_gaps).draw(scores, rng))
    shares = (0.1, 0.5, 0.9)
    np.testing.assert_allclose(np.quantile(copies, shares, axis=0), np.quantile(X, shares, axis=0), rtol=0.15)
    both = np.corrcoef(np.hstack([normal_scores(X), normal_scores(copies)]).T)
    np.testing.assert_allclose(both[4:, 4:], both[:4, :4], atol=0.06)
    apart = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(both[:4, 4:][apart], both[:4, :4][apart], atol=0.06)


# -- factors and blocks --


def factor_columns(n, p, rng, k=2, block=5):
    """Columns with common factors and correlated blocks, with their covariance."""
    loadings = rng.normal(size=(k, p)) * 0.6
    within = np.kron(np.eye(p // block), 0.5 * np.eye(block) + 0.5)
    covariance = loadings.T @ loadings + within
    return draw_gaussian(n, covariance, rng), covariance


def second_moments(X, copies):
    n = len(X)
    return X.T @ X / n, copies.T @ copies / n, X.T @ copies / n


def test_knockoffs_of_a_known_factor_model_have_its_second_moments():
    """Cov(X~) = Cov(X) = S and Cov(X, X~) = S - D, D being the gaps within the blocks."""
    rng = np.random.default_rng(0)
    n, p = 200_000, 10
    X, covariance = factor_columns(n, p, rng)
    loadings_within = 0.5 * np.eye(5) + 0.5
    s = 0.4 * np.ones(5)
    loadings = np.linalg.cholesky(covariance - np.kron(np.eye(2), loadings_within) + 1e-9 * np.eye(p))[
        :, :2
    ].T
    blocks = [Block(np.arange(a, a + 5), *knockoff_factors(loadings_within, s)) for a in (0, 5)]
    weighted = np.linalg.solve(np.kron(np.eye(2), loadings_within), loadings.T)
    model = ColumnModel(np.ones(p), blocks, _covariance._factors(loadings, weighted))
    real, fake, mixed = second_moments(X, model.draw(X, rng))
    assert np.abs(real - covariance).max() < 0.03  # entries have a standard error of about 0.005
    assert np.abs(fake - covariance).max() < 0.03
    assert np.abs(mixed - covariance + 0.4 * np.eye(p)).max() < 0.03


def test_knockoffs_of_many_columns_have_nearly_their_second_moments(monkeypatch):
    """The same with estimated factors and blocks, which describe the columns approximately."""
    monkeypatch.setattr(_covariance, "MOST_TOGETHER", 10)
    rng = np.random.default_rng(0)
    X = standardized(factor_columns(20_000, 60, rng)[0])
    model = estimated_model(X, _gaps.equicorrelated_gaps)
    assert len(model.factors.loadings) >= 2
    assert max(block.columns.size for block in model.blocks) <= 10
    real, fake, mixed = second_moments(X, model.draw(X, rng))
    apart = ~np.eye(60, dtype=bool)
    assert np.abs(real)[apart].max() > 0.6
    assert np.abs(fake - real).max() < 0.1
    assert np.abs(mixed - real)[apart].max() < 0.1
    assert np.all(np.diag(mixed) < 0.95)


def test_strongly_correlated_columns_share_a_block_of_limited_size():
    rng = np.random.default_rng(1)
    order = rng.permutation(40)
    X = standardized(draw_gaussian(400, np.kron(np.eye(8), 0.2 * np.eye(5) + 0.8), rng))[:, order]
    found = correlated_blocks(X, 5)
    assert sorted(np.concatenate(found).tolist()) == list(range(40))
    assert all(np.unique(order[columns] // 5).size == 1 for columns in found)
    assert sorted(columns.size for columns in found) == [5] * 8
    assert max(columns.size for columns in correlated_blocks(X, 3)) <= 3


@pytest.mark.parametrize("shape", [(100, 400), (500, 350)], ids=["wide", "tall"])
def test_factors_beyond_noise_are_found_and_noise_has_none(shape):
    n, p = shape
    rng = np.random.default_rng(2)
    noise = standardized(rng.normal(size=shape))
    assert leading_factors(noise)[1].shape == (0, p)
    true = rng.normal(size=(3, p))
    X = standardized(rng.normal(size=(n, 3)) @ true + rng.normal(size=shape))
    scores, loadings = leading_factors(X)
    assert loadings.shape == (3, p)
    np.testing.assert_allclose(scores.T @ scores / n, np.eye(3), atol=1e-8)
    explained = np.einsum("kj,kj->j", true, true)
    explained /= 1 + explained
    assert np.mean(np.einsum("kj,kj->j", loadings, loadings)) == pytest.approx(explained.mean(), abs=0.04)
