"""What is fitted on every training part: a method with a fixed size, or with a size chosen inside."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._types import written
from zeronorm.registry import MethodInfo, all_methods, get_method
from zeronorm.resampling.predictors.default import default_estimator, gaussian_estimator
from zeronorm.workflow.inputs import kept_columns, names_of

if TYPE_CHECKING:
    from zeronorm.datasets import Table

# Methods inside knockoffs, probes and stability selection when the user names none: the first that serves the task.
PREFERRED = ("zeronorm-svm", "rfe", "fisher", "lasso")
# Families whose methods look at each feature once or solve one convex problem.
FAST_FAMILIES = ("filters", "sparsity")
# Parameters of a selector that follow from parameters of the run.
SET_BY_THE_RUN = {
    "n_features_to_select": "features",
    "task": "task",
    "feature_groups": "feature_groups",
    "always_keep": "keep",
    "random_state": "random_state",
}
# Meta methods that choose their own number of features, by a bound on false selections.
ERROR_CONTROL = ("knockoff-selector", "probe-selector", "stability-selection")
# Above this many cells, elimination removes a tenth of the features at a time while many remain.
LARGE_TABLE = 2_000_000
LENGTH_OF_GRID = 12
DEFAULT_LARGEST = 128
# Scorers of scikit-learn that rank sizes as our metrics rank results.
SCORERS = {
    "balanced_error_rate": "balanced_accuracy",
    "error_rate": "accuracy",
    "auc": "roc_auc",
    "mse": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "r2": "r2",
}
OF_REGRESSION = ("mse", "mae", "r2")
DEFAULT_METRICS = {"classification": ("balanced_error_rate", "error_rate"), "regression": ("mse", "r2")}
RULES = ("one_se", "best")
PREDICTORS = ("linear", "gaussian")
LARGEST_GAUSSIAN = (
    20_000  # samples: the time of a Gaussian machine grows with their square, here to some twelve seconds
)


@dataclass(frozen=True)
class Settings:
    """What the user asks of the procedure; ``features`` None chooses the number by cross-validation."""

    features: int | None = None
    max_features: int | None = None
    rule: str = "one_se"
    metric: str | None = None
    predictor: Any = "linear"
    cv: int = 5
    repeats: int = 1
    permutations: int | str = "auto"
    random_state: int = 0
    n_jobs: int | None = None
    keep: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    has_own_groups: bool = False
    verbose: bool = False

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Settings:
        """The settings in ``options``, removed from them and checked."""
        given = {f.name: options.pop(f.name) for f in fields(cls) if f.name in options}
        given["features"] = parse_features(given.get("features", "auto"))
        given["keep"] = names_of(given.get("keep"))
        given["params"] = dict(given.get("params") or {})
        found = cls(**given)
        for name, least in (("cv", 2), ("repeats", 1), ("random_state", 0), ("max_features", 1)):
            value = getattr(found, name)
            if value is None and name == "max_features":
                continue
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"The '{name}' parameter must be a whole number of at least {least}. Got {written(value)}."
                )
        if found.rule not in RULES:
            raise ValueError(
                f"The 'rule' parameter must be one of {RULES}. Got {written(found.rule)} instead."
            )
        check_permutations(found.permutations)
        check_predictor(found.predictor)
        return found


def parse_features(features: Any) -> int | None:
    """A count, or None for "auto"."""
    if features is None or features == "auto":
        return None
    try:
        count = int(features)
    except (ValueError, TypeError):
        count = 0
    if count < 1 or count != float(features):
        raise ValueError(
            f"The 'features' parameter must be a count of at least 1, or 'auto'. Got {written(features)} instead."
        )
    return count


def check_permutations(permutations: Any) -> None:
    """A count from 0, or "auto"."""
    is_count = isinstance(permutations, numbers.Integral) and not isinstance(permutations, bool)
    if permutations != "auto" and not (is_count and permutations >= 0):
        raise ValueError(
            f"The 'permutations' parameter must be a count (0 for none) or 'auto'. Got {written(permutations)} instead."
        )


# -- The predictor ------------------------------------------------------------------------------------


def check_predictor(predictor: Any) -> None:
    """A known name, or an estimator of the scikit-learn kind."""
    is_estimator = not isinstance(predictor, type) and all(
        hasattr(predictor, name) for name in ("fit", "predict", "get_params")
    )
    if not is_estimator and (not isinstance(predictor, str) or predictor not in PREDICTORS):
        raise ValueError(
            f"The 'predictor' parameter must be one of {PREDICTORS} or an estimator with fit and predict. Got "
            f"{written(predictor)} instead."
        )


def predictor_of(table: Table, settings: Settings) -> Any:
    """The predictor, not fitted, that the user asked for."""
    is_sparse = hasattr(table.X, "tocsr")
    if not isinstance(settings.predictor, str):
        return settings.predictor
    if settings.predictor == "linear":
        return default_estimator(table.task, n_samples=table.n_samples, is_sparse=is_sparse)
    if table.n_samples > LARGEST_GAUSSIAN:
        raise ValueError(
            f"The 'predictor' parameter 'gaussian' serves up to {LARGEST_GAUSSIAN} samples; the table has "
            f"{table.n_samples}. Use 'linear' or fewer samples."
        )
    return gaussian_estimator(table.task, is_sparse=is_sparse)


def predictor_notes(settings: Settings) -> list[str]:
    """What predicts, where it is not the default."""
    if settings.predictor == "linear":
        return []
    name = (
        "a support vector machine with a Gaussian kernel"
        if settings.predictor == "gaussian"
        else " ".join(repr(settings.predictor).split())
    )
    return [f"All errors are those of {name} on the selected features."]


def _judge(table: Table, settings: Settings) -> Any:
    """The predictor for choices inside the folds; None where the default fits itself to each training part."""
    return None if settings.predictor == "linear" else predictor_of(table, settings)


# -- Methods by name ----------------------------------------------------------------------------------


def task_kind(table: Table) -> str:
    """The task in the registry's words."""
    if table.task == "regression":
        return "regression"
    return "binary" if len(table.class_counts) == 2 else "multiclass"


