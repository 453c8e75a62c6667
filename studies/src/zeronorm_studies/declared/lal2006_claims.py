"""Lal et al. 2006, closing claims: filters and embedded methods as data grow; embedded methods and wrappers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.feature_selection import SequentialFeatureSelector

from zeronorm.datasets import make_linear_toy
from zeronorm_studies.models import linear_model
from zeronorm_studies.results import Claim, ClaimCheck, Results, significantly_lower
from zeronorm_studies.study import Configuration, Data, Plan, Study, generated

N_TRAIN = (8, 12, 20, 30, 60, 120)
N_FEATURES = 52
COST = 10.0
WRAPPER = "forward search (wrapper)"
SELECTED = 2


class ForwardSearch(SequentialFeatureSelector):  # type: ignore[misc]
    """scikit-learn's wrapper with a ranking: the selected features before the others."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        super().fit(X, y, **params)
        self.ranking_ = np.where(self.support_, 1, 2)
        return self


def make_wrapper() -> Any:
    """Forward selection by cross-validated accuracy."""
    return ForwardSearch(linear_model(COST), n_features_to_select=SELECTED, cv=3)


CONFIGURATIONS = (
    Configuration("Fisher (filter)", "fisher"),
    Configuration("corr (filter)", "golub"),
    Configuration("RFE (embedded)", "rfe", {"C": COST}),
    Configuration("AROM (embedded)", "arom", {"C": COST, "scaling": "paper"}),
    Configuration(WRAPPER, factory=make_wrapper, sizes=(None,)),
)


def _data(n_train: int, n_trials: int) -> Data:
    return generated(
        f"{n_train} points",
        make_linear_toy,
        n_train=n_train,
        n_test=500,
        n_trials=n_trials,
        n_features=N_FEATURES,
        standardize=False,
    )


def full() -> Plan:
    return Plan(tuple(_data(n, 20) for n in N_TRAIN), CONFIGURATIONS, (SELECTED,), linear_model(COST))


def quick() -> Plan:
    return Plan((_data(60, 10),), CONFIGURATIONS[:4], (SELECTED,), linear_model(COST))


def _filters_first(results: Results) -> ClaimCheck:
    data = f"{N_TRAIN[0]} points"
    filters = min(results.mean(data, config.label, SELECTED) for config in CONFIGURATIONS[:2])
    embedded = min(results.mean(data, config.label, SELECTED) for config in CONFIGURATIONS[2:4])
    return ClaimCheck(f"best filter {filters:.4f}, best embedded {embedded:.4f}", filters < embedded)


def _faster(results: Results) -> ClaimCheck:
    ratios = []
    for data in results.plan.data:
        wrapper = np.median(results.values(data.label, WRAPPER, None, "fit_seconds"))
        slowest = max(
            float(np.median(results.values(data.label, config.label, SELECTED, "fit_seconds")))
            for config in CONFIGURATIONS[2:4]
        )
        ratios.append(float(wrapper) / slowest)
    shown = f"wrapper / slowest embedded: {min(ratios):.1f} to {max(ratios):.1f}"
    return ClaimCheck(shown, min(ratios) > 1.0)


STUDY = Study(
    name="lal2006-claims",
    title="Filters, embedded methods and wrappers",
    source="Lal, Chapelle, Weston and Elisseeff, Embedded Methods (2006), section 5",
    about=(
        "The chapter expects filters to be better on little data and embedded methods to overtake them, "
        "and embedded methods to be faster than wrappers. Tried on the linear toy problem with 52 "
        "features and redundant triples, two features selected, linear SVM with C = 10; the problem, "
        "sizes and trials are our choice, and one problem cannot prove a general statement. The wrapper "
        "is scikit-learn's SequentialFeatureSelector with three folds."
    ),
    cost="20 trials × 6 sizes × 5 methods, about 10 minutes on one core, nearly all of it for the wrapper.",
    full=full,
    quick=quick,
    expectations=(
        Claim(
            "filters are better with very little data (8 points)",
            "filters perform better if only small amounts of training data are available",
            "the best filter has a lower mean error than the best embedded method",
            _filters_first,
            in_quick=False,
        ),
        Claim(
            "embedded methods overtake filters (60 points)",
            "embedded methods eventually outperform filters",
            "AROM lower than both filters, p < 0.05, signed rank",
            significantly_lower(
                "60 points", "AROM (embedded)", ("Fisher (filter)", "corr (filter)"), SELECTED
            ),
        ),
        Claim(
            "embedded methods are faster than the wrapper",
            "expected to be faster than wrappers",
            "ratio of median times > 1 at every size",
            _faster,
            in_quick=False,
        ),
    ),
)
