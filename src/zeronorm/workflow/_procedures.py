"""The procedures that are fitted in every fold: a method with a fixed number of features, or with one chosen inside."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor

from zeronorm._messages import OptionError, parameter, setting
from zeronorm._types import written
from zeronorm.registry import MethodInfo, all_methods, get_method, methods_with
from zeronorm.resampling._metrics import METRICS, Metric, as_metric
from zeronorm.resampling.predictors._cox import RidgeCox
from zeronorm.resampling.predictors._default import (
    class_weight_for,
    default_estimator,
    estimator_beside_covariates,
    gaussian_estimator,
)
from zeronorm.resampling.predictors._units import UNITS, InUnits
from zeronorm.selection.target import TimeToEvent
from zeronorm.workflow._inputs import kept_columns
from zeronorm.workflow._options import Settings

if TYPE_CHECKING:
    from zeronorm.datasets import Table

# Methods inside knockoffs, probes and stability selection if the user names none: the first that supports the task.
PREFERRED = ("cox-score", "zeronorm-svm", "rfe", "fisher", "lasso")
# Families whose methods look at each feature once or solve one convex problem.
FAST_FAMILIES = ("filters", "sparsity")
# Parameters of a selector that are set by options of the run.
SET_BY_THE_RUN = {
    "n_features_to_select": "features",
    "task": "task",
    "feature_groups": "feature_groups",
    "always_keep": "keep",
    "adjust": "adjust",
    "random_state": "random_state",
}
# Meta-methods that choose the number of features themselves, by a bound on false selections.
ERROR_CONTROL = ("dummy-selector", "knockoff-selector", "probe-selector", "stability-selection")
# Those that need no other selector.
WITHOUT_SELECTOR = ("dummy-selector", "knockoff-selector")
# Number of values above which elimination removes a tenth of the features at a time while many remain.
LARGE_TABLE = 2_000_000
DEFAULT_LARGEST = 128
# The scorer of scikit-learn that chooses sizes by the same measure as each metric.
SCORERS = {
    "balanced_error_rate": "balanced_accuracy",
    "error_rate": "accuracy",
    "auc": "roc_auc",
    "mse": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "r2": "r2",
}
RIDGE_COX = "Cox regression with a ridge penalty"
LARGEST_GAUSSIAN = 20_000  # samples, about twelve seconds: the time grows with the square of their number


# -- The predictor ------------------------------------------------------------------------------------


def predictor_of(table: Table, settings: Settings, *, n_covariates: int | None = None) -> Any:
    """The unfitted predictor that the user asked for.

    ``n_covariates`` of its last columns are covariates; None: all of the table.
    """
    is_sparse = hasattr(table.X, "tocsr")
    if not isinstance(settings.predictor, str):
        return settings.predictor
    metric = metrics_of(table, settings)[0]
    kinds = table.target.predictors
    if settings.predictor == "gaussian" and kinds["gaussian"] == kinds["linear"]:
        raise OptionError(
            f"'gaussian' has no model of {table.task}. Use 'linear', or an estimator with fit and predict.",
            "predictor",
        )
    if settings.predictor in ("auto", "linear"):
        if table.covariates is None:
            return default_estimator(
                table.target, n_samples=table.n_samples, is_sparse=is_sparse, metric=metric
            )
        count = table.covariates.shape[1] if n_covariates is None else n_covariates
        return estimator_beside_covariates(table.target, count, is_sparse=is_sparse, metric=metric)
    if table.n_samples > LARGEST_GAUSSIAN:
        raise OptionError(
            f"'gaussian' supports up to {LARGEST_GAUSSIAN} samples; the table has "
            f"{table.n_samples}. Use 'linear' or fewer samples.",
            "predictor",
        )
    return gaussian_estimator(table.target, is_sparse=is_sparse, metric=metric)


def follows_selector(table: Table, settings: Settings) -> bool:
    """Whether a predictor that a method chooses together with its features is used; beside covariates it is not."""
    return table.covariates is None and isinstance(settings.predictor, str) and settings.predictor == "auto"


def described_predictor(table: Table, settings: Settings, chosen: Any = None) -> str:
    """The predictor in a few words, for the methods section of the report.

    ``chosen`` is the predictor that the method has chosen together with its features on all samples.
    """
    if follows_selector(table, settings) and chosen is not None:
        return f"{_described_choice(chosen)}, a choice that was repeated in every fold,"
    if not isinstance(settings.predictor, str):
        return " ".join(repr(settings.predictor).split())
    if table.target.kind == TimeToEvent.kind:
        return RIDGE_COX
    if not table.target.has_classes:
        return (
            "support vector regression, Gaussian kernel,"
            if settings.predictor == "gaussian"
            else "ridge regression"
        )
    kind = "a linear support vector machine"
    if table.covariates is not None:
        kind = "logistic regression"
    if settings.predictor == "gaussian":
        kind = "a support vector machine with a Gaussian kernel"
    metric = metrics_of(table, settings)[0]
    if class_weight_for(metric) == "balanced":
        return f"{kind} with balanced class weights, as the {metric.text} counts all classes the same,"
    if metric.name == "auc":
        return f"{kind} without class weights, whose decision values rank the samples,"
    return f"{kind} without class weights"


def _described_choice(chosen: Any) -> str:
    """A predictor of auto in a few words."""
    if isinstance(chosen, InUnits):
        return f"{_described_choice(chosen.predictor)} on the {UNITS[chosen.units].text}"
    if isinstance(chosen, RidgeCox):
        return f"{RIDGE_COX} (C = {chosen.C:g})"
    if not hasattr(chosen, "kernel"):
        return "ridge regression" if is_regressor(chosen) else "a linear support vector machine"
    kind = (
        "a linear support vector machine"
        if chosen.kernel == "linear"
        else "a support vector machine with a Gaussian kernel"
    )
    weights = "with" if chosen.class_weight == "balanced" else "without"
    return f"{kind} (C = {chosen.C:g}) {weights} balanced class weights"


def predictor_notes(settings: Settings) -> list[str]:
    """A note on the predictor, if it is not the default."""
    if isinstance(settings.predictor, str) and settings.predictor in ("auto", "linear"):
        return []
    name = (
        "a support vector machine with a Gaussian kernel"
        if settings.predictor == "gaussian"
        else " ".join(repr(settings.predictor).split())
    )
    return [f"All errors are those of {name} on the selected features."]


def _scorer(table: Table, settings: Settings) -> Any:
    """The predictor for choices inside the folds; None for the default, which the selector creates itself."""
    return None if follows_selector(table, settings) else predictor_of(table, settings)


# -- Methods by name ----------------------------------------------------------------------------------


def usable_methods(table: Table) -> dict[str, MethodInfo]:
    """Selectors that support the task of the table, by name."""
    return {info.name: info for info in all_methods("selector", task=table.target.kind)}


def default_method(table: Table) -> str:
    """The method used if none is named: auto, if it has candidates for the data."""
    return "auto" if candidates(table) else _single_method(table)


def default_notes(table: Table) -> list[str]:
    """A note on what is done if no method is named."""
    from zeronorm.selectors.meta._auto import NOT_REFINED, consensus_text

    methods = candidates(table)
    if not methods:
        return []
    names = consensus_text(methods, is_refined=table.target.kind != NOT_REFINED)
    nonlinear = (
        ", or by relief with a Gaussian support vector machine if that is clearly better inside the folds"
        if table.target.has_classes
        else ""
    )
    return [
        f"No method was named, so auto ranks the features by {names}{nonlinear}. That takes up to 100 times as "
        "long as the slowest of them, or longer with small tables; name a method to save time."
    ]


def candidates(table: Table) -> list[str]:
    """The methods among which auto chooses for such a table."""
    from zeronorm.selectors.meta._auto import names_of_candidates

    usable = usable_methods(table)
    names = names_of_candidates(table.target.kind, is_adjusted=table.covariates is not None)
    return [name for name in names if name in usable]


def _single_method(table: Table) -> str:
    usable = usable_methods(table)
    return next(name for name in (*PREFERRED, *usable) if name in usable)


def named_methods(methods: Any, table: Table) -> list[str]:
    """The methods of a comparison, from a list, names separated by commas, "all-fast", or None for two fast ones."""
    if methods is None:
        return ["cox-score", "rfe"] if table.target.kind == TimeToEvent.kind else ["fisher", "rfe"]
    if methods == "all-fast":
        return [name for name, info in usable_methods(table).items() if info.family in FAST_FAMILIES]
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    names = [name.strip() for name in names if name.strip()]
    if not names:
        raise OptionError(
            "is empty. Name methods, such as fisher,rfe, or all-fast for all fast ones.",
            "methods",
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise OptionError(f"names {repeated[0]!r} twice. Name each method once.", "methods")
    return names


def build_procedure(
    name: str, table: Table, settings: Settings, sizes: list[int], params: Mapping[str, Any] | None = None
) -> Any:
    """The method with a number of features that is fixed, chosen by cross-validation, or chosen by its error control.

    Every ``random_state`` is left unset, so that each fold gets a fresh seed; see ``fold_seeds``.
    """
    params = settings.params if params is None else params
    info = get_method(name)
    _check_serves(info, table)
    if name == "auto":
        return _auto_procedure(table, settings, sizes, params)
    if name == "selector-cv":
        raise OptionError(
            "The method 'selector-cv' chooses the number of features of another method. Name that method and set "
            f"{setting('features', 'auto')}."
        )
    if name in ERROR_CONTROL:
        return _error_control_procedure(info, table, settings, params)
    selector = build_selector(info, table, settings, params)
    return selector if settings.features is not None else _with_chosen_size(selector, table, settings, sizes)


def _check_serves(info: MethodInfo, table: Table) -> None:
    if info.kind not in ("selector", "meta"):
        raise ValueError(
            f"The method {info.name!r} is a {info.kind}, not a selector. Use one of "
            f"{_names_that_serve(table)}."
        )
    if table.target.kind not in info.tasks:
        raise ValueError(
            f"The method {info.name!r} supports {', '.join(info.tasks)}, but the task is {table.target.kind}. "
            f"Use one of {_names_that_serve(table)}."
        )


def _names_that_serve(table: Table) -> str:
    """Names of all methods that support the task, the default first."""
    return ", ".join(dict.fromkeys((default_method(table), *usable_methods(table))))


def build_selector(info: MethodInfo, table: Table, settings: Settings, params: Mapping[str, Any]) -> Any:
    """A selector with the settings of the run that it has parameters for, and with the ``params`` of the user."""
    selector = info.cls()
    known = selector.get_params(deep=False)
    own = _checked_params(params, known, info.name)
    keep = kept_columns(table, settings.keep)
    wanted: dict[str, Any] = {
        "n_features_to_select": settings.features,
        "task": table.task,
        "feature_groups": _groups_of_columns(table),
        "always_keep": keep or None,
        "adjust": covariates_of(table),
    }
    for needed, name, given in (
        ("always_keep", "keep", bool(keep)),
        ("feature_groups", "feature_groups", settings.has_own_groups),
        ("adjust", "adjust", table.covariates is not None),
        ("units", "units", settings.units != "auto"),
    ):
        if given and needed not in known:
            raise OptionError(
                f"does not apply to the method {info.name!r}, which has no {needed}. Choose another method"
                f"{': ' + _names_with(needed, table) if needed in ('adjust', 'units') else ''}.",
                name,
            )
    if "step" in known and table.n_samples * table.n_features > LARGE_TABLE:
        wanted["step"] = 0.1
    chosen = {key: value for key, value in wanted.items() if value is not None and key in known}
    return selector.set_params(**{**chosen, **own})


def covariates_of(table: Table) -> list[int] | None:
    """The parameter ``adjust`` of selectors that are fitted on features and covariates; None without covariates."""
    return table.positions_of_covariates.tolist() if table.covariates is not None else None


def _groups_of_columns(table: Table) -> Any:
    """The groups of features, with a group of its own for each covariate."""
    groups = table.feature_groups
    if groups is None or table.covariates is None:
        return groups
    return np.concatenate([groups, groups.max() + 1 + np.arange(len(table.covariate_names))])


def _names_with(parameter_name: str, table: Table) -> str:
    """Names of the methods that have a parameter and support the task."""
    usable = usable_methods(table)
    return ", ".join(info.name for info in methods_with(parameter_name) if info.name in ("auto", *usable))


def _checked_params(params: Mapping[str, Any], known: Mapping[str, Any], name: str) -> dict[str, Any]:
    free = [key for key in known if key not in (*SET_BY_THE_RUN, "verbose")]
    for key in params:
        if key in SET_BY_THE_RUN:
            raise OptionError(
                f"must not hold {key!r}, which is an option of the whole run. Use "
                f"{parameter(SET_BY_THE_RUN[key], 'the name')} instead.",
                "params",
            )
        if key not in known:
            alike = [other for other in free if other.casefold() == key.casefold()]
            close = alike or difflib.get_close_matches(key, free, n=2)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"It has {', '.join(sorted(free))}."
            raise ValueError(f"The method {name!r} has no parameter {key!r}. {hint}")
    return dict(params)


def _with_chosen_size(selector: Any, table: Table, settings: Settings, sizes: list[int]) -> Any:
    return get_method("selector-cv").cls(
        selector,
        estimator=_scorer(table, settings),
        cv=inner_folds(table, settings),
        rule=settings.rule,
        sizes=sizes,
        scoring=scorer_name(table, settings),
    )


def inner_folds(table: Table, settings: Settings) -> int:
    """Number of inner folds: as many as outer ones, or as many as the smallest class has training samples."""
    counts = [table.target.fewest_in_folds()]
    if table.sample_groups is not None:
        counts.append(len(np.unique(table.sample_groups.astype(str))))
    fewest = min(counts)
    left = fewest - -(-fewest // settings.cv)  # without the largest test fold
    if left < 2:
        raise OptionError(
            "The training samples of a fold hold one sample of the smallest class, one event, or one group of samples: "
            "too few to choose a method or a number of features inside the folds. Name a method and set "
            f"{parameter('features', 'object')} to a number, or add samples."
        )
    return min(settings.cv, left)


def folds_of_auto(table: Table, settings: Settings) -> int:
    """Number of folds in which auto compares its methods."""
    from zeronorm.engines.pipeline_choice._inner_folds import usual_folds

    return min(inner_folds(table, settings), usual_folds(table.n_samples, table.sample_groups))


def inner_notes(table: Table, settings: Settings, method: str) -> list[str]:
    """A note if there are fewer inner folds than outer ones."""
    if method in ERROR_CONTROL or (settings.features is not None and method != "auto"):
        return []
    n_folds = inner_folds(table, settings)
    if n_folds == settings.cv:
        return []
    return [
        f"Choices inside the outer folds are based on {n_folds} inner folds: there are too few samples for "
        f"{settings.cv}."
    ]


def _auto_procedure(table: Table, settings: Settings, sizes: list[int], params: Mapping[str, Any]) -> Any:
    info = get_method("auto")
    if params:
        raise OptionError("does not apply to the method 'auto'. Name a method.", "params")
    if settings.units not in ("auto", "standardized") and not follows_selector(table, settings):
        remedy = f"Use {setting('predictor', 'auto')}"
        if table.covariates is not None:
            remedy = f"Covariates have another one; leave {parameter('adjust', 'object')} out"
        raise OptionError(
            f"{settings.units!r} needs the predictor that auto chooses in the same units. {remedy}.", "units"
        )
    keep = kept_columns(table, settings.keep)
    return info.cls(
        n_features_to_select=settings.features,
        task=table.task,
        estimator=_scorer(table, settings),
        cv=folds_of_auto(table, settings),
        units=settings.units,
        rule=settings.rule,
        sizes=None if settings.max_features is None else sizes,
        scoring=scorer_name(table, settings),
        always_keep=keep or None,
        feature_groups=_groups_of_columns(table),
        adjust=covariates_of(table),
    )


def _error_control_procedure(
    info: MethodInfo, table: Table, settings: Settings, params: Mapping[str, Any]
) -> Any:
    """Dummies, or knockoffs, probes or stability selection around another method (``selector``, by name)."""
    for name, given in (
        ("keep", settings.keep),
        ("feature_groups", settings.has_own_groups),
        ("units", settings.units != "auto"),
    ):
        if given:
            raise OptionError(f"does not apply to the method {info.name!r}. Choose another method.", name)
    own = dict(params)
    if table.covariates is not None and info.name in WITHOUT_SELECTOR:
        raise OptionError(
            f"does not apply to the method {info.name!r}. Use probe-selector or stability-selection instead.",
            "adjust",
        )
    if "selector" not in own and info.name in WITHOUT_SELECTOR:
        return _configured(info, info.cls(task=table.task), own, settings)
    wrapped = str(own.pop("selector", _single_method(table)))
    inner = get_method(wrapped)
    if inner.kind != "selector":
        raise ValueError(
            f"The 'selector' of {info.name!r} must be the name of a selector. Got {written(wrapped)}."
        )
    _check_serves(inner, table)
    plain = Settings()
    selector = build_selector(inner, _without_groups(table), plain, {})
    return _configured(info, info.cls(selector), own, settings)


def _configured(info: MethodInfo, found: Any, own: dict[str, Any], settings: Settings) -> Any:
    """The selector with the parameters of the user and the number of features of the run."""
    own = _checked_params(own, found.get_params(deep=False), info.name)
    if settings.features is not None:
        own["n_features_to_select"] = settings.features
    return found.set_params(**own)


def _without_groups(table: Table) -> Table:
    return replace(table, feature_groups=None)


def scorer_name(table: Table, settings: Settings) -> str:
    """The scikit-learn scorer that chooses sizes inside the folds."""
    metric = primary_metric_of(table, settings)
    if metric == "auc" and len(table.class_counts) > 2:
        return "roc_auc_ovr"
    return SCORERS.get(metric, metric)


def primary_metric_of(table: Table, settings: Settings) -> str:
    """The metric that is reported and optimised: the one that the user set, or the default of the task."""
    return settings.metric or _usual_metrics(table)[0]


def metrics_of(table: Table, settings: Settings) -> tuple[Metric, ...]:
    """The recorded metrics, the primary one first: the one that the user set, or those of the target."""
    names = _usual_metrics(table) if settings.metric is None else [settings.metric]
    try:
        found = tuple(as_metric(name) for name in names)
    except ValueError as error:
        raise OptionError(
            f"names {written(settings.metric)}, which is not known. Use one of {_suitable_metrics(table)} or the name "
            "of a scikit-learn scorer, such as f1_macro.",
            "metric",
        ) from error
    if any(table.task not in metric.tasks for metric in found):
        raise unsuitable_metric(names[0], table)
    return found


def _usual_metrics(table: Table) -> list[str]:
    """The metrics that are recorded for the target if none is named, the default first."""
    return [name for name in METRICS if name in table.target.metrics]


def unsuitable_metric(name: str, table: Table) -> OptionError:
    """The error for a metric that cannot be computed for the target or the predictor."""
    return OptionError(
        f"names {name!r}, which cannot be computed here: it does not suit a {table.task}, or it needs probabilities, "
        f"which the predictor does not give. Use one of {_suitable_metrics(table)}.",
        "metric",
    )


def _suitable_metrics(table: Table) -> str:
    """The names of built-in and registered metrics that support the task."""
    return ", ".join(sorted(name for name, metric in METRICS.items() if table.task in metric.tasks))


# -- Sizes --------------------------------------------------------------------------------------------


def sizes_to_try(table: Table, settings: Settings) -> list[int]:
    """Numbers of features at which the error is measured, with growing distances.

    The smallest has room for the forced features and the largest group; the largest is well above the number asked for.
    """
    from zeronorm.selectors.meta._auto import usual_sizes

    p = table.n_features
    if settings.features is not None and settings.features > p:
        raise OptionError(
            f"asks for {settings.features} features, but the table has {p}. Ask for at most {p}.",
            "features",
        )
    smallest = max(1, len(kept_columns(table, settings.keep)))
    if table.feature_groups is not None:
        smallest = max(smallest, int(np.bincount(table.feature_groups).max()))
    if settings.max_features is not None:
        largest = settings.max_features
    elif settings.features is not None:
        largest = max(4 * settings.features, 16)
    else:
        largest = DEFAULT_LARGEST
    smallest = min(smallest, p)
    largest = min(max(largest, smallest, settings.features or 1), p)
    return sorted({max(int(size), smallest) for size in usual_sizes(p, largest)})
