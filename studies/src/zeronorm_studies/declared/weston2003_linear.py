"""Weston et al. 2003, linear toy problem: which methods find one feature of each redundant triple?"""

from __future__ import annotations

from scipy.stats import spearmanr

from zeronorm.datasets import make_linear_toy
from zeronorm_studies.models import linear_model
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.results import (
    Claim,
    ClaimCheck,
    NotMeasured,
    PublishedFigure,
    Results,
    indistinguishable,
    lower_mean,
    significantly_lower,
    within,
)
from zeronorm_studies.study import Configuration, Data, Plan, Study, generated

HARD = 1e6
"""Cost of errors that stands for a hard margin (the paper uses C = ∞ throughout)."""

FINAL_COST = 100.0
"""Two features seldom separate the classes, so the last SVM has a finite cost."""

SVM_CONFIGURATION = Configuration("SVM, all features")
AROM_CONFIGURATIONS = (
    Configuration("AROM l2", "arom", {"norm": "l2", "C": HARD, "scaling": "paper"}),
    Configuration("AROM l1", "arom", {"norm": "l1", "C": HARD, "scaling": "paper"}),
)
CONFIGURATIONS = (
    SVM_CONFIGURATION,
    Configuration("corr", "golub"),
    Configuration("top weights", "svm-weights", {"C": HARD}),
    Configuration("top weights, 1-norm", "l1-svm", {"C": HARD, "n_steps": 1}),
    Configuration("RFE", "rfe", {"C": HARD}),
    Configuration("R2W2", "radius-margin-scaling", {"kernel": "linear"}),
    *AROM_CONFIGURATIONS,
    Configuration("FSV", "fsv"),
)
QUICK = ("SVM, all features", "corr", "top weights", "AROM l2")
ZERO_NORM = ("AROM l2", "AROM l1", "FSV")
OTHERS = ("RFE", "R2W2", "corr", "SVM, all features")


def _data(n_train: int, n_trials: int) -> Data:
    return generated(
        f"{n_train} points",
        make_linear_toy,
        n_train=n_train,
        n_test=500,
        n_trials=n_trials,
        standardize=False,
    )


def full() -> Plan:
    return Plan(tuple(_data(n, 100) for n in (10, 20, 30)), CONFIGURATIONS, (2,), linear_model(FINAL_COST))


def quick() -> Plan:
    configs = tuple(config for config in CONFIGURATIONS if config.label in QUICK)
    return Plan((_data(30, 15),), configs, (2,), linear_model(FINAL_COST))


def share_of_split_pairs(results: Results, data: str, config: str) -> float:
    """Share of the draws in which one feature of each triple was selected."""
    pairs = results.selections(data, config, 2)
    return sum(min(pair) < 3 <= max(pair) < 6 for pair in map(tuple, pairs)) / len(pairs)


def _pairs_found(results: Results) -> ClaimCheck:
    arom, corr = (share_of_split_pairs(results, "30 points", config) for config in ("AROM l2", "corr"))
    return ClaimCheck(f"AROM l2 {arom:.0%}, corr {corr:.0%} of the draws", arom > corr)


def _shares_and_errors_disagree(results: Results) -> ClaimCheck:
    """With the fewest points, a larger share of good pairs does not always mean a lower error."""
    configs = [config.label for config in CONFIGURATIONS if not config.keeps_all]
    shares = [share_of_split_pairs(results, "10 points", config) for config in configs]
    errors = [results.mean("10 points", config, 2) for config in configs]
    rank = float(spearmanr(shares, errors).statistic)
    return ClaimCheck(f"rank correlation of share and error over the methods: {rank:.2f}", rank > -1.0)


def _overfits(results: Results) -> ClaimCheck:
    means = {size: results.mean(f"{size} points", SVM_CONFIGURATION.label, None) for size in (10, 20, 30)}
    best = {
        size: min(results.mean(f"{size} points", config, 2) for config in ZERO_NORM) for size in (10, 20, 30)
    }
    shown = ", ".join(
        f"{size} points: SVM {means[size]:.4f}, best zero-norm {best[size]:.4f}" for size in means
    )
    return ClaimCheck(shown, all(means[size] > best[size] for size in (20, 30)))


def _pair_section(results: Results) -> list[Section]:
    rows = []
    for data, config, size in results.keys:
        if size == 2:
            try:
                rows.append((data, config, f"{share_of_split_pairs(results, data, config):.0%}"))
            except (NotMeasured, ZeroDivisionError):
                rows.append((data, config, "–"))
    table = PageTable(("data", "method", "one of each triple"), tuple(rows))
    text = (
        "Share of the draws in which the two features are one of each triple, so that both states are served."
    )
    return [Section("Pairs that are not redundant", (text,), table)]


