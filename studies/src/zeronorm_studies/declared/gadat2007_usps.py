"""Gadat and Younes 2007, section 5.2.3: handwritten digits."""

from __future__ import annotations

from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.svm import SVC, LinearSVC

from zeronorm import OptimalFeatureWeighting
from zeronorm.evaluation import Metric
from zeronorm_studies.models import (
    ENERGY_AFTER,
    ENERGY_BEFORE,
    digits_trial,
    not_learned,
    one_split,
    usps_trial,
)
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.results import Claim, ClaimCheck, NotMeasured, PublishedFigure, Results, lower_mean
from zeronorm_studies.study import (
    Configuration,
    Data,
    FloatArray,
    Plan,
    Study,
    published_split,
    sample_of,
    second_part_of,
)

DATA, PIXELS, OFW, RANDOM = "USPS", "USPS, pixels", "OFW", "random"
PLAIN = "USPS, edges without sign"
EDGES, SOFT_EDGES = "linear SVM, all edges", "linear SVM, all edges, C = 0.01"
DRAWN = {size: f"10 voters a digit, {size} features drawn by OFW" for size in (40, 100)}
UNIFORM = {size: f"10 voters a digit, {size} features drawn uniformly" for size in (40, 100)}
LINEAR, POLYNOMIAL = "linear SVM", "polynomial SVM"
N_VOTERS = 10
ONE_SPLIT = "one published split, so no standard error"


def _ofw(subset_size: int) -> dict[str, Any]:
    return {"subset_size": subset_size, "bootstrap_size": 100}


def _drawn(size: int, *data: str) -> tuple[Configuration, Configuration]:
    """Votes with features drawn from the learned distribution and from the uniform one."""
    settings = _ofw(size)
    model = LinearSVC(dual=False, max_iter=20_000)
    learned, uniform = (
        ClassVoters(OptimalFeatureWeighting(**distribution), model, n_voters=N_VOTERS, subset_size=size)
        for distribution in (settings, not_learned(settings))
    )
    errors = ("error_rate", VOTE_ERROR, MODEL_ERROR)
    return (
        Configuration(
            DRAWN[size], estimator=learned, only=data, metrics=(*errors, ENERGY_BEFORE, ENERGY_AFTER)
        ),
        Configuration(UNIFORM[size], estimator=uniform, only=data, metrics=errors),
    )


def _pixels() -> Data:
    return published_split(PIXELS, partial(sample_of, "usps"), partial(second_part_of, "usps"))


def full() -> Plan:
    edges = (DATA,)
    configs = (
        Configuration(EDGES, only=(DATA, PLAIN)),
        Configuration(SOFT_EDGES, estimator=LinearSVC(C=0.01, dual=True), only=(DATA, PLAIN)),
        *_drawn(40, DATA),
        *_drawn(100, DATA, PLAIN),
        Configuration(OFW, "ofw", _ofw(100), only=edges),
        Configuration(RANDOM, "random", only=edges),
        Configuration(LINEAR, only=(PIXELS,)),
        Configuration(POLYNOMIAL, estimator=SVC(kernel="poly", degree=3, gamma=1 / 256), only=(PIXELS,)),
    )
    plain = one_split(PLAIN, partial(usps_trial, are_plain=True))
    data = (one_split(DATA, usps_trial, version=3), plain, _pixels())
    return Plan(data, configs, (40, 100), LinearSVC(dual=True), cap_s=1800.0)


def quick() -> Plan:
    settings = {**_ofw(10), "max_iter": 100}
    configs = (Configuration(OFW, "ofw", settings), Configuration(RANDOM, "random"))
    data = one_split(DATA, partial(digits_trial, 4))
    return Plan((data,), configs, (10,), LinearSVC(dual=True, max_iter=20_000))


def _learned_beats_random(results: Results) -> ClaimCheck:
    return lower_mean(DATA, (OFW,), (RANDOM,), results.plan.sizes[0])(results)


def _drawn_beat_uniform(metric: str, results: Results) -> ClaimCheck:
    shown, agrees = [], True
    for size in DRAWN:
        learned, uniform = (results.mean(DATA, config[size], None, metric) for config in (DRAWN, UNIFORM))
        shown.append(f"{size} features: {learned:.4f} against {uniform:.4f}")
        agrees = agrees and learned < uniform
    return ClaimCheck("; ".join(shown), agrees)


