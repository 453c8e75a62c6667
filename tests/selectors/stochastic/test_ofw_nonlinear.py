"""OFW with nearest neighbours on nonlinear problems, and with a common scale."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import OptimalFeatureWeighting
from zeronorm.datasets import nonlinear_problems

PROBLEMS = nonlinear_problems()


def found(name, seed):
    """Share of the true features among as many selected ones, and the subset size of the run that was kept."""
    X, y, relevant = PROBLEMS[name](seed)
    with np.errstate(all="raise"):
        selector = OptimalFeatureWeighting(relevant.size, learner="knn", tol=0.5, random_state=seed).fit(X, y)
    return len(set(selector.path_.support(relevant.size)) & set(relevant)) / relevant.size, selector


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_the_subset_size_with_the_lower_error_is_kept():
    """The fields of a checkerboard need few features in a subset, three-way XOR needs many."""
    share, selector = found("checkerboard", 0)
    assert (share, selector.subset_size_) == (1.0, 4)
    share, selector = found("three_way_xor", 0)
    assert (share, selector.subset_size_) == (1.0, 8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", PROBLEMS)
def test_true_features_of_nonlinear_problems_are_found(name):
    assert np.mean([found(name, seed)[0] for seed in (10, 11)]) >= 0.75


def test_a_common_scale_keeps_the_units_of_the_columns_relative_to_each_other():
    """Two classes that differ in a column of large variance; noise columns of small variance are as good as absent."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 12))
    X[:, 3] += 2.0 * y
    X[:, 3] *= 100.0
    settings = {"learner": "knn", "subset_size": 6, "max_iter": 60, "bootstrap_size": 20, "random_state": 0}
    with pytest.warns(match="did not converge"):
        common, moved, each = (
            OptimalFeatureWeighting(1, standardize=how, **settings).fit(Z, y)
            for how, Z in (("common", X), ("common", 1e3 * X - 7.0), (True, X))
        )
    np.testing.assert_allclose(moved.weights_, common.weights_, rtol=1e-6)
    assert not np.allclose(each.weights_, common.weights_)
    assert common.mean_error(X, y, random_state=0) < each.mean_error(
        X, y, weights=common.weights_, random_state=0
    )
