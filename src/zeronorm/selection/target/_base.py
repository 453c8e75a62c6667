"""What every kind of target answers: how it is encoded, stratified, permuted, predicted and named."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Target(ABC):
    """The target of a problem, encoded; what is constant over a kind of target stands in the class.

    ``values`` holds one encoded row per sample and ``classes`` the labels that codes stand for, None without labels.
    """

    values: NDArray[Any]
    classes: NDArray[Any] | None = None

    kind: ClassVar[str]  # how a method registers that it takes such targets
    task: ClassVar[str]  # the parameter ``task`` of selectors, functions and the command line
    estimator_type: ClassVar[str]  # scikit-learn's name of a predictor of such a target
    has_classes: ClassVar[bool]
    is_stratified: ClassVar[bool] = False  # whether folds hold equal shares of its strata

    metrics: ClassVar[tuple[str, ...]]  # measured when none is named
    scoring: ClassVar[str]  # scikit-learn's scorer when none is named
    predictors: ClassVar[Mapping[str, str]]  # by the kernel a user names; resampling builds them
    baseline: ClassVar[str]  # predictor that sees no feature; workflow builds it
    smooth_loss: ClassVar[str]  # differentiable loss of a model of the columns

    @classmethod
    @abstractmethod
    def encode(cls, y: NDArray[Any], owner: str) -> Target:
        """The target from what a user gave, checked; errors may name the ``owner``, which needs it."""

    @classmethod
    @abstractmethod
    def of(cls, y: NDArray[Any]) -> Target:
        """The target from values that were checked before."""

    @classmethod
    def check_raw(cls, y: Any) -> None:
        """Raise an error that names the first value, as the user gave it, that cannot be encoded."""
        return

    @classmethod
    @abstractmethod
    def recognised(cls, y: NDArray[Any]) -> str | None:
        """Why a column of a table is such a target, to follow its name in a sentence; None if it is not."""

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
    def middle(self) -> float:
        """The middle of a real target, which the bias of a model takes up; 0 for classes."""
        return 0.0

    def around_zero(self) -> Self:
        """The same target less its ``middle``: no step of a solver drowns in a large mean."""
        return self

    def unit(self, weight: FloatArray | None = None) -> float:
        """The unit of errors: the robust scale of a real target; 1 for classes."""
        return 1.0

    # -- resampling --------------------------------------------------------------------------------

    @classmethod
    def strata_of(cls, y: NDArray[Any]) -> NDArray[Any] | None:
        """Labels of which every fold holds an equal share, from encoded values or the user's; None without any."""
        return y if cls.is_stratified else None

    def strata(self) -> NDArray[Any] | None:
        """The same of this target."""
        return self.strata_of(self.values)

    def strata_sizes(self) -> IntArray:
        """The number of samples in each stratum, in the order of the strata."""
        strata = self.strata()
        return np.array([self.n_samples]) if strata is None else np.unique(strata, return_counts=True)[1]

    def permuted(self, rng: np.random.Generator, groups: NDArray[Any] | None = None) -> Self:
        """The target in another order; with sample groups, whole groups change places or samples within one.

        Samples of one group are not exchangeable with those of others. Where the target is the same within
        every group (one diagnosis per patient), it is permuted between groups; otherwise within them.
        """
        if groups is None:
            return self.take(rng.permutation(self.n_samples))
        _, first, codes = np.unique(groups.astype(str), return_index=True, return_inverse=True)
        if np.array_equal(self.values[first][codes], self.values):
            return self.take(rng.permutation(first)[codes])
        rows = np.arange(self.n_samples)
        for code in range(len(first)):
            members = np.flatnonzero(codes == code)
            rows[members] = rng.permutation(members)
        return self.take(rows)

    # -- text --------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def described(cls, n_classes: int) -> str:
        """The task in words, with its article."""
