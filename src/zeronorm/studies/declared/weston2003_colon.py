"""Weston et al. 2003: gene selection on the Colon data."""

from __future__ import annotations

from zeronorm.studies.huang import colon
from zeronorm.studies.microarray import claims, full_plan, quick_plan
from zeronorm.studies.study import Plan, Study
from zeronorm.studies.trials import resplits

N_TRIALS = 50


def full() -> Plan:
    return full_plan(resplits("Colon", colon, n_trials=N_TRIALS, test_size=12))


def quick() -> Plan:
    return quick_plan("Colon")


STUDY = Study(
    name="weston2003-colon",
    title="Gene selection on the Colon data",
    source="Weston, Elisseeff, Schölkopf and Tipping, JMLR 3 (2003)",
    about=(
        "62×2000, 40 tumour and 22 normal, 50 for training and 12 for test; decimal logarithm of the "
        "intensities. The paper's numbers are lost; the sizes of the subsets and the number of divisions "
        "(50 here, believed to be 500 in the paper) are ours. Selectors have a hard margin, the last "
        "machine C = 100; RFE removes 10 % per round. The quick version uses the linear toy problem "
        "instead of the genes."
    ),
    cost="50 divisions × 6 methods, about 3 minutes on one core.",
    full=full,
    quick=quick,
    expectations=claims("Colon", 20),
)
