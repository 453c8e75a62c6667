"""The gaps of the study are those that trying all pairs gives, with models of scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from zeronorm_studies.declared.zero_norm_gap import BEST, METHODS, CertifiedModels


def trained(X, y):
    return LogisticRegression(C=10.0 / len(y), tol=1e-10, max_iter=10_000).fit(X, y)


def objective(X, y):
    """½‖w‖² + C Σ loss of the trained model."""
    model = trained(X, y)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    return 0.5 * np.sum(model.coef_**2) + 10.0 / len(y) * np.logaddexp(0.0, -margins).sum()


def test_gaps_and_predictions_are_those_of_trying_all_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 9)) + rng.normal(size=(60, 1))
    y = (X[:, 0] - X[:, 3] + 0.7 * X[:, 5] + rng.normal(size=60) > 0).astype(int)
    columns = StandardScaler().fit_transform(X)
    of_pair = {pair: objective(columns[:, pair], y) for pair in combinations(range(9), 2)}
    least = min(of_pair.values())
    gaps = set()
    for method in (BEST, *METHODS):
        found = CertifiedModels(method, "logistic", (2,), 300).fit(X, y)
        pair = tuple(found.models_[2].columns.tolist())
        assert found.gaps_[2] == pytest.approx(100.0 * (1.0 - least / of_pair[pair]), abs=1e-4)
        np.testing.assert_array_equal(
            found.predict(X), trained(columns[:, pair], y).predict(columns[:, pair])
        )
        gaps.add(round(found.gaps_[2], 3))
    assert max(gaps) > 1.0  # some method has another pair
    assert min(gaps) == 0.0
