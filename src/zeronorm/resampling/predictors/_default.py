"""The predictor that scores a selected subset when the user names none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm.resampling._metrics import Metric
from zeronorm.resampling.predictors._covariates import CovariateScaler
from zeronorm.resampling.predictors._cox import RidgeCox
from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors._ridge import StandardizedRidge
from zeronorm.resampling.predictors._sparse_gaussian import SparseGaussianSVC, SparseGaussianSVR
from zeronorm.selection.target import Target

LARGEST_KERNEL_PROBLEM = 5000
MOST_STEPS = 1000  # of a logistic regression
# C of Cox regression on selected features. In twelve simulated settings (80 to 500 samples, 3 to 30 of 300 to 1000
# features selected by their scores) and on two data sets the concordance of 0.1 was within 0.015 of the best of 0.01 to
# 3, and its calibration slope, 0.6 to 1.3 in the simulations, the nearest to 1.
COST_OF_SURVIVAL = 0.1
ClassWeight = Literal["balanced"] | None


def class_weight_for(metric: Metric | None) -> ClassWeight:
    """The class weights of the default predictors: balanced for a metric to which all classes count the same.

    The area under the ROC curve needs none, since it uses only the order of the decision values: over eight simulated
    settings (5 to 25 % of the samples in the small class) weights changed it by 0.004, with a standard error of 0.003.
    """
    return "balanced" if metric is not None and metric.is_balanced else None


def gaussian_estimator(
    target: Target | type[Target], *, is_sparse: bool = False, metric: Metric | None = None
) -> Any:
    """The predictor with a Gaussian kernel, whose width is scaled to the columns, for a target and a metric."""
    return PREDICTORS[target.predictors["gaussian"]](0, is_sparse, class_weight_for(metric))


def default_estimator(
    target: Target | type[Target], *, n_samples: int, is_sparse: bool = False, metric: Metric | None = None
) -> Any:
    """The linear predictor for a target and a metric.

    Sparse columns are scaled but not centred. With many samples no kernel matrix is computed.
    """
    return PREDICTORS[target.predictors["linear"]](n_samples, is_sparse, class_weight_for(metric))


def estimator_beside_covariates(
    target: Target | type[Target],
    n_covariates: int,
    *,
    is_sparse: bool = False,
    metric: Metric | None = None,
) -> Any:
    """The linear predictor of features and covariates, the last columns, whose weights have practically no penalty.

    For classes it is a logistic regression: on a few weak or categorical covariates the decision values of a support
    vector machine may be all but equal, so that their order says nothing; what features add to it would then look like
    too much.
    """
    if target.predictors["linear"] == "cox":
        return RidgeCox(COST_OF_SURVIVAL, n_covariates=n_covariates)
    model = Ridge()
    if target.has_classes:
        weights = class_weight_for(metric)
        model = LogisticRegression(class_weight=weights, solver="newton-cg", max_iter=MOST_STEPS)
    return make_pipeline(CovariateScaler(n_covariates, with_mean=not is_sparse), model)


def _gaussian_svm(n_samples: int, is_sparse: bool, class_weight: ClassWeight) -> Any:
    if not is_sparse:
        return StandardizedSVC(class_weight=class_weight, random_state=0)
    model = SparseGaussianSVC(class_weight=class_weight, random_state=0)
    return make_pipeline(StandardScaler(with_mean=False), model)


def _gaussian_svr(n_samples: int, is_sparse: bool, class_weight: ClassWeight) -> Any:
    """Support vector regression with the target standardised too, since epsilon has its unit."""
    pipeline = make_pipeline(
        StandardScaler(with_mean=not is_sparse), SparseGaussianSVR() if is_sparse else SVR()
    )
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())


def _linear_svm(n_samples: int, is_sparse: bool, class_weight: ClassWeight) -> Any:
    options: dict[str, Any] = {"class_weight": class_weight, "random_state": 0}
    if n_samples > LARGEST_KERNEL_PROBLEM:
        model = LinearSVC(dual="auto", **options)
    elif is_sparse:
        model = SVC(kernel="linear", **options)
    else:
        return StandardizedSVC(kernel="linear", **options)
    return make_pipeline(StandardScaler(with_mean=not is_sparse), model)


def _ridge(n_samples: int, is_sparse: bool, class_weight: ClassWeight) -> Any:
    return make_pipeline(StandardScaler(with_mean=False), Ridge()) if is_sparse else StandardizedRidge()


def _cox(n_samples: int, is_sparse: bool, class_weight: ClassWeight) -> Any:
    return RidgeCox(COST_OF_SURVIVAL)


# Functions from the number of samples, whether the columns are sparse and the class weights to a predictor, by the name
# in the target.
PREDICTORS: dict[str, Callable[[int, bool, ClassWeight], Any]] = {
    "cox": _cox,
    "gaussian svm": _gaussian_svm,
    "gaussian svr": _gaussian_svr,
    "linear svm": _linear_svm,
    "ridge": _ridge,
}
