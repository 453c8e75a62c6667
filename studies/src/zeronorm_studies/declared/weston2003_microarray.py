"""The two-class microarray experiments of Weston et al. (2003), which share methods and rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from zeronorm.datasets import make_linear_toy
from zeronorm.evaluation.significance import signed_rank
from zeronorm_studies.models import linear_model
from zeronorm_studies.real_data import colon, lymphoma
from zeronorm_studies.results import Claim, ClaimCheck, Results
from zeronorm_studies.study import Configuration, Data, Plan, Sample, Study, resplits

HARD = 1e6
ALL = "SVM, all features"
SELECTORS = (
    Configuration("corr", "golub"),
    Configuration("RFE", "rfe", {"C": HARD, "step": 0.1}),
    Configuration("R2W2", "radius-margin-scaling", {"kernel": "linear"}),
    Configuration("FSV", "fsv"),
    Configuration("AROM l2", "arom", {"C": HARD, "scaling": "paper"}),
)
N_TRIALS = 50
SIZES = (20, 50, 100, 250, 500, 1000)


def toy_sample() -> Sample:
    """A small sample for quick versions."""
    X, y, _ = make_linear_toy(60, standardize=False, random_state=0)
    return X, y


def full_plan(data: Data) -> Plan:
    return Plan((data,), (Configuration(ALL), *SELECTORS), SIZES, linear_model(100.0))


def quick_plan(label: str) -> Plan:
    """AROM, the filter and all features on resplits of a small toy sample."""
    data = resplits(label, toy_sample, n_trials=6, test_size=15, stratify=True)
    configs = (Configuration(ALL), SELECTORS[0], SELECTORS[-1])
    return Plan((data,), configs, (2, 20), linear_model(100.0))


def claims(label: str, smallest: int) -> tuple[Claim, ...]:
    """What the text of the paper says about both data sets."""
    return (
        Claim(
            "no significant differences between the methods",
            "none significant by the corrected resampled t-test"
            + (" apart from corr at one size" if label == "Colon" else ""),
            f"no pair with p < 0.05, corr with {smallest} genes aside",
            _no_differences(label, smallest),
            in_quick=False,
        ),
        Claim(
            "few genes are enough",
            "zero-norm selection performs about as well as the best alternative",
            "some AROM subset has a mean error of at most that of all genes plus one standard error",
            _few_are_enough(label),
        ),
        Claim(
            "the signed rank test finds many differences",
            "it returns that many of the differences are significant",
            "more than a tenth of the pairs have p < 0.05 by the signed rank test",
            _many_by_signed_rank(label),
            in_quick=False,
            note="the divisions overlap, so this test is not valid here",
        ),
        Claim(
            "too few genes cost accuracy",
            "selection degrades performance when the number of features becomes too small",
            f"AROM with {smallest} genes has a higher mean error than with its best size",
            _too_few(label, smallest),
            in_quick=False,
        ),
        Claim(
            "time of the methods",
            "corr is fastest, then SVMs in the dual (RFE, ℓ2-AROM), slowest the 1-norm (FSV)",
            "medians over the divisions: corr < RFE and AROM < FSV",
            _order_of_times(label),
            in_quick=False,
        ),
    )


def _no_differences(label: str, smallest: int) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        configs = [config.label for config in results.plan.configs if not config.keeps_all]
        found = [
            (a, b, size, results.difference(label, a, b, size))
            for size in results.plan.sizes
            for a, b in combinations(configs, 2)
            if not (size == smallest and "corr" in (a, b))
        ]
        different = [(a, b, size, d) for a, b, size, d in found if d.p_value < 0.05]
        shown = "; ".join(f"{a} − {b} at {size}: {d}" for a, b, size, d in different)
        return ClaimCheck(f"{len(different)} of {len(found)} pairs. {shown}", not different)

    return check


def _many_by_signed_rank(label: str) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        configs = [config.label for config in results.plan.configs if not config.keeps_all]
        p_values = [
            signed_rank(results.values(label, a, size), results.values(label, b, size)).p_value
            for size in results.plan.sizes
            for a, b in combinations(configs, 2)
        ]
        different = sum(p < 0.05 for p in p_values)
        return ClaimCheck(f"{different} of {len(p_values)} pairs", different > len(p_values) / 10)

    return check


def _too_few(label: str, smallest: int) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        means = {size: results.mean(label, "AROM l2", size) for size in results.plan.sizes}
        best = min(means, key=lambda size: means[size])
        shown = f"{smallest} genes {means[smallest]:.4f}, best with {best}: {means[best]:.4f}"
        return ClaimCheck(shown, means[smallest] > means[best])

    return check


def _order_of_times(label: str) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        size = results.plan.sizes[0]
        times = {
            config: float(np.median(results.values(label, config, size, "fit_seconds")))
            for config in ("corr", "RFE", "AROM l2", "FSV")
        }
        shown = ", ".join(f"{config} {seconds:.3g} s" for config, seconds in times.items())
        dual = (times["RFE"], times["AROM l2"])
        return ClaimCheck(shown, times["corr"] < min(dual) and max(dual) < times["FSV"])

    return check


def _few_are_enough(label: str) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        every, error = results.mean_and_error(label, ALL, None)
        means = {size: results.mean(label, "AROM l2", size) for size in results.plan.sizes}
        best = min(means, key=lambda size: means[size])
        shown = f"AROM with {best} features {means[best]:.4f}, all features {every:.4f} ± {error:.4f}"
        return ClaimCheck(shown, means[best] <= every + error)

    return check


COLON = Study(
    name="weston2003-colon",
    title="Gene selection on the Colon data",
    source="Weston, Elisseeff, Schölkopf and Tipping, JMLR 3 (2003)",
    about=(
        "62×2000, 40 tumour and 22 normal, 50 for training and 12 for test; decimal logarithm of the "
        "intensities. The paper's numbers are lost; the sizes of the subsets and the number of divisions "
        "(50 here, believed to be 500 in the paper) are ours. Selectors have a hard margin, the last "
        "SVM C = 100; RFE removes 10 % per round. The quick version uses the linear toy problem "
        "instead of the genes."
    ),
    cost="50 divisions × 6 methods, about 3 minutes on one core.",
    full=lambda: full_plan(resplits("Colon", colon, n_trials=N_TRIALS, test_size=12)),
    quick=lambda: quick_plan("Colon"),
    expectations=claims("Colon", 20),
)

LYMPHOMA = Study(
    name="weston2003-lymphoma",
    title="Gene selection on the Lymphoma data",
    source="Weston, Elisseeff, Schölkopf and Tipping, JMLR 3 (2003)",
    about=(
        "96×4026, 62 malignant and 34 other, 60 for training and 36 for test; missing values become "
        "medians of the training set. The paper's numbers are lost; the sizes of the subsets and the "
        "number of divisions (50 here, believed to be 500 in the paper) are ours. Selectors have a hard "
        "margin, the last SVM C = 100; RFE removes 10 % per round. The quick version uses the linear "
        "toy problem instead of the genes."
    ),
    cost="50 divisions × 6 methods, about 5 minutes on one core.",
    full=lambda: full_plan(resplits("Lymphoma", lymphoma, n_trials=N_TRIALS, test_size=36)),
    quick=lambda: quick_plan("Lymphoma"),
    expectations=claims("Lymphoma", 20),
)
