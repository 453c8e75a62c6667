"""Gadat and Younes 2007, section 5.2.4: leukaemia."""

from __future__ import annotations

from functools import cache

import numpy as np

from zeronorm.datasets import make_linear_toy
from zeronorm.studies.comparing import lower_mean
from zeronorm.studies.expectations import Claim, Judged
from zeronorm.studies.machines import linear_machine
from zeronorm.studies.results import Results
from zeronorm.studies.study import Arm, Plan, Study
from zeronorm.studies.trials import Sample, folds, sample_of, second_part_of

DATA, OFW, L0, RFE = "Leukemia", "OFW", "L0-SVM", "RFE"
ALL, RANDOM = "linear SVM, all features", "random"
SIZES = (5, 10, 20, 25, 100)


@cache
def leukemia() -> Sample:
    """Both published parts together: 72 samples."""
    (X, y), (X_test, y_test) = sample_of("leukemia"), second_part_of("leukemia")
    return np.vstack([X, X_test]), np.concatenate([y, y_test])


def toy() -> Sample:
    X, y, _ = make_linear_toy(72, standardize=False, random_state=1)
    return X, y


def _arms(max_iter: int, subset_size: int) -> tuple[Arm, ...]:
    settings = {"subset_size": subset_size, "bootstrap_size": 20, "batch_size": 4, "max_iter": max_iter}
    return (
        Arm(ALL),
        Arm(OFW, "ofw", settings),
        Arm(RANDOM, "random"),
        Arm(RFE, "rfe", {"step": 0.1}),
        Arm(L0, "arom"),
        Arm("Fisher", "fisher"),
    )


def full() -> Plan:
    return Plan((folds(DATA, leukemia, n_folds=10),), _arms(5_000, 100), SIZES, linear_machine())


def quick() -> Plan:
    return Plan((folds(DATA, toy, n_folds=4),), _arms(600, 10)[:3], (5, 20), linear_machine())


def _l0_beats_rfe(results: Results) -> Judged:
    means = {arm: np.mean([results.mean(DATA, arm, size) for size in SIZES]) for arm in (L0, RFE)}
    return Judged(", ".join(f"{arm} {value:.4f}" for arm, value in means.items()), means[L0] < means[RFE])


def _all_best(results: Results) -> Judged:
    every = results.mean(DATA, ALL, None)
    others = {arm: results.mean(DATA, arm, 25) for arm in (OFW, RFE, L0)}
    shown = ", ".join(f"{arm} {value:.4f}" for arm, value in others.items())
    return Judged(f"all {every:.4f}; {shown}", every < min(others.values()))


STUDY = Study(
    name="gadat2007-leukemia",
    title="Optimal feature weighting on leukaemia",
    source="Gadat and Younes, JMLR 8 (2007), section 5.2.4",
    about=(
        "72 samples of both published parts, ten stratified folds, selection inside each. The paper uses "
        "3859 preselected genes from a page that is not at hand; all 7129 raw genes are used here. Linear "
        "machines on 100 drawn genes, bootstrap sets of 20. Its figure is a drawing, so statements are "
        "compared. The quick version uses the linear toy problem."
    ),
    cost="10 folds × 6 methods, about 5 minutes on one core.",
    full=full,
    quick=quick,
    expectations=(
        Claim(
            "learned genes beat random genes",
            "uniform draws of 100 genes: more than 15 %; learned: less than 1 %",
            "lower mean error with 5 features than random selection",
            lower_mean(DATA, (OFW,), (RANDOM,), 5),
        ),
        Claim(
            "L0-SVM outperforms RFE",
            "L0-SVM outperforms RFE",
            "lower error on average over the sizes",
            _l0_beats_rfe,
            in_quick=False,
        ),
        Claim(
            "no selection is best",
            "better results without any selection",
            "all features have a lower mean error than OFW, RFE and L0-SVM with 25 genes",
            _all_best,
            in_quick=False,
        ),
    ),
)
