"""Gadat and Younes 2007, section 5.1.1: reusable features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from zeronorm.datasets._generators import FIXED_SETS, make_reusable_features
from zeronorm.engines.weighting.learners import SubsetKNN
from zeronorm_studies.models import ENERGY_AFTER, ENERGY_BEFORE, VOTER_ERROR, voters, weight_metric
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.results import Check, Claim, ClaimCheck, NotMeasured, Results, lower_mean
from zeronorm_studies.study import Configuration, Plan, Study, generated

DATA, ALL, OFW, INFORMATION = "reusable features", "5-NN, all features", "OFW", "mutual information"
FEW = "reusable features, three draws"
LEARNING = {rule: f"learning, {rule}" for rule in ("exponential", "euclidean", "diffusion")}
# The exact gradient sums over all subsets, 5050 pairs here; subsets of four would be 4.6 million.
N_PAIR, N_VOTERS = 2, 200
PAIRS = {rule: f"pairs, {rule}" for rule in ("exact", "exponential", "euclidean", "diffusion")}
DRAWN = {size: f"weights, {size} features drawn" for size in (2, 3, 4)}
RELEVANT = set(range(9))
REUSABLE = {0, 3, 7}
N_TRAIN, N_SHOWN = 500, 15
SIGNAL = 0.9
PRINTED_ENTROPIES = (1.009, 0.852, 0.856)


def _learner(**settings: Any) -> dict[str, Any]:
    return {
        "learner": SubsetKNN(5, metric="hamming"),
        "subset_size": 4,
        "bootstrap_size": 100,
        "standardize": False,
        "method": "exponential",
        **settings,
    }


def _configurations(settings: dict[str, Any]) -> tuple[Configuration, ...]:
    return (
        Configuration(ALL, only=(DATA,)),
        Configuration(OFW, "ofw", settings, only=(DATA,)),
        Configuration(INFORMATION, "mutual-information", only=(DATA,)),
    )


def _observed(label: str, metrics: tuple[Any, ...], **settings: Any) -> Configuration:
    """A vote of classifiers on features drawn from the weights; their single errors and the weights can be read."""
    model = voters(_learner(**settings), N_VOTERS, KNeighborsClassifier(5, metric="hamming"))
    return Configuration(label, estimator=model, only=(FEW,), metrics=("error_rate", *metrics))


def _observed_configurations() -> tuple[Configuration, ...]:
    energies = (ENERGY_BEFORE, ENERGY_AFTER)
    weights = tuple(weight_metric(f"weight {index + 1}", index) for index in range(N_SHOWN))
    learning = [_observed(label, energies, method=rule) for rule, label in LEARNING.items()]
    pairs = [
        _observed(label, (ENERGY_AFTER, VOTER_ERROR), method=rule, subset_size=N_PAIR)
        for rule, label in PAIRS.items()
    ]
    return (*learning, *pairs, *(_observed(label, weights, subset_size=k) for k, label in DRAWN.items()))


def _plan(n_trials: int, configs: tuple[Configuration, ...], n_features: int = 100) -> Plan:
    data = generated(
        DATA, make_reusable_features, n_train=N_TRAIN, n_test=100, n_trials=n_trials, n_features=n_features
    )
    few = replace(data, label=FEW, n_trials=3)
    every = (data, few) if any(config.only == (FEW,) for config in configs) else (data,)
    return Plan(every, configs, (3, 9), KNeighborsClassifier(5, metric="hamming"), cap_s=300.0)


def full() -> Plan:
    return _plan(10, (*_configurations(_learner()), *_observed_configurations()))


def quick() -> Plan:
    return _plan(2, _configurations(_learner(max_iter=600)), n_features=30)


def _most_relevant(results: Results) -> ClaimCheck:
    hits = float(np.mean([len(RELEVANT & set(s)) for s in results.selections(DATA, OFW, 9)]))
    return ClaimCheck(f"{hits:.1f} of the first nine", hits >= 6.0)


def _all_relevant(config: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        found = [set(s) == RELEVANT for s in results.selections(DATA, config, 9)]
        return ClaimCheck(f"{sum(found)} of {len(found)} draws", all(found))

    return check


def _reusable_lead(config: str, *, expected: bool) -> Check:
    def check(results: Results) -> ClaimCheck:
        found = [set(s) == REUSABLE for s in results.selections(DATA, config, 3)]
        return ClaimCheck(f"{sum(found)} of {len(found)} draws", (sum(found) > len(found) / 2) is expected)

    return check


def _energies(results: Results) -> dict[str, float]:
    return {rule: results.mean(FEW, label, None, "energy_after") for rule, label in LEARNING.items()}


def _euclidean_is_better(results: Results) -> ClaimCheck:
    found = _energies(results)
    shown = ", ".join(f"{rule} {value:.4f}" for rule, value in found.items())
    return ClaimCheck(shown, found["euclidean"] < found["exponential"])


def _diffusion_is_alike(results: Results) -> ClaimCheck:
    found = _energies(results)
    shown = f"euclidean {found['euclidean']:.4f}, diffusion {found['diffusion']:.4f}"
    return ClaimCheck(shown, abs(found["euclidean"] - found["diffusion"]) <= 0.02)


def _test_energies(results: Results) -> dict[str, float]:
    return {rule: results.mean(FEW, label, None, "voter_error") for rule, label in PAIRS.items()}


def _stochastic_escapes(results: Results) -> ClaimCheck:
    found = _test_energies(results)
    shown = f"exact {found['exact']:.4f}, exponential {found['exponential']:.4f}"
    return ClaimCheck(shown, found["exponential"] < found["exact"])


def _exact_is_like_euclidean(results: Results) -> ClaimCheck:
    found = _test_energies(results)
    shown = ", ".join(f"{rule} {value:.4f}" for rule, value in found.items())
    return ClaimCheck(shown, abs(found["exact"] - found["euclidean"]) <= 0.02)


def conditional_entropy(feature: int) -> float:
    """Entropy of the class given one feature, in nats, exactly from the generator."""
    fixed = [SIGNAL * sum(feature + 1 in chosen for chosen in sets) / 3 for sets in FIXED_SETS]
    joint = np.asarray([[(1 - a) / 3, (1 - a) / 3, a + (1 - a) / 3] for a in fixed]) / 3
    return float(-np.sum(joint * np.log(joint / joint.sum(axis=0))))


def _entropies(results: Results) -> ClaimCheck:
    ours = [conditional_entropy(feature) for feature in (9, 1, 0)]
    close = all(abs(a - b) < 5e-4 for a, b in zip(ours, PRINTED_ENTROPIES, strict=True))
    return ClaimCheck(", ".join(f"{value:.3f}" for value in ours), close)


def _weights(results: Results) -> list[Section]:
    rows = []
    for config in DRAWN.values():
        try:
            found = [results.mean(FEW, config, None, f"weight {index + 1}") for index in range(N_SHOWN)]
        except NotMeasured:
            continue
        rows.append((config, *(f"{100 * value:.1f}" for value in found)))
    if not rows:
        return []
    text = f"Per cent, mean of three draws, of the first {N_SHOWN} features; 1, 4 and 8 serve two classes."
    header = ("", *(str(index + 1) for index in range(N_SHOWN)))
    return [Section("Weights (Figure 9)", (text,), PageTable(header, tuple(rows)))]


STUDY = Study(
    name="gadat2007-synthetic",
    title="Optimal feature weighting: reusable features",
    source="Gadat and Younes, JMLR 8 (2007), section 5.1.1",
    about=(
        "100 ternary variables, nine of them relevant, three of these (1, 4, 8) for two classes; 500 "
        "samples for training, 100 for test; nearest neighbours with Hamming distance on four drawn "
        "variables, bootstrap sets of 100, steps that follow from the data. OFW is the exponential rule; the rules are "
        "compared on three draws, each ended by its stopping rule. Their error rates are those of a vote of 200 "
        "classifiers, each on features drawn from the final weights. The exact gradient sums over all subsets: it is "
        "computed for pairs of features, and compared with the other rules on pairs by the mean error of the single "
        "classifiers on the test set, as in Figure 8."
    ),
    cost="10 draws and 3 draws × 10 settings, about 10 minutes on one core; a task is capped at 300 s.",
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
            _all_relevant(OFW),
            in_quick=False,
        ),
        Claim(
            "reusable features come first",
            "1, 4 and 8 are preferably selected",
            "they are the first three in more than half of the draws",
            _reusable_lead(OFW, expected=True),
            in_quick=False,
        ),
        Claim(
            "information about the class discards the noise",
            "it would correctly discard the non-informative variables",
            "the first nine by mutual information are the relevant ones in every draw",
            _all_relevant(INFORMATION),
            in_quick=False,
        ),
        Claim(
            "information about the class does not find the reusable features",
            "it fails to discriminate between the last two groups",
            "1, 4 and 8 are the first three by mutual information in at most half of the draws",
            _reusable_lead(INFORMATION, expected=False),
            in_quick=False,
        ),
        Claim(
            "conditional entropies of the class",
            "1.009 (noise), 0.852 (one class), 0.856 (two classes)",
            "exact values of the printed generator, equal to the printed decimals",
            _entropies,
            origin="figure",
            in_quick=False,
            note="the first may be a misprint of ln 3 = 1.099; the others do not follow from the printed generator",
        ),
        Claim(
            "the Euclidean rule reaches lower errors than the exponential one",
            "better results faster",
            "lower mean training error at the end",
            _euclidean_is_better,
            in_quick=False,
            note="the Euclidean rule ends early when a weight would turn negative",
        ),
        Claim(
            "the diffusion is as efficient as the Euclidean rule",
            "almost similar",
            "mean training errors at the end within 2 percentage points",
            _diffusion_is_alike,
            in_quick=False,
        ),
        Claim(
            "the stochastic exponential rule escapes minima that hold the exact gradient (Figure 6)",
            "the exact algorithm is faster but is quickly captured in a local minimum",
            "lower mean test error of single classifiers on pairs of features",
            _stochastic_escapes,
            in_quick=False,
            note="the figure shows training errors, whose samples differ between the two here",
        ),
        Claim(
            "the exact gradient and the Euclidean rule are alike (Figure 8)",
            "almost equivalent",
            "mean test errors of single classifiers on pairs of features within 2 percentage points",
            _exact_is_like_euclidean,
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
    sections=_weights,
)
