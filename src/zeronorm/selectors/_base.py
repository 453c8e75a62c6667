"""Base classes of all selectors.

``fit`` turns the data into a ``Design``, validates once, builds the ``Problem``, calls ``_select`` and
stores the result. A method implements only ``_select`` and, if it has parameters of its own, its constructor.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from zeronorm.design import (
    Design,
    as_design,
    check_container,
    has_own_backend,
    require_finite,
)
from zeronorm.design._stats_kernels import LARGEST_VALUE
from zeronorm.engines.certificates._certificate import Certificate
from zeronorm.engines.certificates._gap import optimality_gap
from zeronorm.execution import reusing_memory
from zeronorm.registry import MethodInfo
from zeronorm.resampling._seeds import generator_from
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._covariates import Covariates, check_room, in_residual_deviations
from zeronorm.selection._kinds import is_whole, parameter_error
from zeronorm.selection._parameters import ATTRIBUTES
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import (
    Problem,
    Progress,
    TargetOutlierWarning,
    parse_always_keep,
    parse_columns,
    parse_feature_groups,
    warn_about_target_outliers,
)
from zeronorm.selection._shared import SharedValues
from zeronorm.selection.target import (
    KINDS,
    TASKS,
    Binary,
    Labels,
    Multiclass,
    Multilabel,
    NotLabelsError,
    Real,
    Target,
    TimeToEvent,
    target_for,
)
from zeronorm.selectors._final_model import FinalModel, has_estimator
from zeronorm.selectors._requirements import require_labels

# Fitted attributes with a value for each feature, and the value that covariates get.
PER_FEATURE = {
    "coef_": 0.0, "frequencies_": 0.0, "p_values_": 1.0, "q_values_": 1.0, "ranks_": np.nan, "mean_log_ranks_": np.nan,
}  # fmt: skip
NO_COLUMNS: NDArray[np.intp] = np.empty(0, dtype=np.intp)


class BaseSelector(FinalModel, CheckedParameters, SelectorMixin, BaseEstimator):
    """Base class of all selectors; see ``docs/contributing`` for how to add one."""

    _method: ClassVar[MethodInfo]
    _allow_nan: ClassVar[bool] = False
    _accepts_sparse: ClassVar[bool] = True
    # Methods that compute statistics of the columns find NaN there and skip the separate check.
    _finite_from_statistics: ClassVar[bool] = False

    _common_attributes = ATTRIBUTES

    # Loss of the linear models that the method trains on classes; None if it trains none.
    _linear_loss: ClassVar[str | None] = None

    _adjusted: NDArray[np.intp] = NO_COLUMNS  # positions of the covariates in X

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    # -- for methods to implement ---------------------------------------------------------------

    def _select(self, problem: Problem) -> SelectionPath:
        raise NotImplementedError(f"{type(self).__name__} must implement _select.")

    # -- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, real targets with ``task="regression"``, or times and events with ``task="survival"``.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        return self._fit(X, y, fit_params)

    def _fit(
        self,
        X: Any,
        y: Any,
        fit_params: dict[str, Any],
        *,
        sample_weight: Any = None,
        groups: Any = None,
        shared: SharedValues | None = None,
        covariates: NDArray[np.float64] | None = None,
    ) -> Self:
        """``fit`` with all arguments of any selector.

        A selector that fits others inside passes ``shared`` to them, and ``covariates``, which are not columns of X.
        """
        # Wrong parameters and routing are reported before the long computation.
        self._validate_params()
        routed = self._route(fit_params) if fit_params or has_estimator(self) else None
        with reusing_memory():
            X, y, design = self._validate(X, y)
            adjusted = self._positions_of_covariates(design) if covariates is None else NO_COLUMNS
            if adjusted.size or self._adjusted.size:
                self._adjusted = adjusted
            problem = self._build_problem(design, y, sample_weight, groups, shared, covariates)
            with (
                suppress_nested_warnings(TargetOutlierWarning)
                if self._is_misled_by_target(problem, sample_weight)
                else nullcontext()
            ):
                path = self._select(problem)
            if problem.design.affine is not None:
                path = path.demote(problem.design.affine.zero_columns)
            path = path.constrained(problem.feature_groups, problem.always_keep)
            if self._adjusted.size:
                self._index_among_columns(np.delete(np.arange(design.shape[1]), self._adjusted))
            self._store(path.beside(self._adjusted), problem)
            if problem.n_samples < y.shape[0]:  # samples of weight zero were left out
                present = np.flatnonzero(np.asarray(sample_weight) > 0)
                X, y = X.take_rows(present) if isinstance(X, Design) else X[present], y[present]
            if routed is not None:
                self._retrain(X, y, problem, routed)
            return self

    def _validate(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], Design]:
        y = self._target_type().prepared(y)
        require_labels(y)
        self._target_type().check_raw(y)
        if _is_plain(X, y):
            design = as_design(X, allow_nan=self._allow_nan, check_finite=not self._statistics_are_checked())
            self._check_names_of(design)
        elif isinstance(X, Design) or has_own_backend(X):
            design = as_design(X, allow_nan=self._allow_nan, check_finite=False)
            if not self._statistics_are_checked():
                require_finite(design, self._allow_nan)
            y = self._check_target_alone(y, design)
            self._check_names_of(design)
        else:
            check_container(X)
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse=("csr", "csc") if self._accepts_sparse else False,
                dtype=(np.float64, np.float32),
                ensure_all_finite=False,
                ensure_min_samples=2,
                multi_output=Multilabel.kind in self._tasks() and Multilabel.fits(y),
                y_numeric=not self._target_type().has_classes,
            )
            names = getattr(self, "feature_names_in_", None)
            design = as_design(
                X,
                feature_names=names,
                allow_nan=self._allow_nan,
                check_finite=not self._statistics_are_checked(),
            )
        return X, y, design

    def _statistics_are_checked(self) -> bool:
        """Whether values that are not finite are found in column statistics that are computed anyway."""
        return self._finite_from_statistics or bool(getattr(self, "standardize", False))

    def _check_target_alone(self, y: Any, design: Design) -> NDArray[Any]:
        y = np.asarray(y)
        if y.shape[0] != design.shape[0]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[design.shape[0], int(y.shape[0])]}"
            )
        if design.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two samples. Got {design.shape[0]} sample."
            )
        return cast("NDArray[Any]", y)

    def _check_names_of(self, design: Design) -> None:
        self.n_features_in_ = design.shape[1]
        if design.feature_names is not None:
            self.feature_names_in_ = np.asarray(design.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _build_problem(
        self,
        design: Design,
        y: NDArray[Any],
        sample_weight: Any = None,
        groups: Any = None,
        shared: SharedValues | None = None,
        covariates: NDArray[np.float64] | None = None,
    ) -> Problem:
        names = getattr(self, "feature_names_in_", None)
        n_columns = design.shape[1]
        feature_groups = parse_feature_groups(getattr(self, "feature_groups", None), n_columns, names)
        always_keep = parse_always_keep(getattr(self, "always_keep", None), n_columns, names)
        shared = SharedValues() if shared is None else shared
        if groups is not None:
            groups = self._groups_of_samples(groups, design.shape[0], sample_weight)
        if sample_weight is not None:
            design, y, sample_weight = _drop_unweighted(design, y, sample_weight)
        if self._adjusted.size:
            covariates = design.block(self._adjusted)
            design, feature_groups, always_keep = self._without_covariates(
                design, feature_groups, always_keep
            )
        adjust = None if covariates is None else Covariates(covariates, sample_weight)
        if adjust is not None:
            self._check_adjusted()
            check_room(adjust, type(self).__name__)
        target = self._encode_target(y)
        if how := getattr(self, "standardize", False):
            design = shared.standardized(design, sample_weight, how=how)
            if adjust is not None:
                design = shared.once(
                    "beside covariates",
                    (design, adjust.columns, sample_weight),
                    lambda: in_residual_deviations(design, adjust),
                )
        return Problem(
            design=design,
            target=target,
            sample_weight=sample_weight,
            feature_groups=feature_groups,
            always_keep=always_keep,
            n_features_to_select=self._requested_size(design.shape[1]),
            rng=generator_from(getattr(self, "random_state", 0)),
            progress=Progress(getattr(self, "verbose", False)),
            sample_groups=groups,
            adjust=adjust,
            shared=shared,
        )

    # -- covariates -----------------------------------------------------------------------------

    def _holder_of_adjust(self) -> Any:
        """The selector whose parameter ``adjust`` names the covariates: this one, or the one that it wraps."""
        return self

    def _check_adjusted(self) -> None:
        """Raise an error for parameters that do not allow covariates."""

    def _index_among_columns(self, candidates: NDArray[np.intp]) -> None:
        """Extend fitted attributes with a value per candidate to all columns of X."""
        n_columns = self.n_features_in_
        for name, elsewhere in PER_FEATURE.items():
            if hasattr(self, name):
                values = np.asarray(getattr(self, name), dtype=np.float64)
                placed = np.full((*values.shape[:-1], n_columns), elsewhere)
                placed[..., candidates] = values
                setattr(self, name, placed)
        copies = getattr(self, "representative_", None)
        if copies is not None:
            self.representative_ = np.arange(n_columns)
            self.representative_[candidates] = candidates[copies]

    def _positions_of_covariates(self, design: Design) -> NDArray[np.intp]:
        """The columns of X that ``adjust`` names."""
        given = getattr(self._holder_of_adjust(), "adjust", None)
        found = parse_columns(given, design.shape[1], getattr(self, "feature_names_in_", None), "adjust")
        if found.size == design.shape[1]:
            raise ValueError(
                f"The 'adjust' parameter of {type(self).__name__} names all {found.size} columns of X, so that no "
                "feature is left to select. Name fewer covariates."
            )
        return found

    def _without_covariates(
        self, design: Design, feature_groups: NDArray[np.intp] | None, always_keep: NDArray[np.intp]
    ) -> tuple[Design, NDArray[np.intp] | None, NDArray[np.intp]]:
        """The candidates for selection, with their groups and the positions of those that are always kept."""
        both = np.intersect1d(always_keep, self._adjusted)
        if both.size:
            raise ValueError(
                f"The 'adjust' and 'always_keep' parameters of {type(self).__name__} both name column {both[0]}. A "
                "covariate is in every model anyway; leave it out of 'always_keep'."
            )
        candidates = np.delete(np.arange(design.shape[1]), self._adjusted)
        if feature_groups is not None:
            feature_groups = np.unique(feature_groups[candidates], return_inverse=True)[1].astype(np.intp)
        return design.take(candidates), feature_groups, np.searchsorted(candidates, always_keep)

    def _groups_of_samples(self, groups: Any, n_samples: int, sample_weight: Any) -> NDArray[Any]:
        """The checked ``groups`` of ``fit``, without samples of weight zero."""
        labels: NDArray[Any] = np.asarray(groups)
        if labels.shape != (n_samples,):
            raise ValueError(
                f"The 'groups' of {type(self).__name__} must hold one label for each of the {n_samples} samples. Got "
                f"shape {labels.shape} instead."
            )
        return labels if sample_weight is None else labels[np.asarray(sample_weight) > 0]

    # -- targets --------------------------------------------------------------------------------

    def _task_name(self) -> str:
        """The name of the task, such as "classification"."""
        task = getattr(self, "task", None)
        return KINDS[self._tasks()[0]].task if task is None else cast("str", task)

    def _target_type(self) -> type[Target]:
        return TASKS[self._task_name()]

    def _tasks(self) -> tuple[str, ...]:
        return self._method.tasks if hasattr(self, "_method") else (Binary.kind, Multiclass.kind)

    def _encode_target(self, y: NDArray[Any]) -> Target:
        name = type(self).__name__
        try:
            target = target_for(y, self._task_name(), self._tasks(), name)
        except NotLabelsError as error:
            raise ValueError(f"{error} {self._remedy_for_numbers()}") from error
        if target.has_classes and target.is_stratified:
            self.classes_ = np.asarray(target.classes)
        if target.kind not in self._tasks():
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: "
                f"{name} got {target.n_classes} classes, {_preview(self.classes_)}. Use a method that takes more than "
                "two classes, such as RFE, or wrap this one in OneVsRestClassifier with an estimator."
            )
        return target

    def _remedy_for_numbers(self) -> str:
        if Real.kind in self._tasks() and "task" in self.get_params(deep=False):
            return f"For a real target use {type(self).__name__}(task='regression')."
        return "For a real target use a method that takes one, such as RFE(task='regression')."

    def _follows_target_outliers(self) -> bool:
        """Whether an outlier in y can decide the selection: with squared errors, but not with absolute errors."""
        return True

    def _is_misled_by_target(self, problem: Problem, sample_weight: Any) -> bool:
        """Whether a warning of outliers in y was issued; fits inside this one need not repeat it."""
        is_real = problem.target.kind == Real.kind
        if not is_real or problem.y.ndim != 1 or not self._follows_target_outliers():
            return False
        rows = None if sample_weight is None else np.flatnonzero(np.asarray(sample_weight) > 0)
        return warn_about_target_outliers(
            type(self).__name__, problem.y, problem.sample_weight, rows=rows, stacklevel=4
        )

    # -- size and results -----------------------------------------------------------------------

    def _requested_size(self, n_features: int) -> int | None:
        size = self.n_features_to_select
        if size is None:
            return None
        if not is_whole(size):
            return max(1, int(float(size) * n_features))
        if size > n_features:
            raise parameter_error(
                self, "n_features_to_select", f"between 1 and the {n_features} features of X", int(size)
            )
        return int(size)

    def _store(self, path: SelectionPath, problem: Problem) -> None:
        size = problem.n_features_to_select
        if size is None:
            size = self._default_size(path)
        self.path_ = path
        self.support_ = path.mask(size)
        self.ranking_ = path.ranking(size)
        self.scores_ = path.feature_scores(size)
        self.n_iter_ = max(1, int(path.n_iter))
        self.converged_ = bool(path.converged)
        self.n_features_ = int(self.support_.sum())
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} did not converge: {path.remedy or 'raise max_iter or loosen tol.'}",
                ConvergenceWarning,
                stacklevel=4,
            )

    @staticmethod
    def _default_size(path: SelectionPath) -> int:
        """The size that the method chose; half of the features for methods that choose none."""
        wanted = path.selected_size if path.selected_size is not None else path.n_candidates // 2
        wanted = max(1, int(path.always_keep.size), wanted)
        if path.groups is None:
            return wanted
        sizes = path.sizes if path.subsets is not None else path.whole_sizes()
        fitting = sizes[sizes <= wanted]
        return int(fitting[-1] if fitting.size else sizes[0])

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return self.support_

    # -- how good the subset is --------------------------------------------------------------------

    def _certified_loss(self) -> str | None:
        """The loss in which the subset is compared with the best one; None for methods that train no linear model."""
        if self._linear_loss is None or self._target_type() is TimeToEvent:
            return None
        return "squared_error" if self._task_name() == "regression" else self._linear_loss

    @available_if(lambda self: self._certified_loss() is not None)
    def certificate(self, X: Any, y: Any, **options: Any) -> Certificate:
        """Prove how far the selected subset is from the best one of its size, in the loss of this method.

        Parameters
        ----------
        X, y : the data of ``fit``.
        **options : ``C``, ``sample_weight``, ``gap_tol``, ``time_limit`` and others of ``optimality_gap``.
        """
        check_is_fitted(self, "support_")
        if self._adjusted.size:
            raise ValueError(
                f"A certificate for {type(self).__name__} with 'adjust' is not possible: its bounds hold for models "
                "of the features alone."
            )
        own = {name: getattr(self, name, None) for name in ("feature_groups", "always_keep")}
        # A bound needs columns of one scale; data that were used as they are stay as they are.
        own["standardize"] = bool(getattr(self, "standardize", True))
        return optimality_gap(X, y, self, **{**own, **options})

    # -- scikit-learn protocols -----------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        target = TASKS.get(BaseSelector._task_name(self), Labels)
        tags.target_tags.required = True
        tags.target_tags.positive_only = target.needs_positive
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.allow_nan = self._allow_nan
        if target.has_classes:
            tags.classifier_tags = ClassifierTags(
                poor_score=True, multi_class=Multiclass.kind in self._tasks()
            )
        else:
            tags.regressor_tags = RegressorTags(poor_score=True)
        if has_estimator(self):
            tags.estimator_type = target.estimator_type
        return cast("Tags", tags)


class WeightedSelector(BaseSelector):
    """Base class of selectors that use sample weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, real targets with ``task="regression"``, or times and events with ``task="survival"``.
        sample_weight : one non-negative weight per sample; a weight of two equals a duplicated sample.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        return self._fit(X, y, fit_params, sample_weight=sample_weight)


