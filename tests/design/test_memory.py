"""No operation copies the data: little memory is used beyond the data and one n×n matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from zeronorm.design import as_design

N, P = 200, 10_000


def peak_bytes(call):
    call()  # compiles, and fills caches that are kept
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("selection", ["all", "slice", "columns", "rows"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(
    ("order", "dtype"),
    [
        ("C", np.float32),
        ("F", np.float64),
        pytest.param("C", np.float64, marks=pytest.mark.slow),
        pytest.param("F", np.float32, marks=pytest.mark.slow),
    ],
)
def test_peak_memory(order, dtype, standardize, selection):
    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((N, P), dtype=np.float32) + 20.0, dtype=dtype, order=order)
    design = as_design(X)
    if selection == "slice":
        design = design.take(slice(10, None)).take_rows(slice(1, None))
    elif selection == "columns":
        design = design.take(rng.permutation(P))
    elif selection == "rows":
        design = design.take_rows(rng.permutation(N))
    design = design.standardized() if standardize else design
    n, p = design.shape
    M, w, y = rng.standard_normal((n, n)), rng.standard_normal(p), np.arange(n) % 2
    calls = {
        "gram": design.gram,
        "scaled gram": lambda: design.gram(w**2),
        "gram_adjoint": lambda: design.gram_adjoint(M),
        "dot": lambda: design.dot(w),
        "transpose_dot": lambda: design.transpose_dot(M[0]),
        "column_stats": lambda: design.column_stats(y),
        "squared_norms": design.squared_norms,
    }
    results = 20 * 8 * p  # vectors of length n_features do not count as a copy of the data
    for name, call in calls.items():
        assert peak_bytes(call) < 0.3 * X.nbytes + 8 * n * n + results, name


def test_centring_sparse_products_needs_no_second_matrix():
    """The products of standardised sparse data are corrected in place."""
    rng = np.random.default_rng(0)
    X = sparse.random(900, 800, density=0.01, format="csr", rng=rng)
    design = as_design(sparse.csr_array(X)).standardized()
    d = rng.uniform(size=900)
    plain = as_design(X.toarray()).standardized()
    np.testing.assert_allclose(design.gram(np.arange(800.0)), plain.gram(np.arange(800.0)), atol=1e-8)
    np.testing.assert_allclose(design.sandwich(d), plain.sandwich(d), atol=1e-9)
    assert peak_bytes(lambda: design.gram(np.arange(800.0))) < 1.5 * 8 * 900**2
    assert peak_bytes(lambda: design.sandwich(d)) < 2.0 * 8 * 800**2