def usable_methods(table: Table) -> dict[str, MethodInfo]:
    """Selectors that serve the task of the table, by name."""
    return {info.name: info for info in all_methods("selector") if task_kind(table) in info.tasks}


def default_method(table: Table) -> str:
    """The method used when none is named: auto, where methods of its roster serve the data."""
    return "auto" if roster(table) else _single_method(table)


def default_notes(table: Table) -> list[str]:
    """What the choice of no method means, in words."""
    methods = roster(table)
    if not methods:
        return []
    names = f"{', '.join(methods[:-1])} and {methods[-1]}" if len(methods) > 1 else methods[0]
    return [
        f"No method was named, so auto compares {names} inside the training parts. That takes up to ten times as "
        "long as the slowest of them, more with small tables; name one to save time."
    ]


def roster(table: Table) -> list[str]:
    """The methods among which auto chooses for such a table."""
    from zeronorm.selectors.meta.auto import names_of_roster

    usable = usable_methods(table)
    return [name for name in names_of_roster(table.task) if name in usable]


def _single_method(table: Table) -> str:
    usable = usable_methods(table)
    return next(name for name in (*PREFERRED, *usable) if name in usable)


def named_methods(methods: Any, table: Table) -> list[str]:
    """The methods of a comparison: names, a text of names with commas, "all-fast", or None for two quick ones."""
    if methods is None:
        return ["fisher", "rfe"]
    if methods == "all-fast":
        return [name for name, info in usable_methods(table).items() if info.family in FAST_FAMILIES]
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    names = [name.strip() for name in names if name.strip()]
    if not names:
        raise ValueError(
            "The 'methods' parameter is empty. Name methods, such as fisher,rfe, or all-fast for all quick ones."
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"The 'methods' parameter names {repeated[0]!r} twice. Name each method once.")
    return names


