"""Units, number of features and SVM chosen on the training samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import GaussianNB

from zeronorm_studies.chosen_pipeline import COMMON, ROWS, STANDARDIZED, ChosenPipeline, choose_units


def counts(effect, n=160, p=60, seed=0):
    """Counts of words in texts of very different lengths; the class shifts the shares of the first six words."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    shares = np.full((n, p), 1.0)
    shares[:, :3] += effect * y[:, None]
    shares[:, 3:6] += effect * (1 - y)[:, None]
    lengths = np.exp(rng.normal(5.0, 1.5, n))
    return rng.poisson(shares / shares.sum(axis=1, keepdims=True) * lengths[:, None]).astype(float), y


def test_rows_of_unit_length_are_chosen_for_texts_of_very_different_lengths():
    X, y = counts(1.0)
    assert choose_units(X, y, (6, 20)) == ROWS
    assert choose_units(sp.csr_matrix(X), y, (6, 20)) == ROWS


def test_columns_are_standardised_where_no_other_units_are_clearly_better():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 30))
    X[:, :2] += 1.5 * y[:, None]
    assert choose_units(X, y, (2, 5)) == STANDARDIZED


def test_one_scale_is_chosen_where_small_columns_are_noise():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = 0.01 * rng.normal(size=(120, 2000))
    X[:, :20] = rng.normal(size=(120, 20)) + 0.45 * y[:, None]
    assert ChosenPipeline("all", (None,)).fit(X, y).units_ == COMMON


@pytest.mark.parametrize("ranking", ["fisher", "gflip"])
def test_informative_features_are_selected_and_predict(ranking):
    X, y = counts(1.5)
    model = ChosenPipeline(ranking, (6, 20)).fit(X[:120], y[:120])
    mask = model.get_support()
    assert mask[:6].sum() >= 5
    fitted = model.predictor_.fit(X[:120, mask], y[:120])
    assert balanced_accuracy_score(y[120:], fitted.predict(X[120:, mask])) > 0.8


def test_naive_bayes_gets_the_features_of_fcbf_in_the_chosen_units():
    X, y = counts(1.5)
    model = ChosenPipeline("fcbf", (6, 20), naive_bayes=True).fit(sp.csr_matrix(X), y)
    mask = model.get_support()
    assert 1 <= mask.sum() == mask[:6].sum()
    fitted = model.predictor_.fit(sp.csr_matrix(X[:, mask]), y)
    assert isinstance(fitted[-1], GaussianNB)
    assert balanced_accuracy_score(y, fitted.predict(sp.csr_matrix(X[:, mask]))) > 0.55
