"""Simulate error control with times to an event: probes, dummies and stability selection.

``python docs/trust/survival_control.py [data sets]`` writes survival_control.csv, a line as soon as each setting is
finished. Times are exponential with log hazards of variance ``signal``² from ten of the features; these are normal,
with the correlation 0.5 between neighbours. "rate" is the share of irrelevant features that are kept, "fdr" the mean
share of irrelevant ones among those kept, "fwer" the share of data sets in which any is kept, "expected" the mean
number of irrelevant ones that are kept, whose level is the bound of stability selection.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.signal import lfilter
from survival import times_of

from zeronorm import CoxScore, DummySelector, ProbeSelector, StabilitySelection, SVMWeights

N_FEATURES, N_INFORMATIVE, CORRELATION = 200, 10, 0.5
# Samples, share of censored samples, standard deviation of the log hazards, times rounded up to a multiple of this.
SETTINGS = (
    (50, 0.3, 0.0, 0.0),
    (100, 0.7, 0.0, 0.0),
    (100, 0.3, 0.0, 0.5),
    (100, 0.3, 2.0, 0.0),
    (200, 0.5, 2.0, 0.5),
)
RATE, FDR, FWER, EXPECTED = 0.05, 0.2, 0.05, 1.0


def data_set(setting: tuple, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, outcomes, and which features have no effect."""
    n, censored, signal, unit = setting
    noise = rng.normal(size=(n, N_FEATURES)) * np.sqrt(1.0 - CORRELATION**2)
    noise[:, 0] /= np.sqrt(1.0 - CORRELATION**2)
    X = lfilter([1.0], [1.0, -CORRELATION], noise, axis=1)
    chosen = rng.choice(N_FEATURES, N_INFORMATIVE, replace=False) if signal else np.empty(0, dtype=int)
    y = times_of(X[:, chosen].sum(axis=1) * signal / np.sqrt(N_INFORMATIVE), censored, rng)
    if unit:
        y["time"] = np.ceil(y["time"] / unit) * unit
    irrelevant = np.ones(N_FEATURES, dtype=bool)
    # Neighbours carry the effect as well: probes test whether a feature has any relation to the outcome.
    for shift in range(-5, 6):
        irrelevant[np.clip(chosen + shift, 0, N_FEATURES - 1)] = False
    return X, y, irrelevant


def selectors(seed: int) -> dict[tuple[str, str, float], object]:
    """Selectors by their name, what they control, and the level."""
    linear = SVMWeights(task="survival", C=0.01)
    return {
        ("probes, CoxScore", "rate", RATE): ProbeSelector(CoxScore(), level=RATE, random_state=seed),
        ("probes, CoxScore", "fdr", FDR): ProbeSelector(
            CoxScore(), control="fdr", level=FDR, random_state=seed
        ),
        ("probes, CoxScore", "fwer", FWER): ProbeSelector(
            CoxScore(), control="fwer", level=FWER, random_state=seed
        ),
        ("probes, SVMWeights", "rate", RATE): ProbeSelector(linear, level=RATE, random_state=seed),
        ("stability, CoxScore", "expected", EXPECTED): StabilitySelection(
            CoxScore(), false_selections=EXPECTED, random_state=seed
        ),
        ("dummies", "fdr", FDR): DummySelector(task="survival", level=FDR, random_state=seed),
        ("integrated stability, CoxScore", "fdr", FDR): StabilitySelection(
            CoxScore(), bound="integrated", level=FDR, random_state=seed
        ),
    }


def measured(kind: str, kept: np.ndarray, irrelevant: np.ndarray) -> float:
    """The quantity that is controlled, in one data set."""
    false = int(np.count_nonzero(kept & irrelevant))
    if kind == "rate":
        return false / int(irrelevant.sum())
    if kind == "fdr":
        return false / max(1, int(np.count_nonzero(kept)))
    return float(false > 0) if kind == "fwer" else float(false)


def one_data_set(setting: tuple, seed: int) -> list[tuple[float, float]]:
    """For each selector what it controls, and the share of the informative features and neighbours that it keeps."""
    X, y, irrelevant = data_set(setting, np.random.default_rng(seed))
    found = []
    for (_, kind, _), selector in selectors(seed).items():
        kept = selector.fit(X, y).get_support()
        found.append(
            (
                measured(kind, kept, irrelevant),
                float(kept[~irrelevant].mean()) if not irrelevant.all() else 0.0,
            )
        )
    return found


def main(draws: int) -> None:
    """Write a line for each setting and selector."""
    with (Path(__file__).parent / "survival_control.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            [
                "n",
                "censored",
                "signal",
                "rounded",
                "data_sets",
                "selector",
                "controls",
                "level",
                "found",
                "error",
                "kept",
            ]
        )
        for number, setting in enumerate(SETTINGS):
            tasks = (delayed(one_data_set)(setting, 10_000 * number + s) for s in range(draws))
            rows = np.asarray(Parallel(n_jobs=1)(tasks))
            for (name, kind, level), values in zip(selectors(0), rows.transpose(1, 2, 0), strict=True):
                error = values[0].std(ddof=1) / np.sqrt(draws)
                figures = (f"{values[0].mean():.4f}", f"{error:.4f}", f"{values[1].mean():.3f}")
                writer.writerow([*setting, draws, name, kind, level, *figures])
            file.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
