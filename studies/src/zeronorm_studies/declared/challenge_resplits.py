"""The NIPS 2003 challenge again: repeated resplits in the published sizes, all choices inside the training samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from zeronorm import AutoSelector
from zeronorm.datasets import make_nonlinear_toy
from zeronorm_studies.chosen_pipeline import ChosenPipeline
from zeronorm_studies.declared.gadat2007_challenge import BER, OFW, OFW_SHARE, SETS
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.results import Claim, ClaimCheck, NotMeasured, Results
from zeronorm_studies.study import (
    Configuration,
    Data,
    Plan,
    Sample,
    Study,
    published_split,
    resplits,
    sample_of,
    second_part_of,
)

N_RESPLITS = 5
CAP_S = 600.0
SIZES = {
    "ARCENE": (10, 20, 50, 100, 200, 400, 1000),
    "DEXTER": (10, 20, 50, 100, 286, 1000, 3000),
    "DOROTHEA": (10, 20, 50, 100, 336, 1000),
    "MADELON": (5, 8, 11, 14, 20, 30, 50),
}
# As in the paper: no Fisher threshold on ARCENE, nearest neighbours on MADELON, where the threshold leaves too few.
# On DOROTHEA 25,000 features pass the threshold and learning takes minutes, six times in a task: samples kept out end
# it, after 2000 steps at the latest (256 draws of each feature).
WEIGHTING: dict[str, dict[str, Any]] = {
    "ARCENE": {"learner": "linear_svm"},
    "DEXTER": {"learner": "linear_svm", "fisher_threshold": 0.01},
    "DOROTHEA": {
        "learner": "linear_svm",
        "fisher_threshold": 0.01,
        "stopping": "held_out",
        "max_iter": 2000,
    },
    "MADELON": {"learner": "knn"},
}
ALL, AUTO, WEIGHTED, FISHER, FLIPS, REDUNDANCY = (
    "all features",
    "auto",
    "OFW",
    "Fisher + SVM",
    "G-flip + SVM",
    "FCBF + naive Bayes",
)
TEST_SET = {"ARCENE": 11.54, "DEXTER": 4.80, "DOROTHEA": 14.43, "MADELON": 6.78}
PUBLISHED = {
    WEIGHTED: OFW,
    FISHER: {"ARCENE": 21.43, "DEXTER": 8.0, "DOROTHEA": 21.38, "MADELON": 13.0},
    FLIPS: {"ARCENE": 12.66, "MADELON": 7.61},
    # The printed row of FCBF has three values in five columns; they are taken in the order of the columns.
    REDUNDANCY: {"ARCENE": 7.0, "DEXTER": 10.0, "DOROTHEA": 2.5},
}
GOALS = {"ARCENE": 16.0, "DEXTER": 5.7, "DOROTHEA": 11.8, "MADELON": 9.2}
LARGEST_SHARE = 0.04  # of the features of ARCENE
WEIGHTED_WITHIN = 1.5  # points


@cache
def pooled(name: str) -> Sample:
    """Training and validation part together."""
    (X, y), (X_second, y_second) = sample_of(name.lower()), second_part_of(name.lower())
    stacked = sp.vstack([X, X_second]).tocsr() if sp.issparse(X) else np.vstack([X, X_second])
    return stacked, np.concatenate([y, y_second])


def published_name(name: str) -> str:
    return f"{name}, published split"


def _data(name: str) -> tuple[Data, Data]:
    n_second = {"ARCENE": 100, "DEXTER": 300, "DOROTHEA": 350, "MADELON": 600}[name]
    again = resplits(name, partial(pooled, name), n_trials=N_RESPLITS, test_size=n_second, stratify=True)
    first, second = partial(sample_of, name.lower()), partial(second_part_of, name.lower())
    return again, published_split(published_name(name), first, second)


def automatic() -> AutoSelector:
    return AutoSelector(scoring="balanced_accuracy", random_state=0)


def _configurations(name: str) -> list[Configuration]:
    sizes, both = SIZES[name], (name, published_name(name))
    rows: dict[str, Callable[[], Any]] = {
        ALL: partial(ChosenPipeline, "all", (None,)),
        FISHER: partial(ChosenPipeline, "fisher", sizes),
        AUTO: automatic,
        WEIGHTED: partial(ChosenPipeline, "ofw", sizes, weighting=WEIGHTING[name]),
        REDUNDANCY: partial(ChosenPipeline, "fcbf", sizes, naive_bayes=True),
    }
    if name in PUBLISHED[FLIPS]:
        rows[FLIPS] = partial(ChosenPipeline, "gflip", sizes)
    return [Configuration(label, factory=make, sizes=(None,), only=both) for label, make in rows.items()]


def full() -> Plan:
    data = tuple(part for name in SETS for part in _data(name))
    configs = tuple(config for name in SETS for config in _configurations(name))
    return Plan(data, configs, (None,), metrics=(BER,), cap_s=CAP_S)


def quick_sample() -> Sample:
    X, y, _ = make_nonlinear_toy(200, standardize=True, random_state=0)
    return X, y


def quick() -> Plan:
    data = resplits("MADELON", quick_sample, n_trials=1, test_size=60, stratify=True)
    make = partial(ChosenPipeline, "fisher", (2, 8))
    return Plan((data,), (Configuration(FISHER, factory=make),), (None,), metrics=(BER,))


def _shown(results: Results, data: str, config: str) -> str:
    try:
        rows = [row for row in results.rows_of(data, config, None) if row.get(BER) is not None]
    except (NotMeasured, KeyError):
        return "–"
    if not rows:
        return "–"
    errors = [100.0 * row[BER] for row in rows]
    count = np.median([row["n_selected"] for row in rows])
    n_wanted = next(each.n_trials for each in results.plan.data if each.label == data)
    missing = "" if len(errors) == n_wanted else f", {len(errors)} of {n_wanted}"
    return f"{np.mean(errors):.2f} ({count:.0f}{missing})"


def _sections(results: Results) -> list[Section]:
    labels = (ALL, FISHER, WEIGHTED, AUTO, FLIPS, REDUNDANCY)
    rows = []
    for name in SETS:
        known = (f"{PUBLISHED.get(label, {}).get(name, '–')}" for label in labels)
        rows.append((name, "published, validation set", *known))
        rows.append(
            (
                name,
                "published, test set",
                *(f"{TEST_SET[name]}" if label == WEIGHTED else "–" for label in labels),
            )
        )
        for source, data in (("resplits", name), ("published split", published_name(name))):
            rows.append((name, source, *(_shown(results, data, label) for label in labels)))
    text = (
        "Balanced error rate in percent (median number of features; how many divisions, if not all). Resplits: mean "
        f"of {N_RESPLITS} divisions of training and validation part together, in the published sizes. The published "
        "split stands beside them. It is a further opening of the validation sets, which earlier experiments had seen: "
        "only the resplits count. The "
        f"published OFW has {', '.join(f'{OFW_SHARE[name]} %' for name in SETS)} of the features."
    )
    return [Section("Errors", (text,), PageTable(("data", "samples", *labels), tuple(rows)))]


def _reaches(name: str) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        error = 100.0 * results.mean(name, AUTO, None, BER)
        count = float(np.median([row["n_selected"] for row in results.rows_of(name, AUTO, None)]))
        share = count / pooled(name)[0].shape[1]
        few = name != "ARCENE" or share <= LARGEST_SHARE
        return ClaimCheck(f"{error:.2f} with {count:.0f} features", error <= GOALS[name] and few)

    return check


def _weighting_reaches(results: Results) -> ClaimCheck:
    errors = {name: 100.0 * results.mean(name, WEIGHTED, None, BER) for name in SETS}
    near = all(errors[name] <= GOALS[name] + WEIGHTED_WITHIN for name in SETS)
    return ClaimCheck(", ".join(f"{name} {error:.2f}" for name, error in errors.items()), near)


def _goal(what: str, rule: str, check: Callable[[Results], ClaimCheck]) -> Claim:
    return Claim(what, "a goal set before the run", rule, check, origin="expected here", in_quick=False)


STUDY = Study(
    name="challenge-resplits",
    title="NIPS 2003 feature selection challenge, resplits with all choices inside",
    source="Gadat and Younes, JMLR 8 (2007), Tables 2 and 3",
    about=(
        "Training and validation part of each data set are pooled and divided again in the published sizes; test sets "
        "have no labels at hand. In every row the units (standardised, one common scale, unit rows of square roots), "
        "the number of features, the kernel, cost and width of the SVM are chosen by five-fold cross-validation on the "
        "training samples. Units are chosen with Fisher scores, also for OFW, G-flip and FCBF. On DOROTHEA the "
        "learning of OFW ends on samples kept out or after 2000 steps, for the sake of time. The candidates were "
        "written down before the run; they are informed by earlier work on these data sets, as those of every "
        "challenge entry were. Published rows had their own predictors: F+SVM of Chen and Lin (2006), G-flip with "
        "nearest neighbours, FCBF with naive Bayes. auto runs with its defaults, scored by balanced accuracy. GISETTE "
        "is incomplete at hand and left out."
    ),
    cost="about ten minutes on 16 cores; a task may take five.",
    full=full,
    quick=quick,
    expectations=(
        *(
            _goal(
                f"auto on {name}",
                f"mean balanced error of the resplits at most {GOALS[name]} %",
                _reaches(name),
            )
            for name in SETS
        ),
        _goal("OFW is close to these goals", f"within {WEIGHTED_WITHIN} points of each", _weighting_reaches),
    ),
    sections=_sections,
)
