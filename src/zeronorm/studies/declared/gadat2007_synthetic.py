"""Gadat and Younes 2007, section 5.1.1: reusable features."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from zeronorm.datasets import make_reusable_features
from zeronorm.selectors.stochastic.learners.knn import SubsetKNN
from zeronorm.studies.comparing import lower_mean
from zeronorm.studies.expectations import Claim, Judged
from zeronorm.studies.results import Results
from zeronorm.studies.study import Arm, Plan, Study
from zeronorm.studies.trials import generated

DATA, ALL, OFW = "reusable features", "5-NN, all features", "OFW"
RELEVANT = set(range(9))
REUSABLE = {0, 3, 7}
N_TRAIN = 500


def _plan(n_trials: int, n_features: int = 100, **settings: float) -> Plan:
    learner = {
        "base_estimator": SubsetKNN(5, metric="hamming"),
        "subset_size": 4,
        "bootstrap_size": 100,
        "standardize": False,
        **settings,
    }
    arms = (Arm(ALL), Arm(OFW, "ofw", learner), Arm("mutual information", "mutual-information"))
    data = generated(
        DATA, make_reusable_features, n_train=N_TRAIN, n_test=100, n_trials=n_trials, n_features=n_features
    )
    return Plan((data,), arms, (3, 9), KNeighborsClassifier(5, metric="hamming"), cap_s=300.0)


def full() -> Plan:
    return _plan(10, max_iter=200_000, step_size=4e6, step_offset=1e9)


def quick() -> Plan:
    return _plan(2, n_features=30, max_iter=3_000, batch_size=2)


def _mean_hits(results: Results) -> float:
    return float(np.mean([len(RELEVANT & set(s)) for s in results.selections(DATA, OFW, 9)]))


def _most_relevant(results: Results) -> Judged:
    hits = _mean_hits(results)
    return Judged(f"{hits:.1f} of the first nine", hits >= 6.0)


def _all_relevant(results: Results) -> Judged:
    found = [set(s) == RELEVANT for s in results.selections(DATA, OFW, 9)]
    return Judged(f"{sum(found)} of {len(found)} draws", all(found))


def _reusable_lead(results: Results) -> Judged:
    found = [set(s) == REUSABLE for s in results.selections(DATA, OFW, 3)]
    return Judged(f"{sum(found)} of {len(found)} draws", sum(found) > len(found) / 2)


STUDY = Study(
    name="gadat2007-synthetic",
    title="Optimal feature weighting: reusable features",
    source="Gadat and Younes, JMLR 8 (2007), section 5.1.1",
    about=(
        "100 ternary variables, nine of them relevant, three of these (1, 4, 8) for two classes; 500 "
        "samples for training, 100 for test; nearest neighbours with Hamming distance on four drawn "
        "variables, bootstrap sets of 100. The printed conditional entropies do not fit the printed "
        "generator (exact: 1.099, 1.025 and 1.024), so they are not compared."
    ),
    cost="10 draws × 200 000 steps, about 5 minutes on one core; a cell is capped at 300 s.",
    full=full,
    quick=quick,
    expectations=(
        Claim(
            "relevant features lead",
            "large weights on the relevant features, others ignored",
            "on average at least six of the first nine are relevant",
            _most_relevant,
        ),
        Claim(
            "all nine relevant features precede the noise",
            "the features after the reusable ones are still relevant",
            "the first nine are the relevant ones in every draw",
            _all_relevant,
            in_quick=False,
        ),
        Claim(
            "reusable features come first",
            "1, 4 and 8 are preferably selected",
            "they are the first three in more than half of the draws",
            _reusable_lead,
            in_quick=False,
        ),
        Claim(
            "nine features are better than all",
            "selection improves nearest neighbours",
            "lower mean error",
            lower_mean(DATA, (OFW,), (ALL,), 9),
            origin="expected here",
        ),
    ),
)
