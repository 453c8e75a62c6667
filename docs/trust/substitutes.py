"""How many planted substitutes are found, and how often a feature is called one that is none.

Run ``python docs/trust/substitutes.py [processes]``; the table is written to ``docs/trust/substitutes.csv``.

Four latent variables act on the target. Each has four near copies among the features (correlations of ``COPY`` with
each other) and two decoys with correlations of 0.6 and 0.83 with the copies. All other features are noise. The selected
features are one copy of each, or what forward selection (Gram–Schmidt) takes on the same samples. In the population the
share of what a feature adds, given the other selected ones, that is left once a candidate is given is known from the
covariance: a candidate is a substitute if at most a hundredth is left, and a false one if more than a quarter is, or if
the selected feature adds nothing.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from zeronorm import GramSchmidt
from zeronorm.evaluation.stand_ins._answers import Substitutes
from zeronorm.evaluation.stand_ins._substitutes import LARGEST_LOSS, LEVEL, substitutes
from zeronorm.selection.target import TimeToEvent

BLOCKS, COPIES = 4, 4
COPY, DECOYS = 0.995, (0.6, 0.83)
PER_BLOCK = COPIES + len(DECOYS)
NO_LOSS, NO_PART, NO_RELATION = 0.01, 1e-6, 100.0
COLUMNS = (
    "target", "related", "selected by", "samples", "features", "data sets", "substitutes found", "missed",
    "cannot be told", "found of those told", "features with a false substitute", "most substitutes of one feature",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One row of the table; ``noise`` is the standard deviation of the target beside four effects of size 1."""

    kind: str
    selected_by: str
    n_samples: int
    n_features: int
    noise: float = 1.0


SETTINGS = (
    [
        Setting(kind, "known", n, p)
        for kind in ("real", "two classes", "three classes", "times")
        for n, p in ((100, 500), (200, 500), (400, 500), (800, 500))
    ]
    + [
        Setting(kind, "forward selection", n, p)
        for kind in ("real", "two classes")
        for n, p in ((60, 2000), (200, 2000), (400, 2000))
    ]
    + [
        Setting(kind, "forward selection", n, 2000, noise=1000.0)
        for kind in ("real", "two classes")
        for n in (60, 200)
    ]
)


def loadings() -> Any:
    """Correlations of all features of the blocks with their latent variable, and of the features with each other."""
    to_latent = np.array([COPY**0.5] * COPIES + [rho / COPY**0.5 for rho in DECOYS])
    within = np.outer(to_latent, to_latent)
    np.fill_diagonal(within, 1.0)
    return to_latent, within


def drawn(setting: Setting, rng: np.random.Generator) -> tuple[Any, Any]:
    """Features and target."""
    to_latent, _ = loadings()
    latent = rng.normal(size=(setting.n_samples, BLOCKS))
    noise = rng.normal(size=(setting.n_samples, setting.n_features))
    X = noise.copy()
    for block in range(BLOCKS):
        columns = slice(block * PER_BLOCK, (block + 1) * PER_BLOCK)
        X[:, columns] = latent[:, [block]] * to_latent + noise[:, columns] * np.sqrt(1.0 - to_latent**2)
    score = latent.sum(axis=1) + setting.noise * rng.normal(size=setting.n_samples)
    if setting.kind == "real":
        return X, score
    if setting.kind == "times":  # about a third censored; the noise makes the hazards of like samples differ
        time, end = rng.exponential(np.exp(-score)), 5.0 * rng.exponential(size=setting.n_samples)
        return X, TimeToEvent.of({"event": time <= end, "time": np.minimum(time, end)}).values
    cuts = [0.5] if setting.kind == "two classes" else [1 / 3, 2 / 3]
    return X, np.searchsorted(np.quantile(score, cuts), score)


