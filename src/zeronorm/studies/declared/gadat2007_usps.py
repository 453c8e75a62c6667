"""Gadat and Younes 2007, section 5.2.3: handwritten digits."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.svm import LinearSVC

from zeronorm.models import OFWClassifier
from zeronorm.selectors.stochastic.ofw import OptimalFeatureWeighting
from zeronorm.studies.comparing import lower_mean
from zeronorm.studies.expectations import Claim, Judged, PublishedFigure
from zeronorm.studies.images import digits_trial, one_split, usps_trial
from zeronorm.studies.results import Results
from zeronorm.studies.study import Arm, Plan, Study

DATA, VOTE, OFW, RANDOM = "USPS", "OFW vote", "OFW", "random"


def _vote(max_iter: int, subset_size: int) -> Any:
    selector = OptimalFeatureWeighting(
        subset_size=subset_size, bootstrap_size=100, batch_size=4, max_iter=max_iter
    )
    return OFWClassifier(selector, n_estimators=10, subset_size=subset_size, random_state=0)


def _ofw(max_iter: int, subset_size: int) -> dict[str, Any]:
    return {"subset_size": subset_size, "bootstrap_size": 100, "batch_size": 4, "max_iter": max_iter}


def full() -> Plan:
    arms = (
        Arm("linear SVM, all features"),
        Arm(VOTE, estimator=_vote(5_000, 100)),
        Arm(OFW, "ofw", _ofw(5_000, 100)),
        Arm(RANDOM, "random"),
    )
    return Plan((one_split(DATA, usps_trial),), arms, (40, 100), LinearSVC(dual=True), cap_s=1800.0)


def quick() -> Plan:
    arms = (Arm(OFW, "ofw", _ofw(300, 10)), Arm(RANDOM, "random"))
    return Plan(
        (one_split(DATA, partial(digits_trial, 4)),), arms, (10,), LinearSVC(dual=True, max_iter=20_000)
    )


def _learned_beats_random(results: Results) -> Judged:
    return lower_mean(DATA, (OFW,), (RANDOM,), results.plan.sizes[0])(results)


STUDY = Study(
    name="gadat2007-usps",
    title="Optimal feature weighting on handwritten digits",
    source="Gadat and Younes, JMLR 8 (2007), section 5.2.3",
    about=(
        "Binary edge detectors of the 16 × 16 images; published training and test parts, the training "
        "part cut to 3000 images to keep memory and time small. The paper's preprocessing of the "
        "detectors is not described fully, so their number differs from its 2418. The quick version uses "
        "the small digits of scikit-learn."
    ),
    cost="about 20 minutes on one core; a cell is capped at 30 minutes.",
    full=full,
    quick=quick,
    expectations=(
        PublishedFigure(
            "10 voters per class with 100 features",
            DATA,
            VOTE,
            None,
            3.2,
            width=0.0,
            note="one published split, so no standard error; fewer training images than in the paper",
        ),
        Claim(
            "learned features beat random features",
            "learning significantly improves the performance",
            "lower test error with the smallest size",
            _learned_beats_random,
        ),
    ),
)
