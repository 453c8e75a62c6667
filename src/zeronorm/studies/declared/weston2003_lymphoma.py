"""Weston et al. 2003: gene selection on the Lymphoma data."""

from __future__ import annotations

from zeronorm.studies.huang import lymphoma
from zeronorm.studies.microarray import claims, full_plan, quick_plan
from zeronorm.studies.study import Plan, Study
from zeronorm.studies.trials import resplits

N_TRIALS = 50


def full() -> Plan:
    return full_plan(resplits("Lymphoma", lymphoma, n_trials=N_TRIALS, test_size=36))


def quick() -> Plan:
    return quick_plan("Lymphoma")


STUDY = Study(
    name="weston2003-lymphoma",
    title="Gene selection on the Lymphoma data",
    source="Weston, Elisseeff, Schölkopf and Tipping, JMLR 3 (2003)",
    about=(
        "96×4026, 62 malignant and 34 other, 60 for training and 36 for test; missing values become "
        "medians of the training part. The paper's numbers are lost; the sizes of the subsets and the "
        "number of divisions (50 here, believed to be 500 in the paper) are ours. Selectors have a hard "
        "margin, the last machine C = 100; RFE removes 10 % per round. The quick version uses the linear "
        "toy problem instead of the genes."
    ),
    cost="50 divisions × 6 methods, about 5 minutes on one core.",
    full=full,
    quick=quick,
    expectations=claims("Lymphoma", 20),
)
