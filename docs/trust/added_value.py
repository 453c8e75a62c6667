"""How often features are said to add to covariates: where they add nothing, and where they do.

Run ``python docs/trust/added_value.py``; the table is written to ``docs/trust/added_value.csv``.

In every data set the target depends on the covariates. A third of the features follow them (correlations of about 0.8),
so that these features predict the target, and yet add nothing. With an effect, two features matter as well: one that
follows a covariate and one that does not. The claim is that of ``zeronorm.select(adjust=...)`` with 19 permutations,
where p = 0.05 is the smallest p-value: without effects at most one in twenty data sets may have it. Without
permutations a 95 % interval of the difference that lies on the better side makes the claim.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.datasets import Table
from zeronorm.workflow import _added_value as added
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._options import SelectOptions

N_FEATURES, N_SELECTED, N_PERMUTATIONS = 30, 3, 19
COLUMNS = (
    "target", "samples", "covariates", "effect", "data sets", "claims",
    "claims by the interval", "mean error of covariates", "mean error of both",
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
]


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
    metric = "error_rate" if setting.task == "classification" else "mse"
    options = SelectOptions(
        features=N_SELECTED, cv=3, metric=metric, random_state=seed, permutations=N_PERMUTATIONS, n_jobs=1
    )
    procedure = procedures.build_procedure(setting.method, table, options, [N_SELECTED], {})

    records = training.evaluate_procedures({"both": procedure}, table, options, [])
    found = added.measure_added("both", records, table, options)
    tested = added.with_test(found, "both", procedure, table, options, N_PERMUTATIONS)
    return {
        "claim": added.adds(tested, greater_is_better=False) is True,
        "by interval": added.adds(found, greater_is_better=False) is True,
        "both": found["both"],
        "alone": found["covariates_alone"],
    }


def row_of(setting: Setting, n_sets: int, first: int = 0) -> list[Any]:
    """The row of the table for a setting."""
    results = [claims(setting, first + seed) for seed in range(n_sets)]
    kind = (
        f"one category of {setting.n_covariates} levels" if setting.is_category else str(setting.n_covariates)
    )
    target = f"{'classes' if setting.task == 'classification' else 'real'}, {setting.method}"
    return [
        target, setting.n_samples, kind, setting.effect, n_sets,
        *(round(float(np.mean([r[name] for r in results])), 3) for name in ("claim", "by interval", "alone", "both")),
    ]  # fmt: skip


def main(n_sets: int = 60) -> None:
    """Write the table."""
    path = Path(__file__).with_suffix(".csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for setting in SETTINGS:
            writer.writerow(row_of(setting, n_sets))
            file.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