def build_procedure(
    name: str, table: Table, settings: Settings, sizes: list[int], params: Mapping[str, Any] | None = None
) -> Any:
    """The method with its size fixed, chosen by cross-validation, or chosen by its own error control.

    Every ``random_state`` stays unset, so that each fold gets a fresh seed; see ``fold_seeds``.
    """
    params = settings.params if params is None else params
    info = get_method(name)
    _check_serves(info, table)
    if name == "auto":
        return _auto_procedure(table, settings, sizes, params)
    if name == "selector-cv":
        raise ValueError(
            "The method 'selector-cv' chooses the number of features of another method. Name that method and set "
            "features='auto'."
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
    if task_kind(table) not in info.tasks:
        raise ValueError(
            f"The method {info.name!r} serves {', '.join(info.tasks)}, but the task is {task_kind(table)}. "
            f"Use one of {_names_that_serve(table)}."
        )


def _names_that_serve(table: Table) -> str:
    """All of them, the default first: a list that ends before the usual ones would mislead."""
    return ", ".join(dict.fromkeys((default_method(table), *usable_methods(table))))


def build_selector(info: MethodInfo, table: Table, settings: Settings, params: Mapping[str, Any]) -> Any:
    """A selector set up for the table: settings where it has the parameter, the user's own ``params``."""
    selector = info.cls()
    known = selector.get_params(deep=False)
    own = _checked_params(params, known, info.name)
    keep = kept_columns(table, settings.keep)
    wanted: dict[str, Any] = {
        "n_features_to_select": settings.features,
        "task": table.task,
        "feature_groups": table.feature_groups,
        "always_keep": keep or None,
    }
    for parameter, setting, given in (
        ("always_keep", "keep", bool(keep)),
        ("feature_groups", "feature_groups", settings.has_own_groups),
    ):
        if given and parameter not in known:
            raise ValueError(
                f"The '{setting}' parameter does not apply to the method {info.name!r}, which has no {parameter}. "
                "Choose another method."
            )
    if "step" in known and table.n_samples * table.n_features > LARGE_TABLE:
        wanted["step"] = 0.1
    chosen = {key: value for key, value in wanted.items() if value is not None and key in known}
    return selector.set_params(**{**chosen, **own})


def _checked_params(params: Mapping[str, Any], known: Mapping[str, Any], name: str) -> dict[str, Any]:
    free = [key for key in known if key not in (*SET_BY_THE_RUN, "verbose")]
    for key in params:
        if key in SET_BY_THE_RUN:
            raise ValueError(
                f"The 'params' parameter must not hold {key!r}: the whole run has to know it. Use the parameter "
                f"'{SET_BY_THE_RUN[key]}' instead."
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
        estimator=_judge(table, settings),
        cv=inner_folds(table, settings),
        rule=settings.rule,
        sizes=sizes,
        scoring=scorer_name(table, settings),
    )


def inner_folds(table: Table, settings: Settings) -> int:
    """Folds inside the training parts: as many as outside, or as few as their smallest class has samples."""
    counts = list(table.class_counts.values()) if table.task == "classification" else [table.n_samples]
    if table.sample_groups is not None:
        counts.append(len(np.unique(table.sample_groups.astype(str))))
    fewest = min(counts)
    left = fewest - -(-fewest // settings.cv)  # without the largest test part
    if left < 2:
        raise ValueError(
            "The training parts hold one sample of the smallest class, or one group of samples: too few to choose a "
            "method or a number of features inside them. Name a method and set the 'features' parameter to a number, "
            "or add samples."
        )
    return min(settings.cv, left)


def folds_of_auto(table: Table, settings: Settings) -> int:
    """Folds in which auto compares its methods."""
    from zeronorm.selectors.meta.auto import usual_folds

    return min(inner_folds(table, settings), usual_folds(table.n_samples, table.sample_groups))


def inner_notes(table: Table, settings: Settings, method: str) -> list[str]:
    """What is said where the folds inside are fewer than those outside."""
    if method in ERROR_CONTROL or (settings.features is not None and method != "auto"):
        return []
    n_folds = inner_folds(table, settings)
    if n_folds == settings.cv:
        return []
    return [
        f"Choices inside the training parts rest on {n_folds} folds: there are too few samples for {settings.cv}."
    ]


def _auto_procedure(table: Table, settings: Settings, sizes: list[int], params: Mapping[str, Any]) -> Any:
    info = get_method("auto")
    if params:
        raise ValueError("The 'params' parameter does not apply to the method 'auto'. Name a method.")
    keep = kept_columns(table, settings.keep)
    return info.cls(
        n_features_to_select=settings.features,
        task=table.task,
        estimator=_judge(table, settings),
        cv=folds_of_auto(table, settings),
        rule=settings.rule,
        sizes=sizes,
        scoring=scorer_name(table, settings),
        always_keep=keep or None,
        feature_groups=table.feature_groups,
    )


def _error_control_procedure(
    info: MethodInfo, table: Table, settings: Settings, params: Mapping[str, Any]
) -> Any:
    """Knockoffs, probes or stability selection around another method (parameter ``selector``, by name)."""
    for name, given in (("keep", settings.keep), ("feature_groups", settings.has_own_groups)):
        if given:
            raise ValueError(
                f"The '{name}' parameter does not apply to the method {info.name!r}. Choose another method."
            )
    own = dict(params)
    wrapped = str(own.pop("selector", _single_method(table)))
    inner = get_method(wrapped)
    if inner.kind != "selector":
        raise ValueError(
            f"The 'selector' of {info.name!r} must be the name of a selector. Got {written(wrapped)}."
        )
    _check_serves(inner, table)
    plain = Settings()
    selector = build_selector(inner, _without_groups(table), plain, {})
    found = info.cls(selector)
    own = _checked_params(own, found.get_params(deep=False), info.name)
    if settings.features is not None:
        own["n_features_to_select"] = settings.features
    return found.set_params(**own)


def _without_groups(table: Table) -> Table:
    from dataclasses import replace

    return replace(table, feature_groups=None)


def scorer_name(table: Table, settings: Settings) -> str:
    """The scikit-learn scorer that chooses sizes inside the folds."""
    metric = primary_metric_of(table, settings)
    if metric == "auc" and len(table.class_counts) > 2:
        return "roc_auc_ovr"
    return SCORERS.get(metric, metric)


def primary_metric_of(table: Table, settings: Settings) -> str:
    """The metric that everything is about: the user's, or the default of the task."""
    return settings.metric or DEFAULT_METRICS[table.task][0]


def metrics_of(table: Table, settings: Settings) -> list[str]:
    """The metrics that are recorded: the user's, or those of the task."""
    from zeronorm.resampling.metrics import parse_metrics

    names = list(DEFAULT_METRICS[table.task]) if settings.metric is None else [settings.metric]
    try:
        parse_metrics(names, table.task)
    except ValueError as error:
        raise ValueError(
            f"The 'metric' parameter names {written(settings.metric)}, which is not known. Use one of "
            f"{', '.join(sorted(SCORERS))} or the name of a scikit-learn scorer, such as f1_macro."
        ) from error
    if settings.metric in SCORERS and (settings.metric in OF_REGRESSION) != (table.task == "regression"):
        raise unsuitable_metric(settings.metric, table)
    return names


def unsuitable_metric(name: str, table: Table) -> ValueError:
    """The error for a metric that cannot be computed for the target or the predictor."""
    suitable = [own for own in SCORERS if (own in OF_REGRESSION) == (table.task == "regression")]
    return ValueError(
        f"The 'metric' parameter names {name!r}, which cannot be computed here: it does not suit a {table.task}, or it "
        f"needs probabilities, which the predictor does not give. Use one of {', '.join(sorted(suitable))}."
    )


# -- Sizes --------------------------------------------------------------------------------------------


def sizes_to_try(table: Table, settings: Settings) -> list[int]:
    """Numbers of features at which the error is measured: few at first, then wider apart.

    They start where the forced features and the largest group fit, and end well above the number asked for.
    """
    p = table.n_features
    if settings.features is not None and settings.features > p:
        raise ValueError(
            f"The 'features' parameter asks for {settings.features} features, but the table has {p}. Ask for at "
            f"most {p}."
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
    grid = np.geomspace(smallest, largest, LENGTH_OF_GRID).round().astype(int)
    return sorted({int(size) for size in grid})