class SplittingSelector(BaseSelector):
    """Base class of selectors that split the samples, for example into folds; groups of samples are kept together."""

    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, real targets with ``task="regression"``, or times and events with ``task="survival"``.
        groups : one label per sample; samples of one group (a patient) stay together in folds, halves and probes.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        return self._fit(X, y, fit_params, groups=groups)


class WeightedSplittingSelector(SplittingSelector):
    """Base class of selectors that use sample weights and split the samples."""

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Design of shape (n_samples, n_features).
        y : labels of any type, real targets with ``task="regression"``, or times and events with ``task="survival"``.
        sample_weight : one non-negative weight per sample; a weight of two equals a duplicated sample.
        groups : one label per sample; with ``C="auto"`` samples of one group stay together in the folds that choose C.
        **fit_params : routed to ``fit`` of ``estimator``.
        """
        return self._fit(X, y, fit_params, sample_weight=sample_weight, groups=groups)


def _drop_unweighted(
    design: Design, y: NDArray[Any], sample_weight: Any
) -> tuple[Design, NDArray[Any], NDArray[np.float64]]:
    """Check the weights and remove samples of weight zero."""
    weight = _check_sample_weight(
        sample_weight, np.empty((design.shape[0], 1)), dtype=np.float64, ensure_non_negative=True
    )
    present = np.flatnonzero(weight > 0)
    unusual = (weight > LARGEST_VALUE) | ((weight > 0) & (weight < 1.0 / LARGEST_VALUE))
    if unusual.any():
        raise ValueError(
            f"The 'sample_weight' must be zero or between {1.0 / LARGEST_VALUE:.0e} and {LARGEST_VALUE:.0e}. Got "
            f"{weight[unusual][0]:.3g} instead; divide all weights by their mean."
        )
    if present.size == weight.size:
        return design, y, weight
    if present.size < 2:
        raise ValueError(f"At least two samples must have a positive weight. Got {present.size}.")
    return design.take_rows(present), y[present], weight[present]


def _is_plain(X: Any, y: Any) -> bool:
    """Whether X and y are plain arrays, for which scikit-learn's checks, slow on small tables, are not needed."""
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and y.dtype.kind in "biu"
        and (X.ndim, y.ndim) == (2, 1)
        and len(X) == len(y) >= 2
        and X.shape[1] >= 1
    )


def _preview(classes: NDArray[Any]) -> str:
    shown = ", ".join(str(c) for c in classes[:5])
    return shown + (", …" if len(classes) > 5 else "")
