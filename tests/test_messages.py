"""Messages show values as the user wrote them, without the names of NumPy's types, and have a remedy."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge

import zeronorm
from zeronorm import RFE, FisherScore, IntervalSelector, Relief, SelectorCV, WelchScore, as_design
from zeronorm._types import written
from zeronorm.datasets import make_polynomial_toy
from zeronorm.datasets._table import shown
from zeronorm.models import KernelAROM, OFWClassifier, RelevanceVectorClassifier, SparseKernelSVC
from zeronorm.registry import all_methods
from zeronorm.result._provenance import call_text
from zeronorm.selectors._base import BaseSelector

X = np.random.default_rng(0).normal(size=(12, 4))
Y = np.arange(12) % 2
FRAME = pd.DataFrame(X, columns=[np.str_(name) for name in "abcd"])
WORDS = np.where(Y == 1, "q", "r")
ALL_Q = np.full(12, "q")
ONE_Q = np.array(["q"] + ["r"] * 11)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.str_("q"), "'q'"),
        (np.int64(0), "0"),
        (np.float64(0.5), "0.5"),
        (np.float32(0.1), "0.1"),
        (np.bool_(True), "True"),
        ([np.int64(1), np.str_("q")], "[1, 'q']"),
        ({np.str_("a"): np.float64(1.0)}, "{'a': 1.0}"),
        (np.datetime64("2020-01-02"), "2020-01-02"),
        ("q", "'q'"),
        (None, "None"),
        (RFE(C=np.float64(2.0)), "RFE(C=2.0)"),
    ],
    ids=str,
)
def test_values_are_written_without_the_names_of_their_types(value, text):
    assert written(value) == text


MESSAGES = {
    "one class": (lambda: FisherScore().fit(X, ALL_Q), "one class only: 'q'"),
    "one class, relevance vectors": (
        lambda: RelevanceVectorClassifier().fit(X, ALL_Q),
        "one class only: 'q'",
    ),
    "one class, ofw": (lambda: OFWClassifier().fit(X, ALL_Q), "one class: 'q'"),
    "one class, kernel arom": (lambda: KernelAROM().fit(X, ALL_Q), "one class only: 'q'"),
    "one class, sparse kernel": (lambda: SparseKernelSVC().fit(X, ALL_Q), "one class only: 'q'"),
    "rare class, welch": (lambda: WelchScore().fit(X, ONE_Q), "for class 'q'"),
    "rare number, welch": (lambda: WelchScore().fit(X, (ONE_Q == "q") * 7), "for class 7"),
    "rare class, intervals": (lambda: IntervalSelector().fit(X, ONE_Q), "class 'q'"),
    "parameter": (lambda: RFE(C=np.float64(-1.0)).fit(X, Y), "Got -1.0 instead"),
    "size": (lambda: RFE(n_features_to_select=np.int64(0)).fit(X, Y), "Got 0 instead"),
    "sizes": (lambda: SelectorCV(FisherScore(), sizes=[np.int64(9)]).fit(X, Y), "Got [9] instead"),
    "column": (lambda: FisherScore(always_keep=np.array(["z"])).fit(FRAME, Y), "column 'z'"),
    "group": (lambda: FisherScore(feature_groups=[list(FRAME.columns)] * 2).fit(FRAME, Y), "column 'a'"),
    "name": (lambda: as_design(FRAME.where(FRAME < 1.0)), "column 2 ('c')"),
    "cell": (lambda: as_design([[1, 2], [3, "x"]]), "first 'x' in row 1, column 1"),
    "cell in fit": (lambda: FisherScore().fit([[1, 2], [3, "x"]], [0, 1]), "first 'x' in row 1, column 1"),
    "row": (lambda: as_design([[1, 2], np.float64(3.0)]), "no list of values: 3.0;"),
    "real target": (
        lambda: FisherScore().fit(X, X[:, 0]),
        "continuous values. For a real target use FisherScore(task='regression').",
    ),
    "real target of a method for classes": (
        lambda: WelchScore().fit(X, X[:, 0]),
        "For a real target use a method that takes one, such as RFE(task='regression').",
    ),
    "path": (
        lambda: FisherScore().fit("table.csv", Y),
        "must hold the data, not the path of a file. Got 'table.csv' instead; use as_design for",
    ),
    "paths": (lambda: FisherScore().fit(["a.npy", "b.npy"], Y), "Got ['a.npy', 'b.npy'] instead"),
    "words as a real target": (
        lambda: FisherScore(task="regression").fit(X, WORDS),
        "y must hold numbers. Got 'r' in row 0; use task='classification' for classes.",
    ),
    "words as a real target of a design": (
        lambda: FisherScore(task="regression").fit(as_design(X), WORDS),
        "y must hold numbers. Got 'r' in row 0",
    ),
    "missing real target of a design": (
        lambda: RFE(task="regression").fit(as_design(X), np.where(Y == 1, np.nan, X[:, 0])),
        "Input y contains NaN: first found in row 1; drop samples without a target.",
    ),
    "infinite real target of a design": (
        lambda: RFE(task="regression").fit(as_design(X), np.where(Y == 1, np.inf, X[:, 0])),
        "Input y contains infinity: first found in row 1; drop or correct such samples.",
    ),
    "class of a selector": (
        lambda: zeronorm.evaluate(RFE, X, Y),
        "The 'selectors' parameter has the class RFE. Give an object of it, RFE().",
    ),
    "row in evaluate": (lambda: zeronorm.evaluate(RFE(), [[1, 2], 3], [0, 1]), "no list of values: 3;"),
    "row in select": (lambda: zeronorm.select([[1, 2], 3], [0, 1]), "no list of values: 3;"),
    "fraction": (lambda: make_polynomial_toy(20, target=np.float64(1.5)), "Got 1.5 instead"),
    "folds": (lambda: zeronorm.select(X, WORDS, cv=np.int64(1)), "Got 1 instead."),
    "features": (lambda: zeronorm.select(X, WORDS, features=np.int64(0)), "Got 0 instead"),
    "seed": (lambda: zeronorm.evaluate(FisherScore(), X, Y, random_state=np.int64(-1)), "Got -1"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages_show_plain_values(case):
    action, said = MESSAGES[case]
    with pytest.raises(ValueError, match=re.escape(said)) as raised:
        action()
    assert not re.search(r"\b(np|numpy)\.|array\(|dtype", str(raised.value)), raised.value


def test_a_warning_shows_a_plain_class():
    y = np.array([3, 3] + [4] * 10)
    with pytest.warns(UserWarning, match=r"hits in class 3 \(2 samples"):
        Relief(n_neighbors=5).fit(X, y)


def test_names_in_one_line_of_text():
    assert shown(np.str_("a")) == "'a'"
    assert shown(np.str_(" ")) == "' ' (no name)"


def test_a_recorded_call_can_be_repeated():
    arguments = {"level": np.float64(0.1), "features": np.int64(3), "sizes": [np.int64(1)]}
    assert call_text("select", arguments, {}) == "zeronorm.select(level=0.1, features=3, sizes=[1])"


# -- before fit --

ESTIMATORS = [
    m.instances()[0] for kind in ("selector", "meta", "model", "transformer") for m in all_methods(kind)
]
NEED_NO_FIT = {"fit", "fit_transform", "get_params", "get_metadata_routing"}


def public_methods(estimator):
    """Names of the methods that a user may call, with arguments of the right shape."""
    for name in dir(estimator):
        if (
            name.startswith(("_", "set_"))
            or name in NEED_NO_FIT
            or not callable(getattr(estimator, name, None))
        ):
            continue
        needed = [
            parameter.name
            for parameter in inspect.signature(getattr(estimator, name)).parameters.values()
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        yield name, [Y if parameter == "y" else X for parameter in needed]


CASES = [(estimator, None) for estimator in ESTIMATORS] + [
    (estimator, final)
    for estimator in ESTIMATORS
    for final in (LogisticRegression(), Ridge())
    if "estimator" in estimator.get_params(deep=False)
]


@pytest.mark.parametrize(("estimator", "final"), CASES, ids=lambda part: type(part).__name__)
def test_every_method_says_that_fit_comes_first(estimator, final):
    estimator = clone(estimator)
    if final is not None:
        estimator.set_params(estimator=final)
        assert hasattr(estimator, "predict")
        if isinstance(estimator, BaseSelector):
            assert hasattr(estimator, "decision_function") == hasattr(final, "decision_function")
    asked = list(public_methods(estimator))
    assert {"transform", "predict"} & {name for name, _ in asked}
    for name, arguments in asked:
        with pytest.raises(NotFittedError, match=r"is not fitted yet\. Call 'fit'"):
            getattr(estimator, name)(*arguments)


def test_an_estimator_that_came_after_the_fit_is_not_fitted():
    selector = FisherScore().fit(X, Y).set_params(estimator=LogisticRegression())
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        selector.predict(X)
