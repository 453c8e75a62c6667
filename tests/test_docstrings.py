"""Every public class and function is documented in full, with an example that runs as it is printed."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from zeronorm.registry import all_methods
from zeronorm.selection._checked import _entries, _sections, constructor_parameters

PACKAGES = (
    "zeronorm",
    "zeronorm.datasets",
    "zeronorm.evaluation",
    "zeronorm.evaluation.significance",
    "zeronorm.models",
    "zeronorm.report",
    "zeronorm.testing",
    "zeronorm.transformers",
)
PUBLIC = {
    f"{package}.{name}": thing
    for package in PACKAGES
    for name in importlib.import_module(package).__all__
    if callable(thing := getattr(importlib.import_module(package), name))
}
NAMES = sorted(PUBLIC)
# Objects that users get and never make: their example is that of the function or class which returns them.
GOT_FROM = {
    "zeronorm.evaluation.significance.CorrectedT": "zeronorm.evaluation.significance.corrected_resampled_t",
    "zeronorm.evaluation.significance.CriticalDifference": "zeronorm.evaluation.significance.critical_difference",
    "zeronorm.evaluation.significance.EffectSize": "zeronorm.evaluation.significance.mean_difference",
    "zeronorm.evaluation.significance.Friedman": "zeronorm.evaluation.significance.friedman",
    "zeronorm.evaluation.significance.McNemar": "zeronorm.evaluation.significance.mcnemar",
    "zeronorm.evaluation.significance.ScoreMatrix": "zeronorm.evaluation.significance.score_matrix",
    "zeronorm.evaluation.significance.SignedRank": "zeronorm.evaluation.significance.signed_rank",
    "zeronorm.report.Chart": "zeronorm.report.register_chart",
    "zeronorm.report.Run": "zeronorm.report.register_chart",
}
FILLED_IN_FIT = {"feature_names_in_", "estimator_"}  # only with named columns, or with an estimator


def documented(thing, section):
    return _entries(_sections(inspect.getdoc(thing) or "").get(section, ""))


def parameters_of(thing):
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator):
        return constructor_parameters(thing)
    if inspect.isclass(thing) and thing.__init__ is object.__init__ and thing.__new__ is object.__new__:
        return {}
    return dict(inspect.signature(thing).parameters)


def default_as_text(thing, parameter):
    """As it is written in Python; what a field of a dataclass is filled with is made first."""
    made = (
        {f.name: f.default_factory for f in dataclasses.fields(thing)}
        if dataclasses.is_dataclass(thing)
        else {}
    )
    if made.get(parameter.name, dataclasses.MISSING) is dataclasses.MISSING:
        return repr(parameter.default)
    value = made[parameter.name]()
    return "empty" if isinstance(value, np.ndarray) and value.size == 0 else repr(value)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_type_default_and_text(name):
    thing = PUBLIC[name]
    found = documented(thing, "Parameters")
    for parameter in parameters_of(thing).values():
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        shown = stars + parameter.name
        assert shown in found, f"{shown} is not documented"
        type_text, words = found[shown]
        assert type_text, f"{shown} has no type"
        assert words, f"{shown} has no text"
        assert words[0].isupper() or not words[0].isalpha(), f"{shown}: {words!r} is half a sentence"
        if parameter.default is not inspect.Parameter.empty:
            default = default_as_text(thing, parameter)
            assert type_text.endswith(f", default={default}"), (
                f"{shown}: {type_text!r}, but the default is {default}"
            )
    assert set(found) <= {p.lstrip("*") for p in parameters_of(thing)} | {
        name for name in found if name.startswith("*")
    }, "documents parameters that do not exist"


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(PUBLIC[n])])
def test_what_a_function_returns_is_described(name):
    if inspect.signature(PUBLIC[name]).return_annotation not in ("None", None):
        assert documented(PUBLIC[name], "Returns")


@pytest.mark.parametrize("name", NAMES)
def test_there_is_an_example_that_runs(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if name in GOT_FROM:
        assert ">>>" in inspect.getdoc(PUBLIC[GOT_FROM[name]])
        return
    text = inspect.getdoc(PUBLIC[name])
    assert ">>>" in text, "no example"
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    report: list[str] = []
    failed = doctest.DocTestRunner(verbose=False).run(example, out=report.append).failed
    assert not failed, "".join(report)


def test_the_list_of_things_without_own_example_is_short_and_current():
    for name in GOT_FROM:
        thing = PUBLIC[name]
        assert dataclasses.is_dataclass(thing) or name == "zeronorm.report.Chart"


def is_of(value, type_text):
    """Whether a fitted value is of the documented type, as far as it is documented."""
    kinds = {
        "ndarray": np.ndarray,
        "int": (int, np.integer),
        "float": (float, np.floating),
        "bool": (bool, np.bool_),
        "str": str,
        "list": list,
        "dict": dict,
        "tuple": tuple,
        "None": type(None),
    }
    for option in re.split(r" or |, (?=int|float|None)", re.sub(r"\bof\b.*?(?= or |$)", "", type_text)):
        word = option.split()[0].rstrip(",") if option.split() else ""
        if word not in kinds:  # a class by its name, or "estimator" for anything that fits
            classes = {cls.__name__ for cls in type(value).__mro__}
            if word in classes or (word in ("estimator", "selector") and hasattr(value, "fit")):
                return True
        elif isinstance(value, kinds[word]):
            return True
    return False


METHODS = all_methods()


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.cls.__name__)
def test_fitted_attributes_are_those_documented(method):
    found = documented(method.cls, "Attributes")
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(40, 16)))
    for instance in method.instances():
        is_regression = getattr(instance, "task", None) == "regression" or method.tasks == ("regression",)
        y = X[:, 0] + rng.normal(size=40) if is_regression else np.arange(40) % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            instance.fit(X, y)
        fitted = {
            name: value for name, value in vars(instance).items() if re.fullmatch(r"[a-zA-Z]\w*_", name)
        }
        for name, value in fitted.items():
            assert name in found, f"{name} is not documented"
            type_text, words = found[name]
            assert words, name
            assert is_of(value, type_text), f"{name} is said to be {type_text}, but is {type(value).__name__}"
            if "(n_features_in_,)" in type_text:
                assert value.shape == (16,), name
