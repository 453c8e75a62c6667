"""Weston et al. 2003: multi-class selection on the yeast data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zeronorm_studies.results import Claim, ClaimCheck, Results
from zeronorm_studies.study import Configuration, Plan, Sample, Study, folds, sample_of

ALL = "one-against-rest SVM, all features"
COUPLED, JOINT, RFE = "AROM one-against-rest", "AROM Weston–Watkins", "RFE one-against-rest"
CONFIGURATIONS = (
    Configuration(ALL),
    Configuration(COUPLED, "arom", {"C": 100.0, "scaling": "paper"}),
    Configuration(JOINT, "arom", {"C": 100.0, "multi_class": "weston_watkins", "scaling": "paper"}),
    Configuration(RFE, "rfe", {"C": 100.0}),
)


def yeast() -> Sample:
    return sample_of("brown_yeast")


def wine() -> Sample:
    X, y = load_wine(return_X_y=True)
    return X, y


def _model() -> Any:
    return make_pipeline(StandardScaler(), OneVsRestClassifier(SVC(kernel="linear", C=100.0)))


def full() -> Plan:
    data = folds("Brown yeast", yeast, n_folds=8)
    return Plan((data,), CONFIGURATIONS, (5, 10, 20, 40, 60), _model())


def quick() -> Plan:
    return Plan((folds("Brown yeast", wine, n_folds=4),), CONFIGURATIONS[:2], (3, 6, 9), _model())


def _improves(results: Results) -> ClaimCheck:
    every = results.mean("Brown yeast", ALL, None)
    means = {size: results.mean("Brown yeast", COUPLED, size) for size in results.plan.sizes}
    best = min(means, key=lambda size: means[size])
    return ClaimCheck(f"AROM with {best} features {means[best]:.4f}, all {every:.4f}", means[best] <= every)


def _fewer_than_rfe(results: Results) -> ClaimCheck:
    smallest = {}
    for config in (COUPLED, RFE):
        means = np.asarray([results.mean("Brown yeast", config, size) for size in results.plan.sizes])
        smallest[config] = results.plan.sizes[int(np.argmin(means))]
    shown = ", ".join(f"{config}: best with {size}" for config, size in smallest.items())
    return ClaimCheck(shown, int(smallest[COUPLED] or 0) < int(smallest[RFE] or 0))


def _rfe_improves(results: Results) -> ClaimCheck:
    every = results.mean("Brown yeast", ALL, None)
    means = {size: results.mean("Brown yeast", RFE, size) for size in results.plan.sizes}
    best = min(means, key=lambda size: means[size])
    return ClaimCheck(f"RFE with {best} features {means[best]:.4f}, all {every:.4f}", means[best] <= every)


STUDY = Study(
    name="weston2003-yeast",
    title="Multi-class selection on the yeast data",
    source="Weston, Elisseeff, Schölkopf and Tipping, JMLR 3 (2003)",
    about=(
        "208 genes in five classes, 79 conditions as features (from memory, and as in the copy at hand). "
        "Eight folds; the number of folds of the paper is lost. A one-against-rest SVM with C = 100 "
        "scores all subsets, also those of the joint (Weston–Watkins) selection, which the paper scores by a joint "
        "SVM. The best size is read off the test folds, for the paper's table as for ours, "
        "so it describes and does not estimate. The quick version uses the wine data."
    ),
    cost="8 folds × 4 methods, about 1 minute on one core.",
    full=full,
    quick=quick,
    expectations=(
        Claim(
            "selection with AROM does not lose accuracy",
            "AROM improves generalisation",
            "the best of the sizes has at most the error of all features",
            _improves,
        ),
        Claim(
            "selection with RFE does not lose accuracy either",
            "one-against-the-rest is improved by RFE",
            "the best of the sizes has at most the error of all features",
            _rfe_improves,
            in_quick=False,
        ),
        Claim(
            "AROM needs fewer features than RFE",
            "the number of features is larger with RFE",
            "smaller size at the lowest mean error",
            _fewer_than_rfe,
            in_quick=False,
            note="the paper expects too few trials for significance",
        ),
    ),
)
