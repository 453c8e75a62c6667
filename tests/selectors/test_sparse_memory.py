"""Linear methods keep sparse data sparse: a fit needs far less memory than the dense table."""

from __future__ import annotations

import tracemalloc
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from zeronorm.design import _base as base
from zeronorm.design import _dense as dense
from zeronorm.engines.logistic_exchanges import _subsets as subsets
from zeronorm.registry import get_method
from zeronorm.selectors.filters import _mutual_information as mutual_information
from zeronorm.solvers.l1_smooth import _working_set as working_set

SHAPES = {"wide": (200, 20_000), "tall": (20_000, 200)}
DENSITY = 0.005
SQUARES, VECTORS = 4, 50  # matrices of the shorter side, vectors of the longer one
COMPILER = 12 << 20  # bytes, where a loop is first needed in the fit that is measured; dense data take 32 MB

METHODS = [
    *("fisher", "mutual-information", "gram-schmidt"),
    *("forward-least-squares", "grafting", "rfe", "svm-weights", "arom", "zeronorm-svm", "l1-svm", "lasso"),
    *("logistic-lasso", "zeronorm-logistic", "fsv"),
]
CASES = [(name, shape) for name in METHODS for shape in SHAPES]
# These two hold the columns of features with a weight, which would be long ones.
CASES += [("ard", "wide"), ("potential-svm", "wide")]
PARAMETERS = {
    "rfe": {"step": 0.9},
    "zeronorm-logistic": {"max_features": 1},
    "logistic-lasso": {"n_alphas": 5},
    "l1-svm": {"C": 0.01, "n_steps": 3},
    "ard": {"max_iter": 20},
    "potential-svm": {"n_steps": 5},
}


@cache
def problem(shape):
    """Sparse data with three columns that separate the classes."""
    n, p = shape
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    informative = rng.poisson(0.2 + 0.8 * y[:, None], size=(n, 3)).astype(float)
    rest = sparse.random(n, p - 3, density=DENSITY, format="csr", rng=rng)
    return sparse.hstack([sparse.csr_array(informative), sparse.csr_array(rest)], format="csr"), y


def fit(name, X, y):
    make = get_method(name).cls
    task = {"task": "classification"} if "task" in make().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(n_features_to_select=3, **PARAMETERS.get(name, {}), **task).fit(X, y)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_fit_of_sparse_data_needs_no_dense_table(name, shape, monkeypatch):
    for module in (base, dense, subsets):  # data as small as these would be copied
        monkeypatch.setattr(module, "SMALL_COPY_BYTES", 0)
    monkeypatch.setattr(working_set, "LARGEST_DENSE_COPY", 0)
    monkeypatch.setattr(mutual_information, "NUMBERS_AT_A_TIME", 1 << 14)
    X, y = problem(SHAPES[shape])
    n, p = X.shape
    few = slice(0, max(200, n // 16)), slice(0, max(200, p // 16))
    fit(name, X[few[0]][:, few[1]], y[few[0]])  # compiles
    tracemalloc.start()
    fitted = fit(name, X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    assert peak < 3 * data + SQUARES * 8 * min(n, p) ** 2 + VECTORS * 8 * max(n, p) + COMPILER
    assert fitted.support_[:3].all()