def share_left(selected: Any, j: int, f: int, noise: float) -> float:
    """The share of what j adds to the others that f leaves in the population; infinite if j adds nothing."""
    to_latent, within = loadings()

    def adds(given: list[int]) -> float:
        """Squared partial correlation of j with the score, as a ratio of signal to noise."""
        known = [index for index in given if index < BLOCKS * PER_BLOCK and index != j]
        columns = [j, *known]
        block = np.array([index // PER_BLOCK for index in columns])
        place = np.array([index % PER_BLOCK for index in columns])
        covariance = np.where(block[:, None] == block, within[np.ix_(place, place)], 0.0)
        with_score = to_latent[place]
        G, h = covariance[1:, 1:], covariance[1:, 0]
        a = np.linalg.solve(G, np.column_stack([h, with_score[1:]])) if known else np.zeros((0, 2))
        left = covariance[0, 0] - h @ a[:, 0]
        part = with_score[0] - h @ a[:, 1]
        score = BLOCKS + noise**2 - with_score[1:] @ a[:, 1]
        r_sq = part**2 / max(left * score, 1e-12)
        return float(r_sq / (1.0 - min(r_sq, 1.0 - 1e-12)))

    if j >= BLOCKS * PER_BLOCK:
        return float("inf")
    others = [int(index) for index in selected if index != j]
    before = adds(others) if noise < NO_RELATION else 0.0
    return adds([*others, f]) / before if before > NO_PART else float("inf")


def one(setting: Setting, seed: int) -> dict[str, Any]:
    """Counts of one data set."""
    rng = np.random.default_rng(
        [seed, setting.n_samples, setting.n_features, len(setting.kind), len(setting.selected_by)]
    )
    X, y = drawn(setting, rng)
    task = {"real": "regression", "times": "survival"}.get(setting.kind, "classification")
    support = np.arange(BLOCKS) * PER_BLOCK
    if setting.selected_by != "known":
        support = np.flatnonzero(GramSchmidt(BLOCKS + 2, task=task).fit(X, y).get_support())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = substitutes(X, y, support, task=task)
    return counted(found, support, setting.noise)


def counted(found: Substitutes, support: Any, noise: float) -> dict[str, Any]:
    """How many of the planted substitutes were found, and how many features have a false one."""
    count = dict.fromkeys(("planted", "found", "unclear", "told", "false", "features", "most"), 0)
    for feature in found.features:
        called = {each.index for each in feature.substitutes}
        j, block = feature.index, feature.index // PER_BLOCK
        near = range(block * PER_BLOCK, (block + 1) * PER_BLOCK) if block < BLOCKS else ()
        left = {f: share_left(support, j, f, noise) for f in {*near, *called} - {j, *map(int, support)}}
        planted = {f for f, share in left.items() if share <= NO_LOSS}
        is_unclear = feature.status == "cannot be told" and not feature.unclear
        unclear = planted if is_unclear else planted & {int(name[1:]) for name in feature.unclear}
        count["features"] += 1
        count["planted"] += len(planted)
        count["found"] += len(planted & called)
        count["unclear"] += len(unclear)
        count["told"] += len(planted - unclear)
        count["false"] += any(left[f] > LARGEST_LOSS for f in called)
        count["most"] = max(count["most"], len(called))
    return count


def row(setting: Setting, n_data_sets: int, processes: int = 1) -> dict[str, Any]:
    """One row of the table."""
    counts = list(Parallel(processes)(delayed(one)(setting, seed) for seed in range(n_data_sets)))
    total = {name: sum(each[name] for each in counts) for name in counts[0]}

    def share(part: str, of: str) -> float:
        return round(total[part] / total[of], 4) if total[of] else float("nan")

    total["missed"] = total["told"] - total["found"]
    values = (
        setting.kind, "no" if setting.noise > NO_RELATION else "yes", setting.selected_by,
        setting.n_samples, setting.n_features, n_data_sets, share("found", "planted"),
        share("missed", "planted"), share("unclear", "planted"), share("found", "told"), share("false", "features"),
        max(each["most"] for each in counts),
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def rows(n_data_sets: int = 100, processes: int = 1) -> Iterator[dict[str, Any]]:
    """All rows of the table."""
    for setting in SETTINGS:
        yield row(setting, n_data_sets, processes)


def main() -> None:
    """Write the table."""
    file = Path(__file__).with_suffix(".csv")
    print(f"level {LEVEL}, largest loss {LARGEST_LOSS}")
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for found in rows(processes=int(sys.argv[1]) if len(sys.argv) > 1 else 1):
            print(found, flush=True)
            writer.writerow(found)
            stream.flush()


if __name__ == "__main__":
    main()
