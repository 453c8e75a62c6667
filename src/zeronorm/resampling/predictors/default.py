"""The predictor that scores a selected subset when the user names none."""

from __future__ import annotations

from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm.resampling.predictors.pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors.ridge import StandardizedRidge

LARGEST_KERNEL_PROBLEM = 5000


def gaussian_estimator(task: str, *, is_sparse: bool = False) -> Any:
    """Standardisation followed by a support vector machine with a Gaussian kernel, whose width follows the columns.

    For regression the target is standardised as well: the tube of the machine has its unit.
    """
    scaler = StandardScaler(with_mean=not is_sparse)
    if task == "regression":
        return TransformedTargetRegressor(make_pipeline(scaler, SVR()), transformer=StandardScaler())
    return make_pipeline(scaler, SVC(random_state=0)) if is_sparse else StandardizedSVC(random_state=0)


def default_estimator(task: str, *, n_samples: int, is_sparse: bool = False) -> Any:
    """Standardisation followed by a linear support vector machine, or ridge regression.

    Everything is fitted on the training part. Sparse columns are scaled but not centred. With many
    samples the machine is solved without a kernel matrix.
    """
    if task == "regression":
        return make_pipeline(StandardScaler(with_mean=False), Ridge()) if is_sparse else StandardizedRidge()
    if n_samples > LARGEST_KERNEL_PROBLEM:
        machine = LinearSVC(dual="auto", random_state=0)
    elif is_sparse:
        machine = SVC(kernel="linear", random_state=0)
    else:
        return StandardizedSVC(kernel="linear", random_state=0)
    return make_pipeline(StandardScaler(with_mean=not is_sparse), machine)
