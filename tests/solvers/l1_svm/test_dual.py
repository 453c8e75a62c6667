"""The dual program of the l1 SVM, and the choice of a program by the shape of the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.problems import at_most, classification
from zeronorm.design import as_design
from zeronorm.solvers.l1_svm._dual import (
    L1SvmDualProgram,
    L1SvmHardProgram,
    L1SvmInteriorProgram,
    L1SvmTallProgram,
    l1_svm_program,
)
from zeronorm.solvers.l1_svm._program import L1SvmProgram


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_tall_sparse_data_give_the_model_of_dense_ones(epsilon, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.poisson(0.3, size=(80, 12)).astype(float)
    target = X[:, 0] - X[:, 3] + 0.4 * rng.normal(size=80)
    y = np.where(target > 0.2, 1.0, -1.0) if epsilon is None else target
    dense = l1_svm_program(as_design(X).standardized(), y, C=0.5, epsilon=epsilon)
    monkeypatch.setattr("zeronorm.solvers.l1_svm._dual.LARGEST_DENSE_COPY", 0)
    program = L1SvmDualProgram(as_design(sparse.csr_array(X)).standardized(), y, C=0.5, epsilon=epsilon)
    assert program.signed.sparse_rows is not None
    for cost in (0.5, 0.05):
        dense.set_cost(cost)
        program.set_cost(cost)
        expected, found = dense.solve(), program.solve()
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-8)
        np.testing.assert_allclose(found.slack, expected.slack, atol=1e-8)
        assert found.bias == pytest.approx(expected.bias, abs=1e-8)
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)


SUITED = [
    # shape, sparse, values of C on the path, the program
    ((20, 10), False, None, L1SvmDualProgram),
    ((20, 10), False, 1, L1SvmInteriorProgram),
    ((20, 10), False, 5, L1SvmDualProgram),
    ((30, 20), False, 5, L1SvmInteriorProgram),
    ((60, 20), False, 1, L1SvmProgram),
    ((60, 20), True, 1, L1SvmDualProgram),
    ((60, 25), True, 1, L1SvmTallProgram),
    ((40, 60), True, 1, L1SvmTallProgram),
    ((30, 60), True, 1, L1SvmProgram),
    ((10, 30), False, 1, L1SvmInteriorProgram),
    ((10, 30), False, 2, L1SvmProgram),
    ((10, 31), False, 1, L1SvmProgram),
    ((20, 60), False, 1, L1SvmProgram),
]


@pytest.mark.parametrize(("shape", "is_sparse", "n_steps", "program"), SUITED)
def test_the_program_suits_the_shape_of_the_data(shape, is_sparse, n_steps, program, monkeypatch):
    for name, value in (
        ("LARGEST_MATRIX", 1000),
        ("LARGEST_DENSE_COPY", 1000),
        ("FEW_DATA", 500),
        ("WIDEST", 3),
        ("MANY_SAMPLES", 40),
        ("MANY_ENTRIES", 1500),
    ):
        monkeypatch.setattr(f"zeronorm.solvers.l1_svm._dual.{name}", value)
    X = np.random.default_rng(0).normal(size=shape)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    design = as_design(sparse.csr_array(X) if is_sparse else X)
    assert type(l1_svm_program(design, y, C=1.0, n_steps=n_steps)) is program


@pytest.mark.parametrize(
    ("epsilon", "cost", "entries", "program"),
    [
        (None, np.inf, 1, L1SvmHardProgram),
        (None, np.inf, 1000, L1SvmDualProgram),
        (None, np.r_[np.inf, np.ones(39)], 1, L1SvmDualProgram),
        (0.1, np.inf, 1, L1SvmDualProgram),
    ],
)
def test_programs_of_a_hard_margin(epsilon, cost, entries, program, monkeypatch):
    monkeypatch.setattr("zeronorm.solvers.l1_svm._dual.LARGEST_DENSE_COPY", 1)
    monkeypatch.setattr("zeronorm.solvers.l1_svm._dual.MANY_ENTRIES", entries)
    X, y = classification(40, 3)
    design = as_design(sparse.csr_array(X))
    assert type(l1_svm_program(design, y, C=cost, epsilon=epsilon)) is program


@pytest.mark.parametrize(
    ("shape", "C", "taken"),
    [
        ((40, 60), 0.1, 169),
        ((40, 60), 1.0, 99),
        ((60, 20), 0.1, 27),
        ((60, 20), 1.0, 51),
        ((60, 20), 10.0, 70),
        ((300, 6), 1.0, 18),
    ],
)
def test_programs_take_few_steps(shape, C, taken):
    X, y = classification(*shape)
    assert l1_svm_program(as_design(X), y, C=C).solve(np.ones(shape[1])).n_iter <= at_most(taken)


@pytest.mark.parametrize(
    ("cls", "shape", "taken", "exactly"),
    [
        (L1SvmInteriorProgram, (60, 20), 7, 1e-12),
        (L1SvmInteriorProgram, (80, 120), 8, 1e-12),
        (L1SvmInteriorProgram, (300, 6), 8, 1e-12),
        (L1SvmTallProgram, (60, 20), 103, 1e-10),
        (L1SvmTallProgram, (80, 120), 591, 1e-10),
        (L1SvmTallProgram, (300, 6), 18, 1e-10),
    ],
)
def test_other_algorithms_for_the_same_program(cls, shape, taken, exactly):
    X, y = classification(*shape)
    penalty = np.ones(shape[1])
    found, plain = (
        cls(as_design(X), y, C=1.0).solve(penalty),
        l1_svm_program(as_design(X), y, C=1.0).solve(penalty),
    )
    assert found.n_iter <= at_most(taken)
    assert found.objective == pytest.approx(plain.objective, rel=exactly)
