"""What selectors have in common that wrap another selector."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from zeronorm.design import Design
from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.meta.fitted import fitted_path
from zeronorm.selectors.meta.seeding import seeded_clone
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem


class MetaSelector(BaseSelector):
    """A selector built on the ``selector`` parameter, whose tasks and abilities it takes over."""

    selector: Any

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
        """The selector inside searches (``estimator``) and pipelines (their last step)."""
        inner = self.selector
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
        return bool(get_tags(self.selector).input_tags.sparse)

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self.selector).input_tags.allow_nan)

    # -- the wrapped selector on some rows ------------------------------------------------------

    def _fit_wrapped(self, design: Design, target: NDArray[Any], rng: np.random.Generator) -> Any:
        """A fitted clone of the wrapped selector."""
        data = design if isinstance(self.selector, BaseSelector) else design.block(slice(None))
        return seeded_clone(self.selector, rng).fit(data, target)

    def _wrapped_path(
        self, design: Design, target: NDArray[Any], rng: np.random.Generator
    ) -> tuple[Any, SelectionPath]:
        fitted = self._fit_wrapped(design, target, rng)
        return fitted, fitted_path(fitted, design.n_features)


def labels_of(problem: Problem) -> NDArray[Any]:
    """The target as the user gave it."""
    if problem.task in ("binary", "multiclass") and problem.classes is not None:
        return np.asarray(problem.classes[problem.y])
    return problem.y
