"""Base classes of selectors that wrap another selector."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.registry import methods_with
from zeronorm.resampling._fitted_path import fitted_path
from zeronorm.resampling._seeds import seeded_clone
from zeronorm.resampling._splits import group_params
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import EmptySelectionWarning, Problem, TargetOutlierWarning
from zeronorm.selection._shared import SharedValues
from zeronorm.selectors._base import BaseSelector, SplittingSelector


class MetaSelector(BaseSelector):
    """A selector that wraps the ``selector`` parameter and supports the same tasks and data."""

    selector: Any

    def _wrapped(self) -> Any:
        """The wrapped selector; a class with a default returns it where ``selector`` is None."""
        return self.selector

    @property
    def task(self) -> str:
        """The task of the wrapped selector."""
        inner = self._innermost()
        if isinstance(inner, BaseSelector):
            return inner._task_name()
        return cast("str", getattr(inner, "task", "classification"))

    def _tasks(self) -> tuple[str, ...]:
        inner = self._innermost()
        return inner._tasks() if isinstance(inner, BaseSelector) else self._method.tasks

    def _innermost(self) -> Any:
        """The selector inside hyperparameter searches (``estimator``) and pipelines (their last step)."""
        inner = self._wrapped()
        while not isinstance(inner, BaseSelector):
            if hasattr(inner, "steps"):
                inner = inner.steps[-1][1]
            elif hasattr(inner, "param_grid") or hasattr(inner, "param_distributions"):
                inner = inner.estimator
            else:
                break
        return inner

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self._wrapped()).input_tags.sparse)

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self._wrapped()).input_tags.allow_nan)

    def _holder_of_adjust(self) -> Any:
        inner = self._innermost()
        return inner._holder_of_adjust() if isinstance(inner, BaseSelector) else inner

    # -- the wrapped selector on some rows ------------------------------------------------------

    def _fit_wrapped(
        self,
        design: Design,
        target: NDArray[Any],
        rng: np.random.Generator,
        groups: Any = None,
        adjust: Covariates | None = None,
    ) -> Any:
        """A fitted clone of the wrapped selector."""
        return fit_inside(self._wrapped(), design, target, rng, groups, adjust=adjust)

    def _wrapped_path(
        self,
        design: Design,
        target: NDArray[Any],
        rng: np.random.Generator,
        groups: Any = None,
        adjust: Covariates | None = None,
    ) -> tuple[Any, SelectionPath]:
        fitted = self._fit_wrapped(design, target, rng, groups, adjust)
        return fitted, fitted_path(fitted, design.n_features)


def fit_inside(
    selector: Any,
    design: Design,
    target: NDArray[Any],
    rng: np.random.Generator,
    groups: Any = None,
    shared: SharedValues | None = None,
    adjust: Covariates | None = None,
) -> Any:
    """A fitted clone of a selector that another one uses; ``shared`` holds values from earlier fits."""
    fresh = seeded_clone(selector, rng)
    labels: dict[str, Any] = group_params(fresh, groups)
    if adjust is not None:
        require_adjustable(fresh)
        labels["covariates"] = adjust.columns
    with suppress_nested_warnings(ConvergenceWarning, EmptySelectionWarning, TargetOutlierWarning):
        if isinstance(fresh, BaseSelector):
            return fresh._fit(design, target, {}, shared=shared, **labels)
        return fresh.fit(design.block(slice(None)), target, **labels)


def require_adjustable(selector: Any) -> None:
    """Raise an error for a selector that cannot have covariates."""
    holder = selector._holder_of_adjust() if isinstance(selector, BaseSelector) else selector
    if hasattr(holder, "adjust"):
        return
    able = ", ".join(info.cls.__name__ for info in methods_with("adjust"))
    raise ValueError(
        f"{type(holder).__name__} cannot adjust for covariates: it has no parameter 'adjust'. Use one of {able}."
    )


# -- Base class of selectors that limit false selections --


class PossiblyEmptySelector(BaseSelector):
    """A selector that may select no feature.

    ``support_`` is empty when no feature passes; ``path_`` still has subsets of every size.
    """

    def _store(self, path: SelectionPath, problem: Problem) -> None:
        super()._store(path, problem)
        if problem.n_features_to_select is None and path.selected_size == 0:
            self.support_ = np.zeros(path.n_features, dtype=bool)
            self.ranking_ = path.ranking() + 1
            self.n_features_ = 0

    def _retrain(self, X: Any, y: NDArray[Any], problem: Problem, routed: Any) -> None:
        if getattr(self, "estimator", None) is not None and not self.support_.any():
            raise ValueError(
                f"{type(self).__name__} selected no feature at level {getattr(self, 'level', None)}, so "
                "'estimator' has nothing to learn from. Raise the level, set n_features_to_select, or use "
                "estimator=None to accept an empty selection."
            )
        super()._retrain(X, y, problem, routed)


class ErrorControlSelector(PossiblyEmptySelector, MetaSelector, SplittingSelector):
    """A selector that limits the false selections of the wrapped one, and may select no feature."""

    def _refuse_column_settings(self) -> None:
        """Raise an error if the wrapped selector has column settings, which would refer to the wrong columns."""
        for name in ("feature_groups", "always_keep"):
            if getattr(self._innermost(), name, None) is not None:
                raise ValueError(
                    f"{type(self).__name__} fits the wrapped selector to other columns than those of X, so that one "
                    f"cannot have '{name}'. Set it to None."
                )

    def _fit_shuffled(
        self,
        design: Design,
        target: NDArray[Any],
        rng: np.random.Generator,
        groups: Any = None,
        adjust: Covariates | None = None,
    ) -> tuple[SelectionPath, FloatArray, NDArray[np.intp]]:
        """Fit on the columns in random order; return the path, and scores and positions in the original order.

        Ties go to the first column; the random order keeps this from favouring the real columns.
        """
        shuffle = rng.permutation(design.n_features)
        _, path = self._wrapped_path(design.take(shuffle), target, rng, groups, adjust)
        scores, position = np.empty(shuffle.size), np.empty(shuffle.size, dtype=np.intp)
        scores[shuffle], position[shuffle] = path.feature_scores(), path.position()
        return path, scores, position
