"""The default answer, its number of features included, beside models of other libraries with their usual tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from zeronorm import AutoSelector
from zeronorm.datasets._encoding import column_medians, fill
from zeronorm.evaluation.significance import signed_rank
from zeronorm_studies.models import as_dense
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.peers import CLASSIFIERS, LASSO, LOGISTIC, REGRESSORS, RFECV, RIDGE, SVM, OwnChoice
from zeronorm_studies.ranking import METRIC
from zeronorm_studies.real_data import (
    FRESH,
    FRESH_REGRESSION,
    TUNING,
    TUNING_REGRESSION,
    UNSEEN,
    UNSEEN_REGRESSION,
    embedded,
    loaded,
)
from zeronorm_studies.results import Claim, ClaimCheck, NotMeasured, Results
from zeronorm_studies.study import Configuration, Plan, Sample, Study, folds

N_FOLDS = 3
CAP_S = 300.0
RULES: tuple[Literal["recommended", "fewest", "all"], ...] = ("recommended", "fewest", "all")
OURS = f"auto, {RULES[0]}"
TOO_LARGE = ("dorothea",)  # 100,000 columns, which most of the peers need in dense form
JUDGED = tuple(name for name in (*UNSEEN, *FRESH) if name not in TOO_LARGE)
JUDGED_REGRESSION = (*UNSEEN_REGRESSION, *FRESH_REGRESSION)
EXPLAINED = "r2"
WITHIN = 0.005  # balanced error; the goal was half a point
WITHIN_VARIANCE = 0.01  # share of the variance
MOST_FEATURES = 40


def complete(name: str) -> Sample:
    """A dense data set whose missing values, where there are any, are the medians of their columns."""
    X, y = loaded(name)
    X = as_dense(X)
    return fill(X, column_medians(X)), y


def _configurations(task: Literal["classification", "regression"]) -> tuple[Configuration, ...]:
    peers = CLASSIFIERS if task == "classification" else REGRESSORS
    ours = [
        Configuration(f"auto, {rule}", factory=partial(AutoSelector, rule=rule, task=task)) for rule in RULES
    ]
    others = [Configuration(name, factory=partial(OwnChoice, choose)) for name, choose in peers.items()]
    return (*ours, *others)


def _plan(names: tuple[str, ...], task: Literal["classification", "regression"]) -> Plan:
    is_regression = task == "regression"
    data = tuple(
        folds(name, partial(complete, name), n_folds=N_FOLDS, stratified=not is_regression) for name in names
    )
    metric = EXPLAINED if is_regression else METRIC
    return Plan(
        data, _configurations(task), (None,), metrics=(metric,), cap_s=CAP_S, one_timeout_is_enough=True
    )


def full() -> Plan:
    return _plan(JUDGED, "classification")


def full_regression() -> Plan:
    return _plan(JUDGED_REGRESSION, "regression")


def tuning() -> Plan:
    """The same table on the data sets on which the defaults were chosen."""
    return _plan(TUNING, "classification")


def tuning_regression() -> Plan:
    """The same table on the data sets on which the defaults were chosen."""
    return _plan(TUNING_REGRESSION, "regression")


def quick() -> Plan:
    plan = _plan((), "classification")
    data = tuple(folds(name, partial(embedded, name), n_folds=2) for name in ("wine", "tumours"))
    return replace(plan, data=data, configs=(plan.configs[0], plan.configs[len(RULES)]))


def quick_regression() -> Plan:
    plan = _plan(("fermentation",), "regression")
    return replace(plan, configs=(plan.configs[0], plan.configs[len(RULES)]))


# -- Tables --


def errors(results: Results, config: str) -> dict[str, float]:
    """Mean error of a configuration on each data set where all folds ended.

    The balanced error rate, or for a real target the share of the variance that is left.
    """
    metric = results.plan.metrics[0]
    found = {}
    for data in results.plan.data:
        try:
            value = results.values(data.label, config, None, metric)
        except NotMeasured:
            continue
        found[data.label] = float((1.0 - np.maximum(value, 0.0) if metric == EXPLAINED else value).mean())
    return found


def numbers_of_features(results: Results, config: str) -> dict[str, float]:
    """Mean number of selected features on each data set."""
    return {
        name: float(results.values(name, config, None, "n_selected").mean())
        for name in errors(results, config)
    }


def common_data(results: Results, configs: tuple[str, ...]) -> list[str]:
    """The data sets on which all configurations have results."""
    found = [errors(results, config) for config in configs]
    return [data.label for data in results.plan.data if all(data.label in by_data for by_data in found)]


def _labels(results: Results) -> list[str]:
    return [config.label for config in results.plan.configs if config.label not in results.missing]


def _summary(results: Results) -> Section:
    labels = _labels(results)
    names = common_data(results, tuple(labels))
    ours = errors(results, OURS)
    rows = []
    for label in labels:
        by_data, counts = errors(results, label), numbers_of_features(results, label)
        shared = [name for name in by_data if name in ours]
        gain = np.asarray([by_data[name] - ours[name] for name in shared])
        p = signed_rank(gain, np.zeros(gain.size)).p_value if label != OURS and gain.size > 1 else None
        rows.append(
            (
                label,
                f"{100 * np.mean([by_data[name] for name in names]):.1f}" if names else "–",
                f"{np.median([counts[name] for name in names]):.0f}" if names else "–",
                str(len(shared)),
                f"{100 * gain.mean():+.2f}" if gain.size else "–",
                "–" if p is None else f"{p:.3g}",
            )
        )
    text = (
        f"Mean error in percent and median number of features on the {len(names)} data sets where every configuration "
        f"has a result; mean error minus that of '{OURS}' on the data sets that both have, with a signed rank test."
    )
    header = ("configuration", "error", "features", "data sets", f"minus {OURS}, points", "p")
    return Section("Errors and numbers of features", (text,), PageTable(header, tuple(rows)))


def _by_data(results: Results) -> Section:
    labels = _labels(results)
    found = {label: (errors(results, label), numbers_of_features(results, label)) for label in labels}
    rows = []
    for data in results.plan.data:
        n, p = data.draw(0).X.shape
        cells = (
            f"{100 * by_data[data.label]:.1f} ({counts[data.label]:.0f})" if data.label in by_data else "–"
            for by_data, counts in found.values()
        )
        rows.append((data.label, f"{n} × {p}", *cells))
    text = "Error in percent (mean number of features); – is a timeout or a refusal."
    return Section("By data set", (text,), PageTable(("data", "samples × features", *labels), tuple(rows)))


def _sections(results: Results) -> list[Section]:
    return [_summary(results), _by_data(results)]


# -- Claims --


def _near_the_best(rivals: tuple[str, ...], within: float) -> Callable[[Results], ClaimCheck]:
    def check(results: Results) -> ClaimCheck:
        names = common_data(results, (OURS, *rivals))
        if not names:
            raise NotMeasured("no data set has results of all")
        means = {
            label: float(np.mean([errors(results, label)[name] for name in names]))
            for label in (OURS, *rivals)
        }
        best = min(rivals, key=lambda label: means[label])
        text = f"{100 * means[OURS]:.1f} against {100 * means[best]:.1f} of {best} on {len(names)} data sets"
        return ClaimCheck(text, means[OURS] <= means[best] + within)

    return check


def _few_features(results: Results) -> ClaimCheck:
    counts = list(numbers_of_features(results, OURS).values())
    if not counts:
        raise NotMeasured("no result")
    return ClaimCheck(
        f"median {np.median(counts):.0f} on {len(counts)} data sets",
        float(np.median(counts)) <= MOST_FEATURES,
    )


def _claim(what: str, rule: str, check: Callable[[Results], ClaimCheck]) -> Claim:
    return Claim(what, "a goal set before the run", rule, check, origin="expected here", in_quick=False)


_FEW = _claim("the recommended list is short", f"median of at most {MOST_FEATURES} features", _few_features)


def _about(judged: tuple[str, ...], chosen_on: tuple[str, ...], peers: str) -> str:
    return (
        f"Each configuration chooses its own number of features and its predictor on the training samples. The rules "
        f"of auto were chosen on {', '.join(chosen_on)}; this page shows {len(judged)} other data sets: "
        f"{', '.join(judged)}. Missing values (two sets) are medians. {N_FOLDS} folds; a task may take {CAP_S:g} s. "
        f"{peers}"
    )


STUDY = Study(
    name="answer",
    title="The default answer beside other libraries, each with its own number of features",
    source="Lal, Chapelle, Weston and Elisseeff (2006), section 5, which asks for honest comparisons",
    about=_about(
        JUDGED,
        TUNING,
        "Peers get standardised columns and balanced class weights, and their C by five-fold cross-validation of the "
        "balanced accuracy; RFECV removes tenths of the remaining features, and one at a time among the last 100.",
    ),
    cost="about three hours on 2 cores; can be stopped and resumed.",
    full=full,
    quick=quick,
    expectations=(
        _claim(
            "the recommended list predicts as well as the best peer",
            f"mean error at most {100 * WITHIN:g} points above the best of three",
            _near_the_best((LOGISTIC, SVM, RFECV), WITHIN),
        ),
        _FEW,
    ),
    sections=_sections,
)
REGRESSION = Study(
    name="answer-regression",
    title="The default answer for real targets beside other libraries",
    source=STUDY.source,
    about=_about(
        JUDGED_REGRESSION,
        TUNING_REGRESSION,
        "The error is the share of the variance that is left. Peers get standardised columns and choose their penalty "
        "by cross-validation.",
    ),
    cost="about twenty minutes on 2 cores; can be stopped and resumed.",
    full=full_regression,
    quick=quick_regression,
    expectations=(
        _claim(
            "the recommended list predicts as well as the best peer",
            f"unexplained variance at most {100 * WITHIN_VARIANCE:g} point above the better of two",
            _near_the_best((LASSO, RIDGE), WITHIN_VARIANCE),
        ),
        _FEW,
    ),
    sections=_sections,
)
