"""How often features are said to add to covariates: where they add nothing, and where they do.

Run ``python docs/trust/added_value.py --processes 16``; the table is written to ``docs/trust/added_value.csv``.

In every data set the target depends on the covariates. A third of the features follow them (correlations of about 0.8),
so that these features predict the target, and yet add nothing. With an effect, two features matter as well: one that
follows a covariate and one that does not. The claim is that of ``zeronorm.select(adjust=...)`` with 19 permutations,
where p = 0.05 is the smallest p-value: without effects at most one in twenty data sets may have it. Without
permutations a 95 % interval of the difference that lies on the better side makes the claim. Times to an event are
exponential with the log hazard 1.5 times the covariate and noise; the censoring, about 0.4 of the samples, depends on
the covariate as well.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from zeronorm.datasets import Table
from zeronorm.selection.target import TimeToEvent
from zeronorm.workflow import _added_value as added
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._options import SelectOptions

N_FEATURES, N_SELECTED, N_PERMUTATIONS = 30, 3, 19
COLUMNS = (
    "target", "samples", "covariates", "effect", "data sets", "claims",
    "claims by the interval", "covariates alone", "both",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One row of the table; ``covariates`` are numbers, or the levels of one category."""

    task: str
    n_samples: int
    n_covariates: int
    effect: float = 0.0
    is_category: bool = False
    method: str = "fisher"


SETTINGS = [
    Setting("classification", 80, 2),
    Setting("classification", 80, 10),
    Setting("classification", 80, 4, is_category=True),
    Setting("classification", 80, 2, method="rfe"),
    Setting("regression", 80, 2),
    Setting("regression", 80, 10),
    Setting("regression", 80, 4, is_category=True),
    Setting("classification", 80, 2, effect=1.0),
    Setting("regression", 80, 2, effect=0.5),
    Setting("survival", 80, 2, method="cox-score"),
    Setting("survival", 80, 10, method="cox-score"),
    Setting("survival", 80, 4, is_category=True, method="cox-score"),
    Setting("survival", 80, 2, effect=0.7, method="cox-score"),
]
METRICS = {"classification": "error_rate", "regression": "mse", "survival": "concordance"}
KINDS = {"classification": "classes", "regression": "real", "survival": "times"}


def drawn(setting: Setting, rng: np.random.Generator) -> Table:
    """A data set."""
    n, q = setting.n_samples, setting.n_covariates
    Z = np.eye(q)[rng.integers(0, q, n)] if setting.is_category else rng.normal(size=(n, q))
    of_category = rng.normal(size=q)
    cause = (Z @ of_category) * 1.5 if setting.is_category else Z[:, 0]
    X = rng.normal(size=(n, N_FEATURES))
    for k in range(N_FEATURES // 3):
        X[:, k] += 1.3 * (cause if setting.is_category else Z[:, k % q])
    f = 1.5 * cause + rng.normal(size=n)
    f += setting.effect * ((X[:, 0] - 1.3 * cause) + X[:, -1])
    y = (f > np.median(f)).astype(int) if setting.task == "classification" else f
    if setting.task == "survival":
        times, end = rng.exponential(np.exp(-f)), 2.0 * rng.exponential(np.exp(-0.5 * cause))
        y = TimeToEvent.of({"event": times <= end, "time": np.minimum(times, end)}).values
    return Table(
        X=X,
        y=y,
        task=setting.task,  # type: ignore[arg-type]
        feature_names=np.asarray([f"x{k}" for k in range(N_FEATURES)], dtype=object),
        source_columns=np.arange(N_FEATURES),
        target_name="y",
        covariates=Z,
        covariate_names=tuple(f"z{k}" for k in range(q)),
        adjusted_for=("z",),
    )


def claims(setting: Setting, seed: int) -> dict[str, Any]:
    """Whether features are said to add to the covariates, and the errors without and with them."""
    rng = np.random.default_rng([seed, SETTINGS.index(setting) if setting in SETTINGS else 99])
    table = drawn(setting, rng)
    options = SelectOptions(
        features=N_SELECTED,
        cv=3,
        metric=METRICS[setting.task],
        random_state=seed,
        permutations=N_PERMUTATIONS,
        n_jobs=1,
    )
    procedure = procedures.build_procedure(setting.method, table, options, [N_SELECTED], {})

    records = training.evaluate_procedures({"both": procedure}, table, options, [])
    found = added.measure_added("both", records, table, options)
    tested = added.with_test(found, "both", procedure, table, options, N_PERMUTATIONS)
    is_greater = setting.task == "survival"
    return {
        "claim": added.adds(tested, greater_is_better=is_greater) is True,
        "by interval": added.adds(found, greater_is_better=is_greater) is True,
        "both": found["both"],
        "alone": found["covariates_alone"],
    }


def row_of(setting: Setting, results: list[dict[str, Any]]) -> list[Any]:
    """The row of the table for a setting."""
    kind = (
        f"one category of {setting.n_covariates} levels" if setting.is_category else str(setting.n_covariates)
    )
    return [
        f"{KINDS[setting.task]}, {setting.method}", setting.n_samples, kind, setting.effect, len(results),
        *(round(float(np.mean([r[name] for r in results])), 3) for name in ("claim", "by interval", "alone", "both")),
    ]  # fmt: skip


def main(n_sets: int, processes: int, seconds: float) -> None:
    """Write the table; after ``seconds`` no further data sets are drawn, and all settings have equally many."""
    found: dict[Setting, list[dict[str, Any]]] = {setting: [] for setting in SETTINGS}
    start = time.monotonic()
    with Parallel(n_jobs=processes) as parallel:
        while len(found[SETTINGS[0]]) < n_sets and time.monotonic() - start < seconds:
            first = len(found[SETTINGS[0]])
            tasks = [(s, seed) for seed in range(first, min(first + processes, n_sets)) for s in SETTINGS]
            for task, result in zip(tasks, parallel(delayed(claims)(*task) for task in tasks), strict=True):
                found[task[0]].append(result)
            with Path(__file__).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                writer.writerows(row_of(setting, results) for setting, results in found.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=60, help="data sets of each setting")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    main(**{"n_sets" if name == "sets" else name: value for name, value in vars(parser.parse_args()).items()})