SKETCH = {
    "20 points": {
        "SVM, all features": 32.6,
        "corr": 19.5,
        "RFE": 13.0,
        "AROM l2": 12.2,
        "AROM l1": 11.5,
        "FSV": 11.0,
    },
    "30 points": {
        "SVM, all features": 26.8,
        "corr": 14.7,
        "RFE": 7.9,
        "AROM l2": 5.1,
        "AROM l1": 5.7,
        "FSV": 5.1,
    },
}


def _sketched() -> tuple[PublishedFigure, ...]:
    return tuple(
        PublishedFigure(
            f"test error, {data}, {config}",
            data,
            config,
            None if config == SVM_CONFIGURATION.label else 2,
            value,
            origin="expected here",
            note="an earlier sketch over 60 trials with other code; the paper's figure is lost",
        )
        for data, figures in SKETCH.items()
        for config, value in figures.items()
    )


STUDY = Study(
    name="weston2003-linear",
    title="Linear toy problem with redundant features",
    source="Weston, Elisseeff, Schölkopf and Tipping, JMLR 3 (2003)",
    about=(
        "202 features, of which six carry the class in two redundant triples; two features are selected "
        "and a linear SVM is trained on them; 500 test points. The numbers of the paper are lost in "
        "the copy at hand, so its statements are reproduced. Training sizes 10, 20 and 30 and 100 trials "
        "are from memory. The selectors have a hard margin (C = 10⁶); the SVM on the selected "
        "features has C = 100, since two features seldom separate the classes; columns are standardised "
        "by the training set."
    ),
    cost="100 trials × 3 sizes × 9 methods, about 10 minutes on one core.",
    full=full,
    quick=quick,
    expectations=(
        Claim(
            "zero-norm methods are alike (30 points)",
            "AROM ℓ1, ℓ2 and FSV are indistinguishable",
            "no pair with p < 0.05 / 3, signed rank",
            indistinguishable("30 points", ZERO_NORM, 2),
            in_quick=False,
        ),
        Claim(
            "zero-norm methods are better than the others (30 points)",
            "AROM and FSV beat RFE, R²W², corr and the plain SVM",
            "lower mean error than each of them",
            lower_mean("30 points", ZERO_NORM, OTHERS, 2),
            in_quick=False,
        ),
        Claim(
            "AROM ℓ2 is better than corr and the plain SVM (30 points)",
            "better at the larger sizes",
            "lower mean error, p < 0.05, signed rank",
            significantly_lower("30 points", "AROM l2", ("corr", "SVM, all features"), 2),
        ),
        Claim(
            "AROM ℓ2 is better than RFE (30 points)",
            "better at the larger sizes",
            "lower mean error, p < 0.05, signed rank",
            significantly_lower("30 points", "AROM l2", ("RFE",), 2),
            in_quick=False,
        ),
        Claim(
            "one-shot top-2 weights are about as good as corr (30 points)",
            "about as good",
            "means within 3 percentage points",
            within("30 points", "top weights", "corr", 2, 0.03),
            in_quick=False,
        ),
        Claim(
            "so are the two largest weights of the 1-norm SVM (30 points)",
            "both naive methods perform similarly to corr",
            "means within 3 percentage points",
            within("30 points", "top weights, 1-norm", "corr", 2, 0.03),
            in_quick=False,
        ),
        Claim(
            "AROM ℓ2 is better than the two largest weights (30 points)",
            "a check that the iterations do improve the chosen features",
            "lower mean error, p < 0.05, signed rank",
            significantly_lower("30 points", "AROM l2", ("top weights", "top weights, 1-norm"), 2),
            in_quick=False,
        ),
        Claim(
            "the SVM on all features overfits (20 and 30 points)",
            "conventional SVMs overfit",
            "higher mean error than the best zero-norm method",
            _overfits,
            in_quick=False,
        ),
        Claim(
            "good pairs and low errors do not go together with 10 points",
            "the number of good pairs is not completely correlated with the test error",
            "rank correlation over the methods is not −1",
            _shares_and_errors_disagree,
            in_quick=False,
        ),
        Claim(
            "AROM takes one feature of each triple more often than corr (30 points)",
            "multivariate selection avoids redundant features",
            "larger share of the draws",
            _pairs_found,
            origin="expected here",
        ),
        *_sketched(),
    ),
    sections=_pair_section,
)
