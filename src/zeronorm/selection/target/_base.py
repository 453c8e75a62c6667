"""Base class of all targets: encoding, columns for linear models, strata, permutation and text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.selection._sample_groups import Exchange, exchange_of


@dataclass(frozen=True, eq=False)
class Target(ABC):
    """The encoded target of a problem; class attributes hold what all targets of one kind have in common.

    ``values`` holds one encoded row per sample. ``classes`` holds the label of each code; None for a real target.
    """

    values: NDArray[Any]
    classes: NDArray[Any] | None = None

    kind: ClassVar[str]  # name of the kind in the ``tasks`` of a method
    task: ClassVar[str]  # the parameter ``task`` of selectors, functions and the command line
    estimator_type: ClassVar[str | None]  # scikit-learn's name of a predictor of such a target, if it has one
    has_classes: ClassVar[bool]
    is_stratified: ClassVar[bool] = False  # whether folds hold equal shares of its strata
    needs_positive: ClassVar[bool] = False  # whether numbers in y must not be negative

    metrics: ClassVar[tuple[str, ...]]  # default metrics
    scoring: ClassVar[str]  # default scorer of scikit-learn
    predictors: ClassVar[Mapping[str, str]]  # default predictors by kernel; resampling builds them
    baseline: ClassVar[str]  # predictor that uses no feature; workflow builds it
    smooth_loss: ClassVar[str]  # differentiable loss of a model of the columns

    @classmethod
    @abstractmethod
    def encode(cls, y: NDArray[Any], owner: str) -> Target:
        """The target from the y of the user, checked; errors name the ``owner``, the selector that was called."""

    @classmethod
    @abstractmethod
    def of(cls, y: NDArray[Any]) -> Target:
        """The target from values that are already checked."""

    @classmethod
    def prepared(cls, y: Any) -> Any:
        """The y of the user as an array with one entry per sample, where scikit-learn would not accept it as it is."""
        return y

    @classmethod
    def check_raw(cls, y: Any) -> None:
        """Raise an error that names the first value in the y of the user that cannot be encoded."""
        return

    @classmethod
    @abstractmethod
    def recognised(cls, y: NDArray[Any]) -> str | None:
        """The reason why a column of a table is such a target, as the end of a sentence; None if it is not."""

    @property
    def n_samples(self) -> int:
        return len(self.values)

    @property
    def n_classes(self) -> int:
        return 0 if self.classes is None else len(self.classes)

    def labels(self) -> NDArray[Any]:
        """The target as the user gave it."""
        return self.values

    def take(self, rows: IntArray) -> Self:
        """The target of some samples, with the same classes."""
        return replace(self, values=self.values[rows])

    # -- columns of linear models ------------------------------------------------------------------

    @abstractmethod
    def columns(self) -> FloatArray:
        """One column per model: ±1 (two classes), one-against-rest ±1 (more), or the real target."""

    def model_columns(self, multi_class: str) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Columns of all models, and which samples each of them is trained on; all, except for pairs of classes."""
        columns = self.columns()
        return columns, np.ones(columns.shape, dtype=bool)

    @property
    def midrange(self) -> float:
        """The midrange of a real target, which becomes part of the bias of a model; 0 for classes."""
        return 0.0

    def around_zero(self) -> Self:
        """The target with its midrange subtracted, so that a large mean does not cost a solver precision."""
        return self

    def unit(self, weight: FloatArray | None = None) -> float:
        """The unit of errors: a robust standard deviation of a real target; 1 for classes."""
        return 1.0

    # -- resampling --------------------------------------------------------------------------------

    @classmethod
    def strata_of(cls, y: NDArray[Any]) -> NDArray[Any] | None:
        """Labels by which folds are stratified, from encoded values or from y as given; None without stratification."""
        return y if cls.is_stratified else None

    def strata(self) -> NDArray[Any] | None:
        """Labels by which folds of this target are stratified; None without stratification."""
        return self.strata_of(self.values)

    def strata_sizes(self) -> IntArray:
        """The number of samples in each stratum, in the order of the strata."""
        strata = self.strata()
        return np.array([self.n_samples]) if strata is None else np.unique(strata, return_counts=True)[1]

    def fewest_in_folds(self) -> int:
        """The number of samples of which each fold needs some: those of the smallest stratum."""
        return int(self.strata_sizes().min())

    @classmethod
    def check_folds(cls, y: NDArray[Any], n_folds: int) -> None:
        """Warn of folds that are too small for their scores."""
        return

    def exchange(self, groups: NDArray[Any] | None = None, design: str = "auto") -> Exchange:
        """How labels are exchanged in a permutation test; samples of one group are not independent."""
        return exchange_of(self.values, groups, design)

    def permuted(
        self, rng: np.random.Generator, groups: NDArray[Any] | None = None, design: str = "auto"
    ) -> Self:
        """The target in random order; with sample groups, exchanged between whole groups or within each group."""
        return self.take(self.exchange(groups, design).draw(rng))

    # -- text --------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def described(cls, n_classes: int) -> str:
        """The task as text, with its article."""
