"""Simulations of ``apply``: how often new samples of the same kind are called worse, and whether probabilities are
calibrated.

Run ``python docs/trust/cohort.py`` for the tables ``cohort.csv`` and ``probabilities.csv``; ``--sets 20`` draws
fewer data sets, ``--target times`` writes ``cohort_times.csv`` and ``probabilities_times.csv``.
Every data set has its own seed. A data set is drawn, features are selected with
``zeronorm.select``, and the model is applied to new samples: of the same kind, with relevant features that are
weaker by a third (power), and to many samples, which show the calibration of the probabilities.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from zeronorm import apply, select
from zeronorm.selection.target import TimeToEvent

FOLDER = Path(__file__).parent
MANY = 4000  # new samples, from which the calibration of one model is known to within about 0.1
WEAKER = 0.67


@dataclass(frozen=True)
class Setting:
    """One setting: kind of target, numbers of samples, of features and of relevant ones, their strength, kept features.

    ``share`` is that of the smaller class; ``correlation`` that of neighbouring features.
    """

    target: str
    n_train: int
    n_new: int
    n_features: int
    strength: float
    n_kept: int = 5
    n_relevant: int = 5
    share: float = 0.5
    correlation: float = 0.0

    def draw(self, n: int, rng: np.random.Generator, strength: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Features and target of n samples."""
        X = rng.normal(size=(n, self.n_features))
        if self.correlation:
            shared = rng.normal(size=(n, self.n_features // 2)).repeat(2, axis=1)[:, : self.n_features]
            X = np.sqrt(1 - self.correlation) * X + np.sqrt(self.correlation) * shared
        step = strength * self.strength
        if self.target == "number":
            return X, step * X[:, : self.n_relevant].sum(axis=1) + rng.normal(size=n)
        if self.target == "times":  # about 0.4 censored
            time = rng.exponential(np.exp(-step * X[:, : self.n_relevant].sum(axis=1)))
            end = 2.0 * rng.exponential(size=n)
            return X, TimeToEvent.of({"event": time <= end, "time": np.minimum(time, end)}).values
        if self.target == "three classes":
            y = np.arange(n) % 3
            for label in range(3):
                X[y == label, label : self.n_relevant + label] += step
            return X, y
        y = (np.arange(n) < round(self.share * n)).astype(int)
        X[y == 1, : self.n_relevant] += step
        return X, y


def settings() -> list[Setting]:
    """All settings: few and many samples, easy and hard problems, few of many features, unequal classes, numbers."""
    found = [
        Setting("two classes", n, m, p, strength)
        for (n, m), p, strength in product(((40, 40), (100, 50), (100, 400)), (20, 500), (0.5, 1.0))
    ]
    found += [
        Setting("two classes", 100, 100, 20, 0.0),
        Setting("two classes", 100, 100, 20, 0.8, share=0.2),
        Setting("two classes", 200, 100, 200, 0.7, correlation=0.8),
        Setting("three classes", 90, 90, 50, 1.0),
    ]
    found += [
        Setting("number", n, m, p, 0.6) for (n, m), p in product(((40, 40), (100, 50), (100, 400)), (20, 500))
    ]
    found += [
        Setting("times", n, m, p, strength)
        for (n, m), p, strength in product(((100, 50), (200, 100), (200, 400)), (20, 500), (0.0, 0.5))
    ]
    return found


def one(setting: Setting, seed: int) -> dict[str, Any]:
    """One data set: verdicts on new samples of the same kind and on weaker ones, and calibration on many samples."""
    rng = np.random.default_rng([seed, setting.n_train, setting.n_features, round(100 * setting.strength)])
    method, task = "fisher", "regression" if setting.target == "number" else "classification"
    if setting.target == "times":
        method, task = "cox-score", "survival"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = setting.draw(setting.n_train, rng)
        kept = {"features": setting.n_kept, "max_features": setting.n_kept}
        result = select(X, y, method=method, **kept, permutations=0, task=task, random_state=seed)
        columns = [feature.index for feature in result.selected]
        found: dict[str, Any] = {}
        for name, n, strength in (
            ("same", setting.n_new, 1.0),
            ("weaker", setting.n_new, WEAKER),
            ("many", MANY, 1.0),
        ):
            X, y = setting.draw(n, rng, strength)
            outcome = {"time": y["time"], "event": y["event"]} if y.dtype.names else {"target": y}
            cohort = apply(result.model, X[:, columns], **outcome)
            found[name] = {score["metric"]: score for score in cohort.scores}
            found[f"{name} calibration"] = cohort.calibration
    return found


def verdict_rows(setting: Setting, drawn: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per metric: verdicts on cohorts of the same kind, power, and coverage of the interval of new samples."""
    for metric in drawn[0]["same"]:
        both = [found for found in drawn if metric in found["same"] and metric in found["many"]]
        compared = [found["same"][metric] for found in both if found["same"][metric]["verdict"]]
        if not compared:
            continue
        verdicts = [score["verdict"] for score in compared]
        weaker = [found["weaker"][metric]["verdict"] for found in both if metric in found["weaker"]]
        covered = [
            found["same"][metric]["low"] <= found["many"][metric]["value"] <= found["same"][metric]["high"]
            for found in both
            if found["same"][metric]["low"] is not None
        ]
        yield {
            **described(setting),
            "metric": metric,
            "called worse": share(verdict == "worse" for verdict in verdicts),
            "weaker effects called worse": share(verdict == "worse" for verdict in weaker),
            "interval of the new samples covers": share(covered),
            "expected": round(float(np.mean([score["expected"] for score in compared])), 3),
            "of the model": round(float(np.mean([found["many"][metric]["value"] for found in both])), 3),
            "data sets": len(compared),
        }


def calibration_row(setting: Setting, drawn: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Calibration of the probabilities (or numbers) on many new samples, and coverage of the intervals of a cohort."""
    many = [found["many calibration"] for found in drawn]
    slopes = np.array([found["slope"]["value"] for found in many if found["slope"]])
    ideal = {"slope": 1.0, "intercept": 0.0}
    row = {**described(setting), "median slope": round(float(np.median(slopes)), 3)}
    for low, high in ((0.8, 1.25), (0.67, 1.5)):
        row[f"slope within {low} to {high}"] = share((slopes > low) & (slopes < high))
    if setting.target in ("two classes", "times"):
        row["median intercept"] = round(
            float(np.median([f["intercept"]["value"] for f in many if f["intercept"]])), 3
        )
        gaps = [np.average([abs(b["predicted"] - b["value"]) for b in f["bins"]], weights=[b["n"] for b in f["bins"]])
                for f in many]  # fmt: skip
        row["mean gap of share and probability"] = round(float(np.mean(gaps)), 3)
    else:
        row |= {"median intercept": "", "mean gap of share and probability": ""}
    for name in ideal:
        pairs = [
            (found["same calibration"].get(name), found["many calibration"].get(name)) for found in drawn
        ]
        row[f"interval of the {name} covers"] = share(
            own["low"] <= true["value"] <= own["high"] for own, true in pairs if own and true
        )
    return {**row, "data sets": len(drawn)}


def described(setting: Setting) -> dict[str, Any]:
    return {
        "target": setting.target,
        "training samples": setting.n_train,
        "new samples": setting.n_new,
        "features": setting.n_features,
        "strength": setting.strength,
        "share": setting.share,
        "correlation": setting.correlation,
    }


def share(found: Any) -> float | str:
    values = [bool(value) for value in found]
    return round(float(np.mean(values)), 3) if values else ""


def tables(chosen: list[Setting], sets: int, seed: int, n_jobs: int = 1) -> tuple[list[dict[str, Any]], ...]:
    """The rows of both tables."""
    verdicts, calibrations = [], []
    for setting in chosen:
        drawn = list(Parallel(n_jobs)(delayed(one)(setting, seed + i) for i in range(sets)))
        verdicts += list(verdict_rows(setting, drawn))
        calibrations.append(calibration_row(setting, drawn))
        print(verdicts[-1], calibrations[-1], flush=True)
    return verdicts, [row for row in calibrations if row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", help="only the settings of this kind of target, into files of their own")
    options = parser.parse_args()
    chosen = [setting for setting in settings() if options.target in (None, setting.target)]
    suffix = f"_{options.target.replace(' ', '_')}" if options.target else ""
    drawn = tables(chosen, options.sets, options.seed, options.jobs)
    for name, rows in zip(("cohort", "probabilities"), drawn, strict=True):
        with (FOLDER / f"{name}{suffix}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
