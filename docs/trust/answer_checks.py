"""Two checks of the answer of ``select`` and ``AutoSelector``: noise, and other seeds.

``null``: tables whose target has nothing to do with the features; counted is how often features are recommended.
``seeds``: the tuning data sets with ten seeds each; shown are the sizes, the share within 30 % of their median, and the
stability of the lists (Nogueira et al. 2018). Every result is appended to the file ``--draws`` as soon as it is there,
and results that it holds already are not computed again; a run may be ended at any time. The table goes to ``--file``.

Run: python docs/trust/answer_checks.py null 40 --processes 16 --seconds 400 --draws null.jsonl --file answer_null.csv
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from parallel_tasks import results

import zeronorm
from zeronorm import AutoSelector
from zeronorm.evaluation import nogueira_stability

SHAPES = {  # samples, features, classes (0: a real target)
    "small": (40, 200, 2),
    "wide": (60, 1000, 2),
    "tall": (200, 20, 2),
    "several classes": (60, 200, 3),
    "counts": (120, 100, 2),
    "real target": (60, 200, 0),
}
DATA = ("colon", "leukemia", "lymphoma", "sonar", "ionosphere", "khan", "gun or point", "coffee", "signs", "digits",
        "appliances", "splice")  # fmt: skip
WITHIN = 0.3
TASK_S = 300.0  # seconds after which a task is given up
Key = tuple[str, int]  # name of the shape or of the data set, and seed


def null_table(shape: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and a target that was drawn by itself."""
    n, p, n_classes = SHAPES[shape]
    rng = np.random.default_rng([sum(map(ord, shape)), seed])
    X = (
        rng.poisson(rng.gamma(0.5, 4.0, p), (n, p)).astype(float)
        if shape == "counts"
        else rng.normal(size=(n, p))
    )
    return X, rng.normal(size=n) if n_classes == 0 else rng.permutation(np.arange(n) % n_classes)


def recommended(key: Key) -> list[int]:
    """Number of features that are recommended on a null table."""
    shape, seed = key
    X, y = null_table(shape, seed)
    task = "classification" if SHAPES[shape][2] else "regression"
    found = zeronorm.select(X, y, task=task, random_state=seed, n_jobs=1).lists["recommended"]
    return [len(found)]


def selected(key: Key) -> list[int]:
    """Number of features of a data set, then those selected with a seed."""
    from zeronorm_studies.declared.answer import complete

    name, seed = key
    X, y = complete(name)
    found = AutoSelector(random_state=seed).fit(X, y).get_support(indices=True)
    return [int(X.shape[1]), *found.tolist()]


def null_row(name: str, found: list[list[int]]) -> dict[str, Any]:
    return {"shape": name, "tables": len(found), "recommended": sum(size > 0 for (size,) in found)}


def seeds_row(name: str, found: list[list[int]]) -> dict[str, Any]:
    """Sizes with their median, the share near it, and the stability of the lists."""
    subsets = [subset for _, *subset in found]
    sizes = np.asarray([len(subset) for subset in subsets])
    median = float(np.median(sizes))
    stable = nogueira_stability(subsets, found[0][0]).estimate if len(subsets) > 1 else np.nan
    return {
        "data": name,
        "seeds": sizes.size,
        "median": f"{median:g}",
        "within": f"{np.mean(np.abs(sizes - median) <= WITHIN * median):.2f}",
        "stability": f"{stable:.3f}",
        "sizes": " ".join(map(str, sizes)),
    }


CHECKS = {"null": (tuple(SHAPES), recommended, null_row), "seeds": (DATA, selected, seeds_row)}


def read(draws: Path) -> dict[Key, list[int]]:
    """The results of a file of draws."""
    if not draws.exists():
        return {}
    lines = [json.loads(line) for line in draws.read_text(encoding="utf-8").splitlines()]
    return {(line["name"], line["seed"]): line["found"] for line in lines}


def main() -> None:
    """Compute what is missing and write a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("check", choices=tuple(CHECKS))
    parser.add_argument("count", type=int, help="null tables of each shape, or seeds of each data set")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="no task goes on for longer")
    parser.add_argument("--draws", type=Path, required=True)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--only", nargs="*", help="names of shapes or data sets")
    given = parser.parse_args()
    names, work, row = CHECKS[given.check]
    names = given.only or names
    known = read(given.draws)
    tasks = [(name, seed) for seed, name in product(range(given.count), names) if (name, seed) not in known]
    with given.draws.open("a", encoding="utf-8") as file:
        for (name, seed), found in results(work, tasks, given.processes, given.seconds, TASK_S):
            if not isinstance(found, list):
                print(f"{name}, seed {seed}: {'ended' if found is None else repr(found)}", file=sys.stderr)
                continue
            known[name, seed] = found
            file.write(json.dumps({"name": name, "seed": seed, "found": found}) + "\n")
            file.flush()
    by_name = {
        name: [found for (other, _), found in sorted(known.items()) if other == name] for name in names
    }
    rows = [row(name, found) for name, found in by_name.items() if found]
    if rows:
        with given.file.open("w", newline="") if given.file else sys.stdout as target:
            writer = csv.DictWriter(target, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
