"""Gadat and Younes 2007, section 5.2.4: leukaemia."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from zeronorm import OptimalFeatureWeighting
from zeronorm.datasets import make_linear_toy
from zeronorm_studies.models import ENERGY_AFTER, MEAN_ENERGY, linear_model, not_learned
from zeronorm_studies.results import Check, Claim, ClaimCheck, Results, interval_reach, lower_mean
from zeronorm_studies.study import Configuration, Plan, Sample, Study, folds, sample_of, second_part_of

DATA, OFW, L0, RFE = "Leukemia", "OFW", "L0-SVM", "RFE"
ONE_FOLD = "Leukemia, first fold"
ALL, RANDOM = "linear SVM, all features", "random"
Rule = Literal["exponential", "diffusion"]
LEARNING: dict[Rule, str] = {"exponential": "learning, exponential", "diffusion": "learning, diffusion"}
UNIFORM, N_UNIFORM = "uniform draws", 20_000
FORESTS = {n: f"random forest, {n} trees" for n in (5, 10, 20, 50, 100, 200)}
SIZES = (5, 10, 20, 25, 100)


@cache
def leukemia() -> Sample:
    """Both published parts together: 72 samples."""
    (X, y), (X_test, y_test) = sample_of("leukemia"), second_part_of("leukemia")
    return np.vstack([X, X_test]), np.concatenate([y, y_test])


def toy() -> Sample:
    X, y, _ = make_linear_toy(72, standardize=False, random_state=1)
    return X, y


def _configurations(settings: dict[str, Any]) -> tuple[Configuration, ...]:
    everywhere = (DATA,)
    return (
        Configuration(ALL, only=everywhere),
        Configuration(OFW, "ofw", settings, only=everywhere),
        Configuration(RANDOM, "random", only=everywhere),
        Configuration(RFE, "rfe", {"C": 1.0, "step": 0.1}, only=everywhere),
        Configuration(L0, "arom", {"C": 10.0, "scaling": "paper"}, only=everywhere),
        Configuration("Fisher", "fisher", only=everywhere),
        *(
            Configuration(label, estimator=RandomForestClassifier(n), only=everywhere)
            for n, label in FORESTS.items()
        ),
    )


def _learning_configurations(settings: dict[str, Any]) -> tuple[Configuration, ...]:
    """Training errors after learning, and those of uniform draws, for one fold."""
    still = {**not_learned(settings), "max_iter": N_UNIFORM // 32, "batch_size": 32, "tol": 1e-12}
    distributions: dict[str, dict[str, Any]] = {
        LEARNING[rule]: {**settings, "method": rule} for rule in LEARNING
    }
    return tuple(
        Configuration(
            label,
            estimator=OptimalFeatureWeighting(25, estimator=linear_model(), **distribution),
            only=(ONE_FOLD,),
            metrics=("error_rate", ENERGY_AFTER, MEAN_ENERGY),
        )
        for label, distribution in (distributions | {UNIFORM: still}).items()
    )


def full() -> Plan:
    settings = {"subset_size": 100, "bootstrap_size": 20}
    data = folds(DATA, leukemia, n_folds=10)
    configs = (*_configurations(settings), *_learning_configurations(settings))
    return Plan(
        (data, replace(data, label=ONE_FOLD, n_trials=1)), configs, SIZES, linear_model(), cap_s=900.0
    )


def quick() -> Plan:
    configs = _configurations({"subset_size": 10, "bootstrap_size": 20, "max_iter": 600})[:3]
    return Plan((folds(DATA, toy, n_folds=4),), configs, (5, 20), linear_model())


def _l0_beats_rfe(results: Results) -> ClaimCheck:
    means = {config: np.mean([results.mean(DATA, config, size) for size in SIZES]) for config in (L0, RFE)}
    return ClaimCheck(
        ", ".join(f"{config} {value:.4f}" for config, value in means.items()),
        means[L0] < means[RFE],
    )


def _all_best(results: Results) -> ClaimCheck:
    every = results.mean(DATA, ALL, None)
    others = {config: results.mean(DATA, config, 25) for config in (OFW, RFE, L0)}
    shown = ", ".join(f"{config} {value:.4f}" for config, value in others.items())
    return ClaimCheck(f"all {every:.4f}; {shown}", every < min(others.values()))


def _energy_falls(rule: Rule) -> Check:
    def check(results: Results) -> ClaimCheck:
        before = results.mean(ONE_FOLD, UNIFORM, None, "mean_energy")
        after = results.mean(ONE_FOLD, LEARNING[rule], None, "energy_after")
        return ClaimCheck(f"{before:.4f} to {after:.4f}", before > 0.15 and after < 0.01)

    return check


def _few_genes(results: Results) -> ClaimCheck:
    ofw, *others = (results.mean(DATA, config, 5) for config in (OFW, RFE, L0))
    return ClaimCheck(f"OFW {ofw:.4f}, RFE {others[0]:.4f}, L0-SVM {others[1]:.4f}", ofw > max(others))


def _competitive(results: Results) -> ClaimCheck:
    shown, agrees = [], True
    for size in (20, 25):
        (ofw, error), *others = (results.mean_and_error(DATA, config, size) for config in (OFW, RFE, L0))
        best = min(mean for mean, _ in others)
        shown.append(f"{size} genes: OFW {ofw:.4f} ± {error:.4f}, better of RFE and L0-SVM {best:.4f}")
        n_trials = results.values(DATA, OFW, size).size
        agrees = agrees and ofw <= best + interval_reach(error, n_trials)
    return ClaimCheck("; ".join(shown), agrees)


def _forests_irregular(results: Results) -> ClaimCheck:
    means = [results.mean(DATA, label, None) for label in FORESTS.values()]
    shown = ", ".join(f"{n} trees {mean:.4f}" for n, mean in zip(FORESTS, means, strict=True))
    return ClaimCheck(shown, bool(np.any(np.diff(means) > 0.0)))


STUDY = Study(
    name="gadat2007-leukemia",
    title="Optimal feature weighting on leukaemia",
    source="Gadat and Younes, JMLR 8 (2007), section 5.2.4",
    about=(
        "72 samples of both published parts, ten stratified folds, selection inside each. The paper uses "
        "3859 preselected genes from a page that is not at hand; all 7129 raw genes are used here. Linear "
        "SVMs on 100 drawn genes, bootstrap sets of 20, all else as by default (diffusion). Figure 24 (mean "
        "training error while learning) is followed on the training set of one fold, its beginning as the mean error "
        f"of {N_UNIFORM} uniform draws. The other figures are "
        "drawings without numbers, so statements are compared. The quick version uses the linear toy problem."
    ),
    cost="10 folds × 12 methods, about 5 minutes on one core, nearly all for OFW; a task is capped at 15 minutes.",
    full=full,
    quick=quick,
    expectations=(
        *(
            Claim(
                f"learning lowers the mean training error, {rule} rule",
                "uniform draws of 100 genes: more than 15 %; learned: less than 1 %"
                + ("" if rule == "diffusion" else " (printed for the diffusion)"),
                "above 15 % at the beginning, below 1 % at the end",
                _energy_falls(rule),
                in_quick=False,
            )
            for rule in LEARNING
        ),
        Claim(
            "learned genes beat random genes",
            "learning improves on uniform draws",
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
        Claim(
            "OFW is less effective with 5 genes",
            "less effective for short subsets",
            "higher mean error than RFE and L0-SVM",
            _few_genes,
            in_quick=False,
        ),
        Claim(
            "OFW is competitive with 20 to 25 genes",
            "competitive with larger subsets",
            "above the better of RFE and L0-SVM by at most the half-width of the 95 % t interval, for both sizes",
            _competitive,
            in_quick=False,
        ),
        Claim(
            "forests are irregular",
            "results are very irregular in connection with the number of trees",
            "the mean error rises at least once as trees are added",
            _forests_irregular,
            in_quick=False,
        ),
    ),
)
