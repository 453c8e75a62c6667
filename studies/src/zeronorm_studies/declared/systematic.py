"""The comparison the chapter asked for: every registered selector on the same data with the same protocol."""

from __future__ import annotations

from zeronorm.registry import MethodInfo, all_methods
from zeronorm_studies.models import tuned_squared_hinge_model
from zeronorm_studies.pages import Section
from zeronorm_studies.ranking import mean_rank_of, ranking_sections, winner_sections
from zeronorm_studies.real_data import quick_data, real_data
from zeronorm_studies.results import Claim, ClaimCheck, Results
from zeronorm_studies.study import Configuration, Data, Plan, Study

SIZES = (5, 10, 20, 50)
RANDOM = "random"


def _selectors() -> list[MethodInfo]:
    return all_methods("selector", task="binary")


def _plan(methods: list[MethodInfo], data: tuple[Data, ...], sizes: tuple[int, ...], cap_s: float) -> Plan:
    configs = tuple(Configuration(method.name, method.name) for method in methods)
    return Plan(
        data,
        (Configuration("all features"), *configs),
        sizes,
        tuned_squared_hinge_model(),
        metrics=("error_rate", "balanced_error_rate"),
        cap_s=cap_s,
        one_timeout_is_enough=True,
    )


def full() -> Plan:
    return _plan(_selectors(), real_data(5), SIZES, 60.0)


def quick() -> Plan:
    names = ("fisher", "golub", "relief", "svm-weights", RANDOM)
    return _plan([m for m in _selectors() if m.name in names], quick_data(2), (2, 5), 60.0)


def _random_is_last(results: Results) -> ClaimCheck:
    size = min(size for size in results.plan.sizes if size is not None)
    ranks = mean_rank_of(results, size)
    worst = max(ranks, key=lambda config: ranks[config])
    return ClaimCheck(
        f"mean rank of random selection {ranks[RANDOM]:.2f}, largest: {worst} {ranks[worst]:.2f}",
        worst == RANDOM,
    )


def _sections(results: Results) -> list[Section]:
    sizes = [size for size in results.plan.sizes if size is not None]
    return winner_sections(results, sizes[len(sizes) // 2]) + ranking_sections(results)


STUDY = Study(
    name="systematic",
    title="Every method on every data set",
    source="Lal, Chapelle, Weston and Elisseeff (2006), section 5, which asks for such a comparison",
    about=(
        "All registered selectors for two classes, with their default settings, on 13 real data sets and one "
        "artificial one (madelon) with two classes; five stratified folds (the prostate subjects stay "
        "whole); subsets of 5, 10, 20 and 50 features; a linear SVM with squared hinge loss, whose cost "
        "is chosen inside the training set, scores all of them. "
        "100 probes (columns in another row order) are appended to every data set. A task may take 60 s; "
        "after one timeout the other folds of the method on that data set are not tried. For the ranks a "
        "method without a result has the error of always predicting the larger class."
    ),
    cost="at most 3 hours on 2 cores; can be stopped and resumed.",
    full=full,
    quick=quick,
    expectations=(
        Claim(
            "random selection is last",
            "a check of the protocol",
            "largest mean rank at the smallest size",
            _random_is_last,
            origin="expected here",
        ),
    ),
    sections=_sections,
)
