"""The features of a working set: dense columns, or the stored values of large sparse ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._dense import DenseDesign
from zeronorm.solvers._lasso import LARGEST_DENSE_COPY, descend_coordinates, descend_sparse_columns

HARDLY_SPARSE = 4  # where the stored values times this exceed the entries, dense columns are faster
FEWER_VALUES = (
    2  # where the stored values times this are fewer than Gram entries, passes over them are faster
)
LASSO_TOL = 1e-12
LASSO_MAX_ITER = 5000


@dataclass(frozen=True, eq=False)
class WorkingSet:
    """The columns of a working set, with their stored values where they stay sparse."""

    X: Design
    stored: tuple[Any, FloatArray] | None = None

    @classmethod
    def of(cls, design: Design, columns: IntArray) -> Self:
        n_entries = design.n_samples * columns.size
        if not design.is_sparse or n_entries <= LARGEST_DENSE_COPY:
            return cls(DenseDesign(design.block(columns)))
        stored = design.stored_columns(columns)
        if stored is not None and HARDLY_SPARSE * stored[0].nnz > n_entries:
            return cls(DenseDesign(design.block(columns)))
        return cls(design.take(columns), stored)

    @property
    def has_few_columns(self) -> bool:
        """Whether the Gram matrix of the columns is the smaller problem."""
        n, k = self.X.shape
        return self.X.is_sparse or n * k > LARGEST_DENSE_COPY


def weighted_lasso(
    part: WorkingSet,
    curvature: FloatArray,
    mean: FloatArray,
    response: FloatArray,
    penalty: FloatArray,
    start: FloatArray,
    tol: float,
) -> FloatArray:
    """Weights of the centred columns for squared errors weighted by the curvature, plus the penalty."""
    X, stored = part.X, part.stored
    if stored is not None and FEWER_VALUES * stored[0].nnz < start.size**2:
        columns, shift = stored
        weights = start.copy()
        arrays = (columns.data, columns.indices, columns.indptr)
        descend_sparse_columns(
            *arrays, curvature, mean + shift, response, penalty, weights, tol, LASSO_MAX_ITER
        )
        return weights
    if part.has_few_columns:
        products = X.sandwich(curvature)
        products -= curvature.sum() * np.outer(mean, mean)
        products /= np.outer(penalty, penalty)
        gradient, weights = X.transpose_dot(curvature * response) / penalty, start * penalty
        descend_coordinates(products, gradient, 1.0, np.inf, weights, tol / penalty.max(), LASSO_MAX_ITER)
        return np.asarray(weights / penalty)
    root = np.sqrt(curvature)
    scaled = X.block(slice(None))
    scaled -= mean
    scaled *= root[:, None]
    scaled /= penalty
    target = root * response
    # The Gram matrix is chosen here, since scikit-learn 1.7 chooses it only together with its input checks.
    is_tall = len(scaled) > scaled.shape[1]
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the conditions are checked by the caller
        _, coefficients, _ = lasso_path(
            np.asfortranarray(scaled),
            target,
            alphas=[1.0 / len(scaled)],
            precompute=np.asarray(scaled.T @ scaled) if is_tall else False,
            Xy=scaled.T @ target if is_tall else None,
            coef_init=start * penalty,
            tol=LASSO_TOL,
            max_iter=LASSO_MAX_ITER,
            check_input=False,  # on small data the checks take longer than the descent
        )
    return np.asarray(coefficients[:, 0] / penalty)