def _ratios(results: Results) -> ClaimCheck:
    ratios = {}
    for size, config in DRAWN.items():
        after, before = (results.mean(DATA, config, None, name) for name in ("energy_after", "energy_before"))
        ratios[size] = after / before
    shown = ", ".join(f"{size} features {ratio:.0%}" for size, ratio in ratios.items())
    return ClaimCheck(f"training error after / before learning: {shown}", max(ratios.values()) < 1.0)


def _beats_all_pixels(results: Results) -> ClaimCheck:
    vote = results.mean(DATA, DRAWN[100], None)
    others = {config: results.mean(PIXELS, config, None) for config in (LINEAR, POLYNOMIAL)}
    shown = ", ".join(f"{config} on pixels {value:.4f}" for config, value in others.items())
    return ClaimCheck(f"vote {vote:.4f}, {shown}", vote < min(others.values()))


def _section(results: Results) -> list[Section]:
    rows = []
    for size in DRAWN:
        try:
            energy = [results.mean(DATA, DRAWN[size], None, f"energy_{when}") for when in ("before", "after")]
            test = [
                results.mean(DATA, config[size], None, name)
                for name in ("model_error", "vote_error")
                for config in (UNIFORM, DRAWN)
            ]
        except NotMeasured:
            continue
        rows.append((str(size), *(f"{100 * value:.2f}" for value in (*energy, *test))))
    text = (
        "Per cent. Training: mean error of SVMs for ten classes, trained on samples of 100 images, at "
        "the beginning and at the end of learning. Test: errors in telling one digit from all others, averaged over "
        "the digits, of single SVMs trained on all images and of the majority of the ten SVMs of a digit. "
        "The paper calls its 3.2 % an average error rate; should it be one over these two-class problems, it is to be "
        "compared with the last columns and not with the error of the vote among ten digits."
    )
    ceiling = _ceiling(results)
    header = (
        "features",
        "training, before",
        "training, after",
        "one SVM, uniform draws",
        "one SVM, learned draws",
        "majority, uniform draws",
        "majority, learned draws",
    )
    return [Section("Mean errors of drawn classifiers", (text, *ceiling), PageTable(header, tuple(rows)))]


def _ceiling(results: Results) -> tuple[str, ...]:
    """A paragraph with the errors of linear SVMs on all edges at once."""
    shown = []
    try:
        for data in (DATA, PLAIN):
            hard, soft, learned, uniform = (
                100 * results.mean(data, config, None)
                for config in (EDGES, SOFT_EDGES, DRAWN[100], UNIFORM[100])
            )
            shown.append(
                f"{data}: all edges {hard:.1f} % (C = 1) and {soft:.1f} % (C = 0.01), votes on 100 of them "
                f"{learned:.1f} % (learned) and {uniform:.1f} % (uniform)"
            )
    except NotMeasured:
        return ()
    text = "Linear SVMs on all edges at once, an error that selection among these edges would have to beat: "
    return (f"{text}{'; '.join(shown)}.",)


STUDY = Study(
    name="gadat2007-usps",
    title="Optimal feature weighting on handwritten digits",
    source="Gadat and Younes, JMLR 8 (2007), section 5.2.3",
    about=(
        "Binary edge detectors of the 16 × 16 images; published training and test sets, all images. The paper's "
        "preprocessing of the detectors is not described fully, so their number differs from its 2418; the kind taken "
        "here (with sign, blurred by one and two pixels) was chosen among ten by cross-validation on the training "
        "images. As in the paper, one distribution is learned for all digits, and each digit has "
        "ten SVMs of its own, on "
        "features drawn from the distribution, that tell it from the others; the digit with the "
        "most votes wins (of several the "
        "one with the largest sum of decision values, our choice). The paper quotes from elsewhere 8.9 % for linear, "
        "4 % for polynomial and 4.1 % for sigmoid SVMs and 2.7 % for the tangent distance; the first two are "
        "computed here on the pixels (degree 3, our choice), the others are not. Edges without sign, blurred by one "
        "pixel or not at all, which an earlier version of this page had, show how much depends on the detectors. The "
        "quick version uses the small digits of scikit-learn."
    ),
    cost="about 20 minutes on one core; a task is capped at 30 minutes.",
    full=full,
    quick=quick,
    expectations=(
        PublishedFigure(
            "10 voters a digit with 100 features",
            DATA,
            DRAWN[100],
            None,
            3.2,
            is_fixed=True,
            decimals=1,
            note=ONE_SPLIT,
        ),
        PublishedFigure(
            "linear SVM, no selection",
            PIXELS,
            LINEAR,
            None,
            8.9,
            is_fixed=True,
            decimals=1,
            note=f"quoted by the paper; {ONE_SPLIT}",
        ),
        PublishedFigure(
            "polynomial SVM, no selection",
            PIXELS,
            POLYNOMIAL,
            None,
            4.0,
            is_fixed=True,
            decimals=0,
            note=f"quoted by the paper; {ONE_SPLIT}",
        ),
        Claim(
            "the vote is better than SVMs without selection",
            "3.2 % against 8.9 % (linear) and 4 % (polynomial)",
            "lower test error than both on the pixels",
            _beats_all_pixels,
            in_quick=False,
        ),
        Claim(
            "learning lowers the mean training error",
            "to around 90 % of the error before, whatever the number of features",
            "ratio below 1 for 40 and 100 features",
            _ratios,
            in_quick=False,
        ),
        Claim(
            "voters on learned draws beat voters on uniform draws",
            "learning significantly improves the performance",
            "lower test error of the vote for 40 and 100 features",
            partial(_drawn_beat_uniform, "error_rate"),
            in_quick=False,
        ),
        Claim(
            "the same in telling one digit from the others",
            "learning significantly improves the performance",
            "lower mean test error of the ten majorities for 40 and 100 features",
            partial(_drawn_beat_uniform, "vote_error"),
            in_quick=False,
        ),
        Claim(
            "learned features beat random features",
            "learning significantly improves the performance",
            "lower test error with the smallest size",
            _learned_beats_random,
        ),
    ),
    sections=_section,
)


