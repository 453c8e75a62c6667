"""Probabilities from scores: against other libraries and penalised likelihoods by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from zeronorm.evaluation._probabilities import fit_probabilities, fit_scores, probabilities_of


def drawn(n, seed, slope=2.0, bias=-0.5):
    rng = np.random.default_rng(seed)
    decision = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-(slope * decision + bias)))).astype(int)
    return np.column_stack([-decision / 2, decision / 2]), y


def test_the_fit_for_two_classes_is_logistic_regression():
    scores, y = drawn(200, 0)
    found = fit_scores(scores, np.eye(2)[y])
    reference = sm.Logit(y, sm.add_constant(scores[:, 1] - scores[:, 0])).fit(disp=0)
    np.testing.assert_allclose([found.biases[1], found.slope], reference.params, rtol=1e-6)
    np.testing.assert_allclose(found.covariance, reference.cov_params()[::-1, ::-1], rtol=1e-5)


def test_the_fit_for_three_classes_maximises_the_likelihood():
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=(150, 3)), rng.integers(3, size=150)
    scores[np.arange(150), y] += 1.0

    def loss(at):
        return -np.log(softmax(at[0] * scores + np.r_[0.0, at[1:]], axis=1)[np.arange(150), y]).sum()

    best = optimize.minimize(loss, np.zeros(3), tol=1e-10).x
    found = fit_scores(scores, np.eye(3)[y])
    np.testing.assert_allclose([found.slope, *found.biases[1:]], best, atol=1e-4)


@pytest.mark.parametrize("separated", [False, True])
def test_probabilities_of_two_classes_have_the_prior_of_jeffreys(separated):
    scores, y = drawn(40, 2)
    decision = scores[:, 1] - scores[:, 0]
    y = (decision > 0).astype(int) if separated else y
    columns = np.column_stack([decision, np.ones(40)])

    def loss(at):
        logits = columns @ at
        p = 1 / (1 + np.exp(-logits))
        information = (columns * (p * (1 - p))[:, None]).T @ columns
        return -np.sum(y * logits - np.logaddexp(0, logits)) - 0.5 * np.linalg.slogdet(information)[1]

    best = optimize.minimize(
        loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}
    ).x
    found = fit_probabilities(scores, y)
    np.testing.assert_allclose([found.slope, found.biases[1]], best, rtol=2e-3, atol=1e-3)


def test_a_weight_of_two_is_a_duplicated_sample():
    scores, y = drawn(50, 3)
    twice = fit_probabilities(np.r_[scores, scores[:10]], np.r_[y, y[:10]])
    weighted = fit_probabilities(scores, y, np.r_[np.full(10, 2.0), np.ones(40)])
    np.testing.assert_allclose(weighted.slope, twice.slope, rtol=1e-3)


def test_scores_against_the_classes_give_the_shares_of_the_classes():
    scores, y = drawn(400, 4)
    found = fit_probabilities(-scores, y)
    probabilities = probabilities_of(-scores, found.slope, found.biases)
    assert found.slope == 0.0
    np.testing.assert_allclose(probabilities[:, 1], (y.sum() + 0.5) / 401, rtol=1e-3)


def test_separated_and_constant_scores_have_no_slope():
    scores, y = drawn(40, 5)
    assert not fit_scores(scores, np.eye(2)[(scores[:, 1] > 0).astype(int)]).is_finite
    assert not fit_scores(np.zeros((40, 2)), np.eye(2)[y]).is_finite


def test_groups_of_equal_samples_count_once():
    scores, y = drawn(80, 6)
    single = fit_scores(scores, np.eye(2)[y], groups=np.arange(80))
    repeated = fit_scores(
        np.repeat(scores, 3, axis=0), np.eye(2)[np.repeat(y, 3)], groups=np.repeat(np.arange(80), 3)
    )
    np.testing.assert_allclose(repeated.slope, single.slope, rtol=1e-6)
    np.testing.assert_allclose(repeated.covariance, single.covariance, rtol=1e-6)
    alone = LogisticRegression(C=np.inf).fit(scores[:, 1:] * 2, y)
    assert single.slope == pytest.approx(alone.coef_[0, 0], rel=1e-3)
