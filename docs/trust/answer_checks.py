"""Two checks of the answer of ``select`` and ``AutoSelector``: noise, and other seeds.

``null``: tables whose target has nothing to do with the features; counted is how often features are recommended.
``seeds``: the tuning data sets with ten seeds each; shown are the sizes, the share within 30 % of their median, and the
stability of the lists (Nogueira et al. 2018). Run: python docs/trust/answer_checks.py null 40 --jobs 16 > null.csv
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from joblib import Parallel, delayed

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


def is_claimed(shape: str, seed: int) -> bool:
    """Whether features are recommended."""
    X, y = null_table(shape, seed)
    task = "classification" if SHAPES[shape][2] else "regression"
    return bool(zeronorm.select(X, y, task=task, random_state=seed, n_jobs=1).lists["recommended"])


def selected(name: str, seed: int) -> tuple[int, list[int]]:
    """Number of features of a data set, and those selected with a seed."""
    from zeronorm_studies.declared.answer import complete

    X, y = complete(name)
    found = AutoSelector(random_state=seed).fit(X, y).get_support(indices=True)
    return int(X.shape[1]), found.tolist()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("check", choices=("null", "seeds"))
    parser.add_argument("count", type=int, help="null tables of each shape, or seeds of each data set")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of shapes or data sets")
    given = parser.parse_args()
    names = given.only or list(SHAPES if given.check == "null" else DATA)
    run = is_claimed if given.check == "null" else selected
    tasks = list(product(names, range(given.count)))
    found = Parallel(n_jobs=given.jobs)(delayed(run)(*task) for task in tasks)
    by_name = {name: [f for f, task in zip(found, tasks, strict=True) if task[0] == name] for name in names}
    print("shape,tables,recommended" if given.check == "null" else "data,seeds,median,within,stability,sizes")
    for name, values in by_name.items():
        if given.check == "null":
            print(f"{name},{len(values)},{sum(values)}")
            continue
        sizes = np.asarray([len(subset) for _, subset in values])
        median = float(np.median(sizes))
        within = np.mean(np.abs(sizes - median) <= WITHIN * median)
        stable = nogueira_stability([subset for _, subset in values], values[0][0]).estimate
        print(f"{name},{sizes.size},{median:g},{within:.2f},{stable:.3f},{' '.join(map(str, sizes))}")


if __name__ == "__main__":
    main()
