"""The predictor that scores a selected subset when the user names none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors._ridge import StandardizedRidge
from zeronorm.selection.target import Target

LARGEST_KERNEL_PROBLEM = 5000


def gaussian_estimator(target: Target | type[Target], *, is_sparse: bool = False) -> Any:
    """The predictor with a Gaussian kernel, whose width is scaled to the columns."""
    return PREDICTORS[target.predictors["gaussian"]](0, is_sparse)


def default_estimator(target: Target | type[Target], *, n_samples: int, is_sparse: bool = False) -> Any:
    """The linear predictor for a target.

    Sparse columns are scaled but not centred. With many samples no kernel matrix is computed.
    """
    return PREDICTORS[target.predictors["linear"]](n_samples, is_sparse)


def _gaussian_svm(n_samples: int, is_sparse: bool) -> Any:
    if not is_sparse:
        return StandardizedSVC(random_state=0)
    return make_pipeline(StandardScaler(with_mean=False), SVC(random_state=0))


def _gaussian_svr(n_samples: int, is_sparse: bool) -> Any:
    """Support vector regression with the target standardised too, since epsilon has its unit."""
    pipeline = make_pipeline(StandardScaler(with_mean=not is_sparse), SVR())
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())


def _linear_svm(n_samples: int, is_sparse: bool) -> Any:
    if n_samples > LARGEST_KERNEL_PROBLEM:
        model = LinearSVC(dual="auto", random_state=0)
    elif is_sparse:
        model = SVC(kernel="linear", random_state=0)
    else:
        return StandardizedSVC(kernel="linear", random_state=0)
    return make_pipeline(StandardScaler(with_mean=not is_sparse), model)


def _ridge(n_samples: int, is_sparse: bool) -> Any:
    return make_pipeline(StandardScaler(with_mean=False), Ridge()) if is_sparse else StandardizedRidge()


# Functions from the number of samples and whether the columns are sparse to a predictor, by the name in the target.
PREDICTORS: dict[str, Callable[[int, bool], Any]] = {
    "gaussian svm": _gaussian_svm,
    "gaussian svr": _gaussian_svr,
    "linear svm": _linear_svm,
    "ridge": _ridge,
}
