"""Which other features would do as well as the selected ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.design import as_design
from zeronorm.evaluation._protocol import evaluate
from zeronorm.evaluation._records import columns_of, frame_of_rows
from zeronorm.evaluation._stand_ins import Tested, run_tests
from zeronorm.resampling._metrics import Metric, as_metric, parse_metrics
from zeronorm.resampling._scored_paths import KnownPath
from zeronorm.resampling._splits import make_splits
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._sample_groups import group_means
from zeronorm.selection.target import TASKS

LEVEL = 0.05
LARGEST_LOSS = 0.25  # of what a feature adds; a correlation of 0.87 with it, given the others, loses as much
MOST_SWAPS = 30  # substitutes of one feature whose error is measured
MOST_SIGNATURES = 10**6
Status = Literal["found", "none", "cannot be told"]


@dataclass(frozen=True)
class Substitute:
    """A feature that can stand in for a selected one.

    Parameters
    ----------
    index, name : the feature.
    correlation : with the selected feature, given the other selected ones.
    p_value : of its association with the target given the other selected features, adjusted by Holm.
    p_left : of the association of the selected feature once this one is given too, adjusted by Holm; above the level.
    p_loss : of the hypothesis that more than the accepted share of what the selected feature adds is left, adjusted by
        Holm; at most the level.
    error : value of the metric with it in place of the selected feature, on the same folds.
    """

    index: int
    name: str
    correlation: float
    p_value: float
    p_left: float
    p_loss: float
    error: float | None


@dataclass(frozen=True)
class FeatureSubstitutes:
    """One selected feature and the features that can stand in for it.

    Parameters
    ----------
    index, name : the selected feature.
    status : "found"; "none", if the samples show that no other feature does as well; or "cannot be told".
    reason : why it cannot be told, as a clause; else empty.
    p_value : of its association with the target given the other selected features, adjusted by Holm over them.
    covered_by : names of the other selected features that hold what it would add, if it adds nothing beside them.
    substitutes : the features that can stand in, the most correlated first.
    n_tested, n_open, n_worse : number of features that were tested, that might stand in although the samples are too few
        to show it, and that passed the tests but predict worse.
    """

    index: int
    name: str
    status: Status
    reason: str
    p_value: float
    covered_by: tuple[str, ...]
    substitutes: tuple[Substitute, ...]
    n_tested: int
    n_open: int
    n_worse: int

    def sentence(self) -> str:
        """The answer for this feature in words."""
        names = ", ".join(each.name for each in self.substitutes[:5])
        more = len(self.substitutes) - 5
        if self.status == "found":
            others = f"{names} and {more} more" if more > 0 else names
            beside = f"; of {self.n_open} more it cannot be told" if self.n_open else ""
            return f"{self.name} can be replaced by {others}{beside}."
        if self.status == "none":
            return f"No other feature does as well as {self.name}."
        return f"Whether others do as well as {self.name} cannot be told: {self.reason}."


@dataclass(frozen=True)
class Substitutes:
    """The features that would do as well as the selected ones.

    Parameters
    ----------
    features : one entry per selected feature.
    level : of the tests; also the largest probability of a false substitute, for each selected feature.
    largest_loss : share of what a feature adds that a substitute may lose.
    metric : name of the metric.
    error, standard_error : of the selected features on the folds.
    n_signatures : number of lists that arise if every feature is replaced by any of its substitutes, or not; at most
        ``MOST_SIGNATURES``. Single replacements were tested, not their combinations.
    best, best_error : the list with the best value of the metric among the selected one, all single replacements and the
        combination of the best of them. It is the best of many on these samples and therefore somewhat too good.
    """

    features: tuple[FeatureSubstitutes, ...]
    level: float
    largest_loss: float
    metric: str
    error: float | None
    standard_error: float | None
    n_signatures: int
    best: tuple[str, ...]
    best_error: float | None

    def __getitem__(self, name: str) -> FeatureSubstitutes:
        """The entry of a selected feature."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(f"{name!r} is not a selected feature. Selected are {[f.name for f in self.features]}.")

    def sentence(self) -> str:
        """The result in words."""
        count = {status: sum(f.status == status for f in self.features) for status in Status.__args__}  # type: ignore[attr-defined]
        n, features = len(self.features), "feature" if len(self.features) == 1 else "features"
        text = (
            f"Of {n} selected {features}, {count['found']} can be replaced by others without loss, {count['none']} cannot, "
            f"and for {count['cannot be told']} it cannot be told."
        )
        if self.n_signatures > 1:
            number = (
                f"more than {MOST_SIGNATURES:,}"
                if self.n_signatures >= MOST_SIGNATURES
                else f"up to {self.n_signatures:,}"
            )
            text += f" That makes {number} lists that the samples do not distinguish."
        return text

    def rows(self) -> list[dict[str, Any]]:
        """One row per substitute, and one for each selected feature without any."""
        blank: dict[str, Any] = dict.fromkeys(asdict(Substitute(0, "", 0.0, 0.0, 0.0, 0.0, 0.0)))
        rows = []
        for feature in self.features:
            start = {"feature": feature.name, "status": feature.status, "reason": feature.reason}
            for found in [asdict(each) for each in feature.substitutes] or [blank]:
                rows.append({**start, "substitute": found["name"], **{k: found[k] for k in VALUES}})
        return rows

    def to_frame(self) -> Any:
        """The rows as a polars (else pandas) frame."""
        return frame_of_rows(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """All values as a dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Substitutes:
        """The inverse of ``to_dict``."""
        features = tuple(
            FeatureSubstitutes(
                **{
                    **each,
                    "covered_by": tuple(each["covered_by"]),
                    "substitutes": tuple(Substitute(**found) for found in each["substitutes"]),
                }
            )
            for each in content["features"]
        )
        return cls(**{**content, "features": features, "best": tuple(content["best"])})


VALUES = ("correlation", "p_value", "p_left", "p_loss", "error")


def substitutes(
    X: Any,
    y: ArrayLike,
    support: Any,
    *,
    task: str = "classification",
    level: float = LEVEL,
    largest_loss: float = LARGEST_LOSS,
    cv: Any = 5,
    estimator: Any = None,
    metric: Any = None,
    groups: Any = None,
    feature_names: Sequence[str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Substitutes:
    """Find the features that would do as well as each of the selected ones.

    A feature f can stand in for a selected feature j if, beside the other selected features,

    1. j is associated with the target without f (else it cannot be told whether f takes its part),
    2. so is f,
    3. once f is given, the association of j is no longer significant, and
    4. so little is left of it that, with these samples, more than ``largest_loss`` of it would have been seen,
    5. and the error with f in place of j is within one standard error of that with j, on the same folds.

    The tests are those of partial correlations (of several columns for more than two classes), corrected by Holm over
    the candidates: features with a correlation of at least 0.5 with j given the others, up to the 100 most correlated.
    Effects that single features have only together are not seen. With ``groups``, means of the samples of each group
    are tested. The same samples have selected the features, so that what j adds is overestimated if it was the best of
    very many.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Design
        All features, without missing values.
    y : array-like
        Labels, or real targets with ``task="regression"``.
    support : selector, mask or array of int
        The selected features; a fitted selector has them.
    task : {"classification", "regression"}, default='classification'
        What y holds.
    level : float, default=0.05
        Level of the tests.
    largest_loss : float, default=0.25
        Share of what a feature adds to the others, in explained variance, that a substitute may lose.
    cv : int, splitter or list, default=5
        The folds.
    estimator : estimator or None, default=None
        The predictor. None: as in ``evaluate``.
    metric : str, Metric or None, default=None
        The metric. None: the first of those of ``evaluate``.
    groups : array-like or None, default=None
        One label per sample, where samples belong together.
    feature_names : sequence of str or None, default=None
        Names of the features. None: those of X, or x0, x1, ….
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int or None, default=None
        Number of processes.

    Returns
    -------
    Substitutes
        One entry per selected feature, the number of equivalent lists and the best of them.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import substitutes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> X[:, 7] = X[:, 0] + 0.1 * rng.normal(size=200)
    >>> y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=200) > 0).astype(int)
    >>> print(substitutes(X, y, [0, 1]).features[0].sentence())
    x0 can be replaced by x7.
    """
    design, y = as_design(X), np.asarray(y)
    chosen = _checked_support(support, design.n_features)
    _check_shares(level=level, largest_loss=largest_loss)
    if len(y) != design.n_samples:
        raise ValueError(f"y has {len(y)} values, but X has {design.n_samples} samples.")
    if task not in TASKS:
        raise ValueError(f"The 'task' parameter must be {' or '.join(map(repr, TASKS))}. Got {written(task)} instead.")
    names = _names(feature_names, design)
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and len(groups) != design.n_samples:
        raise ValueError(f"'groups' has {len(groups)} entries, but X has {design.n_samples} samples.")
    means, labels = (None, y) if groups is None else group_means(groups, y, TASKS[task].has_classes)
    target = TASKS[task].encode(labels, "substitutes").columns()
    tested = run_tests(design, chosen, target, means or np.asarray, level, largest_loss)
    measured = as_metric(metric) if metric is not None else parse_metrics(None, TASKS[task])[0]
    swaps = _Swaps.measure(design, y, tested, chosen, level, measured, task=task, cv=cv, estimator=estimator, groups=groups,
                           random_state=random_state, n_jobs=n_jobs)  # fmt: skip
    features = tuple(_described(each, names, swaps, level) for each in tested)
    best, best_error = swaps.best(features)
    return Substitutes(
        features=features,
        level=level,
        largest_loss=largest_loss,
        metric=measured.name,
        error=_finite(swaps.error),
        standard_error=_finite(swaps.standard_error),
        n_signatures=min(MOST_SIGNATURES, math.prod(1 + len(each.substitutes) for each in features)),
        best=tuple(names[index] for index in best),
        best_error=_finite(best_error),
    )


# -- Input ----------------------------------------------------------------------------------------------------------


def _checked_support(support: Any, n_features: int) -> IntArray:
    found = np.asarray(support.get_support() if hasattr(support, "get_support") else support)
    if found.dtype == bool and found.shape == (n_features,):
        found = np.flatnonzero(found)
    is_index = found.ndim == 1 and found.size > 0 and np.issubdtype(found.dtype, np.integer)
    if not is_index or found.min() < 0 or found.max() >= n_features or len(np.unique(found)) < found.size:
        raise ValueError(
            f"The 'support' parameter must hold different positions from 0 to {n_features - 1}, or a mask of "
            f"{n_features} features, with at least one. Got {written(support)} instead."
        )
    return found.astype(np.intp)


def _check_shares(**shares: float) -> None:
    for name, value in shares.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
            raise ValueError(f"The {name!r} parameter must be a number between 0 and 1. Got {written(value)} instead.")


def _names(given: Sequence[str] | None, design: Any) -> Sequence[str]:
    if given is not None and len(given) != design.n_features:
        raise ValueError(f"'feature_names' has {len(given)} names, but X has {design.n_features} features.")
    names = design.feature_names if given is None else given
    return [f"x{i}" for i in range(design.n_features)] if names is None else [str(name) for name in names]


# -- The error with one feature in place of another ----------------------------------------------------------------


@dataclass(frozen=True)
class _Swaps:
    """Values of the metric with single features replaced, on the same folds."""

    support: tuple[int, ...]
    errors: dict[tuple[int, ...], float]  # by list of features
    standard_error: float
    metric: Metric
    evaluate: Any  # from lists of features to their values in the folds

    @classmethod
    def measure(
        cls, design: Any, y: NDArray[Any], tested: Sequence[Tested], support: IntArray, level: float, metric: Metric,
        *, task: str, cv: Any, random_state: int, groups: Any, **options: Any,
    ) -> _Swaps:  # fmt: skip
        """Measure the lists with one feature replaced by one that passed the tests."""
        splits = make_splits(cv, y, groups, target=TASKS[task], seed=random_state, least_per_fold=1)

        def values_of(lists: Sequence[tuple[int, ...]]) -> FloatArray:
            columns = np.unique([index for each in lists for index in each])
            ranked = {
                str(number): KnownPath(_path(np.searchsorted(columns, each), columns.size))
                for number, each in enumerate(lists)
            }
            records = evaluate(ranked, design.block(columns), y, cv=splits, sizes=[len(support)], metrics=[metric],
                               groups=groups, task=task, random_state=random_state, **options)  # fmt: skip
            values = np.array(columns_of(records)[metric.name], dtype=np.float64)
            return values.reshape(len(lists), -1)

        own = tuple(support.tolist())
        lists = [own]
        for each in tested:
            passed = each.candidates[each.is_substitute(level)][:MOST_SWAPS]
            lists += [_with(own, each.index, int(index)) for index in passed]
        values = values_of(lists)
        errors = dict(zip(lists, values.mean(axis=1).tolist(), strict=True))
        spread = float(values[0].std(ddof=1) / np.sqrt(values.shape[1])) if values.shape[1] > 1 else 0.0
        return cls(own, errors, max(spread, _one_sample(metric, y)), metric, values_of)

    @property
    def error(self) -> float:
        """The value of the selected list."""
        return self.errors[self.support]

    def with_swap(self, feature: int, other: int) -> float:
        """The value of the list with one feature replaced; NaN where it was not measured."""
        return self.errors.get(_with(self.support, feature, other), np.nan)

    def is_as_good(self, value: float) -> bool:
        """Whether a value is within one standard error of that of the selected list."""
        return self.metric.score(value) >= self.metric.score(self.error) - self.standard_error

    def best(self, features: Sequence[FeatureSubstitutes]) -> tuple[tuple[int, ...], float]:
        """The best list among the selected one, those with one substitute, and the best substitutes together."""
        together, found = self.support, {self.support: self.error}
        for feature in features:
            ranked = [(self.metric.score(each.error), each.index) for each in feature.substitutes if each.error is not None]
            found |= {_with(self.support, feature.index, index): self.with_swap(feature.index, index) for _, index in ranked}
            better = [(score, -index) for score, index in ranked if score > self.metric.score(self.error)]
            if better and -max(better)[1] not in together:
                together = _with(together, feature.index, -max(better)[1])
        if together not in found:
            found[together] = float(self.evaluate([together]).mean())
        return max(found.items(), key=lambda item: self.metric.score(item[1]))


def _path(columns: IntArray, n_features: int) -> SelectionPath:
    scores = np.zeros(n_features)
    scores[columns] = np.arange(len(columns), 0, -1)
    return SelectionPath.from_scores(scores)


def _with(features: tuple[int, ...], one: int, other: int) -> tuple[int, ...]:
    return tuple(other if index == one else index for index in features)


def _one_sample(metric: Metric, y: NDArray[Any]) -> float:
    """What one more wrong sample adds to an error rate; 0 for other metrics. Few folds without errors have no spread."""
    if metric.unit != "%":
        return 0.0
    counts = np.unique(y, return_counts=True)[1]
    return float(1.0 / (len(counts) * counts.min()))


# -- The answer for one feature ------------------------------------------------------------------------------------


def _described(tested: Tested, names: Sequence[str], swaps: _Swaps, level: float) -> FeatureSubstitutes:
    found, n_worse = [], 0
    for at in np.flatnonzero(tested.is_substitute(level)):
        index = int(tested.candidates[at])
        error = swaps.with_swap(tested.index, index)
        if np.isfinite(error) and not swaps.is_as_good(error):
            n_worse += 1
            continue
        correlation = 0.0 if tested.found is None else float(tested.found.correlation[at])
        p_values = (float(p[at]) for p in (tested.p_candidates, tested.p_left, tested.p_taken_over))
        found.append(Substitute(index, names[index], correlation, *p_values, _finite(error)))
    n_open = int(np.sum(tested.is_open(level)))
    entry = FeatureSubstitutes(
        index=tested.index,
        name=names[tested.index],
        status="found" if found else "none",
        reason="",
        p_value=tested.p_value,
        covered_by=tuple(names[index] for index in tested.covered_by),
        substitutes=tuple(found),
        n_tested=len(tested.candidates),
        n_open=n_open,
        n_worse=n_worse,
    )
    reason = "" if found else _why_unknown(entry, tested, level)
    return replace(entry, status="cannot be told", reason=reason) if reason else entry


def _why_unknown(entry: FeatureSubstitutes, tested: Tested, level: float) -> str:
    """Why it cannot be told whether a feature has substitutes; empty where it is told."""
    if tested.dof < 1:
        return "there are as many selected features as independent samples"
    if tested.p_value > level and entry.covered_by:
        return f"beside {', '.join(entry.covered_by)}, which is also selected, it adds nothing that these samples show"
    if tested.p_value > level:
        return "these samples do not show that it adds anything to the other selected features"
    if entry.n_open:
        others = "1 feature is" if entry.n_open == 1 else f"{entry.n_open} features are"
        return f"{others} so similar to it that these samples do not tell them apart"
    return ""


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


__all__ = ["FeatureSubstitutes", "Substitute", "Substitutes", "substitutes"]
