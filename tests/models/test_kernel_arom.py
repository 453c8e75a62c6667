"""KernelAROM: the multiplicative map, kernels against monomials, and sparse polynomials."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from zeronorm import AROM
from zeronorm.datasets._generators import make_polynomial_toy
from zeronorm.engines._monomials import factor_table
from zeronorm.models import KernelAROM
from zeronorm.models._kernel_arom import orderings, polynomial, rescaled_kernel


def ordered_monomials(X, degree):
    """All ordered monomials up to a degree, one column for each sequence of inputs."""
    columns = []
    for power in range(1, degree + 1):
        sequences = product(range(X.shape[1]), repeat=power)
        columns += [np.prod(X[:, sequence], axis=1) for sequence in sequences]
    return np.column_stack(columns)


def toy(n, *, target="product", p=4, seed=0):
    data = make_polynomial_toy(n, target=target, n_features=p, random_state=seed)
    return data.X, data.y


# -- the space --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_map_is_multiplicative_and_belongs_to_the_kernel(degree):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    images, others = ordered_monomials(X, degree), ordered_monomials(Z, degree)
    np.testing.assert_allclose(ordered_monomials(X * Z, degree), images * others)
    np.testing.assert_allclose(polynomial(X @ Z.T, degree), images @ others.T)


def test_the_number_of_orderings():
    factors = factor_table(3, 3)
    counts = orderings(factors)
    by_monomial = {
        tuple(int(i) for i in column if i < 3): c for column, c in zip(factors.T, counts, strict=True)
    }
    assert by_monomial[(0,)] == 1
    assert by_monomial[(0, 0)] == 1
    assert by_monomial[(0, 1)] == 2
    assert by_monomial[(0, 0, 2)] == 3
    assert by_monomial[(0, 1, 2)] == 6
    assert counts.sum() == 3 + 9 + 27


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_rescaled_kernel_is_that_of_rescaled_monomials(degree):
    rng = np.random.default_rng(1)
    X, left, right = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    gamma = rng.normal(size=6)
    gamma[2] = 0.0
    z = gamma @ ordered_monomials(X, degree)
    expected = (ordered_monomials(left, degree) * z) @ (ordered_monomials(right, degree) * z).T
    np.testing.assert_allclose(rescaled_kernel(X, gamma, left, right, degree), expected)


# -- implicit against explicit ----------------------------------------------------------------------------


def decisions(X, y, new, **settings):
    values = []
    for space in ("explicit", "implicit"):
        model = KernelAROM(space=space, zero_tol=0.0, standardize=False, **settings)
        if settings["max_iter"] < 10:
            with pytest.warns(ConvergenceWarning, match="max_iter"):
                model.fit(X, y)
        else:
            model.fit(X, y)
        values.append(model.decision_function(new))
    return values


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("C", [5.0, np.inf])
@pytest.mark.parametrize("scaling", ["unit", "paper"])
def test_the_first_update_is_exact(n, C, scaling):
    X, y = toy(n)
    new = np.random.default_rng(9).normal(size=(30, 4))
    explicit, implicit = decisions(X, y, new, C=C, max_iter=2, scaling=scaling)
    np.testing.assert_allclose(explicit, implicit, atol=1e-5 * np.abs(explicit).max())


def test_later_updates_are_exact_when_the_training_vectors_span_the_space():
    X, y = toy(40)  # 14 monomials of degree 1 and 2 in 4 inputs
    assert np.linalg.matrix_rank(ordered_monomials(X, 2)) == 14
    new = np.random.default_rng(9).normal(size=(30, 4))
    for steps, scaling in ((3, "unit"), (5, "paper")):
        explicit, implicit = decisions(X, y, new, C=5.0, max_iter=steps, scaling=scaling)
        np.testing.assert_allclose(explicit, implicit, atol=1e-4 * np.abs(explicit).max())


def test_later_updates_differ_when_the_training_vectors_do_not_span_the_space():
    X, y = toy(8)
    assert np.linalg.matrix_rank(ordered_monomials(X, 2)) == 8
    new = np.random.default_rng(9).normal(size=(30, 4))
    explicit, implicit = decisions(X, y, new, C=np.inf, max_iter=4)
    assert np.abs(explicit - implicit).max() > 0.05 * np.abs(explicit).max()


# -- the model --------------------------------------------------------------------------------------------


def test_the_first_model_is_a_kernel_svm():
    X, y = toy(60)
    K = polynomial(X @ X.T, 2)
    reference = SVC(kernel="precomputed", C=1e8, tol=1e-8).fit(K, y)
    for space in ("explicit", "implicit"):
        with pytest.warns(ConvergenceWarning):
            model = KernelAROM(space=space, C=np.inf, max_iter=1, standardize=False, zero_tol=0.0).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), reference.decision_function(K), atol=1e-4)


@pytest.mark.parametrize("scaling", ["unit", "paper"])
def test_degree_one_is_arom(scaling):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 12))
    y = np.where(X[:, 2] - X[:, 7] + 0.3 * rng.normal(size=40) > 0, 1, -1)
    model = KernelAROM(degree=1, scaling=scaling).fit(X, y)
    selector = AROM(C=model.C, scaling=scaling, start="equal").fit(X, y)
    coefficients = np.zeros(12)
    coefficients[[monomial[0] for monomial in model.monomials_]] = model.coef_
    np.testing.assert_allclose(coefficients, selector.coef_[0], atol=1e-6)


def test_a_sparse_polynomial_is_found():
    X, y = toy(150, p=6)
    model = KernelAROM(C=np.inf, standardize=False).fit(X[:100], y[:100])
    largest = np.argsort(-np.abs(model.coef_))[:2]
    assert {model.monomials_[i] for i in largest} == {(2,), (0, 1)}
    assert len(model.monomials_) <= 5  # of 27
    assert model.score(X[100:], y[100:]) > 0.9
    dense = SVC(kernel="poly", degree=2, coef0=1.0, C=1e4).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > dense.score(X[100:], y[100:])


def test_implicit_model_beats_the_dense_polynomial_on_a_sparse_target():
    X, y = toy(260, target="linear")
    model = KernelAROM(space="implicit", C=np.inf).fit(X[:60], y[:60])
    assert model.converged_
    assert model.score(X[60:], y[60:]) > 0.95
    assert not hasattr(model, "coef_")


def test_the_polynomial_is_the_decision_function():
    X, y = toy(60)
    model = KernelAROM(degree=3).fit(X, y)
    inputs = (X - X.mean(axis=0)) / X.std(axis=0)
    terms = np.column_stack([np.prod(inputs[:, list(m)], axis=1) for m in model.monomials_])
    np.testing.assert_allclose(model.decision_function(X), terms @ model.coef_ + model.intercept_, atol=1e-9)


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["explicit", "implicit"])
def test_hard_margin_on_inseparable_classes(space):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="KernelAROM with a hard margin"):
        KernelAROM(space=space, C=np.inf).fit(rng.normal(size=(40, 2)), np.arange(40) % 2)


@pytest.mark.parametrize("space", ["explicit", "implicit"])
def test_a_cost_too_small_is_reported(space):
    X, y = toy(40)
    with pytest.warns(ConvergenceWarning, match="raise C"):
        KernelAROM(space=space, C=1e-4, scaling="paper").fit(X, y)


@pytest.mark.parametrize("space", ["explicit", "implicit"])
def test_many_monomials_do_not_shrink_to_zero_with_the_default_cost(space):
    """80 inputs have 3320 monomials: the same C costs a thousand times less than with one, without units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 80))
    y = X[:, 0] + 0.5 * rng.normal(size=20) > 0.0
    model = KernelAROM(space=space).fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.9
    with pytest.warns(ConvergenceWarning, match="raise C"):
        KernelAROM(space=space, scaling="paper").fit(X, y)


def test_wrong_parameters_and_data_are_explained():
    X, y = toy(40)
    with pytest.raises(ValueError, match="'space' parameter of KernelAROM"):
        KernelAROM(space="dual").fit(X, y)
    with pytest.raises(ValueError, match="'degree' parameter of KernelAROM must be"):
        KernelAROM(degree=0).fit(X, y)
    with pytest.raises(ValueError, match="monomials"):
        KernelAROM(degree=12).fit(np.random.default_rng(0).normal(size=(10, 50)), y[:10])
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        KernelAROM().fit(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="two classes"):
        KernelAROM().fit(X, np.ones(40))
