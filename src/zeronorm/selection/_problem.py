"""The problem that a selection method is given, and the progress that it reports."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import IntArray, written
from zeronorm.design import ColumnStats, DenseDesign, Design, require_finite_stats
from zeronorm.design._joined import JoinedDesign
from zeronorm.design._residual import ResidualDesign
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._progress_file import ProgressFile
from zeronorm.selection._shared import SharedValues
from zeronorm.selection.target import Target

# -- Progress of long computations: silent by default, a progress bar with ``verbose`` --


Advance = Callable[..., None]


class Progress:
    """Progress of a computation, reported by ``with progress.task("Eliminating", total) as advance``.

    ``verbose`` shows a bar for each task; a ``RunBar`` instead counts the steps of all tasks of a run in one bar.
    """

    def __init__(self, verbose: bool | int | RunBar = False) -> None:
        self.verbose = bool(verbose)
        self._run = verbose if isinstance(verbose, RunBar) else None

    @contextmanager
    def task(self, description: str, total: int | None = None) -> Iterator[Advance]:
        """Yield a function to be called with the number of finished steps and, optionally, the text of the next one."""
        if self._run is not None:
            yield self._run.advance
        elif not self.verbose:
            yield _ignore
        else:
            with _bar(description, total) as bar:
                yield bar.advance

    @contextmanager
    def whole(self, description: str) -> Iterator[RunBar]:
        """One bar for a run of many tasks; it appears at once, and ``expect`` sets the number of steps."""
        if not self.verbose:
            yield RunBar(None, None)
            return
        with _bar(description, None) as bar:
            yield bar


class RunBar:
    """A progress bar with a text about the current step; without a display it does nothing."""

    def __init__(self, display: Any, identifier: Any) -> None:
        self._display = display
        self._identifier = identifier
        self._file: ProgressFile | None = None
        self.stage = ""  # shown before the text of the current step, such as "permutation 3 of 19"

    @property
    def is_shown(self) -> bool:
        """Whether there is a display."""
        return self._display is not None

    @contextmanager
    def recorded(self, file: Path) -> Iterator[None]:
        """Also write the steps to a file, as long as the block runs."""
        self._file = ProgressFile(file)
        try:
            yield
        finally:
            self._file.close()
            self._file = None

    def print(self, text: str) -> None:
        """Print a line that stays above the bar."""
        if self._file is not None:
            self._file.add_line(text)
        if self._display is not None:
            self._display.console.print(text, markup=False, highlight=False)

    def expect(self, steps: int) -> None:
        """Set the number of steps of the whole run."""
        self._update(total=steps)

    def describe(self, text: str) -> None:
        """Show the text of the current step."""
        self._update(description=", ".join(part for part in (self.stage, text) if part))

    def advance(self, steps: int = 0, text: str = "") -> None:
        """Count finished steps; ``text`` describes the next one."""
        self._update(advance=steps)
        if text:
            self.describe(text)

    def _update(self, **changes: Any) -> None:
        if self._file is not None:
            self._file.update(**changes)
        if self._display is not None:
            self._display.update(self._identifier, **changes)


@contextmanager
def _bar(description: str, total: int | None) -> Iterator[RunBar]:
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress
    except ImportError:
        print(f"{description} …", file=sys.stderr)
        yield RunBar(None, None)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=300
    ) as bar:
        yield RunBar(bar, bar.add_task(description, total=total))


def _ignore(steps: int = 0, text: str = "") -> None:
    """Progress that is not shown."""


@dataclass(frozen=True)
class Problem:
    """Validated data and settings, passed to ``BaseSelector._select``.

    ``feature_groups`` is a group code per feature or None. ``sample_groups`` is a label per sample or None: a method
    that splits the samples keeps those with the same label together. ``n_features_to_select`` is the requested number
    of features as a count, or None. ``adjust`` holds the covariates, which are not columns of ``design``, or None.
    ``shared`` holds values that other fits to the same data have computed.
    """

    design: Design
    target: Target
    sample_weight: NDArray[np.float64] | None = None
    feature_groups: NDArray[np.intp] | None = None
    always_keep: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_features_to_select: int | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    progress: Progress = field(default_factory=Progress)
    sample_groups: NDArray[Any] | None = None
    adjust: Covariates | None = None
    shared: SharedValues = field(default_factory=SharedValues)

    @property
    def n_samples(self) -> int:
        return int(self.design.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.design.shape[1])

    @property
    def y(self) -> NDArray[Any]:
        """Class codes 0, 1, …, real numbers, a 0/1 matrix for several labels, or events and times."""
        return self.target.values

    @property
    def classes(self) -> NDArray[Any] | None:
        return self.target.classes

    @property
    def n_classes(self) -> int:
        return self.target.n_classes

    def column_stats(self) -> ColumnStats:
        """Statistics of the columns, by class if there are any; they also show whether all values are finite."""
        codes = self.y if self.target.has_classes else None
        stats = self.design.column_stats(codes, self.sample_weight)
        require_finite_stats(self.design, stats)
        return stats

    @property
    def covariates(self) -> IntArray:
        """The positions of the covariates in ``with_covariates``."""
        n_covariates = 0 if self.adjust is None else self.adjust.columns.shape[1]
        return np.arange(self.n_features, self.n_features + n_covariates)

    def with_covariates(self) -> Design:
        """The features, followed by the covariates where there are any."""
        return (
            self.design
            if self.adjust is None
            else JoinedDesign(self.design, DenseDesign(self.adjust.columns))
        )

    def with_basis(self) -> Design:
        """The features, followed by uncorrelated columns of variance one that span the covariates."""
        return (
            self.design if self.adjust is None else JoinedDesign(self.design, DenseDesign(self.adjust.basis))
        )

    def residual_design(self) -> Design:
        """What remains of the features after their regression on the covariates; the features where there are none."""
        if self.adjust is None:
            return self.design
        return ResidualDesign.of(self.design, self.adjust.basis, self.sample_weight)

    def residuals(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """What remains of columns of targets after their regression on the covariates, where there are any."""
        return targets if self.adjust is None else self.adjust.residuals(targets)

    def take(self, rows: IntArray) -> Problem:
        """The problem of some samples."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        groups = None if self.sample_groups is None else self.sample_groups[rows]
        return replace(
            self,
            design=self.design.take_rows(rows),
            target=self.target.take(rows),
            sample_weight=weight,
            sample_groups=groups,
            adjust=None if self.adjust is None else self.adjust.take(rows),
        )

    def around_zero(self) -> Problem:
        """The same problem with the midrange subtracted from a real target."""
        return replace(self, target=self.target.around_zero())

    def sample_costs(self, C: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """The cost C per sample: scaled by the sample weights where there are any."""
        return C if self.sample_weight is None else C * self.sample_weight


# -- How users name columns: groups of features and features that are always kept --


def column_index(column: Any, n_features: int, names: NDArray[Any] | None, parameter: str) -> int:
    """The index of a column given by name or position."""
    if isinstance(column, numbers.Integral) and not isinstance(column, bool):
        index = int(column)
        if not -n_features <= index < n_features:
            raise ValueError(
                f"The '{parameter}' parameter names column {index}, but X has {n_features} columns "
                f"(0 to {n_features - 1})."
            )
        return index % n_features
    if names is None:
        raise ValueError(
            f"The '{parameter}' parameter names column {written(column)}, but X has no column names. "
            "Pass a DataFrame or use column positions."
        )
    found = np.flatnonzero(np.asarray(names, dtype=object) == column)
    if found.size != 1:
        problem = "is not a column of X" if found.size == 0 else f"occurs {found.size} times in X"
        raise ValueError(f"The '{parameter}' parameter names column {written(column)}, which {problem}.")
    return int(found[0])


def parse_columns(given: Any, n_features: int, names: NDArray[Any] | None, parameter: str) -> IntArray:
    """Sorted indices of the columns that a parameter names."""
    if given is None:
        return np.empty(0, dtype=np.intp)
    columns = [column_index(c, n_features, names, parameter) for c in given]
    return np.unique(np.asarray(columns, dtype=np.intp))


def parse_always_keep(always_keep: Any, n_features: int, names: NDArray[Any] | None) -> IntArray:
    """Sorted indices of the features that are always kept."""
    return parse_columns(always_keep, n_features, names, "always_keep")


def parse_feature_groups(groups: Any, n_features: int, names: NDArray[Any] | None) -> IntArray | None:
    """A group code per feature, numbered by first appearance.

    Accepts one label per column, a mapping from group name to columns, or a list of lists of columns.
    Every column must belong to exactly one group.
    """
    if groups is None:
        return None
    members = _listed_members(groups)
    if members is None:
        labels = np.asarray(groups, dtype=object).ravel()
        if labels.size != n_features:
            raise ValueError(
                f"The 'feature_groups' parameter must give one label per column. Got {labels.size} labels "
                f"for {n_features} columns."
            )
        _require_group_labels(labels)
        return _codes_by_appearance(labels.tolist())
    codes = np.full(n_features, -1, dtype=np.intp)
    for code, columns in enumerate(members):
        for column in columns:
            index = column_index(column, n_features, names, "feature_groups")
            if codes[index] >= 0:
                raise ValueError(
                    f"The 'feature_groups' parameter puts column {written(column)} into two groups."
                )
            codes[index] = code
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        shown = [names[i] if names is not None else int(i) for i in missing[:5]]
        raise ValueError(
            f"The 'feature_groups' parameter must cover every column. {missing.size} of {n_features} columns "
            f"are in no group, the first: {shown}. Give each its own group if it stands alone."
        )
    return _codes_by_appearance(codes.tolist())


def _require_group_labels(labels: NDArray[Any]) -> None:
    for column, label in enumerate(labels):
        if label is None or label != label:
            raise ValueError(
                f"The 'feature_groups' parameter must give one label per column. Got {label} for column "
                f"{column}; give it its own group if it stands alone."
            )


def _listed_members(groups: Any) -> list[Sequence[Any]] | None:
    if isinstance(groups, Mapping):
        return [list(columns) for columns in groups.values()]
    nested = (
        isinstance(groups, Sequence) and len(groups) > 0 and isinstance(groups[0], (list, tuple, np.ndarray))
    )
    return [list(columns) for columns in groups] if nested else None


def _codes_by_appearance(labels: list[Any]) -> IntArray:
    seen: dict[Any, int] = {}
    return np.asarray([seen.setdefault(label, len(seen)) for label in labels], dtype=np.intp)


class EmptySelectionWarning(UserWarning):
    """A method selects nothing by its own rule; suppressed where another method only uses its ranking."""


LONG_S = 30.0  # seconds from which a fit is announced


def warn_of_long_fit(owner: str, seconds: float, size: str, remedy: str, stacklevel: int = 4) -> None:
    """Before the work starts, warn of a fit that may take long; ``seconds`` was measured on data that take longest."""
    if seconds > LONG_S:
        minutes = max(1, round(seconds / 60.0))
        warnings.warn(
            f"{owner} on {size} may take up to {minutes} {'minute' if minutes == 1 else 'minutes'} on one core, if the "
            f"data need a complex model. For less, {remedy}.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_empty_selection(selector: Any, problem: Problem, remedy: str) -> None:
    """Warn that the method selects nothing by itself; a selector always keeps at least one feature."""
    if problem.n_features_to_select is None and problem.always_keep.size == 0:
        warnings.warn(
            f"{type(selector).__name__} selects no feature by its own rule; the one that came closest is kept. "
            f"To change that, {remedy}, or ask for a number of features.",
            EmptySelectionWarning,
            stacklevel=6,
        )


# -- Outliers in y that dominate the squared errors --

DOMINANT = 99.0  # squared distance from the median over the sum of those of all other samples
ENOUGH_OTHERS = 50  # with fewer other samples a larger distance is required
FEWEST_OTHERS = 5
LARGEST_SHARE = 0.02  # of the samples; a larger share is not treated as outliers


class TargetOutlierWarning(UserWarning):
    """One or a few samples outweigh all others in a real target."""


def target_outliers(y: NDArray[np.float64], sample_weight: NDArray[np.float64] | None = None) -> IntArray:
    """Outliers in y, the farthest first: each has a larger squared distance from the median than all others together.

    Samples that equal the median are not counted among the others, so that many equal targets cause no warning.
    """
    n_samples = y.size
    most = max(1, int(LARGEST_SHARE * n_samples))
    if n_samples <= FEWEST_OTHERS:
        return np.empty(0, dtype=np.intp)
    squares = (y - np.median(y)) ** 2
    if sample_weight is not None:
        squares *= sample_weight
    first = np.argpartition(squares, n_samples - most)[n_samples - most :]
    first = first[np.argsort(-squares[first], kind="stable")]
    near = np.delete(squares, first)
    # Sums over the samples that are nearer; subtracting from the total instead would cancel digits.
    sums = near.sum() + np.append(np.cumsum(squares[first][:0:-1])[::-1], 0.0)
    counts = np.count_nonzero(near) + np.append(np.cumsum(squares[first][:0:-1] > 0.0)[::-1], 0)
    needed = DOMINANT * np.maximum(1.0, ENOUGH_OTHERS / np.maximum(counts, 1)) ** 2
    is_outlier = (squares[first] > needed * sums) & (counts >= FEWEST_OTHERS)
    return np.asarray(first[: int(np.flatnonzero(is_outlier)[-1]) + 1] if is_outlier.any() else first[:0])


def target_outlier_message(
    y: NDArray[np.float64], found: IntArray, who: str, misleads: str, remedy: str
) -> str:
    """The message about outliers in y: which samples they are, which method they may mislead, and what to do."""
    others = np.delete(y, found)
    median = float(np.median(others))
    distance = float(np.median(np.abs(others - median)))
    has, outweighs, it = "has the target", "It outweighs", "it"
    if found.size > 1:
        has, outweighs, it = "have targets such as", "They outweigh", "them"
    return (
        f"{who} {has} {y[found[0]]:.6g}, while the others have the median {median:.6g} and the median absolute "
        f"deviation {distance:.3g}. {outweighs} all others together in squared errors, which may mislead {misleads}. "
        f"Correct or drop {it}, {remedy}."
    )


def warn_about_target_outliers(
    misleads: str,
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None = None,
    *,
    rows: IntArray | None = None,
    other_methods: bool = True,
    stacklevel: int = 2,
) -> bool:
    """Warn of outliers in y, which mislead a method that uses squared errors; returns whether there are any."""
    found = target_outliers(y, sample_weight)
    if not found.size:
        return False
    indices = [str(index) for index in (found if rows is None else rows[found])]
    listed = ", ".join(indices[:3]) + (f" and {len(indices) - 3} more" if len(indices) > 3 else "")
    who = f"{'Sample' if len(indices) == 1 else 'Samples'} {listed} (counted from 0)"
    ranks = "use the ranks of the target (scipy.stats.rankdata)"
    methods = ", or take a method with an absolute loss, such as RFE or L1SVM"
    remedy = f"{ranks}{methods}" if other_methods else f"or {ranks}"
    message = target_outlier_message(y, found, who, misleads, remedy)
    warnings.warn(message, TargetOutlierWarning, stacklevel=stacklevel + 1)
    return True
