"""What the models take as data: designs, and nothing that is not a table of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from zeronorm.design import as_design, pack
from zeronorm.models import (
    KernelAROM,
    OFWClassifier,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    SparseKernelSVC,
)

X = np.random.default_rng(0).normal(size=(40, 4))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
MODELS = [
    KernelAROM(),
    OFWClassifier(random_state=0),
    RelevanceVectorClassifier(),
    RelevanceVectorRegressor(),
    SparseKernelSVC(),
]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_design_of_a_file_is_taken(model, tmp_path):
    pack(as_design(X), tmp_path / "x.zncols")
    design = as_design(tmp_path / "x.zncols")
    expected = model.fit(X, Y).predict(X)
    np.testing.assert_allclose(model.fit(design, Y).predict(design), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_sparse_arrays_of_one_dimension_are_refused(model):
    with pytest.raises(ValueError, match=r"X must be two-dimensional.*Got 1 dimension"):
        model.fit(sparse.coo_array(X[:, 0]).tocsr(), Y)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must hold numbers. Got None in row 4"),
        (1e300, r"Squares of values beyond 1e\+150 overflow"),
        (np.nan, "contains NaN"),
    ],
)
def test_targets_that_are_no_numbers_are_refused(value, message):
    target = X[:, 0].astype(object)
    target[4] = value
    with pytest.raises(ValueError, match=message):
        RelevanceVectorRegressor().fit(X, target)


@pytest.mark.parametrize("model", MODELS[2:], ids=lambda m: type(m).__name__)
def test_too_little_memory_is_said_before_the_work(model, monkeypatch):
    monkeypatch.setattr("zeronorm.execution._memory.available_bytes", lambda: 1 << 30)
    rows = np.random.default_rng(1).normal(size=(20_000, 2))
    with pytest.raises(MemoryError, match=r"20000 .* needs \d\.\d GiB of memory, and 1.0 GiB are free; "):
        model.fit(rows, np.arange(len(rows)) % 2)
