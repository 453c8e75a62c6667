"""What the features add to covariates: three models on the same folds, their difference, and its test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import Message, parameter
from zeronorm.datasets._encoding import column_medians, fill
from zeronorm.engines._conditional_targets import ConditionalTargets
from zeronorm.evaluation._records import columns_of, own_rows_of
from zeronorm.evaluation.significance import compare_methods
from zeronorm.result._sentences import LEVEL
from zeronorm.selection._covariates import Covariates, check_room
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._chance import NoFeatures, direction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.selection._problem import RunBar
    from zeronorm.workflow._options import SelectOptions, Settings

COVARIATES, FEATURES = "covariates alone", "features alone"
LABELS_PERMUTED = "labels are permuted with the probabilities of a logistic regression on the covariates"
PERMUTED = {
    "binary": LABELS_PERMUTED,
    "multiclass": LABELS_PERMUTED,
    "regression": "the residuals of a regression on the covariates are permuted",
    "survival": (
        "times and events are permuted together, with the probabilities of two Cox regressions on the covariates, one "
        "of the event and one of the censoring"
    ),
}


# -- The three models ---------------------------------------------------------------------------------


def covariate_records(table: Table, settings: Settings, y: Any = None) -> Any:
    """Records of the predictor on the covariates alone, on the same folds."""
    assert table.covariates is not None
    alone = replace(
        table,
        X=np.zeros((table.n_samples, 1)),
        n_missing=int(np.isnan(table.covariates).sum()),
        feature_groups=None,
    )
    selector = NoFeatures(alone.with_covariates.shape[1] - 1 - np.arange(table.covariates.shape[1])[::-1])
    return training.evaluate_procedures(
        {COVARIATES: selector}, alone, replace(settings, verbose=False), [], y=y
    )


def feature_records(name: str, table: Table, settings: SelectOptions, sizes: list[int]) -> Any:
    """Records of the procedure on the features alone, on the same folds and with the same predictor."""
    plain = without_covariates(table)
    procedure = procedures.build_procedure(name, plain, settings, sizes, settings.params)
    return features_alone(procedure, table, plain, replace(settings, save_model=False))


def features_alone(procedure: Any, table: Table, plain: Table, settings: Settings) -> Any:
    """Records of a procedure on the table without covariates, with the predictor that is used beside them."""
    predictor = procedures.predictor_of(table, settings, n_covariates=0)
    same = replace(settings, predictor=predictor, verbose=False)
    return training.evaluate_procedures({FEATURES: procedure}, plain, same, [])


def without_covariates(table: Table) -> Table:
    """The table of the features alone."""
    return replace(table, covariates=None, covariate_names=(), adjusted_for=())


def measure_added(
    label: str, records: Any, table: Table, settings: Settings, features: Any = None
) -> dict[str, Any]:
    """The metric of covariates, features and both, and the difference of both and the covariates with its interval.

    ``features`` are the records of the features alone; without them their metric is None.
    """
    metric = procedures.primary_metric_of(table, settings)
    parts = {COVARIATES: columns_of(covariate_records(table, settings)), label: columns_of(records)}
    if features is not None:
        parts[FEATURES] = columns_of(features)
    means = {name: _mean(columns, name, metric) for name, columns in parts.items()}
    found: dict[str, Any] = {
        "covariates": list(table.adjusted_for),
        "n_columns": len(table.covariate_names),
        "covariates_alone": means[COVARIATES],
        "features_alone": means.get(FEATURES),
        "both": means[label],
        "difference": None,
        "low": None,
        "high": None,
        "p_value": None,
        "n_permutations": 0,
    }
    both, alone = means[label], means[COVARIATES]
    if both is None or alone is None:
        return found
    found["difference"] = both - alone
    pair = [own_rows_of(parts[name], name) for name in (label, COVARIATES)]
    try:
        row = columns_of(compare_methods(_joined(pair), metric, reference=COVARIATES))
    except ValueError:  # the test folds allow no interval
        return found
    return {**found, "low": row["low"][0], "high": row["high"][0]}


def _joined(parts: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


def _mean(columns: Mapping[str, list[Any]], label: str, metric: str) -> float | None:
    """The mean of the metric at the selected size over the test folds."""
    values = [value for value in own_rows_of(dict(columns), label)[metric] if value is not None]
    return float(np.mean(values)) if values else None


# -- The test -----------------------------------------------------------------------------------------


def with_test(
    found: dict[str, Any],
    label: str,
    procedure: Any,
    table: Table,
    settings: Settings,
    count: int,
    journal: Any = None,
    bar: RunBar | None = None,
) -> dict[str, Any]:
    """What was found with the p-value of ``count`` targets in which the features add nothing to the covariates."""
    targets = conditional_targets(table, settings)
    count = int(min(count, targets.exchange.count - 1))
    if found["difference"] is None or count <= 0:
        return found
    metric, sign = procedures.primary_metric_of(table, settings), direction(table, settings)
    values = []
    for number, y in enumerate(_drawn(targets, settings, count)):
        if bar is not None:
            bar.stage = f"permutation {number + 1} of {count}"
        permuted = replace(table, y=y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits on meaningless targets may fail to converge
            records = training.evaluate_procedures(
                {label: procedure}, permuted, settings, [], journal=journal, bar=bar
            )
            alone = covariate_records(permuted, settings)
        both, base = _mean(columns_of(records), label, metric), _mean(columns_of(alone), COVARIATES, metric)
        values.append(found["difference"] if both is None or base is None else both - base)
    if bar is not None:
        bar.stage = ""
    least = sign * found["difference"] - 1e-12 * abs(found["difference"])
    as_good = sum(sign * value >= least for value in values)
    return {
        **found,
        "p_value": (1 + as_good) / (1 + count),
        "n_permutations": count,
        "smallest_p_value": targets.exchange.smallest_p_value,
        "permutation_values": values,
    }


def conditional_targets(table: Table, settings: Settings) -> ConditionalTargets:
    """The targets in which the features add nothing, as the sample groups allow them."""
    assert table.covariates is not None
    covariates = Covariates(fill(table.covariates, column_medians(table.covariates)))
    check_room(covariates, "select")
    rng = np.random.default_rng(np.random.SeedSequence(settings.random_state, spawn_key=(8,)))
    design = group_design(table, settings)
    return ConditionalTargets.of(table.target, covariates, rng, table.sample_groups, design)


def group_design(table: Table, settings: Settings) -> str:
    """Labels are exchanged within groups that are themselves a covariate, unless the user chose otherwise."""
    are_covariate = isinstance(settings.sample_groups, str) and settings.sample_groups in table.adjusted_for
    return "block" if are_covariate and settings.group_design == "auto" else settings.group_design


def _drawn(targets: ConditionalTargets, settings: Settings, count: int) -> Iterator[NDArray[Any]]:
    for number in range(count):
        rng = np.random.default_rng(np.random.SeedSequence(settings.random_state, spawn_key=(8, number)))
        yield targets.draw(rng).labels()


def with_added(found: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """The measures of a procedure with what its features add, which is what is tested and claimed."""
    test = {name: value[name] for name in ("p_value", "n_permutations")}
    permuted = {name: value.pop(name, None) for name in ("smallest_p_value", "permutation_values")}
    claim = adds(value, greater_is_better=found["greater_is_better"])
    return {**found, **test, **permuted, "added": value, "beats_chance": claim}


def adds(found: dict[str, Any], *, greater_is_better: bool) -> bool | None:
    """Whether the features add to the covariates: p at most 0.05 or, without permutations, an interval without 0.

    None where neither was possible, or where the permutations were too few for such a p-value.
    """
    if found["difference"] is None:
        return None
    sign = 1.0 if greater_is_better else -1.0
    if sign * found["difference"] <= 0.0:
        return False
    p_value = found["p_value"]
    if p_value is not None:
        is_least = p_value * (1 + found["n_permutations"]) < 1.5
        return True if p_value <= LEVEL else None if is_least else False
    end = found["low"] if sign > 0 else found["high"]
    return None if end is None else bool(sign * end > 0.0)


def added_notes(table: Table, settings: Settings) -> list[str]:
    """That covariates have no penalty, and what the permutations leave as it is."""
    if table.covariates is None:
        return []
    notes = []
    if isinstance(settings.predictor, str) and settings.predictor != "gaussian":
        notes.append("The weights of the covariates have practically no penalty.")
    if settings.permutations == 0:
        return notes
    groups = ""
    if table.sample_groups is not None:
        exchange = conditional_targets(table, settings).exchange
        groups = f" Exchanged are {exchange.text} ({parameter('group_design')})."
    text = (
        f"For the test of what the features add, {PERMUTED[table.target.kind]}, so that target and features keep their "
        f"relation to the covariates.{groups}"
    )
    return [*notes, Message(text)]
