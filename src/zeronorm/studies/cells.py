"""One cell of a study: one arm on one trial, all sizes."""

from __future__ import annotations

import time
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from zeronorm import __version__
from zeronorm.evaluation.fingerprint import digest
from zeronorm.evaluation.protocol import evaluate
from zeronorm.evaluation.records import columns_of
from zeronorm.selectors.registry import get_method
from zeronorm.studies.study import Arm, Data, Plan, StudyError

Row = dict[str, Any]
Cell = dict[str, Any]
METHOD_PREFIX = "method:"
DROPPED = ("method", "split", "decision", "test_rows")


def build_selector(arm: Arm) -> Any:
    """The selector of an arm; keeping all features is a random order asked for all of them."""
    if arm.factory is not None:
        return arm.factory()
    if arm.method is None:
        return get_method("random").cls(random_state=0)
    params = {name: _resolved(value) for name, value in arm.params.items()}
    return get_method(arm.method).cls(**params)


def build_estimator(arm: Arm, plan: Plan) -> Any:
    """The predictor of an arm."""
    chosen = plan.estimator if arm.estimator is None else arm.estimator
    return _resolved(chosen)


def _resolved(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(METHOD_PREFIX):
        return get_method(value.removeprefix(METHOD_PREFIX)).cls()
    return value


def required_methods(arm: Arm, plan: Plan) -> set[str]:
    """Registry names an arm needs."""
    named = {
        value.removeprefix(METHOD_PREFIX)
        for value in (*arm.params.values(), arm.estimator, plan.estimator)
        if isinstance(value, str) and value.startswith(METHOD_PREFIX)
    }
    return named | ({arm.method} if arm.method is not None else set())


def sizes_for(arm: Arm, plan: Plan, n_features: int) -> tuple[int | None, ...]:
    """Sizes asked of an arm; sizes beyond the number of features are not asked."""
    if arm.keeps_all:
        return (n_features,)
    listed = plan.sizes if arm.sizes is None else arm.sizes
    return tuple(size for size in listed if size is None or size <= n_features)


def metrics_for(arm: Arm, plan: Plan) -> tuple[Any, ...]:
    """Measures of an arm."""
    return plan.metrics if arm.metrics is None else arm.metrics


def cell_key(study: str, plan: Plan, data: Data, arm: Arm, trial: int) -> str:
    """The name of a cell in the journal: the same work has the same name."""
    return digest(
        __version__,
        study,
        data.label,
        data.version,
        trial,
        build_selector(arm),
        build_estimator(arm, plan),
        plan.sizes if arm.sizes is None else arm.sizes,
        [metric if isinstance(metric, str) else metric.name for metric in metrics_for(arm, plan)],
    )


def run_cell(plan: Plan, data: Data, arm: Arm, trial: int) -> Cell:
    """Measure one arm on one trial. What fails inside is recorded, not raised."""
    started = time.perf_counter()
    drawn = data.draw(trial)
    sizes = sizes_for(arm, plan, int(drawn.X.shape[1]))
    if not sizes:
        raise StudyError(f"Arm {arm.label!r} has no size that fits the features of {data.label!r}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        records = evaluate(
            {arm.label: build_selector(arm)},
            drawn.X,
            drawn.y,
            cv=[(drawn.train, drawn.test)],
            sizes=sizes,
            estimator=build_estimator(arm, plan),
            metrics=metrics_for(arm, plan),
            random_state=trial,
        )
    columns = columns_of(records)
    rows = [
        {name: values[i] for name, values in columns.items() if name not in DROPPED}
        for i in range(len(columns["size"]))
    ]
    for row in rows:
        row["asked_size"] = None if arm.keeps_all else row["size"]
    return {"rows": rows, "seconds": time.perf_counter() - started}


def failed_cell(plan: Plan, arm: Arm, reason: str, cap_s: float | None = None) -> Cell:
    """A cell without results: a timeout, or a process that died."""
    sizes = (None,) if arm.keeps_all else (plan.sizes if arm.sizes is None else arm.sizes)
    rows: list[Row] = [{"asked_size": size, "error": reason, "selected": None} for size in sizes]
    return {"rows": rows, "cap_s": cap_s}
