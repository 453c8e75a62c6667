"""Monomials of the features, and the removal of those that became redundant."""

from __future__ import annotations

import tracemalloc
from itertools import combinations_with_replacement

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from zeronorm import GramSchmidt, as_design
from zeronorm.engines._error_control import probe_tail
from zeronorm.engines._monomials import (
    MonomialDesign,
    factor_table,
    needed_by_leave_one_out,
    needed_columns,
    partial_cosines,
)


@pytest.mark.parametrize(("n_features", "degree"), [(1, 3), (4, 1), (5, 2), (4, 3), (3, 4)])
def test_monomials_are_those_of_scikit_learn(n_features, degree):
    X = np.random.default_rng(0).normal(size=(7, n_features))
    expected = PolynomialFeatures(degree, include_bias=False).fit_transform(X)
    design = MonomialDesign.of(as_design(X), degree)
    assert np.allclose(design.block(slice(None)), expected, rtol=1e-12)
    names = [m for d in range(1, degree + 1) for m in combinations_with_replacement(range(n_features), d)]
    assert [design.features_of(j) for j in range(design.n_features)] == names
    assert np.allclose(design.take([0, -1]).block(slice(None)), expected[:, [0, -1]])
    assert np.allclose(design.take_rows([5, 1]).block(slice(None)), expected[[5, 1]])
    assert factor_table(n_features, degree).shape == (degree, len(names))


def test_no_monomials_beyond_the_degree_are_made():
    """Of 1000 features there are half a million squares and products, and 167 million of the next degree."""
    tracemalloc.start()
    table = factor_table(200, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * table.nbytes


def test_monomials_that_are_constant_are_zero():
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(30, 2))
    design = MonomialDesign.of(as_design(X).standardized(with_mean=False), 2).centred()
    assert design.affine.zero_columns.tolist() == [False, False, True, False, True]


def test_too_many_monomials_are_refused():
    X = np.random.default_rng(0).normal(size=(6, 400))
    with pytest.raises(ValueError, match=r"'degree' parameter must leave at most .* Got degree=3 for 400"):
        GramSchmidt(degree=3).fit(X, [0, 1] * 3)


def test_partial_cosines_are_those_of_fresh_fits():
    rng = np.random.default_rng(3)
    Z, Y = rng.normal(size=(30, 5)), rng.normal(size=(30, 2))
    basis, _ = np.linalg.qr(Y)

    def off(columns, A):
        q, _ = np.linalg.qr(columns)
        return A - q @ (q.T @ A)

    for j, value in enumerate(partial_cosines(Z, basis)):
        others = np.delete(Z, j, axis=1)
        z = off(others, Z[:, j])
        target, _ = np.linalg.qr(off(others, Y))
        assert value == pytest.approx(((target.T @ z) ** 2).sum() / (z @ z), rel=1e-9)


def test_removal_ends_with_significant_columns_and_keeps_protected_ones():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(40, 6))
    y = Z[:, 4] + Z[:, 5] + 0.3 * rng.normal(size=40)
    basis = (y / np.linalg.norm(y))[:, None]
    kept = needed_columns(Z, basis, 40, 0.01, n_protected=2)
    assert kept[:2] == [0, 1]
    assert {4, 5} <= set(kept)
    tails = probe_tail(partial_cosines(Z[:, kept], basis), 40 - len(kept) + 1)
    assert np.all(tails[2:] <= 0.01)


def left_out_error(Z, y, weight):
    """Every sample predicted from the others by a fresh least-squares fit with an intercept."""
    A = np.column_stack([np.ones(len(y)), Z])
    total = 0.0
    for i in range(len(y)):
        w = weight.astype(float).copy()
        w[i] -= 1.0  # a weight of two is two samples, of which one is kept
        root = np.sqrt(w)[:, None]
        fit = np.linalg.lstsq(root * A, root * y, rcond=None)[0]
        total += weight[i] * float(np.sum((y[i] - A[i] @ fit) ** 2))
    return total / weight.sum()


@pytest.mark.parametrize("seed", range(4))
def test_backward_removal_by_leave_one_out_is_that_of_fresh_fits(seed):
    rng = np.random.default_rng(seed)
    n, k, n_protected = 25, 6, seed % 2
    Z, weight = rng.normal(size=(n, k)), rng.integers(1, 3, n)
    Z[:, 5] = Z[:, 0] + 0.1 * rng.normal(size=n)
    y = Z[:, [0]] - 0.5 * Z[:, [2]] + rng.normal(size=(n, 1 + seed // 2))
    root = np.sqrt(weight)[:, None]
    centred, target = (root * (A - np.average(A, axis=0, weights=weight)) for A in (Z, y))
    found = needed_by_leave_one_out(centred, target, weight / weight.sum(), weight, n_protected)
    kept, error = list(range(k)), left_out_error(Z, y, weight)
    while len(kept) > n_protected:
        errors = {j: left_out_error(Z[:, [i for i in kept if i != j]], y, weight) for j in kept[n_protected:]}
        weakest = min(errors, key=errors.__getitem__)
        if errors[weakest] > error:
            break
        kept.remove(weakest)
        error = errors[weakest]
    assert found == kept
    assert n_protected < len(kept) < k  # otherwise the comparison would be trivial
