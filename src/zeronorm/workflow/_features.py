"""The selected features as plain values: rank, score, direction and size of the effect, frequency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from zeronorm.design import Design, as_design
from zeronorm.engines._adjusted_scores import adjusted_scores
from zeronorm.engines._cox_scores import score_tests
from zeronorm.engines._error_control import adjust_p_values
from zeronorm.resampling._splits import dense_columns
from zeronorm.resampling.survival._calibration import calibration_slope
from zeronorm.result._record import SelectedFeature
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._problem import Problem
from zeronorm.selection._sample_groups import group_codes, group_means
from zeronorm.selection.target import TimeToEvent
from zeronorm.solvers.linear._cox import risk_sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.result._lists import ListedFeature
    from zeronorm.result._models import LinearModel
    from zeronorm.selection._path import SelectionPath

AFTER_SELECTION = (
    "The p_value and q_value of a feature (in selected.csv and in the report) come from the samples that were also "
    "used to select the feature. Use them for orientation, not as evidence."
)


@dataclass(frozen=True)
class Effects:
    """The effect of each single feature of a table on the target.

    Parameters
    ----------
    class_means : classes by features; None for regression.
    difference : Cohen's d of the second class against the first (two classes), eta squared (more classes), the
        correlation with the target (regression), or the hazard ratio of one standard deviation (survival; NaN for all
        features but those asked for).
    kind : name of the measure in ``difference``.
    fold_change : ratio of the class means where no value is negative and no mean is zero, else NaN.
    p_value : Welch's t test, analysis of variance, or the test of the correlation; with sample groups, of their means;
        the score test of Cox's model, with sample groups with the variance between them.
    q_value : p-value adjusted by the method of Benjamini and Hochberg over all features.
    """

    class_means: NDArray[np.float64] | None
    difference: NDArray[np.float64]
    kind: str
    fold_change: NDArray[np.float64]
    p_value: NDArray[np.float64]
    q_value: NDArray[np.float64]


def univariate_effects(table: Table, columns: Sequence[int] | NDArray[np.intp] = ()) -> Effects:
    """Effects of all features, in one pass over the data; hazard ratios of some ``columns``.

    Samples of one group are not independent: with sample groups the p-values compare the means of the groups, with
    classes those of the samples of each class in a group.
    """
    design, has_classes = as_design(table.X), table.target.has_classes
    if table.target.kind == TimeToEvent.kind:
        return _hazards(design, table.y, columns, table.sample_groups)
    effects = _effects_of(design, table.y, has_classes)
    if table.sample_groups is None:
        return effects
    means, y = group_means(table.sample_groups, table.y, has_classes)
    p_value = np.concatenate(
        [_effects_of(as_design(means(block)), y, has_classes).p_value for _, block in design.iter_blocks()]
    )
    return replace(effects, p_value=p_value, q_value=adjust_p_values(p_value, "benjamini-hochberg"))


def _effects_of(design: Design, y: Any, has_classes: bool) -> Effects:
    if not has_classes:
        return _correlations(design, np.asarray(y, dtype=np.float64))
    classes, codes = np.unique(y, return_inverse=True)
    found = design.column_stats(codes)
    counts = found.count.astype(np.float64)[:, None]
    means, variances = found.class_mean, found.class_variance * counts / np.maximum(counts - 1.0, 1.0)
    blank = np.full(design.n_features, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        if len(classes) == 2:
            difference, p_value = _two_classes(means, variances, counts[:, 0])
            is_ratio = (found.minimum >= 0.0) & (means > 0.0).all(axis=0)
            fold = np.where(is_ratio, means[1] / means[0], np.nan)
            kind = "cohens_d"
        else:
            difference, p_value = _several_classes(found, means, variances, counts)
            fold, kind = blank, "eta_squared"
    return _finished(means, difference, kind, fold, p_value)


def _two_classes(means: Any, variances: Any, counts: Any) -> tuple[Any, Any]:
    """Cohen's d with the pooled standard deviation, and Welch's test."""
    n = counts.sum()
    pooled = np.sqrt(((counts[0] - 1) * variances[0] + (counts[1] - 1) * variances[1]) / (n - 2))
    test = stats.ttest_ind_from_stats(
        means[1],
        np.sqrt(variances[1]),
        counts[1],
        means[0],
        np.sqrt(variances[0]),
        counts[0],
        equal_var=False,
    )
    return (means[1] - means[0]) / pooled, test.pvalue


def _several_classes(found: Any, means: Any, variances: Any, counts: Any) -> tuple[Any, Any]:
    """Share of the variance between the classes, and the F test of one-way analysis of variance."""
    n, q = counts.sum(), len(counts)
    between = (counts * (means - found.mean) ** 2).sum(axis=0)
    within = ((counts - 1) * variances).sum(axis=0)
    ratio = (between / (q - 1)) / (within / (n - q))
    return between / (between + within), stats.f.sf(ratio, q - 1, n - q)


def _correlations(design: Design, y: NDArray[np.float64]) -> Effects:
    n = len(y)
    standard = (y - y.mean()) / y.std()
    r = np.clip(design.standardized().transpose_dot(standard) / n, -1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = r * np.sqrt((n - 2) / (1.0 - r**2))
    p_value = 2.0 * stats.t.sf(np.abs(t), max(1, n - 2))
    return _finished(None, r, "correlation", np.full(design.n_features, np.nan), p_value)


def _hazards(
    design: Design, y: NDArray[Any], columns: Sequence[int] | NDArray[np.intp], groups: Any
) -> Effects:
    """Hazard ratios of single features by Cox's model, and its score test of each."""
    sets = risk_sets(y, np.ones(len(y)))
    slope, variance, _ = score_tests(design, sets)
    if groups is not None:  # the sums of each group vary independently
        codes = group_codes(groups)
        residuals = -sets.at(np.zeros(len(y))).gradient()
        totals = np.zeros((codes.max() + 1, design.n_features))
        for part, block in design.iter_blocks():
            np.add.at(totals[:, part], codes, residuals[:, None] * (block - block.mean(axis=0)))
        variance = np.maximum(variance, (totals**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = stats.chi2.sf(slope**2 / variance, 1)
    ratios = np.full(design.n_features, np.nan)
    for column in columns:
        values = design.block(np.asarray([column]))[:, 0]
        with suppress(ValueError):  # a perfect order of the events, or no variation
            ratios[column] = np.exp(calibration_slope(y, values) * values.std())
    return Effects(None, ratios, "hazard_ratio", np.full(design.n_features, np.nan), *_adjusted(p_value))


def _adjusted(p_value: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The p-values, 1 for features without variation, and their q-values."""
    p_value = np.where(np.isfinite(p_value), p_value, 1.0)
    return p_value, adjust_p_values(p_value, "benjamini-hochberg")


def _finished(means: Any, difference: Any, kind: str, fold: Any, p_value: Any) -> Effects:
    """Features without variation have p = 1; the effect of those that vary only between the classes is infinite."""
    difference = np.where(np.isnan(difference), 0.0, difference)
    return Effects(means, difference, kind, fold, *_adjusted(p_value))


def selected_effects(table: Table, ordered: Any) -> Effects | None:
    """The effects of all features, beside the covariates where there are any; None if nothing is selected."""
    return _beside_covariates(univariate_effects(table, ordered), table) if ordered.size else None


def describe_selected(
    table: Table,
    path: SelectionPath,
    ordered: Any,
    effects: Effects | None,
    frequencies: dict[int, float],
    model: LinearModel | None,
    q_values: NDArray[np.float64] | None = None,
    listed: Sequence[ListedFeature] = (),
) -> list[SelectedFeature]:
    """The selected features, given in the order of the path; ``q_values`` are those of a method that has them."""
    if effects is None:
        return []
    values, scores = dense_columns(table.X, ordered), path.feature_scores()
    weights = None if model is None else model.coefficients
    classes = list(table.class_counts)
    smallest_list = {feature.index: feature.smallest_list for feature in listed}
    features = []
    for position, (index, column) in enumerate(zip(ordered.tolist(), values.T, strict=True)):
        means = None if effects.class_means is None else effects.class_means[:, index]
        features.append(
            SelectedFeature(
                rank=position + 1,
                name=str(table.feature_names[index]),
                column=int(table.source_columns[index]),
                index=index,
                score=_finite(scores[index]),
                mean=float(column.mean()),
                scale=float(column.std()),
                frequency=frequencies.get(index, 0.0),
                class_means=None if means is None else dict(zip(classes, means.tolist(), strict=True)),
                direction=_direction(effects, means, index, classes),
                effect=_finite(effects.difference[index]),
                effect_kind=effects.kind,
                fold_change=_finite(effects.fold_change[index]),
                p_value=float(effects.p_value[index]),
                q_value=float(effects.q_value[index]),
                selection_q_value=None if q_values is None else float(q_values[index]),
                coefficient=None if weights is None else _finite(weights[position]),
                annotation=_annotation_of(table, index),
                smallest_list=smallest_list.get(index, ""),
            )
        )
    return features


def _beside_covariates(effects: Effects, table: Table) -> Effects:
    """The effects with the p-values of what each feature adds to the covariates, where there are any.

    With sample groups there is no such test, and the p-values stay those of the feature alone.
    """
    if table.covariates is None or table.sample_groups is not None:
        return effects
    problem = Problem(as_design(table.X), table.target, adjust=Covariates(table.covariates))
    p_value = adjusted_scores(problem).p_value
    return replace(effects, p_value=p_value, q_value=adjust_p_values(p_value, "benjamini-hochberg"))


def _annotation_of(table: Table, index: int) -> dict[str, str] | None:
    """The descriptions of a feature, by heading."""
    column = int(table.source_columns[index])
    found = {heading: texts[column] for heading, texts in table.annotations.items() if column in texts}
    return found or None


def _direction(effects: Effects, means: Any, index: int, classes: list[str]) -> str:
    """The class in which the feature is higher, or whether it rises with the target or the risk, as text."""
    if effects.kind == "hazard_ratio":
        ratio = effects.difference[index]
        return "raises the risk" if ratio > 1 else "lowers the risk" if ratio < 1 else "none"
    if means is None:
        value = effects.difference[index]
        return "rises with the target" if value > 0 else "falls with the target" if value < 0 else "none"
    if np.ptp(means) == 0.0:
        return "none"
    return f"higher in {classes[int(np.argmax(means))]}"


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
