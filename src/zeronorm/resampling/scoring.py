"""The predictor that judges a selected subset when the user names none."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

LARGEST_KERNEL_PROBLEM = 5000


def default_estimator(task: str, *, n_samples: int, is_sparse: bool = False) -> Any:
    """Standardisation followed by a linear support vector machine, or ridge regression.

    Everything is fitted on the training part. Sparse columns are scaled but not centred. With many
    samples the machine is solved without a kernel matrix.
    """
    scaler = StandardScaler(with_mean=not is_sparse)
    if task == "regression":
        return make_pipeline(scaler, Ridge())
    if n_samples <= LARGEST_KERNEL_PROBLEM:
        return make_pipeline(scaler, SVC(kernel="linear", random_state=0))
    return make_pipeline(scaler, LinearSVC(dual="auto", random_state=0))
