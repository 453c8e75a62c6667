"""Every constructor parameter is declared, checked before any computation, and reported in one sentence."""

from __future__ import annotations

import inspect
import re
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from zeronorm import AROM, L1SVM, RFE, FisherScore
from zeronorm.registry import all_methods
from zeronorm.selection._checked import CheckedParameters, constructor_parameters, kinds_of
from zeronorm.selection._parameters import VOCABULARY

METHODS = all_methods()
HOSTILE = [None, "a", [], float("nan"), float("inf"), -1, 0, 0.5, 1e300, object()]
X, Y = make_classification(n_samples=24, n_features=6, n_informative=3, n_redundant=0, random_state=0)
X = np.abs(X)  # spectra have no negative values
X[:, 0] += 10 * Y  # hard margins need classes that can be separated
NAMES = [method.cls.__name__ for method in METHODS]


def _attempt(estimator, name):
    """None if the fit works or the error names the parameter in the house's grammar; else what happened."""
    pattern = f"The '{name}' parameter of {type(estimator).__name__} must .* Got .* instead"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimator.fit(X, Y)
        except (ValueError, TypeError) as error:
            return None if re.search(pattern, str(error), re.DOTALL) else f"{type(error).__name__}: {error}"
        except AttributeError as error:
            if (
                name == "importance_getter"
            ):  # a missing attribute is this error in scikit-learn, which RFE replaces
                return None
            return f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_hostile_values_fit_or_are_refused_by_name(method):
    """A value that is the parameter's own already needs one fit for all parameters together."""
    plain = method.instances()[0]
    own = plain.get_params(deep=False)
    problems = [] if (problem := _attempt(clone(plain), "")) is None else [f"as it is: {problem}"]
    for name in constructor_parameters(method.cls):
        for value in HOSTILE:
            if value is own[name] or (type(value) is type(own[name]) and value == own[name]):
                continue
            problem = _attempt(clone(plain).set_params(**{name: value}), name)
            if problem is not None:
                problems.append(f"{name}={value!r}: {problem}")
    assert not problems, "\n".join(problems)


PARAMETERS = [(m.cls, name, found) for m in METHODS for name, found in constructor_parameters(m.cls).items()]


def test_every_parameter_is_in_the_vocabulary_and_has_a_kind():
    assert [(cls.__name__, name) for cls, name, _ in PARAMETERS if name not in VOCABULARY] == []
    assert [(cls.__name__, name) for cls, name, _ in PARAMETERS if name not in kinds_of(cls)] == []


def test_defaults_are_of_their_kind():
    with_default = [found for found in PARAMETERS if found[2].default is not inspect.Parameter.empty]
    assert len(with_default) > 200
    wrong = [
        (cls, name) for cls, name, found in with_default if not kinds_of(cls)[name].accepts(found.default)
    ]
    assert wrong == []


def test_nothing_talks_unless_asked():
    assert {found.default for _, name, found in PARAMETERS if name == "verbose"} == {False}


def test_exceptions_to_the_vocabulary_have_a_reason_and_exist():
    for method in METHODS:
        for name, (kind, reason) in method.cls._parameter_exceptions.items():
            where = f"{method.cls.__name__}.{name}"
            assert name in constructor_parameters(method.cls), where
            assert kind.must_be != getattr(VOCABULARY[name].kind, "must_be", None), f"no exception: {where}"
            assert len(reason.split()) >= 4, where


def test_every_word_of_the_vocabulary_is_used():
    used = {name for method in METHODS for name in constructor_parameters(method.cls)}
    assert sorted(set(VOCABULARY) - used) == []


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (L1SVM(n_steps=0.5), "n_steps"),
        (L1SVM(n_steps=float("inf")), "n_steps"),
        (RFE(C="a"), "C"),
        (RFE(C=[1.0]), "C"),
        (RFE(max_iter=-3), "max_iter"),
        (RFE(max_iter=float("inf")), "max_iter"),
        (RFE(kernel="rbf", gamma=float("nan")), "gamma"),
        (RFE(kernel="rbf", gamma=float("inf")), "gamma"),
        (RFE(tol=float("nan")), "tol"),
        (RFE(tol=-1), "tol"),
        (FisherScore(variant=["between"]), "variant"),
        (FisherScore(True), "n_features_to_select"),
    ],
    ids=repr,
)
def test_known_holes_are_closed(estimator, name):
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter of {type(estimator).__name__} must be .* Got"
    ):
        estimator.fit(X, Y)


def test_parameters_are_checked_before_the_data_are_looked_at():
    with pytest.raises(ValueError, match="The 'step' parameter of RFE"):
        RFE(step=0).fit(object(), None)


def test_checks_take_microseconds():
    """Fits of a millisecond exist. Calls are counted, some tenths of a microsecond each: no clock on a busy machine."""
    slowest = max(METHODS, key=lambda method: len(constructor_parameters(method.cls)))
    estimator, calls = slowest.instances()[0], []
    estimator._validate_params()
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        estimator._validate_params()
    finally:
        sys.setprofile(None)
    assert sum(event in ("call", "c_call") for event in calls) < 200


@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_the_docstring_describes_every_parameter_with_type_and_default(method):
    text = inspect.getdoc(method.cls)
    for name, parameter in constructor_parameters(method.cls).items():
        default = "" if parameter.default is inspect.Parameter.empty else f", default={parameter.default!r}"
        assert re.search(rf"^{name} : .+{re.escape(default)}\n    \S", text, re.MULTILINE), name
        assert VOCABULARY[name].meaning.split()[0] in text


def test_the_names_of_parameters_are_those_of_the_signature_and_looked_up_once(monkeypatch):
    found = RFE._get_param_names()
    assert found == super(CheckedParameters, RFE)._get_param_names()
    assert found != AROM._get_param_names()
    monkeypatch.setattr("inspect.signature", lambda *_: pytest.fail("looked at the signature"))
    found.append("what a caller does with the list")
    assert RFE._get_param_names() == found[:-1]