# -- The vote of Gadat and Younes on several classes: for each class its own SVMs, class against rest --


class ClassVoters(ClassifierMixin, BaseEstimator):
    """One distribution over the features for all classes, and SVMs on features drawn from it for each class.

    The class with the most votes wins; of several the one with the largest sum of decision values.

    Parameters
    ----------
    selector : learns the distribution.
    SVM : two-class predictor with a ``decision_function``.
    n_voters : number of SVMs for each class.
    subset_size : features drawn for each SVM, with replacement.
    random_state : seed of the draws and of the selector.
    """

    def __init__(
        self,
        selector: OptimalFeatureWeighting,
        model: Any,
        *,
        n_voters: int = 10,
        subset_size: int = 100,
        random_state: int = 0,
    ) -> None:
        self.selector = selector
        self.model = model
        self.n_voters = n_voters
        self.subset_size = subset_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the distribution, then train the SVMs of each class."""
        self.classes_ = np.unique(y)
        self.selector_ = clone(self.selector).set_params(random_state=self.random_state).fit(X, y)
        rng = np.random.default_rng(self.random_state)
        weights = self.selector_.weights_ / self.selector_.weights_.sum()
        self.voters_: list[list[tuple[NDArray[np.intp], Any]]] = []
        for label in self.classes_:
            draws = rng.choice(weights.size, size=(self.n_voters, self.subset_size), p=weights)
            subsets = [np.unique(draw) for draw in draws]
            self.voters_.append([(s, clone(self.model).fit(X[:, s], y == label)) for s in subsets])
        return self

    def decisions(self, X: Any) -> FloatArray:
        """Decision values of all SVMs, of shape (classes, voters, samples)."""
        values = [[model.decision_function(X[:, s]) for s, model in voters] for voters in self.voters_]
        return np.asarray(values, dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the most votes."""
        decisions = self.decisions(X)
        votes, abs_weight = (decisions > 0.0).sum(axis=1), decisions.sum(axis=1)
        best = np.lexsort((abs_weight, votes), axis=0)[-1]
        return cast("NDArray[Any]", self.classes_[best])


def error_of_each_vote(model: ClassVoters, X: Any, y: Any) -> float:
    """Mean over the classes of the error of its majority in telling it from the rest; a tie counts half."""
    share = (model.decisions(X) > 0.0).mean(axis=1)
    belongs = np.asarray([y == label for label in model.classes_])
    against = np.where(belongs, 1.0 - share, share)
    return float(np.mean(0.5 * np.sign(against - 0.5) + 0.5))


def error_of_each_model(model: ClassVoters, X: Any, y: Any) -> float:
    """Mean error of single SVMs in telling their class from the rest."""
    says_yes = model.decisions(X) > 0.0
    belongs = np.asarray([y == label for label in model.classes_])[:, None, :]
    return float(np.mean(says_yes != belongs))


VOTE_ERROR = Metric("vote_error", error_of_each_vote, response="model")
MODEL_ERROR = Metric("model_error", error_of_each_model, response="model")
