"""The model that a selector trains on the selected features: its ``estimator``, which predicts in its name."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from zeronorm.design import Design, check_container
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem


def has_estimator(selector: Any) -> bool:
    """Whether the selector was given a model to train on the selected features."""
    return getattr(selector, "estimator", None) is not None


class FinalModel:
    """The part of a selector that trains ``estimator`` on the selected features, and predicts with it."""

    _accepts_sparse: ClassVar[bool]
    _allow_nan: ClassVar[bool]
    _adjusted: NDArray[np.intp]
    estimator: Any
    path_: SelectionPath
    support_: NDArray[np.bool_]

    def _retrain(self, X: Any, y: NDArray[Any], problem: Problem, routed: Any) -> None:
        columns = self._columns_of_estimator()
        selected = X.block(columns) if isinstance(X, Design) else X[:, columns]
        self._selected_mean, self._selected_scale = np.zeros(columns.size), np.ones(columns.size)
        affine = problem.design.affine
        if affine is not None:
            is_covariate = np.isin(columns, self._adjusted)
            features = np.flatnonzero(np.delete(self.support_, self._adjusted))
            self._selected_mean[~is_covariate] = affine.mean[features]
            self._selected_scale[~is_covariate] = affine.scale[features]
            if is_covariate.any():
                assert problem.adjust is not None
                values, weight = problem.adjust.columns, problem.sample_weight
                mean = np.average(values, axis=0, weights=weight)
                width = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
                self._selected_mean[is_covariate] = mean
                self._selected_scale[is_covariate] = np.where(width > 0.0, width, 1.0)
        params = dict(routed.estimator.fit)
        if problem.sample_weight is not None and has_fit_parameter(self.estimator, "sample_weight"):
            params.setdefault("sample_weight", problem.sample_weight)
        self.estimator_ = clone(self.estimator).fit(self._rescaled(selected), y, **params)

    def _columns_of_estimator(self) -> NDArray[np.intp]:
        """The columns of ``estimator_``: the selected features and the covariates."""
        return self.path_.predictors(np.flatnonzero(self.support_))

    def _rescaled(self, selected: Any) -> Any:
        """Selected columns as the method used them: standardised where it standardises.

        Sparse columns are scaled but not centred, so that they stay sparse.
        """
        if not getattr(self, "standardize", False):
            return selected
        if hasattr(selected, "tocsc"):
            return selected.multiply(1.0 / self._selected_scale).tocsr()
        return (np.asarray(selected, dtype=np.float64) - self._selected_mean) / self._selected_scale

    def _selected_columns(self, X: Any) -> Any:
        check_is_fitted(self)
        if isinstance(X, Design):
            return self._rescaled(X.block(self._columns_of_estimator()))
        check_container(X)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=("csr", "csc") if self._accepts_sparse else False,
            dtype=(np.float64, np.float32),
            ensure_all_finite=not self._allow_nan,
        )
        return self._rescaled(X[:, self._columns_of_estimator()])

    def _trained(self) -> Any:
        """``estimator_``; raises scikit-learn's error before ``fit``."""
        check_is_fitted(self, "estimator_")
        return self.estimator_

    @available_if(has_estimator)
    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of ``estimator`` from the selected features."""
        return cast("NDArray[Any]", self._trained().predict(self._selected_columns(X)))

    @available_if(lambda self: has_estimator(self) and hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Decision values of ``estimator`` from the selected features."""
        return cast("NDArray[Any]", self._trained().decision_function(self._selected_columns(X)))

    @available_if(lambda self: has_estimator(self) and hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities of ``estimator`` from the selected features."""
        return cast("NDArray[Any]", self._trained().predict_proba(self._selected_columns(X)))

    @available_if(has_estimator)
    def score(self, X: Any, y: Any, **score_params: Any) -> float:
        """Score of ``estimator`` on the selected features."""
        return float(self._trained().score(self._selected_columns(X), y, **score_params))

    def _route(self, fit_params: dict[str, Any]) -> Any:
        if not has_estimator(self):
            raise TypeError(
                f"{type(self).__name__}.fit got unexpected arguments {sorted(fit_params)}: they would be "
                "passed to 'estimator', which is None. Leave them out, or set 'estimator' to a model whose fit "
                "takes them. Of the selectors, only those with 'sample_weight' in their own fit use weights, such "
                "as LassoSelector."
            )
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **fit_params)
        return Bunch(estimator=Bunch(fit=fit_params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata to ``fit`` of ``estimator``."""
        router = MetadataRouter(owner=type(self).__name__)
        if has_fit_parameter(self, "sample_weight"):
            router.add_self_request(self)
        if has_estimator(self):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            router.add(estimator=self.estimator, method_mapping=mapping)
        return router
